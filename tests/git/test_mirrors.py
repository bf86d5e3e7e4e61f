"""Mirrors: one commit from real servers, whole or in outline, by two processes at once and after a kill."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reproducer.errors import DriftError, NotCheckedError
from reproducer.git.addresses import Address
from reproducer.git.mirrors import Mirror
from reproducer.git.objects import objects
from reproducer.git.running import GitFaultError
from tests.git.conftest import Desk, Repository, Serve, Server, bare, git

BRING = """\
import sys
from pathlib import Path
from reproducer.git.addresses import Address
from reproducer.git.mirrors import Mirror
from reproducer.progress import Silent
from reproducer.store import Store
root, url, commit = sys.argv[1:]
print(Mirror.of(Store(Path(root)), url, commit).bring(Address(url=url), commit, reporter=Silent(), what="kernel"))
"""


def _mirror(desk: Desk, place: Address, commit: str) -> Mirror:
    return Mirror.of(desk.store, place.url, commit)


def _objects(mirror: Mirror) -> int:
    """How many objects the repository has."""
    return len(git("cat-file", "--batch-all-objects", "--batch-check", cwd=mirror.folder).splitlines())


def _served(repository: Repository, server: Server) -> Address:
    bare(repository, server.folder, "kernel.git")
    return server.at("kernel.git")


def _three_commits(repository: Repository) -> str:
    """The middle one of three; no branch and no tag is at it."""
    middle = repository.commit({"kernel.py": "KERNEL = 2\n"})
    repository.commit({"kernel.py": "KERNEL = 3\n"})
    return middle


@pytest.mark.parametrize("kind", ["daemon", "http", "local"])
def test_one_commit(kind: str, repository: Repository, desk: Desk, web: Serve, request: pytest.FixtureRequest) -> None:
    """Exactly one commit comes, though no branch is at it: its own objects and no history."""
    commit = _three_commits(repository)
    if kind == "local":
        place = Address(path=repository.path)
    else:
        place = _served(repository, request.getfixturevalue("daemon") if kind == "daemon" else web())
    mirror = _mirror(desk, place, commit)
    assert not mirror.has(commit)
    assert mirror.bring(place, commit, reporter=desk.notes, what="kernel") > 0
    assert mirror.has(commit)
    assert _objects(mirror) == 5  # a commit, two trees and two files; three commits have 13
    assert mirror.bring(place, commit, reporter=desk.notes, what="kernel") == 0
    assert git("rev-parse", "--is-shallow-repository", cwd=mirror.folder) == "true"


def test_outline(repository: Repository, desk: Desk, web: Serve) -> None:
    """An outline has the trees and the small files; the large ones stay where they are."""
    commit = repository.commit({"weights.bin": os.urandom(1 << 20)})
    server = web()
    copy = bare(repository, server.folder, "kernel.git")
    git("config", "uploadpack.allowFilter", "true", cwd=copy)
    place = server.at("kernel.git")
    mirror = Mirror.of(desk.store, place.url, commit, "outline")
    assert 0 < mirror.bring(place, commit, reporter=desk.notes, what="kernel") < 100_000
    assert not _mirror(desk, place, commit).has(commit)
    held = desk.contents(place, commit, form="outline")
    assert held.tree == repository.tree
    assert _mirror(desk, place, commit).bring(place, commit, reporter=desk.notes, what="kernel") > 1_000_000


def test_dumb_server(repository: Repository, desk: Desk, web: Serve) -> None:
    """A server of plain files knows no shallow fetch: all is fetched, and the commit is found in it."""
    commit = _three_commits(repository)
    server = web(dumb=True)
    git("update-server-info", cwd=bare(repository, server.folder, "kernel.git"))
    place = server.at("kernel.git")
    mirror = _mirror(desk, place, commit)
    mirror.bring(place, commit, reporter=desk.notes, what="kernel")
    assert mirror.has(commit)
    with pytest.raises(DriftError, match="has no commit 1111"):
        mirror.bring(place, "1" * 40, reporter=desk.notes, what="kernel")
    assert not mirror.has("1" * 40)


@pytest.mark.parametrize("kind", ["daemon", "local"])
def test_missing_commit(kind: str, repository: Repository, desk: Desk, request: pytest.FixtureRequest) -> None:
    """A commit that is not there is an error that says what is, and nothing else comes in its place (R7)."""
    repository.git("tag", "v1")
    place = Address(path=repository.path) if kind == "local" else _served(repository, request.getfixturevalue("daemon"))
    mirror = _mirror(desk, place, "1" * 40)
    with pytest.raises(DriftError, match=f"main is {repository.head[:12]}, v1 is {repository.head[:12]}") as caught:
        mirror.bring(place, "1" * 40, reporter=desk.notes, what="kernel")
    assert caught.value.exit_code == 65
    assert "1" * 40 in str(caught.value)
    assert not mirror.has("1" * 40)
    assert _objects(mirror) == 0


def test_rewritten_branch(repository: Repository, desk: Desk, daemon: Server) -> None:
    """After a forced push whose old commits were cleared away, the locked commit is gone: an error with the new tip."""
    old = repository.commit({"kernel.py": "KERNEL = 2\n"})
    copy = bare(repository, daemon.folder, "kernel.git")
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    new = repository.commit({"kernel.py": "KERNEL = 3\n"})
    repository.git("push", "--quiet", "--force", str(copy), "main")
    git("reflog", "expire", "--expire=now", "--all", cwd=copy)
    git("gc", "--quiet", "--prune=now", cwd=copy)
    place = daemon.at("kernel.git")
    with pytest.raises(DriftError, match=f"branch was rewritten.*main is {new[:12]}"):
        _mirror(desk, place, old).bring(place, old, reporter=desk.notes, what="kernel")


def test_not_there(desk: Desk, daemon: Server, web: Serve, tmp_path: Path) -> None:
    """A repository that cannot be reached is another error than a commit that is gone: nothing was checked."""
    for place in (daemon.at("nothing.git"), web().at("nothing.git"), Address(path=tmp_path / "nothing")):
        mirror = _mirror(desk, place, "1" * 40)
        with pytest.raises(NotCheckedError) as caught:
            mirror.bring(place, "1" * 40, reporter=desk.notes, what="kernel")
        assert caught.value.exit_code == 96


def test_one_mirror_for_each_address(repository: Repository, desk: Desk, daemon: Server, web: Serve) -> None:
    """Two commits of one address share a mirror; two addresses do not; what has no address shares one."""
    first = repository.head
    second = repository.commit({"kernel.py": "KERNEL = 2\n"})
    one, two = _served(repository, daemon), _served(repository, web())
    here = Address(path=repository.path)
    for place in (one, two, here):
        for commit in (first, second):
            _mirror(desk, place, commit).bring(place, commit, reporter=desk.notes, what="kernel")
    assert _mirror(desk, one, first).folder == _mirror(desk, one, second).folder
    folders = {_mirror(desk, place, first).folder for place in (one, two, here)}
    assert len(folders) == 3
    assert all(_objects(_mirror(desk, place, first)) == 8 for place in (one, two, here))


def test_two_at_once(repository: Repository, desk: Desk, web: Serve) -> None:
    """Two processes that need one commit fetch it once; who comes second waits and finds it there."""
    repository.write({"weights.bin": os.urandom(4 << 20)})
    commit = repository.commit()
    server = web()
    place = _served(repository, server)
    command = [sys.executable, "-c", BRING, str(desk.store.root), str(place.url), commit]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    came = sorted(int(process.communicate(timeout=60)[0]) for process in running)
    assert [process.returncode for process in running] == [0, 0, 0]
    assert came[:2] == [0, 0]
    assert came[2] > 4 << 20


def test_killed(repository: Repository, desk: Desk, web: Serve, tmp_path: Path) -> None:
    """A penny that is killed while it fetches leaves nothing that counts; the next one waits for its git."""
    commit = repository.commit({"weights.bin": os.urandom(1 << 20)})
    server = web()
    place = _served(repository, server)
    slow = tmp_path / "slow" / "git"
    slow.parent.mkdir()
    slow.write_text(
        '#!/bin/sh\nPATH="${PATH#*:}"\n'
        'case "$*" in *"fetch --quiet"*) touch "$0.begun"; sleep 1.5;; esac\nexec git "$@"\n'
    )
    slow.chmod(0o755)
    environment = {**os.environ, "PATH": f"{slow.parent}:{os.environ['PATH']}"}
    killed = subprocess.Popen(
        [sys.executable, "-c", BRING, str(desk.store.root), str(place.url), commit], env=environment
    )
    deadline = time.monotonic() + 60
    while not slow.with_name("git.begun").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    mirror = _mirror(desk, place, commit)
    assert not mirror.has(commit)
    # The killed one's git still runs and holds the lock: it is waited for, and has fetched the commit in the end.
    assert mirror.bring(place, commit, reporter=desk.notes, what="kernel") == 0
    assert any("waiting for another penny" in note for note in desk.notes.said)
    other = repository.commit({"kernel.py": "KERNEL = 9\n"})
    repository.git("push", "--quiet", str(server.folder / "kernel.git"), "main")
    (mirror.folder / "shallow.lock").write_text("left by a killed git")
    (mirror.folder / "objects" / "pack" / "tmp_pack_left").write_text("left by a killed git")
    assert mirror.bring(place, other, reporter=desk.notes, what="kernel") > 0
    assert not list(mirror.folder.rglob("*.lock"))
    assert not list(mirror.folder.rglob("tmp_*"))


def test_interrupted(repository: Repository, desk: Desk, web: Serve) -> None:
    """A server that breaks off in the middle leaves no commit behind, and the next fetch has it."""
    commit = repository.commit({"weights.bin": os.urandom(1 << 20)})
    server = web()
    copy = bare(repository, server.folder, "kernel.git")
    place = server.at("kernel.git")
    git("repack", "-a", "-d", "--quiet", cwd=copy)
    (pack,) = copy.glob("objects/pack/*.pack")
    whole = pack.read_bytes()
    pack.chmod(0o644)
    half = len(whole) // 2
    mirror = _mirror(desk, place, commit)
    for damaged in (
        whole[:half] + bytes(len(whole) - half - 20) + whole[-20:],
        whole[:half] + bytes(len(whole) - half),
    ):
        pack.write_bytes(damaged)
        with pytest.raises(NotCheckedError):
            mirror.bring(place, commit, reporter=desk.notes, what="kernel")
        assert not mirror.has(commit)
    pack.write_bytes(whole)
    mirror.bring(place, commit, reporter=desk.notes, what="kernel")
    assert mirror.has(commit)


def test_no_hooks_and_no_upkeep(repository: Repository, desk: Desk) -> None:
    """A mirror has no hooks and no remote; nothing of it is ever packed again behind the reader's back."""
    place = Address(path=repository.path)
    mirror = _mirror(desk, place, repository.head)
    mirror.bring(place, repository.head, reporter=desk.notes, what="kernel")
    assert not (mirror.folder / "hooks").exists()
    assert "remote" not in (mirror.folder / "config").read_text()
    with objects(mirror.folder) as there:
        assert there.tree_of(repository.head) == repository.tree


def test_a_name_of_something_else(repository: Repository, desk: Desk) -> None:
    """A full name that is a tag's, a tree's or a file's is no commit, and says what it is."""
    repository.git("tag", "-a", "v1", "-m", "annotated")
    for name, kind in (("v1", "tag"), ("main^{tree}", "tree"), ("main:kernel.py", "blob")):
        oid = repository.git("rev-parse", name)
        with pytest.raises((DriftError, GitFaultError), match=f"is a {kind} and no commit|{kind}|not a commit"):
            desk.contents(repository.path, oid)


def test_waits_in_one_process_too(repository: Repository, desk: Desk) -> None:
    """Threads of one penny fetch a commit once."""
    place = Address(path=repository.path)
    came: list[int] = []

    def bring() -> None:
        mirror = _mirror(desk, place, repository.head)
        came.append(mirror.bring(place, repository.head, reporter=desk.notes, what="kernel"))

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(came)[:3] == [0, 0, 0]
    assert max(came) > 0
