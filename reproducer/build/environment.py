"""Python environments made with uv: one exact minor version, packages by hash only, ready to be sealed.

The environment is relocatable (its scripts find their interpreter beside themselves), so it can be made in a work
folder and moved to its final place in one rename. Every module is compiled on installation to a `.pyc` that is
never checked against its source again (`unchecked-hash`): the server starts fast and has nothing to write, so the
sealed tree stays as it was sealed. `.pyc` files, the interpreter's links and `pyvenv.cfg` depend on the place and
the host; they are sealed, but `content_files` leaves them out.
"""

import csv
import io
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from reproducer.errors import DriftError, NotCheckedError, RebuildError
from reproducer.isolation.running import run_isolated, scrubbed
from reproducer.store.faults import full_for_another

_PASSED = re.compile(
    r"^(UV_[A-Z0-9_]+|SSL_CERT_(FILE|DIR)|XDG_[A-Z]+_(HOME|DIRS))$|^(https?|all|no)_proxy$", re.IGNORECASE
)
_NOT_PASSED = frozenset(
    {"UV_PROJECT_ENVIRONMENT", "UV_VENV_SEED", "UV_VENV_CLEAR", "UV_WORKING_DIRECTORY", "UV_PYTHON"}
)
_ONLY_HERE = ("pyvenv.cfg", "lib64")


@dataclass(frozen=True)
class Wheel:
    """A verified wheel file that is to be installed."""

    path: Path
    filename: str
    sha256: str

    @property
    def requirement(self) -> str:
        """One line of a requirements file: exact version and hash."""
        try:
            project, version, _, _ = parse_wheel_filename(self.filename)
        except InvalidWheelFilename as error:
            raise DriftError("is no wheel's file name", where=self.filename, why=str(error)) from error
        return f"{project}=={version} --hash=sha256:{self.sha256}"


def installer() -> tuple[str, str]:
    """Path and name with version of the installer.

    Raises:
        NotCheckedError: uv is not installed beside penny.
    """
    try:
        import uv

        path = uv.find_uv_bin()
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        raise NotCheckedError("uv cannot be run", why=str(error), todo="install the package uv beside penny") from error
    return path, " ".join(version.split()[:2])


def make_environment(
    folder: Path, wheels: Sequence[Wheel], *, python: str, work: Path, offline: bool, compiled: bool, what: str
) -> str:
    """Make an environment that holds exactly these wheels.

    Args:
        folder: where to, below `work`; does not exist yet.
        wheels: the verified wheels.
        python: minor version, such as `3.11`.
        work: a private folder on the same disk; only this step writes to it.
        offline: do not let uv fetch an interpreter.
        compiled: compile every module on installation.
        what: name of the environment, for errors.

    Returns:
        The full version of its interpreter.

    Raises:
        NotCheckedError: no such interpreter, or the disk is full.
        RebuildError: a wheel does not install on this host.
    """
    uv, _ = installer()
    log = work / f"{folder.name}.log"
    home = work / "home"
    full = _make_venv(uv, folder, python=python, home=home, log=log, offline=offline)
    if wheels:
        _install(uv, folder, wheels, work=work, home=home, log=log, compiled=compiled, what=what)
    shutil.rmtree(home, ignore_errors=True)
    _tidy(folder)
    return full


def _make_venv(uv: str, folder: Path, *, python: str, home: Path, log: Path, offline: bool) -> str:
    """An empty venv; uv looks for the interpreter as it always does, with the user's settings for that."""
    env = scrubbed(home=home, epoch=0)
    for name in ("UV_OFFLINE", "UV_NO_CONFIG", "PYTHONHASHSEED", "SOURCE_DATE_EPOCH"):
        del env[name]
    env |= {name: value for name, value in os.environ.items() if _PASSED.match(name) and name not in _NOT_PASSED}
    # uv's own interpreters and the user's uv.toml lie below the real home.
    env |= {"HOME": os.environ.get("HOME", str(Path.home())), "PATH": os.environ.get("PATH", env["PATH"])}
    command = [uv, "venv", "--no-project", "--relocatable", "--no-cache", "--python", f"cpython@{python}", str(folder)]
    try:
        run_isolated(
            [*command[:-1], *(["--offline"] if offline else []), command[-1]],
            cwd=folder.parent,
            env=env,
            writable=[],
            log=log,
            what=f"making an environment for Python {python}",
            network=True,
            namespaces=False,
        )
    except RebuildError as error:
        todo = "run without --offline so that uv can fetch it" if offline else "install it, or let uv fetch it"
        if room := full_for_another(error.why, folder.parent, what=f"an environment for Python {python}"):
            raise room from error
        raise NotCheckedError(
            f"there is no Python {python} that uv can use", why=error.why, todo=f"{todo} (`uv python install {python}`)"
        ) from error
    full = interpreter_version(folder)
    if full.rpartition(".")[0] != python:
        raise NotCheckedError(f"uv gave Python {full} where {python} is asked for")
    return full


