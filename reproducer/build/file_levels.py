"""The level that files reach against what the lock expects, and what differs, file by file."""

from collections.abc import Sequence

from reproducer.build.architectures import contradiction
from reproducer.documents.built import BuiltOutput, Difference, Level, lowest
from reproducer.documents.lock import Component, FileOutput

_CONTENT = "same content; times, build ids, debug information or build paths differ"
_DEVICE = "same device code; code for the host differs"


def compare_files(component: Component, got: Sequence[FileOutput]) -> tuple[Level, tuple[BuiltOutput, ...]]:
    """Every file that came out against the lock's.

    Args:
        component: what was built, with the outputs that the lock expects; none of them stands for nothing known.
        got: what came out; at least one.

    Returns:
        The lowest level, `none` where an expected file is missing, and every file with its own; what is missing or
        contradicts the component as a whole stands at the first.
    """
    expected = {each.filename: each for each in component.outputs if isinstance(each, FileOutput)}
    outputs = [_built(component, each, *compare_file(expected.get(each.filename), each)) for each in got]
    level = lowest(each.level for each in outputs)
    missing = sorted(expected.keys() - {each.filename for each in got})
    whole = [
        Difference(where=name, expected=_said(expected[name]), reason="the build did not give it") for name in missing
    ]
    if said := contradiction(component, [each.architectures for each in got]):
        asked = ", ".join(component.architectures or ())
        whole.append(Difference(where="device code", expected=asked, reason=f"the outputs hold {said}"))
        level = lowest((level, "inputs-identical"))
    first = outputs[0]
    update: dict[str, object] = {"differences": (*whole, *first.differences)}
    if whole:
        update["level"] = lowest((first.level, "inputs-identical"))
    outputs[0] = first.model_copy(update=update)
    return ("none" if missing else level), tuple(outputs)


def compare_file(expected: FileOutput | None, got: FileOutput | BuiltOutput) -> tuple[Level, tuple[Difference, ...]]:
    """The level of one file, and why it is no higher."""
    where = got.filename
    if expected is None:
        return "inputs-identical", (Difference(where=where, got=_said(got), reason="the lock expects no such file"),)
    if expected.architectures != got.architectures:
        before, after = (_listed(each.architectures) for each in (expected, got))
        return "inputs-identical", (
            Difference(where=where, expected=before, got=after, reason="device code for other architectures"),
        )
    level = file_level(expected, got)
    if level == "bytes-identical":
        return level, ()
    reasons = {"content-identical": _CONTENT, "device-code-identical": _DEVICE}
    return level, (Difference(where=where, expected=_said(expected), got=_said(got), reason=reasons.get(level, "")),)


def file_level(expected: FileOutput, got: FileOutput | BuiltOutput) -> Level:
    """The level that the digests of two files show."""
    if (expected.sha256, expected.size) == (got.sha256, got.size):
        return "bytes-identical"
    if expected.content_sha256 == got.content_sha256:
        return "content-identical"
    code = expected.device_code_sha256
    return "device-code-identical" if code is not None and code == got.device_code_sha256 else "inputs-identical"


def with_second(
    outputs: Sequence[BuiltOutput], first: Sequence[FileOutput], second: Sequence[FileOutput]
) -> tuple[BuiltOutput, ...]:
    """Outputs after a second build: no level is higher than the one between the two builds."""
    again = {each.filename: each for each in second}
    before = {each.filename: each for each in first}
    result = []
    for output in outputs:
        other = again.get(output.filename)
        if other is None:
            level: Level = "none"
            told: tuple[Difference, ...] = (Difference(where=output.filename, reason="it did not give it"),)
        else:
            level, told = compare_file(before[output.filename], other)
        named = tuple(
            each.model_copy(update={"where": f"second build: {each.where}", "reason": each.reason or "not the same"})
            for each in told
        )
        update = {"level": lowest((output.level, level)), "differences": (*output.differences, *named)}
        result.append(output.model_copy(update=update))
    extra = sorted(again.keys() - before.keys())
    if extra:
        more = tuple(Difference(where=f"second build: {each}", reason="the first did not give it") for each in extra)
        head = result[0]
        update = {"level": lowest((head.level, "inputs-identical")), "differences": (*head.differences, *more)}
        result[0] = head.model_copy(update=update)
    return tuple(result)


def _built(component: Component, got: FileOutput, level: Level, differences: tuple[Difference, ...]) -> BuiltOutput:
    return BuiltOutput(component=component.name, level=level, differences=differences, **got.model_dump())


def _said(output: FileOutput | BuiltOutput) -> str:
    return f"sha256 {output.sha256}, {output.size} bytes"


def _listed(architectures: tuple[str, ...] | None) -> str:
    return "no device code" if architectures is None else ", ".join(architectures) or "none"
