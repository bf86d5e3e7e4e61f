"""Three needles on a server that answers, and on servers that are not what they say."""

from pathlib import Path

import pytest

from reproducer.documents.receipts import MeasureReceipt
from reproducer.progress import Silent
from reproducer.qualify.haystack import planted
from reproducer.qualify.methods.rules import prompt_seed
from reproducer.qualify.suite import qualify
from tests.qualify.conftest import Told
from tests.qualify.servers import Boots, build_receipt, measure, rate, suite

TEMPLATE = ("--template", "7")
TOKENS = 400


def measured(folder: Path, boots: Boots) -> MeasureReceipt:
    """The receipt of two samples, one a boot."""
    asked = measure("needle/1", ("found", ">=", 1, "ratio"), prompt_tokens=TOKENS)
    workspace = folder / "samples"
    (receipt,) = qualify(
        suite(folder, asked), build_receipt(), boots.boot, workspace=workspace, reporter=Silent(), settle_s=0.0
    )
    return receipt


def test_a_prompt_has_exactly_the_tokens_asked_for_and_all_three_are_found(tmp_path: Path) -> None:
    """The template's tokens count; the rates are those of the events; the facts make the text again."""
    receipt = measured(tmp_path, Boots(tmp_path / "server", [*TEMPLATE, "--first-ms", "40", "--gap-ms", "10"]))

    assert (receipt.status, receipt.reason) == ("passed", "")
    values = {each.name: each for each in receipt.derived}
    assert values["needle_tokens"].values == (TOKENS, TOKENS)
    assert [values[name].value for name in ("found", "found_first", "found_middle", "found_last")] == [1, 1, 1, 1]
    assert len(values["found"].values) == 6
    assert values["ttft_s"].minimum > 0.03
    assert values["prefill_rate"].maximum == pytest.approx(TOKENS / values["ttft_s"].minimum)
    assert values["decode_rate"].values == pytest.approx([rate(each.requests[0].events) for each in receipt.samples])
    for sample in receipt.samples:
        assert sample.facts["template_tokens"] == 7
        answer = sample.requests[0].output_text or ""
        assert all(each.code in answer for each in planted(prompt_seed(str(sample.facts["nonce"]), "needle/1")))


DISHONEST = {
    "count-one-more": "the server counts 401 prompt tokens, exactly 400 were asked for",
    "drop-the-middle": "prompt tokens, exactly 400 were asked for",
    "warm": "the prompt was not cold: 23 tokens were cached, the template has 7",
    "at-once": "all tokens came at once: the answer was not streamed",
}


@pytest.mark.parametrize("fault", DISHONEST)
def test_a_sample_that_is_not_what_was_asked_for_is_invalid(tmp_path: Path, fault: str) -> None:
    """A count that is off by one, a text that was cut, a cached prompt, an answer in one piece."""
    boots = Boots(tmp_path / "server", TEMPLATE, later=[*TEMPLATE, "--fault", fault, "--after", "1"])
    receipt = measured(tmp_path, boots)

    good, bad = receipt.samples
    assert (good.facts["valid"], bad.facts["valid"]) == (True, False)
    assert DISHONEST[fault] in str(bad.facts["invalid"])
    assert receipt.status == "failed"


def test_a_server_that_loses_the_middle_and_counts_it_all_the_same_does_not_find_it(tmp_path: Path) -> None:
    """The count says nothing about what was read; the fact in the middle does."""
    boots = Boots(tmp_path / "server", [*TEMPLATE, "--fault", "lose-the-middle", "--after", "1"])
    receipt = measured(tmp_path, boots)

    values = {each.name: each.value for each in receipt.derived}
    assert (values["found_first"], values["found_middle"], values["found_last"]) == (1, 0, 1)
    assert values["found"] == pytest.approx(2 / 3)
    assert receipt.status == "failed"
    assert "found is 0.666667, the lock asks for >= 1 ratio" in receipt.reason


def test_a_length_that_no_text_has_is_said(tmp_path: Path, told: Told) -> None:
    """A template that leaves no room for the facts: the sample is invalid and says why."""
    asked = measure("needle/1", prompt_tokens=256)
    boots = Boots(tmp_path / "server", ["--template", "240"])
    (receipt,) = qualify(
        suite(tmp_path, asked), build_receipt(), boots.boot, workspace=tmp_path / "samples", reporter=told, settle_s=0.0
    )

    assert receipt.status == "failed"
    assert "no text has exactly 256 tokens: the chat template takes 240 of them" in receipt.reason
