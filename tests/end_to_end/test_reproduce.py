"""`penny reproduce` with the real engine: whole, again, interrupted, two at once."""

import json
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from reproducer.documents.opened import open_lock
from reproducer.launch.supervised import AFTER_GRACE_S, GRACE_S
from tests.end_to_end.newcomer import ROOT, Penny, copy_of_repository, edit_lock, servers_of, shorten

pytestmark = [pytest.mark.engine, pytest.mark.index]

PEAK_BYTES = 300_000_000
STEPS = ["lock", "fetch", "build", "namespace", "launch", "qualify", "verify", "attest"]


def peak_bytes(process: "subprocess.Popen[str]") -> int:
    """The highest resident size of the process itself, in bytes, read until it ends."""
    peak = 0
    while process.poll() is None:
        try:
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    peak = max(peak, int(line.split()[1]) * 1024)
        except OSError:
            break
        time.sleep(0.05)
    return peak


def left_behind(store: Path) -> list[str]:
    """Lock files, partial files, work folders, unfinished runs and their KV pages in a store."""
    patterns = ("locks/*", "partial/*", "work/*", "damaged/*", "runs/*/*", "servers/*", "kv/qualification/*", "kv/.*")
    return sorted(str(path) for pattern in patterns for path in store.glob(pattern))


def test_whole_way_from_an_empty_store(tmp_path: Path) -> None:
    """A first run builds bytes-identical wheels, passes its thresholds and signs a bundle that verifies.

    The suite is short here: the first command of the README, which `.ci/run` runs before the tests, has it whole.
    """
    penny = Penny(copy_of_repository(tmp_path / "clone"), tmp_path / "store", tmp_path / "keys")
    edit_lock(penny.folder, shorten)
    process = penny.start("reproduce", "--yes", "--json")
    peak = peak_bytes(process)
    out, err = process.communicate()
    assert process.returncode == 0, err

    result = json.loads(out)
    assert result["verdict"] == "passed"
    assert [step["name"] for step in result["steps"]] == STEPS
    assert all(check["status"] in ("passed", "skipped") for check in result["checks"])
    assert peak < PEAK_BYTES
    assert servers_of(penny.store) == []
    assert left_behind(penny.store) == []
    bundle = penny.folder / result["bundle"]

    stranger = Penny(tmp_path, tmp_path / "nothing", tmp_path / "no-keys")
    public = tmp_path / "public.pem"
    public.write_bytes((bundle / "public.pem").read_bytes())
    verified = stranger("verify", str(bundle), "--key", str(public), "--json")
    assert verified.code == 0, verified.err
    assert verified.result["verdict"] == "passed"
    assert not (tmp_path / "nothing").exists()


def test_second_run_reuses_and_adds(bundle_of_a_run: tuple[Penny, Path]) -> None:
    """A second run fetches and builds nothing, and its bundle stands beside the first one."""
    penny, first = bundle_of_a_run
    before = (first / "index.json").read_bytes()
    second = penny("reproduce", "--yes", "--json", "--offline")
    assert second.code == 0, second.err
    status = {step["name"]: step["status"] for step in second.result["steps"]}
    assert (status["fetch"], status["build"]) == ("reused", "reused")
    assert penny.folder / second.result["bundle"] != first
    assert (first / "index.json").read_bytes() == before


def test_rebuild_in_another_folder_is_bytes_identical(newcomer: Penny) -> None:
    """The engine's wheel, built once more in another folder, is the same bytes as the first and as the lock's."""
    ended = newcomer("build", "--rebuild", "--yes", "--json")
    assert ended.code == 0, ended.err
    assert (ended.result["level"], ended.result["differences"]) == ("bytes-identical", [])


def test_kill_minus_9_then_again(short: Penny) -> None:
    """Killed at one moment after another, no server outlives penny for long, and the run after them all ends well."""
    for after in (1.0, 6.0, 14.0, 24.0):
        process = short.start("reproduce", "--yes")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=after)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        deadline = time.monotonic() + GRACE_S + AFTER_GRACE_S
        while servers_of(short.store) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert servers_of(short.store) == []
    again = short("reproduce", "--yes", "--json")
    assert again.code == 0, again.err
    assert again.result["verdict"] == "passed"
    assert left_behind(short.store) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_stops_the_server(short: Penny, number: signal.Signals) -> None:
    """Ctrl-C, SIGTERM and a closed terminal end penny with the shell's code, and its server with it."""
    process = short.start("reproduce", "--yes")
    deadline = time.monotonic() + 60
    while not any("sglang" in " ".join(each.cmdline()) for each in living(short.store)) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert servers_of(short.store) == []


def living(store: Path) -> list[psutil.Process]:
    """Processes of the store, without those that end while one looks."""
    return [process for process in servers_of(store) if process.is_running()]


def test_two_at_once(short: Penny) -> None:
    """Two runs of one lock in one store, started together, both end well and sign a bundle each."""
    both = [short.start("reproduce", "--yes", "--json") for _ in range(2)]
    ended = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], [err for _, err in ended]
    bundles = sorted((short.folder / "evidence").glob("*/*"))
    assert len(bundles) == 2
    assert left_behind(short.store) == []


FAILED_SUITES = {"h200-sglang-0.5.17-plain", "h200-sglang-0.5.17-dflash"}  # docs/gpu.md says which thresholds


def test_committed_bundles_verify() -> None:
    """Committed evidence verifies with a key that lies beside it, and one bundle is of the committed lock.

    Evidence of a suite that failed is signed as well; its qualification fails and nothing else does.
    """
    penny = Penny(ROOT, Path("/nonexistent"), Path("/nonexistent"))
    bundles = sorted((ROOT / "evidence").glob("*/*/index.json"))
    keys = {key.read_bytes(): key for key in (ROOT / "evidence/keys").glob("*.pem")}
    for index in bundles:
        key = keys[(index.parent / "public.pem").read_bytes()]
        verified = penny("verify", str(index.parent), "--key", str(key), "--json")
        failed = index.parents[1].name in FAILED_SUITES
        assert verified.code == (64 + 8 if failed else 0), verified.err
    digests = {open_lock(index.parent / "penny.lock.toml").digest for index in bundles}
    assert open_lock(ROOT / "penny.lock.toml").digest in digests
