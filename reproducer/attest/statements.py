"""What a bundle states: one in-toto Statement v1 for each build, one for the qualification.

A statement is a function of lock, receipts and index digest, so that a verifier makes it again and compares it whole.
Whatever changes in a statement needs a new version in its type; the old maker stays for the old bundles.
"""

from collections.abc import Iterable
from typing import Any

from reproducer.attest.predicate import (
    QUALIFICATION_TYPE,
    MeasureResult,
    Qualification,
    ReceiptDescriptor,
    Result,
)
from reproducer.documents.base import FileReference
from reproducer.documents.built import BuiltOutput
from reproducer.documents.lock import Checkpoint, Component, Lock
from reproducer.documents.measured import Derived, ThresholdResult
from reproducer.documents.receipts import BuildReceipt, MeasureReceipt
from reproducer.documents.sources import Artefact, GitSource, HubSource, LocalSource, Submodule
from reproducer.ledger import AnyReceipt, receipt_name

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PROVENANCE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:penny-reproducer:build:v1"
BUILDER_ID = "urn:penny-reproducer:builder:local"
RECEIPTS = "receipts"
INDEX = "index.json"


def statements(lock: Lock, receipts: tuple[AnyReceipt, ...], index_sha256: str) -> dict[str, dict[str, Any]]:
    """Every statement of a bundle, by the name of its file without the ending.

    Args:
        lock: the lock.
        receipts: every receipt in the bundle.
        index_sha256: digest of the bytes of `index.json`.
    """
    made = {
        f"build-{receipt.digest[:12]}": build_statement(lock, receipt, index_sha256)
        for receipt in receipts
        if isinstance(receipt, BuildReceipt)
    }
    made["qualification"] = qualification_statement(lock, receipts, index_sha256)
    return made


def build_statement(lock: Lock, receipt: BuildReceipt, index_sha256: str) -> dict[str, Any]:
    """SLSA provenance v1 of one build; subjects are the index, the lock, the runtime, the receipt and the wheels."""
    subjects = [
        _subject(INDEX, index_sha256),
        _subject("lock", receipt.lock_digest),
        *([] if receipt.runtime is None else [_subject("runtime", receipt.runtime.sha256)]),
        _receipt_subject(receipt),
        *(_subject(_output_name(lock, output), output.sha256) for output in receipt.outputs),
    ]
    predicate = {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {
                "lock": {"name": lock.name, "digest": {"sha256": receipt.lock_digest}},
                "platform": lock.platform,
                "toolchain": lock.toolchain.model_dump(mode="json", exclude_none=True),
                "recipe": lock.build.model_dump(mode="json"),
                "components": [_recipe(component) for component in lock.components],
                "checkpoints": [_conversion(checkpoint) for checkpoint in lock.checkpoints],
            },
            "internalParameters": {
                "python": receipt.python,
                "installer": receipt.installer,
                "isolation": receipt.isolation.model_dump(mode="json"),
            },
            "resolvedDependencies": list(_dependencies(lock)),
        },
        "runDetails": {
            "builder": {"id": BUILDER_ID, "version": {"penny": receipt.penny_version}},
            "metadata": {"finishedOn": receipt.created},
            "byproducts": [_byproduct(lock, receipt)],
        },
    }
    return _statement(subjects, PROVENANCE_TYPE, predicate)


def qualification_statement(lock: Lock, receipts: tuple[AnyReceipt, ...], index_sha256: str) -> dict[str, Any]:
    """What was measured, against which bounds; subjects are the index, the lock, every runtime and every receipt."""
    builds = [receipt for receipt in receipts if isinstance(receipt, BuildReceipt)]
    runtimes = sorted({receipt.runtime.sha256 for receipt in builds if receipt.runtime is not None})
    subjects = [
        _subject(INDEX, index_sha256),
        _subject("lock", lock.digest),
        *(_subject("runtime", digest) for digest in runtimes),
        *(_receipt_subject(receipt) for receipt in _ordered(receipts)),
    ]
    asked = [measure.id for measure in lock.qualification.measures]
    measures = tuple(
        _measure_result(receipt, several=asked.count(receipt.measure) > 1)
        for receipt in _ordered(receipts)
        if isinstance(receipt, MeasureReceipt)
    )
    predicate = Qualification(lock_digest=lock.digest, suite=lock.qualification.suite, measures=measures)
    return _statement(subjects, QUALIFICATION_TYPE, predicate.model_dump(mode="json", exclude_none=True))


def _statement(subjects: list[dict[str, Any]], predicate_type: str, predicate: dict[str, Any]) -> dict[str, Any]:
    return {"_type": STATEMENT_TYPE, "subject": subjects, "predicateType": predicate_type, "predicate": predicate}


