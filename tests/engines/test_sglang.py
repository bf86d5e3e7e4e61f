"""The adapter for SGLang: arguments in, effective values out."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproducer.documents.lock import ArgumentValue, Launch, Scalar
from reproducer.engines import engine_of
from reproducer.engines.interface import Observed, filled, replaced, same
from reproducer.engines.sglang import SGLANG, argument_list, expected_effective, observed_effective
from reproducer.errors import InvalidDocumentError

DATA = Path(__file__).with_name("data")
INFO: dict[str, Any] = json.loads((DATA / "server_info.json").read_text())
LOG = (DATA / "startup.log").read_text()
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "max_position_embeddings": 8192,
    "model_type": "llama",
    "torch_dtype": "bfloat16",
}
ARGUMENTS: dict[str, ArgumentValue] = {
    "attention-backend": "torch_native",
    "device": "cpu",
    "disable-cuda-graph": True,
    "dtype": "bfloat16",
    "enable-hierarchical-cache": True,
    "enable-metrics": True,
    "grammar-backend": "none",
    "hicache-io-backend": "direct",
    "hicache-mem-layout": "page_first_direct",
    "hicache-ratio": 2,
    "hicache-storage-backend": "nixl",
    "hicache-storage-backend-extra-config": '{"use_uring":"true"}',
    "hicache-storage-prefetch-policy": "wait_complete",
    "max-running-requests": 8,
    "max-total-tokens": 16384,
    "model-path": "{checkpoint.target}",
    "page-size": 16,
    "random-seed": 0,
    "sampling-backend": "pytorch",
    "served-model-name": "smollm2-135m-instruct",
}
ENVIRONMENT = {"SGLANG_HICACHE_NIXL_BACKEND_PLUGIN": "POSIX", "SGLANG_HICACHE_NIXL_O_DIRECT": "1"}
VALUES = {"checkpoint.target": "/store/checkpoints/target", "namespace": "/kv/name-000000000000"}


def launch(arguments: dict[str, Any], environment: dict[str, str] | None = None) -> Launch:
    """A launch with these arguments."""
    data = {"module": "m", "arguments": arguments, "environment": environment or {}, "effective": {}, "readiness": {}}
    return Launch.model_validate_json(json.dumps(data))


def seen(
    info: dict[str, Any] | None = None, log: str = LOG, config: dict[str, Any] | None = None
) -> dict[str, Observed]:
    """What is observed, the fixture's facts with changes."""
    return observed_effective({**INFO, **(info or {})}, log, config or CONFIG, VALUES)


def test_adapter_by_kind() -> None:
    """A lock names the adapter by its kind."""
    assert engine_of("sglang") is SGLANG
    with pytest.raises(InvalidDocumentError, match="penny cannot launch another"):
        engine_of("another")


def test_argument_list() -> None:
    """Sorted by flag, bare flags for true, nothing for false, several values for a list, placeholders filled."""
    arguments = {
        "served-model-name": "a b; rm -rf $HOME",
        "disable-cuda-graph": True,
        "enable-mixed-chunk": False,
        "cuda-graph-bs": ["1", "2"],
        "mem-fraction-static": 0.85,
        "model-path": "{checkpoint.target}",
        "random-seed": -1,
        "hicache-storage-backend-extra-config": '{"use_uring":"true","dir":"{namespace}"}',
    }
    assert argument_list(launch(arguments), values=VALUES) == [
        *("--cuda-graph-bs", "1", "2", "--disable-cuda-graph"),
        *("--hicache-storage-backend-extra-config", '{"use_uring":"true","dir":"/kv/name-000000000000"}'),
        *("--mem-fraction-static", "0.85", "--model-path", "/store/checkpoints/target", "--random-seed", "-1"),
        *("--served-model-name", "a b; rm -rf $HOME"),
    ]


