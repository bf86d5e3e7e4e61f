"""The checkers of the suite `reasoning` against right, nearly right and wrong transcripts."""

from fractions import Fraction

import pytest

from reproducer.capability.reasoning_case import Answer, Assignment, Number, Order
from reproducer.capability.reasoning_cases import REASONING_CASES
from reproducer.capability.reasoning_marks import marked, over, read_answer
from reproducer.documents.transcripts import Turn
from tests.capability.players import line, reasoned, transcript

NUMBER, ORDER = Number(Fraction(2, 5)), Order(("Q", "R", "S"))
ASSIGNMENT = Assignment((("Ada", 3), ("Bo", -2)))


@pytest.mark.parametrize("case", REASONING_CASES)
def test_right_answers_are_correct(case: str) -> None:
    """With words before them."""
    marks = marked(REASONING_CASES[case], transcript(case, reasoned(REASONING_CASES[case])))
    assert (marks.correct, marks.parseable) == ("", "")


@pytest.mark.parametrize("case", REASONING_CASES)
def test_one_wrong_answer_is_not_correct(case: str) -> None:
    """The last answer is right in form and wrong in content; what cannot be read is neither."""
    answers = REASONING_CASES[case].answers
    wrong: Answer
    match answers[-1]:
        case Number(value):
            wrong = Number(value + Fraction(1, 1000))
        case Order(names):
            wrong = Order((names[1], names[0], *names[2:]))
        case Assignment(values):
            wrong = Assignment(((values[0][0], values[0][1] + 1), *values[1:]))
    script = [*reasoned(REASONING_CASES[case])[:-1], line(wrong)]
    marks = marked(REASONING_CASES[case], transcript(case, script))
    assert (marks.correct, marks.parseable) == (f"answer {len(answers)} is wrong", "")
    unread = marked(REASONING_CASES[case], transcript(case, [*script[:-1], "It is as I said."]))
    assert unread.correct == unread.parseable == f"answer {len(answers)} cannot be read"


def test_a_revision_counts_with_both_answers() -> None:
    """Who keeps the first answer after the correction is not correct, nor who was wrong at first."""
    case = REASONING_CASES["revision-pack"]
    assert marked(case, transcript(case.id, ["ANSWER: 49", "ANSWER: 49"])).correct == "answer 2 is wrong"
    assert marked(case, transcript(case.id, ["ANSWER: 41", "ANSWER: 41"])).correct == "answer 1 is wrong"
    assert marked(case, transcript(case.id, ["ANSWER: 49"])).correct == "1 answers, 2 were asked for"


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("ANSWER: 2/5", NUMBER),
        ("answer: 0.4", NUMBER),
        ("**ANSWER:** 4/10.", NUMBER),
        ("ANSWER: 1\nNo.\nANSWER: 0.40", NUMBER),
        ("<think>ANSWER: 1</think>\nANSWER: $2/5$", NUMBER),
        ("ANSWER: 1,234.5", Number(Fraction(2469, 2))),
        ("ANSWER: about 0.4", None),
        ("ANSWER: 2/0", None),
        ("ANSWER: 40%", None),
        ("ANSWER: 1e400", None),
        ("ANSWER: " + "9" * 400, None),
        ("ANSWER:", None),
        ("The ANSWER: 0.4", None),
        ("<think>ANSWER: 0.4", None),
        ("", None),
    ],
)
def test_numbers_are_read_exactly(said: str, read: Answer | None) -> None:
    """The last line of its form counts; a number with words or signs around it is none."""
    assert read_answer(NUMBER, said) == read


@pytest.mark.parametrize(
    ("wanted", "said", "read"),
    [
        (ORDER, "ANSWER: q, R ,S", ORDER),
        (ORDER, "ANSWER: Q < R < S", ORDER),
        (ORDER, "ANSWER: R, Q, S", Order(("R", "Q", "S"))),
        (ORDER, "ANSWER: Q, R", None),
        (ORDER, "ANSWER: Q, R, R", None),
        (ORDER, "ANSWER: Q, R, S, T", None),
        (ASSIGNMENT, "ANSWER: Bo=-2, Ada = 3", ASSIGNMENT),
        (ASSIGNMENT, "ANSWER: {Ada: 3; Bo: -2}", ASSIGNMENT),
        (ASSIGNMENT, "ANSWER: Ada=3", None),
        (ASSIGNMENT, "ANSWER: Ada=3, Ada=3, Bo=-2", None),
        (ASSIGNMENT, "ANSWER: Ada=3.5, Bo=-2", None),
        (ASSIGNMENT, "ANSWER: Ada=3, Eve=-2", None),
    ],
)
def test_orders_and_assignments_are_read_whole(wanted: Answer, said: str, read: Answer | None) -> None:
    """Each name once and nothing besides."""
    assert read_answer(wanted, said) == read


def test_a_case_is_over_when_all_is_answered_or_one_answer_broke_off() -> None:
    """What was cut or failed ends it at once, and has no mark."""
    case = REASONING_CASES["revision-dice"]
    right = Turn(output_text="ANSWER: 5/18")
    assert not over(case, ())
    assert not over(case, (right,))
    assert over(case, (right, right))
    for broken in (Turn(output_text="ANSWER: 5/18", cut=True), Turn(error="refused")):
        assert over(case, (broken,))
        marks = marked(case, transcript(case.id, []).model_copy(update={"turns": (broken,)}))
        assert marks.correct
        assert marks.parseable
