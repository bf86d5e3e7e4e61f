"""Which measures there are, what each one takes and what it gives. `docs/measures.md` says the same in sentences."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from reproducer.measures.settings import CASES, MARKS, SETTINGS, Setting

if TYPE_CHECKING:  # whoever reads a lock needs no receipts
    from reproducer.documents.measured import Unit, ValueKind
    from reproducer.engines.interface import Need

Part = Literal["whole", "write", "flip", "restore"]
BOOT_FACTS: Mapping[Part, str] = MappingProxyType({"write": "written_boot", "flip": "flipped_boot"})  # of a sample


@dataclass(frozen=True)
class Parameter:
    """One number that a measure takes; `whole` where only an integer makes sense."""

    name: str
    default: float
    least: float
    most: float
    whole: bool = True


@dataclass(frozen=True)
class Value:
    """One derived value that a measure gives."""

    name: str
    kind: "ValueKind"
    unit: "Unit"


@dataclass(frozen=True)
class Stage:
    """The part of a sample that lies in one boot.

    Attributes:
        alters: the effective value in which this boot's launch differs from the lock, to what the parameter of the same
            name says; empty where the launch is the lock's.
    """

    part: Part
    alters: str = ""


_WHOLE = (Stage("whole"),)
_ACROSS = (Stage("write"), Stage("restore"))


@dataclass(frozen=True)
class Definition:
    """One measure in one version.

    Attributes:
        cache_state: in which state the cache is when the clock starts; stands in every receipt.
        stages: the boots that a sample spans, one after the other.
        needs: what the server must give; without it the measure is skipped.
        needs_reference: whether it compares with the lock's reference.
        takes_reference: whether it compares with the lock's reference where there is one.
        reuses: whether pages of its own prompts are to be found again, which takes prompts longer than a page.
    """

    id: str
    parameters: tuple[Parameter, ...]
    values: tuple[Value, ...]
    cache_state: str
    stages: tuple[Stage, ...] = _WHOLE
    needs: "tuple[Need, ...]" = ()
    needs_reference: bool = False
    takes_reference: bool = False
    reuses: bool = False

    @property
    def spans(self) -> int:
        """How many boots of the lock itself a sample spans."""
        return sum(not stage.alters for stage in self.stages)


COUNTED = (Value("valid_samples", "count", "count"), Value("invalid_samples", "count", "count"))
_UNIQUE = "no page of the prompt in any tier: the prompt is unique to the sample"


def _tokens(name: str, default: int, least: int = 1, most: int = 1_000_000) -> Parameter:
    return Parameter(name, default, least, most)


_ALL = (
    Definition(
        "decode.single/1",
        (_tokens("prompt_tokens", 64), _tokens("output_tokens", 64, least=2)),
        (Value("decode_rate", "completed-request rate", "tok/s"), Value("ttft_s", "duration", "s")),
        _UNIQUE,
        needs=("cached tokens",),
    ),
    Definition(
        "decode.concurrent/1",
        (
            Parameter("concurrency", 4, 2, 256),
            _tokens("prompt_tokens", 64),
            _tokens("output_tokens", 48, least=2),
        ),
        (
            Value("request_rate", "completed-request rate", "tok/s"),
            Value("aggregate_rate", "aggregate makespan rate", "tok/s"),
            Value("ttft_worst_s", "duration", "s"),
            Value("overlap", "fact", "ratio"),
        ),
        _UNIQUE,
        needs=("cached tokens",),
    ),
    Definition(
        "prefill.cold/1",
        (_tokens("prompt_tokens", 1500),),
        (Value("prefill_rate", "time-to-first-token prefill rate", "tok/s"), Value("ttft_s", "duration", "s")),
        _UNIQUE + ", and the server counts no cached token",
        needs=("cached tokens",),
    ),
    Definition(
        "prefix.reuse/1",
        (_tokens("prompt_tokens", 800),),
        (
            Value("reused_tokens", "count", "tokens"),
            Value("reused_share", "fact", "ratio"),
            Value("ttft_cold_s", "duration", "s"),
            Value("ttft_warm_s", "duration", "s"),
        ),
        "first request cold, second with the pages that the first one left",
        needs=("cached tokens",),
        reuses=True,
    ),
    Definition(
        "restore.restart/1",
        (_tokens("prompt_tokens", 800), _tokens("output_tokens", 16)),
        (
            Value("storage_tokens", "count", "tokens"),
            Value("storage_share", "fact", "ratio"),
            Value("restored_rate", "restored-prefix rate", "tok/s"),
            Value("restore_s", "duration", "s"),
            Value("cold_s", "duration", "s"),
            Value("same_output", "agreement", "bool"),
        ),
        "written cold in one boot; in the next one the pages lie in storage only",
        stages=_ACROSS,
        needs=("storage tokens", "persistent tier"),
        reuses=True,
    ),
    Definition(
        "restore.concurrent/1",
        (Parameter("concurrency", 4, 2, 256), _tokens("prompt_tokens", 800), _tokens("output_tokens", 16)),
        (
            Value("storage_tokens", "count", "tokens"),
            Value("storage_tokens_least", "count", "tokens"),
            Value("restored_rate", "restored-prefix rate", "tok/s"),
            Value("aggregate_restored_rate", "aggregate restored-prefix rate", "tok/s"),
            Value("restore_median_s", "duration", "s"),
            Value("restore_worst_s", "duration", "s"),
            Value("cold_worst_s", "duration", "s"),
            Value("agreement", "agreement", "ratio"),
            Value("same_outputs", "agreement", "bool"),
        ),
        "written cold in one boot; in the next one the pages lie in storage only",
        stages=_ACROSS,
        needs=("storage tokens", "persistent tier"),
        reuses=True,
    ),
    Definition(
        "namespace.flip/1",
        (_tokens("prompt_tokens", 800), _tokens("output_tokens", 16), Parameter("page_size", 32, 1, 4096)),
        (
            Value("hit_tokens_before", "count", "tokens"),
            Value("missed_tokens", "count", "tokens"),
            Value("hit_tokens_after", "count", "tokens"),
            Value("hits_again", "fact", "bool"),
            Value("restore_s", "duration", "s"),
            Value("cold_s", "duration", "s"),
            Value("agreement_between", "agreement", "ratio"),
            Value("same_output", "agreement", "bool"),
        ),
        "written cold in one boot; the next has another page size; in the one after that the pages lie in storage only",
        stages=(Stage("write"), Stage("flip", alters="page_size"), Stage("restore")),
        needs=("storage tokens", "persistent tier", "other page size"),
        reuses=True,
    ),
    Definition(
        "determinism/1",
        (
            Parameter("concurrency", 4, 2, 256),
            _tokens("prompt_tokens", 64, least=2),
            _tokens("output_tokens", 48, least=2),
        ),
        (
            *(
                value
                for pair in ("alone_cached", "cached_batch", "alone_batch")
                for value in (
                    Value(f"agreement_{pair}", "agreement", "ratio"),
                    Value(f"first_difference_{pair}", "count", "tokens"),
                )
            ),
            Value("identical", "agreement", "bool"),
            Value("overlap", "fact", "ratio"),
        ),
        "cold for the first requests, with the pages that those left for all others",
        needs=("cached tokens",),
        reuses=True,
    ),
    Definition(
        "speculation/1",
        (_tokens("output_tokens", 48, least=2),),
        (
            Value("accept_length", "fact", "tokens"),
            Value("accept_rate", "fact", "ratio"),
            Value("verify_steps", "count", "count"),
            Value("accepted_tokens", "count", "tokens"),
            Value("drafted_tokens", "count", "tokens"),
            Value("scheduled_tokens", "count", "tokens"),
            Value("ran_as_said", "fact", "bool"),
            Value("server_accept_length", "fact", "tokens"),
            Value("agreement", "agreement", "ratio"),
            Value("same_output", "agreement", "bool"),
        ),
        "whatever earlier samples left of the fixed prompts; requests one at a time",
        needs=("speculation",),
        takes_reference=True,
    ),
    Definition(
        "soak/1",
        (
            Parameter("minutes", 10, 0.01, 1440, whole=False),
            Parameter("long", 1, 1, 64),
            Parameter("short", 3, 1, 64),
            _tokens("long_prompt_tokens", 1500, least=16),
            _tokens("long_output_tokens", 64),
            _tokens("short_prompt_tokens", 64, least=16),
            _tokens("short_output_tokens", 32),
        ),
        (
            Value("requests", "count", "requests"),
            Value("errors", "count", "requests"),
            Value("rate_first", "aggregate makespan rate", "tok/s"),
            Value("rate_last", "aggregate makespan rate", "tok/s"),
            Value("kept_rate", "fact", "ratio"),
            Value("request_worst_s", "duration", "s"),
            Value("resident_slope", "fact", "MiB/min"),
            Value("gpu_slope", "fact", "MiB/min"),
            Value("open_files_growth", "fact", "count"),
        ),
        "no prompt is cached: each begins with tokens of its own",
    ),
    Definition(
        "fidelity/1",
        (),
        (
            Value("agreement", "agreement", "ratio"),
            Value("agreement_worst", "agreement", "ratio"),
            Value("kl_mean", "divergence", "nats"),
            Value("kl_worst", "divergence", "nats"),
            Value("positions", "count", "count"),
        ),
        "whatever earlier samples left of the fixed prompts; requests one at a time",
        needs_reference=True,
    ),
    Definition(
        "needle.short/1",
        (
            _tokens("prompt_tokens", 1500, least=100),
            Parameter("depth", 0.5, 0.0, 1.0, whole=False),
            _tokens("output_tokens", 24),
        ),
        (Value("found", "fact", "ratio"), Value("needle_tokens", "count", "tokens")),
        "the text is unique to the sample; the chat template's first tokens may be cached",
    ),
    Definition(
        "decode.single/2",
        (_tokens("prompt_tokens", 136), _tokens("output_tokens", 1024, least=2)),
        (
            Value("decode_rate", "completed-request rate", "tok/s"),
            Value("ttft_s", "duration", "s"),
            Value("makespan_rate", "aggregate makespan rate", "tok/s"),
            Value("makespan_s", "duration", "s"),
        ),
        _UNIQUE,
        needs=("cached tokens",),
    ),
    Definition(
        "decode.concurrent/2",
        (
            Parameter("concurrency", 4, 2, 256),
            _tokens("prompt_tokens", 136),
            _tokens("output_tokens", 1024, least=2),
            Parameter("start_spread_ms", 50, 1, 10_000),
        ),
        (
            Value("request_rate", "completed-request rate", "tok/s"),
            Value("aggregate_rate", "aggregate makespan rate", "tok/s"),
            Value("ttft_worst_s", "duration", "s"),
            Value("overlap", "fact", "ratio"),
            Value("makespan_s", "duration", "s"),
            Value("start_spread_s", "duration", "s"),
        ),
        _UNIQUE,
        needs=("cached tokens",),
    ),
    Definition(
        "needle/1",
        (_tokens("prompt_tokens", 4096, least=256, most=4_000_000), _tokens("output_tokens", 64, least=2)),
        (
            Value("found", "fact", "ratio"),
            Value("found_first", "fact", "ratio"),
            Value("found_middle", "fact", "ratio"),
            Value("found_last", "fact", "ratio"),
            Value("needle_tokens", "count", "tokens"),
            Value("prefill_rate", "time-to-first-token prefill rate", "tok/s"),
            Value("ttft_s", "duration", "s"),
            Value("decode_rate", "completed-request rate", "tok/s"),
        ),
        "no page of the text in any tier: it is unique to the sample; the chat template's first tokens may be cached",
        needs=("cached tokens",),
    ),
    Definition(
        "context.admission/1",
        (Parameter("context_tokens", 0, 0, 4_000_000), Parameter("reserve", 16, 0, 1024)),
        (
            Value("context_tokens", "count", "tokens"),
            Value("admitted_tokens", "count", "tokens"),
            Value("reserved_tokens", "count", "tokens"),
            Value("refused_cleanly", "fact", "bool"),
            Value("never_truncated", "fact", "bool"),
            Value("alive", "fact", "bool"),
        ),
        _UNIQUE + "; what is refused is not computed",
    ),
    Definition(
        "chat.smoke/1",
        (_tokens("output_tokens", 32),),
        (
            Value("sensible", "fact", "bool"),
            Value("finished", "fact", "bool"),
            Value("usage_consistent", "fact", "bool"),
        ),
        "whatever earlier samples left of the fixed question",
    ),
)


def _capability(setting: Setting) -> Definition:
    """A capability suite at one effort in one call mode."""
    cases = CASES[setting.suite]
    return Definition(
        setting.id,
        (
            Parameter("cases", cases, 1, cases),
            _tokens("max_tokens", 2048 if setting.suite == "tools" else 16384, least=16),
            Parameter("temperature", 0.0, 0.0, 2.0, whole=False),
            Parameter("top_p", 1.0, 0.01, 1.0, whole=False),
            Parameter("seed", 0, 0, 2**31 - 1),
            Parameter("concurrency", 4, 1, 256),
        ),
        (
            *(Value(name, "score", "ratio") for name in MARKS[setting.suite]),
            Value("cases", "count", "count"),
            Value("output_tokens", "count", "tokens"),
        ),
        "whatever earlier samples left of the fixed cases",
    )


_CAPABILITIES = tuple(_capability(setting) for setting in SETTINGS.values())
DEFINITIONS: Mapping[str, Definition] = MappingProxyType({each.id: each for each in (*_ALL, *_CAPABILITIES)})
