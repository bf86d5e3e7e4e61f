"""`index.html`: one page over all runs that loads nothing; its one script hides and shows, and may be missing."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.resources import files

from reproducer.documents.site import Site, SiteClaim, SiteDifference, SiteMeasure, SiteRun, SiteValue
from reproducer.identity.meaning import WORST_FIRST
from reproducer.measures.apart import bare_names, identity, told_whole
from reproducer.measures.definitions import COUNTED
from reproducer.report.blocks import WORDS, Block, Facts, Figure, Prose, Table
from reproducer.report.distributions import short
from reproducer.report.html import drawn_by, environment, policy_hash, style_sheet
from reproducer.report.text import NOTHING, number
from reproducer.site.timeline import Panel, Point, timeline

SITE_FORMAT = "penny-site-page/1"
_SIZES = frozenset(value.name for value in COUNTED)
_DRAWN = frozenset({"tok/s", "s", "MiB/min", "ratio", "nats"})
_MOST_CHANGES = 400
_MOST_CHECKS = 40
_MOST_OPEN = 12
_LEAST, _MOST = 1e-15, 1e15


@dataclass(frozen=True)
class Told:
    """One run as the page tells it.

    Attributes:
        number: from 1, in the order of time.
        lock: what its lock is called on this page; empty where it is not shown.
        signer: what its key is called on this page.
        tags: what it is found by: measures by their tags.
    """

    number: int
    run: SiteRun
    lock: str
    signer: str
    tags: str
    blocks: tuple[Block, ...]


class Naming:
    """Short names for what has a long one: the page's own script and drawings hold no text from outside."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.locks = {each.digest: f"L{index}" for index, each in enumerate(site.locks, start=1)}

    @cached_property
    def signers(self) -> dict[str, str]:
        """Keys by id, in the order of their first runs."""
        ids = dict.fromkeys(each.key_id for each in self._site.runs if each.key_id is not None)
        return {key: f"K{index}" for index, key in enumerate(ids, start=1)}

    @cached_property
    def measures(self) -> dict[str, tuple[str, str]]:
        """Tag and name of each measure with its parameters, by what it is called in full."""
        every = {
            told_whole(each.measure, each.parameters): each
            for run in self._site.runs
            for each in sorted(run.measures or (), key=lambda each: identity(each.measure, each.parameters))
        }
        ordered = sorted(every.items(), key=lambda item: identity(item[1].measure, item[1].parameters))
        names = bare_names((each.measure, each.parameters) for _, each in ordered)
        return {whole: (f"m{index}", name) for index, ((whole, _), name) in enumerate(zip(ordered, names, strict=True))}

    def signer(self, run: SiteRun) -> str:
        """The key of a run and whose it is, as far as the reader gave it."""
        if run.key_id is None:
            return "unknown"
        return f"{self.signers[run.key_id]}, {run.signer or 'no key that was given'}"

    def tag(self, measure: SiteMeasure) -> str:
        """The tag of a measure."""
        return self.measures[told_whole(measure.measure, measure.parameters)][0]

    def name(self, measure: SiteMeasure) -> str:
        """Its name."""
        return self.measures[told_whole(measure.measure, measure.parameters)][1]


def page(site: Site, data_digest: str) -> str:
    """The page; the same document gives the same bytes with the same drawing library.

    Args:
        site: what it shows.
        data_digest: sha256 of `site.json`, which lies beside it.
    """
    names = Naming(site)
    style, script = style_sheet() + _file("site.css"), _file("site.js")
    engine = environment()
    template = engine.from_string(_file("site.html.j2"))
    return template.render(
        site=site,
        names=names,
        title=_title(site),
        verdicts=[(word, sum(each.verdict == word for each in site.runs)) for word in ("passed", "failed", "unknown")],
        runs=[_told(index, run, names) for index, run in enumerate(site.runs, start=1)],
        figures=list(_figures(site, names)),
        locks=_locks(site, names),
        differences=[block for each in site.differences for block in _difference(each, names)],
        claims=[(each, _claimed(each)) for each in site.claims],
        style=style,
        script=script,
        style_hash=policy_hash(style),
        script_hash=policy_hash(script),
        words=WORDS,
        format=SITE_FORMAT,
        library=drawn_by(),
        data_digest=data_digest,
    )


def _title(site: Site) -> str:
    runs, locks = len(site.runs), len(site.locks)
    return f"{runs} run{'' if runs == 1 else 's'} of {locks} lock{'' if locks == 1 else 's'}"


