"""Whether to call, which tool, and with what: no needless call, the right tool, exact arguments."""

from reproducer.capability.tool_case import Called, Containing, Ends, Expected, NeverSays, Says, ToolCase

_DESK = ("get_weather", "convert_currency", "find_contact", "send_message", "list_events", "create_event")

CASES = (
    ToolCase(
        id="needless-sum",
        category="no-needless-call",
        says=("What is 17 plus 26? Just the number, please.",),
        tools=_DESK,
        expected=(),
        goals=(Says(("43", "forty-three", "forty three")), *(Called(tool, 0, 0) for tool in _DESK)),
    ),
    ToolCase(
        id="needless-told-already",
        category="no-needless-call",
        says=(
            (
                "The thermometer on my balcony in Bergen says 11 degrees. My plant must come inside below 8 degrees. "
                "Going by my thermometer alone: does it have to come inside now, yes or no?"
            ),
        ),
        tools=_DESK,
        expected=(),
        goals=(Says(("no",)), *(Called(tool, 0, 0) for tool in _DESK)),
        state={"weather": [{"city": "Bergen", "celsius": 6, "sky": "rain"}]},
    ),
    ToolCase(
        id="right-tool-weather",
        category="right-tool",
        says=("How warm is it in Tromsø right now?",),
        tools=_DESK,
        expected=(Expected("get_weather", {"city": "Tromsø"}),),
        goals=(Says(("-4", "minus 4", "minus four", "\u22124", "4 degrees below", "4 below")), Called("get_weather")),
        state={
            "weather": [{"city": "Tromsø", "celsius": -4, "sky": "snow"}, {"city": "Oslo", "celsius": 3, "sky": "fog"}]
        },
    ),
    ToolCase(
        id="right-tool-stock-not-order",
        category="right-tool",
        says=("How many pieces of item BX-70 are on the shelf? I have not ordered any yet.",),
        tools=("get_order", "check_stock", "reserve_stock", "refund_order"),
        expected=(Expected("check_stock", {"item": "BX-70"}),),
        goals=(
            Says(("38", "thirty-eight")),
            Called("check_stock"),
            Ends("reservations", []),
            Called("get_order", 0, 0),
        ),
        state={"stock": [{"item": "BX-70", "available": 38}], "orders": [{"order": "BX-70", "total": 12.0}]},
    ),
    ToolCase(
        id="exact-event",
        category="exact-arguments",
        says=(
            (
                "Put 'Roof inspection' into the calendar on the ninth of March 2027, from half past two in the "
                "afternoon until a quarter past four."
            ),
        ),
        tools=_DESK,
        expected=(
            Expected(
                "create_event", {"title": "Roof inspection", "date": "2027-03-09", "start": "14:30", "minutes": 105}
            ),
        ),
        goals=(
            Ends(
                "events",
                [
                    {
                        "title": Containing(("roof", "inspection")),
                        "date": "2027-03-09",
                        "start": "14:30",
                        "minutes": 105,
                    }
                ],
            ),
        ),
    ),
    ToolCase(
        id="exact-ticket",
        category="exact-arguments",
        says=(
            (
                "Open a ticket with the title 'Lift 2 stuck', the highest priority, and exactly these two labels in "
                "this order: lift, safety."
            ),
        ),
        tools=("open_ticket", "send_message"),
        expected=(
            Expected("open_ticket", {"title": "Lift 2 stuck", "priority": "high", "labels": ["lift", "safety"]}),
        ),
        goals=(
            Ends("tickets", [{"title": "Lift 2 stuck", "priority": "high", "labels": ["lift", "safety"]}]),
            Ends("sent", []),
            NeverSays(("T-2",)),
        ),
    ),
)
