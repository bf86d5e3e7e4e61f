"""Real repositories, and real servers that hand them out: `git daemon`, and `git http-backend` behind a web server."""

import base64
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.sources import GitSource
from reproducer.git.addresses import Address, address
from reproducer.git.contents import Contents, Reading
from reproducer.git.exporting import export
from reproducer.store import Store
from tests.locking.conftest import locked_once, project, serving

__all__ = ["locked_once", "project", "serving"]  # fixtures

PERSON = {
    "PATH": os.environ["PATH"],
    "GIT_AUTHOR_NAME": "A Person",
    "GIT_AUTHOR_EMAIL": "person@example.org",
    "GIT_COMMITTER_NAME": "A Person",
    "GIT_COMMITTER_EMAIL": "person@example.org",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}
EPOCH = 1_700_000_000


def git(*arguments: str, cwd: Path, stdin: bytes | None = None) -> str:
    """Run git as a person does who has no configuration; what it says."""
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=cwd, env=PERSON, input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


@dataclass
class Repository:
    """A repository with a working tree."""

    path: Path

    @classmethod
    def new(cls, path: Path, *, sha: str = "sha1") -> "Repository":
        """An empty one, on the branch `main`."""
        path.mkdir(parents=True)
        git("init", "--quiet", "--initial-branch=main", f"--object-format={sha}", ".", cwd=path)
        return cls(path)

    def git(self, *arguments: str, stdin: bytes | None = None) -> str:
        """Run git in it."""
        return git(*arguments, cwd=self.path, stdin=stdin)

    def write(self, files: dict[str, str | bytes]) -> None:
        """Write files into the working tree."""
        for name, data in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data.encode() if isinstance(data, str) else data)

    def commit(self, files: dict[str, str | bytes] | None = None, message: str = "a change") -> str:
        """Commit files, and everything else that changed; the commit."""
        self.write(files or {})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.head

    @property
    def head(self) -> str:
        """The commit that is checked out."""
        return self.git("rev-parse", "HEAD")

    @property
    def tree(self) -> str:
        """The tree of that commit."""
        return self.git("rev-parse", "HEAD^{tree}")

    def submodule(self, url: str, path: str) -> None:
        """Add a submodule and commit it."""
        self.git("submodule", "--quiet", "add", "--", url, path)
        self.commit(message=f"submodule {path}")

    def made_tree(self, *entries: tuple[str, str, str]) -> str:
        """A tree of (mode, object, name) as they stand, though no git would add them; the tree."""
        width = len(self.git("hash-object", "-t", "tree", "/dev/null")) // 2
        data = b"".join(
            f"{mode} {name}\0".encode("utf-8", "surrogateescape") + bytes.fromhex(oid) for mode, oid, name in entries
        )
        assert all(len(bytes.fromhex(oid)) == width for _, oid, _ in entries)
        return self.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=data)

    def blob(self, data: bytes) -> str:
        """A blob in its objects."""
        return self.git("hash-object", "-w", "--stdin", stdin=data)

    def commit_tree(self, tree: str, ref: str = "refs/heads/main") -> str:
        """A commit of a tree, on a branch."""
        commit = self.git("commit-tree", "-m", "made", tree)
        self.git("update-ref", ref, commit)
        return commit


@dataclass
class Notes:
    """A reporter that keeps what it is told."""

    said: list[str] = field(default_factory=list)

    def note(self, message: str) -> None:
        """Keep it."""
        self.said.append(message)

    def detail(self, message: str) -> None:
        """Keep it."""
        self.said.append(message)

    def task(self, label: str, total: int | None, unit: Any) -> Any:
        """Show nothing."""
        from reproducer.progress import Silent

        return Silent().task(label, total, unit)


