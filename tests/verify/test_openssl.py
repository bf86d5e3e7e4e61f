"""An independent check: what penny signs, openssl accepts, by the very commands that the report prints."""

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from reproducer.attest.keys import SigningKey

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")


def _accepted(folder: Path, public: bytes, signed: bytes, signature: bytes) -> bool:
    (folder / "public.pem").write_bytes(public)
    (folder / "signed").write_bytes(signed)
    (folder / "signature").write_bytes(signature)
    ended = subprocess.run(
        [str(OPENSSL), "dgst", "-sha256", "-verify", "public.pem", "-signature", "signature", "signed"],
        cwd=folder,
        check=False,
        capture_output=True,
    )
    return ended.returncode == 0


def test_openssl_accepts_the_signature_over_the_pae(
    good: Path, key: SigningKey, stranger: SigningKey, tmp_path: Path
) -> None:
    """The signature is ECDSA over sha256 of the DSSE pre-authentication encoding, made here by hand."""
    for path in (good / "statements").iterdir():
        envelope = json.loads(path.read_text())["dsseEnvelope"]
        payload = base64.b64decode(envelope["payload"])
        kind = envelope["payloadType"].encode()
        signed = b"DSSEv1 " + str(len(kind)).encode() + b" " + kind + b" " + str(len(payload)).encode() + b" " + payload
        signature = base64.b64decode(envelope["signatures"][0]["sig"])

        assert _accepted(tmp_path, key.public.pem, signed, signature)
        assert not _accepted(tmp_path, key.public.pem, signed + b" ", signature)
        assert not _accepted(tmp_path, stranger.public.pem, signed, signature)


def _commands(text: str) -> str:
    """The block of shell commands that uses openssl alone."""
    blocks: list[str] = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return next(block for block in blocks if "openssl dgst" in block)


def _run(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-c", commands], cwd=folder, check=False, capture_output=True, text=True)


def test_commands_of_the_report_check_the_bundle(copy: Path, key: SigningKey) -> None:
    """Whoever copies the commands from the report sees the key's id, each signature and each file hold."""
    (copy / "KEY.pem").write_bytes(key.public.pem)
    ended = _run(_commands((copy / "report.md").read_text()), copy)

    assert ended.stderr == ""
    assert ended.stdout.splitlines()[0].startswith(key.public.key_id)
    assert ended.stdout.count("Verified OK") == len(list((copy / "statements").iterdir()))
    assert "qualification binds index.json" in ended.stdout
    assert "index.json binds every file" in ended.stdout


def test_commands_of_the_report_notice_a_change(copy: Path, key: SigningKey) -> None:
    """The same commands fail for a changed file, a changed index and a changed statement."""
    commands = _commands((copy / "report.md").read_text())
    (copy / "KEY.pem").write_bytes(key.public.pem)
    (copy / "runtime/convert.py").write_text("print('other')\n")
    assert "index.json binds every file" not in _run(commands, copy).stdout
    (copy / "index.json").write_text((copy / "index.json").read_text().replace('"size":', '"size": ', 1))
    assert "binds index.json" not in _run(commands, copy).stdout
    path = copy / "statements/qualification.sigstore.json"
    path.write_text(path.read_text().replace('"payload":"eyJ', '"payload":"eyK'))
    assert _run(commands, copy).stdout.count("Verified OK") == 1


def test_commands_of_the_documentation_are_those_of_the_report(good: Path) -> None:
    """The page about evidence prints the same commands, for any bundle."""
    page = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text()
    names = " ".join(sorted(path.name.removesuffix(".sigstore.json") for path in (good / "statements").iterdir()))
    of_report = _commands((good / "report.md").read_text()).replace(
        f"for name in {names}", 'for name in $(ls statements | sed "s/.sigstore.json//")'
    )

    assert _commands(page) == of_report
