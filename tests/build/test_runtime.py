"""The whole build: made once, reused while every file is what was sealed; levels and differences in the receipt."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from reproducer.attest.bundle import write_bundle
from reproducer.attest.keys import signing_key
from reproducer.binaries.wheel_content import read_wheel, render_members
from reproducer.build.failure import said
from reproducer.build.runtime import Runtime, build
from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.base import FileReference
from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock
from reproducer.documents.sources import Artefact
from reproducer.errors import DriftError, NotCheckedError, Outcome, RebuildError
from reproducer.host import host_platform
from reproducer.ledger import Ledger
from reproducer.progress import Silent
from reproducer.store import Store
from reproducer.verify.bundle import verify_bundle
from reproducer.verify.receipts import verify_receipts

MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
SCRIPT = b"import shutil, sys; shutil.copyfile(sys.argv[1], sys.argv[2] + '/config.json')\n"
Sdist = Callable[..., Path]
Write = Callable[[str, str, Mapping[str, bytes]], Path]


class Notes(Silent):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        """Keep it."""
        self.notes.append(message)


@dataclass(frozen=True)
class Chosen:
    """What a fetch would have chosen."""

    environments: Mapping[str, Sequence[Artefact]]


@dataclass(frozen=True)
class Project:
    """A lock beside its files, its store and what was fetched."""

    folder: Path
    data: dict[str, Any]
    chosen: Chosen

    @property
    def store(self) -> Store:
        """The store, opened anew."""
        return Store(self.folder / "store")

    def opened(self, **output: Any) -> OpenedLock:
        """The lock, with the expected output of its component where one is given."""
        data = json.loads(json.dumps(self.data))
        data["components"][0]["outputs"] = [output] if output else []
        return OpenedLock(Lock.from_data(data, where="lock"), self.folder / "penny.lock.toml")

    def build(self, opened: OpenedLock | None = None, *, again: bool = False, notes: Notes | None = None) -> Runtime:
        """Build it."""
        return build(
            opened or self.opened(),
            self.store,
            self.chosen,
            reporter=notes or Notes(),
            accepted="--yes",
            again=again,
            offline=True,
        )

    def left_over(self) -> list[str]:
        """What lies in the store's work and lock folders."""
        return [path.name for part in ("work", "locks") for path in (self.folder / "store" / part).iterdir()]


def artefact(store: Store, path: Path, project: str, version: str) -> dict[str, Any]:
    """A file put into the store, as a lock names it."""
    data = path.read_bytes()
    sha256 = store.add_bytes(data)
    return {"project": project, "version": version, "filename": path.name, "sha256": sha256, "size": len(data)}


@pytest.fixture
def project(tmp_path: Path, sdist: Sdist, wheel: Write) -> Callable[..., Project]:
    """Makes a small project whose component is built from source with certain hooks."""

    def make(*hooks: str) -> Project:
        folder = tmp_path / "project"
        (folder / "store").mkdir(parents=True)
        store = Store(folder / "store")
        (folder / "convert.py").write_bytes(SCRIPT)
        (folder / "pylock.toml").write_bytes(b"")
        empty = {"path": "pylock.toml", "sha256": hashlib.sha256(b"").hexdigest(), "size": 0}
        plain = artefact(store, wheel("plain", "1", {"plain.py": b"Y = 2\n"}), "plain", "1")
        model = artefact(store, wheel("model", "1", {"model/m.gguf": b"{}"}), "model", "1")
        member = {"member": "model/m.gguf", "member_sha256": hashlib.sha256(b"{}").hexdigest(), "member_size": 2}
        source = artefact(store, sdist(*hooks), "tiny", "1.0")
        script = {"path": "convert.py", "sha256": hashlib.sha256(SCRIPT).hexdigest(), "size": len(SCRIPT)}
        conversion = {"script": script, "arguments": ["{source}", "{output}"], "environment": "conversion"}
        data = {
            "format": "penny-lock/1",
            "name": "tiny",
            "manifest": "m.toml",
            "platform": host_platform(),
            "toolchain": {"python": MINOR, "compiler": "none"},
            "engine": {"kind": "sglang", "component": "tiny"},
            "build": {"source_date_epoch": 1704067200},
            "components": [
                {
                    "name": "tiny",
                    "kind": "wheel",
                    "source": {"kind": "sdist", **source},
                    "build_environment": "build",
                    "outputs": [],
                }
            ],
            "environments": [
                {"name": name, "pylock": empty, "packages": 0} for name in ("runtime", "build", "conversion")
            ],
            "checkpoints": [
                {
                    "name": "small",
                    "role": "target",
                    "source": {"kind": "wheel-member", **model, **member},
                    "conversion": conversion,
                    "trust_remote_code": False,
                    "files": [{"path": "config.json", "sha256": hashlib.sha256(b"{}").hexdigest(), "size": 2}],
                }
            ],
            "launch": {"module": "tiny", "arguments": {}, "effective": {}, "readiness": {}},
            "qualification": {"suite": "none", "boots": 2, "measures": []},
        }
        environments = {"runtime": (Artefact.model_validate(plain),), "build": (), "conversion": ()}
        return Project(folder, data, Chosen(environments))

    return make


