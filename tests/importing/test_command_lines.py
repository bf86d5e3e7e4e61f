"""Command lines of real shapes: what stands in front, how the engine is named, every kind of argument."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.manifest import GitRequest, HubRequest, WheelRequest
from reproducer.errors import PennyError, UsageError
from reproducer.importing.found import NothingFoundError
from reproducer.importing.placing import Choices
from tests.importing import launches

COMMIT = "9228df5c6c9c509e1019f83b4e085cf643118bac"
SCHEMAS = Path(__file__).parent.parent / "data" / "arguments"

ENGINES = {
    "sglang serve --model-path org/m --tp 2": ("sglang", {"tp": 2}),
    "python -m sglang.launch_server --model-path org/m --tp 2": ("sglang", {"tp": 2}),
    "python3 -u -X faulthandler -m sglang.launch_server --model org/m --tp=2": ("sglang", {"tp": 2}),
    "/opt/venv/bin/python3.12 -msglang.launch_server --model-path=org/m": ("sglang", {}),
    "python /opt/sglang/python/sglang/launch_server.py --model-path org/m": ("sglang", {}),
    "/opt/venv/bin/sglang serve org/m --page-size 64": ("sglang", {"page-size": 64}),
    "vllm serve org/m --max-model-len 8192": ("vllm", {"max-model-len": 8192}),
    "vllm serve --enable-prefix-caching org/m": ("vllm", {"enable-prefix-caching": True}),
    "vllm serve org/m -tp 2 -O3 -q fp8": (
        "vllm",
        {"tensor-parallel-size": 2, "optimization-level": 3, "quantization": "fp8"},
    ),
    "vllm serve org/m --max_model_len 8192": ("vllm", {"max-model-len": 8192}),
    "python -m vllm.entrypoints.openai.api_server --model org/m --dtype=half": ("vllm", {"dtype": "half"}),
    "python -m vllm.entrypoints.cli.main serve org/m --no-enable-prefix-caching": (
        "vllm",
        {"no-enable-prefix-caching": True},
    ),
    "env -u FOO CUDA_VISIBLE_DEVICES=0 sglang serve --model-path org/m": ("sglang", {}),
    "exec -a server nohup setsid sglang serve --model-path org/m": ("sglang", {}),
    "numactl --cpunodebind=0 -m 0 taskset -c 0-7 sglang serve --model-path org/m": ("sglang", {}),
    "nice -n 5 ionice -c 2 -n 0 chrt -f 10 vllm serve org/m": ("vllm", {}),
    "timeout -k 5 1h sudo -E -u serve vllm serve org/m": ("vllm", {}),
    "uv run --with vllm vllm serve org/m": ("vllm", {}),
    "conda run -n serve --no-capture-output python -m sglang.launch_server --model-path org/m": ("sglang", {}),
    "nsys profile -o report vllm serve org/m": ("vllm", {}),
}


@pytest.mark.parametrize(("line", "expected"), ENGINES.items(), ids=list(ENGINES))
def test_the_engine_is_found_behind_whatever_starts_it(line: str, expected: tuple[str, dict[str, Any]]) -> None:
    """Prefixes take no more words than their own; the engine, its model and its arguments come through."""
    got = launches.text(line)
    engine, arguments = expected
    model = {"sglang": "model-path", "vllm": "model"}[engine]
    assert got.manifest.engine.kind == engine
    assert (
        got.manifest.launch.module
        == {"sglang": "sglang.launch_server", "vllm": "vllm.entrypoints.openai.api_server"}[engine]
    )
    found = dict(got.manifest.launch.arguments)
    assert "{checkpoint.target}" in (found.pop("model-path", None), found.pop("model", None)), model
    assert found.pop("served-model-name") == "org/m"
    assert found == arguments
    assert got.manifest.checkpoints[0].source == HubRequest(kind="hub", repository="org/m", revision="main")
    assert "moves" in got.open["checkpoints.target"]


NO_LAUNCH = (
    "python -m sglang.bench_serving --model org/m",
    "python -c 'import sglang'",
    "vllm bench serve --model org/m",
    "llama-server -m model.gguf",
    "numactl --hardware",
    "docker ps",
    "docker run --rm ubuntu:24.04 echo vllm serve",
    "env",
    "sglang --version",
    "# nothing",
    "A=1 B=2",
)


@pytest.mark.parametrize("line", NO_LAUNCH)
def test_what_serves_nothing_is_no_launch(line: str) -> None:
    """A command that starts no engine is refused with exit code 2."""
    with pytest.raises(UsageError) as caught:
        launches.text(line)
    assert caught.value.exit_code == 2


def test_a_launch_without_a_model_is_none() -> None:
    """No model is named, so there is nothing to serve; the person can name one."""
    with pytest.raises(NothingFoundError, match="names no model"):
        launches.text("sglang serve --tp 2")
    got = launches.text("sglang serve --tp 2", Choices(checkpoints={"target": ("org/m", COMMIT)}))
    assert got.manifest.checkpoints[0].source == HubRequest(kind="hub", repository="org/m", revision=COMMIT)


def test_what_penny_sets_is_dropped_and_named() -> None:
    """Address, port and keys have no place; a key's value is shown nowhere."""
    got = launches.text(
        "sglang serve --model-path org/m --host 0.0.0.0 --port 30000 --api-key verysecret1 --admin-api-key=verysecret2"
    )
    assert set(got.without_place) == {"--host 0.0.0.0", "--port 30000", "--api-key", "--admin-api-key"}
    assert "verysecret" not in got.text + str(got.placed)


