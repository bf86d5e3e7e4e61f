"""The manifests of published runtimes hold every fact that was published, and lack nothing without saying so."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.lock import Lock
from reproducer.documents.manifest import GitRequest, HubRequest, Manifest
from reproducer.documents.toml import parse_toml, read_document, read_text
from reproducer.errors import InvalidDocumentError
from tests.end_to_end.newcomer import ROOT

FACTS: dict[str, Any] = json.loads((ROOT / "tests/data/published/qwen38-27b-dflash2.json").read_text("utf-8"))
ORIGINAL = ROOT.parent / "shared" / "data" / "published-qwen38-dflash2.toml"
FLAGSHIP = ROOT / "manifests" / "qwen38-27b-dflash2-rtxpro6000.toml"
PUBLISHED = sorted(path for path in (ROOT / "manifests").glob("*.toml") if not path.name.startswith("smollm2-"))


def flagship() -> Manifest:
    """The manifest of the runtime that was published."""
    return read_document(Manifest, FLAGSHIP, what="manifest")


def test_restated_facts_are_the_original_ones() -> None:
    """The facts that the tests compare with are those of the published file, where that lies beside the project."""
    if not ORIGINAL.is_file():
        pytest.skip("the original facts do not lie beside the project")
    assert parse_toml(ORIGINAL.read_text("utf-8"), where="facts") == FACTS


def _covered(manifest: Manifest) -> Iterator[tuple[str, Any, Any]]:
    """Every fact: its place in the facts, what it is, and what the manifest says."""
    sglang, nixl = manifest.components
    assert isinstance(sglang.source, GitRequest)
    assert isinstance(nixl.source, GitRequest)
    assert nixl.published is not None
    published, launch, tools = manifest.published or {}, manifest.launch, manifest.tools or {}
    yield "source.upstream", FACTS["source"]["upstream"], published["upstream"]
    yield "source.distribution", FACTS["source"]["distribution"], sglang.source.url
    yield "source.distribution", FACTS["source"]["distribution"], published["distribution"]
    yield "source.measured_commit", FACTS["source"]["measured_commit"], sglang.source.ref
    yield "source.publication_commit", FACTS["source"]["publication_commit"], published["publication_commit"]
    for index, (fact, asked) in enumerate(zip(FACTS["checkpoint"], manifest.checkpoints, strict=True)):
        assert isinstance(asked.source, HubRequest)
        assert asked.source.digests == "unknown"
        yield f"checkpoint[{index}].role", fact["role"], asked.role
        yield f"checkpoint[{index}].repo", fact["repo"], asked.source.repository
        yield f"checkpoint[{index}].revision", fact["revision"], asked.source.revision
    assert manifest.hardware is not None
    for name, key in (("gpu", "gpu"), ("gpu_count", "count")):
        yield f"hardware.{name}", FACTS["hardware"][name], getattr(manifest.hardware, key)
    for name in ("compute_capability", "memory_gb", "power_limit_w"):
        yield f"hardware.{name}", FACTS["hardware"][name], getattr(manifest.hardware, name)
    toolchain = FACTS["toolchain"]
    yield "toolchain.os", toolchain["os"], published["os"]
    yield "toolchain.driver", toolchain["driver"], manifest.driver
    yield "toolchain.python", toolchain["python"], tools["python3.12"]
    yield "toolchain.python", toolchain["python"].rpartition(".")[0], manifest.python
    yield "toolchain.cuda", toolchain["cuda"], manifest.cuda
    yield "toolchain.nvcc", toolchain["nvcc"], tools["nvcc"]
    yield "toolchain.gcc", f"gcc-15 {toolchain['gcc']}", manifest.compiler
    yield "toolchain.gcc", toolchain["gcc"], tools["g++-15"]
    yield "toolchain.rust", toolchain["rust"], tools["rustc"]
    yield "toolchain.nixl", toolchain["nixl"], nixl.published.version
    yield "toolchain.nixl_wheel_sha256", toolchain["nixl_wheel_sha256"], nixl.published.sha256
    yield "toolchain.nixl_commit", toolchain["nixl_commit"], nixl.source.ref
    yield "toolchain.nixl_meson", toolchain["nixl_meson"], list(nixl.arguments or ())
    packages = dict(text.split("==") for text in manifest.environments[0].requirements)
    for fact, package in {
        "torch": "torch",
        "flashinfer": "flashinfer-python",
        "sglang_kernel": "sglang-kernel",
        "triton": "triton",
        "xgrammar": "xgrammar",
    }.items():
        yield f"toolchain.{fact}", toolchain[fact], packages[package]
    for name, value in FACTS["build_env"].items():
        yield f"build_env.{name}", value, sglang.variables.get(name)
    yield "launch.engine", FACTS["launch"]["engine"], manifest.engine.kind
    yield from _launched(launch)
    yield "launch.chat_template", FACTS["launch"]["chat_template"], published["chat_template"]
    kwargs = json.loads(str(published["default_chat_template_kwargs"]))
    for name, value in FACTS["launch"]["default_chat_template_kwargs"].items():
        yield f"launch.default_chat_template_kwargs.{name}", value, kwargs.get(name)
    names = FACTS["launch"]["namespace_factors"]["names"]
    yield "launch.namespace_factors.names", names, list(published["namespace_factors"])


def _launched(launch: Any) -> Iterator[tuple[str, Any, Any]]:
    """Arguments, overrides, environment and the configuration of the storage."""
    words = FACTS["launch"]["args"]
    asked: dict[str, Any] = {}
    for index, word in enumerate(words):
        if word.startswith("--"):
            following = words[index + 1] if index + 1 < len(words) else "--"
            asked[word[2:]] = True if following.startswith("--") else following
    for name, value in asked.items():
        given = launch.arguments.get(name)
        yield "launch.args", value, given if isinstance(given, bool) else str(given)
    given = {
        "target_overrides": json.loads(launch.arguments["json-model-override-args"]),
        "draft_overrides": json.loads(launch.arguments["speculative-draft-model-override-args"]),
        "env": launch.environment,
        "nixl": json.loads((ROOT / launch.files["nixl"]).read_bytes()),
    }
    for name, got in given.items():
        facts, there = dict(_values(FACTS["launch"][name], "")), dict(_values(got, ""))
        yield from ((f"launch.{name}{place}", fact, there.get(place)) for place, fact in facts.items())


def _values(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every value of nested tables by its place."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        yield from _values(inner, f"{place}.{name}")
    if not isinstance(value, dict):
        yield place, value


def _leaves(value: Any, key: str) -> Iterator[str]:
    """Every fact by its place; a list of plain values is one fact."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{key}[{index}]")
    else:
        yield key


