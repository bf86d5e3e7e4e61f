"""Every leaf of a measured sample: an edit of it is seen, or it is listed here with why nothing follows from it."""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.measured import Sample
from reproducer.documents.opened import open_lock
from reproducer.documents.receipts import RECEIPT, MeasureReceipt
from reproducer.verify.bindings import binding_checks
from reproducer.verify.evidence import sort
from reproducer.verify.numbers import number_checks
from tests.verify.test_every_derived_field import MEASURES, Case, _case

# the newest bundle of each runtime: each costs seconds
EVIDENCE = [max(folder.glob("2*")) for folder in sorted(Path("evidence").glob("smollm2-*"))]
ORDER = "only that times rise is asked of it: no number takes this time"
WITHIN = "a time between the first event and the last, or of a request that is neither the earliest nor the slowest"
IDS = "outputs that are compared with nothing, or differ before this token"
CACHED = "an answer may come from the cache here: no number and no rule takes it"
WORDS = "only what is looked for in the answer counts"
NOT_DRAWN = "no prompt follows from the nonce: the measure's prompts are fixed"
NEXT = "the count of the answer's text and the server's may differ by the token that ends it"
MEDIAN = "neither the median of its third nor in the later part"
CHAT = "the end of a chat answer is the model's own; chat.smoke alone makes a number of it"
EVERYWHERE = {"requests.*.finished_ns": ORDER, "facts.slot": "its place in the plan; boots are told apart by their ids"}
UNSEEN: dict[str, dict[str, str]] = {
    "chat.smoke/1": {
        "requests.*.sent_ns": ORDER,
        "requests.*.events.*.*": ORDER,
        "requests.*.cached_tokens": CACHED,
        "requests.*.output_text": WORDS,
        "facts.nonce": NOT_DRAWN,
        "facts.answer_tokens": NEXT,
    },
    "context.admission/1": {
        "requests.*.sent_ns": ORDER,
        "requests.*.events.*.*": ORDER,
        "requests.*.cached_tokens": CACHED,
        "requests.*.output_ids.*": IDS,
        "requests.*.error": "the words of a refusal are the server's; its status decides",
    },
    "decode.concurrent/1": {
        "requests.*.sent_ns": WITHIN,
        "requests.*.events.*.*": WITHIN,
        "requests.*.output_ids.*": IDS,
    },
    "decode.concurrent/2": {
        "requests.*.sent_ns": WITHIN,
        "requests.*.events.*.*": WITHIN,
        "requests.*.output_ids.*": IDS,
    },
    "decode.single/1": {"requests.*.events.*.*": WITHIN, "requests.*.output_ids.*": IDS},
    "decode.single/2": {"requests.*.events.*.*": WITHIN, "requests.*.output_ids.*": IDS},
    "determinism/1": {
        "requests.*.sent_ns": ORDER,
        "requests.*.events.*.*": WITHIN,
        "requests.*.output_ids.*": IDS,
    },
    "fidelity/1": {
        "requests.*.sent_ns": ORDER,
        "requests.*.events.*.*": ORDER,
        "requests.*.cached_tokens": CACHED,
        "requests.*.top_logprobs.*.*.token": "past the first difference, or a last candidate with the same lower bound",
        "requests.*.top_logprobs.*.*.logprob": "past the first difference, or a last candidate below the bound",
        "requests.*.output_ids.*": IDS,
        "facts.nonce": NOT_DRAWN,
    },
    "namespace.flip/1": {
        "requests.*.sent_ns": WITHIN,
        "requests.*.events.*.*": WITHIN,
        "requests.*.output_ids.*": IDS,
    },
    "needle.short/1": {
        "requests.*.sent_ns": ORDER,
        "requests.*.events.*.*": ORDER,
        "requests.*.cached_tokens": CACHED,
        "requests.*.output_text": WORDS,
        "requests.*.finish_reason": CHAT,
    },
    "needle/1": {
        "requests.*.events.*.*": WITHIN,
        "requests.*.output_text": WORDS,
        "requests.*.finish_reason": CHAT,
        "facts.template_tokens": "how the text was fitted; the server's count of the whole prompt decides",
    },
    "prefill.cold/1": {"requests.*.output_ids.*": IDS},
    "prefix.reuse/1": {"requests.*.output_ids.*": IDS},
    "restore.concurrent/1": {"requests.*.sent_ns": WITHIN, "requests.*.events.*.*": WITHIN},
    "restore.restart/1": {"requests.*.events.*.*": WITHIN},
    "soak/1": {
        "requests.*.sent_ns": "of rounds in the middle third, or after the first of its round",
        "requests.*.events.*.*": "answers come in one piece; the end of the answer is what is timed",
        "requests.*.cached_tokens": CACHED,
        "readings.*.at_ns": MEDIAN,
        "readings.*.resident_bytes": MEDIAN,
        "readings.*.open_files": MEDIAN,
        "readings.*.gpu_bytes": MEDIAN,
    },
    "speculation/1": {
        "requests.*.sent_ns": ORDER,
        "requests.*.events.*.*": ORDER,
        "requests.*.cached_tokens": CACHED,
        "facts.nonce": NOT_DRAWN,
    },
}
_HEX = re.compile(r"[0-9a-f]{8,}")


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def _others(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1] if value else [value + 1]
    if isinstance(value, float):
        return [value + 0.01]
    if _HEX.fullmatch(value):
        return [("1" if value[0] == "0" else "0") + value[1:]]
    return [f"{value}x"]


