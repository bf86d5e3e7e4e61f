"""Kinds of numbers never mix; divergence is a lower bound; prompts and plans are pure functions."""

import operator
from collections import Counter
from math import inf, log
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.documents.measured import Candidate
from reproducer.errors import InvalidDocumentError
from reproducer.measures.checks import check_measure, resolved
from reproducer.measures.definitions import COUNTED, DEFINITIONS
from reproducer.measures.quantities import (
    AggregateMakespanRate,
    CompletedRequestRate,
    Count,
    Duration,
    MixedKindsError,
    PrefillRate,
    Quantity,
    RestoredPrefixRate,
    summarise,
)
from reproducer.measures.settings import SETTINGS
from reproducer.qualify.divergence import divergence, matched
from reproducer.qualify.plan import planned
from reproducer.qualify.prompts import SAFE_IDS, ids_sha256, needle_prompt, token_prompt
from tests.qualify.servers import measure

RATES = (CompletedRequestRate, AggregateMakespanRate, PrefillRate, RestoredPrefixRate)


@pytest.mark.parametrize("left", RATES)
@pytest.mark.parametrize("right", [*RATES, Duration])
def test_rates_of_different_kinds_do_not_combine(left: type[Quantity], right: type[Quantity]) -> None:
    """Adding, subtracting, dividing, comparing and summarising work within one kind only, though all are tok/s."""
    a, b = left(10.0, "tok/s"), right(5.0, "tok/s")
    for act in (operator.add, operator.sub, operator.truediv, operator.lt):
        if left is right:
            act(a, b)
            continue
        with pytest.raises(MixedKindsError, match="cannot be combined"):
            act(a, b)
    if left is not right:
        with pytest.raises(MixedKindsError):
            summarise("rate", [a, b])


def test_units_and_plain_numbers_do_not_combine_either() -> None:
    """Tokens are not a count of samples, and a bare number has no kind."""
    with pytest.raises(MixedKindsError):
        Count(1, "tokens") + Count(1, "count")
    with pytest.raises(MixedKindsError):
        Duration(1, "s") + 1


@settings(deadline=None)
@given(st.integers(1, 10**7), st.integers(1, 10**13))
def test_a_rate_is_tokens_over_seconds(tokens: int, nanoseconds: int) -> None:
    """The rate is exact to the last digit of a float; nothing over nothing is no rate."""
    rate = PrefillRate.over(tokens, nanoseconds)
    assert rate is not None
    assert rate.value == pytest.approx(tokens / (nanoseconds / 1e9), rel=1e-15)
    assert PrefillRate.over(0, nanoseconds) is None
    assert PrefillRate.over(tokens, 0) is None


