"""From manifest to lock: what it pins, what it keeps, and that the same inputs give the same bytes."""

import hashlib
import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.pylock import Pylock

from reproducer.binaries.wheel_content import parse_members
from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.opened import open_lock, references
from reproducer.documents.sources import LocalSource, SdistSource
from reproducer.documents.toml import parse_toml
from reproducer.errors import InvalidDocumentError, UsageError
from reproducer.fetch import read_pylock
from reproducer.locking import manifest_of, write

CP = f"cp{sys.version_info.major}{sys.version_info.minor}"
CHANGED = "to be built again, for an input changed"


def test_everything_is_exact(locked_once: Any) -> None:
    """A lock pins source, patches, local files, environments, checkpoint files and outputs, and all of it verifies."""
    opened = open_lock(locked_once.path)
    engine, kernels = opened.lock.components
    assert isinstance(engine.source, SdistSource)
    assert (
        engine.source.project,
        engine.source.version,
        engine.source.filename,
    ) == ("engine", "1.0", "engine-1.0.tar.gz")
    assert [patch.path for patch in engine.patches] == ["runtime/engine/0001-answer.patch"]
    assert isinstance(kernels.source, LocalSource)
    assert [file.path for file in kernels.source.files] == ["backend.py", "kernels.py", "pyproject.toml"]
    assert [file.path for file in opened.lock.target.listed] == ["config.json", "model.safetensors"]
    assert opened.lock.target.made is not None
    assert opened.lock.target.made[0].member_size == 64
    assert [output.filename for output in engine.outputs] == ["engine-1.0-py3-none-any.whl"]
    members = parse_members(opened.read(engine.wheels[0].members), where="members")
    assert "engine.py" in members
    assert opened.check_files() > 0


def test_effective_values_come_from_the_engine(locked_once: Any) -> None:
    """Effective values are what the engine makes of the launch and the checkpoint's own config, never `auto`."""
    effective = open_lock(locked_once.path).lock.launch.effective
    assert (effective["dtype"], effective["context_length"], effective["page_size"]) == ("float16", 2048, 16)
    assert "auto" not in effective.values()


def test_environments_are_valid_on_any_index(locked_once: Any) -> None:
    """An environment is PEP 751, with every wheel for the platform and Python, and no place to get it from."""
    text = (locked_once.folder / "pylock.toml").read_text("utf-8")
    Pylock.from_dict(parse_toml(text, where="pylock.toml")).validate()
    packages = {package.name: package for package in read_pylock(text, where="pylock.toml").packages}
    assert sorted(packages) == ["alpha", "gamma", "lonely"]
    tags = sorted(wheel.filename.split("-", 2)[2].removesuffix(".whl") for wheel in packages["gamma"].wheels)
    assert tags == [f"{CP}-{CP}-manylinux_2_17_x86_64", "cp38-abi3-musllinux_1_2_x86_64"]
    assert all(wheel.size > 0 for wheel in packages["gamma"].wheels)


def test_nothing_of_this_machine(locked_once: Any) -> None:
    """No address, host, user, absolute path or time stands in what a lock consists of."""
    for path, data in locked_once.files().items():
        if path == "penny.lock.toml" or path.startswith(("pylock", "runtime/expected")):
            text = data.decode()
            assert "127.0.0.1" not in text
            assert "http" not in text
            assert str(locked_once.folder) not in text
            assert socket.gethostname() not in text
            assert re.search(r"(?<![\w.])/(tmp|home|root|work)\b|20\d\d-\d\d-\d\d", text) is None


def test_locking_again_gives_the_same_bytes(project: Any) -> None:
    """Without a change there is no reason, nothing is built, and writing gives the same bytes."""
    before = project.files()
    locked = project.lock(accepted=False)
    assert locked.reasons == ()
    write(locked, project.path)
    assert before == project.files()


def test_locking_anew_elsewhere_gives_the_same_bytes(locked_once: Any, fresh: Any) -> None:
    """Another folder and no lock to begin with: the same bytes."""
    fresh.written()
    assert locked_once.files() == fresh.files()


def test_everything_anew_gives_the_same_bytes(project: Any) -> None:
    """`ALL` keeps nothing and finds the same."""
    before = project.files()
    assert project.written(upgrade=frozenset({"ALL"})).reasons == ()
    assert before == project.files()


def test_no_lock_yet_is_the_reason(fresh: Any) -> None:
    """Where there is no lock, that is why it would change."""
    assert fresh.lock().reasons == ("there is no penny.lock.toml yet",)


def test_running_others_code_is_asked_for(fresh: Any) -> None:
    """Learning an expected output takes a build, and a build must be accepted; nothing is written without."""
    with pytest.raises(UsageError, match="building engine runs other people's code"):
        fresh.lock(accepted=False)
    assert not fresh.path.exists()


