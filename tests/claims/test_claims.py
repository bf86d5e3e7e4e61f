"""Published results are claims: every number with its kind and conditions, and never taken for a receipt."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.claims import Claim
from reproducer.errors import InvalidDocumentError
from reproducer.ledger import Ledger, parse_receipt
from tests.end_to_end.newcomer import ROOT, Penny, copy_of_repository

FACTS: dict[str, Any] = json.loads((ROOT / "tests/data/published/qwen38-27b-dflash2.json").read_text("utf-8"))
FOLDER = ROOT / "evidence" / "claims"
RESULTS = {result["id"]: result for result in FACTS["result"]}
OF = {
    "qwen38-27b-vllm-baseline": RESULTS["vllm-baseline"],
    "qwen38-27b-dflash2-final": RESULTS["dflash2-final"],
    "public-tp1-mtp3": RESULTS["public-tp1-mtp3"],
    "public-w8a8-mtp": RESULTS["public-w8a8-mtp"],
    "qwen38-27b-dflash2-comparison": FACTS["comparison"],
    "qwen38-27b-dflash2-agentic-trace": FACTS["agentic_trace"],
}
NOT_NUMBERS = {"id", "runtime", "date", "publisher"}


def read(name: str) -> Claim:
    """One committed claim."""
    path = FOLDER / f"{name}.json"
    return Claim.from_json(path.read_bytes(), where=str(path))


def _values(value: Any) -> Iterator[Any]:
    """Every plain value in nested data."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _values(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _values(inner)
    else:
        yield value


def test_every_result_is_a_claim_and_nothing_else_lies_there() -> None:
    """One file a result, each named as it calls itself, each with a manifest that is there where it names one."""
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(f"{name}.json" for name in OF)
    for name in OF:
        claim = read(name)
        assert (claim.name, claim.status) == (name, "claimed")
        assert claim.conditions.unknown
        assert claim.manifest is None or (ROOT / claim.manifest).is_file()


@pytest.mark.parametrize("name", sorted(OF))
def test_every_published_value_stands_in_its_claim(name: str) -> None:
    """No number and no observation of a result is dropped, and no number stands there that was not published."""
    facts = {key: value for key, value in OF[name].items() if key not in NOT_NUMBERS}
    if name == "qwen38-27b-dflash2-agentic-trace":
        facts |= {"bands_without_overlap": [[band.lower(), *rest] for band, *rest in facts["bands_without_overlap"]]}
    claim = read(name)
    content = json.loads(claim.model_dump_json())
    there = [*_values(content["quantities"]), *_values(content["observations"]), *_values(content["conditions"])]
    words = Counter(each.lower() if isinstance(each, str) else each for each in there)
    published = [each.lower() if isinstance(each, str) else each for each in _values(facts)]
    assert [each for each in published if each not in words] == []
    numbers = {each for each in published if isinstance(each, int | float)}
    spoken = {136, 1024, 10.496314921998419}  # the facts say these in words, beside the values
    stated = [each.value for each in claim.quantities] + [one for each in claim.quantities for one in each.values or ()]
    assert {each for each in stated if each is not None} - numbers - spoken == set()


def test_kinds_of_the_published_rates() -> None:
    """What was timed decides the kind: completed requests, batches, first tokens and telemetry never share one."""
    kinds = {each.name: each.kind for each in read("qwen38-27b-dflash2-final").quantities}
    assert kinds["decode_1x"] == kinds["decode_4x_per_request"] == "completed-request rate"
    assert kinds["decode_4x_aggregate"] == kinds["decode_1x_makespan"] == "aggregate makespan rate"
    assert kinds["prefill_64k"] == kinds["prefill_490k"] == "time-to-first-token prefill rate"
    assert kinds["reasoning_xhigh_three_running_median"] == "telemetry window"
    assert kinds["restart_restore_60k"] == "duration"
    trace = {each.name: each.kind for each in read("qwen38-27b-dflash2-agentic-trace").quantities}
    assert {kind for name, kind in trace.items() if name.startswith("telemetry")} == {"telemetry window"}
    assert trace["fastest_completed_request"] == "completed-request rate"
    for each in read("qwen38-27b-dflash2-comparison").quantities:
        assert (each.kind, each.unit) == ("difference", "percent")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": "measured"}, "status"),
        ({"source": "http://x.example"}, "source"),
        ({"date": "21 August"}, "date"),
        ({"lock_digest": "0" * 64}, "unknown key"),
        ({"format": "penny-claim/2"}, "format"),
    ],
)
def test_what_is_no_claim(change: dict[str, Any], said: str) -> None:
    """A claim says `claimed`, names a public place or `unknown`, and carries nothing of a receipt."""
    data = json.loads((FOLDER / "public-tp1-mtp3.json").read_bytes()) | change
    with pytest.raises(InvalidDocumentError, match=said):
        Claim.from_data(data, where="claim")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "decode_4x_aggregate"}, "stands twice"),
        ({"unit": "s"}, "a completed-request rate is not in s"),
        ({"kind": "duration"}, "a duration is not in tok/s"),
        ({"kind": "speed"}, "kind"),
        ({"of": "duration"}, "a difference, and nothing else"),
        ({"values": [1.0]}, "either one value or several"),
    ],
)
def test_what_is_no_published_number(change: dict[str, Any], said: str) -> None:
    """One name, one known kind, the unit of that kind, and a value."""
    data = json.loads((FOLDER / "public-tp1-mtp3.json").read_bytes())
    data["quantities"][0] |= change
    with pytest.raises(InvalidDocumentError, match=said):
        Claim.from_data(data, where="claim")


@pytest.mark.parametrize("name", sorted(OF))
def test_a_claim_is_no_receipt(name: str, tmp_path: Path) -> None:
    """Wherever receipts are read a claim is refused by name, also one that says it is a measure."""
    text = (FOLDER / f"{name}.json").read_text("utf-8")
    with pytest.raises(InvalidDocumentError, match="is a claim and no receipt"):
        parse_receipt(text, where="claim")
    with pytest.raises(InvalidDocumentError, match="is a claim and no receipt"):
        parse_receipt(json.dumps(json.loads(text) | {"kind": "measure"}), where="claim")
    (tmp_path / "measure-decode.single-1-000000000000.json").write_text(text)
    with pytest.raises(InvalidDocumentError, match="is a claim and no receipt"):
        Ledger(tmp_path).receipts()


def test_commands_refuse_a_claim(tmp_path: Path) -> None:
    """`penny verify` and `penny attest` end with 2 where a claim lies among receipts; nothing is signed."""
    penny = Penny(copy_of_repository(tmp_path / "clone"), tmp_path / "store", tmp_path / "keys")
    folder = penny.folder / "evidence" / "claims"
    shutil.copytree(FOLDER, folder)
    verified = penny("verify", "evidence/claims", "--json")
    assert verified.code == 2
    assert "is a claim and no receipt" in verified.result["error"]["what"]
    from reproducer.documents.opened import open_lock

    ledger = Ledger.of(tmp_path / "store", open_lock(penny.folder / "penny.lock.toml").digest)
    ledger.folder.mkdir(parents=True)
    (ledger.folder / "measure-decode.single-1-000000000000.json").write_bytes(
        (folder / "public-tp1-mtp3.json").read_bytes()
    )
    before = sorted((penny.folder / "evidence").iterdir())
    attested = penny("attest", "--json")
    assert attested.code == 2
    assert "is a claim and no receipt" in attested.result["error"]["what"]
    assert sorted((penny.folder / "evidence").iterdir()) == before
