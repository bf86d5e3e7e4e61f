"""What identifies source code: all of it, or a revision that somebody declares."""

from collections.abc import Callable
from hashlib import sha256 as digest_of
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.arguments import Argument, ArgumentSchema, Default, Variable
from reproducer.documents.base import FileReference
from reproducer.documents.opened import OpenedLock
from reproducer.errors import DriftError, InvalidDocumentError, UsageError
from reproducer.identity.namespace import derive
from reproducer.identity.policy import COMMIT, Policy, derive_under
from tests.identity.factory import Edit, lock_data, lock_of, sha256

ARGUMENTS = (
    Argument(name="moe-runner-backend", field="moe_runner_backend", kind="text"),
    Argument(name="chunked-prefill-size", field="chunked_prefill_size", kind="integer", default=Default(value=8192)),
    Argument(name="dtype", field="dtype", kind="text", default=Default(value="auto")),
    Argument(name="enable-overlap", field="enable_overlap", kind="flag", default=Default(value=False)),
    Argument(name="log-level", field="log_level", kind="text", default=Default(value="info")),
    Argument(name="tensor-parallel-size", field="tp_size", aliases=("tp",), kind="integer", default=Default(value=1)),
)  # fmt: skip
VARIABLES = (Variable(name="SGLANG_ROUNDS", kind="integer", default=Default(expression="os.cpu_count()")),)
ABI = Policy("2026.1")


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., OpenedLock]:
    """A lock of the factory in a folder, with what its engine takes beside it."""

    def make(
        *edits: Edit, arguments: tuple[Argument, ...] = ARGUMENTS, variables: tuple[Variable, ...] = VARIABLES
    ) -> OpenedLock:
        source = FileReference(path="a.py", sha256=sha256("a"), size=1)
        schema = ArgumentSchema(engine="sglang", version="1", files=(source,), arguments=arguments, variables=variables)
        data: dict[str, Any] = lock_data()
        text = schema.canonical()
        folder = tmp_path / digest_of(text).hexdigest()
        folder.mkdir(exist_ok=True)
        (folder / "arguments.json").write_bytes(text)
        data["engine"]["arguments"] = {
            "path": "arguments.json",
            "sha256": digest_of(text).hexdigest(),
            "size": len(text),
        }
        for edit in edits:
            edit(data)
        return OpenedLock(lock_of(data), folder / "penny.lock.toml")

    return make


def _other_build(data: dict[str, Any]) -> None:
    data["components"][0]["source"].update(sha256=sha256("next commit"), version="0.5.11")
    data["components"][0]["patches"].pop()
    data["components"][0]["outputs"][0].update(content_sha256=sha256("next content"))
    data["environments"][1]["pylock"].update(sha256=sha256("other build packages"))
    data["toolchain"].update(compiler="gcc 14")


def _default(name: str, default: Default) -> tuple[Argument, ...]:
    return tuple(each.model_copy(update={"default": default}) if each.name == name else each for each in ARGUMENTS)


def test_commit_is_the_namespace_of_the_lock(opened: Callable[..., OpenedLock]) -> None:
    """The default policy adds nothing and reads nothing beside the lock."""
    lock = opened()
    (lock.folder / "arguments.json").unlink()

    assert derive_under(COMMIT, lock).document() == derive(lock.lock).document()


def test_a_declared_revision_stands_for_the_source(opened: Callable[..., OpenedLock]) -> None:
    """Another commit, patch, build and compiler share a namespace under one revision, and do not under `commit`."""
    one, two = opened(), opened(_other_build)

    assert derive_under(ABI, one).document() == derive_under(ABI, two).document()
    assert derive_under(COMMIT, one).digest != derive_under(COMMIT, two).digest


def test_policies_and_revisions_never_share_a_namespace(opened: Callable[..., OpenedLock]) -> None:
    """`commit` and two revisions of one lock are three namespaces."""
    lock = opened()
    found = {derive_under(policy, lock).digest for policy in (COMMIT, ABI, Policy("2026.2"))}

    assert len(found) == 3


