"""What a forger can do to a bundle, and which exit code and words each attempt earns."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reproducer.attest import bundle
from reproducer.attest.bundle import write_bundle
from reproducer.attest.envelope import read_envelope, sign
from reproducer.attest.keys import PublicKey, SigningKey, signing_key
from reproducer.canonical import canonical_bytes
from reproducer.documents.opened import open_lock
from reproducer.documents.receipts import BundleIndex
from reproducer.documents.verdict import Check, Verdict
from reproducer.errors import InvalidDocumentError
from reproducer.ledger import parse_receipt, receipt_name
from reproducer.verify.bundle import verify_bundle
from reproducer.verify.evidence import check, told
from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import Evidence, edited, good_evidence, signed_bundle

Rewrite = Callable[[str, Callable[[bytes], bytes]], None]
SIGNATURE, QUALIFICATION, UNKNOWN = 16, 8, 32


def _failed(verdict: Verdict) -> dict[str, str]:
    return {check.id: check.reason for check in verdict.checks if check.status == "failed"}


def _receipt(bundle: Path, label: str) -> str:
    """The path of a receipt inside the bundle."""
    (path,) = bundle.glob(f"receipts/{label}-*.json")
    return f"receipts/{path.name}"


def _json(edit: Callable[[Any], object]) -> Callable[[bytes], bytes]:
    """An edit of parsed JSON."""

    def change(data: bytes) -> bytes:
        content = json.loads(data)
        edit(content)
        return canonical_bytes(content) + b"\n"

    return change


def _flip(data: bytes) -> bytes:
    """One bit turned in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def test_good_bundle_holds(good: Path, key: SigningKey) -> None:
    """Nothing but the bundle and the signer's key is needed, and every check passes."""
    verdict = verify_bundle(good, key.public)

    assert [check.id for check in verdict.checks if check.status != "passed"] == []
    assert verdict.outcome.exit_code == 0
    assert verdict.word == "passed"


def test_without_a_key_identity_is_unknown(good: Path) -> None:
    """Without the signer's key the signature is checked with the bundle's own, and whose it is stays unknown."""
    verdict = verify_bundle(good, None)

    assert [check.id for check in verdict.checks if check.status != "passed"] == ["identity"]
    assert verdict.outcome.exit_code == 64 + UNKNOWN


def test_another_key_is_refused(good: Path, stranger: SigningKey) -> None:
    """A bundle by anyone but the trusted signer fails; both keys are named, each once, and what to do is said."""
    verdict = verify_bundle(good, stranger.public)

    failed = {check.id: check for check in verdict.checks if check.status == "failed"}
    assert verdict.outcome.exit_code == 64 + SIGNATURE
    signer = PublicKey.from_file(good / "public.pem").key_id
    for name, of in (("identity", ""), ("signature.qualification", "key ")):
        assert (failed[name].expected, failed[name].got) == (f"{of}{stranger.public.key_id}", f"{of}{signer}")
        assert signer not in failed[name].reason
    assert "have the key from the signer" in failed["identity"].reason
    assert failed["statements"].reason.count("does not hold") == len(failed["statements"].expected.split(", "))
    assert "missing" not in failed["statements"].reason
    assert [check.id for check in failed.values() if check.expected and not check.got] == []


def test_what_a_check_got_is_spelled_as_in_a_document() -> None:
    """Python's words for true, nothing and lists are no words of a lock, and nothing that was got is said."""
    assert (told(value=True), told(None), told(("a", 1))) == ("true", "null", '["a", 1]')
    failed = check("id", "inputs", ["gone"], expected=True)
    assert (failed.expected, failed.got) == ("true", "nothing")
    with pytest.raises(InvalidDocumentError, match="kind null"):
        parse_receipt("{}", where="it")


def test_a_bundle_signed_anew_by_a_stranger_is_refused(
    evidence: Evidence, stranger: SigningKey, key: SigningKey, tmp_path: Path
) -> None:
    """A complete and consistent bundle by another key fails on the key alone."""
    bundle = signed_bundle(evidence, tmp_path / "forged", stranger)

    verdict = verify_bundle(bundle, key.public)

    assert verdict.outcome.exit_code == 64 + SIGNATURE
    assert verify_bundle(bundle, stranger.public).outcome.exit_code == 0


def test_swapped_public_key_is_noticed(copy: Path, key: SigningKey, stranger: SigningKey) -> None:
    """The key in the bundle may not differ from the one that signed."""
    (copy / "public.pem").write_bytes(stranger.public.pem)

    assert verify_bundle(copy, key.public).outcome.exit_code == 64 + SIGNATURE
    assert verify_bundle(copy, None).outcome.exit_code == 64 + SIGNATURE + UNKNOWN


