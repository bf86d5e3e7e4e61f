"""Markdown for a README, text for an article, the badge and citations: digests exact, text from outside harmless."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml
from markdown_it import MarkdownIt

from reproducer.report.badge import badge
from reproducer.report.citation import bibtex, cff
from reproducer.report.short import article, readme
from tests.report.test_page import claim, hostile, imported, subject
from tests.verify.factory import Evidence, good_evidence

BUNDLE = "cd" * 32
KEY = "ab" * 32


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A lock and the receipts of a good run."""
    return good_evidence(tmp_path_factory.mktemp("short"))


def test_readme(evidence: Evidence) -> None:
    """Verdict, machine, every value with a bound, key, digests and commands; claims and imports by another word."""
    text = readme(subject(evidence, bundle_digest=BUNDLE, claims=(claim(),), imported=(imported(),)))
    assert text.startswith("### ✓ small: passed\n")
    assert "| `decode.single` | `decode_rate` | **24.82** tok/s |" in text
    assert f"penny verify BUNDLE --key KEY.pem --lock-digest {evidence.opened.digest}" in text
    assert f"# bundle {BUNDLE}" in text
    assert f"key `{KEY}`" in text
    assert "> *Claimed, measured by nobody here*: `fast`" in text
    assert "> *Imported, not vouched for*: `guidellm`" in text
    assert "987" not in text
    assert "543.5" not in text


def test_readme_of_hostile_receipts(evidence: Evidence) -> None:
    """Read as Markdown it holds no image, no link, no HTML and no control character that receipts brought."""
    text = readme(hostile(evidence))
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "<script" not in html
    assert "<img" not in html
    assert not {each for each in text if not each.isprintable() and each != "\n"}


def test_article(evidence: Evidence) -> None:
    """Plain text with the numbers, their spread, what was claimed, and all three digests on lines of their own."""
    text = article(subject(evidence, bundle_digest=BUNDLE, claims=(claim(),)))
    flat = " ".join(text.split())
    assert text.startswith("small: PASSED\n")
    assert "decode.single decode_rate 24.82 tok/s (n=4, 95 % CI" in flat
    assert "Claimed by its publisher and measured by nobody here: fast (Somebody)." in flat
    for name, digest in (("lock", evidence.opened.digest), ("bundle", BUNDLE), ("key", KEY)):
        assert f"{name:<6} sha256:{digest}\n" in text
    hostile_text = article(hostile(evidence))
    assert not {each for each in hostile_text if not each.isprintable() and each != "\n"}


def test_badge(evidence: Evidence) -> None:
    """Well-formed SVG with the verdict as a word and the lock; it loads nothing."""
    root = ET.fromstring(badge(subject(evidence)))  # noqa: S314  our own text
    space = "{http://www.w3.org/2000/svg}"
    assert [each.text for each in root.iter(f"{space}text")] == ["penny", f"✓ passed · {evidence.opened.digest[:12]}"]
    assert root.attrib["aria-label"] == f"penny: passed; small, lock {evidence.opened.digest}"
    assert "href" not in badge(subject(evidence))


def test_citation_file(evidence: Evidence) -> None:
    """CFF 1.2.0 with all that it requires; lock, bundle and key digest as identifiers; nobody is named unasked."""
    data = yaml.safe_load(cff(subject(evidence, bundle_digest=BUNDLE)))
    assert {"cff-version", "message", "title", "authors"} <= data.keys()
    assert data["cff-version"] == "1.2.0"
    assert data["authors"] == [{"name": f"The holder of key {KEY[:16]}"}]
    assert [each["value"] for each in data["identifiers"]] == [
        f"sha256:{each}" for each in (evidence.opened.digest, BUNDLE, KEY)
    ]
    assert str(data["date-released"]) == "2026-01-02"
    named = yaml.safe_load(cff(subject(evidence), ("A. Person", "x: [y]\n- z")))
    assert named["authors"] == [{"name": "A. Person"}, {"name": "x: [y]\\n- z"}]


def test_bibtex(evidence: Evidence) -> None:
    """An entry with the digests; what TeX would read as its own is escaped."""
    text = bibtex(subject(evidence, bundle_digest=BUNDLE), (r"O'B_rien}, note={x \input{/x} 5%",))
    assert f"lock sha256:{evidence.opened.digest}, bundle sha256:{BUNDLE}, key sha256:{KEY}" in text
    left, right = r"\textbraceleft{}", r"\textbraceright{}"
    assert rf"{{O'B\_rien{right}, note={left}x \textbackslash{{}}input{left}/x{right} 5\%}}" in text
    assert "  year         = {2026}," in text


def test_bibtex_that_a_name_cannot_leave(evidence: Evidence) -> None:
    """BibTeX counts every brace, whatever stands before it: within an entry they are balanced wherever a name ends."""
    for name in ("x}}, note={evil", "}", "{{{", "\\}}@misc{y,"):
        text = bibtex(subject(evidence), (name,))
        line = next(each for each in text.splitlines() if each.startswith("  author"))
        value = line.partition(" = ")[2].removesuffix(",")
        depths = [value[:end].count("{") - value[:end].count("}") for end in range(1, len(value) + 1)]
        assert (min(depths[:-1]), depths[-1]) == (1, 0)


def test_same_again(evidence: Evidence, tmp_path: Path) -> None:
    """Receipts in another order give the same text."""
    del tmp_path
    one, other = subject(evidence), subject(evidence, evidence.receipts[::-1])
    for form in (readme, article, badge, cff, bibtex):
        assert form(one) == form(other)
