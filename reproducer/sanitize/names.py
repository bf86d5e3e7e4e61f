"""Host and user names: of this machine, as they were told, and as the texts themselves give them away."""

import getpass
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from reproducer.sanitize.addresses import is_address, is_loopback_name
from reproducer.sanitize.edges import begins
from reproducer.sanitize.homes import users_in
from reproducer.sanitize.kinds import PLACEHOLDER, Tally, is_placeholder
from reproducer.sanitize.routine import gives_no_name

# names that half the machines of the world share, and that texts hold for other reasons
COMMON = frozenset(
    {"admin", "app", "build", "builder", "container", "docker", "host", "local", "localhost", "main", "nobody"}
    | {"node", "none", "penny", "root", "runner", "server", "sglang", "test", "ubuntu", "unknown", "user"}
)
# given and family names that are words of any text about a measurement
_ALSO_WORDS = frozenset(
    {"will", "mark", "grant", "chase", "page", "long", "case", "lock", "chance", "rose", "young", "small", "little"}
    | {"white", "black", "green", "brown", "gray", "grey", "blue", "field", "ford", "hope", "faith", "joy", "grace"}
    | {"price", "power", "powers", "banks", "bush", "cross", "fish", "frank", "free", "gray", "hill", "hunt", "king"}
    | {"law", "major", "may", "april", "june", "august", "miles", "more", "moore", "north", "west", "south", "east"}
    | {"park", "parks", "pace", "post", "read", "rich", "rush", "sharp", "short", "strong", "swift", "wise", "wood"}
    | {"word", "words", "works", "best", "bond", "core", "cores", "drew", "earnest", "early", "link", "chip", "bill"}
    | {"dean", "gene", "jack", "pool", "range", "rate", "signs", "stone", "store", "time", "times", "trace", "true"}
    | {"linux", "amd64", "x86_64", "torch", "numpy", "triton", "ollama", "kernel", "driver", "epyc", "xeon", "intel"}
    | {
        "h100",
        "h200",
        "a100",
        "b200",
        "gpu",
        "gpus",
        "node0",
        "ai-user",
        "azureuser",
        "vagrant",
        "runpod",
        "paperspace",
    }
)
# what a person or a folder may be called and what a text about a model holds: never learned from a text
_OTHER_WORDS = COMMON | frozenset(
    {"alibaba", "assistant", "bench", "benchmark", "cache", "checkpoint", "checkpoints", "claude", "client", "cohere"}
    | {"conda", "cuda", "data", "datasets", "debian", "deepseek", "default", "ec2-user", "engine", "falcon", "gemma"}
    | {
        "google",
        "granite",
        "huggingface",
        "instruct",
        "jovyan",
        "llama",
        "local",
        "logs",
        "meta",
        "microsoft",
        "mistral",
    }
    | {"mixtral", "model", "models", "nvidia", "openai", "phi", "public", "python", "qwen", "request", "requests"}
    | {"service", "shared", "smollm", "space", "system", "tokens", "true", "false", "null", "vllm", "worker", "work"}
    | {"workspace", "batch", "decode", "prefill", "token", "throughput", "running", "usage", "name", "home", "text"}
    | {"address", "email", "secret", "guest", "info", "debug", "error", "warning", "http", "https", "post"}
)
_HINTS = (
    *("user", "login", "logname", "owner", "uname", "host", "node", "computer", "machine", "fqdn", "slurm"),
    *("addr", "endpoint", "peer"),
)
_WORDS = re.compile(r"[A-Za-z0-9-]+")
_SHORTEST = 4
_MOST = 2000
_NAME = r"[A-Za-z_][\w.-]{0,252}"
_FIELD = (
    r"(?i)"
    + begins("A-Za-z0-9")
    + r"(?P<field>user(?:name)?|login|logname|owner|uname|hostname|host_?name|nodename|node_?name"
    r"|user_?id|end_?user|user_?domain|master_addr|computer_?name|machine_?name|fqdn|host|dist_init_host|slurm_(?:job_user|submit_host|nodelist|node_?name))"
    r"\\{0,4}[\"']?[ \t]{0,2}[=:][ \t]{0,2}\\{0,4}[\"']?"
)
_FIELDS = re.compile(rf"{_FIELD}(?P<name>{_NAME})")
_PROMPT = re.compile(
    begins("A-Za-z0-9_.@-")
    + r"(?P<user>[a-z_][\w.-]{0,31})@(?P<host>[A-Za-z0-9][\w-]{0,62})(?=:[~/{]|[ \t]*[#$%>] | [^\]\n]{1,80}\][#$] )"
)
# what journals write before each line, what `uname` and `id` say, the folder of torch's compiler, an option
_SAID = re.compile(
    r"(?im)(?:^(?P<journal>(?:[a-z]{3} [ 0-3][0-9] |[0-9]{4}-[0-9]{2}-[0-9]{2}T)[0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(?:[.,][0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})? )(?=[\w.-]{1,253} [\w./@:-]{1,80}(?:\[[0-9]{1,10}\])?: )"
    r"|\bLinux (?=[\w.-]{1,253} [0-9]{1,2}\.[0-9]{1,3}\.[0-9])|\b[ug]id=[0-9]{1,10}\((?=[\w.-]{1,64}\))"
    rf"|/torchinductor_|{begins('A-Za-z0-9_-')}--(?:(?:host|hostname|username)(?:=| (?=[a-z_-]{{0,60}}[0-9.]))"
    rf"|user=))(?P<name>{_NAME})"
)
_SAID_HINTS = (": ", "linux ", "id=", "torchinductor_", "--host", "--user")
_MASTER = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?P<field>dist_init_addr|master_addr|nccl_host|endpoint|peer|nodes?|--dist-init-addr)"
    rf"\\{{0,4}}[\"']?[ \t=:]{{1,3}}\\{{0,4}}[\"']?(?P<name>{_NAME})(?=:[0-9]{{2,5}})"
)
_HEXADECIMAL = re.compile(r"[0-9a-fA-F-]{7,}|[0-9.]+")
_FIELD_NAMES = re.compile(
    r"(?i)(?:.*[_.-])?(?:user(?:_?name)?|login|logname|owner|host_?names?|node_?names?|computer_?name|machine_?name|fqdn|host|home_?dir)\Z"
)


