"""Files of variables: `env_file` of compose and of docker, `EnvironmentFile` of systemd (see `units.py` for that)."""

import re
from pathlib import Path

from reproducer.documents.toml import read_text

_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
LARGEST = 1 << 20


def read_env_file(path: Path) -> dict[str, str]:
    """NAME=VALUE a line, as compose reads them: `#` begins a comment, quotes around a value are taken away.

    Raises:
        UsageError: there is no such file.
        InvalidDocumentError: it is too large or not UTF-8.
    """
    found: dict[str, str] = {}
    for line in read_text(path, what="file of variables", limit=LARGEST).splitlines():
        text = line.strip().removeprefix("export ").lstrip()
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or text.startswith("#") or not _NAME.match(name):
            continue
        found[name] = _value(value.strip())
    return found


def _value(text: str) -> str:
    for quote in "\"'":
        if len(text) > 1 and text.startswith(quote) and (end := text.find(quote, 1)) > 0:
            return text[1:end]
    return re.split(r"\s+#", text, maxsplit=1)[0]
