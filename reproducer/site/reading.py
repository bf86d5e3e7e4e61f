"""A folder of bundles as one document: runs in the order of time, locks, what differs between them, claims apart."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from pathlib import Path

from reproducer import __version__
from reproducer.documents.base import parse_json, spelled
from reproducer.documents.claims import Claim, is_claim
from reproducer.documents.imported import ImportedResult, is_imported
from reproducer.documents.opened import OpenedLock
from reproducer.documents.site import (
    LeftOut,
    Site,
    SiteChange,
    SiteClaim,
    SiteDifference,
    SiteImported,
    SiteLock,
)
from reproducer.errors import Outcome, PennyError
from reproducer.progress import Reporter
from reproducer.report.sections import engine, model
from reproducer.report.subject import Subject
from reproducer.site.found import Found, look, told
from reproducer.site.runs import Read, Signer, read_run
from reproducer.verify.folder import read_plain

_LATEST = "9999"
_LONGEST = 400


def read_site(
    folder: Path, signers: Mapping[str, Signer], *, reporter: Reporter, beside: Path | None = None
) -> tuple[Site, Outcome]:
    """Everything in a folder of bundles, and what `penny verify` finds over all of them together.

    Args:
        folder: the folder.
        signers: the keys that the reader gave, by their ids.
        reporter: is told which bundle is verified.
        beside: a folder in it that is no part of it: the site that an earlier run wrote.

    Raises:
        UsageError, UnsafeInputError: as `look`.
    """
    found = look(folder, beside=beside)
    read = []
    for index, place in enumerate(found.bundles, start=1):
        reporter.detail(f"verifying {index} of {len(found.bundles)}: {told(place)}")
        read.append(read_run(folder, place, signers))
    runs = _ordered(_once(read))
    locks = _locks(runs)
    claims, imported, left_out = _documents(folder, found)
    site = Site(
        penny_version=__version__,
        runs=tuple(each.run for each in runs),
        locks=tuple(_lock(subject) for _, subject in locks),
        differences=tuple(_difference(one, two) for (one, _), (two, _) in pairwise(locks)),
        claims=claims,
        imported=imported,
        left_out=left_out,
    )
    return site, reduce(lambda one, two: one | two, (each.outcome for each in read))


def _once(read: Iterable[Read]) -> list[Read]:
    """Copies of one bundle that verify alike are one run with several places; a broken copy is a run of its own."""
    kept: dict[object, Read] = {}
    for each in read:
        run = each.run
        alone = run.bundle_digest is None
        key = run.places if alone else (run.bundle_digest, run.model_copy(update={"places": ()}).model_dump_json())
        before = kept.get(key)
        if before is None:
            kept[key] = each
        else:
            places = (*before.run.places, *run.places)
            kept[key] = Read(
                before.run.model_copy(update={"places": places}), before.outcome, before.opened, before.subject
            )
    return list(kept.values())


def _ordered(read: list[Read]) -> list[Read]:
    """By time; what tells no time stands last."""
    return sorted(read, key=lambda each: (each.run.created or _LATEST, each.run.bundle_digest or "", each.run.places))


def _locks(runs: Iterable[Read]) -> list[tuple[OpenedLock, Subject]]:
    """Each lock with its first run."""
    first: dict[str, tuple[OpenedLock, Subject]] = {}
    for each in runs:
        if each.opened is not None and each.subject is not None:
            first.setdefault(each.opened.digest, (each.opened, each.subject))
    return list(first.values())


def _lock(subject: Subject) -> SiteLock:
    names = sorted({each.namespace for each in subject.launches if each.altered is None})
    return SiteLock(
        digest=subject.lock.digest,
        name=subject.lock.name,
        model=model(subject),
        engine=engine(subject),
        namespace=names[0] if len(names) == 1 else None,
    )


def _difference(first: OpenedLock, second: OpenedLock) -> SiteDifference:
    """What `penny diff` says of two locks; where it cannot, why."""
    try:
        from reproducer.difference.diff import diff

        found = diff(first, second)
    except Exception as error:  # noqa: BLE001  locks come from strangers, and two that cannot be compared break no site
        why = error.what if isinstance(error, PennyError) else type(error).__name__
        return SiteDifference(before=first.digest, after=second.digest, not_compared=(why,))
    return SiteDifference(
        before=first.digest,
        after=second.digest,
        same_namespace=found.same_namespace,
        rebuild=found.rebuild,
        invalidates=found.invalidates,
        changes=tuple(
            SiteChange(
                path=each.path,
                before=_json(each.before),
                after=_json(each.after),
                consequence=each.consequence,
                reason=each.reason,
            )
            for each in found.changes
        ),
        not_compared=found.not_compared,
    )


def _json(value: object) -> str | None:
    if value is None:
        return None
    text = spelled(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _documents(
    folder: Path, found: Found
) -> tuple[tuple[SiteClaim, ...], tuple[SiteImported, ...], tuple[LeftOut, ...]]:
    """Claims and imported results that lie beside the bundles, each apart; every other document is left out."""
    claims: list[SiteClaim] = []
    imported: list[SiteImported] = []
    left_out = [LeftOut(place=told(place), why=why) for place, why in found.left_out]
    for place in found.documents:
        name = told(place)
        try:
            data = parse_json(read_plain(folder / place), where=name)
            if is_claim(data):
                claims.append(_claim(Claim.from_data(data, where=name), name))
            elif is_imported(data):
                imported.append(_imported(ImportedResult.from_data(data, where=name), name))
            else:
                left_out.append(LeftOut(place=name, why="is neither a bundle, nor a claim, nor an imported result"))
        except (PennyError, ValueError) as error:
            why = error.what if isinstance(error, PennyError) else "is no text"
            left_out.append(LeftOut(place=name, why=why[:_LONGEST]))
    return tuple(claims), tuple(imported), tuple(sorted(left_out, key=lambda each: each.place))


def _claim(claim: Claim, place: str) -> SiteClaim:
    return SiteClaim(
        place=place,
        name=claim.name,
        publisher=claim.publisher,
        source=claim.source,
        date=claim.date,
        quantities=claim.quantities,
    )


def _imported(result: ImportedResult, place: str) -> SiteImported:
    return SiteImported(
        place=place,
        harness=result.harness,
        harness_version=result.harness_version,
        sha256=result.original.sha256,
        runs=len(result.runs),
    )


def signers_of(paths: Sequence[Path]) -> dict[str, Signer]:
    """The keys that a reader gave, by their ids, each called by the name of its file.

    Raises:
        UsageError, InvalidDocumentError: one is no public key.
    """
    from reproducer.attest.keys import PublicKey

    found = {}
    for path in paths:
        key = PublicKey.from_file(path)
        found[key.key_id] = Signer(told(path.stem)[:80], key)
    return found
