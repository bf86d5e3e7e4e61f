"""SGLang's arguments and variables, from its source.

Up to 0.5.10 every argument is a call in `ServerArgs.add_cli_args`; later ones come from the annotations of fields,
`A[type, Arg(...)]`, which 0.5.23 has moved to modules of their own.
"""

import ast
from typing import Any

from reproducer.engines.source.arguments import arguments_of, default_of
from reproducer.engines.source.fields import MISSING, DataField, field_call, fields_of
from reproducer.engines.source.modules import Sources
from reproducer.engines.source.parser import Added, ParserReader
from reproducer.engines.source.references import ClassRef, FunctionRef, Parser, Scope, Unknown, text_of
from reproducer.engines.source.values import Values
from reproducer.errors import InvalidDocumentError

_ARGUMENTS = "sglang.srt.server_args"
_VARIABLES = "sglang.srt.environ"
_VARIABLE_KINDS = {"EnvBool": "boolean", "EnvInt": "integer", "EnvFloat": "float", "EnvStr": "text"}
_LIST_NAMES = ("List", "list")


def read_sglang(sources: Sources) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Arguments and variables as plain data.

    Raises:
        InvalidDocumentError: the source is not built as any release that penny knows.
    """
    reader = _Reader(sources)
    reader.read()
    return arguments_of(reader.values, reader.added), _variables(sources, reader.values)


class _Reader(ParserReader):
    """Knows the two functions of SGLang's that are not followed but done."""

    def __init__(self, sources: Sources) -> None:
        super().__init__(
            sources,
            {
                "Field": field_call,
                "field": field_call,
                "_declared_default": self._declared_default,
                "add_cli_args_from_dataclass": self._from_data_class,
            },
        )
        self.module = sources.required(_ARGUMENTS)
        server = self.values.name("ServerArgs", self.module)
        if not isinstance(server, ClassRef):
            raise InvalidDocumentError("has no class ServerArgs", where=f"{sources.where}: {self.module.path}")
        self.server = server

    def read(self) -> None:
        """Follow `ServerArgs.add_cli_args`."""
        try:
            function = self.values.class_attribute(self.server, "add_cli_args")
        except AttributeError:
            function = None
        if not isinstance(function, FunctionRef):
            raise InvalidDocumentError("ServerArgs has no add_cli_args", where=self.module.path)
        self.run(function, [Parser()])

    def fields(self) -> list[DataField]:
        """The fields of ServerArgs: its own, and those that the module collects from other classes."""
        found = {each.name: each for each in fields_of(self.values, self.server)}
        for node in ast.walk(self.module.tree):
            if isinstance(node, ast.Call) and text_of(node.func) == "collect_input_fields" and node.args:
                collected = self.values.value(node.args[0], Scope(self.module))
                if not isinstance(collected, list) or not all(isinstance(each, ClassRef) for each in collected):
                    raise InvalidDocumentError("collects fields from what is no constant", where=self.module.path)
                for owner in collected:
                    for each in fields_of(self.values, owner):
                        found.setdefault(each.name, each)
        return list(found.values())

    def _declared_default(self, values: Values, node: ast.Call, scope: Scope) -> Any:
        name = values.value(node.args[0], scope)
        for each in self.fields():
            if each.name == name and each.default is not MISSING:
                return each.default
        raise TypeError

    def _from_data_class(self, _values: Values, _node: ast.Call, _scope: Scope) -> Any:
        for each in self.fields():
            keywords = self._metadata(each)
            if keywords is not None:
                self._field(each, *keywords)
        return None

    def _metadata(self, field: DataField) -> tuple[ast.expr, dict[str, Any]] | None:
        """The type of a field and its `Arg`; None where the command line has no such argument."""
        node = field.annotation
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
            return None
        if text_of(node.value).rpartition(".")[2] not in ("A", "Annotated"):
            return None
        for each in node.slice.elts[1:]:
            if isinstance(each, ast.Call) and text_of(each.func).rpartition(".")[2] == "Arg":
                keywords = {
                    keyword.arg: self.values.value(keyword.value, field.scope)
                    for keyword in each.keywords
                    if keyword.arg is not None and keyword.arg != "help"
                }
                return None if keywords.get("no_cli") is True else (node.slice.elts[0], keywords)
            if isinstance(each, ast.Constant | ast.JoinedStr | ast.BinOp):
                return node.slice.elts[0], {}
        return None

    def _field(self, field: DataField, kind: ast.expr, given: dict[str, Any]) -> None:
        """One argument as `add_cli_args_from_dataclass` makes it."""
        option = given.get("cli_name") or "--" + field.name.replace("_", "-")
        aliases = given.get("aliases") or []
        if not isinstance(option, str) or not isinstance(aliases, list):
            raise InvalidDocumentError(f"the options of {field.name} are no constants", where=self.module.path)
        keywords: dict[str, Any] = {"dest": field.name}
        if field.default is not MISSING:
            keywords["default"] = field.default
        if given.get("action") is not None:
            extra = given.get("action_kwargs") or {}
            keywords.update(action=given["action"], **(extra if isinstance(extra, dict) else {}))
            self.add(Added((option, *aliases), keywords))
            return
        self._typed(keywords, self._without_none(kind), given, field)
        self.add(Added((option, *aliases), keywords))

    def _typed(self, keywords: dict[str, Any], kind: ast.expr, given: dict[str, Any], field: DataField) -> None:
        name = text_of(kind.value if isinstance(kind, ast.Subscript) else kind).rpartition(".")[2]
        parse = given.get("type_parser")
        if name == "Literal" and isinstance(kind, ast.Subscript):
            options = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
            listed = [self.values.value(each, field.scope) for each in options]
            keywords["choices"] = given.get("choices") or listed
            keywords["type"] = parse or _constructor(type(listed[0]).__name__)
        elif name in _LIST_NAMES and isinstance(kind, ast.Subscript) and parse is None:
            keywords["type"] = _scalar(kind.slice)
            keywords["nargs"] = given.get("nargs") or "+"
            if given.get("choices"):
                keywords["choices"] = given["choices"]
        elif name == "bool":
            keywords["action"] = "store_true"
        else:
            keywords["type"] = parse or _scalar(kind)
            for each in ("choices", "nargs"):
                if given.get(each):
                    keywords[each] = given[each]
            keywords["required"] = given.get("required") is True or (
                given.get("required") is None and field.default is MISSING
            )

    def _without_none(self, node: ast.expr) -> ast.expr:
        """The type X of Optional[X] and X | None."""
        if isinstance(node, ast.Subscript) and text_of(node.value).rpartition(".")[2] == "Optional":
            return node.slice
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            parts = _union(node)
            kept = [each for each in parts if not (isinstance(each, ast.Constant) and each.value is None)]
            return kept[0] if len(kept) == 1 else node
        return node


