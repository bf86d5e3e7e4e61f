"""vLLM's arguments and variables, from its source.

The parser is filled by the front end's `make_arg_parser`; nearly every argument takes its type and default from a field
of a configuration class, through `get_kwargs`.
"""

import ast
from typing import Any

from reproducer.engines.source.annotations import Hint, hints_of
from reproducer.engines.source.arguments import arguments_of, default_of
from reproducer.engines.source.fields import MISSING, DataField, field_call, field_default, fields_of
from reproducer.engines.source.modules import Module, Sources
from reproducer.engines.source.parser import Keywords, ParserReader
from reproducer.engines.source.references import ClassRef, FunctionRef, Parser, Scope, Unknown, text_of
from reproducer.engines.source.values import Values
from reproducer.errors import InvalidDocumentError

_ENGINE = "vllm.engine.arg_utils"
_VARIABLES = "vllm.envs"
_FRONT_END = "make_arg_parser"
_FRONT_ENDS = ("vllm.entrypoints.openai.cli_args", "vllm.entrypoints.launchers.cli_args")
_CHOICES = frozenset({"env_with_choices", "env_list_with_choices", "env_set_with_choices"})
_VARIABLE_KINDS = {"bool": "boolean", "int": "integer", "float": "float", "str": "text"}


def read_vllm(sources: Sources) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Arguments and variables as plain data.

    Raises:
        InvalidDocumentError: the source is not built as any release that penny knows.
    """
    reader = _Reader(sources)
    front_end = _front_end(sources)
    function = reader.values.name(_FRONT_END, front_end)
    if not isinstance(function, FunctionRef):
        raise InvalidDocumentError(f"has no function {_FRONT_END}", where=f"{sources.where}: {front_end.path}")
    reader.run(function, [Parser()])
    return arguments_of(reader.values, reader.added), _variables(sources)


def _front_end(sources: Sources) -> Module:
    """The module that makes the server's parser; releases have moved it."""
    for name in _FRONT_ENDS:
        module = sources.module(name)
        if module is not None and _FRONT_END in module.bindings:
            return module
    paths = [path for path in sources.list_files("vllm/entrypoints") if path.endswith("/cli_args.py")]
    for path in sorted(paths):
        module = sources.module(path.removesuffix(".py").replace("/", "."))
        if module is not None and _FRONT_END in module.bindings:
            return module
    raise InvalidDocumentError(f"has no module below vllm/entrypoints with {_FRONT_END}", where=sources.where)


class _Reader(ParserReader):
    """Knows `get_kwargs`, which makes keywords of `add_argument` from a configuration class."""

    def __init__(self, sources: Sources) -> None:
        super().__init__(
            sources,
            {
                "Field": field_call,
                "field": field_call,
                "get_args": _get_args,
                "get_field": _get_field,
                "get_kwargs": self._get_kwargs,
                "optional_type": _inner_type,
                "parse_type": _inner_type,
            },
        )
        self._own_numbers, self._bare = _special_cases(sources.required(_ENGINE))

    def _get_kwargs(self, values: Values, node: ast.Call, scope: Scope) -> Any:
        owner = values.value(node.args[0], scope)
        if not isinstance(owner, ClassRef):
            raise InvalidDocumentError(
                f"takes arguments from {text_of(node.args[0])}, which is no class of it", where=values.sources.where
            )
        found = Keywords()
        for each in fields_of(values, owner):
            found[each.name] = self._keywords(values, each)
        return found

    def _keywords(self, values: Values, field: DataField) -> Keywords:
        """The keywords of one field, in the order in which the engine tries the types."""
        hints = hints_of(values, field.annotation, field.scope)
        found = Keywords(default=None if field.default is MISSING else field.default)
        kinds = {each.kind for each in hints}
        by_kind = {each.kind: each for each in reversed(hints)}
        if "data class" in kinds:
            found["type"] = Unknown("json.loads")
        elif self._bare and kinds == {"bool", "str", "None"}:
            found.update(type=Unknown("str"), nargs="?")
        elif "bool" in kinds:
            found["action"] = Unknown("argparse.BooleanOptionalAction")
        elif "literal" in kinds:
            found.update(_literal(by_kind["literal"], closed="str" not in kinds))
        elif kinds & {"tuple", "list", "set"}:
            kind = next(each for each in ("tuple", "list", "set") if each in kinds)
            found.update(_collection(values, by_kind[kind]))
        elif "int" in kinds:
            found["type"] = Unknown("human_readable_int" if field.name in self._own_numbers else "int")
        elif "float" in kinds:
            found["type"] = Unknown("float")
        elif "dict" in kinds:
            found["type"] = Unknown("union_dict_and_str" if kinds & {"str", "other"} else "json.loads")
        else:
            found["type"] = Unknown("str")
        if "None" in kinds and isinstance(found.get("choices"), list):
            found["choices"].append("None")
        return found


