"""Words of a command line as an engine's own parser takes them."""

from reproducer.documents.arguments import Argument, ArgumentSchema
from reproducer.documents.base import FileReference
from reproducer.freeze.command_line import parse

SCHEMA = ArgumentSchema(
    engine="vllm",
    version="0",
    files=(FileReference(path="x.py", sha256="0" * 64, size=0),),
    arguments=(
        Argument(name="data-parallel-size", field="data_parallel_size", kind="integer"),
        Argument(name="gpu-memory-utilization", field="gpu_memory_utilization", kind="float"),
        Argument(name="enable-prefix-caching", field="enable_prefix_caching", kind="toggle"),
        Argument(name="enforce-eager", field="enforce_eager", kind="flag"),
        Argument(name="max-model-len", field="max_model_len", kind="other"),
        Argument(name="middleware", field="middleware", kind="text", several=True),
        Argument(name="seed", field="seed", kind="integer"),
        Argument(name="served-model-name", field="served_model_name", kind="text", several=True),
        Argument(name="speculative-config", field="speculative_config", kind="json"),
        Argument(name="tensor-parallel-size", field="tensor_parallel_size", aliases=("tp-size",), kind="integer"),
        Argument(name="tokenizer", field="tokenizer", kind="text"),
    ),
)


def test_names_types_and_lists() -> None:
    """Aliases and beginnings go by the engine's name, numbers are numbers, a list is a list, a flag takes nothing.

    A single word is one however many its argument may take, as manifests spell it.
    """
    words = [
        "org/model", "--tp-size", "2", "--gpu-mem=0.85", "--enforce-eager", "--no-enable-prefix-caching",
        "--max-model-len", "8192", "--middleware", "a", "b", "--seed", "-1",
        "--speculative-config", "{}", "--served-model-name", "m", "--tokenizer=--odd", "--data_parallel_size", "3",
    ]  # fmt: skip
    parsed = parse("vllm", tuple(words), SCHEMA)
    assert parsed.unread == []
    assert parsed.arguments == {
        "model": "org/model",
        "tensor-parallel-size": 2,
        "gpu-memory-utilization": 0.85,
        "enforce-eager": True,
        "no-enable-prefix-caching": True,
        "max-model-len": 8192,
        "middleware": ("a", "b"),
        "served-model-name": "m",
        "seed": -1,
        "speculative-config": "{}",
        "tokenizer": "--odd",
        "data-parallel-size": 3,
    }


def test_short_options_and_what_is_not_read() -> None:
    """Short options of vLLM have their long names; a word without a place, and a list given twice, are told."""
    parsed = parse(
        "vllm", ("--middleware", "a", "-tp", "4", "stray", "-q", "--middleware", "b", "--Bad\x1b", "x"), SCHEMA
    )
    assert parsed.arguments["tensor-parallel-size"] == 4
    assert parsed.arguments["middleware"] == "b"
    assert [word for word, _ in parsed.unread] == ["'stray'", "'-q'", "--middleware", "'--Bad\\x1b'", "'x'"]


def test_the_last_form_of_a_toggle_counts() -> None:
    """The engine's parser takes the last of `--NAME` and `--no-NAME`, so a lock has that one alone."""
    on, off = "--enable-prefix-caching", "--no-enable-prefix-caching"
    assert parse("vllm", (on, off), SCHEMA).arguments == {"no-enable-prefix-caching": True}
    assert parse("vllm", (off, on), SCHEMA).arguments == {"enable-prefix-caching": True}


def test_numbers_stay_as_they_were_written() -> None:
    """A number that would be written otherwise stays text, so that the engine gets the word it got."""
    parsed = parse("vllm", ("--max-model-len", "0128", "--seed", "1_0", "--gpu-memory-utilization", "1"), SCHEMA)
    assert parsed.arguments == {"max-model-len": "0128", "seed": "1_0", "gpu-memory-utilization": 1}


def test_without_a_list_a_word_belongs_to_the_option_before_it() -> None:
    """An engine that nobody knows: options with a value each, bare ones alone."""
    parsed = parse("openai", ("--ctx", "4096", "--flash", "--model", "x.gguf"), None)
    assert parsed.arguments == {"ctx": "4096", "flash": True, "model": "x.gguf"}
