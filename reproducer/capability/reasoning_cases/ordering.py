"""Ordering: one order fits all sentences."""

from reproducer.capability.reasoning_case import HOW, Order, ReasoningCase

CASES = (
    ReasoningCase(
        id="ordering-runners",
        category="ordering",
        says=(
            (
                "Ilse, Juno, Kaj, Lars, Mina and Nils finish a race, no two at once. Ilse is before Kaj and after "
                "Juno. Exactly one runner is between Juno and Kaj. Lars and Mina come directly one after the other, "
                "in one order or the other. Nils is first or last. Mina is before Juno, and Mina is not first. "
                f"Nils is after Lars. In which order do they finish? {HOW} the six names from first to last, "
                "with commas between them."
            ),
        ),
        answers=(Order(("Lars", "Mina", "Juno", "Ilse", "Kaj", "Nils")),),
    ),
    ReasoningCase(
        id="ordering-jars",
        category="ordering",
        says=(
            (
                "Six jars stand in a row from left to right: Acid, Brass, Clay, Dye, Enamel, Felt. Felt is somewhere "
                "left of Acid, and Acid somewhere left of Dye. Clay is exactly three places to the right of Felt. "
                "Enamel is somewhere left of Felt. Brass is somewhere right of Clay. Dye is somewhere left of Clay. "
                f"{HOW} the six names from left to right, with commas between them."
            ),
        ),
        answers=(Order(("Enamel", "Felt", "Acid", "Dye", "Clay", "Brass")),),
    ),
    ReasoningCase(
        id="ordering-houses",
        category="ordering",
        says=(
            (
                "Five houses stand in a row from left to right: red, blue, green, white, black. White is in the "
                "middle. Red is somewhere left of blue. Red is directly left of green. Black is somewhere right of "
                f"green. Blue is not the last one. {HOW} the five colours from left to right, with commas between them."
            ),
        ),
        answers=(Order(("red", "green", "white", "blue", "black")),),
    ),
    ReasoningCase(
        id="ordering-parcels",
        category="ordering",
        says=(
            (
                "Five parcels P, Q, R, S and T have different weights. P is heavier than Q. R is heavier than S. "
                "Exactly two are lighter than T. Q is heavier than R. S is lighter than T. "
                f"{HOW} the five letters from the lightest to the heaviest, with commas between them."
            ),
        ),
        answers=(Order(("S", "R", "T", "Q", "P")),),
    ),
)
