"""Arguments, defaults and variables are read from source that is never run; what is no constant stays an expression."""

import os
import sys
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.arguments import Argument, ArgumentSchema, Default
from reproducer.documents.lock import ArgumentValue
from reproducer.engines.argument_check import canonical, check_arguments, nearest
from reproducer.engines.source.reading import from_folder, from_wheel, read_arguments
from reproducer.errors import InvalidDocumentError, UnsafeInputError

HEAD = """
import argparse
import dataclasses
import json
import os
from typing import List, Literal, Optional
from sglang.srt.choices import BACKENDS, Mode, TABLE
from sglang.srt.elsewhere import gone

CHOICES = ["auto", "fast"]
MORE = [*CHOICES, "slow"] + BACKENDS
SIZE = 4 * 1024 * 1024
GROWN = ["a"]

def grow(more):
    GROWN.extend(more)

GROWN.extend(["b"])
"""
CHOICES = """
import enum
from sglang.srt.parsers import First, Second

BACKENDS = ["cuda", "cpu"]
TABLE = {"first": First, "second": Second}

class Mode(enum.Enum):
    ONE = "one"
    TWO = "two"

class Level(enum.IntEnum):
    LOW = 1
"""
CALLS = (
    HEAD
    + """
class Nothing(argparse.Action):
    def __init__(self, option_strings, dest, nargs=0, **kwargs):
        super().__init__(option_strings, dest, nargs=nargs, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        print("deprecated")

class Refuses(Nothing):
    def __call__(self, parser, namespace, values, option_string=None):
        raise ValueError(self.help)

class Stores(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values)

@dataclasses.dataclass
class ServerArgs:
    model_path: str
    ratio: float = 0.5
    size: int = SIZE
    names: Optional[List[str]] = dataclasses.field(default_factory=lambda: ["x"])
    workers: int = os.cpu_count()
    mode: str = "one"

    @staticmethod
    def add_cli_args(parser):
        listed = list(TABLE.keys())
        parser.add_argument("--model-path", "--model", type=str, required=True, help=f"{listed}")
        parser.add_argument("--ratio", type=float, default=ServerArgs.ratio)
        parser.add_argument("--size", type=int, default=ServerArgs.size)
        parser.add_argument("--names", type=str, nargs="+", default=ServerArgs.names)
        parser.add_argument("--workers", type=int, default=ServerArgs.workers)
        parser.add_argument("--backend", type=str, choices=MORE, default=None)
        parser.add_argument("--parser", type=str, choices=["auto"] + listed)
        parser.add_argument("--mode", choices=[m.name.lower() for m in Mode], default=ServerArgs.mode)
        parser.add_argument("--grown", choices=GROWN)
        parser.add_argument("--gone", choices=gone, default=gone)
        parser.add_argument("--quick", action="store_true")
        parser.add_argument("--no-slow", action="store_false", dest="slow")
        parser.add_argument("--toggled", action=argparse.BooleanOptionalAction, default=True)
        parser.add_argument("--extra", type=json.loads, default="{}")
        parser.add_argument("--odd", type=lambda text: text.split(","))
        parser.add_argument("--maybe", nargs="?", const=0.5, type=float)
        parser.add_argument("--old", action=Nothing)
        parser.add_argument("--dead", action=Refuses)
        parser.add_argument("--kept", action=Stores, type=str)
        parser.add_argument("-s", "--short", type=int, default=-1)
        if os.environ.get("X"):
            parser.add_argument("--sometimes", type=int, default=2)
        group = parser.add_argument_group("more")
        group.add_argument("positional")
        group.add_argument("--grouped", action="append", default=[])
"""
)
ENVIRON = """
import os
from sglang.srt.choices import Level

def machine():
    return True

class EnvField:
    def __init__(self, default, secret=False): ...
class EnvBool(EnvField): ...
class EnvInt(EnvField): ...
class EnvFloat(EnvField): ...
class EnvStr(EnvField): ...
class EnvTuple(EnvField): ...
class Aliased(EnvBool): ...

class Envs:
    SGLANG_A = EnvBool(False)
    SGLANG_B = EnvInt(2 * 1024)
    SGLANG_C = EnvFloat(default=0.25)
    SGLANG_D = EnvStr(None, secret=True)
    SGLANG_E = EnvTuple(("a", "b"))
    SGLANG_F = EnvBool(machine)
    SGLANG_G = EnvInt(Level.LOW)
    SGLANG_H = EnvStr(os.path.expanduser("~/x"))
    SGLANG_I = Aliased(True, deprecated_name="SGL_I")
    other = 5
"""
ANNOTATED = (
    HEAD
    + """
from typing import Annotated as A
from sglang.srt.args import Arg, add_cli_args_from_dataclass

class Kept(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values)

@dataclasses.dataclass
class ServerArgs:
    model_path: A[str, Arg(help="x", aliases=["--model"])]
    tp_size: A[int, Arg(help="x", cli_name="--tensor-parallel-size", aliases=["--tp"])] = 1
    trust: A[bool, "Help."] = False
    maybe: A[Optional[float], "Long " "help."] = None
    union: A[int | None, "Help."] = None
    mode: A[Literal["one", "two"], "Help.", NS("x")] = "one"
    backend: A[Optional[str], Arg(choices=MORE)] = None
    numbers: A[Optional[List[int]], f"{json}"] = None
    parsed: A[Optional[List[str]], Arg(type_parser=json.loads)] = None
    toggled: A[bool, Arg(action=argparse.BooleanOptionalAction)] = True
    acted: A[List[str], Arg(action=Kept, action_kwargs={"type": str, "nargs": "*"})] = dataclasses.field(
        default_factory=list
    )
    hidden: A[int, Arg(no_cli=True)] = 3
    plain: int = 4
    manual: str = "yes"

    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
        parser.add_argument("--manual", default=ServerArgs.manual)
"""
)
COLLECTED = """
from sglang.srt.fields import collect_input_fields
from sglang.srt.parts import One, Two
from sglang.srt.args import add_cli_args_from_dataclass

def _declared_default(name):
    return next(f.default for f in fields(ServerArgs) if f.name == name)

class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
        parser.add_argument("--dynamic", choices=make(), default=_declared_default("dynamic"))

_SPACES = [One, Two]
_a, _b, _c = collect_input_fields(_SPACES)
ServerArgs = defstruct("ServerArgs", [])
"""
PARTS = """
import msgspec
from typing import Annotated as A

class One(msgspec.Struct):
    derived = Derived(doc="x")
    first: A[int, "x"] = 1

class Two(msgspec.Struct):
    second: A[list[str], "x"] = msgspec.field(default_factory=list)
    dynamic: str | None = "d"
"""