@pytest.mark.parametrize(
    "field",
    [("payload",), ("payloadType",), ("signatures", 0, "sig"), ("signatures", 0, "keyid")],
    ids=["payload", "payloadType", "sig", "keyid"],
)
def test_changed_envelope_is_refused(rewrite: Rewrite, copy: Path, key: SigningKey, field: tuple[Any, ...]) -> None:
    """A changed payload, type, signature or key id fails the signature."""

    def edit(bundle: Any) -> None:
        place = bundle["dsseEnvelope"]
        for step in field[:-1]:
            place = place[step]
        text = place[field[-1]]
        place[field[-1]] = text[:20] + ("A" if text[20] != "A" else "B") + text[21:]

    rewrite("statements/qualification.sigstore.json", _json(edit))

    verdict = verify_bundle(copy, key.public)
    assert verdict.outcome & ~QUALIFICATION == SIGNATURE
    assert _failed(verdict)["signature.qualification"]


def test_changed_hint_is_refused(rewrite: Rewrite, copy: Path, key: SigningKey, stranger: SigningKey) -> None:
    """The hint must name the trusted key, though it is not authenticated."""
    hint = stranger.public.hint
    rewrite(
        "statements/qualification.sigstore.json",
        _json(lambda bundle: bundle["verificationMaterial"]["publicKey"].update(hint=hint)),
    )

    verdict = verify_bundle(copy, key.public)
    assert verdict.outcome.exit_code == 64 + SIGNATURE
    assert "hint" in _failed(verdict)["signature.qualification"]


@pytest.mark.parametrize("signatures", [0, 2])
def test_none_or_two_signatures_are_refused(rewrite: Rewrite, copy: Path, key: SigningKey, signatures: int) -> None:
    """Exactly one signature is accepted."""
    rewrite(
        "statements/qualification.sigstore.json",
        _json(
            lambda bundle: bundle["dsseEnvelope"].update(signatures=bundle["dsseEnvelope"]["signatures"] * signatures)
        ),
    )

    verdict = verify_bundle(copy, key.public)
    assert verdict.outcome.exit_code == 64 + SIGNATURE
    assert "exactly one signature" in _failed(verdict)["signature.qualification"]


def test_removed_statements_are_missed(copy: Path, key: SigningKey) -> None:
    """A bundle without its statements is unsigned; with one of them it is incomplete."""
    (copy / "statements/qualification.sigstore.json").unlink()
    verdict = verify_bundle(copy, key.public)
    assert verdict.outcome.exit_code == 64 + SIGNATURE
    assert "qualification is missing" in _failed(verdict)["statements"]

    shutil.rmtree(copy / "statements")
    verdict = verify_bundle(copy, key.public)
    assert verdict.outcome.exit_code == 64 + SIGNATURE
    assert "no signed statement" in _failed(verdict)["signature"]


def test_foreign_statement_is_refused(copy: Path, key: SigningKey) -> None:
    """A statement of the right form and key about something else does not belong here."""
    signed = read_envelope((copy / "statements/qualification.sigstore.json").read_bytes(), where="it")
    (copy / "statements/other.sigstore.json").write_bytes(sign(signed.statement, key))

    verdict = verify_bundle(copy, key.public)

    assert verdict.outcome.exit_code == 64 + SIGNATURE
    assert "other is about nothing here" in _failed(verdict)["statements"]


