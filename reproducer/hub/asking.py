"""Questions to a hub through its own client: asked again with bounded patience, the answers not trusted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from reproducer import __version__
from reproducer.documents.base import parse_json, shown
from reproducer.errors import DriftError, InvalidDocumentError, NotCheckedError, UnsafeInputError
from reproducer.hub.faults import Subject, fault_of
from reproducer.hub.place import HubPlace
from reproducer.progress import Reporter, Silent

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
SECONDS = 30.0
LONGEST_WAIT = 60.0
_COMMIT_DIGITS = 40
_LARGEST_PAGE = 16 << 20
_MOST_PAGES = 1000
_MOST_REDIRECTS = 10


@dataclass(frozen=True)
class Hub:
    """One hub as it is asked; safe to use from threads.

    Attributes:
        stopped: set once the run is being stopped.
    """

    place: HubPlace
    reporter: Reporter = field(default_factory=Silent)
    stopped: Event = field(default_factory=Event)

    def commit(self, repository: str, revision: str) -> str:
        """The commit that a branch, a tag or a commit is now.

        Raises:
            DriftError: no such repository or revision; another commit than the one that was named.
            NotCheckedError: gated, too many requests, or the hub cannot be reached.
            UnsafeInputError: the hub answers with something that is no commit.
        """
        url = f"{self.place.url}/api/models/{repository}/revision/{quote(revision, safe='')}"
        info, _ = self.asked(Subject(repository, revision), lambda: self._json(url))
        commit = info.get("sha") if isinstance(info, dict) else None
        if not isinstance(commit, str) or len(commit) != _COMMIT_DIGITS or set(commit) - set("0123456789abcdef"):
            raise UnsafeInputError(f"the hub names no commit for {repository}", where=self.place.shown)
        named = revision.lower()
        if len(named) == _COMMIT_DIGITS and not set(named) - set("0123456789abcdef") and commit != named:
            raise DriftError(
                f"the hub answers another commit of {repository}",
                where=self.place.shown,
                why=f"expected {named}, got {commit}",
            )
        return commit

    def tree(self, repository: str, commit: str) -> list[Any]:
        """Every entry of a commit as the hub lists it, page after page; nothing in them is checked.

        Raises:
            UnsafeInputError: a page that is no list, leads to another server, or pages without end.
            DriftError, NotCheckedError: as `commit`.
        """
        url: str | None = f"{self.place.url}/api/models/{repository}/tree/{commit}?recursive=true&expand=false"
        entries: list[Any] = []
        for _ in range(_MOST_PAGES):
            if url is None:
                return entries
            here = url
            page, following = self.asked(Subject(repository, commit), lambda here=here: self._json(here))  # type: ignore[misc]
            if not isinstance(page, list):
                raise UnsafeInputError("the hub's list of files is no list", where=self.place.shown)
            entries += page
            url = following
        raise UnsafeInputError(f"the hub lists {repository} without end", where=self.place.shown)

    def _json(self, url: str) -> tuple[Any, str | None]:
        """One answer and the address at which it goes on."""
        from huggingface_hub.utils import get_session, hf_raise_for_status

        where = self.place.shown
        with get_session().stream("GET", url, headers=self.headers(), timeout=SECONDS) as response:
            hf_raise_for_status(_head(response))
            body = bytearray()
            for piece in response.iter_bytes():
                body += piece
                if len(body) > _LARGEST_PAGE:
                    raise UnsafeInputError(f"an answer is larger than {_LARGEST_PAGE} bytes", where=where)
            following = response.links.get("next", {}).get("url")
        try:
            data = parse_json(bytes(body), where=where)
        except InvalidDocumentError as error:
            raise UnsafeInputError("the hub's answer is not JSON", where=where, why=error.what) from error
        if following is None:
            return data, None
        following = self._led(url, following)
        if urlsplit(following)[:2] != urlsplit(self.place.url)[:2]:
            raise UnsafeInputError("the hub's list of files goes on at another server", where=where)
        return data, following

    def _led(self, url: str, target: str) -> str:
        """The address that an answer from `url` leads to; raises UnsafeInputError where it is none."""
        try:
            led = urljoin(url, target)
            urlsplit(led)
        except ValueError as error:
            raise UnsafeInputError("the hub leads to something that is no address", where=self.place.shown) from error
        return led

    def headers(self) -> dict[str, str]:
        """The headers of the hub's own client, with the user's token where there is one."""
        from huggingface_hub.utils import build_hf_headers

        headers: dict[str, str] = build_hf_headers(library_name="penny-reproducer", library_version=__version__)
        return headers

    @contextmanager
    def opened(self, repository: str, commit: str, path: str, *, offset: int) -> Iterator["httpx2.Response"]:
        """The answer that carries a file from `offset` on; the token goes to the hub alone, not where it redirects to.

        Raises:
            httpx2.HTTPError: as the hub's client says it; `asked` turns it into an error of ours.
            UnsafeInputError: a redirect away from https, or too many.
        """
        from huggingface_hub.utils import get_session, hf_raise_for_status

        try:
            url = f"{self.place.url}/{repository}/resolve/{commit}/{quote(path)}"
        except UnicodeEncodeError as error:
            raise UnsafeInputError(f"the name {shown(path)} is refused", where=self.place.shown) from error
        headers = {**self.headers(), "accept-encoding": "identity"}
        if offset:
            headers["range"] = f"bytes={offset}-"
        for _ in range(_MOST_REDIRECTS):
            with get_session().stream("GET", url, headers=headers, timeout=SECONDS, follow_redirects=False) as response:
                if not response.has_redirect_location:
                    hf_raise_for_status(_head(response))
                    yield response
                    return
                before, url = urlsplit(url), self._led(url, response.headers["location"])
            after = urlsplit(url)
            if after.scheme != before.scheme and (before.scheme, after.scheme) != ("http", "https"):
                raise UnsafeInputError(
                    f"a redirect from {before.scheme} to {shown(after.scheme)} is refused", where=self.place.shown
                )
            if after[:2] != before[:2]:
                headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
        raise UnsafeInputError(f"too many redirects for {shown(path)}", where=self.place.shown)

    def asked(self, subject: Subject, call: Callable[[], T]) -> T:
        """The answer to one question, asked again while the fault may pass; raises as `commit`."""
        import httpx2
        from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

        failures = 0
        while True:
            try:
                return call()
            except (HfHubHTTPError, OfflineModeIsEnabled, httpx2.HTTPError, httpx2.InvalidURL) as error:
                fault = fault_of(error, subject, self.place)
                failures += 1
                self.after(fault.error, failures, passing=fault.passing, wait=fault.wait)

    def after(self, error: Exception, failures: int, *, passing: bool, wait: float | None) -> None:
        """Wait before the next try, or raise the error where another try makes no sense or was asked for too late.

        Raises:
            NotCheckedError: the run is being stopped.
        """
        patience = self.place.patience
        if not passing or failures >= patience.attempts or (wait or 0.0) > LONGEST_WAIT:
            raise error from None  # the client's own error names signed addresses
        pause = max(wait or 0.0, patience.wait(failures, None))
        if pause > 1:
            self.reporter.note(f"{self.place.shown}: asking again in {pause:.0f} seconds")
        if self.stopped.wait(pause):
            raise NotCheckedError("stopped before it was fetched")


def _head(response: "httpx2.Response") -> "httpx2.Response":
    """An answer without its body: the hub's client reads a refusal whole, however long, and trusts its shape."""
    import httpx2

    of_body = ("content-encoding", "content-length", "transfer-encoding")
    headers = [(name, value) for name, value in response.headers.raw if name.decode("latin-1").lower() not in of_body]
    return httpx2.Response(response.status_code, headers=headers, request=response.request)
