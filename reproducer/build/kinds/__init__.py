"""The kinds of build beside `wheel`: what each needs from the machine, and which steps it takes."""

from collections.abc import Mapping

from reproducer.build.kinds.cmake import CMake
from reproducer.build.kinds.command import Command
from reproducer.build.kinds.interface import Kind, Place, Program, Step, wheel_compilers
from reproducer.build.kinds.meson import Meson
from reproducer.build.kinds.nvcc import Nvcc
from reproducer.documents.lock import ComponentKind

KINDS: Mapping[ComponentKind, Kind] = {"cmake": CMake(), "meson": Meson(), "nvcc": Nvcc(), "command": Command()}

__all__ = ["KINDS", "Kind", "Place", "Program", "Step", "wheel_compilers"]
