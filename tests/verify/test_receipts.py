"""Receipts against their lock: every check fails when what it checks is wrong, and only then."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reproducer.documents.opened import open_lock
from reproducer.documents.verdict import Check, Verdict
from reproducer.ledger import AnyReceipt
from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import Evidence, edited, sha256


def _not_passed(checks: tuple[Check, ...]) -> dict[str, str]:
    return {check.id: f"{check.status}: {check.reason}" for check in checks if check.status != "passed"}


def _after(evidence: Evidence, old: AnyReceipt, edit: Callable[[dict[str, Any]], object]) -> tuple[Check, ...]:
    """The checks after one receipt was edited and those that name it follow: a forger who knows what is bound."""
    return verify_receipts(evidence.opened, evidence.replacing(old, edited(old, edit)))


def test_good_receipts_pass_and_ids_are_unique(evidence: Evidence) -> None:
    """Every check of a good run passes, and no two checks share an id."""
    checks = verify_receipts(evidence.opened, evidence.receipts)

    assert _not_passed(checks) == {}
    assert len({check.id for check in checks}) == len(checks)
    expected = {"binding.lock", "derived.decode.single", "threshold.decode.single.decode_rate", "effective.page_size"}
    assert expected <= {check.id for check in checks}


def test_order_and_repetition_do_not_matter(evidence: Evidence) -> None:
    """The same receipts give the same checks in whatever order they come, and an equal one counts once."""
    once = verify_receipts(evidence.opened, evidence.receipts)

    assert verify_receipts(evidence.opened, evidence.receipts[::-1]) == once
    assert verify_receipts(evidence.opened, evidence.receipts * 2) == once


def test_nothing_is_not_checked(evidence: Evidence) -> None:
    """No receipts, no conclusion: 64 + 32."""
    verdict = Verdict(checks=verify_receipts(evidence.opened, ()))

    assert verdict.outcome.exit_code == 64 + 32


def test_build_alone_is_not_a_qualification(evidence: Evidence) -> None:
    """The measures that the suite asks for are missed one by one."""
    found = _not_passed(verify_receipts(evidence.opened, (evidence.build,)))

    assert found["measure.fidelity"] == "failed: the suite asks for it and there is no receipt"
    assert {"measure.decode.single", "measure.chat.smoke", "suite", "launch"} <= found.keys()


BUILD_EDITS: dict[str, tuple[Callable[[dict[str, Any]], object], set[str]]] = {
    "other bytes, same content": (
        lambda build: build["outputs"][0].update(sha256=sha256("other"), level="content-identical"),
        {"build.level", "build.packages"},
    ),
    "other content": (
        lambda build: build["outputs"][0].update(sha256=sha256("other"), content_sha256=sha256("other")),
        {"build.engine.engine-1.0-py3-none-any.whl", "build.level", "build.packages"},
    ),
    "claimed level": (
        lambda build: build["outputs"][0].update(sha256=sha256("other"), size=2001),
        {"build.engine.engine-1.0-py3-none-any.whl", "build.level", "build.packages"},
    ),
    "second build differed": (
        lambda build: [build["outputs"][0].update(level="inputs-identical"), build.update(level="inputs-identical")],
        {"build.engine.engine-1.0-py3-none-any.whl"},
    ),
    "lower level hidden": (lambda build: build["outputs"][0].update(level="content-identical"), {"build.level"}),
    "size": (
        lambda build: build["outputs"][0].update(size=2001),
        {"build.engine.engine-1.0-py3-none-any.whl", "build.level"},
    ),
    "claimed lowest level": (lambda build: build.update(level="content-identical"), {"build.level"}),
    "output gone": (
        lambda build: build.update(outputs=[]),
        {"build.engine.engine-1.0-py3-none-any.whl", "build.level", "build.packages"},
    ),
    "foreign package": (
        lambda build: build["packages"][0].update(sha256=sha256("another torch")),
        {"build.packages"},
    ),
    "no packages": (lambda build: build.update(packages=[]), {"build.packages"}),
    "other Python": (lambda build: build.update(python="3.110.1"), {"build.python"}),
    "other checkpoint": (
        lambda build: build["checkpoints"]["small-model"].update(sha256=sha256("other")),
        {"build.checkpoint.small-model"},
    ),
    "no checkpoint": (lambda build: build.update(checkpoints={}), {"build.checkpoint.small-model"}),
}


@pytest.mark.parametrize("name", BUILD_EDITS)
def test_build_is_compared_with_the_lock(evidence: Evidence, name: str) -> None:
    """What a build receipt shows is compared with the lock; levels are recomputed."""
    edit, expected = BUILD_EDITS[name]

    checks = _after(evidence, evidence.build, edit)

    assert set(_not_passed(checks)) == expected
    assert Verdict(checks=checks).outcome.exit_code == 64 + 2


LAUNCH_EDITS: dict[str, tuple[Callable[[dict[str, Any]], object], set[str], int]] = {
    "namespace": (lambda launch: launch.update(namespace_digest=sha256("other")), {"binding.namespace"}, 4),
    "namespace name": (lambda launch: launch.update(namespace="other"), {"binding.namespace"}, 4),
    "value differs": (lambda launch: launch["effective"][0].update(got="cuda"), {"effective.device"}, 4),
    "value differs and agrees is set": (
        lambda launch: launch["effective"][2].update(got=32),
        {"effective.page_size"},
        4,
    ),
    "expected from elsewhere": (
        lambda launch: launch["effective"][2].update(expected=32, got=32),
        {"effective.page_size"},
        4,
    ),
    "one is not true": (
        lambda launch: launch["effective"][1].update(expected=1, got=1),
        {"effective.disable_overlap"},
        4,
    ),
    "not shown": (lambda launch: launch["effective"][0].pop("got"), {"effective.device"}, 4),
    "says it differs": (lambda launch: launch["effective"][0].update(agrees=False), {"effective.device"}, 4),
    "value gone": (lambda launch: launch["effective"].pop(), {"effective.page_size"}, 4),
    "arguments": (lambda launch: launch["arguments"].append("--enable-metrics"), {"launch.arguments"}, 4),
    "argument order": (lambda launch: launch["arguments"].reverse(), {"launch.arguments"}, 4),
    "variable gone": (lambda launch: launch.update(environment={}), {"launch.environment"}, 4),
    "variable changed": (
        lambda launch: launch["environment"].update(HF_HUB_OFFLINE="0"),
        {"launch.environment"},
        4,
    ),
    "other boot": (
        lambda launch: launch["boot"].update(id=sha256("another boot")),
        {"binding.boots.decode.single", "binding.boots.fidelity", "binding.boots.chat.smoke"},
        16,
    ),
    "other lock": (lambda launch: launch.update(lock_digest=sha256("another lock")), {"binding.lock"}, 16),
    "build that is not here": (
        lambda launch: launch.update(build_receipt=sha256("another build")),
        {
            "binding.launches",
            "binding.receipts.decode.single",
            "binding.receipts.fidelity",
            "binding.receipts.chat.smoke",
        },
        16,
    ),
}


@pytest.mark.parametrize("name", LAUNCH_EDITS)
def test_launch_is_compared_with_the_lock(evidence: Evidence, name: str) -> None:
    """Namespace, effective values, environment and bindings of one launch out of two."""
    edit, expected, bits = LAUNCH_EDITS[name]

    checks = _after(evidence, evidence.launches[1], edit)

    assert set(_not_passed(checks)) == expected
    assert Verdict(checks=checks).outcome.exit_code == 64 + bits


def test_namespace_of_another_penny_is_unknown(evidence: Evidence) -> None:
    """Another version may class factors differently: a difference to its namespace is unknown, which is no pass."""

    def older(launch: dict[str, Any]) -> None:
        launch.update(penny_version="0.0.1", namespace_digest=sha256("older"))

    found = _not_passed(_after(evidence, evidence.launches[1], older))

    assert list(found) == ["binding.namespace"]
    assert found["binding.namespace"].startswith("unknown: penny 0.0.1 derived it")


def test_package_that_is_missing_or_of_another_project(evidence: Evidence) -> None:
    """Every package of the runtime's environment is installed, by a hash of that very project."""
    build = evidence.build

    def missing(receipt: dict[str, Any]) -> None:
        receipt["packages"] = [each for each in receipt["packages"] if each["project"] != "torch"]

    def swapped(receipt: dict[str, Any]) -> None:
        for package in receipt["packages"]:
            package["project"] = "numpy" if package["project"] == "torch" else package["project"]

    assert (
        "torch is in the lock and not in the runtime" in _not_passed(_after(evidence, build, missing))["build.packages"]
    )
    assert "numpy 2.13.0" in _not_passed(_after(evidence, build, swapped))["build.packages"]


