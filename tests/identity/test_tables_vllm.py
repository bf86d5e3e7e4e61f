"""vLLM's table: every argument and variable of every release that is kept as data has a class of its own."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.base import parse_json
from reproducer.identity.meaning import Meaning
from reproducer.identity.tables import by_name, table_of, vllm_variables

DATA = Path(__file__).parent.parent / "data" / "arguments"
RELEASES = sorted(path.stem for path in DATA.glob("vllm-*.json"))
TABLE = table_of("vllm")

# What a release between those kept as data took, and neither of them does.
BETWEEN_ARGUMENTS = {"enable-bf16x3-router-gemm"}  # 0.27.1
BETWEEN_VARIABLES = {"AITER_SITUV2_A8W4", "VLLM_PREFIX_CACHE_RETENTION_INTERVAL", "VLLM_TRITON_ATTN_USE_TD"}  # 0.27.1

# Whatever else changes, these must never become neutral.
SHAPING = """
    attention-backend block-size compilation-config dtype ec-transfer-config enable-lora hf-overrides kv-cache-dtype
    kv-offloading-backend kv-offloading-size kv-transfer-config max-num-batched-tokens max-num-seqs model
    pipeline-parallel-size prefix-caching-hash-algo quantization revision seed speculative-config
    structured-outputs-config tensor-parallel-size trust-remote-code
"""


@cache
def schema(release: str) -> ArgumentSchema:
    """What one release takes."""
    path = DATA / f"{release}.json"
    return ArgumentSchema.from_data(parse_json(path.read_bytes(), where=str(path)), where=str(path))


def unclassified(names: Iterable[str], table: Mapping[str, Meaning]) -> list[str]:
    """The names that no group of a table holds."""
    return sorted(set(names) - set(table))


def test_two_releases_are_kept() -> None:
    """Without the data the checks below would hold for nothing."""
    assert len(RELEASES) >= 2


@pytest.mark.parametrize("release", RELEASES)
def test_every_argument_is_classified(release: str) -> None:
    """Each argument of the release stands in a group by its canonical name."""
    missing = unclassified((TABLE.canonical(each.name) for each in schema(release).arguments), TABLE.arguments)
    assert not missing, f"{release}: arguments without a class: {' '.join(missing)}"


@pytest.mark.parametrize("release", RELEASES)
def test_every_variable_is_classified(release: str) -> None:
    """Each variable of the release stands in a group."""
    missing = unclassified((each.name for each in schema(release).variables), TABLE.variables)
    assert not missing, f"{release}: variables without a class: {' '.join(missing)}"


@pytest.mark.parametrize("release", RELEASES)
def test_aliases_lead_to_the_name_of_the_release(release: str) -> None:
    """Every other spelling that the release's parser takes is an alias of the table, and of the same argument."""
    wrong = [
        f"--{alias} is {each.name}"
        for each in schema(release).arguments
        for alias in each.aliases
        if TABLE.canonical(alias) != TABLE.canonical(each.name)
    ]
    assert not wrong


def test_nothing_is_classified_that_no_release_takes() -> None:
    """A name that neither release knows is a slip, unless it is said to come from elsewhere."""
    arguments = {TABLE.canonical(each.name) for release in RELEASES for each in schema(release).arguments}
    variables = {each.name for release in RELEASES for each in schema(release).variables}
    general = set(by_name(vllm_variables.GENERAL))
    assert set(TABLE.arguments) - arguments == BETWEEN_ARGUMENTS
    assert set(TABLE.variables) - variables - general == BETWEEN_VARIABLES
    assert not general & variables


@pytest.mark.parametrize("name", SHAPING.split())
def test_what_shapes_pages_takes_part(name: str) -> None:
    """Arguments that are known to change the bytes of a page, their layout or the key they are found under."""
    assert TABLE.arguments[name].consequence == "cache-identity"


def test_every_group_has_a_reason() -> None:
    """A reason is one clause: no sentence, and not empty."""
    for meaning in {*TABLE.arguments.values(), *TABLE.variables.values()}:
        assert meaning.reason.strip() == meaning.reason
        assert len(meaning.reason) > 10
        assert not meaning.reason.endswith(".")
        assert meaning.reason[0].islower()
