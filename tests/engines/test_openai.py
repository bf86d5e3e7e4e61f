"""The adapter for any OpenAI-compatible server, with a real one: started by program, looked at, measured, ended."""

import contextlib
import hashlib
import http.client
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.lock import ArgumentValue, Launch, Lock
from reproducer.documents.opened import OpenedLock
from reproducer.engines import engine_of
from reproducer.engines.openai import OPENAI_ENGINE
from reproducer.engines.persistent import placed
from reproducer.errors import ConfigurationError, DriftError, InvalidDocumentError, UnsafeInputError
from reproducer.identity.classes import rule
from reproducer.identity.root import pages_of
from reproducer.launch.effective import EffectiveDifferenceError
from reproducer.launch.server import Server, running
from tests.launch.conftest import Listening, PlainNamespace, PlainRuntime, build_receipt, opened_lock

SERVER = Path(__file__).with_name("openai_server.py")
NAME = "namespace-000000000000"


@pytest.fixture
def bench(tmp_path: Path) -> "Bench":
    """Everything one launch of the server needs."""
    return Bench(tmp_path)


class Bench:
    """A component with the server as its program, a checkpoint and a namespace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.component = folder / "component"
        (self.component / "bin").mkdir(parents=True)
        self.program = self.component / "bin" / "serve"
        self.program.write_text(f"#!{sys.executable} -IS\n{SERVER.read_text()}")
        self.program.chmod(0o755)
        checkpoint = folder / "checkpoint"
        checkpoint.mkdir()
        (checkpoint / "config.json").write_text("{}")
        self.root = folder / "kv" / NAME
        pages_of(self.root).mkdir(parents=True)
        self.runtime = PlainRuntime(
            Path(sys.executable), {"target": checkpoint}, build_receipt(), components={"server": self.component}
        )
        self.reporter = Listening()

    def opened(self, arguments: dict[str, ArgumentValue], **launch: Any) -> OpenedLock:
        """A lock that launches it."""
        expected = OPENAI_ENGINE.expected_effective(arguments, {})
        settings: dict[str, Any] = {
            "program": "{component.server}/bin/serve",
            "arguments": arguments,
            "environment": {},
            "effective": expected,
            "readiness": {"endpoint": "/v1/models", "deadline_s": 30},
            **launch,
        }
        path = self.folder / "penny.lock.toml"
        plain = {"module": "m", "arguments": {}, "effective": {}, "readiness": {"endpoint": "/health"}}
        data = opened_lock(path, plain).lock.model_dump(mode="json", exclude_none=True)
        source = {"kind": "local", "path": "server", "files": []}
        data["components"] = [
            {"name": "server", "kind": "command", "source": source, "arguments": ["true"], "outputs": []}
        ]
        data["engine"] = {"kind": "openai", "component": "server"}
        data["launch"] = settings
        return OpenedLock(Lock.from_data(data, where=str(path)), path)

    @contextmanager
    def run(self, arguments: dict[str, ArgumentValue], **launch: Any) -> Iterator[Server]:
        """The server, gone when the context ends."""
        with running(
            self.opened(arguments, **launch),
            self.runtime,
            self.root,
            PlainNamespace(NAME, "0" * 64),
            log=self.folder / "server.log",
            reporter=self.reporter,
            accepted="--yes",
        ) as server:
            yield server


def asked(server: Server) -> dict[str, Any]:
    """What the server saw."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", "/asked")
        found: dict[str, Any] = json.load(connection.getresponse())
    return found


def test_program_of_a_component(bench: Bench) -> None:
    """The component's program is started with the lock's arguments and penny's host and port, and checked."""
    with bench.run({"alias": "small", "model": "{checkpoint.target}/m.gguf", "props": True}) as server:
        saw = asked(server)
        assert saw["argv"][0] == str(bench.program)
        assert saw["argv"][1:5] == ["--alias", "small", "--model", f"{bench.runtime.checkpoints['target']}/m.gguf"]
        assert saw["argv"][-4:] == ["--host", "127.0.0.1", "--port", str(server.port)]
        assert set(saw["asked"]) == {"GET /v1/models", "GET /props", "GET /asked"}
        (value,) = server.receipt.effective
        assert (value.name, value.got, value.agrees) == ("served_model_name", "small", True)
        assert "{checkpoint.target}/m.gguf" in server.receipt.arguments
    assert not server.alive()


def test_another_model_is_refused(bench: Bench) -> None:
    """A server that offers another model than the lock's is stopped before any traffic."""
    with (
        pytest.raises(EffectiveDifferenceError, match="served_model_name: expected 'small', got 'large'"),
        bench.run({"alias": "small", "shows": "large"}),
    ):
        pass


