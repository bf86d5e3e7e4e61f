"""The whole content of a report, in the order in which it is read."""

from collections import Counter
from typing import get_args

from reproducer.documents.measured import Derived, ThresholdResult
from reproducer.documents.receipts import MeasureReceipt
from reproducer.documents.sources import WheelMemberSource
from reproducer.documents.verdict import Aspect
from reproducer.measures.definitions import COUNTED
from reproducer.report.against import against
from reproducer.report.blocks import WORDS, Block, Content, Facts, Listing, Prose, Section, Table
from reproducer.report.distributions import acceptance, context, prefill, restore, spread
from reproducer.report.served import served
from reproducer.report.subject import Subject
from reproducer.report.text import NOTHING, gibibytes, number
from reproducer.report.verifying import limits, verifying

_SIZES = frozenset(value.name for value in COUNTED)
_SENTENCE = {
    "passed": "Every check holds.",
    "failed": "Some checks fail. Each is named below, with what was expected and what was found.",
    "unknown": "Nothing fails, and not everything could be checked. What is missing is named below.",
}
_SIGNS = {">=": "≥", "<=": "≤", "==": "="}
_STATUSES = ("failed", "unknown", "skipped", "passed")


def content(subject: Subject) -> Content:
    """The report; the same subject gives the same one."""
    sections = (
        _measures(subject),
        context(subject),
        prefill(subject),
        restore(subject),
        acceptance(subject),
        spread(subject),
        against(subject.against),
        served(subject),
        *_imported(subject),
        *_claims(subject),
        _checks(subject),
        _conditions(subject),
        limits(subject),
        verifying(subject),
    )
    return Content(
        title=subject.lock.name,
        word=subject.verdict.word,
        sentence=f"{_SENTENCE[subject.verdict.word]} {counted(subject)}.",
        facts=_facts(subject),
        sections=tuple(each for each in sections if each is not None),
    )


def counted(subject: Subject) -> str:
    """How many checks ended how."""
    counts = Counter(each.status for each in subject.verdict.checks)
    return ", ".join(
        f"{counts[status]} {status}"
        for status in ("passed", "failed", "skipped", "unknown")
        if counts[status] or status == "passed"
    )


def signer(subject: Subject) -> str:
    """Whose signature it is, as far as that was checked."""
    if subject.key_id is None:
        return "nobody; these receipts are not in a bundle"
    status = next((each.status for each in subject.verdict.checks if each.id == "identity"), None)
    if status == "passed":
        return "the key below, which the reader gave"
    if status is None:
        return "the key below; this page lies in the bundle and cannot vouch for its own signature"
    return f"the key below; whose key that is: {status}"


def model(subject: Subject) -> str:
    """The checkpoint that was served, and its state."""
    target = subject.lock.target
    source = target.source
    if isinstance(source, WheelMemberSource):
        return f"{target.name}, from {source.project} {source.version}"
    repository, revision = getattr(source, "repository", None), getattr(source, "revision", None)
    return f"{target.name}, from {repository} at {revision}" if repository else target.name


def engine(subject: Subject) -> str:
    """The engine and the exact state of its source."""
    lock = subject.lock
    component = next((each for each in lock.components if each.name == lock.engine.component), None)
    if component is None:
        return lock.engine.kind
    source = component.source
    state = getattr(source, "version", None) or getattr(source, "commit", None) or "a source tree beside the lock"
    patches = f", {len(component.patches)} patches" if component.patches else ""
    return f"{lock.engine.kind}, {component.name} {state}{patches}"


def machines(subject: Subject) -> tuple[str, ...]:
    """What it ran on: graphics processors first, where there are any."""
    found: dict[str, None] = {}
    for receipt in subject.measures:
        conditions = receipt.conditions
        gpus = Counter(gpu.name for gpu in conditions.gpus or ())
        graphics = "".join(f"{count} \N{MULTIPLICATION SIGN} {name}, " for name, count in sorted(gpus.items()))
        host = conditions.host
        found[f"{graphics}{host.cpu}, {host.cpu_count} processors, {gibibytes(host.memory_bytes)}, {host.platform}"] = (
            None
        )
    return tuple(found)


def _facts(subject: Subject) -> Facts:
    samples = sum(not each.warmup for receipt in subject.measures for each in receipt.samples)
    rows = [
        ("Model", model(subject)),
        ("Engine", engine(subject)),
        *(("Machine", each) for each in machines(subject)),
        (
            "Measured",
            f"{_days(subject)}; {len(subject.measures)} measures, {samples} samples, {len(subject.launches)} boots",
        ),
        *(("Rebuild", each) for each in sorted({build.level for build in subject.builds})),
        *(
            ("Namespace", each)
            for each in sorted({each.namespace for each in subject.launches if each.altered is None})
        ),
        ("Lock digest", subject.lock.digest),
    ]
    if subject.bundle_digest is not None:
        rows.append(("Bundle digest", subject.bundle_digest))
    rows.append(("Signed by", signer(subject)))
    if subject.key_id is not None:
        rows.append(("Key", subject.key_id))
    return Facts(tuple(rows), frozenset({"Lock digest", "Bundle digest", "Key", "Namespace", "Rebuild"}))