@pytest.mark.parametrize(
    ("edit", "arguments", "variables"),
    [
        (lambda data: data["launch"]["effective"].update(page_size=32), ARGUMENTS, VARIABLES),
        (lambda data: data["environments"][0]["pylock"].update(sha256=sha256("other torch")), ARGUMENTS, VARIABLES),
        (lambda data: data["checkpoints"][0]["files"][2].update(sha256=sha256("x")), ARGUMENTS, VARIABLES),
        (lambda data: data["toolchain"].update(python="3.12"), ARGUMENTS, VARIABLES),
        (lambda _: None, _default("chunked-prefill-size", Default(value=4096)), VARIABLES),
        (lambda _: None, _default("moe-runner-backend", Default(value="triton")), VARIABLES),
        (lambda _: None, _default("enable-overlap", Default(value=True)), VARIABLES),
        (lambda _: None, ARGUMENTS, (VARIABLES[0].model_copy(update={"default": Default(expression="0")}),)),
        (lambda _: None, ARGUMENTS, (VARIABLES[0].model_copy(update={"default": Default(value="os.cpu_count()")}),)),
    ],
)
def test_what_a_revision_does_not_stand_for(
    opened: Callable[..., OpenedLock], edit: Edit, arguments: tuple[Argument, ...], variables: tuple[Variable, ...]
) -> None:
    """Everything but source code still counts, and so does a default of the engine that moved."""
    changed = opened(edit, arguments=arguments, variables=variables)

    assert derive_under(ABI, opened()).digest != derive_under(ABI, changed).digest


@pytest.mark.parametrize(
    "arguments",
    [
        _default("log-level", Default(value="debug")),
        _default("tensor-parallel-size", Default(value=2)),  # the lock has the effective value
        (*ARGUMENTS, Argument(name="new", field="new", kind="flag", default=Default(value=False))),
        (*ARGUMENTS, Argument(name="new-size", field="new_size", kind="integer")),
    ],
)
def test_defaults_that_change_no_page(opened: Callable[..., OpenedLock], arguments: tuple[Argument, ...]) -> None:
    """Neutral ones, those an effective value stands for, and new options that are off share a namespace."""
    assert derive_under(ABI, opened()).digest == derive_under(ABI, opened(arguments=arguments)).digest


def test_an_argument_that_is_named_needs_no_default(opened: Callable[..., OpenedLock]) -> None:
    """Where the lock names a value, what the default was does not count."""
    named = lambda data: data["launch"]["arguments"].update({"chunked-prefill-size": 512})  # noqa: E731
    one = opened(named)
    two = opened(named, arguments=_default("chunked-prefill-size", Default(value=1)))

    assert derive_under(ABI, one).digest == derive_under(ABI, two).digest


def test_a_default_is_one_factor_however_a_release_spells_the_argument(opened: Callable[..., OpenedLock]) -> None:
    """A release may put the short name first; the argument keeps its name, and a lock may spell it as it likes."""
    kept = ARGUMENTS[:-1]
    long = Argument(name="decode-context-parallel-size", field="dcp", kind="integer", default=Default(value=1))
    short = long.model_copy(update={"name": "dcp-size"})

    def asking(name: str) -> Edit:
        return lambda data: data["launch"]["arguments"].update({name: 2})

    def namespace(argument: Argument, *edits: Edit) -> str:
        return derive_under(ABI, opened(*edits, arguments=(*kept, argument))).digest

    assert namespace(long) == namespace(short)
    assert namespace(long, asking("dcp-size")) == namespace(short, asking("decode-context-parallel-size"))
    assert namespace(long, asking("dcp-size")) != namespace(long)


def test_without_the_engines_arguments_nothing_can_be_declared(opened: Callable[..., OpenedLock]) -> None:
    """An old lock, and a list that is gone or edited, are refused: a default that moved would not be seen."""
    old = opened(lambda data: data["engine"].pop("arguments"))
    with pytest.raises(InvalidDocumentError, match="lists no arguments of its engine"):
        derive_under(ABI, old)

    edited = opened()
    (edited.folder / "arguments.json").write_text("{}")
    with pytest.raises(DriftError, match="is not the file that the lock pins"):
        derive_under(ABI, edited)


def test_policies_are_read_as_they_are_written() -> None:
    """`commit`, `abi=REVISION`, and nothing else."""
    assert (Policy.parse("commit"), Policy.parse("abi=v1.2-a")) == (COMMIT, Policy("v1.2-a"))
    assert [str(COMMIT), str(ABI)] == ["commit", "abi=2026.1"]
    for text in ("", "abi", "abi=", "abi= 1", "abi=a/b", "abi=" + "1" * 65, "revision=1", "Commit"):
        with pytest.raises(UsageError, match="there is no policy"):
            Policy.parse(text)
