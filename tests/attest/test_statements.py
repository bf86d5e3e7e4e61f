"""Statements: what is claimed, about what, in the forms that others read."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reproducer.attest.predicate import SCHEMA_NAME, schema_bytes
from reproducer.attest.statements import build_statement, qualification_statement, statements
from reproducer.ledger import receipt_name
from tests.verify.factory import Evidence, edited, good_evidence

INDEX = "0123456789abcdef" * 4
SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "predicates" / SCHEMA_NAME


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A lock and the receipts of a good run."""
    return good_evidence(tmp_path_factory.mktemp("statements"))


def _subjects(statement: dict[str, Any]) -> dict[str, str]:
    return {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}


def test_build_is_slsa_provenance(evidence: Evidence) -> None:
    """The build statement names sources, patches, environments and checkpoint source by digest, and the level."""
    statement = build_statement(evidence.opened.lock, evidence.build, INDEX)

    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    definition, run = statement["predicate"]["buildDefinition"], statement["predicate"]["runDetails"]
    roles = [dependency["annotations"]["role"] for dependency in definition["resolvedDependencies"]]
    assert roles == ["source", "patch", "environment", "environment", "checkpoint source", "conversion script"]
    assert all(len(each["digest"]["sha256"]) == 64 for each in definition["resolvedDependencies"])
    assert definition["resolvedDependencies"][0]["uri"] == "pkg:pypi/engine@1.0"
    assert definition["externalParameters"]["recipe"]["umask"] == "022"
    assert run["byproducts"][0]["annotations"]["level"] == "bytes-identical"
    assert run["byproducts"][0]["digest"]["sha256"] == evidence.build.digest
    assert run["builder"]["id"].startswith("urn:")


def test_build_subjects(evidence: Evidence) -> None:
    """Index, lock, runtime, receipt and every wheel are subjects of the build."""
    wheel = evidence.build.outputs[0]
    assert evidence.build.runtime is not None

    assert _subjects(build_statement(evidence.opened.lock, evidence.build, INDEX)) == {
        "index.json": INDEX,
        "lock": evidence.opened.digest,
        "runtime": evidence.build.runtime.sha256,
        f"receipts/{receipt_name(evidence.build)}": evidence.build.digest,
        wheel.filename: wheel.sha256,
    }


def test_qualification_subjects_name_every_receipt(evidence: Evidence) -> None:
    """Index, lock, runtime and each receipt are subjects of the qualification, in whatever order they come."""
    lock = evidence.opened.lock
    statement = qualification_statement(lock, evidence.receipts, INDEX)
    assert evidence.build.runtime is not None

    expected = {f"receipts/{receipt_name(receipt)}": receipt.digest for receipt in evidence.receipts}
    expected |= {"index.json": INDEX, "lock": lock.digest, "runtime": evidence.build.runtime.sha256}
    assert _subjects(statement) == expected
    assert statement == qualification_statement(lock, evidence.receipts[::-1], INDEX)


def test_qualification_says_measure_comparator_threshold_and_sample_size(evidence: Evidence) -> None:
    """A bounded value carries its bound; an unbounded one carries nothing in its place."""
    predicate = qualification_statement(evidence.opened.lock, evidence.receipts, INDEX)["predicate"]

    measure = next(each for each in predicate["measures"] if each["measure"] == "decode.single/1")
    bounded, free = measure["results"][:2]
    assert (measure["samples"], measure["boots"], measure["status"]) == (4, 2, "passed")
    assert (bounded["metric"], bounded["comparator"], bounded["threshold"], bounded["passed"]) == (
        "decode_rate",
        ">=",
        10,
        True,
    )
    assert free.keys() == {"metric", "kind", "unit", "value", "minimum", "maximum", "interval"}
    assert "reason" not in measure


def test_failures_and_skips_are_stated(evidence: Evidence) -> None:
    """What failed or was skipped is stated with its reason."""

    def skip(receipt: dict[str, Any]) -> None:
        receipt.update(status="skipped", reason="no storage", samples=[], derived=[], thresholds=[])

    skipped = edited(evidence.measure("chat.smoke"), skip)
    predicate = qualification_statement(evidence.opened.lock, (evidence.build, skipped), INDEX)["predicate"]

    (measure,) = predicate["measures"]
    assert (measure["status"], measure["reason"], measure["samples"]) == ("skipped", "no storage", 0)
    assert measure["results"] == []


def test_one_statement_for_each_build(evidence: Evidence) -> None:
    """Receipts of two builds give two build statements and one qualification."""
    other = edited(evidence.build, lambda build: build.update(created="2026-02-02T00:00:00Z"))

    made = statements(evidence.opened.lock, (*evidence.receipts, other), INDEX)

    assert sorted(made) == sorted(
        [f"build-{evidence.build.digest[:12]}", f"build-{other.digest[:12]}", "qualification"]
    )


def test_schema_of_the_predicate_is_current_and_holds(evidence: Evidence) -> None:
    """The committed JSON Schema is the one of the code, and a predicate satisfies it."""
    assert SCHEMA.read_bytes() == schema_bytes()
    predicate = qualification_statement(evidence.opened.lock, evidence.receipts, INDEX)["predicate"]

    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(predicate)
    predicate["measures"][0]["results"][0]["threshhold"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(predicate)
