"""A real environment with small distributions and a stand-in for the engine, started as a person would start it."""

import base64
import hashlib
import json
import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reproducer.freeze.found import Found, find
from reproducer.freeze.freezing import Frozen
from reproducer.freeze.freezing import freeze as freeze_it
from reproducer.freeze.notes import Asked
from reproducer.progress import Silent
from reproducer.store import Store
from tests.freeze.engine_stand_in import modules

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}
VERSION = "0.5.10"


def write_wheel(folder: Path, project: str, version: str, files: Mapping[str, str]) -> Path:
    """A wheel with these files, its RECORD as installers want it."""
    name = project.replace("-", "_")
    info = f"{name}-{version}.dist-info"
    every = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n\nName: other\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},{_digest(text)},{len(text.encode())}" for path, text in every.items()]
    every[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        for member, text in every.items():
            packed.writestr(member, text)
    return path


def _digest(text: str) -> str:
    raw = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(raw).decode().rstrip("=")


@dataclass(frozen=True)
class Ended:
    """How a penny process ended."""

    code: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, Any]:
        """What it printed with --json."""
        data: dict[str, Any] = json.loads(self.out)
        return data


@dataclass
class World:
    """An environment with the stand-in, a checkpoint, a store and a folder for locks."""

    folder: Path
    started: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def __post_init__(self) -> None:
        import uv

        self.uv = uv.find_uv_bin()
        self.venv = self.folder / "venv"
        self.python = self.venv / "bin" / "python"
        self.checkpoint = self.folder / "models" / "tiny"
        self.work = self.folder / "work"
        self.log = self.folder / "server.log"
        self.store = Store(self.folder / "store")
        wheels = self.folder / "wheels"
        for each in (wheels, self.checkpoint, self.work):
            each.mkdir(parents=True)
        self.run_uv("venv", "--no-project", "--offline", "--python", sys.executable, str(self.venv))
        self.install(write_wheel(wheels, "sglang", VERSION, modules(VERSION)))
        self.install(write_wheel(wheels, "small-thing", "1.2", {"small_thing/__init__.py": "WORD = 1\n"}))
        (self.checkpoint / "config.json").write_text(json.dumps(CONFIG))
        (self.checkpoint / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
        (self.checkpoint / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")

    @property
    def site(self) -> Path:
        """The folder of packages."""
        return next(self.venv.glob("lib/python3.*/site-packages"))

    def run_uv(self, *arguments: str) -> None:
        """Run the installer."""
        subprocess.run([self.uv, "--no-config", *arguments], check=True, capture_output=True)

    def install(self, wheel: Path) -> None:
        """Install a wheel as its users do."""
        self.run_uv("pip", "install", "--offline", "--no-index", "--no-deps", "--python", str(self.python), str(wheel))
        for noted in self.site.glob("*.dist-info/direct_url.json"):
            noted.unlink()  # as if an index had served it

    def git(self, *arguments: str) -> str:
        """Run git in the checkout."""
        person = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        command = ["git", "-C", str(self.folder / "checkout"), *person, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def into_hub_cache(self) -> tuple[str, dict[str, str]]:
        """Put the checkpoint into a hub's cache as org/tiny; gives its revision and the variable of the cache."""
        commit = "c" * 40
        repository = self.folder / "hub" / "models--org--tiny"
        snapshot = repository / "snapshots" / commit
        for each in (snapshot, repository / "blobs", repository / "refs"):
            each.mkdir(parents=True)
        for path in self.checkpoint.iterdir():
            blob = hashlib.sha256(path.read_bytes()).hexdigest()
            path.rename(repository / "blobs" / blob)
            (snapshot / path.name).symlink_to(f"../../blobs/{blob}")
        (repository / "refs" / "main").write_text(commit)
        return commit, {"HF_HUB_CACHE": str(self.folder / "hub")}

    def into_checkout(self) -> Path:
        """Make the engine an editable install of a git working tree, as a fork of it is worked on."""
        project = self.folder / "checkout"
        (project / "python").mkdir(parents=True)
        (self.site / "sglang").rename(project / "python" / "sglang")
        (project / ".gitignore").write_text("__pycache__/\n")
        self.git("init", "-q")
        self.git("remote", "add", "origin", "https://user:secret@example.org/fork.git")
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        info = next(self.site.glob("sglang-*.dist-info"))
        (info / "direct_url.json").write_text(json.dumps({"url": project.as_uri(), "dir_info": {"editable": True}}))
        (self.site / "__editable__.sglang-0.5.10.pth").write_text(f"{project / 'python'}\n")
        (info / "RECORD").write_text("__editable__.sglang-0.5.10.pth,,\n")
        return project

    def start(
        self,
        *words: str,
        variables: Mapping[str, str] | None = None,
        options: tuple[str, ...] = (),
        cwd: Path | None = None,
    ) -> tuple[int, int]:
        """Start the stand-in; gives its pid and port."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        named = () if any(each.startswith("--model") for each in words) else ("--model-path", str(self.checkpoint))
        command = [str(self.python), *options, "-m", "sglang.launch_server", *named, *words, "--port", str(port)]
        environment = {"PATH": os.defpath, "HOME": str(self.folder), **(variables or {})}
        with self.log.open("ab") as log:
            process = subprocess.Popen(command, cwd=cwd or self.work, env=environment, stdout=log, stderr=log)
        self.started.append(process)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            assert process.poll() is None, self.log.read_text()
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return process.pid, port
        raise AssertionError(self.log.read_text())

    def found(self, port: int) -> Found:
        """The process that listens there."""
        return find(pid=None, port=port)

    def freeze(self, port: int, **asked: Any) -> Frozen:
        """Freeze what listens there."""
        self.store.prepare()
        return freeze_it(self.found(port), Asked(host="127.0.0.1", port=port, **asked), self.store, reporter=Silent())

    def penny(self, *arguments: str) -> Ended:
        """Run the command line in the work folder."""
        environment = {
            **os.environ,
            "PENNY_STORE": str(self.store.root),
            "PENNY_KEYS": str(self.folder / "keys"),
            "COLUMNS": "200",
        }
        ran = subprocess.run(
            [sys.executable, "-m", "reproducer", *arguments],
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return Ended(ran.returncode, ran.stdout, ran.stderr)

    def end(self) -> None:
        """End every server that was started."""
        for process in self.started:
            process.kill()
            process.wait()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world of its own, whose servers end with the test."""
    made = World(tmp_path)
    yield made
    made.end()
    if list((made.store.root / "servers").glob("*")):
        assert made.penny("stop", "--all").code == 0


def keys(entries: Any) -> set[str]:
    """The keys of a list of what is unknown or left out."""
    return {each.key for each in entries}
