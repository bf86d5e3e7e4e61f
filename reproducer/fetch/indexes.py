"""Where packages come from for this user: the settings that pip and uv already have, nothing of penny's own."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from reproducer.errors import InvalidDocumentError
from reproducer.fetch.settings import pip_settings, uv_settings

PUBLIC_INDEX = "https://pypi.org/simple"
DEFAULT_TIMEOUT = 60.0


@dataclass(frozen=True)
class Indexes:
    """Sources of files, in the order in which they are asked: find-links, then indexes.

    URLs may carry a password: show them through `redacted` only.

    Attributes:
        index_urls: simple indexes (PEP 503 and 691), as http, https or file URLs.
        find_links: folders or pages, as http, https or file URLs.
        no_index: the user's settings say that no index is asked.
        cert: file with certificates to trust besides the system's.
        proxy: URL of a proxy, where pip's settings name one.
        timeout: seconds a server may stay silent.
    """

    index_urls: tuple[str, ...] = field(repr=False)
    find_links: tuple[str, ...] = field(default=(), repr=False)
    no_index: bool = False
    cert: Path | None = None
    proxy: str | None = field(default=None, repr=False)
    timeout: float = DEFAULT_TIMEOUT

    @classmethod
    def from_user(cls, extra_indexes: Iterable[str] = (), *, environment: Mapping[str, str] | None = None) -> Self:
        """What pip and uv of this user would ask, without doubles; `extra_indexes` last.

        Args:
            extra_indexes: hints of a manifest or lock.
            environment: variables; None for the process's own.

        Raises:
            UsageError: a configuration file is malformed.
            InvalidDocumentError: an extra index is no http or https URL.
        """
        variables = os.environ if environment is None else environment
        pip, uv = pip_settings(variables), uv_settings(variables)
        no_index = pip.no_index or uv.no_index
        defaults = [url for url in (uv.default_index, pip.default_index) if url] or [PUBLIC_INDEX]
        urls = () if no_index else (*defaults, *pip.extra_indexes, *uv.extra_indexes)
        cert = pip.cert or variables.get("REQUESTS_CA_BUNDLE") or variables.get("CURL_CA_BUNDLE")
        found = cls(
            index_urls=tuple(dict.fromkeys(_as_url(url).rstrip("/") for url in urls)),
            find_links=tuple(dict.fromkeys(_as_url(url) for url in (*pip.find_links, *uv.find_links))),
            no_index=no_index,
            cert=Path(cert).expanduser() if cert else None,
            proxy=pip.proxy,
            timeout=pip.timeout or DEFAULT_TIMEOUT,
        )
        return found.with_hints(extra_indexes)

    def with_hints(self, urls: Iterable[str]) -> Self:
        """These sources and then the indexes that a lock or manifest hints at; none where no index is to be asked.

        Raises:
            InvalidDocumentError: a hint is no http or https URL, or carries a password.
        """
        hints = tuple(_hint(url) for url in urls)
        if self.no_index:
            return self
        return replace(self, index_urls=tuple(dict.fromkeys((*self.index_urls, *hints))))


def redacted(url: str) -> str:
    """A URL as it may be shown: without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, f"***@{host}" if "@" in parts.netloc else host, parts.path, "", ""))
    except ValueError:
        return "a malformed URL"


def _hint(url: str) -> str:
    try:
        parts = urlsplit(url)
        plain = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        plain = False
    if not plain:
        raise InvalidDocumentError(
            f"the index {redacted(url)!r} is no plain http or https URL", todo="correct `indexes` in the document"
        )
    return url.rstrip("/")


def _as_url(text: str) -> str:
    """A URL as it is; a path as a file URL."""
    return text if "://" in text or text.startswith("file:") else Path(text).expanduser().absolute().as_uri()
