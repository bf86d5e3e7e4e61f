"""Any other command: `arguments` are the whole list, and what it leaves below `{output}` is what comes out."""

from pathlib import Path

from reproducer.build.kinds.interface import (
    Place,
    Program,
    Step,
    compiler_variables,
    compilers,
    device_compiler,
    fill,
)
from reproducer.documents.lock import Component
from reproducer.errors import InvalidDocumentError

_OWN = "{source}/"


class Command:
    """The kind `command`."""

    def programs(self, component: Component) -> tuple[Program, ...]:
        """The program, unless it is one of the sources, and what compilers there are for it."""
        program = (component.arguments or ("",))[0]
        if not program or ("/" in program and not program.startswith(_OWN)):
            raise InvalidDocumentError(
                "the command's program is neither a name nor a file of its sources",
                where=f"components.{component.name}, key arguments",
                todo="name a program of the build environment or the machine, or {source}/PATH",
            )
        others = (*compilers(component), *device_compiler(component))
        own = () if program.startswith(_OWN) else (Program(program, program),)
        return (*own, *(Program(each.role, each.spelt, needed=False) for each in others if each not in own))

    def steps(self, component: Component, place: Place) -> tuple[Step, ...]:
        """The command."""
        program, *rest = component.arguments or ()
        where = f"components.{component.name}"
        path = fill((program,), place, where=where)[0] if program.startswith(_OWN) else str(place.tools[program])
        variables = compiler_variables(component, place)
        return (Step("running its command", (path, *fill(rest, place, where=where)), place.source, variables),)

    def installed(self, component: Component, place: Place) -> Path:  # noqa: ARG002  the protocol's shape
        """The output folder itself."""
        return place.output
