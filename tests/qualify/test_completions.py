"""The measures on a server that speaks the OpenAI protocol: the same numbers, and what it does not tell is skipped."""

import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.lock import Engine, Measure, Scalar
from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import FidelityReference, MeasureReceipt
from reproducer.launch.processes import boot_of, process
from reproducer.qualify.client import Exchange, call
from reproducer.qualify.completions import completed, completed_whole
from reproducer.qualify.exchanges import UntoldError
from reproducer.qualify.reference import record_reference
from reproducer.qualify.speech import SPEECHES
from reproducer.qualify.suite import qualify
from tests.qualify.conftest import Told
from tests.qualify.servers import Booted, build_receipt, launch_receipt, measure, rate, suite

SERVER = Path(__file__).parents[1] / "engines" / "openai_server.py"
EVERYTHING = ("counts", "ids", "cached", "logprobs", "usage")
SAMPLING = (
    measure("decode.single/1", ("decode_rate", ">=", 1, "tok/s"), prompt_tokens=32, output_tokens=8),
    measure("decode.concurrent/1", concurrency=3, prompt_tokens=32, output_tokens=8),
    measure("prefill.cold/1", prompt_tokens=100),
    measure("prefix.reuse/1", ("reused_tokens", ">=", 96, "tokens"), prompt_tokens=100),
)
TALKING = (
    measure("needle.short/1", ("found", ">=", 1, "ratio"), prompt_tokens=200, output_tokens=24),
    measure("chat.smoke/1", ("sensible", "==", True, "bool"), output_tokens=32),
)


@dataclass(frozen=True)
class Boots:
    """Starts the server with certain options."""

    options: Sequence[str] = ()

    @contextmanager
    def boot(self, altered: Mapping[str, Scalar] | None = None) -> Iterator[Booted]:
        """One server, gone when the context ends."""
        assert altered is None
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
        command = [sys.executable, str(SERVER), "--host", "127.0.0.1", "--port", str(port), *self.options]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as child:
            try:
                wait_for(port)
                found = process(child.pid)
                assert found is not None
                receipt = launch_receipt(boot_of(found, "small"))
                yield Booted(f"http://127.0.0.1:{port}", child.pid, receipt, child)
            finally:
                child.kill()


def wait_for(port: int) -> None:
    """Wait until somebody listens there."""
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        else:
            return


def telling(*tells: str) -> Boots:
    """Boots of a server that tells so much."""
    return Boots(("--tells", *tells))


def opened(folder: Path, *measures: Measure, reference: FidelityReference | None = None) -> OpenedLock:
    """A lock of an OpenAI-compatible server with a suite."""
    found = suite(folder, *measures, reference=reference)
    engine = Engine(kind="openai", component=found.lock.engine.component)
    return OpenedLock(found.lock.model_copy(update={"engine": engine}), found.path)


def taken(
    tmp_path: Path, boots: Boots, *measures: Measure, reference: FidelityReference | None = None
) -> dict[str, MeasureReceipt]:
    """The receipts of a suite, by measure."""
    receipts = qualify(
        opened(tmp_path, *measures, reference=reference),
        build_receipt(),
        boots.boot,
        workspace=tmp_path / "cells",
        reporter=Told(),
        settle_s=0,
    )
    return {receipt.measure: receipt for receipt in receipts}


def value(receipt: MeasureReceipt, name: str) -> float:
    """One derived value."""
    return next(each.value for each in receipt.derived if each.name == name)


