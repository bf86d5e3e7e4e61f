"""What a live server tells about itself: bounded in size and time, and nothing is believed that is no table."""

import contextlib
import http.client
import socket
import threading
import time
from typing import Any

from reproducer.documents.base import parse_json, shown
from reproducer.engines.interface import Engine
from reproducer.errors import InvalidDocumentError, NotCheckedError

_LARGEST = 16 << 20
_PATIENCE_S = 30.0
_LATE = "no answer in time"


def server_info(
    engine: Engine, *, host: str, port: int, secure: bool = False, patience_s: float = _PATIENCE_S
) -> dict[str, Any]:
    """The table at the engine's own endpoint, with what further endpoints tell under their paths.

    Raises:
        NotCheckedError: no answer in time, or none that is a table.
    """
    deadline = time.monotonic() + patience_s
    info = _table(host, port, engine.info_endpoint, secure=secure, deadline=deadline, hint=engine.info_hint)
    for path in engine.more_endpoints:
        try:
            info[path] = _table(host, port, path, secure=secure, deadline=deadline, hint="")
        except NotCheckedError:
            continue
    return info


def _table(host: str, port: int, path: str, *, secure: bool, deadline: float, hint: str) -> dict[str, Any]:
    where = f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}{path}"
    told = "the server does not tell its effective values"
    status, body, fault = _get(host, port, path, secure=secure, deadline=deadline)
    if not status:
        raise NotCheckedError(
            told, where=where, why=fault, todo="see whether a server runs there that can be reached from here"
        )
    if status != http.HTTPStatus.OK:
        raise NotCheckedError(told, where=where, why=f"status {status}", todo=hint)
    try:
        info = parse_json(body, where=where, limit=_LARGEST)
    except InvalidDocumentError as error:
        raise NotCheckedError(told, where=where, why=error.why or error.what) from error
    if not isinstance(info, dict):
        raise NotCheckedError(told, where=where, why=f"{shown(info)} is no table")
    return info


def _get(host: str, port: int, path: str, *, secure: bool, deadline: float) -> tuple[int, bytes, str]:
    """Status and body of one GET; status 0 and the reason where no whole answer came in time."""
    left = deadline - time.monotonic()
    if left <= 0:
        return 0, b"", _LATE
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(host, port, timeout=min(left, 10.0))
    watch = threading.Timer(left, _cut, [connection])  # an answer that comes in drops renews every other timeout
    watch.daemon = True
    watch.start()
    try:
        connection.request("GET", path, headers={"Connection": "close", "Accept": "application/json"})
        response = connection.getresponse()
        body = b""
        while (block := response.read1(65536)) and len(body) <= _LARGEST:
            body += block
            if time.monotonic() > deadline:
                break
    except (OSError, http.client.HTTPException, ValueError) as error:
        return 0, b"", _why(error, late=time.monotonic() >= deadline)
    else:
        return (response.status, body, "") if time.monotonic() < deadline else (0, b"", _LATE)
    finally:
        watch.cancel()
        connection.close()


def _why(error: Exception, *, late: bool) -> str:
    """The reason; a connection that was cut at the deadline ends in any error."""
    if late or isinstance(error, TimeoutError):
        return _LATE
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"what answers there is no HTTP: {type(error).__name__}"


def _cut(connection: http.client.HTTPConnection) -> None:
    """End a connection that somebody waits for."""
    with contextlib.suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)