@pytest.mark.parametrize(
    "edit",
    [
        lambda statement: statement.update(predicateType="https://in-toto.io/attestation/test-result/v0.1"),
        lambda statement: statement.update(_type="https://in-toto.io/Statement/v0.1"),
        lambda statement: statement["subject"].pop(),
        lambda statement: statement["subject"][1]["digest"].update(sha256="0" * 64),
        lambda statement: statement["predicate"]["measures"][1].update(samples=1000),
        lambda statement: statement["predicate"]["measures"][1]["results"][0].update(passed=False),
    ],
    ids=["predicate type", "statement type", "subject gone", "subject changed", "sample size", "result"],
)
def test_signed_falsehood_is_refused(copy: Path, key: SigningKey, edit: Callable[[dict[str, Any]], object]) -> None:
    """Even the signer cannot state what lock and receipts do not say."""
    path = copy / "statements/qualification.sigstore.json"
    statement = read_envelope(path.read_bytes(), where="it").statement
    edit(statement)
    path.write_bytes(sign(statement, key))

    verdict = verify_bundle(copy, key.public)

    assert verdict.outcome.exit_code == 64 + SIGNATURE
    assert _failed(verdict).get("statement.qualification")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("report.md", SIGNATURE),
        ("report.svg", SIGNATURE),
        ("verdict.json", SIGNATURE),
        ("penny.runtime.pylock.toml", None),
        ("runtime/patches/0001-one.patch", SIGNATURE + 1),
        ("runtime/members/engine.json", SIGNATURE + 1),
        ("reference.json", None),
    ],
)
def test_changed_file_is_named(rewrite: Rewrite, copy: Path, key: SigningKey, name: str, code: int | None) -> None:
    """A turned bit in any file is found and the file is named; files of the lock are drifted inputs besides."""
    rewrite(name, _flip)

    verdict = verify_bundle(copy, key.public)

    assert verdict.outcome & SIGNATURE
    assert code is None or verdict.outcome == code
    assert "changed after the bundle was signed" in _failed(verdict)[f"file.{name}"]


