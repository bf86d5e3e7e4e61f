"""YAML of a stranger as plain data: bounded size, bounded nesting, and aliases that may not multiply.

Scalars keep the text that stands in the file (`0.90` stays `0.90`) and remember what YAML takes them for.
"""

from typing import TYPE_CHECKING, Any, Literal

from reproducer.documents.bounds import DEEPEST
from reproducer.errors import InvalidDocumentError

if TYPE_CHECKING:
    import yaml

LARGEST = 1 << 20
MOST_NODES = 10_000
ScalarKind = Literal["text", "boolean", "number", "nothing"]
_KINDS: dict[str, ScalarKind] = {"bool": "boolean", "int": "number", "float": "number", "null": "nothing"}


class Scalar(str):
    """Text of a scalar.

    Attributes:
        kind: what YAML takes it for.
        line: where it stands.
    """

    __slots__ = ("kind", "line")
    kind: ScalarKind
    line: int

    @classmethod
    def of(cls, text: str, kind: ScalarKind, line: int) -> "Scalar":
        """A scalar with its kind and line."""
        made = cls(text)
        made.kind, made.line = kind, line
        return made


def parse_yaml(text: str, *, where: str) -> Any:
    """Plain data: dicts, lists and `Scalar`; merge keys (`<<`) are filled in.

    Raises:
        InvalidDocumentError: not YAML, too large, too deep, or aliases that would become too much.
    """
    import yaml

    if len(text) > LARGEST:
        raise InvalidDocumentError(f"is larger than {LARGEST} bytes", where=where)
    depth = 0
    try:
        for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if count > MOST_NODES or depth > DEEPEST:
                raise InvalidDocumentError(f"holds more than {MOST_NODES} values or nests them too deep", where=where)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        raise InvalidDocumentError(
            f"{line}not YAML", where=where, why=str(getattr(error, "problem", None) or error).splitlines()[0]
        ) from error
    except (RecursionError, ValueError) as error:
        raise InvalidDocumentError("not YAML", where=where, why=str(error)) from error
    return None if root is None else _Builder(where).data(root)


class _Builder:
    """Nodes to data; every node counts each time it is used, so that a bomb of aliases is refused before it grows."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.left = MOST_NODES
        self.open: set[int] = set()

    def data(self, node: "yaml.Node") -> Any:
        import yaml

        self.left -= 1
        if self.left < 0:
            raise InvalidDocumentError(f"its aliases make more than {MOST_NODES} values", where=self.where)
        if isinstance(node, yaml.ScalarNode):
            kind = _KINDS.get(node.tag.rpartition(":")[2], "text")
            return Scalar.of(node.value, kind, node.start_mark.line + 1)
        if id(node) in self.open or len(self.open) > DEEPEST:
            raise InvalidDocumentError("an alias stands inside what it names", where=self.where)
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.data(each) for each in node.value]
            return self._table(node)
        finally:
            self.open.discard(id(node))

    def _table(self, node: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            name = getattr(key, "value", None)
            if not isinstance(name, str):
                raise InvalidDocumentError(f"line {key.start_mark.line + 1}: a key is no plain text", where=self.where)
            if key.tag.endswith(":merge"):
                inner = self.data(value)
                for each in reversed(inner if isinstance(inner, list) else [inner]):
                    merged |= each if isinstance(each, dict) else {}
                continue
            if name in found:
                raise InvalidDocumentError(
                    f"line {key.start_mark.line + 1}: key {name[:80]!r} stands twice", where=self.where
                )
            found[name] = self.data(value)
        return {**merged, **found}
