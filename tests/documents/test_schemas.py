"""The published JSON Schemas are current, and say yes to what penny writes."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from reproducer.documents.schemas import rendered
from reproducer.documents.toml import parse_toml

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(rendered()))
def test_schemas_are_current(name: str) -> None:
    """The committed schema is what the documents give: run `python -m reproducer.documents.schemas` if it is not."""
    assert rendered()[name] == (ROOT / "docs" / "schemas" / name).read_bytes()


def test_no_other_schemas_lie_there() -> None:
    """Every file in the folder is the schema of a document."""
    assert sorted(rendered()) == sorted(path.name for path in (ROOT / "docs" / "schemas").glob("*.json"))


def test_module_writes_them(tmp_path: Path) -> None:
    """`python -m reproducer.documents.schemas FOLDER` writes every schema."""
    subprocess.run(
        [sys.executable, "-m", "reproducer.documents.schemas", str(tmp_path)], check=True, capture_output=True
    )
    assert rendered() == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("lock-1.json", "docs/vectors/lock-digest.toml"),
        ("manifest-1.json", "manifests/smollm2-135m-sglang-cpu.toml"),
    ],
)
def test_schema_accepts_the_documents(schema: str, path: str) -> None:
    """Another program that has only the schema reads our documents."""
    content = json.loads((ROOT / "docs" / "schemas" / schema).read_bytes())
    jsonschema.Draft202012Validator.check_schema(content)
    jsonschema.validate(parse_toml((ROOT / path).read_text("utf-8"), where=path), content)
