"""Finding the file of an artefact: find-links first, then every index in turn, each asked once a project."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Lock
from urllib.parse import unquote, urlsplit

from reproducer.documents.sources import Artefact
from reproducer.errors import InvalidDocumentError
from reproducer.fetch.indexes import Indexes, redacted
from reproducer.fetch.simple import ACCEPT, LARGEST_PAGE, Candidate, filename_of, read_page
from reproducer.fetch.web import Web, WebFaultError, with_login_of

_MISSING = {404, 410}
_PAGES = (".html", ".htm")


class SourceFaultError(Exception):
    """A source could not be asked; what it holds is unknown."""


class Locator:
    """All sources of a user, in order, with the faults they showed.

    Args:
        indexes: the sources.
        web: the client.
        only: the file names that matter, None for all; pages name thousands, and they are kept for the whole run.
    """

    def __init__(self, indexes: Indexes, web: Web, *, only: frozenset[str] | None = None) -> None:
        self._web = web
        self._only = only
        self._sources = [
            *((url, True) for url in indexes.find_links),
            *((url, False) for url in indexes.index_urls),
        ]
        self._pages: dict[tuple[str, str], Future[tuple[Candidate, ...]]] = {}
        self._guard = Lock()
        self._dead: dict[str, str] = {}

    @property
    def faults(self) -> dict[str, str]:
        """Sources that could not be asked, as they may be shown, with the reason."""
        with self._guard:
            return {redacted(url): reason for url, reason in self._dead.items()}

    def candidates(self, artefact: Artefact) -> Iterator[Candidate]:
        """Files that may be the artefact, best first; a source is asked only when the ones before did not serve.

        Within a source those with the artefact's digest come first, then those without a digest; those with another
        digest are left out (`others` has them).
        """
        for url, flat in self._sources:
            here = [each for each in self._ask(url, artefact.project, flat=flat) if each.filename == artefact.filename]
            yield from (each for each in here if each.sha256 == artefact.sha256)
            yield from (each for each in here if each.sha256 is None)

    def others(self, artefact: Artefact) -> tuple[Candidate, ...]:
        """Files of the artefact's name with another digest, from every source."""
        return tuple(
            each
            for url, flat in self._sources
            for each in self._ask(url, artefact.project, flat=flat)
            if each.filename == artefact.filename and each.sha256 not in (None, artefact.sha256)
        )

    def offered(self, project: str) -> tuple[Candidate, ...]:
        """Everything that any source offers for a project; find-links offer all their files."""
        return tuple(each for url, flat in self._sources for each in self._ask(url, project, flat=flat))

    def _ask(self, url: str, project: str, *, flat: bool) -> tuple[Candidate, ...]:
        """The page of a project, read once; nothing where the source lacks it or cannot be asked."""
        from packaging.utils import canonicalize_name

        name = "" if flat else canonicalize_name(project)
        with self._guard:
            if url in self._dead:
                return ()
            known = self._pages.get((url, name))
            mine: Future[tuple[Candidate, ...]] = Future()
            if known is None:
                self._pages[url, name] = mine
        if known is not None:
            return known.result()
        try:
            found = self._read(url, name)
        except SourceFaultError as fault:
            with self._guard:
                self._dead.setdefault(url, str(fault))
            found = ()
        except BaseException:
            mine.set_result(())
            raise
        if self._only is not None:
            found = tuple(each for each in found if each.filename in self._only)
        mine.set_result(found)
        return found

    def _read(self, url: str, name: str) -> tuple[Candidate, ...]:
        source = redacted(url)
        if url.startswith("file:"):
            return _read_disk(url, name, source)
        page = f"{url}/{name}/" if name else url
        try:
            answer = self._web.page(page, accept=ACCEPT, limit=LARGEST_PAGE)
        except WebFaultError as fault:
            if name and fault.status in _MISSING:
                return ()
            raise SourceFaultError(fault.reason) from fault
        found = _parsed(lambda: read_page(answer.body, content_type=answer.content_type, url=answer.url, source=source))
        return tuple(_with_url(each, with_login_of(each.url, url)) for each in found)


def path_of(url: str) -> Path:
    """The path of a file URL."""
    return Path(unquote(urlsplit(url).path))


def _read_disk(url: str, name: str, source: str) -> tuple[Candidate, ...]:
    """A find-links folder or page (`name` empty), or the page of a project in an index on disk."""
    path = path_of(url)
    try:
        if name:
            if not path.is_dir():
                raise SourceFaultError("there is no such folder")
            page = path / name / "index.html"
            return _read_file_page(page, source) if page.is_file() else _listed(path / name, source)
        if path.is_dir():
            return _listed(path, source)
        if path.suffix.lower() in _PAGES:
            return _read_file_page(path, source)
        if path.is_file() and filename_of(path.as_uri()):
            return (_on_disk(path, source),)
    except OSError as error:
        raise SourceFaultError(error.strerror or str(error)) from error
    raise SourceFaultError("there is no such folder")


def _listed(folder: Path, source: str) -> tuple[Candidate, ...]:
    if not folder.is_dir():
        return ()
    return tuple(
        _on_disk(path, source) for path in sorted(folder.iterdir()) if filename_of(path.as_uri()) and path.is_file()
    )


def _on_disk(path: Path, source: str) -> Candidate:
    return Candidate(path.name, path.absolute().as_uri(), None, path.stat().st_size, None, None, source)


def _read_file_page(path: Path, source: str) -> tuple[Candidate, ...]:
    with path.open("rb") as file:
        body = file.read(LARGEST_PAGE)
    return _parsed(lambda: read_page(body, content_type="text/html", url=path.absolute().as_uri(), source=source))


def _parsed(read: Callable[[], tuple[Candidate, ...]]) -> tuple[Candidate, ...]:
    try:
        return read()
    except (InvalidDocumentError, ValueError, AssertionError) as error:
        raise SourceFaultError(f"its page cannot be read: {error}") from error


def _with_url(candidate: Candidate, url: str) -> Candidate:
    from dataclasses import replace

    return candidate if url == candidate.url else replace(candidate, url=url)
