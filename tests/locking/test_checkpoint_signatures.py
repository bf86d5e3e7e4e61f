"""`penny checkpoint sign` and `verify` of a checkpoint that was converted: its folder is what the build made."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

pytest.importorskip("model_signing")


def checkpoint(project: Any, word: str, key: Path, store: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    """Run `penny checkpoint WORD target`."""
    command = [sys.executable, "-m", "reproducer", "checkpoint", word, "target", "--key", str(key), *more]
    command += ["--lock", str(project.path), "--store", str(store)]
    return subprocess.run(command, cwd=key.parent, capture_output=True, text=True, check=False)


def test_a_converted_checkpoint_is_signed_and_verified(locked_once: Any, tmp_path: Path) -> None:
    """Both commands find what the build converted; another byte in it, or a store without it, exits 65."""
    store = tmp_path / "store"
    shutil.copytree(locked_once.store.root, store, symlinks=True)
    private = ec.generate_private_key(ec.SECP256R1())
    key, public = tmp_path / "key.pem", tmp_path / "pub.pem"
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    signed = checkpoint(locked_once, "sign", key, store)
    assert (signed.returncode, signed.stdout) == (0, "model.sig signs 2 files of model\n"), signed.stderr
    verified = checkpoint(locked_once, "verify", public, store)
    assert (verified.returncode, verified.stdout) == (0, "model.sig holds for model\n"), verified.stderr

    absent = checkpoint(locked_once, "verify", public, tmp_path / "none")
    assert absent.returncode == 65
    assert "checkpoint model is not in the store. Run `penny build`, which converts it" in absent.stderr
    assert not (tmp_path / "none").exists()

    for config in store.glob("entries/checkpoint/*/content/checkpoint/config.json"):
        config.parent.chmod(0o755)
        config.chmod(0o644)
        config.write_text(config.read_text("utf-8").replace("2048", "4096"), "utf-8")
    damaged = checkpoint(locked_once, "verify", public, store)
    assert damaged.returncode == 65
    assert "is not what the lock says" in damaged.stderr
