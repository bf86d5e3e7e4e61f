"""Shell scripts of real shapes: read without running where that is enough, recorded apart from the host where not."""

import functools
import os
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from reproducer.errors import PennyError, UsageError
from reproducer.importing import recording
from reproducer.importing.launch import of_file
from tests.importing import launches

DATA = Path(__file__).parent / "data"
PUBLISHED = Path("/work/shared/data/published-qwen38-dflash2.toml")
SERVE = 'python3 -m sglang.launch_server --model-path org/m "$@"'

# What stands in the script, and what the server is given beside the model.
READ = {
    "assignments": (
        "A=2\nB=${C:-fp8}\nsglang serve --model-path org/m --tp $A --dtype ${B}\n",
        {"tp": 2, "dtype": "fp8"},
    ),
    "continued": ("sglang serve \\\n  --model-path org/m \\\n  --tp 2\n", {"tp": 2}),
    "array": (
        'ARGS=(--model-path org/m # a comment\n --tp 2)\nARGS+=(--page-size 64)\nexec sglang serve "${ARGS[@]}"\n',
        {"tp": 2, "page-size": 64},
    ),
    "unquoted words": ('O="--tp 2   --page-size 64"\nsglang serve --model-path org/m $O', {"tp": 2, "page-size": 64}),
    "quotes": (
        """sglang serve --model-path 'org/m' --tool-call-parser "a b"'c'\\ d\n""",
        {"tool-call-parser": "a bc d"},
    ),
    "nested default": ('X=${A:-${B:-"x y"}}\nsglang serve --model-path org/m --dtype "$X"', {"dtype": "x y"}),
    "positional default": ("sglang serve --model-path ${1:-org/m} --tp ${2:-4}", {"tp": 4}),
    "alternative": ("A=1\nsglang serve --model-path org/m ${A:+--tp 2} ${N:+--page-size 1}", {"tp": 2}),
    "quotes behind a parameter's sign": (
        "sglang serve --model-path org/m --tool-call-parser ${U:-'a b'}\"c\" --tp ${V-2} ${W:---page-size 64}\n",
        {"tool-call-parser": "a bc", "tp": 2, "page-size": 64},
    ),
    "an array as one word": (
        'A=(a b)\nsglang serve --model-path org/m --tool-call-parser "${A[*]}" --tp 2 ${N[*]}\n',
        {"tool-call-parser": "a b", "tp": 2},
    ),
    "in a shell": ("""bash -lc 'cd /x && exec sglang serve --model-path org/m --tp 2'""", {"tp": 2}),
    "background": ("sglang serve --model-path org/m --tp 2 >log 2>&1 &\nPID=$!\nwait $PID\n", {"tp": 2}),
    "what follows is not looked at": (
        "sglang serve --model-path org/m --tp 2 &\nuntil curl -sf localhost/health; do sleep 1; done\n",
        {"tp": 2},
    ),
    "piped": ("sglang serve --model-path org/m --tp 2 2>&1 | tee log\n", {"tp": 2}),
    "after other commands": (
        (
            "set -euo pipefail\nulimit -n 65535\nmkdir -p logs\nsource venv/bin/activate\npkill -f sglang || true\n"
            "sleep 5\nLOG=logs/$(date +%s).log\nsglang serve --model-path org/m --tp 2 > $LOG\n"
        ),
        {"tp": 2},
    ),
    "windows line ends": ("A=2\r\nsglang serve --model-path org/m --tp $A\r\n", {"tp": 2}),
    "its own folder": (
        (
            'cd "$(dirname "$0")"\nD="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\n'
            "sglang serve --model-path org/m --tp 2"
        ),
        {"tp": 2},
    ),
}


@pytest.mark.parametrize("name", READ)
def test_a_simple_script_is_read_and_not_run(tmp_path: Path, name: str) -> None:
    """Nobody is asked, nothing runs, and the arguments are what the shell would have given."""
    text, expected = READ[name]
    script = tmp_path / "run.sh"
    script.write_bytes(f"#!/usr/bin/env bash\n{text}".encode())
    got = launches.file(script)
    found = dict(got.manifest.launch.arguments)
    assert (found.pop("model-path"), found.pop("served-model-name")) == ("{checkpoint.target}", "org/m")
    assert found == expected
    assert not got.placed.ran
    assert "read without running anything" in got.text


