"""The public logs of signatures: Rekor's first version, with its own time, and its second, without."""

import base64
import hashlib
import json
from typing import Any

import rfc8785
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256

from tests.signing.service.certificates import key_hash, now
from tests.signing.service.keys import Keys
from tests.signing.service.merkle import Inclusion, Tree


def b64(data: bytes) -> str:
    """Base64 text."""
    return base64.b64encode(data).decode()


class LogV1:
    """Takes the envelope of a statement; answers with a promise, a time and a proof, all signed."""

    def __init__(self, keys: Keys, host: str) -> None:
        self._key, self._origin, self._tree = keys.log_v1, f"{host} - 1", Tree()
        self.key_id = key_hash(keys.log_v1)

    def answer(self, body: bytes) -> bytes:
        """The answer to a proposed entry."""
        proposed = json.loads(body)
        if proposed["kind"] != "dsse":
            raise ValueError(f"this log takes statements only, not {proposed['kind']}")
        content = proposed["spec"]["proposedContent"]
        kept: dict[str, Any] = {"apiVersion": "0.0.1", "kind": "dsse", "spec": _judged(content)}
        entry = rfc8785.dumps(kept)
        found, time = self._tree.append(entry), int(now().timestamp())
        promised: dict[str, Any] = {
            "body": b64(entry),
            "integratedTime": time,
            "logID": self.key_id.hex(),
            "logIndex": found.index,
        }
        promise = self._key.sign(rfc8785.dumps(promised), ECDSA(SHA256()))
        proof = {
            "logIndex": found.index,
            "treeSize": found.size,
            "rootHash": found.root.hex(),
            "hashes": [each.hex() for each in found.path],
            "checkpoint": self._checkpoint(found),
        }
        verification = {"signedEntryTimestamp": b64(promise), "inclusionProof": proof}
        return json.dumps({hashlib.sha256(entry).hexdigest(): {**promised, "verification": verification}}).encode()

    def _checkpoint(self, found: Inclusion) -> str:
        note = f"{self._origin}\n{found.size}\n{b64(found.root)}\n"
        signature = self._key.sign(note.encode(), ECDSA(SHA256()))
        return f"{note}\n\u2014 {self._origin.split(' ', maxsplit=1)[0]} {b64(self.key_id[:4] + signature)}\n"


class LogV2:
    """Takes a digest and a signature over it; answers with a proof, and knows no time."""

    def __init__(self, keys: Keys, host: str) -> None:
        self._key, self._origin, self._tree = keys.log_v2, host, Tree()
        raw = keys.log_v2.public_key().public_bytes_raw()
        self.key_id = hashlib.sha256(host.encode() + b"\n\x01" + raw).digest()  # as signed notes name an Ed25519 key

    def answer(self, body: bytes) -> bytes:
        """The answer to a request for an entry."""
        asked = json.loads(body)["hashedRekordRequestV002"]
        signature = asked["signature"]
        certificate = base64.b64decode(signature["verifier"]["x509Certificate"]["rawBytes"])
        key = x509.load_der_x509_certificate(certificate).public_key()
        assert isinstance(key, EllipticCurvePublicKey)
        digest = base64.b64decode(asked["digest"])
        key.verify(base64.b64decode(signature["content"]), digest, ECDSA(Prehashed(SHA256())))
        spec = {"data": {"algorithm": "SHA2_256", "digest": asked["digest"]}, "signature": signature}
        said: dict[str, Any] = {"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": {"hashedRekordV002": spec}}
        entry = rfc8785.dumps(said)
        found = self._tree.append(entry)
        proof = {
            "logIndex": str(found.index),
            "treeSize": str(found.size),
            "rootHash": b64(found.root),
            "hashes": [b64(each) for each in found.path],
            "checkpoint": {"envelope": self._checkpoint(found)},
        }
        whole = {
            "logIndex": str(found.index),
            "logId": {"keyId": b64(self.key_id)},
            "kindVersion": {"kind": "hashedrekord", "version": "0.0.2"},
            "canonicalizedBody": b64(entry),
            "inclusionProof": proof,
        }
        return json.dumps(whole).encode()

    def _checkpoint(self, found: Inclusion) -> str:
        note = f"{self._origin}\n{found.size}\n{b64(found.root)}\n"
        return f"{note}\n\u2014 {self._origin} {b64(self.key_id[:4] + self._key.sign(note.encode()))}\n"


def _judged(content: dict[str, Any]) -> dict[str, Any]:
    """What the first version keeps of an envelope whose signature holds."""
    envelope = json.loads(content["envelope"])
    verifier = content["verifiers"][0]
    key = x509.load_pem_x509_certificate(base64.b64decode(verifier)).public_key()
    assert isinstance(key, EllipticCurvePublicKey)
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
    signature = envelope["signatures"][0]["sig"]
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    key.verify(base64.b64decode(signature), signed, ECDSA(SHA256()))
    return {
        "envelopeHash": {"algorithm": "sha256", "value": hashlib.sha256(content["envelope"].encode()).hexdigest()},
        "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
        "signatures": [{"signature": signature, "verifier": verifier}],
    }
