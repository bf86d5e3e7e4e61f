"""What says when or where a thing was built and not what it is: folders, and nvcc's temporary and internal names.

Names by experiment with nvcc 13.0.88, the same source compiled twice in two folders:
`tmpxft_00001cd3_00000000-6_k.cudafe1.cpp` holds nvcc's process id and a counter;
`_GLOBAL__N__6443d1c1_4_k_cu_a3913406` (an anonymous namespace), `_INTERNAL_6443d1c1_4_k_cu_a3913406` and
`__nv_static_36__6443d1c1_4_k_cu_a3913406` hold a digest of the path, the file's name with its length, and the name of
a symbol that it defines or a digest in its place. Only hex digits vary, so a name keeps its length when they become
zeros, and so do offsets behind it.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

BUILD_PATH = b"/penny-build"
_LONGEST = 8192
_NAMES = re.compile(
    rb"(?P<temporary>tmpxft_)[0-9a-f]{8}_[0-9a-f]{8}(?P<step>-[0-9]{1,4}_)?"
    rb"|(?P<start>_GLOBAL__N__|_INTERNAL_|__nv_static_[0-9]{1,4}__)[0-9a-f]{8}(?=_[0-9]{1,4}_)"
    rb"(?:(?P<file>_[0-9]{1,4}_[A-Za-z0-9_$]{1,1000}?_cu_)[0-9a-f]{8})?"
)


@dataclass(frozen=True)
class Volatile:
    """What is replaced before bytes are compared.

    Attributes:
        folders: folders that were built in; each becomes the same text.
        names: replace nvcc's names too.
    """

    folders: tuple[bytes, ...] = ()
    names: bool = True

    @classmethod
    def of(cls, folders: Sequence[Path], *, names: bool = True) -> "Volatile":
        """For these folders; the longest is looked for first. The root alone is no folder to look for."""
        texts = {os.fsencode(each) for each in folders} - {b"/", b"."}
        return cls(tuple(sorted(texts, key=lambda text: (-len(text), text))), names)

    @staticmethod
    def found(data: bytes) -> set[bytes]:
        """Names by nvcc in bytes, up to their last random digit."""
        return {match[0] for match in _NAMES.finditer(data)}

    def normal(self, data: bytes) -> bytes:
        """The bytes with everything volatile replaced."""
        return b"".join(self.stream([data]))

    def stream(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The same for pieces of one long text; how it is cut makes no difference."""
        for pattern, replacement in self._steps():
            pieces = _replaced(pieces, pattern, replacement)
        yield from pieces

    def _steps(self) -> Iterator[tuple[re.Pattern[bytes], bytes | None]]:
        if self.folders:
            yield re.compile(b"|".join(re.escape(each) for each in self.folders)), BUILD_PATH
        if self.names:
            yield _NAMES, None


def _replaced(pieces: Iterable[bytes], pattern: re.Pattern[bytes], replacement: bytes | None) -> Iterator[bytes]:
    """Pieces with every match replaced; the end of a piece is held back, for a match may reach into the next."""
    kept = b""
    for piece in pieces:
        kept += piece
        safe = len(kept) - _LONGEST
        if safe <= 0:
            continue
        done, found = 0, []
        for match in pattern.finditer(kept):
            if match.start() >= safe:
                break
            found += [kept[done : match.start()], replacement or _zeroed(match)]
            done = match.end()
        cut = max(done, safe)
        yield b"".join([*found, kept[done:cut]])
        kept = kept[cut:]
    yield pattern.sub(lambda match: replacement or _zeroed(match), kept)


def _zeroed(match: re.Match[bytes]) -> bytes:
    if match["temporary"]:
        step = match["step"] or b""
        return match["temporary"] + b"0" * 8 + b"_" + b"0" * 8 + re.sub(rb"[0-9]", b"0", step)
    return match["start"] + b"0" * 8 + (match["file"] + b"0" * 8 if match["file"] else b"")
