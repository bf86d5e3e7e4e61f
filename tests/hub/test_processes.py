"""`penny` as real processes: the whole way with a checkpoint, killed and resumed, several at once, a full disk."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reproducer.store import Store
from tests.hub.conftest import CONFIG, FILES, MORE, NAME, WEIGHTS
from tests.hub.server import HubServer, safetensors
from tests.hub.test_locking import NEW, OLD
from tests.locking.conftest import Index, filled, new_project, serving

__all__ = ["serving"]

BIG = safetensors(os.urandom(6 << 20))
BIG_FILES = {"config.json": CONFIG, "model.safetensors": BIG}
PENNY = [sys.executable, "-m", "reproducer"]


@dataclass
class Place:
    """A project with a manifest and everything that its commands read and write."""

    folder: Path
    hub: HubServer
    environment: dict[str, str]
    built: Path

    @property
    def cache(self) -> Path:
        """The hub's cache."""
        return Path(self.environment["HF_HUB_CACHE"])

    def start(self, *arguments: str, through: tuple[str, ...] = (), **variables: str) -> "subprocess.Popen[str]":
        """One command, not waited for."""
        return subprocess.Popen(
            [*through, *PENNY, *arguments],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def lock(self, *arguments: str, **options: Any) -> tuple[int, dict[str, Any], str]:
        """`penny lock` of the manifest; what it builds lies in the store that all tests share."""
        return self.run("lock", "manifests/tiny.toml", "--yes", *arguments, PENNY_STORE=str(self.built), **options)

    def run(self, *arguments: str, **options: Any) -> tuple[int, dict[str, Any], str]:
        """Exit code, JSON result and stderr of one command."""
        process = self.start(*arguments, "--json", **options)
        out, err = process.communicate(timeout=300)
        return process.returncode, json.loads(out) if out.strip() else {}, err


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, serving: Any) -> tuple[Index, Path]:
    """An index, and a store that keeps what locking builds."""
    folder = tmp_path_factory.mktemp("hub-processes")
    return filled(serving(folder / "index")), folder / "built"


@pytest.fixture
def place(tmp_path: Path, hub: HubServer, shared: tuple[Index, Path]) -> Place:
    """A project whose target lies on the local hub, with nothing of this machine's user in reach."""
    index, built = shared
    project = new_project(tmp_path / "project", index, Store(tmp_path / "store"))
    project.edit(OLD, NEW)
    kept = ("PATH", "LANG", "TMPDIR", "COVERAGE_PROCESS_START")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {
        "HOME": str(tmp_path),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PENNY_STORE": str(tmp_path / "store"),
        "PIP_INDEX_URL": index.url,
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "HF_ENDPOINT": hub.url,
        "HF_HUB_CACHE": str(tmp_path / "cache"),
    }
    return Place(project.folder, hub, environment, built)


def test_from_manifest_to_namespace(place: Place) -> None:
    """Lock (no weights), fetch, build and namespace work from the command line with a checkpoint of a hub."""
    code, locked, err = place.lock()
    assert code == 0, err
    assert place.hub.received(WEIGHTS) == 0
    assert place.hub.received(MORE) == 0
    code, fetched, err = place.run("fetch")
    assert code == 0, err
    assert fetched["unknown"] == []
    folder = Path(fetched["checkpoints"]["model"])
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} == set(FILES)
    assert place.hub.received(WEIGHTS) == len(WEIGHTS)
    code, built, err = place.run("build", "--yes", "--offline")
    assert code == 0, err
    receipt = json.loads(Path(built["receipt"]).read_bytes())
    assert receipt["checkpoints"]["model"]["files"] == len(FILES)
    code, namespace, err = place.run("namespace")
    assert code == 0, err
    assert namespace["namespace"].startswith("model-sglang-")
    assert place.run("lock", "--check")[1]["digest"] == locked["digest"]


def test_unknown_digests_from_the_command_line(place: Place) -> None:
    """Revision only: fetch ends with 96 and says so, build refuses, lock completes it, and then fetch ends with 0."""
    manifest = place.folder / "manifests" / "tiny.toml"
    revision = place.hub.repositories[NAME].refs["main"]
    text = manifest.read_text("utf-8")
    asked = f'repository = "some/model", revision = "{revision}", digests = "unknown" }}'
    manifest.write_text(text.replace('repository = "some/model" }', asked), "utf-8")
    assert place.lock()[0] == 0
    code, fetched, err = place.run("fetch")
    assert (code, fetched["unknown"], fetched["level"]) == (96, ["model"], "none"), err
    code, failed, _ = place.run("build", "--yes")
    assert code == 96
    assert "not known" in failed["error"]["what"]
    assert place.run("namespace")[0] == 0
    code, locked, err = place.run("lock", "manifests/tiny.toml", "--yes")
    assert (code, locked["changed"]) == (0, True), err
    assert place.run("fetch", "--offline")[0] == 0


