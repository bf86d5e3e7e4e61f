"""Pages of simple indexes: PEP 691 (JSON), PEP 503 (HTML) and find-links pages, read as from a stranger."""

import re
from dataclasses import dataclass
from html import unescape
from typing import Any, get_args
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from reproducer.documents.base import FileName, Sha256, parse_json
from reproducer.errors import InvalidDocumentError

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1, */*;q=0.01"
LARGEST_PAGE = 24 << 20
_MOST_VALUES = 1_000_000
_FILENAME = re.compile(get_args(FileName)[1].metadata[0].pattern)
_SHA256 = re.compile(get_args(Sha256)[1].metadata[0].pattern)
_MOST_ANCHORS = 100_000
# a quoted value ends, for this purpose, where another tag begins
_QUOTED = r'"(?:[^"<]|<(?![A-Za-z/!?]))*+"|\'(?:[^\'<]|<(?![A-Za-z/!?]))*+\''
_TAG = re.compile(rf"<(a|base)\s((?:[^<>\"']|{_QUOTED})*+)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++)))?+""")
_LARGEST_SIZE = 2**53 - 1
_LONGEST_URL = 8192
_WHOLE = ("https://", "http://")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One file that a source offers.

    Attributes:
        sha256: as the source says, None where it does not.
        size: bytes, as the source says, None where it does not.
        yanked: the reason (maybe empty) where its publisher withdrew it, else None.
        requires_python: the release's own specifier, None where it has none.
        source: the source as it may be shown.
    """

    filename: str
    url: str
    sha256: str | None
    size: int | None
    yanked: str | None
    requires_python: str | None
    source: str


def read_page(body: bytes, *, content_type: str, url: str, source: str) -> tuple[Candidate, ...]:
    """The files a page offers; what is no plain file on an allowed scheme is left out.

    Args:
        body: the page.
        content_type: as the server says; anything but JSON is read as HTML.
        url: where the page was in the end; links are relative to it.
        source: the source as it may be shown.

    Raises:
        InvalidDocumentError: says it is JSON and is not a PEP 691 page.
    """
    if content_type.lower().startswith("application/vnd.pypi.simple.v1+json"):
        found = _json_files(body, url=url, source=source)
    else:
        found = _html_files(body.decode("utf-8", "replace"), url=url, source=source)
    return tuple(candidate for candidate in found if candidate is not None)


def filename_of(url: str) -> str | None:
    """The plain file name at the end of a URL, None where there is none."""
    try:
        return _plain(urlsplit(url).path)
    except ValueError:
        return None


def _plain(path: str) -> str | None:
    name = unquote(path.rpartition("/")[2])
    return name if _FILENAME.search(name) else None


def _json_files(body: bytes, *, url: str, source: str) -> list[Candidate | None]:
    page = parse_json(body, where=source, limit=LARGEST_PAGE, values=_MOST_VALUES)
    files = page.get("files") if isinstance(page, dict) else None
    if not isinstance(files, list):
        raise InvalidDocumentError("is no page of a package index", where=source)
    return [_json_file(entry, url=url, source=source) for entry in files if isinstance(entry, dict)]


def _json_file(entry: dict[str, Any], *, url: str, source: str) -> Candidate | None:
    link, hashes, size, yanked = entry.get("url"), entry.get("hashes"), entry.get("size"), entry.get("yanked")
    if not isinstance(link, str):
        return None
    sha256 = hashes.get("sha256") if isinstance(hashes, dict) else None
    candidate = _candidate(link, page=url, source=source, requires=entry.get("requires-python"))
    if candidate is None or entry.get("filename", candidate.filename) != candidate.filename:
        return None
    return Candidate(
        filename=candidate.filename,
        url=candidate.url,
        sha256=_digest(sha256),
        size=size if isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= _LARGEST_SIZE else None,
        yanked=yanked if isinstance(yanked, str) and yanked else "" if yanked is True else None,
        requires_python=candidate.requires_python,
        source=source,
    )


def _tags(text: str, *, source: str) -> tuple[str | None, list[dict[str, str | None]]]:
    """The page's base and the attributes of its anchors, in time that grows with the page and not with its square."""
    base: str | None = None
    anchors: list[dict[str, str | None]] = []
    for name, inner in _TAG.findall(_without_comments(text)):
        attributes: dict[str, str | None] = {}
        for key, double, single, bare in _ATTRIBUTE.findall(inner):
            attributes.setdefault(key.lower(), unescape(double or single or bare))
        if name.lower() == "a":
            anchors.append(attributes)
        elif base is None:
            base = attributes.get("href")
        if len(anchors) > _MOST_ANCHORS:
            raise InvalidDocumentError(f"holds more than {_MOST_ANCHORS} links", where=source)
    return base, anchors


def _without_comments(text: str) -> str:
    parts, at = [], 0
    while (start := text.find("<!--", at)) >= 0:
        parts.append(text[at:start])
        end = text.find("-->", start + 4)
        at = end + 3 if end >= 0 else len(text)
    return "".join((*parts, text[at:]))


def _html_files(text: str, *, url: str, source: str) -> list[Candidate | None]:
    given, anchors = _tags(text, source=source)
    base = _joined(url, given) if given else url
    found: list[Candidate | None] = []
    for anchor in anchors:
        link = anchor.get("href")
        plain = (
            _candidate(link, page=base or url, source=source, requires=anchor.get("data-requires-python"))
            if link
            else None
        )
        if plain is None or link is None:
            continue
        fragment = urldefrag(link).fragment
        sha256 = next((part[7:] for part in fragment.split("&") if part.startswith("sha256=")), None)
        yanked = (anchor["data-yanked"] or "") if "data-yanked" in anchor else None
        found.append(Candidate(plain.filename, plain.url, _digest(sha256), None, yanked, plain.requires_python, source))
    return found


def _candidate(link: str, *, page: str, source: str, requires: object) -> Candidate | None:
    """A candidate with name and URL; None for a link that leads to no plain file or to another kind of place."""
    # Pages name tens of thousands of files, nearly all of them by whole addresses: each is taken apart once.
    whole = link.startswith(_WHOLE) and link.isascii() and link.isprintable()
    joined = link if whole else _joined(page, link)
    if joined is None or len(joined) > _LONGEST_URL:
        return None
    target = urldefrag(joined).url if "#" in joined else joined
    try:
        parts = urlsplit(target)
    except ValueError:
        return None
    from_disk = page.startswith("file:")
    if parts.scheme not in ("http", "https") and not (parts.scheme == "file" and from_disk):
        return None
    name = _plain(parts.path)
    if name is None:
        return None
    return Candidate(name, target, None, None, None, requires if isinstance(requires, str) else None, source)


def _joined(page: str, link: str) -> str | None:
    try:
        return urljoin(page, link)
    except ValueError:
        return None


def _digest(value: object) -> str | None:
    """A sha256 as lower-case hex, None for anything else."""
    text = value.lower() if isinstance(value, str) else ""
    return text if _SHA256.search(text) else None
