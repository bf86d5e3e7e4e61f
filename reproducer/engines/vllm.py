"""The adapter for vLLM. Written for release 0.32.0; what a later release adds is checked by its own name.

`/server_info` tells what the configuration resolved to, and the engine's own process says in its log with what it was
made: where the two disagree, the value is called contradictory and agrees with no lock. Arguments of the front end,
such as the parsers of tool calls, stand in neither; the log lists those that are not at their defaults.
"""

import json
from collections.abc import Mapping
from typing import Any

from reproducer.documents.lock import ArgumentValue, Launch, Scalar
from reproducer.engines import vllm_log, vllm_store
from reproducer.engines.interface import Engine, Need, Observed, StoreFolder
from reproducer.engines.refused import REFUSED
from reproducer.engines.seen import NAME, Seen, scalar

DETAILS = "enable-prompt-tokens-details"
_DEV_MODE = "VLLM_SERVER_DEV_MODE"

# Arguments whose effect is not on what is computed or kept; every other one is checked.
OPERATIONAL = frozenset(
    {
        "disable-access-log-for-endpoints",
        "disable-fastapi-docs",
        "disable-log-stats",
        "disable-uvicorn-access-log",
        "enable-log-deltas",
        "enable-log-outputs",
        "enable-log-requests",
        "log-config-file",
        "log-level",
        "max-log-len",
        "uvicorn-log-level",
    }
)
# Arguments of the front end, which stand in no configuration: only the log tells those that are not at their defaults.
FRONT_END = frozenset(
    {
        "chat_template",
        "chat_template_content_format",
        "default_chat_template_kwargs",
        "enable_auto_tool_choice",
        "enable_force_include_usage",
        "enable_per_request_metrics",
        "enable_prompt_tokens_details",
        "enable_server_load_tracking",
        "enable_tokenizer_info_endpoint",
        "exclude_tools_when_tool_choice_none",
        "fingerprint_mode",
        "fingerprint_value",
        "lora_modules",
        "middleware",
        "response_role",
        "return_tokens_as_token_ids",
        "tokens_only",
        "tool_call_parser",
        "tool_parser_plugin",
        "tool_server",
        "tool_strict_level",
        "trust_request_chat_template",
    }
)
# Where each part of `/server_info` stands; the first one that has a name counts.
_PARTS = ("model_config", "cache_config", "parallel_config", "scheduler_config", "load_config")
# Fields that have another name there than the argument that sets them.
_ELSEWHERE = {
    "attention_backend": ("attention_config", "backend"),
    "device": ("device_config", "device"),
    "kv_cache_dtype": ("cache_config", "cache_dtype"),
    "mamba_backend": ("mamba_config", "backend"),
    "moe_backend": ("kernel_config", "moe_backend"),
    "optimization_level": ("", "optimization_level"),
    "performance_mode": ("", "performance_mode"),
    "reasoning_parser": ("structured_outputs_config", "reasoning_parser"),
    "scheduling_policy": ("scheduler_config", "policy"),
}
# Of the process that answers, not of what it computes.
_NOT_SHOWN = frozenset({"data_parallel_master_ip", "data_parallel_master_port", "data_parallel_rpc_port"})
# What a lock that says nothing of them says all the same: tool calls and thoughts come as plain text.
_PARSERS = ("reasoning_parser", "tool_call_parser")
_NONE = "none"
_HALF = ("bfloat16", "float16")


