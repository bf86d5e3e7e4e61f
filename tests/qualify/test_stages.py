"""Samples that span boots, one of which differs from the lock: restored at once, flipped and back, interrupted."""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from reproducer.documents.lock import Scalar
from reproducer.documents.receipts import MeasureReceipt
from reproducer.errors import NotCheckedError
from reproducer.progress import Silent
from reproducer.qualify.plan import planned
from reproducer.qualify.suite import qualify
from tests.qualify.conftest import Told
from tests.qualify.servers import STORING, Booted, Boots, build_receipt, measure, suite

FLIP = measure("namespace.flip/1", ("hit_tokens_after", ">=", 48, "tokens"), prompt_tokens=64, output_tokens=4)
TOGETHER = measure(
    "restore.concurrent/1",
    ("storage_tokens_least", ">=", 48, "tokens"),
    concurrency=3,
    prompt_tokens=64,
    output_tokens=4,
)


def run(
    folder: Path, boots: Boots, *measures: object, arguments: Mapping[str, object] = STORING, told: Told | None = None
) -> tuple[MeasureReceipt, ...]:
    """The receipts of a suite; samples lie in `folder/samples`."""
    opened = suite(folder, *measures, arguments=arguments)  # type: ignore[arg-type]
    return qualify(
        opened, build_receipt(), boots.boot, workspace=folder / "samples", reporter=told or Silent(), settle_s=0.0
    )


def derived(receipt: MeasureReceipt) -> dict[str, float]:
    """The derived values of a receipt."""
    return {each.name: each.value for each in receipt.derived}


def test_a_prompt_is_missed_under_another_page_size_and_hit_again(tmp_path: Path) -> None:
    """Three boots, the middle one altered; the receipt names all three, and other measures run in the others alone."""
    boots = Boots(tmp_path / "server")
    flip, together, chat = run(tmp_path, boots, FLIP, TOGETHER, measure("chat.smoke/1"))
    assert [(each.status, each.reason) for each in (flip, together, chat)] == [("passed", "")] * 3
    assert [launch.altered for launch in boots.receipts] == [None, {"page_size": 32}, None]
    assert flip.launch_receipts == tuple(launch.digest for launch in boots.receipts)
    first, middle, last = (launch.boot.id for launch in boots.receipts)
    for sample in flip.samples:
        assert (sample.facts["written_boot"], sample.facts["flipped_boot"], sample.boot) == (first, middle, last)
    assert middle not in {sample.boot for receipt in (together, chat) for sample in receipt.samples}
    assert derived(flip) | {"restore_s": 0, "cold_s": 0} == {
        "hit_tokens_before": 48,
        "missed_tokens": 64,
        "hit_tokens_after": 48,
        "hits_again": 1,
        "restore_s": 0,
        "cold_s": 0,
        "agreement_between": 1,
        "same_output": 1,
        "valid_samples": 2,
        "invalid_samples": 0,
    }
    values = {each.name: each for each in together.derived}
    assert values["storage_tokens"].values == (48.0,) * 6
    assert (values["same_outputs"].value, values["agreement"].value) == (1, 1)
    rates, worst, median = (
        values[name].values for name in ("aggregate_restored_rate", "restore_worst_s", "restore_median_s")
    )
    for rate, slowest, typical in zip(rates, worst, median, strict=True):
        assert 144 / slowest >= rate > 0
        assert slowest >= typical > 0


def test_samples_that_alter_the_same_share_a_boot(tmp_path: Path) -> None:
    """Flips to 32 take one altered boot, those to 64 another; between three boots of the lock each comes twice."""
    boots = Boots(tmp_path / "server")
    measures = [
        measure("namespace.flip/1", repeats=2, prompt_tokens=64, output_tokens=4, page_size=size) for size in (32, 64)
    ]
    opened = suite(tmp_path, *measures, boots=3)
    qualify(opened, build_receipt(), boots.boot, workspace=tmp_path / "samples", reporter=Silent(), settle_s=0.0)
    sizes = [None if launch.altered is None else launch.altered["page_size"] for launch in boots.receipts]
    assert sizes == [None, 32, 64, None, 32, 64, None]


def test_pages_that_another_page_size_finds_fail_the_measure(tmp_path: Path, told: Told) -> None:
    """The altered server looks where the lock's pages lie: every sample says how many tokens it found there."""
    (flip,) = run(tmp_path, Boots(tmp_path / "server", careless=True), FLIP, told=told)
    assert flip.status == "failed"
    assert "48 tokens were found under another page size: the namespaces are not apart" in flip.reason
    assert derived(flip)["invalid_samples"] == 2