def _told(index: int, run: SiteRun, names: Naming) -> Told:
    measures = run.measures or ()
    return Told(
        number=index,
        run=run,
        lock=names.locks.get(run.lock_digest or "", ""),
        signer=names.signers.get(run.key_id or "", ""),
        tags=" ".join(sorted({names.tag(each) for each in measures})),
        blocks=tuple(_of_run(run, names)),
    )


def _of_run(run: SiteRun, names: Naming) -> Iterator[Block]:
    rows = [
        *(("Place", each) for each in run.places),
        ("Bundle digest", run.bundle_digest or "unknown"),
        ("Lock digest", run.lock_digest or "not shown"),
        ("Key", run.key_id or "unknown"),
        ("Whose key", run.signer or "unknown: no key that was given is this one"),
        *(("Machine", each) for each in run.machines),
        ("Checks", ", ".join(f"{count} {status}" for status, count in run.counts.items()) or "none"),
    ]
    if run.fault is not None:
        rows.append(("Why", run.fault))
    verbatim = frozenset({"Place", "Bundle digest", "Lock digest", "Key"})
    yield Facts(tuple(rows), verbatim)
    if run.checks:
        checks = tuple((each.id, each.aspect, each.status, each.reason) for each in run.checks[:_MOST_CHECKS])
        more = "" if len(run.checks) <= _MOST_CHECKS else f", the first {_MOST_CHECKS}; all are in site.json"
        caption = f"Checks that did not pass: {len(run.checks)}{more}"
        yield Table(caption, ("check", "aspect", "status", "why"), checks, verbatim=frozenset({0}))
    if values := tuple(row for each in run.measures or () for row in _values(each, names)):
        header = (
            "measure",
            "value",
            "result",
            "95 % interval",
            "least to most",
            "n",
            "boots",
            "bound",
            "holds",
            "kind",
        )
        yield Table("Values", header, values, frozenset({2, 3, 4, 5, 6}), frozenset({1}), grouped=True)


def _values(measure: SiteMeasure, names: Naming) -> Iterator[tuple[str, ...]]:
    name = names.name(measure)
    if measure.status == "skipped":
        yield (name, "skipped", *[NOTHING] * 8)
    for each in measure.values:
        if each.name in _SIZES:
            continue
        yield (
            name,
            each.name,
            _number(each),
            NOTHING if each.interval is None else _range(*each.interval),
            _range(each.minimum, each.maximum),
            str(measure.samples),
            str(measure.boots),
            each.bounds or "none",
            NOTHING if each.holds is None else "yes" if each.holds else "NO",
            each.kind,
        )


def _number(each: SiteValue) -> str:
    if each.unit == "bool":
        return "true" if each.value else "false"
    return number(each.value) if each.unit in ("ratio", "count") else f"{number(each.value)} {each.unit}"


def _range(low: float, high: float) -> str:
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def _figures(site: Site, names: Naming) -> Iterator[tuple[str, Figure]]:
    """A figure a measure: each of its numbers over the runs that have it; kinds never share an axis."""
    locks = {digest: index for index, digest in enumerate(names.locks)}
    for tag, name in names.measures.values():
        panels: dict[tuple[str, str, str], list[Point]] = {}
        rows: dict[tuple[str, str, str], list[tuple[str, ...]]] = {}
        for index, run, each in _numbers(site, names, tag):
            key = each.name, each.unit, each.kind
            lock, failed = locks[run.lock_digest or ""], run.verdict == "failed"
            panels.setdefault(key, []).append(_point(index, lock, each, failed=failed))
            rows.setdefault(key, []).append(_row(index, run, each, names))
        if not panels:
            continue
        drawn = tuple(Panel(_panel_title(value, unit), tuple(points)) for (value, unit, _), points in panels.items())
        header = ("value", "run", "lock", "verdict", "result", "95 % interval", "least to most", "n", "kind")
        every = tuple(row for of_value in rows.values() for row in of_value)
        table = Table(f"{name}: values by run", header, every, frozenset({1, 4, 5, 6, 7}), grouped=True, folded=True)
        spoken = " ".join(_spoken(value, unit, points) for (value, unit, _), points in panels.items())
        yield tag, Figure(f"runs-{tag}", name, spoken, partial(timeline, f"runs-{tag}", len(site.runs), drawn), table)


