"""Where the bytes of a lock come from: each kind of source at one exact state.

Nothing here moves: versions with the digest of a file, commits with the hash of their tree, revisions by commit.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from reproducer.documents.base import (
    FileName,
    FileReference,
    Part,
    ProjectName,
    RelativePath,
    Sha256,
    Size,
    Version,
)
from reproducer.documents.urls import git_url

GitObject = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
GitUrl = Annotated[str, Field(max_length=2048), AfterValidator(git_url)]
HubRepository = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?/[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$", max_length=200
    ),
]
HubRevision = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class Artefact(Part):
    """One file of one release on a package index; which index served it is nobody's business but the digest's."""

    project: ProjectName
    version: Version
    filename: FileName
    sha256: Sha256
    size: Size


class SdistSource(Artefact):
    """A source distribution."""

    kind: Literal["sdist"] = "sdist"


class LocalSource(Part):
    """A source tree beside the lock: every file by path and digest, so nothing unlisted is built.

    Attributes:
        path: the source's folder, relative to the lock's.
        files: paths relative to the source's folder.
    """

    kind: Literal["local"] = "local"
    path: RelativePath
    files: tuple[FileReference, ...]


class WheelSource(Artefact):
    """A wheel that its publisher built: it is taken as it is, and nothing is built."""

    kind: Literal["wheel"] = "wheel"


class Submodule(Part):
    """One submodule at the commit that its parent's tree names, however deep it lies.

    Attributes:
        path: from the top of the outermost repository.
        url: absolute, as its parent's `.gitmodules` gives it; None where it leads to no public place.
    """

    path: RelativePath
    url: GitUrl | None = None
    commit: GitObject
    tree: GitObject


class LfsPointer(Part):
    """A file that the repository holds as a Git LFS pointer: the digest and size of what it stands for."""

    path: RelativePath
    sha256: Sha256
    size: Size


class GitSource(Part):
    """One commit of a git repository.

    Attributes:
        url: where it can be had; None for a repository that is known by its commit only, such as one on a disk.
        asked: sha256 of the branch or tag that the manifest named, which is no place for one here; a lock is kept as
            long as the manifest asks for the same. None where it named the commit.
        commit: full object name, SHA-1 or SHA-256.
        tree: object name of the commit's tree.
        subfolder: the folder in it that is built; None for the top.
        submodules: all of them, recursively.
        lfs: files that are pointers.
        changes: a patch of what a working tree held beside the commit, tracked and untracked; None for a clean one.
    """

    kind: Literal["git"] = "git"
    url: GitUrl | None = None
    asked: Sha256 | None = None
    commit: GitObject
    tree: GitObject
    subfolder: RelativePath | None = None
    submodules: tuple[Submodule, ...] = ()
    lfs: tuple[LfsPointer, ...] = ()
    changes: FileReference | None = None


class WheelMemberSource(Artefact):
    """A file inside a wheel."""

    kind: Literal["wheel-member"] = "wheel-member"
    member: RelativePath
    member_sha256: Sha256
    member_size: Size


class HubSource(Part):
    """One revision of a model repository on a Hugging Face hub; which endpoint serves it is nobody's business.

    Attributes:
        asked: sha256 of the branch or tag that the manifest named; a lock is kept as long as the manifest asks for the
            same. None where it named the commit.
    """

    kind: Literal["hub"] = "hub"
    repository: HubRepository
    asked: Sha256 | None = None
    revision: HubRevision


class FolderSource(Part):
    """A checkpoint that is known by the digests of its files only; whoever has the folder names it."""

    kind: Literal["folder"] = "folder"


ComponentSource = SdistSource | WheelSource | GitSource | LocalSource
CheckpointSource = WheelMemberSource | HubSource | FolderSource