def test_what_the_first_launch_showed_holds_for_the_next(bench: Bench) -> None:
    """The build, the template and the context that nobody could lock are the same later, or the launch is refused."""
    arguments: dict[str, ArgumentValue] = {"alias": "small", "props": True, "build": "b1"}
    with bench.run(arguments):
        pass
    kept = json.loads((bench.root / "resolved.json").read_text())["values"]
    assert kept["build_info"] == "b1"
    assert kept["context_length"] == 4096
    assert len(kept["chat_template_sha256"]) == 64
    with bench.run(arguments):
        pass
    with (
        pytest.raises(ConfigurationError, match="build_info: 'b1' then, 'b2' now"),
        bench.run(arguments | {"build": "b2"}),
    ):
        pass


def test_program_outside_its_component(bench: Bench) -> None:
    """A path or a link that leads out of the component is not run."""
    with (
        pytest.raises(UnsafeInputError, match="lies in no component"),
        bench.run({"alias": "small"}, program="{component.server}/../elsewhere"),
    ):
        pass
    moved = bench.folder / "moved"
    shutil.move(bench.program, moved)
    bench.program.symlink_to(moved)
    with pytest.raises(UnsafeInputError, match="lies in no component"), bench.run({"alias": "small"}):
        pass


def test_file_beside_the_lock(bench: Bench) -> None:
    """A file that the server reads is verified before the launch, and named by its placeholder in the receipt."""
    (bench.folder / "grammar.txt").write_text("root")
    sha256 = hashlib.sha256(b"root").hexdigest()
    files = {"grammar": {"path": "grammar.txt", "sha256": sha256, "size": 4}}
    arguments: dict[str, ArgumentValue] = {"alias": "small", "model": "{file.grammar}"}
    with bench.run(arguments, files=files) as server:
        assert str(bench.folder / "grammar.txt") in asked(server)["argv"]
        assert "{file.grammar}" in server.receipt.arguments
    (bench.folder / "grammar.txt").write_text("tree")
    with pytest.raises(DriftError, match=r"grammar.txt is not the file"), bench.run(arguments, files=files):
        pass


def test_nothing_to_check_is_refused(bench: Bench) -> None:
    """A launch that names no model leaves nothing that could be compared."""
    with pytest.raises(InvalidDocumentError, match="names no effective value"), bench.run({"props": True}):
        pass


@pytest.mark.parametrize("flag", ["api-key", "api-key-file", "host", "port", "ssl-key-file"])
def test_refused_arguments(bench: Bench, flag: str) -> None:
    """Each engine has its own list of what no lock may carry."""
    with pytest.raises(InvalidDocumentError, match="may not stand here"):
        bench.opened({"alias": "small", flag: "x"})


def test_no_argument_is_neutral() -> None:
    """An engine without a table has no neutral arguments: every one is a factor of the namespace."""
    for flag in ("threads", "log-verbosity", "ctx-size", "metrics"):
        assert rule(("launch", "arguments", flag), "openai").consequence == "cache-identity"


def launch(arguments: dict[str, Any], environment: dict[str, str] | None = None) -> Launch:
    """A launch with these arguments."""
    data = {"module": "m", "arguments": arguments, "environment": environment or {}, "effective": {}, "readiness": {}}
    return Launch.model_validate_json(json.dumps(data))


def test_stores() -> None:
    """No store unless one is declared; a flag that is known to keep pages must name the namespace."""
    stores = OPENAI_ENGINE.persistent_store
    assert stores(launch({"model": "{checkpoint.target}"})) == ()
    placed(launch({"slot-save-path": "{namespace}/slots"}), stores)
    placed(launch({}, {"CACHE": "{namespace}"}), stores)
    for value in ("slots", "{checkpoint.target}", "{namespace}/../other"):
        with pytest.raises(InvalidDocumentError, match="would keep pages"):
            placed(launch({"slot-save-path": value}), stores)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"data": {"id": "small"}},
        {"data": [{"id": 1}, 2]},
        {"data": [{"id": "small"}, {"id": "other"}]},
        {"data": [{"id": "x" * 5000}]},
        {"/props": []},
    ],
)
def test_hostile_facts(facts: dict[str, Any]) -> None:
    """Whatever the server says in whatever shape, it is not the lock's model."""
    observed = OPENAI_ENGINE.observed_effective(facts, "", {}, {})
    assert observed.get("served_model_name", (None, None))[0] != "small"


def test_by_kind() -> None:
    """The lock's word leads to it; it tells how far a start is, and never knows a line that says nothing."""
    assert engine_of("openai") is OPENAI_ENGINE
    assert OPENAI_ENGINE.phase("main: server is listening on http://127.0.0.1:1") == "ready"
    assert not OPENAI_ENGINE.is_noise("anything")
    assert "storage" in OPENAI_ENGINE.lacks("storage tokens", launch({}))
