"""The paced server as a process, and requests that it streams an answer to."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reproducer.qualify.client import Call, ask, call

SERVER = Path(__file__).with_name("paced_server.py")
TOKENS = 12


@contextmanager
def paced(folder: Path, *options: str, prefix: Sequence[str] = ()) -> Iterator[str]:
    """The URL of a paced server, gone when the context ends; `prefix` is a command that runs another one."""
    port = folder / "port"
    with subprocess.Popen([*prefix, sys.executable, str(SERVER), str(port), *options]) as child:
        try:
            deadline = time.monotonic() + 30
            while not port.exists():
                assert child.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield f"http://127.0.0.1:{port.read_text()}"
        finally:
            child.kill()


def native(fault: str = "", tokens: int = TOKENS) -> Call:
    """A streamed `/generate`."""
    payload = {"input_ids": [1, 2, 3], "sampling_params": {"max_new_tokens": tokens}, "stream": True}
    return call(f"/generate?fault={fault}" if fault else "/generate", payload, "0" * 64)


def compatible(fault: str = "", tokens: int = TOKENS) -> Call:
    """A streamed `/v1/completions`."""
    payload = {"prompt": [1, 2, 3], "max_tokens": tokens, "stream": True}
    return call(f"/v1/completions?fault={fault}" if fault else "/v1/completions", payload, "0" * 64)


def told(url: str) -> dict[str, Any]:
    """What the server says of the streams since it was last asked."""
    answer: dict[str, Any] = ask(url, "/sent")
    return answer
