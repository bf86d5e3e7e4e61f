"""`report.md`: the verdict first, then the numbers, what was checked, under which conditions, and how to check it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args

from reproducer.documents.lock import Lock
from reproducer.documents.measured import Derived, ThresholdResult
from reproducer.documents.receipts import BuildReceipt, LaunchReceipt, MeasureReceipt
from reproducer.documents.verdict import Aspect, Check, Verdict
from reproducer.ledger import AnyReceipt
from reproducer.measures.apart import identity, names
from reproducer.report.ladder import ladders
from reproducer.report.spread import clocks, in_turn, spreads
from reproducer.report.text import NOTHING, code, gibibytes, number, plain, table

if TYPE_CHECKING:
    from reproducer.documents.built import HostFacts

REPORT_FORMAT = "penny-report/1"
_SENTENCE = {
    "passed": "Every check of these receipts holds.",
    "failed": "Some checks of these receipts fail; each is named below.",
    "unknown": "Nothing fails, and not everything could be checked; what is missing is named below.",
}
_LIMITS = (
    "The signature is by a key. It proves who signed, not when: there is no log entry and no timestamp.",
    "The numbers are those of the machine under Conditions, as it was then, and of no other.",
    "Samples are what the signer's measuring client recorded, and a signer can invent them.",
    "Rebuilding the runtime and measuring again is the proof that does not rest on the signer.",
    "This page is made from the receipts and signed with them, so it cannot say that its own signature holds.",
)


def report(
    lock: Lock,
    receipts: Iterable[AnyReceipt],
    verdict: Verdict,
    *,
    key_id: str | None = None,
    figure: str | None = None,
) -> str:
    """The report as Markdown.

    Args:
        lock: the lock.
        receipts: the receipts it reports on.
        verdict: what verification found.
        key_id: the signer's key, where a bundle is written.
        figure: the relative path of the figure beside the page, where there is one.
    """
    ordered = sorted(receipts, key=lambda receipt: (receipt.created, receipt.digest))
    builds = [receipt for receipt in ordered if isinstance(receipt, BuildReceipt)]
    launches = [receipt for receipt in ordered if isinstance(receipt, LaunchReceipt)]
    measures = sorted(
        (receipt for receipt in ordered if isinstance(receipt, MeasureReceipt)),
        key=lambda receipt: (identity(receipt.measure, receipt.parameters), receipt.digest),
    )
    sections = [
        _head(lock, builds, launches, verdict, key_id),
        _measures(measures, figure),
        _checked(verdict),
        _runtime(builds, launches),
        _conditions(builds, measures),
        _how(lock, builds, key_id),
        ["## Limits", "", *(f"- {limit}" for limit in _LIMITS)],
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _head(
    lock: Lock, builds: list[BuildReceipt], launches: list[LaunchReceipt], verdict: Verdict, key_id: str | None
) -> list[str]:
    rows = [("lock", code(lock.digest))]
    if key_id is not None:
        rows.append(("key", code(key_id)))
    rows += [
        ("namespace", code(name))
        for name in sorted({launch.namespace for launch in launches if launch.altered is None})
    ]
    rows += [("rebuild level", code(level)) for level in sorted({build.level for build in builds})]
    return [
        f"<!-- {REPORT_FORMAT} -->",
        f"# {lock.name}: {verdict.word}",
        "",
        f"{_SENTENCE[verdict.word]} {_counted(verdict.checks)}.",
        "",
        *table(("", ""), rows),
    ]


def _counted(checks: tuple[Check, ...]) -> str:
    """How many checks ended how."""
    counts = [(status, sum(each.status == status for each in checks)) for status in _STATUSES]
    return ", ".join(f"{count} {status}" for status, count in counts if count or status == "passed")


_STATUSES = ("passed", "failed", "skipped", "unknown")


def _measures(measures: list[MeasureReceipt], figure: str | None) -> list[str]:
    """One row for each derived value, with every bound of the lock on it."""
    rows = [row for name, receipt in _told(measures) for row in _rows(name, receipt)]
    if not rows:
        return ["## Measures", "", "None."]
    header = ("measure", "value", "", "unit", "kind", "n", "boots", "min to max", "bound", "holds")
    lines = ["## Measures", "", *table(header, rows), ""]
    lines.append(
        "The value is the median over n samples, warm-up left out. Kinds are different quantities; no number of one"
    )
    lines.append("kind is comparable with a number of another.")
    lines += spreads(_told(measures))
    lines += ladders(measures)
    if figure is not None:
        lines += ["", f"![Spread of the samples of each measure]({figure})"]
    return lines


def _told(measures: list[MeasureReceipt]) -> list[tuple[str, MeasureReceipt]]:
    """Each receipt with its measure's name, which has parameters where one id was measured with several."""
    return list(zip(names((each.measure, each.parameters) for each in measures), measures, strict=True))


