"""A bundle checked with nothing but itself and the signer's public key: no store, no network, no clock."""

import hashlib
import re
from pathlib import Path

from reproducer import __version__
from reproducer.attest.bundle import FIGURE, LOCK, PAGE, PUBLIC, REPORT, SIGNED, STATEMENTS, VERDICT, bundle_content
from reproducer.attest.keys import PublicKey
from reproducer.attest.statements import INDEX, RECEIPTS
from reproducer.documents.base import parse_json, shown
from reproducer.documents.bounds import MOST_VALUES, values_in
from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock, references
from reproducer.documents.receipts import BundleIndex, LaunchReceipt, MeasureReceipt
from reproducer.documents.toml import parse_toml
from reproducer.documents.traces import Trace
from reproducer.documents.verdict import Check, Verdict
from reproducer.errors import InvalidDocumentError, PennyError, SignatureError
from reproducer.ledger import AnyReceipt, parse_receipt, receipt_name
from reproducer.report.html import PAGE_FORMAT, drawn_by, is_drawn, without_drawings
from reproducer.report.markdown import REPORT_FORMAT
from reproducer.samples.beside import file_name, is_file_name, with_samples
from reproducer.samples.columns import LARGEST, MOST_ENTRIES
from reproducer.trace.kept import TRACES, served_by, trace_name
from reproducer.verify.evidence import check, unknown
from reproducer.verify.folder import read_folder
from reproducer.verify.receipts import verify_receipts
from reproducer.verify.signatures import SignatureFindings, check_identity, check_signatures, check_statements


def verify_bundle(folder: Path, key: PublicKey | None, *, expected_lock: str | None = None) -> Verdict:
    """Check a bundle: signatures by `key`, every file against the signed index, every receipt against the lock.

    Args:
        folder: the bundle.
        key: the signer's public key, had from the signer. None: signatures are checked with the key in the bundle, and
            whose key that is stays unknown.
        expected_lock: the digest of the lock that the bundle should be about, where the caller has it.

    Raises:
        UsageError: no such folder.
        UnsafeInputError: a link, a device, too many or too large files; nothing was read.
        InvalidDocumentError: what was signed is no valid document.
        NotCheckedError: a file cannot be read.
    """
    content = read_folder(folder)
    if INDEX not in content:
        return Verdict(checks=(unknown("index", "signature", f"there is no {INDEX}, so nothing was checked"),))
    inspection = _Inspection(folder, content)
    findings = check_signatures(inspection.signed_files(), inspection.index_sha256, key, inspection.own_key())
    checks = list(findings.checks)
    index = inspection.index(findings, checks)
    if index is None:
        return Verdict(checks=tuple(checks))
    sealed = {file.path: file.sha256 for file in index.files} if findings.hold else {}
    checks.append(check_identity(index.key_id, key, inspection.own_key()))
    checks += inspection.files(index)
    opened = inspection.lock(index, expected_lock, sealed, checks)
    if opened is None:
        return Verdict(checks=tuple(checks))
    receipts = inspection.receipts(sealed, checks)
    checks += check_statements(opened.lock, receipts, inspection.index_sha256, findings)
    of_receipts = verify_receipts(opened, receipts)
    checks += of_receipts
    traces = inspection.traces(receipts, checks)
    checks += inspection.prose(opened.lock, receipts, of_receipts, index.key_id, traces)
    return Verdict(checks=tuple(checks))


