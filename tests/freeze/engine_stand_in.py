"""A stand-in for SGLang, laid out as its package is: its arguments can be read from its source, and it serves.

What it does wrong is said by the variable SGLANG_STAND_IN.
"""

SERVER_ARGS = """
import argparse
import dataclasses


@dataclasses.dataclass
class ServerArgs:
    model_path: str
    attention_backend: str | None = None
    page_size: int = 1

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument("--tokenizer-path", type=str, default=None)
        parser.add_argument("--speculative-draft-model-path", type=str, default=None)
        parser.add_argument("--revision", type=str, default=None)
        parser.add_argument("--served-model-name", type=str, default=None)
        parser.add_argument("--attention-backend", type=str, choices=["torch_native", "triton"], default=None)
        parser.add_argument("--page-size", type=int, default=ServerArgs.page_size)
        parser.add_argument("--hicache-ratio", type=float, default=2.0)
        parser.add_argument("--chat-template", type=str, default=None)
        parser.add_argument("--tags", type=str, nargs="+", default=None)
        parser.add_argument("--api-key", type=str, default=None)
        parser.add_argument("--disable-cuda-graph", action="store_true")
        parser.add_argument("--trust-remote-code", action="store_true")
        parser.add_argument("--crash-dump-folder", type=str, default=None)
        parser.add_argument("--config", type=str, default=None)
        parser.add_argument("--host", type=str, default="127.0.0.1")
        parser.add_argument("--port", type=int, default=30000)
"""
ENVIRON = """
class EnvStr:
    def __init__(self, default):
        self.default = default


class Envs:
    SGLANG_STAND_IN = EnvStr("")
"""
LAUNCH_SERVER = """
import argparse
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sglang.srt.server_args import ServerArgs

MODE = os.environ.get("SGLANG_STAND_IN", "")
VERSION = "VERSION_OF_WHEEL"


class Handler(BaseHTTPRequestHandler):
    given = None

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/health_generate":
            self.answer(200, b"{}")
        elif self.path != "/server_info":
            self.answer(404, b"")
        elif MODE == "garbage":
            self.answer(200, b"\\\\xff{not json" * 1000)
        elif MODE == "list":
            self.answer(200, b"[1, 2]")
        elif MODE == "never":
            time.sleep(120)
        elif MODE == "headers":
            self.wfile.write(b"HTTP/1.0 200 OK\\r\\nX-Slow: ")
            while True:
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(0.05)
        elif MODE == "drip":
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.05)
        else:
            given = self.given
            name = given.served_model_name or given.model_path
            told = {"model_path": given.model_path, "tokenizer_path": given.tokenizer_path or given.model_path,
                    "served_model_name": name, "dtype": "bfloat16",
                    "page_size": 64 if MODE == "other" else given.page_size,
                    "attention_backend": given.attention_backend or "triton", "quantization": None,
                    "trust_remote_code": given.trust_remote_code, "tp_size": 1, "pp_size": 1, "dp_size": 1,
                    "disable_cuda_graph": given.disable_cuda_graph, "hicache_ratio": given.hicache_ratio,
                    "api_key": given.api_key, "version": os.environ.get("SGLANG_STAND_IN_VERSION", VERSION)}
            self.answer(200, json.dumps(told).encode())


def main():
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    Handler.given = parser.parse_args()
    sys.stderr.write("[2030-01-01 00:00:00] Using KV cache dtype: torch.bfloat16\\\\n")
    sys.stderr.flush()
    ThreadingHTTPServer.daemon_threads = True
    with ThreadingHTTPServer((Handler.given.host, Handler.given.port), Handler) as server:
        server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
"""


def modules(version: str) -> dict[str, str]:
    """The files of the package, by path."""
    return {
        "sglang/__init__.py": "",
        "sglang/launch_server.py": LAUNCH_SERVER.replace("VERSION_OF_WHEEL", version).replace("\\\\", "\\"),
        "sglang/srt/__init__.py": "",
        "sglang/srt/environ.py": ENVIRON,
        "sglang/srt/server_args.py": SERVER_ARGS,
    }
