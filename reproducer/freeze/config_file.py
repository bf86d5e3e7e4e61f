"""The arguments in a configuration file that a command line names, read as the engine reads it: YAML, flat."""

import json
import subprocess
from pathlib import Path
from typing import Any

from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.base import parse_json, shown
from reproducer.documents.lock import ArgumentValue
from reproducer.errors import InvalidDocumentError, UnsafeInputError
from reproducer.freeze.installed import Interpreter
from reproducer.freeze.notes import Notes
from reproducer.store.hashing import hash_file

_READ = """
import json, sys
sys.path[:0] = sys.argv[2:]
import yaml
with open(sys.argv[1], "rb") as file:
    print(json.dumps(yaml.safe_load(file.read(1 << 20))))
"""
_PATIENCE_S = 60
_LARGEST = 4 << 20
_KEY = "launch.arguments.config"


def read_config(
    notes: Notes, path: Path, schema: ArgumentSchema | None, python: Interpreter
) -> dict[str, ArgumentValue]:
    """The arguments of a configuration file; none of them, with a note, where it cannot be read.

    The server's own YAML package reads it, in its own interpreter, for no other one reads it the same way.
    """
    try:
        hash_file(path)  # a plain file, and no pipe that nobody writes to
        table = _table(path, python)
    except (OSError, UnsafeInputError, InvalidDocumentError, subprocess.SubprocessError) as error:
        notes.miss(_KEY, f"the file that it names cannot be read: {shown(str(error))}")
        return {}
    found: dict[str, ArgumentValue] = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        argument = schema.argument(name) if schema is not None else None
        known = argument.name if argument is not None else name
        if (one := _value(value, several=argument is not None and argument.several)) is not None:
            found[known] = one
    notes.leave(_KEY, "the arguments of the file stand in the lock themselves")
    return found


def _table(path: Path, python: Interpreter) -> dict[str, Any]:
    """The file as a table with text for keys.

    Raises:
        InvalidDocumentError: it is none, or there is no YAML package.
    """
    places = [str(each) for each in python.places]
    ran = subprocess.run(
        [str(python.path), "-I", "-S", "-B", "-c", _READ, str(path), *places],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PATIENCE_S,
        cwd="/",
        env={"LC_ALL": "C.UTF-8"},
        check=False,
    )
    if ran.returncode:
        raise InvalidDocumentError("is no YAML", where=path.name, why=ran.stderr[-200:].decode("utf-8", "replace"))
    table = parse_json(ran.stdout, where=path.name, limit=_LARGEST)
    if not isinstance(table, dict) or not all(isinstance(key, str) for key in table):
        raise InvalidDocumentError("is no table", where=path.name)
    return table


def _value(value: Any, *, several: bool) -> ArgumentValue | None:
    """A value as an argument; None where it says that there is none."""
    if value is None or value is False:
        return None
    if isinstance(value, list) and several:
        return tuple(str(each) for each in value)
    if isinstance(value, dict | list):
        return json.dumps(value)
    return value if isinstance(value, bool | int | float | str) else str(value)
