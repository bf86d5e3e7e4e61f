"""More than one step: chain two tools, give exact JSON, delegate and combine."""

from reproducer.capability.tool_case import Called, Containing, Ends, Expected, Says, SaysJson, ToolCase

CASES = (
    ToolCase(
        id="chain-contact-mail",
        category="chain-two",
        says=("Mail Anouk Verhaeg that the keys are at the porter's desk. Her address is in the address book.",),
        tools=("find_contact", "send_message", "list_events"),
        expected=(
            Expected("find_contact", {"name": "Anouk Verhaeg"}),
            Expected("send_message", {"to": "anouk.v@quay.example", "body": Containing(("keys", "porter's"))}),
        ),
        goals=(
            Called("find_contact"),
            Ends("sent", [{"to": "anouk.v@quay.example", "body": Containing(("keys",))}]),
        ),
        state={"contacts": [{"name": "Anouk Verhaeg", "mail": "anouk.v@quay.example"}]},
    ),
    ToolCase(
        id="chain-order-currency",
        category="chain-two",
        says=("What is the total of order 2240, which is in EUR, in DKK?",),
        tools=("get_order", "convert_currency", "refund_order"),
        expected=(
            Expected("get_order", {"order": "2240"}),
            Expected("convert_currency", {"amount": 86, "source": "EUR", "target": "DKK"}),
        ),
        goals=(Says(("641.56", "641,56")), Ends("refunds", [])),
        state={"orders": [{"order": "2240", "total": 86.0}], "rates": {"EURDKK": 7.46}},
    ),
    ToolCase(
        id="json-stock",
        category="exact-json",
        says=(
            (
                "Check the stock of QL-4. Then answer with a JSON object and nothing else, no prose and no fence: "
                'the keys are "item" (text), "available" (number) and "enough" (true if there are at least 10).'
            ),
        ),
        tools=("check_stock", "reserve_stock"),
        expected=(Expected("check_stock", {"item": "QL-4"}),),
        goals=(SaysJson({"item": "QL-4", "available": 7, "enough": False}), Ends("reservations", [])),
        state={"stock": [{"item": "QL-4", "available": 7}]},
    ),
    ToolCase(
        id="json-events",
        category="exact-json",
        says=(
            (
                "List the calendar of 2027-05-02. Then answer with a JSON array of the titles in order of start, "
                "earliest first, and nothing else: no prose and no code fence."
            ),
        ),
        tools=("list_events", "create_event"),
        expected=(Expected("list_events", {"date": "2027-05-02"}),),
        goals=(SaysJson(["Ferry", "Dentist", "Choir"]),),
        state={
            "events": [
                {"title": "Choir", "date": "2027-05-02", "start": "19:00", "minutes": 90},
                {"title": "Ferry", "date": "2027-05-02", "start": "07:40", "minutes": 25},
                {"title": "Dentist", "date": "2027-05-02", "start": "11:15", "minutes": 30},
                {"title": "Audit", "date": "2027-05-03", "start": "08:00", "minutes": 60},
            ]
        },
    ),
    ToolCase(
        id="delegate-two-quotes",
        category="delegate-combine",
        says=(
            (
                "Ask the electrical specialist and the plumbing specialist, each once, what their part of the "
                "bathroom in flat 3 costs. Then tell me the sum."
            ),
        ),
        tools=("ask_specialist", "send_message"),
        expected=(
            Expected("ask_specialist", {"field": "electrical", "question": Containing(("bathroom",))}),
            Expected("ask_specialist", {"field": "plumbing", "question": Containing(("bathroom",))}),
        ),
        goals=(Says(("2055", "2,055", "2.055", "2 055")), Called("ask_specialist", 2, 3), Ends("sent", [])),
        state={"specialists": {"electrical": "It costs 640 EUR.", "plumbing": "It costs 1415 EUR."}},
        any_order=True,
    ),
    ToolCase(
        id="delegate-longest",
        category="delegate-combine",
        says=(
            (
                "Ask the electrical, the legal and the plumbing specialist, each once, how many days they need for the "
                "permit of flat 3. They work at the same time. After how many days are all of them done?"
            ),
        ),
        tools=("ask_specialist", "create_event"),
        expected=tuple(
            Expected("ask_specialist", {"field": field, "question": Containing(("days",))})
            for field in ("electrical", "legal", "plumbing")
        ),
        goals=(Says(("17", "seventeen")), Called("ask_specialist", 3, 4), Ends("events", [])),
        state={"specialists": {"electrical": "Nine days.", "legal": "Seventeen days.", "plumbing": "Twelve days."}},
        any_order=True,
    ),
)
