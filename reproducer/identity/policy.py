"""By what the code that writes pages is known: its full source, or a revision that somebody vouches for.

Under `commit`, the default, every digest of sources, patches and built wheels is a factor: one cold prompt after a
build costs less than one wrong byte. Under `abi=REVISION` the revision stands for them all, and whoever declares it
answers for it. What the sources would have told is then looked at by itself: a default that moved is a factor.
"""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reproducer.documents.base import shown
from reproducer.documents.consistency import RUNTIME_ENVIRONMENT
from reproducer.documents.opened import OpenedLock
from reproducer.errors import InvalidDocumentError, UsageError
from reproducer.identity.classes import effective_field, rule
from reproducer.identity.factors import Factor, Path, typed
from reproducer.identity.meaning import Meaning
from reproducer.identity.namespace import Namespace, Reading, namespace_of
from reproducer.identity.tables import table_of

if TYPE_CHECKING:
    from reproducer.documents.arguments import Argument, ArgumentSchema, Default, Variable

_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_VOUCHED = Meaning("build", "the declared cache-ABI revision stands for it")
_DECLARED = Meaning("cache-identity", "the cache-ABI revision that was declared")


@dataclass(frozen=True)
class Policy:
    """How source code is identified.

    Attributes:
        abi: the declared cache-ABI revision; None for the full source.
    """

    abi: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Policy":
        """A policy as it is written: `commit` or `abi=REVISION`.

        Raises:
            UsageError: neither.
        """
        if text == "commit":
            return COMMIT
        word, _, revision = text.partition("=")
        if word != "abi" or not _REVISION.fullmatch(revision):
            raise UsageError(
                f"there is no policy {shown(text)}",
                todo="pass `commit` or `abi=REVISION`, with letters, digits and . _ + - in the revision",
            )
        return cls(revision)

    def __str__(self) -> str:
        """As it is written."""
        return "commit" if self.abi is None else f"abi={self.abi}"


COMMIT = Policy()


def derive_under(policy: Policy, opened: OpenedLock) -> Namespace:
    """The namespace of a lock under a policy.

    Args:
        policy: how source code is identified.
        opened: the lock; under `abi` the list of its engine's arguments beside it is read.

    Raises:
        InvalidDocumentError: the lock has no namespace (see `derive`), or under `abi` no list of arguments.
        DriftError, UnsafeInputError: that list is not the one that the lock pins.
    """
    reading = Reading(opened.lock)
    if policy.abi is not None:
        named = (component.build_environment for component in opened.lock.components)
        tools = {name for name in named if name is not None} - {RUNTIME_ENVIRONMENT}
        for path in reading.facts:
            if _is_source(path, tools):
                reading.meanings[path] = _VOUCHED
        reading.facts["policy", "abi"] = typed(policy.abi)
        reading.meanings["policy", "abi"] = _DECLARED
        for path, fact, meaning in _defaults(reading, _schema(opened)):
            reading.facts[path], reading.meanings[path] = fact, meaning
    return namespace_of(reading)


def _is_source(path: Path, tools: AbstractSet[str]) -> bool:
    """Whether a fact says which source code the components are, or how they are built from it."""
    return (
        path[0] in ("components", "build")
        or path == ("toolchain", "compiler")
        or (path[0] == "environments" and path[1] in tools)
    )


def _schema(opened: OpenedLock) -> "ArgumentSchema":
    schema = opened.arguments()
    if schema is None:
        raise InvalidDocumentError(
            "lists no arguments of its engine, so a default that moved would not be seen",
            where=f"{opened.path}, key engine.arguments",
            todo="run `penny lock`, or use the policy `commit`",
        )
    return schema


def _defaults(reading: Reading, schema: "ArgumentSchema") -> Iterator[tuple[Path, Factor, Meaning]]:
    """The defaults that hold because the lock names no value, of what takes part in the meaning of pages.

    What is off (unset or false) is no factor, so that an option which a later engine adds changes nothing while it is
    off; `auto` is none either, for its effective value is one where the lock has it.
    """
    launch, engine = reading.lock.launch, reading.lock.engine.kind
    canonical = table_of(engine).canonical
    named = {canonical(name) for name, value in launch.arguments.items() if value is not False}
    for argument in schema.arguments:
        known = {argument.field, effective_field(engine, argument.name)} & launch.effective.keys()
        name = canonical(argument.name)
        unnamed = not known and not named & {name, *map(canonical, argument.aliases)}
        meaning = rule(("launch", "arguments", name), engine)
        if unnamed and not argument.required and not argument.ignored and not meaning.neutral and _holds(argument):
            yield ("launch", "defaults", name), _fact(argument.default), meaning
    for variable in schema.variables:
        meaning = rule(("launch", "environment", variable.name), engine)
        if variable.name not in launch.environment and not meaning.neutral and _holds(variable):
            yield ("launch", "variable_defaults", variable.name), _fact(variable.default), meaning


def _holds(entry: "Argument | Variable") -> bool:
    """Whether the default is a value that does something."""
    default = entry.default
    return default.expression is not None or not (
        default.value is None or default.value is False or default.value == "auto"
    )


def _fact(default: "Default") -> Factor:
    """A default as a typed value; one that is computed stands for itself by the text that computes it."""
    if default.expression is not None:
        return Factor("list", (typed("computed"), typed(default.expression)))
    value = default.value
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, list | dict) for each in value)):
        from reproducer.canonical import canonical_bytes

        return Factor("list", (typed("json"), typed(canonical_bytes(value).decode())))
    return typed(value)
