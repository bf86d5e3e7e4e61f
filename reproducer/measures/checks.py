"""What a lock or manifest asks of a measure, held against the table of measures (`definitions.py`)."""

import difflib
from collections.abc import Mapping

from reproducer.documents.base import shown
from reproducer.documents.lock import Measure, Scalar, Threshold
from reproducer.errors import InvalidDocumentError
from reproducer.measures.definitions import COUNTED, DEFINITIONS, Definition


def definition(measure: str) -> Definition:
    """The definition of a measure.

    Raises:
        InvalidDocumentError: this penny does not know it.
    """
    found = DEFINITIONS.get(measure)
    if found is None:
        raise InvalidDocumentError(f"no measure {shown(measure)} is known", todo=_hint(measure, DEFINITIONS))
    return found


def resolved(measure: str, given: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """All parameters of a measure, the ones that are not given at their defaults.

    Raises:
        InvalidDocumentError: unknown measure or parameter, wrong type, out of range.
    """
    known = {each.name: each for each in definition(measure).parameters}
    for name in given:
        if name not in known:
            raise InvalidDocumentError(f"{measure} takes no parameter {shown(name)}", todo=_hint(name, known))
    values: dict[str, Scalar] = {}
    for name, parameter in known.items():
        value = given.get(name, int(parameter.default) if parameter.whole else parameter.default)
        kinds = (int,) if parameter.whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not parameter.least <= value <= parameter.most:
            kind = "a whole number" if parameter.whole else "a number"
            raise InvalidDocumentError(
                f"{measure}: {name} must be {kind} from {parameter.least:g} to {parameter.most:g}, got {shown(value)}"
            )
        values[name] = value
    return values


def alteration(measure: Measure) -> dict[str, Scalar]:
    """The effective values in which a measure has a server differ from the lock; none of a measure that is unknown.

    Raises:
        InvalidDocumentError: as `resolved`.
    """
    known = DEFINITIONS.get(measure.id)
    names = [stage.alters for stage in known.stages if stage.alters] if known is not None else []
    parameters = resolved(measure.id, measure.parameters) if names else {}
    return {name: parameters[name] for name in names}


_LARGEST_SHARE = 1e6  # of a reference receipt's value; more of it is no number any more after everything was measured


def check_measure(measure: Measure) -> None:
    """Check a measure of a lock or manifest: parameters, and that every threshold bounds a value it gives, in its unit.

    Raises:
        InvalidDocumentError: what does not fit.
    """
    resolved(measure.id, measure.parameters)
    values = {each.name: each for each in (*definition(measure.id).values, *COUNTED)}
    for threshold in measure.thresholds:
        value = values.get(threshold.value)
        if value is None:
            raise InvalidDocumentError(
                f"{measure.id} gives no value {shown(threshold.value)}", todo=_hint(threshold.value, values)
            )
        if threshold.relative_to is not None:
            _check_relative(measure, threshold)
        elif threshold.unit != value.unit:
            raise InvalidDocumentError(
                f"{measure.id}: {value.name} is in {value.unit}, the threshold in {shown(threshold.unit)}"
            )
        elif isinstance(threshold.bound, bool) and value.unit != "bool":
            raise InvalidDocumentError(
                f"{measure.id}: {value.name} is in {value.unit}, and the bound is true or false",
                todo="only a value in unit 'bool' is bounded by one of them",
            )


def _check_relative(measure: Measure, threshold: Threshold) -> None:
    """A bound relative to a receipt is a share of its value."""
    if threshold.unit != "ratio" or isinstance(threshold.bound, bool) or not 0 < threshold.bound <= _LARGEST_SHARE:
        raise InvalidDocumentError(
            f"{measure.id}: a bound on {threshold.value} relative to a receipt is a share above 0 in unit 'ratio',"
            f" {_LARGEST_SHARE:g} at most",
            todo="1.0 asks for the receipt's value, as far as its noise allows",
        )


def _hint(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known) or 'none'}"
