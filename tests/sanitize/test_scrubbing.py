"""Nothing that must stay survives, wherever it stands; evidence does, and twice is once."""

import json
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.sanitize.kinds import Tally
from reproducer.sanitize.names import Learned, Machine
from reproducer.sanitize.scrubbing import Run, Scrubber
from tests.sanitize.corpus import (
    ARMOUR,
    BASE64,
    EVERYTHING,
    EVIDENCE,
    IDENTIFIERS,
    IN_CONTEXT,
    MACHINES,
    TOKENS,
    Planted,
)

HOSTILE = (
    *("Received request ", "Request ", "ReqTimeStats(rid=", "Generated response ", "rid='a"),
    *(
        "a",
        "1.",
        "1.1.1.1.",
        "::",
        "a:",
        "a@",
        "a.",
        "@a.",
        "eyJ",
        "eyJ.",
        "eyJa.",
        "password=",
        'password="',
        "token ",
    ),
    *(
        "\\",
        '\\"',
        "\\'",
        "'",
        '"',
        "--api-key ",
        "-",
        "---- BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "http://",
        "http://a",
    ),
    *("http://a:", "a@b.c:", "/home/", "C:\\Users\\", "\\\\", "C:\\Users\\a ", "rid=", "request ", "Received request "),
    *(
        "obj=",
        "Finish: obj='",
        "[1,",
        "[",
        '{"prompt": ',
        "%2Fhome%2F",
        "machine a login ",
        "login ",
        "user=",
        "a@b:",
        "~a",
    ),
    *(
        "xoxb-",
        "sk-",
        "hf_",
        "ghp_",
        "AKIA",
        "Bearer ",
        "0:",
        "00:",
        "fe80:",
        "{secret}",
        "request_",
        "Engine 000: Avg ",
    ),
    *(
        "[2026] ",
        "cookie: ",
        "auth=",
        "//:",
        "&sig=",
        "?key=",
        "ip-1-",
        "a-",
        "_",
        "\x1b[31m",
        "a.local.",
        "é",
        "é@",
        "ssh-rsa ",
    ),
    *("ssh-rsa AAAA", "Decode batch, ", "Req Time Stats(rid=", '{"a":', "a,", "cmpl-", "host=", "node:1", "$%&*+?"),
)

MACHINE = Machine(home="/srv/people/jdoe", names=frozenset({"jdoe", "tower42"}))
PLACES: dict[str, Callable[[str], str]] = {
    "alone": lambda text: text,
    "after a time": lambda text: f"[2026-12-01 02:05:14] {text}",
    "in a sentence": lambda text: f"it was {text} and no other",
    "in brackets": lambda text: f"({text})",
    "in square brackets": lambda text: f"[{text}]",
    "in single quotes": lambda text: f"x='{text}'",
    "in double quotes": lambda text: f'{{"line": "{text}"}}',
    "in backticks": lambda text: f"`{text}`",
    "as JSON": lambda text: json.dumps({"line": text}),
    "as JSON in JSON": lambda text: json.dumps({"line": json.dumps({"line": text})}),
    "as Python": lambda text: repr(["first", text]),
    "after an escaped line end": lambda text: f"'first\\n{text}\\nlast'",
    "after an escaped tab": lambda text: f'"first\\t{text}"',
    "in colour": lambda text: f"\x1b[31m{text}\x1b[0m",
    "in written colour": lambda text: f"\\x1b[31m{text}\\x1b[0m",
    "after an equals sign": lambda text: f"value={text} other=1",
    "before a comma": lambda text: f"{text}, #running-req: 1",
    "on a line of its own": lambda text: f"first\n{text}\nlast\n",
    "in two lines": lambda text: f"{text}\n{text}\r\n",
    "in a cell": lambda text: f"1,{text},2",
}
TOUCHING = {
    "after a letter's percent sign": lambda text: f"q%3D{text}",
    "in a path": lambda text: f"/cache/{text}/x",
}


def cleaned(text: str, machine: Machine = MACHINE) -> str:
    """A text as a run of its own sanitises it."""
    return Scrubber(Run(machine), Tally()).clean(text)


@pytest.mark.parametrize("form", EVERYTHING, ids=lambda form: form.name)
@given(data=st.data())
@settings(max_examples=5, deadline=None)
def test_nothing_planted_survives(form: Planted, data: st.DataObject) -> None:
    """Of every form the secret part is gone, in every place and quoting, and once is enough."""
    body = data.draw(st.text(form.alphabet, min_size=form.length, max_size=form.length).filter(_drawn))
    for place in PLACES.values():
        text = place(form.text(body))

        once = cleaned(text)

        assert form.text(body) not in once
        assert body not in once or body in place(form.text(""))
        assert cleaned(once) == once


@pytest.mark.parametrize("form", TOKENS, ids=lambda form: form.name)
@pytest.mark.parametrize("place", TOUCHING)
def test_tokens_are_found_where_other_text_touches_them(form: Planted, place: str) -> None:
    """Text that runs into a token does not hide it."""
    body = (form.alphabet * form.length)[: form.length]

    assert body not in cleaned(TOUCHING[place](form.text(body)))


@pytest.mark.parametrize("text", EVIDENCE)
@pytest.mark.parametrize("place", PLACES)
def test_evidence_stays(text: str, place: str) -> None:
    """Digests, commits, versions, numbers, times and names of models are what they were."""
    planted = PLACES[place](text)

    assert cleaned(planted) == planted


