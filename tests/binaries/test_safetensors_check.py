"""Weights: a sound header passes, everything a loader could stumble over is refused by name."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from reproducer.binaries.safetensors_check import check_safetensors, check_weights
from reproducer.errors import UnsafeInputError


def write(path: Path, header: Any, data: bytes, *, length: int | None = None) -> Path:
    """A safetensors file from its parts."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def tensor(begin: int, end: int, shape: list[int], dtype: str = "F32") -> dict[str, Any]:
    """One entry of a header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_sound(tmp_path: Path) -> None:
    """Tensors in any order, scalars, empty ones and text metadata are fine."""
    header = {
        "b": tensor(8, 12, []),
        "a": tensor(0, 8, [2, 1]),
        "e": tensor(12, 12, [0, 3]),
        "__metadata__": {"format": "pt"},
    }
    write(tmp_path / "m.safetensors", header, bytes(12))
    assert check_weights(tmp_path) == 3


@pytest.mark.parametrize(
    ("header", "data", "told"),
    [
        ({"a": tensor(0, 8, [2]), "b": tensor(4, 12, [2])}, 12, "'b' overlaps"),
        ({"a": tensor(0, 8, [2]), "b": tensor(12, 20, [2])}, 20, "'b' leaves a gap"),
        ({"a": tensor(0, 8, [2])}, 12, "do not cover"),
        ({"a": tensor(0, 80, [20])}, 12, "do not cover"),
        ({"a": tensor(0, 8, [3])}, 8, "not as long"),
        ({"a": tensor(8, 0, [2])}, 8, "not as long"),
        ({"a": tensor(0, 8, [-2])}, 8, "not known"),
        ({"a": tensor(0, 8, [2], "F12")}, 8, "not known"),
        ({"a": tensor(0, 8, [True, 2])}, 8, "not known"),
        ({"a": {"dtype": [], "shape": [1], "data_offsets": [0, 8]}}, 8, "not known"),
        ({"a": {"dtype": {"F32": 1}, "shape": [1], "data_offsets": [0, 8]}}, 8, "not known"),
        ({"a": tensor(0, 8, [2**63] * 20)}, 8, "not as long"),
        ({"a": tensor(0, 8, [2**53 + 1] * 100_000)}, 8, "not as long"),
        ({"a": {"dtype": "F4", "shape": [15], "data_offsets": [0, 8]}}, 8, "not as long"),
        ({"a": {"dtype": "F32"}}, 8, "no dtype"),
        ({"a": 1}, 8, "no dtype"),
        ({"__metadata__": {"a": 1}}, 0, "metadata"),
        (b"[]", 0, "no object"),
        (b"{]", 0, "not JSON"),
        (b'{"a": 1, "a": 1}', 0, "not JSON"),
    ],
)
def test_unsound(tmp_path: Path, header: Any, data: int, told: str) -> None:
    """Each is refused before anything loads it."""
    with pytest.raises(UnsafeInputError, match=told):
        check_safetensors(write(tmp_path / "m.safetensors", header, bytes(data)))


def test_lengths(tmp_path: Path) -> None:
    """A header that is longer than the file, enormous, or missing is refused without being read."""
    for length in (2**63, 1000, 0):
        with pytest.raises(UnsafeInputError, match="header length"):
            check_safetensors(write(tmp_path / "m.safetensors", {}, b"", length=length))
    (tmp_path / "m.safetensors").write_bytes(b"abc")
    with pytest.raises(UnsafeInputError, match="header length"):
        check_safetensors(tmp_path / "m.safetensors")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "m.PT", "sub/x.pkl"])
def test_pickles(tmp_path: Path, name: str) -> None:
    """Weights that can carry code are refused wherever they lie."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(UnsafeInputError, match="carry code"):
        check_weights(tmp_path)
