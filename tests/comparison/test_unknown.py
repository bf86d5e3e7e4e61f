"""What is unknown never lets a comparison pass as controlled, however it came to be unknown."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reproducer.comparison.comparing import compare_sides
from reproducer.comparison.sides import read_side
from reproducer.documents.receipts import LaunchReceipt
from reproducer.errors import Outcome
from tests.comparison.arms import Arm, Edit, arm, in_turn, relocked, written
from tests.comparison.test_compare import CLAIMS, FACTOR, compared, named, page_size, two


def _launched(folder: Path, name: Any, edit: Edit, second: Any) -> Arm:
    """An arm whose second launch receipt is another one."""
    made = arm(relocked(folder / name, edit), name, more={"attention_backend": "torch_native"})
    launches = (made.launches[0], second(made.launches[1]))
    named_by = tuple(each.digest for each in launches)
    measures = tuple(each.model_copy(update={"launch_receipts": named_by}) for each in made.measures)
    return Arm(made.opened, made.build, launches, measures)


def test_receipts_that_name_no_launch(tmp_path: Path) -> None:
    """Nobody knows what such servers resolved their arguments to."""
    first, second = (each.changed(launch_receipts=(), boots=None) for each in two(tmp_path))
    found = compared((first, second), factors=[FACTOR])
    assert (found.kind, named(found)) == ("directional", {"effective configuration": "unknown"})


def test_a_value_that_one_boot_did_not_show(tmp_path: Path) -> None:
    """What one boot showed says nothing of the other."""

    def silent(launch: LaunchReceipt) -> LaunchReceipt:
        kept = tuple(each for each in launch.effective if each.name != "attention_backend")
        return launch.model_copy(update={"effective": kept})

    first = _launched(tmp_path, "A", lambda _: None, silent)
    second = _launched(tmp_path, "B", page_size, silent)
    found = compared(in_turn(first, second), factors=[FACTOR])
    assert named(found) == {"launch.effective.attention_backend": "unknown"}


def test_one_lock_that_is_not_at_hand(tmp_path: Path) -> None:
    """Both sides name one lock: with it nothing differs, without it nobody knows what it leaves unknown."""
    sides = in_turn(*(arm(relocked(tmp_path / name, lambda _: None), name) for name in ("A", "B")))
    first, second = (read_side(written(each, each.opened.folder)) for each in sides)
    assert compare_sides(first, second).kind == "controlled"
    assert compare_sides(first, replace(second, opened=None)).kind == "controlled"
    found = compare_sides(replace(first, opened=None), replace(second, opened=None))
    assert (found.kind, named(found)) == ("directional", {"lock": "unknown"})


def test_a_declared_factor_that_is_unknown_on_one_side(tmp_path: Path) -> None:
    """From unknown to known nobody can say what changed: it is no factor, and it is listed."""

    def unknown(data: dict[str, Any]) -> None:
        data["launch"]["effective"]["dtype"] = "unknown"

    first, second = arm(relocked(tmp_path / "A", unknown), "A"), arm(relocked(tmp_path / "B", lambda _: None), "B")
    found = compared(in_turn(first, second), factors=["launch.dtype"])
    assert (found.factor, found.kind, named(found)) == ((), "directional", {"launch.effective.dtype": "unknown"})
    assert found.outcome(asked=True) is Outcome.NOT_CHECKED


@pytest.mark.parametrize("known", [{}, {"lock": "abc", "noise": 0}])
def test_a_claim_cannot_state_what_only_receipts_show(tmp_path: Path, known: dict[str, Any]) -> None:
    """What a publisher calls its lock is unknown all the same, and no comparison of claims is controlled."""
    path = tmp_path / "claim.json"
    data = json.loads((CLAIMS / "public-tp1-mtp3.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps(data | {"conditions": {"known": known, "unknown": []}}), encoding="utf-8")
    side = read_side(path)
    found = compare_sides(side, side)
    assert named(found)["lock"] == "unknown"
    assert replace(found, differing=()).kind == "directional"
