"""Downloads over connections that break, servers that lie, and processes that are killed."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.sources import Artefact
from reproducer.errors import DriftError, NotCheckedError, PennyError
from reproducer.fetch import fetch_artefacts
from reproducer.fetch.indexes import Indexes
from reproducer.fetch.web import Patience, _check_redirect, retry_after
from reproducer.progress import Silent, Task, Unit
from reproducer.store import Store

WHEEL = "six-1.0-py3-none-any.whl"
DATA = bytes(range(256)) * 2000
Bring = Callable[..., Any]

FETCH = """
import json, resource, sys
from pathlib import Path
from reproducer.documents.sources import Artefact
from reproducer.errors import PennyError
from reproducer.fetch import fetch_artefacts
from reproducer.fetch.indexes import Indexes
from reproducer.progress import Silent
from reproducer.store import Store
url, root, artefact, limit = sys.argv[1], Path(sys.argv[2]), Artefact.model_validate_json(sys.argv[3]), int(sys.argv[4])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    obtained = fetch_artefacts([(artefact,)], Store(root), indexes=Indexes((url,)), reporter=Silent())
    print(obtained.downloaded, flush=True)
except PennyError as error:
    print(error.exit_code, error)
"""


class Counting(Silent):
    """Adds up what a task of bytes was told."""

    def __init__(self) -> None:
        self.total = 0
        self.expected: int | None = None

    @contextmanager
    def task(self, label: str, total: int | None, unit: Unit) -> Iterator[Task]:
        """Count bytes, ignore the rest."""
        owner = self

        class Counter:
            def advance(self, amount: int) -> None:
                if unit == "bytes" and label.startswith("fetching"):
                    owner.total += amount

        if unit == "bytes":
            self.expected = total
        yield Counter()


@pytest.fixture
def bring(store: Store, indexes: Indexes, quick: Patience) -> Bring:
    """Fetch one artefact from the one index; returns the bytes transferred."""

    def run(artefact: Artefact, **keys: Any) -> int:
        settings = {"indexes": indexes, "reporter": Silent(), "patience": quick, **keys}
        return fetch_artefacts([(artefact,)], store, **settings).downloaded

    return run


@pytest.fixture
def start(index: Any, store: Store) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts a process that fetches one artefact; whatever still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}

    def run(artefact: Artefact, limit: int = 0) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", FETCH, index.url, str(store.root), artefact.model_dump_json(), str(limit)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=bare))
        return running[-1]

    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def clean(store: Store) -> None:
    """Nothing lies where nothing stays."""
    for piece in ("partial", "locks", "work"):
        assert list((store.root / piece).iterdir()) == []


def wait_for_bytes(store: Store, artefact: Artefact, count: int) -> None:
    """Wait until a partial file has grown to some size."""
    path = store.root / "partial" / artefact.sha256
    end = time.monotonic() + 30
    while not (path.exists() and path.stat().st_size >= count):
        assert time.monotonic() < end
        time.sleep(0.005)


def test_broken_connections_are_taken_up_where_they_broke(index: Any, bring: Bring, store: Store) -> None:
    """Two breaks make three requests; each asks for the rest only, and every byte travels once."""
    wheel = index.add(WHEEL, DATA, drops=[100_000, 50_000])
    assert bring(wheel) == len(DATA)
    assert index.gets(WHEEL) == [None, "bytes=100000-", "bytes=150000-"]
    assert store.verified(wheel.sha256, wheel.size, what="x").read_bytes() == DATA
    clean(store)


def test_a_server_without_ranges_begins_again(index: Any, bring: Bring, store: Store) -> None:
    """The whole file comes once more, and nothing is glued together."""
    wheel = index.add(WHEEL, DATA, drops=[100_000], ranges=False)
    assert bring(wheel) == len(DATA) + 100_000
    clean(store)


def test_connections_that_end_without_a_length(index: Any, bring: Bring, store: Store) -> None:
    """Without Content-Length an early end shows by the size that the lock knows."""
    wheel = index.add(WHEEL, DATA, drops=[100_000], length=False)
    assert bring(wheel) == len(DATA)
    clean(store)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_passing_faults_pass(index: Any, bring: Bring, status: int) -> None:
    """A server that is busy is asked again."""
    wheel = index.add(WHEEL, DATA, statuses=[status, status])
    assert bring(wheel) == len(DATA)
    assert len(index.gets(WHEEL)) == 3


@pytest.mark.parametrize(("status", "asked"), [(503, 4), (403, 1), (404, 1)])
def test_faults_that_stay_are_named(index: Any, bring: Bring, store: Store, status: int, asked: int) -> None:
    """What may pass is asked four times, what will not is asked once; the error names file, source and answer."""
    wheel = index.add(WHEEL, DATA, statuses=[status] * 9)
    with pytest.raises(NotCheckedError, match=f"{WHEEL} from {index.url}: answered {status}"):
        bring(wheel)
    assert len(index.gets(WHEEL)) == asked
    assert list((store.root / "locks").iterdir()) == []


def test_a_server_that_always_breaks_off(index: Any, bring: Bring, store: Store) -> None:
    """After a few breaks without real progress it is given up; what came is kept for the next run, which goes on."""
    wheel = index.add(WHEEL, DATA, drops=[1000] * 4)
    with pytest.raises(NotCheckedError, match="the connection broke off"):
        bring(wheel)
    assert (store.root / "partial" / wheel.sha256).stat().st_size == 4000
    assert bring(wheel) == len(DATA) - 4000
    assert index.gets(WHEEL)[-1] == "bytes=4000-"
    clean(store)


def test_a_changed_file_is_not_glued(index: Any, bring: Bring, store: Store) -> None:
    """If-Range: a server whose file has changed meanwhile sends it whole."""
    old = os.urandom(len(DATA))
    wheel = index.add(WHEEL, DATA)
    index.files[WHEEL].data, index.files[WHEEL].drops, index.files[WHEEL].etag = old, [100_000] + [0] * 9, '"old"'
    with pytest.raises(NotCheckedError):
        bring(wheel)
    index.files[WHEEL].data, index.files[WHEEL].drops, index.files[WHEEL].etag = DATA, [], '"new"'
    assert bring(wheel) == len(DATA)
    assert index.gets(WHEEL)[-1] == "bytes=100000-"
    clean(store)


def test_a_glued_file_gets_one_fresh_try(index: Any, bring: Bring, store: Store) -> None:
    """Without a validator the mixture shows by its digest; it is thrown away and fetched whole."""
    wheel = index.add(WHEEL, DATA, etag=None)
    store.prepare()
    (store.root / "partial" / wheel.sha256).write_bytes(b"\0" * 5000)
    assert bring(wheel) == len(DATA) - 5000 + len(DATA)
    assert index.gets(WHEEL) == ["bytes=5000-", None]
    clean(store)


def test_a_partial_file_that_is_too_long_or_a_link_is_thrown_away(index: Any, bring: Bring, store: Store) -> None:
    """Whatever lies in its place, the download ends well; a link's target is not touched."""
    wheel = index.add(WHEEL, DATA)
    store.prepare()
    (store.root / "partial" / wheel.sha256).write_bytes(b"\0" * (len(DATA) + 1))
    assert bring(wheel) == len(DATA)
    store.blob_path(wheel.sha256).unlink()
    target = store.root.parent / "target"
    target.write_bytes(b"mine")
    (store.root / "partial" / wheel.sha256).symlink_to(target)
    assert bring(wheel) == len(DATA)
    assert target.read_bytes() == b"mine"
    clean(store)


