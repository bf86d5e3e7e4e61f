"""Launches that differ from the lock: exactly what a measure of the suite declares, for that measure's stage alone."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from reproducer.documents.measured import Conditions
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.receipts import BuildReceipt, EffectiveValue, LaunchReceipt, MeasureReceipt
from reproducer.engines.alteration import altered, unaltered
from reproducer.errors import InvalidDocumentError
from reproducer.identity.namespace import derive as derive_namespace
from reproducer.measures.checks import definition
from reproducer.qualify.derive import derive, judge
from reproducer.verify.receipts import verify_receipts
from tests.qualify.records import GOOD, parameters
from tests.verify.factory import HOST, PENNY, build_receipt, edited, launch_receipt, small_lock

FLIP = "namespace.flip/1"
ALTERED: dict[str, Any] = {"page_size": 32}


@dataclass(frozen=True)
class Flipped:
    """The evidence of one flip: written in the first boot, flipped in the second, back in the third."""

    opened: OpenedLock
    build: BuildReceipt
    launches: tuple[LaunchReceipt, ...]

    def failed(
        self,
        *,
        launch: int = 0,
        edit: Callable[[dict[str, Any]], object] = lambda _: None,
        edit_sample: Callable[[dict[str, Any]], object] = lambda _: None,
    ) -> dict[str, str]:
        """The checks that fail with one launch and the samples edited, with their reasons; the measure's follow."""
        launches = list(self.launches)
        launches[launch] = edited(launches[launch], edit)
        measured = _measured(self.opened, self.build, tuple(launches), edit_sample)
        checks = verify_receipts(self.opened, (self.build, *launches, measured))
        return {each.id: each.reason for each in checks if each.status == "failed"}


def _measured(
    opened: OpenedLock,
    build: BuildReceipt,
    launches: tuple[LaunchReceipt, ...],
    edit: Callable[[dict[str, Any]], object],
) -> MeasureReceipt:
    first, middle, last = (launch.boot.id for launch in launches)
    good = GOOD[FLIP]()
    facts = good.facts | {"written_boot": first, "flipped_boot": middle}
    samples = tuple(good.model_copy(update={"index": index, "boot": last, "facts": facts}) for index in range(2))
    (measure,) = opened.lock.qualification.measures
    derived = derive(FLIP, parameters(FLIP), samples, statistics="penny-statistics/1")
    judged = judge(measure, samples, derived)
    receipt = MeasureReceipt(
        lock_digest=opened.digest,
        penny_version=PENNY,
        created="2026-01-02T03:20:00Z",
        build_receipt=build.digest,
        launch_receipts=tuple(launch.digest for launch in launches),
        measure=FLIP,
        parameters=parameters(FLIP),
        warmup=0,
        conditions=Conditions(host=HOST, load_average=(0.0, 0.0), cache_state=definition(FLIP).cache_state),
        samples=samples,
        statistics="penny-statistics/1",
        derived=derived,
        thresholds=judged.thresholds,
        status=judged.status,
        reason=judged.reason,
    )
    return edited(receipt, lambda data: [edit(sample) for sample in data["samples"]])  # type: ignore[no-any-return]


def flipped_launch(opened: OpenedLock, build: BuildReceipt, number: int, values: dict[str, Any]) -> LaunchReceipt:
    """A boot of the lock with other values, in the namespace that the altered lock has."""
    lock = altered(opened.lock, values)
    namespace = derive_namespace(lock)
    size = str(lock.launch.arguments["page-size"])
    return launch_receipt(opened, build, number).model_copy(
        update={
            "altered": values,
            "namespace": namespace.name,
            "namespace_digest": namespace.digest,
            "arguments": ("--device", "cpu", "--model-path", "{checkpoint.target}", "--page-size", size),
            "effective": tuple(
                EffectiveValue(name=name, expected=value, got=value, source="server_info", agrees=True)
                for name, value in sorted(lock.launch.effective.items())
            ),
        }
    )


