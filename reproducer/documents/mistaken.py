"""A document where another one belongs: what it is, and what is done with such a one.

Without this a manifest given for a lock is a list of twenty keys that are unknown or missing.
"""

from collections.abc import Mapping
from pathlib import PurePath
from shlex import quote
from typing import Any, NamedTuple, get_args

from pydantic.fields import FieldInfo

from reproducer.errors import InvalidDocumentError


class Known(NamedTuple):
    """A kind of document.

    Attributes:
        name: what people call it, with its article.
        todo: what is done with one; `{file}` and `{folder}` stand for where it lies. Empty where nothing is.
    """

    name: str
    todo: str = ""


_OWN = "penny writes and reads it itself"
_BUNDLE = "`penny verify {folder}` checks the bundle, and {folder}/penny.lock.toml is its lock"
# By the format before the slash.
DOCUMENTS: Mapping[str, Known] = {
    "penny-arguments": Known("a list of what an engine takes", "`penny import --arguments {file}` reads it"),
    "penny-bundle": Known("the index of a bundle", _BUNDLE),
    "penny-cell": Known("a kept sample", _OWN),
    "penny-cells": Known("the list of kept samples", _OWN),
    "penny-claim": Known("a published claim", "`penny compare {file} OTHER` reads it"),
    "penny-environment": Known("a list of distributions", "name the frozen lock that it lies beside"),
    "penny-harness-order": Known("an order for a harness", _OWN),
    "penny-harness-outcome": Known("a harness's outcome", _OWN),
    "penny-imported": Known("an imported result", "`penny compare {file} OTHER` reads it"),
    "penny-lock": Known("a lock", "`penny lock --lock {file}` takes the manifest that it was made from"),
    "penny-lock-note": Known("a note of a lock", _OWN),
    "penny-manifest": Known("a manifest", "`penny lock {file}` makes a lock of it"),
    "penny-observation": Known("what was seen of a process", "name the frozen lock that it lies beside"),
    "penny-receipt": Known("a receipt", "`penny verify {file}` checks it"),
    "penny-reference": Known("a fidelity reference", "a manifest names it as `qualification.reference`"),
    "penny-resolved": Known("what a first launch resolved", _OWN),
    "penny-seal": Known("a seal", _OWN),
    "penny-server": Known("the record of a server", _OWN),
    "penny-site": Known("the data of a site of bundles", "`penny report FOLDER --site DIR` makes it"),
    "penny-trace": Known("a trace", "`penny compare {file} OTHER` reads it"),
    "penny-verdict": Known("a verdict", _BUNDLE),
}
# Of others, by a key that only they have.
_FOREIGN: Mapping[str, Known] = {
    "lock-version": Known("a list of packages (PEP 751)", "name the lock that it lies beside"),
    "build-system": Known("a pyproject.toml", "`penny init` writes a manifest"),
    "project": Known("a pyproject.toml", "`penny init` writes a manifest"),
    "services": Known("a compose file", "`penny import {file}` makes a manifest of it"),
    "mediaType": Known("a Sigstore bundle", "`penny verify` takes the folder of the whole bundle"),
    "_type": Known("an in-toto statement", "`penny verify` takes the folder of the whole bundle"),
    "model_type": Known("a model's config", "a manifest names the model as a checkpoint; `penny init` writes one"),
    "architectures": Known("a model's config", "a manifest names the model as a checkpoint; `penny init` writes one"),
}


def refuse_other(fields: Mapping[str, FieldInfo], data: Any, *, where: str) -> None:
    """Refuse what is another kind of document, in one sentence.

    Args:
        fields: of the kind that belongs there; nothing is said about one without a format.
        data: what a TOML or JSON parser returned.
        where: the file.

    Raises:
        InvalidDocumentError: it is another one; says which, and what is done with it.
    """
    formats = get_args(fields["format"].annotation) if "format" in fields else ()
    kind = str(formats[0]).partition("/")[0] if formats else ""
    if kind not in DOCUMENTS:
        return
    wanted = f"{DOCUMENTS[kind].name} belongs here"
    if not isinstance(data, dict):
        raise InvalidDocumentError(f"is no table, and {wanted}", where=where)
    said = data.get("format")
    if not isinstance(said, str):
        _refuse_foreign(fields, data, wanted, where=where)
        return
    own, _, version = said.partition("/")
    if own == kind:
        if said not in formats and version.isdigit():
            raise InvalidDocumentError(
                f"is of the format {said[:80]}, and this penny reads {' and '.join(formats)}",
                where=where,
                todo="use a newer penny",
            )
        return
    if own in DOCUMENTS:
        found, todo = DOCUMENTS[own], ""
        if (kind, own) == ("penny-manifest", "penny-lock"):
            manifest = data.get("manifest")
            todo = f"it was made from {manifest}" if isinstance(manifest, str) else "it was frozen and has no manifest"
        raise InvalidDocumentError(
            f"is {found.name} ({said[:80]}), and {wanted}", where=where, todo=todo or _filled(found.todo, where)
        )


def _refuse_foreign(fields: Mapping[str, FieldInfo], data: dict[str, Any], wanted: str, *, where: str) -> None:
    """Refuse what names no format and has next to nothing of the kind that belongs there."""
    if 2 * len(fields.keys() & data.keys()) > len(data):
        return
    for key, found in _FOREIGN.items():
        if key in data and key not in fields:
            raise InvalidDocumentError(f"is {found.name}, and {wanted}", where=where, todo=_filled(found.todo, where))
    name = wanted.removesuffix(" belongs here")
    raise InvalidDocumentError(
        f"names no format, and {wanted}",
        where=where,
        why=f"{name} begins with `format`, and few of its keys are there" if data else "it is empty",
        todo="name another file",
    )


def _filled(todo: str, where: str) -> str:
    """What to do, with the file in it."""
    return todo.replace("{file}", quote(where)).replace("{folder}", quote(str(PurePath(where).parent)))
