"""The runtime: every component built, the environment installed, the checkpoints made, and a receipt that says so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from packaging.utils import parse_wheel_filename

from reproducer import __version__
from reproducer.binaries.wheel_content import (
    WheelContent,
    compare_output,
    parse_members,
    read_wheel,
)
from reproducer.build.architectures import contradiction, of_wheel
from reproducer.build.component import BuiltWheel
from reproducer.build.environment import Wheel, installer
from reproducer.build.failure import failed_build, said
from reproducer.build.file_levels import compare_files, with_second
from reproducer.build.products import Product, content_of, isolation_of
from reproducer.build.workshop import Workshop
from reproducer.documents.base import shown
from reproducer.documents.built import (
    BuiltOutput,
    Difference,
    InstalledPackage,
    Isolation,
    Level,
    TreeDigest,
    is_enough,
    lowest,
)
from reproducer.documents.consistency import RUNTIME_ENVIRONMENT
from reproducer.documents.lock import Component, Lock
from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import BuildReceipt
from reproducer.documents.sources import Artefact
from reproducer.errors import DriftError, InvalidDocumentError, NotCheckedError, PennyError, RebuildError
from reproducer.host import host_facts, host_platform
from reproducer.isolation.running import LOCALE, UMASK, weakest
from reproducer.ledger import Ledger
from reproducer.store.hashing import tree_digest

if TYPE_CHECKING:
    from reproducer.progress import Reporter
    from reproducer.store import Store


class Chosen(Protocol):
    """What a build needs of a fetch: the chosen wheel of every package, by environment; all of them in the store."""

    @property
    def environments(self) -> Mapping[str, Sequence[Artefact]]:
        """The wheels by environment name."""


@dataclass(frozen=True)
class Runtime:
    """A runtime that can be launched.

    Attributes:
        python: its interpreter.
        checkpoints: the folder of each checkpoint, by role.
        receipt: what was built, and the level it reached.
        reused: whether nothing had to be made.
        components: the folder of each component that is no wheel, by name.
    """

    python: Path
    checkpoints: dict[str, Path]
    receipt: BuildReceipt
    reused: bool
    components: dict[str, Path] = field(default_factory=dict)


def build(
    opened: OpenedLock,
    store: "Store",
    fetched: Chosen,
    *,
    reporter: "Reporter",
    accepted: Literal["asked", "--yes"],
    again: bool = False,
    offline: bool = False,
) -> Runtime:
    """Build the runtime of a lock, or take it from the store after hashing every file again.

    A build that fails leaves a receipt in the ledger that says so. A wheel that is not what the lock expects is no
    exception: the receipt carries the level it reached and every difference. A checkpoint that is not what the lock
    expects is one, for its files are inputs of the server.

    Args:
        opened: the lock.
        store: where everything lies.
        fetched: what `fetch` put there.
        reporter: where progress goes.
        accepted: how running other people's code was accepted.
        again: build every component once more in another folder and compare.
        offline: do not let uv fetch an interpreter.

    Raises:
        RebuildError: a build or an installation fails.
        DriftError: an input or a checkpoint file is not what the lock says, or a patch does not apply.
        UnsafeInputError: an archive, patch or checkpoint does what it must not.
        NotCheckedError: another platform, no such interpreter, a full disk.
    """
    done = _Done()
    try:
        return _build(opened, store, fetched, done, reporter=reporter, accepted=accepted, again=again, offline=offline)
    except RebuildError as error:
        receipt = failed_build(
            opened.digest,
            done.at,
            error,
            outputs=done.outputs,
            isolation=_isolation(done.products, opened.lock.build.source_date_epoch),
            store=store.root,
            accepted=accepted,
        )
        path = Ledger.of(store.root, opened.digest).add(receipt)
        reporter.note(f"the failure is recorded in {path}; `penny attest --builds` signs it")
        raise


@dataclass
class _Done:
    """How far a build came, for the receipt of one that fails."""

    at: str = RUNTIME_ENVIRONMENT
    outputs: list[BuiltOutput] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)


def _build(
    opened: OpenedLock,
    store: "Store",
    fetched: Chosen,
    done: _Done,
    *,
    reporter: "Reporter",
    accepted: Literal["asked", "--yes"],
    again: bool,
    offline: bool,
) -> Runtime:
    lock = opened.lock
    if lock.platform != host_platform():
        raise NotCheckedError(
            f"the lock is for {lock.platform} and this machine is {host_platform()}", where=str(opened.path)
        )
    refuse_unknown(lock)
    workshop = Workshop(store, lock.platform, lock.toolchain, lock.build, opened.read, reporter, offline)
    outputs, products = done.outputs, done.products
    built: list[Wheel] = []
    folders: dict[str, Path] = {}
    levels: list[Level] = []
    for component in lock.components:
        done.at = component.name
        named = component.build_environment
        tools = () if named is None else _environment(fetched, named, opened)
        if component.kind != "wheel":
            product, folders[component.name], level, files = _files(workshop, component, tools, again=again)
            levels.append(level)
            outputs += files
            products.append(product)
            tell = reporter.detail if product.reused and level == "bytes-identical" else reporter.note
            tell(f"{component.name}: {len(files)} files, {level} with the lock")
            continue
        product, wheel = workshop.component(component, tools)
        content = read_wheel(wheel.path, build_paths=[wheel.built_in])
        output = _with_architectures(_output(component, wheel.path.name, content, opened), component, wheel.path)
        if component.name == lock.engine.component and is_enough(output.level):
            _check_arguments(opened, content)
        if again:
            output = _built_again(workshop, component, tools, output, wheel)
        outputs.append(output)
        levels.append(output.level)
        built.append(Wheel(wheel.path, wheel.path.name, content.sha256))
        products.append(product)
        tell = reporter.detail if product.reused and output.level == "bytes-identical" else reporter.note
        tell(f"{component.name}: {wheel.path.name} is {output.level} with the lock")
    done.at = RUNTIME_ENVIRONMENT
    packages = _environment(fetched, RUNTIME_ENVIRONMENT, opened)
    environment = workshop.environment(RUNTIME_ENVIRONMENT, packages, built=built, compiled=True)
    checkpoints: dict[str, Path] = {}
    trees: dict[str, TreeDigest] = {}
    for checkpoint in lock.checkpoints:
        done.at = checkpoint.name
        converting = checkpoint.conversion
        tools = () if converting is None else _environment(fetched, converting.environment, opened)
        product, made = workshop.checkpoint(checkpoint, tools)
        checkpoints[checkpoint.role] = product.folder / "checkpoint"
        trees[checkpoint.name] = tree_digest(made)
        products.append(product)
    receipt = BuildReceipt(
        lock_digest=opened.digest,
        penny_version=__version__,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        level=lowest(levels),
        outputs=tuple(outputs),
        packages=_installed(packages, built),
        runtime=content_of(environment),
        checkpoints=trees,
        python=environment.record["python"],
        installer=installer()[1],
        isolation=_isolation(products, lock.build.source_date_epoch),
        host=host_facts(store.root),
        accepted=accepted,
    )
    reused = environment.reused and all(product.reused for product in products)
    if reused and not again:
        receipt = same_as_before(receipt, Ledger.of(store.root, opened.digest))
    return Runtime(environment.folder / "venv" / "bin" / "python", checkpoints, receipt, reused, folders)


def refuse_unknown(lock: Lock) -> None:
    """Refuse a lock with a checkpoint of which only the revision is known, before anything is built.

    Raises:
        NotCheckedError: names the checkpoint.
    """
    from reproducer.hub.presenting import files_of

    for checkpoint in lock.checkpoints:
        if checkpoint.made is None:
            files_of(checkpoint)


def _environment(fetched: Chosen, name: str, opened: OpenedLock) -> Sequence[Artefact]:
    try:
        return fetched.environments[name]
    except KeyError as error:
        raise InvalidDocumentError(
            f"has no environment {name!r}", where=str(opened.path), todo="add it to the manifest and lock again"
        ) from error


def _output(component: Component, filename: str, content: WheelContent, opened: OpenedLock) -> BuiltOutput:
    """A component's wheel against what the lock expects."""
    expected = next((each for each in component.wheels if each.filename == filename), None)
    level: Level
    differences: tuple[Difference, ...] = ()
    if expected is None:
        names = ", ".join(each.filename for each in component.outputs)
        why = "the lock expects no such file"
        level = "inputs-identical"
        differences = (Difference(where="file name", expected=names or None, got=filename, reason=why),)
    elif expected.sha256 == content.sha256:
        level = "bytes-identical"
    else:
        members = parse_members(opened.read(expected.members), where=expected.members.path)
        level, differences = compare_output(expected, members, content)
    return BuiltOutput(
        component=component.name,
        filename=filename,
        sha256=content.sha256,
        size=content.size,
        content_sha256=content.digest,
        device_code_sha256=content.device_code_digest,
        level=level,
        differences=differences,
    )


