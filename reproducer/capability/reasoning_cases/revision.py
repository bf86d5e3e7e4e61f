"""Revision: an answer, then a correction of what was said at first, then the answer that follows now."""

from reproducer.capability.reasoning_case import HOW, Order, ReasoningCase, number

_AGAIN = f"Answer again. {HOW}"

CASES = (
    ReasoningCase(
        id="revision-bill",
        category="revision",
        says=(
            (
                "I buy 3 rolls of wire for 18 crowns each and 4 bags of sand for 7 crowns each. On a bill above 75 "
                f"crowns, 10 per cent of all of it is taken off. What do I pay, in crowns? {HOW} the number."
            ),
            f"I was wrong: it is 5 rolls of wire, and everything else is as I said. {_AGAIN} the number.",
        ),
        answers=(number("369/5"), number("531/5")),
    ),
    ReasoningCase(
        id="revision-berths",
        category="revision",
        says=(
            (
                "Five boats lie at the berths 1 to 5: Auk, Brent, Crake, Diver and Egret. The numbers of the berths of "
                "Auk and Egret differ by 3. Brent's number is one more than Crake's. Diver is at berth 5. Egret's "
                f"number is smaller than Crake's. {HOW} the five names from berth 1 to berth 5, with commas between."
            ),
            (
                "I was wrong about Diver: it is at berth 1. Everything else is as I said. "
                f"{_AGAIN} the five names from berth 1 to berth 5, with commas between."
            ),
        ),
        answers=(
            Order(("Egret", "Crake", "Brent", "Auk", "Diver")),
            Order(("Diver", "Egret", "Crake", "Brent", "Auk")),
        ),
    ),
    ReasoningCase(
        id="revision-pack",
        category="revision",
        says=(
            (
                "A boat carries at most 20 kg. Things to take, each once, with weight and worth: map 3 kg worth 7, "
                "rope 5 kg worth 12, stove 7 kg worth 17, tent 9 kg worth 21, lamp 2 kg worth 4, radio 6 kg worth 13, "
                f"axe 4 kg worth 11. What is the greatest worth that fits? {HOW} the number."
            ),
            f"The boat carries 17 kg only, I read the plate wrongly. {_AGAIN} the number.",
        ),
        answers=(number(49), number(41)),
    ),
    ReasoningCase(
        id="revision-dice",
        category="revision",
        says=(
            (
                "Two fair dice with the faces 1 to 6 are thrown. How probable is a sum of at least 9? "
                f"{HOW} the value as a fraction."
            ),
            f"These dice have the faces 1 to 8, as I see now. {_AGAIN} the value as a fraction.",
        ),
        answers=(number("5/18"), number("9/16")),
    ),
)
