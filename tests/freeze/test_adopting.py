"""A frozen lock is launched as it stands, after every file was held against it; nothing of it counts as built."""

import json
import shutil
from pathlib import Path

import pytest

from reproducer.documents.built import AdoptedRuntime
from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.receipts import BuildReceipt
from reproducer.documents.toml import parse_toml
from reproducer.errors import DriftError, InvalidDocumentError
from reproducer.freeze.adopting import adopt
from reproducer.progress import Silent
from reproducer.verify.receipts import verify_receipts
from tests.freeze.conftest import VERSION, World, write_wheel

WORDS = ("--attention-backend", "torch_native", "--page-size", "16")


def frozen(world: World, *words: str) -> OpenedLock:
    """A lock of the stand-in, written by the command line."""
    _, port = world.start(*(words or WORDS))
    ended = world.penny("freeze", "--url", f"http://127.0.0.1:{port}", "--json", "--quiet")
    assert ended.code == 0, ended.err
    world.end()
    return open_lock(world.work / "frozen.lock.toml")


def adopted(world: World, opened: OpenedLock) -> BuildReceipt:
    """The receipt of its runtime."""
    return adopt(opened, world.store, reporter=Silent(), accepted="--yes").receipt


def test_a_frozen_lock_is_launched_again_with_the_same_values(world: World) -> None:
    """Freeze, launch the lock, freeze that one: arguments, packages, effective values and namespace are the same."""
    opened = frozen(world)
    assert world.penny("namespace", "--lock", "frozen.lock.toml").code == 0
    up = world.penny("launch", "--lock", "frozen.lock.toml", "--detach", "--yes", "--json")
    assert up.code == 0, up.err
    try:
        again = world.penny("freeze", "--url", up.result["url"], "--json", "--lock", "again.lock.toml")
        assert again.code == 0, again.err
    finally:
        assert world.penny("stop", "--lock", "frozen.lock.toml").code == 0
    second = open_lock(world.work / "again.lock.toml")
    assert second.lock.launch.arguments == opened.lock.launch.arguments
    assert second.lock.launch.effective == opened.lock.launch.effective
    assert second.lock.adopted is not None
    assert opened.lock.adopted is not None
    assert second.lock.adopted.environment.sha256 == opened.lock.adopted.environment.sha256
    same = world.penny("diff", "frozen.lock.toml", "again.lock.toml", "--json")
    assert same.result["same_namespace"] is True


def test_doctor_asks_for_the_adopted_interpreter(world: World) -> None:
    """An adopted runtime needs no installer: its own interpreter is looked for, where the freeze noted it."""
    frozen(world)
    asked = ("doctor", "--lock", "frozen.lock.toml", "--offline", "--json")
    checks = {check["id"]: check for check in world.penny(*asked).result["checks"]}
    assert checks["host.uv"]["status"] == "skipped"
    assert checks["host.python"]["status"] == "passed"
    assert str(world.python) in checks["host.python"]["got"]
    (world.python.parent.parent / "pyvenv.cfg").unlink()
    world.python.unlink()
    gone = {check["id"]: check for check in world.penny(*asked).result["checks"]}
    assert gone["host.python"]["status"] == "failed"
    assert "--python" in gone["host.python"]["todo"]
    shutil.rmtree(world.store.root / "frozen")
    elsewhere = {check["id"]: check for check in world.penny(*asked).result["checks"]}
    assert elsewhere["host.python"]["status"] == "unknown"


def test_other_effective_values_are_refused(world: World) -> None:
    """What the lock says is compared with the live server before any traffic."""
    opened = frozen(world)
    text = opened.path.read_text().replace('attention_backend = "torch_native"', 'attention_backend = "triton"')
    opened.path.write_text(text)
    ended = world.penny(
        "launch",
        "--lock",
        "frozen.lock.toml",
        "--python",
        str(world.python),
        "--detach",
        "--yes",
        "--checkpoint",
        f"target={world.checkpoint}",
    )
    assert ended.code == 68
    assert "attention_backend: expected 'triton', got 'torch_native'" in ended.err


