"""Whether the chat endpoint answers sensibly at all."""

from typing import TYPE_CHECKING

from reproducer.documents.measured import Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.measures.quantities import Fact
from reproducer.qualify.methods.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.methods.rules import whole
from reproducer.qualify.prompts import ANSWER, QUESTION, text_sha256

if TYPE_CHECKING:
    from reproducer.qualify.target import Target


class ChatSmoke(Method):
    """One question that every chat model answers."""

    id = "chat.smoke/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """The question, and the answer's tokens counted by the server's own tokenizer."""
        del nonce, reference
        record, total = target.chat(QUESTION, whole(parameters, "output_tokens"))
        counted = target.tokens(record.output_text or "") if record.error is None else None
        return Observed((record,), {"usage_total": total, "answer_tokens": -1 if counted is None else len(counted)})

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Another question."""
        del parameters, reference
        if len(sample.requests) != 1:
            yield f"{len(sample.requests)} requests instead of 1"
        if sample.requests[0].prompt_sha256 != text_sha256(QUESTION):
            yield "the question is not the measure's"

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """Whether the answer is right, came to its end, and was counted consistently."""
        del reference
        (request,) = sample.requests
        yield "sensible", Fact(ANSWER in (request.output_text or ""), "bool")
        yield "finished", Fact(request.finish_reason == "stop", "bool")
        total = whole(sample.facts, "usage_total")
        counted = whole(sample.facts, "answer_tokens")
        consistent = (
            total == request.prompt_tokens + request.output_tokens
            and 0 < request.output_tokens <= whole(parameters, "output_tokens")
            and request.prompt_tokens > 0
            and (counted < 0 or counted <= request.output_tokens <= counted + 1)
        )
        yield "usage_consistent", Fact(consistent, "bool")
