"""A local server that speaks the API of a Hugging Face hub as its client uses it, faults included."""

import hashlib
import json
import struct
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

LFS_FROM = 4096
PAGE = 3


def blob_id(data: bytes) -> str:
    """The git object name of a file."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def safetensors(data: bytes, name: str = "w") -> bytes:
    """A small file in the format."""
    header = json.dumps({name: {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data


@dataclass
class Repository:
    """One repository: its commits with their files, and what its names mean."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    lfs: set[str] = field(default_factory=set)
    gated: bool = False
    extra: list[dict[str, Any]] = field(default_factory=list)

    def commit(self, files: dict[str, bytes], ref: str = "main") -> str:
        """A further commit; what is large, or a weight, lies in LFS."""
        listed = "".join(f"{path} {blob_id(data)}\n" for path, data in sorted(files.items()))
        name = hashlib.sha1(f"{len(self.commits)}{listed}".encode(), usedforsecurity=False).hexdigest()
        self.commits[name] = dict(files)
        self.refs[ref] = name
        return name

    def in_lfs(self, path: str, data: bytes) -> bool:
        """Whether the bytes lie outside git."""
        return path in self.lfs or len(data) >= LFS_FROM or path.endswith((".safetensors", ".bin"))


@dataclass
class Faults:
    """What goes wrong.

    Attributes:
        refuse: answers to give first, as (status, headers).
        other_bytes: bytes that are served in place of those of a digest.
        cut: after how many bytes of a digest the connection ends, once each.
        slow: seconds between two pieces of a file.
        refusal: the body of every refusal; None for the usual one.
        ignore_range: serve the whole file whatever range is asked for.
        status: an answer for every request.
    """

    refuse: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    other_bytes: dict[str, bytes] = field(default_factory=dict)
    cut: dict[str, list[int]] = field(default_factory=dict)
    slow: float = 0.0
    ignore_range: bool = False
    tree_body: bytes | None = None
    next_page: str | None = None
    redirect: str | None = None
    refusal: bytes | None = None


class Request:
    """One request as it came."""

    def __init__(self, method: str, path: str, headers: dict[str, str]) -> None:
        self.method, self.path, self.headers = method, path, headers


