"""The option by which `penny fetch` is told where repositories lie on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from reproducer.errors import UsageError

RepositoriesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--repository",
        metavar="NAME=PATH",
        help="A git repository on this machine that has a component's commit, or a submodule's (NAME/PATH=PATH); "
        "may be given again.",
    ),
]


def named_repositories(options: list[str] | None) -> dict[str, Path]:
    """The places of `--repository NAME=PATH`, by name.

    Raises:
        UsageError: not of that form, one name twice, or nothing is there.
    """
    found: dict[str, Path] = {}
    for option in options or ():
        name, equals, place = option.partition("=")
        if not (name and equals and place):
            raise UsageError(f"--repository {option!r} is not of the form NAME=PATH")
        if name in found:
            raise UsageError(f"--repository names {name!r} twice")
        path = Path(place).expanduser()
        if not path.is_dir():
            raise UsageError("there is no folder here", where=str(path), todo="correct --repository")
        found[name] = path
    return found
