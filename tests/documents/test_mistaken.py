"""A document where another one belongs, and values that are wrong: said in words, in one line."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import reproducer
from reproducer.documents.base import Document
from reproducer.documents.claims import Claim
from reproducer.documents.lock import Lock
from reproducer.documents.manifest import Manifest
from reproducer.documents.mistaken import DOCUMENTS
from reproducer.documents.opened import open_lock
from reproducer.documents.starter import STARTER
from reproducer.documents.toml import parse_toml, read_document
from reproducer.documents.words import PATTERNS
from reproducer.errors import InvalidDocumentError

OLD = Path(__file__).parents[1] / "data" / "documents"
LOCK = (OLD / "lock-1.toml").read_text("utf-8")
LONGEST_LINE = 300


def said_of(kind: type[Document], path: Path, text: str) -> str:
    """What reading that text as that kind says, behind the file; it is one line that can be read."""
    path.write_text(text, "utf-8")
    with pytest.raises(InvalidDocumentError) as caught:
        read_document(kind, path, what="document")
    said = str(caught.value).replace(str(path), "FILE").replace(str(path.parent), "FOLDER")
    assert said.startswith("FILE: ")
    assert len(said) < LONGEST_LINE
    assert "\n" not in said
    return said


OTHERS = [
    (Lock, STARTER, "is a manifest (penny-manifest/1), and a lock belongs here. `penny lock FILE` makes a lock of it"),
    (Lock, 'format = "penny-receipt/1"\nkind = "build"\n', "is a receipt (penny-receipt/1), and a lock belongs here"),
    (Lock, '{"format": "penny-receipt/1"}', "a lock belongs here. `penny verify FILE` checks it"),
    (Lock, '{"format": "penny-claim/1"}', "is a published claim (penny-claim/1), and a lock belongs here"),
    (Lock, '{"format": "penny-bundle/1"}', "FOLDER/penny.lock.toml is its lock"),
    (Lock, 'lock-version = "1.0"\n[[packages]]\n', "is a list of packages (PEP 751), and a lock belongs here"),
    (Lock, '[project]\nname = "x"\n', "is a pyproject.toml, and a lock belongs here"),
    (Lock, '{"model_type": "llama"}', "is a model's config, and a lock belongs here"),
    (Lock, "#!/bin/sh\necho\n", "is a script. `penny import FILE` makes a manifest of it"),
    (Lock, "a = 1\n", "names no format, and a lock belongs here"),
    (Lock, "[1, 2]", "is no table, and a lock belongs here"),
    (Manifest, LOCK, "is a lock (penny-lock/1), and a manifest belongs here. It was made from "),
    (Manifest, "#!/bin/sh\necho\n", "is a script"),
]


@pytest.mark.parametrize(("kind", "text", "expected"), OTHERS)
def test_another_document_is_named_and_what_takes_it(
    tmp_path: Path, kind: type[Document], text: str, expected: str
) -> None:
    """Another document is one line: what it is, what belongs there, which command takes it."""
    assert expected in said_of(kind, tmp_path / "x", text)


def test_toml_where_json_belongs() -> None:
    """A lock where a claim belongs is no fault of JSON but a lock."""
    with pytest.raises(
        InvalidDocumentError, match=r"x: is a lock \(penny-lock/1\), and a published claim belongs here"
    ):
        Claim.from_json(LOCK, where="x")


def test_file_name_is_quoted_where_it_stands_in_a_command(tmp_path: Path) -> None:
    """A command that is told can be pasted into a shell, whatever the file is called."""
    path = tmp_path / "a $(b).toml"
    path.write_text(STARTER, "utf-8")
    with pytest.raises(InvalidDocumentError) as caught:
        open_lock(path)
    assert f"`penny lock '{path}'`" in str(caught.value)


def test_a_lock_with_a_mistake_is_still_a_lock(tmp_path: Path) -> None:
    """What lacks its format, and is a lock otherwise, is told what it lacks."""
    path = tmp_path / "x.toml"
    path.write_text(LOCK.replace('format = "penny-lock/1"\n', "", 1), "utf-8")
    with pytest.raises(InvalidDocumentError, match="key format: missing"):
        open_lock(path)


def _modules() -> Iterator[str]:
    """Every module of penny but what a runtime's interpreter runs."""
    for found in pkgutil.walk_packages(reproducer.__path__, "reproducer."):
        if not found.name.endswith("__main__"):
            yield found.name


def _kinds() -> Iterator[type[Document]]:
    waiting: list[type[Document]] = [Document]
    while waiting:
        found = waiting.pop()
        waiting += found.__subclasses__()
        yield found


def test_every_kind_of_document_has_a_name() -> None:
    """Every format that penny writes is one that it can name."""
    for name in _modules():
        importlib.import_module(name)
    formats = {
        str(each).partition("/")[0]
        for kind in _kinds()
        if "format" in kind.model_fields and kind.__module__.startswith("reproducer.")
        for each in get_args(kind.model_fields["format"].annotation)
    }
    assert formats == set(DOCUMENTS)


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            yield from _patterns(each)


def test_every_pattern_is_told_in_words() -> None:
    """No regular expression of a document reaches people: each has its words."""
    for name in _modules():
        importlib.import_module(name)
    ours = (kind for kind in _kinds() if kind.__module__.startswith("reproducer.") and kind is not Document)
    found = {pattern for kind in ours for pattern in _patterns(kind.model_json_schema())}
    assert found - PATTERNS.keys() == set()


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (STARTER.replace('name = "', 'name = "Not A Slug ', 1), "key name: must be a short name: at most 64 small"),
        (STARTER.replace('\npython = "', '\npython = "v', 1), "must be a minor version of Python such as 3.11"),
    ],
)
def test_a_value_that_is_wrong_is_told_in_words(manifest: str, expected: str) -> None:
    """Neither a pattern nor a class of Python stands in what a person reads."""
    assert manifest != STARTER
    with pytest.raises(InvalidDocumentError) as caught:
        Manifest.from_data(parse_toml(manifest, where="x"), where="x", source=manifest)
    assert expected in str(caught.value)
    assert "^" not in str(caught.value)
    assert "pattern" not in str(caught.value)


def test_values_are_shown_as_documents_spell_them() -> None:
    """What was got is spelled as in JSON, and what was expected is no class of Python."""
    data = {**parse_toml(STARTER, where="x"), "name": None, "checkpoints": True}
    with pytest.raises(InvalidDocumentError) as caught:
        Manifest.from_data(json.loads(json.dumps(data)), where="x")
    said = str(caught.value)
    assert "key name: must be text, got null" in said
    assert "got true" in said
    assert "None" not in said
    assert "True" not in said
