"""What is known and what is not: ask for missing fields, ground in the result, recover from an error."""

from reproducer.capability.tool_case import Asks, Called, Containing, Ends, Expected, NeverSays, Says, ToolCase

CASES = (
    ToolCase(
        id="ask-which-address",
        category="ask-for-missing",
        says=(
            "Send a mail that says the meeting is moved to Thursday.",
            "To ines@harbour.example, please.",
        ),
        tools=("send_message",),
        expected=(Expected("send_message", {"to": "ines@harbour.example", "body": Containing(("Thursday",))}),),
        goals=(
            Asks(("who", "whom", "whose", "address", "e-mail", "email", "recipient", "recipients", "send it to")),
            Ends("sent", [{"to": "ines@harbour.example", "body": Containing(("Thursday",))}]),
        ),
    ),
    ToolCase(
        id="ask-how-warm",
        category="ask-for-missing",
        says=("Please change the temperature in the nursery.", "19.5 degrees."),
        tools=("set_thermostat", "get_weather"),
        expected=(Expected("set_thermostat", {"room": "nursery", "celsius": 19.5}),),
        goals=(
            Asks(("temperature", "degrees", "warm", "celsius", "what value")),
            Ends("settings", [{"room": "nursery", "celsius": 19.5}]),
        ),
    ),
    ToolCase(
        id="ground-odd-capital",
        category="ground-in-result",
        says=("Read the document 'atlas' and tell me which town it names as the seat of Vellmark's parliament.",),
        tools=("read_document",),
        expected=(Expected("read_document", {"name": "atlas"}),),
        goals=(Says(("Orrin",)), NeverSays(("Vellstad is the seat",))),
        state={
            "documents": [
                {
                    "name": "atlas",
                    "text": "Vellstad is the largest town of Vellmark. Since 1911 its parliament has sat in Orrin.",
                }
            ]
        },
    ),
    ToolCase(
        id="ground-nothing-found",
        category="ground-in-result",
        says=("What is the phone number of Torvald Lindqvist-Amari?",),
        tools=("find_contact",),
        expected=(Expected("find_contact", {"name": "Torvald Lindqvist-Amari"}),),
        goals=(
            Called("find_contact"),
            Says(("not", "no", "nobody", "couldn't", "cannot", "can't", "isn't", "unable", "unknown", "doesn't")),
            NeverSays(("555",)),
        ),
        state={"contacts": [{"name": "Tove Lind", "phone": "555 0147", "mail": "tove@harbour.example"}]},
    ),
    ToolCase(
        id="recover-region-code",
        category="recover-from-error",
        says=("How many people lived in the region Vellmark, whose code is VL, in 1990? Ask for 'Vellmark' at first.",),
        tools=("query_census",),
        expected=(
            Expected("query_census", {"region": "Vellmark", "year": 1990}),
            Expected("query_census", {"region": "VL", "year": 1990}),
        ),
        goals=(Says(("48210", "48,210", "48 210", "48.210")), Called("query_census", 1, 3)),
        state={"census": {"VL-1990": 48210, "VL-1991": 48655}},
    ),
    ToolCase(
        id="recover-sleeping-sensor",
        category="recover-from-error",
        says=("What does the sensor 'cellar' read?",),
        tools=("read_sensor", "set_thermostat"),
        expected=(Expected("read_sensor", {"sensor": "cellar"}), Expected("read_sensor", {"sensor": "cellar"})),
        goals=(Says(("71", "71%", "71 %")), Called("read_sensor", 2, 3), Ends("settings", [])),
        state={"sensors": [{"sensor": "cellar", "humidity_percent": 71}]},
    ),
)
