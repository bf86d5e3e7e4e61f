"""The adapter for SGLang. Written for release 0.5.10.post1; what a later release adds is checked by its own name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from reproducer.documents.lock import ArgumentValue, Launch, Scalar
from reproducer.engines import sglang_arguments as resolve
from reproducer.engines import sglang_log, sglang_store
from reproducer.engines.interface import Engine, Need, Observed, StoreFolder
from reproducer.engines.seen import NAME, Seen

_YES = frozenset({"1", "true", "y", "yes"})
_SPECULATION = "speculative-algorithm"
_DIRECT = "SGLANG_HICACHE_NIXL_O_DIRECT"


class SGLang(Engine):
    """`python -m sglang.launch_server`."""

    kind = "sglang"
    info_endpoint = "/server_info"
    ready_endpoint = "/health_generate"
    speech = "sglang"
    alterable = MappingProxyType({"page_size": "page-size"})
    machine_resolved = frozenset(
        {
            "attention_backend",
            "chunked_prefill_size",
            "decode_attention_backend",
            "dtype",
            "fp4_gemm_runner_backend",
            "fp8_gemm_runner_backend",
            "hicache_io_backend",
            "hicache_mem_layout",
            "kv_cache_dtype",
            "linear_attn_backend",
            "mamba_backend",
            "mamba_ssm_dtype",
            "moe_runner_backend",
            "page_size",
            "prefill_attention_backend",
            "quantization",
        }
    )

    def expected_effective(
        self,
        arguments: Mapping[str, ArgumentValue],
        checkpoint_config: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Scalar]:
        """What these arguments must resolve to; `auto` never stays, and what only the machine decides is left out."""
        variables = environment or {}
        found: dict[str, Scalar] = {"dp_size": 1, "pp_size": 1, "tp_size": 1, "trust_remote_code": False}
        found.update(resolve.given(arguments))
        found["dtype"] = dtype = resolve.model_dtype(found.get("dtype", "auto"), checkpoint_config)
        cache = resolve.cache_dtype(found.pop("kv_cache_dtype", "auto"), dtype, checkpoint_config)
        if cache is not None:
            found["kv_cache_dtype"] = cache
        found["quantization"] = resolve.quantization(found.get("quantization"), checkpoint_config)
        found.setdefault("context_length", resolve.context_length(checkpoint_config))
        if "model_path" in found:
            found.setdefault("tokenizer_path", found["model_path"])
            found.setdefault("served_model_name", found["model_path"])
        found.update(_model_facts(checkpoint_config))
        if isinstance(backend := found.get("attention_backend"), str):
            found.setdefault("prefill_attention_backend", backend)
            if not (backend == "fa3" and found.get("hicache_io_backend") == "kernel"):
                found.setdefault("decode_attention_backend", backend)
        total, page = found.get("max_total_tokens"), found.get("page_size", 1)
        if isinstance(total, int) and isinstance(page, int) and page > 0:
            found["max_total_tokens"] = total // page * page
        if found.get("enable_hierarchical_cache") is True:
            found.update(resolve.layout_and_io(found))
        if found.get("hicache_storage_backend") == "nixl":
            found.update(resolve.storage_options(found.get("hicache_storage_backend_extra_config"), variables))
            if _DIRECT in variables:
                found["hicache_storage_o_direct"] = variables[_DIRECT].lower() in _YES
        return {name: value for name, value in sorted(found.items()) if NAME.fullmatch(name) and value != "auto"}

    def observed_effective(
        self,
        server_info: Mapping[str, Any],
        log_text: str,
        checkpoint_config: Mapping[str, Any],
        values: Mapping[str, str] | None = None,
    ) -> dict[str, Observed]:
        """What the live server shows: every field of `/server_info`, then what the log and the checkpoint know better.

        `/server_info` repeats an `auto` for the cache's dtype, so only the log tells that one.
        """
        seen = Seen(values or {})
        for name, value in server_info.items():
            if name not in ("internal_states", "kv_cache_dtype", "quantization", "dtype"):
                seen.put(name, value, "server_info")
        for name in ("prefill_attention_backend", "decode_attention_backend"):
            seen.put(name, server_info.get("attention_backend"), "server_info")
            seen.put(name, server_info.get(name), "server_info")
            seen.put(name, _agreed(_states(server_info), name), "server_info")
        seen.put("max_total_tokens", server_info.get("max_total_num_tokens"), "server_info")
        seen.put("quantization", resolve.quantization(None, checkpoint_config), "checkpoint config")
        seen.put("quantization", server_info.get("quantization"), "server_info")
        seen.put("dtype", resolve.model_dtype("auto", checkpoint_config), "checkpoint config")
        for name, value in _model_facts(checkpoint_config).items():
            seen.put(name, value, "checkpoint config")
        for name, value in sglang_log.from_log(log_text).items():
            seen.put(name, value, "start-up log")
        if isinstance(dtype := server_info.get("dtype"), str) and dtype != "auto":
            seen.put("dtype", resolve.dtype_name(dtype), "server_info")
        if server_info.get("dp_size") not in (None, 1):  # the log counts for each rank there
            seen.put("max_running_requests", server_info.get("max_running_requests"), "server_info")
        return seen.found

    def persistent_store(self, launch: Launch) -> tuple[StoreFolder, ...]:
        """Where the hierarchical cache's storage keeps its pages."""
        return sglang_store.persistent_store(launch)

    def wants_direct_io(self, launch: Launch) -> bool:
        """Whether the NIXL storage of this launch opens its files with O_DIRECT."""
        return self._nixl(launch) and launch.environment.get(_DIRECT, "").lower() in _YES

    def wants_io_uring(self, launch: Launch) -> bool:
        """Whether the NIXL storage of this launch is told to use io_uring."""
        extra = launch.arguments.get("hicache-storage-backend-extra-config")
        options = resolve.storage_options(extra if isinstance(extra, str) else None, launch.environment)
        return self._nixl(launch) and options.get("hicache_storage_use_uring", "").lower() in _YES

    def lacks(self, need: Need, launch: Launch) -> str:
        """Drafted tokens are counted where there are any."""
        if need == "speculation":
            return "" if launch.arguments.get(_SPECULATION, False) else f"the launch has no --{_SPECULATION}"
        return super().lacks(need, launch)

    @staticmethod
    def _nixl(launch: Launch) -> bool:
        return launch.arguments.get("hicache-storage-backend") == "nixl"

    def phase(self, line: str) -> str | None:
        """What a line of the start-up log says about how far the start is."""
        return sglang_log.phase(line)

    def is_noise(self, line: str) -> bool:
        """Whether a log line says nothing about why a start failed."""
        return sglang_log.is_noise(line)


def _model_facts(config: Mapping[str, Any]) -> dict[str, Scalar]:
    """Model type and class, as the checkpoint states them."""
    found: dict[str, Scalar] = {}
    if isinstance(kind := config.get("model_type"), str):
        found["model_type"] = kind
    classes = config.get("architectures")
    if isinstance(classes, list) and classes and isinstance(classes[0], str):
        found["architecture"] = classes[0]
    return found


def _states(server_info: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The internal state of each scheduler that the server tells about."""
    states = server_info.get("internal_states")
    return [state for state in states if isinstance(state, dict)] if isinstance(states, list) else []


def _agreed(states: list[Mapping[str, Any]], name: str) -> Any:
    """What all schedulers say; a text that names the values where they do not agree."""
    values = list(dict.fromkeys(str(state[name]) for state in states if state.get(name) is not None))
    if len(values) > 1:
        return "contradictory: " + ", ".join(values[:4])
    return values[0] if values else None


SGLANG = SGLang()
argument_list = SGLANG.argument_list
expected_effective = SGLANG.expected_effective
observed_effective = SGLANG.observed_effective
