"""Where the samples of a large receipt lie: in a file of their own, which the receipt names by digest."""

import gzip
import hashlib
import re
import zlib
from typing import Any

from reproducer.documents.base import parse_json
from reproducer.documents.receipts import MeasureReceipt, SampleFile
from reproducer.errors import InvalidDocumentError, SignatureError
from reproducer.samples.columns import LARGEST, MOST_ENTRIES, from_columns, to_columns

LARGEST_INSIDE = 128 << 10
_NAME = re.compile(r"samples-[0-9a-f]{64}\.json\.gz")
_GZIP = 31  # zlib's word for a gzip header and its checksum


def file_name(file: SampleFile) -> str:
    """The name of a file of samples: the digest of what it holds unpacked."""
    return f"samples-{file.sha256}.json.gz"


def is_file_name(name: str) -> bool:
    """Whether a file of this name holds samples."""
    return _NAME.fullmatch(name) is not None


def laid_beside(receipt: MeasureReceipt) -> MeasureReceipt:
    """The receipt with its samples in a file beside it where they are large; as it is where they are not."""
    if len(receipt.canonical()) <= LARGEST_INSIDE:
        return receipt
    data = to_columns(receipt.samples)
    file = SampleFile(sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    return receipt.model_copy(update={"samples_beside": file})


def packed_samples(receipt: MeasureReceipt) -> bytes:
    """The file of the samples of a receipt that names one, packed.

    Raises:
        SignatureError: its samples are not those that it names.
    """
    data = to_columns(receipt.samples)
    _check(receipt, data, where="the samples of the receipt")
    return gzip.compress(data, mtime=0)


def unpacked(packed: bytes, file: SampleFile, *, where: str) -> bytes:
    """The bytes in a packed file, never more than the receipt says.

    Raises:
        InvalidDocumentError: it is not packed with gzip, or holds more or less than the receipt says.
    """
    if file.size > LARGEST:
        raise InvalidDocumentError(f"is said to hold more than {LARGEST} bytes", where=where)
    inflating = zlib.decompressobj(_GZIP)
    try:
        data = inflating.decompress(packed, file.size + 1)
    except zlib.error as error:
        raise InvalidDocumentError("is not packed with gzip", where=where, why=str(error)) from error
    if not inflating.eof or inflating.unused_data or len(data) != file.size:
        raise InvalidDocumentError(f"does not hold the {file.size} bytes that the receipt says", where=where)
    return data


def with_samples(
    receipt: MeasureReceipt, packed: bytes, *, where: str, most: int = MOST_ENTRIES
) -> tuple[MeasureReceipt, int]:
    """The receipt with the samples that lie beside it, and how many entries they have.

    Raises:
        SignatureError: they are not those that the receipt names.
        InvalidDocumentError: as `unpacked` and `from_columns`.
    """
    if receipt.samples_beside is None:
        return receipt, 0
    data = unpacked(packed, receipt.samples_beside, where=where)
    _check(receipt, data, where=where)
    samples, entries = from_columns(data, where=where, most=most)
    return receipt.model_copy(update={"samples": samples}), entries


def plain(packed: bytes, *, where: str) -> Any:
    """What a packed file of our own holds, as plain data."""
    return parse_json(gzip.decompress(packed), where=where)


def _check(receipt: MeasureReceipt, data: bytes, *, where: str) -> None:
    file = receipt.samples_beside
    got = hashlib.sha256(data).hexdigest()
    if file is None or got != file.sha256:
        raise SignatureError(
            "are not the samples that the receipt names",
            where=where,
            why=f"expected sha256 {file.sha256 if file else 'none'}, got {got}",
            todo="restore the file that was written with the receipt",
        )
