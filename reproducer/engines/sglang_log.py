"""What SGLang's start-up log tells.

The log is hostile text: patterns are anchored and bounded, and a line that does not fit says nothing. Where lines
contradict each other the value says so, and agrees with nothing.
"""

import re
from collections.abc import Iterable

from reproducer.documents.lock import Scalar
from reproducer.engines.sglang_arguments import dtype_name

LARGEST_LOG = 8 << 20
_STAMP = r"^\[[^\]\n]{1,60}\] "
_CACHE_DTYPE = re.compile(_STAMP + r"Using KV cache dtype: torch\.(\w{1,40})[ \t]*$", re.MULTILINE)
_ALLOCATED = re.compile(
    _STAMP + r"KV Cache (?:is allocated|VA upper bound)\. dtype: torch\.(\w{1,40}), #tokens: \d", re.MULTILINE
)
_CAST = re.compile(_STAMP + r"(?:Upcasting|Downcasting|Casting) torch\.\w{1,40} to torch\.(\w{1,40})\.", re.MULTILINE)
_WEIGHTS = re.compile(_STAMP + r"Load weight end\. [^\n]{0,80}?type=(\w{1,120}),", re.MULTILINE)
_LIMITS = re.compile(
    _STAMP + r"max_total_num_tokens=(\d{1,15}), chunked_prefill_size=(-?\d{1,15}), max_prefill_tokens=\d{1,15},"
    r" max_running_requests=(\d{1,15}), context_len=(\d{1,15}),",
    re.MULTILINE,
)
_STORAGE = re.compile(
    _STAMP + r"NixlBackendSelection\.create_backend: backend_name (\w{1,40}) initparams \{([^{}\n]{0,2000})\}"
    r" customParams \{([^{}\n]{0,2000})\}",
    re.MULTILINE,
)
_INSTANTIATED = re.compile(
    r"^[^\n]{0,80} NIXL INFO [^\n]{0,60}Backend (\w{1,40}) was instantiated[ \t]*$", re.MULTILINE
)
_DIRECT = re.compile(_STAMP + r"NixlFileManager: O_DIRECT (on|off)[ \t]*$", re.MULTILINE)
_DIRECT_ACTIVE = re.compile(_STAMP + r"HiCacheNixl: O_DIRECT is active with a file-based backend", re.MULTILINE)
_OPTION = re.compile(r"'(\w{1,60})': '([^'\n]{0,200})'")

_PHASES = (
    ("server_args=", "arguments resolved"),
    ("Init torch distributed begin", "the scheduler starts"),
    ("Load weight begin", "loading weights"),
    ("Load weight end", "weights loaded"),
    ("KV Cache is allocated", "device cache allocated"),
    ("for hierarchical KV cache", "allocating the host cache"),
    ("Creating storage backend", "opening the persistent cache"),
    ("Application startup complete", "warming up"),
    ("The server is fired up", "ready"),
)
_NOISE = re.compile(
    r"INFO:     |\d+% Completed|\d+%\||it/s\]|Ignore import error|Prefill batch|"
    r"Decode batch|Req ?Time ?Stats|server_args="
)


def from_log(text: str) -> dict[str, Scalar]:
    """The effective values that the log states, by name."""
    text = text[:LARGEST_LOG]
    found: dict[str, Scalar] = {}
    dtypes = [*_CACHE_DTYPE.findall(text), *_ALLOCATED.findall(text)]  # 0.5.10 has the first, 0.5.17 the second
    _put(found, "kv_cache_dtype", (dtype_name(name) for name in dtypes))
    _put(found, "dtype", (dtype_name(name) for name in _CAST.findall(text)))
    _put(found, "architecture", _WEIGHTS.findall(text))
    limits = _LIMITS.findall(text)
    for index, name in enumerate(
        ("max_total_tokens", "chunked_prefill_size", "max_running_requests", "context_length")
    ):
        _put(found, name, (int(each[index]) for each in limits))
    storage = _STORAGE.findall(text)
    _put(found, "hicache_storage_plugin", [*(plugin for plugin, _, _ in storage), *_INSTANTIATED.findall(text)])
    options: dict[str, list[str]] = {}
    for _, asked, taken in storage:
        for name, value in (*_OPTION.findall(asked), *_OPTION.findall(taken)):
            options.setdefault(f"hicache_storage_{name.lower()}", []).append(value)
    for name, values in options.items():
        _put(found, name, values)
    direct = [*(state == "on" for state in _DIRECT.findall(text)), *(True for _ in _DIRECT_ACTIVE.findall(text))]
    _put(found, "hicache_storage_o_direct", direct)
    return found


def _put(found: dict[str, Scalar], name: str, values: Iterable[Scalar]) -> None:
    """Keep a value that all lines agree on; a contradiction as text that names both."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        found[name] = distinct[0]
    elif distinct:
        found[name] = "contradictory: " + ", ".join(str(each) for each in distinct[:4])


def phase(line: str) -> str | None:
    """How far the start is, by one line."""
    return next((told for mark, told in _PHASES if mark in line[:400]), None)


def is_noise(line: str) -> bool:
    """Whether a line says nothing about why a start failed."""
    return _NOISE.search(line[:400]) is not None
