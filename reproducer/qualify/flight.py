"""What has arrived of the requests that are on their way, for whoever watches: the client tells nobody."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reproducer.qualify.pieces import Pieces

_COUNTED = b'"completion_tokens":'
_LOOKED_AT = 1024
_DIGITS = 10


class Flight:
    """The answers of one release, while they come; reading them costs the client nothing.

    A watcher in another thread sees them a moment too early or too late, never wrong by more than that.
    """

    def __init__(self) -> None:
        self.answers: Sequence[Pieces] = ()

    @property
    def pieces(self) -> int:
        """How many pieces have come."""
        return sum(len(each) for each in self.answers)

    @property
    def tokens(self) -> int | None:
        """Output tokens so far by the server's own counts; None where its newest pieces bring no count."""
        counts = [count for each in self.answers if (count := _counted(each.newest(_LOOKED_AT))) is not None]
        return sum(counts) if counts else None


def _counted(newest: bytes) -> int | None:
    """The last count in the newest bytes of a stream."""
    at = newest.rfind(_COUNTED)
    digits = newest[at + len(_COUNTED) :][:_DIGITS].lstrip().partition(b",")[0].rstrip(b"} ")
    return int(digits) if at >= 0 and digits.isdigit() else None
