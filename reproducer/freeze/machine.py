"""The machine under a server: GPUs with the power limit that was asked for and the one that holds, compilers."""

import csv
import io
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reproducer.documents.environment import UNKNOWN, Gpu, Library
from reproducer.documents.lock import Hardware
from reproducer.errors import PennyError

_ASKED = "name,compute_cap,memory.total,power.limit,enforced.power.limit,driver_version"
_COMPILERS = ("cc", "gcc", "g++", "clang", "nvcc")
_VERSION = re.compile(r"(?:release |version |\) )?(\d+\.\d+(?:\.\d+)*)")
_NVCC = re.compile(r"\bV(\d+\.\d+\.\d+)")
_PATIENCE_S = 30
_LARGEST = 1 << 20
_FIELDS = 6


@dataclass(frozen=True)
class Machine:
    """What could be seen of the machine.

    Attributes:
        gpus: those that the server may use.
        driver: of the GPUs; `unknown` where nobody could say.
        compilers: version by program; `none` for one that is not there.
    """

    gpus: tuple[Gpu, ...]
    driver: str
    compilers: Mapping[str, str]

    @property
    def hardware(self) -> Hardware | None:
        """As a lock states it; None where no GPU was seen or they are not all alike."""
        if not self.gpus or len({(each.name, each.compute_capability) for each in self.gpus}) > 1:
            return None
        first = self.gpus[0]
        memory = first.memory_mib
        return Hardware(
            gpu=first.name,
            count=len(self.gpus),
            compute_capability=first.compute_capability,
            memory_gb=None if memory is None else round(memory * (1 << 20) / 1e9, 1),
            power_limit_w=first.enforced_power_limit_w,
            requested_power_limit_w=first.power_limit_w,
        )


def look(environ: Mapping[str, str]) -> Machine:
    """Look at this machine as a process with that environment sees it."""
    gpus, driver = _gpus(environ.get("CUDA_VISIBLE_DEVICES"))
    return Machine(gpus, driver, {name: _compiler(name) for name in _COMPILERS})


def _gpus(visible: str | None) -> tuple[tuple[Gpu, ...], str]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return (), UNKNOWN
    out = _said([program, f"--query-gpu={_ASKED}", "--format=csv,noheader,nounits"])
    rows = [[each.strip() for each in row] for row in csv.reader(io.StringIO(out)) if len(row) == _FIELDS]
    if visible is not None and re.fullmatch(r"\d+(,\d+)*", visible):
        chosen = [int(each) for each in visible.split(",")]
        rows = [rows[index] for index in chosen if index < len(rows)]
    gpus = tuple(
        Gpu(
            name=_text(name),
            compute_capability=_text(capability),
            memory_mib=_number(memory),
            power_limit_w=_number(asked),
            enforced_power_limit_w=_number(holds),
        )
        for name, capability, memory, asked, holds, _ in rows
    )
    return gpus, _text(rows[0][-1]) if rows else UNKNOWN


def _text(field: str) -> str:
    return field if field and field.isprintable() and not field.startswith("[") else UNKNOWN


def _number(field: str) -> int | float | None:
    try:
        value = float(field)
    except ValueError:
        return None
    return int(value) if value.is_integer() else value


def _compiler(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        return "none"
    out = _said([program, "--version"])
    found = _NVCC.search(out) if name == "nvcc" else _VERSION.search(out.split("\n", 1)[0].rpartition(") ")[2])
    return found[1] if found else UNKNOWN


def _said(command: list[str]) -> str:
    """What a program of the machine says; empty where it fails."""
    try:
        ran = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_S, cwd="/", check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return ran.stdout[:_LARGEST].decode("utf-8", "replace") if ran.returncode == 0 else ""


def toolchain_compiler(compilers: Mapping[str, str]) -> str:
    """The C compiler that code of the runtime finds when it compiles at run time."""
    return next(
        (f"{name} {version}" for name, version in compilers.items() if version not in ("none", UNKNOWN)), "none"
    )


def libraries(mapped: tuple[str, ...], places: Mapping[Path, Mapping[str, str]]) -> tuple[Library, ...]:
    """The shared libraries among the files that a process had in memory.

    Args:
        mapped: files of the process.
        places: for every folder of packages, the project that each of its files belongs to.
    """
    found: dict[tuple[str, str, str], Library] = {}
    for text in mapped:
        name = os.path.basename(text)  # noqa: PTH119  text of the kernel, with a note behind a deleted file
        if not re.search(r"\.so(\.|$)", name) or not name.isprintable():
            continue
        library = _library(Path(text), name, places)
        found[library.owner, library.name, library.build_id] = library
    return tuple(found[key] for key in sorted(found))


def _library(path: Path, name: str, places: Mapping[Path, Mapping[str, str]]) -> Library:
    owner = "system"
    for place, owners in places.items():
        if path.is_relative_to(place):
            owner = owners.get(path.relative_to(place).as_posix(), UNKNOWN)
    from reproducer.binaries.elf import is_elf, read_elf
    from reproducer.binaries.fatbin import architectures_of
    from reproducer.binaries.reading import MalformedError, opened

    try:
        with opened(path) as window:
            build_id = read_elf(window).build_id if is_elf(window) else None
    except (PennyError, MalformedError):
        return Library(name=name, owner=owner, build_id=UNKNOWN, architectures=UNKNOWN)
    try:
        architectures = architectures_of(path)
    except (PennyError, MalformedError):
        return Library(name=name, owner=owner, build_id=build_id or UNKNOWN, architectures=UNKNOWN)
    return Library(name=name, owner=owner, build_id=build_id or UNKNOWN, architectures=architectures)


def build_id_of(path: Path) -> str:
    """The build id of a program; `unknown` where it has none or cannot be read."""
    return _library(path, path.name or UNKNOWN, {}).build_id
