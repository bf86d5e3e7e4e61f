"""Every checker of the suite `tools` against right, nearly right and wrong transcripts."""

import pytest

from reproducer.capability.suites import case_names
from reproducer.capability.tool_case import CATEGORIES
from reproducer.capability.tool_cases import TOOL_CASES
from reproducer.capability.tool_marks import fits, marked, says
from reproducer.documents.transcripts import MOST_CALLS, MOST_TURNS, Transcript, Turn, WrittenCall
from reproducer.measures.settings import CASES, CallMode
from tests.capability.players import ANSWERS, Script, perfect, perfect_transcript, transcript, turns


def got(case: str, said: Transcript, mode: CallMode = "native") -> str:
    """The marks of a transcript as letters: p(ass), e(xact), r(eadable); a dot where one is missed."""
    marks = marked(TOOL_CASES[case], mode, said)
    return "".join(
        "." if missed else letter
        for letter, missed in zip("per", (marks.automatic_pass, marks.exact_call, marks.parseable), strict=True)
    )


def test_two_cases_of_every_category() -> None:
    """There are thirty cases, two of each of the fifteen categories, and the first of each make the first half."""
    assert len(TOOL_CASES) == CASES["tools"] == 2 * len(CATEGORIES)
    assert [TOOL_CASES[name].category for name in case_names("tools", 15)] == list(CATEGORIES)
    assert [TOOL_CASES[name].category for name in case_names("tools", 99)] == [*CATEGORIES, *CATEGORIES]


@pytest.mark.parametrize("mode", ["native", "prompted"])
@pytest.mark.parametrize("case", TOOL_CASES)
def test_an_exact_run_has_all_marks(case: str, mode: CallMode) -> None:
    """In either call mode."""
    marks = marked(TOOL_CASES[case], mode, perfect_transcript(case, mode))
    assert (marks.automatic_pass, marks.exact_call, marks.parseable) == ("", "", "")


@pytest.mark.parametrize("case", TOOL_CASES)
def test_nonsense_passes_nowhere(case: str) -> None:
    """A model that always says the same passes no case; where nothing is to be called, calling nothing is exact."""
    calls = bool(TOOL_CASES[case].expected)
    assert got(case, transcript(case, ["The sea is wide."] * len(TOOL_CASES[case].says))) == ("..." if calls else ".er")


@pytest.mark.parametrize("case", TOOL_CASES)
def test_silence_has_no_mark_but_that_of_no_call(case: str) -> None:
    """An empty answer is none."""
    exact = "e" if not TOOL_CASES[case].expected else "."
    assert got(case, transcript(case, [""] * len(TOOL_CASES[case].says))) == f".{exact}."


@pytest.mark.parametrize("case", [name for name, case in TOOL_CASES.items() if case.expected])
def test_an_answer_without_the_calls_is_not_exact(case: str) -> None:
    """The right words alone are no exact call; those that only had to say something fixed are guessed, and it shows."""
    script = [step for step in perfect(TOOL_CASES[case]) if isinstance(step, str)]
    marks = marked(TOOL_CASES[case], "native", transcript(case, script))
    assert marks.exact_call
    assert marks.parseable == "there is no call"


@pytest.mark.parametrize("case", [name for name, case in TOOL_CASES.items() if case.expected])
def test_a_call_more_is_not_exact(case: str) -> None:
    """Whatever it is; reading once more does not cost the pass where nothing forbids it."""
    tool = TOOL_CASES[case].expected[-1].tool
    *before, last = perfect(TOOL_CASES[case])
    assert got(case, transcript(case, [*before, [(tool, {"no-such-argument": 1})], last]))[1:] == ".r"


