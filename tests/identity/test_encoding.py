"""The canonical encoding against docs/namespace.md: its vectors, and a second implementation written from it."""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproducer.documents.lock import Lock
from reproducer.errors import InvalidDocumentError
from reproducer.identity.encoding import digest, encode
from reproducer.identity.factors import Factor, name_of
from reproducer.identity.namespace import derive

VECTORS = json.loads((Path(__file__).parents[2] / "docs" / "vectors" / "namespace.json").read_text("utf-8"))

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
HEX = st.binary(min_size=32, max_size=32).map(bytes.hex)
PLAIN = st.one_of(
    TEXT.map(lambda value: Factor("text", value)),
    st.sampled_from(["", "0", "None", "0.0", "false", "auto"]).map(lambda value: Factor("text", value)),
    st.integers().map(lambda value: Factor("integer", value)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: Factor("float", value)),
    st.booleans().map(lambda value: Factor("boolean", value)),
    HEX.map(lambda value: Factor("digest", value)),
    HEX.map(lambda value: Factor("unknown", value)),
    st.just(Factor("unset", None)),
)
VALUE = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4).map(lambda each: Factor("list", tuple(each))))
FACTORS = st.dictionaries(TEXT, VALUE, max_size=6)


def factor_of(data: dict[str, Any]) -> Factor:
    """A factor from its plain form."""
    value = data["value"]
    if data["type"] == "list":
        value = tuple(factor_of(each) for each in value)
    return Factor(data["type"], float(value) if data["type"] == "float" else value)


class Decoder:
    """Reads an encoding back, written from the specification alone."""

    def __init__(self, data: bytes) -> None:
        domain, self.rest = data.split(b"\n", 1)
        assert domain == b"penny-namespace/1"

    def factors(self) -> dict[str, Factor]:
        """All factors, in ascending order of names."""
        found: dict[str, Factor] = {}
        names = []
        while self.rest:
            tag, name = self.frame()
            assert tag == "n"
            names.append(name)
            found[name.decode()] = self.value()
        assert names == sorted(set(names))
        return found

    def frame(self) -> tuple[str, bytes]:
        """One frame: tag and payload."""
        head, rest = self.rest.split(b":", 1)
        tag, length = head[:1].decode(), int(head[1:])
        assert str(length).encode() == head[1:]
        assert rest[length : length + 1] == b","
        self.rest = rest[length + 1 :]
        return tag, rest[:length]

    def value(self) -> Factor:
        """One value."""
        tag, payload = self.frame()
        if tag == "l":
            outer, self.rest = self.rest, payload
            values = []
            while self.rest:
                values.append(self.value())
            self.rest = outer
            return Factor("list", tuple(values))
        text = payload.decode()
        return {
            "t": lambda: Factor("text", text),
            "i": lambda: Factor("integer", int(text)),
            "f": lambda: Factor("float", struct.unpack(">d", bytes.fromhex(text))[0]),
            "b": lambda: Factor("boolean", {"true": True, "false": False}[text]),
            "d": lambda: Factor("digest", text.removeprefix("sha256:")),
            "x": lambda: Factor("unknown", text.removeprefix("sha256:")),
            "u": lambda: Factor("unset", text or None),
        }[tag]()


@pytest.mark.parametrize("vector", VECTORS["encodings"], ids=lambda vector: vector["about"])
def test_vectors_of_the_encoding_hold(vector: dict[str, Any]) -> None:
    """The published factors have the published bytes and the published digest."""
    factors = {name: factor_of(data) for name, data in vector["factors"].items()}

    assert vector["encoding"] == encode(factors).decode()
    assert vector["sha256"] == digest(factors) == hashlib.sha256(vector["encoding"].encode()).hexdigest()


def test_no_two_vectors_share_an_encoding() -> None:
    """Unset, empty text, "0", "None", 0, 0.0, -0.0 and false, and values cut elsewhere, are all told apart."""
    encodings = [vector["encoding"] for vector in VECTORS["encodings"]]

    assert len(set(encodings)) == len(encodings)


@pytest.mark.parametrize("vector", VECTORS["names"], ids=lambda vector: vector["name"])
def test_vectors_of_names_hold(vector: dict[str, Any]) -> None:
    """The published paths have the published names."""
    assert vector["name"] == name_of(tuple(vector["path"]))


@pytest.mark.parametrize("vector", VECTORS["locks"], ids=lambda vector: vector["namespace"])
def test_vectors_of_whole_locks_hold(vector: dict[str, Any]) -> None:
    """A published lock keeps its namespace for ever: a factor that is renamed or lost costs everybody their pages."""
    lock = Lock.from_data(vector["lock"], where="vector")
    namespace = derive(lock)

    assert vector["lock_digest"] == lock.digest
    assert (vector["namespace"], vector["digest"]) == (namespace.name, namespace.digest)


@given(FACTORS)
def test_an_encoding_is_read_back_in_one_way(factors: dict[str, Factor]) -> None:
    """Every set of factors is recovered from its bytes, so no two sets share any."""
    decoded = Decoder(encode(factors)).factors()

    assert repr(sorted(factors.items())) == repr(sorted(decoded.items()))


@given(FACTORS, st.randoms(use_true_random=False))
def test_order_of_factors_does_not_count(factors: dict[str, Factor], random: Any) -> None:
    """The bytes depend on the set and not on the order it was put together in."""
    items = list(factors.items())
    random.shuffle(items)

    assert encode(factors) == encode(dict(items))


@given(FACTORS, FACTORS)
def test_two_sets_share_an_encoding_only_if_they_are_one(a: dict[str, Factor], b: dict[str, Factor]) -> None:
    """Equal bytes exactly for equal sets; types and the sign of zero count."""
    same = repr(sorted(a.items())) == repr(sorted(b.items()))

    assert same == (encode(a) == encode(b))


PATH = st.lists(TEXT | st.sampled_from(["a", "a.b", '"', '"a"', ".", ""]), min_size=1, max_size=4).map(tuple)


@given(PATH, PATH)
def test_two_paths_never_share_a_name(a: tuple[str, ...], b: tuple[str, ...]) -> None:
    """Dots and quotes inside a part cannot make one path look like another."""
    assert (a == b) == (name_of(a) == name_of(b))


def test_half_a_surrogate_pair_is_an_error() -> None:
    """What is no Unicode text has no encoding."""
    with pytest.raises(InvalidDocumentError, match="is not Unicode text"):
        encode({"a": Factor("text", "\ud800")})


def test_a_value_of_another_type_than_its_kind_is_a_fault() -> None:
    """The encoder refuses what would be a lie about a type."""
    with pytest.raises(TypeError):
        encode({"a": Factor("integer", True)})  # noqa: FBT003  the value itself