@pytest.mark.parametrize("flag", ["host", "port", "config"])
def test_refused_flags(flag: str) -> None:
    """What penny sets itself, and what would bring in unpinned arguments, may not stand in a lock."""
    with pytest.raises(InvalidDocumentError, match=f"--{flag} may not stand in a lock"):
        argument_list(launch({flag: "x"}), values=VALUES)


@pytest.mark.parametrize("value", ["--trust-remote-code", ["a", "-x"], "-"])
def test_smuggled_options(value: str | list[str]) -> None:
    """A value cannot be read as another flag."""
    with pytest.raises(InvalidDocumentError, match="reads as an option"):
        argument_list(launch({"served-model-name": value}), values=VALUES)


def test_placeholder_without_value() -> None:
    """A checkpoint the lock does not have cannot be filled in; other braces stay as they are."""
    with pytest.raises(InvalidDocumentError, match=r"nothing fills the placeholder \{checkpoint.draft\}"):
        SGLANG.environment(launch({}, {"DRAFT": "{checkpoint.draft}"}), values=VALUES)
    assert filled('{"a": {"b": 1}}{', VALUES, where="x") == '{"a": {"b": 1}}{'


def test_values_are_not_filled_again() -> None:
    """What was filled in is not looked at again: a folder may have braces in its name."""
    assert filled("{a}{b}", {"a": "{b}", "b": "2"}, where="x") == "{b}2"


def test_expected_values_are_observed() -> None:
    """Everything the default's arguments must resolve to is what its server shows, and `auto` never stays."""
    expected = expected_effective(ARGUMENTS, CONFIG, ENVIRONMENT)
    observed = seen()
    assert {name: observed[name].value for name in expected} == expected
    assert "auto" not in expected.values()
    assert expected == {
        "architecture": "LlamaForCausalLM",
        "attention_backend": "torch_native",
        "context_length": 8192,
        "decode_attention_backend": "torch_native",
        "device": "cpu",
        "disable_cuda_graph": True,
        "dp_size": 1,
        "dtype": "bfloat16",
        "enable_hierarchical_cache": True,
        "grammar_backend": "none",
        "hicache_io_backend": "direct",
        "hicache_mem_layout": "page_first_direct",
        "hicache_ratio": 2,
        "hicache_storage_backend": "nixl",
        "hicache_storage_backend_extra_config": '{"use_uring":"true"}',
        "hicache_storage_o_direct": True,
        "hicache_storage_plugin": "POSIX",
        "hicache_storage_prefetch_policy": "wait_complete",
        "hicache_storage_use_uring": "true",
        "kv_cache_dtype": "bfloat16",
        "max_running_requests": 8,
        "max_total_tokens": 16384,
        "model_path": "{checkpoint.target}",
        "model_type": "llama",
        "page_size": 16,
        "pp_size": 1,
        "prefill_attention_backend": "torch_native",
        "quantization": "none",
        "random_seed": 0,
        "sampling_backend": "pytorch",
        "served_model_name": "smollm2-135m-instruct",
        "tokenizer_path": "{checkpoint.target}",
        "tp_size": 1,
        "trust_remote_code": False,
    }


def test_sources() -> None:
    """Each value names where it was read; the log is the authority where the server repeats `auto`."""
    observed = seen()
    assert INFO["kv_cache_dtype"] == "auto"
    assert observed["kv_cache_dtype"] == ("bfloat16", "start-up log")
    assert observed["page_size"] == (16, "server_info")
    assert observed["hicache_storage_use_uring"] == ("true", "start-up log")
    assert observed["hicache_storage_o_direct"] == (True, "start-up log")
    assert observed["model_type"] == ("llama", "checkpoint config")
    assert observed["model_path"] == ("{checkpoint.target}", "server_info")
    assert "kv_cache_dtype" not in seen(log="")


