"""The real harness against a server on a real socket that plays a perfect, a clumsy and a hostile model."""

import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from reproducer.attest.keys import signing_key
from reproducer.capability import harness
from reproducer.capability.harness import available, environment
from reproducer.capability.order import HarnessOrder
from reproducer.capability.suites import case_names
from reproducer.capability.tool_cases import TOOL_CASES
from reproducer.capability.tool_marks import marked
from reproducer.documents.lock import Qualification, Scalar
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.receipts import LaunchReceipt, MeasureReceipt
from reproducer.errors import NotCheckedError
from reproducer.ledger import AnyReceipt, Ledger, read_receipt
from reproducer.progress import Silent
from reproducer.qualify.suite import qualify
from reproducer.verify.bundle import verify_bundle
from reproducer.verify.receipts import verify_receipts
from tests.capability.scripted_server import CLUMSY_REASONING, CLUMSY_TOOLS, MODEL, Scripted, scripted
from tests.qualify.servers import measure
from tests.verify.factory import Evidence, build_receipt, launch_receipt, signed_bundle, small_lock

pytestmark = pytest.mark.skipif(not available(), reason=harness.MISSING)
TOOLS, REASONING = "tools.low/1", "reasoning.high/1"


@dataclass
class Booted:
    """The scripted server, as `qualify` wants to see one."""

    url: str
    receipt: LaunchReceipt
    pid: int = field(default_factory=os.getpid)

    def alive(self) -> bool:
        """It lives as long as the test."""
        return True


@dataclass
class Boots:
    """Gives the same server in every boot; a perfect model in the first, a clumsy one in the next."""

    server: Scripted
    opened: OpenedLock
    kinds: tuple[str, ...] = ("perfect", "clumsy")
    receipts: list[LaunchReceipt] = field(default_factory=list)

    @contextmanager
    def boot(self, altered: Mapping[str, Scalar] | None = None) -> Iterator[Booted]:
        """One boot."""
        assert altered is None
        self.server.kind = self.kinds[len(self.receipts)]
        self.receipts.append(launch_receipt(self.opened, build_receipt(self.opened), len(self.receipts) + 1))
        yield Booted(self.server.url, self.receipts[-1])


def lock_with(folder: Path, *measures: Any) -> OpenedLock:
    """A lock on disk that asks for these measures."""
    small = small_lock(folder)
    qualification = Qualification(suite="capable", boots=2, measures=measures)
    lock = small.lock.model_copy(update={"qualification": qualification})
    small.path.write_text(tomlkit.dumps(lock.content()))
    return open_lock(small.path)


@dataclass(frozen=True)
class Run:
    """What one run of two suites left."""

    evidence: Evidence
    asked: tuple[dict[str, Any], ...]
    ledger: Ledger


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two suites in two boots with the real harness, which starts four times: some twenty seconds, taken once."""
    folder = tmp_path_factory.mktemp("capable")
    opened = lock_with(
        folder,
        measure(TOOLS, ("automatic_pass", ">=", 0.9, "ratio"), temperature=0.5, seed=7),
        measure(REASONING, ("correct", ">=", 0.99, "ratio"), ("parseable", ">=", 0.9, "ratio"), cases=20),
    )
    build, ledger = build_receipt(opened), Ledger(folder / "receipts")
    (folder / "tmp").mkdir()
    with pytest.MonkeyPatch.context() as patch, scripted("perfect") as server:
        patch.setattr(tempfile, "tempdir", str(folder / "tmp"))
        boots = Boots(server, opened)
        workspace = folder / "samples"
        receipts = qualify(
            opened, build, boots.boot, workspace=workspace, reporter=Silent(), settle_s=0.0, keep=ledger.keep
        )
    return Run(Evidence(opened, build, tuple(boots.receipts), receipts), tuple(server.asked), ledger)


def value(receipt: MeasureReceipt, name: str) -> Any:
    """One derived value."""
    return next(each for each in receipt.derived if each.name == name)


def test_scores_are_those_of_the_script(run: Run) -> None:
    """A perfect model in one boot and a clumsy one in the next: shares, counts and intervals are as they must be."""
    tools, reasoning = run.evidence.measures
    clumsy = len(CLUMSY_TOOLS)
    assert value(tools, "automatic_pass").value == pytest.approx((60 - (clumsy - 1)) / 60)
    assert value(tools, "exact_call").value == pytest.approx((60 - 3) / 60)
    assert value(tools, "parseable").value == pytest.approx((60 - 3) / 60)
    assert value(tools, "cases").values == (30.0, 30.0)
    assert value(reasoning, "correct").value == pytest.approx((40 - len(CLUMSY_REASONING)) / 40)
    assert value(reasoning, "parseable").value == pytest.approx(39 / 40)
    spread = value(tools, "automatic_pass").spread
    assert spread.method == "bootstrap/1"
    assert spread.low < value(tools, "automatic_pass").value < spread.high <= 1
    assert (tools.status, reasoning.status) == ("passed", "failed")
    assert reasoning.reason == "correct is 0.925, the lock asks for >= 0.99 ratio"
    assert all(each.kind == "score" for each in tools.derived if each.name in ("automatic_pass", "exact_call"))
    assert not any(each.unit == "tok/s" for receipt in (tools, reasoning) for each in receipt.derived)


def test_what_was_asked_is_what_the_receipt_says(run: Run) -> None:
    """Effort, sampling and tools reach the server as declared, once each: nothing is tried again."""
    tools = [body for body in run.asked if body.get("tools")]
    reasoning = [body for body in run.asked if not body.get("tools")]
    assert {(body["reasoning_effort"], body["temperature"], body["seed"]) for body in tools} == {("low", 0.5, 7)}
    assert {(body["reasoning_effort"], body["max_tokens"]) for body in reasoning} == {("high", 16384)}
    samples = [sample for receipt in run.evidence.measures for sample in receipt.samples]
    assert len(run.asked) == sum(len(each.turns) for sample in samples for each in sample.transcripts or ())
    conditions = run.evidence.measures[0].conditions.capability
    assert conditions is not None
    assert (conditions.effort, conditions.call_mode, conditions.temperature) == ("low", "native", 0.5)
    assert conditions.harness.startswith("inspect_ai ")
    assert conditions.chat_template_sha256 is not None


def test_the_log_of_the_harness_is_kept_by_digest(run: Run) -> None:
    """Each sample's log lies beside the receipts, and is a log of inspect_ai with every case in it."""
    for receipt in run.evidence.measures:
        conditions = receipt.conditions.capability
        assert conditions is not None
        assert len(conditions.logs) == 2
        for digest in conditions.logs:
            with zipfile.ZipFile(run.ledger.folder / "logs" / f"{digest}.eval") as log:
                samples = [name for name in log.namelist() if name.startswith("samples/")]
            assert len(samples) == receipt.parameters["cases"]


