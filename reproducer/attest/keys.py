"""The signing key: ECDSA on P-256, made on first use, readable by its owner only.

A key's id is the hex sha256 over its public half as SubjectPublicKeyInfo in DER.
"""

import base64
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from reproducer.documents.toml import read_text, write_atomically
from reproducer.errors import InvalidDocumentError, NotCheckedError, SignatureError

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner, SSlibKey

PRIVATE_NAME = "penny.key.pem"
PUBLIC_NAME = "penny.pub.pem"
_LARGEST = 64 << 10
_UNFINISHED = ".penny-key-"


@dataclass(frozen=True)
class PublicKey:
    """A P-256 public key.

    Attributes:
        spki: SubjectPublicKeyInfo in DER.
    """

    spki: bytes

    @classmethod
    def from_pem(cls, text: str | bytes, *, where: str) -> "PublicKey":
        """A public key from PEM text.

        Raises:
            InvalidDocumentError: not PEM, or not a public key on P-256.
        """
        data = text.encode() if isinstance(text, str) else text
        if b"PRIVATE KEY" in data:
            raise InvalidDocumentError("is a private key", where=where, todo=f"name the public one, {PUBLIC_NAME}")
        try:
            key = load_pem_public_key(data)
        except Exception as error:
            raise InvalidDocumentError("is not a public key in PEM form", where=where) from error
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
            raise InvalidDocumentError("is not an ECDSA key on the curve P-256", where=where)
        return cls(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))

    @classmethod
    def from_file(cls, path: Path) -> "PublicKey":
        """A public key from its PEM file.

        Raises:
            UsageError: no such file.
            InvalidDocumentError: as `from_pem`.
        """
        return cls.from_pem(read_text(path, what="public key", limit=_LARGEST), where=str(path))

    @property
    def key_id(self) -> str:
        """Hex sha256 over the SPKI DER."""
        return hashlib.sha256(self.spki).hexdigest()

    @property
    def hint(self) -> str:
        """Base64 of the sha256 over the SPKI DER, as a Sigstore bundle names a key."""
        return base64.b64encode(hashlib.sha256(self.spki).digest()).decode("ascii")

    @property
    def pem(self) -> bytes:
        """The key as PEM."""
        body = base64.encodebytes(self.spki).replace(b"\n", b"")
        lines = [body[start : start + 64] for start in range(0, len(body), 64)]
        return b"\n".join([b"-----BEGIN PUBLIC KEY-----", *lines, b"-----END PUBLIC KEY-----", b""])

    def sslib(self) -> "SSlibKey":
        """The key as securesystemslib takes it, under our key id."""
        from securesystemslib.signer import SSlibKey

        return SSlibKey(self.key_id, "ecdsa", "ecdsa-sha2-nistp256", {"public": self.pem.decode("ascii")})


@dataclass(frozen=True)
class SigningKey:
    """A private key with its public half; its representation shows the id only."""

    private: ec.EllipticCurvePrivateKey
    public: PublicKey

    def __repr__(self) -> str:
        return f"SigningKey({self.public.key_id[:12]})"

    def signer(self) -> "CryptoSigner":
        """The key as securesystemslib signs with it, under our key id."""
        from securesystemslib.signer import CryptoSigner

        return CryptoSigner(self.private, self.public.sslib())


def default_folder() -> Path:
    """Where keys lie: `PENNY_KEYS`, or `penny` in the user's config folder."""
    from platformdirs import user_config_path

    chosen = os.environ.get("PENNY_KEYS")
    return Path(chosen).expanduser() if chosen else user_config_path("penny")


def signing_key(folder: Path | None = None) -> SigningKey:
    """The signing key in `folder`, made there when there is none; safe for several processes at once.

    Args:
        folder: where the key lies; None for `default_folder()`.

    Raises:
        SignatureError: others can read or replace the key, it belongs to somebody else, is a link, or is no P-256 key.
        NotCheckedError: the folder cannot be made or written.
    """
    place = (default_folder() if folder is None else folder).absolute()
    path = place / PRIVATE_NAME
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _held(place):
            if not os.path.lexists(path):
                _make(place, path)
            data = _private_bytes(path)
    except OSError as error:
        raise NotCheckedError("the signing key cannot be used", where=str(path), why=error.strerror or "") from error
    try:
        private = load_pem_private_key(data, password=None)
    except Exception as error:
        raise SignatureError("is not a private key in PEM form without a password", where=str(path)) from error
    if not isinstance(private, ec.EllipticCurvePrivateKey) or not isinstance(private.curve, ec.SECP256R1):
        raise SignatureError("is not an ECDSA key on the curve P-256", where=str(path))
    public = PublicKey(private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    _show_public(place / PUBLIC_NAME, public)
    return SigningKey(private, public)


@contextmanager
def _held(place: Path) -> Iterator[None]:
    """Hold the folder against other pennies; the kernel lets go when the process ends, however it ends."""
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise SignatureError(
                "others could replace a key in this folder",
                where=str(place),
                why=f"owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):04o}",
                todo="keep keys in a folder of your own: chmod go-w",
            )
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _make(place: Path, path: Path) -> None:
    """Write a new private key whole, then give it its name; sweeps what a killed penny left."""
    for left in place.glob(f"{_UNFINISHED}*"):
        left.unlink()
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    temporary = place / f"{_UNFINISHED}{secrets.token_hex(8)}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(pem)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def _private_bytes(path: Path) -> bytes:
    """The bytes of a private key that nobody else can read; the open file is judged, not its name."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if path.is_symlink():
            raise SignatureError("the signing key is a symbolic link", where=str(path), todo="name the file") from error
        raise
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise SignatureError("the signing key is not a regular file", where=str(path))
        if status.st_uid != os.geteuid():
            raise SignatureError("the signing key belongs to somebody else", where=str(path))
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise SignatureError(
                "others can read the signing key",
                where=str(path),
                why=f"mode {stat.S_IMODE(status.st_mode):04o}",
                todo="chmod 600 it, and make a new key if others may have read it",
            )
        return file.read(_LARGEST)


def _show_public(path: Path, public: PublicKey) -> None:
    """Keep the public half beside the private one, so that a person can hand it out."""
    try:
        if not path.is_symlink() and path.read_bytes() == public.pem:
            return
    except OSError:
        pass
    write_atomically(path, public.pem)
