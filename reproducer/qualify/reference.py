"""Recording what `fidelity` compares with, from a server that is known to be good."""

import time
from collections.abc import Sequence

from reproducer.documents.receipts import FidelityReference, ReferencePrompt
from reproducer.errors import NotCheckedError, QualificationError
from reproducer.progress import Reporter
from reproducer.qualify.prompts import REFERENCE_PROMPTS
from reproducer.qualify.speech import NATIVE, Speech
from reproducer.qualify.target import Serving, Target

TOP = 20
OUTPUT_TOKENS = 48


def record_reference(
    server: Serving,
    prompts: Sequence[str] = REFERENCE_PROMPTS,
    *,
    checkpoint: str,
    output_tokens: int = OUTPUT_TOKENS,
    top: int = TOP,
    speech: Speech = NATIVE,
    reporter: Reporter,
) -> FidelityReference:
    """The greedy output of each prompt with the likeliest tokens of each position, taken twice and equal both times.

    Args:
        server: a server of the lock whose reference this is.
        prompts: short texts; the server's own tokenizer makes the ids.
        checkpoint: name of the checkpoint in the lock.
        output_tokens: length of each output, end-of-text or not.
        top: how many tokens of each position are kept.
        speech: how the server is asked for completions of token ids.
        reporter: where progress goes.

    Raises:
        NotCheckedError: the server has no tokenizer endpoint or does not answer.
        QualificationError: an answer is broken, or the second one differs: such a server is no reference.
    """
    target = Target(server.url, speech=speech)
    with reporter.task("recording the reference", len(prompts), "samples") as task:
        recorded = []
        for prompt in prompts:
            recorded.append(_recorded(target, prompt, output_tokens, top))
            task.advance(1)
    return FidelityReference(format="penny-reference/1", checkpoint=checkpoint, top=top, prompts=tuple(recorded))


def _recorded(target: Target, prompt: str, output_tokens: int, top: int) -> ReferencePrompt:
    ids = target.tokens(prompt)
    if not ids:
        raise NotCheckedError("the server has no endpoint that makes tokens of a text", where=f"{target.url}/tokenize")
    first, again = (target.likeliest(ids, output_tokens, top, time.monotonic_ns()) for _ in range(2))
    for record in (first, again):
        if record.error is not None or record.output_ids is None or record.top_logprobs is None:
            raise QualificationError(
                f"no reference for the prompt {prompt!r}", why=record.error or "log-probabilities are missing"
            )
        if len(record.output_ids) != output_tokens or any(len(each) < top for each in record.top_logprobs):
            raise QualificationError(
                f"no reference for the prompt {prompt!r}",
                why=f"expected {output_tokens} tokens with {top} log-probabilities each, got fewer",
            )
    if (first.output_ids, first.top_logprobs) != (again.output_ids, again.top_logprobs):
        raise QualificationError(
            f"the greedy output of {prompt!r} is not the same twice", todo="a reference needs a deterministic server"
        )
    return ReferencePrompt(
        prompt=prompt,
        prompt_ids=ids,
        output_ids=first.output_ids or (),
        top_logprobs=first.top_logprobs or (),
    )
