"""What the engine's persistent cache does with pages that something else wrote, and what a namespace changes in that.

Each fault is shown twice on the real engine: first as a start script has it, one folder of pages for everything, then
with penny. Without it the engine reports hits, raises no error and answers from foreign bytes.
"""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from reproducer.documents.lock import Lock
from reproducer.documents.opened import open_lock
from reproducer.engines import engine_of
from tests.end_to_end.newcomer import ROOT, Penny, copy_of_repository, edit_lock, servers_of

pytestmark = [pytest.mark.engine, pytest.mark.index]

TOKENS = 400
PROMPT = [(index * 7919 + 13) % 48_000 + 100 for index in range(TOKENS)]
PAGE = 16
STORED = TOKENS // PAGE * PAGE - PAGE  # the last page is always computed, for its logits


@dataclass(frozen=True)
class Answer:
    """What a server gave for the prompt.

    Attributes:
        output: the greedy token ids.
        storage: prompt tokens whose pages came from disk.
    """

    output: list[int]
    storage: int


def ask(url: str) -> Answer:
    """The prompt's greedy continuation; waits until the pages of it are on disk."""
    body = {
        "input_ids": PROMPT,
        "sampling_params": {"temperature": 0, "max_new_tokens": 12, "ignore_eos": True},
        "return_logprob": True,
    }
    meta = httpx.post(f"{url}/generate", json=body, timeout=300).raise_for_status().json()["meta_info"]
    tiers = meta.get("cached_tokens_details") or {}
    time.sleep(3)  # write-through is not awaited by the request that causes it
    return Answer([each[1] for each in meta["output_token_logprobs"]], tiers.get("storage", 0))


@dataclass(frozen=True)
class Script:
    """The launch of a lock as a start script has it: the runtime's interpreter and one folder, nothing compared."""

    python: Path
    checkpoint: Path
    lock: Lock

    @contextmanager
    def server(self, pages: Path, *, checkpoint: Path | None = None, **changed: Any) -> Iterator[str]:
        """The server, with some arguments changed (`page_size=32`); it is ended with all its processes."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        arguments = {**self.lock.launch.arguments, **{name.replace("_", "-"): value for name, value in changed.items()}}
        launch = self.lock.launch.model_copy(update={"arguments": arguments})
        assert launch.module is not None
        engine = engine_of("sglang")
        values = {"checkpoint.target": str(checkpoint or self.checkpoint), "namespace": str(pages)}
        pages.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [
                *(str(self.python), "-m", launch.module),
                *engine.argument_list(launch, values=values),
                *("--host", "127.0.0.1", "--port", str(port)),
            ],
            env={"PATH": os.environ["PATH"], "HOME": str(pages.parent), **engine.environment(launch, values=values)},
            cwd=pages.parent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            _wait(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=30)
            finally:
                with_children_gone(process.pid)

    def ask(self, pages: Path, **changed: Any) -> Answer:
        """One server, one question."""
        with self.server(pages, **changed) as url:
            return ask(url)


def with_children_gone(group: int) -> None:
    """End what is left of a process group."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended before it was ready"
        try:
            if httpx.get(f"{url}/health_generate", timeout=60).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    pytest.fail("the server never got ready")


