"""The right answers of the suite `reasoning`, found again by looking at every possibility."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product

import pytest

from reproducer.capability.reasoning_case import CATEGORIES, Answer, Assignment, Number, Order, number
from reproducer.capability.reasoning_cases import REASONING_CASES
from reproducer.capability.suites import case_names
from reproducer.measures.settings import CASES

Places = Mapping[str, int]


def _only(found: Sequence[Answer]) -> Answer:
    """The one answer: an answer that is not the only one is no truth."""
    (one,) = found
    return one


def _orders(names: str, *rules: Callable[[Places], bool]) -> Answer:
    """The one order of some names that all rules allow; places count from 1."""
    found = []
    for order in permutations(names.split()):
        places = {name: place for place, name in enumerate(order, 1)}
        if all(rule(places) for rule in rules):
            found.append(Order(order))
    return _only(found)


def _crates() -> Answer:
    fitting = [n for n in range(200, 901) if n % 7 == 3 and n % 11 == 5 and n % 13 == 4]
    return _only([number(n) for n in fitting])


def _ages() -> Answer:
    years = range(1, 61)
    fitting = [
        (a, b, c) for a, b, c in product(years, repeat=3) if a + b + c == 86 and a == 2 * (b - 6) and c == a + b - 40
    ]
    return _only([Assignment((("Ada", a), ("Bo", b), ("Cy", c))) for a, b, c in fitting])


def _coins() -> Answer:
    fitting = [
        (two, five, ten)
        for two, five, ten in product(range(1, 24), repeat=3)
        if two + five + ten == 23 and 2 * two + 5 * five + 10 * ten == 106 and two > ten > five
    ]
    return _only([Assignment((("two", two), ("five", five), ("ten", ten))) for two, five, ten in fitting])


def _digits() -> Answer:
    fitting = []
    for n in range(1000, 10000):
        a, b, c, d = map(int, str(n))
        if len({a, b, c, d} - {0}) == 4 and a + b + c + d == 22 and a == 2 * d and b == c + 3:
            fitting.append(number(n))
    return _only(fitting)


def _runners() -> Answer:
    return _orders(
        "Ilse Juno Kaj Lars Mina Nils",
        lambda at: at["Juno"] < at["Ilse"] < at["Kaj"],
        lambda at: abs(at["Juno"] - at["Kaj"]) == 2,
        lambda at: abs(at["Lars"] - at["Mina"]) == 1,
        lambda at: at["Nils"] in (1, 6),
        lambda at: at["Mina"] < at["Juno"] and at["Mina"] != 1,
        lambda at: at["Nils"] > at["Lars"],
    )


def _jars() -> Answer:
    return _orders(
        "Acid Brass Clay Dye Enamel Felt",
        lambda at: at["Felt"] < at["Acid"] < at["Dye"],
        lambda at: at["Clay"] == at["Felt"] + 3,
        lambda at: at["Enamel"] < at["Felt"],
        lambda at: at["Brass"] > at["Clay"] > at["Dye"],
    )


def _houses() -> Answer:
    return _orders(
        "red blue green white black",
        lambda at: at["white"] == 3,
        lambda at: at["red"] < at["blue"] < 5,
        lambda at: at["red"] == at["green"] - 1,
        lambda at: at["black"] > at["green"],
    )


def _parcels() -> Answer:
    return _orders(
        "P Q R S T", lambda at: at["P"] > at["Q"] > at["R"] > at["S"], lambda at: at["T"] == 3 and at["S"] < at["T"]
    )


PACK = {
    "map": (3, 7),
    "rope": (5, 12),
    "stove": (7, 17),
    "tent": (9, 21),
    "lamp": (2, 4),
    "radio": (6, 13),
    "axe": (4, 11),
}


def _packed(most: int) -> Answer:
    """The greatest worth of all 128 choices that weigh no more than `most`."""
    choices = [choice for size in range(len(PACK) + 1) for choice in combinations(PACK.values(), size)]
    return number(max(sum(worth for _, worth in choice) for choice in choices if sum(w for w, _ in choice) <= most))


def _jobs() -> Answer:
    hours = {"Una": (9, 4, 7, 5), "Vic": (6, 3, 8, 4), "Wes": (5, 8, 3, 6), "Xia": (7, 5, 6, 2)}
    totals = {
        order: sum(hours[name][job - 1] for name, job in zip(hours, order, strict=True))
        for order in permutations((1, 2, 3, 4))
    }
    best = [order for order, total in totals.items() if total == min(totals.values())]
    return _only([Assignment(tuple(zip(hours, order, strict=True))) for order in best])


def _tour() -> Answer:
    roads = {"AB": 14, "AC": 9, "AD": 21, "AE": 17, "BC": 12, "BD": 8, "BE": 19, "CD": 15, "CE": 11, "DE": 10}
    ways = ([*"A", *order, *"A"] for order in permutations("BCDE"))
    return number(min(sum(roads["".join(sorted(pair))] for pair in pairwise(way)) for way in ways))


def _machines() -> Answer:
    hours = {"P": (4, 7), "Q": (6, 2), "R": (3, 5), "S": (8, 6), "T": (2, 3)}

    def done(order: Sequence[str]) -> int:
        first = second = 0
        for job in order:
            first += hours[job][0]
            second = max(first, second) + hours[job][1]
        return second

    soonest = min(map(done, permutations(hours)))
    return _only([Order(order) for order in permutations(hours) if done(order) == soonest])


def _split(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every way of splitting a total into so many parts, none below 0."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _split(total - first, parts - 1):
            yield (first, *rest)


def _three_events() -> Answer:
    """The least of every joint distribution in tenths; the bounds are whole tenths, so none between them is lower."""
    atoms = list(product((0, 1), repeat=3))
    best = 10
    for mass in _split(10, 8):
        if [sum(m for m, atom in zip(mass, atoms, strict=True) if atom[i]) for i in range(3)] == [9, 8, 7]:
            best = min(best, mass[-1])
    return Number(Fraction(best, 10))


def _waiting() -> Answer:
    """So many of ten can wait 15 minutes or longer when all of them together wait 60."""
    return Number(Fraction(max(late for late in range(11) if 15 * late <= 60), 10))


def _highest_die() -> Answer:
    throws = list(product(range(1, 7), repeat=3))
    return Number(Fraction(sum(max(throw) == 5 for throw in throws), len(throws)))


def _colours() -> Answer:
    draws = list(combinations("RRRRBBBBBGGG", 3))
    return Number(Fraction(sum(len(set(draw)) == 3 for draw in draws), len(draws)))


def _bill(rolls: int) -> Answer:
    total = Fraction(18 * rolls + 7 * 4)
    return Number(total * Fraction(9, 10) if total > 75 else total)


def _berths(diver: int) -> Answer:
    return _orders(
        "Auk Brent Crake Diver Egret",
        lambda at: abs(at["Auk"] - at["Egret"]) == 3,
        lambda at: at["Brent"] == at["Crake"] + 1,
        lambda at: at["Diver"] == diver,
        lambda at: at["Egret"] < at["Crake"],
    )


def _two_dice(faces: int) -> Answer:
    throws = list(product(range(1, faces + 1), repeat=2))
    return Number(Fraction(sum(sum(throw) >= 9 for throw in throws), len(throws)))


TRUTHS: Mapping[str, Callable[[], tuple[Answer, ...]]] = {
    "constraints-crates": lambda: (_crates(),),
    "constraints-ages": lambda: (_ages(),),
    "constraints-coins": lambda: (_coins(),),
    "constraints-digits": lambda: (_digits(),),
    "ordering-runners": lambda: (_runners(),),
    "ordering-jars": lambda: (_jars(),),
    "ordering-houses": lambda: (_houses(),),
    "ordering-parcels": lambda: (_parcels(),),
    "optimum-pack": lambda: (_packed(20),),
    "optimum-jobs": lambda: (_jobs(),),
    "optimum-tour": lambda: (_tour(),),
    "optimum-machines": lambda: (_machines(),),
    "probability-three-events": lambda: (_three_events(),),
    "probability-waiting": lambda: (_waiting(),),
    "probability-highest-die": lambda: (_highest_die(),),
    "probability-colours": lambda: (_colours(),),
    "revision-bill": lambda: (_bill(3), _bill(5)),
    "revision-berths": lambda: (_berths(5), _berths(1)),
    "revision-pack": lambda: (_packed(20), _packed(17)),
    "revision-dice": lambda: (_two_dice(6), _two_dice(8)),
}


@pytest.mark.parametrize("case", REASONING_CASES)
def test_the_answer_is_what_enumeration_finds(case: str) -> None:
    """Every answer is the only one that fits, or the best of all choices."""
    assert REASONING_CASES[case].answers == TRUTHS[case]()


def test_four_cases_of_every_category() -> None:
    """There are twenty, and each thing that is said has its answer."""
    assert len(REASONING_CASES) == CASES["reasoning"] == 4 * len(CATEGORIES)
    assert [REASONING_CASES[name].category for name in case_names("reasoning", 5)] == list(CATEGORIES)
    assert all(len(case.says) == len(case.answers) for case in REASONING_CASES.values())
    assert all((len(case.says) == 2) == (case.category == "revision") for case in REASONING_CASES.values())