def _subject(name: str, sha256: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": sha256}}


def _output_name(lock: Lock, output: BuiltOutput) -> str:
    """The name of a wheel, or of another file below its component: two of those may have files of one name."""
    below = any(each.name == output.component and each.kind != "wheel" for each in lock.components)
    return f"{output.component}/{output.filename}" if below else output.filename


def _receipt_subject(receipt: AnyReceipt) -> dict[str, Any]:
    return _subject(f"{RECEIPTS}/{receipt_name(receipt)}", receipt.digest)


def _ordered(receipts: Iterable[AnyReceipt]) -> list[AnyReceipt]:
    return sorted(receipts, key=lambda receipt: (receipt_name(receipt), receipt.digest))


def _recipe(component: Component) -> dict[str, Any]:
    """How one component is built, without what it is built from."""
    said = {"name", "kind", "build_environment", "variables", "arguments", "architectures", "tools"}
    return component.model_dump(mode="json", include=said, exclude_none=True)


def _conversion(checkpoint: Checkpoint) -> dict[str, Any]:
    """How one checkpoint is made from its source; by its name and role alone where the source is the files."""
    said: dict[str, Any] = {"name": checkpoint.name, "role": checkpoint.role}
    if checkpoint.conversion is None:
        return said
    return {**said, "conversion": checkpoint.conversion.model_dump(mode="json", include={"arguments", "environment"})}


def _byproduct(lock: Lock, receipt: BuildReceipt) -> dict[str, Any]:
    """The receipt of the build with the level that it and each of its outputs reached."""
    descriptor = _receipt_subject(receipt)
    outputs = [{"filename": _output_name(lock, output), "level": output.level} for output in receipt.outputs]
    checkpoints = {name: tree.sha256 for name, tree in receipt.checkpoints.items()}
    descriptor["annotations"] = {"level": receipt.level, "outputs": outputs, "checkpoints": checkpoints}
    if receipt.failure is not None:
        descriptor["annotations"]["failure"] = receipt.failure.model_dump(mode="json", exclude_none=True)
    return descriptor


def _dependencies(lock: Lock) -> Iterable[dict[str, Any]]:
    """Everything that went into the build, by digest."""
    for component in lock.components:
        used = {"component": component.name}
        if isinstance(component.source, LocalSource):
            for file in component.source.files:
                yield _file(file, {"role": "source", **used}, below=f"{component.source.path}/")
        elif isinstance(component.source, GitSource):
            yield from _repositories(component.source, used)
        else:
            yield _artefact(component.source, {"role": "source", **used})
        for patch in component.patches:
            yield _file(patch, {"role": "patch", **used})
    for environment in lock.environments:
        yield _file(environment.pylock, {"role": "environment", "environment": environment.name})
    for checkpoint in lock.checkpoints:
        used = {"checkpoint": checkpoint.name}
        if checkpoint.made is None:
            if isinstance(checkpoint.source, HubSource):
                yield _revision(checkpoint.source, {"role": "checkpoint repository", **used})
            yield from (_file(file, {"role": "checkpoint file", **used}) for file in checkpoint.listed)
            continue
        source, conversion = checkpoint.made
        member = {"member": source.member, "member_sha256": source.member_sha256}
        yield _artefact(source, {"role": "checkpoint source", **used, **member})
        yield _file(conversion.script, {"role": "conversion script", **used})


def _repositories(source: GitSource, used: dict[str, str]) -> Iterable[dict[str, Any]]:
    """A repository, its submodules and what was changed beside the commit (digests as SLSA names git objects)."""
    every: list[tuple[str, GitSource | Submodule]] = [("", source), *((each.path, each) for each in source.submodules)]
    for path, each in every:
        said = {"uri": f"git+{each.url}@{each.commit}"} if each.url else {"name": path or "repository"}
        annotations = {"role": "submodule" if path else "source", **used, **({"path": path} if path else {})}
        yield {**said, "digest": {"gitCommit": each.commit, "gitTree": each.tree}, "annotations": annotations}
    if source.changes is not None:
        yield _file(source.changes, {"role": "local changes", **used})


def _revision(source: HubSource, annotations: dict[str, str]) -> dict[str, Any]:
    """One revision of a model repository, as package URLs name it."""
    return {
        "uri": f"pkg:huggingface/{source.repository}@{source.revision}",
        "digest": {"gitCommit": source.revision},
        "annotations": annotations,
    }


def _artefact(artefact: Artefact, annotations: dict[str, str]) -> dict[str, Any]:
    project = artefact.project.lower().replace("_", "-")
    return {
        "name": artefact.filename,
        "uri": f"pkg:pypi/{project}@{artefact.version.replace('+', '%2B')}",
        "digest": {"sha256": artefact.sha256},
        "annotations": annotations,
    }


def _file(file: FileReference, annotations: dict[str, str], *, below: str = "") -> dict[str, Any]:
    return {"name": f"{below}{file.path}", "digest": {"sha256": file.sha256}, "annotations": annotations}


def _measure_result(receipt: MeasureReceipt, *, several: bool) -> MeasureResult:
    """One measure; what is absent from the receipt is absent here."""
    counted = [sample for sample in receipt.samples if not sample.warmup]
    return MeasureResult(
        measure=receipt.measure,
        parameters=receipt.parameters if several else None,
        receipt=ReceiptDescriptor(name=f"{RECEIPTS}/{receipt_name(receipt)}", sha256=receipt.digest),
        harness=f"penny {receipt.penny_version}",
        status=receipt.status,
        reason=receipt.reason or None,
        samples=len(counted),
        boots=len({sample.boot for sample in counted}),
        results=tuple(result for derived in receipt.derived for result in _results(receipt, derived)),
    )


def _results(receipt: MeasureReceipt, derived: Derived) -> list[Result]:
    """One derived value once for each bound on it, or once without one."""
    bounds = [each for each in receipt.thresholds if each.threshold.value == derived.name]
    spread = derived.spread
    plain = Result(
        metric=derived.name,
        kind=derived.kind,
        unit=derived.unit,
        value=derived.value,
        minimum=derived.minimum,
        maximum=derived.maximum,
        interval=None if spread is None else (spread.low, spread.high),
    )
    return [plain.model_copy(update=_bound(each)) for each in bounds] or [plain]


def _bound(result: ThresholdResult) -> dict[str, object]:
    """A bound and whether it holds; one that is a share of a reference's value in the value's own unit."""
    threshold, relative = result.threshold, result.relative
    said: dict[str, object] = {"comparator": threshold.comparator, "passed": result.passed}
    if threshold.relative_to is None:
        return {**said, "threshold": threshold.bound}
    said["relative_to"] = threshold.relative_to.sha256
    return said if relative is None else {**said, "threshold": relative.against, "noise_floor": relative.floor}