def _numbers(site: Site, names: Naming, tag: str) -> Iterator[tuple[int, SiteRun, SiteValue]]:
    """What is drawn of a measure, run by run."""
    for index, run in enumerate(site.runs, start=1):
        for measure in run.measures or ():
            if names.tag(measure) == tag:
                for each in measure.values:
                    if each.unit in _DRAWN and each.name not in _SIZES and each.count and _fits(each):
                        yield index, run, each


def _fits(each: SiteValue) -> bool:
    """Whether a number lies where an axis can hold it; one that does not stands in the table of its run alone."""
    every = (each.value, each.minimum, each.maximum, *each.values, *(each.interval or ()))
    return all(one == 0 or _LEAST < abs(one) < _MOST for one in every)


def _point(run: int, lock: int, each: SiteValue, *, failed: bool) -> Point:
    return Point(run, lock, each.value, each.values, (each.minimum, each.maximum), each.interval, failed)


def _panel_title(value: str, unit: str) -> str:
    return short(value) if unit in ("ratio", "count") else f"{short(value)}, {unit}"


def _spoken(value: str, unit: str, points: list[Point]) -> str:
    least, most = min(each.value for each in points), max(each.value for each in points)
    return f"{value}: {len(points)} runs, from {number(least)} to {number(most)} {unit}."


def _row(index: int, run: SiteRun, each: SiteValue, names: Naming) -> tuple[str, ...]:
    return (
        each.name,
        str(index),
        names.locks.get(run.lock_digest or "", NOTHING),
        run.verdict,
        _number(each),
        NOTHING if each.interval is None else _range(*each.interval),
        _range(each.minimum, each.maximum),
        str(each.count),
        each.kind,
    )


def _locks(site: Site, names: Naming) -> Table:
    runs = Counter(each.lock_digest for each in site.runs)
    rows = tuple(
        (
            names.locks[each.digest],
            each.name,
            each.model,
            each.engine,
            each.namespace or "several",
            str(runs[each.digest]),
            each.digest,
        )
        for each in site.locks
    )
    header = ("", "lock", "model", "engine", "namespace", "runs", "digest")
    return Table("Locks, by their first runs", header, rows, frozenset({5}), frozenset({4, 6}))


def _difference(found: SiteDifference, names: Naming) -> Iterator[Block]:
    title = f"{names.locks[found.before]} to {names.locks[found.after]}"
    if found.changes is None:
        yield Prose(f"{title}: not compared, {'; '.join(found.not_compared)}.")
        return
    counts = Counter(each.consequence for each in found.changes)
    told = ", ".join(f"{counts[each]} {each}" for each in WORST_FIRST if counts[each]) or "none"
    same = "the namespace is the same" if found.same_namespace else "the namespace is another one"
    again = "the runtime must be built again" if found.rebuild else "the runtime need not be built again"
    gone = f" No evidence for the later: {', '.join(found.invalidates)}." if found.invalidates else ""
    left = f" Not compared: {'; '.join(found.not_compared)}." if found.not_compared else ""
    yield Prose(f"{title}: {len(found.changes)} changes ({told}); {same}, {again}.{gone}{left}")
    rows = tuple(
        (each.consequence, each.path, each.before or "not there", each.after or "not there", each.reason)
        for each in found.changes[:_MOST_CHANGES]
    )
    more = "" if len(found.changes) <= _MOST_CHANGES else f", the first {_MOST_CHANGES}; all are in site.json"
    if rows:
        header = ("consequence", "path", "before", "after", "why")
        caption = f"{title}: {len(found.changes)} changes{more}"
        yield Table(caption, header, rows, verbatim=frozenset({1, 2, 3}), grouped=True, folded=len(rows) > _MOST_OPEN)


def _claimed(claim: SiteClaim) -> Table:
    rows = tuple(
        (
            each.name,
            ", ".join(number(one) for one in each.values or (() if each.value is None else (each.value,))),
            each.unit,
            each.kind,
            ", ".join(f"{name}={value}" for name, value in sorted(each.parameters.items())),
        )
        for each in claim.quantities
    )
    header = ("name", "claimed", "unit", "kind", "with")
    return Table(f"Claimed by {claim.publisher}", header, rows, frozenset({1}), frozenset({0}), folded=True)


@cache
def _file(name: str) -> str:
    return (files("reproducer.site") / "templates" / name).read_text(encoding="utf-8")
