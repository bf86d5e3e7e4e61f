"""Bundles that are made to hurt whoever reads them: refused before anything in them is used."""

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from reproducer.attest.envelope import read_envelope, sign
from reproducer.attest.keys import SigningKey
from reproducer.canonical import content_digest
from reproducer.errors import InvalidDocumentError, NotCheckedError, UnsafeInputError, UsageError
from reproducer.verify import folder as limits
from reproducer.verify.bundle import verify_bundle

DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
TWICE = b'{"kind":"build","kind":"measure"}'


def _resign(bundle: Path, key: SigningKey) -> None:
    """Make every statement name the index as it is now: what a hostile signer would do."""
    digest = hashlib.sha256((bundle / "index.json").read_bytes()).hexdigest()
    for path in (bundle / "statements").iterdir():
        statement = read_envelope(path.read_bytes(), where=path.name).statement
        statement["subject"][0]["digest"]["sha256"] = digest
        path.write_bytes(sign(statement, key))


@pytest.mark.parametrize("name", ["report.md", "receipts", "statements/qualification.sigstore.json", "more"])
def test_links_are_refused(copy: Path, key: SigningKey, tmp_path: Path, name: str) -> None:
    """A symbolic link is refused by name, wherever it stands and whatever it points to."""
    path = copy / name
    target = tmp_path / "outside"
    if path.exists():
        path.rename(target)
    else:
        target.write_text("secret")
    path.symlink_to(target)

    with pytest.raises(UnsafeInputError, match="no links") as caught:
        verify_bundle(copy, key.public)

    assert name in str(caught.value)
    assert caught.value.exit_code == 2


def test_pipes_are_refused(copy: Path, key: SigningKey) -> None:
    """A named pipe does not make penny wait."""
    os.mkfifo(copy / "pipe")

    with pytest.raises(UnsafeInputError, match="pipe is neither a file nor a folder"):
        verify_bundle(copy, key.public)


@pytest.mark.parametrize("name", ["index.json", "receipts/huge.json"])
def test_huge_files_are_refused_unread(copy: Path, key: SigningKey, name: str) -> None:
    """A terabyte of JSON is refused by its size, at once; to read it would take hours."""
    with (copy / name).open("ab") as file:
        file.truncate(1 << 40)
    since = time.monotonic()

    with pytest.raises(UnsafeInputError, match="larger than"):
        verify_bundle(copy, key.public)

    assert time.monotonic() - since < 60