def test_every_difference_is_named_before_anything_starts(world: World) -> None:
    """A changed file, a missing, a new and another version of a package, a dropped file: all in one error, exit 65."""
    extra = world.folder / "wheels"
    world.install(write_wheel(extra, "going", "1.0", {"going.py": ""}))
    world.install(write_wheel(extra, "moving", "1.0", {"moving.py": "V = 1\n"}))
    frozen(world)
    (world.site / "small_thing" / "__init__.py").write_text("WORD = 9\n")
    (world.site / "going.py").unlink()
    shutil.rmtree(world.site / "going-1.0.dist-info")
    world.install(write_wheel(extra, "moving", "2.0", {"moving.py": "V = 2\n"}))
    world.install(write_wheel(extra, "coming", "1.0", {"coming.py": ""}))
    (world.site / "dropped.py").write_text("")
    ended = world.penny("launch", "--lock", "frozen.lock.toml", "--yes", "--json", "--detach")
    assert ended.code == 65
    why = ended.result["error"]["why"]
    for said in (
        "small-thing: small_thing/__init__.py is changed",
        "going 1.0 is missing",
        "moving is 2.0, not 1.0",
        "coming 1.0 is installed and not in the lock",
        "dropped.py, which belongs to no package, is new",
    ):
        assert said in why
    assert "5 differences" in ended.result["error"]["what"]


def test_a_checkpoint_that_changed_is_refused(world: World) -> None:
    """Changed, missing and further files are named."""
    opened = frozen(world)
    (world.checkpoint / "config.json").write_text(json.dumps({"model_type": "other"}))
    (world.checkpoint / "more.json").write_text("{}")
    (world.checkpoint / "model.safetensors").unlink()
    with pytest.raises(DriftError) as caught:
        adopted(world, opened)
    for said in ("model.safetensors is missing", "more.json is not in the lock", "config.json has sha256"):
        assert said in caught.value.why


def test_another_suite_or_launch_of_the_same_runtime_lies_where_it_lay(world: World) -> None:
    """Measures added to a frozen lock by hand, or another argument, do not make its places unknown."""
    path = frozen(world).path
    text = path.read_text("utf-8")
    path.write_text(text.replace("page-size = 16", "page-size = 32", 1).replace('suite = "smoke"', 'suite = "own"', 1))
    opened = open_lock(path)
    assert opened.digest != adopted_digest(text)
    assert adopted(world, opened).lock_digest == opened.digest


def adopted_digest(text: str) -> str:
    """The digest of a lock by its text."""
    return Lock.from_data(parse_toml(text, where="lock"), where="lock").digest


def test_elsewhere_the_places_are_named(world: World, tmp_path: Path) -> None:
    """Another store knows no places: the checkpoint must be named, and the interpreter may be."""
    frozen(world)
    asked = ("build", "--lock", "frozen.lock.toml", "--yes", "--store", str(tmp_path / "other"), "--json")
    ended = world.penny(*asked, "--python", str(world.python))
    assert ended.code == 2
    assert "--checkpoint target=FOLDER" in ended.err
    ended = world.penny(*asked, "--python", str(world.python), "--checkpoint", f"target={world.checkpoint}")
    assert ended.code == 0, ended.err
    assert ended.result["level"] == "none"


def test_without_a_name_it_is_the_interpreter_that_penny_runs_in(world: World, tmp_path: Path) -> None:
    """Which has other packages here: they are held against the lock, and differ."""
    frozen(world)
    ended = world.penny("build", "--lock", "frozen.lock.toml", "--yes", "--store", str(tmp_path / "other"))
    assert ended.code == 65
    assert f"sglang {VERSION} is missing" in ended.err