def _days(subject: Subject) -> str:
    return " to ".join(subject.days) or "never"


def _measures(subject: Subject) -> Section:
    if not subject.measures:
        return Section("measures", "What was measured", (Prose("Nothing."),), "receipt")
    rows = tuple(row for name, receipt in subject.named for row in _rows(name, receipt))
    header = ("measure", "value", "result", "range", "bound", "holds", "n", "boots", "kind")
    table = Table("Values of each measure", header, rows, frozenset({2, 3, 6, 7}), frozenset({0, 1}), grouped=True)
    note = (
        "A value is the median over n samples, warm-up left out; the range is its 95 % interval where it ends in CI, "
        "otherwise the least and the most. Numbers of two kinds are never comparable with each other."
    )
    return Section("measures", "What was measured", (table, Prose(note)), "receipt")


def _rows(name: str, receipt: MeasureReceipt) -> list[tuple[str, ...]]:
    counts = [sample for sample in receipt.samples if not sample.warmup]
    if receipt.status == "skipped":
        return [(name, "skipped", NOTHING, "", receipt.reason, NOTHING, "0", "0", "")]
    return [
        (
            name,
            each.name,
            value(each),
            _range(each),
            *bounds([result for result in receipt.thresholds if result.threshold.value == each.name]),
            str(len(counts)),
            str(len({sample.boot for sample in counts})),
            each.kind,
        )
        for each in receipt.derived
        if each.name not in _SIZES
    ]


def value(each: Derived) -> str:
    """A number with its unit; a truth as a word."""
    if each.unit == "bool":
        return "true" if each.value else "false"
    return number(each.value) if each.unit in ("ratio", "count") else f"{number(each.value)} {each.unit}"


def _range(each: Derived) -> str:
    low, high, said = (
        (each.minimum, each.maximum, "") if each.spread is None else (each.spread.low, each.spread.high, " CI")
    )
    return "" if low == high else f"{number(low)} to {number(high)}{said}"


def bounds(results: list[ThresholdResult]) -> tuple[str, str]:
    """The lock's bounds on a value, and whether all of them hold."""
    if not results:
        return "none", NOTHING
    told = []
    for each in results:
        bound = each.threshold.bound
        text = f"{_SIGNS[each.threshold.comparator]} {str(bound).lower() if isinstance(bound, bool) else number(bound)}"
        if each.threshold.relative_to is not None:
            said = (
                "not compared"
                if each.relative is None
                else f"{number(each.relative.reference)}: {each.relative.conclusion}"
            )
            text += f" of a reference, {said}"
        told.append(text)
    return ", ".join(told), "yes" if all(each.passed for each in results) else "NO"


def _checks(subject: Subject) -> Section:
    checks = subject.verdict.checks
    counts = tuple(
        (
            aspect,
            *(str(sum(each.aspect == aspect and each.status == status for each in checks)) for status in _STATUSES),
        )
        for aspect in get_args(Aspect)
        if any(each.aspect == aspect for each in checks)
    )
    blocks: list[Block] = [Table("Checks by aspect", ("aspect", *_STATUSES), counts, frozenset({1, 2, 3, 4}))]
    header = ("check", "aspect", "expected", "found", "why")
    for status in _STATUSES:
        rows = tuple(
            (each.id, each.aspect, each.expected, each.got, each.reason) for each in checks if each.status == status
        )
        if rows:
            caption = f"{status.capitalize()}: {len(rows)}"
            blocks.append(Table(caption, header, rows, verbatim=frozenset({0, 2, 3}), folded=status == "passed"))
    return Section("checks", "Verdict, check by check", tuple(blocks))


