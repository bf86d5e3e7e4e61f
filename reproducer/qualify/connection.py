"""One connection that a request is timed on: what arrives is written where it stays, with the time it came.

While a request is timed nothing of the answer is read: no head, no framing, no JSON. The connection looks at the last
bytes only, to guess whether that may have been all. `Reading` finds out when the clock no longer runs; where the guess
was wrong the connection has kept on storing, and is asked again.
"""

import asyncio
import re
from collections.abc import Mapping
from time import monotonic_ns
from typing import TYPE_CHECKING, Literal

from reproducer.documents.base import shown
from reproducer.qualify.pieces import Pieces

if TYPE_CHECKING:
    from h11 import Connection as Protocol

Fault = Literal["connection", "deadline", "status", "size", "protocol"]
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,15})\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked\r\n", re.IGNORECASE)
_LARGEST_HEAD = 64 << 10
_END_OF_CHUNKS = b"\r\n\r\n"
_END_OF_EVENT = b"\r\n\r\n\r\n"  # of servers that end the lines of a stream so: the event, and the chunk that it is in
_HTTP_OK = 200


class Connection(asyncio.BufferedProtocol):
    """A connection that is open, or was.

    Attributes:
        arrived: what came since the last `send`, as it stood on the wire.
        closed_ns: when it ended; None while more can come.
        fault: what ended it, beside the server's closing it, and in words.
    """

    def __init__(self) -> None:
        self.arrived = Pieces()
        self.closed_ns: int | None = None
        self.fault: tuple[Fault, str] | None = None
        self._transport: asyncio.Transport | None = None
        self._wake: asyncio.Future[None] | None = None
        self._most = 0
        self._head = 0  # bytes of the head; 0 while it has not come
        self._end: int | None = None  # where the answer ends, if the head told; 0 where it ends in chunks

    @property
    def closed(self) -> bool:
        """Whether nothing more can come."""
        return self.closed_ns is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  create_connection gives no other
        self._transport = transport

    def send(self, request: bytes, most: int) -> int:
        """Write a request, and begin to keep at most so many bytes of its answer.

        Returns:
            time.monotonic_ns just before.
        """
        self.arrived, self._head, self._end, self._most = Pieces(), 0, None, most
        self._wake = asyncio.get_running_loop().create_future()
        self.arrived.room()
        now = monotonic_ns()
        if self._transport is not None and not self.closed:
            self._transport.write(request)
        return now

    async def rest(self) -> None:
        """Return when the answer may be whole, or when nothing more can come."""
        if self._wake is not None and not self.closed:
            await self._wake

    def go_on(self) -> None:
        """The answer was not whole."""
        self._wake = asyncio.get_running_loop().create_future()

    def end(self, fault: Fault, why: str) -> None:
        """Give the answer up."""
        if not self.closed:
            self.fault = fault, why
            self.abort()

    def abort(self) -> None:
        """Close the socket now."""
        self._close()
        if self._transport is not None:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        del sizehint
        return self.arrived.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came: note when, and whether that may be all."""
        now = monotonic_ns()
        arrived = self.arrived
        arrived.took(now, nbytes)
        if not self._head:
            self._look_at_head()
        size = arrived.size
        if size > self._most:
            self.end("size", f"the answer is larger than {self._most} bytes")
        elif self._head and self._may_be_all(size):
            self._rouse()

    def _may_be_all(self, size: int) -> bool:
        """Whether the answer may be whole: never no where it is, seldom yes where it is not."""
        if self._end != 0:
            return self._end is None or size >= self._end
        tail = self.arrived.newest(len(_END_OF_EVENT))
        if len(tail) < len(_END_OF_CHUNKS):
            return True
        return tail.endswith(_END_OF_CHUNKS) and tail != _END_OF_EVENT and size != self._head

    def eof_received(self) -> None:
        """The server has said all: the transport closes."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        if exc is not None and not self.closed:
            self.fault = "connection", f"the connection failed: {type(exc).__name__}: {shown(str(exc))}"
        self._close()

    def _close(self) -> None:
        self.closed_ns = self.closed_ns or monotonic_ns()
        self._rouse()

    def _look_at_head(self) -> None:
        """Guess from a head how the answer will end; once, in a microsecond or two."""
        start = self.arrived.newest(_LARGEST_HEAD)
        end = start.find(b"\r\n\r\n")
        if end >= 0:
            self._head = end + 4
            if length := _LENGTH.search(start, 0, end + 2):
                self._end = self._head + int(length[1])
            elif _CHUNKED.search(start, 0, end + 2):
                self._end = 0
        elif self.arrived.size > _LARGEST_HEAD:
            self._head = self.arrived.size

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class Reading:
    """The framing of one answer, read after the fact.

    Attributes:
        body: the pieces of the body, each at the time it came.
        ended_ns: when the last byte of the answer came; None while it is not whole.
        fault: what is wrong with it, and in words.
    """

    def __init__(self, method: str, target: str, headers: Mapping[str, str], content: bytes = b"") -> None:
        import h11

        self._h11: Protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LARGEST_HEAD)
        fields = [(name.encode(), value.encode()) for name, value in headers.items()]
        if content:
            fields.append((b"Content-Length", str(len(content)).encode()))
        head = self._h11.send(h11.Request(method=method, target=target.encode(), headers=fields))
        body = self._h11.send(h11.Data(data=content)) if content else b""
        self.request = (head or b"") + (body or b"")
        self._h11.send(h11.EndOfMessage())
        self.body = Pieces()
        self.ended_ns: int | None = None
        self.fault: tuple[Fault, str] | None = None
        self._status = _HTTP_OK
        self._read = 0

    @property
    def over(self) -> bool:
        """Whether there is nothing more to read."""
        return self.ended_ns is not None or self.fault is not None

    @property
    def lasts(self) -> bool:
        """Whether the connection can take another request."""
        import h11

        return self.fault is None and self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE

    def read(self, connection: Connection) -> None:
        """Read what has arrived since the last time."""
        import h11

        try:
            while self._read < len(connection.arrived) and not self.over:
                when, data = connection.arrived[self._read]
                self._read += 1
                self._h11.receive_data(data)
                self._take(when)
        except h11.RemoteProtocolError as error:
            self.fault = "protocol", f"the answer is not HTTP: {shown(str(error))}"
        if not self.over and connection.closed_ns is not None:
            self.fault = connection.fault or self._at_close(connection.closed_ns)
        if self.fault is None and self.ended_ns is not None and self._status != _HTTP_OK:
            start = b"".join(data for _, data in self.body[:4])[:300].decode(errors="replace")
            self.fault = "status", f"HTTP status {self._status}: {shown(start)}"

    def _at_close(self, closed_ns: int) -> tuple[Fault, str] | None:
        """What it means that the server closed the connection: the end of some answers, and a fault of the others."""
        import h11

        try:
            self._h11.receive_data(b"")
            self._take(closed_ns)
        except h11.RemoteProtocolError:
            return "connection", "the connection failed: the server closed it before the answer was whole"
        return self.fault

    def _take(self, when: int) -> None:
        """What the bytes so far say."""
        import h11

        while not self.over:
            event = self._h11.next_event()
            if isinstance(event, h11.Response):
                self._status = event.status_code
                encoding = dict(event.headers).get(b"content-encoding", b"identity")
                if encoding.lower() != b"identity":
                    self.fault = "protocol", f"the answer is encoded ({shown(encoding.decode(errors='replace'))})"
            elif isinstance(event, h11.Data):
                self.body.add(when, event.data)
            elif isinstance(event, h11.EndOfMessage):
                self.ended_ns = when
            elif not isinstance(event, h11.InformationalResponse):
                return
