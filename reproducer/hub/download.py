"""One file from a hub into its cache: resumed where an earlier penny stopped, verified before it gets its name."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.documents.base import shown
from reproducer.errors import DriftError, UnsafeInputError
from reproducer.hub.asking import Hub
from reproducer.hub.cache import CachedRepository
from reproducer.hub.checking import fault_of
from reproducer.hub.faults import Subject
from reproducer.hub.faults import fault_of as refusal_of
from reproducer.hub.listing import HubFile
from reproducer.store.durable import sync_file
from reproducer.store.exclusive import exclusive
from reproducer.store.faults import disk_fault, writing

if TYPE_CHECKING:
    import httpx2

_PIECE = 1 << 18
_PARTIAL_CONTENT, _RANGE_REFUSED = 206, 416
_REAL_PROGRESS = 1 << 20
_RANGE = re.compile(r"bytes ([0-9]{1,16})-[0-9]{1,16}/([0-9]{1,16}|\*)")
LARGEST_BY_HTTP = 50 * 1000**3


@dataclass(frozen=True)
class Download:
    """Brings files of one commit into the cache; safe to use from threads.

    Attributes:
        advance: called with the bytes that came nearer (negative where a file had to begin again).
    """

    hub: Hub
    repository: CachedRepository
    commit: str
    advance: Callable[[int], None] = lambda _: None

    def bring(self, file: HubFile) -> tuple[Path, int]:
        """The verified file in the cache, and the bytes that were transferred for it now.

        Raises:
            DriftError: the hub serves other bytes, or no such file; nothing of them is kept.
            NotCheckedError: gated, too many requests, no connection (what came so far is kept), a full disk.
        """
        hub, there = self.hub, self.repository
        what = f"it fetches {shown(file.path)}"
        with exclusive(there.lock(file), reporter=hub.reporter, what=what, stop=hub.stopped):
            if (path := there.present(file, self.commit)) is not None and self._holds(file, path):
                self.advance(file.size)
                return path, 0
            with writing(there.cache, what="the cache"):
                there.blob(file).parent.mkdir(parents=True, exist_ok=True)
            received = self._by_client(file) if file.size > LARGEST_BY_HTTP else self._downloaded(file)
            there.link(file, self.commit)
            return there.blob(file), received

    def _holds(self, file: HubFile, path: Path) -> bool:
        """Whether a file in the cache is whole; a damaged one is set aside."""
        if (fault := fault_of(file, path)) is None:
            return True
        aside = self.repository.set_aside(path)
        self.hub.reporter.note(f"{path} is damaged ({fault}); it was set aside as {aside.name} and is fetched again")
        return False

    def _downloaded(self, file: HubFile) -> int:
        """Download until the bytes are whole and right; the bytes that came."""
        partial, received, failures = self.repository.partial(file), 0, 0
        while True:
            offset = self._offset(partial, file)
            self.advance(offset)
            while (done := self._size(partial)) < file.size or not partial.exists():
                came, failures = self._once(file, partial, done, failures)
                received += came
            if (fault := fault_of(file, partial)) is None:
                break
            partial.unlink()
            self.advance(-file.size)
            if not offset:
                raise DriftError(
                    f"{self.repository.repository}: {file.path} is not the file that was expected",
                    where=self.hub.place.shown,
                    why=fault,
                    todo="the hub serves other bytes under this revision; nothing of them was kept",
                )
            self.hub.reporter.note(f"{file.path}: what an earlier run began does not fit; it is fetched from its start")
        with writing(self.repository.cache, what=file.path, needed=file.size):
            sync_file(partial)
            partial.replace(self.repository.blob(file))
        return received

    def _once(self, file: HubFile, partial: Path, offset: int, failures: int) -> tuple[int, int]:
        """One answer written behind `offset`; the bytes that came, and how often in a row none did."""
        import httpx2
        from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

        try:
            with self.hub.opened(self.repository.repository, self.commit, file.path, offset=offset) as response:
                self._write(file, partial, offset, response)
        except (HfHubHTTPError, OfflineModeIsEnabled, httpx2.HTTPError, httpx2.InvalidURL) as error:
            if isinstance(error, HfHubHTTPError) and error.response.status_code == _RANGE_REFUSED and offset:
                self._forget(partial)
                self.advance(-offset)
                return 0, failures + 1
            came = max(self._size(partial) - offset, 0)
            failures = 0 if came >= _REAL_PROGRESS else failures
            fault = refusal_of(error, Subject(self.repository.repository, self.commit, file.path), self.hub.place)
            self.hub.after(fault.error, failures + 1, passing=fault.passing, wait=fault.wait)
            return came, failures + 1
        return max(self._size(partial) - offset, 0), 0

    def _write(self, file: HubFile, partial: Path, offset: int, response: "httpx2.Response") -> None:
        """Append an answer; one that begins elsewhere replaces what was there."""
        import httpx2

        begin = 0
        if response.status_code == _PARTIAL_CONTENT:
            match = _RANGE.fullmatch(response.headers.get("content-range", ""))
            if match is None or int(match[1]) != offset:
                self._forget(partial)
                self.advance(-offset)
                raise httpx2.ReadError("another range than the one that was asked for")
            begin = offset
        cache = self.repository.cache
        with writing(cache, what=file.path, needed=file.size):
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            with writing(cache, what=file.path, needed=file.size):
                os.ftruncate(handle, begin)
                os.lseek(handle, begin, os.SEEK_SET)
            self.advance(begin - offset)
            done = begin
            for piece in response.iter_raw(_PIECE):
                done += len(piece)
                if done > file.size:
                    self._forget(partial)
                    raise UnsafeInputError(
                        f"{file.path} does not end after {file.size} bytes", where=self.hub.place.shown
                    )
                with writing(cache, what=file.path, needed=file.size):
                    view = memoryview(piece)
                    while view:
                        view = view[os.write(handle, view) :]
                self.advance(len(piece))
                if self.hub.stopped.is_set():
                    raise httpx2.ReadError("stopped")
            if done < file.size:
                raise httpx2.ReadError("it ended early")
        finally:
            os.close(handle)

    def _by_client(self, file: HubFile) -> int:
        """Files that a hub gives through Xet only: its client brings them, and they are verified all the same."""
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
        from huggingface_hub.utils import disable_progress_bars

        repository = self.repository.repository
        disable_progress_bars()  # penny shows its own

        def bring() -> str:
            try:
                return hf_hub_download(
                    repository,
                    file.path,
                    revision=self.commit,
                    cache_dir=self.repository.cache,
                    endpoint=self.hub.place.url,
                    force_download=True,
                )
            except HfHubHTTPError:
                raise
            except LocalEntryNotFoundError as error:  # what happened stands behind it
                raise error.__cause__ or error from None
            except OSError as error:
                raise disk_fault(error, self.repository.cache, what=file.path, needed=file.size) from error

        self.hub.asked(Subject(repository, self.commit, file.path), bring)
        path = self.repository.present(file, self.commit)
        fault = "got no file" if path is None else fault_of(file, path)
        if path is None or fault is not None:
            if path is not None:
                self.repository.set_aside(path)
            raise DriftError(
                f"{repository}: {file.path} is not the file that was expected",
                where=self.hub.place.shown,
                why=fault or "",
            )
        self.advance(file.size)
        return file.size

    def _offset(self, partial: Path, file: HubFile) -> int:
        """How far an earlier run came; what is no partial download is removed."""
        if partial.is_symlink() or self._size(partial) > file.size:
            self._forget(partial)
        return self._size(partial)

    @staticmethod
    def _size(partial: Path) -> int:
        try:
            return partial.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            return 0

    def _forget(self, partial: Path) -> None:
        with writing(self.repository.cache, what="the cache"):
            partial.unlink(missing_ok=True)