class VLLM(Engine):
    """`python -m vllm.entrypoints.openai.api_server`."""

    kind = "vllm"
    info_endpoint = "/server_info?config_format=json"
    info_hint = f"set {_DEV_MODE} to 1 in launch.environment, and have pip in the runtime: packages are listed with it"
    ready_endpoint = "/health"
    speech = "openai"
    machine_resolved = frozenset(
        {
            "architecture",
            "attention_backend",
            "block_size",
            "device",
            "dtype",
            "enable_chunked_prefill",
            "enable_prefix_caching",
            "kv_cache_dtype",
            "mamba_backend",
            "mamba_block_size",
            "mamba_cache_dtype",
            "mamba_ssm_cache_dtype",
            "max_model_len",
            "max_num_batched_tokens",
            "moe_backend",
            "prefix_caching_hash_algo",
            "quantization",
        }
    )

    def expected_effective(
        self,
        arguments: Mapping[str, ArgumentValue],
        checkpoint_config: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Scalar]:
        """What these arguments must resolve to; tables, `auto` and what only the machine decides are left out."""
        del environment
        found: dict[str, Scalar] = {
            "data_parallel_size": 1,
            "pipeline_parallel_size": 1,
            "tensor_parallel_size": 1,
            "trust_remote_code": False,
            **dict.fromkeys(_PARSERS, _NONE),
        }
        for flag, value in arguments.items():
            switched_off = flag.startswith("no-") and value is True
            name = flag.removeprefix("no-") if switched_off else flag
            if name in OPERATIONAL or name in REFUSED["vllm"] or value is False or _is_table(value):
                continue
            one = scalar(value)
            if one is not None:
                found[_field(name)] = not switched_off and one
        dtype = vllm_log.dtype_name(found.get("dtype", "auto"))
        found["dtype"] = _checkpoint_dtype(checkpoint_config) if dtype == "auto" else dtype
        found["quantization"] = _quantization(found.get("quantization"), checkpoint_config)
        if "model" in found:
            found.setdefault("tokenizer", found["model"])
            found.setdefault("served_model_name", found["model"])
        return {
            name: value for name, value in sorted(found.items()) if NAME.fullmatch(name) and value not in ("auto", "")
        }

    def observed_effective(
        self,
        server_info: Mapping[str, Any],
        log_text: str,
        checkpoint_config: Mapping[str, Any],
        values: Mapping[str, str] | None = None,
    ) -> dict[str, Observed]:
        """What the live server shows: its configuration, the engine's own words, and the front end's arguments."""
        del checkpoint_config
        seen = Seen(values or {})
        config = _table(server_info, "vllm_config")
        log = vllm_log.read(log_text)
        for name in sorted(FRONT_END & log.given.keys()):
            seen.put(name, log.given[name], "start-up log")
        _configured(seen, config)
        if log.says_given:
            seen.put("tool_call_parser", log.given.get("tool_call_parser") or _NONE, "start-up log")
        engine = Seen(values or {})
        for name, value in log.engine.items():
            engine.put(name, value, "start-up log")
        for name, told in engine.found.items():
            known = seen.found.setdefault(name, told)
            if known.value != told.value:
                seen.put(name, f"contradictory: {known.value}, and {told.value} in the log", "start-up log")
        return seen.found

    def persistent_store(self, launch: Launch) -> tuple[StoreFolder, ...]:
        """Where connectors and offloading keep pages."""
        return vllm_store.persistent_store(launch)

    def lacks(self, need: Need, launch: Launch) -> str:
        """Cached tokens are counted only when it is asked for, and never by the tier they came from."""
        if need == "storage tokens":
            return "vLLM does not tell how many tokens it restored from storage"
        if need == "cached tokens" and launch.arguments.get(DETAILS, False) is False:
            return f"without --{DETAILS} vLLM does not tell how many tokens it had cached"
        return super().lacks(need, launch)

    def phase(self, line: str) -> str | None:
        """What a line of the start-up log says about how far the start is."""
        return vllm_log.phase(line)

    def is_noise(self, line: str) -> bool:
        """Whether a log line says nothing about why a start failed."""
        return vllm_log.is_noise(line)


def _configured(seen: Seen, config: Mapping[str, Any]) -> None:
    """What the configuration in `/server_info` says; nothing where there is none."""
    for part in reversed(_PARTS):
        for name, value in _table(config, part).items():
            if not isinstance(value, dict) and name not in _NOT_SHOWN:
                seen.put(name, value, "server_info")
    for name, (part, key) in _ELSEWHERE.items():
        seen.put(name, (_table(config, part) if part else config).get(key), "server_info")
    if model := _table(config, "model_config"):
        seen.put("dtype", vllm_log.dtype_name(model.get("dtype")), "server_info")
        seen.put("quantization", model.get("quantization") or _NONE, "server_info")
        seen.put("reasoning_parser", _reasoning(config) or _NONE, "server_info")


def _field(flag: str) -> str:
    return flag.replace("-", "_")


def _is_table(value: ArgumentValue) -> bool:
    """Whether an argument is JSON, which the engine resolves to a configuration with more keys than were given."""
    try:
        return isinstance(value, str) and isinstance(json.loads(value), dict | list)
    except (ValueError, RecursionError):
        return False


def _table(tables: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = tables.get(key)
    return value if isinstance(value, dict) else {}


def _reasoning(config: Mapping[str, Any]) -> Any:
    return _table(config, "structured_outputs_config").get("reasoning_parser")


def _checkpoint_dtype(config: Mapping[str, Any]) -> str:
    """What `auto` comes to: the checkpoint's half type; `auto` where the platform decides."""
    stated = vllm_log.dtype_name(config.get("dtype") or config.get("torch_dtype") or "auto")
    return stated if stated in _HALF else "auto"


def _quantization(requested: Scalar | None, config: Mapping[str, Any]) -> str:
    """The method: the argument, else the checkpoint's own as far as it has a plain one, else `none`."""
    if isinstance(requested, str) and requested:
        return requested
    stated = config.get("quantization_config", config.get("compression_config"))
    return _NONE if stated is None else "auto"  # vLLM may take a faster method than the one the checkpoint names


VLLM_ENGINE = VLLM()
