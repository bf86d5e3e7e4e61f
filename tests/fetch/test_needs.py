"""Everything a lock needs."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.sources import Artefact
from reproducer.errors import DriftError, InvalidDocumentError, NotCheckedError
from reproducer.fetch import fetch
from reproducer.fetch.indexes import Indexes
from reproducer.fetch.web import Patience
from reproducer.store import Store

if TYPE_CHECKING:
    from reproducer.documents.lock import Lock

COMMITTED = Path(__file__).parents[2] / "penny.lock.toml"


def pylock(*wheels: Artefact) -> bytes:
    """A PEP 751 file of these wheels, one package each."""
    text = 'lock-version = "1.0"\ncreated-by = "penny"\n'
    for wheel in wheels:
        text += f'[[packages]]\nname = "{wheel.project}"\nversion = "{wheel.version}"\n[[packages.wheels]]\n'
        text += f'name = "{wheel.filename}"\npath = "{wheel.filename}"\nsize = {wheel.size}\n'
        text += f'hashes = {{sha256 = "{wheel.sha256}"}}\n'
    return text.encode()


class Needs:
    """A lock in a folder whose sources and packages lie on the test's index."""

    def __init__(self, index: Any, folder: Path) -> None:
        self.engine = index.add("engine-1.0.tar.gz", b"engine" * 100)
        self.model = index.add("model-1.0-py3-none-any.whl", b"model" * 100)
        self.shared = index.add("shared-1.0-py3-none-any.whl", b"shared" * 100)
        self.own = index.add("own-1.0-py3-none-any.whl", b"own" * 100)
        self.folder = folder
        folder.mkdir()

    def opened(self, *, packages: int = 0, hints: tuple[str, ...] = ()) -> OpenedLock:
        """The committed lock with these sources; `packages` is added to what it says of an environment's size."""
        lock = open_lock(COMMITTED).lock
        sdist = next(each for each in lock.components if each.source.kind == "sdist")
        source = sdist.source.model_copy(update=self.engine.model_dump())
        components = tuple(
            each.model_copy(update={"source": source}) if each is sdist else each for each in lock.components
        )
        checkpoints = tuple(
            each.model_copy(update={"source": each.source.model_copy(update=self.model.model_dump())})
            for each in lock.checkpoints
        )
        environments = []
        for number, each in enumerate(lock.environments):
            wheels = (self.shared, self.own) if number == 0 else (self.shared,)
            data = pylock(*wheels)
            name = f"pylock.{each.name}.toml"
            (self.folder / name).write_bytes(data)
            reference = {"path": name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            environments.append(
                each.model_copy(
                    update={
                        "pylock": each.pylock.model_copy(update=reference),
                        "packages": len(wheels) + packages,
                        "indexes": hints,
                    }
                )
            )
        changed: Lock = lock.model_copy(
            update={"components": components, "checkpoints": checkpoints, "environments": tuple(environments)}
        )
        return OpenedLock(changed, self.folder / "penny.lock.toml")


@pytest.fixture
def needs(index: Any, tmp_path: Path) -> Needs:
    """What the test's lock needs."""
    return Needs(index, tmp_path / "project")


def test_everything_is_brought_once(
    needs: Needs, index: Any, store: Store, indexes: Indexes, *, quick: Patience, reporter: Any
) -> None:
    """Sources, wheels of every environment and the checkpoint's wheel; then all of it again, offline."""
    opened = needs.opened()
    fetched = fetch(opened, store, indexes=indexes, reporter=reporter, patience=quick)
    assert fetched.artefacts == (needs.engine, needs.model, needs.own, needs.shared)
    names = [environment.name for environment in opened.lock.environments]
    assert fetched.environments == dict.fromkeys(names, (needs.shared,)) | {names[0]: (needs.own, needs.shared)}
    assert fetched.downloaded == sum(artefact.size for artefact in fetched.artefacts)
    assert fetched.reused == 0
    index.requests.clear()
    again = fetch(opened, store, indexes=indexes, reporter=reporter, offline=True)
    assert (again.downloaded, again.reused) == (0, 4)
    assert (again.artefacts, again.environments) == (fetched.artefacts, fetched.environments)
    assert index.requests == []


def test_all_that_is_missing_offline(
    needs: Needs, store: Store, indexes: Indexes, quick: Patience, reporter: Any
) -> None:
    """Every missing file of every kind stands in one error."""
    with pytest.raises(NotCheckedError) as caught:
        fetch(needs.opened(), store, indexes=indexes, reporter=reporter, offline=True, patience=quick)
    for artefact in (needs.engine, needs.model, needs.shared, needs.own):
        assert artefact.filename in str(caught.value)


def test_the_locks_hints_are_asked_last(
    needs: Needs, index: Any, other_index: Any, store: Store, *, quick: Patience, reporter: Any
) -> None:
    """What the user's own index lacks comes from the index the lock hints at; the user's own is asked first."""
    del index.files[needs.own.filename]
    other_index.add(needs.own.filename, b"own" * 100)
    other_index.add(needs.shared.filename, b"shared" * 100)
    opened = needs.opened(hints=(other_index.url,))
    fetch(opened, store, indexes=Indexes((index.url,)), reporter=reporter, patience=quick)
    assert list(other_index.pages()) == ["/simple/own/"]


def test_a_changed_environment_file_is_drift(
    needs: Needs, store: Store, indexes: Indexes, quick: Patience, reporter: Any
) -> None:
    """The PEP 751 file beside the lock has to be the one that is pinned."""
    opened = needs.opened()
    path = needs.folder / opened.lock.environments[0].pylock.path
    path.write_bytes(path.read_bytes().replace(b"own", b"pwn"))
    with pytest.raises(DriftError, match="not the file that the lock pins"):
        fetch(opened, store, indexes=indexes, reporter=reporter, patience=quick)


def test_a_wrong_number_of_packages(
    needs: Needs, store: Store, indexes: Indexes, quick: Patience, reporter: Any
) -> None:
    """Lock and PEP 751 file contradict each other."""
    with pytest.raises(InvalidDocumentError, match="has 2 packages"):
        fetch(needs.opened(packages=1), store, indexes=indexes, reporter=reporter, patience=quick)
