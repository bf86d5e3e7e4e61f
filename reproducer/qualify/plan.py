"""Which sample is taken in which boot: a pure function of the suite."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reproducer.documents.lock import Measure, Scalar
from reproducer.measures.checks import alteration, definition
from reproducer.measures.definitions import Part, Stage

# What is restored comes first, as after a restart: later the memory in between holds pages of other prompts.
_FIRST = {"restore": 0, "write": 1, "flip": 2, "whole": 2}


@dataclass(frozen=True, order=True)
class Launching:
    """One boot of a suite.

    Attributes:
        slot: the boot of the lock, from 1; one that differs from the lock comes after the boot of its slot.
        altered: the effective values in which the launch differs from the lock, with their types' names before them.
    """

    slot: int
    altered: tuple[tuple[str, str, Scalar], ...] = ()

    @property
    def values(self) -> dict[str, Scalar] | None:
        """The effective values in which the launch differs from the lock; None where it is the lock's."""
        return {name: value for name, _, value in self.altered} or None


@dataclass(frozen=True)
class Step:
    """One thing to do in one boot.

    Attributes:
        slot: the boot of the lock, from 1.
        position: the measure's place in the suite.
        measure: its id.
        index: the sample's number within the measure.
        warmup: whether the sample is a warm-up.
        part: which part of its sample lies in this boot.
        alters: in what the launches of the measure's altered stages differ from the lock.
    """

    slot: int
    position: int
    measure: str
    index: int
    warmup: bool
    part: Part = "whole"
    alters: tuple[tuple[str, str, Scalar], ...] = ()

    @property
    def name(self) -> str:
        """A file name that no other step has."""
        return f"{self.slot:03}-{self.position:03}-{self.index:05}-{self.part}.json"

    @property
    def launching(self) -> Launching:
        """The boot it is taken in."""
        stages = definition(self.measure).stages
        name = stages[self._place(stages)].alters
        return Launching(self.slot, tuple(each for each in self.alters if each[0] == name))

    @property
    def before(self) -> "Step | None":
        """What is done in an earlier boot and gone on with here; None for the first stage."""
        stages = definition(self.measure).stages
        place = self._place(stages)
        if place == 0:
            return None
        return replace(self, slot=self.slot - (not stages[place].alters), part=stages[place - 1].part)

    @property
    def after(self) -> "Step | None":
        """What goes on in a later boot with what is done here; None for the last stage, which gives the sample."""
        stages = definition(self.measure).stages
        place = self._place(stages) + 1
        if place == len(stages):
            return None
        return replace(self, slot=self.slot + (not stages[place].alters), part=stages[place].part)

    def _place(self, stages: tuple[Stage, ...]) -> int:
        return [stage.part for stage in stages].index(self.part)


def planned(measures: Sequence[tuple[int, Measure]], boots: int) -> tuple[Step, ...]:
    """Every step of a suite, boot by boot.

    Repeats are spread evenly over the boots, the first ones taking what is left over; a measure's warm-ups come before
    its samples in each boot that has some. A sample that spans several boots is written at the very beginning of one
    and goes on in the next, so that there is all of the boot for the pages to reach the storage. A boot that differs
    from the lock lies between two of the lock's, and samples that want the same difference share it.

    Args:
        measures: (place in the suite, measure) of those that can run.
        boots: how many boots of the lock there are, at least 2.
    """
    steps = [step for position, measure in measures for step in _of_measure(position, measure, boots)]
    return tuple(sorted(steps, key=lambda step: (step.launching, _FIRST[step.part], step.position, step.index)))


def _of_measure(position: int, measure: Measure, boots: int) -> Iterator[Step]:
    known = definition(measure.id)
    alters = tuple((name, type(value).__name__, value) for name, value in alteration(measure).items())
    places = boots - known.spans + 1
    index = 0
    for place in range(places):
        share = measure.repeats // places + (place < measure.repeats % places)
        if not share:
            continue
        for number in range(measure.warmup + share):
            first = known.stages[0].part
            step: Step | None = Step(place + 1, position, measure.id, index, number < measure.warmup, first, alters)
            while step is not None:
                yield step
                step = step.after
            index += 1
