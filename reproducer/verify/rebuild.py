"""Builds against the lock: the level is recomputed from digests; a receipt may claim less (a second build differed)."""

from collections.abc import Iterator

from packaging.utils import canonicalize_name

from reproducer.build.file_levels import compare_file
from reproducer.canonical import content_digest
from reproducer.documents.built import BuiltOutput, Level, is_enough, lowest
from reproducer.documents.consistency import RUNTIME_ENVIRONMENT
from reproducer.documents.lock import FileOutput, Lock, Output
from reproducer.documents.receipts import BuildReceipt
from reproducer.documents.toml import parse_toml
from reproducer.documents.verdict import Check
from reproducer.errors import InvalidDocumentError, PennyError
from reproducer.verify.evidence import Evidence, check, skipped, unknown


def rebuild_checks(evidence: Evidence) -> Iterator[Check]:
    """Outputs, level, packages, interpreter and checkpoints of every build."""
    if not evidence.builds:
        yield check("build", "rebuild", ["there is no build receipt"])
    for digest, receipt in evidence.builds.items():
        suffix = f"[{digest[:12]}]" if len(evidence.builds) > 1 else ""
        if receipt.failure is not None:
            yield check(f"build{suffix}", "rebuild", [f"{receipt.failure.where}: {receipt.failure.reason}"])
            continue
        if evidence.lock.adopted is not None or receipt.adopted is not None:
            yield _adopted(evidence.lock, receipt, suffix)
        if evidence.lock.adopted is not None:
            yield from _not_rebuilt(evidence.lock, receipt, suffix)
            continue
        yield from _outputs(evidence.lock, receipt, suffix)
        yield _python(evidence.lock, receipt, suffix)
        yield _packages(evidence, receipt, suffix)
        yield from _checkpoints(evidence.lock, receipt, suffix)


def _adopted(lock: Lock, receipt: BuildReceipt, suffix: str) -> Check:
    """Whether the runtime of a frozen lock is the one that was frozen, and no other runtime claims to be adopted."""
    adopted, found = lock.adopted, receipt.adopted
    faults = []
    if adopted is None:
        faults.append("the receipt says that nothing was built, and the lock names what to build")
        return check(f"build.adopted{suffix}", "inputs", faults, expected="built", got="adopted")
    expected = f"{adopted.distributions} distributions of list {adopted.environment.sha256}"
    if found is None:
        faults.append("the receipt does not say that the packages were held against the lock")
    elif (found.environment, found.distributions) != (adopted.environment.sha256, adopted.distributions):
        faults.append(f"the packages were held against {found.distributions} distributions of list {found.environment}")
    if receipt.outputs or receipt.packages or receipt.level != "none":
        faults.append(f"the receipt of an adopted runtime claims a build of level {receipt.level}")
    return check(
        f"build.adopted{suffix}",
        "inputs",
        faults,
        expected=expected,
        got="" if faults else "adopted: every file is what was frozen",
    )


def _not_rebuilt(lock: Lock, receipt: BuildReceipt, suffix: str) -> Iterator[Check]:
    """What can be said of a runtime that was adopted, and what cannot."""
    why = "the runtime was adopted as it was found; nothing was rebuilt, so no level can be reached"
    yield skipped(f"build.level{suffix}", "rebuild", why)
    yield skipped(f"build.packages{suffix}", "rebuild", why)
    yield _python(lock, receipt, suffix)
    yield from _checkpoints(lock, receipt, suffix)


def reached(expected: Output | FileOutput, built: BuiltOutput) -> Level:
    """The level that an output's digests and architectures show."""
    if isinstance(expected, FileOutput):
        return compare_file(expected, built)[0]
    if built.architectures != expected.architectures:
        return "inputs-identical"
    if built.sha256 == expected.sha256 and built.size == expected.size:
        return "bytes-identical"
    if built.content_sha256 == expected.content_sha256:
        return "content-identical"
    code = expected.device_code_sha256
    return "device-code-identical" if code is not None and code == built.device_code_sha256 else "inputs-identical"


