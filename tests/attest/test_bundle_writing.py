"""Writing a bundle: whole or not at all, never over another, and nothing in it that must stay here."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from reproducer.attest import bundle
from reproducer.attest.bundle import write_bundle
from reproducer.attest.keys import SigningKey, signing_key
from reproducer.documents.opened import open_lock
from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError, UsageError
from reproducer.verify.bundle import verify_bundle
from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import Evidence, edited, good_evidence, signed_bundle


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A lock and the receipts of a good run."""
    return good_evidence(tmp_path_factory.mktemp("evidence"))


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    """The signer's key."""
    return signing_key(tmp_path_factory.mktemp("keys") / "k")


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_layout(evidence: Evidence, key: SigningKey, tmp_path: Path) -> None:
    """The bundle holds the lock with all its files, every receipt, statements, report, figure, verdict, key, index."""
    files = _files(signed_bundle(evidence, tmp_path / "a" / "b", key))

    assert {name.split("/")[0] for name in files} == {
        "index.json",
        "penny.lock.toml",
        "penny.build.pylock.toml",
        "penny.runtime.pylock.toml",
        "reference.json",
        "runtime",
        "receipts",
        "statements",
        "report.html",
        "report.md",
        "report.svg",
        "verdict.json",
        "public.pem",
    }
    assert files["penny.lock.toml"] == evidence.opened.path.read_bytes()
    assert sum(name.startswith("receipts/") for name in files) == len(evidence.receipts)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o755


def test_content_is_reproducible_up_to_the_signature(evidence: Evidence, key: SigningKey, tmp_path: Path) -> None:
    """Signing twice gives the same bytes in every file that is not a signature."""
    first, second = (_files(signed_bundle(evidence, tmp_path / name, key)) for name in "ab")

    differing = {name for name in first if first[name] != second[name]}
    assert first.keys() == second.keys()
    assert all(name.startswith("statements/") for name in differing)


def test_the_same_bundle_again_changes_nothing(evidence: Evidence, key: SigningKey, tmp_path: Path) -> None:
    """Attesting the same receipts again is no error and leaves every byte."""
    bundle = signed_bundle(evidence, tmp_path / "b", key)
    before = _files(bundle)

    signed_bundle(evidence, tmp_path / "b", key)

    assert _files(bundle) == before


@pytest.mark.parametrize("there", ["other bundle", "folder", "file", "link"])
def test_nothing_is_overwritten(evidence: Evidence, key: SigningKey, tmp_path: Path, there: str) -> None:
    """Where anything else is, the bundle is refused and what is there stays."""
    place = tmp_path / "b"
    if there == "other bundle":
        signed_bundle(evidence, place, key, (evidence.build,))
    elif there == "folder":
        place.mkdir()
    elif there == "file":
        place.write_text("mine")
    else:
        place.symlink_to(tmp_path / "nowhere")
    before = _files(place) if place.is_dir() else there

    with pytest.raises(UsageError, match="never overwritten"):
        signed_bundle(evidence, place, key)

    assert (_files(place) if place.is_dir() else there) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]


LEAKS: dict[str, Any] = {
    "home path": lambda m: m["conditions"].update(cache_state="in /home/alice/kv"),
    "address": lambda m: m["samples"][0]["facts"].update(peer="10.20.30.40"),
    "token": lambda m: m["samples"][0]["requests"][0].update(output_text="hf_abcdefghijklmnopqrstuv"),
    "e-mail address": lambda m: m["samples"][0]["facts"].update(asked="jane.doe@lab.example.org"),
    "secret": lambda m: m["samples"][0]["facts"].update(api_key="x9y8z7"),
}


@pytest.mark.parametrize("name", LEAKS)
def test_leak_is_refused_by_place(evidence: Evidence, key: SigningKey, tmp_path: Path, name: str) -> None:
    """A receipt that holds what must not leave is refused by file and key, and nothing is written."""
    receipt = edited(evidence.measure("decode.single"), LEAKS[name])

    with pytest.raises(UnsafeInputError, match=r"receipts/measure-decode\.single-1-.*json: (conditions|samples)"):
        signed_bundle(evidence, tmp_path / "b", key, (evidence.build, receipt))

    assert list(tmp_path.iterdir()) == []


