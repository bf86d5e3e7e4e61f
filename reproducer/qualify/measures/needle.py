"""A fact planted in plain text, found again."""

import math
import re
from typing import TYPE_CHECKING

from reproducer.documents.receipts import FidelityReference, Sample
from reproducer.qualify.measures.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.measures.rules import number, prompt_seed, seed, whole
from reproducer.qualify.prompts import needle_prompt, text_sha256
from reproducer.qualify.quantities import Count, Fact

if TYPE_CHECKING:
    from reproducer.qualify.target import Target

LENGTH_TOLERANCE = 0.1
_SENTENCES_TRIED = 6


class NeedleShort(Method):
    """One fact in about as many tokens as asked for."""

    id = "needle.short/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """The text and the question as one chat message."""
        del reference
        sentences = self._fitting(target, parameters, nonce)
        needle = needle_prompt(prompt_seed(nonce, self.id), sentences=sentences, depth=number(parameters, "depth"))
        record, _ = target.chat(needle.text, whole(parameters, "output_tokens"))
        return Observed((record,), {"sentences": sentences})

    def _fitting(self, target: "Target", parameters: Parameters, nonce: str) -> int:
        """How many sentences make about the length asked for, by the server's own tokenizer where there is one."""
        wanted, depth = whole(parameters, "prompt_tokens"), number(parameters, "depth")
        sentences = max(round(wanted / 14), 1)
        for _ in range(_SENTENCES_TRIED):
            text = needle_prompt(prompt_seed(nonce, self.id), sentences=sentences, depth=depth).text
            ids = target.tokens(text)
            if not ids or abs(len(ids) - wanted) <= wanted // 50:
                break
            better = min(max(math.floor(sentences * wanted / len(ids)), 1), wanted)
            if better == sentences:
                break
            sentences = better
        return sentences

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Another text than the nonce's, or a length too far from the one asked for."""
        del reference
        if len(sample.requests) != 1:
            yield f"{len(sample.requests)} requests instead of 1"
        request, length = sample.requests[0], whole(parameters, "prompt_tokens")
        sentences = whole(sample.facts, "sentences")
        if not 1 <= sentences <= length:
            yield "the fact 'sentences' is no count of sentences"
        needle = needle_prompt(seed(sample, self.id), sentences=sentences, depth=number(parameters, "depth"))
        if request.prompt_sha256 != text_sha256(needle.text):
            yield "the prompt is not the one of the nonce"
        if abs(request.prompt_tokens - length) > LENGTH_TOLERANCE * length:
            yield f"the server counts {request.prompt_tokens} prompt tokens, about {length} were asked for"
        if request.output_tokens > whole(parameters, "output_tokens"):
            yield f"{request.output_tokens} output tokens, more than were asked for"

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """Whether the answer has the planted number, and how long the prompt was."""
        del reference
        (request,) = sample.requests
        sentences, depth = whole(sample.facts, "sentences"), number(parameters, "depth")
        answer = needle_prompt(seed(sample, self.id), sentences=sentences, depth=depth).answer
        found = re.search(rf"(?<!\d){answer}(?!\d)", request.output_text or "") is not None
        yield "found", Fact(found, "ratio")
        yield "needle_tokens", Count(request.prompt_tokens, "tokens")
