"""What a name or an attribute stands for in the source of an engine: a constant, module, class, function or member."""

import ast
import copy
from abc import ABC, abstractmethod
from typing import Any

from reproducer.engines.source.modules import Binding, Module, Sources
from reproducer.engines.source.references import (
    ClassRef,
    FunctionRef,
    Member,
    ModuleRef,
    Scope,
    Unknown,
    is_constant,
    text_of,
)
from reproducer.errors import InvalidDocumentError

DEEPEST = 60
_MOST_STEPS = 400_000
_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
_PLAIN_ENUMS = {"IntEnum": "int", "StrEnum": "str", "IntFlag": "int"}


class Names(ABC):
    """Looks names up within a budget.

    Args:
        sources: the package.
    """

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._left = _MOST_STEPS
        self._depth = 0
        self._open: set[tuple[str, str]] = set()
        self._known: dict[tuple[str, str], Any] = {}

    def spend(self, steps: int = 1) -> None:
        """Count work.

        Raises:
            InvalidDocumentError: the source takes more than any engine's would.
        """
        self._left -= steps
        if self._left < 0:
            raise InvalidDocumentError("the source takes too many steps to read", where=self.sources.where)

    @abstractmethod
    def value(self, node: ast.AST, scope: Scope) -> Any:
        """What an expression is: a constant, a reference, or `Unknown`."""

    def name(self, name: str, module: Module) -> Any:
        """What a name stands for in a module; Unknown where that is no constant."""
        key = (module.name, name)
        if key in self._known:
            known = self._known[key]
            return copy.copy(known) if isinstance(known, list | dict | set) else known
        binding = module.binding(name)
        if binding is None or key in self._open:
            return Unknown(name)
        self._open.add(key)
        try:
            found = self._bound(binding, name, module)
        finally:
            self._open.discard(key)
        self._known[key] = found
        return found

    def _bound(self, binding: Binding, name: str, module: Module) -> Any:
        if isinstance(binding.node, ast.ClassDef):
            return ClassRef(module, binding.node)
        if isinstance(binding.node, ast.FunctionDef):
            return FunctionRef(module, binding.node)
        if binding.node is not None:
            return self.value(binding.node, Scope(module))
        return self.imported(binding.origin, name) if binding.origin else Unknown(name)

    def imported(self, origin: tuple[str, str | None], name: str) -> Any:
        """What an import gives: Unknown with the local name where it leaves the package."""
        self.spend()
        source, item = origin
        if item is None:
            return ModuleRef(source)
        module = self.sources.module(source)
        if module is not None and item in module.bindings:
            return self.name(item, module) if self._depth < DEEPEST else Unknown(name)
        if self.sources.module(f"{source}.{item}") is not None:
            return ModuleRef(f"{source}.{item}")
        return Unknown(name)

    def attribute(self, owner: Any, name: str) -> Any:
        """An attribute of a reference.

        Raises:
            AttributeError: no such attribute is known.
        """
        if isinstance(owner, ModuleRef):
            module = self.sources.module(owner.name)
            if module is not None and name in module.bindings:
                return self.name(name, module)
            if self.sources.module(f"{owner.name}.{name}") is not None:
                return ModuleRef(f"{owner.name}.{name}")
        elif isinstance(owner, ClassRef):
            return self.class_attribute(owner, name)
        elif isinstance(owner, Member) and name in ("name", "value", "_value_"):
            return owner.name if name == "name" else owner.value
        raise AttributeError(name)

    def ancestry(self, owner: ClassRef) -> list[ClassRef]:
        """A class and the classes of the package that it inherits from, nearest first."""
        found = [owner]
        for each in found:
            for base in each.node.bases:
                value = self.value(base, Scope(each.module))
                if isinstance(value, ClassRef) and value not in found:
                    found.append(value)
        return found

    def base_names(self, owner: ClassRef) -> set[str]:
        """The last words of the names of all bases."""
        return {
            text_of(base).partition("[")[0].rpartition(".")[2]
            for each in self.ancestry(owner)
            for base in each.node.bases
        }

    def class_attribute(self, owner: ClassRef, name: str) -> Any:
        """A value, method or member of a class."""
        members = bool(self.base_names(owner) & _ENUMS)
        for each in self.ancestry(owner):
            found: list[Any] = []
            for statement in each.node.body:
                if isinstance(statement, ast.FunctionDef) and statement.name == name:
                    found.append(FunctionRef(each.module, statement, each, owner))
                elif (value := _assigned(statement, name)) is not None:
                    found.append(value)
            if not found:
                continue
            key = (f"{each.module.name}:{each.node.name}", name)
            if len(found) > 1 or key in self._open:
                break
            if isinstance(found[0], FunctionRef):
                return found[0]
            self._open.add(key)
            try:
                value = self.value(found[0], Scope(each.module, owner=each))
            finally:
                self._open.discard(key)
            return Member(owner, name, value) if members else value
        raise AttributeError(name)

    def members(self, owner: ClassRef) -> list[Member]:
        """The members of an enumeration, in order."""
        if not self.base_names(owner) & _ENUMS:
            raise TypeError
        names = [
            target.id
            for statement in owner.node.body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name) and not target.id.startswith("_")
        ]
        return [self.class_attribute(owner, name) for name in names]

    def plain(self, member: Member) -> Any:
        """A member as the value that it equals, where its enumeration is one of numbers or text."""
        bases = self.base_names(member.owner)
        if bases & {"str", "int", *_PLAIN_ENUMS} and is_constant(member.value):
            return member.value
        return Unknown(f"{member.owner.node.name}.{member.name}")


def _assigned(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement of a class body assigns to a name."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return None
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return statement.value if any(isinstance(each, ast.Name) and each.id == name for each in targets) else None
