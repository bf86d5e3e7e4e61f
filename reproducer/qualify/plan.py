"""Which sample is taken in which boot: a pure function of the suite."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from reproducer.documents.lock import Measure
from reproducer.qualify.definitions import definition

Part = Literal["whole", "write", "restore"]
_FIRST = {"write": 0, "restore": 1, "whole": 1}


@dataclass(frozen=True)
class Step:
    """One thing to do in one boot.

    Attributes:
        slot: the boot, from 1.
        position: the measure's place in the suite.
        measure: its id.
        index: the sample's number within the measure.
        warmup: whether the sample is a warm-up.
        part: `write` and `restore` are the halves of a sample that spans this boot and the one before.
    """

    slot: int
    position: int
    measure: str
    index: int
    warmup: bool
    part: Part = "whole"

    @property
    def name(self) -> str:
        """A file name that no other step has."""
        return f"{self.slot:03}-{self.position:03}-{self.index:05}-{self.part}.json"

    @property
    def other_half(self) -> "Step":
        """The restore that a write is for, or the write that a restore needs."""
        if self.part == "write":
            return Step(self.slot + 1, self.position, self.measure, self.index, self.warmup, "restore")
        return Step(self.slot - 1, self.position, self.measure, self.index, self.warmup, "write")


def planned(measures: Sequence[tuple[int, Measure]], boots: int) -> tuple[Step, ...]:
    """Every step of a suite, boot by boot.

    Repeats are spread evenly over the boots, the first ones taking what is left over; a measure's warm-ups come before
    its samples in each boot that has some. A sample that spans two boots is written at the very beginning of one and
    restored in the next, so that there is all of the boot for the pages to reach the storage.

    Args:
        measures: (place in the suite, measure) of those that can run.
        boots: how many boots there are, at least 2.
    """
    steps = [step for position, measure in measures for step in _of_measure(position, measure, boots)]
    return tuple(sorted(steps, key=lambda step: (step.slot, _FIRST[step.part], step.position, step.index)))


def _of_measure(position: int, measure: Measure, boots: int) -> Iterator[Step]:
    across = definition(measure.id).across
    places = boots - 1 if across else boots
    index = 0
    for place in range(places):
        share = measure.repeats // places + (place < measure.repeats % places)
        if not share:
            continue
        for number in range(measure.warmup + share):
            warmup = number < measure.warmup
            if across:
                restore = Step(place + 2, position, measure.id, index, warmup, "restore")
                yield from (restore.other_half, restore)
            else:
                yield Step(place + 1, position, measure.id, index, warmup)
            index += 1