def test_changed_lock_files_are_not_signed(key: SigningKey, tmp_path: Path) -> None:
    """A patch or a lock that changed since it was opened is drift."""
    evidence = good_evidence(tmp_path / "lock")
    (tmp_path / "lock/runtime/convert.py").write_text("other")
    with pytest.raises(DriftError, match=r"convert\.py"):
        write_bundle(tmp_path / "b", evidence.opened, evidence.receipts, key, ())

    evidence.opened.path.write_text(evidence.opened.path.read_text().replace('name = "small"', 'name = "large"', 1))
    with pytest.raises(DriftError, match="changed while penny ran"):
        write_bundle(tmp_path / "b", evidence.opened, evidence.receipts, key, ())
    assert not (tmp_path / "b").exists()


def test_reserved_names_are_refused(key: SigningKey, tmp_path: Path) -> None:
    """A lock whose file would take the place of the report cannot be bundled."""
    evidence = good_evidence(tmp_path / "lock")
    text = evidence.opened.path.read_text().replace("runtime/convert.py", "statements/convert.py")
    evidence.opened.path.write_text(text)
    (tmp_path / "lock/statements").mkdir()
    (tmp_path / "lock/runtime/convert.py").rename(tmp_path / "lock/statements/convert.py")

    with pytest.raises(UnsafeInputError, match="keeps for itself"):
        write_bundle(tmp_path / "b", open_lock(evidence.opened.path), (evidence.build,), key, ())


def test_unwritable_place_could_not_be_checked(evidence: Evidence, key: SigningKey, tmp_path: Path) -> None:
    """Where the bundle cannot be written, the machine got in the way."""
    (tmp_path / "file").write_text("no folder")

    with pytest.raises(NotCheckedError, match="the bundle cannot be written"):
        signed_bundle(evidence, tmp_path / "file" / "b", key)


def test_full_disk_leaves_nothing(
    evidence: Evidence, key: SigningKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up midway is reported as such, and no part of the bundle stays."""
    original = os.fsync
    count = iter(range(100))

    def full(handle: int) -> None:
        if next(count) == 3:
            raise OSError(28, "No space left on device")
        original(handle)

    monkeypatch.setattr("os.fsync", full)

    with pytest.raises(NotCheckedError, match="No space left on device") as caught:
        signed_bundle(evidence, tmp_path / "b", key)

    assert caught.value.exit_code == 64 + 32
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys, time
from pathlib import Path
import reproducer.attest.bundle as bundle
write = bundle._write_file
def slow(path, data):
    write(path, data)
    print("written", flush=True)
    time.sleep(60)
bundle._write_file = slow
bundle._write(Path(sys.argv[1]), {"index.json": b"1", "more": b"2"})
"""


def test_killed_writer_leaves_what_the_next_one_sweeps(evidence: Evidence, key: SigningKey, tmp_path: Path) -> None:
    """After kill -9 midway there is no bundle, only a leftover; a living writer's is left alone, a dead one's goes."""
    place = tmp_path / "evidence"
    writer = subprocess.Popen([sys.executable, "-c", KILLED, str(place / "b")], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    writer.stdout.readline()
    signed_bundle(evidence, place / "other", key)
    assert len(list(place.glob(".bundle-*"))) == 1

    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    time.sleep(0.05)
    assert not (place / "b").exists()
    signed_bundle(evidence, place / "b", key)

    assert sorted(path.name for path in place.iterdir()) == ["b", "other"]
    assert verify_bundle(place / "b", key.public).outcome == 0


def test_verdict_and_report_lie_in_the_bundle(evidence: Evidence, key: SigningKey, tmp_path: Path) -> None:
    """The checks that were made are written down as they were."""
    bundle = signed_bundle(evidence, tmp_path / "b", key)
    checks = verify_receipts(evidence.opened, evidence.receipts)

    assert json.loads((bundle / "verdict.json").read_text())["checks"] == [check.model_dump() for check in checks]
    assert key.public.key_id in (bundle / "report.md").read_text()


def test_sweeping_meanwhile_stops_no_writer(tmp_path: Path) -> None:
    """While others sweep the folder without pause, each bundle is written whole."""
    ended = threading.Event()

    def sweeping() -> None:
        while not ended.is_set():
            bundle._sweep(tmp_path)

    sweepers = [threading.Thread(target=sweeping) for _ in range(3)]
    for sweeper in sweepers:
        sweeper.start()
    try:
        for turn in range(200):
            bundle._write(tmp_path / str(turn), {"index.json": b"1", "more": b"2"})
    finally:
        ended.set()
        for sweeper in sweepers:
            sweeper.join()
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == list(range(200))
    assert all(_files(path) == {"index.json": b"1", "more": b"2"} for path in tmp_path.iterdir())
