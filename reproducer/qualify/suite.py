"""Running a lock's suite: every measure, spread over several boots, resumable, each ending in one receipt."""

import secrets
import time
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import reproducer
from reproducer.capability.conditions import capability_conditions
from reproducer.documents.lock import Measure, Scalar
from reproducer.documents.measured import Sample, Statistics
from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import BuildReceipt, FidelityReference, LaunchReceipt, MeasureReceipt
from reproducer.engines import engine_of
from reproducer.engines.alteration import unaltered
from reproducer.errors import NotCheckedError
from reproducer.measures.apart import names
from reproducer.measures.checks import alteration, check_measure, resolved
from reproducer.measures.definitions import BOOT_FACTS, DEFINITIONS
from reproducer.measures.settings import SETTINGS
from reproducer.progress import Reporter, Task
from reproducer.qualify.alone import measuring_alone
from reproducer.qualify.baselines import baseline, differences
from reproducer.qualify.booted import booted, in_order
from reproducer.qualify.cells import Cell, Cells, Owner
from reproducer.qualify.client import DEADLINE_S
from reproducer.qualify.conditions import Surroundings, Watch, conditions
from reproducer.qualify.derive import derive, judge
from reproducer.qualify.exchanges import UntoldError
from reproducer.qualify.flight import Flight
from reproducer.qualify.methods.method import Observed
from reproducer.qualify.methods.registry import METHODS
from reproducer.qualify.plan import Launching, Step, planned
from reproducer.qualify.speech import SPEECHES, TEMPERATURE
from reproducer.qualify.target import Serving, Target
from reproducer.qualify.validity import invalid_reason
from reproducer.qualify.watching import Finished, Unwatched, Watcher
from reproducer.samples.beside import laid_beside

SETTLE_S = 3.0
STATISTICS: Statistics = "penny-statistics/1"
_DYING_S = 3.0


class Measured(Serving, Protocol):
    """The server that a boot gives."""

    @property
    def pid(self) -> int:
        """Its first process."""

    @property
    def receipt(self) -> LaunchReceipt:
        """The receipt of its start."""

    def alive(self) -> bool:
        """Whether it still runs."""


class Booting(Protocol):
    """Starts the server of a lock and stops it when the context ends."""

    def __call__(self, altered: Mapping[str, Scalar] | None = None) -> AbstractContextManager[Measured]:
        """One server; `altered` are the effective values in which it is to differ from the lock."""


def qualify(
    opened: OpenedLock,
    build_receipt: BuildReceipt,
    boot: Booting,
    *,
    workspace: Path,
    reporter: Reporter,
    deadline_s: float = DEADLINE_S,
    settle_s: float = SETTLE_S,
    keep: Callable[[Path, str], None] | None = None,
    only: Container[str] | None = None,
) -> tuple[MeasureReceipt, ...]:
    """Run the suite of a lock and give one receipt for each measure, in the suite's order.

    A finished sample is kept in `workspace` at once; a run that was interrupted, however it ended, takes up there. Only
    one suite is measured at a time on a machine.

    Args:
        opened: the lock.
        build_receipt: of the runtime that serves.
        boot: starts the server of the lock, or one that differs from it, and stops it when the context ends.
        workspace: a folder for this run's samples.
        reporter: where progress goes.
        deadline_s: how long one request may take.
        settle_s: how long a server stays up at least after the last prompt that the next one restores.
        keep: keeps a file beside the receipts, under the digest of its bytes; None where nobody keeps any.
        only: the ids of the measures to run; None for all of the suite.

    Raises:
        NotCheckedError: the server died or the disk is full; finished samples are kept.
        InvalidDocumentError: parameters or thresholds that a measure does not have.
        DriftError: the reference is not the file that the lock pins.
    """
    run = Run(opened, build_receipt, boot, reporter, deadline_s, settle_s, keep, only)
    with measuring_alone(reporter):
        cells = Cells.opened(workspace, Owner(lock_digest=opened.digest, build_receipt=build_receipt.digest), reporter)
        run.measure(cells)
        return tuple(
            run.receipt(position, measure, cells, workspace)
            for position, measure in enumerate(opened.lock.qualification.measures)
            if only is None or measure.id in only
        )


