"""A wheel that is taken as its publisher built it: verified, never built, installed without its dependencies."""

import hashlib
import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reproducer.build.component import take_wheel
from reproducer.documents.sources import Artefact, WheelSource
from reproducer.errors import DriftError, InvalidDocumentError
from reproducer.host import host_platform
from reproducer.store import Store
from tests.build.test_runtime import MINOR, SCRIPT, Chosen, Notes, Project, artefact, expected

Write = Callable[[str, str, Mapping[str, bytes]], Path]
HOOK = b"import pathlib; pathlib.Path('ran').touch()\n"


@pytest.fixture
def taken(tmp_path: Path, wheel: Write) -> Project:
    """A lock whose one component is a wheel that asks for another one which is nowhere."""
    folder = tmp_path / "project"
    (folder / "store").mkdir(parents=True)
    store = Store(folder / "store")
    (folder / "convert.py").write_bytes(SCRIPT)
    (folder / "pylock.toml").write_bytes(b"")
    empty = {"path": "pylock.toml", "sha256": hashlib.sha256(b"").hexdigest(), "size": 0}
    metadata = b"Metadata-Version: 2.1\nName: tiny\nVersion: 1\nRequires-Dist: nowhere-to-be-had\n"
    files = {"tiny.py": b"VALUE = 1\n", "setup.py": HOOK, "tiny-1.dist-info/METADATA": metadata}
    source = artefact(store, wheel("tiny", "1", files), "tiny", "1")
    plain = artefact(store, wheel("plain", "1", {"plain.py": b"Y = 2\n"}), "plain", "1")
    model = artefact(store, wheel("model", "1", {"model/m.gguf": b"{}"}), "model", "1")
    script = {"path": "convert.py", "sha256": hashlib.sha256(SCRIPT).hexdigest(), "size": len(SCRIPT)}
    data: dict[str, Any] = {
        "format": "penny-lock/1",
        "name": "tiny",
        "manifest": "m.toml",
        "platform": host_platform(),
        "toolchain": {"python": MINOR, "compiler": "none"},
        "engine": {"kind": "vllm", "component": "tiny"},
        "build": {"source_date_epoch": 1704067200},
        "components": [{"name": "tiny", "kind": "wheel", "source": {"kind": "wheel", **source}, "outputs": []}],
        "environments": [{"name": name, "pylock": empty, "packages": 0} for name in ("runtime", "conversion")],
        "checkpoints": [
            {
                "name": "small",
                "role": "target",
                "source": {
                    "kind": "wheel-member",
                    **model,
                    "member": "model/m.gguf",
                    "member_sha256": hashlib.sha256(b"{}").hexdigest(),
                    "member_size": 2,
                },
                "conversion": {"script": script, "arguments": ["{source}", "{output}"], "environment": "conversion"},
                "trust_remote_code": False,
                "files": [{"path": "config.json", "sha256": hashlib.sha256(b"{}").hexdigest(), "size": 2}],
            }
        ],
        "launch": {"module": "tiny", "arguments": {}, "effective": {}, "readiness": {}},
        "qualification": {"suite": "none", "boots": 2, "measures": []},
    }
    return Project(folder, data, Chosen({"runtime": (Artefact.model_validate(plain),), "conversion": ()}))


def blob(project: Project) -> Path:
    """The component's wheel in the store."""
    return project.store.blob_path(project.data["components"][0]["source"]["sha256"])


def named(project: Project, tmp_path: Path) -> Path:
    """The component's wheel under its own name."""
    path = tmp_path / str(project.data["components"][0]["source"]["filename"])
    path.write_bytes(blob(project).read_bytes())
    return path


def test_taken_as_it_is(taken: Project, tmp_path: Path) -> None:
    """The published bytes reach the runtime without a build, without what they ask for, at the highest level."""
    notes = Notes()
    opened = taken.opened(**expected(taken, named(taken, tmp_path)))
    runtime = taken.build(opened, notes=notes)
    ran = subprocess.run(
        [runtime.python, "-c", "import tiny, plain; print(tiny.VALUE, plain.Y)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "1 2\n"
    receipt = runtime.receipt
    assert receipt.level == receipt.outputs[0].level == "bytes-identical"
    assert receipt.outputs[0].sha256 == taken.data["components"][0]["source"]["sha256"]
    assert [package.project for package in receipt.packages] == ["plain", "tiny"]
    assert not any("building" in note for note in notes.notes)
    assert not list(Path(runtime.python).parents[1].rglob("ran"))
    entry = next((taken.folder / "store" / "entries" / "wheel").rglob("record.json"))
    assert "isolation" not in json.loads(entry.read_bytes())  # nothing ran, so nothing was kept apart
    assert taken.build(opened).reused


def test_again_is_verified_again(taken: Project, tmp_path: Path) -> None:
    """A second build of a wheel that is not built is another look at its bytes."""
    opened = taken.opened(**expected(taken, named(taken, tmp_path)))
    assert taken.build(opened, again=True).receipt.level == "bytes-identical"


def test_damaged_in_the_store(taken: Project) -> None:
    """A wheel whose bytes changed in the store is refused and set aside, and nothing is made of it."""
    path = blob(taken)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(DriftError, match="whl is damaged in the store"):
        taken.build()
    assert not path.exists()
    assert not list((taken.folder / "store" / "entries").rglob("*.whl"))


def test_not_the_lock_s_output(taken: Project, tmp_path: Path) -> None:
    """A lock that expects other content of the wheel than its source has is seen through, member by member."""
    output = expected(taken, named(taken, tmp_path), sha256="1" * 64, content_sha256="2" * 64)
    (taken.folder / "members.txt").write_bytes(f"{'3' * 64}  10  tiny.py\n".encode())
    data = (taken.folder / "members.txt").read_bytes()
    output["members"] = {"path": "members.txt", "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    receipt = taken.build(taken.opened(**output)).receipt
    assert receipt.level == "inputs-identical"
    assert "tiny.py" in [each.where for each in receipt.outputs[0].differences]


@pytest.mark.parametrize(
    ("filename", "why"),
    [
        ("other-1-py3-none-any.whl", "is not the name of a wheel of tiny 1"),
        ("tiny-2-py3-none-any.whl", "is not the name of a wheel of tiny 1"),
        ("tiny-1.zip", "is no wheel's file name"),
    ],
)
def test_name_of_another(tmp_path: Path, filename: str, why: str) -> None:
    """A file name that says something else than project and version is refused: installers believe the name."""
    source = WheelSource(project="tiny", version="1", filename=filename, sha256="0" * 64, size=0)
    with pytest.raises(InvalidDocumentError, match=why):
        take_wheel(tmp_path, source, tmp_path)