@pytest.mark.parametrize(
    "line",
    [
        "HF_TOKEN=hf_abcdefghijklmnopqrstuv sglang serve --model-path org/m",
        "VLLM_API_KEY=hf_abcdefghijklmnopqrstuv vllm serve org/m",
        "MY_DB_PASSWORD=hf_abcdefghijklmnopqrstuv vllm serve org/m",
        "SGLANG_X=hf_abcdefghijklmnopqrstuv sglang serve --model-path org/m",
        "vllm serve org/m --hf-token hf_abcdefghijklmnopqrstuv",
        "vllm serve org/m --unheard-of hf_abcdefghijklmnopqrstuv",
        """vllm serve org/m --kv-transfer-config '{"api_key": "hf_abcdefghijklmnopqrstuv"}'""",
        "docker run -e HF_TOKEN=hf_abcdefghijklmnopqrstuv --label=hf_abcdefghijklmnopqrstuv vllm/vllm-openai:v1 org/m",
        "vllm serve org/m stray hf_abcdefghijklmnopqrstuv",
    ],
)
def test_a_secret_is_left_out_wherever_it_stands(line: str) -> None:
    """By its name or by its looks: no secret reaches the manifest or what is told."""
    got = launches.text(line)
    assert "hf_abc" not in got.text
    assert "hf_abc" not in str([got.placed.unmapped, got.placed.unknown, got.placed.data])


def test_a_variable_of_tokens_is_no_secret() -> None:
    """Names that merely hold the word stay."""
    got = launches.text("TOKENIZERS_PARALLELISM=false SGLANG_MAX_NEW_TOKENS_LIMIT=5 sglang serve --model-path org/m")
    assert dict(got.manifest.launch.environment) == {
        "TOKENIZERS_PARALLELISM": "false",
        "SGLANG_MAX_NEW_TOKENS_LIMIT": "5",
    }


def test_json_is_kept_byte_for_byte() -> None:
    """Spaces, order and escapes of a JSON argument stay as they are."""
    table = '{ "b":1,"a" : [1, 2.50],  "t":"it\\u0027s \\"quoted\\" \U0001f600" }'
    got = launches.words("sglang", "serve", "--model-path", "org/m", "--json-model-override-args", table)
    assert got.manifest.launch.arguments["json-model-override-args"] == table


def test_a_draft_inside_a_table_becomes_a_checkpoint_and_nothing_else_changes() -> None:
    """VLLM names its draft model inside JSON; only that name is replaced."""
    table = '{"method": "eagle3",  "model":"org/draft", "num_speculative_tokens": 3}'
    got = launches.words("vllm", "serve", "org/m", "--speculative-config", table)
    assert got.manifest.launch.arguments["speculative-config"] == table.replace("org/draft", "{checkpoint.draft}")
    assert [(each.role, getattr(each.source, "repository", "")) for each in got.manifest.checkpoints] == [
        ("target", "org/m"),
        ("draft", "org/draft"),
    ]