@dataclass
class Run:
    """One call of `qualify`."""

    opened: OpenedLock
    build_receipt: BuildReceipt
    boot: Booting
    reporter: Reporter
    deadline_s: float
    settle_s: float
    keep: Callable[[Path, str], None] | None = None
    only: Container[str] | None = None

    def __post_init__(self) -> None:
        self.watcher: Watcher = self.reporter if isinstance(self.reporter, Watcher) else Unwatched()
        suite = self.opened.lock.qualification
        self.names = names((measure.id, measure.parameters) for measure in suite.measures)
        self.engine = engine_of(self.opened.lock.engine.kind)
        self.reference: FidelityReference | None = None
        if suite.reference is not None:
            data = self.opened.read(suite.reference)
            self.reference = FidelityReference.from_json(data, where=suite.reference.path)
        self.skipped: dict[int, str] = {}
        self.parameters: dict[int, dict[str, Scalar]] = {}
        for position, measure in enumerate(suite.measures):
            if reason := self._cannot_run(measure):
                self.skipped[position] = reason
                self.parameters[position] = dict(measure.parameters)
            else:
                check_measure(measure)
                for threshold in measure.thresholds:
                    if threshold.relative_to is not None:  # found out now, not after everything was measured
                        baseline(self.opened, measure, threshold, self.reference)
                self.parameters[position] = resolved(measure.id, measure.parameters)
        wanted = [(at, each) for at, each in enumerate(suite.measures) if self.only is None or each.id in self.only]
        runnable = [(at, measure) for at, measure in wanted if at not in self.skipped]
        self.steps = planned(runnable, suite.boots)

    def _cannot_run(self, measure: Measure) -> str:
        known = DEFINITIONS.get(measure.id)
        if known is None:
            return f"penny {reproducer.__version__} does not know this measure"
        if known.needs_reference and self.reference is None:
            return "the lock has no reference to compare with"
        launch = self.opened.lock.launch
        lacking = next((why for need in known.needs if (why := self.engine.lacks(need, launch))), "")
        return lacking or self._within_a_page(measure) or unaltered(self.opened.lock, alteration(measure))

    def _within_a_page(self, measure: Measure) -> str:
        """Why no page of the measure's prompts is ever found again; engines keep whole pages, less the last token."""
        page = self.opened.lock.launch.effective.get("page_size")
        length = resolved(measure.id, measure.parameters).get("prompt_tokens")
        if not DEFINITIONS[measure.id].reuses or not isinstance(page, int) or not isinstance(length, int):
            return ""
        return f"prompts of {length} tokens do not fill a page of {page}: none is found again" if length <= page else ""

    @property
    def whole(self) -> tuple[Step, ...]:
        """The steps that give samples."""
        return tuple(step for step in self.steps if step.after is None)

    @property
    def slots(self) -> tuple[int, ...]:
        """The places of its boots in the plan."""
        return tuple(sorted({step.slot for step in self.steps}))

    def measure(self, cells: Cells) -> None:
        """Take every step that is not finished yet."""
        finished = self.finished(cells)
        with self.reporter.task("measuring", len(self.whole), "samples") as task:
            task.advance(sum(step in finished for step in self.whole))
            for slot in self.slots:
                self.take(slot, cells, finished, task)

    def finished(self, cells: Cells) -> set[Step]:
        """The steps that an interrupted run left."""
        finished = {step for step in self.steps if cells.load(step) is not None}
        if reused := sum(step in finished for step in self.whole):
            self.reporter.note(f"{reused} of {len(self.whole)} samples are there from the interrupted run")
        left = [step for step in self.steps if step.position not in self.skipped and self._is_open(step, finished)]
        self.watcher.planned((self.names[step.position], step) for step in left)
        return finished

    def take(self, slot: int, cells: Cells, finished: set[Step], task: Task) -> None:
        """Take the open steps of one place in the plan: one boot of the lock, and those that differ from it."""
        for launching in sorted({step.launching for step in self.steps if step.slot == slot}):
            steps = [step for step in self.steps if step.launching == launching and self._is_open(step, finished)]
            steps = [step for step in steps if step.position not in self.skipped]
            if steps:
                self._one_boot(launching, steps, cells, task)

    @staticmethod
    def _is_open(step: Step, finished: set[Step]) -> bool:
        """Whether a step is still to be taken: neither it nor what goes on with it is finished."""
        later: Step | None = step
        while later is not None:
            if later in finished:
                return False
            later = later.after
        return True

    def _one_boot(self, launching: Launching, steps: Sequence[Step], cells: Cells, task: Task) -> None:
        """Start a server and take steps on it.

        What goes on in a later boot counts only once this one has ended well: until then its pages may not have reached
        the storage.
        """
        written: dict[Step, Cell] = {}
        with self.boot() if launching.values is None else self.boot(launching.values) as server:
            settled = 0.0
            for step in steps:
                if step.position in self.skipped:
                    continue
                try:
                    cell = self._watched(server, step, cells)
                except UntoldError as error:
                    self.skipped[step.position] = str(error)
                    self.watcher.drops(self.names[step.position])
                    self.reporter.note(f"{self.names[step.position]} is skipped: {error}")
                    continue
                if step.after is not None:
                    written[step] = cell
                    settled = time.monotonic() + self.settle_s
                else:
                    cells.save(step, cell)
                    task.advance(1)
            time.sleep(max(settled - time.monotonic(), 0.0))
        for step, cell in written.items():
            cells.save(step, cell)

    def _watched(self, server: Measured, step: Step, cells: Cells) -> Cell:
        """Take one step, and tell whoever watches."""
        name, flight, since = self.names[step.position], Flight(), time.monotonic()
        self.watcher.begins(name, step, flight)
        cell = self._step(server, step, cells, flight)
        values: dict[str, tuple[tuple[float, ...], str]] = {}
        if cell.sample.facts.get("valid") is True:
            found = METHODS[step.measure].values(self.parameters[step.position], cell.sample, self.reference)
            for value, quantity in found:
                if quantity is not None:
                    values[value] = (*values.get(value, ((),))[0], float(quantity.value)), quantity.unit
        reason = str(cell.sample.facts.get("invalid", ""))
        self.watcher.ends(Finished(name, step, time.monotonic() - since, reason, values))
        return cell

    def _step(self, server: Measured, step: Step, cells: Cells, flight: Flight) -> Cell:
        """Take one step."""
        before = cells.load(step.before) if step.before is not None else None
        nonce = secrets.token_hex(8) if before is None else str(before.sample.facts["nonce"])
        if step.before is not None and step.launching.altered:
            # this server keeps what it is asked now: asked again after an interruption it would find its own pages
            cells.remove(step.before)
        target = Target(
            server.url,
            self.deadline_s,
            speech=SPEECHES[self.engine.speech],
            pid=server.pid,
            workspace=cells.folder,
            keep=self.keep,
            flight=flight,
        )
        watch = Watch.begin(server.pid)
        observed = self._observed(target, step, nonce)
        surroundings: tuple[Surroundings, ...] = (watch.end(),)
        if target.lost and not _lives(server):
            raise NotCheckedError(
                f"the server died during {self.names[step.position]}",
                where=f"process {server.pid}",
                why=next((each.error for each in observed.requests if each.error), "") or "the connection failed",
                todo="look at its log and run again: finished samples are kept",
            )
        requests = observed.requests
        launches: tuple[str, ...] = (server.receipt.digest,)
        facts: dict[str, Scalar] = {"nonce": nonce, "slot": step.slot, **observed.facts}
        if before is not None and step.before is not None:
            requests = before.sample.requests + requests
            launches, surroundings = before.launch_receipts + launches, before.surroundings + surroundings
            facts = before.sample.facts | facts | {BOOT_FACTS[step.before.part]: before.sample.boot}
        sample = Sample(
            index=step.index,
            boot=server.receipt.boot.id,
            warmup=step.warmup,
            requests=requests,
            facts=facts,
            readings=observed.readings,
            transcripts=observed.transcripts,
        )
        return Cell(
            launch_receipts=launches,
            sample=self._marked(step, sample) if step.after is None else sample,
            surroundings=surroundings,
            boots=(*(before.boots if before is not None else ()), booted(server.receipt)),
        )

    def _observed(self, target: Target, step: Step, nonce: str) -> Observed:
        parameters = self.parameters[step.position]
        try:
            return METHODS[step.measure].observe_part(step.part, target, parameters, nonce, self.reference)
        except NotCheckedError as error:
            return Observed((), {"fault": f"{error.what}: {error.why}"})

    def _marked(self, step: Step, sample: Sample) -> Sample:
        """The sample with what is wrong with it, if anything, in its facts; `derive` finds that out again."""
        reason = invalid_reason(step.measure, self.parameters[step.position], sample, self.reference)
        if reason:
            self.reporter.note(f"{self.names[step.position]} sample {step.index + 1} is invalid: {reason}")
        marks: dict[str, Scalar] = {"valid": not reason}
        if reason:
            marks["invalid"] = reason
        return sample.model_copy(update={"facts": sample.facts | marks})

    def receipt(self, position: int, measure: Measure, cells: Cells, folder: Path) -> MeasureReceipt:
        """The receipt of a measure from its finished steps, or the one that says why it was skipped."""
        steps = [step for step in self.steps if step.position == position and step.after is None]
        taken = [cell for step in steps if (cell := cells.load(step)) is not None]
        samples = tuple(cell.sample for cell in taken)
        parameters = self.parameters[position]
        known = DEFINITIONS.get(measure.id)
        skipped = self.skipped.get(position, "")
        derived = () if skipped else derive(measure.id, parameters, samples, self.reference, statistics=STATISTICS)
        against = {} if skipped else differences(self.opened, measure, samples, derived, self.reference)
        judged = judge(measure, samples, derived, against)
        reference = self.opened.lock.qualification.reference
        compared = known is not None and (known.needs_reference or known.takes_reference) and reference is not None
        launches = tuple(dict.fromkeys(digest for cell in taken for digest in cell.launch_receipts))
        made = MeasureReceipt(
            lock_digest=self.opened.digest,
            penny_version=reproducer.__version__,
            created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            build_receipt=self.build_receipt.digest,
            launch_receipts=launches,
            boots=in_order(launches, (boot for cell in taken for boot in cell.boots)),
            measure=measure.id,
            parameters=parameters,
            warmup=measure.warmup,
            conditions=conditions(
                [each for cell in taken for each in cell.surroundings],
                folder,
                known.cache_state if known is not None and not skipped else "unknown",
                sampling=None if measure.id in SETTINGS else {"temperature": TEMPERATURE},
            ).model_copy(
                update={"capability": capability_conditions(self.opened.lock, measure.id, parameters, samples)}
            ),
            reference_sha256=reference.sha256 if compared and reference is not None else None,
            samples=samples,
            statistics=None if skipped else STATISTICS,
            derived=derived,
            thresholds=judged.thresholds,
            status="skipped" if skipped and not measure.thresholds else judged.status,
            reason=skipped or judged.reason,
        )
        return laid_beside(made)


def _lives(server: Measured) -> bool:
    """Whether a server whose connection failed still runs; a dying one is given a moment to be gone."""
    deadline = time.monotonic() + _DYING_S
    while server.alive():
        if time.monotonic() > deadline:
            return True
        time.sleep(0.05)
    return False
