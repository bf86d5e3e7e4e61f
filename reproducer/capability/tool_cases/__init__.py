"""The cases of the suite `tools`, two for each category, a file for each group of categories."""

from collections.abc import Mapping
from types import MappingProxyType

from reproducer.capability.tool_case import ToolCase
from reproducer.capability.tool_cases import care, choice, discovery, grounding, several

_ALL: tuple[ToolCase, ...] = (*choice.CASES, *grounding.CASES, *care.CASES, *several.CASES, *discovery.CASES)
TOOL_CASES: Mapping[str, ToolCase] = MappingProxyType({case.id: case for case in _ALL})
