"""What every command shares: options, the person's yes, the result on stdout, errors and exit codes."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TextIO

import typer

from reproducer.errors import NotCheckedError, Outcome, PennyError, UsageError

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import RenderableType

    from reproducer.build.runtime import Runtime
    from reproducer.cli.terminal import Terminal
    from reproducer.documents.opened import OpenedLock
    from reproducer.identity.policy import Policy
    from reproducer.ledger import Ledger
    from reproducer.store import Store

LockOption = Annotated[Path, typer.Option("--lock", help="The lock.", show_default=True)]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", help="Folder of the store; default: the user's cache folder.", envvar="PENNY_STORE"),
]
KvOption = Annotated[
    Path | None, typer.Option("--kv", help="Folder in which namespaces lie; default: in the store.", envvar="PENNY_KV")
]
KeyFolderOption = Annotated[
    Path | None,
    typer.Option("--keys", help="Folder of the signing key; default: the user's config folder.", envvar="PENNY_KEYS"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Errors only on stderr.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="More on stderr.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Accept that other people's code is run.")]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Touch no network.")]
PortOption = Annotated[
    int | None, typer.Option("--port", min=1, max=65535, help="Port of the server; default: a free one.")
]
PythonOption = Annotated[
    Path | None,
    typer.Option(
        "--python",
        help="The interpreter of a frozen lock's runtime; default: where it was frozen, else the one penny runs in.",
        envvar="PENNY_PYTHON",
        show_default=False,
    ),
]
AdoptedFoldersOption = Annotated[
    list[str] | None,
    typer.Option("--checkpoint", metavar="ROLE=DIR", help="Where a checkpoint of a frozen lock lies."),
]
PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="What identifies source code: `commit`, all of it; `abi=REVISION`, a revision that you vouch for.",
    ),
]

DEFAULT_LOCK = Path("penny.lock.toml")
INTERRUPTED = 130
_NARROW = 80
_STANDARD = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
RUNS_CODE = (
    "This builds and runs other people's code: the engine, its packages, its patches and the checkpoint "
    "that the lock names. They run as you, with your files in reach."
)


@dataclass
class _Process:
    """What the error path needs to know about the command that runs."""

    as_json: bool = False
    verbose: bool = False


_process = _Process()


class Front:
    """One run of one command."""

    def __init__(self, *, as_json: bool, quiet: bool, verbose: bool) -> None:
        from reproducer.cli import terminal

        _process.as_json = as_json
        _process.verbose = verbose
        self.as_json = as_json
        self.reporter: Terminal = terminal.Terminal(quiet=quiet, verbose=verbose)

    def emit(self, result: dict[str, Any], shown: "RenderableType") -> None:
        """The result on stdout: JSON with stable keys, or what a person reads."""
        with _result_written():
            if self.as_json:
                sys.stdout.write(json.dumps(result, sort_keys=True) + "\n")
            elif isinstance(shown, str) and shown.isprintable() and (len(shown) < _NARROW or not sys.stdout.isatty()):
                sys.stdout.write(shown + "\n")  # one plain line needs no console, and it starts at once
            else:
                from reproducer.cli.console import PlainConsole

                PlainConsole(endless=not sys.stdout.isatty()).print(shown)

    def tell(self, line: dict[str, Any]) -> None:
        """A line of JSON on stdout before the result, where JSON was asked for."""
        if self.as_json:
            with _result_written():
                sys.stdout.write(json.dumps(line, sort_keys=True) + "\n")

    def write(self, text: str) -> None:
        """Text on stdout as it is: whoever made it has escaped it."""
        with _result_written():
            sys.stdout.write(text)

    def write_as_read(self, text: str) -> None:
        """Text of a file on stdout, bytes that are not UTF-8 included."""
        with _result_written():
            sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))

    def accepted(self, store: "Store", opened: "OpenedLock", *, yes: bool) -> Literal["asked", "--yes"]:
        """The person's yes to running other people's code, asked once a lock.

        Raises:
            UsageError: nobody to ask and no --yes, or the answer was no.
        """
        if yes:
            return "--yes"
        from reproducer.store.faults import writing

        record = store.root / "accepted" / opened.digest
        if record.exists():
            return "asked"
        if not sys.stdin.isatty():
            raise UsageError("building and launching run other people's code", todo="pass --yes to accept it")
        typer.echo(RUNS_CODE, err=True)
        if not typer.confirm(f"Build and run {opened.lock.name} (lock {opened.digest[:12]})?", err=True):
            raise UsageError("not accepted, nothing was run")
        with writing(record.parent, what="the answer"):
            record.parent.mkdir(parents=True, exist_ok=True)
            record.touch()
        return "asked"


def open_store(folder: Path | None) -> "Store":
    """The store at the option's folder or at the default one."""
    from reproducer.store import Store, default_root

    return Store(folder if folder is not None else default_root())


def ledger_of(store: "Store", opened: "OpenedLock", *, policy: "Policy | None" = None) -> "Ledger":
    """The receipts of this lock, or of its launches under another policy than `commit`."""
    from reproducer.ledger import Ledger

    return Ledger.of(store.root, opened.digest, policy="" if policy is None or policy.abi is None else str(policy))


