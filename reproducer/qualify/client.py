"""One HTTP client for every measure: requests released together, each piece of an answer with the time it arrived.

Between two pieces nothing happens but storing them: the kernel writes them where they stay, and they are read when the
clock no longer runs.
"""

import asyncio
import gc
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from reproducer.documents.base import shown
from reproducer.errors import NotCheckedError
from reproducer.qualify.connection import Connection, Fault, Reading
from reproducer.qualify.flight import Flight

DEADLINE_S = 300.0
LARGEST_ANSWER = 64 << 20
_CONNECT_S = 10.0
_ASK_S = 60.0
_HTTP_OK = 200


@dataclass(frozen=True)
class Call:
    """One request that is ready to be sent."""

    path: str
    body: bytes
    prompt_sha256: str


@dataclass
class Exchange:
    """What came back for one call; times are time.monotonic_ns.

    Attributes:
        sent_ns: just before the request was handed to the socket.
        finished_ns: when the answer's end, or the fault, was seen.
        chunks: (time of receipt, bytes) of each piece of the body, as it came.
        fault: what kind of fault ended it; None where the answer came whole with status 200.
        error: the fault in words.
    """

    sent_ns: int
    finished_ns: int = 0
    chunks: Sequence[tuple[int, bytes]] = field(default_factory=list)
    fault: Fault | None = None
    error: str | None = None


def call(path: str, payload: dict[str, Any], prompt_sha256: str) -> Call:
    """A call with a JSON body."""
    return Call(path, json.dumps(payload, separators=(",", ":")).encode(), prompt_sha256)


def together(
    url: str, calls: Sequence[Call], *, deadline_s: float = DEADLINE_S, flight: Flight | None = None
) -> tuple[Exchange, ...]:
    """Send all calls at once, each on an open connection of its own, and keep what comes back.

    A fault of one call is kept in its exchange and does not disturb the others.

    Args:
        url: the server, such as `http://127.0.0.1:30000`.
        calls: what to send.
        deadline_s: after so many seconds a call that is not answered is given up.
        flight: where whoever watches sees what has arrived so far.
    """
    collecting = gc.isenabled()
    gc.disable()  # a collection between two pieces would be time that the server did not take
    try:
        return asyncio.run(_together(urlsplit(url), calls, deadline_s, flight or Flight()))
    finally:
        if collecting:
            gc.enable()


async def _together(
    server: SplitResult, calls: Sequence[Call], deadline_s: float, flight: Flight
) -> tuple[Exchange, ...]:
    """Open the connections, release the calls, and read the answers when the last of them has come."""
    loop, task, raised = asyncio.get_running_loop(), asyncio.current_task(), list[BaseException]()

    def stop(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        raised.append(context.get("exception") or RuntimeError(context["message"]))
        if task is not None:
            task.cancel()

    loop.set_exception_handler(stop)  # a signal's exception may come up in a callback, which asyncio would only log
    opened: list[Connection] = []
    try:
        connections = await asyncio.gather(*(_open(server, opened) for _ in calls))
        return await _released(connections, [_post(server, each) for each in calls], deadline_s, flight)
    except asyncio.CancelledError:
        if raised:
            raise raised[0] from None
        raise
    finally:
        for connection in opened:
            connection.abort()


async def _released(
    connections: Sequence[Connection], readings: Sequence[Reading], deadline_s: float, flight: Flight
) -> tuple[Exchange, ...]:
    """Send a request on each connection at once."""
    sent = [
        connection.send(reading.request, LARGEST_ANSWER)
        for connection, reading in zip(connections, readings, strict=True)
    ]
    flight.answers = [connection.arrived for connection in connections]
    timer = asyncio.get_running_loop().call_later(deadline_s, _give_up, connections, deadline_s)
    await _answered(list(zip(connections, readings, strict=True)))
    timer.cancel()
    return tuple(
        Exchange(
            sent_ns=sent_ns,
            finished_ns=reading.ended_ns or connection.closed_ns or time.monotonic_ns(),
            chunks=reading.body,
            fault=reading.fault[0] if reading.fault else None,
            error=reading.fault[1] if reading.fault else None,
        )
        for sent_ns, connection, reading in zip(sent, connections, readings, strict=True)
    )


async def _answered(waiting: list[tuple[Connection, Reading]]) -> None:
    """Wait until all answers have come, as it seems; read them, and wait on for those that are not whole."""
    while waiting:
        await asyncio.gather(*(connection.rest() for connection, _ in waiting))
        for connection, reading in waiting:
            reading.read(connection)
        waiting = [(connection, reading) for connection, reading in waiting if not reading.over]
        for connection, _ in waiting:
            connection.go_on()


def _give_up(connections: Sequence[Connection], deadline_s: float) -> None:
    for connection in connections:
        connection.end("deadline", f"no whole answer within {deadline_s:g} s")


async def _open(server: SplitResult, opened: list[Connection]) -> Connection:
    """Open a connection with a request that computes nothing; a fault shows in the timed call."""
    connection = await _connected(server, opened)
    reading = Reading("GET", _target(server, "/v1/models"), {"Host": server.netloc})
    connection.send(reading.request, LARGEST_ANSWER)
    waiting = asyncio.get_running_loop().call_later(_CONNECT_S, connection.abort)
    await _answered([(connection, reading)])
    waiting.cancel()
    if connection.closed or not reading.lasts:
        connection.abort()
        connection = await _connected(server, opened)
    return connection


async def _connected(server: SplitResult, opened: list[Connection]) -> Connection:
    """A new connection; where there is none, one that has ended with this fault."""
    connection = Connection()
    opened.append(connection)
    try:
        async with asyncio.timeout(_CONNECT_S):
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: connection, server.hostname or "", server.port or 80)
    except (OSError, ValueError) as error:
        connection.end("connection", f"the connection failed: {type(error).__name__}: {shown(str(error))}")
    return connection


def _post(server: SplitResult, each: Call) -> Reading:
    """How the answer of a call will be read; it has the bytes of the request."""
    headers = {"Host": server.netloc, "Content-Type": "application/json", "Accept-Encoding": "identity"}
    return Reading("POST", _target(server, each.path), headers, each.body)


def _target(server: SplitResult, path: str) -> str:
    return server.path.rstrip("/") + path


def ask(url: str, path: str, payload: dict[str, Any] | None = None) -> Any:
    """The JSON that an endpoint answers to GET, or to POST where there is a payload; never timed.

    Returns:
        The parsed body; None where the endpoint does not exist (404 or 405).

    Raises:
        NotCheckedError: no answer, another status, or no JSON.
    """
    import httpx

    where = f"{url}{path}"
    try:
        with httpx.Client(timeout=_ASK_S, trust_env=False) as client:
            response = client.get(where) if payload is None else client.post(where, json=payload)
    except httpx.HTTPError as error:
        raise NotCheckedError("the server does not answer", where=where, why=shown(str(error))) from error
    if response.status_code in (404, 405):
        return None
    if response.status_code != _HTTP_OK:
        raise NotCheckedError(f"HTTP status {response.status_code}", where=where, why=shown(response.text))
    try:
        return response.json()
    except (ValueError, RecursionError) as error:
        raise NotCheckedError("the answer is not JSON", where=where, why=shown(response.text)) from error
