"""The files that real harnesses wrote against a small server with a fixed schedule and answers of its own.

sglang 0.5.10.post1, vllm 0.32.0, guidellm 0.8.1, aiperf 0.13.0, lm_eval 0.4.13, inspect_ai 0.3.285. Folders have other
names than they had; distributions over texts are cut out of guidellm's file and events out of `inspect.json`.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reproducer.documents.imported import ImportedQuantity, ImportedResult, ImportedRun
from reproducer.results.keeping import import_result

DATA = Path(__file__).parent / "data"
HARNESSES = {
    "sglang.jsonl": ("sglang.bench_serving", "unknown", "unknown"),
    "sglang-paced.jsonl": ("sglang.bench_serving", "unknown", "unknown"),
    "vllm.json": ("vllm bench serve", "unknown", "unknown"),
    "vllm-detailed.json": ("vllm bench serve", "unknown", "unknown"),
    "guidellm.json": ("guidellm", "0.8.1", "2"),
    "aiperf.json": ("aiperf", "0.13.0", "1.4"),
    "aiperf.jsonl": ("aiperf", "unknown", "unknown"),
    "lm-eval.json": ("lm-evaluation-harness", "0.4.13", "unknown"),
    "inspect.eval": ("inspect_ai", "0.3.285", "2"),
    "inspect.json": ("inspect_ai", "0.3.285", "2"),
}
FILES = sorted(HARNESSES)
PLAIN = sorted(set(FILES) - {"inspect.eval"})


def loaded(name: str) -> list[dict[str, Any]]:
    """The objects in a file of JSON, as Python reads them."""
    text = (DATA / name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()] if name.endswith(".jsonl") else [json.loads(text)]


def written(folder: Path, documents: list[dict[str, Any]], name: str = "result") -> Path:
    """A file with these objects, one a line; as harnesses do, with NaN and Infinity."""
    path = folder / name
    path.write_text("\n".join(json.dumps(each) for each in documents) + "\n", "utf-8")
    return path


def changed(folder: Path, name: str, *place: str | int, value: Any) -> Path:
    """A file of the harness in which one value is another."""
    documents = loaded(name)
    inner: Any = documents
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    return written(folder, documents)


def imported(path: Path) -> ImportedResult:
    """The document of a file."""
    return import_result(path).result


def run_of(path: Path, at: int = 0) -> ImportedRun:
    """One run of it."""
    return imported(path).runs[at]


def named(run: ImportedRun, name: str, statistic: str = "total") -> ImportedQuantity | None:
    """A quantity by its name; None where it was not mapped."""
    found = [each for each in run.quantities if (each.name, each.statistic) == (name, statistic)]
    return found[0] if found else None


def why(result: ImportedResult, field: str) -> str | None:
    """Why a field has no place; None where it is not listed."""
    found = [each.why for each in result.unmapped if each.field == field]
    return found[0] if found else None


def objects(data: Any) -> Iterator[dict[str, Any]]:
    """Every object in nested data."""
    if isinstance(data, dict):
        yield data
        for inner in data.values():
            yield from objects(inner)
    elif isinstance(data, list):
        for inner in data:
            yield from objects(inner)


def archive(
    members: list[tuple[str, bytes]],
    *,
    mode: int = 0,
    size: int | None = None,
    flags: int = 0,
    method: int = 8,
    crc: int | None = None,
    local: str | None = None,
) -> bytes:
    """A zip archive, honest or not: what a stranger may name in its directory is named here."""
    body, directory = b"", b""
    for name, data in members:
        packing = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = packing.compress(data) + packing.flush() if method == 8 else data
        raw, here = name.encode(), (local or name).encode()
        check = zlib.crc32(data) if crc is None else crc
        length = len(data) if size is None else size
        offset = len(body)
        body += struct.pack("<4s5H3L2H", b"PK\3\4", 20, flags, method, 0, 0, check, len(packed), length, len(here), 0)
        body += here + packed
        directory += struct.pack(
            *("<4s6H3L5H2L", b"PK\1\2", 0x314, 20, flags, method, 0, 0, check, len(packed), length),
            *(len(raw), 0, 0, 0, 0, mode << 16, offset),
        )
        directory += raw
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(members), len(members), len(directory), len(body), 0)
    return body + directory + end