def _with_architectures(output: BuiltOutput, component: Component, wheel: Path) -> BuiltOutput:
    """An output with what its device code is built for, where the component names architectures."""
    if component.architectures is None:
        return output
    got = of_wheel(wheel)
    expected = next((each.architectures for each in component.wheels if each.filename == output.filename), None)
    if got == expected and not contradiction(component, [got]):
        return output.model_copy(update={"architectures": got})
    said = Difference(
        where=output.filename,
        expected=", ".join(component.architectures if got == expected else expected or ()) or None,
        got=", ".join(got or ()) or None,
        reason="device code for other architectures",
    )
    return output.model_copy(
        update={
            "architectures": got,
            "level": lowest((output.level, "inputs-identical")),
            "differences": (said, *output.differences),
        }
    )


def _files(
    workshop: Workshop, component: Component, tools: Sequence[Artefact], *, again: bool
) -> tuple[Product, Path, Level, tuple[BuiltOutput, ...]]:
    """A component that is no wheel: what was made, its folder, the level it reached and every file of it."""
    product, made = workshop.files(component, tools)
    level, outputs = compare_files(component, made.outputs)
    if again:
        try:
            outputs = with_second(outputs, made.outputs, workshop.build_files_again(component, tools))
        except RebuildError as error:
            outputs = tuple(_failed_again(each, error, workshop.store.root) for each in outputs)
        level = lowest((level, *(each.level for each in outputs)))
    return product, made.folder, level, outputs