def _conditions(subject: Subject) -> Section:
    blocks: list[Block] = []
    for build in subject.builds:
        outputs = tuple((each.component, each.filename, str(each.level), each.sha256) for each in build.outputs)
        if outputs:
            header = ("component", "output", "level", "sha256")
            blocks.append(Table("What was built", header, outputs, verbatim=frozenset({1, 2, 3})))
        differing = tuple(
            (output.filename, each.where, each.reason) for output in build.outputs for each in output.differences
        )
        if differing:
            named = ("output", "where", "why")
            blocks.append(Table("Differences to the lock's outputs", named, differing, verbatim=frozenset({0, 1})))
        network = "without network" if build.isolation.network == "none" else "with offline settings only"
        failed = f" The build of {build.failure.where} failed: {build.failure.reason}." if build.failure else ""
        blocks.append(
            Prose(
                f"Built {network}, Python {build.python}, {build.installer}; {len(build.packages)} packages, each by "
                f"its hash.{failed}"
            )
        )
    if subject.launches:
        boots = tuple(
            (subject.boots[each.boot.id], number(each.ready_ns / 1e9), str(len(each.effective)), _altered(each.altered))
            for each in subject.launches
        )
        columns = ("boot", "seconds to ready", "effective values compared", "asked to differ in")
        blocks.append(Table("Boots of the server", columns, boots, frozenset({1, 2})))
        first = subject.launches[0]
        arguments = " ".join(first.arguments)
        blocks.append(
            Table("Arguments of the first boot", ("arguments",), ((arguments,),), verbatim=frozenset({0}), folded=True)
        )
    rows = tuple(
        (
            name,
            number(each.conditions.load_average[0]),
            number(each.conditions.load_average[1]),
            "unknown"
            if each.conditions.other_cpu_percent is None
            else f"{number(each.conditions.other_cpu_percent)} %",
            str(each.warmup),
            each.conditions.cache_state,
        )
        for name, each in subject.named
    )
    if rows:
        conditions = ("measure", "load before", "load after", "other processes", "warm-up", "cache state")
        blocks.append(Table("Conditions of each measure", conditions, rows, frozenset({1, 2, 3, 4}), frozenset({0})))
    gpus = tuple(
        (
            name,
            gpu.name,
            gpu.driver,
            _ends(gpu.power_requested_w),
            _ends(gpu.power_enforced_w),
            _ends(gpu.clock_sm_mhz),
            "unknown" if gpu.reasons is None else ", ".join(gpu.reasons) or "nothing",
        )
        for name, each in subject.named
        for gpu in each.conditions.gpus or ()
    )
    if gpus:
        said = ("measure", "GPU", "driver", "limit set, W", "limit that held, W", "clock, MHz", "clocks held back by")
        blocks.append(Table("GPUs while measured", said, gpus, frozenset({3, 4, 5}), frozenset({0})))
    return Section("conditions", "Runtime and conditions", tuple(blocks) or (Prose("Nothing is known."),))


def _altered(altered: object) -> str:
    return ", ".join(f"{name}={value}" for name, value in altered.items()) if isinstance(altered, dict) else NOTHING


def _ends(ends: tuple[float, float] | None) -> str:
    if ends is None:
        return "unknown"
    return number(ends[0]) if ends[0] == ends[1] else f"{number(ends[0])} to {number(ends[1])}"


def _claims(subject: Subject) -> tuple[Section, ...]:
    """Each claim in a section of its own, never beside a receipt."""
    found = []
    for index, claim in enumerate(subject.claims):
        rows = tuple(
            (
                each.name,
                _stated(each.value, each.values),
                each.unit,
                each.kind,
                ", ".join(f"{name}={value}" for name, value in sorted(each.parameters.items())),
                each.how,
            )
            for each in claim.quantities
        )
        header = ("name", "claimed", "unit", "kind", "with", "how, as its publisher says")
        facts = Facts(
            (("Publisher", claim.publisher), ("Source", claim.source), ("Date", claim.date), ("Runtime", claim.runtime))
        )
        table = Table("Claimed values", header, rows, frozenset({1}), frozenset({0}))
        blocks: list[Block] = [Prose(_APART["claim"]), facts, table]
        if claim.conditions.unknown:
            blocks += [
                Prose("Not published, and needed to take these numbers again:"),
                Listing(claim.conditions.unknown),
            ]
        found.append(Section(f"claim-{index}", f"Claim: {claim.name}", tuple(blocks), "claim"))
    return tuple(found)


_APART = {
    word: f"{said[0].upper()}{said[1:]}. No number here stands in any table or figure of the receipts."
    for word, (_, said) in WORDS.items()
}


def _stated(value: float | None, values: tuple[int | float, ...] | None) -> str:
    return ", ".join(number(each) for each in values or (() if value is None else (value,)))


def _imported(subject: Subject) -> tuple[Section, ...]:
    found = []
    for index, result in enumerate(subject.imported):
        rows = tuple(
            (run.place, each.name, each.statistic, number(each.value), each.unit, each.kind, each.origin)
            for run in result.runs
            for each in run.quantities
        )
        header = ("run", "name", "statistic", "imported", "unit", "kind", "origin")
        facts = Facts(
            (
                ("Harness", f"{result.harness} {result.harness_version}"),
                ("Its file", result.original.sha256),
                ("Lock, as the importer says", "none" if result.lock is None else result.lock.digest),
            ),
            frozenset({"Its file", "Lock, as the importer says"}),
        )
        blocks = (
            Prose(_APART["imported"]),
            facts,
            Table("Imported values", header, rows, frozenset({3}), frozenset({1})),
        )
        found.append(Section(f"imported-{index}", f"Imported: {result.harness}", blocks, "imported"))
    return tuple(found)
