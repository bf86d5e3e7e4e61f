"""The launch of a running server as a lock states it: placeholders for paths, files beside it, no secrets."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reproducer.documents.base import parse_json, shown
from reproducer.documents.environment import Unknown
from reproducer.documents.lock import ArgumentValue, EngineKind, Launch, Readiness, Role
from reproducer.engines import engine_of
from reproducer.engines.persistent import NAMESPACE
from reproducer.engines.refused import REFUSED
from reproducer.errors import InvalidDocumentError, PennyError
from reproducer.freeze.beside import path_of
from reproducer.freeze.naming import named_in
from reproducer.importing.secrets import is_secret
from reproducer.locking.files import read_inside, reference

_ABSOLUTE = re.compile(r"""(?:^|[\s"'=:,])(?:file:/+|~?/)[A-Za-z0-9._~-]""")
_NO_PATHS = frozenset({"fastapi-root-path", "root-path"})
_FILE_ENDINGS = (".jinja", ".json", ".jsonl", ".toml", ".txt", ".yaml", ".yml")
_LARGEST_FILE = 4 << 20
_CHECKPOINTS = frozenset({"model", "model-path", "speculative-draft-model-path", "tokenizer", "tokenizer-path"})
_TABLES = frozenset({"speculative-config"})
_KEYS = ("launch.arguments.", "launch.environment.")
_PLACE = "it names a place on this machine, which no lock carries; a launch of the lock goes without it"
_CHOSEN = "penny chooses it"


@dataclass(frozen=True)
class Told:
    """A checkpoint as the command line names it.

    Attributes:
        text: the word there.
        folder: where it lies.
    """

    text: str
    folder: Path


@dataclass
class Placing:
    """Gives everything of a launch its place in a lock, or says why it has none.

    Attributes:
        folder: where files beside the lock lie, relative to it.
        files: those files, by path.
    """

    kind: EngineKind
    cwd: Path
    checkpoints: Mapping[Role, Told]
    folder: str
    files: dict[str, bytes] = field(default_factory=dict)
    unknown: list[Unknown] = field(default_factory=list)
    left_out: list[Unknown] = field(default_factory=list)
    _named: dict[str, str] = field(default_factory=dict)

    def launch(self, module: str, arguments: Mapping[str, ArgumentValue], environment: Mapping[str, str]) -> Launch:
        """The launch, without effective values."""
        kept = {
            name: value
            for name, given in sorted(arguments.items())
            if (value := self._argument(name, given)) is not None
        }
        raw = Launch(
            module=module,
            arguments=kept,
            environment=dict(environment),
            effective={},
            readiness=Readiness(endpoint=engine_of(self.kind).ready_endpoint),
        )
        stored = self._stores(raw)
        arguments_out: dict[str, ArgumentValue] = {}
        for name, value in stored.arguments.items():
            placed = self._placed(name, value)
            if placed is not None and not self._is_of_machine(f"launch.arguments.{name}", placed):
                arguments_out[name] = placed
            elif placed is None:
                self.unknown.append(Unknown(key=f"launch.arguments.{name}", why=_PLACE))
        variables: dict[str, str] = {}
        for name, text in stored.environment.items():
            value = self._with_placeholders(text)
            if _ABSOLUTE.search(value):
                self.unknown.append(Unknown(key=f"launch.environment.{name}", why=_PLACE))
            elif not self._is_of_machine(f"launch.environment.{name}", value):
                variables[name] = value
        named = {name: reference(path, self.files[path]) for name, path in sorted(self._named.items())}
        return stored.model_copy(update={"arguments": arguments_out, "environment": variables, "files": named or None})

    def _is_of_machine(self, key: str, value: ArgumentValue) -> bool:
        """Whether a value, its paths replaced, still names this machine or a person; it is noted then."""
        texts = value if isinstance(value, tuple) else (value,)
        what = next((found for each in texts if isinstance(each, str) and (found := named_in(each))), "")
        if what:
            self.unknown.append(Unknown(key=key, why=f"it holds {what}, which must not leave this machine"))
        return bool(what)

    def _argument(self, name: str, value: ArgumentValue) -> ArgumentValue | None:
        """An argument that a lock may carry; None, with a note, for one that it may not."""
        key = f"launch.arguments.{name}"
        texts = value if isinstance(value, tuple) else (value,)
        if is_secret(name, " ".join(each for each in texts if isinstance(each, str))):
            self.left_out.append(Unknown(key=key, why="a secret; its value was not kept"))
            return None
        if (why := REFUSED[self.kind].get(name)) is not None:
            (self.left_out if why == _CHOSEN else self.unknown).append(Unknown(key=key, why=why))
            return None
        if any(isinstance(each, str) and not _is_text(each) for each in texts):
            self.unknown.append(Unknown(key=key, why="its value is no text that a lock carries"))
            return None
        return value

    def _stores(self, launch: Launch) -> Launch:
        """The launch with every folder of pages that outlive the server replaced by the namespace."""
        launch = self._inlined(launch)
        try:
            stores = engine_of(self.kind).persistent_store(launch)
        except PennyError as error:
            self.unknown.append(Unknown(key="launch", why=f"where pages outlive the server: {shown(error.what)}"))
            return launch
        arguments, environment = dict(launch.arguments), dict(launch.environment)
        for store in stores:
            if not store.folder or store.folder.startswith(NAMESPACE):
                continue
            path = str(self.cwd / store.folder)
            self.left_out.append(
                Unknown(
                    key=store.where, why="the folder of the pages: a launch of the lock keeps them in its namespace"
                )
            )
            inside = f"{NAMESPACE}/{os.path.basename(path)}" if store.is_file else NAMESPACE  # noqa: PTH119
            for table in (arguments, environment):
                for name, value in table.items():
                    if store.where.startswith(_KEYS[table is environment] + name) and isinstance(value, str):
                        table[name] = value.replace(store.folder, inside)
        return launch.model_copy(update={"arguments": arguments, "environment": environment})

    def _inlined(self, launch: Launch) -> Launch:
        """Arguments that are read from a JSON file (`@FILE`) as that JSON itself."""
        arguments = dict(launch.arguments)
        for name, value in launch.arguments.items():
            if not (isinstance(value, str) and value.startswith("@")):
                continue
            path = self.cwd / value[1:]
            try:
                data = read_inside(path.parent, path.name, where=f"launch.arguments.{name}")
                parse_json(data, where=path.name, limit=_LARGEST_FILE)
                arguments[name] = " ".join(data.decode("utf-8").split())
            except (PennyError, UnicodeDecodeError, InvalidDocumentError):
                del arguments[name]
                why = "it is read from a file that is not there any more or is no JSON"
                self.unknown.append(Unknown(key=f"launch.arguments.{name}", why=why))
        return launch.model_copy(update={"arguments": arguments})

    def _placed(self, name: str, value: ArgumentValue) -> ArgumentValue | None:
        """An argument with placeholders instead of paths; None where a path is left."""
        if isinstance(value, tuple):
            several = [self._placed(name, each) for each in value]
            return None if any(each is None for each in several) else tuple(str(each) for each in several)
        if not isinstance(value, str):
            return value
        text = self._with_placeholders(value, name)
        if (file := self._file(name, text)) is not None:
            return file
        return None if _ABSOLUTE.search(text) and name not in _NO_PATHS else text

    def _with_placeholders(self, text: str, name: str = "") -> str:
        """Text with placeholders for the checkpoints' folders; where it names a checkpoint, for its name too."""
        for role, told in sorted(self.checkpoints.items(), key=lambda item: -len(str(item[1].folder))):
            placeholder = f"{{checkpoint.{role}}}"
            if text == told.text and name in _CHECKPOINTS:
                return placeholder
            if name in _TABLES:
                text = text.replace(json.dumps(told.text), json.dumps(placeholder))
            for path in {str(told.folder), told.text if told.text.startswith("/") else str(told.folder)}:
                text = re.sub(rf"{re.escape(path.rstrip('/'))}/?(?=$|[^A-Za-z0-9._/-])", f"{{checkpoint.{role}}}", text)
        return text

    def _file(self, name: str, text: str) -> str | None:
        """The placeholder of a small file that an argument names, which is put beside the lock; None for other text."""
        if "\n" in text or len(text) > os.pathconf("/", "PC_PATH_MAX") or "{" in text:
            return None
        path = self.cwd / text
        if not (text.startswith("/") or text.endswith(_FILE_ENDINGS)) or not path.is_file():
            return None
        try:
            data = read_inside(path.parent, path.name, where=f"launch.arguments.{name}")
        except PennyError:
            return None
        if len(data) > _LARGEST_FILE:
            return None
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        beside = path_of(self.folder, slug, path.suffix if path.suffix in _FILE_ENDINGS else "", data)
        self.files[beside] = data
        self._named[slug] = beside
        return f"{{file.{slug}}}"


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
