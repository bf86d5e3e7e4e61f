"""From what an engine adds to its parser to the arguments of the document."""

import ast
from typing import Any

from reproducer.canonical import canonical_bytes
from reproducer.engines.source.parser import Added
from reproducer.engines.source.references import ClassRef, FunctionRef, Member, Scope, Unknown
from reproducer.engines.source.values import Values
from reproducer.errors import InvalidDocumentError

# What parses a value, by the last word of its name.
_KINDS = {
    "int": "integer",
    "float": "float",
    "str": "text",
    "nullable_str": "text",
    "loads": "json",
    "json_list_type": "json",
}
_FLAGS = {"store_true": False, "store_false": True}
_SEVERAL = ("+", "*")


def default_of(values: Values, value: Any) -> dict[str, Any]:
    """A `Default` as plain data: the value where it is a constant that JSON carries, else its source text."""
    if isinstance(value, Unknown):
        return {"expression": value.text}
    found = plain(values, value)
    if isinstance(found, Unknown):
        return {"expression": found.text}
    try:
        canonical_bytes({"value": found})
    except InvalidDocumentError:
        return {"expression": repr(found)[:1000]}
    return {"value": found}


def plain(values: Values, value: Any) -> Any:
    """A value as JSON has it; Unknown where a part of it is not known."""
    if isinstance(value, Member):
        return values.plain(value)
    if isinstance(value, ClassRef | FunctionRef):
        return Unknown(value.node.name if isinstance(value, ClassRef) else f"{value.node.name}()")
    if isinstance(value, dict):
        parts = plain(values, list(value.values()))
        return parts if isinstance(parts, Unknown) else dict(zip(map(str, value), parts, strict=True))
    if isinstance(value, list | tuple | set | frozenset):
        items = [plain(values, each) for each in value]
        unknown = next((each for each in items if isinstance(each, Unknown)), None)
        return unknown or (sorted(items, key=str) if isinstance(value, set | frozenset) else items)
    known = value is None or isinstance(value, bool | int | float | str | Unknown)
    return value if known else Unknown(type(value).__name__)


def arguments_of(values: Values, added: list[Added]) -> list[dict[str, Any]]:
    """The arguments, by name; where two branches add the same one, the first counts."""
    found: dict[str, dict[str, Any]] = {}
    taken: set[str] = set()
    for each in added:
        names = [option[2:] for option in each.options if option.startswith("--")]
        names = [name for name in dict.fromkeys(names) if name not in taken]
        if names:
            taken.update(names)
            found[names[0]] = _argument(values, each, names)
    return [found[name] for name in sorted(found)]


def _argument(values: Values, added: Added, names: list[str]) -> dict[str, Any]:
    keywords = added.keywords
    action = keywords.get("action")
    kind, several, bare = _shape(values, keywords)
    choices = keywords.get("choices")
    field = keywords.get("dest")
    default = keywords.get("default", _FLAGS.get(action) if isinstance(action, str) else None)
    if "default" not in keywords and isinstance(action, ClassRef) and kind == "flag":
        default = _parameter_default(values, action, "default")
    found: dict[str, Any] = {
        "name": names[0],
        "field": field if isinstance(field, str) else names[0].replace("-", "_"),
        "aliases": names[1:],
        "kind": kind,
        "several": several,
        "bare": bare,
        "required": keywords.get("required") is True,
        "default": default_of(values, default),
        "ignored": isinstance(action, ClassRef) and _does_nothing(values, action, keywords),
    }
    listed = plain(values, choices) if choices is not None and not isinstance(choices, Unknown) else None
    if isinstance(choices, ClassRef):
        listed = None
    if isinstance(listed, list):
        found["choices"] = [str(each) for each in listed]
    return found


def _shape(values: Values, keywords: dict[str, Any]) -> tuple[str, bool, bool]:
    """Kind, whether it takes several values, whether it may stand without one."""
    action, count = keywords.get("action"), keywords.get("nargs")
    if isinstance(action, str) and action in (*_FLAGS, "store_const", "count"):
        return "flag", False, False
    if isinstance(action, Unknown) and action.text.rpartition(".")[2] == "BooleanOptionalAction":
        return "toggle", False, False
    if isinstance(action, ClassRef) and "nargs" not in keywords:
        count = _parameter_default(values, action, "nargs")
    if count == 0 and not isinstance(count, bool):
        return "flag", False, False
    several = count in _SEVERAL or (isinstance(count, int) and count > 0) or action in ("append", "extend")
    return _kind(keywords.get("type"), own=isinstance(action, ClassRef)), several, count == "?"


def _kind(parse: Any, *, own: bool) -> str:
    """The kind of a value by what parses it; `own` where an action of the engine's own parses it further."""
    if parse is None:
        return "other" if own else "text"
    name = parse.node.name if isinstance(parse, FunctionRef) else parse.text if isinstance(parse, Unknown) else ""
    return _KINDS.get(name.rpartition(".")[2], "other")


def _method(values: Values, action: ClassRef, name: str) -> FunctionRef | None:
    try:
        found = values.class_attribute(action, name)
    except AttributeError:
        return None
    return found if isinstance(found, FunctionRef) else None


def _parameter_default(values: Values, action: ClassRef, name: str) -> Any:
    """What an action's own constructor takes for a parameter that nobody names."""
    method = _method(values, action, "__init__")
    if method is None:
        return None
    arguments = method.node.args
    plain_names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    pairs = [
        *zip(plain_names[len(plain_names) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip([each.arg for each in arguments.kwonlyargs], arguments.kw_defaults, strict=True),
    ]
    node = dict(pairs).get(name)
    return values.value(node, Scope(method.module)) if node is not None else None


def _does_nothing(values: Values, action: ClassRef, keywords: dict[str, Any]) -> bool:
    """Whether an action neither keeps a value nor stops the engine."""
    method = _method(values, action, "__call__")
    if method is None or keywords.get("error_message") is not None:
        return False
    guarded = {
        id(inner)
        for node in ast.walk(method.node)
        if isinstance(node, ast.If) and "error_message" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(method.node):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Raise | ast.Assert):
            return False
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("setattr", "error", "exit"):
            return False
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            return False
    return True
