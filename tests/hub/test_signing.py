"""OpenSSF model signatures against the real model_signing library, both ways."""

import json
import os
import subprocess
import sys
from pathlib import Path

import model_signing.hashing
import model_signing.signing
import model_signing.verifying
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from reproducer.errors import SignatureError, UsageError
from reproducer.hub.signing import sign_folder, verify_folder
from tests.hub.conftest import Bench


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A private and a public key as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = tmp_path / "key.pem", tmp_path / "pub.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


@pytest.fixture
def folder(bench: Bench) -> Path:
    """A fetched checkpoint."""
    return bench.fetch().folders["model"]


def test_the_library_takes_what_penny_signs(folder: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    """model_signing verifies a signature that penny wrote, and refuses it for another byte."""
    private, public = keys
    sign_folder(folder, tmp_path / "model.sig", key=private)
    verifier = model_signing.verifying.Config().use_elliptic_key_verifier(public_key=public)
    verifier.verify(folder, tmp_path / "model.sig")
    (folder / "README.md").write_bytes(b"other")
    with pytest.raises(ValueError, match="mismatch"):
        model_signing.verifying.Config().use_elliptic_key_verifier(public_key=public).verify(
            folder, tmp_path / "model.sig"
        )


@pytest.mark.parametrize("shards", [False, True])
def test_penny_takes_what_the_library_signs(
    folder: Path, keys: tuple[Path, Path], tmp_path: Path, *, shards: bool
) -> None:
    """Penny verifies a publisher's signature in both forms; another byte, file, key or signature does not hold."""
    private, public = keys
    hashing = model_signing.hashing.Config()
    hashing = hashing.use_shard_serialization() if shards else hashing.use_file_serialization()
    signer = model_signing.signing.Config().use_elliptic_key_signer(private_key=private).set_hashing_config(hashing)
    signature = tmp_path / "publisher.sig"
    signer.sign(folder, signature)
    verify_folder(folder, signature, key=public)
    other = tmp_path / "other.pem"
    stranger = ec.generate_private_key(ec.SECP256R1()).public_key()
    other.write_bytes(stranger.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(SignatureError):
        verify_folder(folder, signature, key=other)
    (folder / "extra.json").write_text("{}")
    with pytest.raises(SignatureError, match="does not hold") as caught:
        verify_folder(folder, signature, key=public)
    assert "extra.json" in caught.value.why
    (folder / "extra.json").unlink()
    changed = json.loads(signature.read_bytes())
    payload = changed["dsseEnvelope"]["payload"]
    changed["dsseEnvelope"]["payload"] = payload[:-8] + ("AAAAAAA=" if payload[-8:] != "AAAAAAA=" else "BBBBBBB=")
    signature.write_text(json.dumps(changed))
    with pytest.raises(SignatureError):
        verify_folder(folder, signature, key=public)
    signature.write_text("not JSON")
    with pytest.raises(SignatureError):
        verify_folder(folder, signature, key=public)


def test_wrong_use(folder: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    """No key, no signature, a signature in what it signs: each is named before anything is hashed."""
    private, public = keys
    with pytest.raises(UsageError, match="there is no key"):
        sign_folder(folder, tmp_path / "model.sig", key=tmp_path / "nothing")
    with pytest.raises(UsageError, match="does not lie in what it signs"):
        sign_folder(folder, folder / "model.sig", key=private)
    with pytest.raises(UsageError, match="there is no signature"):
        verify_folder(folder, tmp_path / "nothing", key=public)
    assert not (folder / "model.sig").exists()


def test_the_library_is_loaded_by_these_commands_only() -> None:
    """Neither the hub's client nor model_signing is loaded where nothing of a hub is asked for."""
    code = (
        "import sys, reproducer.cli.app, reproducer.fetch, reproducer.build, reproducer.locking\n"
        "print([name for name in ('model_signing', 'huggingface_hub', 'httpx2', 'sigstore') if name in sys.modules])"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
