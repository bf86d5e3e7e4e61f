"""DSSE in Sigstore bundles: the exact form, and nothing but it."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reproducer.attest.envelope import MEDIA_TYPE, PAYLOAD_TYPE, read_envelope, sign
from reproducer.attest.keys import SigningKey, signing_key
from reproducer.canonical import canonical_bytes
from reproducer.errors import InvalidDocumentError, PennyError, SignatureError

STATEMENT = {"_type": "https://in-toto.io/Statement/v1", "subject": [], "predicateType": "urn:x", "predicate": {"b": 1}}


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    """A key of this module."""
    return signing_key(tmp_path_factory.mktemp("keys") / "k")


def test_form_is_sigstore_bundle_v0_3(key: SigningKey) -> None:
    """The bundle names the key by hint, carries no log entry, and the payload is the RFC 8785 statement."""
    bundle = json.loads(sign(STATEMENT, key))

    signature = bundle["dsseEnvelope"]["signatures"][0].pop("sig")
    assert base64.b64decode(signature)
    assert bundle == {
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {"hint": key.public.hint}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": base64.b64encode(canonical_bytes(STATEMENT)).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"keyid": key.public.key_id}],
        },
    }
    assert base64.b64decode(key.public.hint).hex() == key.public.key_id


def test_own_signature_verifies_and_another_key_does_not(key: SigningKey, tmp_path: Path) -> None:
    """The key that signed is accepted; another one is refused by name."""
    signed = read_envelope(sign(STATEMENT, key), where="it")
    signed.verify(key.public)
    other = signing_key(tmp_path / "other").public

    with pytest.raises(SignatureError, match=f"another key .key {key.public.key_id}, not {other.key_id}"):
        signed.verify(other)


def test_claiming_the_trusted_key_does_not_help(key: SigningKey, tmp_path: Path) -> None:
    """An envelope that carries the trusted key's id and hint over a foreign signature is refused."""
    foreign = json.loads(sign(STATEMENT, signing_key(tmp_path / "other")))
    foreign["dsseEnvelope"]["signatures"][0]["keyid"] = key.public.key_id
    foreign["verificationMaterial"]["publicKey"]["hint"] = key.public.hint

    with pytest.raises(SignatureError, match="does not hold"):
        read_envelope(canonical_bytes(foreign) + b"\n", where="it").verify(key.public)


def _envelope(bundle: dict[str, Any]) -> dict[str, Any]:
    envelope: dict[str, Any] = bundle["dsseEnvelope"]
    return envelope


MALFORMED: dict[str, Callable[[dict[str, Any]], object]] = {
    "media type": lambda bundle: bundle.update(mediaType="application/vnd.dev.sigstore.bundle.v0.2+json"),
    "extra field": lambda bundle: bundle.update(extra=1),
    "certificate": lambda bundle: bundle["verificationMaterial"].update(certificate={"rawBytes": "AAAA"}),
    "log entry": lambda bundle: bundle["verificationMaterial"].update(tlogEntries=[{"logIndex": "1"}]),
    "payload type": lambda bundle: _envelope(bundle).update(payloadType="application/json"),
    "no signature": lambda bundle: _envelope(bundle).update(signatures=[]),
    "two signatures": lambda bundle: _envelope(bundle).update(signatures=_envelope(bundle)["signatures"] * 2),
    "no payload": lambda bundle: _envelope(bundle).pop("payload"),
    "payload no object": lambda bundle: _envelope(bundle).update(payload="W10="),
    "payload twice keyed": lambda bundle: _envelope(bundle).update(payload=base64.b64encode(b'{"a":1,"a":2}').decode()),
    "payload not text": lambda bundle: _envelope(bundle).update(payload="/////w=="),
    "loose base64": lambda bundle: _envelope(bundle).update(payload="e31="),
    "unpadded base64": lambda bundle: _envelope(bundle).update(payload="e30"),
    "signature a number": lambda bundle: _envelope(bundle)["signatures"][0].update(sig=1),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_other_forms_are_refused(key: SigningKey, name: str) -> None:
    """Whatever is not exactly one signature in exactly this form is refused before it is believed."""
    bundle = json.loads(sign(STATEMENT, key))
    MALFORMED[name](bundle)

    with pytest.raises((InvalidDocumentError, SignatureError)):
        read_envelope(json.dumps(bundle).encode(), where="it").verify(key.public)


def test_every_changed_byte_is_refused(key: SigningKey) -> None:
    """No bit of a signed statement's file can be turned without being noticed."""
    data = sign(STATEMENT, key)
    statement = read_envelope(data, where="it").payload
    accepted = []
    for place in range(len(data) - 1):
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        try:
            signed = read_envelope(changed, where="it")
            signed.verify(key.public)
            accepted.append((place, signed.payload == statement))
        except PennyError:
            continue

    assert accepted == []
