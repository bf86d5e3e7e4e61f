"""The whole way from the command line: manifest, lock, fetch elsewhere, build, namespace, difference, evidence."""

import json
import os
import secrets
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from reproducer.attest.statements import _dependencies
from reproducer.documents.opened import open_lock
from tests.git.conftest import Repository, Server, bare
from tests.git.test_locking import LOCAL, kernels, source_of
from tests.locking.conftest import Project, sdist


def penny(project: Project, *arguments: str, store: Path, code: int = 0) -> Any:
    """Run the command line in the project's folder; its JSON."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))},
        "PIP_INDEX_URL": project.index.url,
        "PENNY_STORE": str(store),
    }
    done = subprocess.run(
        [sys.executable, "-m", "reproducer", *arguments, "--json"],
        cwd=project.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, (done.returncode, done.stderr[-2000:], done.stdout[-2000:])
    return json.loads(done.stdout)


@pytest.fixture
def origin(tmp_path: Path, daemon: Server) -> tuple[Repository, str]:
    """A repository with a submodule on a server: the component reads its name's value from the submodule."""
    part = Repository.new(tmp_path / "part")
    part.commit({"value.txt": secrets.token_hex(8)})
    bare(part, daemon.folder, "part")
    repository = kernels(tmp_path / "kernels")
    repository.submodule("../part", "py/part")
    backend = (repository.path / "py" / "backend.py").read_text()
    read = 'open("kernels.py").read() + "VALUE = " + repr(open("part/value.txt").read()) + chr(10)'
    assert 'open("kernels.py").read()' in backend
    repository.commit({"py/backend.py": backend.replace('open("kernels.py").read()', read)})
    repository.git("tag", "v2")
    bare(repository, daemon.folder, "kernels.git")
    return repository, f"{daemon.url}/kernels.git"


def test_whole_way(project: Project, origin: tuple[Repository, str], tmp_path: Path, daemon: Server) -> None:
    """A stranger with the lock alone fetches, builds byte for byte the same, and gets the same namespace."""
    repository, url = origin
    text = f'source = {{ kind = "git", url = "{url}", ref = "v2", subfolder = "py" }}'
    project.edit(LOCAL, text)
    mine, theirs = project.store.root, tmp_path / "their-store"
    before = open_lock(project.path)
    (tmp_path / "before").mkdir()
    for path, data in project.files().items():
        target = tmp_path / "before" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    locked = penny(project, "lock", "--yes", store=mine)
    assert locked["changed"]
    source = source_of(open_lock(project.path).lock)
    assert source.commit == repository.head
    assert [each.path for each in source.submodules] == ["py/part"]
    assert penny(project, "lock", "--check", store=mine)["reasons"] == []
    offline = penny(project, "fetch", "--offline", store=theirs, code=96)
    assert "store" in offline["error"]["what"]
    fetched = penny(project, "fetch", store=theirs)
    assert (fetched["commits"], fetched["commits_reused"]) == (2, 0)
    again = penny(project, "fetch", "--offline", store=theirs)
    assert (again["commits"], again["commits_reused"], again["downloaded"]) == (2, 2, 0)
    built = penny(project, "build", "--yes", "--offline", store=theirs)
    assert built["level"] == "bytes-identical"
    wheel = next(theirs.glob("entries/wheel/*/content/out/kernels-0.1-py3-none-any.whl"))
    value = (tmp_path / "part" / "value.txt").read_text()
    with zipfile.ZipFile(wheel) as packed:
        assert f"VALUE = '{value}'" in packed.read("kernels.py").decode()
    name = penny(project, "namespace", store=theirs)["namespace"]
    assert penny(project, "namespace", store=mine)["namespace"] == name
    subjects = list(_dependencies(open_lock(project.path).lock))
    assert {"gitCommit": source.commit, "gitTree": source.tree} in [each["digest"] for each in subjects]
    moved = repository.commit({"py/kernels.py": "KERNELS = 'two'\n"})
    repository.git("push", "--quiet", str(daemon.folder / "kernels.git"), "main")
    old = project.path.read_bytes()
    penny(project, "lock", "--yes", "--upgrade", "kernels", store=mine)
    assert source_of(open_lock(project.path).lock).commit == source.commit  # the tag did not move
    assert project.path.read_bytes() == old
    project.edit('ref = "v2"', f'ref = "{moved}"')
    (project.folder / "old.lock.toml").write_bytes(old)
    penny(project, "lock", "--yes", store=mine)
    difference = penny(project, "diff", "old.lock.toml", "penny.lock.toml", store=mine, code=65)
    changes = {each["path"]: each for each in difference["changes"]}
    assert changes["components.kernels.source.commit"]["after"] == moved
    assert changes["components.kernels.source.commit"]["consequence"] == "cache-identity"
    assert difference["rebuild"]
    assert not difference["same_namespace"]
    assert before.lock.name == "tiny"


