"""Every source of a lock is asked for: what is gone, moved or for other platforms is named before anything is built."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from reproducer.doctor.checks import Checked, outcome
from reproducer.doctor.sources import Sources
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.sources import GitSource, HubSource
from reproducer.errors import ConfigurationError, DriftError, NotCheckedError
from reproducer.fetch import fetch
from reproducer.fetch.indexes import Indexes
from reproducer.gpus import Card, Cards
from reproducer.progress import Silent
from reproducer.reproduce import Places, reproduce
from reproducer.store import Store
from tests.git.conftest import Repository, git, repository, web
from tests.hub.conftest import NAME, hub, no_token
from tests.hub.server import HubServer
from tests.locking.conftest import locked_once, project, serving, wheel

__all__ = ["hub", "locked_once", "no_token", "project", "repository", "serving", "web"]  # fixtures of other rooms
NAMES = ["component.engine", "component.kernels", "environment.runtime", "environment.build", "checkpoint.model"]
DOWN = Indexes(index_urls=("http://127.0.0.1:1/simple",), timeout=2)


def checks(project: Any, store: Store, *, indexes: Indexes | None = None, offline: bool = False) -> dict[str, Checked]:
    """Every check of the sources, by id."""
    opened = open_lock(project.path)
    sources = Sources(opened, store, indexes or project.indexes, Silent(), offline)
    return {check.id.removeprefix("source."): check for check in sources.checks()}


@pytest.fixture
def empty(tmp_path: Path) -> Store:
    """A store that holds nothing."""
    return Store(tmp_path / "empty")


def test_reproduce_checks_the_driver_first(
    project: Any, empty: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine whose driver is older than the lock's floor nothing is fetched (R13)."""
    opened = open_lock(project.path)
    toolchain = opened.lock.toolchain.model_copy(update={"driver": "610.57.04"})
    lock = opened.lock.model_copy(update={"toolchain": toolchain})
    card = Card("Some GPU", "580.65.06", 1 << 36, "9.0", None, None, None)
    monkeypatch.setattr("reproducer.doctor.gpu.look", lambda: Cards((card,)))
    places = Places(empty, tmp_path / "kv", tmp_path / "keys", tmp_path / "evidence")
    asked = len(project.index.asked)
    with pytest.raises(ConfigurationError, match="610"):
        reproduce(OpenedLock(lock, opened.path), places, indexes=project.indexes, reporter=Silent(), accepted="--yes")
    assert len(project.index.asked) == asked
    assert not empty.root.exists()


def _page(project: Any, name: str) -> Path:
    found: Path = project.index.folder / "simple" / name
    return found


def test_everything_is_there(project: Any, empty: Store) -> None:
    """One check a component, environment and checkpoint; nothing is transferred and no store appears."""
    made = checks(project, empty)
    assert list(made) == NAMES
    assert {check.status for check in made.values()} == {"passed"}
    assert all(check.needed for check in made.values())
    assert made["environment.runtime"].got == "3 of 3 packages are on your indexes"
    assert outcome(made.values()).exit_code == 0
    assert not empty.root.exists()


def test_wheel_that_is_gone_from_the_index(project: Any, empty: Store) -> None:
    """The page lists it no more: the package and its environment fail, with the file and what to do (R10)."""
    shutil.rmtree(_page(project, "alpha"))
    made = checks(project, empty)
    assert (made["package.alpha"].status, made["package.alpha"].needed) == ("failed", True)
    assert "alpha-1.0-py3-none-any.whl" in made["package.alpha"].reason
    assert "PIP_INDEX_URL" in made["package.alpha"].todo
    assert made["environment.runtime"].status == "failed"
    assert made["environment.runtime"].got == "2 of 3 packages are on your indexes"
    assert made["environment.build"].status == "passed"
    assert outcome(made.values()).exit_code == 65


def test_file_that_is_gone_while_its_page_lists_it(project: Any, empty: Store) -> None:
    """The file itself is asked for, not only its page."""
    (_page(project, "engine") / "engine-1.0.tar.gz").unlink()
    made = checks(project, empty)
    assert (made["component.engine"].status, made["component.engine"].needed) == ("failed", True)
    assert "lists it, and the file itself answered 404" in made["component.engine"].reason


def test_file_whose_bytes_were_replaced(project: Any, empty: Store) -> None:
    """Another digest under the same name is told as such (R2)."""
    project.index.add(wheel("tiny-model", "1.0", {"tiny_model/model.bin": b"other"}))
    check = checks(project, empty)["checkpoint.model"]
    assert check.status == "failed"
    assert "has other bytes under this name" in check.reason


def test_what_lies_in_the_store_is_needed_from_nobody(project: Any, empty: Store) -> None:
    """A file that is gone and lies in the store ends nothing; it is told all the same."""
    fetch(open_lock(project.path), empty, indexes=project.indexes, reporter=Silent())
    shutil.rmtree(_page(project, "alpha"))
    made = checks(project, empty)
    assert (made["package.alpha"].status, made["package.alpha"].needed) == ("failed", False)
    assert "it is in the store" in made["package.alpha"].reason
    assert made["environment.runtime"].needed is False
    assert outcome(made.values()).exit_code == 0


def test_index_that_does_not_answer(project: Any, empty: Store) -> None:
    """Nobody knows, and nothing passes."""
    made = checks(project, empty, indexes=DOWN)
    assert made["component.engine"].status == "unknown"
    assert made["environment.runtime"].status == "unknown"
    assert made["component.kernels"].status == "passed"
    assert outcome(made.values()).exit_code == 96


