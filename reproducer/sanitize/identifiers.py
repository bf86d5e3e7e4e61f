"""Request ids: each becomes a pseudonym that is the same in every place and file of one run.

The pseudonym is keyed with a key that is drawn for each run and never written, so that nobody who has a guess at an id
can find its pseudonym.
"""

import hashlib
import hmac
import re
import secrets

from reproducer.sanitize.edges import begins
from reproducer.sanitize.kinds import PLACEHOLDER, Tally

_UUID = r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}"
_NAMES = (
    r"rids?|request_?ids?|req_?ids?|x[-_]request[-_]id|session_?ids?|x[-_]session[-_]id|trace_?id|span_?id"
    r"|traceparent|correlation_?id|conversation_?id|cache_salt|prompt_cache_key|client_request_id|response_id|previous_response_id"
    r"|bootstrap_room|external_req_id"
)
_FIELD_NAME = re.compile(rf"(?i)(?:{_NAMES})\Z")
_PREFIXES = (
    r"chatcmpl-tool|chatcmpl|cmpl|embd|rerank|score|resp|msg|tokn|generate-tokens|pooling|realtime|beam_search|transcribe"
    r"|call|req|fc|rs"
)
_ID = r"[A-Za-z0-9_.:~+/-]{1,256}+"
_FIELDS = re.compile(
    rf"(?i){begins('A-Za-z0-9_')}(?P<before>(?:{_NAMES})\\{{0,4}}[\"']?[ \t]{{0,2}}[=:][ \t]{{0,2}}\[?)"
    rf"(?:(?P<quote>\\{{0,4}}[\"'])(?P<quoted>(?:(?!(?P=quote))[^\n]){{1,1024}}+)(?=(?P=quote))|\\{{0,4}}[\"']?(?P<id>{_ID}))"
)
# what a client calls a request may hold anything, so that the engine's own words on both sides say where it ends
_ENGINES = re.compile(
    r"(?P<before>Req ?Time ?Stats\(rid=)(?P<id>[^\n]{1,1024}?)(?=, (?:bootstrap_room|input[ _]len)=)"
    r"|(?P<before_>Received request )(?P<id_>[^\n]{1,1024}?)(?=: (?:params|prompt): )"
    r"|(?P<before__>Request )(?P<id__>[^\n]{1,1024}?)(?= details: )"
    r"|(?P<before___>Generated response )(?P<id___>[^\n]{1,1024}?)(?=(?: \(streaming [a-z]{1,20}\))?: output: )"
)
_PHRASES = re.compile(
    r"(?P<before>\b(?:[Rr]equests?|[Rr]esponse|[Aa]bort(?:ed|ing)?(?: requests?)?|rid|req)(?:\(s\))?:?[ \t]"
    r"(?:\[?[\"'])?)"
    rf"(?P<id>[A-Za-z_]{{0,20}}-?{_UUID}(?:-[0-9a-z]{{1,16}})*+|(?:{_PREFIXES})[-_][A-Za-z0-9-]{{6,}}+)"
)
_FORMS = re.compile(
    rf"{begins('A-Za-z0-9_')}(?P<id>(?:{_PREFIXES})[-_](?:{_UUID}|[0-9a-fA-F]{{16,}}+|[A-Za-z0-9]{{20,}}+)"
    r"(?:-[0-9a-z]{1,16})*+)"
)
_LONG = re.compile(r"[A-Za-z0-9_-]{20}")
_HINTS = (
    "rid",
    "req",
    "session",
    "trace",
    "span",
    "correlation",
    "conversation",
    "cache",
    "response",
    "bootstrap_room",
)
# what SGLang calls the requests by which it sees whether it lives
_PROBE = re.compile(r"HEALTH_CHECK[_0-9.]{0,40}")
_NOTHING = frozenset({"none", "null", "true", "false", "", "unknown"})


class Pseudonyms:
    """The pseudonyms of one run."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def of(self, identifier: str) -> str:
        """The pseudonym of an id."""
        digest = hmac.new(self._key, identifier.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        return f"request_{digest[:16]}"


def is_identifier_name(name: str) -> bool:
    """Whether what goes by this name is the id of a request."""
    return _FIELD_NAME.fullmatch(name) is not None


def pseudonym(value: str, pseudonyms: Pseudonyms, tally: Tally) -> str:
    """What stands in the place of an id; a pseudonym, a missing id and a server's own probe stay what they are."""
    if value.lower() in _NOTHING or PLACEHOLDER.fullmatch(value) or _PROBE.fullmatch(value):
        return value
    tally.counts["request"] += 1
    return pseudonyms.of(value)


def without_identifiers(text: str, lowered: str, pseudonyms: Pseudonyms, tally: Tally) -> str:
    """A text in which every request id is a pseudonym."""

    def replace(match: re.Match[str]) -> str:
        groups = {name.rstrip("_"): value for name, value in match.groupdict().items() if value is not None}
        quote, quoted = groups.get("quote", ""), groups.get("quoted")
        if quoted is not None:
            return groups["before"] + quote + pseudonym(quoted, pseudonyms, tally)
        before = match[0][: len(match[0]) - len(groups["id"])]
        identifier = groups["id"].rstrip(".:")
        return before + pseudonym(identifier, pseudonyms, tally) + groups["id"][len(identifier) :]

    if "rid=" in text or "equest " in text or "Generated response " in text:
        text = _ENGINES.sub(replace, text)
    if any(hint in lowered for hint in _HINTS):
        text = _FIELDS.sub(replace, text)
    if "req" in lowered or "abort" in lowered or "response" in lowered or "rid" in lowered:
        text = _PHRASES.sub(replace, text)
    if _LONG.search(text):
        text = _FORMS.sub(replace, text)
    return text