@pytest.fixture(scope="module")
def script(filled_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Script:
    """The built runtime of the committed lock, taken out of penny's hands."""
    penny = Penny(
        copy_of_repository(tmp_path_factory.mktemp("p") / "clone"), filled_store, tmp_path_factory.mktemp("k")
    )
    built = penny("build", "--yes", "--json", "--offline")
    assert built.code == 0, built.err
    checkpoint = next(filled_store.glob("entries/checkpoint/*/content/checkpoint"), None)
    python = next((path for path in filled_store.glob("**/venv/bin/python") if _serves(path)), None)
    assert checkpoint is not None
    assert python is not None
    return Script(python, checkpoint, open_lock(ROOT / "penny.lock.toml").lock)


def _serves(python: Path) -> bool:
    return any(python.parents[1].glob("lib/python*/site-packages/sglang"))


@pytest.fixture(scope="module")
def good(script: Script, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answer]:
    """A folder of pages that the unchanged runtime wrote, and its answer."""
    pages = tmp_path_factory.mktemp("good") / "pages"
    cold = script.ask(pages)
    assert cold.storage == 0
    return pages, cold


@pytest.fixture
def shared(good: tuple[Path, Answer], tmp_path: Path) -> Path:
    """A copy of those pages, as a folder that everything shares."""
    return shutil.copytree(good[0], tmp_path / "pages")


@contextmanager
def launched(penny: Penny, kv: Path, *options: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """A detached server of penny's, stopped at the end."""
    up = penny("launch", "--detach", "--yes", "--offline", "--json", "--kv", str(kv), *options)
    assert up.code == 0, up.err
    try:
        yield up.result["url"], up.result
    finally:
        down = penny("stop", "--json")
    assert down.code == 0, down.err
    assert servers_of(penny.store) == []


def edit(**changed: tuple[Any, dict[str, Any]]) -> Any:
    """An edit of a lock's launch: argument to its value and the effective values that follow from it."""

    def change(document: Any) -> None:
        for name, (value, effective) in changed.items():
            document["launch"]["arguments"][name.replace("_", "-")] = value
            document["launch"]["effective"].update(effective)

    return change


def test_kv_dtype_and_page_size(
    script: Script, good: tuple[Path, Answer], shared: Path, newcomer: Penny, tmp_path: Path
) -> None:
    """Changed and changed back.

    Without a namespace, float16 reads the pages that bfloat16 wrote, reports each as a hit and answers something else
    than from its own. Another page size finds none, for the engine's keys hash a page's tokens. With namespaces each
    dtype finds its own pages and no others, and each page size has a namespace of its own.
    """
    cold = script.ask(tmp_path / "cold", dtype="float16")
    wrong = script.ask(shared, dtype="float16")
    larger = script.ask(shared, page_size=32)
    assert (cold.storage, wrong.storage, larger.storage) == (0, STORED, 0)
    assert wrong.output != cold.output

    kv, names, right = tmp_path / "kv", [], []
    bfloat16 = ("bfloat16", {"dtype": "bfloat16", "kv_cache_dtype": "bfloat16"})
    float16 = ("float16", {"dtype": "float16", "kv_cache_dtype": "float16"})
    for dtype in (bfloat16, float16, bfloat16):
        edit_lock(newcomer.folder, edit(dtype=dtype))
        with launched(newcomer, kv) as (url, up):
            right.append(ask(url))
            names.append(up["namespace"])
    assert [each.storage for each in right] == [0, 0, STORED]
    assert names[2] == names[0]
    assert (right[1].output, right[2].output) == (cold.output, good[1].output)

    edit_lock(newcomer.folder, edit(page_size=(32, {"page_size": 32})))
    names.append(newcomer("namespace", "--json").result["namespace"])
    assert len(set(names)) == 3


def test_other_weights_under_one_path(
    script: Script, good: tuple[Path, Answer], shared: Path, newcomer: Penny, tmp_path: Path
) -> None:
    """Weights updated in place: the engine answers from the old ones' pages; penny does not serve them at all."""
    updated = shutil.copytree(script.checkpoint, tmp_path / "model")
    flip_weights(updated / "model.safetensors")
    cold = script.ask(tmp_path / "cold", checkpoint=updated)
    wrong = script.ask(shared, checkpoint=updated)
    assert (cold.storage, wrong.storage) == (0, STORED)
    assert wrong.output != cold.output

    flip_weights(script.checkpoint / "model.safetensors")
    with launched(newcomer, tmp_path / "kv") as (url, _):
        right = ask(url)
    assert (right.storage, right.output) == (0, good[1].output)
    (aside,) = (newcomer.store / "damaged").iterdir()
    assert aside.name.startswith("checkpoint-")
    shutil.rmtree(aside)


def test_bytes_flipped_in_stored_pages(
    script: Script, good: tuple[Path, Answer], shared: Path, newcomer: Penny, tmp_path: Path
) -> None:
    """The engine keeps no checksums and serves damaged pages as hits; in a sealed namespace they become misses.

    `penny launch --seal`, ended by Ctrl-C, seals what its server wrote.
    """
    assert damage(shared) > 0
    wrong = script.ask(shared)
    assert wrong.storage == STORED
    assert wrong.output != good[1].output

    kv = tmp_path / "kv"
    process = newcomer.start("launch", "--seal", "--yes", "--offline", "--json", "--kv", str(kv))
    assert process.stdout is not None
    up = json.loads(process.stdout.readline())
    assert ask(up["url"]).storage == 0
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 128 + signal.SIGINT, said
    root = kv / up["namespace"]
    written = sum(path.is_file() for path in (root / "pages").rglob("*"))
    assert f"{written} pages of {up['namespace']} are sealed" in " ".join(said.split())
    damaged = damage(root / "pages")
    assert damaged == written
    checked = newcomer("cache", "verify", up["namespace"], "--kv", str(kv), "--json")
    assert checked.code == 65, checked.err
    with launched(newcomer, kv) as (url, _):
        right = ask(url)
    assert damaged > 0
    assert right.storage == 0  # the first page is damaged, and what follows hangs on it
    assert right.output == good[1].output


def test_pages_of_the_file_backend_lie_in_the_namespace(newcomer: Penny, tmp_path: Path) -> None:
    """The engine's file backend writes to /tmp/hicache unless told otherwise; penny tells it, and pages are found."""

    def change(document: Any) -> None:
        launch = document["launch"]
        launch["arguments"]["hicache-storage-backend"] = "file"
        del launch["arguments"]["hicache-storage-backend-extra-config"]
        for name in [name for name in launch["environment"] if "NIXL" in name]:
            del launch["environment"][name]
        for name in [name for name in launch["effective"] if name.startswith("hicache_storage_")]:
            del launch["effective"][name]
        launch["effective"].update(hicache_storage_backend="file", hicache_storage_prefetch_policy="wait_complete")

    edit_lock(newcomer.folder, change)
    kv = tmp_path / "kv"
    found = []
    for _ in range(2):
        with launched(newcomer, kv) as (url, up):
            found.append(ask(url))
    assert list((kv / up["namespace"] / "pages").iterdir())
    assert [each.storage for each in found] == [0, STORED]
    assert found[0].output == found[1].output


def damage(pages: Path) -> int:
    """Flip bits in every stored page as a bad disk would: sizes and names stay."""
    files = [path for path in pages.rglob("*") if path.is_file()]
    for path in files:
        path.chmod(0o600)
        data = bytearray(path.read_bytes())
        data[1::64] = bytes(byte ^ 0xFF for byte in data[1::64])
        path.write_bytes(data)
    return len(files)


def flip_weights(path: Path) -> None:
    """Other numbers under the same name, shape and dtype: one bfloat16 in 64 changes its sign."""
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    first = 8 + struct.unpack("<Q", data[:8])[0] + 1
    data[first::128] = bytes(byte ^ 0x80 for byte in data[first::128])
    path.write_bytes(data)
