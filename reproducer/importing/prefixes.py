"""What stands in front of a server: `env`, `exec`, `nohup`, `numactl`, `docker run` and the like.

Each says itself how many of the words after it are its own. No shell reads any of it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from reproducer.importing.found import Notes
from reproducer.importing.secrets import is_secret
from reproducer.importing.variable_files import read_env_file

PYTHON = re.compile(r"^(?:python|pypy)(?:3(?:\.(\d{1,2}))?)?$")
_PLACEMENT = "which processors it runs on has no place in a manifest"


@dataclass
class State:
    """A command while its prefixes are taken away."""

    words: list[str]
    environment: dict[str, str]
    notes: Notes
    folder: Path
    python: str | None = None

    def take(self) -> str:
        """The next word, which is then gone; empty where there is none."""
        return self.words.pop(0) if self.words else ""


def _options(state: State, values: Sequence[str] = (), *, name: str = "", why: str = "") -> list[str]:
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


def _env(state: State, name: str) -> None:
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


def _plain(*values: str) -> Callable[[State, str], None]:
    """A prefix whose options say nothing about the server."""

    def strip(state: State, name: str) -> None:
        del name
        _options(state, values)

    return strip


def _numactl(state: State, name: str) -> None:
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


def _taskset(state: State, name: str) -> None:
    taken = _options(state)
    state.notes.add(" ".join([name, *taken, state.take()]), _PLACEMENT)


def _nice(state: State, name: str) -> None:
    taken = _options(state, ("-n", "-c", "-p", "-a", "--adjustment", "--class", "--classdata"))
    if name == "chrt" and state.words and state.words[0].isdigit():
        taken.append(state.take())
    state.notes.add(" ".join([name, *taken]), "its priority has no place in a manifest")


def _timeout(state: State, name: str) -> None:
    taken = _options(state, ("-k", "-s", "--kill-after", "--signal"))
    state.notes.add(" ".join([name, *taken, state.take()]), "penny ends the server itself")


def _sudo(state: State, name: str) -> None:
    taken = _options(state, ("-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "--user", "--group"))
    state.notes.add(" ".join([name, *taken]), "penny runs the server as you")


def _uv(state: State, name: str) -> None:
    """`uv run`, `uvx`, `conda run`: the environment that they make is not looked into."""
    if name != "uvx" and state.words and state.words[0] == "run":
        state.take()
    values = ("-n", "-p", "--name", "--prefix", "--python", "--with", "--from", "--project", "--directory", "--extra")
    taken = _options(state, (*values, "--group", "--index", "--index-url", "--env-file", "--cwd"))
    state.notes.add(" ".join([name, *taken]), "the environment it makes is not looked into: give --requirements FILE")


def _wrapped(state: State, name: str) -> None:
    """A profiler or launcher that starts the server: its own options go."""
    taken = []
    while state.words and _engine_at(state.words) is False:
        taken.append(state.take())
    state.notes.add(" ".join([name, *taken]), "what starts or watches the server has no place in a manifest")


def _engine_at(words: Sequence[str]) -> bool:
    name = PurePosixPath(words[0]).name
    return name in ("sglang", "vllm") or bool(PYTHON.match(name))


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


def _docker(state: State, name: str) -> None:
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


def _docker_option(state: State) -> tuple[str, str | None]:
    """The next option and its value, which may be joined to it; None for one that takes none."""
    word = state.take()
    option, equals, value = word.partition("=")
    if _DOCKER_LETTERS.match(word) or (option.startswith("--") and option[2:] in _DOCKER_FLAGS):
        return option, None
    if not word.startswith("--") and len(word) > _SHORT_OPTION:
        return word[:_SHORT_OPTION], word[_SHORT_OPTION:].removeprefix("=")
    return option, value if equals else state.take()


def _docker_variable(state: State, text: str, outside: Mapping[str, str], where: str) -> None:
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


PREFIXES: dict[str, Callable[[State, str], None]] = {
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