def sources(files: Mapping[str, str | bytes]) -> tuple[Callable[[str], bytes | None], Callable[[str], tuple[str, ...]]]:
    """Files by path, as the two functions that reading takes."""
    data = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    return data.get, lambda below: tuple(sorted(path for path in data if path.startswith(f"{below}/")))


def sglang(server: str | bytes, **more: str) -> ArgumentSchema:
    """What is read where `server` is SGLang's server_args.py."""
    files = {"sglang/srt/server_args.py": server, "sglang/srt/choices.py": CHOICES}
    files.update({f"sglang/srt/{name}.py": text for name, text in more.items()})
    return read_arguments("sglang", "1.0", *sources(files))


def sole(default: str, before: str = "", keywords: str = "") -> Argument:
    """The one argument of a server whose default is an expression."""
    schema = sglang(
        f"import os\n{before}\nclass ServerArgs:\n    @staticmethod\n    def add_cli_args(parser):\n"
        f"        parser.add_argument('--x', default={default}{keywords})\n"
    )
    return schema.arguments[0]


def argument(schema: ArgumentSchema, name: str) -> Argument:
    """One argument by its name."""
    found = schema.argument(name)
    assert found is not None, name
    return found


def without_name(found: Argument) -> dict[str, Any]:
    """The facts of an argument that are not what they are by themselves."""
    data = found.model_dump(exclude_defaults=True)
    del data["name"]
    return data


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("model-path", {"field": "model_path", "aliases": ("model",), "kind": "text", "required": True}),
        ("ratio", {"field": "ratio", "kind": "float", "default": {"value": 0.5}}),
        ("size", {"field": "size", "kind": "integer", "default": {"value": 4194304}}),
        ("names", {"field": "names", "kind": "text", "several": True, "default": {"value": ["x"]}}),
        ("workers", {"field": "workers", "kind": "integer", "default": {"expression": "os.cpu_count()"}}),
        ("backend", {"field": "backend", "kind": "text", "choices": ("auto", "fast", "slow", "cuda", "cpu")}),
        ("parser", {"field": "parser", "kind": "text", "choices": ("auto", "first", "second")}),
        ("mode", {"field": "mode", "kind": "text", "choices": ("one", "two"), "default": {"value": "one"}}),
        ("grown", {"field": "grown", "kind": "text"}),
        ("gone", {"field": "gone", "kind": "text", "default": {"expression": "gone"}}),
        ("quick", {"field": "quick", "kind": "flag", "default": {"value": False}}),
        ("no-slow", {"field": "slow", "kind": "flag", "default": {"value": True}}),
        ("toggled", {"field": "toggled", "kind": "toggle", "default": {"value": True}}),
        ("extra", {"field": "extra", "kind": "json", "default": {"value": "{}"}}),
        ("odd", {"field": "odd", "kind": "other"}),
        ("maybe", {"field": "maybe", "kind": "float", "bare": True}),
        ("old", {"field": "old", "kind": "flag", "ignored": True}),
        ("dead", {"field": "dead", "kind": "flag"}),
        ("kept", {"field": "kept", "kind": "text"}),
        ("short", {"field": "short", "kind": "integer", "default": {"value": -1}}),
        ("sometimes", {"field": "sometimes", "kind": "integer", "default": {"value": 2}}),
        ("grouped", {"field": "grouped", "kind": "text", "several": True, "default": {"value": []}}),
    ],
)
def test_calls_of_add_argument(name: str, facts: dict[str, Any]) -> None:
    """Every fact of an argument that a call adds."""
    assert without_name(argument(sglang(CALLS), name)) == facts


