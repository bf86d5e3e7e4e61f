"""Addresses of machines: IPv4, IPv6, hardware addresses, hosts of URLs, and the ports of clients.

Loopback and wildcard addresses name no machine and stay, and so do versions of four numbers.
"""

import ipaddress
import re
from collections.abc import Callable

from reproducer.sanitize.edges import begins
from reproducer.sanitize.kinds import Tally

_PORT = r"(?::[0-9]{1,5}(?![0-9A-Za-z.]))?"
_V4 = re.compile(
    rf"(?=[0-9]){begins('A-Za-z0-9.')}(?P<ip>[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{3}})(?P<port>{_PORT})(?![A-Za-z0-9]|\.[0-9])"
)
_V4_DASHED = re.compile(
    rf"(?i){begins('A-Za-z0-9.-')}(?:ip|ec2)-[0-9]{{1,3}}(?:-[0-9]{{1,3}}){{3}}(?:\.[a-z0-9-]{{1,63}}){{0,5}}(?![0-9])"
)
_V6 = re.compile(
    rf"(?=[0-9A-Fa-f]{{0,4}}:){begins('0-9A-Za-z:.')}(?P<ip>[0-9A-Fa-f:]{{2,45}}+(?:\.[0-9]{{1,3}}){{0,3}})(?P<zone>%[0-9A-Za-z_.-]{{1,15}})?"
    rf"(?P<port>\]:[0-9]{{1,5}}(?![0-9]))?(?![0-9A-Za-z:]|\.[0-9])"
)
_MAC = re.compile(
    rf"(?=[0-9A-Fa-f]{{2}}[:-][0-9A-Fa-f]{{2}}[:-]){begins('0-9A-Za-z:-')}[0-9A-Fa-f]{{2}}(?P<by>[:-])(?:[0-9A-Fa-f]{{2}}(?P=by)){{4}}"
    r"[0-9A-Fa-f]{2}(?![0-9A-Za-z:-])"
)
_LOCAL_CLIENT = re.compile(
    rf"{begins('A-Za-z0-9.')}(?P<host>127\.0\.0\.1|localhost|\[::1\]|::1|0\.0\.0\.0):(?P<port>[0-9]{{1,5}})"
    r"(?=\\{0,8}[\"']? - \\{0,8}[\"'])"
)
_CLIENT_PORT = re.compile(
    r"(?i)(?P<name>(?:client|peer|remote)(?:_?(?:port|addr(?:ess)?))?[\"']?[ \t]{0,2}[=:][ \t]{0,2}"
    r"(?:\(?[\"']?127\.0\.0\.1[\"']?[,:] ?)?)"
    r"(?P<port>[0-9]{4,5})(?![0-9.])"
)
_URL_HOST = re.compile(
    r"(?P<scheme>:(?:\\?/){2}(?:(?:\{[a-z]{1,8}\}|git)@)?)(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}+)"
    r"(?P<port>:[0-9]{1,5})?(?![A-Za-z0-9_.@:-]|\{)"
)
_VERSION_BEFORE = re.compile(
    r"(?i)(?:[=~<>!]=|\bversion|\bver|(?<![a-z])v|\bcu1[0-9]|nvidia[a-z0-9_-]{0,30}"
    r"|(?<![a-z])cuda[a-z0-9_-]{0,30}|tensorrt|openssl|(?<![a-z])rocm|driver|firmware|vbios"
    r"|cudnn|cublas(?:lt)?|nccl|curand|cufft|cusolver|cusparse(?:lt)?|nvrtc|cupti|nvjitlink|cufile|nvshmem|kernel|linux)"
    r"[\s:='\"(\\|`]{0,6}\Z"
)
# what stands before the version of a package URL, and before the tag of an image that a registry is named for
_PACKAGE = re.compile(r"pkg:[a-z]{1,20}/[\w.%~/-]{1,200}@\Z")
_IMAGE = re.compile(
    r"(?<![\w/.-])(?:[a-z]{2,16}://)?[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,6}(?:/[\w.-]{1,64}){1,5}:\Z"
)
_FILE_AFTER = re.compile(
    r"(?:\.post[0-9]{1,3}|rc[0-9]{1,3})?-(?:py|cp|pp|manylinux|none)|\.(?:tar|whl|zip|dist-info|egg)"
)
_ALLOCATED = tuple(
    ipaddress.IPv6Network(each)
    for each in ("2000::/3", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "::ffff:0:0/96", "64:ff9b::/96")
)
_INTERNAL = re.compile(
    r"(?i)" + begins(r"\w.\\-") + r"[a-z0-9_](?:[a-z0-9_-]{0,62}\.){1,6}"
    r"(?:internal|local|lan|localdomain|corp|intranet|cluster|home\.arpa|private|svc)(?:\.[a-z]{2,10})?(?![\w-]|\.[\w])"
)
_PUBLIC = re.compile(
    r"(?i)(?:\A|\.)(?:huggingface\.co|hf\.co|github\.com|githubusercontent\.com|github\.io|gitlab\.com|pypi\.org"
    r"|pythonhosted\.org|pytorch\.org|nvidia\.com|vllm\.ai|sglang\.ai|docker\.io|docker\.com|ghcr\.io|quay\.io|nvcr\.io"
    r"|python\.org|readthedocs\.io|modelscope\.cn|arxiv\.org|w3\.org|sigstore\.dev|in-toto\.io|slsa\.dev|ietf\.org"
    r"|json-schema\.org|example\.(?:com|org|net))\Z"
)
# schemes whose URLs go on with a name in a registry or a bucket
_NO_HOST = re.compile(r"(?i)(?:docker|oci|hf|s3|gs|gcs|abfss?|pkg|file|modelscope|docker-daemon)\Z")
_ZONES = (".internal", ".local", ".lan", ".corp", ".intranet", ".cluster", ".home.arpa", ".private", ".svc")
_DOTS = 3
_COLONS = 5
_NO_MACHINE = frozenset({"localhost", "local", "host", "server", "hostname", "ip", "port", "example", "none"})


