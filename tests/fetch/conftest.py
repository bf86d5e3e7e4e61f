"""A package index on a real socket that can speak both forms of the simple API, and misbehave on order."""

import hashlib
import ipaddress
import json
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from reproducer.documents.sources import Artefact
from reproducer.fetch.indexes import Indexes
from reproducer.fetch.web import Patience
from reproducer.progress import Silent
from reproducer.store import Store

QUICK = Patience(attempts=4, first_wait=0.01)


def artefact_of(filename: str, data: bytes) -> Artefact:
    """The artefact that a file is."""
    stem = filename.removesuffix(".tar.gz")
    project, version = stem.split("-")[:2] if filename.endswith(".whl") else stem.rsplit("-", 1)
    return Artefact(
        project=project.replace("_", "-").lower(),
        version=version,
        filename=filename,
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
    )


@dataclass
class Served:
    """One file of the index, and how the index treats it.

    Attributes:
        data: what is served.
        listed_sha256: the digest the page says; None says none.
        page: further keys of its PEP 691 entry.
        drops: answers that break off after this many bytes, one number an answer.
        statuses: answers that are just this status, one an answer.
        ranges: whether Range is honoured.
        etag: the validator, None for none.
        length: whether Content-Length is sent.
        redirect: where to send the client instead.
        pause: seconds between pieces.
    """

    data: bytes
    listed_sha256: str | None
    page: dict[str, Any] = field(default_factory=dict)
    drops: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    ranges: bool = True
    etag: str | None = '"one"'
    length: bool = True
    redirect: str | None = None
    pause: float = 0.0


class Index:
    """A package index; see `Served` for its bad habits.

    Attributes:
        json: whether it speaks PEP 691, else PEP 503.
        files: by file name.
        down: status of every page, None where it works.
        requests: (path, Range header) of every request.
        login: the Authorization header that is asked for, None for none.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.json = True
        self.files: dict[str, Served] = {}
        self.down: int | None = None
        self.page_statuses: list[int] = []
        self.login: str | None = None
        self.requests: list[tuple[str, str | None]] = []
        self._stopping = threading.Event()
        index = self

        class Handler(_Handler):
            owner = index

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def root(self) -> str:
        """The server's URL."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        """The URL of the simple index."""
        return f"{self.root}/simple"

    def add(self, filename: str, data: bytes, **habits: Any) -> Artefact:
        """Serve a file, truthfully unless told otherwise."""
        habits.setdefault("listed_sha256", hashlib.sha256(data).hexdigest())
        self.files[filename] = Served(data, **habits)
        return artefact_of(filename, data)

    def gets(self, filename: str) -> list[str | None]:
        """The Range header of every request for a file."""
        return [wanted for path, wanted in self.requests if path == f"/files/{filename}"]

    def pages(self) -> Counter[str]:
        """How often each page was asked for."""
        return Counter(path for path, _ in self.requests if path.startswith("/simple/"))

    def close(self) -> None:
        """Stop serving."""
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def sleep(self, seconds: float) -> None:
        """Wait, but not longer than the server lives."""
        self._stopping.wait(seconds)