def test_no_other_arguments_than_those_added() -> None:
    """Fields without a call, positional and short options are no arguments."""
    names = [each.name for each in sglang(CALLS).arguments]
    assert len(names) == CALLS.count('add_argument("') - 1
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("model-path", {"field": "model_path", "aliases": ("model",), "kind": "text", "required": True}),
        ("tensor-parallel-size", {"field": "tp_size", "aliases": ("tp",), "kind": "integer", "default": {"value": 1}}),
        ("trust", {"field": "trust", "kind": "flag", "default": {"value": False}}),
        ("maybe", {"field": "maybe", "kind": "float"}),
        ("union", {"field": "union", "kind": "integer"}),
        ("mode", {"field": "mode", "kind": "text", "choices": ("one", "two"), "default": {"value": "one"}}),
        ("backend", {"field": "backend", "kind": "text", "choices": ("auto", "fast", "slow", "cuda", "cpu")}),
        ("numbers", {"field": "numbers", "kind": "integer", "several": True}),
        ("parsed", {"field": "parsed", "kind": "json"}),
        ("toggled", {"field": "toggled", "kind": "toggle", "default": {"value": True}}),
        ("acted", {"field": "acted", "kind": "text", "several": True, "default": {"value": []}}),
        ("manual", {"field": "manual", "kind": "text", "default": {"value": "yes"}}),
    ],
)
def test_annotated_fields(name: str, facts: dict[str, Any]) -> None:
    """Every fact of an argument that an annotation gives."""
    assert without_name(argument(sglang(ANNOTATED), name)) == facts


def test_fields_without_an_argument_are_none() -> None:
    """What is not on the command line, or not annotated, is no argument."""
    names = {each.name for each in sglang(ANNOTATED).arguments}
    assert not names & {"hidden", "plain", "help"}


def test_fields_collected_from_other_modules() -> None:
    """A class that is made from the fields of others has theirs, and so has a default that is looked up."""
    schema = sglang(COLLECTED, parts=PARTS)
    found = {each.name: (each.kind, each.several, each.default.value) for each in schema.arguments}
    assert found == {
        "dynamic": ("text", False, "d"),
        "first": ("integer", False, 1),
        "second": ("text", True, []),
    }
    assert [each.path for each in schema.files] == ["sglang/srt/parts.py", "sglang/srt/server_args.py"]


def test_sglang_variables() -> None:
    """The table of variables, with kinds by class and defaults."""
    found = {each.name: each for each in sglang(CALLS, environ=ENVIRON).variables}
    assert {name: (each.kind, each.default) for name, each in found.items()} == {
        "SGLANG_A": ("boolean", Default(value=False)),
        "SGLANG_B": ("integer", Default(value=2048)),
        "SGLANG_C": ("float", Default(value=0.25)),
        "SGLANG_D": ("text", Default()),
        "SGLANG_E": ("other", Default(value=["a", "b"])),
        "SGLANG_F": ("boolean", Default(expression="machine()")),
        "SGLANG_G": ("integer", Default(value=1)),
        "SGLANG_H": ("text", Default(expression="os.path.expanduser('~/x')")),
        "SGLANG_I": ("boolean", Default(value=True)),
        "SGL_I": ("boolean", Default()),
    }


