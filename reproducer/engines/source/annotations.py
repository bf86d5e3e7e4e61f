"""Type annotations, as far as a parser is made from them."""

import ast
from dataclasses import dataclass
from typing import Any

from reproducer.engines.source.fields import is_data_class
from reproducer.engines.source.references import ClassRef, Scope, is_constant, text_of
from reproducer.engines.source.values import Values

_DEEPEST = 20
_BUILTINS = frozenset({"bool", "bytes", "dict", "float", "int", "list", "object", "set", "str", "tuple"})
_GENERICS = {"Dict": "dict", "List": "list", "Set": "set", "Tuple": "tuple"}


@dataclass(frozen=True)
class Hint:
    """One branch of an annotation.

    Attributes:
        kind: a built-in type, `None`, `literal`, `data class`, or `other`.
        options: the values of a literal.
        inner: the annotations of the elements.
        name: what it is called.
    """

    kind: str
    options: tuple[Any, ...] = ()
    inner: tuple[ast.expr, ...] = ()
    name: str = ""
    scope: Scope | None = None


def hints_of(values: Values, node: ast.expr, scope: Scope, depth: int = 0) -> list[Hint]:
    """The branches of an annotation: unions and aliases taken apart."""
    values.spend()
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and depth <= _DEEPEST:
        left = hints_of(values, node.left, scope, depth + 1)
        return left + hints_of(values, node.right, scope, depth + 1)
    if isinstance(node, ast.Constant) and depth <= _DEEPEST:
        return _constant(values, node, scope, depth)
    if isinstance(node, ast.Subscript) and depth <= _DEEPEST:
        return _subscript(values, node, scope, depth)
    if isinstance(node, ast.Name) and depth <= _DEEPEST:
        return _named(values, node.id, scope, depth)
    found = values.value(node, scope) if isinstance(node, ast.Attribute) else None
    return [_of_class(values, found) if isinstance(found, ClassRef) else Hint("other", name=text_of(node))]


def _constant(values: Values, node: ast.Constant, scope: Scope, depth: int) -> list[Hint]:
    if node.value is None:
        return [Hint("None")]
    if isinstance(node.value, str) and len(node.value) <= 1000:  # noqa: PLR2004  a type in quotes is short
        try:
            return hints_of(values, ast.parse(node.value, mode="eval").body, scope, depth + 1)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return [Hint("other", name=text_of(node))]


def _subscript(values: Values, node: ast.Subscript, scope: Scope, depth: int) -> list[Hint]:
    name = text_of(node.value).rpartition(".")[2]
    inner = tuple(node.slice.elts) if isinstance(node.slice, ast.Tuple) else (node.slice,)
    if name in ("Annotated", "A", "Final", "InitVar", "SkipValidation", "SkipJsonSchema"):
        return hints_of(values, inner[0], scope, depth + 1)
    if name == "Optional":
        return [*hints_of(values, inner[0], scope, depth + 1), Hint("None")]
    if name == "Union":
        return [hint for each in inner for hint in hints_of(values, each, scope, depth + 1)]
    if name == "Literal":
        return [Hint("literal", options=_options(values, inner, scope, depth))]
    kind = _GENERICS.get(name, name)
    if kind in _BUILTINS:
        return [Hint(kind, inner=inner, scope=scope)]
    return [Hint("other", name=text_of(node))]


def _options(values: Values, nodes: tuple[ast.expr, ...], scope: Scope, depth: int) -> tuple[Any, ...]:
    """The values of a literal; one may name another."""
    found: list[Any] = []
    for each in nodes:
        value = values.value(each, scope)
        if is_constant(value):
            found.append(value)
            continue
        for hint in hints_of(values, each, scope, depth + 1):
            found += hint.options or [value]
    return tuple(found)


def _named(values: Values, name: str, scope: Scope, depth: int) -> list[Hint]:
    """A name: a built-in type, a class, or an alias wherever it is defined."""
    module = scope.module
    for _ in range(_DEEPEST):
        binding = module.binding(name)
        if binding is None:
            return [Hint(name)] if name in _BUILTINS else [Hint("other", name=name)]
        if isinstance(binding.node, ast.ClassDef):
            return [_of_class(values, ClassRef(module, binding.node))]
        if isinstance(binding.node, ast.expr):
            return hints_of(values, binding.node, Scope(module), depth + 1)
        origin = binding.origin
        if origin is None or origin[1] is None:
            break
        source = values.sources.module(origin[0])
        if source is None:
            break
        module, name = source, origin[1]
    return [Hint("other", name=name)]


def _of_class(values: Values, owner: ClassRef) -> Hint:
    name = owner.node.name
    if is_data_class(owner):
        return Hint("data class", name=name)
    if values.base_names(owner) & {"dict", "Dict"}:
        return Hint("dict", name=name)
    return Hint("other", name=name)
