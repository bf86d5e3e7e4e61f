"""The classification of a lock's facts: rules over their paths.

Closed world: what no rule makes neutral is `cache-identity`. A rule that makes something neutral needs a reason that
holds for every value it may take.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from reproducer.documents.consistency import RUNTIME_ENVIRONMENT
from reproducer.documents.lock import ArgumentValue, Lock, Scalar
from reproducer.engines.interface import same
from reproducer.engines.seen import scalar
from reproducer.engines.sglang_arguments import field_of, given
from reproducer.identity.factors import Factor, Path
from reproducer.identity.meaning import Consequence, Meaning
from reproducer.identity.tables import table_of

_SIZE = "the digest beside it fixes the size"
_PLACE = "where the file lies beside the lock is not what is in it"
_CODE = "code that computes, keeps or copies KV pages"
_FILES = "weights and config of the checkpoint shape every page"
_CONVERSION = "how the checkpoint's files are made; every resulting file is pinned by its own digest"
_PACKAGES = "packages that compute, keep or copy KV pages, or build what does"
_TEXT = "it shapes prompts as text; pages are keyed by token ids"
_DEFAULTS = "defaults for choosing tokens; pages are keyed by those chosen"
_REPOSITORY = "text for people, which the engine does not open"
_MEASURE = "what is asked of the running server, after everything that shapes a page is fixed"
_THRESHOLD = "what counts as good enough, not what is computed"
UNLISTED = "no rule lists it as neutral"
_UNLISTED = Meaning("cache-identity", UNLISTED)
_SEPARATOR = "\0"

# (pattern, class, reason); `*` stands for one part of a path, `**` at the end for any rest. The first that fits counts.
RULES: tuple[tuple[str, Consequence, str], ...] = (
    ("format", "cosmetic", "how the lock is written"),
    ("name", "cosmetic", "what people call it"),
    ("manifest", "cosmetic", "where its manifest lies"),
    ("platform", "cache-identity", "machine code and rounding differ between platforms"),
    ("toolchain/driver", "operational", "the oldest driver that serves; which one runs is a fact of the host"),
    ("toolchain/*", "cache-identity", "what compiles and runs the code that computes the pages"),
    ("hardware/memory_gb", "performance", "how many pages fit, not what is in one"),
    ("hardware/power_limit_w", "performance", "how fast, not what is computed"),
    ("hardware/requested_power_limit_w", "performance", "how fast, not what is computed"),
    ("engine/arguments/**", "cosmetic", "a list read from the engine's source, which is pinned itself"),
    ("engine/*", "cache-identity", "which code names and lays out the pages"),
    ("build/source_date_epoch", "build", "times in archives; the normalised content has a digest of its own"),
    ("build/*", "cache-identity", "part of the recipe of the code that computes the pages"),
    ("components/*/source/path", "cosmetic", _PLACE),
    ("components/*/source/url", "operational", "from where a commit comes does not matter, its name is its content"),
    ("components/*/source/asked", "cosmetic", "what the manifest said for the commit, which is pinned itself"),
    ("components/*/source/submodules/*/url", "operational", "from where a commit comes does not matter"),
    ("components/*/source/lfs/*/size", "cosmetic", _SIZE),
    ("components/*/source/changes/path", "cosmetic", _PLACE),
    ("components/*/source/changes/size", "cosmetic", _SIZE),
    ("components/*/source/size", "cosmetic", _SIZE),
    ("components/*/source/files/*/size", "cosmetic", _SIZE),
    ("components/*/source/**", "cache-identity", _CODE),
    ("components/*/patches/*/path", "cosmetic", _PLACE),
    ("components/*/patches/*/size", "cosmetic", _SIZE),
    ("components/*/patches/**", "cache-identity", _CODE),
    ("components/*/jobs", "operational", "how many steps of a build run at once"),
    ("components/*/outputs/*/members/**", "cosmetic", "a list made from the output, to name differences with"),
    ("components/*/outputs/*/size", "cosmetic", _SIZE),
    ("components/*/outputs/*/sha256", "build", "packing and times of the archive; its content has a digest of its own"),
    ("components/*/outputs/*/content_sha256", "cache-identity", _CODE),
    ("components/**", "cache-identity", "part of the recipe of the code that computes the pages"),
    ("environments/*/indexes", "operational", "from where a file comes does not matter, its digest does"),
    ("environments/*/packages", "cosmetic", "a count of what the digest beside it fixes"),
    ("environments/*/pylock/path", "cosmetic", _PLACE),
    ("environments/*/pylock/size", "cosmetic", _SIZE),
    ("environments/*/pylock/sha256", "cache-identity", _PACKAGES),
    ("checkpoints/*/source/asked", "cosmetic", "what the manifest said for the revision, which is pinned itself"),
    ("checkpoints/*/source/**", "build", _CONVERSION),
    ("checkpoints/*/conversion/**", "build", _CONVERSION),
    ("checkpoints/*/files/*/blob", "cosmetic", "a second name of the content that the digest beside it fixes"),
    ("checkpoints/*/files/*/size", "cosmetic", _SIZE),
    ("checkpoints/*/files/tokenizer_config.json/sha256", "behaviour", _TEXT),
    ("checkpoints/*/files/chat_template.jinja/sha256", "behaviour", _TEXT),
    ("checkpoints/*/files/chat_template.json/sha256", "behaviour", _TEXT),
    ("checkpoints/*/files/generation_config.json/sha256", "behaviour", _DEFAULTS),
    ("checkpoints/*/files/README.md/sha256", "cosmetic", _REPOSITORY),
    ("checkpoints/*/files/LICENSE/sha256", "cosmetic", _REPOSITORY),
    ("checkpoints/*/files/.gitattributes/sha256", "cosmetic", _REPOSITORY),
    ("checkpoints/*/files/**", "cache-identity", _FILES),
    ("checkpoints/*/name", "cache-identity", "it stands in the namespace's name"),
    ("checkpoints/**", "cache-identity", "how the checkpoint is read shapes every page"),
    ("adopted/distributions", "cosmetic", "a count of what the digest beside it fixes"),
    ("adopted/environment/path", "cosmetic", _PLACE),
    ("adopted/environment/size", "cosmetic", _SIZE),
    ("adopted/observed/**", "cosmetic", "a record of what was seen beside the packages"),
    ("adopted/environment/sha256", "cache-identity", _PACKAGES),
    ("launch/files/*/path", "cosmetic", _PLACE),
    ("launch/files/*/size", "cosmetic", _SIZE),
    ("launch/files/*/sha256", "cache-identity", "what the server reads beside its checkpoints"),
    ("launch/program", "cache-identity", "which program serves"),
    ("launch/module", "cache-identity", "which program serves"),
    ("launch/readiness/**", "operational", "when the server counts as ready"),
    ("qualification/suite", "cosmetic", "what people call it"),
    ("qualification/reference/path", "cosmetic", _PLACE),
    ("qualification/reference/size", "cosmetic", _SIZE),
    ("qualification/measures/*/thresholds/**", "operational", _THRESHOLD),
    ("qualification/**", "performance", _MEASURE),
)  # fmt: skip


class Classes:
    """The classification of the facts of one lock: what it says elsewhere may make a fact say nothing new."""

    def __init__(self, lock: Lock) -> None:
        self._engine = lock.engine.kind
        self._effective = lock.launch.effective
        canonical = table_of(lock.engine.kind).canonical
        self._requested = {canonical(name): value for name, value in lock.launch.arguments.items()}
        used = {component.build_environment for component in lock.components} | {RUNTIME_ENVIRONMENT}
        conversions = [each.conversion for each in lock.checkpoints]
        self._converting = {each.environment for each in conversions if each is not None} - used

    def of(self, path: Path, factor: Factor) -> Meaning:
        """What a fact of this lock means."""
        if path[:2] == ("launch", "arguments"):
            return self._argument(path[2], factor)
        if path[0] == "environments" and path[1] in self._converting:
            found = rule(path, self._engine)
            return found if found.neutral else Meaning("build", _CONVERSION)
        return rule(path, self._engine)

    def effective_of(self, argument: str) -> str | None:
        """The effective value that stands for an argument: the lock has it, and the request says nothing else.

        Args:
            argument: its canonical name.
        """
        if argument not in self._requested:
            return None
        field, requested = effective_field(self._engine, argument), self._requested[argument]
        if field not in self._effective:
            return None
        if isinstance(requested, str) and requested.strip().casefold() == "auto":
            return field
        asked = _asked(self._engine, argument, requested)
        return field if asked is not None and same(asked, self._effective[field]) else None

    def _argument(self, flag: str, factor: Factor) -> Meaning:
        if (field := self.effective_of(flag)) is not None:
            return Meaning("operational", f"a request; the effective value {field} stands for it")
        if factor.value is False:
            return Meaning("cosmetic", "false leaves the flag out, as if it were not named")
        return rule(("launch", "arguments", flag), self._engine)


def rule(path: Path, engine: str) -> Meaning:
    """What the rules and the engine's table say of a path; unlisted facts are `cache-identity`."""
    match path:
        case ("launch", part, name):
            spelt = table_of(engine).canonical(name) if part == "arguments" else name
            if (found := _launch(engine).get((part, spelt))) is not None:
                return found
    rules = _rules().get(path[0])
    hit = rules.pattern.fullmatch(_SEPARATOR.join(path)) if rules else None
    return rules.meanings[hit.lastgroup] if rules and hit and hit.lastgroup else _UNLISTED


