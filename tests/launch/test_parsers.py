"""A command that leaves out its parsers (R5): the server that it starts is not the one that the lock means."""

from typing import TYPE_CHECKING

import pytest

from reproducer.engines.sglang import expected_effective
from reproducer.launch.effective import EffectiveDifferenceError
from tests.launch.conftest import ARGUMENTS, CONFIG

if TYPE_CHECKING:
    from tests.launch.conftest import Bench

PARSERS = {"tool-call-parser": "qwen3_coder", "reasoning-parser": "qwen3"}


def meant(**arguments: str | int) -> dict[str, object]:
    """What the engine must resolve these arguments to, but for what the stand-in does not tell."""
    found = {**expected_effective({**ARGUMENTS, **arguments}, CONFIG)}
    found.pop("context_length")
    return dict(found)


def test_r5_parsers_are_effective_values() -> None:
    """What the lock names of parsers is compared with the live server; nothing takes their place."""
    assert {name: meant(**PARSERS)[name] for name in ("tool_call_parser", "reasoning_parser")} == {
        "tool_call_parser": "qwen3_coder",
        "reasoning_parser": "qwen3",
    }


def test_r5_a_command_without_its_parsers_is_refused(bench: "Bench") -> None:
    """Started without them the server is stopped before any traffic, and both are named; with them it serves."""
    with pytest.raises(EffectiveDifferenceError) as caught, bench.run(effective=meant(**PARSERS)):
        pytest.fail("a server without its parsers must not serve")
    assert caught.value.exit_code == 68
    assert {each.name for each in caught.value.differences} == {"tool_call_parser", "reasoning_parser"}
    assert bench.left() == set()
    assert set(bench.requests()) <= {"GET /health_generate", "GET /server_info"}
    whole = bench.another("whole")
    with whole.run(arguments={**ARGUMENTS, **PARSERS}, effective=meant(**PARSERS)) as server:
        effective = {each.name: each.got for each in server.receipt.effective}
    assert (effective["tool_call_parser"], effective["reasoning_parser"]) == ("qwen3_coder", "qwen3")