def test_two_launches_of_one_boot_are_noticed(evidence: Evidence) -> None:
    """One process cannot have started twice."""
    boot = evidence.launches[0].boot.id
    found = _not_passed(_after(evidence, evidence.launches[1], lambda launch: launch["boot"].update(id=boot)))

    assert "has two launch receipts" in found["binding.launches"]


def _without_boot(receipt: dict[str, Any]) -> None:
    keep = receipt["samples"][0]["boot"]
    for sample in receipt["samples"]:
        sample["boot"] = keep


MEASURE_EDITS: dict[str, tuple[Callable[[dict[str, Any]], object], set[str], int]] = {
    "value": (lambda m: m["derived"][0].update(value=99.5), {"derived.decode.single"}, 8),
    "last digit": (
        lambda m: m["derived"][0].update(value=m["derived"][0]["value"] + 1e-13),
        {"derived.decode.single"},
        8,
    ),
    "spread": (lambda m: m["derived"][0].update(minimum=1.0), {"derived.decode.single"}, 8),
    "kind": (lambda m: m["derived"][0].update(kind="aggregate makespan rate"), {"derived.decode.single"}, 8),
    "value gone": (lambda m: m["derived"].pop(), {"derived.decode.single"}, 8),
    "value twice": (lambda m: m["derived"].append(m["derived"][0]), {"derived.decode.single"}, 8),
    "value from nowhere": (
        lambda m: m["derived"].append(m["derived"][0] | {"name": "speed"}),
        {"derived.decode.single"},
        8,
    ),
    "sample edited": (
        lambda m: m["samples"][1]["requests"][0]["events"].__setitem__(3, [100_000_000_000, 4]),
        {"derived.decode.single", "measure.decode.single"},
        8,
    ),
    "mark of a sample": (
        lambda m: m["samples"][1]["facts"].update(valid=False),
        {"derived.decode.single"},
        8,
    ),
    "mark of a warm-up": (
        lambda m: m["samples"][0]["facts"].update(valid=1),
        {"derived.decode.single"},
        8,
    ),
    "reason of a valid sample": (
        lambda m: m["samples"][1]["facts"].update(invalid="too slow"),
        {"derived.decode.single"},
        8,
    ),
    "reason of a pass": (lambda m: m.update(reason="by hand"), {"measure.decode.single"}, 8),
    "copied bound": (
        lambda m: m["thresholds"][0]["threshold"].update(bound=1),
        {"measure.decode.single"},
        8,
    ),
    "copied result": (lambda m: m["thresholds"][0].update(passed=False), {"measure.decode.single"}, 8),
    "bound dropped": (lambda m: m.update(thresholds=[]), {"measure.decode.single"}, 8),
    "status": (lambda m: m.update(status="failed", reason="said so"), {"measure.decode.single"}, 8),
    "parameters": (lambda m: m["parameters"].update(prompt_tokens=4), {"parameters.decode.single"}, 8),
    "parameter gone": (lambda m: m["parameters"].pop("prompt_tokens"), {"parameters.decode.single"}, 8),
    "warm-up": (lambda m: m.update(warmup=0), {"samples.decode.single"}, 8),
    "one boot": (_without_boot, {"samples.decode.single", "derived.decode.single"}, 8),
    "sample index": (
        lambda m: m["samples"][1].update(index=0),
        {"binding.boots.decode.single", "samples.decode.single"},
        16 + 8,
    ),
    "foreign boot": (
        lambda m: m["samples"][1].update(boot=sha256("foreign")),
        {"binding.boots.decode.single", "derived.decode.single"},
        16 + 8,
    ),
    "written elsewhere": (
        lambda m: m["samples"][1]["facts"].update(written_boot=sha256("foreign")),
        {"binding.boots.decode.single"},
        16,
    ),
    "launch gone": (
        lambda m: m["launch_receipts"].pop(),
        {"binding.boots.decode.single", "binding.processes.decode.single"},
        16,
    ),
    "foreign launch": (
        lambda m: m["launch_receipts"].append(sha256("foreign")),
        {"binding.receipts.decode.single", "binding.processes.decode.single"},
        16,
    ),
    "foreign build": (
        lambda m: m.update(build_receipt=sha256("foreign")),
        {"binding.receipts.decode.single"},
        16,
    ),
    "other lock": (lambda m: m.update(lock_digest=sha256("foreign")), {"binding.lock"}, 16),
    "other version": (lambda m: m.update(measure="decode.single/2"), {"suite", "measure.decode.single"}, 8),
}


