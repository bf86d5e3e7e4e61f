"""A Merkle tree as RFC 6962 hashes it: leaves and nodes are told apart by their first byte."""

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Inclusion:
    """That one leaf is in a tree of some size."""

    index: int
    size: int
    root: bytes
    path: tuple[bytes, ...]


@dataclass
class Tree:
    """A tree that only grows; it begins with leaves of others, so that every proof has siblings."""

    _leaves: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number in range(5):
            self.append(b"somebody else's entry %d" % number)

    def append(self, entry: bytes) -> Inclusion:
        """Add an entry and prove that it is there."""
        self._leaves.append(hashlib.sha256(b"\x00" + entry).digest())
        index = len(self._leaves) - 1
        return Inclusion(index, len(self._leaves), _root(self._leaves), tuple(_path(index, self._leaves)))


def _split(leaves: list[bytes]) -> int:
    """The largest power of two that is smaller than the number of leaves."""
    return 1 << ((len(leaves) - 1).bit_length() - 1)


def _root(leaves: list[bytes]) -> bytes:
    if len(leaves) == 1:
        return leaves[0]
    at = _split(leaves)
    return hashlib.sha256(b"\x01" + _root(leaves[:at]) + _root(leaves[at:])).digest()


def _path(index: int, leaves: list[bytes]) -> list[bytes]:
    """The siblings from a leaf up to the root."""
    if len(leaves) == 1:
        return []
    at = _split(leaves)
    if index < at:
        return [*_path(index, leaves[:at]), _root(leaves[at:])]
    return [*_path(index - at, leaves[at:]), _root(leaves[:at])]