@pytest.fixture
def flipped(tmp_path: Path) -> Flipped:
    """A lock whose suite flips to pages of 32, and a good run of it."""
    small_lock(tmp_path)
    path = tmp_path / "penny.lock.toml"
    lock = tomlkit.parse(path.read_text()).unwrap()
    lock["qualification"]["measures"] = [
        {"id": FLIP, "repeats": 2, "warmup": 0, "parameters": parameters(FLIP), "thresholds": []}
    ]
    path.write_text(tomlkit.dumps(lock))
    opened = open_lock(path)
    build = build_receipt(opened)
    first, last = (launch_receipt(opened, build, number) for number in (1, 3))
    return Flipped(opened, build, (first, flipped_launch(opened, build, 2, ALTERED), last))


def test_a_declared_alteration_is_accepted(flipped: Flipped) -> None:
    """Namespace, arguments and effective values of the middle boot are those of the altered lock: nothing fails."""
    assert flipped.failed() == {}
    checks = verify_receipts(
        flipped.opened,
        (flipped.build, *flipped.launches, _measured(flipped.opened, flipped.build, flipped.launches, id)),
    )
    (found,) = (check for check in checks if check.id == "binding.altered.namespace.flip")
    assert found.status == "passed"
    assert flipped.launches[0].namespace in found.expected
    assert found.got == f"{flipped.launches[1].namespace}: page_size 32"


def _shows(size: int) -> Callable[[dict[str, Any]], object]:
    def edit(launch: dict[str, Any]) -> None:
        for value in launch["effective"]:
            if value["name"] == "page_size":
                value |= {"got": size, "expected": size}

    return edit


def _shows_other_device(launch: dict[str, Any]) -> None:
    for value in launch["effective"]:
        if value["name"] == "device":
            value |= {"got": "cuda", "expected": "cuda"}


def _not_altered(launch: dict[str, Any]) -> None:
    del launch["altered"]


