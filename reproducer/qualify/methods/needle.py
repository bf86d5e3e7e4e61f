"""Facts planted in plain text, found again."""

import math
import re
from typing import TYPE_CHECKING

from reproducer.documents.measured import Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.errors import NotCheckedError
from reproducer.measures.quantities import Count, Duration, Fact, PrefillRate
from reproducer.qualify.exchanges import UntoldError
from reproducer.qualify.haystack import MOST_PADDING, fitted, haystack, haystack_sha256, planted
from reproducer.qualify.methods.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.methods.rules import decoding, number, prompt_seed, seed, to_first, whole
from reproducer.qualify.prompts import needle_prompt, text_sha256

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
        yield "found", Fact(_stands_in(answer, request.output_text), "ratio")
        yield "needle_tokens", Count(request.prompt_tokens, "tokens")


class Needle(Method):
    """Three facts in a text of exactly as many tokens as asked for, chat template included."""

    id = "needle/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """The text, fitted with the server's own tokenizer, and the question about all three as one chat message."""
        del reference
        length, of_text = whole(parameters, "prompt_tokens"), prompt_seed(nonce, self.id)
        template = self._template(target, of_text)
        fit = fitted(of_text, length - template, lambda text: _count(target, text))
        if fit is None:
            raise NotCheckedError(
                f"no text has exactly {length} tokens", why=f"the chat template takes {template} of them"
            )
        text = haystack(of_text, sentences=fit.sentences, padding=fit.padding)
        record = target.chat_streamed(text, whole(parameters, "output_tokens"), deadline_s=target.patience(length))
        facts = {"sentences": fit.sentences, "padding": fit.padding, "template_tokens": template}
        return Observed((record,), {**facts})

    @staticmethod
    def _template(target: "Target", of_text: str) -> int:
        """How many tokens the chat template adds, from a short text that begins and ends as the long one does."""
        text = haystack(f"{of_text}/template", sentences=1, padding=0)
        alone = _count(target, text)
        answer, _ = target.chat(text, 1)
        if answer.error is not None:
            raise NotCheckedError("the tokens of the chat template cannot be counted", why=answer.error)
        return max(answer.prompt_tokens - alone, 0)

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Another text than the nonce's, another length than exactly the one asked for, cached tokens, no stream."""
        del reference
        if "fault" in sample.facts:
            yield str(sample.facts["fault"])
        if len(sample.requests) != 1:
            yield f"{len(sample.requests)} requests instead of 1"
        request, length = sample.requests[0], whole(parameters, "prompt_tokens")
        sentences, padding = whole(sample.facts, "sentences"), whole(sample.facts, "padding")
        if not (0 <= sentences <= length and 0 <= padding <= MOST_PADDING):
            yield "the facts 'sentences' and 'padding' are no length of a text"
            return
        if request.prompt_sha256 != haystack_sha256(seed(sample, self.id), sentences=sentences, padding=padding):
            yield "the prompt is not the one of the nonce"
        if request.prompt_tokens != length:
            yield f"the server counts {request.prompt_tokens} prompt tokens, exactly {length} were asked for"
        template = whole(sample.facts, "template_tokens")
        if not 0 <= template < length:
            yield "the fact 'template_tokens' is no length of a chat template"
        if request.cached_tokens > template:
            yield f"the prompt was not cold: {request.cached_tokens} tokens were cached, the template has {template}"
        if request.output_tokens > whole(parameters, "output_tokens"):
            yield f"{request.output_tokens} output tokens, more than were asked for"
        if request.output_tokens > 1 and request.events[-1][0] == request.events[0][0]:
            yield "all tokens came at once: the answer was not streamed"

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """Which of the three codes stand in the answer, how long the prompt was, how fast it was read and answered."""
        del parameters, reference
        (request,) = sample.requests
        for fact in planted(seed(sample, self.id)):
            found = Fact(_stands_in(fact.code, request.output_text), "ratio")
            yield "found", found
            yield f"found_{fact.position}", found
        yield "needle_tokens", Count(request.prompt_tokens, "tokens")
        yield "prefill_rate", PrefillRate.over(request.prompt_tokens - request.cached_tokens, to_first(request))
        yield "ttft_s", Duration.of(to_first(request))
        yield "decode_rate", decoding(request)


def _count(target: "Target", text: str) -> int:
    """How many tokens a text has for the server's own tokenizer."""
    ids = target.tokens(text)
    if ids is None:
        raise UntoldError("the server does not tell how many tokens a text has")
    return len(ids)


def _stands_in(code: str, text: str | None) -> bool:
    """Whether a code stands in an answer as a number of its own."""
    return re.search(rf"(?<!\d){code}(?!\d)", text or "") is not None
