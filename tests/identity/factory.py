"""A lock of the shape that the embedded default has, with a draft checkpoint and everything else a lock may carry."""

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias

from reproducer.documents.lock import Lock

Edit: TypeAlias = Callable[[dict[str, Any]], object]


def sha256(text: str) -> str:
    """A digest that stands for something."""
    return hashlib.sha256(text.encode()).hexdigest()


def _file(path: str, content: str = "") -> dict[str, Any]:
    return {"path": path, "sha256": sha256(content or path), "size": len(path)}


def _output(name: str) -> dict[str, Any]:
    return {
        "filename": f"{name}-1.0-py3-none-any.whl",
        "sha256": sha256(f"{name} wheel"),
        "size": 1000,
        "content_sha256": sha256(f"{name} content"),
        "members": _file(f"runtime/{name}.members"),
    }


def _checkpoint(role: str) -> dict[str, Any]:
    return {
        "name": f"small-{role}",
        "role": role,
        "trust_remote_code": False,
        "source": {
            "kind": "wheel-member",
            "project": f"models-{role}",
            "version": "0.1.2",
            "filename": f"models_{role}-0.1.2-py3-none-any.whl",
            "sha256": sha256(f"{role} wheel"),
            "size": 92_900_000,
            "member": f"models_{role}/model.gguf",
            "member_sha256": sha256(f"{role} gguf"),
            "member_size": 98_362_432,
        },
        "conversion": {
            "script": _file("runtime/convert.py"),
            "arguments": ["{source}", "{output}", "--dtype", "bfloat16"],
            "environment": "conversion",
        },
        "files": [
            _file("config.json", f"{role} config"),
            _file("generation_config.json"),
            _file("model.safetensors", f"{role} weights"),
            _file("tokenizer.json"),
            _file("tokenizer_config.json"),
        ],
    }


def lock_data() -> dict[str, Any]:
    """The lock as plain data, fresh for every caller."""
    return {
        "format": "penny-lock/1",
        "name": "small-sglang-cpu",
        "manifest": "manifests/small.toml",
        "platform": "linux-x86_64",
        "toolchain": {"python": "3.11", "compiler": "none"},
        "engine": {
            "kind": "sglang",
            "component": "sglang",
            "arguments": _file("runtime/sglang.arguments.json"),
        },
        "build": {"source_date_epoch": 1704067200, "umask": "022", "locale": "C.UTF-8", "network": "none"},
        "components": [
            {
                "name": "sglang",
                "kind": "wheel",
                "source": {
                    "kind": "sdist",
                    "project": "sglang",
                    "version": "0.5.10.post1",
                    "filename": "sglang-0.5.10.post1.tar.gz",
                    "sha256": sha256("sglang sdist"),
                    "size": 4_700_000,
                },
                "patches": [_file("runtime/patches/0001-a.patch"), _file("runtime/patches/0002-b.patch")],
                "build_environment": "build",
                "variables": {"SETUPTOOLS_SCM_PRETEND_VERSION": "0.5.10"},
                "outputs": [_output("sglang")],
            },
            {
                "name": "kernel",
                "kind": "wheel",
                "source": {
                    "kind": "local",
                    "path": "runtime/kernel",
                    "files": [_file("pyproject.toml"), _file("kernel/__init__.py")],
                },
                "build_environment": "build",
                "outputs": [_output("kernel")],
            },
        ],
        "environments": [
            {
                "name": name,
                "pylock": _file(f"locks/pylock.{name}.toml"),
                "packages": 3,
                "indexes": ["https://a.example/simple", "https://b.example/simple"],
            }
            for name in ("runtime", "build", "conversion")
        ],
        "checkpoints": [_checkpoint("target"), _checkpoint("draft")],
        "launch": {
            "module": "sglang.launch_server",
            "arguments": {
                "model-path": "{checkpoint.target}",
                "served-model-name": "small",
                "dtype": "bfloat16",
                "kv-cache-dtype": "auto",
                "page-size": 16,
                "mem-fraction-static": 0.5,
                "disable-cuda-graph": True,
                "lora-paths": ["ab", "c"],
                "json-model-override-args": '{"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}',
                "hicache-ratio": 2,
                "log-level": "info",
                "enable-metrics": True,
            },
            "environment": {
                "SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR": "{namespace}",
                "SGLANG_USE_CPU_ENGINE": "1",
                "OMP_NUM_THREADS": "2",
                "OMP_WAIT_POLICY": "PASSIVE",
                "PYTHONWARNINGS": "ignore",
            },
            "effective": {
                "dtype": "bfloat16",
                "kv_cache_dtype": "bfloat16",
                "page_size": 16,
                "tp_size": 1,
                "pp_size": 1,
                "hicache_ratio": 2,
                "attention_backend": "torch_native",
            },
            "readiness": {"endpoint": "/health_generate", "deadline_s": 300},
        },
        "qualification": {
            "suite": "default",
            "boots": 2,
            "reference": _file("runtime/reference.json"),
            "measures": [
                {
                    "id": "decode.single/1",
                    "repeats": 2,
                    "warmup": 1,
                    "parameters": {"prompt_tokens": 64, "output_tokens": 64},
                    "thresholds": [
                        {"value": "decode_rate", "comparator": ">=", "bound": 2, "unit": "tok/s"},
                        {
                            "value": "ttft_s",
                            "comparator": "<=",
                            "bound": 1.5,
                            "unit": "ratio",
                            "relative_to": _file("runtime/rate.json"),
                        },
                    ],
                },
                {
                    "id": "fidelity/1",
                    "repeats": 2,
                    "warmup": 0,
                    "thresholds": [{"value": "agreement", "comparator": ">=", "bound": 0.5, "unit": "ratio"}],
                },
            ],
        },
    }


