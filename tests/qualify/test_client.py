"""The client against a server with a known token schedule: order, bounds, deadlines, deaths."""

import time
from pathlib import Path

import pytest

from reproducer.errors import NotCheckedError
from reproducer.qualify import client
from reproducer.qualify.answers import generated
from reproducer.qualify.client import Call, ask, call, together
from reproducer.qualify.prompts import ids_sha256
from tests.qualify.servers import Boots


def streamed(ids: list[int], output_tokens: int) -> Call:
    """A streamed completion."""
    payload = {"input_ids": ids, "sampling_params": {"max_new_tokens": output_tokens}, "stream": True}
    return call("/generate", payload, ids_sha256(ids))


def test_tokens_are_seen_when_they_are_sent(tmp_path: Path) -> None:
    """A token every 10 ms after 30 ms: no event is early, and most are little late."""
    with Boots(tmp_path / "server", ["--first-ms", "30", "--gap-ms", "10"]).boot() as server:
        each = streamed([1, 2, 3], 20)
        (exchange,) = together(server.url, [each])
    record = generated(each, exchange, exchange.sent_ns)
    assert record.error is None
    assert [count for _, count in record.events] == list(range(1, 21))
    late = [when / 1e6 - (30 + 10 * number) for number, (when, _) in enumerate(record.events)]
    assert min(late) >= 0
    assert sorted(late)[10] < 50
    assert exchange.sent_ns <= exchange.chunks[0][0] <= exchange.finished_ns


def test_calls_released_together_overlap(tmp_path: Path) -> None:
    """Four requests are sent before any of them is answered."""
    with Boots(tmp_path / "server", ["--first-ms", "200"]).boot() as server:
        calls = [streamed([number], 3) for number in range(4)]
        exchanges = together(server.url, calls)
    assert max(each.sent_ns for each in exchanges) < min(each.chunks[0][0] for each in exchanges)
    assert [each.error for each in exchanges] == [None] * 4


def test_a_deadline_ends_a_request_that_hangs(tmp_path: Path) -> None:
    """The chunks before it are kept, and it does not take longer."""
    with Boots(tmp_path / "server", ["--fault", "hang"]).boot() as server:
        since = time.monotonic()
        (exchange,) = together(server.url, [streamed([1], 5)], deadline_s=0.3)
        assert time.monotonic() - since < 25
    assert (exchange.fault, exchange.error) == ("deadline", "no whole answer within 0.3 s")
    assert len(exchange.chunks) == 1


def test_a_server_that_dies_breaks_the_connection_clearly(tmp_path: Path) -> None:
    """The token before it is kept; the error says that the connection failed. A dead server's port says so too."""
    with Boots(tmp_path / "server", ["--fault", "die"]).boot() as server:
        (exchange,) = together(server.url, [streamed([1], 5)])
        assert exchange.fault == "connection"
        assert "the connection failed" in (exchange.error or "")
        assert len(exchange.chunks) == 1
        (refused,) = together(server.url, [streamed([1], 5)])
        assert refused.fault == "connection"
        with pytest.raises(NotCheckedError, match="does not answer"):
            ask(server.url, "/v1/models")


def test_an_endless_answer_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays bounded, whatever a server sends."""
    monkeypatch.setattr(client, "LARGEST_ANSWER", 2000)
    with Boots(tmp_path / "server").boot() as server:
        (exchange,) = together(server.url, [streamed([1], 500)])
    assert exchange.fault == "size"
    assert sum(len(chunk) for _, chunk in exchange.chunks) < 20_000


def test_questions_beside_the_clock(tmp_path: Path) -> None:
    """An endpoint that is missing answers None; another status is an error."""
    with Boots(tmp_path / "server").boot() as server:
        assert ask(server.url, "/v1/models")["data"][0]["id"] == "stand-in"
        assert ask(server.url, "/nowhere") is None
