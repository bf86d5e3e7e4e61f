"""Checkpoints of a hub: a revision as a commit, every file with size and digest, and no weights transferred.

What lies in LFS has its sha256 in the hub's list. What lies in git itself is small and has its git object name there;
it is fetched, held against that name, and hashed. Files that the lock has already under the same name are kept.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from reproducer.documents.base import parse_json, shown
from reproducer.documents.lock import Checkpoint, CheckpointFile
from reproducer.documents.manifest import CheckpointRequest, HubRequest
from reproducer.documents.sources import HubSource
from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError
from reproducer.git.references import asked, is_commit
from reproducer.hub.asking import Hub
from reproducer.hub.cache import CachedRepository
from reproducer.hub.checking import Place, verified
from reproducer.hub.download import Download
from reproducer.hub.listing import HubFile, ignored, listing
from reproducer.hub.noted import noted_files
from reproducer.hub.place import HubPlace
from reproducer.hub.presenting import files_of, presented
from reproducer.hub.references import (
    CONFIGS,
    LARGEST_CONFIG,
    check_locked,
    has_remote_code,
    references_in,
)
from reproducer.hub.weights import check_names_of_weights
from reproducer.locking.environments import EVERYTHING
from reproducer.locking.making import Making
from reproducer.store.hashing import hash_file

_LARGEST_IN_GIT = 64 << 20
_BRINGING = 6


@dataclass(frozen=True)
class HubCheckpoints:
    """The checkpoints of one manifest that come from a hub."""

    making: Making
    place: HubPlace

    def checkpoint(self, request: CheckpointRequest, source: HubRequest) -> Checkpoint:
        """One checkpoint; raises as `penny lock` does."""
        commit = self._commit(request, source)
        locked = HubSource(repository=source.repository, asked=asked(source.revision), revision=commit)
        files: tuple[CheckpointFile, ...] | Literal["unknown"]
        if source.digests == "unknown":
            files = self._noted(request, source, locked)
        elif self._offline:
            files = self._kept(request, source, locked)
        else:
            files = self._listed(request, source, locked)
        pickles = () if files == "unknown" else self._pickles(request, source, files)
        checkpoint = Checkpoint(
            name=request.name,
            role=request.role,
            source=locked,
            trust_remote_code=request.trust_remote_code,
            pickles=pickles or None,
            files=files,
        )
        self._check_references(request, checkpoint)
        return checkpoint

    def config_of(self, checkpoint: Checkpoint) -> dict[str, Any] | None:
        """The `config.json`: empty where there is none, None where nobody knows the files."""
        if checkpoint.files == "unknown":
            return None
        data = self._configs(checkpoint, ("config.json",)).get("config.json")
        if data is None:
            if any(file.path == "config.json" for file in checkpoint.listed):
                raise NotCheckedError(
                    f"the config of checkpoint {checkpoint.name} is not at hand",
                    why="neither the store nor the hub's cache has it",
                    todo="run without --offline",
                )
            return {}
        content = parse_json(data, where=f"{checkpoint.name}: config.json", limit=LARGEST_CONFIG)
        return content if isinstance(content, dict) else {}

    @property
    def _offline(self) -> bool:
        return self.making.offline or self.place.offline

    @property
    def _hub(self) -> Hub:
        return Hub(self.place, self.making.reporter)

    def _at(self, request: CheckpointRequest) -> str:
        return f"{self.making.where}, checkpoint {request.name}"

    def _commit(self, request: CheckpointRequest, source: HubRequest) -> str:
        """The lock's commit as long as the manifest asks for the same; else the one that its revision is now."""
        before = self._before(request)
        kept = None if before is None or {EVERYTHING, request.name} & self.making.upgrade else _source(before)
        if kept is not None and kept.asked is not None and kept.asked == asked(source.revision):
            if self.making.check:
                self._tell_moved(request, source, kept.revision)
            return kept.revision
        if kept is not None and kept.revision == source.revision:
            return kept.revision
        if not self._offline:
            return self._hub.commit(source.repository, source.revision)
        if is_commit(source.revision):
            return source.revision
        raise NotCheckedError(
            f"{shown(source.revision)} is a branch or a tag, and only the hub says which commit it is",
            where=self._at(request),
            why="no network is touched",
            todo="name a full commit, or run without --offline",
        )

    def _tell_moved(self, request: CheckpointRequest, source: HubRequest, kept: str) -> None:
        """Say where the manifest's name is another commit by now; the lock stays."""
        name, note = shown(source.revision), self.making.reporter.note
        if self._offline:
            note(f"checkpoint {request.name}: whether {name} still is the locked commit was not asked: no network")
        elif (now := self._hub.commit(source.repository, source.revision)) != kept:
            note(
                f"checkpoint {request.name}: {name} is commit {now} now; the lock keeps {kept}, "
                f"and `penny lock --upgrade {request.name}` takes the other one"
            )

    def _before(self, request: CheckpointRequest, locked: HubSource | None = None) -> Checkpoint | None:
        """The checkpoint of the lock that is there, where it comes from the same repository (and revision)."""
        before = self.making.previous.checkpoint(request.name)
        if before is None or not isinstance(before.source, HubSource) or not isinstance(request.source, HubRequest):
            return None
        if locked is not None and before.source.revision != locked.revision:
            return None
        return before if before.source.repository == request.source.repository else None

    def _noted(
        self, request: CheckpointRequest, source: HubRequest, locked: HubSource
    ) -> tuple[CheckpointFile, ...] | Literal["unknown"]:
        """What `penny fetch` found out about the revision, or what the lock knows by now; else nothing."""
        before = self._before(request, locked)
        known = noted_files(self.making.artefacts.store, locked) or (before.listed if before else ())
        files = tuple(file for file in known if not ignored(file.path, source.ignore))
        if not files:
            self.making.reporter.note(
                f"checkpoint {request.name}: revision only, digests unknown; `penny fetch` and `penny lock` complete it"
            )
        return files or "unknown"

    def _pickles(
        self, request: CheckpointRequest, source: HubRequest, files: Sequence[CheckpointFile]
    ) -> tuple[str, ...]:
        """The files that may be pickles, by the manifest's word; any other one is refused."""
        paths = {file.path for file in files}
        if not paths:
            raise UnsafeInputError(f"{source.repository} holds no file that is not ignored", where=self._at(request))
        if gone := sorted({*source.pickles} - paths):
            raise DriftError(f"`pickles` names {shown(gone[0])}, which is not there", where=self._at(request))
        check_names_of_weights(paths, source.pickles, where=self._at(request))
        return tuple(sorted(source.pickles))

    def _kept(self, request: CheckpointRequest, source: HubRequest, locked: HubSource) -> tuple[CheckpointFile, ...]:
        before = self._before(request, locked)
        if before is None or before.files == "unknown":
            raise NotCheckedError(
                f"files and digests of {source.repository} are what only the hub knows",
                where=self._at(request),
                why="no network is touched",
                todo="run without --offline",
            )
        return tuple(file for file in before.listed if not ignored(file.path, source.ignore))

    def _listed(self, request: CheckpointRequest, source: HubRequest, locked: HubSource) -> tuple[CheckpointFile, ...]:
        """Every file by digest; those in git that the lock does not have are fetched and hashed."""
        files = listing(self._hub, source.repository, locked.revision, ignore=source.ignore)
        before = self._before(request)
        known = {(file.path, file.blob, file.size): file.sha256 for file in (before.listed if before else ())}
        digests = {file.path: file.sha256 or known.get((file.path, file.blob, file.size)) for file in files}
        missing = [file for file in files if digests[file.path] is None]
        for file in missing:
            if file.size > _LARGEST_IN_GIT:
                raise UnsafeInputError(
                    f"{shown(file.path)} has {file.size} bytes and no sha256 in the hub's list",
                    where=self._at(request),
                    todo="leave it out with `ignore`",
                )
        check_names_of_weights((file.path for file in files), source.pickles, where=self._at(request))
        for file, path in zip(missing, self._brought(locked, missing), strict=True):
            digests[file.path] = hash_file(path)[0]
        return tuple(
            CheckpointFile(path=file.path, sha256=digests[file.path] or "", size=file.size, blob=file.blob)
            for file in files
        )

    def _brought(self, source: HubSource, files: Sequence[HubFile]) -> list[Path]:
        """Files of a commit in the hub's cache, verified, in their order."""
        if not files:
            return []
        hub = self._hub
        total = sum(file.size for file in files)
        with self.making.reporter.task(f"small files of {source.repository}", total, "bytes") as task:
            repository = CachedRepository(self.place.cache, source.repository)
            download = Download(hub, repository, source.revision, task.advance)
            with ThreadPoolExecutor(_BRINGING, thread_name_prefix="hub") as pool:
                futures = [pool.submit(download.bring, file) for file in files]
                try:
                    return [future.result()[0] for future in futures]
                except BaseException:
                    hub.stopped.set()
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise

    def _check_references(self, request: CheckpointRequest, checkpoint: Checkpoint) -> None:
        """Refuse what would be opened from somewhere that is not locked; say which code is run."""
        making = self.making
        configs = self._configs(checkpoint, CONFIGS)
        locked = [each.source.repository for each in making.manifest.checkpoints if isinstance(each.source, HubRequest)]
        check_locked(references_in(configs, name=request.name), locked, where=self._at(request))
        code = [file.path for file in checkpoint.listed if file.path.endswith(".py")]
        if checkpoint.trust_remote_code:
            files = ", ".join(code) or "none of its own"
            making.reporter.note(
                f"checkpoint {request.name}: trust_remote_code is on; Python files that are run: {files}"
            )
        elif has_remote_code(configs, name=request.name):
            making.reporter.note(f"checkpoint {request.name}: its config names code, and trust_remote_code is off")

    def _configs(self, checkpoint: Checkpoint, names: Sequence[str]) -> dict[str, bytes]:
        """The bytes of the configs that are listed: from the store, the hub's cache, or the hub."""
        source = checkpoint.source
        if checkpoint.files == "unknown" or not isinstance(source, HubSource):
            return {}
        files = [file for file in files_of(checkpoint) if file.path in names]
        for file in files:
            if file.size > LARGEST_CONFIG:
                raise UnsafeInputError(f"{file.path} is larger than {LARGEST_CONFIG} bytes", where=checkpoint.name)
        repository = CachedRepository(self.place.cache, source.repository)
        places = [Place(f, path) for f in files if (path := repository.present(f, source.revision)) is not None]
        faults = verified(places, reporter=self.making.reporter)
        found = {each.file.path: each.path for each in places if each.file.path not in faults}
        missing = [file for file in files if file.path not in found]
        if missing and self._offline:
            folder = presented(self.making.artefacts.store, checkpoint, reporter=self.making.reporter)
            found.update({file.path: folder / file.path for file in missing} if folder is not None else {})
            if folder is None:
                self.making.reporter.note(
                    f"checkpoint {checkpoint.name}: what its configs name was not checked, for they are not at hand"
                )
        elif missing:
            found.update(zip((file.path for file in missing), self._brought(source, missing), strict=True))
        return {path: place.read_bytes() for path, place in sorted(found.items())}


def _source(checkpoint: Checkpoint) -> HubSource | None:
    return checkpoint.source if isinstance(checkpoint.source, HubSource) else None