def test_a_whole_partial_file_needs_no_request(index: Any, bring: Bring, store: Store) -> None:
    """Killed after the last byte: the next run only verifies it."""
    wheel = index.add(WHEEL, DATA)
    store.prepare()
    (store.root / "partial" / wheel.sha256).write_bytes(DATA)
    assert bring(wheel) == 0
    assert index.gets(WHEEL) == []
    clean(store)


@pytest.mark.parametrize("length", [True, False])
def test_a_larger_file_is_read_no_further(index: Any, bring: Bring, store: Store, *, length: bool) -> None:
    """The lock's size caps what is written; expected digest and the size that came stand in the error."""
    wheel = index.add(WHEEL, DATA)
    index.files[WHEEL].data, index.files[WHEEL].length = DATA * 2, length
    got = f"{2 * len(DATA)} bytes" if length else f"more than {len(DATA)} bytes"
    with pytest.raises(DriftError, match=f"expected sha256 {wheel.sha256} of {len(DATA)} bytes, got {got}"):
        bring(wheel)
    clean(store)


def test_a_shorter_file_is_drift(index: Any, bring: Bring, store: Store) -> None:
    """An answer that is whole and too short is another file, and its digest stands in the error."""
    wheel = index.add(WHEEL, DATA)
    index.files[WHEEL].data = DATA[:-1]
    got = hashlib.sha256(DATA[:-1]).hexdigest()
    with pytest.raises(DriftError, match=f"got {got} of {len(DATA) - 1} bytes"):
        bring(wheel)
    clean(store)