@pytest.mark.parametrize(
    ("arguments", "config", "dtype", "cache"),
    [
        ({}, {"torch_dtype": "bfloat16"}, "bfloat16", "bfloat16"),
        ({}, {"dtype": "float16"}, "float16", "float16"),
        ({"dtype": "auto"}, {"torch_dtype": "float32"}, "float16", "float16"),
        ({}, {"torch_dtype": "float32", "model_type": "gemma2"}, "bfloat16", "bfloat16"),
        ({}, {}, "float16", "float16"),
        ({"dtype": "half"}, {"torch_dtype": "bfloat16"}, "float16", "float16"),
        ({}, {"text_config": {"torch_dtype": "bfloat16"}}, "bfloat16", "bfloat16"),
        ({"kv-cache-dtype": "fp8_e4m3"}, {"torch_dtype": "bfloat16"}, "bfloat16", "float8_e4m3fn"),
        ({"kv-cache-dtype": "bf16", "dtype": "float16"}, {}, "float16", "bfloat16"),
        (
            {},
            {"torch_dtype": "bfloat16", "quantization_config": {"kv_cache_quant_algo": "FP8"}},
            "bfloat16",
            "float8_e4m3fn",
        ),
        ({}, {"torch_dtype": "bfloat16", "quantization_config": {"quant_method": "modelopt"}}, "bfloat16", None),
    ],
)
def test_dtypes(arguments: dict[str, ArgumentValue], config: dict[str, Any], dtype: str, cache: str | None) -> None:
    """`auto` is resolved from the checkpoint's config as the engine does; what it does not tell is left out."""
    expected = expected_effective(arguments, config)
    assert (expected["dtype"], expected.get("kv_cache_dtype")) == (dtype, cache)


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ({"max_position_embeddings": 4096}, 4096),
        ({"max_position_embeddings": 4096, "rope_scaling": {"factor": 4.0, "rope_type": "linear"}}, 16384),
        ({"max_position_embeddings": 4096, "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}}, 4096),
        (
            {
                "max_position_embeddings": 4096,
                "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 1024},
            },
            4096,
        ),
        ({"seq_length": 100, "max_position_embeddings": 4096}, 100),
        ({}, 2048),
    ],
)
def test_context_length(config: dict[str, Any], length: int) -> None:
    """Without an argument the context length comes from the checkpoint."""
    assert expected_effective({}, config)["context_length"] == length
    assert expected_effective({"context-length": 7}, config)["context_length"] == 7


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        ({"tensor-parallel-size": 4}, "tp_size", 4),
        ({"tp-size": 4}, "tp_size", 4),
        ({"data-parallel-size": 2}, "dp_size", 2),
        ({"pipeline-parallel-size": 2}, "pp_size", 2),
        ({"model": "m"}, "model_path", "m"),
        ({"model": "m"}, "served_model_name", "m"),
        ({"page-size": "16"}, "page_size", 16),
        ({"page-size": 16, "max-total-tokens": 1000}, "max_total_tokens", 992),
        ({"quantization": "FP8"}, "quantization", "fp8"),
        ({"cuda-graph-bs": ("1", "2", "4")}, "cuda_graph_bs", "1,2,4"),
        ({"a-flag-of-a-later-release": True}, "a_flag_of_a_later_release", True),
        ({"attention-backend": "fa3", "decode-attention-backend": "triton"}, "decode_attention_backend", "triton"),
        (
            {"enable-hierarchical-cache": True, "hicache-mem-layout": "page_first", "hicache-io-backend": "direct"},
            "hicache_mem_layout",
            "page_first_direct",
        ),
        (
            {
                "enable-hierarchical-cache": True,
                "hicache-mem-layout": "page_first_direct",
                "hicache-io-backend": "kernel",
            },
            "hicache_io_backend",
            "direct",
        ),
    ],
)
def test_resolution(arguments: dict[str, ArgumentValue], name: str, value: Scalar) -> None:
    """Aliases and the engine's own corrections."""
    assert expected_effective(arguments, CONFIG)[name] == value


