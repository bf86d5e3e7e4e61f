"""The namespace is a function of every fact that is not neutral, and of nothing else."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from reproducer.difference.diff import diff
from reproducer.documents.lock import Lock
from reproducer.documents.opened import open_lock
from reproducer.errors import InvalidDocumentError
from reproducer.identity.factors import flatten, name_of
from reproducer.identity.namespace import derive
from tests.identity.factory import lock_of, sha256, whole_data

ROOT = Path(__file__).parents[2]
REPEATED = {"kv-cache-dtype": "kv_cache_dtype", "dtype": "dtype", "page-size": "page_size"}

# Exactly these facts of the test lock are neutral. A fact that becomes neutral must be added here on purpose.
NEUTRAL = [
    "format",
    "name",
    "manifest",
    "toolchain.driver",
    "hardware.memory_gb",
    "hardware.power_limit_w",
    "hardware.requested_power_limit_w",
    "adopted.distributions",
    "adopted.environment.path",
    "adopted.environment.size",
    "adopted.observed.*",
    "engine.arguments.*",
    "build.source_date_epoch",
    "components.*.source.path",
    "components.*.source.url",
    "components.*.source.asked",
    "components.*.source.submodules.*.url",
    "components.*.source.changes.path",
    "components.*.size",
    "components.*.jobs",
    "components.*.patches.*.path",
    "components.*.outputs.*.sha256",
    "components.*.outputs.*.members.path",
    "environments.*.pylock.path",
    "environments.*.pylock.size",
    "environments.*.packages",
    "environments.*.indexes",
    "environments.conversion.pylock.sha256",
    "checkpoints.*.source.*",
    "checkpoints.*.conversion.*",
    "checkpoints.*.files.*.size",
    "checkpoints.*.files.*.blob",
    'checkpoints.*.files."generation_config.json".sha256',
    'checkpoints.*.files."tokenizer_config.json".sha256',
    "launch.arguments.dtype",
    "launch.arguments.kv-cache-dtype",
    "launch.arguments.page-size",
    "launch.arguments.hicache-ratio",
    "launch.effective.hicache_ratio",
    "launch.arguments.log-level",
    "launch.arguments.enable-metrics",
    "launch.environment.OMP_WAIT_POLICY",
    "launch.environment.PYTHONWARNINGS",
    "launch.files.*.path",
    "launch.files.*.size",
    "launch.readiness.*",
    "qualification.*",
]


def is_neutral(name: str) -> bool:
    """Whether the list above has a name."""
    return any(fnmatchcase(name, pattern) for pattern in NEUTRAL)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every scalar, and every list of scalars, of a document with its place; a walk of our own."""
    if isinstance(value, BaseModel):
        for key in type(value).model_fields:
            yield from places(getattr(value, key), (*place, key))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*place, key))
    elif isinstance(value, tuple) and any(isinstance(each, BaseModel) for each in value):
        for index, inner in enumerate(value):
            yield from places(inner, (*place, index))
    elif value is not None and value != ():
        yield place, value


