"""The adapter for vLLM: arguments in, effective values out, as a real server of release 0.32.0 showed them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.lock import ArgumentValue, Launch, Scalar
from reproducer.engines import engine_of
from reproducer.engines.interface import Observed
from reproducer.engines.vllm import VLLM_ENGINE
from reproducer.errors import InvalidDocumentError
from reproducer.launch.effective import EffectiveDifferenceError, check, compared

DATA = Path(__file__).with_name("data")
INFO: dict[str, Any] = json.loads((DATA / "vllm_server_info.json").read_text())
LOG = (DATA / "vllm_startup.log").read_text()
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}
VALUES = {"checkpoint.target": "/store/checkpoints/target", "namespace": "/kv/name-000000000000"}
ARGUMENTS: dict[str, ArgumentValue] = {
    "block-size": 32,
    "dtype": "bfloat16",
    "enable-prompt-tokens-details": True,
    "enforce-eager": True,
    "kv-cache-dtype": "bfloat16",
    "max-model-len": 2048,
    "model": "{checkpoint.target}",
    "seed": 0,
    "served-model-name": "smollm2-135m-instruct",
}


def launch(arguments: dict[str, Any]) -> Launch:
    """A launch with these arguments."""
    data = {"module": "m", "arguments": arguments, "effective": {}, "readiness": {"endpoint": "/health"}}
    return Launch.model_validate_json(json.dumps(data))


def expected(more: Mapping[str, ArgumentValue] | None = None) -> dict[str, Scalar]:
    """What the recorded server's arguments must resolve to, with some more of them."""
    named = {name.replace("_", "-"): value for name, value in (more or {}).items()}
    return VLLM_ENGINE.expected_effective({**ARGUMENTS, **named}, CONFIG)


def seen(info: dict[str, Any] | None = None, log: str = LOG) -> dict[str, Observed]:
    """What a server shows."""
    return VLLM_ENGINE.observed_effective(INFO if info is None else info, log, CONFIG, VALUES)


def changed(part: str, key: str, value: object) -> dict[str, Any]:
    """The recorded facts with another value."""
    info: dict[str, Any] = json.loads(json.dumps(INFO))
    info["vllm_config"][part][key] = value
    return info


def differing(
    info: dict[str, Any] | None = None, log: str = LOG, more: Mapping[str, ArgumentValue] | None = None
) -> list[str]:
    """The names of effective values by which a launch of the lock would be refused."""
    return [each.name for each in compared(expected(more), seen(info, log)) if not each.agrees]


def test_the_recorded_server_is_the_one_of_the_lock() -> None:
    """Every value that the arguments resolve to is shown by the server, and is the same."""
    assert differing() == []
    found = expected()
    assert {"block_size", "dtype", "kv_cache_dtype", "max_model_len", "model", "seed", "tokenizer"} <= found.keys()
    assert found["model"] == found["tokenizer"] == "{checkpoint.target}"
    observed = seen()
    assert observed["kv_cache_dtype"] == ("bfloat16", "server_info")
    assert observed["enable_prompt_tokens_details"] == (True, "start-up log")
    assert observed["architecture"] == ("LlamaForCausalLM", "start-up log")


@pytest.mark.parametrize(
    ("part", "key", "value", "name"),
    [
        ("cache_config", "block_size", 16, "block_size"),
        ("cache_config", "cache_dtype", "fp8", "kv_cache_dtype"),
        ("model_config", "max_model_len", 4096, "max_model_len"),
        ("model_config", "enforce_eager", False, "enforce_eager"),
        ("model_config", "model", "/elsewhere", "model"),
        ("model_config", "quantization", "awq", "quantization"),
        ("parallel_config", "tensor_parallel_size", 2, "tensor_parallel_size"),
    ],
)
def test_another_value_is_refused(part: str, key: str, value: object, name: str) -> None:
    """A server that resolved one argument otherwise differs in exactly that value."""
    assert differing(changed(part, key, value)) == [name]


def test_the_engine_s_own_words_count() -> None:
    """Where the log of the process that computes says something else than /server_info, nothing agrees."""
    log = LOG.replace("dtype=torch.bfloat16", "dtype=torch.float16")
    assert log != LOG
    assert differing(log=log) == ["dtype"]
    assert seen(log=log)["dtype"].value == "contradictory: bfloat16, and float16 in the log"
    twice = LOG + LOG.replace("seed=0", "seed=1")
    assert differing(log=twice) == ["enable_prompt_tokens_details", "seed", "tool_call_parser"]


def test_r5_a_parser_that_is_not_there_is_refused() -> None:
    """A lock with parsers is refused on a server without them: tool calls would leak into the text."""
    parsers: dict[str, ArgumentValue] = {
        "tool_call_parser": "hermes",
        "enable_auto_tool_choice": True,
        "reasoning_parser": "qwen3",
    }
    assert differing(more=parsers) == ["enable_auto_tool_choice", "reasoning_parser", "tool_call_parser"]
    with pytest.raises(EffectiveDifferenceError) as raised:
        check(compared(expected(parsers), seen()), where="penny.lock.toml")
    assert "tool_call_parser: expected 'hermes', got 'none' (start-up log)" in str(raised.value)
    there = LOG.replace("'port'", "'tool_call_parser': 'hermes', 'enable_auto_tool_choice': True, 'port'")
    info = changed("structured_outputs_config", "reasoning_parser", "qwen3")
    assert differing(info, there, parsers) == []