def interpreter_version(folder: Path) -> str:
    """The full version of the interpreter an environment runs in, by asking it.

    Raises:
        NotCheckedError: the interpreter is gone or does not run.
    """
    command = [str(folder / "bin" / "python"), "-I", "-S", "-c", "import platform; print(platform.python_version())"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd="/")
    except (OSError, subprocess.SubprocessError) as error:
        raise NotCheckedError("the environment's interpreter does not run", where=command[0], why=str(error)) from error
    return ran.stdout.strip()


def _install(
    uv: str, folder: Path, wheels: Sequence[Wheel], *, work: Path, home: Path, log: Path, compiled: bool, what: str
) -> None:
    wheelhouse = work / "wheelhouse"
    wheelhouse.mkdir()
    for wheel in wheels:
        _place(wheel.path, wheelhouse / wheel.filename)
    requirements = work / "requirements.txt"
    requirements.write_text("".join(f"{line}\n" for line in sorted(wheel.requirement for wheel in wheels)), "utf-8")
    command = [uv, "pip", "install", "--no-config", "--no-cache", "--offline", "--no-index"]
    command += ["--find-links", str(wheelhouse), "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    command += ["--link-mode", "hardlink", "--python", str(folder / "bin" / "python")]
    command += ["--compile-bytecode"] if compiled else []
    env = scrubbed(home=home, epoch=0) | {"PYC_INVALIDATION_MODE": "UNCHECKED_HASH", "NO_COLOR": "1"}
    try:
        run_isolated(
            [*command, "-r", str(requirements)],
            cwd=work,
            env=env,
            writable=[work],
            log=log,
            what=f"installing the environment {what}",
        )
    except RebuildError as error:
        if room := full_for_another(log.read_text("utf-8", "replace"), work, what=f"the environment {what}"):
            raise room from error
        raise
    finally:
        shutil.rmtree(wheelhouse, ignore_errors=True)
    requirements.unlink()


def _place(blob: Path, target: Path) -> None:
    """A wheel under its own name: a hard link where the disk allows, otherwise a symbolic one."""
    try:
        os.link(blob, target)
    except OSError:
        target.symlink_to(blob.resolve())


def _tidy(folder: Path) -> None:
    """Remove what uv leaves that differs from run to run, and what only a person at a prompt would use."""
    for path in folder.glob("bin/*"):
        if path.name.startswith(("activate", "deactivate", "pydoc.bat")):
            path.unlink()
    for name in (".gitignore", "CACHEDIR.TAG", ".lock"):
        (folder / name).unlink(missing_ok=True)
    for stamp in folder.glob("lib/python*/site-packages/*.dist-info/uv_cache.json"):
        stamp.unlink()
        record = stamp.with_name("RECORD")
        if record.is_file():
            rows = csv.reader(io.StringIO(record.read_text("utf-8"), newline=""))
            text = io.StringIO(newline="")
            name = f"{stamp.parent.name}/{stamp.name}"
            csv.writer(text, lineterminator="\n").writerows(row for row in rows if row and row[0] != name)
            # A new file: the old one may be a hard link.
            record.unlink()
            record.write_text(text.getvalue(), "utf-8")


def content_files(paths: Iterable[str]) -> list[str]:
    """The files of an environment that are the same wherever and whenever it is made, sorted."""
    return sorted(path for path in paths if _is_content(PurePosixPath(path)))


def _is_content(path: PurePosixPath) -> bool:
    if path.parts[0] in _ONLY_HERE or "__pycache__" in path.parts:
        return False
    return not (path.parts[0] == "bin" and re.fullmatch(r"python[0-9.]*", path.name))
