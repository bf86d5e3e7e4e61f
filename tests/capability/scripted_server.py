"""An OpenAI-compatible server on a real socket that plays a model by script: perfect, clumsy or hostile.

It knows a case by what the user says first, and the turn by how often the model has spoken.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from reproducer.capability.reasoning_cases import REASONING_CASES
from reproducer.capability.tool_cases import TOOL_CASES
from tests.capability.players import Call, perfect, reasoned

MODEL = "scripted"
BROKEN: Any = {"tool_calls": [{"id": "a", "function": {"name": "get_weather", "arguments": '{"city": "Tr'}}]}
# what a clumsy model does otherwise than a perfect one, by case: turns that take the place of the script
CLUMSY_TOOLS: Mapping[str, Any] = {
    "needless-sum": ["44"],
    "right-tool-weather": [BROKEN, *perfect(TOOL_CASES["right-tool-weather"])],
    "exact-event": ["I cannot do that."],
    "json-stock": [[("check_stock", {"item": "QL-4"})], "There are 7 of QL-4, which is not enough."],
    "once-refund": [
        [("refund_order", {"order": "7718", "amount": 20})],
        "Done.",
        [("refund_order", {"order": "7718", "amount": 20})],
        "Yes, done.",
    ],
}
CLUMSY_REASONING: Mapping[str, Any] = {
    "constraints-crates": ["ANSWER: 653"],
    "ordering-runners": ["It is hard to say."],
    "revision-bill": ["ANSWER: 73.80", "ANSWER: 73.80"],
}
ALL: Mapping[str, Any] = {**TOOL_CASES, **REASONING_CASES}
CLUMSY: Mapping[str, Any] = {**CLUMSY_TOOLS, **CLUMSY_REASONING}
LOUD = "\ud800\x00" + "A" * 600_000
HOSTILE: tuple[Any, ...] = (
    {"content": LOUD},
    {"content": "43", "tool_calls": [{"id": "i", "function": {"name": "get_weather", "arguments": "{}"}}] * 40},
    {"content": None, "tool_calls": [{"id": "i", "function": {"name": "x" * 5000, "arguments": "[" * 100_000}}]},
    {"content": None, "tool_calls": [{"id": "../../x", "function": {"name": "../../etc", "arguments": {"a": 1}}}]},
    {"content": None, "tool_calls": [{}, 7, None]},
    {"content": {"text": "43"}, "tool_calls": "get_weather"},
    {"content": "CALL {}\x1b[2J", "reasoning_content": LOUD},
    {"content": [{"type": "text", "text": "__import__('os').system('true')"}]},
)


@dataclass
class Scripted:
    """A server that is up.

    Attributes:
        kind: which model it plays; may be changed while it is up.
        asked: the bodies of all chat requests.
    """

    kind: str
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)

    def message(self, body: Mapping[str, Any]) -> Any:
        """What the model says next."""
        said = [str(each.get("content")) for each in body["messages"] if each["role"] == "user"]
        spoken = sum(each["role"] == "assistant" for each in body["messages"])
        prompted = "CALL {" in str(body["messages"][0].get("content"))
        names = [name for name, case in ALL.items() if case.says[0] == said[0]]
        if self.kind == "hostile":
            place = list(TOOL_CASES).index(names[0]) + spoken
            return HOSTILE[place % len(HOSTILE)]
        tools = [name for name in names if name in TOOL_CASES]
        script: Any = perfect(TOOL_CASES[tools[0]]) if tools else reasoned(REASONING_CASES[names[0]])
        if self.kind == "clumsy":
            script = CLUMSY.get(names[0], script)
        return _message(script[spoken], prompted=prompted)


def _message(step: Any, *, prompted: bool) -> Any:
    if isinstance(step, str):
        return {"content": step}
    if isinstance(step, dict):
        return step
    if prompted:
        return {"content": "\n".join("CALL " + json.dumps({"tool": tool, "arguments": given}) for tool, given in step)}
    return {"content": None, "tool_calls": [_native(place, call) for place, call in enumerate(step)]}


def _native(place: int, call: Call) -> Any:
    tool, arguments = call
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"id": f"call-{place}", "type": "function", "function": function}


@contextmanager
def scripted(kind: str) -> Iterator[Scripted]:
    """A server that plays one kind of model, gone when the context ends."""
    state = Scripted(kind)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            """The list of models."""
            self._send({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

        def do_POST(self) -> None:
            """One chat completion."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.asked.append(body)
            message = {"role": "assistant", **state.message(body)}
            self._send(
                {
                    "id": "x",
                    "object": "chat.completion",
                    "created": 1,
                    "model": MODEL,
                    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                    "usage": {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30},
                }
            )

        def _send(self, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
