"""For each derived value of each measure: whatever is edited in the receipt, or in a raw sample below it, is caught."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from reproducer.documents.measured import Conditions, Derived, Sample, Spread, Statistics
from reproducer.documents.opened import open_lock
from reproducer.documents.receipts import MeasureReceipt
from reproducer.measures.definitions import DEFINITIONS
from reproducer.measures.settings import SETTINGS
from reproducer.qualify.derive import derive, judge
from reproducer.verify.numbers import number_checks
from reproducer.verify.receipts import verify_receipts
from tests.qualify.records import GOOD, edited, parameters, reference
from tests.qualify.test_derive import PINNED, TAMPERED
from tests.verify.factory import HOST, Evidence, build_receipt, launch_receipt, small_lock

# tests/capability holds the values of capability suites, whose samples are transcripts
MEASURES = sorted(DEFINITIONS.keys() - SETTINGS.keys())
STATISTICS: Statistics = "penny-statistics/1"


@dataclass(frozen=True)
class Case:
    """The evidence of one measure, and its receipt."""

    evidence: Evidence
    receipt: MeasureReceipt

    def failed(self, receipt: MeasureReceipt) -> dict[str, str]:
        """The checks that fail with another receipt in the place of the good one, with their reasons."""
        from reproducer.verify.evidence import sort

        found = number_checks(sort(self.evidence.opened, (receipt,)))
        return {each.id: each.reason for each in found if each.status == "failed"}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """The case of each measure, made once."""
    folder = tmp_path_factory.mktemp("locks")
    return cache(lambda measure: _case(folder / measure.replace("/", "-"), measure))


def _case(folder: Path, measure: str) -> Case:
    """A lock that asks for one measure, and a receipt with the same good sample in each of two boots."""
    small_lock(folder)
    data = reference().canonical()
    (folder / "reference.json").write_bytes(data)
    path = folder / "penny.lock.toml"
    lock = tomlkit.parse(path.read_text()).unwrap()
    asked = {"id": measure, "repeats": 2, "warmup": 0, "parameters": parameters(measure), "thresholds": []}
    lock["qualification"]["measures"] = [asked]
    lock["qualification"]["reference"] |= {"sha256": _sha256(data), "size": len(data)}
    path.write_text(tomlkit.dumps(lock))
    opened = open_lock(path)
    build = build_receipt(opened)
    launches = tuple(launch_receipt(opened, build, number) for number in (1, 2))
    good = GOOD[measure]()
    samples = tuple(
        good.model_copy(update={"index": index, "boot": launch.boot.id}) for index, launch in enumerate(launches)
    )
    derived = derive(measure, parameters(measure), samples, reference(), statistics=STATISTICS)
    judged = judge(opened.lock.qualification.measures[0], samples, derived)
    receipt = MeasureReceipt(
        lock_digest=opened.digest,
        penny_version=build.penny_version,
        created="2026-01-02T03:20:00Z",
        build_receipt=build.digest,
        launch_receipts=tuple(launch.digest for launch in launches),
        measure=measure,
        parameters=parameters(measure),
        warmup=0,
        conditions=Conditions(host=HOST, load_average=(0.0, 0.0), cache_state="unknown"),
        samples=samples,
        statistics=STATISTICS,
        derived=derived,
        thresholds=judged.thresholds,
        status=judged.status,
        reason=judged.reason,
    )
    return Case(Evidence(opened, build, launches, (receipt,)), receipt)


def _sha256(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("measure", MEASURES)
def test_untouched(cases: Callable[[str], Case], measure: str) -> None:
    """Every value that the definition promises is there, and the check of the numbers passes."""
    case = cases(measure)
    assert {each.name for each in case.receipt.derived} >= {value.name for value in DEFINITIONS[measure].values}
    assert case.failed(case.receipt) == {}
    derived = [
        each for each in verify_receipts(case.evidence.opened, case.evidence.receipts) if each.id.startswith("derived")
    ]
    assert [each.status for each in derived] == ["passed"]


def _edits(derived: Derived) -> Iterator[tuple[str, Derived]]:
    """The value with one of its fields changed, field by field."""
    other: dict[str, Any] = {
        "name": "other_name",
        "kind": "duration" if derived.kind != "duration" else "count",
        "unit": "requests" if derived.unit != "requests" else "count",
        "value": derived.value + 1e-9,
        "values": (*derived.values[:-1], derived.values[-1] + 1e-9),
        "minimum": derived.minimum - 1e-9,
        "maximum": derived.maximum + 1e-9,
        "spread": None if derived.spread is not None else Spread(method="wilson/1", confidence=0.95, low=0, high=1),
    }
    assert other.keys() == Derived.model_fields.keys()
    yield from ((name, derived.model_copy(update={name: value})) for name, value in other.items())
    yield "values", derived.model_copy(update={"values": (*derived.values, derived.value)})
    if (spread := derived.spread) is not None:
        within: dict[str, Any] = {
            "method": "bootstrap/1" if spread.method == "wilson/1" else "wilson/1",
            "confidence": 0.99,
            "low": spread.low + 1e-9,
            "high": spread.high - 1e-9,
            "within_boots": 0.125,
            "between_boots": 0.125,
        }
        assert within.keys() == Spread.model_fields.keys()
        for name, value in within.items():
            changed = spread.model_copy(update={name: value})
            yield f"spread.{name}", derived.model_copy(update={"spread": changed})


@pytest.mark.parametrize("measure", MEASURES)
def test_an_edited_field_of_a_value(
    cases: Callable[[str], Case], measure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each field of each derived value, changed by the least that shows, fails the check by the value's name."""
    case = cases(measure)
    again = derive(measure, case.receipt.parameters, case.receipt.samples, reference(), statistics=STATISTICS)
    # the samples stay as they are here, so what follows from them is worked out once and not for each edit
    monkeypatch.setattr("reproducer.verify.numbers.derive", lambda *_, **__: again)
    check = f"derived.{measure.rpartition('/')[0]}"
    for place, derived in enumerate(case.receipt.derived):
        for field, changed in _edits(derived):
            every = list(case.receipt.derived)
            every[place] = changed
            failed = case.failed(case.receipt.model_copy(update={"derived": tuple(every)}))
            assert derived.name in failed.get(check, ""), f"{derived.name}.{field} was changed and nobody saw it"
        without = tuple(each for each in case.receipt.derived if each is not derived)
        assert f"{derived.name} is missing" in case.failed(case.receipt.model_copy(update={"derived": without}))[check]
        twice = (*case.receipt.derived, derived)
        assert "stands twice" in case.failed(case.receipt.model_copy(update={"derived": twice}))[check]


