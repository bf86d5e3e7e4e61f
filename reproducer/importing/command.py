"""The command of a launch: what starts it is taken away, and what is left is an engine with its arguments.

`env`, `exec`, `nohup`, `numactl`, `docker run` and the like stand in front of a server; each says itself how many of
the words after it are its own. No shell reads any of it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from reproducer.importing.found import Found, Notes, Unmapped
from reproducer.importing.secrets import is_secret
from reproducer.importing.variable_files import read_env_file

EngineName = Literal["sglang", "vllm"]
ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=(.*)$", re.DOTALL)
MODULES: dict[str, EngineName] = {
    "sglang.launch_server": "sglang",
    "vllm.entrypoints.openai.api_server": "vllm",
}
# What `python -m` runs and that takes the same words as the program of that name.
_PROGRAMS = {"sglang": "sglang", "sglang.cli.main": "sglang", "vllm": "vllm", "vllm.entrypoints.cli.main": "vllm"}
_FILES: dict[str, EngineName] = {
    "sglang/launch_server.py": "sglang",
    "vllm/entrypoints/openai/api_server.py": "vllm",
}
_PYTHON = re.compile(r"^(?:python|pypy)(?:3(?:\.(\d{1,2}))?)?$")
_VERSIONED = re.compile(r"python3\.(\d{1,2})(?![\d])")
_PYTHON_VALUES = ("-X", "-W", "--check-hash-based-pycs")
_MOST_PREFIXES = 32
_PLACEMENT = "which processors it runs on has no place in a manifest"


@dataclass(frozen=True)
class Command:
    """An engine's launch.

    Attributes:
        engine: which one.
        arguments: the words after the program, a model that stands alone among them included.
        environment: the variables it is given.
        folder: where relative paths start.
        where: what it was read from.
        python: the minor version of its interpreter, where a path or name tells.
        unmapped: what has no place.
        ran: whether a script was run to find it.
        made: the text of files that the script made for it, by path.
    """

    engine: EngineName
    arguments: tuple[str, ...]
    environment: dict[str, str]
    folder: Path
    where: str
    python: str | None = None
    unmapped: tuple[Unmapped, ...] = ()
    ran: bool = False
    made: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _State:
    """A command while its prefixes are taken away."""

    words: list[str]
    environment: dict[str, str]
    notes: Notes
    folder: Path
    python: str | None = None

    def take(self) -> str:
        return self.words.pop(0) if self.words else ""


def command_of(found: Found) -> Command | None:
    """The engine's launch in a command; None where it starts something else."""
    state = _State(list(found.argv), dict(found.environment), Notes(found.where), found.folder)
    for _ in range(_MOST_PREFIXES):
        while state.words and (match := ASSIGNMENT.match(state.words[0])):
            state.environment[match[1]] = match[2]
            state.words.pop(0)
        if not state.words:
            return None
        engine = _engine(state)
        if engine is not None:
            return Command(
                engine,
                tuple(state.words),
                state.environment,
                state.folder,
                found.where,
                state.python,
                (*found.unmapped, *state.notes.found),
                found.ran,
                found.made,
            )
        prefix = _PREFIXES.get(PurePosixPath(state.words[0]).name)
        if prefix is None:
            return None
        name = state.take()
        prefix(state, PurePosixPath(name).name)
    return None


def _engine(state: _State) -> EngineName | None:
    """The engine that the next words start, which are then taken away; None where they start something else."""
    name = PurePosixPath(state.words[0]).name
    if match := _PYTHON.match(name):
        return _by_python(state, match[1])
    if name in ("sglang", "vllm") and state.words[1:2] == ["serve"]:
        state.words[:2] = []
        return "sglang" if name == "sglang" else "vllm"
    return None


def _by_python(state: _State, minor: str | None) -> EngineName | None:
    words = state.words
    if minor is None and (match := _VERSIONED.search(words[0])):
        minor = match[1]
    at = 1
    while at < len(words) and words[at].startswith("-") and not words[at].startswith("-m") and words[at] != "-c":
        at += 2 if words[at] in _PYTHON_VALUES else 1
    if at >= len(words) or words[at] == "-c":
        return None
    if words[at].startswith("-m"):
        module, rest = (words[at][2:], at + 1) if words[at] != "-m" else ("".join(words[at + 1 : at + 2]), at + 2)
        engine = MODULES.get(module)
        program = _PROGRAMS.get(module)
        if engine is None and program is not None and words[rest : rest + 1] == ["serve"]:
            engine, rest = ("sglang" if program == "sglang" else "vllm"), rest + 1
    else:
        engine = next((each for file, each in _FILES.items() if f"/{words[at]}".endswith(f"/{file}")), None)
        rest = at + 1
        if (
            engine is None
            and PurePosixPath(words[at]).name in ("sglang", "vllm")
            and words[rest : rest + 1] == ["serve"]
        ):
            engine, rest = ("sglang" if PurePosixPath(words[at]).name == "sglang" else "vllm"), rest + 1
    if engine is not None:
        words[:rest] = []
        state.python = f"3.{minor}" if minor else None
    return engine