def test_many_files_are_refused(copy: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """More files than any bundle has are refused."""
    monkeypatch.setattr(limits, "MOST_FILES", 40)
    for number in range(40):
        (copy / f"receipts/{number}.json").write_text("{}")

    with pytest.raises(UnsafeInputError, match="one file too many"):
        verify_bundle(copy, key.public)


def test_much_content_is_refused(copy: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are large together are refused though each is small."""
    monkeypatch.setattr(limits, "LARGEST_FOLDER", 50_000)
    for number in range(10):
        (copy / f"receipts/{number}.json").write_bytes(b" " * 10_000)

    with pytest.raises(UnsafeInputError, match="makes the folder larger"):
        verify_bundle(copy, key.public)


def test_deep_folders_are_refused(copy: Path, key: SigningKey) -> None:
    """A folder nested without end is refused."""
    copy.joinpath(*["deeper"] * 40).mkdir(parents=True)

    with pytest.raises(UnsafeInputError, match="folders deep"):
        verify_bundle(copy, key.public)


def test_names_that_are_no_text_are_refused(copy: Path, key: SigningKey) -> None:
    """A file name with control characters cannot reach a terminal."""
    (copy / "re\x1b[2Jport.md").write_text("x")

    with pytest.raises(UnsafeInputError, match="not plain text") as caught:
        verify_bundle(copy, key.public)

    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [("index.json", DEEP), ("index.json", TWICE), ("index.json", b"\xff\xfe{}"), ("index.json", b"")],
    ids=["deep", "key twice", "not UTF-8", "empty"],
)
def test_malformed_index_of_a_stranger_fails(copy: Path, key: SigningKey, name: str, content: bytes) -> None:
    """An index that nobody signed and nobody can read: the signature fails, in words."""
    (copy / name).write_bytes(content)

    verdict = verify_bundle(copy, key.public)

    assert verdict.outcome.exit_code == 64 + 16
    assert {check.id for check in verdict.checks if check.status == "failed"} == {"index.digest", "index"}


@pytest.mark.parametrize("content", [DEEP, TWICE], ids=["deep", "key twice"])
def test_malformed_receipt_of_a_stranger_fails(copy: Path, key: SigningKey, content: bytes) -> None:
    """A receipt that was replaced by a trap fails, and penny does not."""
    path = min(copy.glob("receipts/measure-*.json"))
    path.write_bytes(content)

    verdict = verify_bundle(copy, key.public)

    assert verdict.outcome & 16
    assert any(check.id == f"file.receipts/{path.name}" for check in verdict.checks)


@pytest.mark.parametrize(
    "content", [DEEP, TWICE, b"[]", b"null", b"{}"], ids=["deep", "twice", "list", "null", "empty"]
)
def test_malformed_statement_fails_the_signature(copy: Path, key: SigningKey, content: bytes) -> None:
    """A statement that is no Sigstore bundle signs nothing."""
    (copy / "statements/qualification.sigstore.json").write_bytes(content)

    verdict = verify_bundle(copy, key.public)

    assert verdict.outcome.exit_code == 64 + 16


@pytest.mark.parametrize(
    "path", ["../outside", "/etc/passwd", "receipts/../../outside", "a\\b", "-option", "a//b"], ids=str
)
def test_signed_path_that_leaves_is_invalid(copy: Path, key: SigningKey, path: str) -> None:
    """An index whose paths lead out is no index, even if the trusted signer made it."""
    index = json.loads((copy / "index.json").read_text())
    index["files"][0]["path"] = path
    (copy / "index.json").write_text(json.dumps(index))
    _resign(copy, key)

    with pytest.raises(InvalidDocumentError, match="path") as caught:
        verify_bundle(copy, key.public)

    assert caught.value.exit_code == 2


def test_signed_index_cannot_hold_itself(copy: Path, key: SigningKey) -> None:
    """An index that lists statements or a file twice binds nothing."""
    index = json.loads((copy / "index.json").read_text())
    name = "statements/qualification.sigstore.json"
    index["files"] += [{"path": name, "sha256": "0" * 64, "size": 1}, index["files"][0]]
    (copy / "index.json").write_text(json.dumps(index))
    _resign(copy, key)

    failed = {check.id: check.reason for check in verify_bundle(copy, key.public).checks if check.status == "failed"}

    assert "names one file twice" in failed["index.files"]
    assert "which it cannot bind" in failed["index.files"]


@pytest.mark.parametrize("content", [DEEP, TWICE, b"{}"], ids=["deep", "twice", "empty"])
def test_signed_trap_is_an_invalid_document(copy: Path, key: SigningKey, content: bytes) -> None:
    """A receipt that the signer itself signed malformed is an invalid document."""
    path = min(copy.glob("receipts/measure-*.json"))
    path.write_bytes(content)
    index = json.loads((copy / "index.json").read_text())
    (entry,) = (file for file in index["files"] if file["path"] == f"receipts/{path.name}")
    entry.update(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    (copy / "index.json").write_text(json.dumps(index))
    _resign(copy, key)

    with pytest.raises(InvalidDocumentError, match=path.name):
        verify_bundle(copy, key.public)


def test_lock_cannot_read_beside_the_bundle(copy: Path, key: SigningKey, tmp_path: Path) -> None:
    """A lock in a bundle that names files outside is refused."""
    (tmp_path / "outside").write_text("secret")
    lock = copy / "penny.lock.toml"
    lock.write_text(lock.read_text().replace("runtime/convert.py", "../outside"))

    verdict = verify_bundle(copy, key.public)

    failed = {check.id: check.reason for check in verdict.checks if check.status == "failed"}
    assert "plain relative path" in failed["lock"]
    assert verdict.outcome.exit_code == 64 + 16


def test_hostile_words_stay_harmless(copy: Path, key: SigningKey) -> None:
    """Control characters from a receipt never reach a check's text."""
    path = min(copy.glob("receipts/measure-chat.smoke*.json"))
    receipt = json.loads(path.read_text())
    receipt.update(status="skipped", reason="\x1b[2J\nall passed")
    path.write_text(json.dumps(receipt))
    assert content_digest(receipt)

    verdict = verify_bundle(copy, key.public)

    skipped = next(check for check in verdict.checks if check.id == "measure.chat.smoke")
    assert skipped.reason == "\\x1b[2J\\nall passed"
    assert verdict.outcome & 16


def test_missing_folder_and_unreadable_folder_say_so(tmp_path: Path, key: SigningKey) -> None:
    """No such folder is a wrong argument; one that cannot be read could not be checked."""
    with pytest.raises(UsageError):
        verify_bundle(tmp_path / "missing", key.public)
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o000)
        with pytest.raises(NotCheckedError):
            verify_bundle(tmp_path / "locked", key.public)


def test_verification_needs_nothing_but_the_bundle(
    copy: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No store, no home, no network: the bundle may have moved, and sockets stay closed."""
    moved = copy.rename(tmp_path / "elsewhere")

    def blocked(*_: object) -> None:
        pytest.fail("a socket was opened")

    monkeypatch.setattr("socket.socket.connect", blocked)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("PENNY_STORE", "/nonexistent")
    monkeypatch.setenv("PENNY_KEYS", "/nonexistent")
    monkeypatch.chdir("/")

    assert verify_bundle(moved, key.public).outcome == 0
