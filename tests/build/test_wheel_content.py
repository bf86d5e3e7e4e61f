"""Levels: what counts as the same wheel, and how a difference is named."""

import hashlib
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reproducer.binaries.wheel_content import (
    compare_output,
    compare_wheels,
    members,
    parse_members,
    read_wheel,
    render_members,
)
from reproducer.documents.base import FileReference
from reproducer.documents.built import lowest
from reproducer.documents.lock import Output
from reproducer.errors import InvalidDocumentError, UnsafeInputError

Write = Callable[[str, str, Mapping[str, bytes]], Path]
FILES = {"p/__init__.py": b"x = 1\n", "p.dist-info/top_level.txt": b"p\n"}


def repacked(path: Path, change: Callable[[zipfile.ZipInfo], None]) -> Path:
    """The same members in reverse order, each changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for info in reversed(old.infolist()):
            data = old.read(info)
            change(info)
            new.writestr(info, data)
    target = path.with_name("again.whl")
    target.write_bytes(out.getvalue())
    return target


def expected(path: Path) -> tuple[Output, dict[str, FileReference]]:
    """What a lock would expect of a wheel."""
    content = read_wheel(path)
    text = render_members(content.members)
    reference = FileReference(path="m.txt", sha256=hashlib.sha256(text).hexdigest(), size=len(text))
    output = Output(
        filename=path.name, sha256=content.sha256, size=content.size, content_sha256=content.digest, members=reference
    )
    return output, parse_members(text, where="m.txt")


def test_identical(wheel: Write) -> None:
    """The same file is bytes-identical, against another wheel and against the lock's output."""
    content = read_wheel(wheel("p", "1", FILES))
    assert compare_wheels(content, content) == ("bytes-identical", ())
    assert compare_output(*expected(wheel("p", "1", FILES)), content) == ("bytes-identical", ())


def test_packing(wheel: Write) -> None:
    """Order, time and mode of archive entries leave the content identical, and the differences name what changed."""
    path = wheel("p", "1", FILES)

    def change(info: zipfile.ZipInfo) -> None:
        if info.filename == "p/__init__.py":
            info.external_attr = 0o640 << 16
            info.date_time = (2020, 1, 1, 0, 0, 0)

    again = read_wheel(repacked(path, change))
    level, differences = compare_wheels(read_wheel(path), again)
    assert level == "content-identical"
    assert [(each.where, each.reason, each.expected, each.got) for each in differences] == [
        ("p/__init__.py", "mode", "600", "640"),
        ("p/__init__.py", "time", "2024-01-01 00:00:00", "2020-01-01 00:00:00"),
    ]
    level, differences = compare_output(*expected(path), again)
    assert level == "content-identical"
    assert len(differences) == 1
    only_order = read_wheel(repacked(path, lambda _: None))
    level, differences = compare_wheels(read_wheel(path), only_order)
    assert level == "content-identical"
    assert "order" in differences[0].reason


def test_an_extra_line_is_named(wheel: Write) -> None:
    """The folder that became a top-level package is named from the lock's digests alone; RECORD is not blamed."""
    good = wheel("p", "1", FILES)
    lock = expected(good)
    old = read_wheel(good)
    got = read_wheel(wheel("p", "1", {**FILES, "p.dist-info/top_level.txt": b"out\np\n", "out/x.py": b""}))
    level, differences = compare_output(*lock, got)
    assert level == "inputs-identical"
    assert [(each.where, each.reason) for each in differences] == [
        ("out/x.py", "an extra member"),
        ("p.dist-info/top_level.txt", "got extra line 'out'"),
    ]
    assert compare_wheels(old, got)[1][1].reason == "got extra line 'out'"
    missing = compare_wheels(got, old)[1]
    assert [each.reason for each in missing] == ["a missing member", "got missing line 'out'"]


