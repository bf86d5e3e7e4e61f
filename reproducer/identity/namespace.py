"""The namespace of a lock: a readable name over the digest of all that takes part in the meaning of cached bytes.

The name begins with what the digest covers too (target checkpoint and engine), so two locks share a folder exactly when
they share the digest; what people call a lock does not count.
"""

import json
from dataclasses import dataclass
from typing import Any

from reproducer.documents.lock import Lock
from reproducer.errors import InvalidDocumentError
from reproducer.identity.classes import Classes
from reproducer.identity.encoding import DOMAIN, digest
from reproducer.identity.factors import Factor, Path, flatten, is_unknown, name_of
from reproducer.identity.meaning import Meaning

__all__ = ["Namespace", "Reading", "derive", "namespace_of"]

_DIGITS = 12


@dataclass(frozen=True)
class Namespace:
    """Where the persistent KV pages of a lock lie, and why there.

    Attributes:
        name: slug and the first 12 hex digits of the digest; the name of the folder.
        digest: hex sha256 over the canonical encoding of all factors.
        factors: what takes part, by name.
        neutral: what the lock says besides, by name, with its class and the reason for it.
    """

    name: str
    digest: str
    factors: dict[str, Factor]
    neutral: dict[str, Meaning]

    def content(self) -> dict[str, Any]:
        """As plain data: `namespace`, `digest`, `factors` (type and value), `neutral` (class and reason)."""
        return {
            "namespace": self.name,
            "digest": self.digest,
            "factors": {name: factor.content() for name, factor in sorted(self.factors.items())},
            "neutral": {name: f"{each.consequence}: {each.reason}" for name, each in sorted(self.neutral.items())},
        }

    def document(self) -> bytes:
        """The factor document, byte for byte as it lies in the namespace's root."""
        content = self.content()
        del content["neutral"]
        text = json.dumps({"format": DOMAIN, **content}, ensure_ascii=False, indent=1, sort_keys=True)
        return text.encode() + b"\n"

    def notes(self) -> bytes:
        """What was left out and why, for people; it is written beside the factor document and never compared."""
        content = {"namespace": self.name, "neutral": self.content()["neutral"]}
        return json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"


def derive(lock: Lock) -> Namespace:
    """The namespace of a lock: a function of the lock's content and of nothing else.

    Raises:
        InvalidDocumentError: two entries of the lock have one name, or a checkpoint or source names no file.
    """
    return namespace_of(Reading(lock))


def namespace_of(reading: "Reading") -> Namespace:
    """The namespace of a lock that is already read; raises as `derive` does."""
    factors: dict[str, Factor] = {}
    neutral: dict[str, Meaning] = {}
    unknown: list[str] = []
    for path, fact in reading.facts.items():
        name, meaning = name_of(path), reading.meanings[path]
        if meaning.neutral:
            neutral[name] = meaning
        else:
            factors[name] = fact
            if is_unknown(path, fact):
                unknown.append(name)
    if unknown:  # all facts of this lock stand for what nobody knows: no other lock has them
        everything = digest({name_of(path): fact for path, fact in reading.facts.items()})
        factors.update(dict.fromkeys(unknown, Factor("unknown", everything)))
    whole = digest(factors)
    return Namespace(f"{_slug(reading.lock)}-{whole[:_DIGITS]}", whole, factors, neutral)


class Reading:
    """A lock with its facts and what each of them means.

    Attributes:
        lock: the lock.
        classes: the classification of its facts.
        facts: every fact by its path.
        meanings: the meaning of each fact by its path.
    """

    def __init__(self, lock: Lock) -> None:
        self.lock = lock
        self.classes = Classes(lock)
        self.facts: dict[Path, Factor] = flatten(lock)
        self.meanings = {path: self.classes.of(path, fact) for path, fact in self.facts.items()}


def _slug(lock: Lock) -> str:
    target = next((each for each in lock.checkpoints if each.role == "target"), None)
    if target is None:
        raise InvalidDocumentError("no checkpoint has the role target", where="checkpoints")
    return f"{target.name}-{lock.engine.kind}"
