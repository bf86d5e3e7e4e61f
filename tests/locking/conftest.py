"""A small project and a package index that is really served, so that locking runs whole and without a network."""

import base64
import hashlib
import io
import shutil
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reproducer.fetch.indexes import Indexes
from reproducer.locking import Locked, lock, write
from reproducer.progress import Silent
from reproducer.store import Store

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
CP = f"cp{sys.version_info.major}{sys.version_info.minor}"

BACKEND = '''\
"""A build backend that packs one module and a package, with nothing but the standard library."""
import glob, os, time, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "@NAME@-@VERSION@-py3-none-any.whl"
    when = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    info = "@NAME@-@VERSION@.dist-info"
    members = {
        "@NAME@.py": open("@NAME@.py").read(),
        **{path: open(path).read() for path in sorted(glob.glob("sglang/**/*.py", recursive=True))},
        info + "/METADATA": "Metadata-Version: 2.1\\nName: @NAME@\\nVersion: @VERSION@\\n",
        info + "/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    members[info + "/RECORD"] = "".join(f"{path},,\\n" for path in [*members, info + "/RECORD"])
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as packed:
        for path, text in members.items():
            packed.writestr(zipfile.ZipInfo(path, when), text)
    return name
'''
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
CONVERT = """\
import json, pathlib, struct, sys
source, output = map(pathlib.Path, sys.argv[1:])
data = source.read_bytes()
header = json.dumps({"w": {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}).encode()
header += b" " * (-len(header) % 8)
(output / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
config = {"model_type": "llama", "torch_dtype": "float16", "max_position_embeddings": 2048}
(output / "config.json").write_text(json.dumps(config))
"""
PATCH = '''\
Answer differently.

--- a/engine.py
+++ b/engine.py
@@ -1,2 +1,2 @@
 """The engine."""
-ANSWER = 1
+ANSWER = 2
'''
ENGINE = {
    "sglang/srt/server_args.py": """\
import dataclasses


@dataclasses.dataclass
class ServerArgs:
    model_path: str
    page_size: int | None = None
    tp_size: int = 1
    dtype: str = "auto"
    hicache_storage_backend: str | None = None

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument("--page-size", type=int, default=ServerArgs.page_size)
        parser.add_argument("--tensor-parallel-size", "--tp-size", "--tp", type=int, default=ServerArgs.tp_size)
        parser.add_argument("--dtype", default=ServerArgs.dtype, choices=["auto", "half", "float16", "bfloat16"])
        parser.add_argument("--hicache-storage-backend", type=str, default=ServerArgs.hicache_storage_backend)
""",
    "sglang/srt/environ.py": """\
class EnvField:
    def __init__(self, default):
        self.default = default


class EnvInt(EnvField):
    pass


class Envs:
    SGLANG_ROUNDS = EnvInt(3)


envs = Envs()
""",
}
MANIFEST = f"""\
format = "penny-manifest/1"
name = "tiny"
platform = "linux-x86_64"
python = "{PYTHON}"
compiler = "none"

[engine]
kind = "sglang"
component = "engine"

[[components]]
name = "engine"
source = {{ kind = "sdist", project = "engine", version = ">=1,<2" }}
patches = ["runtime/engine/0001-answer.patch"]

[[components]]
name = "kernels"
source = {{ kind = "local", path = "runtime/kernels" }}

[[environments]]
name = "runtime"
requirements = ["alpha>=1"]
without_dependencies = ["lonely==1.0"]

[[environments]]
name = "build"
requirements = ["beta"]

[[checkpoints]]
name = "model"
role = "target"
source = {{ kind = "wheel-member", project = "tiny-model", version = "==1.0", member = "tiny_model/model.bin" }}

[checkpoints.conversion]
script = "runtime/convert.py"
arguments = ["{{source}}", "{{output}}"]
environment = "build"

[launch]
module = "engine"

[launch.arguments]
model-path = "{{checkpoint.target}}"
page-size = 16

[launch.environment]
KV = "{{namespace}}"

[qualification]
suite = "default"

[[qualification.measures]]
id = "decode.single/1"
thresholds = [{{ value = "decode_rate", comparator = ">=", bound = 1, unit = "tok/s" }}]
"""


