"""Compressed payloads: what comes out is what went in, and damage is named."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproducer.binaries.decompress import lz4_block, zstd_frame
from reproducer.binaries.reading import MalformedError


def test_lz4_by_hand() -> None:
    """Literals, a match that overlaps itself, long lengths, and literals at the end."""
    assert lz4_block(b"\x20ab", 2) == b"ab"
    assert lz4_block(b"\x14a\x01\x00" + b"\x10z", 10) == b"a" * 9 + b"z"
    assert lz4_block(b"\x1fa\x01\x00\xff\x00" + b"\x10z", 276) == b"a" * 275 + b"z"
    assert lz4_block(b"\xf0\x01" + b"x" * 16, 16) == b"x" * 16


@pytest.mark.parametrize(
    "bad", [b"\x20a", b"\x14a\x02\x00", b"\x14a\x00\x00", b"\x14a\x01", b"\x1fa\x01\x00\xff", b"\xf0"]
)
def test_lz4_damaged(bad: bytes) -> None:
    """Literals beyond the end, matches before the begin, cut lengths."""
    with pytest.raises(MalformedError):
        lz4_block(bad, 9)


@given(st.binary(max_size=200), st.integers(0, 4096))
def test_any_lz4(data: bytes, size: int) -> None:
    """Any bytes give exactly the size that is named, or are malformed."""
    with contextlib.suppress(MalformedError):
        assert len(lz4_block(data, size)) == size


@given(st.binary(max_size=200), st.integers(0, 4096))
def test_any_zstd(data: bytes, size: int) -> None:
    """The same for zstd, behind its magic."""
    with contextlib.suppress(MalformedError):
        assert len(zstd_frame(b"\x28\xb5\x2f\xfd" + data, size)) == size


def test_zstd_size() -> None:
    """A frame that gives more or less than was named is malformed."""
    frame = bytes.fromhex("28b52ffd0458190000616263fbdb0c2a")
    with pytest.raises(MalformedError):
        zstd_frame(frame, 2)
    with pytest.raises(MalformedError):
        zstd_frame(frame, 4)