@pytest.mark.parametrize("name", MEASURE_EDITS)
def test_measure_is_recomputed(evidence: Evidence, name: str) -> None:
    """Whatever is edited in a measure receipt, the check that watches it fails, and no other."""
    edit, expected, bits = MEASURE_EDITS[name]

    checks = _after(evidence, evidence.measure("decode.single"), edit)

    assert set(_not_passed(checks)) == expected
    assert Verdict(checks=checks).outcome.exit_code == 64 + bits


def test_too_few_samples_fail(evidence: Evidence) -> None:
    """Fewer samples than the lock asks for do not qualify, whatever they show."""
    found = _not_passed(_after(evidence, evidence.measure("fidelity"), lambda m: m.update(samples=m["samples"][:1])))

    assert "1 samples, the lock asks for 2" in found["samples.fidelity"]


def test_samples_that_break_the_arithmetic_fail(evidence: Evidence) -> None:
    """Samples that make a derivation impossible fail the check and not the program."""

    def empty(receipt: dict[str, Any]) -> None:
        for sample in receipt["samples"]:
            sample["requests"] = []

    found = _not_passed(_after(evidence, evidence.measure("decode.single"), empty))

    assert found["derived.decode.single"].startswith("failed")
    assert found["threshold.decode.single.decode_rate"].startswith("failed")


