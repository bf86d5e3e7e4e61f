"""Tokens and keys that are known by their form, wherever they stand."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass

from reproducer.sanitize.edges import WORD, begins
from reproducer.sanitize.kinds import Kind, Tally

_BODY = "A-Za-z0-9_-"
_ALONE = begins("A-Za-z0-9")
_SHORTEST_BARE = 12
_LONGEST_WORD = 28
_WORDS = frozenset({"authentication", "authorization", "authenticated", "authenticate", "credentials"})


@dataclass(frozen=True)
class Form:
    """One form of token.

    Attributes:
        name: whose token it is.
        hints: literals of which a text that holds the form holds one; small letters.
        accept: says of a match whether it is one, where the pattern alone cannot.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    kind: Kind = "token"
    accept: Callable[[re.Match[str]], bool] | None = None


def _form(
    name: str,
    hints: str,
    pattern: str,
    kind: Kind = "token",
    accept: Callable[[re.Match[str]], bool] | None = None,
) -> Form:
    return Form(name, tuple(hints.split()), re.compile(pattern), kind, accept)


def _mixed(match: re.Match[str]) -> bool:
    """Whether a body looks drawn by lot: words that hyphens join have neither digits nor both cases."""
    body = match["body"]
    return any(each.isdigit() for each in body) or (body != body.lower() and body != body.upper())


def _drawn(match: re.Match[str]) -> bool:
    """Whether what follows `Bearer` is a token and not the rest of a sentence."""
    body = match["body"].strip(".")
    return _mixed(match) or (len(body) >= _SHORTEST_BARE and body.lower() not in _WORDS)


