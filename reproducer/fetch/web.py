"""HTTP as penny speaks it to package indexes: retried with patience, redirected with care, never shown a password."""

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from threading import Event, Lock
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from reproducer.errors import NotCheckedError
from reproducer.fetch.indexes import Indexes, redacted

if TYPE_CHECKING:
    import httpx

_MOST_REDIRECTS = 10
_CONNECT_SECONDS = 15.0
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_OK = 200
_BAD = 400
_LONGEST_WAIT = 30.0


class WebFaultError(Exception):
    """A server did not give what was asked.

    Attributes:
        reason: for a person; no password in it.
        passing: whether asking again may help.
        status: the HTTP status, None where there was no answer.
        wait: seconds the server asked to wait, None where it did not.
    """

    def __init__(self, reason: str, *, passing: bool, status: int | None = None, wait: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.passing = passing
        self.status = status
        self.wait = wait


@dataclass(frozen=True)
class Patience:
    """How often and how long one goes on asking.

    Attributes:
        attempts: tries in a row without progress.
        first_wait: seconds before the second try; doubled for each further one.
    """

    attempts: int = 5
    first_wait: float = 0.5

    def wait(self, failures: int, asked: float | None) -> float:
        """Seconds to wait after that many failures in a row."""
        own: float = self.first_wait * 2 ** (failures - 1)
        return min(max(own, asked or 0.0), _LONGEST_WAIT)


@dataclass(frozen=True)
class Page:
    """One answer, read whole."""

    url: str
    content_type: str
    body: bytes


class Web:
    """One client for all requests of a run; safe to use from threads.

    Attributes:
        patience: how long one goes on asking.
        stopped: set once the run is being stopped.
    """

    def __init__(self, indexes: Indexes, *, patience: Patience | None = None) -> None:
        self._indexes = indexes
        self._guard = Lock()
        self._sockets: set[socket.socket] = set()
        self.patience = patience or Patience()
        self.stopped = Event()

    @cached_property
    def _client(self) -> "httpx.Client":
        import httpx

        limits = httpx.Limits(max_connections=32, max_keepalive_connections=16)
        timeout = httpx.Timeout(self._indexes.timeout, connect=min(_CONNECT_SECONDS, self._indexes.timeout))
        try:
            return httpx.Client(
                verify=self._trust(),
                proxy=self._indexes.proxy,
                timeout=timeout,
                limits=limits,
                auth=_netrc_login(),
                headers={"User-Agent": "penny-reproducer"},
            )
        except (ValueError, httpx.InvalidURL) as error:
            raise NotCheckedError("the proxy setting cannot be used", why=type(error).__name__) from error

    def _trust(self) -> ssl.SSLContext:
        import certifi

        context = ssl.create_default_context()
        context.load_verify_locations(certifi.where())
        if self._indexes.cert is not None:
            try:
                cert = self._indexes.cert
                context.load_verify_locations(
                    cafile=None if cert.is_dir() else cert, capath=cert if cert.is_dir() else None
                )
            except (OSError, ssl.SSLError) as error:
                raise NotCheckedError(
                    "the certificates cannot be read",
                    where=str(self._indexes.cert),
                    why=str(error.strerror or error),
                    todo="correct PIP_CERT",
                ) from error
        return context

    def close(self) -> None:
        """Close every connection."""
        if "_client" in self.__dict__:
            self._client.close()

    def stop(self) -> None:
        """End every wait and every transfer of this client soon, from any thread."""
        self.stopped.set()
        with self._guard:
            for connection in self._sockets:
                # On a copy of the handle: shutting down an SSLSocket itself pulls it from under its reader.
                with (
                    suppress(OSError),
                    socket.fromfd(connection.fileno(), connection.family, connection.type) as copy,
                ):
                    copy.shutdown(socket.SHUT_RDWR)

    def pause(self, failures: int, asked: float | None) -> None:
        """Wait before the next try.

        Raises:
            NotCheckedError: the run is being stopped.
        """
        if self.stopped.wait(self.patience.wait(failures, asked)):
            raise NotCheckedError("stopped before it was fetched")

    def page(self, url: str, *, accept: str, limit: int) -> Page:
        """A whole answer of at most `limit` bytes, asked for again while the fault may pass.

        Raises:
            WebFaultError: no good answer.
        """
        failures = 0
        while True:
            try:
                with self.stream(url, {"Accept": accept}) as response:
                    body = _read_at_most(response, limit)
                    return Page(str(response.url), response.headers.get("Content-Type", ""), body)
            except WebFaultError as fault:
                failures += 1
                if not fault.passing or failures >= self.patience.attempts:
                    raise
                self.pause(failures, fault.wait)

    @contextmanager
    def stream(self, url: str, headers: dict[str, str]) -> Iterator["httpx.Response"]:
        """One GET whose body the caller reads; faults while reading are WebFaultErrors too.

        Redirects may go from http to https, never to another scheme.

        Raises:
            WebFaultError: no connection, a status of 400 or above, a refused redirect, a connection that broke off.
        """
        import httpx

        with self._guard:
            client = self._client
        try:
            request = client.build_request("GET", url, headers=headers)
        except (httpx.InvalidURL, UnicodeError, ValueError) as error:
            raise WebFaultError(f"the URL {redacted(url)} is malformed", passing=False) from error
        try:
            response = client.send(request, stream=True)
            for _ in range(_MOST_REDIRECTS):
                following = response.next_request
                if following is None:
                    break
                response.close()
                _check_redirect(request.url.scheme, following.url.scheme, str(following.url))
                request = following
                response = client.send(request, stream=True)
            else:
                response.close()
                raise WebFaultError("too many redirects", passing=False)
            try:
                if response.status_code >= _BAD:
                    _refuse(response)
                if response.status_code not in (_OK, 206):
                    raise WebFaultError(f"answered {response.status_code}", passing=False)
                with self._known(response):
                    yield response
            finally:
                response.close()
        except httpx.UnsupportedProtocol as error:
            raise WebFaultError("the scheme of the URL is not supported", passing=False) from error
        except httpx.TransportError as error:
            raise WebFaultError(_transport_reason(error, request.url.host), passing=True) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, UnicodeError) as error:
            raise WebFaultError(f"{type(error).__name__} at {redacted(url)}", passing=False) from error

    @contextmanager
    def _known(self, response: "httpx.Response") -> Iterator[None]:
        """Keep the socket of an answer within reach of `stop` while its body is read."""
        stream = response.extensions.get("network_stream")
        connection = stream.get_extra_info("socket") if stream is not None else None
        if connection is None:
            yield
            return
        with self._guard:
            self._sockets.add(connection)
        try:
            yield
        finally:
            with self._guard:
                self._sockets.discard(connection)


