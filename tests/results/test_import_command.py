"""`penny import RESULT` through the command line, and what refuses an imported result as evidence."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reproducer.cli.app import app
from reproducer.documents.opened import open_lock
from reproducer.errors import InvalidDocumentError, PennyError
from reproducer.ledger import Ledger, parse_receipt
from tests.end_to_end.newcomer import ROOT, Penny, copy_of_repository
from tests.results.files import DATA, FILES, imported

REFUSED = "is an imported result and no receipt"


@pytest.fixture(scope="module")
def penny(tmp_path_factory: pytest.TempPathFactory) -> Penny:
    """The command in a copy of the repository."""
    folder = tmp_path_factory.mktemp("import")
    return Penny(copy_of_repository(folder / "clone"), folder / "store", folder / "keys")


def test_import_keeps_both_and_names_what_has_no_place(penny: Penny) -> None:
    """Document and original lie in `evidence/imported`; the keys of `--json` say what was mapped and what not."""
    done = penny("import", str(DATA / "sglang.jsonl"), "--json")
    assert done.code == 0
    result = done.result
    document = penny.folder / result["imported"]
    assert document.parent == penny.folder / "evidence" / "imported"
    assert (penny.folder / result["original"]).read_bytes() == (DATA / "sglang.jsonl").read_bytes()
    assert result["original"].endswith(".jsonl")
    assert json.loads(document.read_bytes()) == imported(DATA / "sglang.jsonl").content()
    assert (result["harness"], result["runs"], result["version_seen"]) == ("sglang.bench_serving", 2, None)
    fields = {each["field"]: each["why"] for each in result["unmapped"]}
    assert fields["[].generated_texts"].startswith("texts of the model")
    assert result["unknown"]


def test_a_person_sees_values_and_what_has_no_place(penny: Penny) -> None:
    """Without `--json` the terminal shows the numbers with their kinds, then the fields without a place."""
    done = penny("import", str(DATA / "sglang.jsonl"), "-o", "kept")
    assert done.code == 0
    for said in (
        "aggregate makespan rate",
        "231.207 tok/s",
        "not measured by penny",
        "Without a place",
        "accept_length",
    ):
        assert said in done.out
    assert sorted(each.name.split("-")[0] for each in (penny.folder / "kept").iterdir()) == [
        "original",
        "sglang.bench_serving",
    ]


def test_a_lock_is_bound_by_the_importer_alone(penny: Penny) -> None:
    """The lock stands in the document only where the importer names it, and as the importer's word."""
    done = penny("import", str(DATA / "vllm.json"), "--lock", "penny.lock.toml", "-o", "bound", "--json")
    assert done.code == 0
    document = json.loads((penny.folder / done.result["imported"]).read_bytes())
    assert document["lock"] == {"digest": open_lock(ROOT / "penny.lock.toml").digest, "by": "importer"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--format", "nothing"), "no such format"),
        (("--format", "vllm"), "is no result of vllm"),
        (("--name", "x"), "a result takes"),
        (("--force",), "a result takes"),
        (("--lock", "nothing.toml"), "there is no lock here"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """An option that does not fit is an error of exit code 2 in one line, and nothing is written."""
    folder = tmp_path / "wrong"
    done = CliRunner().invoke(app, ["import", str(DATA / "sglang.jsonl"), "-o", str(folder), *arguments])
    assert isinstance(done.exception, PennyError)
    assert done.exception.exit_code == 2
    assert said in str(done.exception)
    assert not folder.exists()


def test_options_of_results_are_not_of_launches(penny: Penny) -> None:
    """`--format` and `--lock` with a command line are wrong usage, and a script is still a launch."""
    done = penny("import", "--lock", "penny.lock.toml", "--command", "sglang serve --model-path a/b", "--json")
    assert done.code == 2
    assert "of results" in done.result["error"]["what"]
    (penny.folder / "run.sh").write_text("#!/bin/sh\nsglang serve --model-path org/model\n")
    done = penny("import", "run.sh", "--name", "from-script", "--json")
    assert (done.code, done.result["manifest"]) == (0, "manifests/from-script.toml")


@pytest.mark.parametrize("name", FILES)
def test_an_imported_result_is_no_receipt(name: str, tmp_path: Path) -> None:
    """Wherever receipts are read it is refused by name, also when it says that it is a measure."""
    text = imported(DATA / name).canonical().decode()
    for each in (text, json.dumps(json.loads(text) | {"kind": "measure"})):
        with pytest.raises(InvalidDocumentError, match=REFUSED):
            parse_receipt(each, where="imported")
    (tmp_path / "measure-decode.single-1-000000000000.json").write_text(text)
    with pytest.raises(InvalidDocumentError, match=REFUSED):
        Ledger(tmp_path).receipts()


def test_commands_refuse_an_imported_result(penny: Penny, tmp_path: Path) -> None:
    """`verify`, `report` and `attest` end with 2 where one lies among receipts, and nothing is signed."""
    text = imported(DATA / "vllm.json").canonical()
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    (tmp_path / "measure-decode.single-1-000000000000.json").write_bytes(text)
    verified = penny("verify", str(tmp_path), "--json")
    ledger = Ledger.of(penny.store, open_lock(penny.folder / "penny.lock.toml").digest)
    ledger.folder.mkdir(parents=True)
    shutil.copy(tmp_path / "measure-decode.single-1-000000000000.json", ledger.folder)
    before = sorted((penny.folder / "evidence").rglob("*"))
    for done in (verified, penny("report", "--json"), penny("attest", "--json")):
        assert done.code == 2
        assert REFUSED in done.result["error"]["what"]
    assert sorted((penny.folder / "evidence").rglob("*")) == before
