"""PEP 751 files that hold on any index: names, sizes and hashes of wheels, no URL, no folder, no time."""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from reproducer.documents.sources import Artefact
from reproducer.documents.toml import parse_toml
from reproducer.errors import InvalidDocumentError

CREATED_BY = "penny"
_MACHINES = {"linux-x86_64": "x86_64", "linux-aarch64": "aarch64"}


def render_pylock(packages: Mapping[str, Sequence[Artefact]], *, python: str, platform: str) -> bytes:
    """The bytes of a `pylock.toml`; `path` is the file's name, to be found on whichever index the reader has.

    Plain lines, for the patterns of an artefact's values leave nothing to escape and hundreds of packages are common.

    Args:
        packages: by normalised project name, every wheel that may serve.
        python: minor version, such as `3.11`.
        platform: the lock's platform.
    """
    machine = _MACHINES[platform]
    marker = f"sys_platform == 'linux' and platform_machine == '{machine}' and implementation_name == 'cpython'"
    lines = [
        "# Written by `penny lock`; do not edit. `path` is a file name on any package index.",
        'lock-version = "1.0"',
        f'environments = ["{marker}"]',
        f'requires-python = "=={python}.*"',
        f'created-by = "{CREATED_BY}"',
        *([] if packages else ["packages = []"]),
    ]
    for name in sorted(packages):
        wheels = sorted(packages[name], key=lambda wheel: wheel.filename)
        lines += ["", "[[packages]]", f'name = "{name}"', f'version = "{wheels[0].version}"']
        for wheel in wheels:
            lines += ["", "[[packages.wheels]]", f'name = "{wheel.filename}"', f'path = "{wheel.filename}"']
            lines += [f"size = {wheel.size}", "", "[packages.wheels.hashes]", f'sha256 = "{wheel.sha256}"']
    return "".join(f"{line}\n" for line in lines).encode()


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
