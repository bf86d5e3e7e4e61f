"""`penny diff --format markdown`: for a pull request, the answers first and then every change, worst first.

Whatever comes from a lock or a file beside it stands in a code span or a fenced block, in which Markdown reads nothing:
no HTML, no link, no mention. There are no tables, because a hostile value could end a cell.
"""

import re
from typing import TYPE_CHECKING

from reproducer.cli.show_diff import TOLD, grouped, printable, value_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reproducer.difference.diff import Change, Diff

_MOST_LINES = 400
_TICKS = re.compile("`+")
_MARKS = re.compile(r"[^\w\s.,;:'-]|_")


def markdown(diff: "Diff") -> str:
    """The whole difference as GitHub-flavoured Markdown."""
    return "\n".join([*_summary(diff), *_sections(diff)]) + "\n"


def code(text: str) -> str:
    """Text as a code span, whatever is in it."""
    plain = printable(text)
    fence = "`" * (_longest_run(plain) + 1)
    room = " " if not plain.strip(" `") or plain[0] in " `" or plain[-1] in " `" else ""
    return f"{fence}{room}{plain}{room}{fence}"


def _summary(diff: "Diff") -> "Iterator[str]":
    yield "## What changes with the lock"
    yield ""
    if diff.same_namespace:
        yield f"- **Namespace:** the same, {code(diff.after.name)}; stored pages stay readable"
    else:
        yield f"- **Namespace:** another, {code(diff.before.name)} → {code(diff.after.name)}; stored pages are not read"
    yield f"- **Rebuild:** {'the runtime must be built again' if diff.rebuild else 'not needed'}"
    gone = ", ".join(map(code, diff.invalidates))
    yield f"- **Evidence:** {f'no longer speaks: {gone}' if gone else 'nothing is taken away'}"
    counts = [f"{count} {consequence}" for consequence, count, _ in grouped(diff)]
    yield f"- **Changes:** {', '.join(counts) or 'none, the two locks mean the same'}"
    for reason in diff.not_compared:
        yield f"- **Not compared:** {code(reason)}"


def _sections(diff: "Diff") -> "Iterator[str]":
    for consequence, count, by_reason in grouped(diff):
        yield ""
        yield f"### {consequence} ({count}): {TOLD[consequence][0]}"
        for reason, same in by_reason.items():
            yield ""
            yield _MARKS.sub(lambda mark: f"&#{ord(mark[0])};", printable(reason))
            yield ""
            for change in same:
                yield from _change(change)


def _change(change: "Change") -> "Iterator[str]":
    path, before, after = code(change.path), value_text(change.before), value_text(change.after)
    if before == after:  # two digests with the same first digits
        before, after = str(change.before), str(change.after)
    if change.before is None:
        yield f"- {path}: added {code(after)}"
    elif change.after is None:
        yield f"- {path}: removed {code(before)}"
    else:
        yield f"- {path}: {code(before)} → {code(after)}"
    lines = [printable(line) for line in change.detail.split("\n")] if change.detail else []
    if not lines:
        return
    fence = "`" * max(3, max(map(_longest_run, lines)) + 1)
    yield f"  <details><summary>more of this change ({len(lines)} {'line' if len(lines) == 1 else 'lines'})</summary>"
    yield ""
    yield f"  {fence}diff"
    yield from (f"  {line}" for line in lines[:_MOST_LINES])
    yield f"  {fence}"
    yield ""
    if len(lines) > _MOST_LINES:
        yield f"  {len(lines) - _MOST_LINES} more lines, all of them with `--json`"
        yield ""
    yield "  </details>"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)
