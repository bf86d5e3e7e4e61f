"""A locked checkpoint, from wherever it is: the store, a folder of the user's, the hub's cache, the hub."""

from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from reproducer.documents.lock import Checkpoint, CheckpointFile
from reproducer.documents.sources import HubSource
from reproducer.errors import NotCheckedError
from reproducer.hub.asking import Hub
from reproducer.hub.cache import ELSEWHERE, CachedRepository
from reproducer.hub.checking import Place, verified
from reproducer.hub.download import Download
from reproducer.hub.folders import verified_folder
from reproducer.hub.listing import HubFile, listing
from reproducer.hub.noted import note_files
from reproducer.hub.place import HubPlace
from reproducer.hub.presenting import files_of, origin_of, present, presented
from reproducer.hub.weights import SUFFIXES, check_content, check_names_of_weights
from reproducer.progress import Reporter
from reproducer.store import Store
from reproducer.store.faults import free_bytes
from reproducer.store.hashing import workers_here

_BRINGING = 6
_SPARE_BYTES = 16 << 20
_NAMED = 5


@dataclass(frozen=True)
class Brought:
    """What fetching checkpoints brought about.

    Attributes:
        folders: the folder with exactly the locked files, by the checkpoint's name.
        files: how many files were verified.
        downloaded: bytes that were transferred now.
        reused: files that were there already.
        unknown: checkpoints of which only the revision is known, by name: their bytes are there, and no lock says that
            they are the right ones.
    """

    folders: Mapping[str, Path] = field(default_factory=dict)
    files: int = 0
    downloaded: int = 0
    reused: int = 0
    unknown: tuple[str, ...] = ()


def fetch_checkpoints(
    checkpoints: Sequence[Checkpoint],
    store: Store,
    *,
    place: HubPlace,
    reporter: Reporter,
    offline: bool = False,
    folders: Mapping[str, Path] | None = None,
) -> Brought:
    """Have every file of these checkpoints verified and presented.

    Args:
        checkpoints: those whose files are taken as they are.
        store: where they are presented.
        reporter: is shown progress.
        place: the hub and its cache.
        offline: touch no network.
        folders: the user's own folders, by role; they are verified instead of anything being downloaded.

    Raises:
        DriftError: bytes are not those of the lock; the repository, its revision or a file has vanished.
        UnsafeInputError: weights that can carry code and that no manifest allowed, an unsound safetensors header.
        NotCheckedError: gated, too many requests, no connection, a full disk, or not there while offline.
    """
    done: dict[str, Path] = {}
    files = downloaded = reused = 0
    unknown: list[str] = []
    for checkpoint in checkpoints:
        own = (folders or {}).get(checkpoint.role)
        bringing = _Bringing(checkpoint, store, place, reporter, offline or place.offline)
        if checkpoint.files == "unknown":
            came, count = bringing.unlocked(own)
            unknown.append(checkpoint.name)
            files, downloaded = files + count, downloaded + came
            continue
        files += len(checkpoint.listed)
        folder = presented(store, checkpoint, reporter=reporter)
        if folder is not None and own is None:
            reused += len(checkpoint.listed)
            done[checkpoint.name] = folder
            continue
        places, came, whole = bringing.locked(own)
        bringing.check(places)
        done[checkpoint.name] = folder or present(store, checkpoint, places, reporter=reporter)
        downloaded, reused = downloaded + came, reused + whole
    return Brought(done, files, downloaded, reused, tuple(unknown))


