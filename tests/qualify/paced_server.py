"""A server that sends tokens on a fixed schedule and tells when it really did: `python paced_server.py PORT_FILE`.

Raw sockets in one thread, everything encoded before it is due. It speaks SGLang's `/generate` and `/v1/completions`,
always streamed: token number n leaves `--first-ms` + (n - 1) x `--gap-ms` after the request came, whatever happened to
those before. `GET /sent` answers when the request was read and when each token was sent, in time.monotonic_ns, of each
stream since it was last asked. A path such as `/generate?fault=cut` gives an answer that is wrong, or right in an
unusual way.
"""

import argparse
import functools
import heapq
import json
import os
import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
GZIPPED = CHUNKED.replace(b"Transfer", b"Content-Encoding: gzip\r\nTransfer")
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
END = b"0\r\n\r\n"
RESET = struct.pack("ii", 1, 0)
RETRY_NS = 200_000
NS = 1_000_000


@dataclass
class Stream:
    """One answer on its way.

    Attributes:
        parts: what is sent when it is due, each part in a segment of its own; the end comes with the last token.
        begun_ns: when the request was read.
        sent_ns: when each part was sent.
    """

    link: socket.socket
    parts: tuple[bytes, ...]
    ending: str
    begun_ns: int
    first_ns: int
    gap_ns: int
    sent_ns: list[int] = field(default_factory=list)
    rest: bytes = b""

    def due(self) -> int:
        """When the next part is to be sent."""
        return self.begun_ns + self.first_ns + len(self.sent_ns) * self.gap_ns


