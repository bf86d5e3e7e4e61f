"""Whatever lock it is: what has no meaning changes no namespace, and everything else changes it."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.difference.diff import diff
from reproducer.documents.lock import Lock
from reproducer.identity.classes import rule
from reproducer.identity.factors import Factor
from reproducer.identity.namespace import Reading, derive
from reproducer.identity.tables import table_of
from tests.identity.factory import lock_data, lock_of

BASE = derive(lock_of(lock_data()))
TABLE = table_of("sglang")
# `HOME` and its like are the caller's; a lock may set them, and nothing changes.
NEUTRAL_ARGUMENTS = sorted(name for name, meaning in TABLE.arguments.items() if meaning.neutral)
NEUTRAL_VARIABLES = sorted(name for name, meaning in TABLE.variables.items() if meaning.neutral)
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12).filter(
    lambda text: text.strip().casefold() not in ("auto", "unknown") and "{" not in text and "/" not in text
)
SCALARS = st.one_of(WORDS, st.integers(-(2**40), 2**40), st.floats(allow_nan=False, allow_infinity=False))
FOLDERS = st.lists(st.from_regex(r"[a-z0-9_][a-z0-9._]{0,8}", fullmatch=True), min_size=1, max_size=3).map("/".join)


def lock_or_none(data: dict[str, Any]) -> Lock | None:
    """A lock, or None where the edit made something that no lock may say."""
    try:
        return lock_of(data)
    except Exception:  # noqa: BLE001  whatever refuses it, it is no lock
        return None


def shuffled(value: Any, random: Any, key: str = "") -> Any:
    """The same data in another order, wherever order has no meaning."""
    if isinstance(value, dict):
        items = list(value.items())
        random.shuffle(items)
        return {name: shuffled(inner, random, name) for name, inner in items}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        entries = [shuffled(each, random) for each in value]
        if key not in ("patches", "thresholds"):
            random.shuffle(entries)
        return entries
    return value


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False))
def test_order_never_counts(random: Any) -> None:
    """Of keys, arguments, variables, components, environments, checkpoints, files, outputs and measures."""
    assert derive(lock_of(shuffled(lock_data(), random))).document() == BASE.document()


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from(NEUTRAL_ARGUMENTS), SCALARS, max_size=6),
    st.dictionaries(st.sampled_from(NEUTRAL_VARIABLES), WORDS, max_size=6),
)
def test_neutral_arguments_and_variables_never_count(arguments: dict[str, Any], variables: dict[str, str]) -> None:
    """Any of those that the engine's table calls neutral, with any value."""
    data = lock_data()
    data["launch"]["arguments"].update(arguments)
    data["launch"]["environment"].update(variables)
    lock = lock_or_none(data)

    if lock is not None:
        assert derive(lock).document() == BASE.document()
        assert diff(lock_of(lock_data()), lock).same_namespace


@settings(max_examples=100, deadline=None)
@given(FOLDERS, FOLDERS)
def test_folders_never_count(one: str, two: str) -> None:
    """Where patches, locks, scripts, sources and lists lie beside the lock."""
    data = lock_data()
    for component in data["components"]:
        for index, patch in enumerate(component.get("patches", ())):
            patch["path"] = f"{one}/{two}/{index}.patch"
        if component["source"]["kind"] == "local":
            component["source"]["path"] = two
        for index, output in enumerate(component["outputs"]):
            output["members"]["path"] = f"{one}/{component['name']}.{index}.members"
    for environment in data["environments"]:
        environment["pylock"]["path"] = f"{two}/{environment['name']}.toml"
    for checkpoint in data["checkpoints"]:
        checkpoint["conversion"]["script"]["path"] = f"{one}/convert.py"
    data["engine"]["arguments"]["path"] = f"{one}/arguments.json"
    data["qualification"]["reference"]["path"] = f"{two}/reference.json"
    data["manifest"] = f"{one}/manifest.toml"

    assert derive(lock_of(data)).document() == BASE.document()


def places(value: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of every plain value."""
    if isinstance(value, dict):
        return [place for key, inner in value.items() for place in places(inner, (*where, key))]
    if isinstance(value, list):
        return [place for index, inner in enumerate(value) for place in places(inner, (*where, index))]
    return [where]


ALL = places(lock_data())


@st.composite
def other(draw: st.DrawFn, value: Any) -> Any:
    """Another value that might stand in its place: of its own type, or of another one."""
    if isinstance(value, bool):
        return draw(st.sampled_from([not value, int(value), str(value)]))
    if isinstance(value, int | float):
        return draw(st.one_of(st.integers(0, 2**40), st.just(float(value)), st.just(str(value))))
    hexadecimal = len(value) == 64 and not value.strip("0123456789abcdef")
    if hexadecimal:
        return draw(st.text("0123456789abcdef", min_size=64, max_size=64))
    near = [value + "x", value[:-1], value.upper(), value + " ", value.replace("a", "b"), value.replace("1", "2")]
    return draw(st.one_of(st.sampled_from(near), WORDS))


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_any_other_value_of_a_factor_is_another_namespace(data: st.DataObject) -> None:
    """Every plain value of the lock, changed to any other: the namespace differs exactly if it may not be neutral.

    What is expected is worked out from the facts that differ and the rules alone.
    """
    where = data.draw(st.sampled_from(ALL))
    edited = copy.deepcopy(lock_data())
    table = edited
    for step in where[:-1]:
        table = table[step]
    table[where[-1]] = data.draw(other(table[where[-1]]))
    lock = lock_or_none(edited)
    if lock is None:
        return
    one, two = Reading(lock_of(lock_data())), Reading(lock)
    differing = [path for path in {**one.facts, **two.facts} if repr(one.facts.get(path)) != repr(two.facts.get(path))]
    costly = [
        path
        for path in differing
        if any(side.meanings[path].consequence == "cache-identity" for side in (one, two) if path in side.facts)
    ]

    assert (derive(lock).digest != BASE.digest) == bool(costly)
    found = diff(one.lock, lock)
    assert found.same_namespace == (not costly)
    assert any(change.consequence == "cache-identity" for change in found.changes) == bool(costly)


@settings(max_examples=100, deadline=None)
@given(st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True), SCALARS)
def test_an_argument_that_nobody_knows_is_a_factor(name: str, value: Any) -> None:
    """Closed world: any name, any value."""
    edited = lock_data()
    if name in edited["launch"]["arguments"]:
        return
    edited["launch"]["arguments"][name] = value
    lock = lock_or_none(edited)

    if lock is not None and not rule(("launch", "arguments", name), "sglang").neutral:
        assert derive(lock).digest != BASE.digest
        assert isinstance(derive(lock).factors[f"launch.arguments.{TABLE.canonical(name)}"], Factor)
