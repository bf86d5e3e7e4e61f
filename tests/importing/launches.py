"""Launches in, manifests out: what the tests of this folder share."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reproducer.documents.manifest import Manifest
from reproducer.documents.toml import parse_toml
from reproducer.importing.launch import Asked, of_file, of_text, of_words
from reproducer.importing.placing import Choices, Placed, place
from reproducer.importing.render import render

NOWHERE = Path("/srv/none")
NO_VARIABLES: Mapping[str, str] = {}


@dataclass(frozen=True)
class Imported:
    """A manifest that was written and read back, and what was left open."""

    manifest: Manifest
    text: str
    placed: Placed

    @property
    def without_place(self) -> dict[str, str]:
        """What has no place, and why."""
        return {each.text: each.why for each in self.placed.unmapped}

    @property
    def open(self) -> dict[str, str]:
        """What a person must decide, and why."""
        return {each.key: each.why for each in self.placed.unknown}


class WasAskedError(Exception):
    """Reading was not enough; the message is the reason."""


def refuse(why: str) -> None:
    """Nobody accepts that a script is run."""
    raise WasAskedError(why)


def accept(why: str) -> None:
    """Everybody accepts it."""
    assert why


def asked(
    *, run: bool = False, pick: int | None = None, service: str | None = None, env: Mapping[str, str] = NO_VARIABLES
) -> Asked:
    """How to import."""
    return Asked(accept if run else refuse, env, service, pick)


def text(line: str, choices: Choices | None = None, folder: Path = NOWHERE) -> Imported:
    """A command line as one text."""
    return _written(place(of_text(line, asked(), folder), choices or Choices()))


def words(*given: str, choices: Choices | None = None) -> Imported:
    """A command line as words."""
    return _written(place(of_words(given, asked(), NOWHERE), choices or Choices()))


def file(path: Path, how: Asked | None = None, choices: Choices | None = None) -> Imported:
    """A script, a compose file or a unit."""
    return _written(place(of_file(path, how or asked()), choices or Choices()))


def _written(placed: Placed) -> Imported:
    rendered = render(placed)
    return Imported(Manifest.from_data(parse_toml(rendered, where="manifest"), where="manifest"), rendered, placed)
