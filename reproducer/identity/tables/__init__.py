"""What every argument and variable of an engine does to the bytes of a KV page: one table for each engine.

A table holds groups, each with one class, one reason and the names that it holds for, so that a reason stands once and
a review sees at a glance what is neutral. Only the modules of the engine that is asked for are imported.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from reproducer.identity.meaning import Consequence, Meaning

# (class, reason, names separated by white space)
Group: TypeAlias = tuple[Consequence, str, str]


@dataclass(frozen=True)
class Table:
    """The classification of one engine's arguments and variables, over all its releases that penny knows.

    Attributes:
        arguments: what each argument means, by its canonical name: the first long option of the engine's parser.
        variables: what each environment variable means, by name.
        aliases: the canonical name of every other spelling of an argument.
    """

    arguments: Mapping[str, Meaning] = field(default_factory=dict)
    variables: Mapping[str, Meaning] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    def canonical(self, argument: str) -> str:
        """The canonical name of an argument; a name that no table knows is its own."""
        return self.aliases.get(argument, argument)


@cache
def table_of(engine: str) -> Table:
    """The table of an engine by the `kind` of the lock; an empty one for an engine that has none."""
    if engine == "sglang":
        from reproducer.identity.tables import sglang_arguments, sglang_outside, sglang_variables

        return Table(
            by_name(sglang_arguments.ARGUMENTS),
            by_name((*sglang_variables.VARIABLES, *sglang_outside.VARIABLES)),
            by_alias(sglang_arguments.ALIASES),
        )
    if engine == "vllm":
        from reproducer.identity.tables import vllm_arguments, vllm_variables

        return Table(
            by_name(vllm_arguments.ARGUMENTS),
            by_name(vllm_variables.VARIABLES),
            by_alias(vllm_arguments.ALIASES),
        )
    return Table()


def by_name(groups: Iterable[Group]) -> dict[str, Meaning]:
    """The meaning of every name in some groups.

    Raises:
        ValueError: a name stands twice, so it would depend on the order which class it has.
    """
    found: dict[str, Meaning] = {}
    for consequence, reason, names in groups:
        for name in names.split():
            if name in found:
                raise ValueError(f"{name} stands twice: as {found[name].consequence} and as {consequence}")
            found[name] = Meaning(consequence, reason)
    return found


def by_alias(spellings: Mapping[str, str]) -> dict[str, str]:
    """The canonical name of every alias, from the aliases of each canonical name separated by white space.

    Raises:
        ValueError: an alias stands twice, or is a canonical name itself.
    """
    found: dict[str, str] = {}
    for canonical, aliases in spellings.items():
        for alias in aliases.split():
            if alias in found or alias in spellings:
                raise ValueError(f"{alias} is no alias of {canonical} alone")
            found[alias] = canonical
    return found
