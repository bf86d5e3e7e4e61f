"""Samples beside a receipt travel with it everywhere, are bound by its digest, and hostile ones are bounded."""

import gzip
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reproducer.attest.keys import SigningKey, signing_key
from reproducer.documents.receipts import MeasureReceipt
from reproducer.documents.verdict import Verdict
from reproducer.errors import DriftError, InvalidDocumentError, PennyError, SignatureError, UnsafeInputError
from reproducer.ledger import Ledger, read_receipt
from reproducer.samples import beside
from reproducer.samples.beside import file_name, laid_beside, packed_samples, with_samples
from reproducer.verify.bundle import verify_bundle
from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import Evidence, edited, good_evidence, signed_bundle


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Good evidence in which the samples of every measure lie beside its receipt."""
    good = good_evidence(tmp_path_factory.mktemp("lock") / "small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beside, "LARGEST_INSIDE", 0)
        return replace(good, measures=tuple(laid_beside(measure) for measure in good.measures))


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    """The signer's key."""
    return signing_key(tmp_path_factory.mktemp("keys") / "signer")


@pytest.fixture
def bundle(evidence: Evidence, key: SigningKey, tmp_path: Path) -> Path:
    """A bundle of it."""
    return signed_bundle(evidence, tmp_path / "bundle", key)


def _failed(verdict: Verdict) -> dict[str, str]:
    return {check.id: check.reason for check in verdict.checks if check.status == "failed"}


def test_small_receipts_stay_whole(tmp_path: Path) -> None:
    """A receipt that is not large holds its samples itself, and has the digest it always had."""
    (first, *_) = good_evidence(tmp_path / "lock").measures
    assert laid_beside(first) is first
    assert "samples" in first.content()
    assert "samples_beside" not in first.content()


def test_the_document_holds_the_digest_and_no_samples(evidence: Evidence) -> None:
    """The receipt's own digest covers that of its samples; in memory both are there."""
    receipt = evidence.measure("decode.single")
    data = receipt.content()
    assert "samples" not in data
    assert receipt.samples_beside is not None
    assert data["samples_beside"] == receipt.samples_beside.model_dump()
    assert len(receipt.samples) == 5
    other = receipt.model_copy(update={"samples": receipt.samples[:-1]})
    with pytest.raises(SignatureError, match="not the samples"):
        packed_samples(other)


def test_one_place_only(evidence: Evidence, tmp_path: Path) -> None:
    """Samples stand in the receipt or beside it: neither and both are no receipt."""
    inside = good_evidence(tmp_path / "lock").measures[0]
    outside = evidence.measures[0].content()["samples_beside"]
    with pytest.raises(InvalidDocumentError, match="missing"):
        edited(inside, lambda data: data.pop("samples"))
    with pytest.raises(InvalidDocumentError, match="beside the receipt"):
        edited(inside, lambda data: data.update(samples_beside=outside))


def test_ledger(evidence: Evidence, tmp_path: Path) -> None:
    """The ledger writes both files, reads both, and says when the samples are gone or others."""
    ledger = Ledger(tmp_path / "ledger")
    for receipt in evidence.receipts:
        ledger.add(receipt)
    assert {each.digest: each for each in ledger.receipts()} == {each.digest: each for each in evidence.receipts}
    measure = evidence.measure("fidelity")
    path = ledger.add(measure)
    assert measure.samples_beside is not None
    lying = path.with_name(file_name(measure.samples_beside))
    other = path.with_name(file_name(evidence.measure("chat.smoke").samples_beside))  # type: ignore[arg-type]
    shutil.copy(other, lying)
    with pytest.raises(InvalidDocumentError, match="does not hold"):
        read_receipt(path)
    lying.unlink()
    with pytest.raises(DriftError, match="gone"):
        read_receipt(path)


def test_verify_recomputes_from_them(evidence: Evidence) -> None:
    """Every check that passes with samples inside passes with samples beside; without them nothing is derived."""
    assert {each.status for each in verify_receipts(evidence.opened, evidence.receipts)} == {"passed"}
    bare = [
        receipt.model_copy(update={"samples": ()}) if isinstance(receipt, MeasureReceipt) else receipt
        for receipt in evidence.receipts
    ]
    failed = {each.id for each in verify_receipts(evidence.opened, bare) if each.status == "failed"}
    assert {"derived.decode.single", "derived.fidelity", "derived.chat.smoke"} <= failed


