"""OpenSSF model signatures: one written for a fetched checkpoint, one checked that its publisher ships."""

import base64
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from reproducer.documents.base import shown
from reproducer.documents.toml import write_atomically
from reproducer.errors import InvalidDocumentError, NotCheckedError, SignatureError, UsageError

_LARGEST = 64 << 20


def sign_folder(folder: Path, signature: Path, *, key: Path) -> None:
    """Write a model signature over every file of a folder.

    Args:
        folder: exactly the locked files.
        signature: the Sigstore bundle to write.
        key: an EC private key as PEM, without a password.

    Raises:
        UsageError: no such key, or the signature would lie in the folder.
        SignatureError: the key cannot sign.
        NotCheckedError: model-signing is not installed, or the disk cannot be written.
    """
    signing = _library("signing")
    _file(key, "key")
    if signature.absolute().resolve().is_relative_to(folder.resolve()):
        raise UsageError("a signature does not lie in what it signs", where=str(signature), todo="name another file")
    with tempfile.TemporaryDirectory(prefix="penny-sign-") as private:
        made = Path(private) / "model.sig"
        try:
            config = signing.Config().use_elliptic_key_signer(private_key=key)
            config.sign(folder, made)
        except Exception as error:
            raise SignatureError("the checkpoint cannot be signed", where=str(key), why=_why(error)) from error
        write_atomically(signature, made.read_bytes())


def verify_folder(folder: Path, signature: Path, *, key: Path) -> None:
    """Hold a folder against a model signature: every signed file is there with its digest, and no other file is.

    Args:
        folder: exactly the locked files.
        signature: a Sigstore bundle; where it lies in the folder itself it does not sign itself.
        key: the publisher's EC public key as PEM.

    Raises:
        UsageError: no such key or signature.
        SignatureError: signature, key or a file does not hold.
        NotCheckedError: model-signing is not installed.
    """
    verifying = _library("verifying")
    _file(key, "key")
    _file(signature, "signature")
    with tempfile.TemporaryDirectory(prefix="penny-verify-") as private:
        copy = Path(private) / "model.sig"
        shutil.copyfile(signature, copy)
        try:
            config = verifying.Config().use_elliptic_key_verifier(public_key=key)
            if (shards := _shards(copy)) is not None:
                config = config.set_hashing_config(shards)
            config.verify(folder, copy)
        except Exception as error:
            missing = "Missing files" in str(error)
            raise SignatureError(
                "the model signature does not hold",
                where=str(signature),
                why=_why(error),
                todo="lock the files that the manifest ignores too" if missing else "",
            ) from error


def _shards(signature: Path) -> Any:
    """How to hash for a signature over pieces of files; None for one over whole files.

    model-signing 1.1.1 reads the size of a piece back as a float and stops there. Nothing is believed here: the library
    checks the signature before it hashes anything, and then compares all that was signed.
    """
    try:
        envelope = json.loads(signature.read_bytes())["dsseEnvelope"]
        said = json.loads(base64.b64decode(envelope["payload"]))["predicate"]["serialization"]
        if said["method"] != "shards":
            return None
        ignored = [str(path) for path in said.get("ignore_paths", ())]
        size, algorithm, links = int(said["shard_size"]), said["hash_type"], bool(said["allow_symlinks"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None  # the library says what is wrong with it
    hashing = _library("hashing").Config()
    return hashing.use_shard_serialization(
        hashing_algorithm=algorithm, shard_size=size, allow_symlinks=links, ignore_paths=ignored
    )


def _library(name: str) -> Any:
    try:
        import importlib

        return importlib.import_module(f"model_signing.{name}")
    except ImportError as error:
        raise NotCheckedError(
            "model signatures need the package model-signing",
            why=str(error),
            todo="install it with `pip install penny-reproducer[model-signing]`",
        ) from error


def _file(path: Path, what: str) -> None:
    if not path.is_file():
        raise UsageError(f"there is no {what} here", where=str(path))
    if path.stat().st_size > _LARGEST:
        raise InvalidDocumentError(f"the {what} is larger than {_LARGEST} bytes", where=str(path))


def _why(error: Exception) -> str:
    """What the library says, as one line that cannot steer a terminal."""
    text = shown(" ".join(str(error).split()))
    return f"{type(error).__name__}: {text}"
