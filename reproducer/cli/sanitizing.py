"""`penny sanitize`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reproducer.cli.front import Front, JsonOption, QuietOption, VerboseOption, finish
from reproducer.errors import Outcome, UsageError

if TYPE_CHECKING:
    from reproducer.sanitize.sanitizing import Result, Sanitized

_PIECE = 1 << 16


def sanitize(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Logs, tables, documents, folders of them.")],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write: a file for one file, else a folder; default: one file goes to stdout.",
            show_default=False,
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="NAME", help="A host or user name that must stay, beside those of this machine."
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Take out what must not leave the machine, say what it was, and prove that no number changed."""
    import tempfile

    from reproducer.cli.show_sanitized import shown, summary
    from reproducer.sanitize.names import Learned, Machine
    from reproducer.sanitize.sanitizing import sanitize as run_sanitizer
    from reproducer.sanitize.scrubbing import Run

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    run = Run(Machine.here(), Learned(_told(names or [])))
    if output is not None or as_json:
        result = run_sanitizer(files, run, output=output, reporter=front.reporter)
        front.emit(_data(result), shown(result))
    else:
        if len(files) != 1 or files[0].is_dir():
            raise UsageError("several files cannot go to stdout", todo="name a folder with --output")
        with tempfile.TemporaryDirectory(prefix="penny-sanitize-") as folder:
            place = Path(folder) / "sanitized"
            result = run_sanitizer(files, run, output=place, reporter=front.reporter)
            with place.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
                while piece := file.read(_PIECE):
                    front.write_as_read(piece)
        front.reporter.note(summary(result))
    finish(Outcome.NOT_CHECKED if result.left_out else Outcome.HOLDS)


def _told(names: list[str]) -> list[str]:
    """Names that a person gave.

    Raises:
        UsageError: one is empty, or part of what stands in the place of things.
    """
    from reproducer.sanitize.kinds import KINDS

    for name in names:
        if not name.strip() or any(name in f"{{{kind}}}request_" for kind in KINDS):
            raise UsageError("this cannot be taken out as a name", where=f"--name {name!r}", todo="name another")
    return names


def _data(result: "Result") -> dict[str, Any]:
    return {
        "files": [_file(each) for each in result.files],
        "removed": result.removed,
        "left_out": [{"path": each.path, "reason": each.reason} for each in result.left_out],
        "numbers_equal": True,
    }


def _file(each: "Sanitized") -> dict[str, Any]:
    return {
        "path": str(each.path),
        "output": None if each.output is None else str(each.output),
        "form": each.form,
        "removed": each.removed,
        "changed": each.changed,
        "numbers": each.proven.numbers,
        "numbers_digest": each.proven.digest,
        "requests": each.proven.requests,
        "windows": each.proven.windows,
    }