def test_a_folder_instead_of_a_download(place: Place, tmp_path: Path) -> None:
    """--checkpoint verifies a folder of the user's: right bytes serve without the hub, a changed byte is named."""
    assert place.lock()[0] == 0
    own = tmp_path / "own"
    for path, data in {**FILES, "stray.bin": b"not in the lock"}.items():
        (own / path).parent.mkdir(parents=True, exist_ok=True)
        (own / path).write_bytes(data)
    place.hub.forget()
    (own / "config.json").write_bytes(CONFIG.replace(b"2048", b"9999"))
    code, failed, _ = place.run("fetch", "--checkpoint", f"target={own}")
    assert code == 65
    assert "config.json: expected sha256" in failed["error"]["why"]
    (own / "config.json").write_bytes(CONFIG)
    code, fetched, err = place.run("fetch", "--checkpoint", f"target={own}")
    assert code == 0, err
    assert place.hub.requests == []
    folder = Path(fetched["checkpoints"]["model"])
    assert not (folder / "stray.bin").exists()
    for wrong in ("draft=x", "target", f"target={own / 'nothing'}"):
        assert place.run("fetch", "--checkpoint", wrong)[0] == 2


def test_killed_and_resumed(place: Place) -> None:
    """A fetch that is killed leaves nothing that counts, and the next one goes on where it stopped."""
    place.hub.add(NAME, BIG_FILES)
    assert place.lock()[0] == 0
    place.hub.faults.slow = 0.02
    process = place.start("fetch", "--quiet")
    deadline = time.monotonic() + 60
    while place.hub.received(BIG) < 1 << 20 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not list((place.folder.parent / "store" / "entries").glob("checkpoint/*"))
    parts = list(place.cache.rglob("*.penny.incomplete"))
    assert sum(part.stat().st_size for part in parts) > 1 << 19
    place.hub.faults.slow = 0.0
    kept = sum(part.stat().st_size for part in parts)
    time.sleep(0.2)  # the server notices that nobody reads any more
    place.hub.forget()
    assert place.run("fetch")[0] == 0
    ranges = [each.headers["range"] for each in place.hub.requests if "range" in each.headers]
    assert f"bytes={kept}-" in ranges
    assert place.hub.received(BIG) == len(BIG) - kept


def test_an_interrupted_fetch_ends_soon(place: Place) -> None:
    """SIGTERM ends a fetch within seconds, whatever the server does."""
    place.hub.add(NAME, BIG_FILES)
    assert place.lock()[0] == 0
    place.hub.faults.slow = 0.2
    process = place.start("fetch", "--quiet")
    while place.hub.received(BIG) < 1 << 17:
        time.sleep(0.01)
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert time.monotonic() - begun < 10


def test_several_at_once(place: Place) -> None:
    """Four pennies at once transfer every byte once, and all of them end well."""
    place.hub.add(NAME, BIG_FILES)
    assert place.lock()[0] == 0
    place.hub.faults.slow = 0.005
    processes = [place.start("fetch", "--quiet", "--json") for _ in range(4)]
    results = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, results
    assert place.hub.received(BIG) == len(BIG)


def test_a_file_size_limit_is_a_full_disk(place: Place) -> None:
    """A disk that takes no more ends the fetch with one clear line; later it goes on from there."""
    place.hub.add(NAME, BIG_FILES)
    assert place.lock()[0] == 0
    limited = ("sh", "-c", 'ulimit -f 4096; exec "$@"', "sh")  # of 512 bytes
    code, failed, err = place.run("fetch", through=limited)
    assert code == 96, err
    assert "size limit" in failed["error"]["what"]
    place.hub.forget()
    assert place.run("fetch")[0] == 0
    assert place.hub.received(BIG) < len(BIG)


def test_the_endpoint_option(place: Place) -> None:
    """--endpoint names a mirror for one run."""
    down = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    assert place.lock("--endpoint", place.hub.url, **down)[0] == 0
    code, _, err = place.run("fetch", "--endpoint", place.hub.url, **down)
    assert code == 0, err


def test_no_token_anywhere(place: Place) -> None:
    """A token in the user's environment stands in no lock, receipt, output or file of penny."""
    token, wrong = "hf_allowed", "hf_wrongtoken"
    place.hub.repository(NAME).gated = True
    code, failed, err = place.lock("--verbose", HF_TOKEN=wrong)
    assert code == 96
    assert "is gated" in failed["error"]["what"]
    told = json.dumps(failed) + err
    for arguments in (("lock", "manifests/tiny.toml", "--yes"), ("fetch",), ("build", "--yes")):
        code, result, err = place.run(*arguments, "--verbose", HF_TOKEN=token)
        assert code == 0, err
        told += json.dumps(result) + err
    for root in (place.folder, place.folder.parent / "store", place.cache):
        for path in root.rglob("*"):
            if path.is_file():
                assert token.encode() not in path.read_bytes()
    assert token not in told
    assert wrong not in told


def test_flat_memory(place: Place) -> None:
    """Verifying a folder of 300 MB takes no more memory than one of a few kB, plus 60 MB."""
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from reproducer.hub.checking import Place, verified; from reproducer.hub.listing import HubFile\n"
        "from reproducer.progress import Silent\n"
        "files = [Path(p) for p in sys.argv[1:]]\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "faults = verified([Place(HubFile(p.name, p.stat().st_size, None, '0' * 64), p) for p in files],"
        " reporter=Silent())\n"
        "assert len(faults) == len(files)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    paths = []
    for number in range(3):
        path = place.folder / f"shard-{number}"
        with path.open("wb") as file:
            file.truncate(100 << 20)
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", script, *paths], env=place.environment, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 60 << 10