class Paced:
    """The server."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.door = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.door.setblocking(False)  # noqa: FBT003  positional in the standard library
        self.poll = select.epoll()
        self.poll.register(self.door, select.EPOLLIN)
        self.links: dict[int, socket.socket] = {}
        self.asked: dict[int, bytes] = {}
        self.due: list[tuple[int, int, Stream]] = []
        self.streams: list[Stream] = []

    def run(self) -> None:
        """Serve until the parent is gone."""
        parent = os.getppid()
        while os.getppid() == parent:
            self.send_what_is_due()
            left = self.due[0][0] - time.monotonic_ns() if self.due else 50 * NS
            if left > 2 * NS or not self.due:
                self.take(self.poll.poll((left - NS) / 1e9 if self.due else 0.05))
            else:
                self.take(self.poll.poll(0))  # however much is due, a request that has come is read
                left = self.due[0][0] - time.monotonic_ns()
                time.sleep(max(left, 0) / 1e9)

    def take(self, ready: list[tuple[int, int]]) -> None:
        """Read everything that has come before any of it is answered, so that no request waits for another one."""
        came: list[tuple[int, int, bytes]] = []
        for number, _ in ready:
            if number == self.door.fileno():
                self.let_in()
                continue
            try:
                data = self.links[number].recv(1 << 20)
            except ConnectionError:
                data = b""
            came.append((number, time.monotonic_ns(), data))
        for number, when, data in came:
            if not data:
                self.leave(number)
                continue
            whole = self.asked.get(number, b"") + data
            head, blank, body = whole.partition(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"), 0
            )
            if blank and len(body) >= length:
                self.asked.pop(number, None)
                self.answer(self.links[number], when, head.split(b"\r\n")[0].decode(), body)
            else:
                self.asked[number] = whole

    def let_in(self) -> None:
        """Accept whoever waits."""
        while True:
            try:
                link, _ = self.door.accept()
            except BlockingIOError:
                return
            link.setblocking(False)  # noqa: FBT003  positional in the standard library
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.links[link.fileno()] = link
            self.poll.register(link, select.EPOLLIN)

    def leave(self, number: int) -> None:
        """A connection is closed, by the client or by what it asked for."""
        link = self.links.pop(number)
        self.poll.unregister(number)
        link.close()

    def answer(self, link: socket.socket, when: int, line: str, body: bytes) -> None:
        """Answer at once, or put a stream on the schedule."""
        path, _, fault = line.split(" ")[1].partition("?fault=")
        if path == "/sent":
            told = [{"begun_ns": each.begun_ns, "sent_ns": each.sent_ns} for each in self.streams]
            link.sendall(whole({"streams": told, "open": len(self.links) - 1}))
            self.streams = []
        elif path in ("/generate", "/v1/completions"):
            parts, ending = stream_parts(path, asked_for(body), fault)
            first, gap = self.options.first_ms * NS, self.options.gap_ms * NS
            link.sendall(parts[0])
            stream = Stream(link, parts[1:], ending, when, int(first), int(gap))
            self.streams.append(stream)
            if stream.parts:
                heapq.heappush(self.due, (stream.due(), len(self.streams), stream))
        elif path == "/v1/models":
            head, blank, models = whole({"data": [{"id": "paced"}]}).partition(b"\r\n\r\n")
            link.sendall(head + (b"\r\nConnection: close" if self.options.closing else b"") + blank)
            time.sleep(self.options.models_ms / 1000)
            link.sendall(models)
            if self.options.closing:
                self.leave(link.fileno())
        else:
            link.sendall(whole({"model_path": "paced"}))

    def send_what_is_due(self) -> None:
        """Send each part whose time has come."""
        while self.due and self.due[0][0] <= time.monotonic_ns():
            _, order, stream = heapq.heappop(self.due)
            if stream.link.fileno() < 0:
                continue
            data = stream.rest or stream.parts[len(stream.sent_ns)]
            now = time.monotonic_ns()
            try:
                sent = stream.link.send(data)
            except BlockingIOError:
                sent = 0
            except ConnectionError:
                continue  # the poll says that it is gone
            stream.rest = data[sent:]
            if stream.rest:
                heapq.heappush(self.due, (now + RETRY_NS, order, stream))
                continue
            stream.sent_ns.append(now)
            if len(stream.sent_ns) < len(stream.parts):
                heapq.heappush(self.due, (stream.due(), order, stream))
            elif stream.ending != "open":
                if stream.ending == "reset":
                    stream.link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                self.leave(stream.link.fileno())


def asked_for(body: bytes) -> int:
    """How many tokens a request wants."""
    wanted: dict[str, Any] = json.loads(body)
    return int(wanted.get("max_tokens") or wanted["sampling_params"]["max_new_tokens"])


def whole(body: dict[str, Any]) -> bytes:
    """An answer in one piece."""
    data = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data)


@functools.cache
def stream_parts(path: str, count: int, fault: str) -> tuple[tuple[bytes, ...], str]:
    """What is sent at once, as engines send the head, and then when it is due; and what becomes of the connection."""
    line = "\r\n\r\n" if fault == "crlf" else "\n\n"
    events = [f"data: {json.dumps(token(path, number, count))}{line}".encode() for number in range(1, count + 1)]
    events[-1] += f"data: [DONE]{line}".encode()
    return FAULTS.get(fault, framed)(events), ENDINGS.get(fault, "open")


def framed(events: list[bytes], head: bytes = CHUNKED, end: bytes = END) -> tuple[bytes, ...]:
    """Each event as a chunk."""
    *others, last = map(chunk, events)
    return (head, *others, last + end)


def with_length(events: list[bytes]) -> tuple[bytes, ...]:
    """An answer whose length is told before it comes."""
    return (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % sum(map(len, events)), *events)


def split(events: list[bytes]) -> tuple[bytes, ...]:
    """Seven bytes at a time, through everything that belongs together."""
    wire = b"".join(framed(events))
    return tuple(wire[at : at + 7] for at in range(0, len(wire), 7))


FAULTS: dict[str, Callable[[list[bytes]], tuple[bytes, ...]]] = {
    "cut": lambda events: (*framed(events)[:-1], framed(events)[-1][:60]),
    "reset": lambda events: framed(events)[:-1],
    "gzip": lambda events: framed(events, head=GZIPPED),
    "until-close": lambda events: (UNTIL_CLOSE, *events),
    "length": with_length,
    "trailer": lambda events: framed(events, end=b"0\r\nX-Made: all\r\n\r\n"),
    "continue": lambda events: (CONTINUE, *with_length(events)),
    "continued": lambda events: (CONTINUE + with_length(events)[0], *with_length(events)[1:]),
    "late-end": lambda events: (*framed(events, end=b""), b"0\r\n", b"\r\n"),
    "no-http": lambda _: (b"SSH-2.0-server\r\n\r\n",),
    "bad-chunk": lambda events: (*framed(events)[:-1], b"zz\r\nno\r\n\r\n"),
    "status": lambda _: (b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nlate",),
    "silent": lambda events: framed(events)[:2],
    "split": split,
    "joined": lambda events: (b"".join(framed(events)),),
}
ENDINGS = {"cut": "closed", "reset": "reset", "until-close": "closed"}


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked answer."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def token(path: str, number: int, count: int) -> dict[str, Any]:
    """What is said with one token, as the engines say it."""
    reason = "length" if number == count else None
    if path == "/generate":
        meta = {"id": "0" * 32, "finish_reason": {"type": reason} if reason else None, "prompt_tokens": 64}
        meta |= {"weight_version": "default", "completion_tokens": number, "cached_tokens": 0}
        return {"text": " word", "output_ids": [number], "meta_info": meta}
    usage = {"prompt_tokens": 64, "completion_tokens": number, "total_tokens": 64 + number}
    details = {"prompt_tokens_details": {"cached_tokens": 0}}
    choice = {"index": 0, "text": " word", "token_ids": [number], "logprobs": None, "finish_reason": reason}
    return {
        "id": "cmpl-0",
        "object": "text_completion",
        "model": "paced",
        "choices": [choice],
        "usage": usage | details,
    }


def main() -> None:
    """Listen and say where."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port_file", type=Path)
    parser.add_argument("--first-ms", type=float, default=2)
    parser.add_argument("--gap-ms", type=float, default=1)
    parser.add_argument("--models-ms", type=float, default=0, help="from the head of the list of models to its body")
    parser.add_argument("--closing", action="store_true", help="close the connection after the list of models")
    options = parser.parse_args()
    server = Paced(options)
    temporary = options.port_file.with_suffix(".new")
    temporary.write_text(str(server.door.getsockname()[1]))
    temporary.replace(options.port_file)
    server.run()


if __name__ == "__main__":
    main()
