"""Where a server got its model from: everything it opened lies in the lock's checkpoints, or the launch fails.

An engine follows a name that a configuration holds (a draft, a tokenizer, remote code) and fetches whatever is there
today. The home of a launch is its own and empty when it starts, so what a client fetched lies there; and files of
weights stay mapped or open.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from reproducer.documents.base import shown
from reproducer.errors import ConfigurationError
from reproducer.launch.processes import Process

_WEIGHTS = (".safetensors", ".gguf", ".pt", ".pth")
_FETCHED = (
    (".cache/huggingface/hub", re.compile(r"^(?:models|datasets|spaces)--(.+)$")),
    (".cache/modelscope/hub/models", re.compile(r"^([^.].*)$")),
)
_NAMED = 4


def check_sources(home: Path, processes: Iterable[Process], places: Iterable[Path], *, where: str) -> None:
    """Refuse a server that fetched a repository or opened weights that its lock does not have.

    Args:
        home: the private home of the launch.
        processes: every process of the server.
        places: folders whose files were verified: checkpoints, components, the runtime.
        where: the lock, for the error.

    Raises:
        ConfigurationError: names what was fetched and what was opened.
    """
    found = [f"it fetched {shown(name)}" for name in _fetched(home)]
    found += [
        f"it opened {shown(Path(path).name)} in {shown(str(Path(path).parent))}" for path in _opened(processes, places)
    ]
    if found:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise ConfigurationError(
            "the server uses files that are not in the lock",
            where=where,
            why="; ".join(found[:_NAMED]) + more,
            todo="lock every repository that the engine opens as a checkpoint of its own, and name it by its role",
        )


def _fetched(home: Path) -> Iterator[str]:
    """Repositories that a hub's client brought into the launch's home."""
    for folder, name in _FETCHED:
        place = home / folder
        for each in sorted(place.iterdir()) if place.is_dir() else ():
            matched = name.match(each.name)
            if matched is not None and each.is_dir() and any(each.iterdir()):
                yield matched[1].replace("--", "/")


def _opened(processes: Iterable[Process], places: Iterable[Path]) -> list[str]:
    """Files of weights that lie outside of every place, and are not what a link in one leads to."""
    opened = {path for process in processes for path in _files(process.pid) if path.endswith(_WEIGHTS)}
    if not opened:
        return []
    roots, linked = [], set()
    for place in places:
        roots.append(f"{os.path.realpath(place)}/")
        for top, _, names in os.walk(place):
            linked |= {os.path.realpath(f"{top}/{name}") for name in names if name.endswith(_WEIGHTS)}
    return sorted(path for path in opened - linked if not path.startswith(tuple(roots)))


def _files(pid: int) -> Iterator[str]:
    """What a process has mapped and open; nothing of one that is gone."""
    try:
        for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines():
            path = line.partition("/")[2]
            if path:
                yield f"/{path}"
        for each in Path(f"/proc/{pid}/fd").iterdir():
            target = str(each.readlink())
            if target.startswith("/"):
                yield target
    except OSError:
        return
