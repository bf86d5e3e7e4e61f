"""Stand-in interpreters: real processes that take the probe's place, or run the real probe beside a stand-in `nixl`."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PRELUDE = """#!{python} -I
import json, os, signal, subprocess, sys, time
plan = json.loads(sys.argv[4])
def say(**line):
    os.write(1, json.dumps(line).encode() + b"\\n")
def begin(ident):
    say(kind="begin", id=ident)
def passed(ident, **more):
    begin(ident)
    say(kind="result", id=ident, status="passed", **more)
def each():
    for cell in plan["cells"]:
        for step in cell["steps"]:
            yield cell["id"] + "." + step
begin("start")
"""
BESIDE = """#!{python} -I
import importlib.util, os, runpy, sys, types
os.environ["FAKE_NIXL_FAULT"] = {fault!r}
spec = importlib.util.spec_from_file_location("nixl._api", {fake!r})
module = importlib.util.module_from_spec(spec)
package = types.ModuleType("nixl")
package.__path__ = []
sys.modules.update({{"nixl": package, "nixl._api": module}})
spec.loader.exec_module(module)
import importlib.metadata
importlib.metadata.version = lambda name: "0"
sys.argv = sys.argv[3:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
Interpreter = Callable[[str], Path]


def executable(path: Path, text: str) -> Path:
    """A program that the kernel runs."""
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def interpreter(tmp_path: Path) -> Interpreter:
    """Makes an interpreter that runs this body instead of the probe."""
    return lambda body: executable(tmp_path / "python", PRELUDE.format(python=sys.executable) + body)


@pytest.fixture
def beside(tmp_path: Path) -> Interpreter:
    """Makes an interpreter that runs the real probe with a stand-in `nixl` that has this fault."""
    fake = str(Path(__file__).with_name("fake_nixl.py"))
    return lambda fault: executable(tmp_path / "python", BESIDE.format(python=sys.executable, fault=fault, fake=fake))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder that is probed."""
    folder = tmp_path / "kv"
    folder.mkdir()
    return folder