def test_bundle(bundle: Path, key: SigningKey) -> None:
    """A bundle carries the files, signed through its index, and holds with nothing else."""
    assert len(list(bundle.glob("receipts/samples-*.json.gz"))) == 3
    verdict = verify_bundle(bundle, key.public)
    assert _failed(verdict) == {}
    assert verdict.outcome.exit_code == 0


def _changed(packed: bytes) -> bytes:
    return gzip.compress(gzip.decompress(packed).replace(b'"times":"8', b'"times":"7', 1), mtime=0)


def _bomb(packed: bytes) -> bytes:
    del packed
    return gzip.compress(b" " * (64 << 20), mtime=0)


TAMPERED: dict[str, tuple[Any, str]] = {
    "another time": (_changed, "not the samples that the receipt names"),
    "cut short": (lambda packed: packed[:-9], "does not hold"),
    "more behind it": (lambda packed: packed + b"x", "does not hold"),
    "a second member": (lambda packed: packed + gzip.compress(b"x"), "does not hold"),
    "no gzip": (lambda packed: b"x" + packed[1:], "not packed with gzip"),
    "a bomb": (_bomb, "does not hold"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampered_file(bundle: Path, key: SigningKey, name: str) -> None:
    """A changed file of samples fails the index, the receipt's digest and the numbers, and never ends the check."""
    edit, words = TAMPERED[name]
    path = max(bundle.glob("receipts/samples-*.json.gz"), key=lambda each: each.stat().st_size)
    path.write_bytes(edit(path.read_bytes()))
    verdict = verify_bundle(bundle, key.public)
    failed = _failed(verdict)
    assert words in failed["receipt.digest"]
    assert f"file.receipts/{path.name}" in failed
    assert any(name.startswith("derived.") for name in failed)
    assert verdict.outcome.exit_code == 64 + 16 + 8


def test_repacked_file_is_only_another_file(bundle: Path, key: SigningKey) -> None:
    """The receipt names what the file holds: packed in another way its numbers hold, and the index says it changed."""
    path = max(bundle.glob("receipts/samples-*.json.gz"), key=lambda each: each.stat().st_size)
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), 1, mtime=0))
    assert set(_failed(verify_bundle(bundle, key.public))) == {f"file.receipts/{path.name}"}


def test_missing_and_unnamed(bundle: Path, key: SigningKey) -> None:
    """A file that is gone is missed, and one that nobody names is noticed."""
    path = max(bundle.glob("receipts/samples-*.json.gz"))
    path.rename(path.with_name(f"samples-{'0' * 64}.json.gz"))
    failed = _failed(verify_bundle(bundle, key.public))
    assert f"{path.name} is missing" in failed["receipt.digest"]
    assert f"samples-{'0' * 64}.json.gz belongs to no receipt" in failed["receipt.digest"]


def test_said_to_be_huge(evidence: Evidence) -> None:
    """A receipt that says its samples are larger than any may be is not even unpacked."""
    receipt = evidence.measure("chat.smoke")
    packed = packed_samples(receipt)
    huge = edited(receipt, lambda data: data["samples_beside"].update(size=2**40))
    with pytest.raises(InvalidDocumentError, match="said to hold more"):
        with_samples(huge, packed, where="it")


def test_together_they_are_bounded(bundle: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """All samples of a bundle together hold no more than one receipt may."""
    monkeypatch.setattr("reproducer.verify.bundle.LARGEST", 3000)
    assert "samples are more than 3000 bytes" in _failed(verify_bundle(bundle, key.public))["receipt.digest"]
    monkeypatch.undo()
    monkeypatch.setattr("reproducer.verify.bundle.MOST_ENTRIES", 60)
    assert "entries in its columns" in _failed(verify_bundle(bundle, key.public))["receipt.digest"]


def test_leaks_in_them_are_found(evidence: Evidence, key: SigningKey, tmp_path: Path) -> None:
    """What must not leave this machine is looked for in samples beside a receipt too."""
    measure = evidence.measure("chat.smoke")
    sample = measure.samples[0]
    leaking = sample.model_copy(update={"facts": {**sample.facts, "note": "/home/somebody/models"}})
    inside = measure.model_copy(update={"samples": (leaking, *measure.samples[1:]), "samples_beside": None})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beside, "LARGEST_INSIDE", 0)
        receipts = tuple(laid_beside(inside) if each is measure else each for each in evidence.receipts)
    with pytest.raises(UnsafeInputError, match="home path") as caught:
        signed_bundle(evidence, tmp_path / "bundle", key, receipts)
    assert isinstance(caught.value, PennyError)
    assert "samples-" in str(caught.value.where)
