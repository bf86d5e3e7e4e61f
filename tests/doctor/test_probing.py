"""The probe as penny sees it: it may hang, crash, lie and talk nonsense, and nothing of that passes or stays."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from reproducer.doctor.checks import Checked, Rates, outcome
from reproducer.doctor.storage import Needs, probe_storage
from reproducer.errors import Outcome
from reproducer.progress import Silent
from tests.doctor.conftest import Interpreter

NEEDS = Needs("io_uring", direct=True)
EVERYTHING_HOLDS = "for ident in each(): passed(ident)\nsay(kind='end')\n"


def checks_of(python: Path, place: Path, *, deadline_s: float = 20, needs: Needs = NEEDS) -> dict[str, Checked]:
    """Every check by id; nothing is left in the folder."""
    checks = probe_storage(python, place, needs, reporter=Silent(), large=1 << 20, deadline_s=deadline_s)
    assert list(place.iterdir()) == []
    return {check.id: check for check in checks}


def left(mark: str) -> list[psutil.Process]:
    """Living processes with this in their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(mark in word for word in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_all_pass(interpreter: Interpreter, place: Path) -> None:
    """A probe whose every step passes gives only passed checks, and the needed ones are those of the lock's mode."""
    found = checks_of(interpreter(EVERYTHING_HOLDS), place)
    assert {check.status for check in found.values()} == {"passed"}
    assert outcome(found.values(), about="nixl.") is Outcome.HOLDS
    needed = {name.rpartition(".")[0] for name, check in found.items() if check.needed and name.startswith("nixl.")}
    assert needed == {"nixl", "nixl.io_uring.o_direct"}


def test_a_hang_is_killed(interpreter: Interpreter, place: Path) -> None:
    """A step that hangs is failed and its group killed; its cell ends there, and the cells after it are tried."""
    body = f"""
for ident in each():
    if ident == "nixl.io_uring.o_direct.many_files":
        begin(ident)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)", {str(place)!r}])
        time.sleep(300)
    passed(ident)
say(kind="end")
"""
    begun = time.monotonic()
    found = checks_of(interpreter(body), place, deadline_s=1.5)
    assert time.monotonic() - begun < 15
    hung = found["nixl.io_uring.o_direct.many_files"]
    assert (hung.status, hung.needed) == ("failed", True)
    assert "no end within 1.5 seconds" in hung.reason
    assert "--deadline" in hung.todo
    assert found["nixl.io_uring.o_direct.round_trip"].status == "passed"
    assert found["nixl.io_uring.o_direct.large"].status == "skipped"
    assert found["nixl.aio.buffered.large"].status == "passed"
    assert outcome(found.values(), about="nixl.") is Outcome.CONFIGURATION_DIFFERS
    assert left(str(place)) == []


def test_a_crash_is_told(interpreter: Interpreter, place: Path) -> None:
    """An interpreter that dies in a step fails that step with the signal and its last words; later cells are tried."""
    body = """
for ident in each():
    if ident == "nixl.aio.buffered.large":
        begin(ident)
        os.write(2, b"double free\\x1b[31m or corruption\\n")
        os.kill(os.getpid(), signal.SIGSEGV)
    passed(ident)
say(kind="end")
"""
    found = checks_of(interpreter(body), place)
    crashed = found["nixl.aio.buffered.large"]
    assert crashed.status == "failed"
    assert "SIGSEGV" in crashed.reason
    assert "double free\\x1b[31m or corruption" in crashed.reason
    assert found["nixl.posix_aio.o_direct.truncated"].status == "passed"
    assert outcome(found.values(), about="nixl.") is Outcome.HOLDS


@pytest.mark.parametrize(
    "lie",
    [
        "os.write(1, b'all is well\\n')",
        "os.write(1, b'\\xff\\xfe\\n')",
        "os.write(1, b'x' * 400_000)",
        "os.write(1, b'[' * 60_000 + b'\\n')",
        "say(kind='result', id='nixl.aio.buffered.open', status='passed')",
        "say(kind='result', id=ident, status='excellent')",
        "say(kind='result', id=ident, status='passed', note='and more')",
        "say(kind='result', id=ident, status='passed', bytes=1, write_s=float('nan'), read_s=1.0)",
        "say(kind='result', id=ident, status='passed', bytes=1, write_s=-1.0, read_s=1.0)",
        "say(kind='result', id=ident, status='passed', got='x' * 5000)",
        "begin('nixl.io_uring.buffered.open')",
        "begin(ident)",
        "say(kind='end')",
        "sys.exit(0)",
    ],
)
def test_nonsense_never_passes(interpreter: Interpreter, place: Path, lie: str) -> None:
    """Whatever a probe says that is no result of the step it began, that step has failed."""
    body = f"""
for ident in each():
    if ident == "nixl.io_uring.o_direct.open":
        begin(ident)
        {lie}
        time.sleep(300)
    passed(ident)
say(kind="end")
"""
    found = checks_of(interpreter(body), place)
    assert found["nixl.io_uring.o_direct.open"].status == "failed"
    assert found["nixl.io_uring.o_direct.open"].reason.isprintable()
    assert found["nixl.io_uring.o_direct.large"].status == "skipped"
    assert found["nixl.aio.buffered.open"].status == "passed"


@pytest.mark.parametrize("body", ["os.write(2, b'no such library\\n'); sys.exit(3)", "begin('nixl.other.open')"])
def test_a_probe_that_never_begins(interpreter: Interpreter, place: Path, body: str) -> None:
    """Where no step was reached nothing has passed, and the run says that it could not check."""
    found = checks_of(interpreter(body), place)
    assert {check.status for name, check in found.items() if name.startswith("nixl.")} == {"skipped"}
    assert found["disk.buffered.rate"].status == "failed"
    assert outcome(found.values(), about="nixl.") is Outcome.NOT_CHECKED


def test_no_interpreter(tmp_path: Path, place: Path) -> None:
    """A missing interpreter is one clear reason."""
    found = checks_of(tmp_path / "gone", place)
    assert "the interpreter cannot be started: No such file" in found["disk.buffered.rate"].reason
    assert outcome(found.values(), about="nixl.") is Outcome.NOT_CHECKED


def test_rates_stand_beside_the_disk(interpreter: Interpreter, place: Path) -> None:
    """A step over as many bytes as the disk's own gets a ratio; one over fewer does not."""
    body = """
for ident in each():
    size = 1 << 20 if ident.endswith("one_descriptor") else 8 << 20
    seconds = 4.0 if ident.startswith("disk.") else 2.0
    passed(ident, bytes=size, write_s=seconds, read_s=seconds / 2)
say(kind="end")
"""
    found = checks_of(interpreter(body), place)
    large, one = found["nixl.aio.o_direct.large"].rates, found["nixl.aio.o_direct.one_descriptor"].rates
    assert large == Rates(
        write_mib_s=4, read_mib_s=8, disk_write_mib_s=2, disk_read_mib_s=4, write_ratio=2, read_ratio=2
    )
    assert one == Rates(write_mib_s=0.5, read_mib_s=1)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([("nixl.a", "passed", False)], Outcome.HOLDS),
        ([("nixl.a", "failed", False)], Outcome.HOLDS),
        ([("nixl.a", "failed", True), ("nixl.b", "skipped", True)], Outcome.CONFIGURATION_DIFFERS),
        ([("nixl.a", "passed", True), ("nixl.b", "skipped", True)], Outcome.NOT_CHECKED),
        ([("nixl.a", "passed", True), ("nixl.b", "unknown", True)], Outcome.NOT_CHECKED),
        ([("folder.a", "passed", False), ("nixl.b", "skipped", False)], Outcome.NOT_CHECKED),
    ],
)
def test_outcome(statuses: list[tuple[str, str, bool]], expected: Outcome) -> None:
    """Only what the lock needs decides, and a run that checked nothing of what it was asked never holds."""
    checks = [Checked.model_validate({"id": name, "status": status, "needed": need}) for name, status, need in statuses]
    assert outcome(checks, about="nixl.") is expected


