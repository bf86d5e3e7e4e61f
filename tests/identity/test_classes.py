"""The classification itself: closed, reasoned, and every rule of some use."""

from typing import Any

import pytest

from reproducer.difference.diff import diff
from reproducer.engines.refused import REFUSED
from reproducer.errors import InvalidDocumentError
from reproducer.identity.classes import RULES, UNLISTED, rule
from reproducer.identity.factors import flatten
from reproducer.identity.meaning import WORST_FIRST, Meaning, worst
from reproducer.identity.namespace import derive
from reproducer.identity.tables import table_of
from tests.identity.factory import Edit, lock_of, make_lock, sha256, whole_data

FILES = ("chat_template.jinja", "chat_template.json", "README.md", "LICENSE", ".gitattributes")


def asking(name: str, value: Any) -> Edit:
    """The launch with an argument more."""

    def edit(data: dict[str, Any]) -> None:
        data["launch"]["arguments"][name] = value

    return edit


def test_every_rule_decides_something() -> None:
    """No rule is hidden behind an earlier one: each is the one that decides for some fact of a full lock."""
    data = whole_data()
    data["checkpoints"][0]["files"] += [{"path": name, "sha256": sha256(name), "size": 1} for name in FILES]
    lock = lock_of(data)
    decided = {rule(path, "sglang") for path in flatten(lock)}

    idle = [
        pattern
        for pattern, consequence, reason in RULES
        if Meaning(consequence, reason) not in decided
        # What stands there alone for the day on which a lock says more of it.
        and pattern not in {"components/*/patches/**", "checkpoints/**", "launch/program"}
    ]
    assert idle == []


def test_a_rule_for_a_file_is_for_the_top_of_the_checkpoint_only() -> None:
    """A file of the same name in a folder, or with another ending, is unclassified and therefore a factor."""
    top = ("checkpoints", "target", "files", "tokenizer_config.json", "sha256")

    assert rule(top, "sglang").consequence == "behaviour"
    for name in ("vision/tokenizer_config.json", "tokenizer_config.json.bak", "Tokenizer_config.json"):
        assert rule((*top[:3], name, top[4]), "sglang").consequence == "cache-identity"


@pytest.mark.parametrize(
    "path",
    [
        ("launch", "arguments", "never-heard-of"),
        ("launch", "environment", "SGLANG_NEVER_HEARD_OF"),
        ("launch", "effective", "never_heard_of"),
        ("never", "heard", "of"),
        ("toolchain", "linker", "version"),
    ],
)
def test_what_nobody_has_classified_is_a_factor(path: tuple[str, ...]) -> None:
    """The closed world, wherever a new name stands."""
    assert rule(path, "sglang") == Meaning("cache-identity", UNLISTED)


def test_an_engine_without_a_table_has_no_neutral_argument() -> None:
    """A table speaks for its own engine only."""
    assert rule(("launch", "arguments", "log-level"), "sglang").neutral
    assert not rule(("launch", "arguments", "log-level"), "another").neutral


def test_a_rule_is_found_under_every_spelling() -> None:
    """What asks for the meaning of an argument need not know which of its names is the canonical one."""
    for name in ("nccl-init-addr", "tp", "tp-size"):
        canonical = table_of("sglang").canonical(name)
        assert canonical != name
        assert rule(("launch", "arguments", name), "sglang") == rule(("launch", "arguments", canonical), "sglang")
        assert rule(("launch", "arguments", name), "sglang") != Meaning("cache-identity", UNLISTED)


def test_what_penny_sets_itself_never_counts() -> None:
    """Host and port are neutral even where a lock would carry them."""
    for flag in REFUSED["sglang"].keys() & {"host", "port"}:
        assert rule(("launch", "arguments", flag), "sglang").consequence == "operational"


def test_the_worst_of_several_classes_is_the_one_that_costs_most() -> None:
    """In the order of the design."""
    meanings = tuple(Meaning(consequence, "") for consequence in WORST_FIRST)

    assert worst(meanings[::-1]).consequence == "cache-identity"
    assert worst(meanings[:2:-1]).consequence == "performance"


def test_a_false_flag_is_as_good_as_none() -> None:
    """The argument list is the same with and without it, so the namespace is."""
    lock = make_lock()
    launch = lock.launch.model_copy(update={"arguments": {**lock.launch.arguments, "enable-new-thing": False}})
    off = lock.model_copy(update={"launch": launch})
    on = lock.model_copy(
        update={"launch": launch.model_copy(update={"arguments": {**launch.arguments, "enable-new-thing": True}})}
    )

    assert derive(off).digest == derive(lock).digest
    assert derive(on).digest != derive(lock).digest


def test_an_environment_that_converts_and_builds_is_a_factor() -> None:
    """Only what does nothing but convert is covered by the digests of the checkpoint's files."""

    def shared(data: dict[str, Any]) -> None:
        data["components"][1]["build_environment"] = "conversion"

    def other_packages(data: dict[str, Any]) -> None:
        data["environments"][2]["pylock"]["sha256"] = sha256("other packages")

    assert derive(make_lock()).digest == derive(make_lock(other_packages)).digest
    assert derive(make_lock(shared)).digest != derive(make_lock(shared, other_packages)).digest


def test_another_spelling_is_no_change() -> None:
    """One argument is one fact, whichever of its names a lock has for it."""
    long, short = make_lock(asking("tensor-parallel-size", 2)), make_lock(asking("tp", 2))

    assert diff(long, short).changes == ()
    assert "launch.arguments.tensor-parallel-size" in derive(short).factors
    assert [(each.path, each.before, each.after) for each in diff(long, make_lock(asking("tp-size", 4))).changes] == [
        ("launch.arguments.tensor-parallel-size", 2, 4)
    ]


def test_two_spellings_in_one_lock_are_refused() -> None:
    """The engine takes the last of them, so which one counts would depend on their order."""
    lock = make_lock(asking("tp", 2), asking("tensor-parallel-size", 2))

    with pytest.raises(InvalidDocumentError, match="'tp' and 'tensor-parallel-size' are one argument") as caught:
        derive(lock)
    assert caught.value.where == "launch.arguments"
    with pytest.raises(InvalidDocumentError, match="are one argument"):
        diff(make_lock(), lock)


def test_another_engine_has_other_spellings() -> None:
    """A name is an alias for the engine of the lock only."""

    def vllm(data: dict[str, Any]) -> None:
        data["engine"]["kind"] = "vllm"

    assert "launch.arguments.tp" in derive(make_lock(asking("tp", 2), vllm)).factors
    other = make_lock(asking("device-memory-utilization", 0.5), vllm)
    assert "launch.arguments.gpu-memory-utilization" in derive(other).factors


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
@pytest.mark.parametrize(
    ("one", "two", "joined"),
    [
        (["a", "b,c"], ["a,b", "c"], "a,b,c"),
        (["a", "b"], ["a,b"], "a,b"),
        (["a", "b"], "a,b", "a,b"),
        ([], [""], ""),
        ([], "", ""),
    ],
)
def test_no_effective_value_stands_for_a_list(engine: str, one: Any, two: Any, joined: str) -> None:
    """Effective values join lists by commas, so the same one is what several requests come to."""

    def effective(data: dict[str, Any]) -> None:
        data["engine"]["kind"] = engine
        data["launch"]["effective"]["lora_modules"] = joined

    locks = [make_lock(asking("lora-modules", value), effective) for value in (one, two)]

    assert derive(locks[0]).digest != derive(locks[1]).digest
    told = {change.path: change.consequence for change in diff(*locks).changes}
    assert told["launch.arguments.lora-modules"] == "cache-identity"
