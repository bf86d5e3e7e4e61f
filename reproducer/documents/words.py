"""What is expected of a value, in words: nobody should have to read a regular expression or the name of a class.

A pattern that stands in a document and not here is told as it is; a test sees to it that there is none.
"""

import re
from collections.abc import Mapping
from typing import Any

_DATE = "a date such as 2026-12-03"
PATTERNS: Mapping[str, str] = {
    r"^(3\.[0-9]{1,2}|unknown)$": "a minor version of Python such as 3.11, or unknown",
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2}|unknown)$": f"{_DATE}, or unknown",
    r"^([0-9a-f]{40}|[0-9a-f]{64})$": "a git object: 40 or 64 hex digits in lower case",
    r"^([<>=!~0-9][^\s]*|unknown)$": "a version such as 1.2, a range such as >=1,<2 without spaces, or unknown",
    r"^(https://[^\s]+|unknown)$": "an https:// address without spaces, or unknown",
    r"^(sm|compute)_[0-9]{2,3}[af]?$": "an architecture such as sm_90, sm_120a or compute_90",
    r"^/[A-Za-z0-9_/-]*$": "the path of an endpoint such as /health",
    r"^2\.(17|28|3[1-9]|40)$": "a version of glibc that wheels are made for: 2.17, 2.28, or 2.31 to 2.40",
    r"^3\.[0-9]{1,2}$": "a minor version of Python such as 3.11",
    r"^[0-9][A-Za-z0-9.!+_-]*$": "one exact version such as 1.2.3, which begins with a digit",
    r"^[0-9a-f]{40}$": "a full commit: 40 hex digits in lower case",
    r"^[0-9a-f]{64}$": "a sha256: 64 hex digits in lower case",
    r"^[A-Za-z0-9+/]+={0,2}$": "base64",
    r"^[A-Za-z0-9]": "a requirement such as torch>=2, which begins with a name: no option, path or address",
    r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$": "the name of a project: letters, digits and . _ - within",
    r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?/[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$": (
        "a repository of a hub such as org/model"
    ),
    r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$": "the name of a program: at most 64 letters, digits and . _ + -",
    r"^[A-Za-z0-9_][A-Za-z0-9._+!-]{0,254}$": (
        "a plain file name: at most 255 letters, digits and . _ + ! -, and not with a point first"
    ),
    r"^[A-Za-z_][A-Za-z0-9_.]*$": "a Python module such as sglang.launch_server",
    r"^[A-Za-z_][A-Za-z0-9_]{0,254}$": "the name of a variable: letters, digits and _, not with a digit first",
    r"^[^\x00-\x1f\x7f]+$": "one line of text without control characters",
    r"^[^\x00]*$": "text without NUL characters",
    r"^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$": (
        "a short name: at most 64 small letters, digits and . _ - within, such as my-runtime"
    ),
    r"^[a-z]+(\.[a-z]+)*/[1-9][0-9]*$": "a measure with its version such as decode.single/1",
    r"^[a-z][a-z0-9-]*$": "an argument without its dashes, in small letters, such as page-size",
    r"^[a-z][a-z0-9_]*$": "a name of small letters, digits and _, such as page_size",
    r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$": "a time in UTC such as 2026-12-03T10:20:30Z",
}
_TYPES: Mapping[str, str] = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "dataclass_type": "a table",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a table",
    "string_type": "text",
    "tuple_type": "a list",
}
_SUBJECT = re.compile(r"^(?:Value error, )?[A-Z][a-z]+ should ")


def told(fault: Mapping[str, Any]) -> str:
    """What one fault of a ValidationError says."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "string_pattern_mismatch" and context["pattern"] in PATTERNS:
        return f"must be {PATTERNS[context['pattern']]}"
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}"
    if kind == "literal_error":
        return f"must be {context['expected']}"
    if kind == "union_tag_invalid":
        return f"{_bare(context['discriminator'])} must be one of {context['expected_tags']}"
    if kind == "union_tag_not_found":
        return f"{_bare(context['discriminator'])} is missing, which says what the rest is"
    return _SUBJECT.sub("must ", str(fault["msg"]))


def _bare(name: str) -> str:
    return name.strip("'")