def _put(value: Any, path: tuple[str | int, ...], other: Any) -> Any:
    if not path:
        return other
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = _put(value[path[0]], path[1:], other)
    return copied


def _spelled(path: tuple[str | int, ...]) -> str:
    return ".".join("*" if isinstance(each, int) else each for each in path)


def _unseen(receipt: MeasureReceipt, at: int, told: Callable[[MeasureReceipt], object], most: int = 0) -> set[str]:
    """The kinds of leaves off the list of which one could be edited unseen; the last `most` are tried, at 0 all."""
    data = json.loads(receipt.samples[at].model_dump_json(exclude_none=True))
    good, found, kinds = told(receipt), set[str](), dict[str, list[tuple[tuple[str | int, ...], Any]]]()
    for path, value in _leaves(data):
        if _spelled(path) not in UNSEEN[receipt.measure].keys() | EVERYWHERE.keys():
            kinds.setdefault(_spelled(path), []).append((path, value))
    for kind, every in kinds.items():
        for path, value in every if not most else every[-most:]:
            for other in _others(value):
                changed = Sample.model_validate_json(json.dumps(_put(data, path, other)))
                samples = (*receipt.samples[:at], changed, *receipt.samples[at + 1 :])
                if told(receipt.model_copy(update={"samples": samples})) == good:
                    found.add(kind)
    return found


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """The case of each measure, made once."""
    folder = tmp_path_factory.mktemp("leaves")
    return cache(lambda measure: _case(folder / measure.replace("/", "-"), measure))


@pytest.mark.parametrize("measure", MEASURES)
def test_every_leaf_of_a_made_sample(cases: Callable[[str], Case], measure: str) -> None:
    """Every field of the sample is seen by the checks of numbers and boots, and what is not is on the list."""
    case = cases(measure)
    others = tuple(each for each in case.evidence.receipts if each is not case.receipt)

    def told(receipt: MeasureReceipt) -> object:
        evidence = sort(case.evidence.opened, (*others, receipt))
        checks = [*binding_checks(evidence), *number_checks(evidence)]
        return [(each.id, each.reason) for each in checks if each.status == "failed"]

    assert _unseen(case.receipt, 0, told) == set()


@pytest.mark.parametrize("bundle", EVIDENCE, ids=lambda path: path.name)
def test_every_leaf_of_the_committed_evidence(bundle: Path) -> None:
    """As above, for the last measured sample of each receipt of a committed bundle; of each kind the last leaf."""
    opened = open_lock(bundle / "penny.lock.toml")
    receipts = [RECEIPT.validate_json(path.read_bytes()) for path in sorted((bundle / "receipts").glob("*.json"))]
    others = tuple(each for each in receipts if not isinstance(each, MeasureReceipt))
    measured = [each for each in receipts if isinstance(each, MeasureReceipt) and each.samples]
    assert measured
    for receipt in measured:

        def told(one: MeasureReceipt) -> object:
            evidence = sort(opened, (*others, one))
            checks = [*binding_checks(evidence), *number_checks(evidence)]
            return [(each.id, each.reason) for each in checks if each.status == "failed"]

        at = max(place for place, each in enumerate(receipt.samples) if not each.warmup)
        assert _unseen(receipt, at, told, most=1) == set(), receipt.measure


def test_nothing_is_listed_that_is_seen(cases: Callable[[str], Case]) -> None:
    """Each kind on the list is one that a measure's sample has: the list does not outlive what it excuses."""
    for measure, listed in UNSEEN.items():
        data = json.loads(cases(measure).receipt.samples[0].model_dump_json(exclude_none=True))
        assert listed.keys() <= {_spelled(path) for path, _ in _leaves(data)}, measure


def test_one_boot_ran_on_one_machine(cases: Callable[[str], Case]) -> None:
    """Two receipts of one boot that name different machines fail the binding of the second; equal ones hold."""
    case = cases("prefill.cold/1")
    conditions = case.receipt.conditions
    again = case.receipt.model_copy(update={"created": "2026-01-02T03:21:00Z"})
    host = conditions.host.model_copy(update={"cpu_count": conditions.host.cpu_count + 1})
    other = again.model_copy(update={"conditions": conditions.model_copy(update={"host": host})})

    def failed(receipt: MeasureReceipt) -> list[str]:
        checks = binding_checks(sort(case.evidence.opened, (*case.evidence.receipts, receipt)))
        return [each.reason for each in checks if each.status == "failed"]

    assert failed(again) == []
    (reason,) = failed(other)
    assert "ran on another machine" in reason