def test_changed_patch_is_named_without_a_build(project: Any) -> None:
    """`--check` says which patch differs, before and after, and what a build would have to tell; it builds nothing."""
    old = open_lock(project.path).lock.component("engine").patches[0].sha256
    project.edit("ANSWER = 2", "ANSWER = 3", project.folder / "runtime/engine/0001-answer.patch")
    before = project.files()
    reasons = project.lock(check=True, accepted=False).reasons
    assert before == project.files()
    place = "components[engine].patches[runtime/engine/0001-answer.patch].sha256"
    assert any(reason.startswith(f"{place}: '{old}' becomes '") for reason in reasons)
    assert f"components[engine].outputs: {CHANGED}" in reasons
    assert not any("components[kernels]" in reason for reason in reasons)


def test_changed_patch_gives_another_output(project: Any) -> None:
    """A build follows what changed, and only that."""
    before = open_lock(project.path).lock
    project.edit("ANSWER = 2", "ANSWER = 3", project.folder / "runtime/engine/0001-answer.patch")
    after = project.written().document
    assert before.component("engine").outputs[0].sha256 != after.component("engine").outputs[0].sha256
    assert before.component("kernels") == after.component("kernels")
    assert before.target == after.target
    assert project.lock(accepted=False).reasons == ()


def test_changed_launch_is_named_with_before_and_after(project: Any) -> None:
    """Every changed fact of the launch has a reason, and the effective values follow."""
    project.edit("page-size = 16", 'page-size = 32\ndtype = "bfloat16"')
    reasons = project.lock(check=True, accepted=False).reasons
    assert "launch.arguments.page-size: 16 becomes 32" in reasons
    assert "launch.arguments.dtype: 'bfloat16' is new" in reasons
    after = project.written().document.launch.effective
    assert (after["dtype"], after["page_size"]) == ("bfloat16", 32)


def test_changed_deadline_needs_no_build(project: Any) -> None:
    """What no build and no effective value depends on changes alone."""
    project.edit("[launch.environment]", "[launch.readiness]\ndeadline_s = 7\n\n[launch.environment]")
    assert project.lock(accepted=False).reasons == ("launch.readiness.deadline_s: 300 becomes 7",)


def test_a_threshold_relative_to_a_receipt_is_pinned(project: Any) -> None:
    """A manifest names the receipt by its path; the lock has its digest, and an edited file is a reason."""
    receipt = project.folder / "runtime/rate.json"
    receipt.write_bytes(b"{}")
    bound = (
        '{ value = "decode_rate", comparator = ">=", bound = 1.0, unit = "ratio", relative_to = "runtime/rate.json" }'
    )
    project.edit('{ value = "decode_rate", comparator = ">=", bound = 1, unit = "tok/s" }', bound)
    locked = project.written().document
    (threshold,) = locked.qualification.measures[-1].thresholds
    assert threshold.relative_to is not None
    assert (threshold.relative_to.path, threshold.relative_to.size) == ("runtime/rate.json", 2)
    assert threshold.relative_to.sha256 == hashlib.sha256(b"{}").hexdigest()
    assert threshold.relative_to in references(locked)
    receipt.write_bytes(b"{ }")
    assert any("relative_to.sha256" in reason for reason in project.lock(check=True, accepted=False).reasons)


def test_versions_that_still_do_are_asked_of_nobody(project: Any) -> None:
    """What is locked and still does needs no index; a changed requirement does, and is told as ever."""
    project.index.add_wheel("alpha", "2.0", needs=("gamma",))
    assert project.lock(upgrade=frozenset({"alpha"})).reasons  # uv knows both releases by now, and nothing is written
    assert project.lock().reasons == ()
    project.index.asked.clear()
    assert project.lock(check=True).reasons == ()
    assert project.index.asked == []
    project.index.add_wheel("alpha", "3.0", needs=("gamma",))
    project.edit('"alpha>=1"', '"alpha>=2"')
    assert "pylock.toml: alpha: 1.0 becomes 3.0" in project.lock(check=True).reasons


def test_versions_are_kept_until_an_upgrade(project: Any) -> None:
    """A newer release changes nothing by itself; `--upgrade NAME` takes it and nothing else."""
    project.index.add_wheel("alpha", "1.1", needs=("gamma",))
    project.index.add_wheel("gamma", "0.6")
    project.index.add_sdist("engine", "1.2", '"""The engine."""\nANSWER = 1\n')
    assert project.lock(accepted=False).reasons == ()
    reasons = project.lock(accepted=False, upgrade=frozenset({"alpha"})).reasons
    assert "pylock.toml: alpha: 1.0 becomes 1.1" in reasons
    assert not any("gamma" in reason for reason in reasons)
    assert project.written(upgrade=frozenset({"engine"})).document.component("engine").outputs[0].filename == (
        "engine-1.2-py3-none-any.whl"
    )