def test_repository_option(project: Project, tmp_path: Path) -> None:
    """A component whose repository has no address is built by a stranger who says where their copy lies."""
    repository = kernels(tmp_path / "project" / "vendor")
    project.edit(LOCAL, 'source = { kind = "git", url = "vendor", ref = "main", subfolder = "py", changes = true }')
    repository.write({"py/kernels.py": "KERNELS = 'changed'\n"})
    penny(project, "lock", "--yes", store=project.store.root)
    copy = bare(repository, tmp_path, "copy.git")
    repository.path.rename(tmp_path / "gone")
    theirs = tmp_path / "their-store"
    said = penny(project, "fetch", store=theirs, code=96)
    assert "--repository" in said["error"]["todo"]
    said = penny(project, "fetch", "--repository", f"kernel={copy}", store=theirs, code=2)
    assert "kernels" in said["error"]["todo"]
    for option in ("kernels", f"kernels={tmp_path}/nothing"):
        penny(project, "fetch", "--repository", option, store=theirs, code=2)
    assert penny(project, "fetch", "--repository", f"kernels={copy}", store=theirs)["commits"] == 1
    built = penny(project, "build", "--yes", "--offline", store=theirs)
    assert built["level"] == "bytes-identical"


def test_upgrade_of_nothing(project: Project) -> None:
    """`--upgrade` of a name that nothing goes by is a wrong usage."""
    said = penny(project, "lock", "--upgrade", "kernel", store=project.store.root, code=2)
    assert "kernels" in said["error"]["todo"]


def test_sdist_is_not_the_tag(project: Project, tmp_path: Path) -> None:
    """The sdist and the tag of one version are different sources with different digests, and `diff` says so (R9)."""
    project.index.add(sdist("kernels", "0.1", "KERNELS = ('from the sdist',)\n"))
    project.edit(LOCAL, 'source = { kind = "sdist", project = "kernels", version = "==0.1" }')
    penny(project, "lock", "--yes", store=project.store.root)
    (project.folder / "sdist.lock.toml").write_bytes(project.path.read_bytes())
    kernels(tmp_path / "project" / "vendor")
    project.edit(
        'source = { kind = "sdist", project = "kernels", version = "==0.1" }',
        'source = { kind = "git", url = "vendor", ref = "v1", subfolder = "py" }',
    )
    penny(project, "lock", "--yes", store=project.store.root)
    difference = penny(project, "diff", "sdist.lock.toml", "penny.lock.toml", store=project.store.root, code=65)
    changes = {each["path"]: each for each in difference["changes"]}
    assert (
        changes["components.kernels.source.kind"]["before"],
        changes["components.kernels.source.kind"]["after"],
    ) == (
        "sdist",
        "git",
    )
    assert "components.kernels.source.sha256" in changes
    assert "components.kernels.source.tree" in changes
    assert difference["rebuild"]
    assert not difference["same_namespace"]


def test_build_file_that_fetches(project: Project, tmp_path: Path, daemon: Server) -> None:
    """A build that fetches a branch by itself reaches no server, though there is one: nothing unlocked gets in (R8)."""
    other = Repository.new(tmp_path / "other")
    other.commit({"other.txt": "moving"})
    bare(other, daemon.folder, "other.git")
    repository = kernels(tmp_path / "project" / "vendor")
    backend = (repository.path / "py" / "backend.py").read_text()
    fetch = (
        "import subprocess\n"
        f"subprocess.run(['git', 'clone', '--branch', 'main', '{daemon.url}/other.git', 'third'], check=True)\n"
    )
    repository.commit({"py/backend.py": backend.replace("import glob", f"{fetch}import glob")})
    project.edit(LOCAL, 'source = { kind = "git", url = "vendor", ref = "main", subfolder = "py" }')
    said = penny(project, "lock", "--yes", store=project.store.root, code=66)
    assert "the build of kernels failed" in said["error"]["what"]
    assert "third" in said["error"]["why"]