def test_verify_recomputes_every_score(run: Run) -> None:
    """All checks of the numbers pass, but for the threshold that does not hold."""
    checks = {each.id: each for each in verify_receipts(run.evidence.opened, run.evidence.receipts)}
    numbers = {key: each.status for key, each in checks.items() if "tools.low" in key or "reasoning.high" in key}
    failing = {key for key, status in numbers.items() if status != "passed"}
    assert failing == {"threshold.reasoning.high.correct", "measure.reasoning.high"}
    assert {"conditions.tools.low", "derived.tools.low", "samples.tools.low"} <= set(numbers)


def _turn(data: dict[str, Any], case: str, place: int = -1, sample: int = 0) -> dict[str, Any]:
    transcripts = data["samples"][sample]["transcripts"]
    turn: dict[str, Any] = next(each for each in transcripts if each["case"] == case)["turns"][place]
    return turn


def _other_call(data: dict[str, Any]) -> None:
    call = _turn(data, "chain-order-currency", 1)["calls"][0]
    call["arguments_text"] = call["arguments_text"].replace("86", "87")


FORGERIES: Mapping[str, tuple[Any, str]] = {
    "a wrong answer made right": (
        lambda data: _turn(data, "needless-sum", 0, 1).update(output_text="43"),
        "derived.tools.low",
    ),
    "a right answer made wrong": (
        lambda data: _turn(data, "long-harbour-log").update(output_text="48-131"),
        "derived.tools.low",
    ),
    "another argument": (_other_call, "derived.tools.low"),
    "a call taken away": (
        lambda data: _turn(data, "right-tool-weather", 0).update(calls=[]),
        "derived.tools.low",
    ),
    "a case twice": (
        lambda data: data["samples"][0]["transcripts"].__setitem__(1, data["samples"][0]["transcripts"][0]),
        "derived.tools.low",
    ),
    "a case left out": (lambda data: data["samples"][0]["transcripts"].pop(), "derived.tools.low"),
    "other cases": (
        lambda data: data["samples"][0]["facts"].update(cases_sha256="0" * 64),
        "conditions.tools.low",
    ),
    "another effort": (
        lambda data: data["conditions"]["capability"].update(effort="high"),
        "conditions.tools.low",
    ),
    "another template": (
        lambda data: data["conditions"]["capability"].update(chat_template_sha256="0" * 64),
        "conditions.tools.low",
    ),
    "another log": (
        lambda data: data["samples"][0]["facts"].update(log_sha256="0" * 64),
        "conditions.tools.low",
    ),
    "no conditions": (lambda data: data["conditions"].pop("capability"), "conditions.tools.low"),
    "other sampling": (lambda data: data["parameters"].update(temperature=0.0), "parameters.tools.low"),
    "another score": (
        lambda data: next(each for each in data["derived"] if each["name"] == "exact_call").update(value=1.0),
        "derived.tools.low",
    ),
    "a narrower interval": (
        lambda data: next(each for each in data["derived"] if each["name"] == "exact_call")["spread"].update(low=0.9),
        "derived.tools.low",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_every_forgery_is_seen(run: Run, name: str) -> None:
    """Whatever is changed in transcripts, facts, conditions or scores, a check fails that passed before."""
    edit, seen = FORGERIES[name]
    honest = run.evidence.measures[0]
    data = honest.content()
    data.pop("samples_beside", None)
    edit(data)
    forged = MeasureReceipt.from_data(data, where="forged")
    receipts: tuple[AnyReceipt, ...] = (
        run.evidence.build,
        *run.evidence.launches,
        forged,
        run.evidence.measures[1],
    )
    failed, before = (
        {each.id for each in verify_receipts(run.evidence.opened, some) if each.status == "failed"}
        for some in (receipts, run.evidence.receipts)
    )
    assert seen in failed - before


def test_receipts_and_bundle_carry_the_transcripts(run: Run, tmp_path: Path) -> None:
    """A stranger has in the bundle all that the scores follow from, and no log of the harness."""
    paths = [run.ledger.add(receipt) for receipt in run.evidence.receipts]
    again = [read_receipt(path) for path in paths]
    assert [each.digest for each in again] == [each.digest for each in run.evidence.receipts]
    key = signing_key(tmp_path / "keys")
    bundle = signed_bundle(run.evidence, tmp_path / "bundle", key)
    checks = {each.id: each.status for each in verify_bundle(bundle, key.public).checks}
    assert checks["derived.tools.low"] == checks["derived.reasoning.high"] == "passed"
    assert not list(bundle.rglob("*.eval"))


def order(server: Scripted, cases: int, **more: Any) -> HarnessOrder:
    """An order for some cases of `tools`."""
    fields: dict[str, Any] = {
        "suite": "tools",
        "cases": case_names("tools", cases),
        "url": f"{server.url}/v1",
        "model": MODEL,
        "effort": "default",
        "call_mode": "native",
        "temperature": 0.0,
        "top_p": 1.0,
        "max_tokens": 100,
        "seed": 0,
        "concurrency": 8,
        "deadline_s": 20.0,
    }
    return HarnessOrder(**(fields | more))


def test_a_hostile_model_passes_nothing_and_touches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Endless text, broken Unicode, forged calls: every case is walked to an end; nothing lies outside the folder.

    The user's settings, keys and proxies do not reach the harness.
    """
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "INSPECT_LOG_DIR"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("INSPECT_TELEMETRY", "no.such.function")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / ".env").write_text("INSPECT_EVAL_MODEL=none/none\nOPENAI_API_KEY=secret\n")
    with scripted("hostile") as server:
        ran = harness.run(order(server, 30), tmp_path / "runs" / "harness")
    assert not list(home.iterdir())
    assert sorted(each.name for each in (tmp_path / "runs").iterdir()) == [".env", "harness"]
    assert not ran.outcome.unreachable
    for transcript in ran.outcome.transcripts:
        marks = marked(TOOL_CASES[transcript.case], "native", transcript)
        assert marks.automatic_pass
        assert all(turn.error is None for turn in transcript.turns)
    assert any(turn.cut for each in ran.outcome.transcripts for turn in each.turns)
    assert "reasoning_effort" not in server.asked[0]
    assert not any(tool["function"].get("strict") for body in server.asked for tool in body["tools"])


def test_prompted_calls_need_no_tools_of_the_server(tmp_path: Path) -> None:
    """In the prompted mode tools stand in the text alone, one that is found by searching too."""
    with scripted("perfect") as server:
        ran = harness.run(order(server, 15, call_mode="prompted"), tmp_path / "harness")
    for transcript in ran.outcome.transcripts:
        assert marked(TOOL_CASES[transcript.case], "prompted", transcript).automatic_pass == ""
    assert not any("tools" in body for body in server.asked)
    (tides,) = [body for body in server.asked if "tide_table" in json.dumps(body["messages"][-1])]
    assert "You can call these too" in tides["messages"][-1]["content"]


def test_a_server_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    """No connection: each case has an error, and the outcome says why, so that nothing is scored."""
    with scripted("perfect") as server:
        gone = order(server, 2)
    ran = harness.run(gone, tmp_path / "harness")
    assert ran.outcome.unreachable
    assert all(each.turns[-1].error for each in ran.outcome.transcripts)


def test_a_harness_that_breaks_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with a fault: the error has the last line that it wrote, harmless and short."""
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho first\nprintf 'last\\033[2J%01000d\\n' 7\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(broken))
    with pytest.raises(NotCheckedError, match="the harness ended with code 3") as caught:
        harness.run(order(Scripted("perfect"), 1), tmp_path / "harness")
    assert caught.value.why.startswith("last[2J000")
    assert len(caught.value.why) == 300


def test_the_harness_is_told_nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a process needs to start is passed on."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("INSPECT_EVAL_MODEL", "none/none")
    told = environment(tmp_path)
    assert not {"OPENAI_API_KEY", "INSPECT_EVAL_MODEL"} & set(told)
    assert all(str(tmp_path) in told[name] for name in ("HOME", "TMPDIR", "XDG_DATA_HOME", "INSPECT_LOG_DIR"))