def wheel(
    project: str,
    version: str,
    files: dict[str, bytes] | None = None,
    *,
    tag: str = "py3-none-any",
    needs: tuple[str, ...] = (),
) -> tuple[str, bytes]:
    """Name and bytes of a small wheel."""
    name = project.replace("-", "_")
    info = f"{name}-{version}.dist-info"
    members = dict(files or {f"{name}.py": b""})
    needed = "".join(f"Requires-Dist: {each}\n" for each in needs)
    members[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n{needed}".encode()
    members[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    rows = [f"{path},sha256={_record(data)},{len(data)}\n" for path, data in members.items()]
    members[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, data in members.items():
            archive.writestr(zipfile.ZipInfo(path), data)
    return f"{name}-{version}-{tag}.whl", packed.getvalue()


def _record(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def sdist(project: str, version: str, module: str, files: dict[str, str] | None = None) -> tuple[str, bytes]:
    """Name and bytes of a source distribution with a build backend of its own."""
    packed = io.BytesIO()
    backend = BACKEND.replace("@NAME@", project).replace("@VERSION@", version)
    metadata = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in {
            "pyproject.toml": PROJECT,
            "backend.py": backend,
            f"{project}.py": module,
            "PKG-INFO": metadata,
            **(files or {}),
        }.items():
            entry = tarfile.TarInfo(f"{project}-{version}/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return f"{project}-{version}.tar.gz", packed.getvalue()


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class names it so
        del format, args

    def end_headers(self) -> None:
        """Let nobody take an answer of before for one of now."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def do_GET(self) -> None:
        """Serve, and remember what was asked."""
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        super().do_GET()


@dataclass
class Index:
    """A simple index on a local port, from a folder of files."""

    folder: Path
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def add(self, file: tuple[str, bytes]) -> None:
        """Offer one more file."""
        name, data = file
        project = name.split("-")[0].replace("_", "-")
        place = self.folder / "simple" / project
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
        links = [
            f'<a href="{each.name}#sha256={hashlib.sha256(each.read_bytes()).hexdigest()}">{each.name}</a>'
            for each in sorted(place.iterdir())
            if each.name != "index.html"
        ]
        (place / "index.html").write_text("<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>", "utf-8")

    def add_wheel(self, project: str, version: str, **options: Any) -> None:
        """Offer one more small wheel."""
        self.add(wheel(project, version, **options))

    def add_sdist(self, project: str, version: str, module: str) -> None:
        """Offer one more source distribution."""
        self.add(sdist(project, version, module, ENGINE))


@pytest.fixture(scope="session")
def serving() -> Iterator[Any]:
    """Starts indexes, each on a port of its own."""
    servers = []

    def start(folder: Path) -> Index:
        (folder / "simple").mkdir(parents=True, exist_ok=True)
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))
        server.asked = []  # type: ignore[attr-defined]
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        index = Index(folder, f"http://127.0.0.1:{server.server_address[1]}/simple")
        index.asked = server.asked  # type: ignore[attr-defined]
        return index

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def filled(index: Index) -> Index:
    """The index with everything the manifest asks for, and some that it does not."""
    for file in (
        sdist("engine", "1.0", '"""The engine."""\nANSWER = 1\n', ENGINE),
        wheel("alpha", "1.0", needs=("gamma",)),
        wheel("gamma", "0.5", tag=f"{CP}-{CP}-manylinux_2_17_x86_64"),
        wheel("gamma", "0.5", tag="cp38-abi3-musllinux_1_2_x86_64"),
        wheel("gamma", "0.5", tag=f"{CP}-{CP}-macosx_11_0_arm64"),
        wheel("gamma", "0.5", tag=f"{CP}-{CP}-manylinux_2_17_aarch64"),
        wheel("gamma", "0.5", tag="cp27-cp27mu-manylinux1_x86_64"),
        wheel("lonely", "1.0", needs=("missing-everywhere",)),
        wheel("beta", "1.0"),
        wheel("tiny-model", "1.0", {"tiny_model/model.bin": bytes(range(64))}),
    ):
        index.add(file)
    return index


@dataclass
class Project:
    """A folder with a manifest, an index and a store."""

    folder: Path
    index: Index
    store: Store
    indexes: Indexes

    @property
    def manifest(self) -> Path:
        """The manifest."""
        return self.folder / "manifests" / "tiny.toml"

    @property
    def path(self) -> Path:
        """The lock."""
        return self.folder / "penny.lock.toml"

    def lock(self, **options: Any) -> Locked:
        """Lock, with everything accepted unless said otherwise."""
        settings: dict[str, Any] = {"indexes": self.indexes, "reporter": Silent(), "accepted": True} | options
        return lock(self.manifest, self.path, self.store, **settings)

    def written(self, **options: Any) -> Locked:
        """Lock and write."""
        locked = self.lock(**options)
        write(locked, self.path)
        return locked

    def edit(self, old: str, new: str, path: Path | None = None) -> None:
        """Replace a passage of the manifest or of another file; it must be there."""
        target = path or self.manifest
        text = target.read_text("utf-8")
        assert old in text
        target.write_text(text.replace(old, new, 1), "utf-8")

    def files(self) -> dict[str, bytes]:
        """Every file of the folder by path."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }


def new_project(folder: Path, index: Index, store: Store) -> Project:
    """A project that is not locked yet."""
    for path, text in {
        "manifests/tiny.toml": MANIFEST,
        "runtime/engine/0001-answer.patch": PATCH,
        "runtime/convert.py": CONVERT,
        "runtime/kernels/pyproject.toml": PROJECT,
        "runtime/kernels/backend.py": BACKEND.replace("@NAME@", "kernels").replace("@VERSION@", "0.1"),
        "runtime/kernels/kernels.py": "KERNELS = ()\n",
    }.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return Project(folder, index, store, Indexes(index_urls=(index.url,)))


@pytest.fixture(scope="session")
def locked_once(tmp_path_factory: pytest.TempPathFactory, serving: Any) -> Project:
    """A locked project that tests copy; the store stays with all of them."""
    folder = tmp_path_factory.mktemp("locking")
    index = filled(serving(folder / "index"))
    project = new_project(folder / "project", index, Store(folder / "store"))
    project.written()
    return project


@pytest.fixture
def project(tmp_path: Path, locked_once: Project, serving: Any) -> Project:
    """A copy of the locked project with an index of its own."""
    shutil.copytree(locked_once.index.folder, tmp_path / "index")
    shutil.copytree(locked_once.folder, tmp_path / "project")
    index = serving(tmp_path / "index")
    return Project(tmp_path / "project", index, locked_once.store, Indexes(index_urls=(index.url,)))


@pytest.fixture
def fresh(tmp_path: Path, locked_once: Project) -> Project:
    """The project before it was locked."""
    return new_project(tmp_path / "fresh", locked_once.index, locked_once.store)
