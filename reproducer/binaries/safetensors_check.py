"""Checking weights before anything loads them: safetensors only, and its header must be sound.

The format: 8 bytes little-endian header length, a JSON object of tensors, then the data. Every tensor's range must
be as long as its type and shape say, and the ranges must cover the data without gap or overlap.
"""

import struct
from pathlib import Path
from typing import Any

from reproducer.documents.base import parse_json, shown
from reproducer.errors import InvalidDocumentError, UnsafeInputError

_SMALLEST_HEADER, _LARGEST_HEADER = 2, 100_000_000
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64,
    "C64": 64,
}  # fmt: skip
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npy", ".npz", ".h5", ".msgpack")


def check_weights(folder: Path) -> int:
    """Check every file below a checkpoint folder; the number of tensors.

    Raises:
        UnsafeInputError: a file of a kind that can carry code, a link, or a safetensors header that is not sound.
    """
    tensors = 0
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise UnsafeInputError("is a symbolic link", where=str(path))
        if path.name.lower().endswith(_PICKLES):
            raise UnsafeInputError(
                "weights of this kind can carry code", where=str(path), todo="use a checkpoint in safetensors"
            )
        if path.suffix == ".safetensors":
            tensors += check_safetensors(path)
    return tensors


def check_safetensors(path: Path) -> int:
    """Check one safetensors file's header against its size; the number of tensors.

    Raises:
        UnsafeInputError: names the tensor and what is wrong.
    """
    where = str(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0  # noqa: PLR2004  the format's own number
        if not _SMALLEST_HEADER <= length <= min(_LARGEST_HEADER, size - 8):
            raise UnsafeInputError("is no safetensors file: its header length makes no sense", where=where)
        text = file.read(length)
    try:
        header = parse_json(text, where=where, limit=_LARGEST_HEADER)
    except InvalidDocumentError as error:
        raise UnsafeInputError("is no safetensors file: its header is not JSON", where=where) from error
    if not isinstance(header, dict):
        raise UnsafeInputError("is no safetensors file: its header is no object", where=where)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise UnsafeInputError("its metadata is not text", where=where)
    ranges = sorted((*_range(name, tensor, where), name) for name, tensor in header.items())
    position = 0
    for begin, end, name in ranges:
        if begin != position:
            fault = "overlaps the one before it" if begin < position else "leaves a gap before it"
            raise UnsafeInputError(f"tensor {shown(name)} {fault}", where=where)
        position = end
    if position != size - 8 - length:
        raise UnsafeInputError(
            "its tensors do not cover its data", where=where, why=f"{position} bytes of {size - 8 - length}"
        )
    return len(ranges)


def _range(name: str, tensor: Any, where: str) -> tuple[int, int]:
    """(begin, end) of one tensor in the data."""
    try:
        kind, shape, (begin, end) = tensor["dtype"], tensor["shape"], tensor["data_offsets"]
        numbers = [*shape, begin, end]
    except (TypeError, KeyError, ValueError) as error:
        raise UnsafeInputError(f"tensor {shown(name)} has no dtype, shape and offsets", where=where) from error
    known = isinstance(kind, str) and kind in _BITS
    if not known or not all(type(number) is int and number >= 0 for number in numbers):
        raise UnsafeInputError(f"tensor {shown(name)} has a dtype or shape that is not known", where=where)
    if (end - begin) * 8 != _product(shape, most=max(0, end - begin) * 8) * _BITS[kind]:
        raise UnsafeInputError(f"tensor {shown(name)} is not as long as its shape says", where=where)
    return begin, end


def _product(shape: list[int], *, most: int) -> int:
    """How many numbers a shape has; some number above `most` where it has more, whatever a stranger wrote."""
    if 0 in shape:
        return 0
    product = 1
    for each in shape:
        product *= each
        if product > most:
            return most + 1
    return product
