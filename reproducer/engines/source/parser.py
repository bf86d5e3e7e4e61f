"""Follows the functions that fill an argument parser, statement by statement, and keeps what they add to it.

Only assignments, branches, loops over constants, and calls that are given the parser count. Where a condition depends
on the machine, both branches add arguments, and what either changes is unknown from there on.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reproducer.engines.source.modules import Binding, Sources, bodies, bound
from reproducer.engines.source.references import ClassRef, FunctionRef, Parser, Scope, Unknown, text_of
from reproducer.engines.source.values import Special, Values
from reproducer.errors import InvalidDocumentError

_DEEPEST_CALLS = 12
_DEEPEST_BLOCKS = 30
_MOST_ARGUMENTS = 4000


class Keywords(dict[str, Any]):
    """Keywords of `add_argument` by field, as an engine's own function makes them; functions may change them."""


@dataclass
class Added:
    """One call of `add_argument`.

    Attributes:
        options: as they are spelt.
        keywords: values by name.
    """

    options: tuple[str, ...]
    keywords: dict[str, Any]


@dataclass
class _Frame:
    scope: Scope
    result: Any = None
    returned: bool = False
    depth: int = field(default=0)


class ParserReader:
    """Collects the arguments that a function adds to the parser it is given."""

    def __init__(self, sources: Sources, special: Mapping[str, Special]) -> None:
        self.added: list[Added] = []
        self.values = Values(sources, {**special, "super": _super})
        self._where = sources.where
        self._calls = 0

    def run(self, function: FunctionRef, arguments: list[Any]) -> Any:
        """Follow one function; what it returns, where that is known.

        Raises:
            InvalidDocumentError: it adds an argument whose name is no constant, or takes too much.
        """
        if self._calls >= _DEEPEST_CALLS:
            raise InvalidDocumentError("functions that fill the parser call each other too deeply", where=self._where)
        names = dict(self._parameters(function, arguments))
        frame = _Frame(Scope(function.module, names, function.owner))
        frame.scope.names["__class__"] = function.owner
        self._calls += 1
        try:
            self._block(function.node.body, frame, sure=True)
        finally:
            self._calls -= 1
        return frame.result

    def _parameters(self, function: FunctionRef, arguments: list[Any]) -> list[tuple[str, Any]]:
        parameters = [each.arg for each in (*function.node.args.posonlyargs, *function.node.args.args)]
        decorators = {text_of(each) for each in function.node.decorator_list}
        given: list[Any] = list(arguments)
        if function.owner is not None and "staticmethod" not in decorators:
            given.insert(0, function.receiver or function.owner)
        found = list(zip(parameters, given, strict=False))
        defaults = function.node.args.defaults
        for name, node in zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True):
            if name not in dict(found):
                found.append((name, self.values.value(node, Scope(function.module))))
        return found + [(name, Unknown(name)) for name in parameters if name not in dict(found)]

    def _block(self, body: list[ast.stmt], frame: _Frame, *, sure: bool) -> None:
        if frame.depth >= _DEEPEST_BLOCKS:
            raise InvalidDocumentError("a function that fills the parser is nested too deeply", where=self._where)
        frame.depth += 1
        for statement in body:
            self.values.spend()
            if frame.returned:
                break
            self._statement(statement, frame, sure=sure)
        frame.depth -= 1

    def _statement(self, statement: ast.stmt, frame: _Frame, *, sure: bool) -> None:
        if isinstance(statement, ast.Expr):
            self._expression(statement.value, frame, sure=sure)
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Delete):
            self._assignment(statement, frame, sure=sure)
        elif isinstance(statement, ast.Return | ast.Raise):
            value = statement.value if isinstance(statement, ast.Return) else None
            frame.result = self._expression(value, frame, sure=sure) if value is not None else None
            frame.returned = sure
        elif not self._compound(statement, frame, sure=sure):
            for name, binding in bound(frame.scope.module, statement):
                frame.scope.names[name] = self._local(name, binding)

    def _compound(self, statement: ast.stmt, frame: _Frame, *, sure: bool) -> bool:
        """A statement that holds others; whether it is one."""
        if isinstance(statement, ast.If):
            self._branch(statement, frame, sure=sure)
        elif isinstance(statement, ast.For):
            self._loop(statement, frame, sure=sure)
        elif isinstance(statement, ast.With):
            self._block(statement.body, frame, sure=sure)
        elif isinstance(statement, ast.Try | ast.While):
            for body in bodies(statement):
                self._block(body, frame, sure=False)
        else:
            return False
        return True

    def _local(self, name: str, binding: Binding) -> Any:
        return self.values.imported(binding.origin, name) if binding.origin else Unknown(name)

    def _branch(self, statement: ast.If, frame: _Frame, *, sure: bool) -> None:
        try:
            taken = self.values.truth(self.values.value(statement.test, frame.scope))
        except TypeError:
            self._block(statement.body, frame, sure=False)
            self._block(statement.orelse, frame, sure=False)
            return
        self._block(statement.body if taken else statement.orelse, frame, sure=sure)

    def _loop(self, statement: ast.For, frame: _Frame, *, sure: bool) -> None:
        try:
            items = self.values.items(self.values.value(statement.iter, frame.scope))
        except TypeError:
            self._target(statement.target, Unknown(text_of(statement.target)), frame)
            self._block(statement.body, frame, sure=False)
            return
        for each in items:
            self._target(statement.target, each, frame)
            self._block(statement.body, frame, sure=sure)
        self._block(statement.orelse, frame, sure=sure)

    def _target(self, target: ast.expr, value: Any, frame: _Frame) -> None:
        """Bind the names of a target."""
        if isinstance(target, ast.Name):
            frame.scope.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value if isinstance(value, list | tuple) and len(value) == len(target.elts) else None
            for index, each in enumerate(target.elts):
                self._target(each, Unknown(text_of(each)) if parts is None else parts[index], frame)

    def _assignment(
        self, statement: ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Delete, frame: _Frame, *, sure: bool
    ) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign | ast.Delete) else [statement.target]
        value: Any = Unknown(text_of(statement))
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            value = self._expression(statement.value, frame, sure=sure)
        elif isinstance(statement, ast.AnnAssign):
            return
        if not sure and not isinstance(value, Parser):
            value = Unknown(text_of(statement))
        for target in targets:
            if isinstance(target, ast.Subscript):
                self._item(target, value, frame, delete=isinstance(statement, ast.Delete) and sure)
            else:
                self._target(target, value, frame)

    def _item(self, target: ast.Subscript, value: Any, frame: _Frame, *, delete: bool) -> None:
        """Set or delete an item of a table that is known; one of another kind is unknown from then on."""
        owner = self.values.value(target.value, frame.scope)
        key = self.values.value(target.slice, frame.scope)
        if isinstance(owner, dict) and isinstance(key, str):
            if delete:
                owner.pop(key, None)
            else:
                owner[key] = value
        elif isinstance(owner, dict):
            owner.clear()
            self._forget(target.value, frame)
        else:
            self._forget(target.value, frame)

    def _forget(self, node: ast.expr, frame: _Frame) -> None:
        """What nobody can follow any more is unknown."""
        if isinstance(node, ast.Name) and not isinstance(frame.scope.names.get(node.id), Parser):
            frame.scope.names[node.id] = Unknown(node.id)
        elif isinstance(node, ast.Subscript):
            self._item(node, Unknown(text_of(node)), frame, delete=False)

    def _expression(self, node: ast.expr, frame: _Frame, *, sure: bool) -> Any:
        """An expression that may add arguments, change a value in place or call another function that does."""
        if not isinstance(node, ast.Call):
            return self.values.value(node, frame.scope)
        function = node.func
        if isinstance(function, ast.Attribute):
            owner = self.values.value(function.value, frame.scope)
            if isinstance(owner, Parser):
                return self._of_parser(function.attr, node, frame)
            if isinstance(owner, dict | list | set) and function.attr in _CHANGES:
                return self._change(owner, function, node, frame, sure=sure)
        arguments = [self.values.value(each, frame.scope) for each in node.args if not isinstance(each, ast.Starred)]
        if any(isinstance(each, Parser | Keywords) for each in arguments):
            called = self.values.value(function, frame.scope)
            name = text_of(function).rpartition(".")[2]
            if isinstance(called, FunctionRef) and name not in self.values.special:
                return self.run(called, arguments)
        return self.values.value(node, frame.scope)

    def _of_parser(self, name: str, node: ast.Call, frame: _Frame) -> Any:
        if name == "add_argument":
            self._add(node, frame)
            return None
        if name == "set_defaults":
            raise InvalidDocumentError(
                "sets defaults apart from the arguments", where=self._where, why="nobody has taught penny to read that"
            )
        return Parser() if name.startswith("add_") else Unknown(text_of(node))

    def _add(self, node: ast.Call, frame: _Frame) -> None:
        options: list[Any] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                try:
                    options += self.values.items(self.values.value(each.value, frame.scope))
                except TypeError:
                    options.append(Unknown(text_of(each)))
            else:
                options.append(self.values.value(each, frame.scope))
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.values.value(keyword.value, frame.scope) if keyword.arg != "help" else ""
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, dict):
                keywords.update(value)
            else:
                self._refuse(node, "its keywords are no constants")
        if not options or not all(isinstance(each, str) for each in options):
            self._refuse(node, "its name is no constant")
        self.add(Added(tuple(options), keywords))

    def _refuse(self, node: ast.Call, why: str) -> None:
        raise InvalidDocumentError(
            f"line {node.lineno} adds an argument that cannot be read", where=self._where, why=why
        )

    def add(self, added: Added) -> None:
        """Keep one argument.

        Raises:
            InvalidDocumentError: more than any engine has.
        """
        if len(self.added) >= _MOST_ARGUMENTS:
            raise InvalidDocumentError(f"adds more than {_MOST_ARGUMENTS} arguments", where=self._where)
        self.added.append(added)

    def _change(self, owner: Any, function: ast.Attribute, node: ast.Call, frame: _Frame, *, sure: bool) -> Any:
        """A method that changes a list or table in place; unknown where the change is not certain."""
        arguments = [self.values.value(each, frame.scope) for each in node.args]
        if sure and not node.keywords and not any(isinstance(each, Unknown) for each in arguments):
            try:
                return getattr(owner, function.attr)(*arguments)
            except (LookupError, TypeError, ValueError):
                pass
        self._forget(function.value, frame)
        return Unknown(text_of(node))


_CHANGES = frozenset({"add", "append", "extend", "insert", "pop", "remove", "setdefault", "update"})


@dataclass(frozen=True)
class _Super:
    """The classes after the one that a method stands in."""


def _super(values: Values, node: ast.Call, scope: Scope) -> Any:
    """`super()`: the nearest base of the class whose method is followed."""
    if node.args or not isinstance(scope.owner, ClassRef):
        raise TypeError
    ancestry = values.ancestry(scope.owner)
    return ancestry[1] if len(ancestry) > 1 else Unknown("super()")
