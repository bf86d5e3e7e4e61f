"""Recording a shell script: it is run apart from the host, with shims in place of the server.

The script runs as it is but for two things in a copy of it: paths that end in the name of a server's program or of
Python lead to the shims, and a launch does not write its output where the script says. It sees no network, a home
folder of its own, and a file system that is read-only but for a private copy of its folder.
"""

import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from reproducer.documents.base import parse_json
from reproducer.errors import NotCheckedError, RebuildError, UsageError
from reproducer.importing.found import Found, Notes
from reproducer.importing.recording_driver import NOT_CONFINED
from reproducer.isolation.running import SYSTEM_PATH, run_isolated, scrubbed, tail

SECONDS = 60.0
PATIENCE_S = 1.5
PROCESSES = 256
_DRIVER = Path(__file__).with_name("recording_driver.py")
_RECORDER = Path(__file__).with_name("recorder.py")
_MOST_FILES = 500
_MOST_BYTES = 16 << 20
_LARGEST_FILE = 2 << 20
_DEEPEST = 4
_MINORS = range(8, 16)
SKIPPED = (
    *("pip", "pip3", "hf", "huggingface-cli", "modelscope", "wget", "apt", "apt-get", "dnf", "yum", "module"),
    *("systemctl", "service", "sysctl", "modprobe", "pkill", "killall", "fuser", "nvidia-smi", "rocm-smi", "ray"),
    *("reboot", "shutdown", "mount", "umount"),
)
_NAMES = (
    *("sglang", "vllm", "python", "python3", "docker", "podman", "nerdctl", "numactl", "taskset", "uv", "uvx"),
    *("conda", "mamba", "micromamba", "mkdir", "touch", "chmod", "chown", "ln", "rm", "cp", "mv", "tee", "install"),
    *("sleep", "sudo", *SKIPPED, *(f"python3.{minor}" for minor in _MINORS)),
)
# A path, in quotes or not and with variables in it, to a program that is recorded.
_PROGRAM = re.compile(r"""(?<![\w/.~$}{@+-])[\w/.~$}{@+-]*\bbin/(python(?:3(?:\.\d+)?)?|sglang|vllm)(?=["'\s;)&|]|$)""")
_SERVER = re.compile(r"\b(?:sglang|vllm|launch_server|api_server)\b|^\s*(?:exec|nohup)\b")
_REDIRECTION = re.compile(r"""(?<![\w$<&])((?:[12]|&)?>{1,2})\s*(?!&|\(|/dev/)("[^"]*"|'[^']*'|[^\s;&|<>()"']+)""")
_SHELLS = ("bash", "sh", "dash", "ash", "ksh")
# A process and the number of its command, for every shell from the script to the one that called: a shell starts its
# subshells one after the other, so that their numbers say the order.
_PLACE = re.compile(r"(?:[0-9]{1,9}\.[0-9]{1,9}\.){1,64}")
# Every shell writes down at which of its commands it is: launches in the background race each other to their records.
_STARTUP = """\
case $PATH in "{shims}":*) ;; *) PATH={shims}:$PATH ;; esac
set -T
trap 'case $PATH in "{shims}":*) ;; *) PATH={shims}:$PATH; hash -r ;; esac
if [ "${{_penny_of-}}" != "$BASHPID" ]; then _penny_of=$BASHPID _penny_in=${{_penny_at-}} _penny_n=0; fi
_penny_n=$((_penny_n+1)); export _penny_at=$_penny_in$BASHPID.$_penny_n.' DEBUG
source() {{ case ${{1:-}} in */activate|activate) [ -r "$1" ] || return 0 ;; esac; builtin source "$@"; }}
.() {{ source "$@"; }}
module() {{ command module "$@"; }}
conda() {{ command conda "$@"; }}
"""
_FROM_SHELL = frozenset({"PWD", "OLDPWD", "SHLVL", "_", "BASH_ENV", "HOME", "TMPDIR", "PATH", "LANG"})