def _outputs(lock: Lock, receipt: BuildReceipt, suffix: str) -> Iterator[Check]:
    built = {(output.component, output.filename): output for output in receipt.outputs}
    expected = {
        (component.name, output.filename): output for component in lock.components for output in component.outputs
    }
    faults = [
        f"{component} gave {name}, which the lock does not name" for component, name in sorted(built.keys() - expected)
    ]
    if len(built) != len(receipt.outputs):
        faults.append("one output stands twice")
    levels: list[Level] = []
    for component, name in sorted(expected):
        got = built.get((component, name))
        level: Level = "none" if got is None else lowest((reached(expected[component, name], got), got.level))
        levels.append(level)
        yield _output(component, expected[component, name], got, level, suffix)
    if receipt.level != lowest(levels):
        faults.append(f"the receipt says {receipt.level}, its outputs show {lowest(levels)}")
    yield check(f"build.level{suffix}", "rebuild", faults, expected=lowest(levels), got=receipt.level)


def _output(component: str, expected: Output | FileOutput, got: BuiltOutput | None, level: Level, suffix: str) -> Check:
    faults = []
    if got is None:
        faults.append("it is not among the outputs")
    elif not is_enough(level):
        named = ", ".join(difference.where for difference in got.differences[:8])
        faults.append(f"it is {level} with the lock only" + (f": {named}" if named else ""))
    if got is not None and got.level != level:
        faults.append(f"the receipt says {got.level}, its digests show {level} at most")
    reason: str = level
    if got is not None and level in ("content-identical", "device-code-identical"):
        reason += ": " + ", ".join(difference.where for difference in got.differences[:8])
    return check(
        f"build.{component}.{expected.filename}{suffix}",
        "rebuild",
        faults,
        expected=expected.sha256,
        got=got.sha256 if got is not None else "",
        reason=reason,
    )


def _python(lock: Lock, receipt: BuildReceipt, suffix: str) -> Check:
    minor = lock.toolchain.python
    faults = [] if f"{receipt.python}.".startswith(f"{minor}.") else [f"the runtime's Python is {receipt.python}"]
    return check(f"build.python{suffix}", "rebuild", faults, expected=minor, got=receipt.python)


def _packages(evidence: Evidence, receipt: BuildReceipt, suffix: str) -> Check:
    """The runtime holds every package of its environment, each by a hash the lock allows for it, and what was built."""
    pylock = next((each.pylock for each in evidence.lock.environments if each.name == RUNTIME_ENVIRONMENT), None)
    try:
        allowed = _hashes(evidence.opened.read(pylock), pylock.path) if pylock is not None else {}
    except PennyError as error:
        return unknown(f"build.packages{suffix}", "rebuild", str(error))
    built = {(output.filename, output.sha256) for output in receipt.outputs}
    faults = [
        f"{package.project} {package.version}: {package.filename} with sha256 {package.sha256} is not in the lock"
        for package in receipt.packages
        if (package.filename, package.sha256) not in built
        and package.sha256 not in allowed.get(canonicalize_name(package.project), ())
    ]
    installed = {canonicalize_name(package.project) for package in receipt.packages}
    faults += [f"{project} is in the lock and not in the runtime" for project in sorted(allowed.keys() - installed)]
    if not receipt.packages:
        faults.append("the receipt lists no package")
    return check(
        f"build.packages{suffix}", "rebuild", faults, got=f"{len(receipt.packages)} packages, each by its hash"
    )


def _hashes(pylock: bytes, where: str) -> dict[str, set[str]]:
    """The sha256 of every wheel of each package in a PEP 751 file, by normalised project name."""
    packages = parse_toml(pylock, where=where).get("packages", [])
    try:
        return {
            canonicalize_name(package["name"]): {wheel["hashes"]["sha256"] for wheel in package.get("wheels", [])}
            for package in packages
        }
    except (AttributeError, TypeError, KeyError) as error:
        raise InvalidDocumentError("is not a PEP 751 file", where=where, why=str(error)) from error


def _checkpoints(lock: Lock, receipt: BuildReceipt, suffix: str) -> Iterator[Check]:
    for checkpoint in lock.checkpoints:
        if checkpoint.files == "unknown":
            reason = "the lock pins its revision only, so nothing says what its files are"
            yield unknown(f"build.checkpoint.{checkpoint.name}{suffix}", "rebuild", reason)
            continue
        expected = content_digest({file.path: file.sha256 for file in checkpoint.listed})
        tree = receipt.checkpoints.get(checkpoint.name) or receipt.checkpoints.get(checkpoint.role)
        faults = []
        if tree is None:
            faults.append("the receipt does not name it")
        elif tree.sha256 != expected:
            faults.append("its files are not those of the lock")
        got = tree.sha256 if tree is not None else ""
        yield check(f"build.checkpoint.{checkpoint.name}{suffix}", "rebuild", faults, expected=expected, got=got)
