"""`penny ablate`: groups, locks between two locks, and a run on stand-in servers whose pace follows the lock."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from reproducer.ablation.groups import between
from reproducer.ablation.plan import Plan, make_plan
from reproducer.ablation.running import Receipts, run
from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.receipts import LaunchReceipt, MeasureReceipt
from reproducer.errors import ConfigurationError, NotCheckedError, Outcome, UsageError
from reproducer.ledger import Ledger
from reproducer.progress import Silent
from reproducer.qualify.interleaved import Arm, qualify_in_turn
from reproducer.store import Store
from tests.end_to_end.newcomer import ROOT, Penny, copy_of_repository
from tests.qualify.servers import Boots, build_receipt


def edited(lock: Lock, *edits: tuple[tuple[str, ...], Any]) -> Lock:
    """A lock with some values of its plain data changed."""
    data = lock.content()
    for path, value in edits:
        inner = data
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
    return Lock.from_data(data, where="edited")


THREADS = (("launch", "environment", "OMP_NUM_THREADS"), "1")
DEADLINE = (("launch", "readiness", "deadline_s"), 299)
RUNNING = (
    (("launch", "arguments", "max-running-requests"), 4),
    (("launch", "effective", "max_running_requests"), 4),
)
RATIO = ((("launch", "arguments", "hicache-ratio"), 3), (("launch", "effective", "hicache_ratio"), 3))


@pytest.fixture
def here(tmp_path: Path) -> OpenedLock:
    """The committed lock with the files that it names."""
    return open_lock(copy_of_repository(tmp_path / "repository") / "penny.lock.toml")


def beside(first: OpenedLock, lock: Lock) -> OpenedLock:
    """Another lock that lies beside the first one's files."""
    path = first.folder / "b.lock.toml"
    path.write_text(tomlkit.dumps(lock.content()))
    return open_lock(path)


def planned(first: OpenedLock, second: OpenedLock, folder: Path, **how: Any) -> Plan:
    """A plan with a fresh store."""
    return make_plan(first, second, folder / "plan", Store(folder / "store"), **how)


def test_groups(here: OpenedLock) -> None:
    """Arguments, storage and variables are groups; an effective value goes with its argument."""
    found = between(here.lock, edited(here.lock, THREADS, *RUNNING, *RATIO))
    assert {each.name: [piece.name for piece in each.pieces] for each in found.groups} == {
        "environment variables": ["launch.environment.OMP_NUM_THREADS"],
        "launch arguments": ["launch.arguments.max-running-requests", "launch.effective.max_running_requests"],
        "storage": ["launch.arguments.hicache-ratio", "launch.effective.hicache_ratio"],
    }
    apart = between(here.lock, edited(here.lock, *RUNNING, *RATIO), apart=True)
    assert [each.name for each in apart.groups] == ["argument hicache-ratio", "argument max-running-requests"]


def test_what_is_measured_stays(here: OpenedLock) -> None:
    """Another suite, another name and what changes no number are held as in A, and said."""
    found = between(
        here.lock, edited(here.lock, THREADS, (("name",), "other"), (("qualification", "boots"), 3), DEADLINE)
    )
    assert found.held == ("name", "qualification", "launch.readiness")
    assert [each.name for each in found.groups] == ["environment variables"]
    assert Lock.from_data(found.mixed((True,)), where="it").qualification == here.lock.qualification


def test_locks_of_a_plan(here: OpenedLock, tmp_path: Path) -> None:
    """Every combination is written with its files; the ends are A and B by their digests; a second call is the same."""
    second = beside(here, edited(here.lock, THREADS, *RUNNING))
    plan = planned(here, second, tmp_path)
    digests = {each.name: each.opened.digest for each in plan.locks if each.opened}
    assert list(digests) == ["A", "01", "02", "B"]
    assert (digests["A"], digests["B"]) == (here.digest, second.digest)
    assert len(set(digests.values())) == 4
    for each in plan.locks:
        assert each.opened is not None
        assert each.opened.check_files() > 0
    lock = next(each.opened for each in plan.locks if each.groups == ("launch arguments",))
    assert lock is not None
    assert lock.lock.launch.arguments["max-running-requests"] == 4
    assert lock.lock.launch.environment["OMP_NUM_THREADS"] == "2"
    assert {layer.state for layer in plan.locks[0].layers} == {"built anew", "unknown"}
    assert planned(here, second, tmp_path).content() == plan.content()
    with pytest.raises(UsageError, match="another plan lies here"):
        planned(here, second, tmp_path, design="one-at-a-time")