class _Beside:
    """The files of samples of one bundle; together they hold no more than one may."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files
        self._named: set[str] = set()
        self._bytes, self._entries = LARGEST, MOST_ENTRIES

    def with_samples(self, receipt: AnyReceipt, *, where: str) -> AnyReceipt:
        """A receipt with the samples that lie beside it; raises as `with_samples`, or where they are not there."""
        if not isinstance(receipt, MeasureReceipt) or receipt.samples_beside is None:
            return receipt
        name = f"{RECEIPTS}/{file_name(receipt.samples_beside)}"
        packed = self._files.get(name)
        if packed is None:
            raise SignatureError(f"{name} is missing", where=where, why="the samples of the receipt lie there")
        self._named.add(name)
        self._bytes -= receipt.samples_beside.size
        if self._bytes < 0:
            raise SignatureError(f"with {name} the samples are more than {LARGEST} bytes", where=where)
        found, entries = with_samples(receipt, packed, where=name, most=self._entries)
        self._entries -= entries
        return found

    def unnamed(self) -> list[str]:
        """Files that no receipt names."""
        return [f"{name} belongs to no receipt" for name in sorted(self._files.keys() - self._named)]


class _Inspection:
    """The files of one bundle as they were read, once."""

    def __init__(self, folder: Path, content: dict[str, bytes]) -> None:
        self._folder = folder
        self._content = content
        self.index_sha256 = hashlib.sha256(content[INDEX]).hexdigest()

    def _where(self, name: str) -> str:
        return str(self._folder / name)

    def _text(self, name: str) -> str:
        """The UTF-8 text of a file; empty where there is none."""
        try:
            return self._content.get(name, b"").decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidDocumentError("is not UTF-8", where=self._where(name)) from error

    def signed_files(self) -> dict[str, bytes]:
        """The signed statements, by file name without the ending."""
        prefix = f"{STATEMENTS}/"
        return {
            name.removeprefix(prefix).removesuffix(SIGNED): data
            for name, data in self._content.items()
            if name.startswith(prefix) and name.endswith(SIGNED)
        }

    def own_key(self) -> PublicKey | None:
        """The key that lies in the bundle; it proves nothing about whose it is."""
        try:
            return PublicKey.from_pem(self._content.get(PUBLIC, b""), where=self._where(PUBLIC))
        except InvalidDocumentError:
            return None

    def index(self, findings: SignatureFindings, checks: list[Check]) -> BundleIndex | None:
        """The index; None, with a check that says why, where it is no index and nobody signed it."""
        try:
            return BundleIndex.from_json(self._text(INDEX), where=self._where(INDEX))
        except InvalidDocumentError as error:
            if findings.hold:
                raise
            checks.append(check("index", "signature", [str(error)]))
            return None

    def files(self, index: BundleIndex) -> list[Check]:
        """Every file against the index, and no file besides; statements are bound by their signatures."""
        expected = {file.path: file for file in index.files}
        faults = ["names one file twice"] if len(expected) != len(index.files) else []
        if reserved := sorted(path for path in expected if path == INDEX or path.startswith(f"{STATEMENTS}/")):
            faults.append(f"names {reserved[0]}, which it cannot bind")
        signed = {f"{STATEMENTS}/{name}{SIGNED}" for name in self.signed_files()}
        extra = sorted(set(self._content) - set(expected) - {INDEX} - signed)
        missing = sorted(set(expected) - set(self._content))
        faults += [f"{path} is in the bundle and not in the index" for path in extra]
        faults += [f"{path} is in the index and not in the bundle" for path in missing]
        found = [check("index.files", "signature", faults, got=f"{len(expected)} files")]
        for path in sorted(set(expected) & set(self._content)):
            got = hashlib.sha256(self._content[path]).hexdigest()
            if got != expected[path].sha256 or len(self._content[path]) != expected[path].size:
                why = ["it was changed after the bundle was signed"]
                found.append(check(f"file.{path}", "signature", why, expected=expected[path].sha256, got=got))
        return found

    def lock(
        self, index: BundleIndex, expected: str | None, sealed: dict[str, str], checks: list[Check]
    ) -> OpenedLock | None:
        """The lock of the bundle; None, with a check that says why, where there is none to be read."""
        where = self._where(LOCK)
        try:
            text = self._text(LOCK)
            lock = Lock.from_data(parse_toml(text, where=where), where=where, source=text)
        except InvalidDocumentError as error:
            if self._is_sealed(LOCK, sealed):
                raise
            checks.append(check("lock", "signature", [f"there is no lock to check against: {error}"]))
            return None
        digest = lock.digest
        faults = [] if digest == index.lock_digest else [f"the index is about another lock, {index.lock_digest}"]
        if expected is not None and digest != expected:
            faults.append(f"the lock asked about is {expected}")
        checks.append(check("lock.digest", "signature", faults, expected=expected or index.lock_digest, got=digest))
        faults = []
        for reference in references(lock):
            data = self._content.get(reference.path)
            if data is None:
                faults.append(f"{reference.path} is missing")
            elif hashlib.sha256(data).hexdigest() != reference.sha256:
                faults.append(f"{reference.path} is not the file that the lock pins")
        checks.append(check("lock.files", "inputs", faults, got=f"{len(references(lock))} files that the lock names"))
        return OpenedLock(lock, self._folder / LOCK)

    def _is_sealed(self, path: str, sealed: dict[str, str]) -> bool:
        """Whether a file's bytes are those that were signed."""
        return sealed.get(path) == hashlib.sha256(self._content.get(path, b"")).hexdigest()

    def receipts(self, sealed: dict[str, str], checks: list[Check]) -> tuple[AnyReceipt, ...]:
        """Every receipt; one that is no receipt any more is a failed check unless it was signed like that."""
        found: list[AnyReceipt] = []
        faults = []
        values = 0
        lying = [name for name in self._content if name.startswith(f"{RECEIPTS}/")]
        names = sorted(name for name in lying if not is_file_name(name.removeprefix(f"{RECEIPTS}/")))
        beside = _Beside({name: self._content[name] for name in lying if name not in names})
        for name in names:
            values += values_in(self._content[name])
            if values > MOST_VALUES:
                faults.append(f"{name} was not read: with it the receipts hold more than {MOST_VALUES} values")
                continue
            try:
                receipt = parse_receipt(self._text(name), where=self._where(name))
                receipt.canonical()
            except InvalidDocumentError as error:
                if self._is_sealed(name, sealed):
                    raise
                faults.append(str(error))
                continue
            try:
                receipt = beside.with_samples(receipt, where=self._where(name))
            except PennyError as error:
                faults.append(str(error))
            if name != f"{RECEIPTS}/{receipt_name(receipt)}":
                faults.append(f"{name} holds a receipt whose digest begins {receipt.digest[:12]}")
            found.append(receipt)
        faults += beside.unnamed()
        checks.append(
            check("receipt.digest", "signature", faults, got=f"{len(names)} receipts, each named by its digest")
        )
        return tuple(found)

    def traces(self, receipts: tuple[AnyReceipt, ...], checks: list[Check]) -> tuple[Trace, ...]:
        """What the logs of the boots say; no check where a bundle has no trace. The logs themselves are not here."""
        lying = sorted(name for name in self._content if name.startswith(f"{TRACES}/"))
        if not lying:
            return ()
        launches = sorted(
            (each for each in receipts if isinstance(each, LaunchReceipt)), key=lambda each: (each.created, each.digest)
        )
        boots = {f"{TRACES}/{trace_name(each.digest)}": each for each in launches}
        faults = [f"{name} is of no boot of this bundle" for name in lying if name not in boots]
        found, values = [], 0
        for name in (name for name in boots if name in self._content):
            values += values_in(self._content[name])
            if values > MOST_VALUES:
                faults.append(f"{name} was not read: with it the traces hold more than {MOST_VALUES} values")
                continue
            try:
                traced = Trace.from_json(self._text(name), where=self._where(name))
            except InvalidDocumentError as error:
                faults.append(str(error))
                continue
            faults += [f"{name}: {fault}" for fault in served_by(traced, boots[name])]
            found.append(traced)
        checks.append(check("traces", "signature", faults, got=f"{len(lying)} traces, each of a boot of this bundle"))
        return tuple(found)

    def prose(
        self,
        lock: Lock,
        receipts: tuple[AnyReceipt, ...],
        checks: tuple[Check, ...],
        key_id: str,
        traces: tuple[Trace, ...],
    ) -> list[Check]:
        """What the bundle's verdict and report say against what was found now."""
        now = Verdict(checks=checks)
        where = self._where(VERDICT)
        try:
            then = Verdict.from_data(parse_json(self._text(VERDICT), where=where), where=where)
        except InvalidDocumentError as error:
            return [check("verdict", "signature", [str(error)])]
        statuses = {each.id: each.status for each in now.checks}
        faults = [
            f"{each.id} was {each.status} when it was signed and is {statuses[each.id]} now"
            for each in then.checks
            if statuses.get(each.id, each.status) not in (each.status, "skipped")
        ]
        if all(receipt.penny_version == __version__ for receipt in receipts):
            faults += [f"{each.id} is no check of this penny" for each in then.checks if each.id not in statuses]
        if then.outcome != now.outcome:
            faults.append(f"it says {then.word} ({then.outcome.exit_code}), {now.outcome.exit_code} was found")
        found = [check("verdict", "signature", faults, expected=now.word, got=then.word)]
        found += self._report(lock, receipts, then, key_id, traces)
        return found

    def _report(
        self,
        lock: Lock,
        receipts: tuple[AnyReceipt, ...],
        verdict: Verdict,
        key_id: str,
        traces: tuple[Trace, ...],
    ) -> list[Check]:
        """The report and the page are made again and compared; one of another format cannot be, and says so."""
        text = self._content.get(REPORT, b"")
        first = text.split(b"\n", 1)[0].decode("utf-8", "replace")
        if first != f"<!-- {REPORT_FORMAT} -->":
            if re.fullmatch(r"<!-- penny-report/[1-9][0-9]{0,5} -->", first):
                return [unknown("report", "signature", f"this penny does not write reports of its format: {first}")]
            return [check("report", "signature", [f"it is no report: it begins {shown(first)}"])]
        own = self.own_key()
        if own is None or own.key_id != key_id:
            return [check("report", "signature", ["there is no key in the bundle that it could name"])]
        try:
            again = bundle_content(lock, receipts, verdict, own, traces, with_page=PAGE in self._content)
        except PennyError as error:
            return [check("report", "signature", [str(error)])]
        faults = [
            f"{name} does not say what the receipts say"
            for name in (REPORT, FIGURE)
            if self._content.get(name) != again[name]
        ]
        found = [check("report", "signature", faults, got="follows from the receipts")]
        return found if PAGE not in self._content else [*found, self._page(again[PAGE].decode())]

    def _page(self, again: str) -> Check:
        """The page whole; its text alone where another version of the drawing library drew its figures.

        A bundle of a penny that wrote no page has none, and is not asked for one.
        """
        text = self._content[PAGE].decode("utf-8", "replace")
        if text == again:
            return check("page", "signature", [], got="follows from the receipts")
        first = text.partition("<!DOCTYPE html>")[2].lstrip("\n").split("\n", 1)[0]
        said = re.fullmatch(r"<!-- (penny-page/[1-9][0-9]{0,5}) (matplotlib [0-9][0-9a-z.+]{0,30}) -->", first)
        if said is None:
            return check("page", "signature", [f"it is no page: it begins {shown(text[:60])}"])
        if said[1] != PAGE_FORMAT:
            return unknown("page", "signature", f"this penny does not write pages of its format: {said[1]}")
        prose = without_drawings(text.replace(said[0], "", 1))
        same = prose == without_drawings(again.replace(f"<!-- {PAGE_FORMAT} {drawn_by()} -->", "", 1))
        if said[2] == drawn_by() or not same or not is_drawn(text):
            return check("page", "signature", [f"{PAGE} does not say what the receipts say"])
        why = f"its words and tables follow from the receipts; {said[2]} drew its figures, and this is {drawn_by()}"
        return Check(id="page", aspect="signature", status="skipped", reason=why)
