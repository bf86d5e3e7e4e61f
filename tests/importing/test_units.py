"""systemd units: quoting, variables, prefixes, what is not read."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproducer.errors import InvalidDocumentError, UsageError
from reproducer.importing.found import NothingFoundError
from reproducer.importing.units import settings, split_words
from tests.importing import launches

UNIT = """\
# a comment
[Unit]
Description=A server
After=network-online.target

[Service]
Type=simple
User=serve
WorkingDirectory=/opt/serve
Environment=OMP_NUM_THREADS=4 "TOKENIZERS_PARALLELISM=false" 'SGLANG_X=a b'
Environment="HF_TOKEN=hf_abcdefghijklmnopqrstuv"
EnvironmentFile=-/nowhere/serve.env
LimitNOFILE=65535
ExecStartPre=/bin/mkdir -p /run/serve
ExecStart=/opt/venv/bin/python3.12 -m sglang.launch_server \\
    --model-path ${MODEL} \\
    # a comment in between
    --tp $TP --served-model-name "my model" --price $$5 --percent 100%%
Restart=always

[Install]
WantedBy=multi-user.target
"""


def _write(folder: Path, text: str, name: str = "serve.service") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_unit(tmp_path: Path) -> None:
    """Continued lines, variables, quotes and doubled signs; users, limits, restarts and drop-ins are named."""
    got = launches.file(_write(tmp_path, UNIT), launches.asked(env={"MODEL": "org/m", "TP": "2"}))
    assert got.manifest.launch.arguments == {
        "model-path": "{checkpoint.target}", "tp": 2, "served-model-name": "my model", "price": "$5", "percent": "100%",
    }  # fmt: skip
    assert dict(got.manifest.launch.environment) == {
        "OMP_NUM_THREADS": "4", "TOKENIZERS_PARALLELISM": "false", "SGLANG_X": "a b",
    }  # fmt: skip
    assert got.manifest.python == "3.12"
    told = " | ".join(got.without_place)
    for each in (
        "serve.service.d/",
        "User=serve",
        "LimitNOFILE=65535",
        "Restart=always",
        "WantedBy",
        "EnvironmentFile=-",
    ):
        assert each in told, each
    assert "hf_abc" not in got.text + str(got.placed)


def test_files_of_variables(tmp_path: Path) -> None:
    """`EnvironmentFile=` counts after `Environment=`; one that must be there and is not is an error."""
    (tmp_path / "e").write_text("# c\n; c\nOMP_NUM_THREADS=8\nNCCL_DEBUG='IN\\\nFO'\nbad line\n")
    unit = f"[Service]\nEnvironmentFile={tmp_path}/e\nEnvironment=OMP_NUM_THREADS=4\nExecStart=vllm serve org/m\n"
    got = launches.file(_write(tmp_path, unit))
    assert dict(got.manifest.launch.environment) == {"OMP_NUM_THREADS": "8", "NCCL_DEBUG": "INFO"}
    with pytest.raises(UsageError, match="not here"):
        launches.file(_write(tmp_path, unit.replace("/e\n", "/gone\n")))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-/usr/bin/env A=1 vllm serve org/m --seed 1", {"seed": 1}),
        ("@/usr/bin/vllm name serve org/m --seed 1", {"seed": 1}),
        (":/usr/bin/vllm serve org/m --dtype $X", {"dtype": "$X"}),
        ("!!/usr/bin/vllm serve org/m --dtype a\\x20b", {"dtype": "a b"}),
        ("/usr/bin/vllm serve org/m --dtype 'a'\"b\"c", {"dtype": "abc"}),
        ("/usr/bin/vllm serve org/m --dtype pre${Y}post", {"dtype": "preonepost"}),
        ("/usr/bin/vllm serve org/m --dtype pre$Y", {"dtype": "pre$Y"}),
        ("/usr/bin/vllm serve org/m $Z", {"seed": 7}),
        ("/bin/sh -c 'exec vllm serve org/m --seed 1'", {"seed": 1}),
        ("/bin/true ; /usr/bin/vllm serve org/m --seed 1", {"seed": 1}),
    ],
)
def test_exec_start(tmp_path: Path, line: str, expected: dict[str, object]) -> None:
    """Prefixes, C escapes, and `$NAME` as words of its own against `${NAME}` inside one."""
    unit = f"[Service]\nEnvironment=Y=one 'Z=--seed 7'\nExecStart={line}\n"
    found = dict(launches.file(_write(tmp_path, unit)).manifest.launch.arguments)
    found.pop("model"), found.pop("served-model-name")
    assert found == expected


def test_an_empty_value_forgets(tmp_path: Path) -> None:
    """`ExecStart=` and `Environment=` alone take back what stood before."""
    unit = (
        "[Service]\nEnvironment=OMP_NUM_THREADS=1\nEnvironment=\nEnvironment=MKL_NUM_THREADS=2\n"
        "ExecStart=sglang serve --model-path org/a\nExecStart=\nExecStart=vllm serve org/b\n"
    )
    got = launches.file(_write(tmp_path, unit))
    assert got.manifest.engine.kind == "vllm"
    assert dict(got.manifest.launch.environment) == {"MKL_NUM_THREADS": "2"}


def test_specifiers_are_named(tmp_path: Path) -> None:
    """`%i` is known to systemd only."""
    got = launches.file(_write(tmp_path, "[Service]\nExecStart=vllm serve org/m --served-model-name %i\n"))
    assert "only systemd fills in" in got.without_place["%i"]


@pytest.mark.parametrize(
    "text",
    [
        "[Service]\nExecStart=vllm serve 'org/m\n",
        "[Service]\nExecStart=vllm serve org/m --dtype a\\qb\n",
        "[Service]\nExecStart=vllm serve org/m --dtype \\x00\n",
        "[Service]\nnonsense\n",
        "ExecStart=vllm serve org/m\n",
        "[Service]\nExecStart=" + "x " * (200 << 10) + "\n",
        "[Service]\nExecStart=vllm \\\n" + "x \\\n" * (100 << 10) + "\n",
    ],
    ids=["quote", "escape", "nul", "no setting", "no section", "long line", "long continued line"],
)
def test_a_malformed_unit_is_refused(tmp_path: Path, text: str) -> None:
    """What systemd would refuse, or no unit has, is one error."""
    with pytest.raises(InvalidDocumentError):
        launches.file(_write(tmp_path, text))


def test_a_line_of_ten_megabytes_is_not_read(tmp_path: Path) -> None:
    """The size of the file is looked at first."""
    path = tmp_path / "a.service"
    path.write_bytes(b"[Service]\nExecStart=" + b"x" * (10 << 20))
    with pytest.raises(InvalidDocumentError, match="larger than"):
        launches.file(path)


def test_a_unit_without_a_command_is_no_launch(tmp_path: Path) -> None:
    """Nothing is found, exit code 2."""
    with pytest.raises(NothingFoundError):
        launches.file(_write(tmp_path, "[Service]\nType=oneshot\n"))
    with pytest.raises(NothingFoundError):
        launches.file(_write(tmp_path, "[Service]\nExecStart=/usr/bin/sleep 1\n"))


_WORDS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20), max_size=6)


def _escaped(word: str) -> str:
    """A word as systemd-escape would quote it: in double quotes, with C escapes."""
    special = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(special.get(each, each) for each in word) + '"'


@given(_WORDS)
def test_quoted_words_come_back(words: list[str]) -> None:
    """What is quoted by systemd's rules is split into the same words, whatever is in them."""
    assert split_words(" ".join(map(_escaped, words)), where="x") == words


@given(_WORDS)
def test_escaped_words_come_back_without_quotes(words: list[str]) -> None:
    """The same with every character as a numbered escape."""
    kept = [each for each in words if each]
    text = "  ".join("".join(f"\\U{ord(each):08x}" for each in word) for word in kept)
    assert split_words(text, where="x") == kept


@given(st.text(max_size=200))
def test_any_text_is_split_or_refused(text: str) -> None:
    """No text ends in another error than the one that names the place."""
    try:
        words = split_words(text, where="x")
    except InvalidDocumentError:
        return
    assert all(isinstance(each, str) for each in words)


@given(st.lists(st.sampled_from(["[Service]", "A=b", "A=b \\", "# c", "", "x", "ExecStart=a"]), max_size=12))
def test_any_lines_are_settings_or_refused(lines: list[str]) -> None:
    """A unit in any order of lines gives settings with their lines, or one error."""
    try:
        found = list(settings("\n".join(lines), where="x"))
    except InvalidDocumentError:
        return
    assert all(1 <= each.line <= len(lines) and each.section == "Service" for each in found)