def put(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """A copy of a document with another value at a place; nothing is validated, so any value goes."""
    if not place:
        return new
    key, rest = place[0], place[1:]
    if isinstance(value, BaseModel):
        return value.model_copy(update={key: put(getattr(value, key), rest, new)})
    if isinstance(value, dict):
        return {**value, key: put(value[key], rest, new)}
    return (*value[:key], put(value[key], rest, new), *value[key + 1 :])


def other(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str() if len(value) == 64:
            return sha256(value)
        case str():
            return f"{value}x"
        case tuple():
            return (*value, "x")
    raise AssertionError(value)


LOCK = lock_of(whole_data())
PLACES = {place: value for place, value in places(LOCK) if place[-1] != "role"}  # without a target there is no lock
IDENTITY = {"name", "path", "filename", "id"}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_every_fact_counts_or_is_neutral_on_purpose(place: tuple[Any, ...]) -> None:
    """Changing any one fact of a lock misses, unless it is in the list of neutral ones; `diff` agrees and names it."""
    changed = put(LOCK, place, other(PLACES[place]))
    found = diff(LOCK, changed)
    touched = {change.path for change in found.changes}

    assert touched
    asks = place[:2] == ("launch", "arguments") and place[2] in (*REPEATED, "hicache-ratio")
    if asks:  # a request that contradicts its effective value is a factor of its own
        neutral = place[2] == "hicache-ratio"
    else:
        neutral = all(is_neutral(name) or (".patches." in name and name.endswith(".path")) for name in touched)
    assert neutral == found.same_namespace == (derive(LOCK).digest == derive(changed).digest)
    assert neutral == (not any(change.consequence == "cache-identity" for change in found.changes))
    assert neutral == (derive(LOCK).name == derive(changed).name)


def test_exactly_the_listed_facts_are_neutral() -> None:
    """Factors and neutral facts together are all facts of the lock; every neutral one has a reason."""
    namespace = derive(LOCK)
    names = {name_of(path) for path in flatten(LOCK)}

    assert names == namespace.factors.keys() | namespace.neutral.keys()
    assert not namespace.factors.keys() & namespace.neutral.keys()
    assert {name for name in names if is_neutral(name)} == namespace.neutral.keys()
    assert all(meaning.reason for meaning in namespace.neutral.values())


def test_the_facts_of_a_lock_are_all_of_it() -> None:
    """Every scalar of the document is the value of a fact, or the part of a path that identifies its entry."""
    facts = flatten(LOCK)
    parts = {part for path in facts for part in path}
    values = [fact.plain() for fact in facts.values()]

    for place, value in PLACES.items():
        plain = list(value) if isinstance(value, tuple) else value
        assert plain in values or value in parts, place
    identities = sum(place[-1] in IDENTITY and isinstance(place[-2], int) for place in PLACES if len(place) > 1)
    in_order = sum("patches" in place and place[-1] == "path" for place in PLACES)
    names = sum(place[0] == "checkpoints" and place[2:] == ("name",) for place in PLACES)
    assert len(PLACES) == len(facts) + identities - in_order - names


SCALAR = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8) | st.sampled_from(
    ["", "0", "None", "auto", "bfloat16", 0, 0.0, False, True, 1, 1.0, -1]
)
FLAGS = st.dictionaries(st.from_regex(r"[a-z][a-z0-9-]{0,6}", fullmatch=True), SCALAR | st.just(("a", "b")), max_size=4)
VALUES = st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True), SCALAR, max_size=4)
VARIABLES = st.dictionaries(
    st.from_regex(r"[A-Z][A-Z0-9_]{0,6}", fullmatch=True), st.text("ab0 ", max_size=4), max_size=4
)


def with_launch(arguments: dict[str, Any], effective: dict[str, Any], environment: dict[str, str]) -> Lock:
    """The test lock with another launch, not validated: the widest set of values."""
    launch = LOCK.launch.model_copy(update={"arguments": arguments, "effective": effective, "environment": environment})
    return LOCK.model_copy(update={"launch": launch})


LAUNCH = st.tuples(FLAGS, VALUES, VARIABLES)


@settings(max_examples=60)
@given(LAUNCH, LAUNCH)
def test_two_launches_share_a_namespace_exactly_when_diff_says_so(
    a: tuple[dict[str, Any], dict[str, Any], dict[str, str]], b: tuple[dict[str, Any], dict[str, Any], dict[str, str]]
) -> None:
    """Whatever two launches hold: one digest means no change of cache identity, and the other way round."""
    one, two = with_launch(*a), with_launch(*b)
    found = diff(one, two)

    assert found.same_namespace == (not any(change.consequence == "cache-identity" for change in found.changes))
    assert found.same_namespace == (derive(one).factors == derive(two).factors)
    assert bool(found.changes) or found.same_namespace


@settings(max_examples=60)
@given(FLAGS, VALUES, VARIABLES, st.randoms(use_true_random=False))
def test_order_never_counts(
    flags: dict[str, Any], values: dict[str, Any], variables: dict[str, str], shuffler: random.Random
) -> None:
    """Permuted flags, values, variables, components, environments, checkpoints and files: same name, no change."""

    def shuffled(table: Any) -> Any:
        items = list(table.items() if isinstance(table, dict) else table)
        shuffler.shuffle(items)
        return dict(items) if isinstance(table, dict) else tuple(items)

    lock = with_launch(flags, values, variables)
    other_order = with_launch(shuffled(flags), shuffled(values), shuffled(variables)).model_copy(
        update={
            "components": shuffled(lock.components),
            "environments": shuffled(lock.environments),
            "checkpoints": tuple(
                each.model_copy(update={"files": shuffled(each.files)}) for each in shuffled(lock.checkpoints)
            ),
        }
    )

    assert derive(lock).document() == derive(other_order).document()
    assert diff(lock, other_order).changes == ()


NEUTRAL_TEXTS = [
    place
    for place, value in PLACES.items()
    if isinstance(value, str)
    and not place[-1].endswith("sha256")
    and place[:2] != ("launch", "arguments")
    and is_neutral(next(change.path for change in diff(LOCK, put(LOCK, place, other(value))).changes))
]


