"""The prompts of the measures, each a pure function of a nonce, so that anyone with the receipt can make them again.

Token prompts are ids from a range that every tokenizer of a chat model fills with ordinary tokens: what they mean does
not matter where only time or reuse is measured. An id beyond a model's vocabulary would end some engines.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SAFE_IDS = range(1000, 31000)
QUESTION = "What is the capital of France?"
ANSWER = "Paris"
REFERENCE_PROMPTS = (
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "To make a cup of tea, first",
    "def fibonacci(n):\n",
    "The sun rises in the east and",
    "Water boils at a temperature of",
)

_SENTENCES = (
    "The {adjective} {thing} was {verb} near the {place} in the {time}.",
    "In the {time}, a {adjective} {thing} stood beside the {place} and nobody {verb} it.",
    "People say that the {thing} by the {place} is {adjective} and often {verb}.",
)
_WORDS = {
    "adjective": ("old", "quiet", "small", "bright", "grey", "wooden", "narrow", "green", "heavy", "plain"),
    "thing": ("bridge", "lamp", "boat", "fence", "wagon", "garden", "chair", "window", "barrel", "door"),
    "verb": ("painted", "repaired", "noticed", "moved", "cleaned", "visited", "covered", "measured", "counted"),
    "place": ("river", "mill", "station", "market", "harbour", "school", "church", "orchard", "road", "hill"),
    "time": ("morning", "evening", "spring", "autumn", "winter", "summer", "afternoon", "night"),
}


@dataclass(frozen=True)
class Needle:
    """A text with a fact planted in it, and the answer that the fact gives."""

    text: str
    answer: str


def token_prompt(seed: str, length: int) -> tuple[int, ...]:
    """`length` token ids that follow from the seed alone."""
    numbers = _numbers(f"tokens/{seed}")
    return tuple(SAFE_IDS[next(numbers) % len(SAFE_IDS)] for _ in range(length))


def needle_prompt(seed: str, *, sentences: int, depth: float) -> Needle:
    """A question about a fact that stands after the share `depth` of so many plain sentences."""
    numbers = _numbers(f"needle/{seed}")
    answer = str(1000 + next(numbers) % 9000)
    lines = [_sentence(numbers) for _ in range(sentences)]
    lines.insert(int(depth * sentences), f"The secret code is {answer}.")
    text = " ".join(lines)
    return Needle(f"{text}\n\nWhat is the secret code?", answer)


def ids_sha256(ids: Sequence[int]) -> str:
    """The digest that stands for a prompt of token ids: sha256 of their JSON list without spaces."""
    return hashlib.sha256(json.dumps(list(ids), separators=(",", ":")).encode()).hexdigest()


def text_sha256(text: str) -> str:
    """The digest that stands for a prompt of text: sha256 of its UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def _sentence(numbers: Iterator[int]) -> str:
    template = _SENTENCES[next(numbers) % len(_SENTENCES)]
    return template.format_map({name: words[next(numbers) % len(words)] for name, words in _WORDS.items()})


def _numbers(seed: str) -> Iterator[int]:
    """An endless row of 32-bit numbers: sha256 of the seed and a counter, eight numbers a block."""
    block = 0
    while True:
        digest = hashlib.sha256(f"{seed}/{block}".encode()).digest()
        for start in range(0, len(digest), 4):
            yield int.from_bytes(digest[start : start + 4], "big")
        block += 1