# What only a shell understands, in front of each of the next ones.
LOOP = "for i in 1; do :; done\n"

# The same, where only a shell can know.
RUN = {
    "a loop": (
        "A=()\nfor x in 1 2; do A+=(--tp $x); done\n" + "sglang serve --model-path org/m ${A[@]:2}\n",
        {"tp": 2},
    ),
    "a condition": ('if [ -z "$X" ]; then T=2; fi\nsglang serve --model-path org/m --tp $T\n', {"tp": 2}),
    "a function": ('go() { exec sglang serve "$@"; }\ngo --model-path org/m --tp 2\n', {"tp": 2}),
    "a case": ("case ${X:-b} in a) T=1;; *) T=2;; esac\nvllm serve org/m --seed $T\n", {"seed": 2}),
    "a substitution": ("sglang serve --model-path org/m --tp $(echo 2)\n", {"tp": 2}),
    "python gives a value": ("T=$(python3 -c 'print(1 + 1)')\nsglang serve --model-path org/m --tp $T\n", {"tp": 2}),
    "an absolute interpreter": (
        "/opt/venv/bin/python3.12 -m sglang.launch_server --model-path org/m --tp 2\n",
        {"tp": 2},
    ),
    "exec of a path in a variable": (
        'V=/opt/venv\nexec "$V/bin/python" -m sglang.launch_server --model-path org/m --tp 2\n',
        {"tp": 2},
    ),
    "an environment that is not here": (
        "set -e\nsource /nowhere/venv/bin/activate\nsglang serve --model-path org/m --tp 2\n",
        {"tp": 2},
    ),
    "PATH that is put in front": (
        "export PATH=/usr/bin:$PATH\npython3 -m sglang.launch_server --model-path org/m --tp 2\n",
        {"tp": 2},
    ),
    "a log where nobody may write": (
        "nohup sglang serve --model-path org/m --tp 2 > /no/such/folder/log 2>&1 &\nwait\n",
        {"tp": 2},
    ),
    "it waits for health": (
        "sglang serve --model-path org/m --tp 2 &\nuntil curl -sf http://127.0.0.1:1/health; do sleep 1; done\n",
        {"tp": 2},
    ),
    "a child script": ("bash inner.sh --tp 2\n", {"tp": 2}),
    "a child python": ("python3 start.py\n", {"tp": 2}),
    "under numactl and nohup": ("nohup numactl -m 0 sglang serve --model-path org/m --tp 2\n", {"tp": 2}),
    "in a container": ("docker run -e A=1 --gpus all vllm/vllm-openai:v1 org/m --seed 2\n", {"seed": 2}),
    "with sudo": ("sudo -E sglang serve --model-path org/m --tp 2\n", {"tp": 2}),
}


@pytest.mark.parametrize("name", RUN)
def test_any_other_script_is_recorded(tmp_path: Path, name: str) -> None:
    """It is asked for, run with shims in place of the server, and gives what the server would have been given."""
    text, expected = RUN[name]
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/bash\n{LOOP}{text}")
    (tmp_path / "inner.sh").write_text(f"#!/bin/bash\n{SERVE}\n")
    (tmp_path / "start.py").write_text(
        "import subprocess\nsubprocess.run(['sglang', 'serve', '--model-path', 'org/m', '--tp', '2'], check=True)\n"
    )
    with pytest.raises(launches.WasAskedError):
        launches.file(script)
    got = launches.file(script, launches.asked(run=True))
    found = dict(got.manifest.launch.arguments)
    found.pop("model-path", None), found.pop("model", None)
    assert found.pop("served-model-name") == "org/m"
    assert found == expected
    assert got.placed.ran
    assert "recorded by running it" in got.text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["inner.sh", "run.sh", "start.py"]