@settings(max_examples=60)
@given(st.sampled_from(NEUTRAL_TEXTS), st.text(st.characters(exclude_categories=["Cs"])) | st.just("auto"))
def test_neutral_facts_may_take_any_value(place: tuple[Any, ...], text: str) -> None:
    """A neutral fact keeps the namespace whatever it says, because its reason holds for every value."""
    assert derive(LOCK).digest == derive(put(LOCK, place, text)).digest


def test_a_key_that_a_later_lock_brings_is_a_factor_at_once() -> None:
    """Closed world: nobody has to remember to add it. A key that is not there changes nothing."""

    class Later(Lock):
        rank_layout: str | None = None

    data = LOCK.content()
    assert derive(LOCK).digest == derive(Later.from_data(data, where="test")).digest
    found = derive(Later.from_data({**data, "rank_layout": "interleaved"}, where="test"))
    assert found.factors["rank_layout"].plain() == "interleaved"
    assert derive(LOCK).digest != found.digest


def test_two_entries_of_one_name_are_an_error() -> None:
    """A fact is never lost because another took its name."""
    twice = LOCK.model_copy(update={"components": (*LOCK.components, LOCK.components[0])})

    with pytest.raises(InvalidDocumentError, match=r"components\.sglang.* stands twice"):
        derive(twice)


def test_a_lock_without_a_target_has_no_namespace() -> None:
    """There is nothing to serve."""
    with pytest.raises(InvalidDocumentError, match="no checkpoint has the role target"):
        derive(LOCK.model_copy(update={"checkpoints": LOCK.checkpoints[1:]}))


SCRIPT = """
import os, sys
os.umask(int(sys.argv[2], 8))
from pathlib import Path
from reproducer.documents.opened import open_lock
from reproducer.identity.namespace import derive
namespace = derive(open_lock(Path(sys.argv[1])).lock)
sys.stdout.buffer.write(namespace.document())
"""


@pytest.mark.parametrize(
    ("variables", "umask"),
    [
        ({"HOME": "/nowhere", "XDG_CACHE_HOME": "/nowhere/cache"}, "022"),
        ({"LANG": "tr_TR.UTF-8", "LC_ALL": "C", "PYTHONUTF8": "0"}, "077"),
        ({"PYTHONHASHSEED": "1", "USER": "somebody", "HOSTNAME": "elsewhere", "TZ": "Asia/Tokyo"}, "000"),
        ({"PYTHONHASHSEED": "2", "PYTHONOPTIMIZE": "1"}, "022"),
    ],
)
def test_the_process_it_is_derived_in_does_not_count(tmp_path: Path, variables: dict[str, str], umask: str) -> None:
    """Another home, locale, hash seed, umask, user, folder and layout of the file: the same bytes."""
    lock = tmp_path / "deep" / "er" / "lock.toml"
    lock.parent.mkdir(parents=True)
    lock.write_text(_toml(LOCK), "utf-8")
    os.utime(lock, (1, 1))

    document = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(lock), umask],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **variables},
        cwd=tmp_path,
        check=True,
        capture_output=True,
    ).stdout

    assert derive(LOCK).document() == document


def test_layout_and_comments_of_the_file_are_no_change(tmp_path: Path) -> None:
    """Two files of one content have one namespace and no difference."""
    for name, text in (("a", _toml(LOCK)), ("b", f"# a comment\n\n{_toml(LOCK)}\n# the end\n")):
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")

    found = diff(open_lock(tmp_path / "a.toml"), open_lock(tmp_path / "b.toml"))

    assert (found.changes, found.same_namespace, found.rebuild, found.invalidates) == ((), True, False, ())


def test_content_has_the_keys_scripts_rely_on() -> None:
    """`--json`: the name, the digest, factors with type and value, neutral facts with class and reason."""
    content = json.loads(json.dumps(derive(LOCK).content()))

    assert sorted(content) == ["digest", "factors", "namespace", "neutral"]
    assert content["namespace"] == f"small-target-sglang-{content['digest'][:12]}"
    assert content["factors"]["launch.effective.page_size"] == {"type": "integer", "value": 16}
    assert content["neutral"]["launch.arguments.log-level"].startswith("operational: ")


def _toml(lock: Lock) -> str:
    import tomlkit

    return tomlkit.dumps(lock.content())


def test_the_factory_gives_fresh_data() -> None:
    """Tests cannot disturb each other through it."""
    whole_data()["name"] = "changed"

    assert lock_of(whole_data()) == LOCK
