"""SGLang's table: everything that a known release takes is classified, and nothing else is."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.base import parse_json
from reproducer.engines.sglang_arguments import field_of
from reproducer.identity.meaning import WORST_FIRST
from reproducer.identity.tables import Table, by_alias, by_name, sglang_outside, table_of
from tests.identity.factory import make_lock

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "arguments"
RELEASES = ("0.5.7", "0.5.10.post1", "0.5.17", "0.5.23")  # oldest first
TABLE = table_of("sglang")

# What the engine's parser takes too, as the beginning of exactly one option.
ABBREVIATIONS = {"dp": "data-parallel-size", "tp": "tensor-parallel-size"}

# Arguments whose value another field keeps in some releases only; the adapter knows them by the field of the others.
MOVED = {
    "0.5.17": """
        cuda-graph-bs cuda-graph-max-bs disable-piecewise-cuda-graph enable-breakable-cuda-graph
        enable-gdn-replayssm-spec enable-nsa-prefill-context-parallel enforce-piecewise-cuda-graph
        mamba-scheduler-strategy nsa-decode-backend nsa-prefill-backend nsa-prefill-cp-mode
        piecewise-cuda-graph-compiler piecewise-cuda-graph-max-tokens piecewise-cuda-graph-tokens
        speculative-dflash-draft-window-size
    """,
    "0.5.23": "monokernel-backend",
    "0.5.7": "stream-output",
}
# Older releases keep these under their long name while they parse, and under the short one from then on.
SHORTENED = {
    "attention_context_parallel_size": "attn_cp_size",
    "data_parallel_size": "dp_size",
    "expert_parallel_size": "ep_size",
    "moe_data_parallel_size": "moe_dp_size",
    "pipeline_parallel_size": "pp_size",
    "tensor_parallel_size": "tp_size",
}

# Whatever else changes, these must never become neutral.
SHAPING = """
    attention-backend chunked-prefill-size context-length device disable-cuda-graph dtype enable-deterministic-inference
    enable-dp-attention enable-lora file-storage-path hicache-io-backend hicache-mem-layout hicache-storage-backend
    hicache-storage-backend-extra-config json-model-override-args kv-cache-dtype kv-events-config load-format lora-paths
    mamba-ssm-dtype max-running-requests max-total-tokens mem-fraction-static model-path node-rank page-size
    quantization random-seed served-model-name speculative-algorithm tensor-parallel-size tokenizer-mode tokenizer-path
    trust-remote-code
"""


@cache
def schema(release: str) -> ArgumentSchema:
    """What one release takes."""
    path = DATA / f"sglang-{release}.json"
    return ArgumentSchema.from_data(parse_json(path.read_bytes(), where=str(path)), where=str(path))


def spellings() -> dict[str, str]:
    """The canonical name of every other spelling: the first long option of the oldest release that has the argument."""
    canonical: dict[str, str] = {}
    for release in RELEASES:
        for each in schema(release).arguments:
            options = (each.name, *each.aliases)
            name = next((canonical[option] for option in options if option in canonical), each.name)
            canonical.update(dict.fromkeys(options, name))
    return {option: name for option, name in canonical.items() if option != name}


def test_the_data_holds_every_release() -> None:
    """A release that is added as data is checked too."""
    assert sorted(RELEASES) == sorted(path.stem.removeprefix("sglang-") for path in DATA.glob("sglang-*.json"))


@pytest.mark.parametrize("release", RELEASES)
def test_every_argument_is_classified(release: str) -> None:
    """Each argument of the release stands in a group by its canonical name."""
    missing = {TABLE.canonical(each.name) for each in schema(release).arguments} - TABLE.arguments.keys()

    assert not missing, f"{release}: arguments without a class: {' '.join(sorted(missing))}"


@pytest.mark.parametrize("release", RELEASES)
def test_every_variable_is_classified(release: str) -> None:
    """Each variable of the engine's own list stands in a group."""
    missing = {each.name for each in schema(release).variables} - TABLE.variables.keys()

    assert not missing, f"{release}: variables without a class: {' '.join(sorted(missing))}"


def test_nothing_is_classified_that_no_release_takes() -> None:
    """A name that no release knows is a slip; variables that are read elsewhere stand in a list of their own."""
    arguments = {TABLE.canonical(each.name) for release in RELEASES for each in schema(release).arguments}
    variables = {each.name for release in RELEASES for each in schema(release).variables}
    outside = by_name(sglang_outside.VARIABLES).keys()

    assert TABLE.arguments.keys() - arguments == set()
    assert TABLE.variables.keys() - variables == outside


