"""The conditions of a score, put together from the lock, the parameters and what the samples say of the harness."""

from collections.abc import Mapping, Sequence

from reproducer.canonical import content_digest
from reproducer.documents.lock import Lock, Scalar
from reproducer.documents.measured import Sample
from reproducer.documents.transcripts import CapabilityConditions
from reproducer.measures.quantities import MixedKindsError
from reproducer.measures.settings import SETTINGS

FACTS = ("harness", "harness_sha256", "cases_sha256", "log_sha256")  # what a sample says of the harness
_CARRIERS = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")
_ARGUMENT = "chat-template"


def capability_conditions(
    lock: Lock, measure: str, parameters: Mapping[str, Scalar], samples: Sequence[Sample]
) -> CapabilityConditions | None:
    """What the scores of a measure depend on; None of a measure that gives none, or of which no sample was taken.

    Raises:
        MixedKindsError: the samples were taken under several harnesses.
    """
    setting = SETTINGS.get(measure)
    taken = [sample for sample in samples if all(isinstance(sample.facts.get(name), str) for name in FACTS)]
    if setting is None or not taken:
        return None
    said = {name: sorted({str(sample.facts[name]) for sample in taken}) for name in FACTS if name != "log_sha256"}
    differing = [name for name, values in said.items() if len(values) != 1]
    if differing:
        raise MixedKindsError(
            f"samples of {measure} differ in {differing[0]}",
            why="the harness was changed while the suite was not finished",
            todo="run again from the beginning with one harness",
        )
    return CapabilityConditions.model_validate(
        {
            **{name: parameters[name] for name in ("temperature", "top_p", "max_tokens", "seed", "concurrency")},
            "effort": setting.effort,
            "call_mode": setting.call_mode,
            "chat_template_sha256": chat_template_sha256(lock),
            **{name: values[0] for name, values in said.items()},
            "logs": tuple(str(sample.facts["log_sha256"]) for sample in taken),
        }
    )


def chat_template_sha256(lock: Lock) -> str | None:
    """Digest over everything in a lock that may carry the chat template, or choose it; None where files are unknown."""
    files = lock.target.files
    if files == "unknown":
        return None
    carriers = {each.path: each.sha256 for each in files if each.path in _CARRIERS}
    argument = lock.launch.arguments.get(_ARGUMENT)
    given = {name: each.sha256 for name, each in (lock.launch.files or {}).items()} if argument is not None else {}
    chosen = list(argument) if isinstance(argument, tuple) else argument
    return content_digest({"checkpoint": carriers, "argument": chosen, "files": given})
