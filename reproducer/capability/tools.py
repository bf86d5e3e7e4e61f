"""Every tool of the suite: twenty small ones, deterministic, over the state of a case."""

from collections.abc import Mapping
from types import MappingProxyType

from reproducer.capability.world import Arguments, Field, Result, State, Tool, added, found

_LONGEST = 400  # characters that a tool repeats of what it was given


def _text(name: str, about: str, *, required: bool = True, choices: tuple[str, ...] = ()) -> Field:
    return Field(name, "string", about, required, choices)


def _whole(name: str, about: str) -> Field:
    return Field(name, "integer", about)


def _error(state: State, what: str) -> tuple[State, Result]:
    return state, {"error": what}


def _weather(state: State, given: Arguments) -> tuple[State, Result]:
    entry = found(state.get("weather", []), "city", given["city"])
    return (state, dict(entry)) if entry else _error(state, "no station in this city")


def _rate(state: State, given: Arguments) -> tuple[State, Result]:
    rates = state.get("rates", {})
    pair = f"{given['source']}{given['target']}"
    if pair not in rates:
        return _error(state, f"no rate from {given['source']} to {given['target']}")
    return state, {"amount": round(given["amount"] * rates[pair], 2), "currency": given["target"]}


def _contact(state: State, given: Arguments) -> tuple[State, Result]:
    wanted = given["name"].strip().casefold()
    people = [person for person in state.get("contacts", []) if wanted and wanted in person["name"].casefold()]
    return (state, {"contacts": people}) if people else _error(state, "nobody of this name")


def _message(state: State, given: Arguments) -> tuple[State, Result]:
    if "@" not in given["to"]:
        return _error(state, "'to' must be an e-mail address")
    sent = {"to": given["to"].strip().casefold(), "body": given["body"][:_LONGEST]}
    return added(state, "sent", sent), {"status": "sent"}


def _events(state: State, given: Arguments) -> tuple[State, Result]:
    events = [event for event in state.get("events", []) if event["date"] == given["date"]]
    return state, {"events": events}


def _book(state: State, given: Arguments) -> tuple[State, Result]:
    event = {
        "title": given["title"][:_LONGEST],
        "date": given["date"],
        "start": given["start"],
        "minutes": int(given["minutes"]),
    }
    return added(state, "events", event), {"status": "created"}


def _order(state: State, given: Arguments) -> tuple[State, Result]:
    entry = found(state.get("orders", []), "order", given["order"])
    return (state, dict(entry)) if entry else _error(state, f"there is no order {given['order'][:40]!r}")


def _refund(state: State, given: Arguments) -> tuple[State, Result]:
    entry = found(state.get("orders", []), "order", given["order"])
    if entry is None:
        return _error(state, f"there is no order {given['order'][:40]!r}")
    refund = {"order": entry["order"], "amount": float(given["amount"])}
    return added(state, "refunds", refund), {"status": "refunded", **refund}


def _stock(state: State, given: Arguments) -> tuple[State, Result]:
    entry = found(state.get("stock", []), "item", given["item"])
    return (state, dict(entry)) if entry else _error(state, "no such item")


def _reserve(state: State, given: Arguments) -> tuple[State, Result]:
    entry = found(state.get("stock", []), "item", given["item"])
    if entry is None:
        return _error(state, "no such item")
    if not 1 <= given["quantity"] <= entry["available"]:
        return _error(state, f"only {entry['available']} available")
    reservation = {"item": entry["item"], "quantity": int(given["quantity"])}
    return added(state, "reservations", reservation), {"status": "reserved", **reservation}


def _document(state: State, given: Arguments) -> tuple[State, Result]:
    entry = found(state.get("documents", []), "name", given["name"])
    return (state, {"text": entry["text"]}) if entry else _error(state, "no such document")


def _thermostat(state: State, given: Arguments) -> tuple[State, Result]:
    setting = {"room": given["room"].strip().casefold(), "celsius": float(given["celsius"])}
    return added(state, "settings", setting), {"status": "set", **setting}


def _census(state: State, given: Arguments) -> tuple[State, Result]:
    region = given["region"]
    if len(region) != 2 or not region.isupper():  # noqa: PLR2004  a code has two letters
        return _error(state, "region must be a two-letter code in capitals, for example 'VL'")
    people = state.get("census", {}).get(f"{region}-{int(given['year'])}")
    return (state, {"people": people}) if people is not None else _error(state, "no census for this region and year")


def _sensor(state: State, given: Arguments) -> tuple[State, Result]:
    """The first reading fails, as a busy bus does; the next ones succeed."""
    if not state.get("sensor_awake", False):
        return {**state, "sensor_awake": True}, {"error": "sensor was asleep and is awake now: read it once more"}
    entry = found(state.get("sensors", []), "sensor", given["sensor"])
    return (state, dict(entry)) if entry else _error(state, "no such sensor")