def test_an_empty_file(index: Any, bring: Bring, store: Store) -> None:
    """Nothing is a file too."""
    wheel = index.add(WHEEL, b"")
    assert bring(wheel) == 0
    assert store.has(wheel.sha256)
    clean(store)


def test_redirects(index: Any, other_index: Any, bring: Bring) -> None:
    """To another host is fine, to another kind of place is not, and a circle ends."""
    wheel = other_index.add(WHEEL, DATA)
    index.add(WHEEL, DATA, redirect=f"{other_index.root}/files/{WHEEL}")
    assert bring(wheel) == len(DATA)
    for target in ("file:///etc/passwd", "ftp://127.0.0.1/x", f"/files/{WHEEL}"):
        other = index.add(f"a{len(target)}-1.0.tar.gz", DATA + target.encode(), redirect=target)
        if target.startswith("/"):
            index.files[other.filename].redirect = f"/files/{other.filename}"
        with pytest.raises(NotCheckedError, match=r"redirect|scheme"):
            bring(other)


def test_a_redirect_never_loses_encryption() -> None:
    """From http to https and within one scheme, nothing else."""
    _check_redirect("http", "https", "https://x")
    _check_redirect("https", "https", "https://x")
    for before, after in (("https", "http"), ("http", "ftp"), ("https", "file")):
        with pytest.raises(Exception, match="refused"):
            _check_redirect(before, after, f"{after}://x")


def test_encryption(secure_index: Any, index: Any, bring: Bring, certificate: Path) -> None:
    """A certificate the user names is trusted, another is not; and no file of such an index comes unencrypted."""
    place = Indexes((secure_index.url,), cert=certificate)
    wheel = secure_index.add(WHEEL, DATA)
    with pytest.raises(NotCheckedError, match="CERTIFICATE_VERIFY_FAILED"):
        bring(wheel, indexes=Indexes((secure_index.url,)))
    assert bring(wheel, indexes=place) == len(DATA)
    plain = index.add("plain-1.0.tar.gz", b"plain")
    secure_index.add(plain.filename, b"plain", redirect=f"{index.root}/files/{plain.filename}")
    with pytest.raises(NotCheckedError, match=r"a redirect from https to http://127.0.0.1:[0-9]+/files/.* is refused"):
        bring(plain, indexes=place)
    assert index.gets(plain.filename) == []
    upgraded = secure_index.add("up-1.0.tar.gz", b"up")
    index.add(upgraded.filename, b"up", redirect=f"{secure_index.root}/files/{upgraded.filename}")
    assert bring(upgraded, indexes=Indexes((index.url,), cert=certificate)) == 2


def test_certificates_that_cannot_be_read(index: Any, bring: Bring, tmp_path: Path) -> None:
    """A setting that names no certificates is one clear error."""
    wheel = index.add(WHEEL, DATA)
    with pytest.raises(NotCheckedError, match="certificates cannot be read"):
        bring(wheel, indexes=Indexes((index.url,), cert=tmp_path / "none.pem"))


def testretry_after_in_both_forms() -> None:
    """Seconds or a date; nonsense counts as nothing."""
    assert retry_after("3") == 3.0
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert retry_after("soon") is None
    assert retry_after(None) is None


