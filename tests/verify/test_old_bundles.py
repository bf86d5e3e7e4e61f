"""Bundles that were once written: every penny verifies every one of them, for ever."""

import hashlib
from pathlib import Path

import pytest

from reproducer.attest.envelope import read_envelope
from reproducer.attest.keys import PublicKey
from reproducer.verify.bundle import verify_bundle

KEPT = Path(__file__).parents[1] / "data" / "bundles"
# what another penny may derive by other rules; and a report of an older layout
MAY_BE_SKIPPED = {"binding.namespace", "launch.arguments", "report"}


@pytest.mark.parametrize("folder", sorted(path for path in KEPT.iterdir() if path.is_dir()), ids=lambda path: path.name)
def test_kept_bundle_still_holds(folder: Path) -> None:
    """Signature, index, receipts and numbers of a bundle of an older format hold."""
    verdict = verify_bundle(folder / "bundle", PublicKey.from_file(folder / "signer.pem"))

    assert [check for check in verdict.checks if check.status not in ("passed", "skipped")] == []
    assert {check.id for check in verdict.checks if check.status == "skipped"} <= MAY_BE_SKIPPED
    assert verdict.outcome.exit_code == 0


def test_vector_of_format_1() -> None:
    """The published digests: the key's id, the index, and the statement that names it."""
    folder = KEPT / "penny-bundle-1"
    index = hashlib.sha256((folder / "bundle/index.json").read_bytes()).hexdigest()
    signed = read_envelope((folder / "bundle/statements/qualification.sigstore.json").read_bytes(), where="vector")

    assert (
        PublicKey.from_file(folder / "signer.pem").key_id
        == "fe8a74f67cbc4e27e4c0f972918088fae9e67d6aa8d76715542a7270271d18cf"
    )
    assert index == "7309cfef2124c88615861e4e234e301a8b67f7920df57638486023fbd8feabe2"
    assert (
        hashlib.sha256(signed.payload).hexdigest() == "652c8800584a1189686ccbdf7aa2a112d7222712be712ee112eee97046fbe024"
    )
    assert signed.statement["subject"][0] == {"name": "index.json", "digest": {"sha256": index}}
