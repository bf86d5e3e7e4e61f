"""inspect_ai: a log as `.eval` or `.json`, header and a summary of each sample.

As inspect_ai 0.3.285 writes version 2 of its log: `results.scores[].metrics` are over samples after epochs were
reduced, in the scorer's own scale; `summaries.json` has the scores of each sample and epoch.
"""

from typing import TYPE_CHECKING, Any

from reproducer.documents.imported import ImportedAnswer, ImportedRun
from reproducer.results.fields import Fields, Place, written
from reproducer.results.making import UNKNOWN_OF_SCORES, Making
from reproducer.results.reading import NotFinite

if TYPE_CHECKING:
    from reproducer.documents.lock import Scalar

READ_IN = "0.3.285"
FILE_VERSIONS = frozenset({2})
_KEYS = frozenset({"version", "status", "eval", "plan"})
_CONDITIONS = (
    ("status",),
    ("invalidated",),
    ("eval", "task"),
    ("eval", "task_version"),
    ("eval", "model"),
    ("eval", "created"),
    ("eval", "dataset", "samples"),
    ("eval", "dataset", "shuffled"),
    ("eval", "config", "epochs"),
    ("eval", "config", "limit"),
    ("eval", "config", "fail_on_error"),
    ("eval", "revision", "commit"),
    ("plan", "config", "temperature"),
    ("plan", "config", "top_p"),
    ("plan", "config", "seed"),
    ("plan", "config", "max_tokens"),
    ("plan", "config", "reasoning_effort"),
)
_CASE_TEXTS = ("input", "target", "messages", "output", "events", "store", "attachments")


def is_inspect(documents: list[dict[str, Any]]) -> bool:
    """Whether this is a log of inspect_ai as JSON."""
    return len(documents) == 1 and documents[0].keys() >= _KEYS


def read_inspect(fields: Fields, header: Place, cases: Place, *, where: str) -> tuple[ImportedRun, ...]:
    """The one run of a log; raises InvalidDocumentError for numbers that cannot be.

    Args:
        fields: the log.
        header: where its header stands.
        cases: where its samples stand.
        where: the file, for errors.
    """
    run = Making(fields, header, name="(all of it)", unknown=UNKNOWN_OF_SCORES, where=where)
    for key in _CONDITIONS:
        run.condition(*key)
    for each in ("total_samples", "completed_samples"):
        run.count("results", each, name=each, unit="requests", how=f"{each.replace('_', ' ')}, each epoch of each one")
    for at in range(len(fields.rows(*header, "results", "scores"))):
        _score(run, at)
    for at in range(len(fields.rows(*cases))):
        if (answer := _answer(fields, (*cases, at))) is not None:
            run.answers.append(answer)
    return (run.done(),)


def _score(run: Making, at: int) -> None:
    """The metrics of one scorer."""
    place: Place = ("results", "scores", at)
    name = run.at(*place, "name")
    label = written((name,)) if isinstance(name, str) and name else f"scores[{at}]"
    run.fields.take(*run.place, *place, "name")
    if isinstance(reducer := run.at(*place, "reducer"), str) and reducer:
        label = f"{label}, {written((reducer,))}"
        run.fields.take(*run.place, *place, "reducer")
    for metric in run.fields.table(*run.place, *place, "metrics"):
        how = "the metric over samples, epochs reduced before, in the scorer's own scale"
        run.score(
            *(*place, "metrics", metric, "value"),
            name=f"{label}/{written((metric,))}",
            statistic="standard error" if metric == "stderr" else "value",
            how=how,
        )
        run.fields.take(*run.place, *place, "metrics", metric, "name")
    for key in ("scored_samples", "unscored_samples"):
        run.count(*place, key, name=f"{label}.{key}", unit="requests", how=f"{key.replace('_', ' ')} of this scorer")


def _answer(fields: Fields, place: Place) -> ImportedAnswer | None:
    """The scores of one sample, without any text of prompt or model."""
    case = fields.at(*place, "id")
    if isinstance(case, bool) or not isinstance(case, str | int):
        return None
    fields.take(*place, "id")
    for key in _CASE_TEXTS:
        fields.leave(*place, key, why="texts of prompt and model; they stand in the original")
    scores: dict[str, Scalar] = {}
    for scorer in fields.table(*place, "scores"):
        for key in ("answer", "explanation"):
            fields.leave(*place, "scores", scorer, key, why="texts of the model; they stand in the original")
        value = fields.at(*place, "scores", scorer, "value")
        if isinstance(value, NotFinite):
            fields.leave(*place, "scores", scorer, "value", why=f"is {value}")
        elif isinstance(value, bool) or (
            isinstance(value, str) and value.isprintable() and len(value) <= len("PARTIAL")
        ):
            scores[written((scorer,))] = fields.take(*place, "scores", scorer, "value")
        elif isinstance(value, int | float):
            number = fields.number(*place, "scores", scorer, "value", signed=True)
            if number is not None:
                scores[written((scorer,))] = number
    return ImportedAnswer(
        case=written((str(case),)) or "(none)",
        epoch=fields.whole(*place, "epoch"),
        scores=scores,
        failed=fields.at(*place, "error") is not None,
    )
