"""DSSE envelopes in Sigstore bundles v0.3 that name a public key, with no log entry and no time.

Reading is strict: one exact form, so that no changed character passes unnoticed.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from reproducer.attest.keys import PublicKey, SigningKey
from reproducer.canonical import canonical_bytes
from reproducer.documents.base import Document, Part, Sha256, parse_json, shown
from reproducer.errors import InvalidDocumentError, SignatureError

MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
LARGEST_STATEMENT = 8 << 20

Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]+={0,2}$")]


class _KeyHint(Part):
    hint: Base64


class _Material(Part):
    publicKey: _KeyHint  # noqa: N815  Sigstore's name
    tlogEntries: Annotated[tuple[Any, ...], Field(max_length=0)]  # noqa: N815  Sigstore's name


class _Signature(Part):
    keyid: Sha256
    sig: Base64


class _Envelope(Part):
    payload: Base64
    payloadType: Literal["application/vnd.in-toto+json"]  # noqa: N815  DSSE's name
    signatures: tuple[_Signature, ...]


class _SigstoreBundle(Document):
    mediaType: Literal["application/vnd.dev.sigstore.bundle.v0.3+json"]  # noqa: N815  Sigstore's name
    verificationMaterial: _Material  # noqa: N815  Sigstore's name
    dsseEnvelope: _Envelope  # noqa: N815  Sigstore's name


@dataclass(frozen=True)
class Signed:
    """A statement whose envelope has been read and not been verified.

    Attributes:
        payload: the statement's bytes as they were signed.
        statement: those bytes parsed.
    """

    payload: bytes
    statement: dict[str, Any]
    key_id: str
    hint: str
    signature: bytes

    def verify(self, key: PublicKey) -> None:
        """Check that `key` signed this statement and that the envelope names no other.

        Raises:
            SignatureError: it did not, or the envelope names another key.
        """
        from securesystemslib.dsse import Envelope
        from securesystemslib.exceptions import Error as SecureSystemsLibError
        from securesystemslib.signer import Signature

        if self.key_id != key.key_id:
            raise SignatureError("is signed by another key", why=f"key {self.key_id}, not {key.key_id}")
        if self.hint != key.hint:
            raise SignatureError("names another key in its hint", why=f"{self.hint}, not {key.hint}")
        # the id above is compared before use: what verifies is the trusted key's own, whatever the envelope claims
        signature = Signature(key.key_id, self.signature.hex())
        envelope = Envelope(self.payload, PAYLOAD_TYPE, {key.key_id: signature})
        try:
            envelope.verify([key.sslib()], threshold=1)
        except (SecureSystemsLibError, ValueError) as error:
            raise SignatureError("the signature does not hold", why=f"for key {key.key_id}") from error


def sign(statement: dict[str, Any], key: SigningKey) -> bytes:
    """A Sigstore bundle (JSON bytes, one line) over the RFC 8785 bytes of a statement."""
    from securesystemslib.dsse import Envelope

    envelope = Envelope(canonical_bytes(statement), PAYLOAD_TYPE, {})
    envelope.sign(key.signer())
    bundle = {
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {"hint": key.public.hint}, "tlogEntries": []},
        "dsseEnvelope": envelope.to_dict(),
    }
    return canonical_bytes(bundle) + b"\n"


def read_envelope(data: bytes, *, where: str) -> Signed:
    """The statement in a Sigstore bundle, not yet verified.

    Raises:
        SignatureError: no signature, or more than one.
        InvalidDocumentError: not a bundle of this exact form, or its payload is no JSON object.
    """
    raw = parse_json(_utf8(data, where=where), where=where, limit=LARGEST_STATEMENT)
    bundle = _SigstoreBundle.from_data(raw, where=where)
    if data != canonical_bytes(raw) + b"\n":
        raise InvalidDocumentError("is not in RFC 8785 form with one line feed at its end", where=where)
    envelope = bundle.dsseEnvelope
    if len(envelope.signatures) != 1:
        count = len(envelope.signatures)
        raise SignatureError("must carry exactly one signature", where=where, why=f"it carries {count or 'none'}")
    payload = _decoded(envelope.payload, where=where)
    statement = parse_json(_utf8(payload, where=where), where=f"{where}, payload")
    if not isinstance(statement, dict):
        raise InvalidDocumentError("the payload is no statement", where=where, why=f"it is {shown(statement)}")
    signature = envelope.signatures[0]
    return Signed(
        payload=payload,
        statement=statement,
        key_id=signature.keyid,
        hint=bundle.verificationMaterial.publicKey.hint,
        signature=_decoded(signature.sig, where=where),
    )


def _utf8(data: bytes, *, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidDocumentError("is not UTF-8", where=where) from error


def _decoded(text: str, *, where: str) -> bytes:
    """Base64 in its one canonical spelling; unused bits must be zero."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise InvalidDocumentError("holds broken base64", where=where, why=str(error)) from error
    if base64.b64encode(data).decode("ascii") != text:
        raise InvalidDocumentError("holds base64 that is not canonical", where=where)
    return data
