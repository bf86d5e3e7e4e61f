"""The table of cases in `docs/cases.md` names tests that are there, for every case."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [line for line in (ROOT / "docs" / "cases.md").read_text("utf-8").splitlines() if line.startswith("| R")]
CASES = {line.split("|")[1].strip(): re.findall(r"`(tests/[^`]+)`", line) for line in ROWS}


def test_every_case() -> None:
    """R1 to R14, each once, in order."""
    assert [line.split("|")[1].strip() for line in ROWS] == [f"R{number}" for number in range(1, 15)]


@pytest.mark.parametrize("case", CASES)
def test_its_tests_are_there(case: str) -> None:
    """Each case names a test, and each name is a function in that file that asserts or expects an error."""
    assert CASES[case]
    for each in CASES[case]:
        path, name = each.split("::")
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        (found,) = (part for part in tree.body if isinstance(part, ast.FunctionDef) and part.name == name)
        assert any(isinstance(part, ast.Assert) for part in ast.walk(found)) or "raises" in ast.unparse(found), each
