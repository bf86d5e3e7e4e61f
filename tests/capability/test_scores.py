"""Scores as measures: what each of them gives, what is never merged, which conditions and intervals belong to them."""

from pathlib import Path
from typing import Any

import pytest

from reproducer.capability.by_case import by_case
from reproducer.capability.conditions import capability_conditions, chat_template_sha256
from reproducer.capability.reasoning_cases import REASONING_CASES
from reproducer.capability.suites import case_names, cases_sha256
from reproducer.documents.lock import CheckpointFile, Qualification
from reproducer.documents.measured import Sample
from reproducer.documents.transcripts import Transcript, Turn
from reproducer.errors import UsageError
from reproducer.measures.checks import resolved
from reproducer.measures.definitions import COUNTED, DEFINITIONS
from reproducer.measures.quantities import CompletedRequestRate, MixedKindsError, Score, summarise
from reproducer.measures.settings import MARKS, SETTINGS
from reproducer.qualify.derive import derive
from reproducer.qualify.exchanges import UntoldError
from reproducer.qualify.methods.registry import METHODS
from reproducer.qualify.selection import selected
from reproducer.qualify.target import Target
from reproducer.qualify.validity import invalid_reason
from reproducer.statistics.intervals import wilson
from tests.capability.players import perfect_transcript, reasoned, transcript
from tests.qualify.servers import measure, suite

DIGEST = "a" * 64


def sample(name: str, index: int = 0, *, cases: int = 99, **facts: Any) -> Sample:
    """A perfect sample of a measure."""
    setting = SETTINGS[name]
    said = tuple(
        perfect_transcript(case, setting.call_mode)
        if setting.suite == "tools"
        else transcript(case, reasoned(REASONING_CASES[case]))
        for case in case_names(setting.suite, cases)
    )
    of_harness = {"harness": "inspect_ai 1", "harness_sha256": DIGEST, "log_sha256": f"{index:064x}"}
    return Sample(
        index=index,
        boot=f"{index:064x}",
        warmup=False,
        requests=(),
        facts=of_harness | {"cases_sha256": cases_sha256(setting.suite)} | facts,
        transcripts=said,
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_every_value_of_the_definition_is_derived_with_its_kind_and_unit(name: str) -> None:
    """Perfect samples give exactly the values that the definition lists, and all shares are whole."""
    got = derive(name, {}, [sample(name), sample(name, 1)], statistics="penny-statistics/1")
    assert [(each.name, each.kind, each.unit) for each in got] == [
        (each.name, each.kind, each.unit) for each in (*DEFINITIONS[name].values, *COUNTED)
    ]
    marks = [each for each in got if each.name in MARKS[SETTINGS[name].suite]]
    assert {each.value for each in marks} == {1.0}
    assert all(each.spread is not None and each.spread.method == "wilson/1" for each in marks)


def test_suites_of_version_1_are_these() -> None:
    """Another wording, tool or expectation is another version: receipts of version 1 stay what they are."""
    assert cases_sha256("tools") == "573c049263ec92b06896d5e890307653618a4f0310efc4a5c2dd6ef7e3258b73"
    assert cases_sha256("reasoning") == "786122483049613fdf7c520fc40f24c13116ae05de1104e891649222f5dfb2e3"


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ({"transcripts": None}, "0 transcripts, which are not those of the first 2 cases"),
        ({"facts": {"fault": "it broke"}}, "it broke"),
        ({"facts": {"cases_sha256": DIGEST}}, "the cases are not those of this measure"),
        ({"harness": 1}, "the fact 'harness' is missing"),
        ({"turn": Turn(error="refused")}, "case constraints-crates has no answer: refused"),
        ({"turn": None}, "case constraints-crates was not walked to its end, or beyond it"),
    ],
)
def test_a_sample_that_measured_nothing_is_invalid(edit: dict[str, Any], reason: str) -> None:
    """It does not count, and says why."""
    good = sample("reasoning/1", cases=2)
    assert good.transcripts is not None
    parameters = resolved("reasoning/1", {"cases": 2})
    assert invalid_reason("reasoning/1", parameters, good) == ""
    update = dict(edit)
    if "turn" in edit:
        turns = () if edit["turn"] is None else (edit["turn"],)
        first = Transcript(case=good.transcripts[0].case, turns=turns)
        update = {"transcripts": (first, *good.transcripts[1:])}
    elif "harness" in edit:
        update = {"facts": {**good.facts, "harness": 1}}
    elif "facts" in edit:
        update = {"facts": {**good.facts, **edit["facts"]}}
    assert invalid_reason("reasoning/1", parameters, good.model_copy(update=update)).startswith(reason)


def test_turns_after_the_end_of_a_case_make_a_sample_invalid() -> None:
    """Whoever adds what was never said to a transcript has no score for it."""
    good = sample("tools/1", cases=1)
    assert good.transcripts is not None
    parameters = resolved("tools/1", {"cases": 1})
    assert invalid_reason("tools/1", parameters, good) == ""
    (said,) = good.transcripts
    for turns in ((*said.turns, said.turns[-1]), ()):
        edited = good.model_copy(update={"transcripts": (Transcript(case=said.case, turns=turns),)})
        reason = "case needless-sum was not walked to its end, or beyond it"
        assert invalid_reason("tools/1", parameters, edited) == reason