def _union(node: ast.expr) -> list[ast.expr]:
    found: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        found.append(node.right)
        node = node.left
    return [*found, node]


def _scalar(node: ast.expr) -> Unknown:
    """What parses a value of a type: its own constructor for numbers, text for everything else."""
    return _constructor(text_of(node))


def _constructor(name: str) -> Unknown:
    return Unknown(name if name in ("int", "float") else "str")


def _variables(sources: Sources, values: Values) -> list[dict[str, Any]]:
    """The variables of the class Envs."""
    module = sources.module(_VARIABLES)
    table = values.name("Envs", module) if module is not None else None
    if not isinstance(table, ClassRef):
        return []
    found: dict[str, dict[str, Any]] = {}
    for statement in table.node.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        call, scope = statement.value, Scope(table.module, owner=table)
        kind = _variable_kind(values, values.value(call.func, scope))
        if kind is None:
            continue
        keywords = {each.arg: each.value for each in call.keywords}
        node = call.args[0] if call.args else keywords.get("default")
        default = default_of(values, values.value(node, scope) if node is not None else None)
        for target in statement.targets:
            if isinstance(target, ast.Name):
                found[target.id] = {"name": target.id, "kind": kind, "default": default}
        old = values.value(keywords["deprecated_name"], scope) if "deprecated_name" in keywords else None
        if isinstance(old, str):
            found.setdefault(old, {"name": old, "kind": kind, "default": {}})
    return [found[name] for name in sorted(found)]


def _variable_kind(values: Values, made_by: Any) -> str | None:
    """The kind of variable that a class of the module stands for; None where it stands for none."""
    if not isinstance(made_by, ClassRef):
        return None
    names = [each.node.name for each in values.ancestry(made_by)]
    if "EnvField" not in names:
        return None
    return next((_VARIABLE_KINDS[name] for name in names if name in _VARIABLE_KINDS), "other")
