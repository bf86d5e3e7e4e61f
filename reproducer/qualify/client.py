"""One HTTP client for every measure: requests released together, each chunk with the time it arrived.

Between two chunks nothing happens but storing the bytes; they are read when the clock no longer runs.
"""

import asyncio
import gc
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from reproducer.documents.base import shown
from reproducer.errors import NotCheckedError

if TYPE_CHECKING:
    import httpx

DEADLINE_S = 300.0
LARGEST_ANSWER = 64 << 20
_CONNECT_S = 10.0
_ASK_S = 60.0
_HTTP_OK = 200

Fault = Literal["connection", "deadline", "status", "size"]


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
    chunks: list[tuple[int, bytes]] = field(default_factory=list)
    fault: Fault | None = None
    error: str | None = None


def call(path: str, payload: dict[str, Any], prompt_sha256: str) -> Call:
    """A call with a JSON body."""
    return Call(path, json.dumps(payload, separators=(",", ":")).encode(), prompt_sha256)


def together(url: str, calls: Sequence[Call], *, deadline_s: float = DEADLINE_S) -> tuple[Exchange, ...]:
    """Send all calls at once, each on an open connection of its own, and keep what comes back.

    A fault of one call is kept in its exchange and does not disturb the others.

    Args:
        url: the server, such as `http://127.0.0.1:30000`.
        calls: what to send.
        deadline_s: after so many seconds a call that is not answered is given up.
    """
    collecting = gc.isenabled()
    gc.disable()  # a collection between two chunks would be time that the server did not take
    try:
        return asyncio.run(_together(url, calls, deadline_s))
    finally:
        if collecting:
            gc.enable()


async def _together(url: str, calls: Sequence[Call], deadline_s: float) -> tuple[Exchange, ...]:
    import httpx

    limits = httpx.Limits(max_connections=len(calls), max_keepalive_connections=len(calls))
    timeout = httpx.Timeout(None, connect=_CONNECT_S)
    async with httpx.AsyncClient(base_url=url, timeout=timeout, limits=limits, trust_env=False) as client:
        await asyncio.gather(*(_open_connection(client) for _ in calls))
        return tuple(await asyncio.gather(*(_exchange(client, each, deadline_s) for each in calls)))


async def _open_connection(client: "httpx.AsyncClient") -> None:
    """Open one of the connections with a request that computes nothing; a fault shows in the timed call."""
    import httpx

    try:
        await client.get("/v1/models", timeout=_CONNECT_S)
    except httpx.HTTPError:
        return


async def _exchange(client: "httpx.AsyncClient", each: Call, deadline_s: float) -> Exchange:
    import httpx

    size = 0
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    request = client.build_request("POST", each.path, content=each.body, headers=headers)
    exchange = Exchange(sent_ns=time.monotonic_ns())
    try:
        async with asyncio.timeout(deadline_s):
            response = await client.send(request, stream=True)
            try:
                async for chunk in response.aiter_raw():
                    exchange.chunks.append((time.monotonic_ns(), chunk))
                    size += len(chunk)
                    if size > LARGEST_ANSWER:
                        exchange.fault, exchange.error = "size", f"the answer is larger than {LARGEST_ANSWER} bytes"
                        break
            finally:
                await response.aclose()
    except TimeoutError:
        exchange.fault, exchange.error = "deadline", f"no whole answer within {deadline_s:g} s"
    except httpx.HTTPError as error:
        exchange.fault = "connection"
        exchange.error = f"the connection failed: {type(error).__name__}: {shown(str(error))}"
    else:
        if response.status_code != _HTTP_OK and exchange.fault is None:
            body = b"".join(chunk for _, chunk in exchange.chunks)[:300].decode(errors="replace")
            exchange.fault, exchange.error = "status", f"HTTP status {response.status_code}: {shown(body)}"
    exchange.finished_ns = time.monotonic_ns()
    return exchange


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
