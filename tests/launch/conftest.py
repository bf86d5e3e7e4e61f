"""A lock, a runtime whose interpreter runs the stand-in, and a look at what is left of it."""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reproducer.documents.built import HostFacts, Isolation, TreeDigest
from reproducer.documents.lock import ArgumentValue, Lock
from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import BuildReceipt
from reproducer.engines.sglang import expected_effective
from reproducer.identity.root import pages_of
from reproducer.launch.server import Server, running, start_detached
from reproducer.progress import Silent

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

ZEROS = "0" * 64
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}
ARGUMENTS: dict[str, ArgumentValue] = {
    "attention-backend": "torch_native",
    "context-length": 512,
    "model-path": "{checkpoint.target}",
    "page-size": 16,
}


class Listening(Silent):
    """A Reporter that keeps its notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.details: list[str] = []

    def note(self, message: str) -> None:
        """Keep it."""
        self.notes.append(message)

    def detail(self, message: str) -> None:
        """Keep it."""
        self.details.append(message)


@dataclass(frozen=True)
class PlainRuntime:
    """What a launch needs of a runtime."""

    python: Path
    checkpoints: dict[str, Path]
    receipt: BuildReceipt
    components: dict[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class PlainNamespace:
    """What a launch needs of a namespace."""

    name: str
    digest: str


@dataclass(frozen=True)
class PlainStore:
    """What a launch needs of a store."""

    root: Path


@dataclass
class Bench:
    """Everything one launch of the stand-in needs, below one folder."""

    folder: Path
    reporter: Listening = field(default_factory=Listening)
    deadline_s: int = 20

    def __post_init__(self) -> None:
        self.root = self.folder / "kv" / "namespace-000000000000"
        self.pages = pages_of(self.root)
        self.pages.mkdir(parents=True, exist_ok=True)
        self.store = PlainStore(self.folder / "store")
        self.log = self.folder / "logs" / "server.log"
        checkpoint = self.folder / "checkpoint"
        checkpoint.mkdir(exist_ok=True)
        (checkpoint / "config.json").write_text(json.dumps(CONFIG))
        python = self.folder / "python"
        source = Path(__file__).with_name("stand_in.py").read_text(encoding="utf-8")
        python.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
        python.chmod(0o755)
        self.runtime = PlainRuntime(python, {"target": checkpoint}, build_receipt())
        self.namespace = PlainNamespace("namespace-000000000000", ZEROS)

    def another(self, name: str) -> "Bench":
        """A bench in a folder below this one; `.` is the same place with a reporter of its own."""
        (self.folder / name).mkdir(exist_ok=True)
        return Bench(self.folder / name)

    def opened(self, mode: str = "", **launch: Any) -> OpenedLock:
        """A lock that launches the stand-in in a mode."""
        settings: dict[str, Any] = {
            "module": "stand_in",
            "arguments": ARGUMENTS,
            "environment": {"STAND_IN": mode, "STAND_IN_NAMESPACE": "{namespace}"},
            "effective": {**expected_effective(ARGUMENTS, CONFIG), "context_length": 512},
            "readiness": {"endpoint": "/health_generate", "deadline_s": self.deadline_s},
        }
        settings["effective"].pop("context_length")  # the stand-in does not tell it
        return opened_lock(self.folder / "penny.lock.toml", {**settings, **launch})

    def run(
        self, mode: str = "", *, port: int | None = None, grace_s: float = 5.0, **launch: Any
    ) -> "AbstractContextManager[Server]":
        """`running` with the stand-in."""
        return running(
            self.opened(mode, **launch),
            self.runtime,
            self.root,
            self.namespace,
            port=port,
            log=self.log,
            reporter=self.reporter,
            accepted="--yes",
            grace_s=grace_s,
        )

    def detach(self, mode: str = "", *, port: int | None = None, grace_s: float = 5.0) -> Server:
        """`start_detached` with the stand-in."""
        return start_detached(
            self.opened(mode),
            self.runtime,
            self.root,
            self.namespace,
            store=self.store,
            port=port,
            log=self.log,
            reporter=self.reporter,
            accepted="--yes",
            grace_s=grace_s,
        )

    def requests(self) -> list[str]:
        """What the stand-in was asked."""
        path = self.pages / "requests"
        return path.read_text().splitlines() if path.exists() else []

    def left(self) -> set[int]:
        """Every living process that carries this namespace in its environment."""
        mark = os.fsencode(self.root)
        found = set()
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                    found.add(int(entry.name))
            except OSError:
                continue
        return found

    def nothing_left(self, seconds: float = 5.0) -> bool:
        """Whether all of it ends within that time: processes, lock file, record, private folder."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            records = list((self.store.root / "servers").glob("*"))
            if not self.left() and not self.lock_files() and not records and not self.private().exists():
                return True
            time.sleep(0.02)
        return False

    def lock_files(self) -> list[Path]:
        """The lock files beside the namespace."""
        return list(self.root.parent.glob(".*.server"))

    def seen(self) -> dict[str, Any]:
        """Environment, working directory and arguments as the stand-in saw them."""
        line = (self.pages / "environment").read_text().splitlines()[-1]
        seen: dict[str, Any] = json.loads(line)
        return seen

    def private(self) -> Path:
        """The private folder of the last launch; one that never was where there was none."""
        if not (self.pages / "environment").exists() or not (self.pages / "environment").read_text():
            return self.folder / "never"
        return Path(self.seen()["environment"]["HOME"]).parent

    def wait_for(self, name: str, seconds: float = 60.0) -> None:
        """Wait until the stand-in has written a file into the namespace."""
        deadline = time.monotonic() + seconds
        while not ((self.pages / name).exists() and (self.pages / name).read_bytes().endswith(b"\n")):
            assert time.monotonic() < deadline, f"{name} did not appear"
            time.sleep(0.01)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A bench whose processes are gone when the test ends, or the test fails."""
    bench = Bench(tmp_path)
    yield bench
    assert bench.nothing_left(), f"left: {bench.left()}, {bench.lock_files()}"


def opened_lock(path: Path, launch: dict[str, Any]) -> OpenedLock:
    """A lock with this launch; the rest is as small as the format allows."""
    file = {"path": "script.py", "sha256": ZEROS, "size": 0}
    wheel = {"project": "model", "version": "1", "filename": "model.whl", "sha256": ZEROS, "size": 0}
    data = {
        "format": "penny-lock/1",
        "name": "stand-in",
        "manifest": "manifest.toml",
        "platform": "linux-x86_64",
        "toolchain": {"python": "3.11", "compiler": "none"},
        "engine": {"kind": "sglang", "component": "sglang"},
        "build": {"source_date_epoch": 0},
        "components": [
            {
                "name": "sglang",
                "kind": "wheel",
                "source": {"kind": "sdist", **wheel},
                "build_environment": "runtime",
                "outputs": [],
            }
        ],
        "environments": [{"name": "runtime", "pylock": file, "packages": 0}],
        "checkpoints": [
            {
                "name": "model",
                "role": "target",
                "source": {
                    "kind": "wheel-member",
                    "member": "model.gguf",
                    "member_sha256": ZEROS,
                    "member_size": 0,
                    **wheel,
                },
                "conversion": {"script": file, "arguments": ["{source}", "{output}"], "environment": "runtime"},
                "trust_remote_code": False,
                "files": [],
            }
        ],
        "launch": launch,
        "qualification": {"suite": "none", "boots": 2, "measures": []},
    }
    return OpenedLock(Lock.from_data(data, where=str(path)), path)


def build_receipt() -> BuildReceipt:
    """A build receipt with nothing in it."""
    return BuildReceipt(
        lock_digest=ZEROS,
        penny_version="0",
        created="2030-01-01T00:00:00Z",
        level="bytes-identical",
        outputs=(),
        packages=(),
        runtime=TreeDigest(files=0, bytes=0, sha256=ZEROS),
        checkpoints={},
        python="3.11.0",
        installer="uv",
        isolation=Isolation(network="none", umask="022", locale="C.UTF-8", source_date_epoch=0),
        host=HostFacts(
            platform="linux-x86_64",
            kernel="unknown",
            cpu="unknown",
            cpu_count=1,
            cpu_flags=(),
            memory_bytes=0,
            filesystem="unknown",
        ),
        accepted="--yes",
    )
