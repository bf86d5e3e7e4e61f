"""Whether a hub still has what a lock names, without transferring any of it."""

from dataclasses import dataclass
from typing import Literal

from reproducer.documents.sources import HubSource
from reproducer.errors import DriftError, NotCheckedError, PennyError
from reproducer.hub.asking import Hub
from reproducer.hub.faults import Subject
from reproducer.hub.place import HubPlace
from reproducer.progress import Reporter, Silent

State = Literal["there", "gated", "gone", "unknown"]


@dataclass(frozen=True)
class Finding:
    """What a hub says of a revision.

    Attributes:
        state: `there` also means that this user may read it; `gone` is a repository or a revision that has vanished, or
            is private; `unknown` is a hub that cannot be asked.
        said: one sentence.
        todo: what to do about it; empty where nothing is to be done.
    """

    state: State
    said: str
    todo: str = ""


def probe(source: HubSource, *, place: HubPlace | None = None, reporter: Reporter | None = None) -> Finding:
    """Ask the hub for the revision and for the right to read a file of it.

    Args:
        source: the revision.
        place: the hub; None for the user's own.
        reporter: is told of waiting.
    """
    hub = Hub(place or HubPlace(), reporter or Silent())
    name = f"{source.repository} at {source.revision[:12]}"
    try:
        hub.commit(source.repository, source.revision)
        path = _first_file(hub, source)
        if path is not None:
            hub.asked(Subject(source.repository, source.revision, path), lambda: _readable(hub, source, path))
    except DriftError as error:
        return Finding("gone", error.what, error.todo)
    except NotCheckedError as error:
        return Finding("gated" if error.what.endswith("is gated") else "unknown", _told(error), error.todo)
    except PennyError as error:
        return Finding("unknown", _told(error), error.todo)
    return Finding("there", f"{name} is on {hub.place.shown}")


def _first_file(hub: Hub, source: HubSource) -> str | None:
    """The smallest file: a gated repository lists its files and gives none of them."""
    entries = [each for each in hub.tree(source.repository, source.revision) if isinstance(each, dict)]
    files = [each for each in entries if each.get("type") == "file" and isinstance(each.get("path"), str)]
    return min((str(each["path"]) for each in files if isinstance(each.get("size"), int)), default=None)


def _readable(hub: Hub, source: HubSource, path: str) -> None:
    with hub.opened(source.repository, source.revision, path, offset=0):
        return


def _told(error: PennyError) -> str:
    return f"{error.what} ({error.why})" if error.why else error.what
