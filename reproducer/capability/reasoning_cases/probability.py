"""Probability: exact values, and bounds that hold whatever is not said."""

from reproducer.capability.reasoning_case import HOW, ReasoningCase, number

CASES = (
    ReasoningCase(
        id="probability-three-events",
        category="probability",
        says=(
            (
                "Three lamps burn with probabilities 9/10, 8/10 and 7/10. Nothing is known about how they depend on "
                "each other. What is the smallest value that the probability of all three burning can have? "
                f"{HOW} the value as a fraction or decimal."
            ),
        ),
        answers=(number("2/5"),),
    ),
    ReasoningCase(
        id="probability-waiting",
        category="probability",
        says=(
            (
                "Ten people waited 6 minutes on average, nobody less than 0. One of them is drawn at random. "
                "What is the greatest value that the probability of having drawn somebody who waited at least "
                f"15 minutes can have? {HOW} the value as a fraction or decimal."
            ),
        ),
        answers=(number("2/5"),),
    ),
    ReasoningCase(
        id="probability-highest-die",
        category="probability",
        says=(
            (
                "Three fair dice with six faces are thrown. How probable is it that the highest of the three is "
                f"exactly 5? {HOW} the value as a fraction."
            ),
        ),
        answers=(number("61/216"),),
    ),
    ReasoningCase(
        id="probability-colours",
        category="probability",
        says=(
            (
                "A bag holds 4 red, 5 blue and 3 green balls. Three are drawn without putting any back. How probable "
                f"is it that they have three different colours? {HOW} the value as a fraction."
            ),
        ),
        answers=(number("3/11"),),
    ),
)
