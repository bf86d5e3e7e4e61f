"""What a live server showed, value by value: bounded, machine paths replaced, the better source last."""

import json
import re
from collections.abc import Mapping
from typing import Any

from reproducer.documents.lock import Scalar
from reproducer.engines.interface import Observed, Source, replaced

NAME = re.compile(r"[a-z][a-z0-9_]*")
_LONGEST = 4096


def scalar(value: Any) -> Scalar | None:
    """A value of `/server_info` or of an argument as one scalar: lists joined by commas, tables as JSON."""
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return ",".join(str(each) for each in value)
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return None


class Seen:
    """Effective values so far; a later, better source replaces an earlier one."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self.paths = paths
        self.found: dict[str, Observed] = {}

    def put(self, name: Any, value: Any, source: Source) -> None:
        """Keep a value that a receipt can carry, machine paths replaced; None says nothing."""
        one = scalar(value)
        if isinstance(one, str):
            one = replaced(one, self.paths)
            if len(one) > _LONGEST or "\0" in one:
                return
        if one is not None and isinstance(name, str) and NAME.fullmatch(name):
            self.found[name] = Observed(one, source)
