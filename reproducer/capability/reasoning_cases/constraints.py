"""Arithmetic over constraints: whole numbers that must fit several sentences at once."""

from reproducer.capability.reasoning_case import HOW, Assignment, ReasoningCase, number

CASES = (
    ReasoningCase(
        id="constraints-crates",
        category="constraints",
        says=(
            (
                "A cellar holds between 200 and 900 crates. Stacked in sevens, 3 are left over; stacked in elevens, "
                f"5 are left over; stacked in thirteens, 4 are left over. How many crates are there? {HOW} the number."
            ),
        ),
        answers=(number(654),),
    ),
    ReasoningCase(
        id="constraints-ages",
        category="constraints",
        says=(
            (
                "Ada, Bo and Cy are 1 to 60 years old, in whole years. Together they are 86. Ada is twice as old as "
                "Bo was 6 years ago. Cy is 40 years younger than Ada and Bo are together. How old is each of them? "
                f"{HOW} for example Ada=1, Bo=2, Cy=3."
            ),
        ),
        answers=(Assignment((("Ada", 38), ("Bo", 25), ("Cy", 23))),),
    ),
    ReasoningCase(
        id="constraints-coins",
        category="constraints",
        says=(
            (
                "A purse holds 23 coins of 2, 5 and 10 crowns, together 106 crowns, with at least one of each kind. "
                "There are more coins of 2 than of 10, and more coins of 10 than of 5. How many coins of each kind "
                f"are there? {HOW} for example two=1, five=2, ten=3."
            ),
        ),
        answers=(Assignment((("two", 13), ("five", 4), ("ten", 6))),),
    ),
    ReasoningCase(
        id="constraints-digits",
        category="constraints",
        says=(
            (
                "A four-digit number has four different digits, none of them 0, that add up to 22. Its first digit is "
                f"twice its last. Its second digit is 3 more than its third. Which number is it? {HOW} the number."
            ),
        ),
        answers=(number(6853),),
    ),
)