class _Handler(BaseHTTPRequestHandler):
    owner: Index
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        """Say nothing."""

    def handle(self) -> None:
        """Serve one connection; a client that goes away is no fault."""
        with suppress(BrokenPipeError, ConnectionResetError):
            super().handle()

    def do_GET(self) -> None:
        index = self.owner
        index.requests.append((self.path, self.headers.get("Range")))
        try:
            if index.login is not None and self.headers.get("Authorization") != index.login:
                self._status(401)
            elif self.path.startswith("/simple/"):
                self._page(self.path.removeprefix("/simple/").strip("/"))
            elif self.path.startswith("/files/") and self.path.removeprefix("/files/") in index.files:
                self._file(index.files[self.path.removeprefix("/files/")])
            else:
                self._status(404)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _status(self, code: int) -> None:
        self.send_response(code)
        self.send_header("Content-Length", "0")
        if code in (429, 503):
            self.send_header("Retry-After", "0")
        self.end_headers()

    def _page(self, project: str) -> None:
        index = self.owner
        if index.down is not None:
            self._status(index.down)
            return
        if index.page_statuses:
            self._status(index.page_statuses.pop(0))
            return
        mine = {name: served for name, served in index.files.items() if artefact_of(name, b"").project == project}
        if not mine:
            self._status(404)
            return
        if index.json:
            body = json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": _entries(mine)}).encode()
            kind = "application/vnd.pypi.simple.v1+json"
        else:
            body, kind = _anchors(mine).encode(), "text/html; charset=utf-8"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _file(self, served: Served) -> None:
        if served.statuses:
            self._status(served.statuses.pop(0))
            return
        if served.redirect is not None:
            self.send_response(302)
            self.send_header("Location", served.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = 0
        wanted = self.headers.get("Range", "")
        unchanged = self.headers.get("If-Range") in (None, served.etag)
        if served.ranges and wanted.startswith("bytes=") and unchanged:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(served.data):
                self._status(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(served.data) - 1}/{len(served.data)}")
        else:
            self.send_response(200)
        if served.etag is not None:
            self.send_header("ETag", served.etag)
        if served.length:
            self.send_header("Content-Length", str(len(served.data) - start))
        else:
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        body = served.data[start:]
        if served.drops:
            body = body[: served.drops.pop(0)]
            self.close_connection = True
        if served.pause:
            for offset in range(0, len(body), 1 << 14):
                self.wfile.write(body[offset : offset + (1 << 14)])
                self.wfile.flush()
                self.owner.sleep(served.pause)
        else:
            self.wfile.write(body)


def _entries(files: dict[str, Served]) -> list[dict[str, Any]]:
    return [
        {
            "filename": name,
            "url": f"../../files/{name}",
            "hashes": {"sha256": served.listed_sha256} if served.listed_sha256 else {},
            "size": len(served.data),
            **served.page,
        }
        for name, served in files.items()
    ]


def _anchors(files: dict[str, Served]) -> str:
    lines = []
    for name, served in files.items():
        fragment = f"#sha256={served.listed_sha256}" if served.listed_sha256 else ""
        yanked = ' data-yanked=""' if served.page.get("yanked") else ""
        lines.append(f'<a href="../../files/{name}{fragment}"{yanked}>{name}</a><br>')
    return "<!DOCTYPE html><html><body>" + "\n".join(lines) + "</body></html>"


class Remembering(Silent):
    """Keeps every note and detail."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.details: list[str] = []

    def note(self, message: str) -> None:
        """Keep it."""
        self.notes.append(message)

    def detail(self, message: str) -> None:
        """Keep it."""
        self.details.append(message)


@pytest.fixture
def reporter() -> Remembering:
    """A reporter that remembers."""
    return Remembering()


@pytest.fixture
def index() -> Iterator[Index]:
    """One package index."""
    served = Index()
    yield served
    served.close()


@pytest.fixture
def other_index() -> Iterator[Index]:
    """A second package index."""
    served = Index()
    yield served
    served.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate of 127.0.0.1, signed by itself, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "index")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("certificate") / "index.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def secure_index(certificate: Path) -> Iterator[Index]:
    """A package index that speaks TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    served = Index(context)
    yield served
    served.close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store that does not exist yet."""
    return Store(tmp_path / "store")


@pytest.fixture
def quick() -> Patience:
    """Patience for tests."""
    return QUICK


@pytest.fixture
def indexes(index: Index) -> Indexes:
    """The one index, and nothing else."""
    return Indexes(index_urls=(index.url,))


@pytest.fixture
def make_artefact() -> Callable[[str, bytes], Artefact]:
    """The artefact that a file is."""
    return artefact_of
