"""What a launch names has its place in a lock: checkpoints in tables, stores in the namespace."""

import json
from pathlib import Path

import pytest

from reproducer.freeze.placing import Placing, Told
from reproducer.sanitize.text import Machine


def placing(kind: str, tmp_path: Path) -> Placing:
    """A launch from a folder with a target and a draft, the draft known by its repository."""
    told = {
        "target": Told(str(tmp_path / "target"), tmp_path / "target"),
        "draft": Told("org/draft", tmp_path / "hub" / "draft"),
    }
    return Placing(kind, tmp_path, told, "frozen/x")  # type: ignore[arg-type]


def test_a_draft_in_a_table(tmp_path: Path) -> None:
    """The speculative configuration of vLLM names the draft by repository or folder: both are its placeholder."""
    for word in ("org/draft", str(tmp_path / "hub" / "draft")):
        text = json.dumps({"model": word, "num_speculative_tokens": 3})
        launch = placing("vllm", tmp_path).launch(
            "vllm.entrypoints.openai.api_server", {"model": str(tmp_path / "target"), "speculative-config": text}, {}
        )
        assert launch.arguments["model"] == "{checkpoint.target}"
        table = json.loads(str(launch.arguments["speculative-config"]))
        assert table == {"model": "{checkpoint.draft}", "num_speculative_tokens": 3}


def test_stores_lie_in_the_namespace(tmp_path: Path) -> None:
    """The folder of pages that outlive the server is the namespace, in a variable and in JSON that a file holds."""
    pages = tmp_path / "pages"
    found = placing("sglang", tmp_path)
    launch = found.launch(
        "sglang.launch_server",
        {"hicache-storage-backend": "nixl"},
        {"SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR": str(pages), "SGLANG_HICACHE_NIXL_BACKEND_PLUGIN": "POSIX"},
    )
    assert launch.environment["SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR"] == "{namespace}"
    assert [each.key for each in found.left_out] == ["launch.environment.SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR"]
    (tmp_path / "extra.json").write_text(json.dumps({"file_storage_path": str(pages), "prefetch_threshold": 1}))
    launch = placing("sglang", tmp_path).launch(
        "sglang.launch_server",
        {"hicache-storage-backend": "file", "hicache-storage-backend-extra-config": "@extra.json"},
        {"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR": str(pages)},
    )
    extra = json.loads(str(launch.arguments["hicache-storage-backend-extra-config"]))
    assert extra == {"file_storage_path": "{namespace}", "prefetch_threshold": 1}
    assert launch.environment == {"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR": "{namespace}"}


def test_a_file_that_is_gone_is_unknown(tmp_path: Path) -> None:
    """`@FILE` that is not there any more, or is no JSON: the argument is left out and said."""
    found = placing("sglang", tmp_path)
    launch = found.launch("sglang.launch_server", {"hicache-storage-backend-extra-config": "@gone.json"}, {})
    assert launch.arguments == {}
    assert [each.key for each in found.unknown] == ["launch.arguments.hicache-storage-backend-extra-config"]


def test_bytes_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    """A word of bytes that are no UTF-8 stands in no lock."""
    found = placing("sglang", tmp_path)
    launch = found.launch(
        "sglang.launch_server", {"served-model-name": b"a\xff".decode("utf-8", "surrogateescape")}, {}
    )
    assert launch.arguments == {}
    assert [each.key for each in found.unknown] == ["launch.arguments.served-model-name"]


def test_addresses_are_left_out(tmp_path: Path) -> None:
    """An address of a machine stands in no lock, and the argument is said to be missing."""
    found = placing("sglang", tmp_path)
    launch = found.launch("sglang.launch_server", {"dist-init-addr": "10.1.2.3:5000", "page-size": 16}, {})
    assert launch.arguments == {"page-size": 16}
    assert [each.key for each in found.unknown] == ["launch.arguments.dist-init-addr"]


def test_a_persons_name_in_a_path_that_is_replaced_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint and pages below somebody's folder become placeholders; the name elsewhere is left out and said."""
    monkeypatch.setattr("reproducer.freeze.naming._here", lambda: Machine("/home/bobby", frozenset({"bobby"})))
    home = tmp_path / "bobby"
    found = Placing("sglang", tmp_path, {"target": Told(str(home / "m"), home / "m")}, "frozen/x")
    launch = found.launch(
        "sglang.launch_server",
        {"model-path": str(home / "m"), "served-model-name": "model-of-bobby", "hicache-storage-backend": "file"},
        {"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR": str(home / "pages"), "SGLANG_OWNER": "bobby"},
    )
    assert launch.arguments == {
        "hicache-storage-backend": "file",
        "model-path": "{checkpoint.target}",
        "served-model-name": "model-of-bobby",
    }
    assert launch.environment == {"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR": "{namespace}"}
    assert "launch.environment.SGLANG_OWNER" in [each.key for each in found.unknown]
