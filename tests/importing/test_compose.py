"""Services of docker-compose files: real shapes, interpolation, and YAML of a stranger."""

import time
from pathlib import Path

import pytest

from reproducer.documents.toml import read_text
from reproducer.errors import InvalidDocumentError, UsageError
from reproducer.importing.bounded_yaml import parse_yaml
from reproducer.importing.found import NothingFoundError
from tests.importing import launches

LIST = """
services:
  llm:
    image: lmsysorg/sglang:v0.5.4-cu130
    command: [python3, -m, sglang.launch_server, --model-path, org/m, --tp, 2, --mem-fraction-static, 0.90]
    environment:
      OMP_NUM_THREADS: 4
      SGLANG_USE_CPU_ENGINE: "1"
      HF_TOKEN: ${HF_TOKEN}
    ports: ["30000:30000"]
    volumes: [./models:/models]
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all}]}}}
    ipc: host
"""
FOLDED = """
x-common: &common
  restart: always
  environment: &env
    TOKENIZERS_PARALLELISM: "false"
services:
  web:
    image: nginx:1
    command: nginx -g 'daemon off;'
  llm:
    <<: *common
    image: vllm/vllm-openai@sha256:{digest}
    environment:
      <<: *env
      VLLM_USE_V1: "1"
    command: >
      --model ${{MODEL:-org/m}} --max-model-len ${{LENGTH-8192}}
      --served-model-name "my model" --price $$5
"""
SHELL = """
services:
  llm:
    image: img
    entrypoint: ["/bin/bash", "-lc"]
    command:
      - |
        export OMP_NUM_THREADS=8
        exec sglang serve --model-path org/m \\
          --tp $${TP:-2}
"""


