"""Cache identity gone wrong, as reported in public for several engines: two locks that differ in just that.

K: a factor was missing, so different bytes had one key; the namespaces must differ. O: a factor too many, so the same
bytes had two keys; the namespaces must be equal. More of each kind stand beside the reported one.
"""

from collections.abc import Callable
from typing import Any

import pytest

from reproducer.difference.diff import diff
from reproducer.errors import InvalidDocumentError
from reproducer.identity.namespace import derive
from tests.identity.factory import Edit, make_lock, sha256


def argument(name: str, value: Any) -> Edit:
    """The launch with an argument; None takes it out."""

    def edit(data: dict[str, Any]) -> None:
        _put(data["launch"]["arguments"], name, value)

    return edit


def effective(name: str, value: Any) -> Edit:
    """The launch with an effective value; None takes it out."""

    def edit(data: dict[str, Any]) -> None:
        _put(data["launch"]["effective"], name, value)

    return edit


def variable(name: str, value: Any) -> Edit:
    """The launch with an environment variable; None takes it out."""

    def edit(data: dict[str, Any]) -> None:
        _put(data["launch"]["environment"], name, value)

    return edit


def file_of(role: str, path: str, content: str) -> Edit:
    """A checkpoint with other bytes in a file."""

    def edit(data: dict[str, Any]) -> None:
        checkpoint = next(each for each in data["checkpoints"] if each["role"] == role)
        found = next((each for each in checkpoint["files"] if each["path"] == path), None)
        if found is None:
            checkpoint["files"].append({"path": path, "sha256": sha256(content), "size": len(content)})
        else:
            found.update(sha256=sha256(content), size=len(content))

    return edit


def component(index: int, change: Callable[[dict[str, Any]], object]) -> Edit:
    """A component changed in place."""
    return lambda data: change(data["components"][index])


def pylock(index: int, content: str) -> Edit:
    """Another set of packages in an environment."""
    return lambda data: data["environments"][index]["pylock"].update(sha256=sha256(content), size=len(content))


def both(*edits: Edit) -> Edit:
    """Several edits as one."""

    def edit(data: dict[str, Any]) -> None:
        for each in edits:
            each(data)

    return edit


def nothing(_: dict[str, Any]) -> None:
    """The lock as it is."""


