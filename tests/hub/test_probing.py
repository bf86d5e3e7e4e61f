"""Probing: whether a hub still has a revision and gives it to this user."""

import pytest

from reproducer.documents.sources import HubSource
from reproducer.hub.probing import probe
from tests.hub.conftest import NAME, WEIGHTS, Bench


def test_what_a_hub_says(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, gated, gone and unknown are four findings, and no weight is transferred for any of them."""
    repository = bench.hub.repositories[NAME]
    source = HubSource(repository=NAME, revision=repository.refs["main"])
    assert probe(source, place=bench.place).state == "there"
    repository.gated = True
    gated = probe(source, place=bench.place)
    assert gated.state == "gated"
    assert "accept them" in gated.todo
    monkeypatch.setenv("HF_TOKEN", "hf_allowed")
    assert probe(source, place=bench.place).state == "there"
    gone = probe(HubSource(repository=NAME, revision="1" * 40), place=bench.place)
    assert (gone.state, "has no revision" in gone.said) == ("gone", True)
    vanished = probe(HubSource(repository="some/nothing", revision="1" * 40), place=bench.place)
    assert (vanished.state, "is not on the hub" in vanished.said) == ("gone", True)
    bench.hub.faults.refuse = [(503, {})] * 20
    down = probe(source, place=bench.place)
    assert (down.state, "503" in down.said) == ("unknown", True)
    assert bench.hub.received(WEIGHTS) == 0


@pytest.mark.parametrize("target", ["http://[::1", "//["])
def test_an_address_that_is_none(bench: Bench, target: str) -> None:
    """A redirect or a next page that is no address is one sentence."""
    source = HubSource(repository=NAME, revision=bench.hub.repositories[NAME].refs["main"])
    bench.hub.faults.next_page = target
    assert "no address" in probe(source, place=bench.place).said
    bench.hub.faults.next_page = None
    bench.hub.repositories[NAME].lfs.add("README.md")
    bench.hub.faults.redirect = target
    assert "no address" in probe(source, place=bench.place).said


def test_a_name_that_is_no_text(bench: Bench) -> None:
    """A listed name with half a character in it is refused, not sent."""
    source = HubSource(repository=NAME, revision=bench.hub.repositories[NAME].refs["main"])
    bench.hub.faults.tree_body = b'[{"type": "file", "path": "\\ud800", "size": 1}]'
    found = probe(source, place=bench.place)
    assert (found.state, "half of a character" in found.said) == ("unknown", True)


@pytest.mark.parametrize("body", [b"[]", b"null", b"1", b'{"errors": 1}', b'{"errors": [1]}', b"\xff\xfe{"])
def test_a_refusal_of_any_shape(bench: Bench, body: bytes) -> None:
    """What a refusal says in its body is not looked at, so no shape of it is a fault of penny."""
    source = HubSource(repository=NAME, revision=bench.hub.repositories[NAME].refs["main"])
    bench.hub.faults.refuse = [(418, {})]
    bench.hub.faults.refusal = body
    found = probe(source, place=bench.place)
    assert (found.state, "418" in found.said) == ("unknown", True)


def test_a_refusal_without_end(bench: Bench) -> None:
    """A refusal is not read: its size is no memory of penny's."""
    source = HubSource(repository=NAME, revision=bench.hub.repositories[NAME].refs["main"])
    bench.hub.faults.refuse = [(418, {})]
    bench.hub.faults.refusal = bytes(64 << 20)
    assert "418" in probe(source, place=bench.place).said
    assert bench.hub.hung_up.wait(60)  # its thread may come to send after the client has gone
    assert bench.hub.sent[""] < 32 << 20
