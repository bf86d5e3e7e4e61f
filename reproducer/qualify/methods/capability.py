"""The capability suites as measures: cases walked by the harness, marked from the transcripts alone."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reproducer.capability import conversation, reasoning_marks, tool_marks
from reproducer.capability.conditions import FACTS
from reproducer.capability.reasoning_cases import REASONING_CASES
from reproducer.capability.suites import case_names, cases_sha256
from reproducer.capability.tool_cases import TOOL_CASES
from reproducer.documents.measured import Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.documents.transcripts import Transcript
from reproducer.measures.quantities import Count, Score
from reproducer.measures.settings import MARKS, SETTINGS, Setting
from reproducer.qualify.exchanges import UntoldError
from reproducer.qualify.methods.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.methods.rules import number, whole

if TYPE_CHECKING:
    from reproducer.qualify.target import Target

_SLOWEST = 10.0  # tokens a second: a server that is slower gives no whole answer in time


class Capability(Method):
    """One suite at one effort in one call mode. A sample is all of its cases, each once through."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.id = setting.id

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """Every case, walked by the harness; its own log is kept by digest."""
        del nonce, reference
        from reproducer.capability.harness import MISSING, available, run
        from reproducer.capability.order import HarnessOrder

        if not available():
            raise UntoldError(MISSING)
        if target.workspace is None:
            raise UntoldError("there is no folder for the harness")
        setting = self.setting
        ran = run(
            HarnessOrder(
                suite=setting.suite,
                cases=case_names(setting.suite, whole(parameters, "cases")),
                url=f"{target.url}/v1",
                model=target.model(),
                effort=setting.effort,
                call_mode=setting.call_mode,
                temperature=number(parameters, "temperature"),
                top_p=number(parameters, "top_p"),
                max_tokens=whole(parameters, "max_tokens"),
                seed=whole(parameters, "seed"),
                concurrency=whole(parameters, "concurrency"),
                deadline_s=max(target.deadline_s, whole(parameters, "max_tokens") / _SLOWEST),
            ),
            target.workspace / "harness",
        )
        target.lost = target.lost or ran.outcome.unreachable
        if target.keep is not None:
            target.keep(ran.log, ran.log_sha256)
        return Observed(
            (),
            {
                "harness": ran.outcome.harness,
                "harness_sha256": ran.outcome.harness_sha256,
                "cases_sha256": cases_sha256(setting.suite),
                "log_sha256": ran.log_sha256,
            },
            transcripts=ran.outcome.transcripts,
        )

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Other cases, a case without an answer, or one that was not walked to its end."""
        del reference
        if fault := sample.facts.get("fault"):
            yield str(fault)
        if sample.requests:
            yield "a capability suite has transcripts and no timed requests"
        if sample.facts.get("cases_sha256") != cases_sha256(self.setting.suite):
            yield "the cases are not those of this measure"
        missing = next((name for name in FACTS if not isinstance(sample.facts.get(name), str)), None)
        if missing is not None:
            yield f"the fact {missing!r} is missing"
        transcripts = sample.transcripts or ()
        wanted = case_names(self.setting.suite, whole(parameters, "cases"))
        if tuple(transcript.case for transcript in transcripts) != wanted:
            yield f"{len(transcripts)} transcripts, which are not those of the first {len(wanted)} cases"
            return
        for transcript in transcripts:
            failed = next((turn.error for turn in transcript.turns if turn.error is not None), None)
            if failed is not None:
                yield f"case {transcript.case} has no answer: {failed}"
            elif not self._walked(transcript):
                yield f"case {transcript.case} was not walked to its end, or beyond it"

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """The marks of each case in the order of the cases, 1 or 0; how many cases; what the model wrote in all."""
        del reference
        setting = self._condition(parameters, sample)
        transcripts = sample.transcripts or ()
        for transcript in transcripts:
            for name, missed in self._marks(transcript).items():
                yield name, Score(float(not missed), "ratio", setting)
        yield "cases", Count(len(transcripts), "count")
        written = sum(turn.output_tokens for transcript in transcripts for turn in transcript.turns)
        yield "output_tokens", Count(written, "tokens")

    def _marks(self, transcript: Transcript) -> dict[str, str]:
        """Why a case misses each mark."""
        if self.setting.suite == "tools":
            marks = tool_marks.marked(TOOL_CASES[transcript.case], self.setting.call_mode, transcript)
            return {name: getattr(marks, name) for name in MARKS["tools"]}
        reasoned = reasoning_marks.marked(REASONING_CASES[transcript.case], transcript)
        return {name: getattr(reasoned, name) for name in MARKS["reasoning"]}

    def _walked(self, transcript: Transcript) -> bool:
        turns = transcript.turns
        if self.setting.suite == "reasoning":
            asked = REASONING_CASES[transcript.case]
            return reasoning_marks.over(asked, turns) and not reasoning_marks.over(asked, turns[:-1])
        case, mode = TOOL_CASES[transcript.case], self.setting.call_mode
        scene = conversation.opening(case, mode)
        for place, turn in enumerate(turns, 1):
            scene = conversation.after(case, mode, scene, turn)
            if scene.over:
                return place == len(turns)
        return False

    def _condition(self, parameters: Parameters, sample: Sample) -> tuple[tuple[str, object], ...]:
        """What two scores must share to be of one kind."""
        facts = {name: sample.facts.get(name) for name in ("harness_sha256", "cases_sha256")}
        return (("measure", self.id), *sorted(parameters.items()), *sorted(facts.items()))


def capabilities() -> Iterator[Capability]:
    """A method for every setting."""
    yield from (Capability(setting) for setting in SETTINGS.values())
