"""Every private key of a test-only Sigstore, so that one of them can be another's."""

from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def _p256() -> EllipticCurvePrivateKey:
    return generate_private_key(SECP256R1())


@dataclass(frozen=True)
class Keys:
    """The keys of one instance; `dataclasses.replace` makes one of its services a rogue.

    Attributes:
        ca_root: signs the certificate of the intermediate authority.
        ca: the intermediate authority, which signs people's certificates.
        ct: the log of certificates.
        log_v1: the log of signatures in its first version.
        log_v2: the same in its second version.
        tsa_root: signs the certificate of the timestamp authority.
        tsa: the timestamp authority.
        issuer: the provider of identities.
    """

    ca_root: EllipticCurvePrivateKey = field(default_factory=_p256)
    ca: EllipticCurvePrivateKey = field(default_factory=_p256)
    ct: EllipticCurvePrivateKey = field(default_factory=_p256)
    log_v1: EllipticCurvePrivateKey = field(default_factory=_p256)
    log_v2: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    tsa_root: EllipticCurvePrivateKey = field(default_factory=_p256)
    tsa: EllipticCurvePrivateKey = field(default_factory=_p256)
    issuer: EllipticCurvePrivateKey = field(default_factory=_p256)
