"""Projects that Meson builds: set up, compiled with Ninja and installed below one folder, as those of CMake are."""

from pathlib import Path

from reproducer.build.kinds.cmake import PREFIX
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


class Meson:
    """The kind `meson`; `arguments` are options of `meson setup`."""

    def programs(self, component: Component) -> tuple[Program, ...]:
        """Meson, Ninja and the compilers."""
        tools = (Program("meson", "meson"), Program("ninja", "ninja"))
        return (*tools, *compilers(component), *device_compiler(component))

    def steps(self, component: Component, place: Place) -> tuple[Step, ...]:
        """Set up, compile, install."""
        meson = str(place.tools["meson"])
        asked = fill(component.arguments or (), place, where=f"components.{component.name}")
        setup = [meson, "setup", str(place.build), str(place.source), f"--prefix={PREFIX}/{component.name}"]
        setup += ["--wrap-mode=nodownload"]
        # Meson's own choice follows the distribution that the machine runs.
        if not any(each.startswith(("-Dlibdir", "--libdir")) for each in asked):
            setup += ["--libdir=lib"]
        variables = {**compiler_variables(component, place), "NINJA": str(place.tools["ninja"])}
        compile_ = (meson, "compile", "-C", str(place.build), "-j", str(place.jobs))
        return (
            Step("setting up", (*setup, *asked), place.source, variables),
            Step("compiling", compile_, place.build, variables),
            Step(
                "installing",
                (meson, "install", "-C", str(place.build), "--no-rebuild"),
                place.build,
                {**variables, "DESTDIR": str(place.output)},
            ),
        )

    def installed(self, component: Component, place: Place) -> Path:
        """The prefix below the output folder."""
        return place.output / PREFIX.lstrip("/") / component.name
