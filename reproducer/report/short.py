"""Short forms of a report: Markdown for a README, and a block of text for an article."""

import textwrap

from reproducer.documents.measured import Derived
from reproducer.documents.receipts import MeasureReceipt
from reproducer.report.against import against_markdown, against_text
from reproducer.report.html import visible
from reproducer.report.sections import bounds, counted, engine, machines, model, signer
from reproducer.report.subject import Subject
from reproducer.report.text import NOTHING, code, number, plain, table

_WIDTH = 78
_SPOKEN = ("tok/s", "s")
_MARKS = {"passed": "✓", "failed": "✗", "unknown": "?"}
_APART = {"imported": "Imported, not vouched for", "claim": "Claimed, measured by nobody here"}


def readme(subject: Subject) -> str:
    """Markdown for a README: the verdict, what was measured on what, the numbers with a bound, how to verify."""
    word = subject.verdict.word
    lines = [
        f"### {_MARKS[word]} {plain(subject.lock.name)}: {word}",
        "",
        f"{plain(model(subject))}; {plain(engine(subject))}; {plain('; '.join(machines(subject)) or 'no machine')}.",
        f"{plain(' to '.join(subject.days) or 'never')}, {len(subject.launches)} boots. Checks: {counted(subject)}.",
        "",
        "**Receipts** (measured here; raw samples kept, every number recomputed):",
        "",
    ]
    rows = [
        (code(name), code(each.name), f"**{number(each.value)}** {each.unit}", _range(each), told, _holds(holds))
        for name, receipt, each in _main(subject)
        for told, holds in [bounds([one for one in receipt.thresholds if one.threshold.value == each.name])]
    ]
    lines += table(("measure", "value", "result", "range", "bound", "holds"), rows) if rows else ["None."]
    if subject.against is not None:
        lines += against_markdown(subject.against)
    for result in subject.imported:
        lines += ["", f"> *{_APART['imported']}*: {code(result.harness)}, {len(result.runs)} runs."]
    for claim in subject.claims:
        lines += ["", f"> *{_APART['claim']}*: {code(claim.name)} by {plain(claim.publisher)}, {plain(claim.source)}."]
    signed = plain(signer(subject)).replace("the key below", f"key {code(subject.key_id or '')}")
    lines += ["", f"Signed by {signed}.", "", "```sh", *_commands(subject), "```", ""]
    return "\n".join(lines)


def article(subject: Subject) -> str:
    """Plain text for an article: a paragraph, and the digests that let a reader find exactly this."""
    told = "; ".join(
        f"{name} {each.name} {number(each.value)} {each.unit} (n={len(each.values)}"
        + (f", {_range(each)})" if _range(each) != NOTHING else ")")
        for name, _, each in _main(subject)
        if each.unit in _SPOKEN
    )
    said = (
        f"Measured by the signer: {model(subject)}, served by {engine(subject)} on "
        f"{'; '.join(machines(subject)) or 'no machine'}, {' to '.join(subject.days) or 'never'}, "
        f"{len(subject.launches)} boots. {told or 'No rate or time has a bound'}. Checks: {counted(subject)}. "
        "The numbers hold for that machine and no other."
    )
    apart = [
        f"Claimed by its publisher and measured by nobody here: {claim.name} ({claim.publisher})."
        for claim in subject.claims
    ]
    apart += [f"Imported from {each.harness} and not vouched for: {each.original.sha256}." for each in subject.imported]
    first = [_filled(each) for each in (f"{subject.lock.name}: {subject.verdict.word.upper()}", said)]
    compared = [] if subject.against is None else ["\n".join(map(_filled, against_text(subject.against)))]
    return (
        "\n\n".join(
            [*first, *compared, *map(_filled, apart), "\n".join(_digests(subject)), "Verify: " + _commands(subject)[0]]
        )
        + "\n"
    )


def _filled(text: str) -> str:
    return textwrap.fill(visible(text), _WIDTH, break_long_words=False)


def _main(subject: Subject) -> list[tuple[str, MeasureReceipt, Derived]]:
    """Values that the lock has a bound on; every rate and time where it has none on any."""
    found = [(name, receipt, each) for name, receipt in subject.named for each in receipt.derived]
    bound = [each for each in found if any(result.threshold.value == each[2].name for result in each[1].thresholds)]
    return bound or [each for each in found if each[2].unit in _SPOKEN]


def _range(each: Derived) -> str:
    if each.spread is not None and each.spread.low != each.spread.high:
        return f"95 % CI {number(each.spread.low)} to {number(each.spread.high)}"
    return NOTHING if each.minimum == each.maximum else f"{number(each.minimum)} to {number(each.maximum)}"


def _holds(word: str) -> str:
    return "**no**" if word == "NO" else word


def _digests(subject: Subject) -> list[str]:
    from reproducer.report.citation import digests

    return [f"{name:<6} sha256:{digest}" for name, digest in digests(subject)]


def _commands(subject: Subject) -> list[str]:
    verify = f"penny verify BUNDLE --key KEY.pem --lock-digest {subject.lock.digest}"
    again = "penny reproduce penny.lock.toml"
    if subject.key_id is None:
        return [again]
    return [verify, *(f"# bundle {subject.bundle_digest}" for _ in range(subject.bundle_digest is not None)), again]
