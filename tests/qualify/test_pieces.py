"""What a stream keeps: every byte and every time, in little more memory than the bytes take."""

import asyncio
import tracemalloc
from itertools import repeat

from hypothesis import given
from hypothesis import strategies as st

from reproducer.qualify.connection import Connection
from reproducer.qualify.pieces import Pieces

PIECES, PIECE = 120_000, b"data: " + b"x" * 250 + b"\n\n"

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@given(st.lists(st.one_of(st.binary(max_size=20), st.integers(60_000, 300_000).map(bytes)), max_size=40))
def test_pieces_read_back_as_they_were_put(data: list[bytes]) -> None:
    """By index from both ends, by slice and in order, over blocks of memory; the newest bytes are the newest."""
    kept = Pieces()
    expected = []
    for when, each in enumerate(data):
        kept.add(when, each)
        if each:
            expected.append((when, each))
    assert list(kept) == expected
    assert kept[1:5] == expected[1:5]
    assert [kept[-number] for number in range(1, len(kept) + 1)] == expected[::-1]
    assert kept.size == sum(map(len, data))
    assert b"".join(data).endswith(kept.newest(6))
    assert len(kept.newest(6)) >= min(len(expected[-1][1]) if expected else 0, 6)


def test_memory_is_flat_over_a_very_long_stream() -> None:
    """120,000 pieces cost their bytes, 16 bytes each for when and where, and two blocks at most."""

    async def receive() -> tuple[int, int]:
        connection = Connection()
        connection.send(b"", 64 << 20)
        tracemalloc.start()
        for piece in (HEAD, *repeat(PIECE, PIECES - 1)):
            connection.get_buffer(-1)[: len(piece)] = piece
            connection.buffer_updated(len(piece))
        kept, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(connection.arrived) == PIECES
        assert connection.arrived[-1][1] == PIECE
        return kept, peak

    kept, peak = asyncio.run(receive())
    times = PIECES * 16 * 9 // 8  # an array grows by an eighth
    blocks = PIECES * len(PIECE) // (1 << 20) + 1
    assert kept <= times + (blocks + 2) * (1 << 20) * 17 // 16
    assert peak <= kept + times + (1 << 20)


def test_an_end_that_lies_in_two_blocks_is_seen() -> None:
    """The last two bytes of an answer come when a block is full: they begin the next one, and are known for the end."""

    async def receive() -> int:
        connection = Connection()
        connection.send(b"", 64 << 20)
        left = (1 << 20) - len(HEAD) - (64 << 10)  # after this three bytes fit before the next block
        fill = [b"x" * min(60 << 10, left - at) for at in range(0, left, 60 << 10)]
        for piece in (HEAD, *fill, b"0\r\n", b"\r\n"):
            connection.get_buffer(-1)[: len(piece)] = piece
            connection.buffer_updated(len(piece))
        await asyncio.wait_for(connection.rest(), 5)
        return len(connection.arrived.newest(6))

    assert asyncio.run(receive()) == 2
