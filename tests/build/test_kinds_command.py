"""A command: what it is given, what it may leave, and what is refused."""

import os
from pathlib import Path

import pytest

from reproducer.errors import DriftError, InvalidDocumentError, NotCheckedError, RebuildError, UnsafeInputError
from tests.build.bench import LIBRARY, Bench, names

MAKEFILE = """\
CXXFLAGS += -g -shared -fPIC
all: $(OUT)/libnative.so
$(OUT)/libnative.so: native.cpp
\t$(CXX) $(CXXFLAGS) -o $@ native.cpp
"""
MAKE = ("make", "-j{jobs}", "OUT={output}")
SCRIPT = "#!/bin/sh\nset -e\n"


def script(bench: Bench, body: str, name: str = "work") -> list[str]:
    """What a script of the sources leaves, with `$1` its output folder."""
    return names(bench.build(bench.component("command", {"run": SCRIPT + body}, arguments=RUN), name).outputs)


RUN = ("sh", "{source}/run", "{output}", "{jobs}")


def test_make(bench: Bench) -> None:
    """Make builds a library with the compiler the component names; two folders give the same bytes."""
    component = bench.component(
        "command", {"Makefile": MAKEFILE, "native.cpp": LIBRARY}, arguments=MAKE, variables={"CXX": "g++"}
    )
    first, second = bench.twice(component)
    assert names(first) == ["libnative.so"]
    assert first == second
    tools = bench.workshop.tools(component, ())
    assert tools["make"].startswith("GNU Make ")
    assert tools["c++"].startswith("g++ ")


def test_placeholders(bench: Bench) -> None:
    """Source, output and jobs are filled in, and the component's variables are what the command sees."""
    body = (
        'echo "$2 $FLAVOUR $SOURCE_DATE_EPOCH" > "$1/said"; test -f "$(dirname "$0")/run"; mkdir "$1/a"; : > "$1/a/b"'
    )
    component = bench.component(
        "command", {"run": SCRIPT + body}, arguments=RUN, jobs=3, variables={"FLAVOUR": "plain"}
    )
    built = bench.build(component)
    assert names(built.outputs) == ["a/b", "said"]
    assert (built.folder / "said").read_text() == "3 plain 1704067200\n"
    with pytest.raises(InvalidDocumentError, match=r"name \{input\}"):
        bench.build(component.model_copy(update={"arguments": ("sh", "{input}")}), "b")


def test_no_shell(bench: Bench) -> None:
    """What would mean something to a shell is an argument as it stands."""
    body = 'printf "%s" "$3" > "$1/said"'
    argument = "$(touch /tmp/x); `id` > y && {jobs} * ~"
    component = bench.component("command", {"run": SCRIPT + body}, arguments=(*RUN, argument), jobs=2)
    assert (bench.build(component).folder / "said").read_text() == argument.replace("{jobs}", "2")


def test_program_of_the_sources(bench: Bench) -> None:
    """A program may be one of the sources, which are pinned: no version of it is recorded."""
    component = bench.component(
        "command", {"own": "#!/bin/sh\ntouch $1/made\n"}, arguments=("{source}/own", "{output}")
    )
    with pytest.raises(RebuildError, match="Permission denied"):
        bench.build(component)
    # a local source has no modes, so its programs are started by an interpreter
    made = bench.build(component.model_copy(update={"arguments": ("sh", "{source}/own", "{output}")}), "b")
    assert names(made.outputs) == ["made"]
    for program in ("/bin/sh", "../sh", "./sh"):
        with pytest.raises(InvalidDocumentError, match="neither a name nor a file of its sources"):
            bench.build(component.model_copy(update={"arguments": (program,)}), f"c{len(program)}")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (":", "gave nothing"),
        ("exit 3", "failed with exit status 3"),
        ("kill -9 $$", "failed with signal 9"),
        ("exit 255", "failed with exit status 255"),
    ],
)
def test_failures(bench: Bench, body: str, told: str) -> None:
    """A command that fails or leaves nothing is a RebuildError that says so."""
    with pytest.raises(RebuildError, match=told):
        script(bench, body)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('mkfifo "$1/pipe"', "neither file, folder nor link"),
        ('ln -s /etc/hostname "$1/name"', "gave a link: 'name'"),
        (': > "$1/a"; ln -s a "$1/b"', "gave a link: 'b'"),
        ('mkdir "$1/d"; : > "$1/d/x"; ln -s d "$1/e"', "gave a link: 'e'"),
        (': > "$1/a\tb"', "no lock can carry.*cannot stand in a document"),
        (': > "$1/-x"', "no lock can carry: the name '-x'"),
        ('rmdir "$1"; ln -s ../src "$1"', "gave a link in place of its output folder"),
    ],
)
def test_what_is_no_file(bench: Bench, body: str, told: str) -> None:
    """Links, pipes and names that no document carries are refused with their names."""
    with pytest.raises(UnsafeInputError, match=told):
        script(bench, body)


def test_nothing_outside_of_the_work_folder(bench: Bench, tmp_path: Path) -> None:
    """A command cannot write beside its work folder, and has no network."""
    if (
        bench.build(bench.component("command", {"run": SCRIPT + ': > "$1/a"'}, arguments=RUN)).isolation.network
        != "none"
    ):
        pytest.skip("this kernel allows no namespaces")
    target = tmp_path / "beside"
    assert script(bench, f': > "$1/a"; ! (: > {target}) 2>/dev/null', "b") == ["a"]
    assert not target.exists()
    python = "import socket; socket.create_connection(('192.0.2.1', 80), 3)"
    component = bench.component("command", {"x.py": python}, arguments=("python3", "{source}/x.py"))
    with pytest.raises(RebuildError, match="unreachable"):
        bench.build(component, "c")


def test_other_programs_are_drift(bench: Bench) -> None:
    """A lock's tools hold: another version, one missing or one more is an input that drifted, before anything runs."""
    component = bench.component("command", {"run": SCRIPT + ': > "$1/a"'}, arguments=RUN)
    tools = bench.workshop.tools(component, ())
    same = component.model_copy(update={"tools": tools})
    assert names(bench.build(same).outputs) == ["a"]
    for name, other, told in (
        ("b", {**tools, "c++": "c++ 1.0"}, r"c\+\+: expected 'c\+\+ 1\.0', got 'c\+\+ .*`penny lock --upgrade native`"),
        ("c", {**tools, "tcc": "1"}, "tcc: expected '1', got 'none'"),
        ("d", {role: said for role, said in tools.items() if role != "cc"}, "cc: expected 'none', got 'cc "),
    ):
        with pytest.raises(DriftError, match=told):
            bench.build(component.model_copy(update={"tools": other}), name)
        assert not (bench.folder / name / "out" / "a").exists()


def test_missing_programs_are_named(bench: Bench) -> None:
    """A program that is nowhere is named, with what to do."""
    component = bench.component("command", {"x": ""}, arguments=("no-such-program-anywhere",))
    with pytest.raises(NotCheckedError, match=r"cannot be built without 'no-such-program-anywhere'.*build environment"):
        bench.build(component)


def test_user_places_come_last(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that only the user's PATH has is found there; one of the machine's standard places counts first."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("own-tool", "make"):
        (folder / name).write_text(f"#!/bin/sh\necho mine {name}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    component = bench.component("command", {"x": ""}, arguments=("own-tool",))
    assert bench.workshop.tools(component, ())["own-tool"] == "mine own-tool"
    component = component.model_copy(update={"arguments": ("make",)})
    assert bench.workshop.tools(component, ())["make"].startswith("GNU Make")
