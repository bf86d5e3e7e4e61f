"""How far what was got lies from the reference: tokens before the first divergence, and Kullback-Leibler divergence.

Only the likeliest tokens of each side are known. What is computed is the smallest divergence that is consistent with
both lists, so it is a lower bound: never negative, 0 for equal lists, and large where probable tokens are missing.
"""

from collections.abc import Sequence
from math import exp, log

from reproducer.documents.measured import Candidate

FLOOR = 1e-9


def matched(reference: Sequence[int], got: Sequence[int]) -> int:
    """How many tokens agree before the first one that does not."""
    for position, (left, right) in enumerate(zip(reference, got, strict=False)):
        if left != right:
            return position
    return min(len(reference), len(got))


def divergence(reference: Sequence[Candidate], got: Sequence[Candidate]) -> float:
    """KL(reference || got) in nats at one position with the same context.

    Tokens in both lists count with both probabilities. Of a reference token that is not in `got` it is known only that
    its probability there is at most the smallest listed one, and of all that is unlisted (the reference's tail
    included) that it shares what the listed tokens leave over. That remainder is spread so that the divergence is
    smallest: in proportion to the reference, no missing token above the smallest listed probability. Remainders are
    floored at `FLOOR`, since rounded probabilities may add up to one or more.
    """
    p = {each.token: exp(min(each.logprob, 0.0)) for each in reference}
    q = {each.token: exp(min(each.logprob, 0.0)) for each in got}
    if p == q:
        return 0.0
    total = sum(p[token] * (log(p[token]) - log(max(q[token], FLOOR))) for token in p if token in q and p[token] > 0)
    missing = sorted((p[token] for token in p if token not in q), reverse=True)
    tail = max(1.0 - sum(p.values()), 0.0)
    unlisted = max(1.0 - sum(q[token] for token in q if token in p), FLOOR)
    cap = max(min(q.values(), default=1.0), FLOOR)
    left = sum(missing) + tail
    for probability in missing:
        if probability <= 0 or unlisted * probability / left <= cap:
            break
        total += probability * log(probability / cap)
        left -= probability
        unlisted = max(unlisted - cap, FLOOR)
    if left > FLOOR:
        total += left * log(left / unlisted)
    return max(total, 0.0)
