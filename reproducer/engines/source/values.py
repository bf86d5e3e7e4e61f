"""The value of a Python expression as far as it is a constant; nothing is run, and the rest stays unknown."""

import ast
from collections.abc import Callable, Mapping
from typing import Any

from reproducer.engines.source.modules import Sources
from reproducer.engines.source.names import DEEPEST, Names
from reproducer.engines.source.operators import (
    LARGEST_BITS,
    LONGEST_TEXT,
    MOST_ITEMS,
    arithmetic,
    compared,
    joined,
    text_method,
    weight,
)
from reproducer.engines.source.references import (
    ClassRef,
    Scope,
    Unknown,
    is_constant,
    text_of,
)

_LONGEST_NUMBER = 64
_METHODS: dict[type[ast.AST], str] = {
    ast.Attribute: "_attribute",
    ast.BinOp: "_binop",
    ast.BoolOp: "_boolop",
    ast.Call: "_call",
    ast.Compare: "_compare",
    ast.Constant: "_constant",
    ast.Dict: "_dict",
    ast.IfExp: "_ifexp",
    ast.JoinedStr: "_joinedstr",
    ast.List: "_list",
    ast.ListComp: "_listcomp",
    ast.Name: "_name",
    ast.NamedExpr: "_namedexpr",
    ast.Set: "_list",
    ast.Subscript: "_subscript",
    ast.Tuple: "_list",
    ast.UnaryOp: "_unaryop",
}
_BUILTINS = frozenset({"bool", "dict", "float", "frozenset", "int", "list", "set", "sorted", "str", "tuple"})


Special = Callable[["Values", ast.Call, Scope], Any]


