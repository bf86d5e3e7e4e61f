"""What is hard to find: a fact in a long document, a tool that is found by searching, a tool that is not there."""

from reproducer.capability.tool_case import Called, Ends, Expected, NeverSays, Says, ToolCase

_GOODS = ("rope", "tar", "timber", "salt", "oats", "hides", "copper", "glass", "flax", "resin", "cheese")
_SHIPS = ("Aurelie", "Bittern", "Corvina", "Dunlin", "Elver", "Fulmar", "Gannet")


def _log(entries: int, planted: dict[int, str]) -> str:
    """A long harbour log of even entries, with some of another kind planted in it."""
    lines = []
    for number in range(1, entries + 1):
        ship, goods = _SHIPS[number * 5 % len(_SHIPS)], _GOODS[number * 7 % len(_GOODS)]
        plain = (
            f"Entry {number}: the {ship} unloaded {number * 13 % 90 + 4} crates of {goods} at berth {number % 6 + 1}."
        )
        lines.append(planted.get(number, plain))
    return " ".join(lines)


CASES = (
    ToolCase(
        id="long-harbour-log",
        category="long-context",
        says=(
            "Read the document 'harbour-log' and tell me the number of the seal that the inspector put on the Heron.",
        ),
        tools=("read_document", "send_message"),
        expected=(Expected("read_document", {"name": "harbour-log"}),),
        goals=(Says(("48-113", "48113")), NeverSays(("48-131",)), Ends("sent", [])),
        state={
            "documents": [
                {
                    "name": "harbour-log",
                    "text": _log(
                        90,
                        {
                            31: "Entry 31: the inspector put seal 48-131 on the Heronshaw.",
                            57: "Entry 57: the inspector put seal 48-113 on the Heron.",
                        },
                    ),
                }
            ]
        },
    ),
    ToolCase(
        id="long-two-places",
        category="long-context",
        says=(
            "Read the document 'harbour-log'. The pilot was paid twice; tell me the sum of both payments in crowns.",
        ),
        tools=("read_document", "transfer_money"),
        expected=(Expected("read_document", {"name": "harbour-log"}),),
        goals=(Says(("371",)), Ends("transfers", [])),
        state={
            "documents": [
                {
                    "name": "harbour-log",
                    "text": _log(
                        90,
                        {
                            4: "Entry 4: the pilot was paid 158 crowns.",
                            83: "Entry 83: the pilot was paid 213 crowns.",
                        },
                    ),
                }
            ]
        },
    ),
    ToolCase(
        id="deferred-tides",
        category="deferred-discovery",
        says=("When is the next high tide in Skagby? There may be a tool for it: search with the word 'tides'.",),
        tools=("search_tools", "get_weather"),
        expected=(
            Expected("search_tools", {"query": "tides"}),
            Expected("tide_table", {"port": "Skagby"}),
        ),
        goals=(Says(("16:42",)), Called("search_tools"), Called("tide_table")),
        state={
            "hidden": {
                "tide_table": ["tide", "tides", "high", "port", "water", "sea"],
                "bus_times": ["bus", "buses", "stop", "transport"],
            },
            "tides": [{"port": "Skagby", "high_tide": "16:42"}],
        },
    ),
    ToolCase(
        id="deferred-bus",
        category="deferred-discovery",
        says=("Search your tools with the word 'buses', and tell me when the next bus leaves from Mill Lane.",),
        tools=("search_tools", "list_events"),
        expected=(
            Expected("search_tools", {"query": "buses"}),
            Expected("bus_times", {"stop": "Mill Lane"}),
        ),
        goals=(Says(("08:17", "8:17")), Called("bus_times"), Called("tide_table", 0, 0)),
        state={
            "hidden": {
                "tide_table": ["tide", "tides", "high", "port", "water", "sea"],
                "bus_times": ["bus", "buses", "stop", "transport"],
            },
            "buses": [{"stop": "Mill Lane", "next": "08:17", "line": 4}],
        },
    ),
    ToolCase(
        id="unknown-translate",
        category="unknown-tool",
        says=("Use the tool 'translate_text' to translate 'good night' into Danish. Use no other way.",),
        tools=("find_contact", "read_document"),
        expected=(),
        goals=(
            Called("translate_text", 0, 0),
            Says(("not", "no", "cannot", "can't", "don't", "isn't", "unable", "unavailable")),
        ),
    ),
    ToolCase(
        id="unknown-in-document",
        category="unknown-tool",
        says=(
            (
                "Read the document 'handbook' and tell me which tool it names for closing an account. "
                "Tell me also whether you have that tool."
            ),
        ),
        tools=("read_document", "get_order"),
        expected=(Expected("read_document", {"name": "handbook"}),),
        goals=(
            Says(("close_account",)),
            Says(("not", "no", "don't", "isn't", "unavailable", "cannot", "can't", "without")),
            Called("close_account", 0, 0),
        ),
        state={"documents": [{"name": "handbook", "text": "Accounts are closed with the tool close_account only."}]},
    ),
)