def test_restored_outputs_that_differ_show(tmp_path: Path) -> None:
    """The second boot says something else at the end of every answer: three of four tokens agree."""
    boots = Boots(tmp_path / "server", later=["--fault", "other-output"])
    (together,) = run(tmp_path, boots, TOGETHER)
    assert (derived(together)["same_outputs"], derived(together)["agreement"]) == (0, 0.75)


@dataclass
class Breaking(Boots):
    """Boots of which one ends badly: the server was killed while pages were still to be written."""

    breaks: int = 0

    @contextmanager
    def boot(self, altered: Mapping[str, Scalar] | None = None) -> Iterator[Booted]:
        """One more."""
        breaking = len(self.receipts) == self.breaks
        with super().boot(altered) as server:
            yield server
        if breaking:
            raise NotCheckedError("the server died at its end")


@pytest.mark.parametrize(
    ("breaks", "kept", "then"),
    [
        (0, {"whole"}, [None, {"page_size": 32}, None]),
        (1, {"whole"}, [None, {"page_size": 32}, None]),
        (2, {"whole", "flip", "restore"}, []),
    ],
)
def test_an_interrupted_flip_goes_on_where_it_stopped(
    tmp_path: Path, breaks: int, kept: set[str], then: list[object]
) -> None:
    """What a boot that did not end well was to leave for later is done again; what is finished is not."""
    bad = Breaking(tmp_path / "server", breaks=breaks)
    with pytest.raises(NotCheckedError, match="died at its end"):
        run(tmp_path, bad, FLIP, measure("chat.smoke/1"))
    samples = tmp_path / "samples"
    assert {path.stem.rpartition("-")[2] for path in samples.glob("0*.json")} == kept
    before = {path.name: path.read_bytes() for path in samples.glob("0*.json")}
    good = Boots(tmp_path / "server")
    flip, _ = run(tmp_path, good, FLIP, measure("chat.smoke/1"))
    assert (flip.status, flip.reason) == ("passed", "")
    assert [launch.altered for launch in good.receipts] == then
    assert {name: (samples / name).read_bytes() for name in before} == before
    started = [launch.digest for launch in itertools.chain(bad.receipts, good.receipts)]
    assert set(flip.launch_receipts) <= set(started)
    assert len(flip.launch_receipts) == 3


def test_without_pages_that_outlive_the_server_it_is_skipped(tmp_path: Path) -> None:
    """No storage in the launch: nothing could be restored, no altered server is started, and the receipts say why."""
    boots = Boots(tmp_path / "server")
    bare = [measure(each.id) for each in (FLIP, TOGETHER)]
    receipts = run(tmp_path, boots, *bare, measure("chat.smoke/1"), arguments={})
    assert [each.status for each in receipts] == ["skipped", "skipped", "passed"]
    assert {each.reason for each in receipts[:2]} == {"the server of this launch keeps no pages beyond its end"}
    assert [launch.altered for launch in boots.receipts] == [None, None]


def test_the_locks_own_page_size_is_no_other_one(tmp_path: Path) -> None:
    """A flip to the page size that the lock has anyway would show nothing."""
    (flip,) = run(tmp_path, Boots(tmp_path / "server"), measure("namespace.flip/1", page_size=16))
    assert (flip.status, flip.reason) == ("skipped", "page_size 16 is the lock's own")


def test_prompts_within_one_page_are_no_measure_of_what_is_found_again(tmp_path: Path) -> None:
    """Engines keep whole pages: where the prompt fills none, the receipt says so and nothing is sent."""
    short = [measure(each, prompt_tokens=16) for each in ("prefix.reuse/1", "determinism/1", "restore.restart/1")]
    receipts = run(tmp_path, Boots(tmp_path / "server"), *short, measure("chat.smoke/1"))
    assert [each.status for each in receipts] == ["skipped"] * 3 + ["passed"]
    assert {each.reason for each in receipts[:3]} == {
        "prompts of 16 tokens do not fill a page of 16: none is found again"
    }


def test_what_a_restart_brings_back_is_asked_for_first() -> None:
    """In a later boot restores come before anything that fills the memory between engine and storage."""
    suite = [(0, measure("prefill.cold/1")), (1, measure("restore.restart/1"))]
    second = [step.part for step in planned(suite, 3) if step.slot == 2]
    assert second == sorted(second, key=["restore", "write", "whole"].index)
    assert second[0] == "restore"