@dataclass
class Desk:
    """A store, and the way from an address to a source tree."""

    store: Store
    folder: Path
    notes: Notes = field(default_factory=Notes)

    def reading(self, **options: Any) -> Reading:
        """What reads commits into the store."""
        return Reading(self.store, self.notes, **options)

    def contents(self, place: Address | Path, commit: str, **options: Any) -> Contents:
        """What a commit holds."""
        there = place if isinstance(place, Address) else Address(path=place)
        return self.reading(**options).contents(there, commit, where="kernel")

    def source(self, place: Address | Path, commit: str, **more: Any) -> GitSource:
        """The source that a lock would pin."""
        held = self.contents(place, commit)
        url = place.url if isinstance(place, Address) else None
        return GitSource(url=url, commit=commit, tree=held.tree, submodules=held.submodules, lfs=held.lfs, **more)

    def exported(self, source: GitSource, name: str = "out", **options: Any) -> dict[str, str]:
        """Export a source; every file and link of it by path, a link as `-> target`."""
        folder = self.folder / name
        settings: dict[str, Any] = {"changes": None, "where": "kernel", "epoch": EPOCH} | options
        export(source, self.store, folder, **settings)
        return files_of(folder)


def files_of(folder: Path) -> dict[str, str]:
    """Every file and link by path; a link as `-> target`."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = path.read_text("utf-8", "surrogateescape")
    return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A store of its own."""
    return Desk(Store(tmp_path / "store"), tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with one commit."""
    made = Repository.new(tmp_path / "kernel")
    made.commit({"kernel.py": "KERNEL = 1\n", "lib/part.py": "PART = 1\n"}, "first")
    return made


@dataclass
class Server:
    """A server of the repositories below a folder.

    Attributes:
        asked: what was requested, where it is known.
    """

    url: str
    folder: Path
    asked: list[str] = field(default_factory=list)

    def at(self, name: str) -> Address:
        """The address of one of them."""
        return address(f"{self.url}/{name}", root=self.folder, where="test")


def bare(repository: Repository, folder: Path, name: str) -> Path:
    """A bare copy of a repository below a server's folder."""
    target = folder / name
    git("clone", "--quiet", "--bare", str(repository.path), str(target), cwd=folder)
    return target


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Server]:
    """`git daemon` on a port of its own."""
    folder = tmp_path / "served"
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["git", "daemon", "--export-all", f"--base-path={folder}", "--listen=127.0.0.1", f"--port={port}"]
    process = subprocess.Popen(
        [*command, "--reuseaddr", str(folder)], env=PERSON, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        yield Server(f"git://127.0.0.1:{port}", folder)
    finally:
        os.killpg(process.pid, 15)
        process.wait()


class _Backend(BaseHTTPRequestHandler):
    """Hands requests to `git http-backend` as a web server does; asks for a password where it has one."""

    protocol_version = "HTTP/1.0"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class names it so
        del format, args

    def _answer(self) -> None:
        server: Any = self.server
        server.asked.append(self.path)
        wanted = server.person and "Basic " + base64.b64encode(server.person.encode()).decode()
        if wanted and self.headers.get("Authorization") != wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        environment = {
            **PERSON,
            "GIT_PROJECT_ROOT": str(server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(
            ["git", "http-backend"],
            env=environment,
            input=body,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        lines = [line.partition(": ") for line in head.decode().split("\r\n") if line]
        status = next((value for key, _, value in lines if key == "Status"), "200 OK")
        self.send_response(int(status.split()[0]))
        for key, _, value in lines:
            if key != "Status":
                self.send_header(key, value)
        self.end_headers()
        self.wfile.write(rest)

    do_GET = _answer  # noqa: N815  the base class looks for these names
    do_POST = _answer  # noqa: N815


class _Dumb(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class names it so
        del format, args


Serve = Callable[..., Server]


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Serve]:
    """Starts web servers of repositories: `web(person="user:word")`, `web(dumb=True)` for plain files."""
    servers: list[ThreadingHTTPServer] = []

    def start(*, person: str = "", dumb: bool = False) -> Server:
        folder = tmp_path / f"web-{len(servers)}"
        folder.mkdir()
        handler: Any = partial(_Dumb, directory=str(folder)) if dumb else _Backend
        server: Any = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.folder, server.person, server.asked = folder, person, []
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return Server(f"http://127.0.0.1:{server.server_address[1]}", folder, server.asked)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