def _options(state: _State, values: Sequence[str] = (), *, name: str = "", why: str = "") -> list[str]:
    """Take the options of a prefix away; `values` are those that take the next word."""
    taken = []
    while state.words and state.words[0].startswith("-") and state.words[0] != "-":
        word = state.take()
        taken.append(word)
        if word == "--":
            break
        if word in values and state.words:
            taken.append(state.take())
    if why:
        state.notes.add(" ".join([name, *taken]), why)
    return taken


def _env(state: _State, name: str) -> None:
    """`env`: variables are set by the loop, `-i` forgets those before, `-u` one of them."""
    del name
    while state.words and state.words[0].startswith("-"):
        word = state.take()
        if word in ("-i", "-", "--ignore-environment"):
            state.environment.clear()
        elif word in ("-u", "--unset"):
            state.environment.pop(state.take(), None)
        elif word.startswith("--unset="):
            state.environment.pop(word.partition("=")[2], None)
        elif word in ("-C", "--chdir"):
            state.folder = state.folder / state.take()
        elif word == "--":
            return
        elif word in ("-S", "--split-string"):
            import shlex

            state.words[:1] = shlex.split(state.words[0]) if state.words else []
            return


def _plain(*values: str) -> Callable[[_State, str], None]:
    """A prefix whose options say nothing about the server."""

    def strip(state: _State, name: str) -> None:
        del name
        _options(state, values)

    return strip


def _numactl(state: _State, name: str) -> None:
    values = (
        "-i",
        "-p",
        "-m",
        "-N",
        "-c",
        "-C",
        "-P",
        "-w",
        "--interleave",
        "--preferred",
        "--membind",
        "--physcpubind",
    )
    _options(state, (*values, "--cpunodebind", "--cpubind"), name=name, why=_PLACEMENT)


def _taskset(state: _State, name: str) -> None:
    taken = _options(state)
    state.notes.add(" ".join([name, *taken, state.take()]), _PLACEMENT)


def _nice(state: _State, name: str) -> None:
    taken = _options(state, ("-n", "-c", "-p", "-a", "--adjustment", "--class", "--classdata"))
    if name == "chrt" and state.words and state.words[0].isdigit():
        taken.append(state.take())
    state.notes.add(" ".join([name, *taken]), "its priority has no place in a manifest")


def _timeout(state: _State, name: str) -> None:
    taken = _options(state, ("-k", "-s", "--kill-after", "--signal"))
    state.notes.add(" ".join([name, *taken, state.take()]), "penny ends the server itself")


