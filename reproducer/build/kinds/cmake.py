"""Projects that CMake builds: configured, built with Ninja and installed below one folder.

The prefix is the same on every machine and leads nowhere: what is installed must find its files from where it lies.
`DESTDIR` leads the installation to the output folder, so a rule that installs to an absolute path is seen.
"""

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

PREFIX = "/penny"


class CMake:
    """The kind `cmake`; `arguments` are options of the configuring step."""

    def programs(self, component: Component) -> tuple[Program, ...]:
        """CMake, Ninja and the compilers."""
        tools = (Program("cmake", "cmake"), Program("ninja", "ninja"))
        return (*tools, *compilers(component), *device_compiler(component))

    def steps(self, component: Component, place: Place) -> tuple[Step, ...]:
        """Configure, build, install."""
        cmake = str(place.tools["cmake"])
        asked = fill(component.arguments or (), place, where=f"components.{component.name}")
        configure = [cmake, "-G", "Ninja", "-S", str(place.source), "-B", str(place.build)]
        configure += [f"-DCMAKE_MAKE_PROGRAM={place.tools['ninja']}"]
        configure += [f"-DCMAKE_INSTALL_PREFIX={PREFIX}/{component.name}", "-DCMAKE_INSTALL_LIBDIR=lib"]
        # A path of this build in a library is overwritten on installation, and its length would stay.
        configure += ["-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON"]
        # Packages that people registered in their home, and git submodules, are nobody's input.
        configure += ["-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF", "-DCMAKE_FIND_USE_SYSTEM_PACKAGE_REGISTRY=OFF"]
        if component.architectures:
            configure += [f"-DCMAKE_CUDA_ARCHITECTURES={cmake_architectures(component.architectures)}"]
        variables = compiler_variables(component, place)
        jobs = f"--parallel={place.jobs}"
        return (
            Step("configuring", (*configure, *asked), place.source, variables),
            Step("compiling", (cmake, "--build", str(place.build), jobs), place.build, variables),
            Step(
                "installing",
                (cmake, "--install", str(place.build)),
                place.build,
                {**variables, "DESTDIR": str(place.output)},
            ),
        )

    def installed(self, component: Component, place: Place) -> Path:
        """The prefix below the output folder."""
        return place.output / PREFIX.lstrip("/") / component.name


def cmake_architectures(architectures: tuple[str, ...]) -> str:
    """A list of architectures as CMake writes it: `sm_90` is `90-real`, `compute_120` is `120-virtual`."""
    kinds = {"sm": "real", "compute": "virtual"}
    split = (each.partition("_") for each in architectures)
    return ";".join(f"{number}-{kinds[kind]}" for kind, _, number in split)
