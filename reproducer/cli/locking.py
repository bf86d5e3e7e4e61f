"""`penny init`, `penny lock`, `penny diff`."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from reproducer.cli.checkpoints import EndpointOption, use_endpoint
from reproducer.cli.front import (
    DEFAULT_LOCK,
    Front,
    JsonOption,
    LockOption,
    OfflineOption,
    QuietOption,
    StoreOption,
    VerboseOption,
    YesOption,
    finish,
    open_store,
)
from reproducer.errors import Outcome, UsageError


def init(
    path: Annotated[Path, typer.Argument(help="The manifest to write.")] = Path("manifests/runtime.toml"),
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write a commented manifest to start from."""
    from reproducer.documents.starter import STARTER
    from reproducer.documents.toml import write_atomically

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    if path.exists() or path.is_symlink():
        raise UsageError("there is a file here already", where=str(path), todo="name another path")
    write_atomically(path, STARTER.encode())
    front.emit({"path": str(path)}, f"Wrote {path}. Edit it, then run `{next_step(path)}`.")


def next_step(manifest: Path) -> str:
    """The command that locks a manifest: a lock lies in the manifest's folder or in one above it."""
    from shlex import quote

    command = f"penny lock {quote(str(manifest))}"
    if manifest.resolve().is_relative_to(Path.cwd().resolve()):
        return command
    return f"{command} --lock {quote(str(manifest.parent / DEFAULT_LOCK))}"


def lock(
    manifest: Annotated[
        Path | None, typer.Argument(help="The manifest; default: the one the lock was made from.", show_default=False)
    ] = None,
    *,
    lock_path: LockOption = DEFAULT_LOCK,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; say every reason why it would.")] = False,
    upgrade: Annotated[
        list[str] | None,
        typer.Option(
            "--upgrade", metavar="NAME", help="Take the newest allowed version of NAME; `ALL` makes everything anew."
        ),
    ] = None,
    endpoint: EndpointOption = None,
    store: StoreOption = None,
    offline: OfflineOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Resolve a manifest to an exact lock."""
    from reproducer.fetch.indexes import Indexes
    from reproducer.locking import lock as resolve
    from reproducer.locking import manifest_of, write
    from reproducer.locking.facts import FactsError

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    use_endpoint(endpoint)
    if lock_path.exists() and not lock_path.is_file():
        raise UsageError("the lock must be a regular file", where=str(lock_path), todo="name another path with --lock")
    source = manifest if manifest is not None else manifest_of(lock_path)
    try:
        locked = resolve(
            source,
            lock_path,
            open_store(store),
            indexes=Indexes.from_user(),
            reporter=front.reporter,
            upgrade=frozenset(upgrade or ()),
            accepted=yes,
            offline=offline,
            check=check,
        )
    except FactsError as error:
        from reproducer.cli.show_missing import missing_list

        front.emit(
            {
                "lock": str(lock_path),
                "digest": None,
                "changed": False,
                "reasons": list(error.reasons),
                "missing": [asdict(each) for each in error.missing],
                "exit_code": error.exit_code,
            },
            missing_list(error),
        )
        raise typer.Exit(error.exit_code) from error
    changed = bool(locked.reasons)
    result = {
        "lock": str(lock_path),
        "digest": locked.document.digest,
        "changed": changed,
        "reasons": list(locked.reasons),
        "unknown": [asdict(each) for each in locked.unknown],
    }
    reasons = "".join(f"\n  {reason}" for reason in locked.reasons)
    if check:
        word = "would change" if changed else "is current"
        front.emit(result, f"{lock_path} {word}, digest {locked.document.digest}{reasons}")
        finish(Outcome.INPUTS_DRIFTED if changed else Outcome.HOLDS)
        return
    if changed:
        write(locked, lock_path)
    word = "written" if changed else "unchanged"
    front.emit(result, f"{lock_path} {word}, digest {locked.document.digest}{reasons}")


class DiffFormat(StrEnum):
    """For whom a difference is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="The lock before, or one build of an artefact.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The lock after, or another build of it.")],
    *,
    build_path: Annotated[
        list[Path] | None,
        typer.Option("--build-path", metavar="DIR", help="A folder that an artefact was built in; may be repeated."),
    ] = None,
    details: Annotated[
        Path | None, typer.Option("--details", metavar="FILE", help="Write diffoscope's report of two artefacts here.")
    ] = None,
    form: Annotated[
        DiffFormat, typer.Option("--format", help="For a person, for a pull request, or for a script.")
    ] = DiffFormat.TEXT,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Show every change between two locks, grouped by what it costs; or the level between two builds."""
    from reproducer.difference.diff import diff as compare
    from reproducer.documents.opened import open_lock
    from reproducer.rebuild.artefacts import is_artefact

    front = Front(as_json=as_json or form is DiffFormat.JSON, quiet=quiet, verbose=verbose)
    if is_artefact(a) or is_artefact(b):
        if form is DiffFormat.MARKDOWN:
            raise UsageError("two builds are not shown as Markdown", todo="leave out --format, or use --format json")
        _diff_artefacts(front, a, b, build_path or [], details)
        return
    if build_path or details:
        raise UsageError("--build-path and --details are for two builds of an artefact", where=f"{a} and {b}")
    result = compare(open_lock(a), open_lock(b))
    if front.as_json:
        front.emit(result.content(), "")
    elif form is DiffFormat.MARKDOWN:
        from reproducer.cli.markdown_diff import markdown

        front.write(markdown(result))
    else:
        from reproducer.cli.show_diff import shown

        front.emit(result.content(), shown(result))
    finish(Outcome.INPUTS_DRIFTED if result.changes else Outcome.HOLDS)


def _diff_artefacts(front: Front, a: Path, b: Path, build_paths: list[Path], details: Path | None) -> None:
    """Two builds of a wheel, archive, folder or binary."""
    from reproducer.cli.show_rebuild import comparison_text
    from reproducer.documents.built import is_enough
    from reproducer.rebuild.compare import compare_artefacts
    from reproducer.rebuild.diffoscope import write_details

    comparison = compare_artefacts(a, b, build_paths=[each.absolute() for each in build_paths])
    if details is not None:
        write_details(a, b, details)
    front.emit(
        {
            "level": comparison.level,
            "differences": [each.model_dump() for each in comparison.differences],
            "details": None if details is None else str(details),
        },
        comparison_text(comparison),
    )
    finish(Outcome.HOLDS if is_enough(comparison.level) else Outcome.REBUILD_DIFFERS)
