"""The client against a paced server: whole answers in every shape, broken ones, many at once, an end in the middle."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reproducer.qualify import client
from reproducer.qualify.answers import generated
from reproducer.qualify.client import together
from reproducer.qualify.completions import completed
from reproducer.qualify.connection import Connection, Reading
from reproducer.qualify.flight import Flight
from tests.qualify.paced import TOKENS, compatible, native, paced, told


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for all tests."""
    with paced(tmp_path_factory.mktemp("paced")) as url:
        yield url


WAYS = ["", "crlf", "split", "joined", "length", "until-close", "trailer", "continue", "continued", "late-end"]


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_is_whole_however_it_is_framed_and_cut_into_segments(url: str, way: str) -> None:
    """Every token in order, both protocols beside each other; each as a piece of its own where it was sent so."""
    asked = [native(way), compatible(way)]
    since = time.monotonic()
    first, second = together(url, asked, deadline_s=60)
    assert time.monotonic() - since < 50, "the client saw by itself that the answers were whole"
    records = [generated(asked[0], first, first.sent_ns), completed(asked[1], second, second.sent_ns)]
    for record, exchange in zip(records, (first, second), strict=True):
        assert (record.error, exchange.fault) == (None, None)
        counts = [count for _, count in record.events]
        assert counts == list(range(counts[0], TOKENS + 1))
        assert way == "joined" or counts[0] == 1
        assert record.output_ids == tuple(range(1, TOKENS + 1))
        times = [when for when, _ in record.events]
        assert times == sorted(times)
        assert exchange.finished_ns >= exchange.chunks[-1][0]
    assert told(url)["open"] == 0


FAULTS = {
    "cut": ("connection", "the server closed it before the answer was whole", TOKENS - 1),
    "reset": ("connection", "the connection failed: ", TOKENS - 1),
    "gzip": ("protocol", "the answer is encoded ('gzip')", 0),
    "no-http": ("protocol", "the answer is not HTTP: ", 0),
    "bad-chunk": ("protocol", "the answer is not HTTP: ", TOKENS - 1),
    "status": ("status", "HTTP status 503: 'late'", 0),
    "silent": ("deadline", "no whole answer within 0.4 s", 1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_answer_is_named_and_disturbs_no_other(url: str, fault: str) -> None:
    """The kind of fault, the words, the events before it; the answer beside it is whole."""
    kind, words, least = FAULTS[fault]
    asked = [native(fault), native()]
    broken, good = together(url, asked, deadline_s=0.4)
    assert broken.fault == kind
    assert words in (broken.error or "")
    record = generated(asked[0], broken, broken.sent_ns)
    assert least - 1 <= len(record.events) <= max(least, 0)
    assert record.error == broken.error
    assert generated(asked[1], good, good.sent_ns).error is None
    assert broken.finished_ns > broken.sent_ns


def test_sixty_four_at_once(url: str) -> None:
    """All come whole, no token is seen before it was sent, and the requests were all sent before any was answered."""
    told(url)
    asked = [native(tokens=40)] * 64
    exchanges = together(url, asked)
    records = [generated(each, got, 0) for each, got in zip(asked, exchanges, strict=True)]
    assert {record.error for record in records} == {None}
    assert {len(record.events) for record in records} == {40}
    assert max(each.sent_ns for each in exchanges) - min(each.sent_ns for each in exchanges) < 1_000_000_000
    sent = [each["sent_ns"] for each in told(url)["streams"]]
    for number in (0, 20, 39):
        seen = sorted(record.events[number][0] for record in records)
        assert all(when <= at for when, at in zip(sorted(each[number] for each in sent), seen, strict=True))


def test_ctrl_c_closes_every_socket(url: str) -> None:
    """In the middle of four answers that never end: KeyboardInterrupt reaches the caller and nothing stays open."""

    def interrupt() -> None:
        while len(told(url)["streams"]) < 1:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    told(url)
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        together(url, [native("silent")] * 4, deadline_s=30)
    thread.join()
    deadline = time.monotonic() + 10
    while told(url)["open"] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert told(url)["open"] == 0


class EndedError(BaseException):
    """What the command line's handler of SIGTERM raises, wherever the program is."""


def test_an_exception_of_a_signal_handler_ends_the_run(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come up while a piece is stored, where asyncio would log it and go on."""

    def raising(*_: object) -> None:
        raise EndedError

    monkeypatch.setattr(Connection, "buffer_updated", raising)
    with pytest.raises(EndedError):
        together(url, [native()])


def test_a_server_that_ends_each_connection_is_connected_to_again(tmp_path: Path) -> None:
    """The request that opened the connection does not decide."""
    with paced(tmp_path, "--closing") as url:
        (exchange,) = together(url, [native()])
        assert exchange.error is None


def test_a_head_that_comes_before_its_body_is_no_whole_answer(tmp_path: Path) -> None:
    """Of the request that opens the connection: the client waits for the body, and takes no processor meanwhile."""
    with paced(tmp_path, "--models-ms", "400") as url:
        used = time.process_time()
        (exchange,) = together(url, [native()])
        used = time.process_time() - used
    assert exchange.error is None
    assert used < 0.3


def test_nothing_is_read_while_tokens_come(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head comes before the first token, and no piece before the last one makes the client look at what it has."""
    read: list[int] = []
    plain = Reading.read

    def counting(reading: Reading, connection: Connection) -> None:
        read.append(len(connection.arrived))
        plain(reading, connection)

    monkeypatch.setattr(Reading, "read", counting)
    for asked in (native(tokens=30), native("crlf", tokens=30), native("length", tokens=30)):
        read.clear()
        (exchange,) = together(url, [asked])
        assert exchange.error is None
        assert len(read) == 2, "once for the connection, once for the answer"
    read.clear()
    (exchange,) = together(url, [native("until-close")])
    assert len(read) <= len(exchange.chunks) + 4, "where nothing tells the end, once a piece, and not again and again"


def test_a_server_that_accepts_and_says_nothing_costs_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the request that opens the connection nor the timed one waits for ever."""
    monkeypatch.setattr(client, "_CONNECT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as door:
        since = time.monotonic()
        (exchange,) = together(f"http://127.0.0.1:{door.getsockname()[1]}", [native()], deadline_s=0.2)
        assert time.monotonic() - since < 25
    assert (exchange.fault, exchange.error) == ("deadline", "no whole answer within 0.2 s")


def test_whoever_watches_sees_what_has_come(url: str) -> None:
    """Tokens by the server's own count while the answers come, from another thread; nothing before."""
    flight, seen = Flight(), list[int | None]()
    assert (flight.pieces, flight.tokens) == (0, None)
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            seen.append(flight.tokens)
            time.sleep(0.005)

    thread = threading.Thread(target=watch)
    thread.start()
    together(url, [native(tokens=80)] * 2, flight=flight)
    over.set()
    thread.join()
    counts = [count for count in seen if count]
    assert len(set(counts)) > 3
    assert counts == sorted(counts)
    assert flight.tokens == 160
    assert flight.pieces >= 100
