"""The manifest as a commented file, in the order and style of the manifests of this project."""

from collections.abc import Mapping
from typing import Any

from reproducer.documents.base import shown
from reproducer.documents.manifest import Manifest
from reproducer.documents.toml import parse_toml
from reproducer.importing.placing import Placed

_RULE = "# " + "-" * 64


def render(placed: Placed) -> str:
    """The text of the manifest; it is read back and validated before anyone gets it.

    Raises:
        InvalidDocumentError: what came out is no manifest.
    """
    data = placed.data
    open_keys: dict[str, str] = {each.key: each.why for each in placed.unknown}
    how = "recorded by running it, apart from this host" if placed.ran else "read without running anything"
    lines = [
        f"# {data['name']}: a launch that exists, as a manifest.",
        "#",
        f"# Imported by `penny import` from {_plain(placed.where)}; it was {how}.",
        "# Lines with `unknown` are for you to decide; `penny lock THIS-FILE` resolves the rest to penny.lock.toml.",
        "# Paths are relative to the folder that penny.lock.toml lies in.",
        "",
        *_pairs(data, ("format", "name", "description", "platform")),
        _line("python", data["python"], open_keys.get("python")),
        _line("compiler", data["compiler"], 'unknown: "none" where nothing is compiled'),
        "",
        "[engine]",
        *_pairs(data["engine"], ("kind", "component")),
        "",
        *_heading("what serves"),
    ]
    for component in data["components"]:
        lines += ["[[components]]", *_pairs(component, ("name", "build_environment"))]
        lines += [_line("source", component["source"], open_keys.get("components.source"), above=True), ""]
    lines += _heading("environments, each locked whole")
    for environment in data["environments"]:
        lines += ["[[environments]]", _line("name", environment["name"])]
        why = open_keys.get(f"environments.{environment['name']}")
        lines += [_requirements(environment["requirements"], why), ""]
    lines += _heading("the models")
    for checkpoint in data["checkpoints"]:
        lines += ["[[checkpoints]]", *_pairs(checkpoint, ("name", "role", "trust_remote_code"))]
        lines += [
            _line("source", checkpoint["source"], open_keys.get(f"checkpoints.{checkpoint['role']}"), above=True),
            "",
        ]
    lines += [*_heading("the server"), *_launch(data["launch"], open_keys, placed.added)]
    lines += [*_heading("what it must show to qualify"), *_qualification(data["qualification"])]
    text = "\n".join(lines) + "\n"
    Manifest.from_data(parse_toml(text, where=data["name"]), where=data["name"], source=text)
    return text


def _launch(launch: Mapping[str, Any], open_keys: Mapping[str, str], added: Mapping[str, str]) -> list[str]:
    lines = ["[launch]", _line("module", launch["module"]), ""]
    lines += ["# Flag name to value; true is a flag without a value. penny adds --host and --port itself."]
    lines += ["[launch.arguments]"]
    for name, value in launch["arguments"].items():
        lines.append(_line(name, value, added.get(name) or open_keys.get(f"launch.arguments.{name}")))
    lines.append("")
    if launch["environment"]:
        lines += ["# The server sees these variables and no others of yours.", "[launch.environment]"]
        for name, value in launch["environment"].items():
            lines.append(_line(name, value, open_keys.get(f"launch.environment.{name}")))
        lines.append("")
    if launch.get("files"):
        lines += ["# Files that the server reads; {file.NAME} stands for their place.", "[launch.files]"]
        for name, path in launch["files"].items():
            lines.append(_line(name, path, open_keys.get(f"launch.files.{name}")))
        lines.append("")
    return [*lines, "[launch.readiness]", *_pairs(launch["readiness"], ("endpoint", "deadline_s")), ""]


def _qualification(qualification: Mapping[str, Any]) -> list[str]:
    lines = [
        "# Nothing was measured yet: add thresholds, such as a decode_rate, once you know what this runtime reaches.",
        "[qualification]",
        *_pairs(qualification, ("suite", "boots")),
    ]
    for measure in qualification["measures"]:
        lines += ["", "[[qualification.measures]]", *_pairs(measure, ("id", "repeats", "warmup", "thresholds"))]
    return lines


def _heading(text: str) -> list[str]:
    return [f"{_RULE} {text}", ""]


def _pairs(table: Mapping[str, Any], keys: tuple[str, ...]) -> list[str]:
    return [_line(key, table[key]) for key in keys if key in table]


def _requirements(items: list[str], why: str | None) -> str:
    if len(items) == 1:
        return _line("requirements", items, why)
    return "\n".join(["requirements = [", *(f"  {_value(each)}," for each in items), "]"])


def _line(key: str, value: Any, why: str | None = None, *, above: bool = False) -> str:
    text = f"{key} = {_value(value)}"
    if not why:
        return text
    note = _plain(why)
    if not note.startswith(("unknown", "added")):
        note = f"unknown: {note}"
    return f"# {note}\n{text}" if above or len(text) + len(note) > 110 else f"{text}  # {note}"  # noqa: PLR2004


def _value(value: Any) -> str:
    import tomlkit

    if isinstance(value, str):
        plain = value.isprintable() and "'" not in value and ('"' in value or "\\" in value)
        return tomlkit.string(value, literal=plain).as_string()
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(each) for each in value)}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    text: str = tomlkit.item(value).as_string()
    return text


def _plain(text: str) -> str:
    """Text from outside as it may stand in a comment: one line, printable."""
    return text if text.isprintable() else shown(text)
