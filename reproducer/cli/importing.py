"""`penny import`: of a launch; of a result in `importing_results`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reproducer.cli.front import Front, JsonOption, QuietOption, VerboseOption, YesOption
from reproducer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reproducer.documents.arguments import ArgumentSchema
    from reproducer.importing.command import Command
    from reproducer.importing.launch import Asked
    from reproducer.importing.placing import Placed

RUNS_SCRIPT = (
    "This runs the script, with every command in it but the server and programs that change the machine. It runs "
    "without a network, with a home folder of its own, for a minute at most, and can write only to a private copy of "
    "its folder; it can read what you can read."
)
_MOST_REQUIREMENTS = 1 << 20
_ROLES = ("target", "draft", "tokenizer")


def import_(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT | RESULT | -- COMMAND...",
            help="A shell script, a compose file or a systemd unit; a result of another harness; or, behind `--`, a "
            "command line.",
            show_default=False,
        ),
    ] = None,
    *,
    command: Annotated[
        str | None, typer.Option("--command", metavar="TEXT", help="A command line as one text; no shell reads it.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The manifest to write; default: manifests/NAME.toml. Of a result, the folder; default: "
            "evidence/imported.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the manifest.")] = None,
    service: Annotated[str | None, typer.Option("--service", help="The service of a compose file.")] = None,
    pick: Annotated[int | None, typer.Option("--pick", min=1, help="Which of several launches, from 1.")] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", metavar="NAME=VALUE", help="A variable that the launch finds; may be given again."),
    ] = None,
    engine_version: Annotated[
        str | None, typer.Option("--engine-version", metavar="VERSION", help="Exact version of the engine.")
    ] = None,
    requirements: Annotated[
        Path | None, typer.Option("--requirements", metavar="FILE", help="What was installed, from `pip freeze`.")
    ] = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            "--checkpoint",
            metavar="ROLE=OWNER/NAME@REVISION",
            help="What a folder of the launch holds; may be given again.",
        ),
    ] = None,
    python: Annotated[str | None, typer.Option("--python", metavar="3.N", help="Python of the runtime.")] = None,
    arguments: Annotated[
        Path | None, typer.Option("--arguments", metavar="FILE", help="What the engine takes (penny-arguments/1).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a manifest and files that are there.")] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="Which harness wrote the result (sglang, vllm, guidellm, aiperf, lm-eval, inspect); default: known by "
            "its content.",
        ),
    ] = None,
    lock: Annotated[
        Path | None,
        typer.Option("--lock", help="The lock that you say the server of the result ran.", show_default=False),
    ] = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write a manifest from a launch that exists, or keep a result of another harness beside its original."""
    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    of_launch = (command, name, service, pick, env, engine_version, requirements, checkpoint, python, arguments)
    if (result := _result(words or [], form, lock, command)) is not None:
        from reproducer.cli.importing_results import import_file

        if force or any(each is not None for each in of_launch):
            raise UsageError("a result takes --format, --lock and --output alone", where=str(result))
        return import_file(front, result, form, output, lock)
    from reproducer.importing.launch import Asked

    variables = _variables(env)
    launch = _launch(front, words or [], command, lambda accept: Asked(accept, variables, service, pick), yes=yes)
    from reproducer.importing.placing import Choices, place
    from reproducer.importing.render import render

    choices = Choices(
        name, engine_version, _installed(requirements), _checkpoints(checkpoint), python, _schema(arguments)
    )
    placed = place(launch, choices)
    text = render(placed)
    path = output if output is not None else Path("manifests") / f"{placed.data['name']}.toml"
    _write(path, text, placed, force=force)
    _told(front, placed)
    return front.emit(
        {
            "manifest": str(path),
            "unmapped": [vars(each) for each in placed.unmapped],
            "unknown": [vars(each) for each in placed.unknown],
            "files": [each.path for each in placed.copies],
            "ran": placed.ran,
        },
        _ended(path, placed),
    )


def _result(words: list[str], form: str | None, lock: Path | None, command: str | None) -> Path | None:
    """The result that is asked for; None where it is a launch.

    Raises:
        UsageError: an option of results for something else.
    """
    from reproducer.cli.importing_results import is_result

    path = Path(words[0]) if len(words) == 1 and command is None else None
    if path is not None and (form is not None or is_result(path)):
        return path
    if form is not None or lock is not None:
        raise UsageError("--format and --lock are of results", todo="name one file that a harness wrote")
    return None


