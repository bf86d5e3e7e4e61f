"""What ran against the lock: effective values, arguments, environment, and the namespace derived from the lock again.

Namespace and argument list are derived by rules that another version of penny may not share: where such a version made
the receipt, a difference is unknown: it may be right, and nobody here can say so.
"""

from collections.abc import Iterator

from reproducer import __version__
from reproducer.documents.receipts import LaunchReceipt
from reproducer.documents.verdict import Check
from reproducer.engines import engine_of, stores_of
from reproducer.engines.persistent import placed
from reproducer.errors import PennyError
from reproducer.identity.namespace import derive
from reproducer.launch.plan import FIXED
from reproducer.verify.alterations import lock_of
from reproducer.verify.evidence import Evidence, check, same, told, unknown

# what this penny sets for every server, whatever the lock says
_OWN = frozenset(FIXED) | {"HOME", "TMPDIR"}


def configuration_checks(evidence: Evidence) -> Iterator[Check]:
    """Namespace, effective values and environment of every launch."""
    if not evidence.launches:
        if any(receipt.samples for _, receipt in evidence.measures):
            yield check("launch", "configuration", ["samples were taken, and there is no launch receipt"])
        else:
            yield unknown("launch", "configuration", "there is no launch receipt")
        return
    yield _namespace(evidence)
    yield from _effective(evidence)
    yield _others(evidence)
    yield from _told(evidence)
    yield _arguments(evidence)
    yield _environment(evidence)


def _namespace(evidence: Evidence) -> Check:
    try:
        namespace = derive(evidence.lock)
        wanted = {
            digest: namespace if launch.altered is None else derive(lock_of(evidence, launch))
            for digest, launch in evidence.launches.items()
        }
    except PennyError as error:
        return unknown("binding.namespace", "configuration", str(error))
    faults = [
        f"launch {digest[:12]} ran in {launch.namespace}"
        for digest, launch in evidence.launches.items()
        if (launch.namespace, launch.namespace_digest) != (wanted[digest].name, wanted[digest].digest)
    ]
    expected = f"{namespace.name}, digest {namespace.digest}"
    others = {f"{launch.namespace}, digest {launch.namespace_digest}" for launch in evidence.launches.values()}
    got = "; ".join(sorted(others)) if faults else "derived again from the lock"
    return _judged(evidence, "binding.namespace", faults, expected, got)


def _arguments(evidence: Evidence) -> Check:
    """The argument list of every launch is the one that the engine's adapter makes of the lock."""
    lock = evidence.lock
    names = [
        *(f"checkpoint.{checkpoint.role}" for checkpoint in lock.checkpoints),
        *(f"component.{component.name}" for component in lock.components if component.kind != "wheel"),
        *(f"file.{name}" for name in lock.launch.files or ()),
        "namespace",
    ]
    try:
        placeholders = {name: f"{{{name}}}" for name in names}
        engine = engine_of(lock.engine.kind)
        expected = engine.argument_list(lock.launch, values=placeholders)
        wanted = {
            digest: engine.argument_list(lock_of(evidence, launch).launch, values=placeholders)
            for digest, launch in evidence.launches.items()
        }
    except PennyError as error:
        return unknown("launch.arguments", "configuration", str(error))
    faults = [
        f"launch {digest[:12]} was started with other arguments"
        for digest, launch in evidence.launches.items()
        if list(launch.arguments) != wanted[digest]
    ]
    started = {" ".join(launch.arguments) for launch in evidence.launches.values()}
    got = "; ".join(sorted(started)) if faults else "those of the lock"
    return _judged(evidence, "launch.arguments", faults, " ".join(expected), got)


def _judged(evidence: Evidence, check_id: str, faults: list[str], expected: str, got: str) -> Check:
    """A check of what penny derives; a difference to receipts of another penny is unknown."""
    others = {launch.penny_version for launch in evidence.launches.values()} - {__version__}
    if faults and others:
        reason = f"penny {', '.join(sorted(others))} derived it, whose rules may be others: {faults[0]}: {got}"
        return unknown(check_id, "configuration", reason)
    return check(check_id, "configuration", faults, expected=expected, got=got)


def _effective(evidence: Evidence) -> Iterator[Check]:
    """One check a value, over all launches."""
    locked = evidence.lock.launch.effective
    wanted = {digest: lock_of(evidence, launch).launch.effective for digest, launch in evidence.launches.items()}
    for name in sorted(locked.keys() | {name for each in wanted.values() for name in each}):
        faults = []
        got: list[str] = []
        for digest, launch in evidence.launches.items():
            expected = wanted[digest]
            if name not in expected:
                continue
            found = [value for value in launch.effective if value.name == name]
            if len(found) != 1:
                faults.append(f"launch {digest[:12]} shows {len(found)} values of it")
                continue
            value = found[0]
            shown = told(value.got)
            got += [shown] if shown not in got else []
            if value.got is None:
                faults.append(f"launch {digest[:12]}: the server did not show it")
            elif not same(value.got, expected[name]):
                faults.append(f"launch {digest[:12]} shows {shown}")
            elif not (value.agrees and same(value.expected, expected[name])):
                faults.append(f"launch {digest[:12]} compared it with {told(value.expected)} and says it differs")
        yield check(f"effective.{name}", "configuration", faults, expected=locked.get(name, ""), got=", ".join(got))


def _others(evidence: Evidence) -> Check:
    """Nothing that a launch compared besides differs: no value is left out because the lock is silent about it."""
    faults = [
        f"launch {digest[:12]}: {value.name} is {told(value.got)}, expected {told(value.expected)}"
        for digest, launch in evidence.launches.items()
        for value in launch.effective
        if value.name not in lock_of(evidence, launch).launch.effective
        and not (value.agrees and value.got is not None and same(value.got, value.expected))
    ]
    return check("effective", "configuration", faults, got="no other value differs")


def _told(evidence: Evidence) -> Iterator[Check]:
    """What a measure read from the live server under the name of an effective value is what the lock says."""
    locked = evidence.lock.launch.effective
    found = [
        (name, sample.index, key, value)
        for name, receipt in evidence.measures
        for sample in receipt.samples
        for key, value in sample.facts.items()
        if key in locked
    ]
    if not found:
        return
    faults = [
        f"sample {index} of {name} saw {key} {told(value)}, the lock says {told(locked[key])}"
        for name, index, key, value in found
        if not same(value, locked[key])
    ]
    yield check("effective.measured", "configuration", faults, got=f"{len(found)} facts as the lock says")


def _environment(evidence: Evidence) -> Check:
    """Every variable of the lock reached every launch as it stands there, and none that would steer the engine else."""
    launch = evidence.lock.launch
    try:
        wanted = placed(launch, stores_of(evidence.lock.engine.kind), read=evidence.opened.read).launch.environment
    except PennyError as error:
        return unknown("launch.environment", "configuration", str(error))
    faults = [
        f"launch {digest[:12]}: {fault}"
        for digest, launch in evidence.launches.items()
        for fault in _variables(wanted, launch)
    ]
    return check("launch.environment", "configuration", faults, got=f"{len(wanted)} variables as the lock says")


def _variables(wanted: dict[str, str], launch: LaunchReceipt) -> Iterator[str]:
    for name, text in sorted(wanted.items()):
        if name not in launch.environment:
            yield f"{name} is not set"
        elif launch.environment[name] != text:
            yield f"{name} is {told(launch.environment[name])}, not {told(text)}"
    if launch.penny_version == __version__:
        yield from (f"{name} is set besides" for name in sorted(launch.environment.keys() - wanted.keys() - _OWN))
