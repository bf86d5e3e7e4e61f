"""The fields of data classes: names in order, annotations, defaults."""

import ast
from dataclasses import dataclass
from typing import Any

from reproducer.engines.source.references import ClassRef, Scope, Unknown, text_of
from reproducer.engines.source.values import Values


class Missing:
    """A field without a default."""


MISSING = Missing()


@dataclass(frozen=True)
class DataField:
    """One field of a data class."""

    name: str
    annotation: ast.expr
    scope: Scope
    default: Any


def is_data_class(owner: ClassRef) -> bool:
    """Whether a decorator makes the class one."""
    for decorator in owner.node.decorator_list:
        node = decorator.func if isinstance(decorator, ast.Call) else decorator
        if text_of(node).rpartition(".")[2] in ("config", "dataclass"):
            return True
    return False


def fields_of(values: Values, owner: ClassRef) -> list[DataField]:
    """All fields, those of the bases first; a field that is declared again keeps its place."""
    found: dict[str, DataField] = {}
    for each in reversed(values.ancestry(owner)):
        scope = Scope(each.module, owner=each)
        for statement in each.node.body:
            values.spend()
            if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
                continue
            annotation = text_of(statement.annotation)
            if annotation.partition("[")[0].rpartition(".")[2] in ("ClassVar", "InitVar"):
                continue
            default = values.value(statement.value, scope) if statement.value is not None else MISSING
            name = statement.target.id
            found[name] = DataField(name, statement.annotation, scope, default)
    return list(found.values())


def field_call(values: Values, node: ast.Call, scope: Scope) -> Any:
    """What `field(...)`, `Field(...)` give as a default."""
    keywords = {each.arg: each.value for each in node.keywords}
    factory = keywords.get("default_factory")
    if isinstance(factory, ast.Lambda):
        return values.value(factory.body, scope)
    if factory is not None:
        name = text_of(factory)
        return {"list": [], "dict": {}, "set": []}.get(name, Unknown(f"{name}()"))
    default = keywords.get("default", node.args[0] if node.args else None)
    return values.value(default, scope) if default is not None else MISSING


def field_default(values: Values, owner: ClassRef, name: str) -> Any:
    """The default of one field.

    Raises:
        TypeError: no such field, or none.
    """
    for each in fields_of(values, owner):
        if each.name == name:
            if each.default is MISSING:
                break
            return each.default
    raise TypeError