def without_addresses(text: str, tally: Tally) -> str:
    """A text without addresses; the port goes with its address."""
    if "127.0.0.1:" in text or "localhost:" in text or "::1" in text or "0.0.0.0:" in text:
        text = _LOCAL_CLIENT.sub(lambda match: f"{match['host']}:{tally.take('client')}", text)
    lowered = text.lower()
    if "client" in lowered or "peer" in lowered or "remote" in lowered:
        text = _CLIENT_PORT.sub(lambda match: match["name"] + tally.take("client"), text)
    if "://" in text or ":\\/\\/" in text:
        text = _URL_HOST.sub(_url_host(tally), text)
    if text.count(".") >= _DOTS:
        text = _V4.sub(_v4(tally), text)
    if text.count(":") >= _COLONS or text.count("-") >= _COLONS:
        text = _MAC.sub(_mac(tally), text)
    if "::" in text or text.count(":") >= _COLONS:
        text = _V6.sub(_v6(tally), text)
    if "ip-" in lowered or "ec2-" in lowered:
        text = _V4_DASHED.sub(lambda _: tally.take("address"), text)
    if not any(zone in lowered for zone in _ZONES):
        return text
    return _INTERNAL.sub(lambda match: match[0] if is_loopback_name(match[0]) else tally.take("name"), text)


def is_address(text: str) -> bool:
    """Whether a text is the address of a machine, with or without a port."""
    tally = Tally()
    without_addresses(text, tally)
    return bool(tally.counts)


def is_loopback_name(host: str) -> bool:
    """Whether a host is this machine for everybody."""
    return host.strip("[]").lower() in {"127.0.0.1", "localhost", "0.0.0.0", "::1", "::", "localhost.localdomain"}  # noqa: S104  a text


def names_machine(address: str) -> bool:
    """Whether an IP address names a machine: loopback and wildcard addresses name none."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if found.is_loopback or found.is_unspecified:
        return False
    if isinstance(found, ipaddress.IPv4Address):
        return not address.startswith("255.")  # a mask
    if found.ipv4_mapped is not None:
        return names_machine(str(found.ipv4_mapped))
    return any(found in network for network in _ALLOCATED)


def _v4(tally: Tally) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        if not names_machine(match["ip"]) or _is_version(match):
            return match[0]
        return tally.take("address")

    return replace


def _is_version(match: re.Match[str]) -> bool:
    """Four numbers that stand where a version stands."""
    text, start = match.string, match.start()
    if match["port"]:
        return False
    before = text[max(0, start - 240) : start]
    if _PACKAGE.search(before) or _IMAGE.search(before):
        return True
    if before.endswith("-") and _FILE_AFTER.match(text, match.end()):
        return True
    return _VERSION_BEFORE.search(before[-48:]) is not None


def names_version(field: str) -> bool:
    """Whether four numbers that go by this name are a version."""
    return field.lower().endswith("version") or _VERSION_BEFORE.search(f"{field[-48:]}=") is not None


def _v6(tally: Tally) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        text = match["ip"]
        if text.count(":") < 2:  # noqa: PLR2004  the least that an address has
            return match[0]
        if not names_machine(text):
            return match[0]
        port = match["port"] or ""
        return tally.take("address") + ("]" if port else "")

    return replace


def _mac(tally: Tally) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        digits = match[0].replace(match["by"], "")
        return match[0] if set(digits) in ({"0"}, {"f"}, {"F"}) else tally.take("address")

    return replace


def _url_host(tally: Tally) -> Callable[[re.Match[str]], str]:
    """Hosts of URLs: one word, or with a port, unless everybody knows them."""

    def replace(match: re.Match[str]) -> str:
        if _NO_HOST.search(match.string[max(0, match.start() - 16) : match.start()]):
            return match[0]
        host = match["host"].rstrip(".")
        lowered = host.lower()
        if lowered in _NO_MACHINE or is_loopback_name(host) or _PUBLIC.search(lowered) or _numeric(lowered):
            return match[0]
        if "." in host and not match["port"]:
            return match[0]
        return match["scheme"] + tally.take("name") + match["host"][len(host) :]

    return replace


def _numeric(host: str) -> bool:
    return all(each.isdigit() for each in host.split("."))
