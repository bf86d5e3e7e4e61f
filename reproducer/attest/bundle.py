"""Writing a bundle: everything a stranger needs to check the claims, signed, in one folder that appears whole.

Layout: `index.json` names every other file by digest except `statements/`, whose signed statements name the index's.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

from reproducer.attest.envelope import sign
from reproducer.attest.keys import PublicKey, SigningKey
from reproducer.attest.statements import INDEX, RECEIPTS, statements
from reproducer.canonical import canonical_bytes
from reproducer.documents.base import parse_json
from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock, references
from reproducer.documents.receipts import BundleFile, BundleIndex, MeasureReceipt
from reproducer.documents.toml import parse_toml
from reproducer.documents.traces import Trace
from reproducer.documents.verdict import Check, Verdict
from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError, UsageError
from reproducer.ledger import AnyReceipt, receipt_name
from reproducer.report.figure import figure
from reproducer.report.html import page as html_page
from reproducer.report.html import without_drawings
from reproducer.report.markdown import report
from reproducer.report.subject import Subject
from reproducer.samples.beside import file_name, is_file_name, packed_samples, plain
from reproducer.sanitize.text import page, refuse_leaks
from reproducer.trace.kept import TRACES, trace_name

LOCK = "penny.lock.toml"
PUBLIC = "public.pem"
REPORT = "report.md"
FIGURE = "report.svg"
PAGE = "report.html"
VERDICT = "verdict.json"
STATEMENTS = "statements"
SIGNED = ".sigstore.json"
_OWN = frozenset({INDEX, LOCK, PUBLIC, REPORT, FIGURE, PAGE, VERDICT, RECEIPTS, STATEMENTS, TRACES})
_UNFINISHED = ".bundle-"


def write_bundle(
    destination: Path,
    opened: OpenedLock,
    receipts: Iterable[AnyReceipt],
    key: SigningKey,
    checks: Iterable[Check],
    *,
    traces: Iterable[Trace] = (),
) -> BundleIndex:
    """Sign receipts and write their bundle; failures are signed as well as successes.

    Args:
        destination: the bundle's folder; it must not be there. Where it holds exactly this bundle, nothing is written.
        opened: the lock; it and every file it names travel along.
        receipts: every receipt that the claims rest on.
        key: who signs.
        checks: what `verify_receipts` found.
        traces: what the logs of the boots say, as `kept_traces` gives them.

    Returns:
        The index as written.

    Raises:
        UnsafeInputError: a receipt holds what must not leave this machine, or a file of the lock has a reserved name.
        UsageError: another bundle is there; none is ever overwritten.
        DriftError: a file of the lock is not what the lock says.
        NotCheckedError: it cannot be written.
    """
    by_name = {receipt_name(receipt): receipt for receipt in receipts}
    ordered = tuple(by_name[name] for name in sorted(by_name))
    verdict = Verdict(checks=tuple(checks))
    traced = tuple(traces)
    content = bundle_content(opened.lock, ordered, verdict, key.public, traced)
    for each in traced:
        if each.served is not None:
            content[f"{TRACES}/{trace_name(each.served.launch_receipt)}"] = each.canonical() + b"\n"
    for name, receipt in by_name.items():
        content[f"{RECEIPTS}/{name}"] = receipt.canonical() + b"\n"
        if isinstance(receipt, MeasureReceipt) and receipt.samples_beside is not None:
            content[f"{RECEIPTS}/{file_name(receipt.samples_beside)}"] = packed_samples(receipt)
    published = opened.lock.canonical().decode()
    searched = {name: _plain(name, data) for name, data in content.items() if name not in (PUBLIC, FIGURE)}
    refuse_leaks(searched, published=published)
    content |= _locked(opened)
    index = index_of(content, opened.digest, key.public)
    content[INDEX] = index.canonical() + b"\n"
    made = statements(opened.lock, ordered, hashlib.sha256(content[INDEX]).hexdigest())
    predicates = {f"{STATEMENTS}/{name}": statement["predicate"] for name, statement in made.items()}
    refuse_leaks(predicates, published=published)
    for name, statement in made.items():
        content[f"{STATEMENTS}/{name}{SIGNED}"] = sign(statement, key)
    _write(destination, content)
    return index


def bundle_content(
    lock: Lock,
    receipts: tuple[AnyReceipt, ...],
    verdict: Verdict,
    key: PublicKey,
    traces: tuple[Trace, ...] = (),
    *,
    with_page: bool = True,
) -> dict[str, bytes]:
    """The files of a bundle that follow from its other ones and the key: report, figure, page, verdict, key.

    Args:
        lock: the lock.
        receipts: every receipt of the bundle.
        verdict: what was found when it was signed.
        key: the signer's.
        traces: every trace of the bundle, oldest boot first.
        with_page: False for the bundle of a penny that wrote no page; drawing one takes a moment.
    """
    subject = Subject(lock, receipts, verdict, key_id=key.key_id, traces=traces)
    made = {PAGE: html_page(subject).encode()} if with_page else {}
    return made | {
        PUBLIC: key.pem,
        VERDICT: canonical_bytes(verdict.content()) + b"\n",
        REPORT: report(lock, receipts, verdict, key_id=key.key_id, figure=FIGURE).encode(),
        FIGURE: figure(lock, receipts).encode(),
    }


def index_of(content: dict[str, bytes], lock_digest: str, key: PublicKey) -> BundleIndex:
    """The index over the files of a bundle."""
    files = tuple(
        BundleFile(path=path, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
        for path, data in sorted(content.items())
    )
    return BundleIndex(format="penny-bundle/1", lock_digest=lock_digest, key_id=key.key_id, files=files)


def _plain(name: str, data: bytes) -> object:
    """The content of a file as the sanitizer reads it."""
    if is_file_name(name.rpartition("/")[2]):
        return plain(data, where=name)
    if name.endswith(".json"):
        return parse_json(data, where=name)
    return page(without_drawings(data.decode()) if name == PAGE else data.decode())


def _locked(opened: OpenedLock) -> dict[str, bytes]:
    """The lock and every file it names, each checked."""
    try:
        text = opened.path.read_bytes()
    except OSError as error:
        raise DriftError("the lock cannot be read", where=str(opened.path), why=error.strerror or "") from error
    lock = Lock.from_data(parse_toml(text.decode("utf-8", "replace"), where=str(opened.path)), where=str(opened.path))
    if lock.digest != opened.digest:
        raise DriftError("the lock was changed while penny ran", where=str(opened.path), todo="run again")
    content = {LOCK: text}
    for reference in references(opened.lock):
        if reference.path.split("/", 1)[0] in _OWN:
            raise UnsafeInputError(
                f"{reference.path} has a name that a bundle keeps for itself",
                where=str(opened.path),
                todo="rename the file",
            )
        content[reference.path] = opened.read(reference)
    return content


def _write(destination: Path, content: dict[str, bytes]) -> None:
    """Write all files into a sibling folder, then give it its name."""
    parent = destination.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _sweep(parent)
        if os.path.lexists(destination):
            _settle(destination, content)
            return
        temporary, handle = _private_folder(parent)
    except OSError as error:
        where = str(destination)
        raise NotCheckedError("the bundle cannot be written", where=where, why=error.strerror or "") from error
    try:
        for path, data in content.items():
            _write_file(temporary / path, data)
        os.fsync(handle)
        temporary.chmod(0o755)
        try:
            temporary.rename(destination)
        except OSError:
            if not destination.exists():
                raise
            _settle(destination, content)
    except OSError as error:
        where = str(destination)
        raise NotCheckedError("the bundle cannot be written", where=where, why=error.strerror or "") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(handle)


def _settle(destination: Path, content: dict[str, bytes]) -> None:
    """Accept what is there if it is this very bundle: same index, so same content whatever the signatures' bytes."""
    index = destination / INDEX
    if destination.is_dir() and index.is_file() and index.read_bytes() == content[INDEX]:
        return
    raise UsageError("is there already, and evidence is never overwritten", where=str(destination), todo="name another")


def _private_folder(parent: Path) -> tuple[Path, int]:
    """A new folder beside the bundle, held by the kernel's lock while this process lives."""
    while True:
        folder = parent / f"{_UNFINISHED}{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # a sweep of another penny came before it was held
        fcntl.flock(handle, fcntl.LOCK_EX)
        if folder.exists():
            return folder, handle
        os.close(handle)  # a sweep of another penny came between


def _sweep(parent: Path) -> None:
    """Remove what killed pennies left unfinished; a folder whose writer lives is held and stays."""
    for folder in parent.glob(f"{_UNFINISHED}*"):
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(handle)


def _write_file(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