def test_from_the_command_line(here: OpenedLock, tmp_path: Path) -> None:
    """A plan is printed as JSON and written; two engines end with 96 and one clear line."""
    second = beside(here, edited(here.lock, THREADS, *RUNNING))
    penny = Penny(here.folder, tmp_path / "store", tmp_path / "keys")
    ended = penny("ablate", str(here.path), str(second.path), "-o", str(tmp_path / "plan"), "--json")
    assert (ended.code, ended.err) == (0, "")
    data = json.loads(ended.out)
    assert [each["name"] for each in data["locks"]] == ["A", "01", "02", "B"]
    assert open_lock(Path(data["locks"][1]["lock"])).digest == data["locks"][1]["digest"]
    assert (data["run_seconds_each"], data["locks"][0]["build_seconds"]) == (None, None)
    ended = penny("ablate", str(here.path), str(ROOT / "vllm.penny.lock.toml"))
    assert ended.code == 96
    assert "no lock lies between" in ended.err


def test_a_lock_that_is_none(here: OpenedLock, tmp_path: Path) -> None:
    """An argument whose placeholder only the other checkpoints fill is no lock between, and the plan says why."""
    data = here.lock.content()
    data["checkpoints"].append({**data["checkpoints"][0], "name": "draft", "role": "draft"})
    data["launch"]["arguments"]["speculative-draft-model-path"] = "{checkpoint.draft}"
    plan = planned(here, beside(here, Lock.from_data(data, where="B")), tmp_path)
    faults = {each.groups: each.faults for each in plan.locks}
    assert "checkpoint.draft" in faults["launch arguments",][0]
    assert faults["checkpoint draft",] == ()
    assert any("is not balanced any more" in each for each in plan.limits)


def test_an_argument_of_one_version_only(here: OpenedLock, tmp_path: Path) -> None:
    """An argument that B's engine takes and A's does not, with A's engine, is no lock."""
    reference = here.lock.engine.arguments
    assert reference is not None
    schema = json.loads(here.read(reference))
    spare = next(each for each in schema["arguments"] if each["name"] == "max-running-requests")
    new = {**spare, "name": "brand-new", "field": "brand_new", "aliases": []}
    schema["arguments"] = sorted([*schema["arguments"], new], key=lambda each: str(each["name"]))
    text = json.dumps(schema).encode()
    (here.folder / "newer.json").write_bytes(text)
    pinned = {"path": "newer.json", "sha256": hashlib.sha256(text).hexdigest(), "size": len(text)}
    data = here.lock.content()
    data["engine"]["arguments"] = pinned
    data["components"][0]["outputs"][0]["content_sha256"] = "0" * 64
    data["launch"]["arguments"]["brand-new"] = 1
    plan = planned(here, beside(here, Lock.from_data(data, where="B")), tmp_path)
    faults = {each.groups: each.faults for each in plan.locks}
    assert any("has no argument 'brand-new'" in each for each in faults["launch arguments",])
    assert faults["engine source",] == ()


@pytest.mark.parametrize("other", ["vllm", "same"])
def test_no_lock_between(here: OpenedLock, other: str) -> None:
    """Two engines have nothing between them, and neither have two locks alike."""
    if other == "same":
        with pytest.raises(UsageError, match="differ in nothing"):
            between(here.lock, here.lock)
        return
    with pytest.raises(NotCheckedError, match="another engine"):
        between(here.lock, open_lock(ROOT / "vllm.penny.lock.toml").lock)


