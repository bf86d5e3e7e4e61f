"""All commands of `penny`, in the order in which data flows."""

from typing import Annotated

import typer

from reproducer import __version__
from reproducer.cli import (
    ablating,
    building,
    caching,
    checkpoints,
    comparing,
    diagnosing,
    evidence,
    freezing,
    git,
    importing,
    locking,
    reporting,
    reproducing,
    running,
    sanitizing,
    tracing,
)

app = typer.Typer(
    name="penny",
    help="Lock, rebuild, launch, qualify and attest an LLM serving runtime.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:  # noqa: FBT001  typer's callback shape
    if value:
        typer.echo(f"penny {__version__}")
        raise typer.Exit


@app.callback()
def penny(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Lock, rebuild, launch, qualify and attest an LLM serving runtime."""
    del version


app.command("reproduce")(reproducing.reproduce)
app.command("init")(locking.init)
app.command("import")(importing.import_)
app.command("lock")(locking.lock)
app.command("freeze")(freezing.freeze)
app.command("diff")(locking.diff)
app.command("git-diff", hidden=True)(git.git_diff)
app.command("git-textconv", hidden=True)(git.git_textconv)
app.command("fetch")(building.fetch)
app.add_typer(checkpoints.checkpoint, name="checkpoint")
app.command("build")(building.build)
app.command("namespace")(running.namespace)
app.add_typer(caching.cache, name="cache")
app.command("launch")(running.launch)
app.command("stop")(running.stop)
app.command("qualify")(running.qualify)
app.command("trace")(tracing.trace)
app.command("sanitize")(sanitizing.sanitize)
app.command("compare")(comparing.compare)
app.command("ablate")(ablating.ablate)
app.command("verify")(evidence.verify)
app.command("attest")(evidence.attest)
app.command("report")(reporting.report)
app.command("doctor")(diagnosing.doctor)