def _put(table: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value


YES = True
SPARSE = "hierarchical-sparse-attention-extra-config"
OVERRIDE = '{{"rope_scaling": {{"rope_type": "yarn", "factor": {0}, "original_max_position_embeddings": {1}}}}}'

MUST_DIFFER: dict[str, tuple[Edit, Edit]] = {
    "K1 KV dtype, resolved from auto": (nothing, effective("kv_cache_dtype", "float8_e4m3fn")),
    "K1 KV dtype, requested without an effective value": (
        both(effective("kv_cache_dtype", None), argument("kv-cache-dtype", "bf16")),
        both(effective("kv_cache_dtype", None), argument("kv-cache-dtype", "fp8_e4m3")),
    ),
    "K1 KV dtype, only the request was edited": (nothing, argument("kv-cache-dtype", "fp8_e5m2")),
    "K1 page size": (nothing, both(argument("page-size", 32), effective("page_size", 32))),
    "K1 memory layout": (argument("hicache-mem-layout", "page_first"), argument("hicache-mem-layout", "layer_first")),
    "K2 other weights under one served name": (nothing, file_of("target", "model.safetensors", "other weights")),
    "K2 one shard more": (nothing, file_of("target", "model-00002.safetensors", "more")),
    "K2 another revision of the config": (nothing, file_of("target", "config.json", "other config")),
    "K3 weights updated in place": (nothing, file_of("target", "model.safetensors", "target weights, updated")),
    "K3 quantisation scales beside the weights": (nothing, file_of("target", "kv_scales.json", "1.0")),
    "K3 other scales": (file_of("target", "kv_scales.json", "1.0"), file_of("target", "kv_scales.json", "0.5")),
    "K3 weights of the draft updated in place": (nothing, file_of("draft", "model.safetensors", "draft, updated")),
    "K4 pipeline ranks": (nothing, effective("pp_size", 2)),
    "K4 pipeline ranks, requested": (argument("pp-size", 2), argument("pp-size", 4)),
    "K4 node rank": (argument("node-rank", 0), argument("node-rank", 1)),
    "K5 tensor parallel size": (nothing, effective("tp_size", 2)),
    "K5 expert parallel size": (argument("ep-size", 1), argument("ep-size", 2)),
    "K5 data parallel attention": (nothing, argument("enable-dp-attention", YES)),
    "K7 adapter and salt run together": (
        both(argument("adapter", "ab"), argument("salt", "c")),
        both(argument("adapter", "a"), argument("salt", "bc")),
    ),
    "K7 a list cut elsewhere": (argument("lora-paths", ["ab", "c"]), argument("lora-paths", ["a", "bc"])),
    "K7 a list of one, and its text": (argument("lora-paths", ["a"]), argument("lora-paths", "a")),
    "K7 a separator inside a value": (argument("lora-paths", ["a,b"]), argument("lora-paths", ["a", "b"])),
    "K7 variable's end and next one's beginning": (
        both(variable("A", "x"), variable("B", "yz")),
        both(variable("A", "xy"), variable("B", "z")),
    ),
    "K10 engine source": (nothing, component(0, lambda each: each["source"].update(sha256=sha256("other sdist")))),
    "K10 patch content": (nothing, component(0, lambda each: each["patches"][1].update(sha256=sha256("other patch")))),
    "K10 patch taken out": (nothing, component(0, lambda each: each["patches"].pop())),
    "K10 order of patches": (nothing, component(0, lambda each: each["patches"].reverse())),
    "K10 another build of one source": (
        nothing,
        component(0, lambda each: each["outputs"][0].update(content_sha256=sha256("other build"))),
    ),
    "K10 a local component's file": (
        nothing,
        component(1, lambda each: each["source"]["files"][1].update(sha256=sha256("other kernel"))),
    ),
    "K10 a variable of the build": (nothing, component(0, lambda each: each["variables"].update(FLAG="1"))),
    "K10 packages that build it": (nothing, pylock(1, "other build packages")),
    "K13 dtype": (nothing, both(argument("dtype", "float16"), effective("dtype", "float16"))),
    "K13 dtype of the model that is not requested": (nothing, effective("dtype", "float16")),
    "K13 quantisation": (nothing, argument("quantization", "fp8")),
    "K15 one value under two names": (argument("adapter", "x"), argument("salt", "x")),
    "K15 argument and variable of one name": (argument("adapter", "x"), variable("adapter", "x")),
    "K15 argument and effective value of one name": (argument("adapter", "x"), effective("adapter", "x")),
    "K17 number of speculative tokens": (
        argument("speculative-num-draft-tokens", 4),
        argument("speculative-num-draft-tokens", 5),
    ),
    "K17 speculative steps": (argument("speculative-num-steps", 1), argument("speculative-num-steps", 3)),
    "K17 speculation at all": (nothing, argument("speculative-algorithm", "EAGLE")),
    "K18 a variable that places layers": (nothing, variable("VLLM_PP_LAYER_PARTITION", "14,16")),
    "K18 its value": (variable("VLLM_PP_LAYER_PARTITION", "14,16"), variable("VLLM_PP_LAYER_PARTITION", "15,15")),
    "K18 set to nothing": (nothing, variable("VLLM_PP_LAYER_PARTITION", "")),
    "K18 a variable nobody knows": (nothing, variable("SGLANG_NEW_IN_NEXT_RELEASE", "1")),
    "K18 threads that share a sum": (nothing, variable("OMP_NUM_THREADS", "4")),
    "K20 a component more": (
        nothing,
        lambda data: data["components"].append({**data["components"][1], "name": "second-kernel"}),
    ),
    "K20 a component less": (nothing, lambda data: data["components"].pop()),
    "K20 a local source with one file more": (
        nothing,
        component(
            1, lambda each: each["source"]["files"].append({"path": "new.py", "sha256": sha256("new"), "size": 1})
        ),
    ),
    "K20 a component under another name": (
        nothing,
        lambda data: data["components"][1].update(name="kernel-2"),
    ),
    "K22 sm_120 against sm_121": (argument("arch", "sm_120"), argument("arch", "sm_121")),
    "K22 12.0 against 12.1": (argument("arch", 12.0), argument("arch", 12.1)),
    "K22 a list of architectures": (variable("TORCH_CUDA_ARCH_LIST", "12.0"), variable("TORCH_CUDA_ARCH_LIST", "12.1")),
    "K22 platform": (nothing, lambda data: data.update(platform="linux-aarch64")),
    "K24 a rebuilt library": (
        nothing,
        component(1, lambda each: each["outputs"][0].update(content_sha256=sha256("rebuilt"), size=1000)),
    ),
    "K24 both outputs rebuilt": (
        nothing,
        both(
            *(
                component(index, lambda each: each["outputs"][0].update(content_sha256=sha256(f"re{each['name']}")))
                for index in (0, 1)
            )
        ),
    ),
    "K24 the library under another file name": (
        nothing,
        component(1, lambda each: each["outputs"][0].update(filename="kernel-1.1-py3-none-any.whl")),
    ),
    "K24 a package of one version with other bytes": (nothing, pylock(0, "the same versions, another hash")),
    "K28 one version, another digest": (
        nothing,
        component(0, lambda each: each["source"].update(sha256=sha256("the tag was moved"))),
    ),
    "K28 toolchain": (nothing, lambda data: data["toolchain"].update(compiler="gcc 13.2.0")),
    "K28 Python of the runtime": (nothing, lambda data: data["toolchain"].update(python="3.12")),
    "K29 YaRN factor": (
        argument("json-model-override-args", OVERRIDE.format(2.0, 32768)),
        argument("json-model-override-args", OVERRIDE.format(4.0, 32768)),
    ),
    "K29 YaRN original length": (
        argument("json-model-override-args", OVERRIDE.format(2.0, 32768)),
        argument("json-model-override-args", OVERRIDE.format(2.0, 65536)),
    ),
    "K29 YaRN of the draft": (
        argument("speculative-draft-override", OVERRIDE.format(2.0, 32768)),
        argument("speculative-draft-override", OVERRIDE.format(4.0, 32768)),
    ),
    "K29 draft weights": (nothing, file_of("draft", "model.safetensors", "another revision")),
    "K29 draft config": (nothing, file_of("draft", "config.json", "another revision")),
    "K29 no draft": (nothing, lambda data: data["checkpoints"].pop()),
    "K29 code that comes with the checkpoint": (
        nothing,
        lambda data: data["checkpoints"][0].update(trust_remote_code=True),
    ),
    "types: text and number": (argument("x", "0"), argument("x", 0)),
    "types: number and float": (argument("x", 0), argument("x", 0.0)),
    "types: number and boolean": (argument("x", 1), argument("x", YES)),
    "types: None as text, and not at all": (argument("x", "None"), nothing),
    "types: empty, and not at all": (argument("x", ""), nothing),
    "types: empty list and empty text": (argument("x", []), argument("x", "")),
    "a served name, which the engine writes into the names of its pages": (nothing, argument("served-model-name", "b")),
    "where files are kept, among them pages": (argument("file-storage-path", "a"), argument("file-storage-path", "b")),
    "events, for which pages are hashed at another moment": (nothing, argument("kv-events-config", '{"topic": "kv"}')),
    "kernels and tuning results of another run": (variable("TRITON_CACHE_DIR", "a"), variable("TRITON_CACHE_DIR", "b")),
    "one argument under its short and its long name, with two values": (argument("tp", 2), argument("tp-size", 4)),
}

MUST_BE_EQUAL: dict[str, tuple[Edit, Edit]] = {
    "O1 HOME": (variable("HOME", "{namespace}"), nothing),
    "O1 XDG": (variable("XDG_CACHE_HOME", "a"), variable("XDG_CACHE_HOME", "b")),
    "O1 temporary folder and user": (both(variable("TMPDIR", "a"), variable("USER", "b")), nothing),
    "O6 file times in the archives": (
        nothing,
        both(
            lambda data: data["build"].update(source_date_epoch=1),
            component(0, lambda each: each["outputs"][0].update(sha256=sha256("packed at another time"), size=999)),
        ),
    ),
    "O6 only the packing": (
        nothing,
        component(1, lambda each: each["outputs"][0].update(sha256=sha256("zipped by another zlib"))),
    ),
    "O6 only the epoch": (nothing, lambda data: data["build"].update(source_date_epoch=0)),
    "O7 a layout, unset and set to what it is": (
        effective("hicache_mem_layout", "layer_first"),
        both(effective("hicache_mem_layout", "layer_first"), argument("hicache-mem-layout", "layer_first")),
    ),
    "O7 unset, and set to what it is anyway": (
        both(argument("page-size", None), effective("page_size", 16)),
        both(argument("page-size", 16), effective("page_size", 16)),
    ),
    "O7 auto, and set to what auto becomes": (nothing, argument("kv-cache-dtype", "bfloat16")),
    "O8 an unchanged lock": (nothing, nothing),
    "O8 a lock that changed and changed back": (
        both(
            argument("page-size", 32), effective("page_size", 32), argument("page-size", 16), effective("page_size", 16)
        ),
        nothing,
    ),
    "O8 a lock written by another version of its manifest": (
        both(lambda data: data.update(manifest="manifests/next.toml"), lambda data: data.update(name="next")),
        nothing,
    ),
    "O9 folders of patches, locks and local sources": (
        nothing,
        both(
            component(0, lambda each: each["patches"][0].update(path="elsewhere/0001-a.patch")),
            component(1, lambda each: each["source"].update(path="elsewhere/kernel")),
            lambda data: data["environments"][0]["pylock"].update(path="elsewhere/pylock.toml"),
            lambda data: data.update(manifest="elsewhere/m.toml"),
        ),
    ),
    "O9 where the checkpoint came from": (
        nothing,
        lambda data: data["checkpoints"][0]["source"].update(
            project="mirror", sha256=sha256("repacked"), filename="mirror-1-py3-none-any.whl"
        ),
    ),
    "O9 how it was converted into the same files": (
        nothing,
        both(
            lambda data: data["checkpoints"][0]["conversion"]["script"].update(sha256=sha256("other script")),
            pylock(2, "other packages"),
        ),
    ),
    "O9 indexes": (nothing, lambda data: data["environments"][0].update(indexes=["https://mirror.example/simple"])),
    "O10 order of flags": (
        nothing,
        lambda data: data["launch"].update(arguments=dict(reversed(data["launch"]["arguments"].items()))),
    ),
    "O10 order of variables": (
        nothing,
        lambda data: data["launch"].update(environment=dict(reversed(data["launch"]["environment"].items()))),
    ),
    "O10 order of everything with a name": (
        nothing,
        lambda data: [data[key].reverse() for key in ("components", "environments", "checkpoints")],
    ),
    "O10 log level": (nothing, argument("log-level", "debug")),
    "O10 metrics": (nothing, argument("enable-metrics", None)),
    "O10 watchdog": (nothing, argument("watchdog-timeout", 600)),
    "O10 threads that wait": (nothing, variable("OMP_WAIT_POLICY", "ACTIVE")),
    "K29 chat template": (nothing, argument("chat-template", "chatml")),
    "K29 chat template in the tokenizer's config": (nothing, file_of("target", "tokenizer_config.json", "other")),
    "K29 chat template in a file": (nothing, file_of("target", "chat_template.jinja", "other")),
    "defaults for sampling": (nothing, file_of("target", "generation_config.json", "other")),
    "what people call the lock": (nothing, lambda data: data.update(name="renamed")),
    "the suite": (nothing, lambda data: data["qualification"]["measures"].pop()),
    "the reference": (nothing, lambda data: data["qualification"].pop("reference")),
    "patience": (nothing, lambda data: data["launch"]["readiness"].update(deadline_s=600)),
    "capacity of the host tier": (nothing, both(argument("hicache-ratio", 4), effective("hicache_ratio", 4))),
    "which pages leave memory first": (nothing, argument("radix-eviction-policy", "lfu")),
    "what NCCL prints": (nothing, variable("NCCL_DEBUG", "INFO")),
    "a short name and a long one": (argument("tp-size", 2), argument("tensor-parallel-size", 2)),
    "an abbreviation and a long name": (argument("tp", 2), argument("tensor-parallel-size", 2)),
    "an alias without an effective value": (
        both(effective("pp_size", None), argument("pp-size", 2)),
        both(effective("pp_size", None), argument("pipeline-parallel-size", 2)),
    ),
    "an alias that says what the effective value says, and nothing": (argument("tp", 1), nothing),
    "an alias of a flag": (argument("enable-hicache", YES), argument("enable-hierarchical-cache", YES)),
    "an alias of another word": (argument("hisparse-config", "{}"), argument(SPARSE, "{}")),
}


@pytest.mark.parametrize("name", MUST_DIFFER)
def test_different_bytes_never_share_a_namespace(name: str) -> None:
    """The folder differs, `diff` says so and names a change of cache identity, in both directions."""
    one, two = (make_lock(edit) for edit in MUST_DIFFER[name])

    assert derive(one).digest != derive(two).digest
    assert derive(one).name != derive(two).name
    for found in (diff(one, two), diff(two, one)):
        assert not found.same_namespace
        assert found.changes[0].consequence == "cache-identity"
        assert found.invalidates[-2:] == ("decode.single/1", "fidelity/1")


@pytest.mark.parametrize("name", MUST_BE_EQUAL)
def test_the_same_bytes_always_share_a_namespace(name: str) -> None:
    """The folder is the same, and `diff` shows no change of cache identity, in both directions."""
    one, two = (make_lock(edit) for edit in MUST_BE_EQUAL[name])

    assert derive(one).document() == derive(two).document()
    for found in (diff(one, two), diff(two, one)):
        assert found.same_namespace
        assert all(change.consequence != "cache-identity" for change in found.changes)


def test_a_chat_template_changes_behaviour() -> None:
    """K29: not the pages, but what is said."""
    for edit in (argument("chat-template", "chatml"), file_of("target", "chat_template.jinja", "other")):
        found = diff(make_lock(), make_lock(edit))

        assert [change.consequence for change in found.changes] == ["behaviour"]
        assert "decode.single/1" in found.invalidates


@pytest.mark.parametrize(
    "unknown",
    [
        argument("load-format", "auto"),
        argument("load-format", " AUTO "),
        argument("formats", ["safetensors", "auto"]),
        variable("SGLANG_HICACHE_NIXL_BACKEND_PLUGIN", "auto"),
        effective("kv_cache_dtype", "auto"),
        effective("kv_cache_dtype", "unknown"),
        lambda data: data["toolchain"].update(compiler="unknown"),
    ],
)
def test_what_nobody_knows_is_never_taken_for_the_same(unknown: Edit) -> None:
    """A lock that says auto or unknown finds its own pages; any other lock, however like it, does not."""
    one, again, two = make_lock(unknown), make_lock(unknown), make_lock(unknown, argument("log-level", "debug"))

    assert derive(one).document() == derive(again).document()
    assert b'"auto"' not in derive(one).document().lower()
    assert diff(one, again).changes == ()
    assert derive(one).digest != derive(two).digest
    assert not diff(one, two).same_namespace
    assert diff(one, two).changes[0].consequence == "cache-identity"
    assert "nobody knows" in diff(one, two).changes[0].reason


def test_an_unknown_that_does_not_count_changes_nothing() -> None:
    """Auto in a neutral argument, or one whose effective value is known, binds nothing."""
    for edit in (argument("tool-call-parser", "auto"), nothing):
        one, two = make_lock(edit), make_lock(edit, argument("log-level", "debug"))
        assert derive(one).digest == derive(two).digest


def test_a_component_or_checkpoint_without_identity_is_refused() -> None:
    """K20: what names no file could be anything, so it has no namespace."""
    lock = make_lock()
    kernel = lock.components[1]
    empty = kernel.model_copy(update={"source": kernel.source.model_copy(update={"files": ()})})
    with pytest.raises(InvalidDocumentError, match="the source names no file"):
        derive(lock.model_copy(update={"components": (lock.components[0], empty)}))
    target = lock.checkpoints[0].model_copy(update={"files": ()})
    with pytest.raises(InvalidDocumentError, match="the checkpoint names no file"):
        derive(lock.model_copy(update={"checkpoints": (target,)}))