def test_bound_of_the_lock_counts(evidence: Evidence, tmp_path: Path) -> None:
    """Raising the bound in the lock fails the threshold; the receipt's copy of the old bound does not help."""
    folder = Path(shutil.copytree(evidence.opened.folder, tmp_path / "strict"))
    path = folder / "penny.lock.toml"
    path.write_text(path.read_text().replace("bound = 10\n", "bound = 1000\n"))
    strict = open_lock(path)

    found = _not_passed(verify_receipts(strict, evidence.receipts))

    assert found["threshold.decode.single.decode_rate"] == "failed: the bound of the lock does not hold"
    assert "measure.decode.single" in found


def test_missing_reference_cannot_be_passed(evidence: Evidence, tmp_path: Path) -> None:
    """Without the reference, fidelity does not follow from anything."""
    folder = Path(shutil.copytree(evidence.opened.folder, tmp_path / "lost"))
    (folder / "reference.json").unlink()

    found = _not_passed(verify_receipts(open_lock(folder / "penny.lock.toml"), evidence.receipts))

    assert "reference.json cannot be read" in found["derived.fidelity"]
    assert found["threshold.fidelity.kl_mean"].startswith("failed")


def test_skipped_measure_leaves_its_bounds_unknown(evidence: Evidence) -> None:
    """A skipped measure is shown with its reason, and a bound on it could not be checked: 64 + 32."""

    def skip(receipt: dict[str, Any]) -> None:
        receipt.update(status="skipped", reason="no storage", samples=[], derived=[], thresholds=[], launch_receipts=[])

    checks = _after(evidence, evidence.measure("decode.single"), skip)

    assert _not_passed(checks) == {
        "measure.decode.single": "skipped: no storage",
        "threshold.decode.single.decode_rate": "unknown: the measure was skipped: no storage",
    }
    assert Verdict(checks=checks).outcome.exit_code == 64 + 32