def test_every_measure(tmp_path: Path) -> None:
    """A server that tells everything answers every measure, with the counts that its schedule gives."""
    boots = telling(*EVERYTHING)
    with boots.boot() as server:
        reference = record_reference(
            server, ["a b c", "d e"], checkpoint="small", output_tokens=6, speech=SPEECHES["openai"], reporter=Told()
        )
    found = taken(tmp_path, boots, *SAMPLING, *TALKING, measure("fidelity/1"), reference=reference)
    assert {name: receipt.status for name, receipt in found.items()} == dict.fromkeys(found, "passed"), [
        receipt.reason for receipt in found.values()
    ]
    assert value(found["prefix.reuse/1"], "reused_tokens") == 96
    assert value(found["fidelity/1"], "agreement") == 1
    assert value(found["fidelity/1"], "kl_mean") == 0
    requests = [each.requests[0] for each in found["decode.single/1"].samples]
    assert [[count for _, count in each.events] for each in requests] == [list(range(1, 9))] * len(requests)
    rates = [rate(each.events) for each in requests]
    assert value(found["decode.single/1"], "decode_rate") == pytest.approx(statistics.median(rates))
    assert [len(each.output_ids or ()) for each in requests] == [8] * len(requests)


def test_cached_tokens_untold(tmp_path: Path) -> None:
    """Without the count of cached tokens no prompt is known to be cold: such measures are skipped, others taken."""
    found = taken(tmp_path, telling("counts", "ids", "usage"), *SAMPLING, *TALKING)
    reason = "the server does not tell how many tokens of a prompt it had cached"
    assert {receipt.reason for name, receipt in found.items() if name in {each.id for each in SAMPLING}} == {reason}
    assert found["prefill.cold/1"].status == "skipped"
    assert found["prefill.cold/1"].derived == ()
    assert found["decode.single/1"].status == "failed"  # the lock bounds it, and nobody can say that the bound holds
    assert {found[each.id].status for each in TALKING} == {"passed"}


def test_a_piece_for_each_token(tmp_path: Path) -> None:
    """A server that sends as many pieces as it makes tokens is timed by its pieces; ids stay unknown."""
    found = taken(tmp_path, telling("cached", "usage"), *SAMPLING)
    assert {receipt.status for receipt in found.values()} == {"passed"}
    assert found["decode.single/1"].samples[0].requests[0].output_ids is None


def test_pieces_of_several_tokens(tmp_path: Path) -> None:
    """Pieces that are not counted and are not one a token say nothing about when a token came."""
    boots = Boots(("--tells", "cached", "usage", "--at-once", "3"))
    found = taken(tmp_path, boots, *SAMPLING)
    assert found["decode.concurrent/1"].status == "skipped"
    assert "3 pieces came for 8 tokens" in found["decode.concurrent/1"].reason
    assert found["prefill.cold/1"].status == "passed"  # its one token is one piece


def test_counted_pieces_of_several_tokens(tmp_path: Path) -> None:
    """Pieces of several tokens are timed where the server counts with each of them."""
    found = taken(tmp_path, Boots(("--at-once", "3")), SAMPLING[0])
    (request,) = found["decode.single/1"].samples[0].requests
    assert [count for _, count in request.events] == [3, 6, 8]


@pytest.mark.parametrize(
    ("tells", "reason"),
    [
        (("counts", "cached", "usage", "logprobs"), "the ids of the tokens it made"),
        (("counts", "cached", "usage", "ids"), "the likeliest tokens by their ids"),
    ],
)
def test_fidelity_untold(tmp_path: Path, tells: tuple[str, ...], reason: str) -> None:
    """Without ids nothing can be compared with the reference."""
    with telling(*EVERYTHING).boot() as server:
        reference = record_reference(
            server, ["a b c"], checkpoint="small", output_tokens=4, speech=SPEECHES["openai"], reporter=Told()
        )
    found = taken(tmp_path, telling(*tells), measure("fidelity/1"), reference=reference)
    assert found["fidelity/1"].status == "skipped"
    assert reason in found["fidelity/1"].reason


def test_a_refusal_is_no_silence(tmp_path: Path) -> None:
    """A server that refuses a request has failed the measure; that is not skipped."""
    found = taken(tmp_path, Boots(("--refuses",)), SAMPLING[2])
    assert found["prefill.cold/1"].status == "failed"
    assert "HTTP status 400" in found["prefill.cold/1"].reason