class HubServer:
    """The hub and its content network, on two ports.

    `sent` counts the bytes of each digest that left it; `hung_up` is set when a client closed before the end.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.faults = Faults()
        self.requests: list[Request] = []
        self.sent: dict[str, int] = {}
        self.guard = threading.Lock()
        self.hung_up = threading.Event()
        self.servers = [ThreadingHTTPServer(("127.0.0.1", 0), self._handler(kind)) for kind in ("hub", "cdn")]
        for server in self.servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self.url, self.cdn = (f"http://127.0.0.1:{server.server_address[1]}" for server in self.servers)

    def close(self) -> None:
        """End both."""
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def repository(self, name: str) -> Repository:
        """The repository of that name, a new one where there is none."""
        return self.repositories.setdefault(name, Repository())

    def add(self, name: str, files: dict[str, bytes]) -> str:
        """A further commit of a repository on its main branch."""
        return self.repository(name).commit(files)

    def received(self, data: bytes) -> int:
        """Bytes of a file that left the server."""
        return self.sent.get(hashlib.sha256(data).hexdigest(), 0)

    def asked(self, part: str) -> int:
        """How many requests named it."""
        return sum(part in request.path for request in self.requests)

    def forget(self) -> None:
        """Forget what was asked and sent."""
        self.requests.clear()
        self.sent.clear()

    def data_of(self, sha256: str) -> bytes | None:
        """The bytes of a digest."""
        for repository in self.repositories.values():
            for files in repository.commits.values():
                for data in files.values():
                    if hashlib.sha256(data).hexdigest() == sha256:
                        return data
        return None

    def _handler(self, kind: str) -> type[BaseHTTPRequestHandler]:
        return type("Bound", (_Handler,), {"hub": self, "kind": kind})


class _Handler(BaseHTTPRequestHandler):
    hub: ClassVar[HubServer]
    kind: ClassVar[str]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class names it so
        del format, args

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        hub = self.hub
        headers = {name.lower(): value for name, value in self.headers.items()}
        with hub.guard:
            hub.requests.append(Request(self.command, f"{self.kind}:{self.path}", headers))
            refused = hub.faults.refuse.pop(0) if hub.faults.refuse else None
        if refused is not None:
            self._error(refused[0], "", "refused", refused[1])
            return
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        if self.kind == "cdn":
            self._file(path.rpartition("/")[2])
        elif path.startswith("/api/models/"):
            self._api(path.removeprefix("/api/models/"), parse_qs(parts.query))
        else:
            self._resolve(path)

    def _found(self, name: str, revision: str, *, read: bool) -> tuple[Repository, str] | None:
        repository = self.hub.repositories.get(name)
        if repository is None:
            self._error(404 if self.headers.get("authorization") else 401, "RepoNotFound", "Repository not found")
            return None
        commit = repository.refs.get(revision, revision)
        if commit not in repository.commits:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        if repository.gated and read and self.headers.get("authorization") != "Bearer hf_allowed":
            status = 403 if self.headers.get("authorization") else 401
            self._error(status, "GatedRepo", "Access to this model is restricted")
            return None
        return repository, commit

    def _api(self, path: str, query: dict[str, list[str]]) -> None:
        name, kind, revision = "/".join(path.split("/")[:2]), *path.split("/")[2:4]
        found = self._found(name, "/".join(path.split("/")[3:]) if kind == "revision" else revision, read=False)
        if found is None:
            return
        repository, commit = found
        files = repository.commits[commit]
        if kind == "revision":
            siblings = [{"rfilename": each} for each in sorted(files)]
            content = {"id": name, "sha": commit, "private": False, "gated": repository.gated, "siblings": siblings}
            self._json(content)
            return
        if self.hub.faults.tree_body is not None:
            self._bytes(200, self.hub.faults.tree_body, {"Content-Type": "application/json"})
            return
        entries = [*self._entries(repository, files), *repository.extra]
        at = int(query.get("cursor", ["0"])[0])
        headers = {}
        following = (
            self.hub.faults.next_page or f"{self.hub.url}{urlsplit(self.path).path}?recursive=true&cursor={at + PAGE}"
        )
        if at + PAGE < len(entries) or self.hub.faults.next_page:
            headers["Link"] = f'<{following}>; rel="next"'
        self._json(entries[at : at + PAGE], headers)

    @staticmethod
    def _entries(repository: Repository, files: dict[str, bytes]) -> list[dict[str, Any]]:
        folders = sorted({path.rpartition("/")[0] for path in files if "/" in path})
        found: list[dict[str, Any]] = [
            {"type": "directory", "oid": "0" * 40, "size": 0, "path": each} for each in folders
        ]
        for path, data in sorted(files.items()):
            entry = {"type": "file", "oid": blob_id(data), "size": len(data), "path": path}
            if repository.in_lfs(path, data):
                sha256 = hashlib.sha256(data).hexdigest()
                entry |= {"oid": "f" * 40, "lfs": {"oid": sha256, "size": len(data), "pointerSize": 134}}
            found.append(entry)
        return found

    def _resolve(self, path: str) -> None:
        before, _, after = path.lstrip("/").partition("/resolve/")
        revision, _, file = after.partition("/")
        found = self._found(before, revision, read=True)
        if found is None:
            return
        repository, commit = found
        data = repository.commits[commit].get(file)
        if data is None:
            self._error(404, "EntryNotFound", "Entry not found")
            return
        sha256 = hashlib.sha256(data).hexdigest()
        headers = {"X-Repo-Commit": commit}
        if not repository.in_lfs(file, data):
            self._file(sha256, {**headers, "ETag": f'"{blob_id(data)}"'})
            return
        target = self.hub.faults.redirect or f"{self.hub.cdn}/lfs/{sha256}?Signature=secret-of-the-cdn"
        headers |= {"X-Linked-Etag": f'"{sha256}"', "X-Linked-Size": str(len(data)), "Location": target}
        self._bytes(302, b"", headers)

    def _file(self, sha256: str, headers: dict[str, str] | None = None) -> None:
        faults = self.hub.faults
        data = faults.other_bytes.get(sha256) or self.hub.data_of(sha256)
        if data is None:
            self._error(404, "", "no such object")
            return
        start, status, fields = 0, 200, {"ETag": f'"{sha256}"', **(headers or {})}
        asked = self.headers.get("range")
        if asked and not faults.ignore_range:
            start = int(asked.removeprefix("bytes=").partition("-")[0])
            if start >= len(data):
                self._bytes(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            status = 206
            fields["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self._bytes(status, data[start:], fields, sha256=sha256)

    def _json(self, content: Any, headers: dict[str, str] | None = None) -> None:
        self._bytes(200, json.dumps(content).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _error(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        fields = {"Content-Type": "application/json", "X-Error-Message": message, **(headers or {})}
        if code:
            fields["X-Error-Code"] = code
        refusal = self.hub.faults.refusal
        self._bytes(status, json.dumps({"error": message}).encode() if refusal is None else refusal, fields)

    def _bytes(self, status: int, data: bytes, headers: dict[str, str], *, sha256: str = "") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "HEAD":
            return
        faults = self.hub.faults
        cuts = faults.cut.get(sha256, [])
        end = cuts.pop(0) if cuts else len(data)
        step = 1 << 16
        try:
            for at in range(0, min(end, len(data)), step):
                piece = data[at : min(at + step, end)]
                with self.hub.guard:
                    self.hub.sent[sha256] = self.hub.sent.get(sha256, 0) + len(piece)
                self.wfile.write(piece)
                if faults.slow:
                    self.wfile.flush()
                    time.sleep(faults.slow)
        except OSError:
            self.close_connection = True
            self.hub.hung_up.set()
            return
        if end < len(data):
            self.close_connection = True
