"""SGLang's flags: where each one shows up in `/server_info`, and what the engine resolves it to."""

import json
from collections.abc import Mapping
from typing import Any

from reproducer.documents.lock import ArgumentValue, Scalar
from reproducer.engines.refused import REFUSED
from reproducer.engines.seen import scalar

# Flags whose field in the engine's ServerArgs has another name.
FIELD_OF_FLAG = {
    "attention-context-parallel-size": "attn_cp_size",
    "attention-data-parallel-size": "attn_dp_size",
    "context-bucket": "cuda_graph_prefill_max_context",
    "data-parallel-size": "dp_size",
    "decode-context-parallel-size": "dcp_size",
    "dp": "dp_size",
    "elastic-ep-join-mode": "ep_join_mode",
    "elastic-ep-join-rank-offset": "ep_join_rank_offset",
    "enable-hicache": "enable_hierarchical_cache",
    "ep": "ep_size",
    "expert-parallel-size": "ep_size",
    "fp4-gemm-backend": "fp4_gemm_runner_backend",
    "fp8-gemm-backend": "fp8_gemm_runner_backend",
    "grpc-http-sidecar-port": "smg_http_sidecar_port",
    "hierarchical-sparse-attention-extra-config": "hisparse_config",
    "model": "model_path",
    "moe-data-parallel-size": "moe_dp_size",
    "nccl-init-addr": "dist_init_addr",
    "pipeline-parallel-size": "pp_size",
    "speculative-draft-model": "speculative_draft_model_path",
    "stream-output": "incremental_streaming_output",
    "tensor-parallel-size": "tp_size",
    "tp": "tp_size",
}

# Flags whose effect is not on what is computed or kept; every other flag is checked.
OPERATIONAL = {
    "admin-api-key": "a secret",
    "api-key": "a secret",
    "crash-dump-folder": "where a crash is written",
    "decode-log-interval": "logging",
    "enable-metrics": "reporting",
    "enable-piecewise-cuda-graph": "accepted and ignored by the engine",
    "enable-request-time-stats-logging": "logging",
    "hybrid-kvcache-ratio": "accepted and ignored by the engine",
    "log-level": "logging",
    "log-level-http": "logging",
    "prefill-round-robin-balance": "accepted and ignored by the engine",
}

_NUMBERS = frozenset(
    {
        "attn_cp_size",
        "chunked_prefill_size",
        "context_length",
        "dp_size",
        "ep_size",
        "hicache_ratio",
        "hicache_size",
        "max_prefill_tokens",
        "max_running_requests",
        "max_total_tokens",
        "mem_fraction_static",
        "page_size",
        "pp_size",
        "random_seed",
        "tp_size",
    }
)
_DTYPES = {
    "bf16": "bfloat16",
    "float": "float32",
    "fp4_e2m1": "float4_e2m1fn_x2",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
    "half": "float16",
}
_CONTEXT_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
_CONTEXT_WITHOUT_ANY = 2048
# Keys of the storage backend's extra configuration that the cache controller takes for itself.
_CONTROLLER_KEYS = frozenset(
    {
        "hicache_storage_pass_prefix_keys",
        "interface_v1",
        "prefetch_threshold",
        "prefetch_timeout_base",
        "prefetch_timeout_per_ki_token",
    }
)


def field_of(flag: str) -> str:
    """The name of the effective value that a flag sets."""
    return FIELD_OF_FLAG.get(flag, flag.replace("-", "_"))


def dtype_name(name: str) -> str:
    """A dtype as torch writes it, without the module."""
    plain = name.lower().removeprefix("torch.")
    return _DTYPES.get(plain, plain)


def given(arguments: Mapping[str, ArgumentValue]) -> dict[str, Scalar]:
    """The arguments that are checked, by field; a bare flag is True, a false one is not given."""
    found: dict[str, Scalar] = {}
    for flag, value in arguments.items():
        if flag in OPERATIONAL or flag in REFUSED["sglang"] or value is False:
            continue
        name = field_of(flag)
        one = scalar(value)
        if one is not None:
            found[name] = _number(one) if name in _NUMBERS else one
    return found


def _number(value: Scalar) -> Scalar:
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a checkpoint's config that describes the language model."""
    for key in ("text_config", "llm_config", "language_config", "thinker_config"):
        inner = config.get(key)
        if isinstance(inner, dict):
            return text_config(inner)
    return config