VLLM = {
    "vllm/__init__.py": "",
    "vllm/config/__init__.py": """
from vllm.config.cache import CacheConfig
from vllm.config.model import Inner, ModelConfig
""",
    "vllm/config/model.py": """
from typing import TYPE_CHECKING, Any, Literal
from pydantic import Field
from vllm.config.utils import config
if TYPE_CHECKING:
    from elsewhere import Executor
else:
    Executor = Any
Kind = Literal["auto", "fast"]
More = Literal[Kind, "slow"]

@config
class Inner:
    x: int = 1

@config
class ModelConfig:
    model: str = "small"
    dtype: Kind | None = "auto"
    open: More | str = "auto"
    closed: More = Field(default="slow")
    max_len: int = Field(default=None, gt=0)
    batch: int | None = None
    flags: bool = False
    inner: Inner = Field(default_factory=Inner)
    token: bool | str | None = None
    names: list[str] = Field(default_factory=list)
    pair: tuple[int, int] = (1, 2)
    many: tuple[int, ...] | None = None
    share: float = 0.9
    table: dict[str, Any] = Field(default_factory=dict)
    words: dict[str, Any] | str | None = None
    executor: str | type[Executor] | None = None
""",
    "vllm/config/cache.py": """
from vllm.config.utils import config
PASS = "b"
@config
class CacheConfig:
    kind: Literal["a", "b"] = "a"
    size: int = 16
""",
    "vllm/engine/arg_utils.py": """
import argparse
import sys
from vllm.config import CacheConfig, ModelConfig
from vllm.config.cache import PASS

def get_kwargs(cls):
    if type_hints == {bool, str, type(None)}: ...
    if name in ("batch",): ...

class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        model_kwargs = get_kwargs(ModelConfig)
        group = parser.add_argument_group(title="m", description=ModelConfig.__doc__)
        if not ("serve" in sys.argv[1:]):
            group.add_argument("--model", **model_kwargs["model"])
        for_all = model_kwargs["dtype"]
        group.add_argument("--dtype", "-d", **for_all)
        group.add_argument("--open", **model_kwargs["open"])
        group.add_argument("--closed", **model_kwargs["closed"])
        group.add_argument("--max-len", **model_kwargs["max_len"])
        group.add_argument("--batch", **model_kwargs["batch"])
        group.add_argument("--flags", **{**model_kwargs["flags"], "default": None})
        group.add_argument("--inner", **model_kwargs["inner"])
        group.add_argument("--token", **model_kwargs["token"])
        group.add_argument("--names", **model_kwargs["names"])
        group.add_argument("--pair", **model_kwargs["pair"])
        group.add_argument("--many", **model_kwargs["many"])
        group.add_argument("--share", "--part", **model_kwargs["share"])
        group.add_argument("--table", **model_kwargs["table"])
        group.add_argument("--words", **model_kwargs["words"])
        group.add_argument("--executor", **model_kwargs["executor"])
        cache_kwargs = get_kwargs(CacheConfig)
        cache_kwargs["kind"]["choices"].remove(PASS)
        cache_kwargs["size"]["default"] = 32
        group.add_argument("--kind", **cache_kwargs["kind"])
        group.add_argument("--size", **cache_kwargs["size"])
        return parser

class AsyncEngineArgs(EngineArgs):
    verbose: bool = False

    @staticmethod
    def add_cli_args(parser, async_args_only=False):
        load_general_plugins()
        if not async_args_only:
            parser = EngineArgs.add_cli_args(parser)
        parser.add_argument("--verbose", action=argparse.BooleanOptionalAction, default=AsyncEngineArgs.verbose)
        current_platform.update(parser)
        return parser
""",
    "vllm/entrypoints/somewhere/cli_args.py": """
import json
from dataclasses import field
from vllm import envs
from vllm.config.utils import config
from vllm.engine.arg_utils import AsyncEngineArgs, optional_type

@config
class Base:
    lora: list[str] | None = None
    log_file: str | None = envs.VLLM_LOG

    @classmethod
    def _customize(cls, kwargs):
        kwargs["lora"]["type"] = optional_type(str)
        return kwargs

    @classmethod
    def add_cli_args(cls, parser):
        from vllm.engine.arg_utils import get_kwargs
        kwargs = get_kwargs(cls)
        kwargs = cls._customize(kwargs)
        group = parser.add_argument_group(title=cls.__name__.replace("Args", ""))
        for key, value in kwargs.items():
            flags = value.pop("flags", [])
            group.add_argument(*flags, f"--{key.replace('_', '-')}", **value)
        return parser

@config
class Front(Base):
    origins: list[str] = field(default_factory=lambda: ["*"])

    @classmethod
    def _customize(cls, kwargs):
        kwargs = super()._customize(kwargs)
        kwargs["origins"]["type"] = json.loads
        if "nargs" in kwargs["origins"]:
            del kwargs["origins"]["nargs"]
        return kwargs

def make_arg_parser(parser):
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--headless", action="store_true", default=False)
    parser = Front.add_cli_args(parser)
    parser = AsyncEngineArgs.add_cli_args(parser)
    return parser
""",
    "vllm/envs.py": """
import os
from typing import TYPE_CHECKING, Literal
if TYPE_CHECKING:
    VLLM_A: bool = True
    VLLM_B: int | None = None
    VLLM_C: str = "wrong"
    VLLM_D: Literal["x", "y"] = "x"
    VLLM_E: float = 10.0
    VLLM_F: str = ""

def port():
    return 1

environment_variables = {
    "VLLM_A": lambda: bool(int(os.getenv("VLLM_A", "0"))),
    "VLLM_B": lambda: int(os.environ["VLLM_B"]) if "VLLM_B" in os.environ else None,
    "VLLM_C": lambda: os.environ.get("VLLM_C", "right").lower(),
    "VLLM_D": env_with_choices("VLLM_D", "x", ["x", "y"]),
    "VLLM_E": lambda: val if (val := float(os.getenv("VLLM_E", "10."))) > 0.0 else 5.0,
    "VLLM_F": lambda: os.path.join(cache(), "x"),
    "VLLM_G": port,
    "VLLM_H": lambda: os.getenv("VLLM_H", "false").strip().lower() in ("1", "true"),
}
""",
}


