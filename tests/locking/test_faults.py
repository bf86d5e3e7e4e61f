"""What cannot be locked is one clear error with the right exit code, and leaves the lock as it was."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reproducer.errors import (
    DriftError,
    InvalidDocumentError,
    NotCheckedError,
    PennyError,
    UnsafeInputError,
    UsageError,
)
from reproducer.fetch.indexes import Indexes
from reproducer.locking import lock
from reproducer.progress import Silent

PATCH = "runtime/engine/0001-answer.patch"
CASES: list[tuple[str, Callable[[Any], object], type[PennyError], str]] = [
    ("patch is gone", lambda p: (p.folder / PATCH).unlink(), DriftError, f"{PATCH} cannot be read"),
    (
        "patch does not apply",
        lambda p: p.edit("-ANSWER = 1", "-ANSWER = 5", p.folder / PATCH),
        DriftError,
        "0001-answer.patch",
    ),
    ("script is gone", lambda p: (p.folder / "runtime/convert.py").unlink(), DriftError, "runtime/convert.py"),
    ("source is gone", lambda p: p.edit("runtime/kernels", "runtime/kernel"), DriftError, "no folder runtime/kernel"),
    ("member is gone", lambda p: p.edit("tiny_model/model.bin", "tiny_model/m.bin"), DriftError, "tiny_model/m.bin"),
    ("no such release", lambda p: p.edit(">=1,<2", ">=7"), NotCheckedError, "engine"),
    ("malformed specifier", lambda p: p.edit(">=1,<2", ">=x"), InvalidDocumentError, "'>=x' is no version"),
    ("no such package", lambda p: p.edit("alpha>=1", "zeta"), InvalidDocumentError, "environment runtime"),
    ("no such version", lambda p: p.edit("alpha>=1", "alpha>=4"), InvalidDocumentError, "alpha"),
    ("malformed requirement", lambda p: p.edit("alpha>=1", "alpha>>1"), InvalidDocumentError, "no requirement"),
    (
        "requirement with a URL",
        lambda p: p.edit("alpha>=1", "alpha @ https://x.example/a.whl"),
        InvalidDocumentError,
        "names a place",
    ),
    (
        "two versions of one package",
        lambda p: p.edit('["lonely==1.0"]', '["lonely==1.0", "gamma==0.4"]'),
        InvalidDocumentError,
        "gamma",
    ),
    (
        "hint with a password",
        lambda p: p.edit('["alpha>=1"]', '["alpha>=4"]\nindexes = ["https://me:secret@x.example/simple"]'),
        InvalidDocumentError,
        "no plain http",
    ),
    ("manifest is no TOML", lambda p: p.manifest.write_text("a =\n", "utf-8"), InvalidDocumentError, "line 1"),
    ("manifest is gone", lambda p: p.manifest.unlink(), UsageError, "no manifest"),
    ("lock is no lock", lambda p: p.path.write_text("a = 1\n", "utf-8"), InvalidDocumentError, "a lock belongs here"),
]


@pytest.mark.parametrize(("change", "kind", "said"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_fault(project: Any, change: Callable[[Any], object], kind: type[PennyError], said: str) -> None:
    """One clear error of the right kind, and nothing is written."""
    change(project)
    before = project.files()
    with pytest.raises(PennyError) as caught:
        project.lock()
    assert kind is type(caught.value)
    assert said in str(caught.value)
    assert before == project.files()


# What can be known without building or converting anything.
CHEAP = (
    *("patch is gone", "script is gone", "source is gone", "member is gone", "no such release", "malformed specifier"),
    *("requirement with a URL", "no such package"),
)


@pytest.mark.parametrize("name", CHEAP)
def test_what_is_cheap_to_know_comes_before_any_build(fresh: Any, name: str) -> None:
    """Nobody waits for a build, or is asked to accept one, to learn that a file is not there."""
    change, kind, said = next(case[1:] for case in CASES if case[0] == name)
    change(fresh)
    with pytest.raises(PennyError) as caught:
        fresh.lock(accepted=False)
    assert kind is type(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "kind", "said"),
    [
        ('version = "==1.0"', 'version = "==7.0"', NotCheckedError, "tiny-model satisfies ==7.0"),
        ('project = "tiny-model"', 'project = "large-model"', NotCheckedError, "large-model"),
        ('suite = "default"', 'suite = "default"\nreference = "evidence/none.json"', DriftError, "evidence/none.json"),
        (
            "[launch.arguments]",
            '[launch.files]\nconfig = "runtime/none.json"\n\n[launch.arguments]',
            DriftError,
            "none.json",
        ),
        ('KV = "{namespace}"', 'LD_PRELOAD = "x.so"', UnsafeInputError, "no launch takes LD_PRELOAD"),
        (
            "page-size = 16",
            "page-size = 16\ntrust-remote-code = true",
            InvalidDocumentError,
            "trust_remote_code = false",
        ),
        (
            '[[components]]\nname = "kernels"\nsource = { kind = "local", path = "runtime/kernels" }',
            '[[components]]\nname = "kernels"\nsource = { kind = "wheel", project = "kernels", version = "2" }',
            NotCheckedError,
            "of kernels satisfies 2",
        ),
    ],
)
def test_no_other_part_is_built_first(fresh: Any, before: str, after: str, kind: type[PennyError], said: str) -> None:
    """The same for a release that no index has, the reference, a launch's files and what no launch takes."""
    fresh.edit(before, after)
    with pytest.raises(PennyError) as caught:
        fresh.lock(accepted=False)
    assert kind is type(caught.value)
    assert said in str(caught.value)