def record_script(
    path: Path, text: str, *, where: str, variables: Mapping[str, str], seconds: float = SECONDS
) -> tuple[Found, ...]:
    """Every launch that a script comes to, once each, in the order in which its commands start them.

    Args:
        path: the script; a copy of the folder it lies in is what it runs in.
        text: what stands in it.
        where: its name, for people.
        variables: what it finds in its environment.
        seconds: the longest it may take.

    Raises:
        UsageError: no shell script, or nothing was recorded; with the end of what it said.
        NotCheckedError: this kernel does not let it be kept apart.
    """
    shell = _shell(text, where)
    with tempfile.TemporaryDirectory(prefix="penny-import-") as name:
        work = Path(name).resolve()
        recording = _Recording(work, path.resolve().parent, path.name, text)
        result = recording.run(shell, variables, where, seconds)
        found = recording.launches(where, variables)
        if not found:
            ended = result.get("why") or f"it ended with status {result.get('status')}"
            raise UsageError(
                "the script started no server that was recorded",
                where=where,
                why=f"{ended}; its output ended with: {tail(recording.log)[-600:]}",
                todo="give the command line itself with --command",
            )
        return found


def _shell(text: str, where: str) -> str:
    """The program that runs a script: bash wherever there is one, for it lets penny see paths change."""
    first = text.partition("\n")[0]
    if first.startswith("#!"):
        words = first[2:].split()
        program = next((Path(each).name for each in words if not each.startswith("-") and Path(each).name != "env"), "")
        if program not in _SHELLS:
            raise UsageError(
                f"it is a script of {program or 'nothing'}, and only shell scripts are recorded", where=where
            )
    shell = shutil.which("bash", path=SYSTEM_PATH) or shutil.which("sh", path=SYSTEM_PATH)
    if shell is None:
        raise NotCheckedError("there is no shell on this machine", where=SYSTEM_PATH)
    return shell


class _Recording:
    """One run of one script, below a private folder."""

    def __init__(self, work: Path, origin: Path, name: str, text: str) -> None:
        self.work = work
        self.origin = origin
        self.home, self.records, self.shims, self.tree = (work / each for each in ("home", "records", "shims", "tree"))
        self.log = work / "script.log"
        for folder in (self.home, self.records, self.shims, self.tree):
            folder.mkdir()
        self.log.touch()
        program = self.work / "recorder"
        program.write_text(f"#!{sys.executable} -IS\n{_RECORDER.read_text('utf-8')}", "utf-8")
        program.chmod(0o755)
        for each in _NAMES:
            (self.shims / each).symlink_to(program)
        (work / "startup.sh").write_text(_STARTUP.format(shims=self.shims), "utf-8")
        _copy_tree(origin, self.tree, self.shims)
        self.script = self.tree / name
        self.script.unlink(missing_ok=True)
        self.script.write_text(rewritten(text, self.shims), "utf-8")
        self.script.chmod(0o755)

    def run(self, shell: str, variables: Mapping[str, str], where: str, seconds: float) -> dict[str, Any]:
        environment = {
            **variables,
            "PATH": f"{self.shims}:{SYSTEM_PATH}",
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "LANG": "C.UTF-8",
            "BASH_ENV": str(self.work / "startup.sh"),
        }
        plan = {
            "argv": [shell, str(self.script)],
            "folder": str(self.tree),
            "environment": environment,
            "records": str(self.records),
            "log": str(self.log),
            "result": str(self.work / "result.json"),
            "seconds": seconds,
            "patience": PATIENCE_S,
            "processes": PROCESSES,
            "confined": True,
        }
        (self.work / "plan.json").write_text(json.dumps(plan), "utf-8")
        log = self.work / "driver.log"
        try:
            run_isolated(
                [sys.executable, "-I", "-S", str(_DRIVER), str(self.work / "plan.json")],
                cwd=self.work,
                env=scrubbed(home=self.home, epoch=0),
                writable=[self.work],
                log=log,
                what="recording the script",
                timeout_s=seconds + 30,
            )
        except RebuildError as error:
            if f"exit status {NOT_CONFINED}" in error.what:
                raise NotCheckedError(
                    "this kernel does not let the script be kept apart, so it was not run",
                    where=where,
                    why=tail(log),
                    todo="give the command line itself with --command",
                ) from error
            return {"why": error.what}
        result = parse_json((self.work / "result.json").read_bytes(), where=where, limit=1 << 16)
        return result if isinstance(result, dict) else {}

    def launches(self, where: str, variables: Mapping[str, str]) -> tuple[Found, ...]:
        """What was recorded, with the private folders back in place; what a loop starts anew is one launch."""
        notes = Notes(where)
        found: list[Found] = []
        records = sorted(self.records.glob("[0-9]*.json"))[:PROCESSES]
        for content in sorted((each for path in records if (each := _record(path)) is not None), key=_order):
            argv = [self._outside(each) for each in content["argv"]]
            if content["kind"] != "launch":
                notes.add(" ".join(argv)[:200], "another program of the script; nothing was done in its place")
                continue
            environment = {
                name: self._outside(value)
                for name, value in sorted(content["environment"].items())
                if name not in _FROM_SHELL and not name.startswith("BASH_FUNC_")
            }
            launch = Found(
                tuple(argv),
                environment,
                Path(self._outside(content["cwd"])),
                where,
                tuple(notes.found),
                ran=True,
                made={self._outside(path): made for path, made in content["made"].items()},
            )
            if not any(replace(each, unmapped=launch.unmapped) == launch for each in found):
                found.append(launch)
        del variables
        return tuple(found)

    def _outside(self, text: str) -> str:
        """A text in which the private folders are the person's own again."""
        for inner, outer in (
            (self.shims, ""),
            (self.tree, str(self.origin)),
            (self.home, os.environ.get("HOME", "/")),
        ):
            text = text.replace(f"{inner}/" if not outer else str(inner), outer)
        return text