def _read_at_most(response: "httpx.Response", limit: int) -> bytes:
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > limit:
            raise WebFaultError(f"the page is larger than {limit} bytes", passing=False)
    return bytes(body)


def _check_redirect(before: str, after: str, target: str) -> None:
    if after != before and (before, after) != ("http", "https"):
        raise WebFaultError(f"a redirect from {before} to {redacted(target)} is refused", passing=False)


def _refuse(response: "httpx.Response") -> NoReturn:
    status = response.status_code
    raise WebFaultError(
        f"answered {status} {response.reason_phrase[:40]}".strip(),
        passing=status in _PASSING,
        status=status,
        wait=retry_after(response.headers.get("Retry-After")),
    )


def retry_after(text: str | None) -> float | None:
    """Seconds of a Retry-After header in its number form or as a date."""
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        from email.utils import parsedate_to_datetime

        try:
            return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
        except (ValueError, OverflowError):
            return None


def _transport_reason(error: "httpx.TransportError", host: str) -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return f"no answer from {host} in time"
    if isinstance(error, httpx.ConnectError):
        return f"no connection to {host}: {error}"
    return "the connection broke off"


def _netrc_login() -> "httpx.Auth | None":
    """Logins of the user's netrc file, which pip uses too."""
    import netrc

    import httpx

    try:
        return httpx.NetRCAuth()
    except (OSError, netrc.NetrcParseError):
        return None


def with_login_of(url: str, index: str) -> str:
    """The URL of a file with the index's user and password where both lie on the same host and port."""
    if "@" not in index:
        return url
    theirs, ours = urlsplit(url), urlsplit(index)
    login, at, host = ours.netloc.rpartition("@")
    if at and "@" not in theirs.netloc and (theirs.scheme, theirs.netloc) == (ours.scheme, host):
        return theirs._replace(netloc=f"{login}@{host}").geturl()
    return url
