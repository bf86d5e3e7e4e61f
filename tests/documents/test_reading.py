"""What a manifest or lock that is wrong says about itself: file, line, key, and what was meant."""

import re
from pathlib import Path

import pytest

from reproducer.documents.base import parse_json
from reproducer.documents.lock import Lock
from reproducer.documents.manifest import Manifest
from reproducer.documents.opened import open_lock
from reproducer.documents.starter import STARTER
from reproducer.documents.toml import parse_toml, read_document
from reproducer.documents.verdict import Check, Verdict
from reproducer.errors import InvalidDocumentError, UsageError

OLD = Path(__file__).parents[1] / "data" / "documents"
SOURCE = (OLD / "lock-1.toml").read_text("utf-8")


def read(text: str) -> Lock:
    """A lock from its text."""
    return Lock.from_data(parse_toml(text, where="x.toml"), where="x.toml", source=text)


def fault(text: str) -> str:
    """What reading that text says."""
    with pytest.raises(InvalidDocumentError) as caught:
        read(text)
    assert caught.value.exit_code == 2
    return str(caught.value)


def replaced(old: str, new: str, text: str = SOURCE) -> str:
    """The text with one passage replaced; it must be there."""
    assert old in text
    return text.replace(old, new, 1)


def line_with(passage: str, text: str = SOURCE) -> int:
    """The number of the first line that holds the passage."""
    return text[: text.index(passage)].count("\n") + 1


@pytest.mark.parametrize("path", sorted(OLD.glob("lock-*.toml")), ids=lambda path: path.name)
def test_old_locks_are_read_for_ever(path: Path) -> None:
    """Every lock that was ever written is still read, and its digest is what it was."""
    known = {"lock-1.toml": "c278be447c2ea367759c47b2a60f3d08d0ede20e6b6f887b663634c29bd34f6b"}
    assert known[path.name] == open_lock(path).digest


@pytest.mark.parametrize("path", sorted(OLD.glob("manifest-*.toml")), ids=lambda path: path.name)
def test_old_manifests_are_read_for_ever(path: Path) -> None:
    """Every manifest that was ever valid is still read."""
    assert read_document(Manifest, path, what="manifest").format == "penny-manifest/1"


def test_starter_is_a_valid_manifest() -> None:
    """What `penny init` writes is a manifest."""
    Manifest.from_data(parse_toml(STARTER, where="starter"), where="starter", source=STARTER)


def test_unknown_key_names_line_and_nearest_key() -> None:
    """An unknown key is refused with file, line, key and the nearest known name."""
    text = replaced("component = ", "componet = ")
    said = fault(text)
    assert said.startswith("x.toml: line ")
    assert f"line {line_with('componet = ', text)}, key engine.componet: unknown key" in said
    assert "did you mean 'component'?" in said


def test_unknown_key_inside_a_union_knows_the_branch_only_by_its_keys() -> None:
    """Keys of a component's source are suggested, and no name of a union's branch stands in the key."""
    said = fault(replaced("project = ", "projekt = "))
    assert "key components[0].source.projekt: unknown key, did you mean 'project'?" in said


def test_unknown_key_without_a_near_one_lists_the_known() -> None:
    """Where nothing is near, all known keys are named."""
    said = fault(replaced("[engine]\n", "[engine]\nzzzzz = 1\n"))
    assert "key engine.zzzzz: unknown key, known keys: arguments, component, kind" in said


def test_missing_key_names_its_table() -> None:
    """A missing key names the line of its table."""
    text = SOURCE.replace('python = "3.11"\n', "")
    assert f"line {line_with('[toolchain]', text)}, key toolchain.python: missing" in fault(text)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("size = 4701855", 'size = "4701855"', "components[0].source.size"),
        ("source_date_epoch = 1704067200", "source_date_epoch = true", "build.source_date_epoch"),
        ("trust_remote_code = false", "trust_remote_code = 0", "checkpoints[0].trust_remote_code"),
        ('name = "vector"', "name = 7", "name"),
        ("boots = 2", "boots = 2.5", "qualification.boots"),
        ("page-size = 16", "page-size = { a = 1 }", "launch.arguments.page-size"),
    ],
)
def test_wrong_type_is_no_conversion(old: str, new: str, key: str) -> None:
    """A value of another type is an error at its line, never converted, and said once."""
    text = replaced(old, new)
    said = fault(text)
    assert f"line {line_with(new, text)}, key {key}: " in said
    assert said.count(f"key {key}:") == 1


def test_dates_are_not_carried() -> None:
    """TOML's dates are in no document."""
    assert "no document carries" in fault(replaced('name = "vector"', "name = 2024-01-01"))


def test_not_toml_names_line_and_column(tmp_path: Path) -> None:
    """Text that is no TOML names file, line and column."""
    path = tmp_path / "penny.lock.toml"
    path.write_text('format = "penny-lock/1"\nname = \n', "utf-8")
    with pytest.raises(InvalidDocumentError, match=re.escape(f"{path}: line 2, column ")):
        open_lock(path)


@pytest.mark.parametrize("text", ["a = 1\na = 2\n", "[a]\nb = 1\n[a]\nb = 2\n", "a.b = 1\n[a]\nb = 2\n"])
def test_duplicate_keys_are_refused(text: str) -> None:
    """A key that stands twice is no TOML."""
    with pytest.raises(InvalidDocumentError):
        parse_toml(text, where="x.toml")