NOT_THE_LOCKS = {"binding.namespace", "launch.arguments", "effective.page_size", "binding.boots.namespace.flip"}
LIES: dict[str, tuple[int, Callable[[dict[str, Any]], object], set[str]]] = {
    "another value than the suite declares": (
        1,
        lambda launch: launch.update(altered={"page_size": 64}),
        NOT_THE_LOCKS | {"binding.launches"},
    ),
    "one more value": (
        1,
        lambda launch: launch.update(altered={"page_size": 32, "device": "cuda"}),
        NOT_THE_LOCKS | {"binding.launches"},
    ),
    "the same value of another type": (
        1,
        lambda launch: launch.update(altered={"page_size": True}),
        NOT_THE_LOCKS | {"binding.launches"},
    ),
    "a difference that is not admitted": (
        1,
        _not_altered,
        NOT_THE_LOCKS,
    ),
    "one more argument": (
        1,
        lambda launch: launch["arguments"].extend(["--quantization", "fp8"]),
        {"launch.arguments"},
    ),
    "the lock's arguments": (1, lambda launch: launch["arguments"].__setitem__(-1, "16"), {"launch.arguments"}),
    "the lock's page size shown": (1, _shows(16), {"effective.page_size", "binding.altered.namespace.flip"}),
    "another device": (1, _shows_other_device, {"effective.device"}),
    "a variable besides": (1, lambda launch: launch["environment"].update(FOO="1"), {"launch.environment"}),
    "a boot of the lock that says it differs": (
        0,
        lambda launch: launch.update(altered=ALTERED),
        NOT_THE_LOCKS,
    ),
    "a boot of the lock with the other page size": (
        2,
        lambda launch: launch["arguments"].__setitem__(-1, "32"),
        {"launch.arguments"},
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_any_other_difference_fails(flipped: Flipped, lie: str) -> None:
    """Neither the altered boot nor the lock's own may differ from what they should be in anything else."""
    launch, edit, ids = LIES[lie]
    failed = flipped.failed(launch=launch, edit=edit)
    assert failed.keys() - {"binding.altered.namespace.flip"} == ids - {"binding.altered.namespace.flip"}
    assert ids <= failed.keys()


def test_the_locks_own_namespace_is_none_for_another_page_size(flipped: Flipped) -> None:
    """The altered boot in the lock's namespace: the check that derives it and the one that compares boots say so."""
    ours = flipped.launches[0]
    failed = flipped.failed(
        launch=1, edit=lambda launch: launch.update(namespace=ours.namespace, namespace_digest=ours.namespace_digest)
    )
    assert failed.keys() == {"binding.namespace", "binding.altered.namespace.flip"}
    assert "ran in the namespace of the lock's own launches" in failed["binding.altered.namespace.flip"]


@pytest.mark.parametrize(
    ("name", "boots", "reason"),
    [
        ("flipped in a boot of the lock", (0, 0, 2), "has no launch receipt with what the measure alters"),
        ("back in the altered boot", (0, 1, 1), "has no launch receipt of the lock"),
        ("written in the altered boot", (1, 1, 2), "has no launch receipt of the lock"),
    ],
)
def test_each_stage_belongs_in_its_own_kind_of_boot(
    flipped: Flipped, name: str, boots: tuple[int, int, int], reason: str
) -> None:
    """A sample that says it was taken elsewhere than its stages lie is caught."""
    ids = [flipped.launches[place].boot.id for place in boots]

    def edit(sample: dict[str, Any]) -> None:
        sample["facts"] |= {"written_boot": ids[0], "flipped_boot": ids[1]}
        sample["boot"] = ids[2]

    failed = flipped.failed(edit_sample=edit)
    assert any(reason in each for each in failed.values()), (name, failed)


def test_a_suite_that_alters_nothing_accepts_no_altered_launch(flipped: Flipped) -> None:
    """Without the measure nobody declares the difference: the launch is held against the lock and is not its."""
    path = flipped.opened.path
    lock = tomlkit.parse(path.read_text()).unwrap()
    lock["qualification"]["measures"] = [{"id": "chat.smoke/1", "repeats": 2, "warmup": 0, "thresholds": []}]
    path.write_text(tomlkit.dumps(lock))
    opened = open_lock(path)
    build = build_receipt(opened)
    launch = flipped_launch(opened, build, 2, ALTERED)
    checks = verify_receipts(opened, (build, launch_receipt(opened, build, 1), launch))
    failed = {each.id: each.reason for each in checks if each.status == "failed"}
    assert "differs from the lock as no measure of its suite declares" in failed["binding.launches"]
    assert {"binding.namespace", "launch.arguments", "effective.page_size"} <= failed.keys()


def test_an_altered_lock_differs_in_that_value_and_what_follows_from_it(flipped: Flipped) -> None:
    """Page size and the tokens that fit whole pages change, nothing else does, and back is back."""
    lock = flipped.opened.lock
    launch = lock.launch.model_copy(
        update={
            "arguments": lock.launch.arguments | {"max-total-tokens": 1000},
            "effective": lock.launch.effective | {"max_total_tokens": 992},
        }
    )
    lock = lock.model_copy(update={"launch": launch})
    changed = altered(lock, {"page_size": 64})
    assert changed.launch.arguments == launch.arguments | {"page-size": 64}
    assert changed.launch.effective == launch.effective | {"page_size": 64, "max_total_tokens": 960}
    assert changed.model_copy(update={"launch": launch}) == lock
    assert derive_namespace(changed).digest != derive_namespace(lock).digest
    assert derive_namespace(altered(changed, {"page_size": 16})).digest == derive_namespace(lock).digest
    assert unaltered(lock, {"page_size": 16}) == "page_size 16 is the lock's own"
    assert unaltered(lock, {"page_size": 64}) == ""
    with pytest.raises(InvalidDocumentError, match="no argument of sglang is known to alter"):
        altered(lock, {"dtype": "float16"})