def test_it_is_adopted_and_not_rebuilt(world: World) -> None:
    """`build` says so, `--rebuild` is refused, and `lock` has no manifest to go by."""
    frozen(world)
    ended = world.penny("build", "--lock", "frozen.lock.toml", "--yes")
    assert ended.code == 0
    assert "adopted and not rebuilt: 2 distributions" in ended.out
    again = world.penny("build", "--lock", "frozen.lock.toml", "--yes", "--rebuild")
    assert again.code == 2
    assert "cannot be rebuilt" in again.err
    locked = world.penny("lock", "--lock", "frozen.lock.toml")
    assert locked.code == 2
    assert "was frozen from a running server" in locked.err


def test_verify_counts_nothing_as_built(world: World) -> None:
    """The packages are checked, the level is skipped with the reason, and a receipt that claims more fails."""
    opened = frozen(world)
    receipt = adopted(world, opened)
    assert receipt.level == "none"
    assert receipt.is_the_locks
    checks = {each.id: each for each in verify_receipts(opened, [receipt])}
    assert checks["build.adopted"].status == "passed"
    assert checks["build.level"].status == "skipped"
    assert "adopted" in checks["build.level"].reason
    assert checks["build.checkpoint.tiny"].status == "passed"
    assert receipt.adopted is not None
    for lie in (
        {"adopted": None},
        {"adopted": receipt.adopted.model_copy(update={"environment": "0" * 64})},
        {"adopted": receipt.adopted.model_copy(update={"distributions": 3})},
        {"level": "bytes-identical"},
    ):
        told = {each.id: each for each in verify_receipts(opened, [receipt.model_copy(update=lie)])}
        assert told["build.adopted"].status == "failed", lie


def test_a_built_lock_takes_no_adopted_receipt(world: World) -> None:
    """A receipt cannot get around the levels of a lock that names what to build."""
    opened = frozen(world)
    receipt = adopted(world, opened)
    plain = OpenedLock(opened.lock.model_copy(update={"adopted": None}), opened.path)
    checks = {each.id: each for each in verify_receipts(plain, [receipt])}
    assert checks["build.adopted"].status == "failed"
    assert isinstance(receipt.adopted, AdoptedRuntime)


def test_a_lock_that_is_not_adopted_needs_manifest_engine_and_environment(world: World) -> None:
    """What is relaxed for adopted locks holds for every other one."""
    content = frozen(world).lock.content()
    del content["adopted"]
    with pytest.raises(InvalidDocumentError) as caught:
        Lock.from_data(content, where="lock")
    for said in (
        "only a runtime that was found running has none",
        "no environment is named 'runtime'",
        "engine.component",
    ):
        assert said in str(caught.value)


def test_another_lock_is_not_written_over(world: World) -> None:
    """A file that is there stays unless --replace is given; the same lock again changes nothing."""
    _, port = world.start(*WORDS)
    url = f"http://127.0.0.1:{port}"
    (world.work / "frozen.lock.toml").write_text("mine")
    ended = world.penny("freeze", "--url", url)
    assert ended.code == 2
    assert (world.work / "frozen.lock.toml").read_text() == "mine"
    assert world.penny("freeze", "--url", url, "--replace", "--json").result["changed"] is True
    assert world.penny("freeze", "--url", url, "--json").result["changed"] is False


def test_what_is_unknown_is_in_the_result(world: World) -> None:
    """Stable keys; a server whose values nobody knows gives a lock and does not exit 0."""
    _, port = world.start(*WORDS, variables={"SGLANG_STAND_IN": "garbage"})
    ended = world.penny("freeze", "--url", f"http://127.0.0.1:{port}", "--json", "--quiet")
    assert ended.code == 96
    assert {"lock", "digest", "unknown", "left_out", "rebuild", "process", "effective"} <= set(ended.result)
    assert "launch.effective" in {each["key"] for each in ended.result["unknown"]}
    assert open_lock(world.work / "frozen.lock.toml").digest == ended.result["digest"]


