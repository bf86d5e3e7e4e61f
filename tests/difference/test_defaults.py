"""Defaults that moved between two engines although neither lock names the argument."""

from pathlib import Path
from typing import Any

import pytest

from reproducer.difference.diff import Change, Diff, diff
from reproducer.identity.classes import rule
from tests.difference.beside import SCHEMA, argument, opened, schema, variable
from tests.identity.factory import Edit, sha256


def other_source(data: dict[str, Any]) -> None:
    """The engine of another release."""
    data["components"][0]["source"].update(sha256=sha256("another sdist"), version="0.5.11")


def between(folder: Path, old: bytes, new: bytes, *edits: Edit, before: tuple[Edit, ...] = ()) -> Diff:
    """The difference of two locks whose engines take what two lists say; edits are of the second lock."""
    one = opened(folder / "a", {SCHEMA: old}, *before)
    return diff(one, opened(folder / "b", {SCHEMA: new}, other_source, *edits))


def told(found: Diff) -> dict[str, Change]:
    """The changes of defaults, by name."""
    return {
        change.path.split(".", 1)[1]: change
        for change in found.changes
        if change.path.startswith(("launch.defaults.", "launch.variable_defaults."))
    }


def test_a_default_that_moved_is_a_change(tmp_path: Path) -> None:
    """Of an argument and of a variable, with the class that the engine's table gives the argument, and why."""
    found = told(
        between(
            tmp_path,
            schema(
                argument("chunked-prefill-size", 2048),
                argument("log-requests-level", 1),
                argument("speculative-num-steps", None),
                argument("stream-interval", 1),
                variables=(variable("SGLANG_X", "1"), variable("TMPDIR", "a")),
            ),
            schema(
                argument("chunked-prefill-size", 4096),
                argument("log-requests-level", 2),
                argument("speculative-num-steps", 3),
                argument("stream-interval", 1),
                variables=(variable("SGLANG_X", "2"), variable("TMPDIR", "b")),
            ),
        )
    )

    assert {name: (change.before, change.after) for name, change in found.items()} == {
        "defaults.chunked-prefill-size": (2048, 4096),
        "defaults.log-requests-level": (1, 2),
        "defaults.speculative-num-steps": (None, 3),
        "variable_defaults.SGLANG_X": ("1", "2"),
        "variable_defaults.TMPDIR": ("a", "b"),
    }
    for name, change in found.items():
        part = "arguments" if name.startswith("defaults") else "environment"
        meaning = rule(("launch", part, name.partition(".")[2]), "sglang")
        assert change.consequence == meaning.consequence
        assert change.reason == f"the engine's default moved: {meaning.reason}"
    assert found["defaults.chunked-prefill-size"].consequence == "cache-identity"
    assert found["defaults.log-requests-level"].consequence == "operational"
    assert found["defaults.speculative-num-steps"].detail == "before: unset by default"


@pytest.mark.parametrize("value", [1.0, True, "1", {"expression": "one()"}])
def test_another_type_is_another_default(tmp_path: Path, value: Any) -> None:
    """1, 1.0, true, "1" and what code computes are five defaults."""
    new = argument("x", value)
    if isinstance(value, dict):
        new["default"] = value
    found = told(between(tmp_path, schema(argument("x", 1)), schema(new)))

    assert repr(found["defaults.x"].after) == repr(value)


@pytest.mark.parametrize(
    ("spelt", "value"), [("chunked-prefill-size", 512), ("chunked-prefill", 512), ("no-chunked-prefill-size", True)]
)
@pytest.mark.parametrize("side", [0, 1])
def test_what_a_lock_names_has_no_default(tmp_path: Path, spelt: str, value: Any, side: int) -> None:
    """Under any of its names, in either lock."""
    old, new = (schema(argument("chunked-prefill-size", size, aliases=["chunked-prefill"])) for size in (2048, 4096))

    def naming(data: dict[str, Any]) -> None:
        data["launch"]["arguments"][spelt] = value

    before: tuple[Edit, ...] = (naming,) if side == 0 else ()
    edits: tuple[Edit, ...] = () if side == 0 else (naming,)

    assert not told(between(tmp_path / "named", old, new, *edits, before=before))
    assert list(told(between(tmp_path / "not", old, new))) == ["defaults.chunked-prefill-size"]


def test_what_one_lock_names_shows_the_other_ones_default(tmp_path: Path) -> None:
    """Beside the change of the argument or variable itself, in words."""

    def edit(data: dict[str, Any]) -> None:
        data["launch"]["arguments"].pop("page-size")
        data["launch"]["arguments"]["tp-size"] = 2
        data["launch"]["arguments"]["new-thing"] = 1
        data["launch"]["environment"]["SGLANG_X"] = "5"

    old = schema(argument("page-size"), argument("tp-size", 1), variables=(variable("SGLANG_X", 'a"\n'),))
    new = schema(argument("page-size", 64), argument("tp-size", 1), argument("new-thing", 4))
    details = {change.path: change.detail for change in between(tmp_path, old, new, edit).changes}

    assert details["launch.arguments.page-size"] == "after: the engine's default 64"
    assert details["launch.arguments.tensor-parallel-size"] == "before: the engine's default 1"
    assert details["launch.arguments.new-thing"] == "before: the engine has no such setting"
    assert details["launch.environment.SGLANG_X"] == 'before: the engine\'s default "a\\"\\n"'