def rewritten(text: str, shims: Path) -> str:
    """A script whose paths to recorded programs lead to the shims, and whose launch keeps no log."""
    text = _PROGRAM.sub(lambda match: f"{shims}/{match[1]}", text)
    return "\n".join(_without_log(line) for line in re.split(r"(?<!\\)\n", text))


def _without_log(line: str) -> str:
    if line.lstrip().startswith("#!") or not _SERVER.search(line) or "<<" in line:
        return line
    return _REDIRECTION.sub(lambda match: f"{match[1]} /dev/null", line)


def _copy_tree(origin: Path, tree: Path, shims: Path) -> None:
    """A copy of a folder, as far as bounds allow: small regular files, not deep, nothing hidden but `.env`."""
    files, size = 0, 0
    for folder, names, inside in os.walk(origin):
        depth = len(Path(folder).relative_to(origin).parts)
        names[:] = [] if depth >= _DEEPEST else sorted(each for each in names if not each.startswith("."))
        target = tree / Path(folder).relative_to(origin)
        target.mkdir(exist_ok=True)
        for name in sorted(inside):
            source = Path(folder) / name
            try:
                facts = source.lstat()
                if (name.startswith(".") and name != ".env") or not stat.S_ISREG(facts.st_mode):
                    continue
                files, size = files + 1, size + facts.st_size
                if files > _MOST_FILES or size > _MOST_BYTES:
                    return
                if facts.st_size > _LARGEST_FILE:
                    continue
                shutil.copyfile(source, target / name, follow_symlinks=False)
                (target / name).chmod(0o755 if facts.st_mode & 0o100 else 0o644)
                if source.suffix in (".sh", ".bash"):
                    copied = target / name
                    copied.write_text(rewritten(copied.read_text("utf-8"), shims), "utf-8")
            except (OSError, UnicodeDecodeError):
                continue


def _record(path: Path) -> dict[str, Any] | None:
    """A record, if it is one; the script could have written anything there."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode) or path.lstat().st_size > 8 << 20:
            return None
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("kind") not in ("launch", "skipped"):
        return None
    argv, environment = content.get("argv"), content.get("environment")
    good = (
        isinstance(argv, list)
        and all(isinstance(each, str) and "\0" not in each for each in argv)
        and isinstance(environment, dict)
        and all(isinstance(each, str) and "\0" not in each for each in environment.values())
        and isinstance(content.get("cwd"), str)
        and isinstance(content.get("made"), dict)
        and all(isinstance(each, str) for each in content["made"].values())
    )
    return content if good and argv else None


def _order(record: dict[str, Any]) -> tuple[bool, list[int], str]:
    """Where a record belongs: by the place of its command, then by its words; when it was written is chance.

    What no shell says the place of (a program of the script called it with an environment of its own) comes last.
    """
    said = record.get("at")
    known = isinstance(said, str) and _PLACE.fullmatch(said) is not None
    place = [int(number) for number in str(said)[:-1].split(".")] if known else []
    return not known, place, json.dumps([record["argv"], record["environment"], record["cwd"]], sort_keys=True)