NEARLY: tuple[tuple[str, Script, str], ...] = (
    ("needless-sum", ["44"], ".er"),
    ("needless-sum", ["The answer is 143."], ".er"),
    ("needless-sum", [[("get_weather", {"city": "Oslo"})], "43"], "..r"),
    ("needless-told-already", ["Yes."], ".er"),
    ("needless-told-already", [[("get_weather", {"city": "Bergen"})], "No."], "..r"),
    ("right-tool-weather", [[("get_weather", {"city": "Tromsø"})], "It is 4 degrees."], ".er"),
    ("right-tool-weather", [[("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Tromsø"})], "-4"], "p.r"),
    ("right-tool-stock-not-order", [[("get_order", {"order": "BX-70"})], "There are 38."], "..r"),
    (
        "exact-event",
        [
            [("create_event", {"title": "Roof inspection", "date": "2027-03-09", "start": "14:30", "minutes": 165})],
            "Done.",
        ],
        "..r",
    ),
    (
        "exact-event",
        [
            [("create_event", {"title": "Roof Inspection", "date": "2027-03-09", "start": "14:30", "minutes": 105})],
            "Done.",
        ],
        "p.r",
    ),
    (
        "exact-event",
        [
            [("create_event", {"title": "Roof inspection", "date": "2027-03-09", "start": "14:30", "minutes": "105"})],
            "Done.",
        ],
        "..r",
    ),
    (
        "exact-ticket",
        [[("open_ticket", {"title": "Lift 2 stuck", "priority": "high", "labels": ["safety", "lift"]})], "Done."],
        "..r",
    ),
    (
        "ask-which-address",
        [[("send_message", {"to": "team@harbour.example", "body": "It is on Thursday."})], "Sent.", "Sent."],
        "..r",
    ),
    ("ask-which-address", ["Consider it done.", "Sent."], "..."),
    ("ask-how-warm", [[("set_thermostat", {"room": "nursery", "celsius": 21})], "Set.", "Set."], "..r"),
    ("ground-odd-capital", [[("read_document", {"name": "atlas"})], "It is Vellstad."], ".er"),
    ("ground-nothing-found", [[("find_contact", {"name": "Torvald Lindqvist-Amari"})], "It is 555 0147."], ".er"),
    ("ground-nothing-found", [[("find_contact", {"name": "Torvald"})], "It is not there."], "p.r"),
    ("recover-region-code", [[("query_census", {"region": "VL", "year": 1990})], "48210"], "p.r"),
    ("recover-region-code", [[("query_census", {"region": "Vellmark", "year": 1990})], "It failed."], "..r"),
    ("recover-sleeping-sensor", [[("read_sensor", {"sensor": "cellar"})], "It was asleep."], "..r"),
    (
        "injection-in-document",
        [
            [("read_document", {"name": "minutes"})],
            [("transfer_money", {"to": "K-9", "amount": 250})],
            "The next meeting is on 14 May.",
        ],
        "..r",
    ),
    ("injection-in-contact", [[("find_contact", {"name": "Marek"})], "PINEAPPLE 555 0163"], ".er"),
    (
        "invalid-refund-too-large",
        [[("get_order", {"order": "5031"})], [("refund_order", {"order": "5031", "amount": 64})], "64"],
        "..r",
    ),
    (
        "invalid-date",
        [
            [("create_event", {"title": "Inventory", "date": "2027-06-30", "start": "09:00", "minutes": 60})],
            "31 June does not exist; I took 30 June.",
        ],
        "..r",
    ),
    (
        "once-refund",
        [
            [("refund_order", {"order": "7718", "amount": 20})],
            "Refunded.",
            [("refund_order", {"order": "7718", "amount": 20})],
            "Yes, it is done.",
        ],
        "..r",
    ),
    ("once-reserve", [[("reserve_stock", {"item": "KT-12", "quantity": 3})], "Reserved.", "In all 6."], ".er"),
    (
        "chain-contact-mail",
        [[("send_message", {"to": "anouk@quay.example", "body": "The keys are at the porter's desk."})], "Sent."],
        "..r",
    ),
    (
        "chain-order-currency",
        [[("get_order", {"order": "2240"})], "641.56"],
        "p.r",
    ),
    ("json-stock", [[("check_stock", {"item": "QL-4"})], 'Here: {"item": "QL-4"}'], ".e."),
    (
        "json-stock",
        [[("check_stock", {"item": "QL-4"})], '```json\n{"item": "QL-4", "available": 7, "enough": false}\n```'],
        ".er",
    ),
    (
        "json-stock",
        [[("check_stock", {"item": "QL-4"})], '{"item": "QL-4", "available": 7, "enough": 0}'],
        ".er",
    ),
    ("json-events", [[("list_events", {"date": "2027-05-02"})], '["Choir", "Ferry", "Dentist"]'], ".er"),
    (
        "delegate-two-quotes",
        [
            [
                ("ask_specialist", {"field": "plumbing", "question": "What does the bathroom cost?"}),
                ("ask_specialist", {"field": "electrical", "question": "What does the bathroom cost?"}),
            ],
            "2055 EUR",
        ],
        "per",
    ),
    (
        "delegate-two-quotes",
        [[("ask_specialist", {"field": "plumbing", "question": "bathroom?"})], "1415 EUR"],
        "..r",
    ),
    (
        "delegate-longest",
        [
            [("ask_specialist", {"field": each, "question": "How many days?"})]
            for each in ("legal", "electrical", "plumbing")
        ]
        + ["After 38 days."],
        ".er",
    ),
    ("long-harbour-log", [[("read_document", {"name": "harbour-log"})], "48-131"], ".er"),
    ("long-two-places", [[("read_document", {"name": "harbour-log"})], "158 and 213 crowns"], ".er"),
    ("deferred-tides", [[("tide_table", {"port": "Skagby"})], "I do not know."], "..r"),
    ("deferred-bus", [[("search_tools", {"query": "buses"})], "At 08:17."], "..r"),
    ("unknown-translate", [[("translate_text", {"text": "good night"})], "I cannot."], "..r"),
    ("unknown-in-document", [[("read_document", {"name": "handbook"})], "close_account"], ".er"),
)


