"""PEP 751 files that hold on any index: names, sizes and hashes of wheels, no URL, no folder, no time."""

from collections.abc import Mapping, Sequence

import tomlkit
from pydantic import ValidationError

from reproducer.documents.sources import Artefact
from reproducer.documents.toml import parse_toml
from reproducer.errors import InvalidDocumentError

CREATED_BY = "penny"
_MACHINES = {"linux-x86_64": "x86_64", "linux-aarch64": "aarch64"}


def render_pylock(packages: Mapping[str, Sequence[Artefact]], *, python: str, platform: str) -> bytes:
    """The bytes of a `pylock.toml`; `path` is the file's name, to be found on whichever index the reader has.

    Args:
        packages: by normalised project name, every wheel that may serve.
        python: minor version, such as `3.11`.
        platform: the lock's platform.
    """
    document = tomlkit.document()
    document.add(tomlkit.comment("Written by `penny lock`; do not edit. `path` is a file name on any package index."))
    document.add("lock-version", "1.0")
    marker = f"sys_platform == 'linux' and platform_machine == '{_MACHINES[platform]}'"
    document.add("environments", [f"{marker} and implementation_name == 'cpython'"])
    document.add("requires-python", f"=={python}.*")
    document.add("created-by", CREATED_BY)
    entries = tomlkit.aot()
    for name in sorted(packages):
        wheels = sorted(packages[name], key=lambda wheel: wheel.filename)
        package = tomlkit.table()
        package.add("name", name)
        package.add("version", wheels[0].version)
        files = tomlkit.aot()
        for wheel in wheels:
            entry = tomlkit.table()
            entry.add("name", wheel.filename)
            entry.add("path", wheel.filename)
            entry.add("size", wheel.size)
            hashes = tomlkit.table()
            hashes.add("sha256", wheel.sha256)
            entry.add("hashes", hashes)
            files.append(entry)
        package.add("wheels", files)
        entries.append(package)
    if packages:
        document.add("packages", entries)
    else:
        document.add("packages", tomlkit.array())
    return tomlkit.dumps(document).encode()


def packages_of(text: str, *, where: str) -> dict[str, tuple[Artefact, ...]]:
    """Every package of a `pylock.toml` that `render_pylock` wrote, with its wheels.

    Raises:
        InvalidDocumentError: not such a file.
    """
    data = parse_toml(text, where=where)
    found = {}
    try:
        for package in data["packages"]:
            found[str(package["name"])] = tuple(
                Artefact(
                    project=package["name"],
                    version=package["version"],
                    filename=wheel["name"],
                    sha256=wheel["hashes"]["sha256"],
                    size=wheel["size"],
                )
                for wheel in package["wheels"]
            )
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise InvalidDocumentError("is no pylock.toml that penny wrote", where=where, why=str(error)) from error
    return found