def test_the_default_is_told_between_locks_of_one_engine_too(tmp_path: Path) -> None:
    """One list for both."""
    old = schema(argument("tp-size", 1))
    one = opened(tmp_path / "a", {SCHEMA: old})
    two = opened(tmp_path / "b", {SCHEMA: old}, lambda data: data["launch"]["arguments"].update({"tp-size": 2}))

    (change,) = diff(one, two).changes
    assert change.detail == "before: the engine's default 1"


def test_new_arguments_do_not_bury_the_rest(tmp_path: Path) -> None:
    """A hundred that are off unless named cost nothing and have one reason; one that is on keeps its class."""
    new = [argument(f"new-{number}", None if number % 2 else False) for number in range(100)]
    on = [
        argument("new-on", "fast"),
        argument("new-zero", 0),
        {**argument("new-code"), "default": {"expression": "f()"}},
    ]
    forth = between(tmp_path / "forth", schema(argument("x", 1)), schema(argument("x", 1), *new, *on))
    back = between(tmp_path / "back", schema(argument("x", 1), *new, *on), schema(argument("x", 1)))

    for found, what, off in (
        (told(forth), "is new", "new in this engine, off unless named"),
        (told(back), "is gone", "gone from this engine, off unless named"),
    ):
        assert len(found) == 103
        for name, change in found.items():
            if name in ("defaults.new-on", "defaults.new-zero", "defaults.new-code"):
                assert change.consequence == "cache-identity"
                assert change.reason.startswith(f"the engine's default {what}: ")
            else:
                assert (change.consequence, change.reason) == ("cosmetic", off)
            assert "the engine has no such setting" in (change.detail or "")
    assert told(forth)["defaults.new-code"].after == {"expression": "f()"}


def test_an_effective_value_stands_for_a_default(tmp_path: Path) -> None:
    """Where both locks have the same one, what the engine would have taken by itself does not matter."""
    old, new = schema(argument("tp-size", 1)), schema(argument("tp-size", 2))
    change = told(between(tmp_path / "same", old, new))["defaults.tensor-parallel-size"]
    assert change.consequence == "operational"
    assert "the effective value tp_size stands for it" in change.reason

    found = between(tmp_path / "other", old, new, lambda data: data["launch"]["effective"].update(tp_size=2))
    assert told(found)["defaults.tensor-parallel-size"].consequence == "cache-identity"


def test_required_and_ignored_arguments(tmp_path: Path) -> None:
    """A required one cannot be off; one that the engine ignores is as good as gone."""
    found = told(
        between(
            tmp_path,
            schema(argument("dead", 5, ignored=True), argument("dying", 5)),
            schema(
                argument("dead", 6, ignored=True), argument("dying", 5, ignored=True), argument("must", required=True)
            ),
        )
    )

    assert sorted(found) == ["defaults.dying", "defaults.must"]
    assert found["defaults.dying"].after is None
    assert found["defaults.must"].after == {"required": True}
    assert found["defaults.must"].consequence == "cache-identity"


def test_equal_namespaces_have_no_change_of_cache_identity(tmp_path: Path) -> None:
    """A list that differs although the engines do not was made up; it is said, and changes nothing."""
    one = opened(tmp_path / "a", {SCHEMA: schema(argument("x", 1))})
    two = opened(tmp_path / "b", {SCHEMA: schema(argument("x", 2))})
    found = diff(one, two)

    assert found.same_namespace
    assert {change.consequence for change in found.changes} == {"cosmetic"}
    assert "one was not read from its engine" in found.not_compared[0]


@pytest.mark.parametrize(
    "case", ["first none", "second none", "neither", "bare", "missing", "broken", "foreign", "vllm"]
)
def test_why_defaults_were_not_compared(tmp_path: Path, case: str) -> None:
    """Each reason is said, and no default is told."""
    lists = {"broken": b"{", "foreign": schema(argument("x", 2), engine="vllm")}

    def none(data: dict[str, Any]) -> None:
        del data["engine"]["arguments"]

    def vllm(data: dict[str, Any]) -> None:
        data["engine"]["kind"] = "vllm"

    one = opened(
        tmp_path / "a", {SCHEMA: schema(argument("x", 1))}, *([none] if case in ("first none", "neither") else [])
    )
    two = opened(
        tmp_path / "b",
        {SCHEMA: lists.get(case, schema(argument("x", 2)))},
        other_source,
        *([none] if case in ("second none", "neither") else []),
        *([vllm] if case == "vllm" else []),
    )
    if case == "missing":
        (two.folder / SCHEMA).unlink()
    found = diff(one.lock, two.lock) if case == "bare" else diff(one, two)

    assert not told(found)
    reasons = [reason for reason in found.not_compared if reason.startswith("defaults of the engine's arguments: ")]
    assert len(reasons) == 1
    assert {
        "first none": "the first lock lists none",
        "second none": "the second lock lists none",
        "neither": "neither lock lists them",
        "bare": "only the locks were given",
        "missing": "cannot be read",
        "broken": "is not JSON",
        "foreign": "is one of vllm",
        "vllm": "sglang and vllm share none",
    }[case] in reasons[0]


def test_one_engine_says_nothing_of_defaults(tmp_path: Path) -> None:
    """Not even where no lock lists any."""

    def none(data: dict[str, Any]) -> None:
        del data["engine"]["arguments"]

    def renamed(data: dict[str, Any]) -> None:
        data["name"] = "renamed"

    found = diff(opened(tmp_path / "a", {}, none), opened(tmp_path / "b", {}, none, renamed))
    assert found.not_compared == ()
    assert [change.path for change in found.changes] == ["name"]