def _literal(hint: Hint, *, closed: bool) -> dict[str, Any]:
    """Keywords for the values of a literal; they are choices unless any other text goes too."""
    kind = Unknown(type(hint.options[0]).__name__ if hint.options else "str")
    if not closed or any(isinstance(each, Unknown) for each in hint.options):
        return {"type": kind}
    return {"type": kind, "choices": sorted(hint.options)}


def _collection(values: Values, hint: Hint) -> dict[str, Any]:
    """Keywords for a list, tuple or set."""
    inner = [each for each in hint.inner if not (isinstance(each, ast.Constant) and each.value is Ellipsis)]
    fixed = hint.kind == "tuple" and len(inner) == len(hint.inner)
    found: dict[str, Any] = {"type": Unknown("str"), "nargs": len(inner) if fixed and inner else "+"}
    if inner and hint.scope is not None:
        hints = hints_of(values, inner[0], hint.scope)
        if len(hints) == 1 and hints[0].kind in ("int", "float"):
            found["type"] = Unknown(hints[0].kind)
        elif len(hints) == 1 and hints[0].kind == "literal":
            found.update(_literal(hints[0], closed=True))
    return found


def _get_args(values: Values, node: ast.Call, scope: Scope) -> Any:
    """`get_args` of a literal: its values."""
    hints = hints_of(values, node.args[0], scope)
    if len(hints) != 1 or hints[0].kind != "literal":
        raise TypeError
    return hints[0].options


def _get_field(values: Values, node: ast.Call, scope: Scope) -> Any:
    owner, name = (values.value(each, scope) for each in node.args[:2])
    if not isinstance(owner, ClassRef) or not isinstance(name, str):
        raise TypeError
    return field_default(values, owner, name)


def _inner_type(values: Values, node: ast.Call, scope: Scope) -> Any:
    """`optional_type(x)` parses as x does, and takes a word for none."""
    return values.value(node.args[0], scope)


def _special_cases(module: Module) -> tuple[frozenset[str], bool]:
    """Fields whose numbers the engine parses by code of its own, and whether a boolean or text may stand bare."""
    for name in ("_compute_kwargs", "get_kwargs"):
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                words = {
                    each.value
                    for each in ast.walk(node)
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                }
                sets = {text_of(each) for each in ast.walk(node) if isinstance(each, ast.Set)}
                return frozenset(word for word in words if word.isidentifier()), "{bool, str, type(None)}" in sets
    raise InvalidDocumentError("has no function get_kwargs", where=module.path)


def _variables(sources: Sources) -> list[dict[str, Any]]:
    """The table `environment_variables`: a function for each name, read for a machine that sets none of them."""
    module = sources.module(_VARIABLES)
    table = next((each.node for each in module.bindings.get("environment_variables", ())), None) if module else None
    if module is None or not isinstance(table, ast.Dict):
        return []
    values = Values(
        sources,
        {
            "os.getenv": _unset,
            "os.environ.get": _unset,
            "in os.environ": lambda *_: False,
            **dict.fromkeys(_CHOICES, _chosen),
        },
    )
    kinds = _variable_kinds(module)
    found: dict[str, dict[str, Any]] = {}
    for key, node in zip(table.keys, table.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            default = values.value(node.body if isinstance(node, ast.Lambda) else node, Scope(module))
            found[key.value] = {
                "name": key.value,
                "kind": kinds.get(key.value, "other"),
                "default": default_of(values, default),
            }
    return [found[name] for name in sorted(found)]


def _chosen(values: Values, node: ast.Call, scope: Scope) -> Any:
    """The default that `env_with_choices` and the like are given."""
    named = next((each.value for each in node.keywords if each.arg == "default"), None)
    return values.value(named or node.args[1], scope)


def _unset(values: Values, node: ast.Call, scope: Scope) -> Any:
    """`os.getenv` of a variable that is not set: its second argument, or nothing."""
    return values.value(node.args[1], scope) if len(node.args) > 1 else None


def _variable_kinds(module: Module) -> dict[str, str]:
    """The kinds of variables by the annotations that stand below TYPE_CHECKING."""
    found = {}
    for statement in module.tree.body:
        if isinstance(statement, ast.If) and text_of(statement.test).rpartition(".")[2] == "TYPE_CHECKING":
            for each in statement.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    found[each.target.id] = _annotated_kind(each.annotation)
    return found


def _annotated_kind(node: ast.expr) -> str:
    name = text_of(node)
    parts = [part.strip() for part in name.split("|")]
    kept = [part for part in parts if part != "None"]
    if name.startswith("Optional[") and name.endswith("]"):
        kept = [name[len("Optional[") : -1]]
    if len(kept) == 1 and kept[0].startswith("Literal['"):
        return "text"
    return _VARIABLE_KINDS.get(kept[0], "other") if len(kept) == 1 else "other"
