"""What a kind of build is: the programs it needs and the steps it takes, worked out as data before anything runs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from reproducer.documents.lock import Component
from reproducer.errors import InvalidDocumentError

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


@dataclass(frozen=True)
class Program:
    """A program that a build runs or that what it runs will run.

    Attributes:
        role: its name in the lock's `tools`, such as `c++`.
        spelt: the file that is looked for, such as `g++-12`.
        needed: whether there is no build without it.
    """

    role: str
    spelt: str
    needed: bool = True


@dataclass(frozen=True)
class Place:
    """Where one build happens, as the build sees it.

    Attributes:
        source: the patched source tree.
        build: a folder for what is made on the way.
        output: the folder whose content is what comes out.
        jobs: how many steps may run at once.
        tools: the path of each program, by role.
        flags: what keeps the folders of the build out of what a compiler writes.
    """

    source: Path
    build: Path
    output: Path
    jobs: int
    tools: Mapping[str, Path]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """One command of a build.

    Attributes:
        what: what it does, for errors: `configuring`.
        argv: the program's path and its arguments; no shell reads them.
        cwd: where it runs.
        variables: what its environment has beside that of every step.
    """

    what: str
    argv: tuple[str, ...]
    cwd: Path
    variables: Mapping[str, str] = field(default_factory=dict)


class Kind(Protocol):
    """One kind of build."""

    def programs(self, component: Component) -> tuple[Program, ...]:
        """The programs of the machine or the build environment that decide what comes out."""

    def steps(self, component: Component, place: Place) -> tuple[Step, ...]:
        """The commands in their order; raises InvalidDocumentError where the component asks for what cannot be."""

    def installed(self, component: Component, place: Place) -> Path:
        """The folder, `place.output` or one below it, whose files are the outputs."""


def compilers(component: Component) -> tuple[Program, ...]:
    """The compilers for the host, as the component's variables name them, and the linker behind them."""
    return (
        Program("cc", _program(component, "CC", "cc")),
        Program("c++", _program(component, "CXX", "c++")),
        Program("ld", "ld", needed=False),
    )


def wheel_compilers(component: Component) -> tuple[Program, ...]:
    """The compilers of a wheel that is built here and says that it compiles: it names architectures or a compiler."""
    if component.source.kind == "wheel":
        return ()
    if not component.architectures and not component.variables.keys() & {"CC", "CXX", "CUDACXX"}:
        return ()
    return (*compilers(component), *device_compiler(component))


def device_compiler(component: Component) -> tuple[Program, ...]:
    """The compiler for device code, where the component names architectures; a build that compiles none needs none."""
    if not component.architectures:
        return ()
    return (Program("nvcc", _program(component, "CUDACXX", "nvcc"), needed=component.kind == "nvcc"),)


def _program(component: Component, variable: str, usual: str) -> str:
    """The program in a variable such as `CC`, which may have options after it."""
    return (component.variables.get(variable, "").split() or [usual])[0]


def compiler_variables(component: Component, place: Place) -> dict[str, str]:
    """The compilers by path, and the flags that keep the folders of this build out of what they write."""
    variables = {}
    for name, role in (("CC", "cc"), ("CXX", "c++"), ("CUDACXX", "nvcc")):
        if role in place.tools:
            options = component.variables.get(name, "").split()[1:]
            variables[name] = " ".join((str(place.tools[role]), *options))
    for name in ("CFLAGS", "CXXFLAGS"):
        variables[name] = " ".join((*component.variables.get(name, "").split(), *place.flags))
    if "nvcc" in place.tools:
        mapped = (f"-Xcompiler={flag}" for flag in place.flags)
        appended = component.variables.get("NVCC_APPEND_FLAGS", "").split()
        variables["NVCC_APPEND_FLAGS"] = " ".join((*appended, *mapped))
    return {name: text for name, text in variables.items() if text}


def fill(arguments: Iterable[str], place: Place, *, where: str) -> tuple[str, ...]:
    """Arguments with `{source}`, `{output}` and `{jobs}` filled in.

    Raises:
        InvalidDocumentError: another placeholder.
    """
    known = {"source": str(place.source), "output": str(place.output), "jobs": str(place.jobs)}

    def value(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise InvalidDocumentError(
                f"the arguments name {match[0]}", where=where, why="known: {source}, {output}, {jobs}"
            )
        return known[match[1]]

    return tuple(_PLACEHOLDER.sub(value, argument) for argument in arguments)
