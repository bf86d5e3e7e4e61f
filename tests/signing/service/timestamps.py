"""The timestamp authority (RFC 3161)."""

import hashlib
import secrets

from asn1crypto import algos, cms, core, tsp
from asn1crypto import x509 as asn1_x509
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.signing.service.certificates import Validity, certificate, name, now
from tests.signing.service.keys import Keys

POLICY = "1.3.6.1.4.1.57264.2"


class TimestampAuthority:
    """Says when it saw a digest."""

    def __init__(self, keys: Keys) -> None:
        self._key = keys.tsa
        root, root_key = name("timestamp root"), keys.tsa_root
        self.root = certificate(root, root_key.public_key(), root, root_key, Validity.long(), ca=True)
        usage = (ExtendedKeyUsageOID.TIME_STAMPING, True)
        self.own = certificate(name("timestamps"), keys.tsa.public_key(), root, root_key, Validity.long(), usage=usage)

    def answer(self, body: bytes) -> bytes:
        """The answer to a timestamp query."""
        asked = tsp.TimeStampReq.load(body)
        info = {
            "version": 1,
            "policy": POLICY,
            "message_imprint": asked["message_imprint"],
            "serial_number": secrets.randbits(63),
            "gen_time": now(),
            "accuracy": {"seconds": 1},
        }
        if asked["nonce"].native is not None:
            info["nonce"] = asked["nonce"].native
        signed = cms.ContentInfo({"content_type": "signed_data", "content": self._signed(tsp.TSTInfo(info).dump())})
        whole: bytes = tsp.TimeStampResp({"status": {"status": "granted"}, "time_stamp_token": signed}).dump()
        return whole

    def _signed(self, info: bytes) -> cms.SignedData:
        own = self.own.public_bytes(Encoding.DER)
        parsed = asn1_x509.Certificate.load(own)
        names_own = tsp.SigningCertificateV2({"certs": [tsp.ESSCertIDv2({"cert_hash": hashlib.sha256(own).digest()})]})
        said = {
            "content_type": "tst_info",
            "signing_time": cms.Time({"utc_time": now()}),
            "message_digest": hashlib.sha256(info).digest(),
            "signing_certificate_v2": names_own,
        }
        attributes = cms.CMSAttributes(
            [cms.CMSAttribute({"type": kind, "values": [value]}) for kind, value in said.items()]
        )
        serial = {"issuer": parsed.issuer, "serial_number": parsed.serial_number}
        signer = {
            "version": "v1",
            "sid": cms.SignerIdentifier({"issuer_and_serial_number": cms.IssuerAndSerialNumber(serial)}),
            "digest_algorithm": algos.DigestAlgorithm({"algorithm": "sha256"}),
            "signed_attrs": attributes,
            "signature_algorithm": algos.SignedDigestAlgorithm({"algorithm": "sha256_ecdsa"}),
            "signature": self._key.sign(attributes.dump(), ECDSA(SHA256())),
        }
        return cms.SignedData(
            {
                "version": "v3",
                "digest_algorithms": [algos.DigestAlgorithm({"algorithm": "sha256"})],
                "encap_content_info": {"content_type": "tst_info", "content": core.ParsableOctetString(info)},
                "certificates": [cms.CertificateChoices("certificate", parsed)],
                "signer_infos": [cms.SignerInfo(signer)],
            }
        )