def test_revisions_and_roles() -> None:
    """Each model gets its own revision; a tokenizer that is the model is no second checkpoint."""
    got = launches.text(
        f"sglang serve --model-path org/m --revision {COMMIT} --tokenizer-path org/m "
        f"--speculative-draft-model-path org/d --speculative-draft-model-revision v1"
    )
    sources = {each.role: each.source for each in got.manifest.checkpoints}
    assert sources == {
        "target": HubRequest(kind="hub", repository="org/m", revision=COMMIT),
        "draft": HubRequest(kind="hub", repository="org/d", revision="v1"),
    }
    assert got.manifest.launch.arguments["tokenizer-path"] == "{checkpoint.target}"
    assert "revision" not in got.manifest.launch.arguments
    assert set(got.open) & {"checkpoints.target", "checkpoints.draft"} == {"checkpoints.draft"}


def test_a_folder_is_unknown_until_somebody_says_what_it_holds() -> None:
    """A path becomes the placeholder; repository and revision are `unknown`, or what the person gives."""
    line = "sglang serve --model-path /models/Qwen3-8B --chat-template /models/Qwen3-8B/chat.jinja"
    got = launches.text(line)
    assert got.manifest.checkpoints[0].source == HubRequest(kind="hub", repository="unknown", revision="unknown")
    assert got.manifest.launch.arguments["chat-template"] == "{checkpoint.target}/chat.jinja"
    assert "--checkpoint target=" in got.open["checkpoints.target"]
    given = launches.text(line, Choices(checkpoints={"target": ("Qwen/Qwen3-8B", COMMIT)}))
    assert given.manifest.checkpoints[0].source == HubRequest(kind="hub", repository="Qwen/Qwen3-8B", revision=COMMIT)
    assert "checkpoints.target" not in given.open


def test_a_cached_snapshot_says_repository_and_commit() -> None:
    """The hub's cache names both in the path."""
    path = f"/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/{COMMIT}"
    got = launches.text(f"vllm serve {path} --tokenizer {path}")
    assert got.manifest.checkpoints[0].source == HubRequest(kind="hub", repository="Qwen/Qwen3-8B", revision=COMMIT)
    assert got.manifest.launch.arguments["tokenizer"] == "{checkpoint.target}"


def test_paths_of_one_host_have_no_place() -> None:
    """An absolute path that nothing stands for is left out and named; a folder of stored pages is the namespace."""
    got = launches.text(
        "HF_HOME=/data/hf LD_LIBRARY_PATH=/usr/local/cuda/lib64 SGLANG_TORCH_PROFILER_DIR=/tmp/prof "
        "SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR=/nvme/kv sglang serve --model-path org/m "
        "--crash-dump-folder /var/crash --lora-paths a=/loras/a b=/loras/b "
        """--hicache-storage-backend-extra-config '{"file_storage_path": "/nvme/kv", "x": 1}'"""
    )
    assert dict(got.manifest.launch.environment) == {"SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR": "{namespace}"}
    assert set(got.manifest.launch.arguments) == {
        "model-path", "served-model-name", "hicache-storage-backend-extra-config",
    }  # fmt: skip
    extra = got.manifest.launch.arguments["hicache-storage-backend-extra-config"]
    assert extra == '{"file_storage_path": "{namespace}", "x": 1}'
    assert "--crash-dump-folder /var/crash" in got.without_place
    assert "--lora-paths a=/loras/a b=/loras/b" in got.without_place


def test_unknown_names_are_kept_and_told_with_the_nearest() -> None:
    """An argument that no release has stays, and a variable with an engine's prefix; another variable does not."""
    got = launches.text("SGLANG_NO_SUCH=1 MY_OWN=2 sglang serve --model-path org/m --mem-fraction-statik 0.9")
    assert got.manifest.launch.arguments["mem-fraction-statik"] == 0.9
    assert "mem-fraction-static" in got.open["launch.arguments.mem-fraction-statik"]
    assert dict(got.manifest.launch.environment) == {"SGLANG_NO_SUCH": "1"}
    assert "launch.environment.SGLANG_NO_SUCH" in got.open
    assert "MY_OWN=2" in got.without_place


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("0.94", 0.94), ("0.90", "0.90"), ("1e-3", "1e-3"), ("007", "007"), ("-1", -1), ("-0.5", -0.5), ("0", 0),
        ("-0", "-0"),
        ("1_000", "1_000"), ("nan", "nan"), ("inf", "inf"), ("true", "true"), ("9" * 30, "9" * 30), ("", ""),
    ],
)  # fmt: skip
def test_a_value_is_a_number_only_where_its_text_is_exactly_that(given: str, value: object) -> None:
    """The server must be given the very same text again."""
    got = launches.words("sglang", "serve", "--model-path", "org/m", "--watchdog-timeout", given)
    found = got.manifest.launch.arguments["watchdog-timeout"]
    assert (found, type(found)) == (value, type(value))
    assert str(found) == given


