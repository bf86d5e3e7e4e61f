"""Python source files of a package, parsed and never run: which name each module binds to what."""

import ast
import hashlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from reproducer.documents.base import FileReference
from reproducer.errors import InvalidDocumentError

ReadFile = Callable[[str], bytes | None]
ListFiles = Callable[[str], tuple[str, ...]]

LARGEST_FILE = 1 << 20
_MOST_FILES = 256
_MOST_BYTES = 12 << 20
_MUTATORS = frozenset({"add", "append", "clear", "discard", "extend", "insert", "pop", "remove", "sort", "update"})


@dataclass(frozen=True)
class Binding:
    """What a name stands for at the top of a module.

    Attributes:
        node: the expression, class or function; None for an import.
        origin: module and name (None for the module itself) of an import.
        sure: whether it is bound whatever the machine is.
    """

    node: ast.expr | ast.ClassDef | ast.FunctionDef | None
    origin: tuple[str, str | None] | None = None
    sure: bool = True


@dataclass
class Module:
    """One parsed file.

    Attributes:
        changed: names whose values the module changes in place after it bound them.
    """

    name: str
    path: str
    package: bool
    tree: ast.Module
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)

    def binding(self, name: str) -> Binding | None:
        """The one thing a name stands for; None where it is bound to several, or nobody can say which.

        A class wins over an assignment to its name: a module may rebuild a class from itself.
        """
        found = self.bindings.get(name, [])
        classes = [each for each in found if isinstance(each.node, ast.ClassDef)]
        if len(classes) == 1 and classes[0].sure:
            return classes[0]
        if len(found) != 1 or not found[0].sure or name in self.changed:
            return None
        return found[0]


class Sources:
    """The files of one package, each read and parsed once; it remembers which it opened."""

    def __init__(self, where: str, read: ReadFile, list_files: ListFiles) -> None:
        self.where = where
        self.list_files = list_files
        self._read = read
        self._modules: dict[str, Module | None] = {}
        self._opened: dict[str, FileReference] = {}

    @property
    def files(self) -> tuple[FileReference, ...]:
        """The files that were opened."""
        return tuple(self._opened[path] for path in sorted(self._opened))

    def required(self, name: str) -> Module:
        """A module that must be there.

        Raises:
            InvalidDocumentError: it is not there, or not Python.
        """
        found = self.module(name)
        if found is None:
            raise InvalidDocumentError(f"has no module {name}", where=self.where)
        return found

    def module(self, name: str) -> Module | None:
        """A module by its dotted name; None where the package has none.

        Raises:
            InvalidDocumentError: it is there and is not Python, or too much.
        """
        if name not in self._modules:
            self._modules[name] = self._load(name)
        return self._modules[name]

    def _load(self, name: str) -> Module | None:
        parts = name.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        stem = "/".join(parts)
        for path, package in ((f"{stem}/__init__.py", True), (f"{stem}.py", False)):
            data = self._read(path)
            if data is not None:
                module = Module(name, path, package, self._parse(path, data))
                _bind(module, module.tree.body, sure=True)
                return module
        return None

    def _parse(self, path: str, data: bytes) -> ast.Module:
        where = f"{self.where}: {path}"
        if len(data) > LARGEST_FILE:
            raise InvalidDocumentError(f"is larger than {LARGEST_FILE} bytes", where=where)
        self._opened[path] = FileReference(path=path, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
        if len(self._opened) > _MOST_FILES or sum(each.size for each in self._opened.values()) > _MOST_BYTES:
            raise InvalidDocumentError("takes too many files to read its arguments", where=self.where)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(data.decode("utf-8"))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            why = str(error) or "nested too deeply"
            raise InvalidDocumentError("is no Python that can be read", where=where, why=why) from error


def _bind(module: Module, body: list[ast.stmt], *, sure: bool) -> None:
    """Collect what statements bind; what stands below a condition is not sure."""
    for statement in body:
        if isinstance(statement, ast.If):
            if ast.unparse(statement.test).rpartition(".")[2] == "TYPE_CHECKING":
                _bind(module, statement.orelse, sure=sure)
            else:
                _bind(module, statement.body, sure=False)
                _bind(module, statement.orelse, sure=False)
        elif isinstance(statement, ast.Try | ast.With | ast.For | ast.While):
            for inner in bodies(statement):
                _bind(module, inner, sure=False)
        else:
            for name, binding in bound(module, statement, sure=sure):
                module.bindings.setdefault(name, []).append(binding)
            module.changed.update(changed(statement))


def bodies(statement: ast.Try | ast.With | ast.For | ast.While) -> Iterator[list[ast.stmt]]:
    """The blocks of a statement."""
    yield statement.body
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
    for name in ("orelse", "finalbody"):
        yield getattr(statement, name, [])


def bound(module: Module, statement: ast.stmt, *, sure: bool = True) -> Iterator[tuple[str, Binding]]:
    """The names that one plain statement binds."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        yield statement.name, Binding(statement, sure=sure)
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        yield from _assigned(statement, sure=sure)
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id, Binding(None, sure=False)
    elif isinstance(statement, ast.Import):
        for alias in statement.names:
            name = alias.asname or alias.name.partition(".")[0]
            yield name, Binding(None, (alias.name if alias.asname else name, None), sure=sure)
    elif isinstance(statement, ast.ImportFrom):
        origin = _origin(module, statement)
        for alias in statement.names:
            yield alias.asname or alias.name, Binding(None, (origin, alias.name), sure=sure)


def _assigned(statement: ast.Assign | ast.AnnAssign, *, sure: bool) -> Iterator[tuple[str, Binding]]:
    """The names that an assignment binds; those that it takes a value apart for are not followed."""
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        if isinstance(target, ast.Name) and statement.value is not None:
            yield target.id, Binding(statement.value, sure=sure)
        elif isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                if isinstance(each, ast.Name):
                    yield each.id, Binding(None, sure=False)


def _origin(module: Module, statement: ast.ImportFrom) -> str:
    """The dotted name of the module that names are imported from."""
    if not statement.level:
        return statement.module or ""
    parts = module.name.split(".")
    kept = parts[: len(parts) - statement.level + module.package]
    return ".".join((*kept, statement.module) if statement.module else kept)


def changed(statement: ast.stmt) -> Iterator[str]:
    """The names whose values a statement changes in place."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr in _MUTATORS and isinstance(function.value, ast.Name):
            yield function.value.id
    targets = statement.targets if isinstance(statement, ast.Assign | ast.Delete) else ()
    for target in targets:
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            yield target.value.id