def test_restore_is_not_taken(tmp_path: Path) -> None:
    """The protocol does not tell where cached tokens came from, so a restart proves nothing."""
    bounded = measure("restore.restart/1", ("storage_tokens", ">=", 1, "tokens"), prompt_tokens=64)
    found = taken(tmp_path, Boots(), bounded)
    assert found["restore.restart/1"].status == "failed"
    assert "does not tell" in found["restore.restart/1"].reason
    assert found["restore.restart/1"].samples == ()


def exchange(*bodies: object, done: bool = True) -> Exchange:
    """What came back: these events, a millisecond apart."""
    texts = [f"data: {json.dumps(body)}\n\n".encode() for body in bodies] + ([b"data: [DONE]\n\n"] if done else [])
    chunks = [(1_000_000 * number, text) for number, text in enumerate(texts, start=1)]
    return Exchange(sent_ns=0, finished_ns=chunks[-1][0], chunks=chunks)


def piece(text: str, **more: Any) -> dict[str, Any]:
    """One event of a stream."""
    return {"choices": [{"text": text, "finish_reason": None, **more}]}


CALL = call("/v1/completions", {}, "0" * 64)
COUNTED = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 0}}


@pytest.mark.parametrize(
    ("bodies", "why"),
    [
        ([{"choices": [{}, {}]}], "does not hold one choice"),
        ([{"choices": "x"}], "does not hold one choice"),
        ([piece("a", token_ids=["x"])], "token_ids is not a list"),
        ([piece("a", token_ids=[True])], "token_ids is not a list"),
        ([{"error": {"message": "no"}}], "the server answered an error"),
        ([{"choices": [], "usage": COUNTED}], "brought no token"),
        ([piece("a") | {"usage": {"completion_tokens": -1}}], "is not a count"),
    ],
)
def test_malformed(bodies: list[object], why: str) -> None:
    """What is wrong with an answer becomes the record's error."""
    assert why in (completed(CALL, exchange(*bodies), 0).error or "")


def test_broken_off() -> None:
    """A stream that ends without its end keeps the events that came, and is an error, not silence."""
    record = completed(CALL, exchange(piece("a", token_ids=[1]), done=False), 0)
    assert record.events == ((1_000_000, 1),)
    assert record.error == "the stream ended without [DONE]"


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens_details": None}, {"prompt_tokens_details": {"cached_tokens": None}}]
)
def test_silence(usage: dict[str, Any] | None) -> None:
    """A whole answer without the counts that a measure needs is untold."""
    bodies = [
        piece("a", token_ids=[1]),
        *([] if usage is None else [{"choices": [], "usage": {**usage, "completion_tokens": 1}}]),
    ]
    with pytest.raises(UntoldError):
        completed(CALL, exchange(*bodies), 0)


@pytest.mark.parametrize(
    "logprobs", [{"top_logprobs": [{"a": 0}]}, {"top_logprobs": []}, {}, {"top_logprobs": [{"token_id:²": 0}]}, []]
)
def test_likeliest_tokens_without_ids(logprobs: object) -> None:
    """Tokens that are not named by their ids cannot be compared."""
    body = {"choices": [{"text": "a", "token_ids": [1, 2], "logprobs": logprobs}], "usage": COUNTED}
    data = json.dumps(body).encode()
    with pytest.raises(UntoldError, match="by their ids"):
        completed_whole(CALL, Exchange(sent_ns=0, finished_ns=1, chunks=[(1, data)]), 0)


@pytest.mark.parametrize(
    "logprobs", [{"top_logprobs": [1]}, {"top_logprobs": [{"token_id:1": "x"}]}, {"top_logprobs": 5}]
)
def test_likeliest_tokens_malformed(logprobs: object) -> None:
    """Anything else than tables of numbers is an error."""
    body = {"choices": [{"text": "a", "token_ids": [1, 2], "logprobs": logprobs}], "usage": COUNTED}
    record = completed_whole(CALL, Exchange(sent_ns=0, finished_ns=1, chunks=[(1, json.dumps(body).encode())]), 0)
    assert "top_logprobs is not" in (record.error or "")