def _sudo(state: _State, name: str) -> None:
    taken = _options(state, ("-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "--user", "--group"))
    state.notes.add(" ".join([name, *taken]), "penny runs the server as you")


def _uv(state: _State, name: str) -> None:
    """`uv run`, `uvx`, `conda run`: the environment that they make is not looked into."""
    if name != "uvx" and state.words and state.words[0] == "run":
        state.take()
    values = ("-n", "-p", "--name", "--prefix", "--python", "--with", "--from", "--project", "--directory", "--extra")
    taken = _options(state, (*values, "--group", "--index", "--index-url", "--env-file", "--cwd"))
    state.notes.add(" ".join([name, *taken]), "the environment it makes is not looked into: give --requirements FILE")


def _wrapped(state: _State, name: str) -> None:
    """A profiler or launcher that starts the server: its own options go."""
    taken = []
    while state.words and _engine_at(state.words) is False:
        taken.append(state.take())
    state.notes.add(" ".join([name, *taken]), "what starts or watches the server has no place in a manifest")


def _engine_at(words: Sequence[str]) -> bool:
    name = PurePosixPath(words[0]).name
    return name in ("sglang", "vllm") or bool(_PYTHON.match(name))


# Options of `docker run` that stand alone; every other one takes a value.
_DOCKER_FLAGS = frozenset(
    [
        "detach",
        "disable-content-trust",
        "help",
        "init",
        "interactive",
        "no-healthcheck",
        "oom-kill-disable",
        "privileged",
        "publish-all",
        "quiet",
        "read-only",
        "replace",
        "rm",
        "sig-proxy",
        "tty",
        "use-api-socket",
    ]
)
_DOCKER_LETTERS = re.compile(r"^-[ditPq]+$")
_SHORT_OPTION = 2


def _docker(state: _State, name: str) -> None:
    """`docker run [OPTIONS] IMAGE [WORDS]`: variables are the server's, the image and the rest have no place."""
    if state.words[:1] == ["container"]:
        state.take()
    if state.take() not in ("run", "create"):
        state.words.clear()
        return
    outside, state.environment = state.environment, {}
    entrypoint: list[str] = []
    rest: list[str] = []
    where = f"{state.notes.where}, {name} run"
    while state.words and state.words[0].startswith("-"):
        option, value = _docker_option(state)
        if value is None:
            continue
        if option in ("-e", "--env"):
            _docker_variable(state, value, outside, where)
        elif option == "--env-file":
            state.environment |= read_env_file(state.folder / value)
        elif option == "--entrypoint":
            entrypoint = [value]
        elif option in ("-w", "--workdir"):
            state.folder = Path(value)
        else:
            rest.append(f"{option} {value}")
    image = state.take()
    note_image(state.notes, image, where=where)
    if rest:
        state.notes.add(" ".join(rest), "what the container is given has no place in a manifest")
    state.words[:0] = entrypoint or entrypoint_of(image)


def _docker_option(state: _State) -> tuple[str, str | None]:
    """The next option and its value, which may be joined to it; None for one that takes none."""
    word = state.take()
    option, equals, value = word.partition("=")
    if _DOCKER_LETTERS.match(word) or (option.startswith("--") and option[2:] in _DOCKER_FLAGS):
        return option, None
    if not word.startswith("--") and len(word) > _SHORT_OPTION:
        return word[:_SHORT_OPTION], word[_SHORT_OPTION:].removeprefix("=")
    return option, value if equals else state.take()


def _docker_variable(state: _State, text: str, outside: Mapping[str, str], where: str) -> None:
    """`-e NAME=VALUE`; a name alone is taken from whoever starts it."""
    variable, has, value = text.partition("=")
    if has:
        state.environment[variable] = value
    elif variable in outside:
        state.environment[variable] = outside[variable]
    else:
        why = "a secret; left out" if is_secret(variable) else "its value is taken from whoever starts it"
        state.notes.add(variable, why, where=where)


def note_image(notes: Notes, image: str, *, where: str) -> None:
    """Say that an image has no place, and ask for what would identify it."""
    if "@sha256:" in image:
        why = "an image has no place in a manifest: give the engine's version with --engine-version"
    else:
        why = (
            "a tag moves and never reaches a lock. Which digest did it have (docker image inspect --format "
            "'{{.RepoDigests}}')? Give the engine's version with --engine-version"
        )
    notes.add(f"image {image}", why, where=where)


def entrypoint_of(image: str) -> list[str]:
    """What an image starts its words with, for images whose publisher says so."""
    name = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return ["vllm", "serve"] if name.startswith("vllm-openai") else []


_PREFIXES: dict[str, Callable[[_State, str], None]] = {
    "env": _env,
    "exec": _plain("-a"),
    "command": _plain(),
    "builtin": _plain(),
    "nohup": _plain(),
    "setsid": _plain(),
    "time": _plain("-f", "-o"),
    "stdbuf": _plain("-i", "-o", "-e"),
    "unbuffer": _plain(),
    "tini": _plain(),
    "dumb-init": _plain(),
    "numactl": _numactl,
    "taskset": _taskset,
    "nice": _nice,
    "ionice": _nice,
    "chrt": _nice,
    "timeout": _timeout,
    "sudo": _sudo,
    "uv": _uv,
    "uvx": _uv,
    "conda": _uv,
    "mamba": _uv,
    "micromamba": _uv,
    "poetry": _uv,
    "pixi": _uv,
    "nsys": _wrapped,
    "ncu": _wrapped,
    "gdb": _wrapped,
    "strace": _wrapped,
    "docker": _docker,
    "podman": _docker,
    "nerdctl": _docker,
}


def shell_text(argv: Sequence[str]) -> str | None:
    """The text that `bash -c TEXT` is given, behind any of the prefixes that say nothing; None for another command."""
    words = list(argv)
    while words and PurePosixPath(words[0]).name in ("exec", "nohup", "tini", "dumb-init", "setsid"):
        words.pop(0)
        while words and words[0].startswith("-"):
            words.pop(0)
    if not words or PurePosixPath(words[0]).name not in ("sh", "bash", "dash", "ash"):
        return None
    for at, word in enumerate(words[1:], start=1):
        if re.fullmatch(r"-[A-Za-z]*c", word):
            return words[at + 1] if at + 1 < len(words) else None
        if not word.startswith("-"):
            return None
    return None