def test_lists_and_repeated_arguments() -> None:
    """Several words are a list; of an argument that is given twice the last counts, and the other is named."""
    got = launches.text("sglang serve --model-path org/m --cuda-graph-bs 1 2 4 --tp 1 --tp 2")
    assert got.manifest.launch.arguments["cuda-graph-bs"] == ("1", "2", "4")
    assert got.manifest.launch.arguments["tp"] == 2
    assert "--tp 1" in got.without_place


def test_a_list_of_arguments_decides_where_one_is_known() -> None:
    """Aliases become names, values are checked, and a word behind a flag is the model."""
    schema = ArgumentSchema.from_json((SCHEMAS / "sglang-0.5.23.json").read_bytes(), where="list")
    got = launches.text(
        "sglang serve --model org/m --tensor-parallel-size 2 --sleep-on-idle --page-size many --nonsense 1",
        Choices(schema=schema),
    )
    assert got.manifest.launch.arguments == {
        "model-path": "{checkpoint.target}", "tp-size": 2, "sleep-on-idle": True, "page-size": "many",
        "nonsense": 1, "served-model-name": "org/m",
    }  # fmt: skip
    assert "integer" in got.open["launch.arguments.page-size"]
    assert "0.5.23 has no such argument" in got.open["launch.arguments.nonsense"]
    vllm = ArgumentSchema.from_json((SCHEMAS / "vllm-0.32.0.json").read_bytes(), where="list")
    other = launches.text("vllm serve --headless org/m --served-model-name a b", Choices(schema=vllm))
    assert other.manifest.launch.arguments == {"model": "{checkpoint.target}", "served-model-name": ("a", "b")}


@pytest.mark.parametrize(
    "name", ["sglang-0.5.10.post1", "sglang-0.5.17", "sglang-0.5.23", "vllm-0.20.2", "vllm-0.32.0"]
)
def test_what_is_taken_for_a_switch_is_one(name: str) -> None:
    """Without a list a word behind such a name is the model: of no release may the name take a value."""
    from reproducer.importing.arguments import Names

    schema = ArgumentSchema.from_json((SCHEMAS / f"{name}.json").read_bytes(), where="list")
    names = Names(schema.engine)
    wrong = [
        each.name
        for each in schema.arguments
        if names.is_switch(each.name) and each.kind not in ("flag", "toggle") and not each.ignored
    ]
    assert wrong == []


def test_a_file_with_an_at_sign_goes_beside_the_lock(tmp_path: Path) -> None:
    """`@file` keeps its sign; the bytes are copied as they are."""
    (tmp_path / "nixl.json").write_bytes(b'{"a":  1}\n')
    got = launches.text(
        "sglang serve --model-path org/m --hicache-storage-backend-extra-config @nixl.json", folder=tmp_path
    )
    name = "hicache-storage-backend-extra-config"
    assert got.manifest.launch.arguments[name] == f"@{{file.{name}}}"
    assert got.manifest.launch.files == {name: "runtime/m-sglang/nixl.json"}
    assert [(each.path, each.data) for each in got.placed.copies] == [("runtime/m-sglang/nixl.json", b'{"a":  1}\n')]


def test_a_chat_template_is_a_file_or_a_name(tmp_path: Path) -> None:
    """A template file goes beside the lock, one that is not here is asked for, and a built-in name stays."""
    (tmp_path / "t.jinja").write_text("{{ messages }}")
    there = launches.text("vllm serve org/m --chat-template ./t.jinja", folder=tmp_path)
    assert there.manifest.launch.files == {"chat-template": "runtime/m-vllm/t.jinja"}
    gone = launches.text("vllm serve org/m --chat-template /opt/t.jinja")
    assert "put the file at runtime/m-vllm/t.jinja" in gone.open["launch.files.chat-template"]
    assert gone.placed.copies == []
    named = launches.text("sglang serve --model-path org/m --chat-template chatml")
    assert named.manifest.launch.arguments["chat-template"] == "chatml"