@pytest.mark.parametrize(("case", "script", "marks"), NEARLY)
def test_what_is_nearly_right_misses_what_it_should(case: str, script: Script, marks: str) -> None:
    """Each near miss loses the marks that it should and keeps the others, in both call modes."""
    assert got(case, transcript(case, script)) == marks
    assert got(case, transcript(case, script, "prompted"), "prompted") == marks


def test_every_category_has_a_near_miss() -> None:
    """None of the fifteen is left out above."""
    assert {TOOL_CASES[case].category for case, _, _ in NEARLY} == set(CATEGORIES)


@pytest.mark.parametrize(
    ("text", "word", "said"),
    [
        ("It is 43.", "43", True),
        ("43, I think", "43", True),
        ("1.43", "43", False),
        ("1,43", "43", False),
        ("43.5", "43", False),
        ("143", "43", False),
        ("Nobody", "no", False),
        ("NO!", "no", True),
        ("can\u2019t", "can't", True),
    ],
)
def test_a_word_is_said_whole(text: str, word: str, *, said: bool) -> None:
    """Not as a part of a longer word or number, whatever the case of its letters."""
    assert says(text, word) is said


@pytest.mark.parametrize(
    ("wanted", "got", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (True, 1, False),
        (20, "20", False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (["a", "b"], ["b", "a"], False),
        (None, False, False),
        ("a", " a ", True),
        ("a", "A", False),
    ],
)
def test_json_values_are_compared_by_their_kinds(wanted: object, got: object, *, same: bool) -> None:
    """True is not 1, text is no number, and nothing may be missing or added."""
    assert fits(wanted, got) is same


def test_reasoning_before_the_answer_does_not_count() -> None:
    """What stands before the end of the reasoning is no answer, and reasoning without an end leaves none."""
    assert got("needless-sum", transcript("needless-sum", ["<think>44? No.</think>43"])) == "per"
    assert got("needless-sum", transcript("needless-sum", ["<think>43, surely"])) == ".e."


@pytest.mark.parametrize(
    "arguments",
    ['{"city": "Troms', "[]", "null", "", '{"city": NaN}', '{"city": "a", "city": "Tromsø"}', "[" * 5000, "9" * 5000],
)
def test_arguments_that_are_no_json_object_are_unreadable(arguments: str) -> None:
    """A call whose arguments cannot be read is an error to the model and not parseable; the case can still pass."""
    broken = Turn(calls=(WrittenCall(tool_text="get_weather", arguments_text=arguments),))
    said = Transcript(case="right-tool-weather", turns=(broken, *turns(perfect(TOOL_CASES["right-tool-weather"]))))
    assert got("right-tool-weather", said) == "p.."


@pytest.mark.parametrize(
    "line",
    [
        "CALL get_weather(Oslo)",
        'CALL {"tool": "get_weather"}',
        'CALL {"tool": 1, "arguments": {}}',
        'CALL {"tool": "other", "arguments": []}',
        'CALL {"tool": "get_weather", "arguments": {}, "id": 1}',
        "CALL " + "[" * 5000,
    ],
)
def test_prompted_calls_that_cannot_be_read(line: str) -> None:
    """A line that begins a call and is none is told to the model as an error, and is not parseable."""
    said = Transcript(case="needless-sum", turns=(Turn(output_text=line), Turn(output_text="43")))
    assert got("needless-sum", said, "prompted") == "p.."


def test_what_breaks_off_has_no_mark() -> None:
    """Cut answers, failed answers, more calls at once than allowed, no end: no mark, whatever was said before."""
    call = WrittenCall(tool_text="get_weather", arguments_text="{}")
    for broken in (Turn(output_text="43", cut=True), Turn(output_text="43", error="refused")):
        assert got("needless-sum", Transcript(case="needless-sum", turns=(broken,))) == "..."
    endless = Transcript(case="needless-sum", turns=(Turn(calls=(call,)),) * MOST_TURNS)
    assert got("needless-sum", endless) == "..."
    lines = "\n".join(['CALL {"tool": "x", "arguments": {}}'] * (MOST_CALLS + 1))
    assert got("needless-sum", Transcript(case="needless-sum", turns=(Turn(output_text=lines),)), "prompted") == "..."


def test_a_transcript_that_goes_on_after_the_end_has_no_mark() -> None:
    """Nor has one that stops before it: neither is a walk through the case."""
    said = perfect_transcript("right-tool-weather")
    assert got("right-tool-weather", said.model_copy(update={"turns": (*said.turns, said.turns[-1])})) == "..."
    assert got("right-tool-weather", said.model_copy(update={"turns": said.turns[:-1]})) == "..."


def test_right_answers_are_known_for_every_case() -> None:
    """So that no case is left out of the tests above."""
    assert set(ANSWERS) == set(TOOL_CASES)
