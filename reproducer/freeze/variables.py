"""Which variables of a running server belong into a lock: those that an engine or what it runs on is known to read."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reproducer.documents.environment import Unknown
from reproducer.documents.lock import EngineKind
from reproducer.engines.refused import LOADERS
from reproducer.identity.tables import table_of
from reproducer.importing.secrets import is_secret
from reproducer.launch.plan import FIXED
from reproducer.launch.processes import TOKEN_VARIABLE

_PREFIXES = """
    AITER_ ASCEND_ CUBLAS CUDA_ CUDNN_ DG_ DO_NOT_TRACK FLASHINFER_ FLA_ GGML_ GLOO_ GOMP_ HCCL_ HF_ HIP_ HSA_ KMP_
    KTRANSFORMERS_ LLAMA_ LMCACHE_ MALLOC_ MC_ MKL_ MOONCAKE_ NCCL_ NIXL_ NUMEXPR_ NVIDIA_TF32 NVSHMEM_ OMP_
    ONEDNN_ DNNL_ OPENBLAS_ PYTHONHASHSEED PYTHONMALLOC PYTHONOPTIMIZE PYTORCH_ RAY_ ROCR_ SGLANG_ SGL_ TILELANG_
    TOKENIZERS_ TORCH TRANSFORMERS_ TRITON_ TRTLLM_ UCX_ VLLM_ XFORMERS_
"""
_OWN = frozenset(FIXED) | {"HOME", "TMPDIR", TOKEN_VARIABLE}
_OF_HOST = frozenset({"HOSTNAME", "LOGNAME", "USER", "HOST_IP", "LOCAL_HOSTNAME", "MASTER_ADDR", "MASTER_PORT"})
_PROXY = re.compile(r"(?i)^(https?|all|no|ftp)_proxy$")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_LONGEST = 65536


@dataclass
class Kept:
    """The variables of a lock, and what became of the others.

    Attributes:
        left_out: not in the lock, and nothing is lost by that.
        unknown: not in the lock, and nobody knows what they did.
    """

    environment: dict[str, str] = field(default_factory=dict)
    left_out: list[Unknown] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)


def kept(kind: EngineKind, environ: Mapping[str, str], known: Iterable[str]) -> Kept:
    """Sort the variables of a process.

    Args:
        kind: the engine.
        environ: of the process.
        known: variables that the engine's own source names.
    """
    found = Kept()
    named = {*table_of(kind).variables, *known}
    for name, value in sorted(environ.items()):
        key = f"launch.environment.{_shown(name)}"
        if name in _OWN:
            found.left_out.append(Unknown(key=key, why="penny sets it for every server"))
        elif is_secret(name, value) or (_PROXY.match(name) and "@" in value):
            found.left_out.append(Unknown(key=key, why="a secret; its value was not kept"))
        elif name in LOADERS:
            why = "code that no lock pins may have been loaded through it, and a launch of the lock does not set it"
            found.unknown.append(Unknown(key=key, why=why))
        elif name in _OF_HOST:
            found.left_out.append(Unknown(key=key, why="it names this machine or a person"))
        elif not (name in named or name.startswith(tuple(_PREFIXES.split()))):
            found.left_out.append(Unknown(key=key, why="nothing that runs here is known to read it"))
        elif not _NAME.fullmatch(name) or not _is_text(value):
            found.unknown.append(Unknown(key=key, why="no lock carries its name or value"))
        else:
            found.environment[name] = value
    return found


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value and len(value) <= _LONGEST


def _shown(name: str) -> str:
    """A name of a stranger's as it may stand in a list."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in name[:120])
