"""One run of nvcc: `arguments` name the sources and where the cubin, fatbin, PTX or shared library goes.

What is compiled for comes from the component's `architectures` alone. nvcc names its temporary files after its
process and writes some of those names into what it makes; with `--keep` they follow the source's name instead.
"""

from pathlib import Path

from reproducer.build.kinds.interface import Place, Program, Step, compilers, device_compiler, fill
from reproducer.documents.lock import Component
from reproducer.errors import InvalidDocumentError

_DECIDED = frozenset(
    {
        *("-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code"),
        *("-ccbin", "--compiler-bindir", "-t", "-threads", "--threads", "-keep", "--keep", "-keep-dir", "--keep-dir"),
    }
)


class Nvcc:
    """The kind `nvcc`."""

    def programs(self, component: Component) -> tuple[Program, ...]:
        """The compiler for device code and those for the host."""
        return (*device_compiler(component), *compilers(component))

    def steps(self, component: Component, place: Place) -> tuple[Step, ...]:
        """One compilation."""
        where = f"components.{component.name}"
        asked = component.arguments or ()
        for argument in asked:
            if argument.partition("=")[0] in _DECIDED:
                raise InvalidDocumentError(
                    f"the arguments name {argument.partition('=')[0]}",
                    where=where,
                    why="architectures, host compiler, jobs and temporary files follow from the component's other keys",
                )
        command = [str(place.tools["nvcc"]), "-ccbin", str(place.tools["c++"])]
        command += [gencode(each) for each in component.architectures or ()]
        command += ["--keep", f"--keep-dir={place.build}", f"--threads={place.jobs}"]
        command += [f"-Xcompiler={flag}" for flag in place.flags]
        return (Step("compiling", (*command, *fill(asked, place, where=where)), place.source),)

    def installed(self, component: Component, place: Place) -> Path:  # noqa: ARG002  the protocol's shape
        """The output folder itself."""
        return place.output


def gencode(architecture: str) -> str:
    """The option that compiles for one architecture: machine code for `sm_…`, PTX for `compute_…`."""
    number = architecture.partition("_")[2]
    return f"-gencode=arch=compute_{number},code={architecture}"