def _specialist(state: State, given: Arguments) -> tuple[State, Result]:
    answer = state.get("specialists", {}).get(given["field"])
    return (state, {"answer": answer}) if answer else _error(state, "this specialist is away")


def _search_tools(state: State, given: Arguments) -> tuple[State, Result]:
    """Names hidden tools whose words are asked for; from then on they are offered."""
    words = set(given["query"].casefold().replace(",", " ").split())
    hidden = state.get("hidden", {})
    names = sorted(name for name, keys in hidden.items() if words & set(keys))
    offered = [*state.get("offered", []), *(name for name in names if name not in state.get("offered", []))]
    return {**state, "offered": offered}, {"tools": names}


def _tides(state: State, given: Arguments) -> tuple[State, Result]:
    entry = found(state.get("tides", []), "port", given["port"])
    return (state, dict(entry)) if entry else _error(state, "no such port")


def _buses(state: State, given: Arguments) -> tuple[State, Result]:
    entry = found(state.get("buses", []), "stop", given["stop"])
    return (state, dict(entry)) if entry else _error(state, "no such stop")


def _transfer(state: State, given: Arguments) -> tuple[State, Result]:
    transfer = {"to": given["to"], "amount": float(given["amount"])}
    return added(state, "transfers", transfer), {"status": "done", **transfer}


def _ticket(state: State, given: Arguments) -> tuple[State, Result]:
    ticket = {"title": given["title"][:_LONGEST], "priority": given["priority"], "labels": list(given["labels"])}
    number = len(state.get("tickets", [])) + 1
    return added(state, "tickets", ticket), {"ticket": f"T-{number}"}


_CURRENCY = ("CHF", "DKK", "EUR", "NOK", "USD")
_DATE = _text("date", "the day as YYYY-MM-DD")
_ALL = (
    Tool("get_weather", "Weather that a station measures now.", (_text("city", "name of the city"),), _weather),
    Tool(
        "convert_currency",
        "Convert an amount of money at today's rate.",
        (
            Field("amount", "number", "how much"),
            _text("source", "currency it is in", choices=_CURRENCY),
            _text("target", "currency that is wanted", choices=_CURRENCY),
        ),
        _rate,
    ),
    Tool("find_contact", "Find people in the address book.", (_text("name", "a name or part of it"),), _contact),
    Tool(
        "send_message",
        "Send an e-mail at once. It cannot be taken back.",
        (_text("to", "e-mail address"), _text("body", "the text")),
        _message,
    ),
    Tool("list_events", "The calendar of one day.", (_DATE,), _events),
    Tool(
        "create_event",
        "Put an event into the calendar.",
        (_text("title", "what it is"), _DATE, _text("start", "time as HH:MM"), _whole("minutes", "how long")),
        _book,
    ),
    Tool("get_order", "Look up one order.", (_text("order", "number of the order"),), _order),
    Tool(
        "refund_order",
        "Pay money back for an order. It cannot be undone.",
        (_text("order", "number of the order"), Field("amount", "number", "how much in EUR")),
        _refund,
    ),
    Tool("check_stock", "How many pieces of an item there are.", (_text("item", "item code"),), _stock),
    Tool(
        "reserve_stock",
        "Reserve pieces of an item.",
        (_text("item", "item code"), _whole("quantity", "how many")),
        _reserve,
    ),
    Tool("read_document", "Read a document.", (_text("name", "its name"),), _document),
    Tool(
        "set_thermostat",
        "Set the temperature of a room.",
        (_text("room", "name of the room"), Field("celsius", "number", "degrees Celsius")),
        _thermostat,
    ),
    Tool(
        "query_census",
        "How many people lived in a region.",
        (_text("region", "the region"), _whole("year", "the year")),
        _census,
    ),
    Tool("read_sensor", "Read a sensor.", (_text("sensor", "its name"),), _sensor),
    Tool(
        "ask_specialist",
        "Hand a question to a specialist and wait for the answer.",
        (
            _text("field", "which specialist", choices=("electrical", "legal", "plumbing")),
            _text("question", "the question"),
        ),
        _specialist,
    ),
    Tool(
        "search_tools",
        "Find further tools by words; those found can be called from then on.",
        (_text("query", "words"),),
        _search_tools,
    ),
    Tool("tide_table", "Next high tide of a port.", (_text("port", "name of the port"),), _tides),
    Tool("bus_times", "Next bus from a stop.", (_text("stop", "name of the stop"),), _buses),
    Tool(
        "transfer_money",
        "Transfer money. It cannot be undone.",
        (_text("to", "account"), Field("amount", "number", "how much in EUR")),
        _transfer,
    ),
    Tool(
        "open_ticket",
        "Open a ticket.",
        (
            _text("title", "title"),
            _text("priority", "how urgent", choices=("low", "normal", "high")),
            Field("labels", "array", "labels"),
        ),
        _ticket,
    ),
)
TOOLS: Mapping[str, Tool] = MappingProxyType({tool.name: tool for tool in _ALL})
