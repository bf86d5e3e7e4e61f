"""`penny freeze`."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from reproducer.cli.front import (
    Front,
    JsonOption,
    QuietOption,
    StoreOption,
    VerboseOption,
    finish,
    open_store,
)
from reproducer.errors import NotCheckedError, Outcome, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from reproducer.documents.lock import EngineKind
    from reproducer.freeze.freezing import Frozen
    from reproducer.freeze.notes import Asked

FROZEN_LOCK = Path("frozen.lock.toml")
_ENGINES = ("sglang", "vllm", "openai")
_SHOWN = 20


def freeze(
    *,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="The running server.")] = None,
    pid: Annotated[int | None, typer.Option("--pid", min=1, help="Its process.")] = None,
    lock_path: Annotated[Path, typer.Option("--lock", help="The lock to write.")] = FROZEN_LOCK,
    name: Annotated[str | None, typer.Option("--name", help="Name of the lock.", show_default=False)] = None,
    python: Annotated[
        Path | None, typer.Option("--python", help="The server's interpreter, where its process does not tell it.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option("--log", help="Its start-up log, where it is no file that the process writes to.")
    ] = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option("--checkpoint", metavar="ROLE=DIR", help="A checkpoint's folder; may be given again."),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="The engine of a server on another machine: sglang, vllm or openai.")
    ] = "sglang",
    replace: Annotated[bool, typer.Option("--replace", help="Write over another lock.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write a lock of what is installed and running now."""
    from reproducer.cli.checkpoints import named_folders
    from reproducer.documents.base import SLUG, shown
    from reproducer.freeze.found import address_of, find, is_here
    from reproducer.freeze.freezing import freeze as take
    from reproducer.freeze.notes import Asked

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    if engine not in _ENGINES:
        raise UsageError(
            f"there is no engine {shown(engine)}", where="--engine", todo=f"name one of {', '.join(_ENGINES)}"
        )
    if name is not None and re.fullmatch(SLUG, name) is None:
        raise UsageError(
            f"{shown(name)} is no name of a lock",
            where="--name",
            todo="write lower-case letters, digits, '.', '_' and '-', at most 64 of them",
        )
    if url is None and pid is None:
        raise UsageError("nothing names a server", todo="pass --url http://127.0.0.1:PORT or --pid PID")
    host, port = address_of(url) if url is not None else ("127.0.0.1", None)
    asked = Asked(
        host=host,
        port=port,
        secure=url is not None and url.startswith("https:"),
        python=python,
        log=log,
        folders=named_folders(checkpoint),
        name=name,
    )
    if pid is None and not is_here(host):
        _elsewhere(front, asked, engine)
        return
    place = open_store(store)
    place.prepare()
    found = find(pid=pid, port=port)
    front.reporter.note(f"freezing pid {found.process.pid}: its packages and checkpoints are read, nothing is changed")
    frozen = take(found, asked, place, reporter=front.reporter)
    changed = _write(frozen, lock_path, replace=replace)
    from reproducer.freeze.places import note

    note(place, frozen.document, frozen.python, frozen.folders)
    front.emit(_content(frozen, lock_path, changed=changed), _told(frozen, lock_path))
    finish(Outcome.HOLDS if frozen.document.launch.effective else Outcome.NOT_CHECKED)


def _write(frozen: "Frozen", lock_path: Path, *, replace: bool) -> bool:
    """Write the lock and the files beside it; whether anything changed.

    Raises:
        UsageError: another lock is there.
    """
    from reproducer.documents.opened import open_lock
    from reproducer.documents.toml import write_atomically
    from reproducer.errors import PennyError
    from reproducer.locking.render import FROZEN_HEADER, render_lock

    same = False
    if lock_path.exists() or lock_path.is_symlink():
        try:
            same = open_lock(lock_path).digest == frozen.document.digest
        except PennyError:
            same = False
        if not same and not replace:
            raise UsageError(
                "another file is here already", where=str(lock_path), todo="name another with --lock, or pass --replace"
            )
    for path, data in sorted(frozen.files.items()):
        write_atomically(lock_path.parent / path, data)
    write_atomically(lock_path, render_lock(frozen.document, header=FROZEN_HEADER))
    return not same


def _content(frozen: "Frozen", lock_path: Path, *, changed: bool) -> dict[str, Any]:
    lock = frozen.document
    return {
        "lock": str(lock_path),
        "digest": lock.digest,
        "changed": changed,
        "unknown": [each.model_dump() for each in frozen.unknown],
        "left_out": [each.model_dump() for each in frozen.left_out],
        "rebuild": list(frozen.rebuild),
        "process": frozen.process,
        "distributions": lock.adopted.distributions if lock.adopted is not None else 0,
        "effective": dict(lock.launch.effective),
    }


def _told(frozen: "Frozen", lock_path: Path) -> "RenderableType":
    """What a person reads: what was written, what is unknown, what was left out."""
    from rich.console import Group
    from rich.text import Text

    lock = frozen.document
    count = lock.adopted.distributions if lock.adopted is not None else 0
    lines = [
        Text(f"Wrote {lock_path}: {lock.name}, lock {lock.digest[:12]}"),
        Text(
            f"{count} distributions adopted as they lie there, {len(lock.checkpoints)} checkpoints, "
            f"{len(lock.launch.effective)} effective values"
        ),
    ]
    if frozen.unknown:
        lines.append(Text(f"Unknown ({len(frozen.unknown)}):"))
        lines += [Text(_line(f"  {each.key}: {each.why}")) for each in frozen.unknown[:_SHOWN]]
        if len(frozen.unknown) > _SHOWN:
            lines.append(Text(f"  and {len(frozen.unknown) - _SHOWN} more, see --json"))
    secrets = [each.key for each in frozen.left_out if "secret" in each.why]
    if secrets:
        lines.append(Text(_line(f"Secrets that were left out, by name: {', '.join(secrets)}")))
    others = len(frozen.left_out) - len(secrets)
    if others:
        lines.append(Text(f"{others} more variables and arguments have no place in a lock, see --json"))
    lines.append(Text(f"Launch it again with `penny launch --lock {lock_path}`."))
    return Group(*lines)


def _line(text: str) -> str:
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _elsewhere(front: Front, asked: "Asked", engine: str) -> None:
    """A server on another machine: what it tells, and that nothing else can be known.

    Raises:
        NotCheckedError: it cannot be reached, or tells nothing.
    """
    from reproducer.freeze.serving import remote

    values = remote(asked, cast("EngineKind", engine))
    if not values:
        raise NotCheckedError("the server tells nothing about itself", todo="run penny freeze on its machine")
    why = "the server runs on another machine, and nothing but its own answers can be seen from here"
    unknown = [
        {"key": key, "why": why}
        for key in (
            "adopted",
            "checkpoints",
            "engine",
            "hardware",
            "launch.arguments",
            "launch.environment",
            "toolchain",
        )
    ]
    front.emit(
        {"lock": None, "digest": None, "changed": False, "unknown": unknown, "effective": values},
        f"No lock: {why}. It shows {len(values)} values, see --json; run penny freeze on its machine.",
    )
    finish(Outcome.NOT_CHECKED)