def runtime_of(
    front: Front,
    opened: "OpenedLock",
    place: "Store",
    accepted: Literal["asked", "--yes"],
    *,
    offline: bool,
    again: bool = False,
    python: Path | None = None,
    folders: list[str] | None = None,
) -> "Runtime":
    """The runtime of a lock, fetched and built where it is not there yet; a frozen lock's is held against the lock.

    Raises:
        UsageError: a frozen lock is to be built again.
    """
    if opened.lock.adopted is not None:
        if again:
            raise UsageError(
                "a frozen lock is adopted and cannot be rebuilt",
                where=str(opened.path),
                todo="write a manifest with the sources that `penny freeze --json` lists under `rebuild`",
            )
        return adopted_runtime(front, opened, place, accepted, offline=offline, python=python, folders=folders)
    from reproducer.build.runtime import build
    from reproducer.fetch import fetch
    from reproducer.fetch.indexes import Indexes

    fetched = fetch(opened, place, indexes=Indexes.from_user(), reporter=front.reporter, offline=offline)
    return build(opened, place, fetched, reporter=front.reporter, accepted=accepted, again=again, offline=offline)


def adopted_runtime(
    front: Front,
    opened: "OpenedLock",
    place: "Store",
    accepted: Literal["asked", "--yes"],
    *,
    offline: bool,
    python: Path | None = None,
    folders: list[str] | None = None,
) -> "Runtime":
    """The runtime of a frozen lock, every file of it hashed just now; nothing is built."""
    from reproducer.cli.checkpoints import named_folders
    from reproducer.freeze.adopting import adopt

    place.prepare()
    return adopt(
        opened,
        place,
        reporter=front.reporter,
        accepted=accepted,
        python=python,
        folders=named_folders(folders),
        offline=offline,
    )


def finish(outcome: Outcome) -> None:
    """Leave with the outcome's exit code; return where everything holds."""
    if outcome:
        raise typer.Exit(outcome.exit_code)


def discard(stream: TextIO) -> None:
    """Let a standard stream end in the null device, what it still buffers included: it could not be written."""
    handle = os.open(os.devnull, os.O_WRONLY)
    os.dup2(handle, stream.fileno())
    os.close(handle)


class _Terminated(BaseException):
    """SIGTERM or SIGHUP arrived: unwind, so that every context manager stops what it started."""


def _on_signal(number: int, _frame: "FrameType | None") -> NoReturn:
    raise _Terminated(number)


def _open_standard_files() -> None:
    """Give the null device to each of stdin, stdout and stderr that the caller closed.

    Otherwise the next file that is opened would get its number, and what is meant for a person would be written there.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) < len(_STANDARD):
        os.set_inheritable(handle, True)  # noqa: FBT003  positional in the standard library
    os.close(handle)
    for number, (name, mode) in enumerate(_STANDARD):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  a descriptor


@contextmanager
def _result_written() -> Iterator[None]:
    """Whatever is printed inside reaches stdout whole.

    Raises:
        BrokenPipeError: nobody reads it.
        NotCheckedError: the disk is full, or the file took an error.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard(sys.stdout)
        raise NotCheckedError("the result cannot be written to stdout", why=error.strerror or str(error)) from error


def _have_home() -> None:
    """Where nothing says where home is (a user id without a name, as in a container), it is the root folder."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"


def run(app: typer.Typer) -> None:
    """Run the command line; map every error to one clear line and the right exit code."""
    _open_standard_files()
    _have_home()
    signal.signal(signal.SIGTERM, _on_signal)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup a closed terminal ends nothing
        signal.signal(signal.SIGHUP, _on_signal)
    try:
        app()
    except PennyError as error:
        _fail(error, error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _say("penny: interrupted")
        sys.exit(INTERRUPTED)
    except _Terminated as ended:
        _say("penny: terminated")
        sys.exit(128 + int(ended.args[0]))
    except BrokenPipeError:
        discard(sys.stdout)
        sys.exit(1)
    except Exception as error:  # the last line of defence: one line, and the traceback on request
        if _process.verbose:
            raise
        _fail(PennyError(f"unexpected fault: {type(error).__name__}: {error}", todo="run again with --verbose"), 1)


def _fail(error: PennyError, code: int) -> NoReturn:
    line = " ".join(str(error).split())
    _say(f"penny: error: {_printable(line)}")
    if _process.as_json:
        fault = {"what": error.what, "where": error.where, "why": error.why, "todo": error.todo}
        try:
            with _result_written():
                sys.stdout.write(json.dumps({"error": fault, "exit_code": code}, sort_keys=True) + "\n")
        except (BrokenPipeError, PennyError):  # the exit code still says it
            discard(sys.stdout)
    sys.exit(code)


def _say(line: str) -> None:
    """A last line on stderr; the exit code must come through where nobody can read it."""
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


def _printable(text: str) -> str:
    """Text from outside must not steer the terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
