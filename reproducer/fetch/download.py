"""One file from one place into the store: resumed, retried, verified while it is written."""

import hashlib
import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.documents.sources import Artefact
from reproducer.errors import DriftError, NotCheckedError
from reproducer.fetch.locate import path_of
from reproducer.fetch.simple import Candidate
from reproducer.fetch.web import Web, WebFaultError
from reproducer.progress import Reporter
from reproducer.store import Store, exclusive
from reproducer.store.faults import writing

if TYPE_CHECKING:
    import httpx

_PIECE = 1 << 18
_REAL_PROGRESS = 1 << 20
_PARTIAL_CONTENT = 206
_RANGE_REFUSED = 416
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,16})-([0-9]{1,16})/([0-9]{1,16}|\*)")


class MismatchError(Exception):
    """A candidate's bytes are not the artefact's.

    Attributes:
        got: what came instead, for a person.
    """

    def __init__(self, got: str) -> None:
        super().__init__(got)
        self.got = got


class NoBytesError(Exception):
    """A candidate could not be read to its end; the message says why."""


@dataclass
class _Partial:
    """A download as far as it got.

    Attributes:
        digest: over the bytes so far.
        done: bytes so far.
        received: bytes that came in this run.
        mixed: whether the bytes are from more than one answer.
    """

    path: Path
    digest: "hashlib._Hash"
    done: int = 0
    received: int = 0
    mixed: bool = False

    @property
    def note(self) -> Path:
        return self.path.with_name(f"{self.path.name}.json")

    def validator(self, url: str) -> str | None:
        """The strong validator under which this URL served the bytes so far, for If-Range."""
        try:
            said = json.loads(self.note.read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        fits = isinstance(said, dict) and said.get("url") == _url_key(url) and isinstance(said.get("validator"), str)
        return said["validator"] if fits else None

    def forget(self) -> None:
        """Remove the file and what is known about it."""
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


class Transfer:
    """Brings files of artefacts into a store; safe to use from threads.

    Args:
        store: where to.
        web: the client.
        reporter: is told of waiting.
        advance: called with the bytes that came nearer (negative where a download had to begin again).
    """

    def __init__(self, store: Store, web: Web, *, reporter: Reporter, advance: Callable[[int], None]) -> None:
        self._store = store
        self._web = web
        self._reporter = reporter
        self._advance = advance
        self._keep = True

    def bring(self, artefact: Artefact, candidate: Candidate) -> int:
        """Put the artefact's bytes into the store from one candidate.

        Returns:
            The bytes that were transferred now; 0 where another penny had brought the file meanwhile.

        Raises:
            MismatchError: it serves other bytes; nothing is kept.
            NoBytesError: it cannot be read; what came so far is kept for the next try.
            NotCheckedError: the disk is full or cannot be written (nothing is kept), or the client was stopped.
        """
        lock = self._store.lock_path(f"fetch-{artefact.sha256}")
        what = f"it fetches {artefact.filename}"
        with exclusive(lock, reporter=self._reporter, what=what, stop=self._web.stopped):
            if self._is_there(artefact):
                self._advance(artefact.size)
                return 0
            if candidate.url.startswith("file:"):
                return self._copy(artefact, path_of(candidate.url))
            return self._download(artefact, candidate.url)

    def _is_there(self, artefact: Artefact) -> bool:
        if not self._store.has(artefact.sha256):
            return False
        try:
            self._store.verified(artefact.sha256, artefact.size, what=artefact.filename)
        except DriftError:
            return False
        return True

    def _copy(self, artefact: Artefact, path: Path) -> int:
        if not path.is_file():
            raise NoBytesError("there is no such file")
        if not os.access(path, os.R_OK):
            raise NoBytesError("it cannot be read: no permission")
        try:
            self._store.add_file(path, sha256=artefact.sha256, size=artefact.size, what=artefact.filename)
        except DriftError as error:
            raise MismatchError(error.why.partition("got ")[2]) from error
        self._advance(artefact.size)
        return artefact.size

    def _download(self, artefact: Artefact, url: str) -> int:
        folder = self._store.root / "partial"
        try:
            with writing(folder, what=artefact.filename, needed=artefact.size):
                partial = self._continue(artefact)
                self._until_right(artefact, url, partial)
                self._store.adopt(partial.path, sha256=artefact.sha256, size=artefact.size)
                partial.note.unlink(missing_ok=True)
                return partial.received
        except MismatchError:
            self._forget(artefact)
            raise
        except NotCheckedError:
            # Where the disk is full, what other threads hold in part goes too; an interruption keeps it.
            self._keep = self._keep and self._web.stopped.is_set()
            if not self._keep:
                self._forget(artefact)
            raise

    def _until_right(self, artefact: Artefact, url: str, partial: _Partial) -> None:
        """Download to the end and compare; bytes of several answers that do not fit get one fresh try."""
        for last in (False, True):
            self._until_whole(artefact, url, partial)
            if partial.done == artefact.size and partial.digest.hexdigest() == artefact.sha256:
                return
            got, mixed = f"{partial.digest.hexdigest()} of {partial.done} bytes", partial.mixed
            self._begin_again(partial)
            if last or not mixed:
                raise MismatchError(got)

    def _forget(self, artefact: Artefact) -> None:
        with suppress(OSError):
            _Partial(self._store.root / "partial" / artefact.sha256, hashlib.sha256()).forget()

    def _continue(self, artefact: Artefact) -> _Partial:
        """The partial file of an earlier run with its bytes hashed, or an empty one."""
        partial = _Partial(self._store.root / "partial" / artefact.sha256, hashlib.sha256())
        if partial.path.is_symlink() or (partial.path.exists() and partial.path.stat().st_size > artefact.size):
            partial.forget()
        partial.path.touch(0o600)
        with partial.path.open("rb", buffering=0) as file:
            while piece := file.read(_PIECE):
                partial.digest.update(piece)
                partial.done += len(piece)
        partial.mixed = partial.done > 0
        self._advance(partial.done)
        return partial

    def _begin_again(self, partial: _Partial) -> None:
        self._advance(-partial.done)
        partial.note.unlink(missing_ok=True)
        os.truncate(partial.path, 0)
        partial.digest, partial.done, partial.mixed = hashlib.sha256(), 0, False

    def _until_whole(self, artefact: Artefact, url: str, partial: _Partial) -> None:
        """Ask until the answer came to its end; connections that break are taken up where they broke."""
        failures, mark = 0, partial.done
        while partial.done < artefact.size or artefact.size == 0:
            try:
                if self._one_answer(artefact, url, partial):
                    return
                fault = WebFaultError("the connection broke off", passing=True)
            except WebFaultError as error:
                fault = error
            if fault.status == _RANGE_REFUSED and partial.done:
                self._begin_again(partial)
                failures += 1
                continue
            failures = 1 if partial.done - mark >= _REAL_PROGRESS else failures + 1
            mark = partial.done
            if not fault.passing or failures >= self._web.patience.attempts:
                raise NoBytesError(fault.reason) from fault
            self._web.pause(failures, fault.wait)

    def _one_answer(self, artefact: Artefact, url: str, partial: _Partial) -> bool:
        """Read one answer into the partial file; whether it was whole, as far as its headers tell."""
        headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
        if partial.done:
            headers["Range"] = f"bytes={partial.done}-"
            validator = partial.validator(url)
            if validator:
                headers["If-Range"] = validator
        with self._web.stream(url, headers) as response:
            if partial.done and not self._goes_on(response, partial.done):
                self._begin_again(partial)
            partial.mixed = partial.done > 0
            if not partial.done and response.status_code == _PARTIAL_CONTENT:
                raise WebFaultError("answered with another part than was asked for", passing=True)
            length = _length(response)
            if length is not None and partial.done + length > artefact.size:
                raise MismatchError(f"{partial.done + length} bytes")
            _remember(partial.note, url, response)
            self._write(response, artefact, partial)
            closed = length is None and response.headers.get("Transfer-Encoding", "").lower() != "chunked"
            return partial.done == artefact.size or not closed

    def _goes_on(self, response: "httpx.Response", done: int) -> bool:
        """Whether the answer begins where the partial file ends."""
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
        return response.status_code == _PARTIAL_CONTENT and match is not None and int(match[1]) == done

    def _write(self, response: "httpx.Response", artefact: Artefact, partial: _Partial) -> None:
        with partial.path.open("ab", buffering=0) as file:
            for piece in response.iter_raw():
                if self._web.stopped.is_set():
                    raise NotCheckedError("stopped before it was fetched", where=artefact.filename)
                if partial.done + len(piece) > artefact.size:
                    raise MismatchError(f"more than {artefact.size} bytes")
                view = memoryview(piece)
                while view:
                    view = view[os.write(file.fileno(), view) :]
                partial.digest.update(piece)
                partial.done += len(piece)
                partial.received += len(piece)
                self._advance(len(piece))


def _length(response: "httpx.Response") -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if re.fullmatch(r"[0-9]{1,16}", text) else None


def _remember(note: Path, url: str, response: "httpx.Response") -> None:
    """Keep the validator of this answer, so that the rest is asked for only of the same file."""
    tag = response.headers.get("ETag", "")
    validator = tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")
    temporary = note.with_name(f"{note.name}.new")
    temporary.write_text(json.dumps({"url": _url_key(url), "validator": validator[:512]}), encoding="utf-8")
    temporary.replace(note)


def _url_key(url: str) -> str:
    """A URL as a digest: it may carry a password, which must not reach the disk."""
    return hashlib.sha256(url.encode("utf-8", "replace")).hexdigest()
