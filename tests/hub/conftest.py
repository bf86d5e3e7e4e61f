"""A hub on a local port, a cache and a store of its own, and checkpoints as a lock names them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.lock import Checkpoint, CheckpointFile
from reproducer.documents.sources import HubSource
from reproducer.fetch.web import Patience
from reproducer.hub.fetching import Brought, fetch_checkpoints
from reproducer.hub.place import HubPlace
from reproducer.progress import Silent
from reproducer.store import Store
from tests.hub.server import HubServer, blob_id, safetensors

NAME = "some/model"
CONFIG = b'{"model_type": "llama", "torch_dtype": "float16", "max_position_embeddings": 2048}'
WEIGHTS = safetensors(bytes(range(256)) * 1200)
MORE = safetensors(b"second" * 60_000)
FILES = {
    "config.json": CONFIG,
    "tokenizer_config.json": b'{"chat_template": "{{ messages }}"}',
    "model-00001-of-00002.safetensors": WEIGHTS,
    "model-00002-of-00002.safetensors": MORE,
    "nested/notes.txt": b"notes\n",
    "README.md": b"# A model\n",
}


class Notes(Silent):
    """Keeps what a person is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, message: str) -> None:
        """Keep it."""
        self.lines.append(message)

    detail = note


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No token of this machine's user, and no hub but the local one."""
    from huggingface_hub import constants

    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A hub with one repository."""
    server = HubServer()
    server.add(NAME, FILES)
    yield server
    server.close()
    from huggingface_hub.utils import close_session

    close_session()


def checkpoint_of(hub: HubServer, name: str = NAME, commit: str = "", **changes: Any) -> Checkpoint:
    """The checkpoint that a lock holds of a repository's main branch."""
    repository = hub.repositories[name]
    revision = commit or repository.refs["main"]
    files = tuple(
        CheckpointFile(
            path=path,
            sha256=hashlib.sha256(data).hexdigest(),
            size=len(data),
            blob=None if repository.in_lfs(path, data) else blob_id(data),
        )
        for path, data in sorted(repository.commits[revision].items())
    )
    found = Checkpoint(
        name="model",
        role="target",
        source=HubSource(repository=name, revision=revision),
        trust_remote_code=False,
        files=files,
    )
    return found.model_copy(update=changes)


@dataclass
class Bench:
    """Where one test fetches to."""

    hub: HubServer
    store: Store
    cache: Path
    notes: Notes
    patience: Patience = field(default_factory=lambda: Patience(attempts=3, first_wait=0.01))

    @property
    def place(self) -> HubPlace:
        """The local hub and the cache of this test."""
        return HubPlace(endpoint=self.hub.url, folder=self.cache, patience=self.patience)

    def fetch(self, *checkpoints: Checkpoint, **options: Any) -> Brought:
        """Fetch checkpoints, or the one of the hub."""
        wanted = checkpoints or (checkpoint_of(self.hub),)
        return fetch_checkpoints(wanted, self.store, place=self.place, reporter=self.notes, **options)

    def blob(self, data: bytes, *, lfs: bool = True, name: str = NAME) -> Path:
        """Where the hub's cache keeps some bytes."""
        folder = self.cache / f"models--{name.replace('/', '--')}" / "blobs"
        return folder / (hashlib.sha256(data).hexdigest() if lfs else blob_id(data))


@pytest.fixture
def bench(hub: HubServer, tmp_path: Path) -> Bench:
    """A store and a cache that are empty."""
    return Bench(hub, Store(tmp_path / "store"), tmp_path / "cache", Notes())
