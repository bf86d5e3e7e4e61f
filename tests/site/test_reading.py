"""A folder of bundles: each verified, a broken one shown as such, a copy shown once, a claim never among receipts."""

import json
import os
import shutil
from pathlib import Path

import pytest

from reproducer.documents.site import Site
from reproducer.errors import UnsafeInputError, UsageError
from reproducer.site import found as finding
from reproducer.site.found import look
from tests.site.folders import EVIL, Made, at, hostile, made


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two good bundles."""
    return made(tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def bad(good: Made, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The same among everything that a stranger may leave."""
    return hostile(good, tmp_path_factory.mktemp("bad") / "folder")


@pytest.fixture(scope="module")
def read(bad: Made) -> Site:
    """What a site says of that."""
    return bad.read()


def test_each_as_verify_says(good: Made) -> None:
    """With its key a bundle passes; whose another key is stays unknown, and its numbers stand with their spread."""
    site = good.read()
    one, two = at(site, "lock-one/run-0"), at(site, "lock-two/run-1")
    assert (one.verdict, one.signer) == ("passed", "one")
    assert (two.verdict, two.signer) == ("unknown", None)
    assert [each.id for each in two.checks] == ["identity"]
    (measure,) = (each for each in one.measures or () if each.measure == "decode.single/1")
    (rate,) = (each for each in measure.values if each.name == "decode_rate")
    assert rate.value == pytest.approx(24.82, abs=0.01)
    assert (len(rate.values), rate.bounds, rate.holds) == (4, "≥ 10", True)
    assert rate.minimum < rate.value < rate.maximum
    assert {each.name for each in site.locks} == {"small-one", "small-two"}


def test_differences_of_locks(good: Made) -> None:
    """Each lock is held against the one before it, as `penny diff` does."""
    (found,) = good.read().differences
    assert found.changes is not None
    assert {each.path for each in found.changes} == {"name", "manifest"}
    assert found.same_namespace
    assert not found.rebuild


def test_copies_are_one_run(read: Site) -> None:
    """A copy that verifies alike is another place of one run; one with a changed file is a run of its own."""
    places = at(read, "lock-one/run-0").places
    assert set(places) == {"lock-one/run-0", "again", f"name {EVIL.replace('/', chr(0x2215))}"}
    changed = at(read, "changed")
    assert changed.bundle_digest == at(read, "again").bundle_digest
    assert changed.places == ("changed",)


def test_broken_ones_are_shown_as_such(read: Site) -> None:
    """What was changed, is linked, is no index, or cannot be read is there with its verdict and the reason."""
    told = {place: (at(read, place).verdict, at(read, place).fault or "") for place in (
        "changed", "linked", "pipe", "huge", "torn", "indexless", "\\xff\\xfe"
    )}  # fmt: skip
    verdicts = {place: verdict for place, (verdict, _) in told.items()}
    assert verdicts == {
        "changed": "failed", "linked": "failed", "pipe": "failed", "huge": "failed", "torn": "failed",
        "indexless": "unknown", "\\xff\\xfe": "failed",
    }  # fmt: skip
    assert "no number of it is shown" in told["changed"][1]
    assert "neither a file nor a folder: no links" in told["linked"][1]
    assert "neither a file nor a folder" in told["pipe"][1]
    assert "larger than" in told["huge"][1]
    for place in told:
        assert at(read, place).measures is None, place


def test_nothing_is_dropped_silently(read: Site) -> None:
    """What was not read is named with the reason; a link is followed nowhere."""
    left = {each.place: each.why for each in read.left_out}
    assert set(left) == {"link", "pipe.json", "deep.json", "other.json", ".unfinished"}
    assert left["link"] == "is a link, and none is followed"
    assert left["other.json"] == "is neither a bundle, nor a claim, nor an imported result"


def test_claims_apart(read: Site) -> None:
    """A claim is in a list of its own, with its status, and gives no run and no lock a number."""
    (claim,) = read.claims
    assert claim.status == "claimed"
    claimed = {each.value for each in claim.quantities if each.value is not None and each.unit == "tok/s"}
    measured = {value.value for run in read.runs for each in run.measures or () for value in each.values}
    assert claimed
    assert not claimed & measured


def test_a_claim_in_a_bundle_is_no_receipt(good: Made, tmp_path: Path) -> None:
    """Put among the receipts of a bundle, it breaks that bundle, and no number of it is shown."""
    found = good.copied(tmp_path / "folder")
    receipts = found.folder / "lock-one" / "run-0" / "receipts"
    shutil.copy(Path("evidence/claims/qwen38-27b-dflash2-final.json"), receipts / "measure-decode.json")
    run = at(found.read(), "lock-one/run-0")
    assert (run.verdict, run.measures) == ("failed", None)


def test_document_round_trip(bad: Made, read: Site) -> None:
    """The data is a document of its own kind: what was written is read again, and nothing of this machine is in it."""
    text = read.canonical().decode()
    assert Site.from_json(text, where="site.json") == read
    assert json.loads(text)["format"] == "penny-site/1"
    assert str(bad.folder.parent) not in text
    assert str(Path.home()) not in text


def test_a_place_that_may_not_be_listed(good: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that cannot be opened is named; the rest is read."""
    found = good.copied(tmp_path / "folder")
    (found.folder / "shut").mkdir()
    scan = os.scandir

    def refuse(path: Path) -> object:
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr("os.scandir", refuse)
    assert look(found.folder).left_out == [("shut", "Permission denied")]


def test_bounds(good: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Too many files or bundles, no bundle, and no folder are errors before anything is verified."""
    monkeypatch.setattr(finding, "MOST_ENTRIES", 3)
    with pytest.raises(UnsafeInputError, match="more than 3 files"):
        look(good.folder)
    monkeypatch.undo()
    monkeypatch.setattr(finding, "MOST_BUNDLES", 1)
    with pytest.raises(UnsafeInputError, match="more than 1 bundles"):
        look(good.folder)
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError):
            look(folder)
