"""The packages of an interpreter as they lie there: what each recorded, what is there now, and what nobody recorded.

Nothing of them is imported. The interpreter itself is asked for its version and the folders of its packages, without
its site module, so that no code of any package runs.
"""

import base64
import csv
import io
import os
import re
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from reproducer.canonical import content_digest
from reproducer.documents.base import parse_json, shown
from reproducer.documents.environment import UNKNOWN, Distribution, DriftedFile, LooseFile
from reproducer.errors import InvalidDocumentError, NotCheckedError, UnsafeInputError, UsageError
from reproducer.freeze.notes_on_disk import small_file
from reproducer.progress import Reporter
from reproducer.store.hashing import hash_file, workers_here

_PROBE = """
import json, os, site, sys
prefixes, venv = [sys.prefix], sys.argv[1]
if venv:
    sys.prefix = venv  # as `site` would have it: Debian's looks elsewhere where this is no virtual environment
    prefixes = [venv] + ([sys.base_prefix] if sys.argv[2] else [])
places = []
for each in site.getsitepackages(prefixes):
    each = os.path.realpath(each)
    if os.path.isdir(each) and each not in places:
        places.append(each)
print(json.dumps({"python": "%d.%d.%d" % sys.version_info[:3], "implementation": sys.implementation.name,
                  "places": places}))
"""
_PATIENCE_S = 60
_LARGEST_PROBE = 1 << 20
_LARGEST_RECORD = 64 << 20
_LARGEST_METADATA = 1 << 20
_MOST_ROWS = 500_000
_MOST_LOOSE = 20_000
_MOST_DRIFTED = 20_000  # of one package; an image whose packages were pruned lacks thousands
_NOT_CONTENT = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json"})
_FIELD = re.compile(r"^(Name|Version):[ \t]*(\S[^\r\n]*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Interpreter:
    """An interpreter and the folders of its packages.

    Attributes:
        path: as it is started, which decides which environment it is.
        places: folders of packages, in the order in which they are searched.
    """

    path: Path
    version: str
    implementation: str
    places: tuple[Path, ...]

    @property
    def minor(self) -> str:
        """The minor version, such as `3.11`."""
        return ".".join(self.version.split(".")[:2])


def ask_interpreter(path: Path) -> Interpreter:
    """What an interpreter says of itself; only it runs, in isolation and without its packages.

    Raises:
        UsageError: it is no Python that runs.
    """
    venv = next((each for each in (path.parent.parent, path.parent) if (each / "pyvenv.cfg").is_file()), None)
    shared = ""
    if venv is not None:
        text = (small_file(venv / "pyvenv.cfg", _LARGEST_METADATA) or b"").decode("utf-8", "replace")
        found = re.search(r"^\s*include-system-site-packages\s*=\s*true\s*$", text, re.MULTILINE | re.IGNORECASE)
        shared = "yes" if found else ""
    command = [str(path), "-I", "-S", "-B", "-c", _PROBE, str(venv or ""), shared]
    try:
        ran = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            cwd="/",
            env={"LC_ALL": "C.UTF-8", "PATH": os.defpath},
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError("is no Python that runs", where=str(path), why=str(error)[:300]) from error
    if ran.returncode:
        raise UsageError("is no Python that runs", where=str(path), why=ran.stderr[-300:].decode("utf-8", "replace"))
    try:
        told = parse_json(ran.stdout, where=str(path), limit=_LARGEST_PROBE)
        version, places = told["python"], tuple(Path(each) for each in told["places"])
        implementation = str(told["implementation"])
    except (InvalidDocumentError, KeyError, TypeError) as error:
        raise UsageError("does not say which Python it is", where=str(path), why=str(error)[:300]) from error
    if not re.fullmatch(r"3\.\d{1,2}\.\d{1,3}", str(version)):
        raise UsageError(f"is Python {shown(version)}, which no lock names", where=str(path))
    return Interpreter(path, version, implementation, places)


@dataclass(frozen=True)
class Installed:
    """One distribution where it lies.

    Attributes:
        place: the folder of packages.
        metadata: its `.dist-info` folder.
        stated: what the lock says of it.
        direct_url: what its installer noted (PEP 610); None without.
        owned: the files that its RECORD names, relative to the place.
        size: bytes of its files.
    """

    place: Path
    metadata: Path
    stated: Distribution
    direct_url: Mapping[str, Any] | None
    owned: frozenset[str]
    size: int


@dataclass(frozen=True)
class Inventory:
    """Everything among the packages of an interpreter."""

    interpreter: Interpreter
    distributions: tuple[Installed, ...]
    loose: tuple[LooseFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files that were hashed."""
        return sum(each.size for each in self.distributions) + sum(each.size for each in self.loose)

    def named(self, project: str) -> Installed | None:
        """The distribution of that project; None where there is none."""
        wanted = _canonical(project)
        return next((each for each in self.distributions if _canonical(each.stated.project) == wanted), None)


def take_inventory(interpreter: Interpreter, *, reporter: Reporter) -> Inventory:
    """Read and hash every file of every distribution, and what lies beside them.

    Raises:
        UnsafeInputError: metadata that no document carries.
        NotCheckedError: a folder cannot be read, or holds too much that nobody recorded.
    """
    found: list[Installed] = []
    loose: list[LooseFile] = []
    folders = [(place, metadata) for place in interpreter.places for metadata in _metadata(place)]
    with (
        reporter.task("reading packages", len(folders), "packages") as task,
        ThreadPoolExecutor(workers_here(), thread_name_prefix="packages") as pool,
    ):
        for each in pool.map(lambda pair: _installed(*pair), folders):
            found.append(each)
            task.advance(1)
        for place in interpreter.places:
            owned = frozenset().union(*(each.owned for each in found if each.place == place))
            loose += _loose(place, owned, pool)
    found.sort(key=lambda each: (_canonical(each.stated.project), each.stated.version))
    return Inventory(interpreter, tuple(found), tuple(sorted(loose, key=lambda each: each.path)))


def _metadata(place: Path) -> list[Path]:
    try:
        return sorted(each for each in place.iterdir() if each.name.endswith(".dist-info") and each.is_dir())
    except OSError as error:
        raise NotCheckedError("cannot be read", where=str(place), why=error.strerror or str(error)) from error


def _installed(place: Path, metadata: Path) -> Installed:
    text = small_file(metadata / "METADATA", _LARGEST_METADATA)
    head = (text or b"").decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n", 1)[0]
    fields = dict(reversed(_FIELD.findall(head)))
    name, version = fields.get("Name", ""), fields.get("Version", "")
    where = f"{place.name}/{metadata.name}"
    if not name or not version:
        raise UnsafeInputError("says neither name nor version", where=shown(where), todo="install it again")
    rows = _rows(small_file(metadata / "RECORD", _LARGEST_RECORD))
    recorded: dict[str, str] = {}
    owned: set[str] = set()
    for path, digest in rows or ():
        owned.add(path)
        if digest and not _is_place(path, metadata.name):
            recorded[path] = digest
    drifted, total = _drifted(place, recorded, metadata)
    try:
        stated = Distribution(
            project=name,
            version=version,
            record_sha256=UNKNOWN if rows is None else content_digest(recorded),
            files=len(recorded),
            drifted=tuple(drifted) or None,
        )
    except (ValidationError, InvalidDocumentError) as error:
        raise UnsafeInputError("holds what no document carries", where=shown(where), todo="install it again") from error
    return Installed(place, metadata, stated, _direct_url(metadata), frozenset(owned), total)


def _rows(data: bytes | None) -> list[tuple[str, str]] | None:
    """Path and hex sha256 (empty without one) of every row that stays inside the folder; None for no readable RECORD.

    Paths that lead out of the folder (scripts, and whatever a hostile one names) are dropped: they are never opened.
    """
    if data is None or data.count(b"\n") > _MOST_ROWS:
        return None
    found: dict[str, str] = {}
    try:
        for row in csv.reader(io.StringIO(data.decode("utf-8"), newline=""), strict=True):
            if not row:
                continue
            path, stated = PurePosixPath(row[0]), row[1] if len(row) > 1 else ""
            if path.is_absolute() or ".." in path.parts or "\0" in row[0] or not path.parts:
                continue
            algorithm, _, value = stated.partition("=")
            digest = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex() if algorithm == "sha256" else ""
            found[str(path)] = digest if len(digest) == 64 else ""  # noqa: PLR2004  hex digits of sha256
    except (ValueError, csv.Error):
        return None
    return list(found.items())


def _is_place(path: str, metadata: str) -> bool:
    """Whether a file says where, when or by whom a distribution was installed, and not what it is."""
    parts = PurePosixPath(path).parts
    editable = len(parts) == 1 and path.startswith(("__editable__", "_editable_", "_virtualenv."))
    return editable or path.endswith(".pyc") or (parts[0] == metadata and parts[-1] in _NOT_CONTENT)


def _drifted(place: Path, recorded: Mapping[str, str], metadata: Path) -> tuple[list[DriftedFile], int]:
    """The files that are not what the RECORD says, and how many bytes all files have.

    Raises:
        NotCheckedError: too many are.
    """
    found: list[DriftedFile] = []
    total = 0
    inside: dict[Path, bool] = {}
    for path, digest in recorded.items():
        target = place / path
        got = None
        if target.parent not in inside:
            inside[target.parent] = Path(os.path.realpath(target.parent)).is_relative_to(place)
        if inside[target.parent]:
            try:
                got, size = hash_file(target)
                total += size
            except (OSError, UnsafeInputError, ValueError):
                got = None
        if got != digest:
            found.append(DriftedFile(path=_plain(path), sha256=got))
            if len(found) > _MOST_DRIFTED:
                raise NotCheckedError(
                    f"more than {_MOST_DRIFTED} files of a package are not what it recorded",
                    where=str(metadata),
                    todo="install it again",
                )
    return found, total


def _loose(place: Path, owned: frozenset[str], pool: ThreadPoolExecutor) -> list[LooseFile]:
    """What lies in a folder of packages and stands in no RECORD, compiled modules aside."""
    found: list[str] = []
    for top, folders, files in os.walk(place):
        folders[:] = sorted(each for each in folders if each != "__pycache__")
        below = Path(top).relative_to(place)
        for name in sorted(files):
            path = (below / name).as_posix()
            metadata = below.parts[0] if below.parts else ""
            noted = metadata.endswith(".dist-info") and name in _NOT_CONTENT
            if path not in owned and not name.endswith(".pyc") and not noted:
                found.append(path)
        if len(found) > _MOST_LOOSE:
            raise NotCheckedError(
                f"more than {_MOST_LOOSE} files belong to no package",
                where=str(place),
                todo="freeze an environment of its own, made with a tool that writes RECORD files",
            )

    def one(path: str) -> LooseFile | None:
        try:
            digest, size = hash_file(place / path)
        except (OSError, UnsafeInputError):
            return None  # a link, a pipe, or gone
        return LooseFile(path=_plain(path), sha256=digest, size=size)

    return [each for each in pool.map(one, found) if each is not None]


def _direct_url(metadata: Path) -> Mapping[str, Any] | None:
    data = small_file(metadata / "direct_url.json", _LARGEST_METADATA)
    if data is None:
        return None
    try:
        told = parse_json(data, where=f"{metadata.name}/direct_url.json", limit=_LARGEST_METADATA)
    except InvalidDocumentError:
        return {}
    return told if isinstance(told, dict) else {}


def _plain(path: str) -> str:
    """A path as a document carries it: bytes that are no UTF-8 are written out."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _canonical(project: str) -> str:
    return re.sub(r"[-_.]+", "-", project).lower()