class StandIns:
    """Measures two locks in turn on stand-ins: fewer threads are slower, and fewer requests at once are slower too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[str] = []

    def __call__(self, first: OpenedLock, second: OpenedLock) -> tuple[Receipts, Receipts]:
        """The receipts of both."""
        name = second.path.parent.name
        self.calls.append(name)
        one, two = self._boots(first, f"{name}-A"), self._boots(second, f"{name}-B")
        ours, theirs = qualify_in_turn(_arm(first, one), _arm(second, two), reporter=Silent(), settle_s=0.0)
        return (build_receipt(), *one.receipts, *ours), (build_receipt(), *two.receipts, *theirs)

    def _boots(self, opened: OpenedLock, name: str) -> Boots:
        slow = opened.lock.launch.environment["OMP_NUM_THREADS"] == "1"
        fewer = opened.lock.launch.arguments["max-running-requests"] == 4
        return Boots(self.folder / name, ["--gap-ms", str(10 + 20 * slow + 5 * fewer)])


def _arm(opened: OpenedLock, boots: Boots) -> Arm:
    """An arm whose launches are those that its boots made."""

    def launches(wanted: Iterable[str]) -> list[LaunchReceipt]:
        named = set(wanted)
        return [each for each in boots.receipts if each.digest in named]

    return Arm(opened, build_receipt(), boots.boot, boots.folder / "samples", launches)


def quick(opened: OpenedLock) -> OpenedLock:
    """A lock with a suite that stand-ins finish at once, on disk."""
    data = opened.lock.content()
    data["qualification"] = {
        "suite": "quick",
        "boots": 2,
        "measures": [
            {
                "id": "decode.single/1",
                "repeats": 4,
                "warmup": 0,
                "parameters": {"prompt_tokens": 16, "output_tokens": 6},
                "thresholds": [],
            }
        ],
    }
    opened.path.write_text(tomlkit.dumps(data))
    return open_lock(opened.path)


def _in_the_way(_: OpenedLock, __: OpenedLock) -> tuple[Receipts, Receipts]:
    raise NotCheckedError("the machine is in the way")


def test_a_run(here: OpenedLock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower group has the larger effect, with interval and floor; a run that broke off is taken up where it was.

    Real servers and 24 boots: it takes some seconds.
    """
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first = quick(here)
    plan = planned(first, beside(first, edited(first.lock, THREADS, *RUNNING)), tmp_path)
    servers = StandIns(tmp_path / "servers")

    def breaks(one: OpenedLock, two: OpenedLock) -> tuple[Receipts, Receipts]:
        if len(servers.calls) == 1:
            raise NotCheckedError("the machine is in the way")
        return servers(one, two)

    with pytest.raises(NotCheckedError):
        run(plan, breaks, Silent())
    ran = run(plan, servers, Silent())
    assert servers.calls == ["01", "02", "B"]
    assert (ran.outcome, ran.failed) == (Outcome.HOLDS, {})
    assert {each.kind for each in ran.comparisons.values()} == {"directional"}
    found = {each.value: each for each in ran.attributions}["decode_rate"]
    effects = {effect.groups: effect.found for effect in found.effects}
    threads, running = effects["environment variables",], effects["launch arguments",]
    assert threads is not None
    assert running is not None
    assert found.whole is not None
    assert threads.value < running.value < 0
    assert threads.conclusion == found.whole.conclusion == "lower"
    assert threads.floor is not None
    assert threads.low is not None
    assert threads.high is not None
    assert threads.low <= threads.value <= threads.high < 0
    assert ("environment variables", "launch arguments") in effects
    again = run(plan, breaks, Silent())
    assert again.content() == ran.content()
    for name in ("A", "lock"):  # a run that was killed while it wrote leaves receipts that no note names
        left = plan.folder / "results" / "02" / name
        (receipt,) = (each for each in Ledger(left).receipts() if isinstance(each, MeasureReceipt))
        Ledger(left).add(receipt.model_copy(update={"created": "2020-01-01T00:00:00Z"}))
    assert run(plan, breaks, Silent()).content() == ran.content()
    (plan.folder / "results" / "02" / "done.json").write_text("[]")
    with pytest.raises(NotCheckedError):
        run(plan, _in_the_way, Silent())


def test_a_lock_that_cannot_be_measured(here: OpenedLock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that comes to other values than its lock ends that row alone; what is missing is said."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first = quick(here)
    plan = planned(first, beside(first, edited(first.lock, THREADS, *RUNNING)), tmp_path, design="one-at-a-time")
    servers = StandIns(tmp_path / "servers")

    def refuses(one: OpenedLock, two: OpenedLock) -> tuple[Receipts, Receipts]:
        if two.path.parent.name == "02":
            raise ConfigurationError("page_size is 32, not 16")
        return servers(one, two)

    ran = run(replace(plan), refuses, Silent())
    assert "page_size is 32" in ran.failed["02"]
    assert ran.outcome is Outcome.NOT_CHECKED
    states = {effect.groups: effect.content()["conclusion"] for effect in ran.attributions[0].effects}
    assert states["launch arguments",] == "not separated"
    assert states["environment variables",] != "not separated"
    assert ran.attributions[0].remainder is None