def vllm(**changed: str) -> ArgumentSchema:
    """What is read from a small vLLM; keywords replace files by the last word of their path."""
    files = {path: changed.get(Path(path).stem, text) for path, text in VLLM.items()}
    return read_arguments("vllm", "1.0", *sources(files))


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("model", {"kind": "text", "default": {"value": "small"}}),
        ("dtype", {"kind": "text", "choices": ("auto", "fast", "None"), "default": {"value": "auto"}}),
        ("open", {"kind": "text", "default": {"value": "auto"}}),
        ("closed", {"kind": "text", "choices": ("auto", "fast", "slow"), "default": {"value": "slow"}}),
        ("max-len", {"kind": "integer"}),
        ("batch", {"kind": "other"}),
        ("flags", {"kind": "toggle"}),
        ("inner", {"kind": "json", "default": {"expression": "Inner()"}}),
        ("token", {"kind": "text", "bare": True}),
        ("names", {"kind": "text", "several": True, "default": {"value": []}}),
        ("pair", {"kind": "integer", "several": True, "default": {"value": [1, 2]}}),
        ("many", {"kind": "integer", "several": True}),
        ("share", {"kind": "float", "aliases": ("part",), "default": {"value": 0.9}}),
        ("table", {"kind": "json", "default": {"value": {}}}),
        ("words", {"kind": "other"}),
        ("executor", {"kind": "text"}),
        ("kind", {"kind": "text", "choices": ("a",), "default": {"value": "a"}}),
        ("size", {"kind": "integer", "default": {"value": 32}}),
        ("verbose", {"kind": "toggle", "default": {"value": False}}),
        ("headless", {"kind": "flag", "default": {"value": False}}),
        ("lora", {"kind": "text", "several": True}),
        ("log-file", {"kind": "text", "default": {"expression": "envs.VLLM_LOG"}}),
        ("origins", {"kind": "json", "default": {"value": ["*"]}}),
    ],
)
def test_vllm_arguments(name: str, facts: dict[str, Any]) -> None:
    """Every fact that a configuration class, a call or a front end's own function gives."""
    assert without_name(argument(vllm(), name)) == {"field": name.replace("-", "_"), **facts}


def test_vllm_has_no_other_arguments() -> None:
    """A field is an argument where the parser takes it, and nowhere else."""
    assert len(vllm().arguments) == 23


def test_a_boolean_or_text_is_a_toggle_where_the_engine_knows_no_bare_text() -> None:
    """Older releases make a toggle of such a field."""
    old = VLLM["vllm/engine/arg_utils.py"].replace("if type_hints == {bool, str, type(None)}: ...", "")
    assert argument(vllm(arg_utils=old), "token").kind == "toggle"


def test_vllm_variables() -> None:
    """Defaults are those of the function that reads a variable, where the machine sets none."""
    assert {each.name: (each.kind, each.default) for each in vllm().variables} == {
        "VLLM_A": ("boolean", Default(value=False)),
        "VLLM_B": ("integer", Default()),
        "VLLM_C": ("text", Default(value="right")),
        "VLLM_D": ("text", Default(value="x")),
        "VLLM_E": ("float", Default(value=10.0)),
        "VLLM_F": ("text", Default(expression="os.path.join(cache(), 'x')")),
        "VLLM_G": ("other", Default(expression="port()")),
        "VLLM_H": ("other", Default(value=False)),
    }