def test_scores_of_other_conditions_and_speeds_are_never_merged() -> None:
    """Neither sum nor share nor comparison of two efforts, two harnesses, or of a score and a speed."""
    low = Score(1.0, "ratio", (("measure", "reasoning.low/1"),))
    high = Score(0.0, "ratio", (("measure", "reasoning.high/1"),))
    speed = CompletedRequestRate(10.0, "tok/s")
    assert (low + low).value == 2.0
    assert low / low == 1.0
    for other in (high, speed):
        for merge in (lambda: low + other, lambda: low - other, lambda: low / other, lambda: low < other):  # noqa: B023
            with pytest.raises(MixedKindsError):
                merge()
    with pytest.raises(MixedKindsError, match="measure"):
        summarise("correct", [low, high], share=True)
    with pytest.raises(MixedKindsError, match="harness_sha256"):
        derive("reasoning/1", {}, [sample("reasoning/1"), sample("reasoning/1", 1, harness_sha256="b" * 64)])


def test_an_interval_is_by_case() -> None:
    """Repeating the same answers makes no interval narrower; where they differ, cases are drawn before samples."""
    marks = [1.0, 1.0, 0.0, 1.0]
    once, again = by_case([marks]), by_case([marks] * 5)
    assert once is not None
    assert once == again
    assert (once.low, once.high) == wilson(3, 4)
    differing = by_case([marks, [1.0, 0.0, 0.0, 1.0]])
    assert differing is not None
    assert differing.method == "bootstrap/1"
    assert differing.low < 0.625 < differing.high
    assert by_case([]) is by_case([[1.0]]) is by_case([[1.0, 0.0], [1.0]]) is None


def test_conditions_follow_from_lock_and_samples(tmp_path: Path) -> None:
    """Each of them; samples of two harnesses have none in common, and other measures have none."""
    lock = suite(tmp_path, measure("reasoning.high/1")).lock
    parameters = resolved("reasoning.high/1", {"temperature": 0.7})
    got = capability_conditions(
        lock, "reasoning.high/1", parameters, [sample("reasoning.high/1", index) for index in (0, 1)]
    )
    assert got is not None
    assert (got.effort, got.call_mode, got.temperature, got.max_tokens) == ("high", "native", 0.7, 16384)
    assert got.logs == (f"{0:064x}", f"{1:064x}")
    assert got.chat_template_sha256 == chat_template_sha256(lock)
    assert capability_conditions(lock, "chat.smoke/1", {}, [sample("reasoning/1")]) is None
    assert capability_conditions(lock, "reasoning.high/1", parameters, []) is None
    with pytest.raises(MixedKindsError, match="differ in harness"):
        capability_conditions(
            lock, "reasoning/1", parameters, [sample("reasoning/1"), sample("reasoning/1", 1, harness="inspect_ai 2")]
        )


def test_the_chat_template_has_a_digest_of_what_carries_and_chooses_it(tmp_path: Path) -> None:
    """Another template file or another argument is another digest; another weight file is not."""
    lock = suite(tmp_path, measure("tools/1")).lock

    def with_file(name: str, sha256: str) -> str | None:
        assert lock.target.files != "unknown"
        files = (
            *(each for each in lock.target.files if each.path != name),
            CheckpointFile(path=name, sha256=sha256, size=1),
        )
        target = lock.target.model_copy(update={"files": files})
        return chat_template_sha256(lock.model_copy(update={"checkpoints": (target,)}))

    digest = chat_template_sha256(lock)
    assert with_file("other.safetensors", DIGEST) == digest
    assert len({digest, with_file("chat_template.jinja", DIGEST), with_file("tokenizer_config.json", DIGEST)}) == 3
    chosen = lock.launch.model_copy(update={"arguments": {**lock.launch.arguments, "chat-template": "chatml"}})
    assert chat_template_sha256(lock.model_copy(update={"launch": chosen})) != digest
    unknown = lock.target.model_copy(update={"files": "unknown"})
    assert chat_template_sha256(lock.model_copy(update={"checkpoints": (unknown,)})) is None


def test_a_suite_is_chosen_by_name() -> None:
    """The lock's own name and none mean all; `tools` and `reasoning` mean theirs, and what is not there is an error."""
    names = ("tools/1", "tools.prompted.low/1", "reasoning/1", "chat.smoke/1")
    asked = Qualification(suite="default", boots=2, measures=tuple(measure(name) for name in names))
    assert selected(asked, None) is selected(asked, "default") is None
    assert selected(asked, "tools") == frozenset({"tools/1", "tools.prompted.low/1"})
    assert selected(asked, "reasoning") == frozenset({"reasoning/1"})
    with pytest.raises(UsageError, match="no suite 'speed'"):
        selected(asked, "speed")
    only_tools = asked.model_copy(update={"measures": asked.measures[:1]})
    with pytest.raises(UsageError, match="no measure of the suite 'reasoning'"):
        selected(only_tools, "reasoning")


def test_without_the_harness_a_suite_cannot_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names the extra that installs it."""
    monkeypatch.setattr("reproducer.capability.harness.available", lambda: False)
    with pytest.raises(UntoldError, match=r"penny-reproducer\[evals\]"):
        METHODS["tools/1"].observe(Target("http://127.0.0.1:1"), resolved("tools/1", {}), "n", None)
