"""The harness at work: inspect_ai walks the cases against a server. Runs as a process of its own.

`python -m reproducer.capability.driver` reads `order.json` in the working folder, writes `outcome.json` and the log of
inspect_ai there, and touches nothing else: home, caches and settings lie in that folder too (`harness.py` sees to it).
"""

import resource
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspect_ai import Task, eval  # noqa: A004  that is its name there
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import solver
from inspect_ai.tool import ToolInfo, ToolParams
from openai import DefaultAsyncHttpxClient

from reproducer.capability import conversation, reasoning_marks, tool_marks
from reproducer.capability.harness_digest import harness_digest, harness_name
from reproducer.capability.heard import Answer, failed, heard
from reproducer.capability.order import LOGS, ORDER, OUTCOME, HarnessOrder, HarnessOutcome
from reproducer.capability.reasoning_cases import REASONING_CASES
from reproducer.capability.tool_cases import TOOL_CASES
from reproducer.documents.transcripts import Transcript, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reproducer.capability.world import Tool

LARGEST_FILE = 1 << 28
_SYSTEM = "Think about the question and then answer it."
_ANSWERS: ContextVar[list[Answer]] = ContextVar("answers")
_UNREACHABLE = ("APIConnectionError", "ConnectError", "ConnectionError")


async def _listen(response: Any) -> None:
    """Keep an answer as its bytes came, before anything is made of it."""
    answers = _ANSWERS.get(None)
    if answers is not None:
        await response.aread()
        answers.append(Answer(response.status_code, response.content))


class _Asking:
    """One case that is open: the messages so far, and what the model said."""

    def __init__(self, order: HarnessOrder, lost: list[str]) -> None:
        self.order, self.lost = order, lost
        self.messages: list[Any] = []
        self.turns: list[Turn] = []

    async def asked(self, tools: "Sequence[Tool]" = ()) -> Turn:
        """Ask once, and read the answer from what the server sent and not from what became of it."""
        offered = [
            ToolInfo(name=tool.name, description=tool.about, parameters=ToolParams.model_validate(tool.schema()))
            for tool in tools
        ]
        output, answers = None, list[Answer]()
        _ANSWERS.set(answers)
        failure = "no answer came"
        try:
            output = await get_model().generate(self.messages, tools=offered)
        except Exception as error:  # noqa: BLE001  whatever a server can make a client raise
            failure = f"{type(error).__name__}: {error}"
            if any(name in f"{type(error).__name__} {error!r} {error.__cause__!r}" for name in _UNREACHABLE):
                self.lost.append(type(error).__name__)
        turn = heard(answers[-1]) if answers else failed(failure)
        self.messages.append(_said(output, turn))
        self.turns.append(turn)
        return turn

    def told(self, said: "Sequence[conversation.Said]") -> None:
        """Add what the model is told next; the result of a call carries the id that the server gave the call."""
        calls = (self.messages[-1].tool_calls or []) if self.turns else []
        for each in said:
            if each.role == "system":
                self.messages.append(ChatMessageSystem(content=each.text))
            elif each.role == "user":
                self.messages.append(ChatMessageUser(content=each.text))
            elif each.call < len(calls):
                call = calls[each.call]
                self.messages.append(ChatMessageTool(content=each.text, tool_call_id=call.id, function=call.function))


def _said(output: Any, turn: Turn) -> Any:
    """The message of the model as it stands in what is sent next; in plain words where it cannot be sent back."""
    try:
        output.message.model_dump_json().encode()
    except (AttributeError, IndexError, ValueError):
        return ChatMessageAssistant(content=turn.output_text)
    return output.message


async def _tools(name: str, asking: _Asking) -> str:
    """Walk one case of `tools`; the text is for the log of inspect_ai."""
    case, mode = TOOL_CASES[name], asking.order.call_mode
    scene = conversation.opening(case, mode)
    while not scene.over:
        asking.told(scene.told)
        tools = conversation.offered(case, scene.state) if mode == "native" else ()
        scene = conversation.after(case, mode, scene, await asking.asked(tools))
    return tool_marks.marked(case, mode, Transcript(case=name, turns=tuple(asking.turns))).automatic_pass


async def _reasoning(name: str, asking: _Asking) -> str:
    """Walk one case of `reasoning`."""
    case = REASONING_CASES[name]
    asking.told((conversation.Said("system", _SYSTEM),))
    while not reasoning_marks.over(case, asking.turns):
        asking.told((conversation.Said("user", case.says[len(asking.turns)]),))
        await asking.asked()
    return reasoning_marks.marked(case, Transcript(case=name, turns=tuple(asking.turns))).correct


def run(order: HarnessOrder, folder: Path) -> HarnessOutcome:
    """Run a suite and give every transcript."""
    turns: dict[str, tuple[Turn, ...]] = {}
    lost: list[str] = []
    walk = {"tools": _tools, "reasoning": _reasoning}[order.suite]

    def walking() -> "Callable[..., Any]":
        async def solve(state: Any, generate: Any) -> Any:
            del generate
            asking = _Asking(order, lost)
            name = str(state.sample_id)
            missed = await walk(name, asking)
            turns[name] = tuple(asking.turns)
            state.messages = asking.messages
            state.output = ModelOutput.from_content(order.model, missed or "passed")
            return state

        return solve

    def marking() -> "Callable[..., Any]":
        async def mark(state: Any, target: Any) -> Any:
            del target
            return Score(value=state.output.completion == "passed", explanation=state.output.completion)

        return mark

    walker = solver(name="penny_walk")(walking)
    marker = scorer(metrics=[mean()], name="penny_mark")(marking)
    dataset = MemoryDataset([Sample(input=name, id=name) for name in order.cases], name=f"penny-{order.suite}")
    model = get_model(
        f"openai-api/penny/{order.model}",
        base_url=order.url,
        api_key="none",
        config=_config(order),
        max_retries=0,
        http_client=DefaultAsyncHttpxClient(timeout=order.deadline_s, event_hooks={"response": [_listen]}),
        strict_tools=False,
        memoize=False,
    )
    (log,) = eval(
        Task(dataset=dataset, solver=walker(), scorer=marker()),
        model=model,
        log_dir=str(folder / LOGS),
        log_format="eval",
        log_model_api=True,
        log_realtime=False,
        display="none",
        max_samples=order.concurrency,
        fail_on_error=False,
        ctl_server=False,
        score=True,
    )
    del log
    logs = sorted((folder / LOGS).glob("*.eval"))
    return HarnessOutcome(
        transcripts=tuple(Transcript(case=name, turns=turns.get(name, ())) for name in order.cases),
        log=logs[-1].name,
        harness=harness_name(),
        harness_sha256=harness_digest(),
        unreachable=bool(lost),
    )


def _config(order: HarnessOrder) -> GenerateConfig:
    """Sampling as declared; nothing is tried again and nothing is answered from a cache."""
    return GenerateConfig(
        temperature=order.temperature,
        top_p=order.top_p,
        max_tokens=order.max_tokens,
        seed=order.seed,
        reasoning_effort=None if order.effort == "default" else order.effort,
        max_retries=0,
        max_connections=order.concurrency,
        cache=False,
    )


def main() -> None:
    """Read the order in the working folder and write the outcome there."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    folder = Path.cwd()
    order = HarnessOrder.from_json((folder / ORDER).read_bytes(), where=ORDER)
    outcome = run(order, folder)
    (folder / OUTCOME).write_bytes(outcome.canonical())


if __name__ == "__main__":
    main()
