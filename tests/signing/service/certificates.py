"""The certificate authority (Fulcio's protocol) with certificates that carry the receipt of a log (RFC 6962)."""

import base64
import datetime as dt
import hashlib
import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from tests.signing.service.keys import Keys

ISSUER_V1 = ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
ISSUER_V2 = ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
SCT_LIST = ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
LIFETIME = dt.timedelta(minutes=10)

Extra = tuple[x509.ExtensionType, bool]


def now() -> dt.datetime:
    """The time in whole seconds, as certificates carry it."""
    return dt.datetime.now(dt.UTC).replace(microsecond=0)


def spki(key: Any) -> bytes:
    """The public half of a private key as SubjectPublicKeyInfo in DER."""
    found: bytes = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return found


def key_hash(key: Any) -> bytes:
    """The sha256 over a key's public half, by which logs are named."""
    return hashlib.sha256(spki(key)).digest()


def name(common: str) -> x509.Name:
    """A name that nobody takes for real."""
    attributes = [(NameOID.ORGANIZATION_NAME, "penny TEST ONLY"), (NameOID.COMMON_NAME, common)]
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])


@dataclass(frozen=True)
class Validity:
    """From when to when."""

    start: dt.datetime
    end: dt.datetime

    @classmethod
    def long(cls) -> "Validity":
        """From yesterday on, for ten years."""
        return cls(now() - dt.timedelta(days=1), now() + dt.timedelta(days=3650))


def certificate(
    subject: x509.Name,
    key: EllipticCurvePublicKey,
    issuer: x509.Name,
    issuer_key: EllipticCurvePrivateKey,
    validity: Validity,
    *,
    ca: bool = False,
    usage: tuple[ObjectIdentifier, bool] | None = None,
    extra: Iterable[Extra] = (),
    serial: int | None = None,
) -> x509.Certificate:
    """A certificate; `usage` is its extended key usage and whether that is critical."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(serial or x509.random_serial_number())
        .not_valid_before(validity.start)
        .not_valid_after(validity.end)
        .add_extension(_key_usage(ca=ca), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if ca:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage[0]]), critical=usage[1])
    for extension, critical in extra:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(issuer_key, SHA256())


class Authority:
    """Gives a certificate of ten minutes to whoever shows an identity and holds the key."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        root, usage = name("root"), (ExtendedKeyUsageOID.CODE_SIGNING, False)
        root_key, key = keys.ca_root, keys.ca.public_key()
        self.root = certificate(root, root_key.public_key(), root, root_key, Validity.long(), ca=True)
        self.intermediate = certificate(
            name("intermediate"), key, root, root_key, Validity.long(), ca=True, usage=usage
        )

    def answer(self, claims: dict[str, Any], body: bytes) -> bytes:
        """The answer to a request for a certificate."""
        request = x509.load_pem_x509_csr(base64.b64decode(json.loads(body)["certificateSigningRequest"]))
        if not request.is_signature_valid:
            raise ValueError("whoever asks does not hold the key")
        chain = [self._leaf(claims, request), self.intermediate, self.root]
        pem = [each.public_bytes(Encoding.PEM).decode() for each in chain]
        return json.dumps({"signedCertificateEmbeddedSct": {"chain": {"certificates": pem}}}).encode()

    def _leaf(self, claims: dict[str, Any], request: x509.CertificateSigningRequest) -> x509.Certificate:
        """A certificate: first without the log's receipt, which is over that, then with it."""
        who, issuer = str(claims.get("email", claims["sub"])), str(claims["iss"])
        alternative = x509.RFC822Name(who) if "@" in who else x509.UniformResourceIdentifier(who)
        said: list[Extra] = [
            (x509.SubjectAlternativeName([alternative]), True),
            (x509.UnrecognizedExtension(ISSUER_V1, issuer.encode()), False),
            (x509.UnrecognizedExtension(ISSUER_V2, _der_text(issuer)), False),
        ]
        validity, serial = Validity(now(), now() + LIFETIME), x509.random_serial_number()
        key = request.public_key()
        assert isinstance(key, EllipticCurvePublicKey)

        def made(extra: list[Extra]) -> x509.Certificate:
            usage = (ExtendedKeyUsageOID.CODE_SIGNING, False)
            by, by_key = self.intermediate.subject, self._keys.ca
            return certificate(x509.Name([]), key, by, by_key, validity, usage=usage, extra=extra, serial=serial)

        receipt = self._logged(made(said).tbs_certificate_bytes)
        return made([*said, (x509.UnrecognizedExtension(SCT_LIST, receipt), False)])

    def _logged(self, tbs: bytes) -> bytes:
        """The signed certificate timestamp over a certificate that carries none yet (RFC 6962, 3.2)."""
        milliseconds = int(now().timestamp() * 1000)
        entry = key_hash(self._keys.ca) + len(tbs).to_bytes(3, "big") + tbs
        signed = struct.pack("!BBQH", 0, 0, milliseconds, 1) + entry + b"\x00\x00"
        signature = self._keys.ct.sign(signed, ECDSA(SHA256()))
        head = b"\x00" + key_hash(self._keys.ct) + struct.pack("!QH", milliseconds, 0)
        one = head + b"\x04\x03" + _counted(signature)
        return b"\x04" + _der_length(len(_counted(_counted(one)))) + _counted(_counted(one))


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        key_cert_sign=ca,
        crl_sign=ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _counted(data: bytes) -> bytes:
    return struct.pack("!H", len(data)) + data


def _der_length(length: int) -> bytes:
    if length < 128:
        return bytes([length])
    size = (length.bit_length() + 7) // 8
    return bytes([0x80 | size]) + length.to_bytes(size, "big")


def _der_text(text: str) -> bytes:
    data = text.encode()
    return b"\x0c" + _der_length(len(data)) + data
