"""What no launch may carry: arguments by engine, and variables.

Penny sets them itself, or they bring in what no lock pins.
"""

from collections.abc import Mapping

from reproducer.documents.lock import EngineKind

_CHOSEN = "penny chooses it"
_FILE = "it reads arguments from a file that the lock does not pin"
_SECRET = "a secret does not stand in a lock"  # noqa: S105  the sentence about secrets
_ELSEWHERE = "penny talks to the server over plain HTTP on the loopback address"
_HEADLESS = "such a server answers nobody"

# Variables by which code that no lock pins would be loaded into the server.
LOADERS = frozenset(
    {"LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONUSERBASE"}
)

REFUSED: Mapping[EngineKind, Mapping[str, str]] = {
    "sglang": {"config": _FILE, "host": _CHOSEN, "port": _CHOSEN},
    "vllm": {
        "api-key": _SECRET,
        "config": _FILE,
        "grpc": _ELSEWHERE,
        "grpc-port": _ELSEWHERE,
        "headless": _HEADLESS,
        "host": _CHOSEN,
        "port": _CHOSEN,
        "root-path": _ELSEWHERE,
        "ssl-ca-certs": _ELSEWHERE,
        "ssl-certfile": _ELSEWHERE,
        "ssl-keyfile": _ELSEWHERE,
        "uds": _ELSEWHERE,
    },
    "openai": {
        "api-key": _SECRET,
        "api-key-file": _SECRET,
        "api-prefix": _ELSEWHERE,
        "config": _FILE,
        "host": _CHOSEN,
        "port": _CHOSEN,
        "ssl-cert-file": _ELSEWHERE,
        "ssl-certfile": _ELSEWHERE,
        "ssl-key-file": _ELSEWHERE,
        "ssl-keyfile": _ELSEWHERE,
        "uds": _ELSEWHERE,
    },
}