def test_record_counts_where_it_lies(wheel: Write) -> None:
    """A RECORD in another order is the same; one that contradicts its members is not."""
    path = wheel("p", "1", FILES)
    record = "p-1.dist-info/RECORD"
    with zipfile.ZipFile(path) as packed:
        rows = packed.read(record).decode().splitlines(keepends=True)
        rest = {name: packed.read(name) for name in packed.namelist() if name != record}

    def with_record(text: str) -> Path:
        target = path.with_name("r.whl")
        with zipfile.ZipFile(target, "w") as packed:
            for name, data in {**rest, record: text.encode()}.items():
                packed.writestr(name, data)
        return target

    assert compare_wheels(read_wheel(path), read_wheel(with_record("".join(reversed(rows)))))[0] == "content-identical"
    level, differences = compare_wheels(read_wheel(path), read_wheel(with_record("".join(rows[1:]))))
    assert level == "inputs-identical"
    assert [(each.where, each.reason) for each in differences] == [
        (record, "got extra line 'p/__init__.py: present but not listed'")
    ]


def test_build_paths(wheel: Write, tmp_path: Path) -> None:
    """A text member that names the folder it was built in is the same content from another folder."""
    contents = []
    for name in ("a", "longer/b"):
        folder = tmp_path / name
        path = wheel("p", "1", {"p/where.py": f"HERE = {str(folder)!r}\n".encode()})
        contents.append(read_wheel(path, build_paths=[folder]))
    assert contents[0].digest == contents[1].digest
    assert contents[0].sha256 != contents[1].sha256


def test_member_list_round_trip(wheel: Write) -> None:
    """The list reads back as it was written, sorted, and its errors name the line."""
    content = members(wheel("p", "1", {**FILES, "p/a  b.txt": b"spaces"}))
    text = render_members(content)
    assert parse_members(text, where="m.txt") == content
    lines = text.decode().splitlines(keepends=True)
    for bad, told in (
        ("".join(reversed(lines)), "line 2"),
        (lines[0] + lines[0], "line 2"),
        (lines[0].rstrip("\n"), "newline"),
        (lines[0].replace(lines[0].split("  ")[2], "../x\n"), "line 1: '../x' is not a plain path"),
        ("zz  1  x\n", "line 1"),
    ):
        with pytest.raises(InvalidDocumentError, match=told):
            parse_members(bad.encode(), where="m.txt")


def test_hostile_wheel(tmp_path: Path) -> None:
    """What is no wheel is an UnsafeInputError."""
    path = tmp_path / "x.whl"
    for data in (b"", b"PK\x05\x06" + bytes(10), b"no zip"):
        path.write_bytes(data)
        with pytest.raises(UnsafeInputError):
            read_wheel(path)


def test_levels() -> None:
    """The lowest of several levels counts."""
    assert lowest(["bytes-identical", "content-identical"]) == "content-identical"
    assert lowest([]) == "bytes-identical"


def _in_child(wheel: Path) -> tuple[str, int]:
    """What reading a wheel says in a process of its own, and how many MiB that process took at most."""
    program = (
        "import resource, sys\nfrom pathlib import Path\nfrom reproducer.binaries.wheel_content import read_wheel\n"
        "try:\n    print(read_wheel(Path(sys.argv[1])).digest)\n"
        "except Exception as error:\n    print(type(error).__name__)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(wheel)], capture_output=True, text=True, check=True)
    said, most = ran.stdout.split()
    return said, int(most)


@pytest.mark.parametrize(("piece", "packing"), [(bytes(1 << 20), 8), (os.urandom(1 << 20), 0)], ids=["bomb", "large"])
def test_large_wheel_is_read_in_little_memory(tmp_path: Path, piece: bytes, packing: int) -> None:
    """A wheel that holds hundreds of MiB, honest or a bomb, is never in memory whole."""
    wheel = tmp_path / "p-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", packing) as out, out.open("p/weights.bin", "w") as member:
        for _ in range(300):
            member.write(piece)
    said, most = _in_child(wheel)
    assert said == ("UnsafeInputError" if packing else said)
    assert "Error" in said or len(said) == 64
    assert most < 250


def test_large_text_member_is_refused(tmp_path: Path) -> None:
    """Text too large to look for build paths in is refused, since nothing can be said about it."""
    wheel = tmp_path / "p-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("p/large.txt", b"x" * (33 << 20))
    with pytest.raises(UnsafeInputError, match="is text of more than"):
        read_wheel(wheel)
