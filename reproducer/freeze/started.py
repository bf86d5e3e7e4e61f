"""How a running server was started: engine, module, words, interpreter, and where it looks for code first."""

import calendar
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from reproducer.documents.base import shown
from reproducer.documents.lock import EngineKind
from reproducer.errors import NotCheckedError, UsageError
from reproducer.freeze.found import Found
from reproducer.importing.command import MODULES, command_of
from reproducer.importing.found import Found as Words
from reproducer.launch.processes import started_utc

_MODULE_OF: Mapping[EngineKind, str] = {engine: module for module, engine in MODULES.items()}
_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def command(found: Found) -> tuple[EngineKind, str, tuple[str, ...]]:
    """Engine, module and the words after it.

    Raises:
        UsageError: the module is a part of Python, and no engine.
        NotCheckedError: nothing says which module serves.
    """
    argv = found.argv
    known = command_of(Words(argv, {}, found.cwd, "the process"))
    if known is not None:
        return known.engine, _MODULE_OF[known.engine], known.arguments
    if "-m" in argv[1:]:
        at = argv.index("-m", 1)
        if at + 1 < len(argv) and _MODULE.fullmatch(argv[at + 1]):
            if argv[at + 1].partition(".")[0] in sys.stdlib_module_names:
                raise UsageError(
                    f"{argv[at + 1]} is a part of Python, and no engine that serves a model",
                    where=f"pid {found.process.pid}",
                    todo="name the URL or the pid of the server of a model",
                )
            return "openai", argv[at + 1], argv[at + 2 :]
    raise NotCheckedError(
        "penny cannot say which module serves",
        where=f"pid {found.process.pid}",
        why=f"it was started as {shown(' '.join(argv[:4]))}",
        todo="freeze a server that was started as `python -m MODULE`, `sglang serve` or `vllm serve`",
    )


def interpreter(found: Found, named: Path | None) -> Path:
    """The interpreter as the server was started: the path decides which environment it is.

    Args:
        found: the process.
        named: the one that the person names; it counts.
    """
    if named is not None:
        return named.absolute()
    words = [found.argv[0]] if PurePosixPath(found.argv[0]).name.startswith(("python", "pypy")) else []
    candidates = [found.cwd / word for word in words if "/" in word]
    paths = found.environ.get("PATH", "").split(":")
    candidates += [Path(each, word) for word in words if "/" not in word for each in paths if each]
    if virtual := found.environ.get("VIRTUAL_ENV"):
        candidates.append(Path(virtual, "bin", "python"))
    for each in candidates:
        try:
            if each.resolve() == found.executable.resolve():
                return each
        except (OSError, RuntimeError):
            continue
    return found.executable


def searched(found: Found) -> list[Path]:
    """Folders that the server looked into for modules before those of packages."""
    argv, environ = found.argv, found.environ
    options = [each for each in argv[1 : argv.index("-m") if "-m" in argv else 1] if re.fullmatch(r"-[A-Za-z]+", each)]
    letters = {letter for option in options for letter in option[1:]}
    folders: list[Path] = []
    if "-m" in argv and not letters & {"P", "I"} and "PYTHONSAFEPATH" not in environ:
        folders.append(found.cwd)
    if not letters & {"E", "I"}:
        folders += [found.cwd / each for each in environ.get("PYTHONPATH", "").split(":") if each]
    return folders


def started(found: Found) -> float:
    """When the server started, in seconds since the epoch."""
    return float(calendar.timegm(time.strptime(started_utc(found.process.start_ticks), "%Y-%m-%dT%H:%M:%SZ")))
