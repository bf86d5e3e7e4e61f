"""What the difference between two locks costs."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from reproducer.difference.diff import Diff, diff
from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.identity.meaning import WORST_FIRST
from tests.identity.factory import Edit, lock_data, lock_of, make_lock, sha256

LOCK = make_lock()


def changes(found: Diff) -> dict[str, tuple[Any, Any, str]]:
    """Before, after and consequence of each change, by path."""
    return {change.path: (change.before, change.after, change.consequence) for change in found.changes}


def after(*edits: Edit) -> Diff:
    """The difference that edits make."""
    return diff(LOCK, make_lock(*edits))


def test_equal_locks_differ_in_nothing() -> None:
    """No change, one namespace, nothing to do."""
    found = after()

    assert found.changes == ()
    assert (found.same_namespace, found.rebuild, found.invalidates, found.not_compared) == (True, False, (), ())


def test_every_change_is_told_worst_first() -> None:
    """One change of each class, and none is left out."""

    def edit(data: dict[str, Any]) -> None:
        data["name"] = "renamed"
        data["launch"]["arguments"]["log-level"] = "debug"
        data["launch"]["environment"]["OMP_WAIT_POLICY"] = "ACTIVE"
        data["launch"]["arguments"]["chat-template"] = "chatml"
        data["build"]["source_date_epoch"] = 1
        data["launch"]["effective"]["tp_size"] = 2

    found = after(edit)

    assert [(change.path, change.consequence) for change in found.changes] == [
        ("launch.effective.tp_size", "cache-identity"),
        ("build.source_date_epoch", "build"),
        ("launch.arguments.chat-template", "behaviour"),
        ("launch.environment.OMP_WAIT_POLICY", "performance"),
        ("launch.arguments.log-level", "operational"),
        ("name", "cosmetic"),
    ]
    assert all(change.reason for change in found.changes)
    assert [change.before for change in found.changes] == [1, 1704067200, None, "PASSIVE", "info", "small-sglang-cpu"]
    assert [change.after for change in found.changes] == [2, 1, "chatml", "ACTIVE", "debug", "renamed"]


def test_the_two_directions_mirror_each_other() -> None:
    """What was added one way was removed the other way."""
    other = make_lock(lambda data: data["launch"]["arguments"].update({"chat-template": "x", "page-size": 8}))

    forth, back = changes(diff(LOCK, other)), changes(diff(other, LOCK))

    assert forth == {path: (new, old, cost) for path, (old, new, cost) in back.items()}


def test_a_request_costs_what_its_effective_value_costs() -> None:
    """Both lines are told, in one group, so that cause and effect stand together."""
    found = after(
        lambda data: data["launch"]["arguments"].update({"page-size": 32, "hicache-ratio": 4}),
        lambda data: data["launch"]["effective"].update({"page_size": 32, "hicache_ratio": 4}),
    )

    assert changes(found) == {
        "launch.arguments.page-size": (16, 32, "cache-identity"),
        "launch.effective.page_size": (16, 32, "cache-identity"),
        "launch.arguments.hicache-ratio": (2, 4, "performance"),
        "launch.effective.hicache_ratio": (2, 4, "performance"),
    }


def test_a_request_in_other_words_costs_nothing() -> None:
    """Auto and what auto becomes anyway."""
    found = after(lambda data: data["launch"]["arguments"].update({"kv-cache-dtype": "bfloat16"}))

    assert changes(found) == {"launch.arguments.kv-cache-dtype": ("auto", "bfloat16", "operational")}
    assert found.invalidates == ()


def test_a_type_is_a_change() -> None:
    """1, 1.0 and true are three values."""
    for value in (1.0, True):
        one = make_lock(lambda data: data["launch"]["arguments"].update(x=1))
        two = make_lock(lambda data, value=value: data["launch"]["arguments"].update(x=value))  # type: ignore[misc]
        assert [change.path for change in diff(one, two).changes] == ["launch.arguments.x"]


def test_the_sign_of_zero_is_a_change() -> None:
    """The encoding tells 0.0 and -0.0 apart, so the difference of the namespaces has a line."""
    one, two = (
        make_lock(lambda data, value=value: data["launch"]["arguments"].update(x=value))  # type: ignore[misc]
        for value in (0.0, -0.0)
    )
    found = diff(one, two)

    assert not found.same_namespace
    assert [change.path for change in found.changes] == ["launch.arguments.x"]


def test_the_size_of_a_file_is_told_only_alone() -> None:
    """A digest that changes tells the size; a size that changes without it is strange, and told."""

    def size(data: dict[str, Any]) -> None:
        data["checkpoints"][0]["files"][2]["size"] = 7

    def content(data: dict[str, Any]) -> None:
        data["checkpoints"][0]["files"][2]["sha256"] = sha256("other")

    name = 'checkpoints.target.files."model.safetensors"'
    assert list(changes(after(size))) == [f"{name}.size"]
    assert list(changes(after(size, content))) == [f"{name}.sha256"]


def _patch(path: str, content: str = "") -> dict[str, Any]:
    return {
        "path": f"runtime/patches/{path}",
        "sha256": sha256(content or f"runtime/patches/{path}"),
        "size": 16 + len(path),
    }


@pytest.mark.parametrize(
    ("patches", "expected"),
    [
        (["0000-new.patch", "0001-a.patch", "0002-b.patch"], {"0000-new.patch.sha256": "added"}),
        (["0002-b.patch"], {"0001-a.patch.sha256": "removed"}),
        ([], {"0001-a.patch.sha256": "removed", "0002-b.patch.sha256": "removed"}),
    ],
)
def test_patches_are_told_by_file(patches: list[str], expected: dict[str, str]) -> None:
    """A patch that comes or goes at the front does not rename those that follow."""
    found = after(lambda data: data["components"][0].update(patches=[_patch(path) for path in patches]))

    told = {
        change.path.removeprefix('components.sglang.patches."runtime/patches/').replace('"', ""): (
            "added" if change.before is None else "removed"
        )
        for change in found.changes
    }
    assert told == expected
    assert {change.consequence for change in found.changes} == {"cache-identity"}
    assert not found.same_namespace


def test_a_patch_of_other_content_is_one_change() -> None:
    """Before and after are the two digests."""
    found = after(lambda data: data["components"][0]["patches"][0].update(sha256=sha256("x"), size=1))

    assert changes(found) == {
        'components.sglang.patches."runtime/patches/0001-a.patch".sha256': (
            sha256("runtime/patches/0001-a.patch"),
            sha256("x"),
            "cache-identity",
        )
    }


def test_a_renamed_patch_is_the_same_patch() -> None:
    """Only where it lies has changed."""
    found = after(lambda data: data["components"][0]["patches"][0].update(path="runtime/patches/0001-z.patch"))

    assert list(changes(found).values()) == [
        ("runtime/patches/0001-a.patch", "runtime/patches/0001-z.patch", "cosmetic")
    ]
    assert found.same_namespace


def test_another_order_of_patches_is_a_change() -> None:
    """They are applied one after the other."""
    found = after(lambda data: data["components"][0]["patches"].reverse())

    assert [(change.path, change.consequence) for change in found.changes] == [
        ("components.sglang.patches", "cache-identity")
    ]
    assert "order" in found.changes[0].reason


@pytest.mark.parametrize(
    ("edit", "rebuild", "invalidates"),
    [
        (lambda data: data.update(name="x"), False, []),
        (lambda data: data["launch"]["arguments"].update({"log-level": "debug"}), False, []),
        (lambda data: data["environments"][0].update(indexes=[]), False, []),
        (lambda data: data["components"][0]["outputs"][0]["members"].update(sha256=sha256("x")), False, []),
        (
            lambda data: data["launch"]["environment"].update(OMP_WAIT_POLICY="ACTIVE"),
            False,
            ["launch", "decode.single/1"],
        ),
        (
            lambda data: data["launch"]["arguments"].update({"chat-template": "x"}),
            False,
            ["launch", "decode.single/1", "fidelity/1"],
        ),
        (
            lambda data: data["launch"]["effective"].update(tp_size=2),
            False,
            ["launch", "decode.single/1", "fidelity/1"],
        ),
        (
            lambda data: data["components"][0]["source"].update(sha256=sha256("x")),
            True,
            ["build", "launch", "decode.single/1", "fidelity/1"],
        ),
        (
            lambda data: data["checkpoints"][0]["conversion"]["arguments"].append("--x"),
            True,
            ["build", "launch", "decode.single/1", "fidelity/1"],
        ),
        (
            lambda data: data["checkpoints"][0]["files"][4].update(sha256=sha256("x")),
            True,
            ["build", "launch", "decode.single/1", "fidelity/1"],
        ),
        (lambda data: data["qualification"]["measures"][0].update(repeats=3), False, ["decode.single/1"]),
        (lambda data: data["qualification"]["measures"][1]["thresholds"].clear(), False, ["fidelity/1"]),
        (lambda data: data["qualification"]["reference"].update(sha256=sha256("x")), False, ["fidelity/1"]),
        (lambda data: data["qualification"].pop("reference"), False, ["fidelity/1"]),
        (lambda data: data["qualification"].update(boots=3), False, ["decode.single/1", "fidelity/1"]),
        (lambda data: data["qualification"].update(suite="other"), False, []),
    ],
)  # fmt: skip
def test_what_must_be_done_again(edit: Edit, rebuild: bool, invalidates: list[str]) -> None:  # noqa: FBT001  parametrised
    """Whether to rebuild, and which receipts of the first lock do not speak for the second."""
    found = after(edit)

    assert found.changes
    assert (found.rebuild, list(found.invalidates)) == (rebuild, invalidates)


def test_content_has_the_keys_scripts_rely_on() -> None:
    """`--json` holds every change with path, before, after, consequence, reason and detail."""
    found = after(lambda data: data["launch"]["arguments"].update({"lora-paths": ["a"]}))
    content = json.loads(json.dumps(found.content()))

    assert sorted(content) == [
        "after", "before", "changes", "invalidates", "not_compared", "rebuild", "same_namespace",
    ]  # fmt: skip
    assert content["changes"] == [
        {
            "path": "launch.arguments.lora-paths",
            "before": ["ab", "c"],
            "after": ["a"],
            "consequence": "cache-identity",
            "reason": "an adapter changes the model that computes the pages",
            "detail": None,
        }
    ]
    assert {change["consequence"] for change in content["changes"]} <= set(WORST_FIRST)


PYLOCK = 'lock-version = "1.0"\ncreated-by = "penny"\n'


def _package(name: str, version: str, *digests: str) -> str:
    wheels = ", ".join(
        f'{{ name = "{name}-{version}-{index}.whl", hashes = {{ sha256 = "{sha256(digest)}" }} }}'
        for index, digest in enumerate(digests)
    )
    return f'\n[[packages]]\nname = "{name}"\nversion = "{version}"\nwheels = [{wheels}]\n'


def _opened(folder: Path, pylock: str, *, written: str | None = None) -> OpenedLock:
    """A lock in a folder, with the packages of its runtime environment beside it."""
    data = lock_data()
    encoded = pylock.encode()
    data["environments"][0]["pylock"] = {
        "path": "locks/pylock.runtime.toml",
        "sha256": sha256(pylock),
        "size": len(encoded),
    }
    path = folder / "penny.lock.toml"
    (folder / "locks").mkdir(parents=True)
    (folder / "locks" / "pylock.runtime.toml").write_text(pylock if written is None else written)
    return OpenedLock(lock_of(data), path)


def test_packages_that_came_went_or_moved_are_told(tmp_path: Path) -> None:
    """By name, whatever its spelling, with versions; the same version from other files is told as that."""
    one = _opened(
        tmp_path / "a",
        PYLOCK
        + _package("torch", "2.13.0", "cpu")
        + _package("gone", "1.0", "x")
        + _package("same", "1.0", "x", "y")
        + _package("Rebuilt_Lib", "3.0", "x"),
    )
    two = _opened(
        tmp_path / "b",
        PYLOCK
        + _package("rebuilt.lib", "3.0", "y")
        + _package("same", "1.0", "y", "x")
        + _package("torch", "2.14.0", "cpu")
        + _package("new", "0.1", "x"),
    )

    found = diff(one, two)
    told = {path.removeprefix("environments.runtime."): values for path, values in changes(found).items()}

    assert told.pop("pylock.sha256")[2] == "cache-identity"
    rebuilt = told.pop("package.rebuilt-lib")
    assert rebuilt[0] != rebuilt[1]
    assert all(side.startswith("3.0 (1 files, ") for side in rebuilt[:2])
    assert told == {
        "package.torch": ("2.13.0", "2.14.0", "cache-identity"),
        "package.gone": ("1.0", None, "cache-identity"),
        "package.new": (None, "0.1", "cache-identity"),
    }
    assert found.not_compared == ()


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "is not the file that the lock pins"),
        (None, "not TOML"),
    ],
)
def test_packages_that_cannot_be_compared_are_said_to_be(tmp_path: Path, written: str | None, reason: str) -> None:
    """A file that is missing, changed or broken takes nothing from the answer and is never passed over in silence."""
    one = _opened(tmp_path / "a", PYLOCK)
    two = _opened(tmp_path / "b", "not TOML [", written=written)

    found = diff(one, two)

    assert list(changes(found)) == ["environments.runtime.pylock.sha256"]
    assert len(found.not_compared) == 1
    assert "packages of environment runtime" in found.not_compared[0]
    assert reason in found.not_compared[0]


def test_without_the_files_packages_are_said_not_to_be_compared() -> None:
    """Two bare locks hold only the digest of each set of packages."""
    found = after(lambda data: data["environments"][0]["pylock"].update(sha256=sha256("x")))

    assert found.not_compared == (
        "packages of environment runtime: only the locks were given, not the files beside them",
    )


@pytest.mark.parametrize("entry", ["packages = 3", "[[packages]]\nversion = '1'", "[[packages]]\nname = 3"])
def test_a_strange_pylock_is_told_and_not_trusted(tmp_path: Path, entry: str) -> None:
    """Hostile shapes end in a sentence, not in a fault."""
    found = diff(_opened(tmp_path / "a", PYLOCK), _opened(tmp_path / "b", entry))

    assert list(changes(found)) == ["environments.runtime.pylock.sha256"]
    assert found.not_compared


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(f"version = 0x{'f' * 9000}", id="version"),
        pytest.param(f"sdist = {{hashes = {{sha256 = 0x{'f' * 9000}}}}}", id="digest"),
        "version = 1979-05-27",
    ],
)
def test_a_version_that_is_no_text(tmp_path: Path, entry: str) -> None:
    """TOML carries numbers that Python does not write as text."""
    written = f'[[packages]]\nname = "strange"\n{entry}\n'
    found = diff(_opened(tmp_path / "a", PYLOCK), _opened(tmp_path / "b", written))
    assert list(changes(found)) == ["environments.runtime.pylock.sha256"]
    assert "holds a version or a digest that is no text" in found.not_compared[0]


def test_many_entries_of_one_project(tmp_path: Path) -> None:
    """Each entry costs what it costs alone: twenty thousand took most of a minute when each was sorted anew."""
    written = "".join(f'[[packages]]\nname = "many"\nversion = "{number}"\n' for number in range(20_000))
    one, two = _opened(tmp_path / "a", PYLOCK), _opened(tmp_path / "b", written)
    begun = time.process_time()
    assert "environments.runtime.package.many" in changes(diff(one, two))
    assert time.process_time() - begun < 20


def test_the_default_lock_is_read() -> None:
    """The committed lock has a namespace, differs in nothing from itself, and leaves no request unresolved."""
    path = Path(__file__).parents[2] / "penny.lock.toml"
    opened = open_lock(path)
    found = diff(opened, opened)

    assert found.changes == ()
    assert found.before.name.startswith(f"{opened.lock.target.name}-sglang-")
    assert not [name for name, factor in found.before.factors.items() if factor.kind == "unknown"]
    changed = Lock.from_data({**opened.lock.content(), "platform": "linux-aarch64"}, where="test")
    assert not diff(opened, changed).same_namespace
