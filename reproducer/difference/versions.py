"""A version of a lock that git hands over as a file of its own: what lies beside the lock is not beside that file.

The lock pins every such file by digest, so it does not matter from where its bytes come: first the working tree, then
the versions that the repository's history has of that path.
"""

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from reproducer.documents.base import FileReference
from reproducer.documents.opened import LARGEST_FILE, OpenedLock, open_lock
from reproducer.errors import DriftError

_MOST_VERSIONS = 200
_PATIENCE_S = 20


@dataclass(frozen=True)
class VersionedLock(OpenedLock):
    """A lock whose files beside it are looked for in the history of the repository too."""

    def read(self, reference: FileReference) -> bytes:
        """The bytes of a file the lock names; raises as `OpenedLock.read` does."""
        try:
            return super().read(reference)
        except DriftError:
            data = _from_history(self.path, reference)
            if data is None:
                raise
            return data


def opened_version(file: Path, path: Path) -> VersionedLock:
    """The lock in `file`, as it lies or lay at `path`.

    Raises:
        UsageError: no such file.
        InvalidDocumentError: not a lock.
    """
    return VersionedLock(open_lock(file).lock, path.absolute())


def _from_history(lock: Path, reference: FileReference) -> bytes | None:
    """The version with the pinned digest among those that git has; None where it has none, or there is no git."""
    if reference.size > LARGEST_FILE:
        return None
    known = _git(
        lock.parent,
        "log",
        "--all",
        "--no-show-signature",
        "--format=%H",
        f"--max-count={_MOST_VERSIONS}",
        "--",
        reference.path,
    )
    for commit in (known or b"").decode("ascii", "replace").split():
        for which in (commit, f"{commit}^"):  # a commit that takes the file away still has it in its parent
            blob = f"{which}:./{reference.path}"
            size = _git(lock.parent, "cat-file", "-s", blob)
            if size is None or size.strip() != str(reference.size).encode():  # a blob of any size would be read whole
                continue
            data = _git(lock.parent, "cat-file", "blob", blob)
            if data is not None and hashlib.sha256(data).hexdigest() == reference.sha256:
                return data
    return None


def _git(folder: Path, *arguments: str) -> bytes | None:
    """What git says, or None."""
    try:
        done = subprocess.run(
            ["git", "--no-pager", "--literal-pathspecs", *arguments],  # noqa: S607  the git that called us, or the user's
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
            env={**os.environ, **_places(), "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _places() -> dict[str, str]:
    """What the git that called us says of its folders, relative to where we run and not to the lock's folder."""
    return {
        name: str(Path(value).absolute())
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")
        if (value := os.environ.get(name))
    }
