"""A signer's page says what the receipts say, whoever drew its figures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reproducer.attest import bundle
from reproducer.attest.keys import signing_key
from reproducer.documents.verdict import Check
from reproducer.report.html import drawn_by
from reproducer.verify.bundle import verify_bundle
from tests.verify.factory import Evidence, good_evidence, signed_bundle

OTHER = "matplotlib 9.9.9"


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A lock and the receipts of a good run."""
    return good_evidence(tmp_path_factory.mktemp("page") / "small")


def outcome(evidence: Evidence, folder: Path, monkeypatch: pytest.MonkeyPatch, edit: Callable[[str], str]) -> Check:
    """The check of a page that its signer changed before signing."""
    key = signing_key(folder / "keys")
    made = bundle.bundle_content

    def other(*arguments: Any) -> dict[str, bytes]:
        content = made(*arguments)
        return content | {"report.html": edit(content["report.html"].decode()).encode()}

    with monkeypatch.context() as patched:
        patched.setattr(bundle, "bundle_content", other)
        signed_bundle(evidence, folder / "bundle", key)
    verdict = verify_bundle(folder / "bundle", key.public)
    assert [each.id for each in verdict.checks if each.status == "failed"] in ([], ["page"])
    (found,) = (each for each in verdict.checks if each.id == "page")
    return found


def by_other(text: str) -> str:
    """The page as another version of the library would have drawn it."""
    return text.replace(drawn_by(), OTHER).replace("<path d=", '<path fill="red" d=')


@pytest.mark.parametrize(
    ("edit", "status", "why"),
    [
        (lambda text: text, "passed", ""),
        (lambda text: text.replace("24.82", "99.82"), "failed", "does not say what the receipts say"),
        (lambda text: text.replace("<path d=", '<path fill="red" d=', 1), "failed", "does not say"),
        (by_other, "skipped", f"{OTHER} drew its figures"),
        (lambda text: by_other(text).replace("24.82", "99.82"), "failed", "does not say"),
        (lambda text: by_other(text).replace("</desc>", "</desc><foreignObject/>", 1), "failed", "does not say"),
        (lambda text: by_other(text).replace("</desc>", "</desc><p>All is well</p>", 1), "failed", "does not say"),
        (lambda text: text.replace("penny-page/1", "penny-page/2"), "unknown", "pages of its format: penny-page/2"),
        (lambda _: "<h1>The fastest of all</h1>", "failed", "it is no page"),
    ],
    ids=[
        "honest",
        "number",
        "shape",
        "other-library",
        "other-number",
        "other-element",
        "other-words",
        "newer",
        "prose",
    ],
)
def test_page_of_a_signer(
    evidence: Evidence,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    edit: Callable[[str], str],
    status: str,
    why: str,
) -> None:
    """A number or a shape that does not follow fails; figures of another library are skipped with the reason."""
    found = outcome(evidence, tmp_path, monkeypatch, edit)
    assert (found.status, why in found.reason) == (status, True), found
