"""What `penny init` writes offers every kind of source, each as it may be taken over."""

import re
from typing import get_args

from reproducer.documents.manifest import CheckpointRequest, ComponentRequest, Manifest
from reproducer.documents.starter import STARTER
from reproducer.documents.toml import parse_toml

SOURCE = re.compile(r"^(# )?source = ")


def kinds(model: type[ComponentRequest] | type[CheckpointRequest]) -> set[str]:
    """The kinds of source that a table takes."""
    return {
        get_args(each.model_fields["kind"].annotation)[0] for each in get_args(model.model_fields["source"].annotation)
    }


def taken_over(number: int) -> str:
    """The starter with the commented source of a line in place of the one that counts, and what belongs to it."""
    lines = STARTER.splitlines()
    active = max(index for index in range(number) if lines[index].startswith("source = "))
    lines[active] = ""
    lines[number] = lines[number].removeprefix("# ")
    rest = number + 1
    while rest < len(lines) and lines[rest].startswith("#") and not lines[rest].startswith("# or "):
        lines[rest] = lines[rest].removeprefix("#").removeprefix(" ")
        rest += 1
    if 'kind = "wheel",' in lines[number]:
        lines = [line for line in lines if not line.startswith("build_environment")]
    return "\n".join(lines)


def test_every_kind_of_source_is_offered() -> None:
    """A hub's repository, a wheel's file, git, a folder, a wheel, an sdist: each stands there and makes a manifest."""
    found = {"components": set[str](), "checkpoints": set[str]()}
    for number, line in enumerate(STARTER.splitlines()):
        if SOURCE.match(line):
            text = STARTER if line.startswith("source") else taken_over(number)
            manifest = Manifest.from_data(parse_toml(text, where="starter"), where="starter", source=text)
            found["components"].add(manifest.components[0].source.kind)
            found["checkpoints"].add(manifest.checkpoints[0].source.kind)
    assert found == {"components": kinds(ComponentRequest), "checkpoints": kinds(CheckpointRequest)}


def test_what_counts_at_first_is_a_repository_of_a_hub() -> None:
    """A newcomer's model lies on a hub."""
    manifest = Manifest.from_data(parse_toml(STARTER, where="starter"), where="starter", source=STARTER)
    assert manifest.checkpoints[0].source.kind == "hub"
