"""`penny trace`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reproducer.cli.front import Front, JsonOption, QuietOption, VerboseOption, finish
from reproducer.errors import Outcome, UsageError

if TYPE_CHECKING:
    from reproducer.documents.traces import Trace


def trace(
    logs: Annotated[
        list[Path],
        typer.Argument(metavar="LOG...", help="Logs of one server, oldest first, packed or not; metrics; a CSV."),
    ],
    *,
    bands: Annotated[
        str | None,
        typer.Option(
            "--bands", metavar="BANDS", help="Bands of context, as in 0-2K,64-100K; default: those of docs/trace.md."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the trace.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Read what a server's own logs say of ordinary use: completed requests, overlap, bands, telemetry windows."""
    from reproducer.cli.show_trace import shown
    from reproducer.trace.bands import PUBLISHED, parse_bands
    from reproducer.trace.tracing import MOST_SOURCES
    from reproducer.trace.tracing import trace as read_trace

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    if len(logs) > MOST_SOURCES:
        raise UsageError(f"there are more than {MOST_SOURCES} files")
    traced = read_trace(logs, bands=parse_bands(PUBLISHED if bands is None else bands), reporter=front.reporter)
    found = traced.trace
    if output is not None:
        from reproducer.documents.toml import write_atomically

        write_atomically(output, found.canonical() + b"\n")
        front.reporter.note(f"{output} written, digest {found.digest[:12]}")
    told = {"trace": None if output is None else str(output), "digest": found.digest}
    front.emit(found.content() | told if as_json else told, "" if as_json else shown(traced))
    finish(Outcome.HOLDS if _says_something(found) else Outcome.NOT_CHECKED)


def _says_something(found: "Trace") -> bool:
    """Whether every file was read to its end and gave a number: what was asked for is there."""
    return all(each.whole and each.kind != "nothing known" for each in found.sources)
