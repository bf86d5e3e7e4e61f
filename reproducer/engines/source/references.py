"""What an expression may stand for besides a constant, and the scope that names are looked up in."""

import ast
import hashlib
from dataclasses import dataclass, field
from typing import Any

from reproducer.engines.source.modules import Module
from reproducer.errors import InvalidDocumentError

_LONGEST_EXPRESSION = 2000


@dataclass(frozen=True)
class Unknown:
    """What is no constant: the source text of it."""

    text: str


@dataclass(frozen=True)
class ClassRef:
    """A class of the package."""

    module: Module
    node: ast.ClassDef

    def __hash__(self) -> int:
        return id(self.node)


@dataclass(frozen=True)
class FunctionRef:
    """A function or method of the package; `owner` is the class whose body it stands in."""

    module: Module
    node: ast.FunctionDef
    owner: ClassRef | None = None
    receiver: ClassRef | None = None


@dataclass(frozen=True)
class ModuleRef:
    """A module of the package, or of another one."""

    name: str


@dataclass(frozen=True)
class Member:
    """A member of an enumeration."""

    owner: ClassRef
    name: str
    value: Any


class Parser:
    """The parser that is being filled, or one of its groups."""


@dataclass
class Scope:
    """Where names are looked up: locals, then the module."""

    module: Module
    names: dict[str, Any] = field(default_factory=dict)
    owner: ClassRef | None = None


def text_of(node: ast.AST) -> str:
    """The source text of an expression, shortened where it is very long, as the digest of the whole would be.

    Raises:
        InvalidDocumentError: nested too deeply.
    """
    try:
        text = ast.unparse(node)
    except RecursionError as error:
        raise InvalidDocumentError("the source holds an expression that is nested too deeply") from error
    if len(text) <= _LONGEST_EXPRESSION:
        return text
    return f"{text[:_LONGEST_EXPRESSION]}... sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def is_constant(value: Any) -> bool:
    """Whether a value is known to the last item."""
    if isinstance(value, list | tuple | set | frozenset):
        return all(is_constant(each) for each in value)
    if isinstance(value, dict):
        return all(is_constant(key) and is_constant(each) for key, each in value.items())
    return value is None or isinstance(value, bool | int | float | str)
