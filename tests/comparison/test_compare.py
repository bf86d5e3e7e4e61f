"""`penny compare`: controlled only where the declared factor alone differs; kinds never mix; nothing is left out."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from reproducer.cli.show_comparison import shown
from reproducer.comparison.comparing import Comparison, compare_sides
from reproducer.comparison.conditions import look
from reproducer.comparison.numbers import NotComparableError
from reproducer.comparison.sides import read_side
from reproducer.documents.measured import GpuConditions
from reproducer.errors import Outcome, PennyError, UsageError
from reproducer.report.text import number
from tests.comparison.arms import Arm, Edit, arm, in_turn, relocked, written
from tests.end_to_end.newcomer import ROOT, Penny

CLAIMS = ROOT / "evidence" / "claims"
FACTOR = "launch.page_size"


def page_size(data: dict[str, Any]) -> None:
    """The second lock: another page size, asked for and in effect."""
    data["launch"]["arguments"]["page-size"] = 32
    data["launch"]["effective"]["page_size"] = 32


def two(folder: Path, edit: Edit = page_size, **second: Any) -> tuple[Arm, Arm]:
    """Two arms that were measured in turn, of which the second has an edited lock."""
    first = arm(relocked(folder / "A", lambda _: None), "A")
    return in_turn(first, arm(relocked(folder / "B", edit), "B", **second))


def compared(sides: tuple[Arm, Arm], **asked: Any) -> Comparison:
    """Both written, read again and compared."""
    first, second = (read_side(written(each, each.opened.folder)) for each in sides)
    return compare_sides(first, second, **asked)


def named(found: Comparison) -> dict[str, str]:
    """Every condition that is not the same, with its state."""
    return {each.name: each.state for each in found.differing}


def test_the_declared_factor_alone(tmp_path: Path) -> None:
    """One argument and its effective value differ, and nothing else: the comparison is controlled."""
    found = compared(two(tmp_path), factors=[FACTOR])
    assert (found.kind, named(found)) == ("controlled", {})
    assert set(found.factor) == {"launch.arguments.page-size", "launch.effective.page_size"}
    assert found.outcome(asked=True) is Outcome.HOLDS


def test_without_a_declared_factor(tmp_path: Path) -> None:
    """The same two sides: what nobody declared is a condition that differs."""
    found = compared(two(tmp_path))
    assert found.kind == "directional"
    assert named(found) == {"launch.arguments.page-size": "differs", "launch.effective.page_size": "differs"}


def test_one_thing_more(tmp_path: Path) -> None:
    """A variable that differs beside the factor makes it directional, and the exit code says which sort it was."""

    def edit(data: dict[str, Any]) -> None:
        page_size(data)
        data["launch"]["environment"]["OMP_NUM_THREADS"] = "2"

    found = compared(two(tmp_path, edit), factors=[FACTOR])
    assert named(found) == {"launch.environment.OMP_NUM_THREADS": "differs"}
    assert found.outcome(asked=True) is Outcome.CONFIGURATION_DIFFERS


def test_a_name_is_no_condition(tmp_path: Path) -> None:
    """What the lock is called changes no number; it is shown, and stays controlled."""

    def edit(data: dict[str, Any]) -> None:
        page_size(data)
        data["name"] = "other"

    found = compared(two(tmp_path, edit), factors=[FACTOR])
    assert found.kind == "controlled"
    assert found.without_effect == ("name",)


@pytest.mark.parametrize(
    ("update", "name", "state"),
    [
        ({"other_cpu_percent": 80.0}, "other load, percent of one processor", "differs"),
        ({"other_cpu_percent": None}, "other load, percent of one processor", "unknown"),
        ({"sampling": None}, "sampling", "unknown"),
        ({"sampling": {"temperature": 1.0}}, "sampling", "differs"),
        ({"cache_state": "warm"}, "cache state", "differs"),
    ],
)
def test_conditions_of_the_measure(tmp_path: Path, update: dict[str, Any], name: str, state: str) -> None:
    """Each condition that differs or is unknown on one side is named, and once where it is of all measures."""
    first, second = two(tmp_path)
    found = compared((first, second.under(**update)), factors=[FACTOR])
    assert named(found) == {name: state}
    if name != "cache state":  # that is another one for each measure before
        assert [each.measures for each in found.differing] == [()]


@pytest.mark.parametrize("field", ["kernel", "cpu", "cpu_count", "memory_bytes", "filesystem", "cpu_flags"])
def test_conditions_of_the_host(tmp_path: Path, field: str) -> None:
    """Another machine is a condition that differs; `unknown` on both sides is unknown and not equal."""
    first, second = two(tmp_path)
    host = second.measures[0].conditions.host
    other = {"cpu_flags": ("sse4_2",), "cpu_count": 64, "memory_bytes": 1}.get(field, "another")
    found = compared((first, second.under(host=host.model_copy(update={field: other}))), factors=[FACTOR])
    assert named(found) == {f"host {field}": "differs"}


def gpu(**update: Any) -> GpuConditions:
    """One GPU as it was seen."""
    seen: dict[str, Any] = {
        "name": "Example GPU",
        "driver": "580.1",
        "compute_capability": "9.0",
        "memory_bytes": 1 << 30,
        "power_requested_w": (450.0, 450.0),
        "power_enforced_w": (450.0, 450.0),
        "reasons": (),
        "clock_sm_mhz": (1900.0, 1980.0),
        "clock_memory_mhz": (2600.0, 2600.0),
        "readings": 3,
    }
    return GpuConditions(**(seen | update))


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({"clock_sm_mhz": (1950.0, 2000.0)}, {}),
        ({"clock_sm_mhz": (1000.0, 1100.0)}, {"gpu 0 clock_sm_mhz": "differs"}),
        ({"power_enforced_w": (300.0, 450.0)}, {"gpu 0 power_enforced_w": "differs"}),
        ({"power_requested_w": None}, {"gpu 0 power_requested_w": "unknown"}),
        ({"reasons": ("thermal",)}, {"gpu 0 reasons": "differs"}),
        ({"driver": "unknown"}, {"gpu 0 driver": "unknown"}),
    ],
)
def test_conditions_of_the_gpu(tmp_path: Path, update: dict[str, Any], expected: dict[str, str]) -> None:
    """Power limits and reasons must be the same, clocks overlap; what a driver does not say is unknown."""
    first, second = two(tmp_path)
    sides = first.under(gpus=(gpu(),)), second.under(gpus=(gpu(**update),))
    assert named(compared(sides, factors=[FACTOR])) == expected


def test_unknown_on_both_sides_is_unknown() -> None:
    """Two sides that know nothing share nothing."""
    assert [each.state for each in (*look("it", None, None), *look("it", "unknown", "unknown"))] == ["unknown"] * 2
    assert not look("it", 1, 1)
    assert [each.state for each in look("it", 1, after=True)] == ["differs"]


def test_not_measured_in_turn(tmp_path: Path) -> None:
    """Two runs at two times share no machine that anybody knows of."""
    first, second = two(tmp_path)
    found = compared((first.changed(interleaved=None), second), factors=[FACTOR])
    assert named(found) == {"machine and time": "unknown"}
    assert found.outcome(asked=True) is Outcome.NOT_CHECKED


@pytest.mark.parametrize("change", ["arm", "lock", "build", "boots", "launch"])
def test_two_runs_that_were_each_in_turn_with_others(tmp_path: Path, change: str) -> None:
    """Both must name each other, be different arms and share one list of boots that holds all of theirs."""
    first, second = two(tmp_path)
    said = second.measures[0].interleaved
    assert said is not None
    changes: dict[str, dict[str, Any]] = {
        "arm": {"arm": "A"},
        "lock": {"other_lock": "0" * 64},
        "build": {"other_build": "0" * 64},
        "boots": {"boots": said.boots[::-1]},
        "launch": {"boots": said.boots[:-1]},
    }
    other = changes[change]
    sides = [first, second.changed(interleaved=said.model_copy(update=other))]
    if change == "launch":
        ours = first.measures[0].interleaved
        assert ours is not None
        sides[0] = first.changed(interleaved=ours.model_copy(update=other))
    assert named(compared((sides[0], sides[1]), factors=[FACTOR])) == {"machine and time": "unknown"}


def test_from_the_command_line(tmp_path: Path) -> None:
    """Exit code and JSON: a regression is shown in its place, and an unknown condition answers `--factor`."""
    first, second = two(tmp_path, slower=3)
    folders = [str(written(each, each.opened.folder)) for each in (first, second.changed(interleaved=None))]
    penny = Penny(tmp_path, tmp_path / "store", tmp_path / "keys")
    ended = penny("compare", *folders, "--factor", FACTOR)
    assert (ended.code, ended.err) == (64 + 32, "")
    assert "machine and time unknown" in ended.out
    assert "regression" in ended.out
    data = json.loads(penny("compare", *folders, "--json").out)
    assert (data["kind"], data["exit_code"]) == ("directional", 0)
    claim = penny("compare", folders[0], str(CLAIMS / "public-tp1-mtp3.json"))
    assert claim.code == 2
    assert "nobody measured a claim here" in claim.err


def test_a_terminal_of_80_columns(tmp_path: Path) -> None:
    """Every number of a comparison stands whole in a table of 80 columns."""
    found = compared(two(tmp_path, slower=3))
    written_to = StringIO()
    Console(width=80, file=written_to).print(shown(found, every=True))
    text = written_to.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    told = "".join(text.split())
    for each in found.deltas:
        assert number(each.difference.before) in told
        assert number(each.difference.after) in told
    assert "regression" in text


def test_what_the_live_server_showed(tmp_path: Path) -> None:
    """An effective value that no lock names and that differs is a condition."""
    first = arm(relocked(tmp_path / "A", lambda _: None), "A", more={"attention_backend": "torch_native"})
    second = arm(relocked(tmp_path / "B", page_size), "B", more={"attention_backend": "intel_amx"})
    found = compared(in_turn(first, second), factors=[FACTOR])
    assert named(found) == {"launch.effective.attention_backend": "differs"}


def test_receipts_whose_launches_are_gone(tmp_path: Path) -> None:
    """Without launch receipts only the digests of effective values speak, and those differ."""
    sides = [read_side(written(each, each.opened.folder, without=["launch"])) for each in two(tmp_path)]
    assert named(compare_sides(sides[0], sides[1], factors=[FACTOR])) == {"effective configuration": "differs"}


def test_receipts_without_their_locks(tmp_path: Path) -> None:
    """Locks that are not at hand may differ in anything; a factor cannot be looked for; another lock is refused."""
    sides = two(tmp_path)
    folders = [written(each, each.opened.folder) / "receipts" for each in sides]
    locks = [each.opened.path.rename(tmp_path / f"{name}.toml") for name, each in zip("AB", sides, strict=True)]
    first, second = (read_side(folder) for folder in folders)
    assert named(compare_sides(first, second))["lock"] == "unknown"
    with pytest.raises(UsageError, match="without both locks"):
        compare_sides(first, second, factors=[FACTOR])
    with pytest.raises(UsageError, match="not the lock of these receipts"):
        read_side(folders[0], lock=locks[1])


def test_a_factor_that_does_not_differ(tmp_path: Path) -> None:
    """Declaring what is the same on both sides is an error that names what differs."""
    with pytest.raises(UsageError, match=r"launch\.dtype.*page"):
        compared(two(tmp_path), factors=["launch.dtype"])


def test_gains_and_regressions_in_one_form(tmp_path: Path) -> None:
    """Turned round, every number stands in the same place with the same keys; only the direction is another."""
    ours = two(tmp_path / "1", slower=3)
    found = compared(ours)
    back = compare_sides(found.second, found.first)
    names = [(each.measure, each.before.value) for each in found.deltas]
    assert names == [(each.measure, each.before.value) for each in back.deltas]
    rate = {each.before.value: each for each in found.deltas}["decode_rate"]
    assert rate.direction == "regression"
    assert {each.before.value: each for each in back.deltas}["decode_rate"].direction == "gain"
    assert {frozenset(each.content()) for each in (*found.deltas, *back.deltas)} == {frozenset(rate.content())}
    assert rate.content()["noise_floor"] > 0
    assert rate.content()["interval"][1] < 0
    assert rate.content()["n"] == [4, 4]
    assert rate.content()["boots"] == [2, 2]


def test_inside_the_floor(tmp_path: Path) -> None:
    """Two runs alike show no difference, and no direction."""
    found = compared(two(tmp_path))
    rate = {each.before.value: each for each in found.deltas}["decode_rate"]
    assert (rate.difference.conclusion, rate.direction) == ("no difference shown", None)


def test_numbers_come_from_the_samples(tmp_path: Path) -> None:
    """What a receipt states as derived is not taken; the raw samples are."""
    first, second = two(tmp_path)
    lied = tuple(each.model_copy(update={"value": 9e9}) for each in second.measures[0].derived)
    forged = second.measures[0].model_copy(update={"derived": lied})
    sides = first, Arm(second.opened, second.build, second.launches, (forged, *second.measures[1:]))
    assert all(each.difference.after < 1e9 for each in compared(sides).deltas)


def test_other_parameters(tmp_path: Path) -> None:
    """A measure with another prompt is another thing: named as not compared, and an error where it was asked for."""

    def edit(data: dict[str, Any]) -> None:
        data["qualification"]["measures"][0]["parameters"]["prompt_tokens"] = 9

    sides = two(tmp_path, edit)
    found = compared(sides)
    assert any("decode_rate" in each and "prompt_tokens 8 and 9" in each for each in found.not_compared)
    assert "decode_rate" not in {each.before.value for each in found.deltas}
    name = "decode.single/1:decode_rate"
    with pytest.raises(NotComparableError, match="prompt_tokens 8 and 9"):
        compare_sides(found.first, found.second, pairs=[(name, name)])


@pytest.mark.parametrize(
    ("one", "two", "why"),
    [
        ("decode_1x", "decode_4x_aggregate", "aggregate makespan rate"),
        ("reasoning_xhigh_rate", "reasoning_xhigh_three_running_median", "telemetry window"),
        ("decode_1x", "decode_4x_per_request", "concurrency 1 and 4|published value"),
        ("reasoning_xhigh_score", "reasoning_xhigh_rate", "score"),
        ("prefill_64k", "prefill_490k", "prompt_tokens 63906 and 489921"),
    ],
)
def test_kinds_never_mix(one: str, two: str, why: str) -> None:
    """Asking for a number against one of another kind, or taken otherwise, is an error that says why."""
    claim = read_side(CLAIMS / "qwen38-27b-dflash2-final.json")
    with pytest.raises(NotComparableError, match=why) as caught:
        compare_sides(claim, claim, pairs=[(one, two)])
    assert caught.value.exit_code == 2


def test_two_claims() -> None:
    """Never controlled; a parameter that one publisher names is unknown on the other side; no floor, no difference."""
    found = compare_sides(
        *(read_side(CLAIMS / f"{name}.json") for name in ("qwen38-27b-dflash2-final", "public-tp1-mtp3"))
    )
    assert found.kind == "directional"
    assert {each.difference.conclusion for each in found.deltas} == {"no difference shown"}
    assert named(found)["decode_1x prompt_tokens"] == "unknown"
    assert named(found)["power_limit_w"] == "differs"
    assert all(each.content()["boots"] == each.content()["n"] == [None, None] for each in found.deltas)


def test_a_claim_is_no_receipt(tmp_path: Path) -> None:
    """A claim against receipts is an error, whichever comes first."""
    receipts = read_side(written(two(tmp_path)[0], tmp_path / "A"))
    claim = read_side(CLAIMS / "public-tp1-mtp3.json")
    for sides in ((claim, receipts), (receipts, claim)):
        with pytest.raises(NotComparableError, match="nobody measured a claim here"):
            compare_sides(*sides)


def test_a_failed_measure_is_named(tmp_path: Path) -> None:
    """Speed of a server that failed its measure is shown with that failure."""
    first, second = two(tmp_path)
    found = compared((first, second.changed(status="failed", reason="the needle was not found")))
    assert any(each.startswith("B: ") and "needle" in each for each in found.failed)


@pytest.mark.parametrize("content", ["{}", "[]", '{"format": "penny-\\u001b[2J/9"}', "{"])
def test_what_is_nothing(tmp_path: Path, content: str) -> None:
    """A document of no known format is refused by one clear error."""
    path = tmp_path / "it.json"
    path.write_text(content)
    with pytest.raises(PennyError) as caught:
        read_side(path)
    assert caught.value.exit_code == 2
    assert "\x1b" not in str(caught.value)


def test_documents_are_plain_data(tmp_path: Path) -> None:
    """What `--json` prints is JSON with the keys that scripts rely on."""
    data = json.loads(json.dumps(compared(two(tmp_path)).content()))
    assert {"kind", "deltas", "differing", "factor", "not_compared", "failed"} <= data.keys()
