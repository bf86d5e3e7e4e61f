"""A server that penny knows nothing of but its protocol: from a manifest to signed evidence, by the command line."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.end_to_end.newcomer import Penny, servers_of
from tests.locking.conftest import CONVERT, serving, wheel

__all__ = ["serving"]  # a fixture of another room

SERVER = Path(__file__).parents[1] / "engines" / "openai_server.py"
INSTALL = '#!/bin/sh\nset -e\nmkdir "$2/bin"\ncp "$1/serve" "$2/bin/serve"\nchmod 755 "$2/bin/serve"\n'
MANIFEST = f"""\
format = "penny-manifest/1"
name = "small"
platform = "linux-x86_64"
python = "{sys.version_info.major}.{sys.version_info.minor}"
compiler = "none"

[engine]
kind = "openai"
component = "server"

[[components]]
name = "server"
kind = "command"
source = {{ kind = "local", path = "runtime/server" }}
arguments = ["sh", "{{source}}/install", "{{source}}", "{{output}}"]

[[environments]]
name = "runtime"
requirements = ["alpha==1.0"]

[[checkpoints]]
name = "model"
role = "target"
source = {{ kind = "wheel-member", project = "tiny-model", version = "==1.0", member = "tiny_model/model.bin" }}

[checkpoints.conversion]
script = "runtime/convert.py"
arguments = ["{{source}}", "{{output}}"]
environment = "runtime"

[launch]
program = "{{component.server}}/bin/serve"

[launch.arguments]
alias = "small"
model = "{{checkpoint.target}}/model.safetensors"
props = true
slot-save-path = "{{namespace}}/slots"

[qualification]
suite = "default"

[[qualification.measures]]
id = "decode.single/1"
parameters = {{ prompt_tokens = 32, output_tokens = 16 }}
thresholds = [{{ value = "decode_rate", comparator = ">=", bound = 1, unit = "tok/s" }}]

[[qualification.measures]]
id = "prefix.reuse/1"
parameters = {{ prompt_tokens = 64 }}
thresholds = [{{ value = "reused_tokens", comparator = ">=", bound = 48, unit = "tokens" }}]

[[qualification.measures]]
id = "chat.smoke/1"
thresholds = [{{ value = "sensible", comparator = "==", bound = true, unit = "bool" }}]
"""


@pytest.fixture
def penny(tmp_path: Path, serving: Any, monkeypatch: pytest.MonkeyPatch) -> Penny:
    """A folder with a manifest, the server's source and an index on this machine."""
    index = serving(tmp_path / "index")
    index.add(wheel("alpha", "1.0"))
    index.add(wheel("tiny-model", "1.0", {"tiny_model/model.bin": bytes(range(64))}))
    for name, value in {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": index.url, "UV_NO_CONFIG": "1"}.items():
        monkeypatch.setenv(name, value)
    for name in ("PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "clone"
    (folder / "runtime" / "server").mkdir(parents=True)
    (folder / "runtime" / "server" / "serve").write_text(f"#!{sys.executable} -IS\n{SERVER.read_text()}")
    (folder / "runtime" / "server" / "install").write_text(INSTALL)
    (folder / "runtime" / "convert.py").write_text(CONVERT)
    (folder / "manifests").mkdir()
    (folder / "manifests" / "small.toml").write_text(MANIFEST)
    return Penny(folder, tmp_path / "store", tmp_path / "keys")


def test_whole_way(penny: Penny) -> None:
    """It is locked, built, launched, looked at, measured and attested, and nothing of it stays behind.

    Some ten seconds: seven processes of penny, a runtime that is really built and five starts of the server.
    """
    locked = penny("lock", "manifests/small.toml", "--yes", "--json")
    assert locked.code == 0, locked.err
    assert penny("lock", "--check", "--json").result["reasons"] == []

    launched = penny("launch", "--detach", "--yes", "--json")
    assert launched.code == 0, launched.err
    assert launched.result["differences"] == []
    argv = httpx.get(f"{launched.result['url']}/asked", trust_env=False).json()["argv"]
    assert argv[0].startswith(str(penny.store))
    assert argv[1:3] == ["--alias", "small"]
    assert penny("stop", "--json").code == 0
    assert servers_of(penny.store) == []

    qualified = penny("qualify", "--yes", "--json")
    assert qualified.code == 0, qualified.err
    assert qualified.result["passed"] is True
    assert len(qualified.result["receipts"]) == 3
    samples = [json.loads(line) for line in qualified.out.splitlines()[:-1]]
    assert {sample["event"] for sample in samples} == {"sample"}
    assert len({sample["measure"] for sample in samples}) == 3

    whole = penny("reproduce", "--yes", "--json")
    assert whole.code == 0, whole.err
    assert whole.result["verdict"] == "passed"
    verified = penny("verify", whole.result["bundle"], "--key", str(penny.keys / "penny.pub.pem"), "--json")
    assert verified.code == 0, verified.err
    assert servers_of(penny.store) == []