def test_r5_a_parser_that_nobody_asked_for_is_refused() -> None:
    """A lock that names no parsers says so, and a server with one is another server."""
    assert expected()["tool_call_parser"] == expected()["reasoning_parser"] == "none"
    assert differing(log=LOG.replace("'port'", "'tool_call_parser': 'hermes', 'port'")) == ["tool_call_parser"]
    assert differing(changed("structured_outputs_config", "reasoning_parser", "qwen3")) == ["reasoning_parser"]


def test_a_log_that_does_not_say_leaves_it_unknown() -> None:
    """Without the line that lists arguments nothing is known of the front end, and unknown is no agreement."""
    silent = "\n".join(line for line in LOG.splitlines() if "non-default args" not in line)
    assert differing(log=silent) == ["enable_prompt_tokens_details", "tool_call_parser"]


def test_auto_never_stays() -> None:
    """`auto` becomes the checkpoint's half type, or is left out where the machine decides."""
    arguments: dict[str, ArgumentValue] = {"model": "m", "dtype": "auto", "kv-cache-dtype": "auto"}
    assert VLLM_ENGINE.expected_effective(arguments, CONFIG)["dtype"] == "bfloat16"
    found = VLLM_ENGINE.expected_effective(arguments, {"torch_dtype": "float32"})
    assert "auto" not in found.values()
    assert not {"dtype", "kv_cache_dtype"} & found.keys()
    assert {"dtype", "kv_cache_dtype", "attention_backend"} <= VLLM_ENGINE.machine_resolved


def test_tables_and_reporting_are_not_compared() -> None:
    """JSON arguments resolve to more than was given; logging changes nothing."""
    more: dict[str, ArgumentValue] = {"compilation_config": '{"mode": 0}', "disable_log_stats": True}
    assert expected(more) == expected()


def test_switched_off() -> None:
    """`--no-NAME` is the value false of NAME."""
    assert expected({"no-enable-prefix-caching": True})["enable_prefix_caching"] is False
    assert differing(more={"no-enable-prefix-caching": True}) == ["enable_prefix_caching"]
    assert expected({"no-enable-log-requests": True}) == expected()


@pytest.mark.parametrize("flag", ["api-key", "config", "headless", "host", "port", "ssl-keyfile", "uds"])
def test_refused_arguments(flag: str) -> None:
    """What penny sets itself, secrets and other transports stand in no argument list."""
    with pytest.raises(InvalidDocumentError, match="may not stand in a lock"):
        VLLM_ENGINE.argument_list(launch({flag: "x"}), values={})


def test_argument_list() -> None:
    """Sorted, bare flags bare, placeholders filled."""
    got = VLLM_ENGINE.argument_list(launch({"seed": 0, "model": "{checkpoint.target}", "headful": True}), values=VALUES)
    assert got == ["--headful", "--model", "/store/checkpoints/target", "--seed", "0"]


@pytest.mark.parametrize(
    "line",
    [
        "(APIServer pid=1) INFO 01-01 00:00:00 [a.py:1] non-default args: {'a': __import__('os').getpid()}",
        "(APIServer pid=1) INFO 01-01 00:00:00 [a.py:1] non-default args: {" + "(" * 5000 + "}",
        "(APIServer pid=1) INFO 01-01 00:00:00 [a.py:1] non-default args: {'a': '" + "x" * 70000 + "'}",
        "(APIServer pid=1) INFO 01-01 00:00:00 [a.py:1] non-default args: {'a'}",
    ],
)
def test_hostile_log(line: str) -> None:
    """A line that is no plain table says nothing, and nothing of it is run."""
    assert "a" not in seen(log=line)
    assert "tool_call_parser" not in seen(log=line)


@pytest.mark.parametrize("info", [{}, {"vllm_config": []}, {"vllm_config": {"model_config": [1]}}, {"x": {"y": 1}}])
def test_facts_of_another_shape(info: dict[str, Any]) -> None:
    """Facts without a configuration agree with nothing but what the log says."""
    assert "block_size" in differing(info)


def test_phases_and_noise() -> None:
    """The log tells how far the start is; routes, progress and the banner do not say why a start failed."""
    phases = [phase for line in LOG.splitlines() if (phase := VLLM_ENGINE.phase(line))]
    assert phases[:3] == ["arguments read", "arguments resolved", "the engine starts"]
    assert phases[-2:] == ["the server starts", "ready"]
    noise = [line for line in LOG.splitlines() if VLLM_ENGINE.is_noise(line)]
    assert any("checkpoint shards" in line for line in noise)
    assert any("version 0.32.0" in line for line in noise)
    assert not VLLM_ENGINE.is_noise("(EngineCore pid=1) ERROR 01-01 00:00:00 [core.py:1] ValueError: no memory")


def test_what_it_does_not_tell() -> None:
    """Cached tokens are told when asked for; from which tier they came, never."""
    assert VLLM_ENGINE.lacks("cached tokens", launch(dict(ARGUMENTS))) == ""
    assert "--enable-prompt-tokens-details" in VLLM_ENGINE.lacks("cached tokens", launch({"model": "m"}))
    assert "page size" in VLLM_ENGINE.lacks("other page size", launch({"model": "m"}))
    assert "storage" in VLLM_ENGINE.lacks("storage tokens", launch(dict(ARGUMENTS)))


def test_by_kind() -> None:
    """The lock's word leads to it."""
    assert engine_of("vllm") is VLLM_ENGINE
