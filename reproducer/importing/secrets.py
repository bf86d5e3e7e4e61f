"""What must not be copied from a launch: passwords, keys and tokens, by their name or by how they look."""

import re

_WORDS = (
    r"token|secret|password|passwd|passphrase|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|credentials?"
)
_NAME = re.compile(rf"(?i)(?:^|[_-])(?:{_WORDS})(?:[_-](?:id|file|path|value))?$|^pgpassword$")
_LOOKS = (
    re.compile(r"\b(?:hf|ghp|gho|ghs|ghu|glpat|npm|pypi)[-_][A-Za-z0-9_-]{16,}"),
    re.compile(r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
    re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"),
    re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\."),
    re.compile(r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{12,}"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*"),
    re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@"),
)
_IN_JSON = re.compile(rf'(?i)"[^"]*(?:{_WORDS})"\s*:\s*"[^"]')


def is_secret(name: str, value: str = "") -> bool:
    """Whether a variable or argument holds a secret, by its name or by its value."""
    return bool(_NAME.search(name)) or any(each.search(value) for each in _LOOKS) or bool(_IN_JSON.search(value))


def without_secrets(text: str) -> str:
    """The same text, with an ellipsis in place of whatever looks like a secret."""
    for each in _LOOKS:
        text = each.sub("…", text)
    return text