def test_missing_and_edited_files_are_reasons(project: Any) -> None:
    """A file beside the lock that is gone or edited is a reason, and writing restores it."""
    before = project.files()
    (project.folder / "pylock.toml").unlink()
    project.edit("beta", "betta", project.folder / "pylock.build.toml")
    reasons = project.lock().reasons
    assert "pylock.toml: is missing" in reasons
    assert "pylock.build.toml: is not the file that the lock pins" in reasons
    project.written()
    assert before == project.files()


def test_missing_member_list_is_built_again(project: Any) -> None:
    """A lost list of members is learned again."""
    before = project.files()
    (project.folder / "runtime/expected/engine-1.0-py3-none-any.whl.members").unlink()
    assert f"components[engine].outputs: {CHANGED}" in project.lock(check=True).reasons
    project.written()
    assert before == project.files()


def test_leftovers_are_no_sources(project: Any) -> None:
    """What builds and tools leave in a source folder is not part of it."""
    kernels = project.folder / "runtime/kernels"
    for path in ("__pycache__/x.pyc", "kernels.egg-info/PKG-INFO", "build/lib/x.py"):
        (kernels / path).parent.mkdir(parents=True, exist_ok=True)
        (kernels / path).write_text("x", "utf-8")
    assert project.lock(accepted=False).reasons == ()
    (kernels / "more.py").write_text("x", "utf-8")
    assert "components[kernels].source.files[more.py].path: 'more.py' is new" in project.lock(check=True).reasons


def test_hinted_index_is_asked_last(fresh: Any, serving: Any, tmp_path: Path) -> None:
    """An index that the manifest hints at is asked only for what the user's own does not have."""
    hinted = serving(tmp_path / "hinted")
    hinted.add_wheel("delta", "3.0")
    hinted.add_wheel("alpha", "9.0")
    fresh.edit('requirements = ["beta"]', f'requirements = ["beta"]\nindexes = ["{hinted.url}"]')
    fresh.lock()
    assert hinted.asked == []
    fresh.edit('["alpha>=1"]', f'["alpha>=1,<2", "delta"]\nindexes = ["{hinted.url}"]')
    packages = read_pylock(fresh.lock().files["pylock.toml"], where="pylock.toml").packages
    assert [package.name for package in packages] == ["alpha", "delta", "gamma", "lonely"]


def test_manifest_of_lock_and_of_folder(project: Any) -> None:
    """The manifest is the one the lock names, or the only one in the folder."""
    assert project.manifest == manifest_of(project.path)
    project.path.unlink()
    assert project.manifest == manifest_of(project.path)
    (project.folder / "manifests/other.toml").write_text("", "utf-8")
    with pytest.raises(UsageError, match="name a manifest"):
        manifest_of(project.path)


def test_the_list_of_what_the_engine_takes_lies_beside_the_lock(project: Any) -> None:
    """The list is read from the built engine, the lock pins it, and reading it again changes nothing."""
    opened = open_lock(project.path)
    listed = opened.lock.engine.arguments
    assert listed is not None
    schema = ArgumentSchema.from_json(opened.read(listed), where=listed.path)

    assert (schema.engine, schema.version) == ("sglang", "1.0")
    names = ["dtype", "hicache-storage-backend", "model-path", "page-size", "tensor-parallel-size"]
    assert [each.name for each in schema.arguments] == names
    assert [(each.name, each.default.value) for each in schema.variables] == [("SGLANG_ROUNDS", 3)]
    (project.folder / listed.path).unlink()
    again = project.lock(accepted=True)
    assert any(listed.path in reason for reason in again.reasons)
    assert again.document == opened.lock


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("page-sise = 16", "page-size"),
        ('page-size = "sixteen"', "page-size"),
        ('page-size = 16\ndtype = "float8"', "float16"),
        ("page-size = 16\ntp = 2\ntensor-parallel-size = 2", "tensor-parallel-size"),
    ],
)
def test_an_argument_that_the_engine_does_not_take(project: Any, line: str, said: str) -> None:
    """A misspelt name, a wrong type, an unknown choice and a name given twice are errors when locking."""
    project.edit("page-size = 16", line)
    with pytest.raises(InvalidDocumentError, match=f"does not take these arguments.*{said}"):
        project.lock(accepted=True)


def test_an_alias_is_locked_by_its_own_name(project: Any) -> None:
    """`tp`, `tp-size` and `tensor-parallel-size` give one lock."""
    digests = set()
    for before, name in (("page-size = 16", "tp"), ("tp = 2", "tp-size"), ("tp-size = 2", "tensor-parallel-size")):
        project.edit(before, f"{name} = 2")
        locked = project.lock(accepted=True).document
        assert dict(locked.launch.arguments)["tensor-parallel-size"] == 2
        digests.add(locked.digest)
    assert len(digests) == 1
