"""The folder of a namespace: made whole, compared whole, and closed whenever anything is wrong."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reproducer.errors import ConfigurationError, NotCheckedError, PennyError, UnsafeInputError
from reproducer.identity.namespace import Namespace, derive
from reproducer.identity.root import open_root, pages_of
from tests.identity.factory import make_lock

ROOT = Path(__file__).parents[2]
OTHER_USER = 12345


@pytest.fixture
def namespace() -> Namespace:
    """The namespace of the test lock."""
    return derive(make_lock())


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """Where namespaces lie; not there yet."""
    return tmp_path / "store" / "kv"


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its bytes; None for folders and links."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in sorted(folder.rglob("*"))
    }


def refused(parent: Path, namespace: Namespace, kind: type[PennyError]) -> str:
    """What opening says; that it changed nothing is checked here for every case."""
    before = contents(parent)
    with pytest.raises(kind) as caught:
        open_root(parent, namespace)
    assert contents(parent) == before
    assert "Nothing was changed" in str(caught.value)
    return str(caught.value)


def test_a_root_is_made_whole(parent: Path, namespace: Namespace) -> None:
    """Factor document, notes and an empty folder for pages, for nobody else to read, and nothing beside it."""
    old = os.umask(0)
    try:
        root = open_root(parent, namespace)
    finally:
        os.umask(old)

    assert root == parent / namespace.name
    assert [root] == list(parent.iterdir())
    assert sorted(path.name for path in root.iterdir()) == ["factors.json", "neutral.json", "pages"]
    assert list(pages_of(root).iterdir()) == []
    assert {stat.S_IMODE(path.stat().st_mode) for path in (root, pages_of(root))} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in root.glob("*.json")} == {0o600}


def test_the_factor_document_holds_every_factor(parent: Path, namespace: Namespace) -> None:
    """Versioned JSON with name, digest and all factors, typed; the notes hold what was left out, and why."""
    root = open_root(parent, namespace)
    document = json.loads((root / "factors.json").read_text("utf-8"))
    notes = json.loads((root / "neutral.json").read_text("utf-8"))

    assert sorted(document) == ["digest", "factors", "format", "namespace"]
    assert document["format"] == "penny-namespace/1"
    assert document["digest"] == namespace.digest
    assert document["factors"] == {name: factor.content() for name, factor in namespace.factors.items()}
    assert notes["neutral"].keys() == namespace.neutral.keys()


def test_an_unchanged_lock_finds_its_pages(parent: Path, namespace: Namespace) -> None:
    """Opening again leaves pages and document alone; the document's file time says when that was."""
    root = open_root(parent, namespace)
    (pages_of(root) / "page").write_bytes(b"kv")
    os.utime(root / "factors.json", (1, 1))

    assert open_root(parent, derive(make_lock())) == root
    assert (pages_of(root) / "page").read_bytes() == b"kv"
    assert time.time() - (root / "factors.json").stat().st_mtime < 60


def test_a_neutrally_different_lock_finds_them_too(parent: Path, namespace: Namespace) -> None:
    """The notes are those of the lock that came first, and are not compared."""
    root = open_root(parent, namespace)
    other = derive(make_lock(lambda data: data["launch"]["arguments"].pop("log-level")))

    assert other.notes() != namespace.notes()
    assert open_root(parent, other) == root


def test_a_root_without_pages_gets_an_empty_folder(parent: Path, namespace: Namespace) -> None:
    """Somebody freed the disk: no page is no wrong page."""
    root = open_root(parent, namespace)
    pages_of(root).rmdir()

    open_root(parent, namespace)

    assert pages_of(root).is_dir()


