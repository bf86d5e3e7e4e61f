"""Optimisation: the best of finitely many choices, which a test proves by looking at all of them."""

from reproducer.capability.reasoning_case import HOW, Assignment, Order, ReasoningCase, number

CASES = (
    ReasoningCase(
        id="optimum-pack",
        category="optimisation",
        says=(
            (
                "A pack carries at most 20 kg. Things to take, each once, with weight and worth: map 3 kg worth 7, "
                "rope 5 kg worth 12, stove 7 kg worth 17, tent 9 kg worth 21, lamp 2 kg worth 4, radio 6 kg worth 13, "
                f"axe 4 kg worth 11. What is the greatest worth that fits? {HOW} the number."
            ),
        ),
        answers=(number(49),),
    ),
    ReasoningCase(
        id="optimum-jobs",
        category="optimisation",
        says=(
            (
                "Four people each take one of the jobs 1, 2, 3, 4, every job is taken. Hours for jobs 1, 2, 3, 4: "
                "Una 9, 4, 7, 5; Vic 6, 3, 8, 4; Wes 5, 8, 3, 6; Xia 7, 5, 6, 2. Who takes which job so that the sum "
                f"of hours is as small as it can be? {HOW} for example Una=1, Vic=2, Wes=3, Xia=4."
            ),
        ),
        answers=(Assignment((("Una", 2), ("Vic", 1), ("Wes", 3), ("Xia", 4))),),
    ),
    ReasoningCase(
        id="optimum-tour",
        category="optimisation",
        says=(
            (
                "Roads between five villages, in km: A-B 14, A-C 9, A-D 21, A-E 17, B-C 12, B-D 8, B-E 19, C-D 15, "
                "C-E 11, D-E 10. A postman starts in A, goes to each other village exactly once and returns to A. "
                f"How long is the shortest such tour, in km? {HOW} the number."
            ),
        ),
        answers=(number(52),),
    ),
    ReasoningCase(
        id="optimum-machines",
        category="optimisation",
        says=(
            (
                "Five jobs go through machine 1 and then through machine 2; each machine does one job at a time, both "
                "take the jobs in the same order. Hours on machine 1 and on machine 2: P 4 and 7, Q 6 and 2, "
                "R 3 and 5, S 8 and 6, T 2 and 3. In which order is everything done soonest? "
                f"{HOW} the five letters in that order, with commas between them."
            ),
        ),
        answers=(Order(("T", "R", "P", "S", "Q")),),
    ),
)
