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