def _rows(name: str, receipt: MeasureReceipt) -> list[tuple[str, ...]]:
    counted = [sample for sample in receipt.samples if not sample.warmup]
    boots = str(len({sample.boot for sample in counted}))
    valid = next((int(each.value) for each in receipt.derived if each.name == "valid_samples"), len(counted))
    size = str(valid) if valid == len(counted) else f"{valid} of {len(counted)}"
    if receipt.status == "skipped":
        return [(code(name), "skipped", NOTHING, "", plain(receipt.reason), "0", "0", "", "", NOTHING)]
    return [
        (
            code(name),
            code(derived.name),
            f"**{number(derived.value)}**",
            derived.unit,
            derived.kind,
            size,
            boots,
            _range(derived),
            *_bounds([each for each in receipt.thresholds if each.threshold.value == derived.name]),
        )
        for derived in receipt.derived
        if derived.name not in _SIZES
    ]


# how many samples count is the column n
_SIZES = frozenset({"valid_samples", "invalid_samples"})


def _range(derived: Derived) -> str:
    if derived.minimum == derived.maximum:
        return number(derived.minimum)
    return f"{number(derived.minimum)} to {number(derived.maximum)}"


def _bounds(results: list[ThresholdResult]) -> tuple[str, str]:
    if not results:
        return "none", NOTHING
    bounds = [f"{_SIGN[each.threshold.comparator]} {_bound(each.threshold.bound)}{_relative(each)}" for each in results]
    return ", ".join(bounds), "yes" if all(each.passed for each in results) else "**no**"


def _relative(result: ThresholdResult) -> str:
    """What a bound that is relative to a receipt came to."""
    if result.threshold.relative_to is None:
        return ""
    relative = result.relative
    if relative is None:
        return " of a reference, not compared"
    floor = "unknown" if relative.floor is None else number(relative.floor)
    return f" of {number(relative.reference)}: {relative.conclusion} (noise floor {floor})"


_SIGN = {">=": "≥", "<=": "≤", "==": "="}


def _bound(bound: float | bool) -> str:  # noqa: FBT001  a threshold's bound is a number or a truth value
    return str(bound).lower() if isinstance(bound, bool) else number(bound)


def _checked(verdict: Verdict) -> list[str]:
    """Counts for each aspect; whatever did not pass, one by one with its reason."""
    rows = []
    for aspect in get_args(Aspect):
        of_aspect = [each for each in verdict.checks if each.aspect == aspect]
        if of_aspect:
            rows.append((aspect, *(str(sum(each.status == status for each in of_aspect)) for status in _STATUSES)))
    lines = ["## What was checked", "", *table(("aspect", *_STATUSES), rows)]
    for status in ("failed", "unknown", "skipped"):
        found = [each for each in verdict.checks if each.status == status]
        if found:
            lines += ["", f"{status.capitalize()}:", ""]
            lines += [f"- {code(each.id)}: {plain(each.reason)}{_expected(each)}" for each in found]
    if all(each.status == "passed" for each in verdict.checks):
        lines += ["", "Nothing was skipped."]
    return lines


def _expected(check: Check) -> str:
    return f" (expected {code(check.expected)}, got {code(check.got)})" if check.expected and check.got else ""


def _runtime(builds: list[BuildReceipt], launches: list[LaunchReceipt]) -> list[str]:
    lines = ["## Runtime"]
    for build in builds:
        if build.failure is not None:
            lines += ["", f"The build of {plain(build.failure.where)} failed: {plain(build.failure.reason)}"]
        rows = [
            (plain(each.component), code(each.filename), each.level, code(each.sha256[:12])) for each in build.outputs
        ]
        lines += ["", *table(("component", "output", "level", "sha256 begins"), rows), ""]
        network = "without network" if build.isolation.network == "none" else "with offline settings only"
        lines.append(
            f"Built {network}, umask {plain(build.isolation.umask)}, Python {plain(build.python)}, "
            f"{plain(build.installer)}; {len(build.packages)} packages, each by its hash."
        )
        lines += _differing(build)
    if launches:
        ready = ", ".join(number(launch.ready_ns / 1e9) for launch in launches)
        values = max(len(launch.effective) for launch in launches)
        lines += ["", f"{len(launches)} boots, ready after {ready} s; {values} effective values compared in each."]
    return lines