def test_no_private_file_is_copied(tmp_path: Path) -> None:
    """Neither another kind of file, nor one behind a link, a pipe, a secret, or one that is too large."""
    import os

    (tmp_path / "id").write_text("key")
    (tmp_path / "link.json").symlink_to(tmp_path / "id")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "key.json").write_text("-----BEGIN RSA PRIVATE KEY-----")
    (tmp_path / "large.json").write_bytes(b" " * ((1 << 20) + 1))
    for name in ("id", "link.json", "pipe.json", "key.json", "large.json"):
        got = launches.text(
            f"sglang serve --model-path org/m --hicache-storage-backend-extra-config @{name}", folder=tmp_path
        )
        assert got.placed.copies == [], name
        assert "launch.files.hicache-storage-backend-extra-config" in got.open


def test_arguments_from_a_file(tmp_path: Path) -> None:
    """`--config` is read into the manifest; the command line counts before it, and what is off stays away."""
    (tmp_path / "c.yaml").write_text(
        "model-path: org/m\ntp-size: 2\nmem-fraction-static: 0.90\ntrust_remote_code: true\nenable-metrics: false\n"
        "cuda-graph-bs: [1, 2]\nport: 1\ntable: {a: 1}\n"
    )
    got = launches.text("sglang serve --config c.yaml --tp-size 4", folder=tmp_path)
    assert got.manifest.launch.arguments == {
        "model-path": "{checkpoint.target}", "tp-size": 4, "mem-fraction-static": "0.90", "trust-remote-code": True,
        "cuda-graph-bs": ("1", "2"), "served-model-name": "org/m",
    }  # fmt: skip
    assert {"--port 1", "table of --config c.yaml"} <= set(got.without_place)
    gone = launches.text("sglang serve --model-path org/m --config gone.yaml", folder=tmp_path)
    assert "its arguments are missing" in gone.without_place["--config gone.yaml"]


def test_dotted_arguments_are_named() -> None:
    """VLLM's `--table.key value` sets one key of a table, which a manifest spells whole."""
    got = launches.text("vllm serve org/m --hf-overrides.rope_scaling.type yarn")
    assert "write the whole table as JSON" in got.without_place["--hf-overrides.rope_scaling.type yarn"]


def test_docker_run() -> None:
    """Variables are the server's, the image's tag never gets in, everything else of the container is named."""
    got = launches.text(
        "docker run -d --rm -it --gpus all -e VLLM_USE_V1=1 -eOMP_NUM_THREADS=4 --env HF_TOKEN -e FORWARDED "
        "-v ~/.cache:/root/.cache -p 8000:8000 --shm-size=16g --ipc=host --name s vllm/vllm-openai:v0.10.0 "
        "--model org/m --max-model-len 4096"
    )
    assert got.manifest.engine.kind == "vllm"
    assert dict(got.manifest.launch.environment) == {"VLLM_USE_V1": "1", "OMP_NUM_THREADS": "4"}
    assert got.manifest.launch.arguments["max-model-len"] == 4096
    assert "RepoDigests" in got.without_place["image vllm/vllm-openai:v0.10.0"]
    assert "v0.10.0" not in got.text
    assert {"HF_TOKEN", "FORWARDED"} <= set(got.without_place)
    assert any("--gpus all" in each for each in got.without_place)
    other = launches.text(
        "podman run lmsysorg/sglang@sha256:" + "a" * 64 + " python3 -m sglang.launch_server --model-path org/m"
    )
    assert other.manifest.engine.kind == "sglang"
    entry = launches.text("docker run --entrypoint vllm img:1 serve org/m")
    assert entry.manifest.engine.kind == "vllm"


def test_python_and_versions() -> None:
    """What the launch does not say is `unknown` in the manifest; what it says, or the person, is not."""
    unsaid = launches.text("vllm serve org/m").manifest
    assert unsaid.python == "unknown"
    assert unsaid.components[0].source == WheelRequest(kind="wheel", project="vllm", version="unknown")
    assert unsaid.environments[0].requirements == ("unknown",)
    said = launches.text("/opt/bin/python3.11 -m sglang.launch_server --model-path org/m").manifest
    assert said.python == "3.11"
    given = launches.text("vllm serve org/m", Choices(python="3.12", engine_version="0.32.0")).manifest
    assert (given.python, given.components[0].source) == (
        "3.12", WheelRequest(kind="wheel", project="vllm", version="==0.32.0"),
    )  # fmt: skip