EVERY = [(measure, value.name) for measure in MEASURES for value in DEFINITIONS[measure].values]


@pytest.mark.parametrize(("measure", "value"), EVERY)
def test_an_edited_raw_sample(cases: Callable[[str], Case], measure: str, value: str) -> None:
    """A raw sample below each derived value is edited so that it stays plausible: the value no longer follows."""
    case = cases(measure)
    edit = TAMPERED.get((measure, value)) or PINNED[measure, value]
    samples = tuple(_kept(edit(sample), sample) for sample in case.receipt.samples)
    again = derive(measure, case.receipt.parameters, samples, reference(), statistics=STATISTICS)
    assert _value(again, value) != _value(case.receipt.derived, value)
    failed = case.failed(case.receipt.model_copy(update={"samples": samples}))
    assert f"derived.{measure.rpartition('/')[0]}" in failed


def _value(derived: tuple[Derived, ...], name: str) -> Derived | None:
    return next((each for each in derived if each.name == name), None)


def _kept(changed: Sample, good: Sample) -> Sample:
    return changed.model_copy(update={"index": good.index, "boot": good.boot})


def test_a_dropped_and_a_moved_sample(cases: Callable[[str], Case]) -> None:
    """What is left out, called warm-up, or said to come from another boot changes the numbers or their spread."""
    case = cases("decode.single/1")
    events = ((500_000_000, 1), (9_000_000_000, 11))
    slow = edited(case.receipt.samples[1], 0, events=events, finished_ns=9_000_000_000)
    samples = (case.receipt.samples[0], slow)
    derived = derive("decode.single/1", case.receipt.parameters, samples, statistics=STATISTICS)
    good = case.receipt.model_copy(update={"samples": samples, "derived": derived})
    assert case.failed(good) == {}
    for forged in (
        (samples[0],),
        (samples[0], slow.model_copy(update={"warmup": True})),
        (samples[0], slow.model_copy(update={"boot": samples[0].boot})),
    ):
        assert "derived.decode.single" in case.failed(good.model_copy(update={"samples": forged}))


def test_statistics_that_are_left_out(cases: Callable[[str], Case]) -> None:
    """Without the name of its statistics a receipt has no spread, and one that has some does not follow."""
    case = cases("decode.single/1")
    bare = case.receipt.model_copy(update={"statistics": None})
    assert "spread" in case.failed(bare)["derived.decode.single"]
    derived = derive("decode.single/1", case.receipt.parameters, case.receipt.samples)
    old = bare.model_copy(update={"derived": derived})
    assert case.failed(old) == {}
    assert all(each.spread is None for each in old.derived)