@pytest.mark.parametrize(("begin", "end"), ARMOUR)
@given(
    lines=st.lists(st.text(BASE64, min_size=64, max_size=64), min_size=1, max_size=4),
    last=st.text(BASE64, min_size=20, max_size=60),
    whole=st.booleans(),
    place=st.sampled_from(["lines", "carriage returns", "prefixed", "escaped", "JSON"]),
)
@settings(max_examples=15, deadline=None)
def test_private_keys_are_taken_out_whole(
    begin: str, end: str, lines: list[str], last: str, place: str, *, whole: bool
) -> None:
    """A key in armour goes from its beginning to its end, and as far as it looks like one where the end is missing."""
    parts = [begin, *lines, last, *([end] if whole else [])]
    text = {
        "lines": "\n".join(parts),
        "carriage returns": "\r\n".join(parts),
        "prefixed": "\n".join(f"[2026-12-01 02:05:14] {part}" for part in parts),
        "escaped": "'" + "\\n".join(parts) + "\\n'",
        "JSON": json.dumps("\n".join(parts)),
    }[place]

    once = cleaned(f"before\n{text}\nthe server is up: 12.5 tok/s\n")

    assert not any(line in once for line in [*lines, last])
    assert once.startswith("before\n")
    assert once.endswith("the server is up: 12.5 tok/s\n")
    assert cleaned(once) == once


@given(
    st.text(st.characters(codec="utf-8"), max_size=200)
    | st.text("{}reqsthom_0123456789abcdef=:/@.\\\"'- \n", max_size=200)
)
@settings(max_examples=400, deadline=None)
def test_twice_is_once(text: str) -> None:
    """Whatever a text holds, a sanitised text is sanitised."""
    once = cleaned(text)

    assert cleaned(once) == once


@given(
    st.lists(
        st.tuples(st.sampled_from(EVERYTHING), st.sampled_from([" ", ",", "", "\n", "=", ":", "/", "'", '"', "{"])),
        max_size=6,
    )
)
@settings(max_examples=300, deadline=None)
def test_twice_is_once_for_mixtures(parts: list[tuple[Planted, str]]) -> None:
    """Also where forms run into one another."""
    text = "".join(form.text((form.alphabet * 3)[: form.length] or form.alphabet) + between for form, between in parts)
    once = cleaned(text)

    assert cleaned(once) == once


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_lines_take_linear_time(unit: str) -> None:
    """A long line that repeats the beginning of something takes a second; anything more than linear takes minutes."""
    assert _seconds(unit, 100_000) < 3


@pytest.mark.parametrize("unit", ["password=", "eyJ", "a@", "rid=", '{"prompt": '])
def test_a_line_of_a_megabyte_takes_ten_times_as_long(unit: str) -> None:
    """Growth is linear up to lines of a megabyte."""
    assert _seconds(unit, 1_000_000) < 30 * max(_seconds(unit, 100_000), 0.01)


def test_names_learned_in_one_place_are_taken_out_in_every_other() -> None:
    """A home path gives away its user, a server's host its machine; common words are no names."""
    run = Run(MACHINE, Learned(["Zed Smith"]))
    for text in ("/home/mbrown/x", "host='node-a17'", "/home/qwen/models", "/Users/test"):
        run.learned.learn(text)

    once = Scrubber(run, Tally()).clean("mbrown on node-a17 ran Qwen/qwen test for Zed Smith; embrowned")

    assert once == "{name} on {name} ran Qwen/qwen test for {name}; embrowned"


def test_names_of_this_machine_are_taken_out() -> None:
    """Home, user and host of the machine penny runs on."""
    assert cleaned("/srv/people/jdoe/m by JDOE on tower42:80") == "{home}/m by {name} on {name}:80"


def test_what_was_taken_out_is_counted_by_kind() -> None:
    """Each thing counts once, under its kind."""
    tally = Tally()
    Scrubber(Run(MACHINE), tally).clean("10.0.0.7 and 10.0.0.8 by jdoe, a@example.org, password=x1y2")

    assert tally.by_kind() == {"address": 2, "email": 1, "name": 1, "secret": 1}


def test_one_request_has_one_pseudonym_in_a_run_and_another_in_the_next() -> None:
    """Pseudonyms hold within a run, and are keyed, so that nobody can try ids against them."""
    run = Run(MACHINE)
    identifier = "0123456789abcdef0123456789abcdef"
    first = Scrubber(run, Tally()).clean(f"rid={identifier}, x")
    second = Scrubber(run, Tally()).clean(f"rid='{identifier}'")
    other = cleaned(f"rid={identifier}, x")

    assert first.removeprefix("rid=").removesuffix(", x") == second.removeprefix("rid='").removesuffix("'")
    assert first != other
    assert first != Scrubber(run, Tally()).clean("rid=1123456789abcdef0123456789abcdef, x")


def _seconds(unit: str, length: int) -> float:
    """How long a line takes that is a unit over and over."""
    line = unit * (length // len(unit))
    start = time.process_time()
    cleaned(line)
    return time.process_time() - start


def _drawn(body: str) -> bool:
    """Bodies that look like nothing but a word or a number are another matter."""
    return len(body) < 12 or (len(set(body)) > 5 and any(each.isdigit() for each in body)) or body.isdigit()


def test_the_corpus_has_forty_forms_of_secrets() -> None:
    """Each of them is tried in every place."""
    assert len({form.name for form in TOKENS + IN_CONTEXT}) >= 40
    assert len({form.name for form in EVERYTHING}) == len(TOKENS + IN_CONTEXT + MACHINES + IDENTIFIERS)