@pytest.mark.parametrize(
    ("extra", "environment", "found"),
    [
        ('{"use_uring": true}', {}, {"use_uring": "True"}),
        (
            '{"plugin": {"gds": {"active": false}, "posix": {"active": true, "use_aio": "1"}}}',
            {},
            {"plugin": "POSIX", "active": "True", "use_aio": "1"},
        ),
        ('{"prefetch_threshold": 1}', {"SGLANG_HICACHE_NIXL_BACKEND_PLUGIN": "POSIX"}, {"plugin": "POSIX"}),
        ("{not json", {}, {}),
        ("@elsewhere.json", {}, {}),
        ('{"plugin": {}}', {}, {}),
        ('["a"]', {}, {}),
    ],
)
def test_storage_options(extra: str, environment: dict[str, str], found: dict[str, str]) -> None:
    """Both forms of the storage's extra configuration; keys of the cache controller are not NIXL's."""
    arguments: dict[str, ArgumentValue] = {
        "hicache-storage-backend": "nixl",
        "hicache-storage-backend-extra-config": extra,
    }
    expected = expected_effective(arguments, CONFIG, environment)
    known = ("hicache_storage_backend", "hicache_storage_backend_extra_config")
    options = {name: value for name, value in expected.items() if name.startswith("hicache_") and name not in known}
    assert options == {f"hicache_storage_{name}": value for name, value in found.items()}


def test_operational_flags_are_not_checked() -> None:
    """Secrets and logging are no effective values."""
    assert not {"api_key", "log_level"} & set(expected_effective({"api-key": "s", "log-level": "info"}, CONFIG))


def test_needs_of_the_disk() -> None:
    """Whether O_DIRECT and io_uring are asked for is in the launch."""
    wanted = launch(
        {"hicache-storage-backend": "nixl", "hicache-storage-backend-extra-config": '{"use_uring":"true"}'},
        {"SGLANG_HICACHE_NIXL_O_DIRECT": "True"},
    )
    assert SGLANG.wants_direct_io(wanted)
    assert SGLANG.wants_io_uring(wanted)
    assert not SGLANG.wants_direct_io(launch({"hicache-storage-backend": "nixl"}))
    assert not SGLANG.wants_io_uring(launch({}, {"SGLANG_HICACHE_NIXL_O_DIRECT": "1"}))


@pytest.mark.parametrize(
    ("line", "dtype"),
    [
        ("KV Cache is allocated. dtype: torch.bfloat16, #tokens: 19968, K size: 1.07 GB, V size: 1.07 GB", "bfloat16"),
        ("KV Cache VA upper bound. dtype: torch.float8_e4m3fn, #tokens: 640, KV size: 0.10 GB", "float8_e4m3fn"),
        ("KV Cache is allocated. #tokens: 16384, K size: 0.18 GB, V size: 0.18 GB", None),
        ("KV Cache is allocated. dtype: torch.float16 or so", None),
    ],
)
def test_cache_dtype_of_later_releases(line: str, dtype: str | None) -> None:
    """From 0.5.17 on the dtype stands in the line that tells the cache's size."""
    got = seen(log=f"[2030-01-01 03:41:39 TP0] {line}\n").get("kv_cache_dtype")
    assert (got.value if got is not None else None) == dtype


def test_direct_io_of_later_releases() -> None:
    """From 0.5.17 on O_DIRECT is told in other words, and only where it is on."""
    line = "HiCacheNixl: O_DIRECT is active with a file-based backend (POSIX). Page-aligned host buffers are required\n"
    assert seen(log=f"[2030-01-01 03:41:39] {line}")["hicache_storage_o_direct"].value is True
    other = line.replace("with a file-based backend", "but the host kv_buffer is not OS-page-aligned")
    assert "hicache_storage_o_direct" not in seen(log=f"[2030-01-01 03:41:39] {other}")


def test_contradicting_log() -> None:
    """Two ranks that tell different things agree with nothing."""
    log = LOG + "[2030-01-01 03:41:39 TP1] Using KV cache dtype: torch.float16\n"
    assert seen(log=log)["kv_cache_dtype"].value == "contradictory: bfloat16, float16"