def test_progress_adds_up(index: Any, bring: Bring) -> None:
    """With breaks and a beginning from zero, what a person sees ends at the total."""
    for habits in ({"drops": [100_000, 1]}, {"drops": [100_000], "ranges": False}):
        data = DATA + repr(habits).encode()
        counting = Counting()
        bring(index.add(f"a{len(repr(habits))}-1.0.tar.gz", data, **habits), reporter=counting)
        assert counting.total == counting.expected == len(data)


def test_kill_and_resume(index: Any, store: Store, start: Callable[..., "subprocess.Popen[str]"]) -> None:
    """After kill -9 in the middle, the next run asks for the rest only and leaves nothing behind."""
    wheel = index.add(WHEEL, DATA, pause=0.02)
    victim = start(wheel)
    wait_for_bytes(store, wheel, 100_000)
    victim.send_signal(signal.SIGKILL)
    victim.wait(10)
    kept = (store.root / "partial" / wheel.sha256).stat().st_size
    assert 0 < kept < len(DATA)
    index.files[WHEEL].pause = 0.0
    out, err = start(wheel).communicate(timeout=60)
    assert (out, err) == (f"{len(DATA) - kept}\n", "")
    assert index.gets(WHEEL) == [None, f"bytes={kept}-"]
    assert store.verified(wheel.sha256, wheel.size, what="x").read_bytes() == DATA
    clean(store)


def test_two_processes_download_once(index: Any, store: Store, start: Callable[..., "subprocess.Popen[str]"]) -> None:
    """Both end well; one transfers, the other waits and uses what came."""
    wheel = index.add(WHEEL, DATA, pause=0.02)
    processes = [start(wheel) for _ in range(3)]
    results = [process.communicate(timeout=60) for process in processes]
    assert sorted(out for out, _ in results) == ["0\n", "0\n", f"{len(DATA)}\n"], results
    assert index.gets(WHEEL) == [None]
    clean(store)


def test_the_disk_fills_up(index: Any, store: Store, start: Callable[..., "subprocess.Popen[str]"]) -> None:
    """A file that may not grow further: one clear error with folder and bytes, and nothing half-written stays."""
    wheel = index.add(WHEEL, DATA)
    out, err = start(wheel, 200_000).communicate(timeout=60)
    assert out.startswith("96 "), err
    assert f"{WHEEL} needs {len(DATA)} bytes" in out
    assert str(store.root) in out
    clean(store)


def test_an_interruption_ends_soon_and_keeps_what_came(
    index: Any, store: Store, start: Callable[..., "subprocess.Popen[str]"]
) -> None:
    """Ctrl-C while a server is silent: the process ends at once, and the next run goes on."""
    wheel = index.add(WHEEL, DATA, pause=0.02)
    victim = start(wheel)
    wait_for_bytes(store, wheel, 100_000)
    index.files[WHEEL].pause = 60.0
    time.sleep(0.1)
    victim.send_signal(signal.SIGINT)
    victim.communicate(timeout=30)  # half of what the server is silent for
    assert (store.root / "partial" / wheel.sha256).stat().st_size >= 100_000
    assert list((store.root / "locks").iterdir()) == []


def test_threads_of_one_process_download_once(index: Any, store: Store, indexes: Indexes) -> None:
    """Two runs in one process do not tread on each other."""
    wheel = index.add(WHEEL, DATA, pause=0.002)
    got: list[int | PennyError] = []

    def run() -> None:
        try:
            got.append(fetch_artefacts([(wheel,)], Store(store.root), indexes=indexes, reporter=Silent()).downloaded)
        except PennyError as error:
            got.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, got)) == ["0", "0", str(len(DATA))]
    clean(store)


def test_memory_stays_flat(tmp_path: Path, index: Any, store: Store) -> None:
    """Fetching a file of 64 MiB raises the process's peak by far less than that."""
    code = FETCH + "\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    small, large = index.add(WHEEL, b"x"), index.add("big-1.0.tar.gz", bytes(64 << 20))
    peaks = []
    for wheel in (small, large):
        command = [sys.executable, "-c", code, index.url, str(store.root), wheel.model_dump_json(), "0"]
        run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        peaks.append(int(run.stdout.splitlines()[-1]))
    assert peaks[1] - peaks[0] < 16 << 10
