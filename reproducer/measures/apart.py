"""Measures of one suite told apart: one id may stand several times, each time with other parameters (a ladder)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from reproducer.documents.base import shown
from reproducer.documents.lock import Scalar
from reproducer.errors import InvalidDocumentError
from reproducer.measures.checks import resolved

Asked: TypeAlias = tuple[str, Mapping[str, Scalar]]
Identity: TypeAlias = tuple[str, tuple[tuple[str, str, Scalar], ...]]


def identity(measure: str, parameters: Mapping[str, Scalar]) -> Identity:
    """What is measured: the id and every parameter, whether it was given or is the default; equal where that is equal.

    Identities can be sorted: by id, then by parameters, numbers by size.
    """
    return measure, tuple((name, _type(value), value) for name, value in sorted(_all(measure, parameters).items()))


def names(asked: Iterable[Asked]) -> tuple[str, ...]:
    """A name for each measure: its id, and in brackets the parameters in which those of one id differ."""
    return tuple(measure + _brackets(among) for measure, among in _told(asked))


def bare_names(asked: Iterable[Asked]) -> tuple[str, ...]:
    """The same without the version, where all have the same one."""
    told = tuple(_told(asked))
    ids = {measure for measure, _ in told}
    return tuple(_bare(measure, ids) + _brackets(among) for measure, among in told)


def differing(asked: Iterable[Asked]) -> tuple[str, ...]:
    """The parameters in which measures of one id differ, in alphabetical order."""
    tables = [dict(_all(*each)) for each in asked]
    every = sorted({name for table in tables for name in table})
    return tuple(name for name in every if len({_spelt(table.get(name)) for table in tables}) > 1)


def place(suite: Sequence[Asked], measure: str, parameters: Mapping[str, Scalar]) -> int | None:
    """Which measure of a suite this one is; None where it is none of them.

    An id that stands once is that one, whatever its parameters: it is for `verify` to say that they differ.
    """
    places = [index for index, (each, _) in enumerate(suite) if each == measure]
    if len(places) == 1:
        return places[0]
    wanted = identity(measure, parameters)
    return next((index for index in places if identity(*suite[index]) == wanted), None)


def told_whole(measure: str, parameters: Mapping[str, Scalar]) -> str:
    """An id with all of its parameters."""
    return measure + _brackets({name: _spelt(value) for name, value in sorted(_all(measure, parameters).items())})


def _told(asked: Iterable[Asked]) -> Iterable[tuple[str, dict[str, str]]]:
    """Each id with the parameters that tell it apart, as text."""
    every = tuple(asked)
    apart = {
        measure: differing(each for each in every if each[0] == measure) for measure in {each[0] for each in every}
    }
    for measure, parameters in every:
        table = _all(measure, parameters)
        yield measure, {name: _spelt(table.get(name)) for name in apart[measure]}


def _all(measure: str, parameters: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
    """Every parameter; what is given where the measure is unknown or the parameters are not its own."""
    try:
        return resolved(measure, parameters)
    except InvalidDocumentError:
        return parameters


def _type(value: Scalar) -> str:
    return "truth" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"


def _spelt(value: Scalar | None) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return shown(value) if isinstance(value, str) else str(value)


def _brackets(among: Mapping[str, str]) -> str:
    return f"[{', '.join(f'{name}={value}' for name, value in among.items())}]" if among else ""


def _bare(measure: str, ids: set[str]) -> str:
    name = measure.rpartition("/")[0]
    return name if all(each == measure or each.rpartition("/")[0] != name for each in ids) else measure
