"""Levels of files against a lock, from their digests alone."""

import hashlib

from reproducer.build.file_levels import compare_file, compare_files, with_second
from reproducer.documents.lock import Component, FileOutput
from reproducer.documents.sources import LocalSource


def digest(text: str) -> str:
    """A digest that stands for something."""
    return hashlib.sha256(text.encode()).hexdigest()


def file(name: str = "k.so", content: str = "c", code: str | None = "d", data: str = "b") -> FileOutput:
    """A file with these contents."""
    return FileOutput(
        filename=name,
        sha256=digest(data),
        size=len(data),
        content_sha256=digest(content),
        device_code_sha256=None if code is None else digest(code),
        architectures=None if code is None else ("sm_90",),
    )


def component(*outputs: FileOutput) -> Component:
    """A component that expects these."""
    return Component(
        name="k", kind="command", source=LocalSource(path="k", files=()), arguments=("make",), outputs=outputs
    )


def test_each_level() -> None:
    """Bytes, content, device code, inputs: the first that holds, with a reason for every lower one."""
    expected = file()
    assert compare_file(expected, file()) == ("bytes-identical", ())
    for got, level, reason in (
        (file(data="x"), "content-identical", "same content"),
        (file(data="x", content="x"), "device-code-identical", "same device code"),
        (file(data="x", content="x", code="x"), "inputs-identical", ""),
        (file(data="x", content="x", code=None), "inputs-identical", "other architectures"),
    ):
        reached, (difference,) = compare_file(expected, got)
        assert (reached, difference.where) == (level, "k.so")
        assert reason in difference.reason
    plain = file(code=None)
    assert compare_file(plain, file(code=None, data="x", content="x"))[0] == "inputs-identical"


def test_missing_and_extra_files() -> None:
    """A missing file takes the level to `none`, an extra one to `inputs-identical`; both are named."""
    level, outputs = compare_files(component(file("a"), file("b")), [file("a")])
    assert (level, outputs[0].level) == ("none", "inputs-identical")
    assert [(each.where, each.reason) for each in outputs[0].differences] == [("b", "the build did not give it")]
    level, outputs = compare_files(component(file("a")), [file("a"), file("b")])
    assert (level, [each.level for each in outputs]) == ("inputs-identical", ["bytes-identical", "inputs-identical"])
    assert outputs[1].differences[0].reason == "the lock expects no such file"


def test_second_build() -> None:
    """A second build lowers the level to what the two builds reach, and says so."""
    first = [file("a"), file("b")]
    _, outputs = compare_files(component(*first), first)
    assert with_second(outputs, first, first) == outputs
    found = with_second(outputs, first, [file("a", data="x"), file("c")])
    assert [each.level for each in found] == ["inputs-identical", "none"]
    assert [each.where for each in found[0].differences] == ["second build: a", "second build: c"]
    assert found[1].differences[0].where == "second build: b"
    assert [each.level for each in with_second(outputs, first, [file("a", data="x"), file("b")])] == [
        "content-identical",
        "bytes-identical",
    ]
