"""What a document of a stranger may cost: little, whatever it holds."""

import os
import time
from pathlib import Path

import pytest

from reproducer.documents.base import FileReference, parse_json
from reproducer.documents.lock import Lock
from reproducer.documents.opened import read_reference
from reproducer.documents.toml import parse_toml
from reproducer.errors import InvalidDocumentError, PennyError, UnsafeInputError
from reproducer.ledger import Ledger

QUICK_S = 60.0  # for ever, if it looked again and again


@pytest.mark.parametrize(
    "text",
    ["[" + "[]," * 600_000 + "[]]", '{"a":' * 100 + "1" + "}" * 100, "[" * 100 + "]" * 100, "[" + "1,\n" * 300_000],
    ids=["many", "deep objects", "deep lists", "many lines"],
)
def test_json_is_bounded(text: str) -> None:
    """JSON of too many values, or too deep for whatever is done with it later, is refused."""
    with pytest.raises(InvalidDocumentError, match=r"holds more than|is nested more than"):
        parse_json(text, where="x")


@pytest.mark.parametrize(
    "text",
    [
        "a=[" + "[]," * 200_000 + "]",
        ".".join(["a"] * 50_000) + "=1",
        ".".join(['"a"'] * 50_000) + "=1",
        "\n".join(f"a{number}=1" for number in range(200_000)),
        "a=" + "[" * 90 + "]" * 90,
        "a=" + "[" * 100_000,
        'a = "' + "x" * (9 << 20) + '"',
    ],
    ids=["many", "long key", "long quoted key", "many lines", "deep", "too deep", "large"],
)
def test_toml_is_bounded(text: str) -> None:
    """TOML that would keep a parser busy, or fill the memory, is refused at once."""
    start = time.monotonic()
    with pytest.raises(InvalidDocumentError):
        parse_toml(text, where="x")
    assert time.monotonic() - start < QUICK_S


def test_dots_in_text_are_no_key() -> None:
    """A long line of text with many dots is no long key."""
    text = "a = '" + "1.2.3 " * 1000 + "'"
    assert parse_toml(text, where="x") == {"a": "1.2.3 " * 1000}


def test_many_faults_are_told_in_a_screenful() -> None:
    """A lock of nothing but unknown keys is refused in a bounded message, soon."""
    text = "\n".join(['format = "penny-lock/1"', *(f"z{number} = 1" for number in range(20_000))])
    start = time.monotonic()
    with pytest.raises(InvalidDocumentError, match="and more: 20010 in all") as caught:
        Lock.from_data(parse_toml(text, where="x"), where="x", source=text)
    assert time.monotonic() - start < QUICK_S
    assert len(str(caught.value)) < 8000


def test_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe in the place of a file that the lock names, or of a receipt, is refused and not read for ever."""
    os.mkfifo(tmp_path / "one.patch")
    reference = FileReference(path="one.patch", sha256="0" * 64, size=1)
    with pytest.raises(UnsafeInputError, match="not a regular file"):
        read_reference(tmp_path, reference, where="lock")
    os.mkfifo(tmp_path / "build-0.json")
    with pytest.raises(UnsafeInputError, match="not a regular file"):
        Ledger(tmp_path).receipts()


def test_sparse_file_is_not_read(tmp_path: Path) -> None:
    """A file of the lock that is larger than any such file is refused by its size in the lock."""
    with (tmp_path / "one.patch").open("wb") as file:
        file.truncate(1 << 40)
    reference = FileReference(path="one.patch", sha256="0" * 64, size=1 << 40)
    with pytest.raises(UnsafeInputError, match="larger than"):
        read_reference(tmp_path, reference, where="lock")


def test_loop_of_links_is_one_fault(tmp_path: Path) -> None:
    """A link that leads to itself is an expected fault."""
    (tmp_path / "one.patch").symlink_to("one.patch")
    with pytest.raises(PennyError):
        read_reference(tmp_path, FileReference(path="one.patch", sha256="0" * 64, size=1), where="lock")