def expected(project: Project, wheel: Path, *, members: bytes | None = None, **changed: str) -> dict[str, Any]:
    """The output that a lock expects: this wheel, or a changed one."""
    content = read_wheel(wheel)
    text = render_members(content.members) if members is None else members
    (project.folder / "members.txt").write_bytes(text)
    reference = FileReference(path="members.txt", sha256=hashlib.sha256(text).hexdigest(), size=len(text))
    output = {
        "filename": wheel.name,
        "sha256": content.sha256,
        "size": content.size,
        "content_sha256": content.digest,
        "members": reference.model_dump(),
    }
    return {**output, **changed}


def built_wheel(project: Project) -> Path:
    """The wheel in the project's store."""
    return next((project.folder / "store" / "entries" / "wheel").rglob("*.whl"))


def test_built_and_reused(project: Callable[..., Project]) -> None:
    """The runtime imports what was built; the next call makes nothing, and with the ledger its receipt is the same."""
    small = project()
    first = small.build()
    assert not first.reused
    ran = subprocess.run(
        [first.python, "-c", "import tiny, plain; print(tiny.VALUE, plain.Y)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "1 2\n"
    assert (first.checkpoints["target"] / "config.json").read_bytes() == b"{}"
    receipt = first.receipt
    assert [package.project for package in receipt.packages] == ["plain", "tiny"]
    assert receipt.python.startswith(f"{MINOR}.")
    assert receipt.installer.startswith("uv ")
    assert receipt.checkpoints["small"].files == 1
    assert receipt.level == "inputs-identical"
    assert "expects no such file" in receipt.outputs[0].differences[0].reason
    Ledger(small.store.root / "receipts" / receipt.lock_digest).add(receipt)
    time.sleep(1.1)
    notes = Notes()
    second = small.build(notes=notes)
    assert second.reused
    assert second.receipt.digest == receipt.digest
    assert (second.python, second.checkpoints) == (first.python, first.checkpoints)
    assert not any("building" in note or "converting" in note for note in notes.notes)
    assert small.left_over() == []


def test_levels(project: Callable[..., Project]) -> None:
    """The receipt says how near the wheel is to the lock's, names what differs, and the build goes on."""
    small = project()
    small.build()
    wheel = built_wheel(small)
    assert small.build(small.opened(**expected(small, wheel))).receipt.level == "bytes-identical"
    packed = small.build(small.opened(**expected(small, wheel, sha256="0" * 64))).receipt
    assert (packed.level, packed.outputs[0].differences[0].where) == ("content-identical", wheel.name)
    lines = render_members(read_wheel(wheel).members).decode().splitlines(keepends=True)
    text = "".join(line for line in lines if "made.txt" not in line)
    other = expected(small, wheel, members=text.encode(), sha256="0" * 64)
    runtime = small.build(small.opened(**other))
    assert runtime.receipt.level == "inputs-identical"
    told = [(each.where, each.reason) for each in runtime.receipt.outputs[0].differences]
    assert told == [("tiny/made.txt", "an extra member")]
    assert runtime.python.exists()


def test_arguments_of_another_engine(project: Callable[..., Project]) -> None:
    """A list of arguments is refused whose source files are not those of the engine that was built."""
    small = project()
    small.build()
    wheel = built_wheel(small)
    path, there = next(iter(read_wheel(wheel).members.items()))

    def listed(file: FileReference) -> OpenedLock:
        text = ArgumentSchema(engine="sglang", version="1", files=(file,), arguments=()).rendered()
        (small.folder / "arguments.json").write_bytes(text)
        reference = FileReference(path="arguments.json", sha256=hashlib.sha256(text).hexdigest(), size=len(text))
        small.data["engine"]["arguments"] = reference.model_dump()
        return small.opened(**expected(small, wheel))

    assert there.path == path
    assert small.build(listed(there)).receipt.level == "bytes-identical"
    for file in (there.model_copy(update={"sha256": "0" * 64}), there.model_copy(update={"path": "other.py"})):
        with pytest.raises(DriftError, match="read from another engine"):
            small.build(listed(file))


def test_again(project: Callable[..., Project]) -> None:
    """Building once more in another folder: the same bytes, or the members that differ."""
    small = project()
    small.build()
    good = small.opened(**expected(small, built_wheel(small)))
    assert small.build(good, again=True).receipt.level == "bytes-identical"
    assert small.left_over() == []


def test_again_differs(project: Callable[..., Project]) -> None:
    """A build that is not the same twice is named, member by member, and lowers the level."""
    small = project("import uuid\ndef before(): pass\ndef made(): return uuid.uuid4().hex + '\\n'\n")
    small.build()
    output = small.build(small.opened(**expected(small, built_wheel(small))), again=True).receipt.outputs[0]
    assert output.level == "inputs-identical"
    assert [each.where for each in output.differences] == ["second build: tiny/made.txt"]
    assert "got missing line" in output.differences[0].reason


def test_damage_is_repaired(project: Callable[..., Project]) -> None:
    """A changed file anywhere in what was sealed is found, told, and that product alone is made anew."""
    small = project()
    first = small.build()
    victim = next(first.python.parent.parent.glob("lib/*/site-packages/tiny/__init__.py"))
    victim.write_text("VALUE = 666\n")
    notes = Notes()
    second = small.build(notes=notes)
    assert not second.reused
    assert victim.read_text() == "VALUE = 1\n"
    assert any("is not what was sealed" in note for note in notes.notes)
    assert not any("building tiny" in note for note in notes.notes)
    assert second.receipt.runtime == first.receipt.runtime


def test_interpreter_is_gone(project: Callable[..., Project]) -> None:
    """An environment whose interpreter was replaced outside the store is made anew, not reported as damaged."""
    small = project()
    first = small.build()
    record = first.python.parents[2] / "record.json"
    seal = first.python.parents[3] / "seal.json"
    old = record.read_bytes()
    new = old.replace(f'"{first.receipt.python}"'.encode(), f'"{MINOR}.999"'.encode())
    record.write_bytes(new)
    digests = [hashlib.sha256(data).hexdigest() for data in (old, new)]
    text = seal.read_text().replace(digests[0], digests[1])
    seal.write_text(text.replace(f'"{digests[1]}",{len(old)}', f'"{digests[1]}",{len(new)}'))
    notes = Notes()
    assert small.build(notes=notes).receipt.python == first.receipt.python
    assert any("does not serve here any more" in note for note in notes.notes)


def test_wrong_checkpoint_file(project: Callable[..., Project]) -> None:
    """A checkpoint file with another digest than the lock's stops the build, each time, with expected and got."""
    small = project()
    small.data["checkpoints"][0]["files"][0]["sha256"] = "0" * 64
    for _ in range(2):
        with pytest.raises(DriftError, match=rf"config\.json: expected sha256 {'0' * 64}"):
            small.build()


def test_failed_build_keeps_its_log(project: Callable[..., Project]) -> None:
    """The error names a log that is still there, and nothing else of the failed build is."""
    small = project("def before():\n    print('on the way')\n    raise RuntimeError('no')\ndef made(): return ''\n")
    with pytest.raises(RebuildError, match="RuntimeError: no") as caught:
        small.build()
    assert "on the way" in Path(caught.value.where).read_text()
    assert small.left_over() == []
    assert not (small.folder / "store" / "entries" / "wheel").exists()


def test_other_platform(project: Callable[..., Project]) -> None:
    """A lock for another machine is not built."""
    small = project()
    small.data["platform"] = "linux-aarch64" if host_platform() == "linux-x86_64" else "linux-x86_64"
    with pytest.raises(NotCheckedError, match="this machine is"):
        small.build()


def test_two_at_once(project: Callable[..., Project]) -> None:
    """Two builds of one lock at once both end well, and everything is built once."""
    small = project("import time\ndef before(): time.sleep(0.7)\ndef made(): return 'x'\n")
    notes = [Notes(), Notes()]
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda note: small.build(notes=note), notes)
    assert one.python == two.python
    assert sum("building tiny" in note for each in notes for note in each.notes) == 1
    assert small.left_over() == []


def test_killed_in_the_middle(project: Callable[..., Project], tmp_path: Path) -> None:
    """A `kill -9` during the build leaves no process, and the next run cleans up and ends well."""
    marker = tmp_path / "slow"
    marker.touch()
    hooks = f"import os, time\ndef before():\n    time.sleep(300 if os.path.exists({str(marker)!r}) else 0)\n"
    small = project(hooks + "def made(): return 'x'\n")
    lock = tmp_path / "lock.json"
    lock.write_bytes(small.opened().lock.canonical())
    chosen = {name: [each.model_dump() for each in wheels] for name, wheels in small.chosen.environments.items()}
    code = f"""
import json
from pathlib import Path
from types import SimpleNamespace
from reproducer.build.runtime import build
from reproducer.documents.lock import Lock
from reproducer.documents.sources import Artefact
from reproducer.documents.opened import OpenedLock
from reproducer.progress import Silent
from reproducer.store import Store
from reproducer.verify.bundle import verify_bundle
from reproducer.verify.receipts import verify_receipts
folder = Path({str(small.folder)!r})
opened = OpenedLock(Lock.from_json(Path({str(lock)!r}).read_text(), where="lock"), folder / "penny.lock.toml")
chosen = {{name: [Artefact(**each) for each in wheels] for name, wheels in json.loads({json.dumps(chosen)!r}).items()}}
build(opened, Store(folder / "store"), SimpleNamespace(environments=chosen), reporter=Silent(), accepted="--yes",
    offline=True)
"""
    with subprocess.Popen([sys.executable, "-c", code]) as penny:
        deadline = time.monotonic() + 30
        while not list((small.folder / "store").glob("work/*/entry/content/build.log")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        penny.send_signal(signal.SIGKILL)
        penny.wait(20)
    deadline = time.monotonic() + 10
    while (left := _processes(str(small.folder))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []
    assert small.left_over()
    marker.unlink()
    assert small.build().python.exists()
    assert small.left_over() == []


def _processes(text: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().decode("utf-8", "replace") if entry.name.isdigit() else ""
        except OSError:
            continue
        if text in line and int(entry.name) != os.getpid():
            found.append(line)
    return found


FAILS = "def before(): raise SystemExit('no such thing in ' + __file__)\ndef made(): return ''\n"


def test_a_failure_is_recorded(project: Callable[..., Project]) -> None:
    """A build that fails leaves a receipt of level none: which component failed and how, without a folder."""
    small = project(FAILS)
    notes = Notes()
    with pytest.raises(RebuildError, match="failed with"):
        small.build(notes=notes)
    opened = small.opened()
    ledger = Ledger.of(small.store.root, opened.digest)
    (receipt,) = ledger.builds()
    assert (receipt.level, receipt.outputs, receipt.runtime) == ("none", (), None)
    assert receipt.failure is not None
    assert receipt.failure.where == "tiny"
    assert "no such thing in " in receipt.failure.reason
    error = RebuildError("failed", why=f"no {small.store.root}/work/x")
    assert said(error, small.store.root) == "failed (no {store}/work/x)"
    assert said(RebuildError("failed", why="no /home/somebody/x"), small.store.root) == "failed"
    assert str(small.folder) not in receipt.canonical().decode()
    assert not receipt.is_the_locks
    assert any("penny attest --builds" in note for note in notes.notes)
    check = next(each for each in verify_receipts(opened, (receipt,)) if each.id == "build")
    assert (check.status, check.reason.startswith("tiny: ")) == ("failed", True)


def test_a_failure_is_signed(project: Callable[..., Project], tmp_path: Path) -> None:
    """The receipt of a failed build goes into a bundle, whose signature holds and whose verdict says that it failed."""
    small = project(FAILS)
    with pytest.raises(RebuildError):
        small.build()
    opened = small.opened()
    (small.folder / "penny.lock.toml").write_text(tomlkit.dumps(opened.lock.content()))
    (small.folder / "m.toml").write_text("")
    receipts = Ledger.of(small.store.root, opened.digest).builds()
    key = signing_key(tmp_path / "keys")
    write_bundle(tmp_path / "bundle", opened, receipts, key, verify_receipts(opened, receipts))
    verdict = verify_bundle(tmp_path / "bundle", key.public)
    assert {each.id for each in verdict.checks if each.status == "failed"} >= {"build"}
    assert not verdict.outcome & Outcome.SIGNATURE_FAILED
    assert verdict.outcome & Outcome.REBUILD_DIFFERS


def test_a_second_build_that_fails(project: Callable[..., Project], tmp_path: Path) -> None:
    """A component that can be built once only has level none, with what the second build died of."""
    entries = tmp_path / "project" / "store" / "entries" / "wheel"
    once = (
        f"import pathlib\ndef before():\n    assert not list(pathlib.Path({str(entries)!r}).rglob('*.whl')), 'once'\n"
    )
    small = project(once + "def made(): return ''\n")
    small.build()
    receipt = small.build(small.opened(**expected(small, built_wheel(small))), again=True).receipt
    assert (receipt.level, receipt.outputs[0].level, receipt.failure) == ("none", "none", None)
    (difference,) = receipt.outputs[0].differences
    assert difference.where == "second build"
    assert "AssertionError: once" in difference.reason


def test_a_second_build_is_elsewhere(project: Callable[..., Project]) -> None:
    """A build that writes the host name or the length of its path into a wheel differs where it is built again."""
    length = project("def before(): pass\ndef made(): return f'{len(__file__)} letters\\n'\n")
    length.build()
    output = length.build(length.opened(**expected(length, built_wheel(length))), again=True).receipt.outputs[0]
    assert output.level == "inputs-identical"
    assert [each.where for each in output.differences] == ["second build: tiny/made.txt"]


def test_a_second_build_has_another_host_name(project: Callable[..., Project]) -> None:
    """A host name in a wheel is found out, where the kernel can give a build one of its own."""
    names = project("import socket\ndef before(): pass\ndef made(): return socket.gethostname() + '\\n'\n")
    names.build()
    receipt = names.build(names.opened(**expected(names, built_wheel(names))), again=True).receipt
    if receipt.isolation.network != "none":
        pytest.skip("the kernel allows no namespaces")
    assert receipt.level == "inputs-identical"
    assert "penny-builds-once-more" in receipt.outputs[0].differences[0].reason