def test_a_file_that_the_script_makes_goes_beside_the_lock(tmp_path: Path) -> None:
    """A here-document that the server reads is kept with its bytes, and relative paths lead to the person's folder."""
    script = tmp_path / "run.sh"
    script.write_text(
        'cat > nixl.json <<EOF\n{"a": "${X:-1}"}\nEOF\nmkdir -p logs\necho hello > logs/other\n'
        "export SGLANG_TORCH_PROFILER_DIR=$PWD/p OMP_NUM_THREADS=4\n"
        "sglang serve --model-path ./model --hicache-storage-backend-extra-config @nixl.json\n"
    )
    got = launches.file(script, launches.asked(run=True))
    assert [(each.path, each.data) for each in got.placed.copies] == [
        ("runtime/model-sglang/nixl.json", b'{"a": "1"}\n')
    ]
    assert dict(got.manifest.launch.environment) == {"OMP_NUM_THREADS": "4"}
    assert f"SGLANG_TORCH_PROFILER_DIR={tmp_path}/p" in got.without_place
    assert [each.name for each in tmp_path.iterdir()] == ["run.sh"]


def test_the_published_launch(tmp_path: Path) -> None:
    """The public runtime's launch: only address and port have no place, every argument is there as it was."""
    got = launches.file(DATA / "qwen38-dflash2.sh")
    assert set(got.without_place) == {"--host 127.0.0.1", "--port 30000"}
    launch = got.manifest.launch
    assert len(launch.arguments) == 46
    assert launch.arguments["chat-template"] == "{checkpoint.target}/chat_template.jinja"
    assert str(launch.arguments["json-model-override-args"]).startswith(
        '{"text_config": {"max_position_embeddings": 524288'
    )
    assert '"use_uring": "true"' in str(launch.arguments["hicache-storage-backend-extra-config"])
    assert got.manifest.python == "3.12"
    sources = {each.role: each.source for each in got.manifest.checkpoints}
    if not PUBLISHED.exists():
        pytest.skip("the published facts are not on this machine")
    facts = tomllib.loads(PUBLISHED.read_text("utf-8"))
    words = facts["launch"]["args"]
    for at, word in enumerate(words):
        if word.startswith("--"):
            follows = words[at + 1] if at + 1 < len(words) else "--"
            expected = True if follows.startswith("--") else follows
            value = launch.arguments[word[2:]]
            assert (value if value is True else str(value)) == expected, word
    assert dict(launch.environment) == facts["launch"]["env"]
    for each in facts["checkpoint"]:
        source = sources[each["role"]]
        assert source.kind == "hub"
        assert (source.repository, source.revision) == (each["repo"], each["revision"])
    del tmp_path


