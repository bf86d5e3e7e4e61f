"""A long plain text with three facts in it, a pure function of seed, length and padding: `verify` makes it again.

The text begins with digits of its own, so that no page of it lies in any cache; the facts stand before the first
sentence, in the middle and behind the last one. All plain sentences that there are follow one another in an order of
the seed, again and again: sentences make the text about as long as wanted, words of padding exactly. Tokens of whole
sentences add up, so half a million of them are counted by counting one round and the rest.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

from reproducer.qualify.prompts import text_sha256

POSITIONS = ("first", "middle", "last")
MOST_PADDING = 4096
_PLACES = ("harbour", "orchard", "station", "library", "mill", "museum")
_SENTENCES = (
    "The {adjective} {thing} was {verb} near the {place} in the {time}.",
    "In the {time}, a {adjective} {thing} stood beside the {place} and nobody {verb} it.",
    "People say that the {thing} by the {place} is {adjective} and often {verb}.",
    "Nobody {verb} the {adjective} {thing} behind the {place} until the {time}.",
)
_ADJECTIVES = ("old", "quiet", "small", "bright", "grey", "wooden", "narrow", "green", "heavy", "plain")
_THINGS = ("bridge", "lamp", "boat", "fence", "wagon", "garden", "chair", "window", "barrel", "door")
_VERBS = ("painted", "repaired", "noticed", "moved", "cleaned", "visited", "covered", "measured", "counted")
_TOWNS = ("river", "road", "hill", "market", "church", "school", "square", "tower", "well", "gate")
_TIMES = ("morning", "evening", "spring", "autumn", "winter", "summer", "afternoon", "night")
_UNIT = " very"
_BLOCK = 8  # numbers of 32 bits in one sha256
_TRIES = 6  # of a number of sentences; two are enough for a tokenizer that splits at spaces
_FEWER = 4  # sentences that may give way to padding whose words have several tokens
_SENTENCE = 14  # tokens, about


@dataclass(frozen=True)
class Planted:
    """One fact: where it stands in the text, of which place it says something, and the code that it says."""

    position: str
    place: str
    code: str

    @property
    def sentence(self) -> str:
        """The fact in words."""
        return f"The secret code of the {self.place} is {self.code}."


def planted(seed: str) -> tuple[Planted, ...]:
    """The three facts of a seed: three different places with three different codes of four digits."""
    digest = hashlib.sha256(f"haystack/{seed}/facts".encode()).digest()
    places, codes = list(_PLACES), list(range(1000, 10000))
    found = []
    for index, position in enumerate(POSITIONS):
        number = int.from_bytes(digest[8 * index : 8 * index + 8], "big")
        place = places.pop(number % len(places))
        code = codes.pop(number // len(_PLACES) % len(codes))
        found.append(Planted(position, place, str(code)))
    return tuple(found)


def haystack(seed: str, *, sentences: int, padding: int) -> str:
    """The text and the question about its three facts.

    Args:
        seed: what everything follows from.
        sentences: how many plain sentences there are.
        padding: how many words make the text longer by a token each, or by a few, as the tokenizer has it.
    """
    first, middle, last = planted(seed)
    lines = _lines(seed, sentences)
    half = sentences // 2
    opening = f"{hashlib.sha256(f'haystack/{seed}/opening'.encode()).hexdigest()[:16]} is the number of this text."
    text = " ".join((opening, first.sentence, *lines[:half], middle.sentence, *lines[half:], last.sentence))
    question = f"What are the secret codes of the {first.place}, the {middle.place} and the {last.place}?"
    return f"{text}\n\nThink{_UNIT * padding} carefully. {question} Answer with the three numbers."


def haystack_sha256(seed: str, *, sentences: int, padding: int) -> str:
    """The digest of a text."""
    return text_sha256(haystack(seed, sentences=sentences, padding=padding))


@dataclass(frozen=True)
class Fit:
    """How long a text must be made."""

    sentences: int
    padding: int


def fitted(seed: str, tokens: int, count: Callable[[str], int]) -> Fit | None:
    """The length at which the text of a seed has exactly so many tokens.

    Args:
        seed: of the text.
        tokens: how many it is to have.
        count: how many tokens a text has. It is asked for a few texts of one round of sentences at most.

    Returns:
        None where the text cannot be as short, or no number of padding words makes it exactly as long.
    """

    @cache
    def counted(sentences: int, padding: int = 0) -> int:
        return count(haystack(seed, sentences=sentences, padding=padding))

    shortest = counted(0)
    rounds, rest = 0, tokens - shortest
    if rest < 0:
        return None
    round_of = len(_every())
    if rest > _SENTENCE * round_of // 2:
        of_round = counted(round_of) - shortest
        rounds, rest = divmod(rest, of_round) if of_round > 0 else (0, rest)

    def over(sentences: int, padding: int = 0) -> int:
        """How many tokens are missing behind the whole rounds."""
        return rest - (counted(sentences, padding) - shortest)

    sentences = _most_sentences(rest, over)
    for fewer in range(min(sentences, _FEWER) + 1):
        padding = _words(sentences - fewer, over)
        if padding is not None:
            return Fit(rounds * round_of + sentences - fewer, padding)
    return None


def _most_sentences(rest: int, over: Callable[[int], int]) -> int:
    """About as many sentences as fit, never more."""
    sentences = rest // _SENTENCE
    for _ in range(_TRIES):
        short = over(sentences)
        each = max((rest - short) / sentences, 1.0) if sentences else float(_SENTENCE)
        if 0 <= short <= 2 * each:
            break
        sentences = max(sentences + int(short // each), 0)
    return sentences


def _words(sentences: int, over: Callable[[int, int], int]) -> int | None:
    """How many words of padding make up for what so many sentences lack; None where no number does."""
    short = over(sentences, 0)
    if not 0 < short <= MOST_PADDING:
        return 0 if short == 0 else None
    left = over(sentences, short)
    if left and left < short:  # a word has more than one token, or less
        words = round(short * short / (short - left))
        return words if words <= MOST_PADDING and over(sentences, words) == 0 else None
    return short if left == 0 else None


def _lines(seed: str, count: int) -> list[str]:
    """Plain sentences, round after round."""
    order = _order(seed)
    whole, rest = divmod(count, len(order))
    return [*order * whole, *order[:rest]]


@lru_cache(maxsize=4)
def _order(seed: str) -> list[str]:
    """Every plain sentence once, in the order of the seed."""
    every = _every()
    numbers: list[int] = []
    for block in range((len(every) + _BLOCK - 1) // _BLOCK):
        digest = hashlib.sha256(f"haystack/{seed}/{block}".encode()).digest()
        numbers += (int.from_bytes(digest[start : start + 4], "big") for start in range(0, 4 * _BLOCK, 4))
    return [every[index] for index in sorted(range(len(every)), key=lambda index: (numbers[index], index))]


@cache
def _every() -> tuple[str, ...]:
    """A sentence of each template with every adjective, thing and town; verb and time go round with them."""
    return tuple(
        template.format(
            adjective=adjective,
            thing=thing,
            place=town,
            verb=_VERBS[(7 * a + 3 * t + p) % len(_VERBS)],
            time=_TIMES[(5 * a + t + 3 * p) % len(_TIMES)],
        )
        for template in _SENTENCES
        for a, adjective in enumerate(_ADJECTIVES)
        for t, thing in enumerate(_THINGS)
        for p, town in enumerate(_TOWNS)
    )