@pytest.mark.parametrize(
    "expression",
    [
        "'a' * 10**9",
        "['a'] * 10**9",
        "10 ** 10 ** 10",
        "1 << 10**9",
        "f'{os.getpid()}'",
        "f'{SIZE:>1000000000}'",
        "CYCLE",
        "BOMB",
        "B12",
        "'aaaa'.replace('a', HUGE).replace('a', HUGE)",
        "__import__('os').mkdir('escaped')",
        "open('escaped', 'w').write('x')",
        "(lambda: 1)()",
        "1 / 0",
        "'x'.join(BIG)",
        "int('9' * 5000)",
        "[x for x in range(10**9)]",
        "1e999",
        "b'x'",
        "2 ** 60",
        "argparse.SUPPRESS",
    ],
)
def test_what_is_no_constant_stays_an_expression(
    expression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is run, nothing grows, and the source text is kept."""
    monkeypatch.chdir(tmp_path)
    before = (
        "SIZE = 1\nCYCLE = OTHER + []\nOTHER = CYCLE\nB0 = [0] + [1]\n"
        + "".join(f"B{n} = [B{n - 1}, B{n - 1}, B{n - 1}]\n" for n in range(1, 30))
        + f"BOMB = [B29]\nHUGE = {'a' * 30000!r}\nBIG = []\n"
    )
    started = time.monotonic()
    found = sole(expression, before)
    assert found.default.value is None
    assert found.default.expression
    assert time.monotonic() - started < 20
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("4 * 1024", 4096),
        ("2 ** 10 - 1", 1023),
        ("1 << 4", 16),
        ("7 // 2 + 0.5", 3.5),
        ("'a' 'b' + 'c'", "abc"),
        ("f'{NAME}-x'", "n-x"),
        ("not NAME", False),
        ("sorted({'b', 'a'})", ["a", "b"]),
        ("{'b', 'a'}", ["a", "b"]),
        ("{'k': [1, None]}", {"k": [1, None]}),
        ("NAME or 'm'", "n"),
        ("('x', *PAIR)", ["x", 1, 2]),
        ("PAIR[1]", 2),
        ("'a' if NAME == 'n' else 'b'", "a"),
        ("LATER", 5),
    ],
)
def test_constants_are_worked_out(expression: str, value: Any) -> None:
    """Literals, names and plain arithmetic give their value."""
    assert sole(expression, "NAME = 'n'\nPAIR = (1, 2)\nLATER = 5\n").default == Default(value=value)


@pytest.mark.parametrize(
    "before",
    [
        "if os.name:\n    V = 1\nelse:\n    V = 2",
        "V = 1\nV = 2",
        "V = [1]\nV.append(2)",
        "V = [1]\nV += [2]",
        "try:\n    V = 1\nexcept ImportError:\n    pass",
        "V, W = 1, 2",
    ],
)
def test_a_name_that_is_bound_in_two_ways_is_no_constant(before: str) -> None:
    """Which binding holds, nobody guesses."""
    assert sole("V", before).default == Default(expression="V")


def test_what_a_condition_changes_is_unknown() -> None:
    """Choices that depend on the machine are not those it would have without the condition."""
    found = sglang(
        "import os\nCHOICES = ['a']\nclass ServerArgs:\n    @staticmethod\n    def add_cli_args(parser):\n"
        "        known = list(CHOICES)\n        changed = list(CHOICES)\n        value = 1\n"
        "        if os.environ.get('X'):\n            changed.append('b')\n            value = 2\n"
        "        parser.add_argument('--known', choices=known)\n"
        "        parser.add_argument('--changed', choices=changed, default=value)\n"
    )
    assert argument(found, "known").choices == ("a",)
    assert argument(found, "changed").choices is None
    assert argument(found, "changed").default.expression
    assert argument(found, "known").default == Default()


def _server(body: str) -> str:
    return f"class ServerArgs:\n    @staticmethod\n    def add_cli_args(parser):\n{body}"


DEEP = "(" * 150 + "1" + ")" * 150
HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "no Python": ("def (", "is no Python that can be read"),
    "no UTF-8": (b"x = '\xff'", "is no Python that can be read"),
    "null": (b"x = 1\x00", "is no Python that can be read"),
    "deep brackets": ("x = " + "(" * 5000 + ")" * 5000, "is no Python that can be read"),
    "deep minus": ("x = " + "-" * 100_000 + "1", "is no Python that can be read"),
    "deep sum": (_server("        parser.add_argument('--x', default=" + "+".join(["a"] * 900) + ")\n"), "too deep"),
    "long": ("#" * (2 << 20), "is larger than"),
    "no class": ("x = 1", "has no class ServerArgs"),
    "no function": ("class ServerArgs:\n    x = 1\n", "has no add_cli_args"),
    "no arguments": (_server("        pass\n"), "adds no arguments"),
    "name unknown": (_server("        parser.add_argument(name())\n"), "cannot be read"),
    "name in a loop": (
        _server("        for n in names():\n            parser.add_argument(f'--{n}')\n"),
        "cannot be read",
    ),
    "keywords unknown": (_server("        parser.add_argument('--x', **more())\n"), "cannot be read"),
    "defaults apart": (_server("        parser.set_defaults(x=1)\n"), "sets defaults apart"),
    "a name of no lock": (_server("        parser.add_argument('--X\\x1b[31m')\n"), "name"),
    "calls itself": (_server("        ServerArgs.add_cli_args(parser)\n"), "too deeply"),
    "many": (
        f"L = {[f'x{number}' for number in range(4100)]}\n"
        + _server("        for name in L:\n            parser.add_argument(f'--{name}')\n"),
        "more than 4000",
    ),
    "loops": (
        f"L = {list(range(9000))}\n"
        + _server(
            "        for a in L:\n            for b in L:\n                for c in L:\n                    x = a\n"
        ),
        "too many steps",
    ),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_source_is_one_clear_error(name: str) -> None:
    """A source that cannot be read says so, soon."""
    text, message = HOSTILE[name]
    started = time.monotonic()
    with pytest.raises(InvalidDocumentError, match=message) as caught:
        sglang(text)
    assert "\x1b" not in str(caught.value)
    assert time.monotonic() - started < 60


def test_modules_that_import_each_other_end() -> None:
    """A name that two modules take from each other is no constant."""
    found = sglang(
        "from sglang.srt.a import V\n" + _server("        parser.add_argument('--x', default=V)\n"),
        a="from sglang.srt.b import V\n",
        b="from sglang.srt.a import V\n",
    )
    assert found.arguments[0].default == Default(expression="V")


def test_a_package_of_endless_modules_is_refused() -> None:
    """A chain of modules ends at a bound."""

    def read(path: str) -> bytes | None:
        if path == "sglang/srt/server_args.py":
            lines = [f"from sglang.m{number} import V{number}\n" for number in range(400)]
            adds = [f"        parser.add_argument('--x{n}', default=V{n})\n" for n in range(400)]
            return "".join([*lines, _server("".join(adds))]).encode()
        return b"V = 1\n" if path.startswith("sglang/m") and path.endswith(".py") and "__init__" not in path else None

    with pytest.raises(InvalidDocumentError, match="too many files"):
        read_arguments("sglang", "1.0", read, lambda _: ())


def test_an_engine_that_penny_does_not_know() -> None:
    """Another engine is refused by name."""
    with pytest.raises(InvalidDocumentError, match="cannot read the arguments of 'other'"):
        read_arguments("other", "1.0", *sources({}))


def test_a_package_without_the_engine() -> None:
    """No source is no schema."""
    for engine in ("sglang", "vllm"):
        with pytest.raises(InvalidDocumentError, match="has no module"):
            read_arguments(engine, "1.0", *sources({}))


def test_nothing_of_the_engine_is_imported() -> None:
    """Reading imports no module of the engine's name."""
    sglang(CALLS, environ=ENVIRON)
    vllm()
    assert not {name for name in sys.modules if name.partition(".")[0] in ("sglang", "vllm")}


def test_the_document_is_stable(tmp_path: Path) -> None:
    """The same source gives the same bytes, from memory, a folder and a wheel, and they are read back the same."""
    expected = vllm()
    for path, text in VLLM.items():
        (tmp_path / "site" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / path).write_text(text)
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as packed:
        for path, text in VLLM.items():
            packed.writestr(path, text)
    assert from_folder("vllm", "1.0", tmp_path / "site").canonical() == expected.canonical()
    assert from_wheel("vllm", "1.0", tmp_path / "x.whl").canonical() == expected.canonical()
    assert ArgumentSchema.from_json(expected.canonical(), where="x") == expected


def test_a_folder_is_read_through_no_link(tmp_path: Path) -> None:
    """A link in the place of a file or a folder is no source, nor is a pipe, and neither hangs."""
    outside = tmp_path / "outside"
    (outside / "srt").mkdir(parents=True)
    (outside / "srt" / "server_args.py").write_text(CALLS)
    site = tmp_path / "site"
    site.mkdir()
    (site / "sglang").symlink_to(outside)
    with pytest.raises(InvalidDocumentError, match="has no module"):
        from_folder("sglang", "1.0", site)
    (site / "sglang").unlink()
    (site / "sglang" / "srt").mkdir(parents=True)
    (site / "sglang" / "srt" / "server_args.py").symlink_to(outside / "srt" / "server_args.py")
    with pytest.raises(InvalidDocumentError, match="has no module"):
        from_folder("sglang", "1.0", site)
    (site / "sglang" / "srt" / "server_args.py").unlink()
    os.mkfifo(site / "sglang" / "srt" / "server_args.py")
    with pytest.raises(InvalidDocumentError, match="has no module"):
        from_folder("sglang", "1.0", site)


def test_a_file_is_read_up_to_a_bound(tmp_path: Path) -> None:
    """A huge file is not read whole."""
    path = tmp_path / "sglang" / "srt" / "server_args.py"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InvalidDocumentError, match="is larger than"):
        from_folder("sglang", "1.0", tmp_path)


