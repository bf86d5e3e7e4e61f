"""Compilers, CUDA toolkit and build tools of this machine against the versions that a lock's toolchain names."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from reproducer.doctor.checks import Checked
from reproducer.documents.lock import Component, Lock
from reproducer.documents.sources import WheelSource
from reproducer.programs import ask

_COMPILERS = ("cc", "gcc", "g++", "clang", "nvcc", "rustc", "cmake", "ninja")
_NO_LOCK = "there is no lock to compare with"
_NVCC = re.compile(r"\bV(\d{1,4}(?:\.\d{1,6}){1,3})\b")
_VERSION = re.compile(r"(?<![\w.])v?(\d{1,6}(?:\.\d{1,6}){1,4})")
_CUDA_FOLDERS = ("CUDA_HOME", "CUDA_PATH")
_USUAL_CUDA = Path("/usr/local/cuda")


def check_toolchain(lock: Lock | None) -> Iterator[Checked]:
    """The compiler, the CUDA toolkit and every other tool that the lock names."""
    yield _compiler(lock)
    yield _cuda(lock)
    for name, wanted in sorted((lock.toolchain.tools or {}).items()) if lock is not None else ():
        yield _tool(f"host.tools.{name}", name, wanted, needed=lock is not None and compiles(lock))


def compiles(lock: Lock) -> bool:
    """Whether building the lock's components runs a compiler."""
    return lock.toolchain.compiler != "none" and any(_is_compiled(each) for each in lock.components)


def _is_compiled(component: Component) -> bool:
    return not isinstance(component.source, WheelSource)


def _compiler(lock: Lock | None) -> Checked:
    """The compiler, and its version where the lock names one."""
    there = ", ".join(name for name in _COMPILERS if shutil.which(name)) or "none on PATH"
    if lock is None:
        return Checked(id="host.compilers", status="skipped", got=there, reason=_NO_LOCK)
    wanted = lock.toolchain.compiler
    if wanted == "none":
        return Checked(id="host.compilers", status="skipped", got=there, reason="the lock compiles nothing")
    if wanted == "unknown":
        return Checked(id="host.compilers", status="unknown", got=there, reason="the lock does not know its compiler")
    name, _, version = wanted.strip().partition(" ")
    return _tool("host.compilers", name, version.strip() or "", needed=True)


def _cuda(lock: Lock | None) -> Checked:
    """The CUDA toolkit by its compiler; as exact as the lock names it."""
    wanted = lock.toolchain.cuda if lock is not None else None
    program = _nvcc()
    got = f"nvcc {version_said(program) or 'of a version that it does not say'}" if program else "no nvcc"
    if lock is None or wanted is None:
        why = _NO_LOCK if lock is None else "the lock names no CUDA toolkit"
        return Checked(id="host.cuda", status="skipped", got=got, reason=why)
    if wanted == "unknown":
        return Checked(id="host.cuda", status="unknown", got=got, reason="the lock does not know its CUDA toolkit")
    needed = compiles(lock)
    if program is None:
        return Checked(
            id="host.cuda",
            status="failed",
            needed=needed,
            expected=f"CUDA {wanted}",
            got=got,
            reason="there is no nvcc on PATH, in CUDA_HOME or in the usual folder",
            todo=f"install the CUDA toolkit {wanted}",
        )
    return _compared("host.cuda", f"CUDA {wanted}", wanted, program, needed=needed, todo=f"install CUDA {wanted}")


def _nvcc() -> str | None:
    """Where nvcc is: on PATH, in the folder that a variable names, or in the usual one."""
    folders = [Path(os.environ[name]) for name in _CUDA_FOLDERS if os.environ.get(name)]
    places = [str(folder / "bin") for folder in (*folders, _USUAL_CUDA)]
    return shutil.which("nvcc") or shutil.which("nvcc", path=os.pathsep.join(places))


def _tool(ident: str, name: str, wanted: str, *, needed: bool) -> Checked:
    """One program on PATH in one version."""
    expected = f"{name} {wanted}".strip()
    if wanted == "unknown":
        return Checked(id=ident, status="unknown", expected=name, reason="the lock says that its version is unknown")
    program = None if "/" in name else _nvcc() if name == "nvcc" else shutil.which(name)
    if program is None:
        there = ", ".join(each for each in _COMPILERS if shutil.which(each)) or "none on PATH"
        return Checked(
            id=ident,
            status="failed",
            needed=needed,
            expected=expected,
            got=there,
            reason=f"there is no {name} on PATH",
            todo="install it, or put it on PATH",
        )
    if not wanted:
        return Checked(
            id=ident, status="passed", needed=needed, expected=expected, got=version_said(program) or "it is there"
        )
    return _compared(ident, expected, wanted, program, needed=needed, todo=f"install {expected}, or put it on PATH")


def _compared(ident: str, expected: str, wanted: str, program: str, *, needed: bool, todo: str) -> Checked:
    """The version that a program says against the one that is wanted, as far as that goes: `13.3` takes `13.3.73`."""
    said = version_said(program)
    if said is None:
        why = f"{Path(program).name} does not say its version"
        return Checked(id=ident, status="unknown", needed=needed, expected=expected, reason=why)
    same = said == wanted or said.startswith(f"{wanted}.")
    return Checked(
        id=ident,
        status="passed" if same else "failed",
        needed=needed,
        expected=expected,
        got=f"{Path(program).name} {said}",
        reason="" if same else "it is another version than the lock's",
        todo="" if same else todo,
    )


def version_said(program: str) -> str | None:
    """The version that a program says of itself; None where it says none."""
    answer = ask([program, "--version"])
    if answer.fault:
        return None
    if Path(program).name == "nvcc":
        found = _NVCC.search(answer.text)
        return found[1] if found else None
    lines = answer.text.strip().splitlines()
    line = re.sub(r"\([^()]*\)", " ", lines[0]) if lines else ""  # the distributor's own numbers stand in brackets
    found = _VERSION.search(line)
    return found[1] if found else None
