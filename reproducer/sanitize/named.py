"""Values that are secret by the name they go by: `password=...`, `"api_key": "..."`, `--token ...`, `.netrc`.

Everything that is called a token, a password, a secret or a key of an account is one, unless the name is a known name
of something else (`eos_token`, `#new-token`): what nobody has listed is taken out.
"""

import re

from reproducer.sanitize.edges import begins
from reproducer.sanitize.kinds import Tally, is_placeholder

_KEYS = (
    r"(?:api|access|secret|private|signing|encryption|ssh|account|shared|subscription|master|admin|service|auth|storage"
    r"|deploy|license|app|application|consumer|encrypt|host|tls|ssl|gpg|pgp|rsa|jwt|hmac|session|client|user|wandb"
    r"|webhook|refresh|recovery|root|database|db)[_.-]?keys?"
)
_CORES = (
    r"pass(?:word|wd|phrase|code)s?|(?-i:(?<=_)PASS)|passwort|pwd|secrets?|token|credentials?|cookies?|authorization|"
    + _KEYS
    + r"|sessionid|auth(?![A-Za-z])|x-amz-signature|x-goog-signature"
)
_HINTS = ("pass", "pwd", "secret", "token", "credential", "cookie", "auth", "key", "sessionid", "x-amz-", "x-goog-")
_QUOTE = r"(?:\\{0,4}[\"'`])"
# headers come as pairs of bytes, too: (b'x-api-key', b'...')
_SEPARATOR = r"(?:[ \t]{0,4}(?:=>|:=|=|:)[ \t]{0,8}|%3[Dd]|%3[Aa]|,[ \t]{0,2}b(?=[\"']))"
_NAMED = re.compile(rf"(?i)(?P<core>{_CORES})(?:\]|\))?(?:{_QUOTE}|%22)?\]?{_SEPARATOR}")
_FLAG = re.compile(
    rf"(?i){begins('A-Za-z0-9_-')}--?[a-z0-9_-]{{0,40}}?(?P<core>{_CORES})"
    rf"(?:{_QUOTE}(?:,\s{{0,4}}|\s{{1,4}})(?={_QUOTE})|[ \t]{{1,4}}(?![-\s]))"
)
_LOGIN = re.compile(r"(?i)(?P<core>(?:machine|login|account)\s{1,4}\S{1,200}\s{1,8}password)[ \t]{1,8}")
_NETRC = re.compile(r"(?im)^[ \t]{0,40}(?:password|login|account)[ \t]{1,8}(?=\S{1,400}[ \t]*\r?$)")
_LOGIN_NAME = re.compile(r"(?i)(?<!\w)machine\s{1,4}\S{1,200}\s{1,8}login[ \t]{1,8}")
_USER_FLAG = re.compile(
    begins("A-Za-z0-9_-") + r"(?:-u|--user|--proxy-user)[ =]{1,4}(?=[\"']?[^\s:\"']{1,100}:[^\s\"']{1,200})"
)
_QUERY = re.compile(
    r"(?i)(?:(?<=[?&;])|(?<=%26)|(?<=%3F)|(?<=&amp;)|(?<=\\u0026))(?:sig|signature|x-amz-(?:signature|credential|security-token)"
    r"|x-goog-(?:signature|credential)|awsaccesskeyid|googleaccessid|key-pair-id|hdnea|token|code|key|auth|jwt)"
    r"(?:=|%3D)"
)
_URL = re.compile(r"(?P<scheme>:(?:\\?/){2})(?P<user>[^\s/\"'<>]{1,4096}+)")
_LEFT = re.compile(r"[A-Za-z0-9_.\-#$@/]{0,64}\Z")
_COLOUR = re.compile(r"\A[0-9]{0,3}m")
_LIST = re.compile(r"(?P<open>\[\s?)(?P<values>\\{0,8}[\"'`][^\]\n]{1,4096}+)(?=\])")
_OPEN = re.compile(r"\\{0,8}[\"'`]")
_BARE = re.compile(
    r"(?:\{[a-z]{1,8}\}|\\{1,8}(?![\"'`nrt]|x1b|u001b|033)|[^\s\"'`&,;\\\x1b]|[,;](?![\s\"']|[\w#.-]{1,64}[=:]|$))++"
)
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|digest|negotiate|ntlm|aws4-hmac-sha256)[ \t]{1,8}")
_CLOSERS = ")]}>,;."
_NUMBER = re.compile(r"[-+]?[0-9]{1,20}(?:\.[0-9]{1,20})?%?(?![A-Za-z0-9_])")
_NOTHING = frozenset(
    {"", "none", "null", "nil", "true", "false", "undefined", "unset", "redacted", "<redacted>", "hidden", "unknown"}
    | {"[redacted]", "auto", "default", "required", "optional", "missing", "str", "string", "optional[str]", "bool"}
)
_LISTED = re.compile(r"[,;]")
_MASK = re.compile(r"[*x•.…]+", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# what stands before `token` where it is a word of a language model and no secret
_MODEL_WORDS = frozenset(
    {"eos", "bos", "pad", "unk", "sep", "cls", "mask", "special", "image", "video", "audio", "think", "start", "end"}
    | {"stop", "begin", "new", "cached", "input", "output", "prompt", "completion", "next", "first", "last", "max"}
    | {
        "min",
        "num",
        "per",
        "draft",
        "added",
        "tool",
        "reasoning",
        "extra",
        "total",
        "accept",
        "accepted",
        "bonus",
        "boi",
        "page",
        "break",
        "prefix",
        "suffix",
        "middle",
        "patch",
        "img",
        "eod",
        "eop",
        "sop",
        "blank",
        "language",
        "lang",
        "tag",
        "sink",
    }
    | {"eoi", "eom", "eot", "decode", "prefill", "generated", "placeholder", "vision", "tokens", "full", "swa", "mamba"}
    | {"pending", "call", "is", "single", "bpe", "byte", "fill", "mem", "time", "rejected", "invalid", "unexpected"}
    | {"count", "by", "inter", "header", "system", "separator", "newline", "space", "sampled", "usage", "ms", "of"}
)
# these hold what is long and secret up to the end of the line
_HEADERS = ("authorization", "cookie", "cookies")
_TO_THE_END = re.compile(r"[^\"'`\n\\]++")


def is_secret_name(name: str) -> bool:
    """Whether what goes by this name is secret."""
    match = re.search(rf"(?i)(?:{_CORES})\Z", name)
    return match is not None and _counts(name[: match.start()], match[0].lower())


def is_secret_value(name: str, value: str) -> bool:
    """Whether a value under a secret name is one: `None`, a mask, and a number of tokens are not."""
    core = re.search(rf"(?i)(?:{_CORES})\Z", name)
    return not _harmless(core[0].lower() if core is not None else name.lower(), value)


def without_named(text: str, lowered: str, tally: Tally) -> str:
    """A text without values that are secret by their names, and without credentials in URLs."""
    if "://" in text or ":\\/\\/" in text:
        text = _URL.sub(lambda match: _authority(match, tally), text)
    if "&" in text or "?" in text or "%3d" in lowered:
        text = _each(text, _QUERY, tally, query=True)
    if any(hint in lowered for hint in _HINTS):
        text = _each(text, _NAMED, tally)
        if "-" in text:
            text = _each(text, _FLAG, tally, flag=True)
    if "-u" in text or "-user" in text:
        text = _each(text, _USER_FLAG, tally, query=True)
    if "login" in lowered or "password" in lowered or "account" in lowered:
        for pattern in (_LOGIN, _NETRC, _LOGIN_NAME):
            text = _each(text, pattern, tally, query=True)
    return text


def _authority(match: re.Match[str], tally: Tally) -> str:
    """The part of a URL before the path, without user and password."""
    user, at, host = match["user"].rpartition("@")
    if not at or is_placeholder(user) or user == "git" or host.startswith(("sha256:", "sha512:")):
        return match[0]
    return match["scheme"] + tally.take("secret") + at + host


def _each(text: str, pattern: re.Pattern[str], tally: Tally, *, query: bool = False, flag: bool = False) -> str:
    """The text with the value after each match in which there is a secret replaced; each character is read once."""
    kept: list[str] = []
    at = 0
    match = pattern.search(text)
    while match is not None:
        start = match.end()
        core = match.groupdict().get("core") or "password"
        left = "" if flag or query else _left_of(text, match.start())
        opener, value = _value(text, start, header=core.lower() in _HEADERS)
        if (flag or query or _counts(left, core.lower())) and not _harmless(core.lower(), value):
            inner = start + len(opener)
            kept += [text[at:inner], tally.take("secret")]
            at = inner + len(value)
            match = pattern.search(text, max(at, match.end()))
        else:
            match = pattern.search(text, match.end())
    return "".join(kept) + text[at:] if kept else text


def _left_of(text: str, end: int) -> str:
    """What of the name stands before its last word."""
    found = _LEFT.search(text, max(0, end - 64), end)
    if found is None:
        return ""
    before = text[found.start() - 1 : found.start()]
    if before == "\\":
        return found[0][1:]
    return _COLOUR.sub("", found[0], count=1) if before == "[" else found[0]


def _counts(left: str, core: str) -> bool:
    """Whether a name that ends so is one of a secret."""
    words = [each.lower() for each in _WORD.findall(left)]
    if core == "token":
        return not left.endswith("#") and not (words and words[-1] in _MODEL_WORDS)
    if core == "pwd":
        return not left.endswith("$")
    if core in {"cookie", "cookies", "credential", "credentials", "authorization"} or core.startswith("x-"):
        return True
    if core == "auth":
        return not left or not left[-1].isalnum()
    if core.startswith("host"):
        return bool(words) and words[-1] == "ssh"
    return not (words and words[-1] in {"public", "no", "without", "missing", "invalid"} and core.endswith("key"))


def _value(text: str, start: int, *, header: bool) -> tuple[str, str]:
    """The quote that opens a value, and the value; one that was cut off ends with its line."""
    listed = _LIST.match(text, start)
    if listed is not None:
        return listed["open"], listed["values"]
    opened = _OPEN.match(text, start)
    if opened is not None:
        stop = text.find("\n", opened.end())
        return opened[0], text[opened.end() : _closing(text, opened.end(), stop if stop >= 0 else len(text), opened[0])]
    if header:
        match = _TO_THE_END.match(text, start)
        return "", match[0].rstrip() if match else ""
    scheme = _SCHEME.match(text, start)
    bare = _BARE.match(text, scheme.end() if scheme else start)
    value = bare[0] if bare else ""
    while value and value[-1] in _CLOSERS and not is_placeholder(value[value.rfind("{") :]):
        value = value[:-1]
    return "", text[start : scheme.end()] + value if scheme is not None and value else value


def _closing(text: str, start: int, stop: int, quote: str) -> int:
    """Where a quoted text ends: at the same quote with as many backslashes before it."""
    depth = len(quote) - 1
    at = text.find(quote[-1], start, stop)
    while at >= 0:
        slashes = 0
        while at - slashes > start and text[at - slashes - 1] == "\\":
            slashes += 1
        if (depth == 0 and slashes % 2 == 0) or (depth and slashes <= depth):
            return at - slashes if depth else at
        at = text.find(quote[-1], at + 1, stop)
    return stop


def _harmless(core: str, value: str) -> bool:
    plain = value.strip().strip("\\").strip("\"'").lower()
    if (
        plain in _NOTHING
        or _LISTED.split(plain, maxsplit=1)[0] in _NOTHING
        or is_placeholder(value.lstrip("[("))
        or _MASK.fullmatch(plain)
    ):
        return True
    if core.endswith("token") and _NUMBER.fullmatch(plain):
        return True
    if core == "token" and (plain.startswith(("<", "[", "(")) or plain in {"y", "n"}):
        return True  # a special token of a model, a list, a rate
    if core == "pwd":
        return plain.startswith(("/", "~", ".")) or plain[1:3] == ":\\"
    return core == "auth" and plain.startswith(("{", "["))