def test_every_published_fact_stands_in_the_manifest() -> None:
    """What was published of source, toolchain, build and launch is in the manifest, value by value, none skipped."""
    covered = list(_covered(flagship()))
    assert [(place, fact, got) for place, fact, got in covered if fact != got or type(fact) is not type(got)] == []
    wanted = ("source", "checkpoint", "hardware", "toolchain", "build_env", "launch")
    facts = {leaf for key in wanted for leaf in _leaves(FACTS[key], key)}
    assert facts - {place for place, _, _ in covered} == set()


def test_the_launch_adds_only_what_leads_to_files() -> None:
    """The manifest has no argument and no variable beyond the published ones but those that name files."""
    launch = flagship().launch
    words = {word[2:] for word in FACTS["launch"]["args"] if word.startswith("--")}
    assert set(launch.arguments) - words == {
        "model-path",
        "speculative-draft-model-path",
        "json-model-override-args",
        "speculative-draft-model-override-args",
        "hicache-storage-backend-extra-config",
    }
    assert set(launch.environment) == set(FACTS["launch"]["env"])


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_every_manifest_is_one_and_says_what_it_lacks(path: Path) -> None:
    """Each is a valid manifest of its own name that marks something as unknown."""
    manifest = read_document(Manifest, path, what="manifest")
    assert manifest.name == path.stem
    assert manifest.unknown
    for file in manifest.launch.files.values():
        assert (ROOT / file).is_file()


def test_published_runtimes_are_all_there() -> None:
    """The runtime itself, the engine it started from, and every other one that is spoken of."""
    assert [path.stem for path in PUBLISHED] == [
        "dspark",
        "flash-next-frspec",
        "qwen38-27b-dflash2-hicache-file",
        "qwen38-27b-dflash2-hicache-mooncake",
        "qwen38-27b-dflash2-lmcache",
        "qwen38-27b-dflash2-rtxpro6000",
        "qwen38-27b-vllm-baseline",
        "vllm-ferrari",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('version = "0.5.10.post1"', 'version = "unknown"'),
        ('version = "0.5.10.post1"', 'version = "latest"'),
        ('version = "0.5.10.post1"', 'version = "nightly"'),
        ("sha256 = ", "digest = "),
        ('python = "3.11"', 'python = "unknown"'),
        ('format = "penny-lock/1"', 'format = "penny-lock/1"\nimage = "lmsysorg/sglang:latest"'),
    ],
)
def test_nothing_loose_gets_into_a_lock(old: str, new: str) -> None:
    """A lock takes no tag, no nightly, no `unknown` for a value, and nothing without its digest (R1, R2)."""
    path = ROOT / "penny.lock.toml"
    text = read_text(path, what="lock")
    assert old in text
    text = text.replace(old, new, 1)
    with pytest.raises(InvalidDocumentError):
        Lock.from_data(parse_toml(text, where="x.toml"), where="x.toml", source=text)
