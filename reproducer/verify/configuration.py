"""What ran against the lock: effective values, environment, and the namespace derived from the lock again."""

from collections.abc import Iterator

from reproducer.documents.receipts import LaunchReceipt
from reproducer.documents.verdict import Check
from reproducer.errors import PennyError
from reproducer.identity.namespace import derive
from reproducer.verify.evidence import Evidence, check, same, told, unknown


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
    yield _environment(evidence)


def _namespace(evidence: Evidence) -> Check:
    try:
        namespace = derive(evidence.lock)
    except PennyError as error:
        return unknown("binding.namespace", "configuration", str(error))
    faults = [
        f"launch {digest[:12]} ran in {launch.namespace}, digest {launch.namespace_digest}"
        for digest, launch in evidence.launches.items()
        if (launch.namespace, launch.namespace_digest) != (namespace.name, namespace.digest)
    ]
    return check(
        "binding.namespace",
        "configuration",
        faults,
        expected=f"{namespace.name}, digest {namespace.digest}",
        got="" if faults else "derived again from the lock",
    )


def _effective(evidence: Evidence) -> Iterator[Check]:
    """One check a value, over all launches."""
    expected = evidence.lock.launch.effective
    for name in sorted(expected):
        faults = []
        got: list[str] = []
        for digest, launch in evidence.launches.items():
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
        yield check(f"effective.{name}", "configuration", faults, expected=expected[name], got=", ".join(got))


def _environment(evidence: Evidence) -> Check:
    """Every variable of the lock reached every launch as it stands there."""
    wanted = evidence.lock.launch.environment
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
