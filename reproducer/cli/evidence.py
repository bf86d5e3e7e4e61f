"""`penny verify`, `penny attest`."""

import re
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from reproducer.cli.front import (
    DEFAULT_LOCK,
    Front,
    JsonOption,
    KeyFolderOption,
    LockOption,
    QuietOption,
    StoreOption,
    VerboseOption,
    finish,
    ledger_of,
    open_store,
)
from reproducer.errors import DriftError, NotCheckedError, UsageError

if TYPE_CHECKING:
    from reproducer.documents.opened import OpenedLock
    from reproducer.documents.verdict import Verdict
    from reproducer.ledger import AnyReceipt

EVIDENCE = Path("evidence")
INDEX = "index.json"
_SHA256 = "[0-9a-f]{64}"
_MOST_ENTRIES = 1000
_MOST_TOLD = 6


def verify(
    bundle: Annotated[
        Path | None,
        typer.Argument(
            help="A bundle, or a folder of receipts; default: the receipts in the store.", show_default=False
        ),
    ] = None,
    *,
    key: Annotated[
        Path | None,
        typer.Option("--key", help="The signer's public key (PEM), had from the signer and not the bundle."),
    ] = None,
    lock_digest: Annotated[
        str | None,
        typer.Option("--lock-digest", metavar="HEX", help="The bundle must be of the lock with this digest."),
    ] = None,
    lock_path: LockOption = DEFAULT_LOCK,
    store: StoreOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Check receipts, thresholds, bindings and signatures, one by one."""
    from reproducer.cli.show import verdict_table

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    verdict = verdict_of(bundle, key, lock_path, store, lock_digest)
    front.emit(
        {
            "verdict": verdict.word,
            "checks": [check.model_dump() for check in verdict.checks],
            "exit_code": verdict.outcome.exit_code,
        },
        verdict_table(verdict, every=verbose),
    )
    finish(verdict.outcome)


def attest(
    *,
    lock_path: LockOption = DEFAULT_LOCK,
    store: StoreOption = None,
    evidence: Annotated[Path, typer.Option("--evidence", help="Folder in which bundles lie.")] = EVIDENCE,
    builds: Annotated[
        bool, typer.Option("--builds", help="Sign every build receipt alone, those of failed builds too.")
    ] = False,
    keys: KeyFolderOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Sign a bundle of the newest receipts of this lock."""
    from reproducer.attest.bundle import write_bundle
    from reproducer.attest.keys import signing_key
    from reproducer.documents.opened import open_lock
    from reproducer.reproduce import bundle_folder
    from reproducer.trace.kept import TRACES, kept_traces
    from reproducer.verify.bundle import verify_bundle
    from reproducer.verify.receipts import verify_receipts

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    opened = open_lock(lock_path)
    opened.check_files()
    receipts = _builds(opened, store) if builds else newest(opened, store)
    checks = verify_receipts(opened, receipts)
    key = signing_key(keys)
    folder = bundle_folder(evidence, opened, receipts)
    traces = kept_traces(ledger_of(open_store(store), opened).folder / TRACES, receipts)
    write_bundle(folder, opened, receipts, key, checks, traces=traces)
    verdict = verify_bundle(folder, key.public)
    front.emit(
        {"bundle": str(folder), "subject": opened.digest, "key_id": key.public.key_id, "verdict": verdict.word},
        f"{folder}\nlock {opened.digest}\nkey  {key.public.key_id}\nverdict {verdict.word}",
    )
    finish(verdict.outcome)


def verdict_of(
    bundle: Path | None, key: Path | None, lock_path: Path, store: Path | None, lock_digest: str | None = None
) -> "Verdict":
    """The verdict over a bundle, a folder of receipts, or the newest receipts in the store."""
    from reproducer.attest.keys import PublicKey
    from reproducer.documents.base import shown
    from reproducer.documents.opened import open_lock
    from reproducer.documents.verdict import Verdict
    from reproducer.ledger import Ledger
    from reproducer.verify.bundle import verify_bundle
    from reproducer.verify.receipts import verify_receipts

    if lock_digest is not None and not re.fullmatch(_SHA256, lock_digest):
        raise UsageError(
            f"{shown(lock_digest)} is no lock digest",
            where="--lock-digest",
            why="it must be 64 hex digits in lower case",
        )
    if bundle is not None:
        _refuse_place(bundle)
    if bundle is not None and (bundle / INDEX).exists():
        trusted = PublicKey.from_file(key) if key is not None else None
        return verify_bundle(bundle, trusted, expected_lock=lock_digest)
    if key is not None:
        raise UsageError("receipts outside a bundle carry no signature", todo="leave --key out, or name a bundle")
    opened = open_lock(lock_path)
    if lock_digest is not None and lock_digest != opened.digest:
        raise DriftError("the lock is another one", where=str(lock_path), why=f"its digest is {opened.digest}")
    opened.check_files()
    receipts = Ledger(bundle).receipts() if bundle is not None else newest(opened, store)
    return Verdict(checks=verify_receipts(opened, receipts))


def _refuse_place(folder: Path) -> None:
    """Refuse what is neither a bundle nor a folder of receipts; name the bundles that lie in it.

    Raises:
        UsageError: it is none.
    """
    if folder.is_file():
        whole = (folder.parent / INDEX).exists()
        raise UsageError(
            "is a file, and the folder of a bundle or of receipts belongs here",
            where=str(folder),
            todo=f"`penny verify {quote(str(folder.parent))}` checks the bundle that it lies in" if whole else "",
        )
    if not folder.is_dir():
        raise UsageError("there is no bundle here", where=str(folder), todo="name the folder of a bundle")
    if not any(each.suffix == ".json" for each in _entries(folder)) and (found := _bundles_in(folder)):
        told = ", ".join(quote(str(each)) for each in found[:_MOST_TOLD])
        more = f" and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
        raise UsageError(
            "is no bundle; bundles lie in it", where=str(folder), todo=f"name one of {told}{more} to `penny verify`"
        )


def _bundles_in(folder: Path) -> list[Path]:
    """The bundles one or two folders below, by name; links are not followed."""
    below = [each for each in _entries(folder) if each.is_dir() and not each.is_symlink()]
    below += [inner for each in below for inner in _entries(each) if inner.is_dir() and not inner.is_symlink()]
    return sorted(each for each in below if (each / INDEX).is_file())


def _entries(folder: Path) -> list[Path]:
    """What lies in a folder, as far as it is read."""
    try:
        return list(islice(folder.iterdir(), _MOST_ENTRIES))
    except OSError:
        return []


def _builds(opened: "OpenedLock", store: Path | None) -> "tuple[AnyReceipt, ...]":
    """Every build receipt of a lock."""
    ledger = ledger_of(open_store(store), opened)
    if found := ledger.builds():
        return found
    raise NotCheckedError("there is no build receipt of this lock", where=str(ledger.folder), todo="run `penny build`")


def newest(opened: "OpenedLock", store: Path | None) -> "tuple[AnyReceipt, ...]":
    """The newest receipt of each measure with the receipts it names."""
    from reproducer.ledger import evidence_of, latest_measures

    ledger = ledger_of(open_store(store), opened)
    measures = latest_measures(ledger.receipts())
    if not measures:
        raise NotCheckedError(
            "there is no measure receipt of this lock", where=str(ledger.folder), todo="run `penny qualify`"
        )
    return evidence_of(ledger, measures)
