"""What a bundle holds and must not be refused for: versions, package URLs, images, special tokens, words for names.

A wrong hit stops the writing of a bundle after all of its measuring, so each of these once looked like a leak.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from reproducer.errors import UnsafeInputError
from reproducer.sanitize.kinds import Tally
from reproducer.sanitize.scrubbing import Run, Scrubber
from reproducer.sanitize.text import Machine, leaks, page, refuse_leaks

ROOT = Path(__file__).parents[2]
MACHINE = Machine(home="/srv/people/jdoe", names=frozenset({"jdoe", "tower42"}))
KEPT = (
    "pkg:pypi/nvidia-cublas-cu12@12.8.4.1",
    "pkg:pypi/nvidia-cudnn-cu12@9.10.2.21",
    "pkg:generic/some-driver@1.2.3.4",
    "pkg:pypi/torch@2.9.1%2Bcu129",
    "pkg:npm/%40angular/core@12.3.1",
    "pkg:oci/sglang@sha256%3A0123456789abcdef?repository_url=docker.io/lmsysorg/sglang",
    "ghcr.io/org/image:1.2.3.4",
    "cuda-toolkit 12.9.0.1",
    "TensorRT 10.13.3.9",
    "| nvidia-cusparselt-cu12 | 0.7.1.0 |",
    "255.255.255.0",
    "pypi-attestations-0-0-28-py3",
    "pypi_attestations-0.0.28-py3-none-any.whl",
    "basic arithmetic2",
    "Basic evaluation10",
    "weighs_and_measures_total",
    "libfoo_hf_something",
    "git@github.com:org/name.git",
    "git+https://github.com/sgl-project/sglang.git@v0.5.10#subdirectory=python",
    "Intel(R) Xeon(R) Platinum 8462Y+@2.80GHz",
    "memcpy@GLIBC_2.14",
    "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
    "docker.io/lmsysorg/sglang:v0.5.10@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "0000:3b:00.0",
    "Apache-2.0 WITH LLVM-exception",
)


@pytest.mark.parametrize("text", KEPT)
def test_what_names_nobody_stays(text: str) -> None:
    """No search finds anything in it, and the sanitizer leaves it as it is."""
    assert leaks({"a": text, "b": [text], text: 1}, where="it", machine=MACHINE) == ()
    assert Scrubber(Run(MACHINE), Tally()).clean(text) == text


FIELDS: tuple[dict[str, Any], ...] = (
    {"cudnn": "9.10.2.21"},
    {"nvidia-cublas-cu12": "12.8.4.1"},
    {"driver_version": "1.2.3.4"},
    {"name": "effective.cudnn_version", "expected": "9.10.2.21", "got": "9.10.2.22"},
    {"id": "toolchain.cuda", "expected": "12.9.0.1"},
    {"secret": "none"},
    {"image_break_token": "[IMG_BREAK]", "fim_prefix_token": "<fim_prefix>", "cls_token": "[CLS]"},
    {"page_token": "x"},
    {"name": "eos_token", "got": "<|im_end|>"},
    {"name": "api_key", "expected": "None", "got": "null"},
    {"arguments": ["--tokenizer-path", "model", "--max-total-tokens", "70000", "--api-key", "--port", "1"]},
)


@pytest.mark.parametrize("content", FIELDS, ids=json.dumps)
def test_a_value_is_judged_by_what_it_is_of(content: dict[str, Any]) -> None:
    """Four numbers under the name of a version, and special tokens of a model, are no leaks."""
    assert leaks(content, where="it", machine=MACHINE) == ()


LEAKS: tuple[tuple[Any, str], ...] = (
    ({"name": "peer", "got": "10.1.2.3"}, "an address"),
    ({"pkg": "see root@10.1.2.3"}, "an address"),
    ({"image": "at registry/x 10.1.2.3"}, "an address"),
    ({"page": "10.1.2.3"}, "an address"),
    ({"name": "effective.api_key", "got": "Hunter2Hunter2"}, "a secret by its name"),
    (["--port", "1", "--api-key", "Hunter2Hunter2"], "a secret by its name"),
    ("sent Basic dXNlcjpwYXNzd29yZA", "a token"),
    ("Basic c29tZWJvZHk6cHc=", "a token"),
    ("pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAw", "a token"),
)


@pytest.mark.parametrize(("content", "what"), LEAKS, ids=str)
def test_what_names_somebody_does_not(content: object, what: str) -> None:
    """The same forms with an address, a password or a token in them are found."""
    assert what in {each.what for each in leaks(content, where="it", machine=MACHINE)}


def test_a_page_is_one_by_what_made_it() -> None:
    """Only a page that penny wrote is looked at as one: four numbers in its tables are a version."""
    assert leaks(page("kernel | 5.15.90.1 by jdoe"), where="it", machine=MACHINE) == ()
    assert leaks({"page": ["5.15.90.1 by jdoe"]}, where="it", machine=MACHINE) != ()


@pytest.mark.parametrize("home", ["/tmp", "/app", "/workspace"])  # noqa: S108  texts
def test_a_home_that_every_machine_has_is_none(home: str) -> None:
    """Containers set HOME to folders that name nobody; another home counts only where it begins a path."""
    assert leaks(f"{home}/x {home}", where="it", machine=Machine(home, frozenset())) == ()
    lab = Machine("/lab", frozenset())
    assert leaks("/opt/lab/x", where="it", machine=lab) == ()
    assert leaks("in /lab/x", where="it", machine=lab) != ()


@pytest.mark.parametrize("name", ["will", "Mark", "vllm", "data", "h200", "torch"])
def test_a_name_that_is_a_word_is_not_looked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user called Will has a word for a name, and every verdict holds it."""
    monkeypatch.setattr("socket.gethostname", lambda: name)
    monkeypatch.setattr("getpass.getuser", lambda: name)
    refuse_leaks({"verdict.json": {"reason": f"it {name} be checked"}})


def test_a_name_that_the_lock_holds_is_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock leaves the machine as it is, so its words are refused nowhere else."""
    monkeypatch.setattr("getpass.getuser", lambda: "smollm2")
    contents = {"a.json": {"b": "of smollm2 alone"}}
    with pytest.raises(UnsafeInputError):
        refuse_leaks(contents)
    refuse_leaks(contents, published='{"name": "smollm2"}')


def test_manifests_and_locks_hold_no_leak() -> None:
    """Every line of the manifests and of the committed lock passes as it stands."""
    for path in (*sorted((ROOT / "manifests").glob("*.toml")), ROOT / "penny.lock.toml"):
        assert leaks(path.read_text(encoding="utf-8").splitlines(), where=path.name, machine=MACHINE) == ()