def _altered(change: Callable[[dict[str, object]], object]) -> Callable[[bytes], bytes]:
    def alter(data: bytes) -> bytes:
        document = json.loads(data)
        change(document)
        return json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"

    return alter


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "cut short: 0 of"),
    "cut short by a byte": (lambda data: data[:-1], "cut short"),
    "half": (lambda data: data[: len(data) // 2], "cut short"),
    "a byte more": (lambda data: data + b"\n", "written differently"),
    "a flipped bit": (lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], "the same factors, written diff"),
    "other layout": (lambda data: json.dumps(json.loads(data)).encode(), "the same factors, written differently"),
    "not JSON": (lambda _: b"\xff\xfe\x00", "cannot be read"),
    "other JSON": (lambda _: b"[1, 2]", "no factor document"),
    "a key twice": (lambda data: data.replace(b'"digest":', b'"digest": "", "digest":', 1), "stands twice"),
    "another value": (
        lambda data: data.replace(b'"value": 16', b'"value": 32'),
        "launch.effective.page_size: there 32, here 16",
    ),
    "another type of value": (
        lambda data: data.replace(b'"type": "integer",\n   "value": 16', b'"type": "float",\n   "value": 16.0'),
        "launch.effective.page_size: there 16.0, here 16",
    ),
    "a factor less": (
        _altered(lambda document: document["factors"].pop("platform")),  # type: ignore[attr-defined]
        "platform: there absent, here 'linux-x86_64'",
    ),
    "no factor": (_altered(lambda document: document.update(factors={})), "more"),
    "another version": (_altered(lambda document: document.update(format="penny-namespace/2")), "its format is"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_another_document_closes_the_namespace(parent: Path, namespace: Namespace, name: str) -> None:
    """Whatever byte differs: a configuration error that says what it is."""
    damage, told = DAMAGE[name]
    path = open_root(parent, namespace) / "factors.json"
    path.write_bytes(damage(path.read_bytes()))

    message = refused(parent, namespace, ConfigurationError)

    assert str(path) in message
    assert told in message


def test_a_missing_document_closes_the_namespace(parent: Path, namespace: Namespace) -> None:
    """Pages whose factors nobody knows are never read, and an empty folder of that name is not taken over either."""
    root = open_root(parent, namespace)
    (root / "factors.json").unlink()
    assert "is missing, so nothing says whose pages these are" in refused(parent, namespace, ConfigurationError)

    (root / "neutral.json").unlink()
    pages_of(root).rmdir()
    refused(parent, namespace, ConfigurationError)


def test_a_digest_that_shares_its_first_digits_is_refused(parent: Path, namespace: Namespace) -> None:
    """Twelve digits name a folder; the whole document decides."""
    open_root(parent, namespace)
    other = derive(make_lock(lambda data: data["launch"]["arguments"].update(x=1)))
    twin = Namespace(namespace.name, other.digest, other.factors, other.neutral)

    assert "launch.arguments.x: there absent, here 1" in refused(parent, twin, ConfigurationError)


def test_a_link_in_place_of_the_root_is_refused(parent: Path, namespace: Namespace, tmp_path: Path) -> None:
    """Even if it leads to a good root."""
    root = open_root(parent, namespace)
    root.rename(tmp_path / "elsewhere")
    root.symlink_to(tmp_path / "elsewhere")
    assert "is a link" in refused(parent, namespace, UnsafeInputError)

    root.unlink()
    root.symlink_to(tmp_path / "nowhere")
    refused(parent, namespace, UnsafeInputError)
    assert not (tmp_path / "nowhere").exists()


def test_a_file_in_place_of_the_root_is_refused(parent: Path, namespace: Namespace) -> None:
    """It stays as it is."""
    parent.mkdir(parents=True)
    (parent / namespace.name).write_text("mine")

    refused(parent, namespace, UnsafeInputError)


@pytest.mark.parametrize("name", ["factors.json", "pages"])
def test_a_link_inside_the_root_is_refused(parent: Path, namespace: Namespace, tmp_path: Path, name: str) -> None:
    """Neither the document nor the pages may lie elsewhere."""
    path = open_root(parent, namespace) / name
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")

    assert str(path) in refused(parent, namespace, UnsafeInputError)


def test_a_pipe_in_place_of_the_document_is_refused_at_once(parent: Path, namespace: Namespace) -> None:
    """Nobody waits for a writer."""
    path = open_root(parent, namespace) / "factors.json"
    path.unlink()
    os.mkfifo(path)

    assert "not of the right kind" in refused(parent, namespace, UnsafeInputError)


def test_a_folder_in_place_of_the_document_is_refused(parent: Path, namespace: Namespace) -> None:
    """The same."""
    path = open_root(parent, namespace) / "factors.json"
    path.unlink()
    path.mkdir()

    refused(parent, namespace, UnsafeInputError)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", ["", "factors.json", "pages"])
def test_what_belongs_to_somebody_else_is_refused(parent: Path, namespace: Namespace, name: str) -> None:
    """Another user could have written the pages, or could write them now."""
    path = open_root(parent, namespace) / name
    os.chown(path, OTHER_USER, OTHER_USER)

    assert "belongs to another user (id 12345)" in refused(parent, namespace, UnsafeInputError)


SCRIPT = """
import json, os, sys, time
from pathlib import Path
from reproducer.documents.lock import Lock
from reproducer.errors import PennyError
from reproducer.identity.namespace import derive
from reproducer.identity.root import open_root
namespace = derive(Lock.from_json(sys.stdin.read(), where="stdin"))
parent = Path(sys.argv[1])
if len(sys.argv) > 3:  # from inside, so that nothing above has to be open to that user
    os.chdir(parent.parent)
    os.setuid(int(sys.argv[3]))
    parent = Path(parent.name)
while time.time() < float(sys.argv[2]):
    pass
try:
    print(open_root(parent, namespace))
except PennyError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def process(parent: Path, *arguments: str, at: float = 0) -> "subprocess.Popen[str]":
    """Open the namespace of the test lock in a process of its own, at a given time."""
    opening = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(parent), str(at), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert opening.stdin is not None
    opening.stdin.write(json.dumps(make_lock().content()))
    opening.stdin.close()
    opening.stdin = None
    return opening


def test_processes_at_once_all_get_the_one_root(parent: Path, namespace: Namespace) -> None:
    """Whoever comes first makes it, the others find it; nothing else is left."""
    start = time.time() + 1.5
    opening = [process(parent, at=start) for _ in range(4)]
    outputs = [each.communicate() for each in opening]

    assert [each.returncode for each in opening] == [0, 0, 0, 0], outputs
    assert {out for out, _ in outputs} == {f"{parent / namespace.name}\n"}
    assert [path.name for path in parent.iterdir()] == [namespace.name]


def test_what_a_killed_process_left_is_cleared_and_nothing_else(parent: Path, namespace: Namespace) -> None:
    """A half-made folder beside the place and a lock file whose holder is dead do not hinder."""
    half = parent / f".{namespace.name}.new"
    (half / "pages").mkdir(parents=True)
    (half / "factors.json").write_bytes(b"{")
    (parent / f".{namespace.name}.new.lock").touch()
    (parent / "other").mkdir()

    open_root(parent, namespace)

    assert sorted(path.name for path in parent.iterdir()) == sorted(["other", namespace.name])


def test_a_lock_file_beside_a_finished_root_is_cleared(parent: Path, namespace: Namespace) -> None:
    """Its holder was killed between finishing the root and letting go."""
    root = open_root(parent, namespace)
    (parent / f".{namespace.name}.new.lock").touch()

    open_root(parent, namespace)

    assert list(parent.iterdir()) == [root]


def test_kill_at_any_moment_leaves_a_whole_root_or_none(parent: Path, namespace: Namespace) -> None:
    """A process that is killed while it makes the root never leaves one that the next cannot open."""
    for attempt in range(6):
        start = time.time() + 0.8
        opening = process(parent / str(attempt), at=start)
        time.sleep(max(0.0, start - time.time()) + attempt * 0.0008)
        opening.send_signal(signal.SIGKILL)
        opening.communicate()
        root = parent / str(attempt) / namespace.name
        if root.exists():
            assert (root / "factors.json").read_bytes() == namespace.document()
        assert open_root(parent / str(attempt), namespace) == root
        assert [path.name for path in root.parent.iterdir()] == [namespace.name]


def test_a_link_in_the_way_of_the_preparation_is_not_followed(
    parent: Path, namespace: Namespace, tmp_path: Path
) -> None:
    """Clearing what a killed process left must not reach into a folder elsewhere."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "factors.json").write_text("keep")
    parent.mkdir(parents=True)
    (parent / f".{namespace.name}.new").symlink_to(victim)

    with pytest.raises(PennyError):
        open_root(parent, namespace)

    assert (victim / "factors.json").read_text() == "keep"


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_folder_that_cannot_be_written_is_the_machines_fault(tmp_path: Path) -> None:
    """It says which folder, and exits as not checked."""
    parent = tmp_path / "kv"
    parent.mkdir(mode=0o755)
    tmp_path.chmod(0o755)
    opening = process(parent, "65534")
    out, _ = opening.communicate()

    assert opening.returncode == NotCheckedError.exit_code
    assert out.startswith("kv: ")


def test_a_file_in_place_of_the_parent_is_told(tmp_path: Path, namespace: Namespace) -> None:
    """The path named with --kv is no folder."""
    (tmp_path / "kv").write_text("")

    with pytest.raises(PennyError) as caught:
        open_root(tmp_path / "kv", namespace)
    assert str(tmp_path / "kv") in str(caught.value)