def test_link_in_a_source_is_refused(project: Any) -> None:
    """A link in a local source could carry anything into a build."""
    (project.folder / "runtime/kernels/secret.py").symlink_to("/etc/passwd")
    with pytest.raises(UnsafeInputError, match=r"secret\.py is a link"):
        project.lock()


def test_patch_that_is_a_link_out_is_refused(project: Any, tmp_path: Path) -> None:
    """A patch that is really a file elsewhere is no file of the lock."""
    outside = tmp_path / "outside.patch"
    outside.write_text("x", "utf-8")
    (project.folder / PATCH).unlink()
    (project.folder / PATCH).symlink_to(outside)
    with pytest.raises(UnsafeInputError, match="leads out of its folder"):
        project.lock()


def test_only_source_distribution_is_no_wheel(project: Any) -> None:
    """Packages of an environment are wheels; one that has none is named."""
    project.edit("alpha>=1", "engine")
    with pytest.raises(InvalidDocumentError, match="engine"):
        project.lock()


def test_unreachable_index_is_not_checked(
    fresh: Any, monkeypatch: pytest.MonkeyPatch, serving: Any, tmp_path: Path
) -> None:
    """An index that does not answer is a fault of the machine: no password is shown, no hinted index is asked."""
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    hinted = serving(tmp_path / "hinted")
    fresh.edit('requirements = ["alpha>=1"]', f'requirements = ["alpha>=1"]\nindexes = ["{hinted.url}"]')
    indexes = Indexes(index_urls=("http://me:secret@127.0.0.1:1/simple",), timeout=2)
    with pytest.raises(NotCheckedError) as caught:
        fresh.lock(indexes=indexes)
    assert caught.value.exit_code == 96
    assert hinted.asked == []
    assert "secret" not in str(caught.value)


def test_manifest_outside_the_lock_folder(project: Any, tmp_path: Path) -> None:
    """A lock names its manifest by a path below its folder."""
    with pytest.raises(UsageError, match="does not lie below"):
        lock(
            project.manifest,
            tmp_path / "a" / "penny.lock.toml",
            project.store,
            indexes=project.indexes,
            reporter=Silent(),
        )
