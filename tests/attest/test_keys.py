"""The signing key: made once, private, and refused when it is not."""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from reproducer.attest.keys import PRIVATE_NAME, PUBLIC_NAME, PublicKey, default_folder, signing_key
from reproducer.errors import InvalidDocumentError, SignatureError, UsageError

OPENSSL = shutil.which("openssl")


def _pem(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def test_key_is_made_once_and_is_private(tmp_path: Path) -> None:
    """The first use makes the key with mode 0600 in a folder with mode 0700; the next use finds it."""
    folder = tmp_path / "a" / "keys"

    first = signing_key(folder)
    second = signing_key(folder)

    assert first.public == second.public
    assert stat.S_IMODE((folder / PRIVATE_NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(path.name for path in folder.iterdir()) == [PRIVATE_NAME, PUBLIC_NAME]


def test_a_careless_umask_does_not_open_the_key(tmp_path: Path) -> None:
    """The mode does not depend on the umask."""
    before = os.umask(0)
    try:
        signing_key(tmp_path / "keys")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "keys" / PRIVATE_NAME).stat().st_mode) == 0o600


@pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")
def test_key_id_is_the_digest_of_the_public_key(tmp_path: Path) -> None:
    """The id is the sha256 over the SPKI DER, as openssl gives it."""
    key = signing_key(tmp_path)
    der = subprocess.run(
        [str(OPENSSL), "pkey", "-pubin", "-in", str(tmp_path / PUBLIC_NAME), "-outform", "DER"],
        capture_output=True,
        check=True,
    ).stdout

    assert key.public.key_id == hashlib.sha256(der).hexdigest()
    assert PublicKey.from_file(tmp_path / PUBLIC_NAME) == key.public


def test_public_pem_is_standard(tmp_path: Path) -> None:
    """The PEM is the one that the cryptography library writes."""
    key = signing_key(tmp_path)

    assert key.public.pem == key.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_two_processes_end_with_one_key(tmp_path: Path) -> None:
    """Whoever makes the key first wins, and all sign with it."""
    code = "import sys; from pathlib import Path; from reproducer.attest.keys import signing_key; "
    code += "print(signing_key(Path(sys.argv[1])).public.key_id)"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "keys")], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ids = {process.communicate()[0] for process in processes}

    assert len(ids) == 1
    assert signing_key(tmp_path / "keys").public.key_id == ids.pop().strip()


def test_what_a_killed_penny_left_is_swept(tmp_path: Path) -> None:
    """A half-written key does not stay."""
    tmp_path.chmod(0o700)
    (tmp_path / ".penny-key-0123").write_bytes(b"half")

    signing_key(tmp_path)

    assert not (tmp_path / ".penny-key-0123").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620])
def test_a_key_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    """A key others can read or write is not used, and the error says the mode."""
    signing_key(tmp_path)
    (tmp_path / PRIVATE_NAME).chmod(mode)

    with pytest.raises(SignatureError, match=f"mode {mode:04o}") as caught:
        signing_key(tmp_path)

    assert caught.value.exit_code == 64 + 16


def test_a_linked_key_is_refused(tmp_path: Path) -> None:
    """A symbolic link is not followed, and not replaced either."""
    signing_key(tmp_path / "real")
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / PRIVATE_NAME).symlink_to(tmp_path / "real" / PRIVATE_NAME)

    with pytest.raises(SignatureError, match="symbolic link"):
        signing_key(tmp_path / "keys")

    assert (tmp_path / "keys" / PRIVATE_NAME).is_symlink()


def test_a_dangling_link_makes_no_key(tmp_path: Path) -> None:
    """A link to nowhere does not make a key where it points."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / PRIVATE_NAME).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(SignatureError, match="symbolic link"):
        signing_key(tmp_path / "keys")

    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """A key that belongs to another user is not used."""
    signing_key(tmp_path)
    os.chown(tmp_path / PRIVATE_NAME, 12345, 12345)

    with pytest.raises(SignatureError, match="somebody else"):
        signing_key(tmp_path)


def test_a_folder_others_can_write_is_refused(tmp_path: Path) -> None:
    """Where others could swap the key, none is made."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys").chmod(0o777)

    with pytest.raises(SignatureError, match="replace a key"):
        signing_key(tmp_path / "keys")

    assert list((tmp_path / "keys").iterdir()) == []


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    """A named pipe in place of the key does not hang penny."""
    os.mkfifo(tmp_path / PRIVATE_NAME, 0o600)

    with pytest.raises(SignatureError, match="not a regular file"):
        signing_key(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"no key", _pem(ec.generate_private_key(ec.SECP384R1())), _pem(ed25519.Ed25519PrivateKey.generate())],
    ids=["empty", "text", "P-384", "Ed25519"],
)
def test_another_kind_of_key_is_refused(tmp_path: Path, content: bytes) -> None:
    """Only P-256 keys are used; a broken one is never replaced."""
    (tmp_path / PRIVATE_NAME).write_bytes(content)
    (tmp_path / PRIVATE_NAME).chmod(0o600)

    with pytest.raises(SignatureError):
        signing_key(tmp_path)

    assert (tmp_path / PRIVATE_NAME).read_bytes() == content


def test_a_changed_public_half_is_put_right(tmp_path: Path) -> None:
    """The public file follows the private one; it is never trusted."""
    key = signing_key(tmp_path)
    (tmp_path / PUBLIC_NAME).write_text("something else")

    signing_key(tmp_path)

    assert PublicKey.from_file(tmp_path / PUBLIC_NAME) == key.public


def test_folder_is_chosen_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`PENNY_KEYS` names the folder; without it the key lies in the user's config folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("PENNY_KEYS", raising=False)
    assert default_folder() == tmp_path / "config" / "penny"

    monkeypatch.setenv("PENNY_KEYS", str(tmp_path / "mine"))
    assert signing_key().public == signing_key(tmp_path / "mine").public


def test_key_does_not_show_itself(tmp_path: Path) -> None:
    """The representation of a signing key holds its id only."""
    key = signing_key(tmp_path)

    assert repr(key) == f"SigningKey({key.public.key_id[:12]})"


def test_public_key_errors_name_the_file(tmp_path: Path) -> None:
    """Missing, malformed and private files are refused as a public key, each in words."""
    with pytest.raises(UsageError, match="no public key here"):
        PublicKey.from_file(tmp_path / "missing.pem")
    signing_key(tmp_path)
    with pytest.raises(InvalidDocumentError, match="is a private key"):
        PublicKey.from_file(tmp_path / PRIVATE_NAME)
    (tmp_path / "text.pem").write_text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    with pytest.raises(InvalidDocumentError, match="not a public key in PEM form"):
        PublicKey.from_file(tmp_path / "text.pem")
    other = ec.generate_private_key(ec.SECP384R1()).public_key()
    (tmp_path / "p384.pem").write_bytes(other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(InvalidDocumentError, match="P-256"):
        PublicKey.from_file(tmp_path / "p384.pem")