def _differing(build: BuildReceipt) -> list[str]:
    found = [
        f"- {code(output.filename)}: {code(each.where)} {plain(each.reason)}".rstrip()
        for output in build.outputs
        for each in output.differences
    ]
    return ["", "Differences to the lock's outputs:", "", *found] if found else []


def _conditions(builds: list[BuildReceipt], measures: list[MeasureReceipt]) -> list[str]:
    hosts: list[HostFacts] = []
    for host in (*(build.host for build in builds), *(measure.conditions.host for measure in measures)):
        if host not in hosts:
            hosts.append(host)
    rows = [
        (
            plain(host.platform),
            plain(host.cpu),
            str(host.cpu_count),
            gibibytes(host.memory_bytes),
            plain(host.kernel),
            plain(host.filesystem),
        )
        for host in hosts
    ]
    lines = ["## Conditions", "", *table(("platform", "processor", "count", "memory", "kernel", "filesystem"), rows)]
    if measures:
        header = ("measure", "load before", "load after", "other processes", "warm-up", "cache state")
        lines += ["", *table(header, [_condition(*each) for each in _told(measures)])]
    if gpus := [row for each in _told(measures) for row in _gpus(*each)]:
        columns = ("measure", "GPU", "driver", "limit set", "limit that held", "clocks held back by", "readings")
        lines += ["", *table(columns, gpus)]
    return lines + clocks(_told(measures)) + in_turn(_told(measures))


def _gpus(name: str, receipt: MeasureReceipt) -> list[tuple[str, ...]]:
    """The GPUs of one measure, a row each."""
    return [
        (
            code(name),
            plain(gpu.name),
            plain(gpu.driver),
            _watts(gpu.power_requested_w),
            _watts(gpu.power_enforced_w),
            "unknown" if gpu.reasons is None else plain(", ".join(gpu.reasons) or "nothing"),
            str(gpu.readings),
        )
        for gpu in receipt.conditions.gpus or ()
    ]


def _watts(limits: tuple[float, float] | None) -> str:
    if limits is None:
        return "unknown"
    low, high = limits
    return f"{number(low)} W" if low == high else f"{number(low)} to {number(high)} W"


def _condition(name: str, receipt: MeasureReceipt) -> tuple[str, ...]:
    conditions = receipt.conditions
    other = conditions.other_cpu_percent
    return (
        code(name),
        number(conditions.load_average[0]),
        number(conditions.load_average[1]),
        "unknown" if other is None else f"{number(other)} % of one processor",
        str(receipt.warmup),
        plain(conditions.cache_state),
    )


_OPENSSL = r"""
work=$(mktemp -d)
openssl pkey -pubin -in KEY.pem -outform DER | openssl dgst -sha256 -r     # the id of the key
for name in {names}; do
  for field in payload sig; do
    sed 's/.*"'$field'":"\([^"]*\)".*/\1/' statements/$name.sigstore.json | openssl base64 -d -A > $work/$field
  done
  {{ printf 'DSSEv1 28 application/vnd.in-toto+json %d ' $(wc -c < $work/payload); cat $work/payload; }} > $work/signed
  openssl dgst -sha256 -verify KEY.pem -signature $work/sig $work/signed
  grep -q "$(openssl dgst -sha256 -r index.json | cut -c -64)" $work/payload && echo "$name binds index.json"
done
sed 's/{{"path"/\n&/g' index.json |
  sed -n 's/.*"path":"\([^"]*\)","sha256":"\([0-9a-f]*\)".*/\2  \1/p' | sha256sum -c --quiet &&
  echo "index.json binds every file"
""".strip()


def _how(lock: Lock, builds: list[BuildReceipt], key_id: str | None) -> list[str]:
    """Exact commands; with openssl alone as well."""
    again = [
        f"Rebuild {code(lock.name)} and measure again, which trusts nobody:",
        "",
        "```sh",
        "penny reproduce penny.lock.toml",
        "```",
    ]
    if key_id is None:
        return ["## How to check it", "", *again]
    names = [f"build-{build.digest[:12]}" for build in builds] + ["qualification"]
    return [
        "## How to check it",
        "",
        f"With penny, in this folder; `KEY.pem` is the public key that the signer gave you. Its id is {code(key_id)}.",
        "",
        "```sh",
        "penny verify . --key KEY.pem",
        "```",
        "",
        "With openssl alone (the signatures, and that they bind every file):",
        "",
        "```sh",
        *_OPENSSL.format(names=" ".join(names)).splitlines(),
        "```",
        "",
        *again,
    ]
