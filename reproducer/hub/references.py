"""Repositories that an engine would open besides a checkpoint's own: each must be locked, or it comes from a branch.

What is looked at:
- `auto_map` and every other value of the form `org/repo--module.Class` in the configs: transformers loads that code;
- `mm_vision_tower` and `vision_tower` in config.json: SGLang 0.5.23 loads those weights (llava.py, llavavid.py);
- `base_model_name_or_path` in adapter_config.json: an adapter is loaded on top of it;
- arguments that take a model, a tokenizer or a processor and hold the name of a repository.
`_name_or_path` is not: transformers writes it for the record, and SGLang 0.5.23 overwrites it with the folder it loads.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from reproducer.documents.base import parse_json, shown
from reproducer.documents.lock import ArgumentValue
from reproducer.errors import InvalidDocumentError, UnsafeInputError

CONFIGS = (
    "config.json",
    "tokenizer_config.json",
    "processor_config.json",
    "preprocessor_config.json",
    "image_processor_config.json",
    "video_preprocessor_config.json",
    "feature_extractor_config.json",
    "generation_config.json",
    "adapter_config.json",
)
LARGEST_CONFIG = 16 << 20
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?/[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_REPOSITORY = re.compile(_NAME)
_REMOTE = re.compile(r"(.{1,200})--[A-Za-z_][A-Za-z0-9_.]*")
_OPENED = {
    "config.json": ("mm_vision_tower", "vision_tower"),
    "adapter_config.json": ("base_model_name_or_path",),
}
_ARGUMENTS = frozenset(
    {
        "model", "model-path", "tokenizer", "tokenizer-path", "hf-config-path", "generation-config", "model-checksum",
        "speculative-model", "speculative-draft-model", "speculative-draft-model-path", "spec-model",
        "speculative-token-map", "lora-paths", "lora-modules", "uno-lora-path",
    }
)  # fmt: skip
_IN_JSON = frozenset({"model", "tokenizer", "draft_model", "model_path", "tokenizer_path"})
_OF_ARGUMENT = re.compile(rf"(?:[^=\s{{}}/]+=)?({_NAME})(?:/[^{{}}]*)?")
_DEEPEST = 32


class Reference(NamedTuple):
    """One repository that is named: which, and where."""

    repository: str
    where: str


def references_in(configs: Mapping[str, bytes], *, name: str) -> tuple[Reference, ...]:
    """Repositories that the configs of a checkpoint name.

    Args:
        configs: the bytes of the files of `CONFIGS` that are there, by path.
        name: of the checkpoint, for errors.

    Raises:
        InvalidDocumentError: a config is no JSON.
        UnsafeInputError: code comes from something that is no name of a repository.
    """
    found: list[Reference] = []
    for path, data in configs.items():
        where = f"{name}: {path}"
        content = parse_json(data, where=where, limit=LARGEST_CONFIG)
        for key, text in _texts(content, ""):
            place = f"{where}, key {key}"
            if match := _REMOTE.fullmatch(text):
                if not _REPOSITORY.fullmatch(match[1]):
                    if "auto_map" in key.split("."):
                        raise UnsafeInputError(f"{shown(text)} names no repository of a hub", where=place)
                    continue
                found.append(Reference(match[1], place))
        opened = content if isinstance(content, dict) else {}
        for key in _OPENED.get(path, ()):
            value = opened.get(key)
            if isinstance(value, str) and _REPOSITORY.fullmatch(value):
                found.append(Reference(value, f"{where}, key {key}"))
    return tuple(dict.fromkeys(found))


def has_remote_code(configs: Mapping[str, bytes], *, name: str) -> bool:
    """Whether a config names classes that do not come with the engine."""
    return any(
        "auto_map" in key.split(".")
        for path, data in configs.items()
        for key, _ in _texts(parse_json(data, where=f"{name}: {path}", limit=LARGEST_CONFIG), "")
    )


def references_of_launch(arguments: Mapping[str, ArgumentValue]) -> tuple[Reference, ...]:
    """Repositories that arguments name, where a folder of penny should stand."""
    found = []
    for flag, value in arguments.items():
        where = f"key launch.arguments.{flag}"
        for text in (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ():
            if flag in _ARGUMENTS and (match := _OF_ARGUMENT.fullmatch(text)):
                found.append(Reference(match[1], where))
            keys = _IN_JSON | {"path"} if flag in _ARGUMENTS else _IN_JSON
            found += [Reference(each, where) for each in _in_json(text, keys)]
    return tuple(dict.fromkeys(found))


def check_locked(references: Iterable[Reference], locked: Sequence[str], *, where: str) -> None:
    """Refuse a lock that leaves a repository open.

    Args:
        references: what configs name.
        locked: repositories that have a checkpoint of their own.
        where: the manifest, for errors.

    Raises:
        InvalidDocumentError: names every repository that has none.
    """
    known = {each.lower() for each in locked}
    missing = [each for each in references if each.repository.lower() not in known]
    if missing:
        first = missing[0].repository
        raise InvalidDocumentError(
            "; ".join(f"{each.where} names {each.repository}, which is not locked" for each in missing),
            where=where,
            why="the engine would open it at whatever its main branch is that day",
            todo=f'add a checkpoint with the source {{ kind = "hub", repository = {json.dumps(first)} }}',
        )


def check_launch(references: Sequence[Reference], roles: Mapping[str, str], *, where: str) -> None:
    """Refuse arguments that name a repository: locked or not, the engine would fetch it anew from its main branch.

    Args:
        references: what arguments name.
        where: the manifest, for errors.
        roles: the role of each repository that is locked.

    Raises:
        InvalidDocumentError: names every one of them.
    """
    if not references:
        return
    told, hints = [], []
    for each in references:
        role = roles.get(each.repository.lower())
        told.append(_said(each, role))
        if role:
            hints.append(f"{{checkpoint.{role}}}")
    todo = f"write {' or '.join(dict.fromkeys(hints))}" if hints else "add a checkpoint and write {checkpoint.ROLE}"
    raise InvalidDocumentError(
        "; ".join(told), where=where, why="the engine would fetch it from its main branch", todo=todo
    )


def _said(reference: Reference, role: str | None) -> str:
    return f"{reference.where} names {reference.repository}" + ("" if role else ", which is not locked")


def _texts(value: Any, key: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every text in a config with its dotted key."""
    if depth > _DEEPEST:
        raise InvalidDocumentError("is nested too deep", where=key)
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, f"{key}.{name}" if key else name, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key, depth + 1)


def _in_json(text: str, keys: Collection[str]) -> Iterator[str]:
    """Repositories in an argument that is a JSON object, such as vLLM's `speculative-config`."""
    if not text.lstrip().startswith("{"):
        return
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return
    for name, value in content.items() if isinstance(content, dict) else ():
        if name in keys and isinstance(value, str) and _REPOSITORY.fullmatch(value):
            yield value