def lock_of(data: dict[str, Any]) -> Lock:
    """A lock from plain data."""
    return Lock.from_data(data, where="test")


def make_lock(*edits: Edit) -> Lock:
    """The lock with edits to its plain data."""
    data = lock_data()
    for edit in edits:
        edit(data)
    return lock_of(data)


def whole_data() -> dict[str, Any]:
    """The lock with every other kind of source, build and runtime beside those of the embedded default."""
    data = lock_data()
    commit, tree = "1" * 40, "2" * 40
    data["toolchain"] |= {"cuda": "13.0", "driver": "580.65", "tools": {"nvcc": "13.0.48"}}
    data["hardware"] = {
        "gpu": "Some GPU",
        "count": 1,
        "compute_capability": "9.0",
        "memory_gb": 141,
        "power_limit_w": 450,
        "requested_power_limit_w": 600,
    }
    data["adopted"] = {
        "environment": _file("locks/adopted.json"),
        "distributions": 200,
        "observed": _file("locks/observed.json"),
    }
    data["components"] += [
        {
            "name": "kernels",
            "kind": "nvcc",
            "source": {
                "kind": "git",
                "url": "https://git.example/kernels.git",
                "asked": sha256("v1.0"),
                "commit": commit,
                "tree": tree,
                "subfolder": "csrc",
                "submodules": [
                    {"path": "third/part", "url": "https://git.example/part.git", "commit": "3" * 40, "tree": "4" * 40}
                ],
                "lfs": [{"path": "data/table.bin", "sha256": sha256("table"), "size": 5}],
                "changes": _file("runtime/kernels.patch"),
            },
            "arguments": ["-O3", "a.cu"],
            "architectures": ["sm_90", "compute_120"],
            "jobs": 8,
            "tools": {"nvcc": "13.0.88"},
            "outputs": [
                {
                    "filename": "lib/kernels.cubin",
                    "sha256": sha256("cubin"),
                    "size": 9,
                    "content_sha256": sha256("cubin content"),
                    "device_code_sha256": sha256("sass"),
                    "architectures": ["sm_90", "compute_120"],
                }
            ],
        }
    ]
    data["checkpoints"] += [
        {
            "name": "words",
            "role": "tokenizer",
            "trust_remote_code": False,
            "source": {"kind": "hub", "repository": "some/words", "asked": sha256("main"), "revision": commit},
            "files": [{**_file("tokenizer.model"), "blob": tree}],
        }
    ]
    data["launch"]["files"] = {"nixl": _file("runtime/nixl.json")}
    return data