def test_measure_that_was_skipped_in_spite_of_its_bounds_fails(evidence: Evidence) -> None:
    """A receipt without samples that owns up to having failed is told to have failed, with its own reason."""

    def empty(receipt: dict[str, Any]) -> None:
        result = receipt["thresholds"][0]
        receipt.update(status="failed", reason="no storage", samples=[], derived=[], launch_receipts=[])
        receipt["thresholds"] = [{"threshold": result["threshold"], "passed": False}]

    found = _not_passed(_after(evidence, evidence.measure("decode.single"), empty))

    assert found["derived.decode.single"] == "failed: there are no samples"
    assert "no storage" in found["measure.decode.single"]
    assert "copy of the bounds" not in found["measure.decode.single"]


def test_rerun_adds_and_both_count(evidence: Evidence) -> None:
    """Two receipts of one measure are checked each under a name of its own; a bad one is not outvoted."""
    good = evidence.measure("chat.smoke")
    bad = edited(good, lambda receipt: receipt["derived"][0].update(value=0.5))

    found = _not_passed(verify_receipts(evidence.opened, (*evidence.receipts, bad)))

    assert list(found) == [f"derived.chat.smoke[{bad.digest[:12]}]"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_edit_of_a_number_passes(evidence: Evidence, data: st.DataObject) -> None:
    """Whichever derived number is changed to whatever else, verification fails."""
    receipt = data.draw(st.sampled_from(evidence.measures))
    place = data.draw(st.integers(0, len(receipt.derived) - 1))
    field = data.draw(st.sampled_from(["value", "minimum", "maximum"]))
    number = data.draw(st.floats(allow_nan=False, allow_infinity=False))
    forged = edited(receipt, lambda content: content["derived"][place].update({field: number}))

    outcome = Verdict(checks=verify_receipts(evidence.opened, evidence.replacing(receipt, forged))).outcome

    assert bool(outcome) == (number != getattr(receipt.derived[place], field))


def test_sample_that_is_called_warmup_afterwards_fails(evidence: Evidence) -> None:
    """Slow samples cannot be hidden as warm-up: the lock says how many there are, and they come first."""

    def hide(receipt: dict[str, Any]) -> None:
        receipt["samples"][2]["warmup"] = True

    old = evidence.measure("decode.single")
    new = edited(old, hide)
    found = _not_passed(verify_receipts(evidence.opened, evidence.replacing(old, new)))
    assert found["samples.decode.single"].startswith("failed")
    assert "are called warm-up" in found["samples.decode.single"]


def test_sample_that_is_gone_fails(evidence: Evidence) -> None:
    """A sample that was dropped leaves a gap in the indices."""
    old = evidence.measure("decode.single")
    new = edited(old, lambda receipt: receipt["samples"].pop(2))
    found = _not_passed(verify_receipts(evidence.opened, evidence.replacing(old, new)))
    assert "leave some out" in found["samples.decode.single"]


def test_value_that_differs_counts_though_the_lock_is_silent(evidence: Evidence) -> None:
    """A launch that itself says a value differs fails, whether the lock names that value or not."""
    more = {"name": "zz", "expected": 1, "got": 2, "source": "server_info", "agrees": False}
    old = evidence.launches[0]
    new = edited(old, lambda launch: launch["effective"].append(more))
    found = _not_passed(verify_receipts(evidence.opened, evidence.replacing(old, new)))
    assert found["effective"].startswith("failed")


def test_variable_besides_those_of_the_lock_fails(evidence: Evidence) -> None:
    """A variable that neither the lock nor penny sets may steer the engine, so a launch with one is not the lock's."""
    old = evidence.launches[0]
    new = edited(old, lambda launch: launch["environment"].update(SGLANG_SWITCH="1"))
    found = _not_passed(verify_receipts(evidence.opened, evidence.replacing(old, new)))
    assert "SGLANG_SWITCH is set besides" in found["launch.environment"]