def _write(folder: Path, text: str, name: str = "compose.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_command_as_a_list(tmp_path: Path) -> None:
    """Numbers keep their text, a tag never gets in, what the container is given is named."""
    got = launches.file(_write(tmp_path, LIST))
    assert got.manifest.launch.arguments == {
        "model-path": "{checkpoint.target}", "tp": 2, "mem-fraction-static": "0.90", "served-model-name": "org/m",
    }  # fmt: skip
    assert dict(got.manifest.launch.environment) == {"OMP_NUM_THREADS": "4", "SGLANG_USE_CPU_ENGINE": "1"}
    assert "which digest" in got.without_place["image lmsysorg/sglang:v0.5.4-cu130"].lower()
    assert "v0.5.4" not in got.text
    assert {"ports: 30000:30000", "volumes: ./models:/models", "deploy", "ipc: host"} <= set(got.without_place)


def test_a_command_as_a_text_with_anchors_and_defaults(tmp_path: Path) -> None:
    """The image's own entry point is known, merge keys are filled in, `$$` is a dollar sign."""
    got = launches.file(_write(tmp_path, FOLDED.format(digest="a" * 64), "docker-compose.yml"))
    assert got.manifest.engine.kind == "vllm"
    assert got.manifest.launch.arguments == {
        "model": "{checkpoint.target}", "max-model-len": 8192, "served-model-name": "my model", "price": "$5",
    }  # fmt: skip
    assert dict(got.manifest.launch.environment) == {"TOKENIZERS_PARALLELISM": "false", "VLLM_USE_V1": "1"}


def test_a_shell_in_the_container(tmp_path: Path) -> None:
    """`bash -c TEXT` is read like a script."""
    got = launches.file(_write(tmp_path, SHELL))
    assert got.manifest.launch.arguments["tp"] == 2
    assert dict(got.manifest.launch.environment) == {"OMP_NUM_THREADS": "8"}


def test_variables_from_files(tmp_path: Path) -> None:
    """`.env` fills the file, `env_file` is the server's, a list of names takes what the person gives."""
    (tmp_path / ".env").write_text("MODEL=org/fromenv  # comment\nexport TAG='v1'\n")
    variables = '# c\nOMP_NUM_THREADS=2\nMKL_NUM_THREADS="3"\nHF_TOKEN=hf_abcdefghijklmnopqrstuv\n'
    (tmp_path / "a.env").write_text(variables)
    text = (
        "services:\n  llm:\n    image: vllm/vllm-openai:${TAG}\n"
        "    env_file: [a.env, {path: gone.env, required: false}]\n"
        "    environment: [OMP_NUM_THREADS=4, CUDA_VISIBLE_DEVICES, NCCL_DEBUG]\n    command: [--model, '$MODEL']\n"
    )
    got = launches.file(_write(tmp_path, text), launches.asked(env={"NCCL_DEBUG": "INFO"}))
    assert dict(got.manifest.launch.environment) == {
        "OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "3", "NCCL_DEBUG": "INFO",
    }  # fmt: skip
    assert got.placed.data["checkpoints"][0]["source"]["repository"] == "org/fromenv"
    assert "image vllm/vllm-openai:v1" in got.without_place
    assert "CUDA_VISIBLE_DEVICES" in got.without_place
    assert "hf_abc" not in got.text + str(got.placed)


def test_several_services_must_be_chosen_from(tmp_path: Path) -> None:
    """Services that start no engine are passed over; of two that do one is named."""
    text = (
        "services:\n  a: {command: sglang serve --model-path org/a}\n  b: {command: vllm serve org/b}\n"
        "  c: {image: x}\n"
    )
    path = _write(tmp_path, text)
    with pytest.raises(UsageError, match="2 services start an engine: a, b"):
        launches.file(path)
    assert launches.file(path, launches.asked(service="b")).manifest.engine.kind == "vllm"
    with pytest.raises(UsageError, match="no service 'd'"):
        launches.file(path, launches.asked(service="d"))
    with pytest.raises(NothingFoundError):
        launches.file(path, launches.asked(service="c"))


def test_a_variable_that_must_be_given(tmp_path: Path) -> None:
    """`${NAME:?}` stops with what to pass."""
    path = _write(tmp_path, "services:\n  a:\n    command: vllm serve ${MODEL:?which}\n")
    with pytest.raises(UsageError, match="--env MODEL=VALUE") as caught:
        launches.file(path)
    assert caught.value.why == "which"
    assert launches.file(path, launches.asked(env={"MODEL": "org/m"})).manifest.engine.kind == "vllm"


def test_a_shell_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A loop in the container's command is not guessed at, and nothing runs."""
    path = _write(tmp_path, "services:\n  a:\n    command: [sh, -c, 'for x in 1; do vllm serve org/m; done']\n")
    with pytest.raises(UsageError, match="without running it") as caught:
        launches.file(path, launches.asked(run=True))
    assert "`for`" in caught.value.why


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
HOSTILE = {
    "bomb": BOMB,
    "merge bomb": "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{x: *a{n - 1}, y: *a{n - 1}}}\n" for n in range(1, 40)),
    "itself": "a: &a [*a]\n",
    "itself by merge": "a: &a\n  <<: *a\n",
    "deep": "[" * 200 + "]" * 200,
    "deep blocks": "".join(" " * n + "a:\n" for n in range(300)),
    "many": "a: [" + "x, " * 60_000 + "x]\n",
    "tag": "a: !!python/object/apply:os.system ['touch bait']\n? [a]\n: b\n",
    "twice": "a: 1\na: 2\n",
    "key": "{[a]: b}\n",
    "not yaml": "a: [\n",
    "tabs": "a:\n\t- b\n",
    "undefined alias": "a: *b\n",
    "two documents": "a: 1\n---\nb: 2\n",
    "control": "a: \x01\n",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_yaml_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Bombs, loops, depth, tags and doubles end in one error soon, and make nothing."""
    monkeypatch.chdir(tmp_path)
    start = time.monotonic()
    with pytest.raises(InvalidDocumentError):
        parse_yaml(HOSTILE[name], where="x.yaml")
    assert time.monotonic() - start < 60
    assert list(tmp_path.iterdir()) == []


def test_aliases_that_stay_small_are_fine() -> None:
    """An anchor may be used again; merge keys give way to what stands beside them."""
    data = parse_yaml("a: &a {x: 1, y: 0.90}\nb: {<<: *a, x: 2}\nc: [*a, *a]\n", where="x")
    assert data == {"a": {"x": "1", "y": "0.90"}, "b": {"x": "2", "y": "0.90"}, "c": [data["a"], data["a"]]}


@pytest.mark.parametrize(
    "text",
    ["services: []\n", "services:\n  a: 3\n", "a: b\n", "[]\n", "", "services: {a: {command: {b: c}}}\n",
     "services: {a: {command: \"vllm serve 'x\"}}\n", "services: {a: {environment: [[b]]}}\n"],
)  # fmt: skip
def test_what_is_no_compose_file_is_refused(tmp_path: Path, text: str) -> None:
    """Exit code 2 with one line."""
    with pytest.raises(InvalidDocumentError):
        launches.file(_write(tmp_path, text))


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    """A file beyond the bound is refused by its size."""
    path = _write(tmp_path, "# " + "x" * (2 << 20))
    with pytest.raises(InvalidDocumentError, match="larger than"):
        launches.file(path)
    assert read_text(path, what="file")
