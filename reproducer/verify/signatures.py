"""Signatures and identity: who signed what, judged by a key that the caller brings."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reproducer.attest.envelope import Signed, read_envelope
from reproducer.attest.keys import PublicKey
from reproducer.attest.statements import INDEX, STATEMENT_TYPE, statements
from reproducer.canonical import canonical_bytes
from reproducer.documents.base import shown
from reproducer.documents.lock import Lock
from reproducer.documents.verdict import Check
from reproducer.errors import PennyError
from reproducer.ledger import AnyReceipt
from reproducer.verify.evidence import check, unknown


@dataclass(frozen=True)
class SignatureFindings:
    """What the signatures gave.

    Attributes:
        checks: one for each statement, and one for the index that they sign.
        verified: the statements whose signature holds, by name.
        lying: the names of all that lie in the bundle, whatever their signatures are.
        hold: whether every signature holds and every statement names this index.
    """

    checks: tuple[Check, ...]
    verified: dict[str, Signed]
    lying: frozenset[str]
    hold: bool


def check_signatures(
    files: dict[str, bytes], index_sha256: str, key: PublicKey | None, own: PublicKey | None
) -> SignatureFindings:
    """Check the signature of each statement, and that each names the index.

    Args:
        files: Sigstore bundles by name.
        index_sha256: digest of the index's bytes.
        key: the trusted key; None where the caller has none.
        own: the key in the bundle, used only where there is no trusted one.
    """
    judge = key or own
    if judge is None:
        reason = "there is no key to check with: none was given, and the bundle holds none"
        return SignatureFindings((check("signature", "signature", [reason]),), {}, frozenset(files), hold=False)
    if not files:
        reason = "the bundle holds no signed statement"
        return SignatureFindings((check("signature", "signature", [reason]),), {}, frozenset(), hold=False)
    checks = []
    verified = {}
    for name, data in sorted(files.items()):
        faults = []
        expected = got = ""
        try:
            signed = read_envelope(data, where=name)
            if signed.key_id != judge.key_id:
                faults.append("it is signed by another key")
                expected, got = f"key {judge.key_id}", f"key {signed.key_id}"
            else:
                signed.verify(judge)
                verified[name] = signed
                got = f"ECDSA P-256 by key {judge.key_id}, no log entry, no time"
        except PennyError as error:
            faults.append(str(error))
        checks.append(check(f"signature.{name}", "signature", faults, expected=expected, got=got))
    faults = [
        f"statement {name} names index {shown(_index_digest(signed.statement))}"
        for name, signed in verified.items()
        if _index_digest(signed.statement) != index_sha256
    ]
    if not verified:
        faults.append("no statement whose signature holds names it")
    got = f"{len(verified)} of {len(files)} statements whose signature holds" if faults else "signed"
    checks.append(check("index.digest", "signature", faults, expected=index_sha256, got=got))
    hold = all(each.status == "passed" for each in checks)
    return SignatureFindings(tuple(checks), verified, frozenset(files), hold=hold)


def check_identity(index_key: str, key: PublicKey | None, own: PublicKey | None) -> Check:
    """Whether the bundle is by the signer that the caller trusts."""
    if key is None:
        who = own.key_id if own is not None else "nobody"
        return unknown(
            "identity", "signature", f"signed by {who}; whose key that is was not asked: give the signer's with --key"
        )
    faults = []
    if index_key != key.key_id:
        faults.append(
            "another key than the one given signed it: it is by somebody else, or --key is not its signer's; "
            "have the key from the signer"
        )
    if own is None:
        faults.append("there is no key in the bundle that can be read")
    elif own.key_id != index_key:
        faults.append(f"the key that lies in the bundle is not the one that its index names: {own.key_id}")
    got = "the key that was given" if index_key == key.key_id else index_key
    return check("identity", "signature", faults, expected=key.key_id, got=got)


def check_statements(
    lock: Lock, receipts: tuple[AnyReceipt, ...], index_sha256: str, findings: SignatureFindings
) -> Iterator[Check]:
    """Every statement is exactly what lock and receipts give; types and subjects are compared with the rest."""
    try:
        expected = statements(lock, receipts, index_sha256)
    except PennyError as error:
        yield check("statements", "signature", [str(error)])
        return
    without = sorted(expected.keys() - findings.verified.keys())
    faults = [f"the signature of {name} does not hold" for name in without if name in findings.lying]
    faults += [f"statement {name} is missing" for name in without if name not in findings.lying]
    faults += [f"statement {name} is about nothing here" for name in sorted(findings.verified.keys() - expected.keys())]
    got = ", ".join(sorted(findings.verified)) or "none whose signature holds"
    yield check("statements", "signature", faults, expected=", ".join(sorted(expected)) if faults else "", got=got)
    for name in sorted(expected.keys() & findings.verified.keys()):
        signed = findings.verified[name]
        said = signed.statement
        differing = list(_differences(expected[name], said, ""))
        if not differing and signed.payload != canonical_bytes(expected[name]):
            differing.append("its payload is not in RFC 8785 form")
        yield check(
            f"statement.{name}", "signature", differing, expected=expected[name]["predicateType"], got=_type_of(said)
        )


def _index_digest(statement: dict[str, Any]) -> object:
    """The digest of the index that a statement names; None where it names none or is no statement."""
    subjects = statement.get("subject")
    if statement.get("_type") != STATEMENT_TYPE or not isinstance(subjects, list):
        return None
    for subject in subjects:
        if isinstance(subject, dict) and subject.get("name") == INDEX and isinstance(subject.get("digest"), dict):
            return subject["digest"].get("sha256")
    return None


def _type_of(statement: dict[str, Any]) -> str:
    kind = statement.get("predicateType")
    return kind if isinstance(kind, str) else shown(kind)


def _differences(expected: Any, got: Any, where: str) -> Iterator[str]:
    """Where two parsed values differ, by key."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in sorted(expected.keys() | got.keys()):
            inner = f"{where}.{key}" if where else key
            if key not in got or key not in expected:
                yield f"{shown(inner)} is {'missing' if key not in got else 'too much'}"
            else:
                yield from _differences(expected[key], got[key], inner)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (left, right) in enumerate(zip(expected, got, strict=True)):
            yield from _differences(left, right, f"{where}[{index}]")
    elif expected != got:
        yield f"{where or 'the statement'} is {shown(got)}, not {shown(expected)}"