def _check_arguments(opened: OpenedLock, content: WheelContent) -> None:
    """Refuse a lock whose list of arguments was read from other sources than its engine's."""
    reference, listed = opened.lock.engine.arguments, opened.arguments()
    if reference is None or listed is None:
        return
    other = [file.path for file in listed.files if (got := content.members.get(file.path)) is None or got != file]
    if other:
        raise DriftError(
            "lists arguments that were read from another engine",
            where=reference.path,
            why=f"the built engine has another {', '.join(map(shown, other[:3]))}",
            todo="run `penny lock --upgrade ALL`",
        )


def _built_again(
    workshop: Workshop, component: Component, tools: Sequence[Artefact], output: BuiltOutput, first: BuiltWheel
) -> BuiltOutput:
    """An output after a second build: its level is no higher than the one between the two builds."""
    from reproducer.rebuild.compare import compare_artefacts  # which reads archives as builds do, from this package

    try:
        again = workshop.build_again(
            component,
            tools,
            lambda second: compare_artefacts(
                first.path, second.path, build_paths=list(dict.fromkeys([first.built_in, second.built_in]))
            ),
        )
    except RebuildError as error:
        return _failed_again(output, error, workshop.store.root)
    told = tuple(
        each.model_copy(update={"where": f"second build: {each.where}", "reason": each.reason or "not the same again"})
        for each in again.differences
    )
    return output.model_copy(
        update={"level": lowest((output.level, again.level)), "differences": (*output.differences, *told)}
    )


def _failed_again(output: BuiltOutput, error: RebuildError, store: Path) -> BuiltOutput:
    """An output whose second build failed: it cannot be had again."""
    failure = Difference(where="second build", reason=said(error, store))
    return output.model_copy(update={"level": "none", "differences": (*output.differences, failure)})


def _installed(packages: Sequence[Artefact], built: Sequence[Wheel]) -> tuple[InstalledPackage, ...]:
    """Every package of the runtime with the wheel it came from, by project."""
    fetched = [
        InstalledPackage(project=each.project, version=each.version, filename=each.filename, sha256=each.sha256)
        for each in packages
    ]
    made = []
    for wheel in built:
        project, version, _, _ = parse_wheel_filename(wheel.filename)
        made.append(
            InstalledPackage(project=project, version=str(version), filename=wheel.filename, sha256=wheel.sha256)
        )
    return tuple(sorted((*fetched, *made), key=lambda package: (package.project, package.filename)))


def _isolation(products: Sequence[Product], epoch: int) -> Isolation:
    """The weakest isolation of every step that ran something; `settings-only` where there was no step at all."""
    steps = [found for each in products if (found := isolation_of(each)) is not None]
    none = Isolation(network="settings-only", umask=f"{UMASK:03o}", locale=LOCALE, source_date_epoch=epoch)
    return weakest(steps, none)


def same_as_before(receipt: BuildReceipt, ledger: Ledger) -> BuildReceipt:
    """The receipt of the build that is reused, if it says the same: reusing is no new build."""
    try:
        earlier = ledger.builds()
    except PennyError:
        return receipt
    same = [each for each in earlier if each.model_copy(update={"created": receipt.created}) == receipt]
    return same[-1] if same else receipt