def _distribution(weights: list[int]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


def _top(distribution: list[float], count: int) -> tuple[Candidate, ...]:
    order = sorted(range(len(distribution)), key=lambda token: -distribution[token])[:count]
    return tuple(Candidate(token=token, logprob=log(distribution[token])) for token in order)


WEIGHTS = st.lists(st.integers(1, 10000), min_size=8, max_size=8)


@settings(deadline=None)
@given(WEIGHTS, WEIGHTS, st.integers(1, 8))
def test_divergence_over_the_likeliest_tokens_is_a_lower_bound_of_the_true_one(
    left: list[int], right: list[int], count: int
) -> None:
    """It is never negative, never above the divergence of the whole distributions, and equal to it for whole lists."""
    p, q = _distribution(left), _distribution(right)
    true = sum(a * log(a / b) for a, b in zip(p, q, strict=True))
    got = divergence(_top(p, count), _top(q, count))
    assert 0 <= got <= true + 1e-9
    if count == len(p):
        assert got == pytest.approx(true, abs=1e-6)


@settings(deadline=None)
@given(WEIGHTS, st.integers(1, 8))
def test_equal_lists_do_not_diverge(weights: list[int], count: int) -> None:
    """The same list on both sides gives exactly 0."""
    listed = _top(_distribution(weights), count)
    assert divergence(listed, listed) == 0.0


def test_a_probable_token_that_is_missing_counts_as_improbable() -> None:
    """Lists without a common token diverge by as much as the smallest listed probability allows, not by nothing."""
    expected = (Candidate(token=1, logprob=log(0.98)), Candidate(token=2, logprob=log(0.01)))
    got = (Candidate(token=3, logprob=log(0.97)), Candidate(token=4, logprob=log(0.02)))
    assert divergence(expected, got) > 0.98 * log(0.98 / 0.02) - 0.1


def test_hostile_log_probabilities_give_a_number() -> None:
    """Positive and vanishing log-probabilities of a stranger neither overflow nor divide by nothing."""
    wild = (Candidate(token=1, logprob=1e308), Candidate(token=2, logprob=-1e308))
    assert 0 <= divergence(wild, (Candidate(token=3, logprob=-1e308),)) < inf
    assert 0 <= divergence((Candidate(token=3, logprob=-1e308),), wild) < inf
    assert divergence((), ()) == 0.0


@settings(deadline=None)
@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_matched_is_the_length_of_the_common_beginning(left: list[int], right: list[int]) -> None:
    """Everything before it agrees, and what follows does not."""
    count = matched(left, right)
    assert left[:count] == right[:count]
    assert count == min(len(left), len(right)) or left[count] != right[count]


def test_prompts_follow_from_their_seed_alone() -> None:
    """Published vectors: another implementation makes the same prompts."""
    assert token_prompt("nonce/prefill.cold/1/0", 4) == (5936, 21509, 13898, 21202)
    assert ids_sha256((1, 2)) == "49a64717d5d4cb19952e6eac2946415cf6879adacf9908e7d872332d32c6e684"
    needle = needle_prompt("nonce/needle.short/1/0", sentences=3, depth=0.5)
    assert needle.answer == "5121"
    assert needle.text == (
        "The quiet bridge was painted near the orchard in the winter. The secret code is 5121. "
        "People say that the wagon by the river is green and often noticed. "
        "The green barrel was moved near the road in the summer.\n\n"
        "What is the secret code?"
    )


@settings(deadline=None)
@given(st.text(max_size=20), st.integers(0, 300))
def test_token_prompts_stay_within_every_vocabulary(seed: str, length: int) -> None:
    """Ids lie in the safe range; longer prompts of one seed begin with the shorter ones."""
    prompt = token_prompt(seed, length)
    assert len(prompt) == length
    assert all(token in SAFE_IDS for token in prompt)
    assert token_prompt(seed, length + 1)[:length] == prompt


def test_prompts_of_different_nonces_share_no_page() -> None:
    """Not even the first 16 tokens agree, so that nothing persistent can make one warm."""
    beginnings = {token_prompt(f"{nonce}/prefill.cold/1/0", 16) for nonce in range(1000)}
    assert len(beginnings) == 1000


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.sampled_from(sorted(DEFINITIONS)), min_size=1, max_size=5, unique=True),
    st.integers(2, 6),
    st.integers(2, 9),
    st.integers(0, 2),
)
def test_a_plan_takes_every_repeat_once_and_spreads_them_over_the_boots(
    names: list[str], boots: int, repeats: int, warmup: int
) -> None:
    """As many samples as asked for, no boot with two more than another, warm-ups first, halves in boots in a row."""
    measures = [measure(name, repeats=repeats, warmup=warmup) for name in names]
    steps = planned(list(enumerate(measures)), boots)
    assert [step.slot for step in steps] == sorted(step.slot for step in steps)
    assert len({step.name for step in steps}) == len(steps)
    for position, each in enumerate(measures):
        known = DEFINITIONS[each.id]
        mine = [step for step in steps if step.position == position and step.after is None]
        counted = [step for step in mine if not step.warmup]
        assert len(counted) == repeats
        assert sorted(step.index for step in mine) == list(range(len(mine)))
        slots = Counter(step.slot for step in counted)
        places = boots - known.spans + 1
        assert len(slots) == min(repeats, places)
        assert max(slots.values()) - min(slots.values()) <= 1
        assert Counter(step.slot for step in mine if step.warmup) == Counter(dict.fromkeys(slots, warmup)) - Counter()
        for step in mine:
            parts, earlier = [step.part], step
            while earlier.before is not None:
                assert earlier.before in steps
                assert earlier.before.after == earlier
                assert earlier.before.launching < earlier.launching
                earlier = earlier.before
                parts.append(earlier.part)
            assert parts[::-1] == [stage.part for stage in known.stages]
            assert step.slot - earlier.slot == known.spans - 1


def test_parameters_are_filled_in_and_checked() -> None:
    """Missing ones take their default; unknown, mistyped and absurd ones are refused by name."""
    assert resolved("prefill.cold/1", {}) == {"prompt_tokens": 1500}
    assert resolved("needle.short/1", {"depth": 1}) == {"prompt_tokens": 1500, "depth": 1, "output_tokens": 24}
    for given_parameters, message in (
        ({"prompt_token": 1}, "Did you mean 'prompt_tokens'"),
        ({"prompt_tokens": True}, "must be a whole number"),
        ({"prompt_tokens": 1.5}, "must be a whole number"),
        ({"prompt_tokens": 0}, "from 1 to"),
        ({"prompt_tokens": "many"}, "must be a whole number"),
    ):
        with pytest.raises(InvalidDocumentError, match=message):
            resolved("prefill.cold/1", given_parameters)
    with pytest.raises(InvalidDocumentError, match=r"Did you mean 'decode.single/1'"):
        resolved("decode.singel/1", {})


def test_a_threshold_must_bound_a_value_of_its_measure_in_its_unit() -> None:
    """A misspelt value or another unit would otherwise be a bound that can never hold, or that means nothing."""
    good = measure("decode.single/1", ("decode_rate", ">=", 2, "tok/s"), ("invalid_samples", "==", 0, "count"))
    check_measure(good)
    for change, message in (
        ({"value": "decoderate"}, "Did you mean 'decode_rate'"),
        ({"unit": "s"}, "is in tok/s"),
    ):
        bad = good.model_copy(update={"thresholds": (good.thresholds[0].model_copy(update=change),)})
        with pytest.raises(InvalidDocumentError, match=message):
            check_measure(bad)


def test_the_page_about_measures_names_what_there_is() -> None:
    """A page has a section for every measure, with every parameter, default, value, kind and unit."""
    docs = Path(__file__).parents[2] / "docs"
    page, capability = ((docs / name).read_text(encoding="utf-8") for name in ("measures.md", "capability.md"))
    for name, each in DEFINITIONS.items():
        told, heading = (capability, f"{SETTINGS[name].suite}/1") if name in SETTINGS else (page, name)
        section = told.split(f"\n## `{heading}`", 1)[1].split("\n## ", 1)[0]
        for parameter in each.parameters:
            assert f"`{parameter.name}` ({parameter.default:g})" in section
        for value in each.values:
            assert f"| `{value.name}` | {value.kind} | {value.unit} |" in section
    for value in COUNTED:
        assert f"`{value.name}`" in page