def test_offline(project: Any, empty: Store) -> None:
    """Nobody is asked; each source says that and whether the store has it."""
    asked = len(project.index.asked)
    made = checks(project, empty, offline=True)
    assert len(project.index.asked) == asked
    for name in NAMES:
        if name != "component.kernels":
            assert made[name].status == "skipped"
            assert "--offline touches no network; it is not in the store" in made[name].reason
    assert "it is in the store" in checks(project, project.store, offline=True)["component.engine"].reason
    assert not empty.root.exists()


def test_local_source_that_was_changed(project: Any, empty: Store) -> None:
    """A source tree beside the lock is read: another byte fails."""
    (project.folder / "runtime/kernels/kernels.py").write_text("KERNELS = (1,)\n")
    made = checks(project, empty)
    assert made["component.kernels"].status == "failed"
    assert "kernels.py" in made["component.kernels"].reason


def test_platform_that_is_not_covered(project: Any, empty: Store) -> None:
    """An environment without a wheel for this host names the package and what it is for."""
    path = project.folder / "pylock.toml"
    before = path.read_bytes()
    text = before.decode()
    assert "manylinux_2_17_x86_64" in text
    text = text.replace("manylinux_2_17_x86_64", "manylinux_2_17_s390x")
    path.write_text(text)
    lock = project.path.read_text("utf-8")
    lock = lock.replace(hashlib.sha256(before).hexdigest(), hashlib.sha256(text.encode()).hexdigest())
    lock = lock.replace(f"size = {len(before)}", f"size = {len(text.encode())}")
    project.path.write_text(lock, "utf-8")
    check = checks(project, empty)["environment.runtime"]
    assert (check.status, check.needed) == ("failed", True)
    assert "gamma" in check.reason


def test_reproduce_names_what_is_gone_before_it_builds(project: Any, empty: Store, tmp_path: Path) -> None:
    """A wheel that is gone ends the walk at its first step that needs it: 96, the file by name, nothing built (R10)."""
    shutil.rmtree(_page(project, "alpha"))
    opened = open_lock(project.path)
    places = Places(empty, tmp_path / "kv", tmp_path / "keys", tmp_path / "evidence")
    steps: list[str] = []
    with pytest.raises((NotCheckedError, DriftError)) as caught:
        reproduce(
            opened,
            places,
            indexes=project.indexes,
            reporter=Silent(),
            accepted="--yes",
            tell=lambda step: steps.append(step.name),
        )
    assert caught.value.exit_code == 96
    assert "alpha-1.0-py3-none-any.whl" in str(caught.value)
    assert steps == ["lock"]
    assert not (empty.root / "entries").exists() or not any((empty.root / "entries").iterdir())


@pytest.fixture
def afar(project: Any, web: Any, repository: Repository, hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> OpenedLock:
    """The lock with its engine in a repository and its model on a hub, both on local servers."""
    served = web()
    repository.git("tag", "v1")
    git("clone", "--quiet", "--bare", str(repository.path), str(served.folder / "kernel.git"), cwd=project.folder)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    url = f"{served.url}/kernel.git"
    version = '{ kind = "sdist", project = "engine", version = ">=1,<2" }'
    project.edit(version, f'{{ kind = "git", url = "{url}", ref = "v1" }}')
    opened = open_lock(project.path)
    engine, *rest = opened.lock.components
    (model,) = opened.lock.checkpoints
    source = GitSource(url=url, commit=repository.head, tree=repository.tree)
    held = HubSource(repository=NAME, revision=hub.repositories[NAME].refs["main"])
    changed = {
        "components": (engine.model_copy(update={"source": source}), *rest),
        "checkpoints": (model.model_copy(update={"source": held, "conversion": None, "files": "unknown"}),),
    }
    return OpenedLock(opened.lock.model_copy(update=changed), opened.path)


def _afar(opened: OpenedLock, project: Any, store: Store) -> dict[str, Checked]:
    made = Sources(opened, store, project.indexes, Silent(), offline=False).checks()
    return {check.id.removeprefix("source."): check for check in made}


def test_repository_and_hub(afar: OpenedLock, project: Any, empty: Store, hub: HubServer) -> None:
    """A commit and a revision are asked for where the lock says; both gone are two failed needs (R7, R10)."""
    made = _afar(afar, project, empty)
    assert (made["component.engine"].status, made["component.engine"].needed) == ("passed", True)
    assert made["checkpoint.model"].status == "passed"
    engine, *rest = afar.lock.components
    assert isinstance(engine.source, GitSource)
    lost = engine.source.model_copy(update={"commit": "1" * 40})
    lock = afar.lock.model_copy(update={"components": (engine.model_copy(update={"source": lost}), *rest)})
    del hub.repositories[NAME]
    made = _afar(OpenedLock(lock, afar.path), project, empty)
    for name in ("component.engine", "checkpoint.model"):
        assert (made[name].status, made[name].needed) == ("failed", True), name
    assert "has no commit 111111111111" in made["component.engine"].reason
    assert outcome(made.values()).exit_code == 65


def test_tag_that_was_moved(afar: OpenedLock, project: Any, empty: Store, repository: Repository) -> None:
    """A tag of the manifest that is another commit by now is told; the lock holds the commit and can be built (R1)."""
    (bare,) = project.folder.parent.glob("web-*/kernel.git")
    repository.commit({"kernel.py": "KERNEL = 2\n"})
    repository.git("push", "--quiet", str(bare), "main")
    repository.git("tag", "--force", "v1")
    repository.git("push", "--quiet", "--force", str(bare), "v1")
    made = _afar(afar, project, empty)["component.engine"]
    assert (made.status, made.needed) == ("failed", False)
    assert "the tag 'v1' was moved" in made.reason