def _launch(
    front: Front, words: list[str], command: str | None, asked: "Callable[[Callable[[str], None]], Asked]", *, yes: bool
) -> "Command":
    from reproducer.importing.launch import of_file, of_text, of_words

    def accept(why: str) -> None:
        front.reporter.note(f"Reading the script is not enough: {why}.")
        if yes:
            return
        if not sys.stdin.isatty():
            raise UsageError(
                "the script must be run to be understood", why=why, todo="pass --yes to accept it, or use --command"
            )
        typer.echo(RUNS_SCRIPT, err=True)
        if not typer.confirm("Run it?", err=True):
            raise UsageError("not accepted, nothing was run")

    how = asked(accept)
    if command is not None:
        if words:
            raise UsageError("a script and a command line at once", todo="give one of them")
        return of_text(command, how, Path.cwd())
    if not words:
        raise UsageError("nothing to import", todo="name a script, or write the command line behind `--`")
    if len(words) > 1:
        return of_words(tuple(words), how, Path.cwd())
    path = Path(words[0])
    if not path.exists() and " " in words[0].strip():
        return of_text(words[0], how, Path.cwd())
    return of_file(path, how)


def _variables(given: list[str] | None) -> dict[str, str]:
    found = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        if not equals or not name.isidentifier() or not name.isascii():
            raise UsageError("--env takes NAME=VALUE", where=name)
        found[name] = value
    return found


def _checkpoints(given: list[str] | None) -> dict[str, tuple[str, str]]:
    """Repository and revision by role."""
    chosen: dict[str, tuple[str, str]] = {}
    for each in given or ():
        role, equals, rest = each.partition("=")
        repository, _, revision = rest.partition("@")
        if not equals or role not in _ROLES or repository.count("/") != 1:
            raise UsageError(
                "--checkpoint takes ROLE=OWNER/NAME@REVISION", where=each, why=f"roles are {', '.join(_ROLES)}"
            )
        chosen[role] = (repository, revision or "main")
    return chosen


def _schema(path: Path | None) -> "ArgumentSchema | None":
    """What the engine takes."""
    if path is None:
        return None
    from reproducer.documents.arguments import ArgumentSchema
    from reproducer.documents.toml import read_text

    return ArgumentSchema.from_json(read_text(path, what="list of arguments"), where=str(path))


def _installed(path: Path | None) -> tuple[str, str] | None:
    """A list of packages, and the name of its file."""
    if path is None:
        return None
    from reproducer.documents.toml import read_text

    return read_text(path, what="list of packages", limit=_MOST_REQUIREMENTS), path.name


def _write(path: Path, text: str, placed: "Placed", *, force: bool) -> None:
    """The manifest and the files beside it; nothing is written where one of them may not be."""
    from reproducer.documents.toml import write_atomically

    contents = {each.path: each.data for each in placed.copies}
    if path.is_symlink() or (path.exists() and (not force or not path.is_file())):
        raise UsageError("there is a file here already", where=str(path), todo="pass --force, or name another with -o")
    for each, data in contents.items():
        there = Path(each)
        if there.is_symlink() or (
            there.exists() and (not there.is_file() or (there.read_bytes() != data and not force))
        ):
            raise UsageError("there is another file here already", where=each, todo="pass --force, or choose --name")
    for each, data in contents.items():
        write_atomically(Path(each), data)
    write_atomically(path, text.encode())


def _told(front: Front, placed: "Placed") -> None:
    """What has no place and what is open, on stderr."""
    if not front.reporter.quiet:
        from reproducer.cli.show_import import tables

        for each in tables(placed):
            front.reporter.line(each)


def _ended(path: Path, placed: "Placed") -> str:
    from reproducer.cli.locking import next_step

    how = "The script was run, apart from this host." if placed.ran else "Nothing was run."
    parts = [f"Wrote {path}. {how}"]
    if placed.unmapped or placed.unknown:
        parts.append(f"{len(placed.unmapped)} without a place, {len(placed.unknown)} for you to decide.")
    parts.append(f"Edit it, then run `{next_step(path)}`.")
    return " ".join(parts)