def test_the_aliases_are_those_of_the_parsers() -> None:
    """No spelling is left out, invented, or led to another argument."""
    assert TABLE.aliases == {**spellings(), **ABBREVIATIONS}
    assert set(TABLE.aliases.values()) <= TABLE.arguments.keys()
    assert not TABLE.aliases.keys() & TABLE.arguments.keys()


@pytest.mark.parametrize("release", RELEASES)
def test_an_abbreviation_means_one_option(release: str) -> None:
    """The parser takes the beginning of an option where only one option begins so."""
    options = [option for each in schema(release).arguments for option in (each.name, *each.aliases)]

    for short, name in ABBREVIATIONS.items():
        (option,) = [option for option in options if option.startswith(short)]
        assert TABLE.canonical(option) == name


@pytest.mark.parametrize("release", RELEASES)
def test_the_adapter_knows_arguments_by_the_same_fields(release: str) -> None:
    """The effective value of an argument is looked for where the engine keeps it."""
    differing = [
        each.name
        for each in schema(release).arguments
        if field_of(each.name) != SHORTENED.get(each.field, each.field) or len(set(map(field_of, each.aliases))) > 1
    ]

    assert sorted(differing) == sorted(MOVED.get(release, "").split())


def test_every_spelling_has_the_field_of_its_argument() -> None:
    """The effective value stands for a request however that is spelt."""
    differing = {alias for alias, name in TABLE.aliases.items() if field_of(alias) != field_of(name)}

    assert differing == set()


@pytest.mark.parametrize("name", SHAPING.split())
def test_what_shapes_pages_takes_part(name: str) -> None:
    """Known to change the bytes of a page, their layout or the key they are found under."""
    assert TABLE.arguments[name].consequence == "cache-identity"


def test_every_entry_has_a_class_and_a_reason() -> None:
    """Classes of the design; a reason is one clause."""
    for meaning in {*TABLE.arguments.values(), *TABLE.variables.values()}:
        assert meaning.consequence in WORST_FIRST
        assert meaning.reason == meaning.reason.strip()
        assert len(meaning.reason) > 10
        assert meaning.reason[0].islower()
        assert not meaning.reason.endswith(".")


def test_one_reason_belongs_to_one_class() -> None:
    """What makes a name neutral cannot make another a factor."""
    classes = {(meaning.reason, meaning.neutral) for meaning in (*TABLE.arguments.values(), *TABLE.variables.values())}

    assert len({reason for reason, _ in classes}) == len(classes)


def test_a_name_in_two_groups_is_refused() -> None:
    """Its class would depend on the order of the groups."""
    with pytest.raises(ValueError, match="b stands twice: as behaviour and as cosmetic"):
        by_name((("behaviour", "one", "a b"), ("cosmetic", "other", "b c")))
    with pytest.raises(ValueError, match="b stands twice"):
        by_name((("behaviour", "one", "b b"),))


def test_a_spelling_of_two_arguments_is_refused() -> None:
    """It would be one of them by accident."""
    with pytest.raises(ValueError, match="x is no alias of b alone"):
        by_alias({"a": "x", "b": "x"})
    with pytest.raises(ValueError, match="b is no alias of a alone"):
        by_alias({"a": "b", "b": "x"})


def test_an_engine_that_nobody_knows_has_an_empty_table() -> None:
    """Every name is then a factor, by its own name."""
    assert table_of("another") == Table()
    assert table_of("another").canonical("tp") == "tp"


def test_only_the_table_of_the_engine_is_loaded() -> None:
    """A start pays for one engine: the other's names are not read."""
    script = (
        "import sys; from reproducer.identity.tables import table_of; table_of('sglang'); "
        "print(*sorted(name for name in sys.modules if name.startswith('reproducer.identity.tables.')))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)

    assert {name.rpartition(".")[2].partition("_")[0] for name in done.stdout.split()} == {"sglang"}


def test_a_table_names_every_launch_argument_of_a_full_lock() -> None:
    """The lock of these tests uses real names, so that they test the table and not the closed world."""
    launch = make_lock().launch

    assert {TABLE.canonical(name) for name in launch.arguments} <= TABLE.arguments.keys()
    assert launch.environment.keys() <= TABLE.variables.keys()