def test_a_broken_wheel_is_refused(tmp_path: Path) -> None:
    """No zip file, and a member that leaves, are refused as such."""
    (tmp_path / "x.whl").write_bytes(b"no zip")
    with pytest.raises(UnsafeInputError, match="no wheel that can be read"):
        from_wheel("sglang", "1.0", tmp_path / "x.whl")
    with zipfile.ZipFile(tmp_path / "y.whl", "w") as packed:
        packed.writestr("../sglang/srt/server_args.py", CALLS)
    with pytest.raises(UnsafeInputError, match="leaves its folder"):
        from_wheel("sglang", "1.0", tmp_path / "y.whl")


SCHEMA = sglang(CALLS)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"ratios": 1.0}, "no argument 'ratios', did you mean ratio"),
        ({"qqq\x1b": 1}, r"no argument 'qqq\\x1b'$"),
        ({"backend": "cudda"}, "backend does not take 'cudda', did you mean cuda"),
        ({"backend": "zzz"}, "backend does not take 'zzz', it takes auto, fast"),
        ({"size": "8"}, "size takes an integer; got '8'"),
        ({"size": 0.5}, "size takes an integer"),
        ({"size": True}, "size needs a value"),
        ({"size": ("1", "2")}, "size takes one value; got a list of 2"),
        ({"ratio": "x"}, "ratio takes a number"),
        ({"quick": "yes"}, "quick is there or not, and takes no value"),
        ({"toggled": 1}, "toggled is there or not"),
        ({"toggled": False}, "toggled = false only leaves the flag out, .*write no-toggled = true"),
        ({"no-toggled": "yes"}, "no-toggled is there or not, and takes no value"),
        ({"no-toggeld": True}, "no argument 'no-toggeld', did you mean no-toggled"),
        ({"no-quick": True}, "no argument 'no-quick'"),
        ({"no-no-toggled": True}, "no argument 'no-no-toggled'"),
        ({"toggled": True, "no-toggled": True}, "no-toggled and toggled are the same argument"),
        ({"no-toggled": True, "toggled": True}, "toggled and no-toggled are the same argument"),
        ({"model": "a", "model-path": "b"}, "model-path and model are the same argument"),
        ({"model": True}, "model needs a value"),
        ({"maybe": False}, "maybe needs a value"),
    ],
)
def test_a_wrong_argument_is_one_fault(arguments: dict[str, ArgumentValue], fault: str) -> None:
    """Unknown names, other choices, wrong types and one argument under two names are faults."""
    faults = check_arguments(SCHEMA, arguments)
    assert len(faults) == 1
    import re

    assert re.search(fault, faults[0]), faults[0]


