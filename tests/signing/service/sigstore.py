"""A whole Sigstore on 127.0.0.1, for tests only: identities, certificates, two logs, timestamps, over real HTTP."""

import datetime as dt
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

import jwt
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.signing.service.certificates import Authority, key_hash, now, spki
from tests.signing.service.keys import Keys
from tests.signing.service.logs import LogV1, LogV2, b64
from tests.signing.service.timestamps import TimestampAuthority

if TYPE_CHECKING:
    from collections.abc import Callable

P256 = "PKIX_ECDSA_P256_SHA_256"
ED25519 = "PKIX_ED25519"
AUDIENCE = "sigstore"
PERSON = "ada@example.org"
CERTIFICATE, ENTRY_V1, ENTRY_V2 = "/api/v2/signingCert", "/api/v1/log/entries", "/api/v2/log/entries"
TIMESTAMP, AMBIENT, AUTHORIZE, TOKEN = "/api/v1/timestamp", "/ambient", "/auth", "/token"
CODE = "4711"
DISCOVERY = "/.well-known/openid-configuration"


class Sigstore:
    """The services, to be used in a `with` statement.

    Attributes:
        instead: answers (status, bytes) by path in place of the services' own.
        held: paths that answer only once the event is set.
        asked: every path that was asked for, in order.
        sub: who the provider of identities says is there, where nobody brings a token.
    """

    def __init__(self, keys: Keys | None = None) -> None:
        self.keys = keys or Keys()
        self.instead: dict[str, tuple[int, bytes]] = {}
        self.held: dict[str, threading.Event] = {}
        self.asked: list[str] = []
        self.sub = PERSON
        self._one_at_a_time = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.host}"
        self.authority, self.timestamps = Authority(self.keys), TimestampAuthority(self.keys)
        self.v1, self.v2 = LogV1(self.keys, self.host), LogV2(self.keys, self.host)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for event in self.held.values():
            event.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def token(self, sub: str = PERSON, **claims: Any) -> str:
        """An identity token, good for five minutes; a claim that is None is left out."""
        since = int(time.time())
        said = {"iss": self.url, "sub": sub, "aud": AUDIENCE, "iat": since, "nbf": since, "exp": since + 300, **claims}
        whole = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(whole, self.keys.issuer, algorithm="ES256")

    def answer(self, method: str, target: str, headers: Any, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers for one request."""
        path, _, query = target.partition("?")
        self.asked.append(path)
        if path in self.held:
            self.held[path].wait(60)
        if path in self.instead:
            return *self.instead[path], {}
        try:
            with self._one_at_a_time:
                return self._routed(method, path, query, headers, body)
        except jwt.PyJWTError as error:
            return (
                401,
                json.dumps({"code": 16, "message": f"error processing the identity token: {error}"}).encode(),
                {},
            )

    def _routed(
        self, method: str, path: str, query: str, headers: Any, body: bytes
    ) -> tuple[int, bytes, dict[str, str]]:
        posted: dict[str, Callable[[bytes], bytes]] = {
            ENTRY_V1: self.v1.answer,
            ENTRY_V2: self.v2.answer,
            TIMESTAMP: self.timestamps.answer,
            CERTIFICATE: lambda request: self.authority.answer(self._claims(headers), request),
        }
        if method == "POST" and path in posted:
            return 201, posted[path](body), {}
        return self._identities(path, query, body)

    def _claims(self, headers: Any) -> dict[str, Any]:
        """What an identity token says that this service's own provider signed for this audience."""
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        public = self.keys.issuer.public_key()
        claims: dict[str, Any] = jwt.decode(token, public, algorithms=["ES256"], audience=AUDIENCE, issuer=self.url)
        return claims

    def _identities(self, path: str, query: str, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        """The provider of identities: where it is, a browser's visit, a code for a token, a token for a machine."""
        if path == DISCOVERY:
            places = {"authorization_endpoint": self.url + AUTHORIZE, "token_endpoint": self.url + TOKEN}
            return 200, json.dumps({"issuer": self.url, **places}).encode(), {}
        if path == AUTHORIZE:
            asked = dict(urllib.parse.parse_qsl(query))
            back = urllib.parse.urlencode({"code": CODE, "state": asked["state"]})
            return 302, b"", {"Location": f"{asked['redirect_uri']}?{back}"}
        if path == TOKEN and dict(urllib.parse.parse_qsl(body.decode())).get("code") == CODE:
            return 200, json.dumps({"access_token": self.token(self.sub)}).encode(), {}
        if path == AMBIENT:
            return 200, json.dumps({"value": self.token(self.sub)}).encode(), {}
        return (401 if path == TOKEN else 404), b"{}", {}

    def trusted_root(self) -> dict[str, Any]:
        """The public halves of the keys, as clients trust them."""
        start = {"start": _text(now() - dt.timedelta(days=1))}

        def log(url: str, key: Any, details: str, key_id: bytes) -> dict[str, Any]:
            public = {"rawBytes": b64(spki(key)), "keyDetails": details, "validFor": start}
            return {"baseUrl": url, "hashAlgorithm": "SHA2_256", "publicKey": public, "logId": {"keyId": b64(key_id)}}

        def authority(*chain: x509.Certificate) -> dict[str, Any]:
            raw = [{"rawBytes": b64(each.public_bytes(Encoding.DER))} for each in chain]
            subject = {"organization": "penny TEST ONLY", "commonName": "test"}
            return {"subject": subject, "uri": self.url, "certChain": {"certificates": raw}, "validFor": start}

        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [
                log(self.url, self.keys.log_v1, P256, self.v1.key_id),
                log(self.url, self.keys.log_v2, ED25519, self.v2.key_id),
            ],
            "certificateAuthorities": [authority(self.authority.intermediate, self.authority.root)],
            "ctlogs": [log(f"{self.url}/ct", self.keys.ct, P256, key_hash(self.keys.ct))],
            "timestampAuthorities": [authority(self.timestamps.own, self.timestamps.root)],
        }

    def trust_config(
        self, *, log: int = 2, timestamps: bool = True, root: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """The file for `--trust-config`.

        Args:
            log: which version of the log signs.
            timestamps: whether the timestamp authority is asked.
            root: another trusted root than the one of these services.
        """

        def service(url: str, version: int) -> dict[str, Any]:
            start = {"start": "2020-01-01T00:00:00Z"}
            return {"url": url, "majorApiVersion": version, "validFor": start, "operator": "test"}

        config = {
            "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
            "caUrls": [service(self.url, 1)],
            "oidcUrls": [service(self.url, 1)],
            "rekorTlogUrls": [service(self.url, log)],
            "rekorTlogConfig": {"selector": "ANY"},
            "tsaUrls": [service(self.url + TIMESTAMP, 1)] if timestamps else [],
            "tsaConfig": {"selector": "ANY"},
        }
        return {
            "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
            "trustedRoot": root or self.trusted_root(),
            "signingConfig": config,
        }


def _handler(service: Sigstore) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer, headers = service.answer(self.command, self.path, self.headers, body)
            try:
                self.send_response(status)
                for header, value in headers.items():
                    self.send_header(header, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
            except OSError:
                self.close_connection = True  # whoever asked went away

        do_GET = _answer  # noqa: N815  the name that http.server looks for
        do_POST = _answer  # noqa: N815  the same

    return Handler


def _text(time: dt.datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