def test_what_was_installed() -> None:
    """Exact pins are requirements, the engine's own line is its source, anything else is named."""
    frozen = (
        f"# pip freeze\nsglang @ git+https://github.com/org/sglang@{COMMIT}#subdirectory=python\ntorch==2.13.0+cu130\n"
        "nixl @ file:///wheels/nixl.whl\n-e /home/me/thing\nnumpy>=2\n"
    )
    got = launches.text("sglang serve --model-path org/m", Choices(requirements=(frozen, "freeze.txt")))
    assert got.manifest.environments[0].requirements == ("torch==2.13.0+cu130",)
    assert got.manifest.components[0].source == GitRequest(
        kind="git", url="https://github.com/org/sglang", ref=COMMIT, subfolder="python"
    )
    assert len([each for each in got.placed.unmapped if each.where == "freeze.txt"]) == 3
    pinned = launches.text("vllm serve org/m", Choices(requirements=("vllm==0.32.0\ntorch==2.9.1\n", "f")))
    assert pinned.manifest.components[0].source == WheelRequest(kind="wheel", project="vllm", version="==0.32.0")


@pytest.mark.parametrize(
    "line",
    [
        "sglang serve --model-path $(touch {bait}) org/m",
        "sglang serve --model-path `touch {bait}`",
        'sglang serve --model-path "$(touch {bait})"',
        "sglang serve --model-path org/m ${X:-$(touch {bait})}",
        "sglang serve --model-path org/m > >(touch {bait})",
        "touch {bait}; sglang serve --model-path <(touch {bait})",
        "eval touch {bait}; sglang serve --model-path org/m",
        "f() { touch {bait}; }; f; sglang serve --model-path org/m",
    ],
)
def test_nothing_in_a_command_line_is_executed(tmp_path: Path, line: str) -> None:
    """A substitution, a redirection or a function is refused; a file that it would make is not made."""
    bait = tmp_path / "bait"
    with pytest.raises(PennyError) as caught:
        launches.text(line.replace("{bait}", str(bait)))
    assert caught.value.exit_code == 2
    assert not bait.exists()


def test_hostile_names_and_values_stay_one_line() -> None:
    """Control characters, placeholders and braces from a launch cannot steer a terminal or a manifest."""
    got = launches.words(
        "sglang", "serve", "--model-path", "org/m", "--served-model-name", "a\x1b]0;owned\x07\nb",
        "--log-level", "{checkpoint.draft}",
        "--tool-call-parser", "{nobody}", "--UPPER", "1", "--grammar-backend", "\udcff",
    )  # fmt: skip
    assert got.manifest.launch.arguments["served-model-name"] == "a\x1b]0;owned\x07\nb"
    assert "\x1b" not in got.text
    assert "--tool-call-parser {nobody}" in got.without_place
    assert "--UPPER 1" in got.without_place
    assert got.without_place["--grammar-backend"] == "its value is not UTF-8"
    assert re.fullmatch(r"[a-z0-9._-]+", got.manifest.name)


def test_a_placeholder_of_another_checkpoint_is_refused() -> None:
    """A launch that already holds a placeholder cannot name a checkpoint that is not there."""
    got = launches.words("sglang", "serve", "--model-path", "org/m", "--log-level", "{checkpoint.draft}")
    assert "log-level" not in got.manifest.launch.arguments


def test_the_unmapped_are_plain_data() -> None:
    """What is told can be written as JSON."""
    got = launches.text("numactl -C 0 sglang serve --model-path org/m --port 1")
    assert json.loads(json.dumps([vars(each) for each in got.placed.unmapped]))[0]["text"] == "numactl -C 0"


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "VLLM_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "hf_token", "S3_SECRET"]
)
def test_a_secret_is_known_by_its_name_alone(name: str) -> None:
    """Whatever its value looks like, it is named and left out."""
    got = launches.text(f"{name}=hunter2plain vllm serve org/m")
    assert got.without_place[name] == "a secret; left out"
    assert "hunter2" not in got.text + str([got.placed.unmapped, got.placed.data])