@pytest.mark.parametrize(
    "arguments",
    [
        {"ratio": 1, "size": 3, "backend": "cpu", "quick": False, "toggled": True},
        {"names": ("a", "b")},
        {"names": "a"},
        {"maybe": True},
        {"maybe": 0.5},
        {"odd": "1,2", "extra": "{}"},
        {"odd": ("1", "2")},
        {"model": "x"},
        {"grouped": 5},
        {"no-toggled": True},
        {"no-toggled": False},
    ],
)
def test_right_arguments_are_no_fault(arguments: dict[str, ArgumentValue]) -> None:
    """What the engine's parser takes is taken."""
    assert check_arguments(SCHEMA, arguments) == ()


def test_lists_of_numbers_hold_numbers() -> None:
    """An item of a list is text in a lock, and must read as what the engine parses."""
    schema = sglang(ANNOTATED)
    assert check_arguments(schema, {"numbers": ("1", "2")}) == ()
    assert check_arguments(schema, {"numbers": ("1", "x")}) == ("numbers takes a list of integers; got 'x'",)


def test_aliases_become_names() -> None:
    """An argument is known by its first long option; what nobody knows stays."""
    schema = sglang(ANNOTATED)
    assert canonical(schema, {"tp": 2, "zzz": 1}) == {"tensor-parallel-size": 2, "zzz": 1}
    with pytest.raises(InvalidDocumentError, match="tensor-parallel-size and tp are the same argument"):
        canonical(schema, {"tp": 2, "tensor-parallel-size": 2})


def test_switched_off_is_a_form_of_its_argument() -> None:
    """`--no-NAME` keeps its meaning, stands beside no other form of NAME, and belongs to toggles only."""
    assert canonical(SCHEMA, {"no-toggled": True}) == {"no-toggled": True}
    assert canonical(SCHEMA, {"no-quick": True}) == {"no-quick": True}
    for both in ({"toggled": True, "no-toggled": True}, {"no-toggled": True, "toggled": True}):
        with pytest.raises(InvalidDocumentError, match="are the same argument"):
            canonical(SCHEMA, both)


def test_false_is_taken_where_it_is_the_default() -> None:
    """A toggle that is off unless it is named may be written as false."""
    argument = SCHEMA.argument("toggled")
    assert argument is not None
    off = argument.model_copy(update={"default": Default(value=False)})
    assert check_arguments(SCHEMA.model_copy(update={"arguments": (off,)}), {"toggled": False}) == ()


def test_the_nearest_names() -> None:
    """A misspelt name finds the one that was meant, aliases too."""
    assert nearest(SCHEMA, "toggeld")[0] == "toggled"
    assert "model" in nearest(SCHEMA, "modle")
    assert nearest(SCHEMA, "zzzzzzz") == ()
