"""Hashing of files and trees."""

import hashlib
import os
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.canonical import content_digest
from reproducer.documents.base import FileReference
from reproducer.errors import NotCheckedError, UnsafeInputError
from reproducer.store.hashing import LinkReference, hash_file, hash_tree, tree_digest

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\\\x7f", min_codepoint=32), min_size=1, max_size=12)
PATHS = st.lists(
    NAMES.filter(lambda name: name not in (".", "..") and not name.startswith("-") and len(name.encode()) < 200),
    min_size=1,
    max_size=3,
).map("/".join)


@settings(max_examples=60, deadline=None)
@given(files=st.dictionaries(PATHS, st.binary(max_size=3000), max_size=12), workers=st.integers(1, 4))
def test_every_file_of_a_tree_has_its_digest_and_size(files: dict[str, bytes], workers: int) -> None:
    """Digests, sizes and order do not depend on how many threads work or in which order files were written."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        written: dict[str, bytes] = {}
        for path, data in files.items():
            target = root / path
            if any(parent.is_file() for parent in target.parents if parent != root) or target.is_dir():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            written[path] = data
        got = hash_tree(root, workers=workers)
    expected = {path: (hashlib.sha256(data).hexdigest(), len(data)) for path, data in written.items()}
    assert {path: (reference.sha256, reference.size) for path, reference in got.items()} == expected
    assert list(got) == sorted(got)
    digest = tree_digest(got)
    assert digest.sha256 == content_digest({path: sha for path, (sha, _) in expected.items()})
    assert (digest.files, digest.bytes) == (len(expected), sum(size for _, size in expected.values()))


@pytest.mark.parametrize("size", [0, 1, 262143, 262144, 1048575, 1048576, 1048577, 3 * 1048576 + 5])
def test_sizes_around_the_pieces(tmp_path: Path, size: int) -> None:
    """Small files are read at once and large ones in pieces; both give the digest of all bytes."""
    data = os.urandom(size)
    path = tmp_path / "file"
    path.write_bytes(data)
    seen: list[int] = []
    assert hash_file(path, progress=seen.append) == (hashlib.sha256(data).hexdigest(), size)
    assert sum(seen) == size


def test_links_are_recorded_and_never_followed(tmp_path: Path) -> None:
    """A link out of the tree stands as a link with its target's text; what it points to is not read."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "folder").symlink_to(outside)
    (tree / "file").symlink_to(outside / "secret")
    (tree / "nowhere").symlink_to("missing")
    got = hash_tree(tree)
    assert sorted(got) == ["file", "folder", "nowhere"]
    assert all(isinstance(reference, LinkReference) for reference in got.values())
    link = got["nowhere"]
    assert isinstance(link, LinkReference)
    assert (link.target, link.size, link.sha256) == ("missing", 7, hashlib.sha256(b"missing").hexdigest())


def test_a_file_with_a_links_text_is_another_tree(tmp_path: Path) -> None:
    """A link and a file that holds the text of its target have different tree digests."""
    for name in ("link", "file"):
        (tmp_path / name).mkdir()
    (tmp_path / "link" / "a").symlink_to("target")
    (tmp_path / "file" / "a").write_text("target")
    one, other = hash_tree(tmp_path / "link"), hash_tree(tmp_path / "file")
    assert one["a"].sha256 == other["a"].sha256
    assert tree_digest(one).sha256 != tree_digest(other).sha256
    assert tree_digest(one).files == 0


def test_what_is_neither_file_nor_folder_nor_link_is_refused(tmp_path: Path) -> None:
    """A pipe would block and a socket cannot be read: both are refused by name."""
    tree = tmp_path / "t"
    tree.mkdir()
    os.mkfifo(tree / "pipe")
    with pytest.raises(UnsafeInputError, match="pipe"):
        hash_tree(tree)
    with pytest.raises(UnsafeInputError, match="not a regular file"):
        hash_file(tree / "pipe")
    (tree / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(tree)
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        with pytest.raises(UnsafeInputError, match="socket"):
            hash_tree(tree)


@pytest.mark.parametrize("name", [b"new\nline", b"back\\slash", b"\xff\xfe", b"-option"])
def test_names_that_no_document_carries_are_refused(tmp_path: Path, name: bytes) -> None:
    """Control characters, backslashes, bytes that are no text and leading dashes are refused, not mangled."""
    Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text("x")  # noqa: PTH118  bytes
    with pytest.raises(UnsafeInputError, match="cannot stand in a document"):
        hash_tree(tmp_path)


def test_a_final_link_is_not_opened(tmp_path: Path) -> None:
    """hash_file refuses a link in the last place."""
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match="symbolic links"):
        hash_file(tmp_path / "link")


def test_a_missing_tree_is_one_clear_error(tmp_path: Path) -> None:
    """A tree that is not there could not be checked."""
    with pytest.raises(NotCheckedError, match="cannot be read"):
        hash_tree(tmp_path / "missing")


def test_references_are_those_of_documents(tmp_path: Path) -> None:
    """What hash_tree returns passes a document's own validation."""
    (tmp_path / "a file.txt").write_bytes(b"abc")
    reference = hash_tree(tmp_path)["a file.txt"]
    assert FileReference.model_validate(reference.model_dump()) == reference