def test_every_turned_bit_of_small_files_is_noticed(copy: Path, key: SigningKey) -> None:
    """Index, key, report, verdict and lock: whichever byte is changed, the bundle does not pass."""
    for name in ("index.json", "public.pem", "verdict.json", "penny.lock.toml"):
        before = (copy / name).read_bytes()
        for place in range(0, len(before), max(1, len(before) // 12)):
            (copy / name).write_bytes(before[:place] + bytes([before[place] ^ 1]) + before[place + 1 :])
            verdict = verify_bundle(copy, key.public)
            assert verdict.outcome & SIGNATURE, (name, place)
        (copy / name).write_bytes(before)
    assert verify_bundle(copy, key.public).outcome == 0


def test_changed_index_is_refused(rewrite: Rewrite, copy: Path, key: SigningKey) -> None:
    """An index that is not the one the statements name fails, even if it fits the files."""
    rewrite("report.md", lambda data: data + b"\nAll is well.\n")
    data = (copy / "report.md").read_bytes()

    def edit(index: Any) -> None:
        (entry,) = (file for file in index["files"] if file["path"] == "report.md")
        entry.update(sha256=hashlib.sha256(data).hexdigest(), size=len(data))

    rewrite("index.json", _json(edit))

    verdict = verify_bundle(copy, key.public)
    assert verdict.outcome.exit_code == 64 + SIGNATURE
    assert "names index" in _failed(verdict)["index.digest"]


def test_edited_number_fails_twice(rewrite: Rewrite, copy: Path, key: SigningKey) -> None:
    """A derived number that was edited in a receipt fails the digest, and no longer follows from its samples."""
    rewrite(
        _receipt(copy, "measure-decode.single-1"),
        _json(lambda receipt: receipt["derived"][0].update(value=99.0)),
    )

    verdict = verify_bundle(copy, key.public)
    failed = _failed(verdict)
    assert verdict.outcome.exit_code == 64 + SIGNATURE + QUALIFICATION
    assert "decode_rate: value is 99.0, the samples give" in failed["derived.decode.single"]
    assert "digest begins" in failed["receipt.digest"]


def test_edited_remark_fails_the_signature(rewrite: Rewrite, copy: Path, key: SigningKey) -> None:
    """An edit that changes no number still breaks digest and signature."""
    rewrite(
        _receipt(copy, "measure-chat.smoke-1"),
        _json(lambda receipt: receipt["conditions"].update(other_cpu_percent=0.0)),
    )

    assert verify_bundle(copy, key.public).outcome.exit_code == 64 + SIGNATURE


def test_careful_forger_fails_on_the_signature(
    evidence: Evidence, good: Path, key: SigningKey, stranger: SigningKey, tmp_path: Path
) -> None:
    """Samples invented, everything recomputed, old statements kept: the statements are about another index."""
    old = evidence.measure("decode.single")

    def faster(receipt: dict[str, Any]) -> None:
        receipt["conditions"]["load_average"] = [0.0, 0.0]

    forged = signed_bundle(evidence, tmp_path / "forged", stranger, evidence.replacing(old, edited(old, faster)))
    shutil.rmtree(forged / "statements")
    shutil.copytree(good / "statements", forged / "statements")
    shutil.copy(good / "public.pem", forged / "public.pem")

    verdict = verify_bundle(forged, key.public)

    assert verdict.outcome.exit_code == 64 + SIGNATURE
    assert "names index" in _failed(verdict)["index.digest"]


def test_receipt_that_is_none_any_more_fails(rewrite: Rewrite, copy: Path, key: SigningKey) -> None:
    """A receipt that was cut short is a broken piece of evidence, not an unreadable argument."""
    rewrite(_receipt(copy, "build"), lambda data: data[: len(data) // 2])

    verdict = verify_bundle(copy, key.public)

    assert verdict.outcome & SIGNATURE
    assert "not JSON" in _failed(verdict)["receipt.digest"]


def test_missing_receipt_is_missed(copy: Path, key: SigningKey) -> None:
    """Without the launch receipt the samples of its boot hang in the air."""
    name = min(path.name for path in copy.glob("receipts/launch-*.json"))
    (copy / "receipts" / name).unlink()

    failed = _failed(verify_bundle(copy, key.public))

    assert name in failed["index.files"]
    assert "no launch receipt" in failed["binding.boots.decode.single"]


def test_extra_file_is_refused(copy: Path, key: SigningKey) -> None:
    """A file that nobody signed does not travel along."""
    (copy / "runtime/more.patch").write_text("more")
    (copy / "statements/readme.txt").write_text("more")

    verdict = verify_bundle(copy, key.public)

    assert verdict.outcome.exit_code == 64 + SIGNATURE
    assert "runtime/more.patch is in the bundle and not in the index" in _failed(verdict)["index.files"]
    assert "statements/readme.txt" in _failed(verdict)["index.files"]


def test_old_bundle_does_not_serve_a_new_lock(copy: Path, key: SigningKey, tmp_path: Path) -> None:
    """Evidence for one lock with another lock put into it fails; asked about another lock it fails as well."""
    other = good_evidence(tmp_path / "other", name="other")
    assert verify_bundle(copy, key.public, expected_lock=other.opened.digest).outcome.exit_code == 64 + SIGNATURE

    shutil.copy(other.opened.path, copy / "penny.lock.toml")
    verdict = verify_bundle(copy, key.public, expected_lock=other.opened.digest)

    failed = _failed(verdict)
    assert verdict.outcome & SIGNATURE
    assert "names lock" in failed["binding.lock"]
    assert "another lock" in failed["lock.digest"]


def test_statement_of_another_lock_is_refused(copy: Path, key: SigningKey, tmp_path: Path) -> None:
    """A statement that the same signer made about another lock does not fit here."""
    other = signed_bundle(good_evidence(tmp_path / "other", name="other"), tmp_path / "bundle2", key)
    shutil.copy(other / "statements/qualification.sigstore.json", copy / "statements/qualification.sigstore.json")

    verdict = verify_bundle(copy, key.public)

    assert verdict.outcome.exit_code == 64 + SIGNATURE
    assert "names index" in _failed(verdict)["index.digest"]


def test_weaker_lock_does_not_help(evidence: Evidence, key: SigningKey, tmp_path: Path) -> None:
    """A bundle of a lock with a weaker bound is about another lock, whatever it proves."""
    folder = Path(shutil.copytree(evidence.opened.folder, tmp_path / "weak"))
    text = (folder / "penny.lock.toml").read_text().replace("bound = 10\n", "bound = 1\n")
    (folder / "penny.lock.toml").write_text(text)
    weak = open_lock(folder / "penny.lock.toml")
    write_bundle(tmp_path / "b", weak, evidence.receipts, key, verify_receipts(weak, evidence.receipts))

    verdict = verify_bundle(tmp_path / "b", key.public)

    assert verdict.outcome & SIGNATURE
    assert "names lock" in _failed(verdict)["binding.lock"]


def test_signed_failure_reports_itself(evidence: Evidence, key: SigningKey, tmp_path: Path) -> None:
    """Failures are signed as they are: the signature holds and the verdict says what failed."""
    old = evidence.measure("chat.smoke")

    def wrong(receipt: dict[str, Any]) -> None:
        receipt["derived"][0].update(value=0.0)

    receipts = evidence.replacing(old, edited(old, wrong))
    bundle = signed_bundle(evidence, tmp_path / "failed", key, receipts)

    verdict = verify_bundle(bundle, key.public)

    assert verdict.outcome.exit_code == 64 + QUALIFICATION
    assert (bundle / "report.md").read_text().splitlines()[1].endswith(": failed")


def test_verdict_must_be_what_is_found(copy: Path, evidence: Evidence, key: SigningKey, tmp_path: Path) -> None:
    """A signer who signs a verdict of its own making is contradicted."""
    del copy
    old = evidence.measure("chat.smoke")
    receipts = evidence.replacing(old, edited(old, lambda receipt: receipt["derived"][0].update(value=0.0)))
    praise = verify_receipts(evidence.opened, evidence.receipts)
    write_bundle(tmp_path / "b", evidence.opened, receipts, key, praise)

    verdict = verify_bundle(tmp_path / "b", key.public)

    assert verdict.outcome.exit_code == 64 + SIGNATURE + QUALIFICATION
    assert "derived.chat.smoke was passed when it was signed and is failed now" in _failed(verdict)["verdict"]


def test_folder_without_index_is_not_checked(tmp_path: Path, key: SigningKey) -> None:
    """Where there is nothing to check, nothing is concluded."""
    verdict = verify_bundle(tmp_path, key.public)

    assert verdict.outcome.exit_code == 64 + UNKNOWN
    assert verdict.word == "unknown"


def test_index_and_names_are_what_they_say(good: Path) -> None:
    """Receipts are named by their digest, and the index lists everything but itself and the statements."""
    index = BundleIndex.from_json((good / "index.json").read_bytes(), where="index.json")
    files = {str(path.relative_to(good)) for path in good.rglob("*") if path.is_file()}

    assert {file.path for file in index.files} == {
        name for name in files if name != "index.json" and not name.startswith("statements/")
    }
    for path in good.glob("receipts/*.json"):
        assert receipt_name(parse_receipt(path.read_text(), where=path.name)) == path.name


def test_verdict_names_no_check_that_is_none(evidence: Evidence, key: SigningKey, tmp_path: Path) -> None:
    """A signer cannot have a check pass that this penny does not make: verdict and report would carry it on."""
    praise = Check(id="speed.of.light", aspect="qualification", status="passed")
    checks = (*verify_receipts(evidence.opened, evidence.receipts), praise)
    write_bundle(tmp_path / "b", evidence.opened, evidence.receipts, key, checks)

    verdict = verify_bundle(tmp_path / "b", key.public)

    assert verdict.outcome.exit_code == 64 + SIGNATURE
    assert _failed(verdict) == {"verdict": "speed.of.light is no check of this penny"}


@pytest.mark.parametrize(
    ("first", "code"),
    [(b"# The fastest of all", SIGNATURE), (b"<!-- penny-report/2 -->", UNKNOWN)],
    ids=["prose", "newer format"],
)
def test_report_that_cannot_be_made_again_does_not_pass(
    evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bytes, code: int
) -> None:
    """A signed page that is no report fails, and one of a format that is not known is not taken on trust."""
    key = signing_key(tmp_path / "keys")
    made = bundle.bundle_content

    def other(*arguments: Any) -> dict[str, bytes]:
        content = made(*arguments)
        return content | {"report.md": first + b"\n" + content["report.md"].split(b"\n", 1)[1]}

    monkeypatch.setattr(bundle, "bundle_content", other)
    signed_bundle(evidence, tmp_path / "b", key)

    verdict = verify_bundle(tmp_path / "b", key.public)

    assert [check.id for check in verdict.checks if check.status != "passed"] == ["report"]
    assert verdict.outcome.exit_code == 64 + code


@pytest.mark.parametrize("edit", [lambda data: data + b"\n", lambda data: data.replace(b'":', b'": ', 1)])
def test_signed_file_has_one_spelling(
    copy: Path, rewrite: Rewrite, key: SigningKey, edit: Callable[[bytes], bytes]
) -> None:
    """Not even a space can be added to a signed statement unnoticed."""
    rewrite("statements/qualification.sigstore.json", edit)

    assert verify_bundle(copy, key.public).outcome.exit_code & 64 + SIGNATURE == 64 + SIGNATURE


def test_receipts_are_bounded_together(copy: Path, key: SigningKey) -> None:
    """Receipts that would fill the memory are refused before they are parsed, and what is no number is a finding."""
    for number in range(3):
        (copy / f"receipts/measure-{number}.json").write_bytes(b'{"kind":[' + b"[]," * 120_000 + b"0]}")
    receipt = next((copy / "receipts").glob("launch-*.json")).name
    huge = (copy / "receipts" / receipt).read_bytes().replace(b'"got":16', b'"got":1' + b"0" * 30)
    (copy / "receipts" / receipt).write_bytes(huge)

    verdict = verify_bundle(copy, key.public)

    assert verdict.outcome.exit_code & 64 + SIGNATURE == 64 + SIGNATURE
    assert "hold more than" in _failed(verdict)["receipt.digest"]
    assert "no canonical JSON form" in _failed(verdict)["receipt.digest"]
