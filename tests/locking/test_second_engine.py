"""Locks of other engines: a published wheel as a component, an engine without a list of arguments, several locks."""

from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.opened import open_lock
from reproducer.documents.sources import WheelSource
from reproducer.errors import InvalidDocumentError
from reproducer.locking import lock, write
from reproducer.progress import Silent

KERNELS = 'source = { kind = "local", path = "runtime/kernels" }'
TAKEN = 'source = { kind = "wheel", project = "taken", version = ">=1" }'


def with_wheel(project: Any) -> Any:
    """The project with a published wheel in place of its local sources."""
    project.index.add_wheel("taken", "1.0", files={"taken.py": b"X = 1\n"}, needs=("missing-everywhere",))
    project.edit(KERNELS, TAKEN)
    return project


def lock_as(project: Any, name: str, **options: Any) -> Any:
    """Lock the project's manifest under another name beside the first lock."""
    settings: dict[str, Any] = {"indexes": project.indexes, "reporter": Silent(), "accepted": True} | options
    return lock(project.manifest, project.folder / name, project.store, **settings)


def test_published_wheel(project: Any) -> None:
    """A wheel is pinned by its digest, is its own output, and needs no environment to be built in."""
    with_wheel(project).written()
    opened = open_lock(project.path)
    taken = opened.lock.component("kernels")
    assert isinstance(taken.source, WheelSource)
    assert (taken.source.project, taken.source.version) == ("taken", "1.0")
    assert taken.build_environment is None
    assert [(each.filename, each.sha256) for each in taken.wheels] == [(taken.source.filename, taken.source.sha256)]
    assert b"taken.py" in opened.read(taken.wheels[0].members)
    assert project.lock().reasons == ()


def test_published_wheel_is_kept_until_it_is_upgraded(project: Any) -> None:
    """A newer release changes nothing until it is asked for; then the digest is another."""
    with_wheel(project).written()
    project.index.add_wheel("taken", "2.0", files={"taken.py": b"X = 2\n"})
    assert project.lock().reasons == ()
    reasons = project.lock(upgrade=frozenset({"taken"})).reasons
    assert any("components[kernels].source.version: '1.0' becomes '2.0'" in reason for reason in reasons)


def test_nothing_is_built_of_it(project: Any) -> None:
    """Patches, variables and a build environment say nothing for a wheel, and are refused."""
    with_wheel(project)
    project.edit(TAKEN, f'{TAKEN}\nbuild_environment = "build"')
    with pytest.raises(InvalidDocumentError, match="taken as its publisher built it"):
        project.lock()


def test_an_engine_that_nobody_can_read(project: Any) -> None:
    """An OpenAI-compatible engine has no list of arguments; it is ready by its own endpoint and named by its model."""
    project.edit('kind = "sglang"', 'kind = "openai"')
    project.edit("page-size = 16", 'threads = 2\nalias = "tiny"')
    project.written()
    locked = open_lock(project.path).lock
    assert locked.engine.arguments is None
    assert locked.launch.readiness.endpoint == "/v1/models"
    assert locked.launch.effective == {"served_model_name": "tiny"}
    assert project.lock().reasons == ()


def test_the_manifest_s_endpoint_counts(project: Any) -> None:
    """What the manifest says of readiness is not replaced by the engine's own."""
    project.edit('kind = "sglang"', 'kind = "openai"')
    project.edit("page-size = 16", 'alias = "tiny"')
    project.edit("[qualification]\n", '[launch.readiness]\nendpoint = "/health"\n\n[qualification]\n')
    project.written()
    assert open_lock(project.path).lock.launch.readiness.endpoint == "/health"


def test_an_argument_of_another_engine_s_list(project: Any) -> None:
    """What no lock may carry depends on the engine: a socket is SGLang's own matter and no OpenAI server's."""
    project.edit('kind = "sglang"', 'kind = "openai"')
    project.edit("page-size = 16", 'alias = "tiny"\nuds = "socket"')
    with pytest.raises(InvalidDocumentError, match="may not stand here: penny talks to the server over plain HTTP"):
        project.lock()


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("penny.lock.toml", {"pylock.toml", "pylock.build.toml"}),
        ("two.penny.lock.toml", {"pylock.two.toml", "pylock.two-build.toml"}),
        ("two.lock.toml", {"pylock.two.toml", "pylock.two-build.toml"}),
        ("a.b.penny.lock.toml", {"pylock.a-b.toml", "pylock.a-b-build.toml"}),
        ("other.toml", {"pylock.other.toml", "pylock.other-build.toml"}),
    ],
)
def test_names_of_environments(project: Any, name: str, files: set[str]) -> None:
    """A lock of another name puts it into the names of its environments, as PEP 751 allows."""
    locked = lock_as(project, name)
    assert {path for path in locked.files if path.startswith("pylock")} == files


def test_two_locks_in_one_folder(project: Any) -> None:
    """A second lock leaves the files of the first alone, and both stay as they are."""
    project.written()
    before = {path: path.read_bytes() for path in Path(project.folder).glob("*.toml")}
    project.edit('requirements = ["alpha>=1"]', 'requirements = ["alpha>=1", "beta"]')
    write(lock_as(project, "two.penny.lock.toml"), project.folder / "two.penny.lock.toml")
    assert {path: path.read_bytes() for path in before} == before
    assert lock_as(project, "two.penny.lock.toml").reasons == ()
    project.edit('requirements = ["alpha>=1", "beta"]', 'requirements = ["alpha>=1"]')
    assert project.lock().reasons == ()