def test_lines_that_only_look_alike() -> None:
    """A line counts only where the engine would have written it: at the start, after its time."""
    log = (
        "prompt: [x] Using KV cache dtype: torch.float16\nUsing KV cache dtype: torch.float16\n"
        "[2030-01-01 03:41:39] Using KV cache dtype: torch.float16 (just kidding)\n"
    )
    assert "kv_cache_dtype" not in seen(log=log)


def test_contradicting_schedulers() -> None:
    """Schedulers that run different backends agree with nothing."""
    states = [{"decode_attention_backend": "triton"}, {"decode_attention_backend": "fa3"}]
    assert seen({"internal_states": states})["decode_attention_backend"].value == "contradictory: triton, fa3"


def test_dtype_that_the_engine_cast() -> None:
    """Where the server repeats `auto`, the log's cast counts, else the checkpoint's config."""
    cast = "[2030-01-01 03:41:39] Casting torch.bfloat16 to torch.float16.\n"
    assert seen({"dtype": "auto"}, log=cast)["dtype"] == ("float16", "start-up log")
    assert seen({"dtype": "auto"})["dtype"] == ("bfloat16", "checkpoint config")


def test_hostile_server_info() -> None:
    """Values of any shape are taken as they come: what no receipt can carry is not observed."""
    info: dict[str, Any] = {
        "page_size": {"deep": [1]},
        "device": "x" * 10_000,
        "dtype": 5,
        "quantization": ["a"],
        "internal_states": "none",
        "served_model_name": "a\0b",
        "Not A Name": 1,
    }
    observed = observed_effective(info, "", {}, {})
    assert observed["page_size"].value == '{"deep":[1]}'
    assert not {"device", "served_model_name", "Not A Name"} & set(observed)


@given(st.text(max_size=400))
def test_garbled_log(noise: str) -> None:
    """Whatever stands between them, the engine's own lines are found; noise alone says nothing wrong."""
    clean = noise.replace("Using KV", "")
    assert seen(log=f"{clean}\n{LOG}\n{clean}")["kv_cache_dtype"].value == "bfloat16"
    assert "kv_cache_dtype" not in seen(log=clean)


def test_huge_log() -> None:
    """Megabytes of near misses are read in no time."""
    miss = (
        "[" + "x" * 59 + "] NixlBackendSelection.create_backend: backend_name POSIX initparams {" + "'a': " * 390 + "\n"
    )
    since = time.monotonic()
    seen(log=miss * 4000 + "[" * 100_000 + LOG)
    assert time.monotonic() - since < 60  # for ever, if it searched again and again


@pytest.mark.parametrize(
    ("expected", "got", "equal"),
    [
        (2, 2.0, True),
        (True, 1, False),
        (0, False, False),
        ("16", 16, False),
        ("none", None, False),
        ("", None, False),
        ("a", "a", True),
        (True, True, True),
    ],
)
def test_same(expected: Scalar, got: Scalar | None, equal: bool) -> None:  # noqa: FBT001  a parametrised outcome
    """Numbers agree by value; unset, empty, 0 and "none" are four different things."""
    assert same(expected, got) is equal


def test_replaced() -> None:
    """The longest path is replaced first."""
    assert replaced("/a/b/c /a/b", {"x": "/a/b", "y": "/a/b/c", "empty": ""}) == "{y} {x}"


def test_phases_and_noise() -> None:
    """What a line says about the start."""
    phases = [phase for line in LOG.splitlines() if (phase := SGLANG.phase(line))]
    assert phases[0] == "the scheduler starts"
    assert phases[-1] == "ready"
    assert SGLANG.is_noise('[2030-01-01 03:41:43] INFO:     127.0.0.1:35734 - "GET /model_info HTTP/1.1" 200 OK')
    assert not SGLANG.is_noise("RuntimeError: no")