class _Rules(NamedTuple):
    """The rules over one key of the lock as one expression; the group that matched says which rule it was."""

    pattern: re.Pattern[str]
    meanings: Mapping[str, Meaning]


@cache
def _rules() -> Mapping[str, _Rules]:
    by_root: dict[str, list[tuple[str, Meaning]]] = {}
    for pattern, consequence, reason in RULES:
        parts = pattern.split("/")
        by_root.setdefault(parts[0], []).append((_expression(parts), Meaning(consequence, reason)))
    return {
        root: _Rules(
            re.compile("|".join(f"(?P<r{index}>{text})" for index, (text, _) in enumerate(rules)), re.DOTALL),
            {f"r{index}": meaning for index, (_, meaning) in enumerate(rules)},
        )
        for root, rules in by_root.items()
    }


def _expression(parts: Sequence[str]) -> str:
    """A pattern as a regular expression over the parts of a path joined by NUL, which stands in no part."""
    text = ""
    for index, part in enumerate(parts):
        separator = _SEPARATOR if index else ""
        text += {"*": f"{separator}[^{_SEPARATOR}]*", "**": f"(?:{_SEPARATOR}.*)?"}.get(
            part, separator + re.escape(part)
        )
    return text


@cache
def _launch(engine: str) -> Mapping[tuple[str, str], Meaning]:
    """The engine's table, by the part of the launch and the name in it; empty for an engine that has none."""
    table = table_of(engine)
    return {
        **{("arguments", name): meaning for name, meaning in table.arguments.items()},
        **{("effective", effective_field(engine, name)): meaning for name, meaning in table.arguments.items()},
        **{("environment", name): meaning for name, meaning in table.variables.items()},
    }


def effective_field(engine: str, argument: str) -> str:
    """The name of the effective value that an argument sets."""
    return field_of(argument) if engine == "sglang" else argument.replace("-", "_")


def _asked(engine: str, argument: str, requested: ArgumentValue) -> Scalar | None:
    """What a request asks for, as an effective value says it; None where it cannot be compared.

    A list never can: effective values join lists by commas, so one of them may be several lists.
    """
    if isinstance(requested, tuple):
        return None
    if engine == "sglang":
        return given({argument: requested}).get(field_of(argument))
    return None if requested is False else scalar(requested)
