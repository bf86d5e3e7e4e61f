"""A stand-in for the engine: speaks its endpoints, writes its log lines, forks children into sessions of their own.

Run as the engine is (`PYTHON -m MODULE ARGUMENTS`); what it does wrong is said by the variable STAND_IN.
"""

import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MODE = os.environ.get("STAND_IN", "")
NAMESPACE = Path(os.environ["STAND_IN_NAMESPACE"])
KEPT: list[int] = []  # weights that stay open, as an engine's do


def say(line: str) -> None:
    """One line of the log."""
    sys.stderr.write(f"[2030-01-01 00:00:00] {line}\n")
    sys.stderr.flush()


def note(name: str, text: str) -> None:
    """One line for the tests, in a file of the namespace."""
    with (NAMESPACE / name).open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def child(*, orphan: bool, deaf: bool) -> None:
    """A process in a session of its own, as the engine's schedulers are; an orphan's parent ends at once."""
    if os.fork():
        return
    os.setsid()
    if orphan and os.fork():
        os._exit(0)
    if deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


def arguments() -> dict[str, str]:
    """The flags with their value."""
    found: dict[str, str] = {}
    name = ""
    for each in sys.argv[3:]:
        if each.startswith("--"):
            name = each[2:]
            found[name] = ""
        else:
            found[name] = each
    return found


def info(given: dict[str, str]) -> dict[str, object]:
    """What it says it runs with."""
    return {
        "model_path": given["model-path"],
        "tool_call_parser": given.get("tool-call-parser"),
        "reasoning_parser": given.get("reasoning-parser"),
        "tokenizer_path": given["model-path"],
        "served_model_name": given["model-path"],
        "dtype": "bfloat16",
        "kv_cache_dtype": "auto",
        "page_size": 64 if MODE == "other" else int(given["page-size"]),
        "attention_backend": "triton" if MODE == "other" else given["attention-backend"],
        "quantization": None,
        "trust_remote_code": False,
        "tp_size": 1,
        "pp_size": 1,
        "dp_size": 1,
        "max_total_num_tokens": 1024,
        "internal_states": [{"prefill_attention_backend": None}],
    }


class Handler(BaseHTTPRequestHandler):
    """The endpoints."""

    given: dict[str, str]

    def log_message(self, *_: object) -> None:
        """Nothing: the log is ours."""

    def answer(self, status: int, content: object = None) -> None:
        """Send JSON."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """Health and facts."""
        note("requests", f"GET {self.path}")
        if self.path == "/health_generate":
            if MODE == "hangs":
                time.sleep(60)
            self.answer(503 if MODE == "never" else 200)
        elif self.path == "/server_info":
            self.answer(200, ["not a table"] if MODE == "nonsense" else info(self.given))
        else:
            self.answer(404)

    def do_POST(self) -> None:
        """Work, and a way to die."""
        note("requests", f"POST {self.path}")
        if self.path == "/die":
            say("RuntimeError: out of cheese")
            os._exit(5)
        self.answer(200, {"text": "hello"})


def main() -> None:
    """Start as the engine does, then serve."""
    given = arguments()
    note("environment", json.dumps({"environment": dict(os.environ), "cwd": os.listdir(), "argv": sys.argv[1:]}))  # noqa: PTH208
    if MODE == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child(orphan=False, deaf=MODE == "deaf")
    child(orphan=True, deaf=MODE == "deaf")
    say("Load weight begin. avail mem=1.00 GB")
    if MODE == "dies":
        sys.stderr.write(
            "Loading shards:  50% Completed\r" + f"ValueError: \x1b[31mno weights\x1b[0m in {given['model-path']}\n"
        )
        sys.exit(3)
    if MODE == "fetches":
        blob = Path.home() / ".cache/huggingface/hub/models--some--draft/blobs/abc"
        blob.parent.mkdir(parents=True)
        blob.write_bytes(b"weights")
    if MODE in ("opens", "opens another's"):
        checkpoint = Path(given["model-path"])
        weights = checkpoint if MODE == "opens" else checkpoint.parent / "elsewhere"
        KEPT.append(os.open(weights / "model.safetensors", os.O_RDONLY))
    if MODE == "mute":
        time.sleep(60)
    if MODE == "slow":
        time.sleep(0.6)
    say("Load weight end. elapsed=0.1 s, type=LlamaForCausalLM, avail mem=1.00 GB, mem usage=0.22 GB.")
    say(f"Using KV cache dtype: torch.{'float16' if MODE == 'other' else 'bfloat16'}")
    Handler.given = given
    ThreadingHTTPServer.daemon_threads = True
    with ThreadingHTTPServer((given["host"], int(given["port"])), Handler) as server:
        server.serve_forever(poll_interval=0.05)


main()
