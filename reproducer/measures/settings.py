"""Which suites there are, at which efforts, in which call modes: names alone, as every reader of a lock needs them.

Each combination is a measure with an id of its own, so that no two of them are ever merged.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

Suite = Literal["tools", "reasoning"]
Effort = Literal["default", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
CallMode = Literal["native", "prompted"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)
CASES: Mapping[Suite, int] = MappingProxyType({"tools": 30, "reasoning": 20})
MARKS: Mapping[Suite, tuple[str, ...]] = MappingProxyType(
    {"tools": ("automatic_pass", "exact_call", "parseable"), "reasoning": ("correct", "parseable")}
)


@dataclass(frozen=True)
class Setting:
    """A suite at one effort in one call mode; effort `default` asks for none, so that the model's own holds."""

    suite: Suite
    effort: Effort
    call_mode: CallMode

    @property
    def id(self) -> str:
        """The id of its measure."""
        mode = ".prompted" if self.call_mode == "prompted" else ""
        effort = "" if self.effort == "default" else f".{self.effort}"
        return f"{self.suite}{mode}{effort}/1"


def _settings() -> Iterator[Setting]:
    for effort in EFFORTS:
        yield Setting("tools", effort, "native")
        yield Setting("tools", effort, "prompted")
        yield Setting("reasoning", effort, "native")


SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.id: setting for setting in _settings()})
