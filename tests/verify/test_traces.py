"""Traces of the boots in a bundle: signed, drawn on the page, and held against the boots they say they are of."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reproducer.attest.bundle import write_bundle
from reproducer.attest.keys import SigningKey
from reproducer.cli.app import app
from reproducer.documents.traces import Trace
from reproducer.documents.verdict import Check
from reproducer.errors import SignatureError
from reproducer.progress import Silent
from reproducer.trace.kept import MOST_LISTED, TRACES, keep_trace, kept_traces, trace_name
from reproducer.verify.bundle import verify_bundle
from reproducer.verify.receipts import verify_receipts
from tests.trace.written import DECODE, REQUEST, request
from tests.verify.factory import Evidence


@pytest.fixture(name="kept")
def _kept(evidence: Evidence, tmp_path: Path) -> Path:
    """The traces of both boots, as a run keeps them."""
    log = tmp_path / "server-1.log"
    for launch in evidence.launches:
        log.write_text(f"{REQUEST}\n{DECODE}\n", encoding="utf-8")
        keep_trace(tmp_path / TRACES, launch, log, Silent())
    return tmp_path / TRACES


@pytest.fixture(name="traced")
def _traced(evidence: Evidence, key: SigningKey, kept: Path, tmp_path: Path) -> Path:
    """A bundle with the traces of both boots."""
    return bundled(evidence, key, tmp_path / "bundle", kept_traces(kept, evidence.receipts))


def bundled(evidence: Evidence, key: SigningKey, folder: Path, traces: tuple[Trace, ...]) -> Path:
    """A bundle with these traces."""
    checks = verify_receipts(evidence.opened, evidence.receipts)
    write_bundle(folder, evidence.opened, evidence.receipts, key, checks, traces=traces)
    return folder


def failed(folder: Path, key: SigningKey) -> dict[str, Check]:
    """The checks that fail."""
    return {each.id: each for each in verify_bundle(folder, key.public).checks if each.status == "failed"}


def test_a_bundle_with_traces_holds(evidence: Evidence, key: SigningKey, kept: Path, tmp_path: Path) -> None:
    """Each boot's trace lies in the bundle, verifies, and stands on its page and on the one that is made of it."""
    traces = kept_traces(kept, evidence.receipts)
    assert [each.served.launch_receipt for each in traces if each.served] == [
        each.digest for each in sorted(evidence.launches, key=lambda each: (each.created, each.digest))
    ]
    folder = bundled(evidence, key, tmp_path / "bundle", traces)
    verdict = verify_bundle(folder, key.public)
    assert verdict.outcome.exit_code == 0
    assert {each.id: each.got for each in verdict.checks}["traces"] == "2 traces, each of a boot of this bundle"
    written = CliRunner().invoke(app, ["report", str(folder), "--html", str(tmp_path / "page.html")])
    assert written.exit_code in (0, 96)  # whose key it is stays unknown
    for page in (folder / "report.html", tmp_path / "page.html"):
        text = page.read_text(encoding="utf-8")
        assert "What the servers" in text
        assert "160.33" in text or "160.3" in text  # 364 tokens in 2270.33 ms


def test_a_bundle_without_traces_is_asked_for_none(good: Path, key: SigningKey) -> None:
    """No check and no section where no boot was traced."""
    assert "traces" not in {each.id for each in verify_bundle(good, key.public).checks}
    assert "What the servers" not in (good / "report.html").read_text(encoding="utf-8")


def _rename(folder: Path) -> None:
    first = min((folder / TRACES).iterdir())
    first.rename(first.with_name(trace_name("f" * 64)))


def _edit(change: Callable[[Any], object]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = min((folder / TRACES).iterdir())
        data = json.loads(path.read_bytes())
        change(data)
        path.write_text(json.dumps(data), encoding="utf-8")

    return edit


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_rename, "is of no boot of this bundle"),
        (_edit(lambda data: data["served"].update(launch_receipt="e" * 64)), "it is of launch receipt eeeeeeeeeeee"),
        (_edit(lambda data: data["served"].update(lock_digest="e" * 64)), "it is of lock eeeeeeeeeeee"),
        (_edit(lambda data: data.pop("served")), "says of no boot"),
        (_edit(lambda data: data.update(extra=1)), "extra"),
        (_edit(lambda data: data.update(sources=[[]] * 500_001)), "the traces hold more than 500000 values"),
    ],
)
def test_a_trace_that_is_not_the_boots(change: Callable[[Path], None], why: str, traced: Path, key: SigningKey) -> None:
    """A renamed, foreign, ownerless, malformed or endless trace fails the check, and so does its digest."""
    change(traced)
    found = failed(traced, key)
    assert why in found["traces"].reason
    assert len(found) > 1


def test_a_foreign_trace_is_not_bundled(evidence: Evidence, kept: Path) -> None:
    """A trace under the name of another boot is refused before anything is signed."""
    one, two = (kept / trace_name(each.digest) for each in evidence.launches)
    shutil.copy(one, two)
    with pytest.raises(SignatureError, match="the trace of another server"):
        kept_traces(kept, evidence.receipts)


def test_what_a_run_keeps(evidence: Evidence, tmp_path: Path) -> None:
    """Few requests are listed one by one, many are summed up alone, and a log that is gone is told and ends no run."""
    log, launch = tmp_path / "server-1.log", evidence.launches[0]
    for count in (MOST_LISTED, MOST_LISTED + 1):
        log.write_text("".join(f"{request(str(each), 1000.0 + each, 0.5)}\n" for each in range(count)), "utf-8")
        keep_trace(tmp_path / TRACES, launch, log, Silent())
        (found,) = kept_traces(tmp_path / TRACES, (launch,))
        assert found.requests.completed.requests == count
        assert (found.requests.listed is None) is (count > MOST_LISTED)
    said: list[str] = []

    class Heard(Silent):
        def note(self, text: str) -> None:
            said.append(text)

    keep_trace(tmp_path / "other", launch, tmp_path / "gone.log", Heard())
    assert "gave no trace" in said[0]
    assert kept_traces(tmp_path / "other", (launch,)) == ()