def test_by_pid_alone_the_port_is_the_command_lines(world: World) -> None:
    """`--pid` finds the port that the server was told, and asks there."""
    pid, _ = world.start(*WORDS)
    ended = world.penny("freeze", "--pid", str(pid), "--json", "--quiet")
    assert ended.code == 0, ended.err
    assert ended.result["effective"]["page_size"] == 16


def test_diff_names_the_distributions_that_differ(world: World) -> None:
    """Two frozen runtimes: the version that moved and the package whose file was changed, each with what it costs."""
    frozen(world)
    world.install(write_wheel(world.folder / "wheels", "small-thing", "1.3", {"small_thing/__init__.py": "WORD = 3\n"}))
    (world.site / "sglang" / "srt" / "__init__.py").write_text("# patched\n")
    _, port = world.start(*WORDS)
    assert world.penny("freeze", "--url", f"http://127.0.0.1:{port}", "--lock", "later.lock.toml").code == 0
    ended = world.penny("diff", "frozen.lock.toml", "later.lock.toml", "--json")
    changes = {each["path"]: each for each in ended.result["changes"]}
    assert (changes["adopted.package.small-thing"]["before"], changes["adopted.package.small-thing"]["after"]) == (
        "1.2",
        "1.3",
    )
    assert changes["adopted.package.small-thing"]["consequence"] == "cache-identity"
    assert changes["adopted.package.sglang"]["before"].startswith(f"{VERSION} (1 files")
    assert changes["adopted.package.sglang"]["after"].startswith(f"{VERSION} (2 files")
    assert ended.result["same_namespace"] is False


def test_two_locks_in_one_folder_do_not_share_files(world: World) -> None:
    """A second freeze beside a first one leaves every file of the first as it pinned it."""
    opened = frozen(world)
    (world.site / "small_thing" / "__init__.py").write_text("WORD = 5\n")
    _, port = world.start(*WORDS)
    assert world.penny("freeze", "--url", f"http://127.0.0.1:{port}", "--lock", "later.lock.toml").code == 0
    assert opened.check_files() == open_lock(world.work / "later.lock.toml").check_files() == 3


def test_a_checkout_is_held_against_its_commit(world: World) -> None:
    """An editable engine is launched where it is what was frozen; an edited file or another commit is refused."""
    project = world.into_checkout()
    opened = frozen(world)
    adopted(world, opened)
    path = project / "python" / "sglang" / "more.py"
    path.write_text("X = 1\n")
    with pytest.raises(DriftError, match="1 difference") as caught:
        adopted(world, opened)
    assert "sglang holds other files beside commit" in caught.value.why
    world.git("add", ".")
    world.git("commit", "-qm", "two")
    with pytest.raises(DriftError) as caught:
        adopted(world, opened)
    assert (
        f"sglang is at commit {world.git('rev-parse', 'HEAD')}, not {world.git('rev-parse', 'HEAD~1')}"
        in caught.value.why
    )
    path.unlink()
    world.git("checkout", "-q", "HEAD~1")
    adopted(world, opened)


def test_elsewhere_a_hubs_checkpoint_is_found_in_the_cache(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint of which the revision is known needs no name: the hub's cache has it, verified, offline."""
    commit, variables = world.into_hub_cache()
    _, port = world.start(*WORDS, "--model-path", "org/tiny", variables=variables)
    assert world.penny("freeze", "--url", f"http://127.0.0.1:{port}").code == 0
    assert open_lock(world.work / "frozen.lock.toml").lock.content()["checkpoints"][0]["source"]["revision"] == commit
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    asked = ("build", "--lock", "frozen.lock.toml", "--yes", "--offline", "--json", "--python", str(world.python))
    ended = world.penny(*asked, "--store", str(tmp_path / "other"))
    assert ended.code == 0, ended.err
    blob = next((world.folder / "hub" / "models--org--tiny" / "blobs").iterdir())
    blob.write_bytes(b"damaged")
    ended = world.penny(*asked, "--store", str(tmp_path / "third"))
    assert ended.code == 96  # offline nobody can bring the right bytes
    assert "of 7 bytes" in ended.err
