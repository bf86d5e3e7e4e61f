"""The models of a launch: which checkpoint each argument names, and the placeholder that takes its place."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from reproducer.importing.arguments import Given
from reproducer.importing.command import EngineName

_REPOSITORY = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?/[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$")
_CACHED = re.compile(r"^(.*/models--([^/]+)--([^/]+)/snapshots/([0-9a-f]{40}))(?:/|$)")
_COMMIT = re.compile(r"^[0-9a-f]{40}$")
_IN_SPECULATION = re.compile(r'"(?:model|draft_model)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_SPECULATION_REVISION = re.compile(r'"revision"\s*:\s*"([^"\\]*)"')

# Arguments that name a model and its revision, by role; the first is the name that a manifest gets.
_TARGET = {"sglang": ("model-path", "model"), "vllm": ("model", "model-tag")}
_DRAFT = {
    "sglang": ("speculative-draft-model-path", "speculative-draft-model"),
    "vllm": ("spec-model", "speculative-model"),
}
_TOKENIZER = {"sglang": "tokenizer-path", "vllm": "tokenizer"}
_REVISIONS = {
    "target": ("revision",),
    "draft": ("speculative-draft-model-revision",),
    "tokenizer": ("tokenizer-revision",),
}
SPECULATION = "speculative-config"


@dataclass
class Model:
    """One checkpoint of a manifest.

    Attributes:
        role: what it is for.
        given: the text of the argument.
        repository: on the hub; `unknown` for a folder.
        revision: a commit, a branch, or `unknown`.
        prefix: the path that its placeholder stands for; empty for a repository.
        why: what a person must decide about it; empty where nothing is open.
    """

    role: str
    given: str
    repository: str = "unknown"
    revision: str = "unknown"
    prefix: str = ""
    why: str = ""

    @property
    def placeholder(self) -> str:
        """What stands for it in arguments."""
        return f"{{checkpoint.{self.role}}}"

    @property
    def base(self) -> str:
        """Its name without the owner."""
        if self.repository != "unknown":
            return self.repository.rpartition("/")[2]
        return self.given.rstrip("/").rpartition("/")[2]


@dataclass
class Models:
    """The checkpoints of a launch, and the arguments without what they stand for.

    Attributes:
        found: by role, the target first.
        arguments: placeholders by the argument they stand in.
        mapped: arguments that say which revision, which is the checkpoint's own now.
    """

    found: dict[str, Model] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    mapped: set[str] = field(default_factory=set)


def models_of(engine: EngineName, given: Given, folder: Path, chosen: dict[str, tuple[str, str]]) -> Models:
    """Every model that the arguments name.

    Args:
        engine: whose arguments they are.
        given: the arguments; a model that stands alone is taken out of them.
        folder: where relative paths start.
        chosen: repository and revision by role, as the person gives them.
    """
    models = Models()

    def add(role: str, text: str, argument: str) -> Model:
        for each in models.found.values():
            if each.given == text:
                models.arguments[argument] = each.placeholder
                return each
        model = _model(role, text, _revision(given, role, models), folder)
        if role in chosen:
            model.repository, model.revision = chosen[role]
            model.why = _loose(model)
        models.found[role] = model
        models.arguments[argument] = model.placeholder
        return model

    target = _TARGET[engine]
    named = next((name for name in target if given.values.get(name)), None)
    if named is not None:
        add("target", given.values.pop(named)[0], named if engine == "sglang" else "model")
    elif given.alone:
        add("target", given.alone.pop(0), target[0])
    elif "target" in chosen:
        add("target", "unknown", target[0])
    draft = next((name for name in _DRAFT[engine] if given.values.get(name)), None)
    if draft is not None:
        add("draft", given.values.pop(draft)[0], draft)
    if (name := _TOKENIZER[engine]) in given.values and given.values[name]:
        add("tokenizer", given.values.pop(name)[0], name)
    _speculation(given, models, add)
    return models


def _speculation(given: Given, models: Models, add: "object") -> None:
    """A draft model inside vLLM's table of speculation: only its name changes, every other byte stays."""
    words = given.values.get(SPECULATION)
    if not words or len(words) != 1 or not callable(add):
        return
    match = _IN_SPECULATION.search(words[0])
    if match is None or "/" not in match[1]:
        return
    model = add("draft", match[1], SPECULATION)
    revision = _SPECULATION_REVISION.search(words[0])
    if revision and _COMMIT.match(revision[1]) and model.revision in ("main", "unknown"):
        model.revision, model.why = revision[1], ""
    text = words[0][: match.start(1)] + model.placeholder + words[0][match.end(1) :]
    given.values[SPECULATION] = [text]
    del models.arguments[SPECULATION]


def _revision(given: Given, role: str, models: Models) -> str:
    for name in _REVISIONS.get(role, ()):
        if words := given.values.pop(name, []):
            models.mapped.add(name)
            return words[0]
    return ""


def _model(role: str, text: str, revision: str, folder: Path) -> Model:
    if match := _CACHED.match(text):
        return Model(role, text, f"{match[2]}/{match[3]}", match[4], match[1])
    if _REPOSITORY.match(text) and not (folder / text).is_dir():
        model = Model(role, text, text, revision or "main")
        model.why = _loose(model)
        return model
    why = (
        "the launch names a folder: which repository and revision it holds is not known. "
        f"Write them here, or import again with --checkpoint {role}=OWNER/NAME@COMMIT"
    )
    return Model(role, text, prefix=text.rstrip("/"), why=why)


def _loose(model: Model) -> str:
    """What is open about a revision that is no commit."""
    if model.repository == "unknown" or _COMMIT.match(model.revision):
        return ""
    return f"`{model.revision}` moves: `penny lock` takes the commit that it is then, which may not be the one that ran"