@dataclass(frozen=True)
class _Bringing:
    """One checkpoint on its way."""

    checkpoint: Checkpoint
    store: Store
    place: HubPlace
    reporter: Reporter
    offline: bool

    def locked(self, own: Path | None) -> tuple[dict[str, Path], int, int]:
        """Where every locked file lies, verified; the bytes that were transferred, the files that were there."""
        checkpoint = self.checkpoint
        files = files_of(checkpoint)
        check_names_of_weights((file.path for file in files), checkpoint.pickles or (), where=checkpoint.name)
        if own is not None:
            return verified_folder(own, files, name=checkpoint.name, reporter=self.reporter), 0, len(files)
        if not isinstance(checkpoint.source, HubSource):
            raise NotCheckedError(
                f"nothing says where checkpoint {checkpoint.name} is",
                why="the lock knows it by its files only",
                todo=f"name the folder: --checkpoint {checkpoint.role}=DIR",
            )
        return self._from_hub(checkpoint.source, files)

    def unlocked(self, own: Path | None) -> tuple[int, int]:
        """Bring what the hub has at the locked revision and note its digests down for the next `penny lock`."""
        checkpoint, source = self.checkpoint, self.checkpoint.source
        if own is not None or not isinstance(source, HubSource):
            raise NotCheckedError(
                f"no folder can be held against checkpoint {checkpoint.name}",
                where=origin_of(checkpoint),
                why="the lock pins its revision only, so nothing says what its bytes are",
                todo="fetch it from the hub, then lock again",
            )
        if self.offline:
            raise NotCheckedError(
                f"checkpoint {checkpoint.name} cannot be fetched offline",
                where=origin_of(checkpoint),
                why="the lock pins its revision only, so what belongs to it has to be asked for",
            )
        hub = Hub(self.place, self.reporter)
        every = listing(hub, source.repository, source.revision)
        files = tuple(file for file in every if not file.path.lower().endswith(SUFFIXES))
        if left := len(every) - len(files):
            self.reporter.note(f"checkpoint {checkpoint.name}: {left} files that can carry code are left out")
        places, came, _ = self._from_hub(source, files)
        self.check(places)
        digests = [self._digest(file, places[file.path]) for file in files]
        note_files(self.store, source, digests)
        self.reporter.note(
            f"checkpoint {checkpoint.name}: the lock pins its revision only; its {len(files)} files are what the hub "
            "says, and `penny lock` completes the lock with them"
        )
        return came, len(files)

    def check(self, places: Mapping[str, Path]) -> None:
        """Check headers and content before anything loads them."""
        allowed = self.checkpoint.pickles or ()
        for name, path in places.items():
            check_content(path, name, allowed=name in allowed)

    @staticmethod
    def _digest(file: HubFile, path: Path) -> CheckpointFile:
        from reproducer.store.hashing import hash_file

        return CheckpointFile(path=file.path, sha256=hash_file(path)[0], size=file.size, blob=file.blob)

    def _from_hub(self, source: HubSource, files: Sequence[HubFile]) -> tuple[dict[str, Path], int, int]:
        """What the cache has is verified; the rest is brought."""
        repository = CachedRepository(self.place.cache, source.repository)
        found = [(file, repository.present(file, source.revision)) for file in files]
        there = [Place(file, path) for file, path in found if path is not None]
        faults = verified(there, reporter=self.reporter)
        places = {each.file.path: each.path for each in there if each.file.path not in faults}
        missing = [file for file in files if file.path not in places]
        if missing and self.offline:
            raise NotCheckedError(
                f"{len(missing)} files of checkpoint {self.checkpoint.name} are not in the hub's cache",
                where=str(self.place.cache),
                why=_told(missing, faults),
                todo="run `penny fetch` with a network first, or name a folder with --checkpoint",
            )
        if not missing:
            return places, 0, len(places)
        whole = len(places)
        hub = Hub(self.place, self.reporter)
        self._check_room(missing)
        total = sum(file.size for file in missing)
        with self.reporter.task(f"fetching {self.checkpoint.name}", total, "bytes") as task:
            guard = Lock()

            def advance(amount: int) -> None:
                with guard:
                    task.advance(amount)

            download = Download(hub, repository, source.revision, advance)
            received = self._all(hub, download, missing, places)
        return places, received, whole

    def _check_room(self, missing: Sequence[HubFile]) -> None:
        needed = sum(file.size for file in missing)
        cache = self.place.cache
        root = next(each for each in (cache, *cache.parents) if each.exists())
        free = free_bytes(root)
        if free is not None and needed + _SPARE_BYTES > free:
            raise NotCheckedError(
                "the disk is full",
                where=str(cache),
                why=f"checkpoint {self.checkpoint.name} needs {needed} bytes and {_SPARE_BYTES} to spare, "
                f"{free} are free",
                todo=f"make room, or {ELSEWHERE}",
            )

    @staticmethod
    def _all(hub: Hub, download: Download, missing: Sequence[HubFile], places: dict[str, Path]) -> int:
        """Bring files in threads, the large ones first; the first error ends the others."""
        ordered = sorted(missing, key=lambda file: -file.size)
        with ThreadPoolExecutor(min(_BRINGING, workers_here() * 2), thread_name_prefix="hub") as pool:
            futures = {file.path: pool.submit(download.bring, file) for file in ordered}
            try:
                for future in wait(futures.values(), return_when=FIRST_EXCEPTION).done:
                    future.result()
                results = {path: future.result() for path, future in futures.items()}
            except BaseException:
                hub.stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        places.update({path: result[0] for path, result in results.items()})
        return sum(result[1] for result in results.values())


def _told(missing: Sequence[HubFile], faults: Mapping[str, str]) -> str:
    told = [f"{file.path}: {faults.get(file.path, 'not there')}" for file in missing[:_NAMED]]
    return "; ".join(told) + (f"; and {len(missing) - _NAMED} more" if len(missing) > _NAMED else "")
