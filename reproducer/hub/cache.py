"""The hub's own cache on this disk: where its client keeps the bytes of a repository, and which of them may be used.

models--ORG--NAME/blobs/ENTITY              bytes by git object name, or by sha256 for files in LFS
models--ORG--NAME/snapshots/COMMIT/PATH     links to them
"""

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from reproducer.hub.listing import HubFile
from reproducer.store.faults import writing

ELSEWHERE = "name a folder on another disk with HF_HUB_CACHE or HF_HOME"


@dataclass(frozen=True)
class CachedRepository:
    """One repository in one cache."""

    cache: Path
    repository: str

    @property
    def folder(self) -> Path:
        """Its folder, as the hub's client names it."""
        from huggingface_hub.file_download import repo_folder_name

        return self.cache / repo_folder_name(repo_id=self.repository, repo_type="model")

    def blob(self, file: HubFile) -> Path:
        """Where its bytes belong."""
        return self.folder / "blobs" / file.entity

    def partial(self, file: HubFile) -> Path:
        """Where a download goes on that penny began."""
        return self.blob(file).with_name(f"{file.entity}.penny.incomplete")

    def lock(self, file: HubFile) -> Path:
        """What one penny holds while it brings the file."""
        return self.cache / ".locks" / self.folder.name / f"{file.entity}.penny.lock"

    def present(self, file: HubFile, commit: str) -> Path | None:
        """The regular file that holds its bytes, or should; None where there is none.

        A link counts where it leads to a file in the cache, and nowhere else.
        """
        root = os.path.realpath(self.cache)
        for path in (self.blob(file), self.folder / "snapshots" / commit / file.path):
            real = Path(os.path.realpath(path))
            if real.is_relative_to(root) and real.is_file():
                return real
        return None

    def set_aside(self, path: Path) -> Path:
        """Give a damaged file another name, so that nobody is served it; the new name."""
        aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.damaged")
        with writing(self.cache, what="the damaged file"):
            path.rename(aside)
        return aside

    def link(self, file: HubFile, commit: str) -> None:
        """Show a downloaded file in the commit's snapshot, as other users of the cache expect it."""
        place = self.folder / "snapshots" / commit / file.path
        target = os.path.relpath(self.blob(file), place.parent)
        with writing(self.cache, what="the cache's snapshot"):
            place.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                place.symlink_to(target)
                return
            if not place.exists() or place.is_symlink():  # a link to bytes that were set aside, or to others
                fresh = place.with_name(f".{secrets.token_hex(8)}.penny")
                fresh.symlink_to(target)
                fresh.replace(place)