def model_dtype(requested: Scalar, config: Mapping[str, Any]) -> str:
    """What the engine computes in: `auto` is the checkpoint's dtype, and float32 becomes a half type."""
    if isinstance(requested, str) and requested != "auto":
        return dtype_name(requested)
    text = text_config(config)
    stated = text.get("dtype") or text.get("torch_dtype") or config.get("dtype") or config.get("torch_dtype")
    dtype = dtype_name(stated) if isinstance(stated, str) else "float32"
    if dtype == "float32":
        return "bfloat16" if str(text.get("model_type", "")).startswith("gemma") else "float16"
    return dtype


def cache_dtype(requested: Scalar, dtype: str, config: Mapping[str, Any]) -> str | None:
    """What the KV cache is kept in; None where the checkpoint's config alone does not tell."""
    if isinstance(requested, str) and requested != "auto":
        return dtype_name(requested)
    quantized = _quantization_config(config)
    algorithm = quantized.get("kv_cache_quant_algo")
    if isinstance(algorithm, str) and algorithm.upper() == "FP8":
        return dtype_name("fp8_e4m3")
    if algorithm is None and str(quantized.get("quant_method", "")).startswith("modelopt"):
        return None
    return dtype


def quantization(requested: Scalar | None, config: Mapping[str, Any]) -> str:
    """The quantization method: the argument, else the checkpoint's own, else `none`."""
    if isinstance(requested, str) and requested:
        return requested.lower()
    method = _quantization_config(config).get("quant_method")
    return method.lower() if isinstance(method, str) and method else "none"


def _quantization_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    for place in (config, text_config(config)):
        for key in ("quantization_config", "compression_config"):
            inner = place.get(key)
            if isinstance(inner, dict):
                return inner
    return {}


def context_length(config: Mapping[str, Any]) -> int:
    """The context length that the engine derives from a checkpoint where no argument names one."""
    text = text_config(config)
    scaling = text.get("rope_scaling")
    factor: float = 1
    if isinstance(scaling, dict):
        plain = "original_max_position_embeddings" in scaling or scaling.get("rope_type") == "llama3"
        stated = scaling.get("factor", 1)
        factor = stated if isinstance(stated, int | float) and not plain else 1
    for key in _CONTEXT_KEYS:
        value = text.get(key)
        if isinstance(value, int | float):
            return int(factor * value)
    return _CONTEXT_WITHOUT_ANY


def storage_options(extra: Scalar | None, environment: Mapping[str, str]) -> dict[str, str]:
    """The plugin and the options that NIXL gets, from the extra configuration and the environment.

    Both forms of the configuration: flat for the one plugin the environment names, or `{"plugin": {name: options}}`,
    of which the first active one counts.
    """
    try:
        table = json.loads(extra) if isinstance(extra, str) and not extra.startswith("@") else {}
    except (ValueError, RecursionError):
        table = {}
    options = table if isinstance(table, dict) else {}
    plugin: str | None = environment.get("SGLANG_HICACHE_NIXL_BACKEND_PLUGIN", "auto")
    if isinstance(nested := options.get("plugin"), dict):
        active = [
            (name, inner)
            for name, inner in nested.items()
            if isinstance(inner, dict) and inner.get("active") in (True, "true", "True")
        ]
        plugin, options = (active[0][0].upper(), active[0][1]) if active else (None, {})
    found = {f"hicache_storage_{name}": str(value) for name, value in options.items() if name not in _CONTROLLER_KEYS}
    if plugin is not None and plugin != "auto":
        found["hicache_storage_plugin"] = plugin
    return found


def layout_and_io(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The host cache's layout and copy method as the engine makes them fit each other."""
    layout, copy = values.get("hicache_mem_layout"), values.get("hicache_io_backend")
    found: dict[str, Scalar] = {}
    if layout == "page_first_direct" and copy == "kernel":
        found["hicache_io_backend"] = copy = "direct"
    if layout == "page_first" and copy == "direct":
        found["hicache_mem_layout"] = layout = "page_first_direct"
    if values.get("hicache_storage_backend") == "mooncake" and layout == "layer_first" and copy in ("direct", "kernel"):
        found["hicache_mem_layout"] = "page_first_direct" if copy == "direct" else "page_first"
    return found
