"""Turn one GGUF file (llama architecture, SmolLM2 tokenizer) into a checkpoint folder.

Usage: convert.py SOURCE.gguf OUTPUT [--dtype bfloat16|float32]

Needs gguf and numpy only. The same source gives the same bytes: tensors and keys have a fixed order, nothing is dated.
"""

import argparse
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGUFReader
from gguf.quants import dequantize

Floats = npt.NDArray[np.float32]

TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
BLOCK = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
CONTROL_TOKEN = 3


class Source:
    """A GGUF file: metadata by key, tensors as float32."""

    def __init__(self, path: Path) -> None:
        self.reader = GGUFReader(path)
        for key, expected in (
            ("general.architecture", "llama"),
            ("tokenizer.ggml.model", "gpt2"),
            ("tokenizer.ggml.pre", "smollm"),
        ):
            if self[key] != expected:
                raise SystemExit(f"{path}: {key} is {self[key]!r}, expected {expected!r}")

    def __getitem__(self, key: str) -> Any:
        if key not in self.reader.fields:
            raise SystemExit(f"the source has no {key}")
        return self.reader.fields[key].contents()

    def tensors(self) -> dict[str, Floats]:
        """Every tensor under its checkpoint name, in the row order of the checkpoint."""
        names = dict(TOP)
        for layer in range(self["llama.block_count"]):
            for short, long in BLOCK.items():
                names[f"blk.{layer}.{short}.weight"] = f"model.layers.{layer}.{long}.weight"
        heads = {".attn_q.": self["llama.attention.head_count"], ".attn_k.": self["llama.attention.head_count_kv"]}
        found = {}
        for tensor in self.reader.tensors:
            values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
            values = values.reshape([int(size) for size in reversed(tensor.shape)])
            for part, count in heads.items():
                if part in tensor.name:
                    values = rotary_halves(values, count)
            found[names[tensor.name]] = values
        return found


def rotary_halves(weight: Floats, heads: int) -> Floats:
    """Undo GGUF's interleaving of the two rotary halves in the rows of a query or key projection."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def stored(values: Floats, dtype: str) -> bytes:
    """The bytes of a tensor; bfloat16 is rounded to nearest, ties to even."""
    contiguous = np.ascontiguousarray(values, dtype=np.float32)
    if dtype == "float32":
        return contiguous.tobytes()
    bits = contiguous.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16).tobytes()


def write_weights(path: Path, tensors: dict[str, Floats], dtype: str) -> None:
    """One safetensors file, tensors by name."""
    data = {name: stored(tensors[name], dtype) for name in sorted(tensors)}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, content in data.items():
        header[name] = {
            "dtype": {"bfloat16": "BF16", "float32": "F32"}[dtype],
            "shape": list(tensors[name].shape),
            "data_offsets": [offset, offset + len(content)],
        }
        offset += len(content)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for content in data.values():
            file.write(content)


def model_config(source: Source, *, dtype: str, tied: bool) -> dict[str, Any]:
    """`config.json`."""
    epsilon = np.float32(source["llama.attention.layer_norm_rms_epsilon"])
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": source["tokenizer.ggml.bos_token_id"],
        "eos_token_id": source["tokenizer.ggml.eos_token_id"],
        "pad_token_id": source["tokenizer.ggml.padding_token_id"],
        "hidden_act": "silu",
        "hidden_size": source["llama.embedding_length"],
        "head_dim": source["llama.rope.dimension_count"],
        "initializer_range": 0.02,
        "intermediate_size": source["llama.feed_forward_length"],
        "max_position_embeddings": source["llama.context_length"],
        "mlp_bias": False,
        "num_attention_heads": source["llama.attention.head_count"],
        "num_hidden_layers": source["llama.block_count"],
        "num_key_value_heads": source["llama.attention.head_count_kv"],
        "pretraining_tp": 1,
        "rms_norm_eps": float(np.format_float_positional(epsilon)),
        "rope_scaling": None,
        "rope_theta": float(source["llama.rope.freq_base"]),
        "tie_word_embeddings": tied,
        "torch_dtype": dtype,
        "use_cache": True,
        "vocab_size": len(source["tokenizer.ggml.tokens"]),
    }


def tokenizer(source: Source) -> dict[str, Any]:
    """`tokenizer.json`: byte-level BPE with single digits, control tokens added as special."""
    vocabulary = source["tokenizer.ggml.tokens"]
    special = [index for index, kind in enumerate(source["tokenizer.ggml.token_type"]) if kind == CONTROL_TOKEN]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": index, "content": vocabulary[index], **plain} for index in special],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": {**byte_level, "add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(vocabulary)},
            "merges": [merge.split(" ", 1) for merge in source["tokenizer.ggml.merges"]],
        },
    }


def tokenizer_config(source: Source) -> dict[str, Any]:
    """`tokenizer_config.json` with the chat template."""
    vocabulary = source["tokenizer.ggml.tokens"]
    begin = vocabulary[source["tokenizer.ggml.bos_token_id"]]
    end = vocabulary[source["tokenizer.ggml.eos_token_id"]]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_prefix_space": False,
        "bos_token": begin,
        "eos_token": end,
        "unk_token": vocabulary[source["tokenizer.ggml.unknown_token_id"]],
        "pad_token": vocabulary[source["tokenizer.ggml.padding_token_id"]],
        "clean_up_tokenization_spaces": False,
        "additional_special_tokens": [begin, end],
        "model_max_length": source["llama.context_length"],
        "chat_template": source["tokenizer.chat_template"],
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Indented UTF-8 with a line end."""
    path.write_bytes((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def main() -> None:
    """Convert."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    options = parser.parse_args()
    source = Source(options.source)
    tensors = source.tensors()
    tied = "lm_head.weight" not in tensors
    special_ids = {
        "bos_token_id": source["tokenizer.ggml.bos_token_id"],
        "eos_token_id": source["tokenizer.ggml.eos_token_id"],
        "pad_token_id": source["tokenizer.ggml.padding_token_id"],
    }
    options.output.mkdir(parents=True, exist_ok=True)
    write_json(options.output / "config.json", model_config(source, dtype=options.dtype, tied=tied))
    write_json(options.output / "generation_config.json", special_ids)
    write_json(options.output / "tokenizer.json", tokenizer(source))
    write_json(options.output / "tokenizer_config.json", tokenizer_config(source))
    write_weights(options.output / "model.safetensors", tensors, options.dtype)
    print(f"{len(tensors)} tensors, {'tied' if tied else 'separate'} output embedding")


if __name__ == "__main__":
    main()
