"""The lock digest: content counts, layout does not."""

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import rfc8785
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.documents.lock import Lock
from reproducer.documents.opened import open_lock
from reproducer.documents.toml import parse_toml
from reproducer.locking.render import render_lock

VECTORS = Path(__file__).parents[2] / "docs" / "vectors"
VECTOR = json.loads((VECTORS / "lock-digest.json").read_bytes())
DATA = parse_toml((VECTORS / VECTOR["document"]).read_text("utf-8"), where="vector")

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0{}/~"), max_size=30)
scalars = st.one_of(
    st.just(value=True),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
arguments = st.dictionaries(
    st.from_regex(r"\A[a-z][a-z0-9-]{0,12}\Z").filter(lambda name: name not in ("host", "port", "config")),
    st.one_of(scalars, st.lists(texts, max_size=3)),
    max_size=6,
)
variables = st.dictionaries(st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,12}\Z"), texts, max_size=4)
effective = st.dictionaries(st.from_regex(r"\A[a-z][a-z0-9_]{0,12}\Z"), scalars | st.just(value=False), max_size=6)


def lock_of(data: Any) -> Lock:
    """A lock from plain data."""
    return Lock.from_data(data, where="x.toml")


def read(text: str) -> Lock:
    """A lock from TOML text."""
    return lock_of(parse_toml(text, where="x.toml"))


def test_published_vector() -> None:
    """The published document has the published canonical form and digest, by plain means as well."""
    lock = open_lock(VECTORS / VECTOR["document"]).lock
    assert VECTOR["canonical"] == lock.canonical().decode()
    assert VECTOR["sha256"] == lock.digest
    assert VECTOR["sha256"] == hashlib.sha256(VECTOR["canonical"].encode()).hexdigest()
    assert VECTOR["canonical"].encode() == rfc8785.dumps(json.loads(VECTOR["canonical"]))


def test_defaults_count_as_written() -> None:
    """A key that is left out and one that is written with its default are the same content."""
    data = parse_toml((VECTORS / VECTOR["document"]).read_text("utf-8"), where="vector")
    del data["build"]["umask"], data["components"][1]["patches"], data["launch"]["readiness"]["deadline_s"]
    assert VECTOR["sha256"] == lock_of(data).digest


@settings(max_examples=60, deadline=None)
@given(arguments=arguments, environment=variables, effective=effective, compiler=texts)
def test_writing_and_reading_keeps_the_digest(
    arguments: dict[str, Any], environment: dict[str, str], effective: dict[str, Any], compiler: str
) -> None:
    """Whatever a lock holds, its text reads back to the same digest, and writing again gives the same bytes."""
    data = json.loads(json.dumps(DATA))
    data["launch"] |= {"arguments": arguments, "environment": environment, "effective": effective}
    data["toolchain"]["compiler"] = compiler
    lock = lock_of(data)
    text = render_lock(lock)
    again = read(text.decode())
    assert lock.digest == again.digest
    assert text == render_lock(again)


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same content with the keys of every table in another order."""
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: shuffled(value[key], chance) for key in keys}
    return [shuffled(each, chance) for each in value] if isinstance(value, list) else value


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_order_comments_and_layout_do_not_count(chance: random.Random) -> None:
    """Another order of keys, other comments and inline tables give the same digest."""
    text = "# another comment\n" + tomlkit.dumps(shuffled(DATA, chance)).replace(" = ", "   =  ")
    assert VECTOR["sha256"] == read(text).digest


def test_order_of_lists_counts() -> None:
    """The order of patches is content."""
    data = json.loads(json.dumps(DATA))
    data["components"][0]["patches"].reverse()
    assert VECTOR["sha256"] != lock_of(data).digest


def test_near_values_differ() -> None:
    """Unset, empty, zero, "None" and false are five things."""
    seen = set()
    for change in ({}, {"X": ""}, {"X": "0"}, {"X": "None"}, {"X": "false"}):
        data = json.loads(json.dumps(DATA))
        data["launch"]["environment"] = change
        seen.add(lock_of(data).digest)
    assert len(seen) == 5