def _basic(match: re.Match[str]) -> bool:
    """Whether what follows `Basic` is a name and a password: packed, they hold a colon. A log may have cut the end."""
    body = match["body"].rstrip("=")
    unpacked = base64.b64decode(body[: len(body) // 4 * 4])
    return b":" in unpacked or len(body) >= _LONGEST_WORD or (match["body"] != body and _mixed(match))


def _is_key(match: re.Match[str]) -> bool:
    """Whether packed armour is that of a private key; certificates and public keys are no secrets."""
    text = match[0].rstrip("=")
    return b"PRIVATE KEY" in base64.b64decode(text[: min(len(text), 96) // 4 * 4])


FORMS: tuple[Form, ...] = (
    _form("Hugging Face", "hf_ api_org_", rf"{_ALONE}(?:hf|api_org)_[A-Za-z0-9]{{20,}}+"),
    _form("GitHub", "ghp_ gho_ ghs_ ghu_ ghr_", rf"{_ALONE}gh[pousr][_-](?P<body>[A-Za-z0-9_]{{16,}}+)", accept=_mixed),
    _form("GitHub, fine-grained", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}+"),
    _form("GitLab", "gl", r"gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|imt|oas|ffct)-[A-Za-z0-9_.-]{16,}+"),
    _form("npm", "npm_", rf"{_ALONE}npm_[A-Za-z0-9]{{16,}}+"),
    _form("PyPI", "pypi-age", rf"pypi-AgE[{_BODY}]{{16,}}+"),
    _form("RubyGems", "rubygems_", r"rubygems_[0-9a-f]{40,}+"),
    _form("Docker Hub", "dckr_", rf"dckr_(?:pat|oat)_[{_BODY}]{{16,}}+"),
    _form("OpenAI, Anthropic and others", "sk-", rf"{_ALONE}sk-(?P<body>[{_BODY}]{{16,}}+)", accept=_mixed),
    _form("Stripe", "_live_ _test_ whsec_", r"(?:(?:sk|rk|pk)_(?:live|test)|whsec)_[A-Za-z0-9]{10,}+"),
    _form("xAI, Groq, Replicate, Perplexity", "xai- gsk_ r8_ pplx-", r"(?:xai-|gsk_|r8_|pplx-)[A-Za-z0-9]{20,}+"),
    _form("NVIDIA", "nvapi-", rf"nvapi-[{_BODY}]{{20,}}+"),
    _form("Slack", "xox xapp-", r"(?:xox[abeoprs]|xoxe\.xox[bp]|xapp)-[A-Za-z0-9-]{10,}+"),
    _form("Slack web hook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{10,}+"),
    _form("Discord web hook", "/api/webhooks/", r"/api/webhooks/[0-9]{5,}+/[A-Za-z0-9_-]{16,}+"),
    _form("Telegram", ":aa", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}+"),
    _form(
        "AWS key id",
        "akia asia abia acca aroa aida",
        rf"{_ALONE}(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{{16}}(?![A-Za-z0-9])",
    ),
    _form("Google", "aiza", r"AIza[A-Za-z0-9_-]{30,}+"),
    _form("Google OAuth", "ya29. gocspx- 1//0", r"(?:ya29\.|GOCSPX-|1//0)[A-Za-z0-9_-]{20,}+"),
    _form("Azure", "8q~", r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{30,40}"),
    _form("DigitalOcean", "do", r"do[opr]_v1_[0-9a-f]{40,}+"),
    _form("Databricks", "dapi", rf"{WORD}dapi[0-9a-f]{{32}}"),
    _form("Hashicorp Vault", "hv", r"hv[sbr]\.[A-Za-z0-9_-]{20,}+"),
    _form("Terraform", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}+"),
    _form("Grafana", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9+/=_-]{20,}+"),
    _form("New Relic", "nrak- nrjs-", r"NR(?:AK|JS)-[A-Za-z0-9]{15,}+"),
    _form("SendGrid", "sg.", rf"{WORD}SG\.[A-Za-z0-9_-]{{16,}}+\.[A-Za-z0-9_-]{{16,}}+"),
    _form("Linear, Notion", "lin_api_ ntn_ secret_", rf"(?:lin_api|ntn|{WORD}secret)_[A-Za-z0-9]{{30,}}+"),
    _form("Weights & Biases", "wandb_v1_", r"wandb_v1_[A-Za-z0-9_]{20,}+"),
    _form(
        "Weights & Biases, login",
        "wandb",
        r"(?i)(?P<scheme>wandb(?:\.exe)?[ \t]{1,4}login[ \t]{1,4}(?:--?[a-z]{1,20}[ \t=]{1,4}){0,4})[0-9a-f]{40}",
    ),
    _form("Atlassian", "atatt3x atctt3x", r"AT[AC]TT3x[A-Za-z0-9_=-]{30,}+"),
    _form("Shopify", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _form("Square", "sq0", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,}+"),
    _form("Postman", "pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{30,}+"),
    _form("Doppler", "dp.", rf"{_ALONE}dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{{30,}}+"),
    _form("Sentry", "sntry", r"sntry[su]_[A-Za-z0-9+/=_-]{30,}+"),
    _form("Figma", "figd_", r"figd_[A-Za-z0-9_-]{30,}+"),
    _form("Tailscale", "tskey-", r"tskey-[a-z]{2,12}-[A-Za-z0-9-]{16,}+"),
    _form("Tavily", "tvly-", rf"{_ALONE}tvly-[A-Za-z0-9-]{{20,}}+"),
    _form("Fireworks, RunPod", "fw_ rpa_", rf"{_ALONE}(?:fw|rpa)_(?P<body>[A-Za-z0-9]{{20,}}+)", accept=_mixed),
    _form(
        "ModelScope",
        "ms-",
        rf"{_ALONE}ms-[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}}(?![0-9a-f])",
    ),
    _form("packed private key", "ls0tls1crudjti", r"LS0tLS1CRUdJTi(?P<body>[A-Za-z0-9+/]{8,}+={0,2})", "key", _is_key),
    _form("age", "age-secret-key-", r"(?i)age-secret-key-1[0-9a-z]{50,}+"),
    _form(
        "JSON web token",
        "eyj",
        rf"{begins('A-Za-z0-9_-')}eyJ[{_BODY}]{{8,}}+\.[{_BODY}]{{4,}}+(?:\.[{_BODY}]*+){{0,3}}",
    ),
    _form(
        "SSH key",
        "ssh- ecdsa-sha2- sk-",
        r"(?:(?:sk-)?ssh-[a-z0-9]{2,12}|(?:sk-)?ecdsa-sha2-nistp[0-9]{3})(?:@openssh\.com)?[ \t]{1,4}"
        r"AAAA[A-Za-z0-9+/]{16,}+={0,3}(?:[ \t]{1,4}[^\s\"'\\{},]{1,200})?",
        "key",
    ),
    _form(
        "Authorization",
        "bearer basic digest token negotiate",
        rf"(?i)(?P<scheme>{WORD}(?:bearer|negotiate)(?:[ \t]{{1,8}}|%20|\+))(?P<body>[A-Za-z0-9._~+/=-]{{8,}}+)",
        accept=_drawn,
    ),
    _form(
        "Authorization, basic",
        "basic",
        rf"(?P<scheme>{WORD}[Bb](?:asic|ASIC)(?:[ \t]{{1,8}}|%20|\+))(?P<body>[A-Za-z0-9+/]{{8,}}+={{0,2}})",
        accept=_basic,
    ),
)
_BEGIN = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
    r"|Private-Lines: [0-9]{1,4}(?![0-9])"
)
_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|---- END SSH2 ENCRYPTED PRIVATE KEY ----"
_BLOCK = re.compile(rf"({_BEGIN})|({_END})")
_BODY_HERE = re.compile(r"(?:\\{1,4}[rn]|[A-Za-z0-9+/= \t])*+")
_BODY_LINE = re.compile(
    r"[A-Za-z0-9+/=]{16,}+[ \t]*$|^[ \t]*[A-Za-z0-9+/=]++[ \t]*$|^[ \t]*(?:Proc-Type|DEK-Info|Version|Comment):.*$"
)
_LONGEST_BLOCK = 2000


# no form is shorter, but for what follows the name of a scheme
_LONG = re.compile(r"[A-Za-z0-9_-]{14}")
_SCHEMES = ("bearer", "basic", "negotiate", "ssh-", "ecdsa-", "sg.", "slack", "8q~", "dp.")


def without_tokens(text: str, lowered: str, tally: Tally) -> str:
    """A text without the tokens that are known by their form."""
    if _LONG.search(text) is None and not any(hint in lowered for hint in _SCHEMES):
        return text
    for form in FORMS:
        if any(hint in lowered for hint in form.hints):
            text = form.pattern.sub(_replacing(form, tally), text)
    return text


def _replacing(form: Form, tally: Tally) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        if form.accept is not None and not form.accept(match):
            return match[0]
        scheme = match.groupdict().get("scheme") or ""
        return scheme + tally.take(form.kind)

    return replace


class Blocks:
    """Private keys in armour, also those that go over several lines or have lost their end."""

    def __init__(self) -> None:
        self._left = 0

    def without_keys(self, text: str, tally: Tally) -> str:
        """A text without private keys; what was begun in an earlier text goes on in this one."""
        if not self._left and "-- BEGIN" not in text and "--BEGIN" not in text and "Private-Lines" not in text:
            return text
        return "".join(self._line(line, tally) for line in text.splitlines(keepends=True))

    def _line(self, line: str, tally: Tally) -> str:
        kept: list[str] = []
        at = 0
        begun = False
        for mark in _BLOCK.finditer(line):
            if not self._left:
                kept.append(line[at : mark.start()])
            at = mark.end()
            if mark[1]:
                kept.append(tally.take("key"))
                self._left, begun = _LONGEST_BLOCK, True
            elif self._left:
                self._left = 0
            else:
                kept.append(mark[0])
        rest = line[at:]
        if not self._left or not rest.strip():
            return "".join(kept) + rest
        if begun:
            return "".join(kept) + _BODY_HERE.sub("", rest, count=1)
        return "".join(kept) + self._body(rest)

    def _body(self, line: str) -> str:
        """What of a line inside a block is no key."""
        stripped = line.rstrip("\r\n")
        left = _BODY_LINE.sub("", stripped)
        self._left = self._left - 1 if left != stripped else 0  # a line of another kind: the block was cut off
        return left + line[len(stripped) :]
