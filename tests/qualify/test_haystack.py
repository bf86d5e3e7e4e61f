"""The long text with three facts: the same for ever, and exactly as long as wanted for any tokenizer that adds up."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.qualify.haystack import POSITIONS, fitted, haystack, haystack_sha256, planted

ROUND = 4000  # plain sentences that there are


def words(text: str) -> int:
    """A token a word."""
    return len(text.split())


def pieces(text: str) -> int:
    """A token for every four letters of a word."""
    return sum((len(word) + 3) // 4 for word in text.split())


def heavy(text: str) -> int:
    """A token a word, and two for the word of padding: it cannot make up for a single token."""
    return sum(2 if word == "very" else 1 for word in text.split())


def letters(text: str) -> int:
    """A token for each byte."""
    return len(text.encode())


@settings(deadline=None, max_examples=60)
@given(
    st.text("0123456789abcdef/", min_size=1, max_size=20),
    st.integers(400, 60_000),
    st.sampled_from([words, pieces, letters]),
)
def test_a_text_is_exactly_as_long_as_wanted(seed: str, tokens: int, count: Callable[[str], int]) -> None:
    """Whatever the seed and the tokenizer, the whole text has the count that was asked for."""
    fit = fitted(seed, tokens, count)
    if fit is None:
        assert count is letters  # a word of padding has five
    else:
        assert count(haystack(seed, sentences=fit.sentences, padding=fit.padding)) == tokens


@pytest.mark.parametrize("tokens", range(500, 524))
def test_sentences_give_way_where_padding_alone_does_not_fit(tokens: int) -> None:
    """A word of padding has two tokens: an odd remainder takes another number of sentences."""
    fit = fitted("seed", tokens, heavy)
    assert fit is not None
    assert heavy(haystack("seed", sentences=fit.sentences, padding=fit.padding)) == tokens


def test_a_tokenizer_that_does_not_add_up_gives_no_wrong_text() -> None:
    """Where counts do not follow from the parts, there is no fit; it is never one that only looks right."""
    fit = fitted("seed", 5000, lambda text: len(text.split()) + len(text) % 7)
    if fit is not None:
        text = haystack("seed", sentences=fit.sentences, padding=fit.padding)
        assert len(text.split()) + len(text) % 7 == 5000


def test_half_a_million_tokens_are_counted_from_one_round() -> None:
    """No text that is counted is longer than one round of sentences, and there are few."""
    asked: list[int] = []

    def count(text: str) -> int:
        asked.append(words(text))
        return asked[-1]

    fit = fitted("seed", 490_000, count)
    assert fit is not None
    assert fit.sentences > 8 * ROUND
    assert max(asked) <= words(haystack("seed", sentences=ROUND, padding=0))
    assert len(asked) <= 12
    assert words(haystack("seed", sentences=fit.sentences, padding=fit.padding)) == 490_000


def test_what_is_too_short_has_no_text() -> None:
    """The facts and the question alone are longer."""
    assert fitted("seed", 20, words) is None


@pytest.mark.parametrize("sentences", [0, 1, 2, 7, ROUND + 3])
def test_the_facts_stand_first_in_the_middle_and_last(sentences: int) -> None:
    """Before every plain sentence, after half of them, after all of them; each code stands there once."""
    text = haystack("seed", sentences=sentences, padding=2)
    facts = planted("seed")
    assert tuple(fact.position for fact in facts) == POSITIONS
    first, middle, last = (text.index(fact.sentence) for fact in facts)
    plain = [found.start() for found in re.finditer(r"(?<=[.?] )[A-Z][^.]*(?=\.)", text) if found.start() < last]
    plain = [at for at in plain if at not in (first, middle, last)]
    assert len(plain) == sentences
    assert sum(at < first for at in plain) == 0
    assert sum(at < middle for at in plain) == sentences // 2
    assert all(len(re.findall(rf"(?<!\d){fact.code}(?!\d)", text)) == 1 for fact in facts)


@given(st.text(max_size=30))
def test_the_three_facts_differ(seed: str) -> None:
    """Three places, three codes of four digits."""
    facts = planted(seed)
    assert len({fact.place for fact in facts}) == len({fact.code for fact in facts}) == len(POSITIONS)
    assert all(re.fullmatch(r"[1-9]\d{3}", fact.code) for fact in facts)


def test_texts_of_two_seeds_differ_from_the_first_words_on() -> None:
    """Nothing of one text can be in the cache of the other: they begin differently."""
    begins = {haystack(f"seed {number}", sentences=3, padding=0)[:16] for number in range(50)}
    assert len(begins) == 50


def test_a_text_is_the_same_for_ever() -> None:
    """Receipts hold digests only: a generator that changes makes every older one unverifiable."""
    assert haystack_sha256("a seed", sentences=9001, padding=5) == (
        "f4264de943cee59fcad49e18fc869081337de7024fec80549596ce16c8e3d166"
    )
