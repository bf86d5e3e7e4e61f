"""What git calls for a lock: `penny git-diff` as `diff.penny.command`, `penny git-textconv` as `diff.penny.textconv`.

Git takes any exit status but 0 for the death of its helper and stops, so a lock that cannot be read is told in words.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reproducer.cli.front import Front
from reproducer.errors import PennyError

if TYPE_CHECKING:
    from reproducer.documents.lock import Lock

_ARGUMENTS = 7


def git_diff(
    arguments: Annotated[
        list[str], typer.Argument(help="What git passes: PATH OLD-FILE OLD-HEX OLD-MODE NEW-FILE NEW-HEX NEW-MODE.")
    ],
) -> None:
    """Show the difference of two locks to git, as its external diff."""
    from reproducer.cli.show_diff import printable, shown
    from reproducer.difference.diff import diff
    from reproducer.difference.versions import opened_version

    front = Front(as_json=False, quiet=False, verbose=False)
    path = Path(arguments[0])
    name = printable(str(path))
    if len(arguments) < _ARGUMENTS:  # git passes the path alone where a merge left several versions
        front.write(f"penny diff {name}: unmerged\n")
        return
    old, new = Path(arguments[1]), Path(arguments[4])
    for file, word in ((old, "added"), (new, "removed")):
        if str(file) == "/dev/null":
            front.write(f"penny diff {name}: {word}\n")
            return
    try:
        result = diff(opened_version(old, path), opened_version(new, path))
    except PennyError as error:
        front.write(f"penny diff {name}: cannot be compared: {printable(str(error))}\n")
        return
    front.write(f"penny diff {name}\n")
    front.emit(result.content(), shown(result))


def git_textconv(file: Annotated[Path, typer.Argument(help="The version of the lock that git shows.")]) -> None:
    """Print a lock one fact a line, sorted, with the class of each; what is no lock as it stands."""
    from reproducer.cli.show_diff import printable
    from reproducer.documents.lock import Lock
    from reproducer.documents.toml import read_document, read_text

    front = Front(as_json=False, quiet=False, verbose=False)
    try:
        lines = _facts(read_document(Lock, file, what="lock"))
    except PennyError:
        lines = [printable(line) for line in read_text(file, what="lock").split("\n")]
    front.write("".join(f"{line}\n" for line in lines))


def _facts(lock: "Lock") -> list[str]:
    import json

    from reproducer.cli.show_diff import printable
    from reproducer.identity.factors import name_of
    from reproducer.identity.namespace import Reading, namespace_of

    reading = Reading(lock)
    facts = sorted(
        f"{name_of(path)} = {json.dumps(fact.plain(), ensure_ascii=False)}  [{reading.meanings[path].consequence}]"
        for path, fact in reading.facts.items()
    )
    return [f"namespace {namespace_of(reading).name}", *map(printable, facts)]
