"""What has arrived of the requests that are on their way, for whoever watches: the client tells nobody."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reproducer.qualify.pieces import Pieces

_COUNTED = re.compile(rb'"completion_tokens": ?(\d{1,9})')
_LOOKED_AT = 2048


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
        counts = [_COUNTED.findall(each.newest(_LOOKED_AT)) for each in self.answers]
        return sum(int(found[-1]) for found in counts if found) if any(counts) else None