class Values(Names):
    """Evaluates expressions within a budget.

    Args:
        sources: the package.
        special: what calls of functions of certain names give.
    """

    def __init__(self, sources: Sources, special: Mapping[str, Special]) -> None:
        super().__init__(sources)
        self.special = special

    def value(self, node: ast.AST, scope: Scope) -> Any:
        """What an expression is: a constant, a reference, or `Unknown`."""
        self.spend()
        if self._depth >= DEEPEST:
            return Unknown(text_of(node))
        self._depth += 1
        try:
            method = _METHODS.get(type(node))
            if method is None:
                return Unknown(text_of(node))
            return self._bounded(getattr(self, method)(node, scope), node)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return Unknown(text_of(node))
        finally:
            self._depth -= 1

    def _bounded(self, found: Any, node: ast.AST) -> Any:
        if isinstance(found, str) and len(found) > LONGEST_TEXT:
            return Unknown(text_of(node))
        if isinstance(found, int) and found.bit_length() > LARGEST_BITS:
            return Unknown(text_of(node))
        if isinstance(found, list | tuple | set | frozenset | dict):
            amount = weight(found)
            self.spend(amount)
            if amount > MOST_ITEMS:
                return Unknown(text_of(node))
        return found

    def _constant(self, node: ast.Constant, _scope: Scope) -> Any:
        if isinstance(node.value, bytes | complex) or node.value is Ellipsis:
            return Unknown(text_of(node))
        return node.value

    def _name(self, node: ast.Name, scope: Scope) -> Any:
        if node.id in scope.names:
            return scope.names[node.id]
        return self.name(node.id, scope.module)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        return self.attribute(self.value(node.value, scope), node.attr)

    def _list(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Any:
        found: list[Any] = []
        for each in node.elts:
            if isinstance(each, ast.Starred):
                inner = self.items(self.value(each.value, scope))
                found += inner
            else:
                found.append(self.value(each, scope))
        if any(isinstance(each, Unknown) for each in found):
            return Unknown(text_of(node))
        if isinstance(node, ast.Set):
            return set(found)
        return tuple(found) if isinstance(node, ast.Tuple) else found

    def _dict(self, node: ast.Dict, scope: Scope) -> Any:
        found: dict[Any, Any] = {}
        for key, each in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.value(each, scope)
                if not isinstance(inner, dict):
                    return Unknown(text_of(node))
                found.update(inner)
                continue
            name = self.value(key, scope)
            if isinstance(name, Unknown):
                return Unknown(text_of(node))
            found[name] = Unknown(text_of(each)) if self._imports(each, scope) else self.value(each, scope)
        return found

    def _imports(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an expression is an imported name: a table of classes is read without the files of all of them."""
        if not isinstance(node, ast.Name) or node.id in scope.names:
            return False
        binding = scope.module.binding(node.id)
        return binding is not None and binding.origin is not None

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Any:
        value = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            return not self.truth(value)
        if isinstance(node.op, ast.USub) and isinstance(value, int | float):
            return -value
        raise TypeError

    def _binop(self, node: ast.BinOp, scope: Scope) -> Any:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(node.op, ast.Add) and type(left) is type(right) and isinstance(left, str | list | tuple):
            return left + right
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise TypeError
        return arithmetic(node.op, left, right)

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Any:
        wanted = isinstance(node.op, ast.Or)
        value: Any = None
        for each in node.values:
            value = self.value(each, scope)
            if self.truth(value) is wanted:
                return value
        return value

    def _compare(self, node: ast.Compare, scope: Scope) -> Any:
        if len(node.ops) != 1:
            raise TypeError
        special = self.special.get(f"in {text_of(node.comparators[0])}")
        if special is not None and isinstance(node.ops[0], ast.In | ast.NotIn):
            return isinstance(node.ops[0], ast.NotIn)
        left, right = self.value(node.left, scope), self.value(node.comparators[0], scope)
        return compared(node.ops[0], left, right)

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Any:
        inner = Scope(scope.module, dict(scope.names), scope.owner)
        return self.value(node.body if self.truth(self.value(node.test, inner)) else node.orelse, inner)

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Any:
        scope.names[node.target.id] = value = self.value(node.value, scope)
        return value

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Any:
        parts = []
        for each in node.values:
            value = each.value if isinstance(each, ast.Constant) else self._formatted(each, scope)
            if not isinstance(value, str):
                raise TypeError
            parts.append(value)
        return joined(parts)

    def _formatted(self, node: ast.expr, scope: Scope) -> Any:
        if not isinstance(node, ast.FormattedValue) or node.conversion != -1 or node.format_spec is not None:
            raise TypeError
        return self.value(node.value, scope)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        owner, key = self.value(node.value, scope), self.value(node.slice, scope)
        if isinstance(owner, dict | list | tuple) and isinstance(key, str | int):
            return owner[key]  # type: ignore[index]  # a wrong kind of key is a TypeError, which is caught
        raise TypeError

    def _listcomp(self, node: ast.ListComp, scope: Scope) -> Any:
        if len(node.generators) != 1 or node.generators[0].ifs:
            raise TypeError
        generator = node.generators[0]
        if not isinstance(generator.target, ast.Name):
            raise TypeError
        found = []
        for each in self.items(self.value(generator.iter, scope)):
            inner = Scope(scope.module, {**scope.names, generator.target.id: each}, scope.owner)
            found.append(self.value(node.elt, inner))
        if any(isinstance(each, Unknown) for each in found):
            raise TypeError
        return found

    def items(self, value: Any) -> list[Any]:
        """What iterating over a value gives.

        Raises:
            TypeError: nobody knows.
        """
        if isinstance(value, ClassRef):
            return list(self.members(value))
        if isinstance(value, set | frozenset):
            return sorted(value)
        if isinstance(value, list | tuple | dict):
            return list(value)
        raise TypeError

    def truth(self, value: Any) -> bool:
        """Whether a value counts as true.

        Raises:
            TypeError: nobody knows.
        """
        if isinstance(value, dict | list | tuple | set | frozenset) or is_constant(value):
            return bool(value)
        raise TypeError

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        name = text_of(node.func)
        special = self.special.get(name) or self.special.get(name.rpartition(".")[2])
        if special is not None:
            return special(self, node, scope)
        if isinstance(node.func, ast.Attribute):
            return self.method(self.value(node.func.value, scope), node.func.attr, node, scope)
        if name in _BUILTINS and name not in scope.names and scope.module.binding(name) is None:
            return self._builtin(name, node, scope)
        raise TypeError

    def _builtin(self, name: str, node: ast.Call, scope: Scope) -> Any:
        if name == "dict" and not node.args:
            return {each.arg: self.value(each.value, scope) for each in node.keywords if each.arg}
        if node.keywords or len(node.args) > 1:
            raise TypeError
        value = self.value(node.args[0], scope) if node.args else None
        if name in ("list", "tuple", "set", "frozenset", "sorted"):
            items = self.items(value) if node.args else []
            makers: dict[str, Callable[[list[Any]], Any]] = {
                "frozenset": frozenset,
                "list": list,
                "set": set,
                "sorted": sorted,
                "tuple": tuple,
            }
            return makers[name](items)
        if not node.args or not is_constant(value) or (isinstance(value, str) and len(value) > _LONGEST_NUMBER):
            raise TypeError
        convert: dict[str, Callable[[Any], Any]] = {
            "bool": bool,
            "float": float,
            "int": int,
            "str": str,
            "dict": dict,
        }
        return convert[name](value)

    def method(self, owner: Any, name: str, node: ast.Call, scope: Scope) -> Any:
        """What a method of a known value gives.

        Raises:
            TypeError: nobody knows.
        """
        arguments = [self.value(each, scope) for each in node.args]
        if node.keywords or any(isinstance(each, Unknown) for each in arguments):
            raise TypeError
        if isinstance(owner, str):
            return text_method(owner, name, arguments)
        if isinstance(owner, dict) and name == "get" and arguments:
            return owner.get(*arguments)
        if isinstance(owner, dict) and name in ("copy", "items", "keys", "values") and not arguments:
            return owner.copy() if name == "copy" else list(getattr(owner, name)())
        if isinstance(owner, list) and name == "copy" and not arguments:
            return owner.copy()
        raise TypeError