def test_variables_come_from_the_person_and_not_from_the_shell_that_penny_runs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--env` fills a variable; the environment of penny itself does not, and what is unset is named."""
    monkeypatch.setenv("DTYPE", "leaked")
    script = tmp_path / "run.sh"
    script.write_text("sglang serve --model-path org/m --dtype ${DTYPE:-auto} --tp $TP\n")
    unset = launches.file(script)
    assert unset.manifest.launch.arguments["dtype"] == "auto"
    assert unset.manifest.launch.arguments["tp"] is True
    assert "--env" in unset.without_place["$TP"]
    given = launches.file(script, launches.asked(env={"DTYPE": "half", "TP": "2"}))
    assert given.manifest.launch.arguments["dtype"] == "half"
    assert given.manifest.launch.arguments["tp"] == 2


def test_under_set_u_an_unset_variable_is_said(tmp_path: Path) -> None:
    """The script would end there; the reason for asking names the variable."""
    script = tmp_path / "run.sh"
    script.write_text("set -u\nsglang serve --model-path $MODEL\n")
    with pytest.raises(launches.WasAskedError, match="MODEL"):
        launches.file(script)


def test_several_launches_must_be_chosen_from(tmp_path: Path) -> None:
    """Two servers are two manifests; the person picks."""
    script = tmp_path / "run.sh"
    script.write_text("sglang serve --model-path org/a &\nvllm serve org/b &\nwait\n")
    with pytest.raises(UsageError, match="2 launches"):
        launches.file(script)
    assert launches.file(script, launches.asked(pick=2)).manifest.engine.kind == "vllm"
    with pytest.raises(UsageError, match="there are 2"):
        launches.file(script, launches.asked(pick=3))


SLOW = "for x in 1 2 3 4 5 6 7 8; do sleep 1; done"

# Launches that race each other; whichever writes its record first, `org/a` stands first in the script.
RACES = {
    "compound commands": f"{{ {SLOW}; sglang serve --model-path org/a; }} &\nsglang serve --model-path org/b &\nwait\n",
    "subshells": f"({SLOW}; sglang serve --model-path org/a) &\n(sglang serve --model-path org/b) &\nwait\n",
    "subshells on one line": f"({SLOW}; sglang serve --model-path org/a) & (sglang serve --model-path org/b) & wait\n",
    "a function": (
        f'go() {{ [ "$1" = 1 ] && {{ {SLOW}; }}; exec sglang serve --model-path "$2"; }}\n'
        "go 1 org/a &\ngo 2 org/b &\nwait\n"
    ),
    "a child script": "bash slow.sh org/a &\nsglang serve --model-path org/b &\nwait\n",
    "under set -eu": (
        f"set -eu\n{{ {SLOW}; sglang serve --model-path org/a; }} &\nsglang serve --model-path org/b &\nwait\n"
    ),
}


@pytest.mark.parametrize("name", RACES)
def test_launches_in_the_background_have_the_numbers_of_their_places(tmp_path: Path, name: str) -> None:
    """`--pick` means the same launch in every run: the order is the script's own, and not that of a race."""
    (tmp_path / "slow.sh").write_text(f'{SLOW}\nsglang serve --model-path "$1"\n')
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/bash\n{LOOP}{RACES[name]}")
    found = recording.record_script(script, script.read_text(), where="run.sh", variables={})
    assert [each.argv[-1] for each in found] == ["org/a", "org/b"]
    assert not any(key.startswith("_penny_") for each in found for key in each.environment)


def test_launches_of_a_loop_have_the_order_of_its_turns(tmp_path: Path) -> None:
    """One command that stands once starts several servers: the first turn's is the first."""
    script = tmp_path / "run.sh"
    script.write_text("for port in 3 2 1; do sglang serve --model-path org/m --port $port & done\nwait\n")
    found = recording.record_script(script, script.read_text(), where="run.sh", variables={})
    assert [each.argv[-1] for each in found] == ["3", "2", "1"]


def test_a_server_that_a_loop_starts_anew_is_one_launch(tmp_path: Path) -> None:
    """A script that keeps its server alive is ended once nothing new comes, and there is nothing to choose from."""
    script = tmp_path / "run.sh"
    script.write_text("while true; do\n  sglang serve --model-path org/m --tp 2\n  sleep 5\ndone\n")
    start = time.monotonic()
    assert launches.file(script, launches.asked(run=True)).manifest.launch.arguments["tp"] == 2
    assert time.monotonic() - start < 60


def test_a_launch_that_follows_late_is_recorded_too(tmp_path: Path) -> None:
    """As long as launches come, the script goes on: how many there are does not depend on how quick the first was."""
    script = tmp_path / "run.sh"
    later = "python3 -c 'import time; time.sleep(1.2)'"
    script.write_text(f"{LOOP}" + "".join(f"sglang serve --model-path org/{x} &\n{later}\n" for x in "abc") + "wait\n")
    found = recording.record_script(script, script.read_text(), where="run.sh", variables={})
    assert [each.argv[-1] for each in found] == ["org/a", "org/b", "org/c"]


# ------------------------------------------------------------------------------------------------------- hostile


def test_a_script_cannot_write_outside(tmp_path: Path) -> None:
    """Neither to its own folder nor beside it: everything but the private copy is read-only."""
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "script"
    folder.mkdir()
    script = folder / "run.sh"
    script.write_text(
        f"for i in 1; do :; done\necho bad > {outside}/bait\nprintf bad >> {script}\nmkdir {outside}/made\n"
        f"rm -f {script}\ncp /bin/true {outside}/copy\n(trap '' TERM; sleep 1000; echo bad > {outside}/late) &\n"
        "sglang serve --model-path org/m --tp 2\n"
    )
    before = script.read_bytes()
    got = launches.file(script, launches.asked(run=True))
    assert got.manifest.launch.arguments["tp"] == 2
    assert list(outside.iterdir()) == []
    assert script.read_bytes() == before


def test_a_script_reaches_no_network(tmp_path: Path) -> None:
    """Its only interface is a loopback that is down."""
    script = tmp_path / "run.sh"
    script.write_text(
        "N=$(tail -n +3 /proc/self/net/dev | cut -d: -f1 | tr -d ' \\n')\n"
        'sglang serve --model-path org/m --log-level "if:$N"\n'
    )
    got = launches.file(script, launches.asked(run=True))
    assert got.manifest.launch.arguments["log-level"] in ("if:lo", "if:")


def test_a_script_that_never_ends_is_ended(tmp_path: Path) -> None:
    """A bound ends it; where nothing was recorded by then that is an error which says so."""
    script = tmp_path / "run.sh"
    script.write_text("while :; do :; done\nsglang serve --model-path org/m\n")
    start = time.monotonic()
    with pytest.raises(UsageError, match="did not end within 2 s"):
        recording.record_script(script, script.read_text(), where="run.sh", variables={}, seconds=2)
    assert time.monotonic() - start < 60


def test_a_fork_bomb_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that starts ever more processes is ended with all of them, long before its time is up."""
    monkeypatch.setattr(recording, "PROCESSES", 40)
    script = tmp_path / "run.sh"
    # bounded by itself as well: 200 processes that sleep
    script.write_text("for i in {1..200}; do (exec -a penny-bomb tail -f /dev/null) & done\nwait\n")
    start = time.monotonic()
    with pytest.raises(UsageError, match="more than 40 processes"):
        recording.record_script(script, script.read_text(), where="run.sh", variables={}, seconds=20)
    assert time.monotonic() - start < 60
    left = subprocess.run(["pgrep", "-f", "penny-bomb"], capture_output=True, text=True, check=False).stdout
    assert left == ""


def test_binary_output_and_control_characters_stay_out_of_errors(tmp_path: Path) -> None:
    """What a script prints is shown as one printable line."""
    script = tmp_path / "run.sh"
    script.write_text("for i in 1; do :; done\nhead -c 100000 /dev/urandom\nprintf '\\033]0;owned\\007'\nexit 3\n")
    with pytest.raises(UsageError, match="status 3") as caught:
        launches.file(script, launches.asked(run=True))
    assert str(caught.value).isprintable()


def test_a_secret_that_a_script_reads_does_not_come_out(tmp_path: Path) -> None:
    """A key that is put into an argument or a variable is left out by its looks."""
    (tmp_path / "id_rsa").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n")
    script = tmp_path / "run.sh"
    script.write_text(
        'K=$(cat id_rsa)\nexport SGLANG_K="$K"\ncp id_rsa k.json\n'
        'sglang serve --model-path org/m --log-level "$K" --hicache-storage-backend-extra-config @k.json\n'
    )
    got = launches.file(script, launches.asked(run=True))
    assert "AAAA" not in got.text + str([got.placed.unmapped, got.placed.copies])


def test_forged_records_are_no_launch(tmp_path: Path) -> None:
    """A script that writes into the folder of records gets nowhere with what is not one."""
    script = tmp_path / "run.sh"
    script.write_text(
        'R=$(dirname "$(dirname "$(command -v vllm)")")/records\n'
        'echo \'{"kind": "launch", "argv": 3}\' > $R/1.json\necho \'[\' > $R/2.json\nln -s /dev/zero $R/3.json\n'
        "mkfifo $R/4.json\nsglang serve --model-path org/m --tp 2\n"
    )
    assert launches.file(script, launches.asked(run=True)).manifest.launch.arguments["tp"] == 2


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.sh", b"\x7fELF\x00\x00"), ("a.sh", b"\xff\xfe"), ("a.sh", b"x" * (2 << 20)), ("a.sh", b""),
        ("a.sh", b"echo hi\n"), ("a.sh", b"sglang serve 'open\n"), ("a.sh", b'sglang serve "${A\n'),
    ],
)  # fmt: skip
def test_what_is_no_launch_script_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    """Binary, not UTF-8, too large, empty, without a server, or not closed: exit code 2 and nothing runs."""
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises((UsageError, PennyError, launches.WasAskedError)) as caught:
        of_file(path, launches.asked())
    assert isinstance(caught.value, launches.WasAskedError) == (b"open" in data or b"${A" in data)


@pytest.mark.parametrize("shebang", ["#!/usr/bin/env python3", "#!/usr/bin/zsh", "#!/usr/bin/env -S fish"])
def test_only_shells_are_recorded(tmp_path: Path, shebang: str) -> None:
    """A script of another language is refused before anything runs."""
    script = tmp_path / "run"
    script.write_text(f"{shebang}\nfor x in y:\n  vllm serve org/m\n")
    with pytest.raises(UsageError, match="only shell scripts"):
        launches.file(script, launches.asked(run=True))


def test_without_isolation_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel does not keep the script apart, it is not run at all."""
    from reproducer.isolation.running import run_isolated

    monkeypatch.setattr(recording, "run_isolated", functools.partial(run_isolated, namespaces=False))
    script = tmp_path / "run.sh"
    script.write_text(f"for i in 1; do :; done\ntouch {tmp_path}/bait\nsglang serve --model-path org/m\n")
    with pytest.raises(PennyError, match="was not run") as caught:
        launches.file(script, launches.asked(run=True))
    assert caught.value.exit_code == 96
    assert not (tmp_path / "bait").exists()
    assert os.listdir(tmp_path) == ["run.sh"]  # noqa: PTH208  the plainest look


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/opt/v/bin/python -m x", "S/python -m x"),
        ('exec "$V/bin/python3.12" -m x', 'exec "S/python3.12" -m x'),
        ("${V}/bin/sglang serve", "S/sglang serve"),
        ("venv/bin/vllm serve", "S/vllm serve"),
        ("source venv/bin/activate", "source venv/bin/activate"),
        ("docker run lmsysorg/sglang python3", "docker run lmsysorg/sglang python3"),
        ("export PATH=/opt/v/bin:$PATH", "export PATH=/opt/v/bin:$PATH"),
        ("ls /opt/v/bin/python-config", "ls /opt/v/bin/python-config"),
        ('nohup vllm serve m >> "$L/x y" 2>&1 &', "nohup vllm serve m >> /dev/null 2>&1 &"),
        ("vllm serve m &> log 2>'a b'", "vllm serve m &> /dev/null 2> /dev/null"),
        ("cat > vllm.yaml <<EOF", "cat > vllm.yaml <<EOF"),
        ("echo hi > log", "echo hi > log"),
        ("a" * 300_000 + "/bin" * 50_000, "a" * 300_000 + "/bin" * 50_000),
    ],
)
def test_what_changes_in_the_copy_of_a_script(text: str, expected: str) -> None:
    """Paths to recorded programs lead to the shims and a launch writes no log; nothing else changes."""
    assert recording.rewritten(text, Path("S")) == expected


def test_variables_as_a_shell_keeps_them(tmp_path: Path) -> None:
    """What is added to, unset and exported reaches the server as a shell would hand it on."""
    from reproducer.importing.shell import read_script

    before = "export A=1 B=2\nA+=0\nunset B\nB=3\nset -a\n: ${C:=4}\nset +a\nHOME=/h\nexport E=~/a:~/b:~\n"
    text = before + "A+=x D+=y sglang serve --model-path org/m\n"
    (found,) = read_script(text, folder=tmp_path, where="run.sh").found
    assert found.environment == {"A": "10x", "C": "4", "D": "y", "E": "/h/a:/h/b:/h"}


@pytest.mark.parametrize(
    "before", ["readonly A=1\nA=2", "declare -r A=1\nA+=2", "IFS=,\nA=a,b", "true x\nA=$_", "HOME=/h\nA=~$B", "A=~'x'"]
)
def test_what_a_shell_alone_knows_is_not_guessed(tmp_path: Path, before: str) -> None:
    """A variable that cannot be assigned, other separators, `$_`, a home that is none: the pass ends there."""
    from reproducer.importing.shell import read_script

    reading = read_script(f"{before}\nsglang serve --model-path org/m --dtype $A\n", folder=tmp_path, where="run.sh")
    assert reading.stopped is not None
    assert reading.found == []
