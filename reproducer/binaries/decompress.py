"""Payloads of fat binaries that lie compressed: LZ4 blocks (CUDA 12) and zstd frames (CUDA 13).

LZ4 is read here, after the block format's own description: a token with two lengths, literals, a 16-bit distance.
For zstd there is `compression.zstd` from Python 3.14 on, and its backport before.
"""

from reproducer.binaries.reading import MalformedError

LARGEST = 1 << 30
_LEAST_MATCH = 4
_MORE = 15


def lz4_block(data: bytes, size: int) -> bytes:
    """The bytes of one LZ4 block.

    Args:
        data: the block.
        size: how many bytes must come out.

    Raises:
        MalformedError: it is damaged, or gives another number of bytes.
    """
    found = bytearray()
    position, end = 0, len(data)
    try:
        while position < end:
            token = data[position]
            position += 1
            length = token >> 4
            if length == _MORE:
                length, position = _length(data, position, length)
            if position + length > end or len(found) + length > size:
                raise MalformedError("is an LZ4 block with literals beyond its end")
            found += data[position : position + length]
            position += length
            if position == end:
                break
            distance = data[position] | data[position + 1] << 8
            position += 2
            length = token & 15
            if length == _MORE:
                length, position = _length(data, position, length)
            length += _LEAST_MATCH
            begin = len(found) - distance
            if not distance or begin < 0 or len(found) + length > size:
                raise MalformedError("is an LZ4 block with a match outside of it")
            if distance >= length:
                found += found[begin : begin + length]
            else:
                # An overlapping match repeats its last `distance` bytes.
                found += (found[begin:] * (length // distance + 1))[:length]
    except IndexError as error:
        raise MalformedError("is an LZ4 block that is cut short") from error
    if len(found) != size:
        raise MalformedError(f"is an LZ4 block of {len(found)} bytes where {size} are named")
    return bytes(found)


def _length(data: bytes, position: int, length: int) -> tuple[int, int]:
    while True:
        more = data[position]
        position += 1
        length += more
        if more != 255:  # noqa: PLR2004  the format's "and more"
            return length, position


def zstd_frame(data: bytes, size: int) -> bytes:
    """The bytes of one zstd frame; raises MalformedError as `lz4_block` does."""
    decompressor, fault = _zstd()
    try:
        reader = decompressor()
        found = reader.decompress(data, max_length=size + 1)
    except (fault, EOFError, MemoryError) as error:
        raise MalformedError(f"is no zstd frame: {error}") from error
    if len(found) != size or not reader.eof:
        raise MalformedError(f"is a zstd frame that does not give the {size} bytes that are named")
    return bytes(found)


def _zstd() -> tuple[type, type[Exception]]:
    import sys

    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor, ZstdError
    else:
        from backports.zstd import ZstdDecompressor, ZstdError
    return ZstdDecompressor, ZstdError
