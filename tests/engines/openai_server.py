"""A small server that speaks the OpenAI protocol, with the standard library alone.

Run as `PYTHON openai_server.py --host H --port P --alias NAME ...`. It makes tokens that follow from the prompt, keeps
prefixes of 16 tokens in memory, and tells as much of it as `--tells` says: `counts` with each piece of a stream, `ids`,
`cached` tokens, likeliest tokens as `logprobs`.
"""

import argparse
import hashlib
import json
import os
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PAGE = 16
OPTIONS = argparse.Namespace()
KEPT: set[str] = set()
ASKED: list[str] = []


def greedy(ids: list[int], count: int) -> list[int]:
    """The tokens that follow a prompt."""
    return [int(hashlib.sha256(f"{ids}{n}".encode()).hexdigest()[:6], 16) % 30000 for n in range(count)]


def cached(ids: list[int]) -> int:
    """How many tokens of a prompt were there; all of them are afterwards. The last token is always computed."""
    names = [hashlib.sha256(json.dumps(ids[:end]).encode()).hexdigest() for end in range(PAGE, len(ids), PAGE)]
    found = next((at for at, name in enumerate(names) if name not in KEPT), len(names))
    KEPT.update(names)
    return found * PAGE


def usage(prompt: int, output: int, hit: int | None) -> dict[str, Any]:
    """The counts of an answer."""
    found: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    if hit is not None and "cached" in OPTIONS.tells:
        found["prompt_tokens_details"] = {"cached_tokens": hit}
    return found


def tokens(text: str) -> list[int]:
    """One token a word."""
    return [int(hashlib.sha256(word.encode()).hexdigest()[:4], 16) for word in text.split()]


class Handler(BaseHTTPRequestHandler):
    """The endpoints."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a piece leaves when it is made

    def log_message(self, *_: object) -> None:
        """Nothing: the log is ours."""

    def answer(self, body: object, status: int = 200) -> None:
        """Send JSON."""
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        """Facts."""
        ASKED.append(f"GET {self.path}")
        if self.path == "/v1/models":
            self.answer({"object": "list", "data": [{"id": OPTIONS.shows or OPTIONS.alias, "object": "model"}]})
        elif self.path == "/props" and OPTIONS.props:
            self.answer(
                {
                    "model_path": OPTIONS.model,
                    "build_info": OPTIONS.build,
                    "total_slots": 2,
                    "chat_template": "{{ messages }}",
                    "default_generation_settings": {"n_ctx": 4096, "params": {}},
                }
            )
        elif self.path == "/asked":
            self.answer({"asked": ASKED, "environment": dict(os.environ), "argv": sys.argv})
        else:
            self.answer({"error": "not here"}, 404)

    def do_POST(self) -> None:
        """Work."""
        ASKED.append(f"POST {self.path}")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/completions" and OPTIONS.refuses:
            self.answer({"error": {"message": "no token ids here"}}, 400)
        elif self.path == "/v1/completions" and body.get("stream"):
            self.stream(body)
        elif self.path == "/v1/completions":
            self.whole(body)
        elif self.path == "/v1/chat/completions":
            self.chat(body)
        elif self.path == "/tokenize":
            self.answer({"tokens": tokens(body["content"])})
        else:
            self.answer({"error": "not here"}, 404)

    def whole(self, body: dict[str, Any]) -> None:
        """A completion in one piece."""
        made, hit = greedy(body["prompt"], body["max_tokens"]), cached(body["prompt"])
        choice: dict[str, Any] = {"index": 0, "text": "x" * len(made), "finish_reason": "length", "logprobs": None}
        if "ids" in OPTIONS.tells:
            choice["token_ids"] = made
        if body.get("logprobs"):
            spelt = "token_id:{}" if "logprobs" in OPTIONS.tells else "t{}"
            tables = [{spelt.format(each + n): -0.5 - n for n in range(body["logprobs"])} for each in made]
            choice["logprobs"] = {"top_logprobs": tables}
        self.answer({"choices": [choice], "usage": usage(len(body["prompt"]), len(made), hit)})

    def stream(self, body: dict[str, Any]) -> None:
        """A completion token by token; the counts of all of it at the end."""
        made, hit = greedy(body["prompt"], body["max_tokens"]), cached(body["prompt"])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        step = OPTIONS.at_once
        for end in range(step, len(made) + step, step):
            piece = made[end - step : end]
            reason = "length" if end >= len(made) else None
            choice: dict[str, Any] = {"index": 0, "text": "x" * len(piece), "finish_reason": reason}
            if "ids" in OPTIONS.tells:
                choice["token_ids"] = piece
            event: dict[str, Any] = {"choices": [choice]}
            if "counts" in OPTIONS.tells:
                event["usage"] = usage(len(body["prompt"]), min(end, len(made)), None)
            self.event(event)
            time.sleep(0.002)
        if "usage" in OPTIONS.tells:
            self.event({"choices": [], "usage": usage(len(body["prompt"]), len(made), hit)})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, body: dict[str, Any]) -> None:
        """One server-sent event."""
        self.wfile.write(b"data: " + json.dumps(body).encode() + b"\n\n")
        self.wfile.flush()

    def chat(self, body: dict[str, Any]) -> None:
        """The capital, or the code that stands in the text."""
        text = body["messages"][0]["content"]
        code = re.search(r"secret code is (\d+)", text)
        words = f"The secret code is {code[1]}." if code else "The capital is Paris."
        choice = {"index": 0, "message": {"role": "assistant", "content": words}, "finish_reason": "stop"}
        self.answer({"choices": [choice], "usage": usage(len(tokens(text)), len(tokens(words)) + 1, 0)})


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--alias", default="small")
    parser.add_argument("--model", default="")
    parser.add_argument("--shows", default="")
    parser.add_argument("--build", default="b1")
    parser.add_argument("--props", action="store_true")
    parser.add_argument("--refuses", action="store_true")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--tells", nargs="*", default=["counts", "ids", "cached", "logprobs", "usage"])
    parser.add_argument("--slot-save-path", default="")
    parser.parse_args(namespace=OPTIONS)
    sys.stderr.write("loading model\n")
    ThreadingHTTPServer.daemon_threads = True
    with ThreadingHTTPServer((OPTIONS.host, OPTIONS.port), Handler) as server:
        sys.stderr.write("server is listening\n")
        server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
