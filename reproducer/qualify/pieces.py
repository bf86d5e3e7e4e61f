"""Bytes with the times at which they came, compactly: 16 bytes beside each piece, however many there are."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import overload

_ROOM = 64 << 10
_BLOCK = 1 << 20


class Pieces(Sequence[tuple[int, bytes]]):
    """(time, bytes) of each piece, in the order they came.

    The bytes lie in blocks that are never moved, so that the hundred-thousandth piece costs what the first one did. A
    receiver has the kernel write into `room` and says with `took` how much came.
    """

    __slots__ = ("_begins", "_blocks", "_ends", "_times", "_used", "_view")

    def __init__(self) -> None:
        self._times = array("q")
        self._ends = array("q")  # of each piece, counted over all blocks
        self._blocks: list[bytearray] = []
        self._begins: list[int] = []  # of each block, counted in the same way
        self._view = memoryview(b"")
        self._used = 0

    @property
    def size(self) -> int:
        """Bytes of all pieces."""
        return self._ends[-1] if self._ends else 0

    def room(self) -> memoryview:
        """Where the next piece is to be written: at least 64 KiB."""
        if len(self._view) - self._used < _ROOM:
            self._next_block(_BLOCK)
        return self._view[self._used :]

    def took(self, when: int, count: int) -> None:
        """Keep the first `count` bytes of `room` as a piece that came at the time `when`."""
        self._times.append(when)
        self._ends.append(self._begins[-1] + self._used + count)
        self._used += count

    def add(self, when: int, data: bytes | bytearray) -> None:
        """Keep a copy of bytes that came at the time `when`; none where there are none."""
        if not data:
            return
        if len(self._view) - self._used < len(data):
            self._next_block(max(_BLOCK, len(data)))
        self._view[self._used : self._used + len(data)] = data
        self.took(when, len(data))

    def newest(self, count: int) -> bytes:
        """The last bytes, at most so many, of the newest block."""
        return bytes(self._view[max(self._used - count, 0) : self._used])

    def _next_block(self, size: int) -> None:
        self._begins.append(self.size)
        self._blocks.append(bytearray(size))
        self._view, self._used = memoryview(self._blocks[-1]), 0

    def __len__(self) -> int:
        return len(self._times)

    @overload
    def __getitem__(self, at: int) -> tuple[int, bytes]: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[tuple[int, bytes]]: ...

    def __getitem__(self, at: int | slice) -> tuple[int, bytes] | Sequence[tuple[int, bytes]]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        position = at + len(self) if at < 0 else at
        if not 0 <= position < len(self):
            raise IndexError(at)
        start = self._ends[position - 1] if position else 0
        block = bisect_right(self._begins, start) - 1
        begin = self._begins[block]
        return self._times[position], bytes(self._blocks[block][start - begin : self._ends[position] - begin])