DRIVER = """
import sys
from pathlib import Path
from reproducer.doctor.storage import Needs, probe_storage
from reproducer.progress import Silent
probe_storage(Path(sys.argv[1]), Path(sys.argv[2]), Needs(None, direct=False), reporter=Silent(), large=1 << 20)
"""
HANG = """
begin("disk.buffered.rate")
open(os.path.join(plan["folder"], "file-1"), "w").close()
while os.getppid() == plan["parent"] or {stays}: time.sleep(0.01)
"""


def started(python: Path, place: Path) -> "subprocess.Popen[str]":
    """A penny that probes, as far as its probe's first file."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(python), str(place)], stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 20
    while not list(place.glob(".penny-doctor-*/file-1")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(place.glob(".penny-doctor-*/file-1"))
    return process


def test_interrupted(interpreter: Interpreter, place: Path) -> None:
    """Ctrl-C ends the probe and removes its files."""
    python = interpreter(HANG.format(stays=True))
    process = started(python, place)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in err
    assert list(place.iterdir()) == []
    assert left(str(python)) == []


def test_killed_and_swept(interpreter: Interpreter, place: Path) -> None:
    """After kill -9 the next run removes what is left, and nothing that only looks like it."""
    process = started(interpreter(HANG.format(stays=False)), place)
    process.kill()
    process.communicate(timeout=20)
    ours = sorted(place.iterdir())
    assert len(ours) == 2
    deadline = time.monotonic() + 10
    while left(str(ours[0])) and time.monotonic() < deadline:
        time.sleep(0.02)

    folder = next(path for path in ours if path.is_dir())
    token, proof = folder.name.removeprefix(".penny-doctor-").split("-")
    elsewhere = place.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    wrong = place / f".penny-doctor-{token}-{proof[::-1]}"
    wrong.mkdir()
    (place / "page").touch()
    moved = folder.rename(place / "moved")
    folder.symlink_to(elsewhere)
    probe_storage(interpreter(EVERYTHING_HOLDS), place, NEEDS, reporter=Silent(), large=1 << 20)
    assert (elsewhere / "kept").exists()
    assert folder.is_symlink()
    assert folder.with_name(f"{folder.name}.lock").exists()

    folder.unlink()
    moved.rename(folder)
    probe_storage(interpreter(EVERYTHING_HOLDS), place, NEEDS, reporter=Silent(), large=1 << 20)
    assert sorted(path.name for path in place.iterdir()) == sorted([wrong.name, "page"])


def test_a_living_run_is_left_alone(interpreter: Interpreter, place: Path) -> None:
    """While another run probes the same folder, its files stay."""
    process = started(interpreter(HANG.format(stays=True)), place)
    try:
        before = sorted(place.iterdir())
        probe_storage(interpreter(EVERYTHING_HOLDS), place, NEEDS, reporter=Silent(), large=1 << 20)
        assert sorted(place.iterdir()) == before
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert list(place.iterdir()) == []
