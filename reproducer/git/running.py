"""git itself, run in surroundings that neither the caller nor a repository decides.

A repository can name programs in many places: hooks, `core.fsmonitor`, filters, diff drivers, credential helpers,
transports. None of them runs: git sees no configuration but what stands here and what the person's own configuration
says about reaching a server (`credential.*` and some of `http.*`), and no variable but those listed here. What stands
here comes with the precedence of a command line, above any file of a repository.
"""

import contextlib
import os
import shutil
import signal
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from reproducer.errors import NotCheckedError, PennyError, UnsafeInputError

if TYPE_CHECKING:
    from git import Git

NETWORK = ("https", "http", "ssh", "git")
LOCAL = ("file",)
LONGEST_S = 3600.0
LONGEST_OUTPUT = 64 << 20
_LONGEST_COMPLAINT = 64 << 10
_TAIL_LINES = 4
_GRACE_S = 5.0
# What a person's surroundings say about reaching a server and about places for files; nothing of it steers git itself.
_KEPT = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
        *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
        *("SSH_AUTH_SOCK", "KRB5CCNAME", "DBUS_SESSION_BUS_ADDRESS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
    }
)
_SET = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
    "GIT_SSH_VARIANT": "ssh",
}
_CONFIGURED = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.attributesFile", os.devnull),
    ("core.protectHFS", "true"),
    ("core.protectNTFS", "true"),
    ("core.askPass", ""),
    ("credential.helper", ""),
    ("fetch.fsckObjects", "true"),
    ("fetch.recurseSubmodules", "false"),
    ("submodule.recurse", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("fetch.unpackLimit", "1"),
    # Old commits that are odd and harmless; what may harm stays an error.
    ("fetch.fsck.missingSpaceBeforeDate", "warn"),
    ("fetch.fsck.badTimezone", "warn"),
    ("fetch.fsck.zeroPaddedFilemode", "warn"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("http.followRedirects", "initial"),
    ("http.lowSpeedLimit", "1000"),
    ("http.lowSpeedTime", "60"),
    ("advice.addEmbeddedRepo", "false"),
)
_OF_A_PERSON = (
    r"^(credential\..*|http\.(.*\.)?(proxy|proxyauthmethod|sslcainfo|sslcapath|sslcert|sslkey|extraheader|cookiefile))$"
)
_DENIED = ("Authentication failed", "could not read Username", "could not read Password", "Permission denied")


@dataclass(frozen=True)
class Said:
    """What git answered: its exit status, what it wrote, and the end of its complaints."""

    status: int
    out: bytes
    complaint: str


class GitFaultError(NotCheckedError):
    """git could not do what was asked.

    Attributes:
        said: what it complained about, in its own words.
    """

    def __init__(self, what: str, *, where: str = "", why: str = "", todo: str = "", said: str = "") -> None:
        super().__init__(what, where=where, why=why, todo=todo)
        self.said = said


def run(
    arguments: Sequence[str],
    *,
    folder: Path,
    what: str,
    where: str = "",
    git_dir: Path | None = None,
    transports: Iterable[str] = (),
    variables: Mapping[str, str] | None = None,
    limit: int = LONGEST_OUTPUT,
    patience_s: float = LONGEST_S,
    hold: int | None = None,
    feed: BinaryIO | None = None,
) -> bytes:
    """What git writes.

    Args:
        arguments: the subcommand and its arguments.
        folder: the working directory.
        what: what is being done, as a noun phrase, for errors.
        where: the repository, for errors.
        git_dir: the repository; without one the subcommand needs none.
        transports: protocols that it may use; none unless named.
        variables: more of its environment.
        limit: bytes of output beyond which it is stopped.
        patience_s: seconds after which it is stopped.
        hold: a file descriptor that it, too, keeps open: a lock that stays held where penny is killed and git goes on.
        feed: a file that it reads; nothing unless named.

    Raises:
        GitFaultError: it failed, or took too long.
        UnsafeInputError: it wrote more than `limit`.
        NotCheckedError: there is no git.
    """
    said = ask(
        arguments,
        folder=folder,
        what=what,
        where=where,
        git_dir=git_dir,
        transports=transports,
        variables=variables,
        limit=limit,
        patience_s=patience_s,
        hold=hold,
        feed=feed,
    )
    if said.status:
        raise failed(said, what=what, where=where)
    return said.out


def failed(said: Said, *, what: str, where: str) -> PennyError:
    """The error that a failed git means."""
    if "fsck error" in said.complaint or "fsckObjects" in said.complaint:
        return UnsafeInputError(f"{what} brought objects that git refuses", where=where, why=said.complaint)
    if "dubious ownership" in said.complaint:
        return GitFaultError(
            f"{what} failed: the repository belongs to somebody else",
            where=where,
            why="git opens no repository of another user",
            todo="make a copy of your own",
            said=said.complaint,
        )
    denied = any(each in said.complaint for each in _DENIED)
    todo = (
        "have credentials for it in git's credential helper or in ssh-agent; nobody is asked for them" if denied else ""
    )
    return GitFaultError(
        f"{what} failed", where=where, why=said.complaint or "without a word", todo=todo, said=said.complaint
    )


def ask(
    arguments: Sequence[str],
    *,
    folder: Path,
    what: str,
    where: str = "",
    git_dir: Path | None = None,
    transports: Iterable[str] = (),
    variables: Mapping[str, str] | None = None,
    limit: int = LONGEST_OUTPUT,
    patience_s: float = LONGEST_S,
    hold: int | None = None,
    feed: BinaryIO | None = None,
) -> Said:
    """As `run`, but a failure is an answer."""
    process = start(
        arguments,
        folder=folder,
        git_dir=git_dir,
        transports=transports,
        variables=variables,
        hold=hold,
        feed=feed,
    )
    late = threading.Event()

    def end() -> None:
        late.set()
        stop(process)

    timer = threading.Timer(patience_s, end)
    timer.daemon = True
    complaints: list[bytes] = []
    listener = threading.Thread(target=_drain, args=(process.stderr, complaints), daemon=True)
    try:
        timer.start()
        listener.start()
        out = process.stdout.read(limit + 1)
        if len(out) > limit:
            raise UnsafeInputError(f"{what} gave more than {limit} bytes", where=where)
        status = process.proc.wait()  # GitPython's own `wait` takes a failure for an error
        listener.join(_GRACE_S)
    finally:
        timer.cancel()
        stop(process)
    if late.is_set():
        raise GitFaultError(f"{what} took longer than {patience_s:g} s", where=where, said="timeout")
    return Said(status, out, _tail(b"".join(complaints)))


def start(
    arguments: Sequence[str],
    *,
    folder: Path,
    git_dir: Path | None = None,
    transports: Iterable[str] = (),
    variables: Mapping[str, str] | None = None,
    hold: int | None = None,
    feed: BinaryIO | int | None = None,
) -> Any:
    """A running git with pipes; whoever starts it stops it.

    Raises:
        NotCheckedError: there is no git.
    """
    allowed = ":".join(transports)
    settings = [*_CONFIGURED, *(_of_person(folder) if allowed and allowed != ":".join(LOCAL) else ())]
    options = [] if git_dir is None else [f"--git-dir={git_dir}"]
    # No protocol may have an empty list: git then takes the list for not there.
    environment = {**_SET, **_as_variables(settings), "GIT_ALLOW_PROTOCOL": allowed or "none", **(variables or {})}
    environment["PATH"] = _programs()
    command = ["env", *_unset(environment), "git", "--no-pager", "--literal-pathspecs", *options, *arguments]
    return _program(folder).execute(
        command,
        as_process=True,
        istream=feed,
        env=environment,
        start_new_session=True,
        pass_fds=() if hold is None else (hold,),
    )


def stop(process: Any) -> None:
    """End a git and everything that it started; its pipes are closed."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.proc.wait(_GRACE_S)
        except TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.proc.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _program(folder: Path) -> "Git":
    """GitPython's front for the git on PATH."""
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    if shutil.which("git", path=_programs()) is None:
        raise NotCheckedError("there is no git on this machine", todo="install git")
    from git import Git

    return Git(folder)


def _programs() -> str:
    """Where programs are looked for: not in the folder that git works in, which may be anybody's."""
    return os.pathsep.join(
        each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if each.startswith("/")
    )


def _unset(ours: Mapping[str, str]) -> list[str]:
    """Options of `env` that take away every variable of the caller but the listed ones and those that we set.

    They hold names only: what stands on a command line is seen by every user of the machine.
    """
    return [option for name in os.environ if name not in _KEPT and name not in ours for option in ("-u", name)]


def _as_variables(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Settings as git reads them from its environment, where other users do not see them."""
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for index, (key, value) in enumerate(settings):
        found |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return found


def _of_person(folder: Path) -> list[tuple[str, str]]:
    """What the person's own configuration says about reaching servers."""
    found: list[tuple[str, str]] = []
    for scope in ("--system", "--global"):
        command = ["env", *_unset({}), "git", "config", scope, "--includes", "--null", "--get-regexp", _OF_A_PERSON]
        process = _program(folder).execute(command, as_process=True, env={"PATH": _programs()}, start_new_session=True)
        try:
            out = process.stdout.read(LONGEST_OUTPUT)
        finally:
            stop(process)
        for entry in out.decode("utf-8", "replace").split("\0"):
            key, _, value = entry.partition("\n")
            if key:
                found.append((key, value))
    return found


def _drain(pipe: IO[bytes], into: list[bytes]) -> None:
    """Keep the first of what is complained; read all of it, so that nobody waits for room in a pipe."""
    kept = 0
    with contextlib.suppress(OSError, ValueError):
        while piece := pipe.read(1 << 12):
            if kept < _LONGEST_COMPLAINT:
                into.append(piece)
                kept += len(piece)


def _tail(data: bytes) -> str:
    """The end of a complaint in one line; a server's words are no terminal's."""
    text = data.decode("utf-8", "replace").replace("\r", "\n")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", "ERR"))] or lines
    return " | ".join("".join(c if c.isprintable() else "\ufffd" for c in line) for line in told[-_TAIL_LINES:])