def test_duplicate_keys_in_json_are_refused() -> None:
    """A key that stands twice in a receipt is refused, not overwritten."""
    with pytest.raises(InvalidDocumentError, match="'a' stands twice"):
        parse_json('{"a": 1, "a": 2}', where="x.json")


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "[" * 100_000, '{"a": ', "\ud800"])
def test_hostile_json_is_one_clear_error(text: str) -> None:
    """NaN, bottomless nesting and broken text are InvalidDocumentErrors."""
    with pytest.raises(InvalidDocumentError):
        parse_json(text, where="x.json")


HALVES = [r'"\ud800"', r'{"\uDFFF": 1}', r'[{"a": ["\udc00x"]}]', r'"\ud83d \ude00"', r'"\ude00\ud83d"']


@pytest.mark.parametrize(
    "text",
    [
        *HALVES,
        *(each.encode() for each in HALVES),
        *(each.encode("utf-16-le") for each in HALVES),
        '"\ud800"',
        '{"\udfff": "é"}',
        b'"\xed\xa0\x80"',
        b'{"a\xed\xbf\xbf": 1}',
    ],
)
def test_half_of_a_character_in_json(text: str | bytes) -> None:
    """Half of a surrogate pair, escaped or as it is, is no text that any document carries."""
    with pytest.raises(InvalidDocumentError, match=r"x.json: holds half of a character"):
        parse_json(text, where="x.json")


@pytest.mark.parametrize("text", [r'{"\ud83d\ude00": "\uD83D\uDE00"}', '{"\U0001f600": "\U0001f600"}'])
def test_whole_characters_in_json(text: str) -> None:
    """A whole pair is one character, however it is written; the escape of a backslash is none."""
    assert parse_json(text, where="x.json") == parse_json(text.encode(), where="x.json") == {"\U0001f600": "\U0001f600"}
    assert parse_json(r'"\\ud800"', where="x.json") == "\\ud800"


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = nan", "[" * 100, "\x00", 'a = "\\ud800"'])
def test_hostile_toml_is_one_clear_error(text: str) -> None:
    """Bottomless nesting, NaN and control characters end as InvalidDocumentErrors."""
    with pytest.raises(InvalidDocumentError):
        read(text)


def test_not_utf8_names_the_line(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 name their line."""
    path = tmp_path / "penny.lock.toml"
    path.write_bytes(b"# one\n# \xff\n")
    with pytest.raises(InvalidDocumentError, match="line 2"):
        open_lock(path)


def test_no_lock_is_wrong_usage(tmp_path: Path) -> None:
    """A lock that is not there is wrong usage and names the path."""
    with pytest.raises(UsageError, match=re.escape(str(tmp_path / "penny.lock.toml"))):
        open_lock(tmp_path / "penny.lock.toml")


def test_future_format_is_refused() -> None:
    """A lock of a later format is refused with what is needed, and not with every key that it has more."""
    said = fault(replaced("penny-lock/1", 'penny-lock/2"\nlater = "x'))
    assert said == "x.toml: is of the format penny-lock/2, and this penny reads penny-lock/1. Use a newer penny"


BAD_PATHS = ["../x", "/etc/passwd", "a/../../x", "a//b", "./a", "a/", "", ".", "-x", "a\\b", "a\nb", "a\x7fb"]
PATHS = [
    'path = "runtime/engine/0001-first.patch"',
    'path = "runtime/engine/expected/engine-1.0.post1-py3-none-any.whl.members"',
    'path = "runtime/kernels"',
    'path = "kernels/__init__.py"',
    'path = "pylock.toml"',
    'path = "runtime/convert.py"',
    'path = "model.safetensors"',
    'member = "model/model.gguf"',
    'manifest = "manifests/vector.toml"',
]


@pytest.mark.parametrize("passage", PATHS)
@pytest.mark.parametrize("bad", BAD_PATHS)
def test_paths_stay_inside(passage: str, bad: str) -> None:
    """No path of a lock leaves its folder, begins like an option or hides control characters."""
    key = passage.partition(" ")[0]
    written = bad.replace("\\", "\\\\").replace("\n", "\\n").replace("\x7f", "\\u007f")
    said = fault(replaced(passage, f'{key} = "{written}"'))
    assert f"{key}: must " in said


@pytest.mark.parametrize("bad", ["../engine.whl", "a/b.whl", "-r.whl", "", "a b.whl"])
def test_file_names_are_plain(bad: str) -> None:
    """A file name of an index is no path and no option."""
    fault(replaced('filename = "engine-1.0.post1.tar.gz"', f'filename = "{bad}"'))


def test_a_changed_copy_has_its_own_digest() -> None:
    """The digest is computed once a document, and a copy that is changed does not inherit it."""
    verdict = Verdict(checks=())
    before = verdict.digest
    check = Check(id="x", aspect="inputs", status="passed")
    for deep in (False, True):
        changed = verdict.model_copy(update={"checks": (check,)}, deep=deep)
        assert changed.digest != before
        assert changed.digest == Verdict(checks=(check,)).digest
    assert verdict.digest == before
