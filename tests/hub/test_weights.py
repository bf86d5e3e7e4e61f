"""What may be loaded: kinds of files by name and by content."""

import io
import pickle
import tarfile
import zipfile
from pathlib import Path

import pytest

from reproducer.errors import UnsafeInputError
from reproducer.hub.weights import check_content, check_names_of_weights, kind_of
from tests.hub.server import safetensors


class Calls:
    """Pickles as a call."""

    def __reduce__(self) -> tuple[object, ...]:
        """What unpickling would call."""
        return (print, ("called",))


def _zip() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))
    return packed.getvalue()


def _tar() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("weights.ckpt")
        archive.addfile(entry, io.BytesIO())
    return packed.getvalue()


CARRIES = {
    "zip": _zip(),
    "tar": _tar(),
    "hdf5": b"\x89HDF\r\n\x1a\n" + b"\0" * 100,
    "numpy": b"\x93NUMPY\x01\x00",
    "elf": b"\x7fELF" + b"\0" * 100,
    **{f"pickle protocol {number}": pickle.dumps(Calls(), protocol=number) for number in range(6)},
}
PLAIN = {
    "empty": b"",
    "text": b"config of a model\nwith lines.\n",
    "json": b'{"model_type": "llama"}',
    "python": b"class Model:\n    pass\n",
    "words": b"c\nb\na\n.",
    "a pickle that calls nothing": b"N.",
    "sentencepiece": b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02",
    "gguf": b"GGUF\x03\x00\x00\x00",
    "onnx": b"\x08\x07\x12\x07pytorch",
    "png": b"\x89PNG\r\n\x1a\n",
}


@pytest.mark.parametrize("case", CARRIES)
def test_what_can_carry_code_is_found_by_content(tmp_path: Path, case: str) -> None:
    """Every kind that runs code when it is loaded is refused under a harmless name, and allowed where it is named."""
    path = tmp_path / "notes.txt"
    path.write_bytes(CARRIES[case])
    with pytest.raises(UnsafeInputError, match=r"notes\.txt"):
        check_content(path, "notes.txt", allowed=False)
    check_content(path, "notes.txt", allowed=True)


@pytest.mark.parametrize("case", PLAIN)
def test_plain_files_pass(tmp_path: Path, case: str) -> None:
    """Texts, tokenizers and formats without code pass."""
    path = tmp_path / "file"
    path.write_bytes(PLAIN[case])
    assert kind_of(path) is None


def test_a_safetensors_name_needs_a_sound_header(tmp_path: Path) -> None:
    """Content that is no safetensors under that name is refused, allowed or not; sound content passes."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors(b"weights"))
    check_content(path, "model.safetensors", allowed=False)
    path.write_bytes(pickle.dumps(Calls()))
    with pytest.raises(UnsafeInputError, match="no safetensors"):
        check_content(path, "model.safetensors", allowed=True)


def test_names(tmp_path: Path) -> None:
    """Names are judged in any case of letters; what is allowed is allowed by its whole path."""
    del tmp_path
    assert check_names_of_weights(["a.safetensors", "b.json", "x.onnx", "y.gguf"], (), where="x") == ()
    assert check_names_of_weights(["a/b.BIN"], ("a/b.BIN",), where="x") == ("a/b.BIN",)
    with pytest.raises(UnsafeInputError, match=r"'b\.BIN'"):
        check_names_of_weights(["b.BIN"], ("a/b.BIN",), where="x")
