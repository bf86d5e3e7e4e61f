"""What vLLM's start-up log tells.

The log is hostile text: patterns are bounded, Python literals are read without running anything, and a line that does
not fit says nothing. Where lines contradict each other the value says so, and agrees with nothing.
"""

import ast
import re
from dataclasses import dataclass, field
from typing import Any

from reproducer.documents.lock import Scalar

LARGEST_LOG = 8 << 20
_LONGEST_LITERAL = 64 << 10
_PREFIX = r"^\((?:APIServer|EngineCore)[^)\n]{0,60}\) INFO [^\]\n]{1,60}\] "
_GIVEN = re.compile(_PREFIX + r"non-default args: (\{[^\n]*\})[ \t]*$", re.MULTILINE)
_ENGINE = re.compile(
    _PREFIX + r"Initializing a V1 LLM engine \(v?([^)\n]{1,60})\) with config: ([^\n]{1,16384})", re.MULTILINE
)
_ARCHITECTURE = re.compile(_PREFIX + r"Resolved architecture: (\w{1,120})[ \t]*$", re.MULTILINE)
# Key of the engine's line, name of the effective value.
_KEYS = {
    "data_parallel_size": "data_parallel_size",
    "device_config": "device",
    "dtype": "dtype",
    "enable_chunked_prefill": "enable_chunked_prefill",
    "enable_prefix_caching": "enable_prefix_caching",
    "enforce_eager": "enforce_eager",
    "kv_cache_dtype": "kv_cache_dtype",
    "load_format": "load_format",
    "max_seq_len": "max_model_len",
    "pipeline_parallel_size": "pipeline_parallel_size",
    "quantization": "quantization",
    "seed": "seed",
    "tensor_parallel_size": "tensor_parallel_size",
    "trust_remote_code": "trust_remote_code",
}
_PAIR = re.compile(r"(?:^|, )(" + "|".join(_KEYS) + r")=([A-Za-z0-9_.+-]{1,120})(?=, |$)")
_NUMBER = re.compile(r"-?\d{1,15}")
_WORDS: dict[str, Scalar] = {"True": True, "False": False, "None": "none"}
_DTYPES = {"float": "float32", "half": "float16"}

_PHASES = (
    ("non-default args:", "arguments read"),
    ("Resolved architecture:", "arguments resolved"),
    ("Initializing a V1 LLM engine", "the engine starts"),
    ("Starting to load model", "loading weights"),
    ("Loading weights took", "weights loaded"),
    ("KV cache size:", "cache allocated"),
    ("init engine (profile", "engine ready"),
    ("Starting vLLM server", "the server starts"),
    ("Application startup complete", "ready"),
)
_NOISE = re.compile(
    r"INFO:     |\d+% Completed|\d+%\||it/s\]|Route: /|non-default args:|Initializing a V1 LLM engine|"
    r"\[api_utils\.py:\d+\] +[█▄▀ ]|FutureWarning|DeprecationWarning|^ *warnings\.warn\("
)


@dataclass(frozen=True)
class Told:
    """What the log of one start tells.

    Attributes:
        given: the front end's arguments that are not at their defaults, by field.
        says_given: whether it told them at all.
        engine: effective values as the engine's own process was made with.
    """

    given: dict[str, Any] = field(default_factory=dict)
    says_given: bool = False
    engine: dict[str, Scalar] = field(default_factory=dict)


def read(text: str) -> Told:
    """The effective values that the log states."""
    text = text[:LARGEST_LOG]
    literals = [_literal(found) for found in _GIVEN.findall(text)]
    given = literals[0] if len(literals) == 1 else None  # a second start, or a line that only looks like it
    engine: dict[str, list[Scalar]] = {}
    for _, config in _ENGINE.findall(text):
        for key, value in _PAIR.findall(config):
            engine.setdefault(_KEYS[key], []).append(_value(key, value))
    for name in _ARCHITECTURE.findall(text):
        engine.setdefault("architecture", []).append(name)
    return Told(given or {}, given is not None, {name: _agreed(values) for name, values in engine.items()})


def dtype_name(name: object) -> str:
    """A dtype as torch writes it, without the module."""
    plain = str(name).lower().removeprefix("torch.")
    return _DTYPES.get(plain, plain)


def phase(line: str) -> str | None:
    """How far the start is, by one line."""
    return next((told for mark, told in _PHASES if mark in line[:400]), None)


def is_noise(line: str) -> bool:
    """Whether a line says nothing about why a start failed."""
    return _NOISE.search(line[:400]) is not None


def _literal(text: str) -> dict[str, Any] | None:
    """A table of Python literals; None where it is none."""
    if len(text) > _LONGEST_LITERAL:
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return {str(name): each for name, each in value.items()} if isinstance(value, dict) else None


def _value(key: str, text: str) -> Scalar:
    if key == "dtype":
        return dtype_name(text)
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _NUMBER.fullmatch(text) else text


def _agreed(values: list[Scalar]) -> Scalar:
    """A value that all lines agree on; a contradiction as text that names both."""
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else "contradictory: " + ", ".join(str(each) for each in distinct[:4])
