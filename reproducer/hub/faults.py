"""What a hub's refusal means: gated, vanished, a revision that vanished, too many requests, a mirror that is down.

Nothing of the hub's own words is repeated: they name signed addresses, request ids and whatever a stranger writes.
"""

import ssl
from typing import TYPE_CHECKING, NamedTuple

from reproducer.documents.base import shown
from reproducer.errors import DriftError, NotCheckedError, PennyError
from reproducer.fetch.web import retry_after

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

    from reproducer.hub.place import HubPlace

_PASSING = {408, 425, 429, 500, 502, 503, 504}
_UNAUTHORISED, _FORBIDDEN, _MISSING, _TOO_MANY = 401, 403, 404, 429


class Subject(NamedTuple):
    """What was asked for: a repository, one revision of it, one file of that."""

    repository: str
    revision: str
    path: str = ""


class HubFault(NamedTuple):
    """One refusal.

    Attributes:
        error: what a person is told.
        passing: whether asking again may help.
        wait: seconds the hub asked to wait, None where it did not.
    """

    error: PennyError
    passing: bool = False
    wait: float | None = None


def fault_of(error: Exception, subject: Subject, place: "HubPlace") -> HubFault:
    """What an error of the hub's client means."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    if isinstance(error, HfHubHTTPError):
        return _refused(error, subject, place)
    if isinstance(error, OfflineModeIsEnabled):
        why = "HF_HUB_OFFLINE tells the hub's client to touch no network"
        return HubFault(NotCheckedError(f"{subject.repository} was not asked for", where=place.shown, why=why))
    return HubFault(
        NotCheckedError(
            "the hub cannot be reached",
            where=place.shown,
            why=_transport(error),
            todo="check the network, or name a mirror with --endpoint or HF_ENDPOINT",
        ),
        passing=not isinstance(error.__cause__, ssl.SSLCertVerificationError),
    )


def _refused(error: "HfHubHTTPError", subject: Subject, place: "HubPlace") -> HubFault:  # noqa: PLR0911  one answer for each kind of refusal
    from huggingface_hub.errors import (
        GatedRepoError,
        RemoteEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    repository, revision, path = subject
    where, status = place.shown, error.response.status_code
    if isinstance(error, GatedRepoError):
        why = "its publisher asks for conditions to be accepted"
        todo = f"accept them on the page of {repository}, then log in with `hf auth login` or set HF_TOKEN"
        return HubFault(NotCheckedError(f"{repository} is gated", where=where, why=why, todo=todo))
    if isinstance(error, RevisionNotFoundError):
        return HubFault(
            DriftError(
                f"{repository} has no revision {shown(revision)}",
                where=where,
                why="it is not there, or not any more",
                todo="name a revision that is there; nothing else is taken in its place",
            )
        )
    if isinstance(error, RemoteEntryNotFoundError):
        return HubFault(DriftError(f"{repository} at {revision[:12]} has no file {shown(path)}", where=where))
    if status == _UNAUTHORISED and _has_token() and not isinstance(error, RepositoryNotFoundError):
        todo = "log in again with `hf auth login`, or correct HF_TOKEN"
        return HubFault(NotCheckedError("the hub refuses your token", where=where, why="answered 401", todo=todo))
    if isinstance(error, RepositoryNotFoundError) or status in (_UNAUTHORISED, _MISSING):
        return HubFault(
            DriftError(
                f"{repository} is not on the hub",
                where=where,
                why="it vanished, never was there, or is private",
                todo="correct its name; for a private one log in with `hf auth login` or set HF_TOKEN",
            )
        )
    if status == _FORBIDDEN:
        todo = "use a token with the right to read it"
        return HubFault(NotCheckedError(f"the hub forbids {repository}", where=where, why="answered 403", todo=todo))
    if status == _TOO_MANY:
        wait = _asked_wait(error)
        why = f"it asks to wait {wait:.0f} seconds" if wait is not None else "answered 429"
        todo = "run again later; a token of yours (HF_TOKEN) has a limit of its own"
        fault = NotCheckedError("the hub takes no more requests now", where=where, why=why, todo=todo)
        return HubFault(fault, passing=True, wait=wait)
    fault = NotCheckedError(f"the hub does not give {repository}", where=where, why=f"answered {status}")
    return HubFault(fault, passing=status in _PASSING, wait=_asked_wait(error))


def _asked_wait(error: "HfHubHTTPError") -> float | None:
    from huggingface_hub.utils import parse_ratelimit_headers

    limit = parse_ratelimit_headers(error.response.headers)
    if limit is not None and limit.remaining == 0:
        return float(limit.reset_in_seconds)
    return retry_after(error.response.headers.get("Retry-After"))


def _has_token() -> bool:
    from huggingface_hub import get_token

    return get_token() is not None


def _transport(error: Exception) -> str:
    """Why there was no answer, without an address."""
    import httpx2

    if isinstance(error, httpx2.ConnectTimeout | httpx2.ReadTimeout | httpx2.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx2.ConnectError):
        return "no connection"
    return f"the connection broke off: {type(error).__name__}"