@dataclass(frozen=True)
class Machine:
    """The names of this machine that must stay on it."""

    home: str
    names: frozenset[str]

    @classmethod
    def here(cls) -> "Machine":
        """The machine penny runs on."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = ""
        host = socket.gethostname()
        names = {user, host, host.split(".")[0]}
        return cls(
            str(Path.home()),
            frozenset(
                name
                for name in names
                if len(name) >= _SHORTEST and name.lower() not in _OTHER_WORDS and name.lower() not in _ALSO_WORDS
            ),
        )

    def unless_in(self, text: str) -> "Machine":
        """The same machine without the names that stand in a text."""
        return Machine(self.home, frozenset(each for each in self.names if not _whole(each).search(text)))

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        """What finds each name."""
        return tuple(_whole(name, re.IGNORECASE) for name in sorted(self.names, key=lambda each: (-len(each), each)))


class Learned:
    """Names that texts give away in one place, so that they can be taken out in every other."""

    def __init__(self, told: Iterable[str] = ()) -> None:
        self._told = frozenset(told)
        self._names: dict[str, None] = {}
        self._found: re.Pattern[str] | None = None
        self._first: frozenset[str] = frozenset()

    def learn(self, text: str) -> None:
        """Keep the names that a text gives away."""
        for line in text.split("\n"):
            if line and not gives_no_name(line):
                self._learn(line)

    def _learn(self, text: str) -> None:
        lowered = text.lower()
        found = users_in(text, lowered)
        if any(hint in lowered for hint in _HINTS):
            found |= _named_in(text)
        if any(hint in lowered for hint in _SAID_HINTS):
            found |= {match["name"] for match in _SAID.finditer(text) if is_name(match["name"])}
        if "@" in text:
            for match in _PROMPT.finditer(text):
                found |= {match["user"], match["host"]}
        for name in sorted(found):
            self.add(name)

    def add(self, name: str) -> None:
        """Keep one name, unless it is a word that a text may hold for other reasons."""
        name = name.strip(".-")
        for each in (name, name.split(".")[0]):
            if _tells(each) and len(self._names) < _MOST and each not in self._names:
                self._names[each] = None
                self._found = None

    def without(self, text: str, tally: Tally) -> str:
        """A text without the names that were told or learned."""
        if not self._names and not self._told:
            return text
        if self._found is None:
            names = sorted(self._told | set(self._names), key=lambda name: (-len(name), name))
            self._found = re.compile(rf"(?<![A-Za-z0-9-])(?:{'|'.join(map(re.escape, names))})(?![A-Za-z0-9-])")
            self._first = frozenset(_WORDS.findall(name)[0] if _WORDS.search(name) else "" for name in names)
        if "" not in self._first and self._first.isdisjoint(_WORDS.findall(text)):
            return text
        return self._found.sub(lambda _: tally.take("name"), text)


def without_names(text: str, machine: Machine, learned: Learned, tally: Tally) -> str:
    """A text without names of machines and people."""
    for pattern in machine.patterns:
        text = pattern.sub(lambda _: tally.take("name"), text)
    lowered = text.lower()
    if any(hint in lowered for hint in _HINTS):
        text = _FIELDS.sub(lambda match: _field(match, tally), text)
        text = _MASTER.sub(lambda match: _field(match, tally), text)
    if any(hint in lowered for hint in _SAID_HINTS):
        text = _SAID.sub(lambda match: _field(match, tally), text)
    if "@" in text:
        text = _PROMPT.sub(lambda _: f"{tally.take('name')}@{tally.take('name')}", text)
    return learned.without(text, tally)


def is_name_field(name: str) -> bool:
    """Whether what goes by this name is the name of a machine or a person."""
    return _FIELD_NAMES.fullmatch(name) is not None


def is_name(value: str) -> bool:
    """Whether a value under such a name names somebody."""
    plain = value.strip().strip("[]")
    if is_placeholder(plain) or PLACEHOLDER.search(plain) or is_loopback_name(plain):
        return False
    return bool(re.fullmatch(r"[^\s/]{2,253}", plain)) and plain.lower() not in _OTHER_WORDS and not is_address(plain)


def _named_in(text: str) -> set[str]:
    """Names that stand in fields for names."""
    found = {match["name"] for match in _FIELDS.finditer(text) if not _is_call(text, match.end())}
    return found | {match["name"] for match in _MASTER.finditer(text)}


def _field(match: re.Match[str], tally: Tally) -> str:
    name = match["name"].rstrip(".-")
    if not is_name(name) or _is_call(match.string, match.end()):
        return match[0]
    before = match[0][: match.start("name") - match.start()]
    return before + tally.take("name") + match["name"][len(name) :]


def _is_call(text: str, end: int) -> bool:
    """Whether a word goes on as code does: `host=Foo(...)`."""
    return text[end : end + 1] in {"(", "["}


def _tells(name: str) -> bool:
    """Whether a name, found anywhere, would be that name and not a word."""
    if len(name) < _SHORTEST or name.lower() in _OTHER_WORDS or _HEXADECIMAL.fullmatch(name):
        return False
    return not is_loopback_name(name) and not any(each in "{}\\" for each in name)


def _whole(name: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", flags)
