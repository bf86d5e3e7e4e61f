"""Waiting until the server is ready, by its own endpoint, with a deadline; whoever answers must be ours."""

import http.client
import math
import select
import time
from typing import Any

from reproducer.documents.base import parse_json
from reproducer.errors import InvalidDocumentError, NotCheckedError
from reproducer.launch.plan import Plan
from reproducer.launch.ports import HOST, answering
from reproducer.launch.startup_log import Follower, last_words
from reproducer.launch.supervised import Supervised
from reproducer.progress import Reporter, Task

_POLL_S = 0.05
_ATTEMPT_S = 30.0
_INFO_S = 30.0
_LARGEST_ANSWER = 16 << 20
_NOT_THERE = (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.METHOD_NOT_ALLOWED, http.HTTPStatus.NOT_IMPLEMENTED)


class _Gone(Exception):  # noqa: N818  not an error of ours: the server ended while we asked
    """The server ended while its answer was awaited."""


def wait_until_ready(supervised: Supervised, plan: Plan, port: int, *, reporter: Reporter) -> int:
    """Wait for the readiness endpoint to answer 200; returns the nanoseconds that took since the call.

    Raises:
        NotCheckedError: the server ended, was not ready in time, or a process that is not ours answers on the port.
    """
    readiness = plan.launch.readiness
    since = time.monotonic_ns()
    deadline = since / 1e9 + readiness.deadline_s
    follower = Follower(supervised.order.log_path, plan.engine)
    with reporter.task("server", None, "seconds") as task:
        told = _Told(task, since / 1e9)
        while (left := deadline - time.monotonic()) > 0:
            told.until(time.monotonic())
            if (phase := follower.phase()) is not None:
                reporter.detail(f"server: {phase}")
            if supervised.ended(min(_POLL_S, left)):
                raise died(supervised, plan, "the server died before it was ready")
            if not answering(port, supervised.supervisor.pid):
                continue
            try:
                status, _ = _get(supervised, port, readiness.endpoint, min(left, _ATTEMPT_S))
            except _Gone:
                continue
            if status == http.HTTPStatus.OK:
                return time.monotonic_ns() - since
    raise NotCheckedError(
        f"the server was not ready within {readiness.deadline_s} s",
        where=f"log {supervised.order.log_path}",
        why=last_words(supervised.order.log_path, plan.engine, plan.values),
        todo="give it more time with launch.readiness.deadline_s in the manifest, or read the log",
    )


def died(supervised: Supervised, plan: Plan, what: str) -> NotCheckedError:
    """The error for a server that ended by itself."""
    status = supervised.exit_status()
    how = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
    return NotCheckedError(
        what,
        where=f"log {supervised.order.log_path}",
        why=f"{how}; {last_words(supervised.order.log_path, plan.engine, plan.values)}",
    )


def server_info(supervised: Supervised, plan: Plan, port: int) -> dict[str, Any]:
    """What the ready server tells about itself; what it tells besides stands under the path it was read from.

    Raises:
        NotCheckedError: it does not answer, or not with a table.
    """
    engine = plan.engine
    info = _table(supervised, plan, port, engine.info_endpoint)
    if info is None:
        raise NotCheckedError(
            "the server does not tell its effective values",
            where=f"http://{HOST}:{port}{engine.info_endpoint}",
            why="it has no such endpoint",
            todo=engine.info_hint,
        )
    more = {path: _table(supervised, plan, port, path) for path in engine.more_endpoints}
    return {**info, **{path: table for path, table in more.items() if table is not None}}


def _table(supervised: Supervised, plan: Plan, port: int, endpoint: str) -> dict[str, Any] | None:
    """The table that an endpoint answers; None where there is no such endpoint. Raises as `server_info`."""
    where = f"http://{HOST}:{port}{endpoint}"
    if not answering(port, supervised.supervisor.pid):
        raise NotCheckedError("the server does not listen any more", where=where)
    try:
        status, body = _get(supervised, port, endpoint, _INFO_S)
    except _Gone:
        raise died(supervised, plan, "the server died while it was asked for its effective values") from None
    if status in _NOT_THERE:
        return None
    if status != http.HTTPStatus.OK:
        why = f"status {status}" if status else "no answer"
        todo = plan.engine.info_hint
        raise NotCheckedError("the server does not tell its effective values", where=where, why=why, todo=todo)
    try:
        info = parse_json(body, where=where, limit=_LARGEST_ANSWER)
    except InvalidDocumentError as error:
        why = error.why or error.what
        raise NotCheckedError("the server does not tell its effective values", where=where, why=why) from error
    if not isinstance(info, dict):
        raise NotCheckedError("the server does not tell its effective values", where=where, why="not a table")
    return info


class _Told:
    """Whole seconds told to a progress task."""

    def __init__(self, task: Task, since: float) -> None:
        self.task = task
        self.since = since
        self.seconds = 0

    def until(self, now: float) -> None:
        whole = math.floor(now - self.since)
        if whole > self.seconds:
            self.task.advance(whole - self.seconds)
            self.seconds = whole


def _get(supervised: Supervised, port: int, path: str, seconds: float) -> tuple[int, bytes]:
    """Status and body of one GET; status 0 where no answer came. Heeds the server's end while it waits.

    Raises:
        _Gone: the server ended meanwhile.
    """
    deadline = time.monotonic() + seconds
    connection = http.client.HTTPConnection(HOST, port, timeout=min(seconds, 5.0))
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        while not select.select([connection.sock], [], [], _POLL_S)[0]:
            if supervised.exit_status() is not None:
                raise _Gone
            if time.monotonic() > deadline:
                return 0, b""
        response = connection.getresponse()
        body = b""
        while (block := response.read1(65536)) and len(body) <= _LARGEST_ANSWER:
            body += block
            if time.monotonic() > deadline:
                return 0, b""
    except (OSError, http.client.HTTPException):
        return 0, b""
    else:
        return response.status, body
    finally:
        connection.close()
