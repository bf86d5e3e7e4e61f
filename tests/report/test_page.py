"""The page: what it says, that it loads and runs nothing, and that no text from outside can mislead."""

import json
import os
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.claims import Claim
from reproducer.documents.imported import ImportedResult
from reproducer.documents.verdict import Verdict
from reproducer.ledger import AnyReceipt
from reproducer.report.html import page, without_drawings
from reproducer.report.subject import Subject
from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import Evidence, edited, good_evidence, sha256

EVIL = "</td></table><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202epassed\u2066 $x$ {{ 7*7 }}"
ALLOWED = {
    "meta",
    "style",
    "title",
    "head",
    "html",
    "body",
    "main",
    "header",
    "section",
    "footer",
    "nav",
    "div",
    "span",
}
ALLOWED |= {
    "h1",
    "h2",
    "h3",
    "p",
    "strong",
    "ul",
    "li",
    "dl",
    "dt",
    "dd",
    "a",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
}
ALLOWED |= {"th", "td", "details", "summary", "figure", "figcaption", "pre", "code", "svg", "g", "path", "use", "defs"}
ALLOWED |= {"clippath", "rect", "text", "desc"}


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A lock and the receipts of a good run."""
    return good_evidence(tmp_path_factory.mktemp("page"))


def subject(evidence: Evidence, receipts: tuple[AnyReceipt, ...] = (), **named: Any) -> Subject:
    """What is reported on, signed by some key."""
    chosen = receipts or evidence.receipts
    verdict = Verdict(checks=verify_receipts(evidence.opened, chosen))
    return Subject(evidence.opened.lock, chosen, verdict, **{"key_id": "ab" * 32, **named})


def claim(**changed: Any) -> Claim:
    """A claim of one number."""
    data = {
        "format": "penny-claim/1",
        "status": "claimed",
        "name": "fast",
        "publisher": "Somebody",
        "source": "https://example.org/fast",
        "date": "2026-08-21",
        "runtime": "an engine",
        "quantities": [{"name": "decode", "kind": "completed-request rate", "unit": "tok/s", "value": 987.25}],
        "conditions": {"known": {}, "unknown": ["driver"]},
    }
    return Claim.from_data({**data, **changed}, where="claim")


def imported() -> ImportedResult:
    """A result of another harness."""
    quantity = {
        "name": "output_throughput",
        "kind": "aggregate makespan rate",
        "unit": "tok/s",
        "statistic": "total",
        "value": 543.5,
        "origin": "stated",
        "fields": ["output_throughput"],
        "how": "",
    }
    data = {
        "format": "penny-imported/1",
        "status": "imported",
        "harness": "guidellm",
        "harness_version": "0.3",
        "file_version": "1",
        "read_in": "0.3",
        "penny_version": "0",
        "original": {"path": "original.json", "sha256": sha256("original"), "size": 3},
        "runs": [{"place": "run", "quantities": [quantity], "conditions": {"known": {}, "unknown": []}}],
        "unmapped": [],
    }
    return ImportedResult.from_data(data, where="imported")


class Tags(HTMLParser):
    """Every element with its attributes, and the text outside of style sheets."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note it."""
        self.text += data


def hostile(evidence: Evidence) -> Subject:
    """Receipts, a claim and a check with text that would rather be something else."""

    def poison(build: dict[str, Any]) -> None:
        build["host"]["cpu"] = build["installer"] = EVIL
        build["outputs"][0]["differences"] = [{"where": EVIL, "reason": EVIL}]

    def altered(launch: dict[str, Any]) -> None:
        launch.update(arguments=[EVIL], namespace=EVIL, altered={"page_size": EVIL})

    receipts = (
        edited(evidence.build, poison),
        *(edited(each, altered) for each in evidence.launches),
        *(
            edited(
                each,
                lambda data: data["conditions"].update(
                    cache_state=EVIL, host={**data["conditions"]["host"], "cpu": EVIL}
                ),
            )
            for each in evidence.measures
        ),
    )
    return subject(
        evidence, receipts, claims=(claim(publisher=EVIL, runtime=EVIL, conditions={"known": {}, "unknown": [EVIL]}),)
    )


def test_contents(evidence: Evidence) -> None:
    """Verdict, digests, signer, every check, every number, limits and commands stand on the page."""
    about = subject(evidence, bundle_digest="cd" * 32)
    text = unescape(page(about))

    for fact in (
        evidence.opened.digest,
        "ab" * 32,
        "cd" * 32,
        "Every check holds",
        "24.82 tok/s",
        "≥ 10",
        "It proves who signed",
    ):
        assert fact in text
    for each in about.verdict.checks:
        assert f'<td class="v">{each.id}</td>' in text
    assert f"penny verify . --key KEY.pem --lock-digest {evidence.opened.digest}" in text
    for section in ("measures", "context", "spread", "checks", "conditions", "limits", "verify"):
        assert f'<section id="{section}"' in text


def test_failures_are_named_and_open(evidence: Evidence) -> None:
    """What failed stands in a table that nobody has to unfold."""
    build = edited(evidence.build, lambda content: content.update(python="3.12.1"))
    text = page(subject(evidence, (build, *evidence.launches, *evidence.measures)))

    assert '<p class="verdict failed"><strong>✗ failed</strong>' in text
    before = text[: text.index("the runtime&#39;s Python is 3.12.1")]
    assert before.count("<details>") == before.count("</details>")


def test_loads_and_runs_nothing(evidence: Evidence) -> None:
    """No element that loads or runs, no style attribute, and a policy that allows this style sheet alone."""
    text = page(subject(evidence))
    tags = Tags(text)

    assert {tag for tag, _ in tags.found} <= ALLOWED
    for tag, attributes in tags.found:
        assert not {name for name in attributes if name.startswith("on") or name in ("style", "src", "xlink:href")}
        assert (attributes.get("href") or "#").startswith("#"), tag
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    assert "@import" not in text
    assert "url(http" not in text


def test_text_from_outside_stays_text(evidence: Evidence) -> None:
    """Markup, template syntax, control characters and turned directions are shown and do nothing."""
    text = page(hostile(evidence))
    tags = Tags(text)

    assert {tag for tag, _ in tags.found} <= ALLOWED
    assert "<script>alert(1)</script>" in tags.text
    assert "{{ 7*7 }}" in tags.text
    assert "\\x1b[2J" in tags.text
    assert "\\u202e" in tags.text
    assert not {each for each in text if not each.isprintable() and each != "\n"}


def test_long_text_is_cut(evidence: Evidence) -> None:
    """A text without end does not make a page without end, and says that it was cut."""
    build = edited(evidence.build, lambda content: content.update(installer="x" * 60_000))
    text = page(subject(evidence, (build, *evidence.launches, *evidence.measures)))
    assert "x" * 4001 not in text
    assert re.search(r"… \(60\d\d\d characters\)", text)


def test_claims_and_imports_stand_apart(evidence: Evidence) -> None:
    """Each in a section of its own with a word, a sign and a border of its own; no number of it among receipts."""
    text = page(subject(evidence, claims=(claim(),), imported=(imported(),)))
    sections = re.findall(r'<section id="[^"]*"(?: class="(\w+)")?[^>]*>(.*?)</section>', text, re.DOTALL)

    for kind, number, sign in (("claim", "987.2", "○ Claim"), ("imported", "543.5", "◐ Imported")):
        (own,) = (body for provenance, body in sections if provenance == kind)
        assert number in own
        assert f'<span class="source {kind}">{sign}' in own
        assert all(number not in body for provenance, body in sections if provenance != kind)
    assert '<span class="source receipt">● Receipt' in text
    borders = [re.search(rf"section\.{kind}{{border:\S+ (\w+)", text) for kind in ("claim", "imported")]
    assert [each and each.group(1) for each in borders] == ["dotted", "dashed"]


def test_same_bytes_in_every_process(evidence: Evidence, tmp_path: Path) -> None:
    """Another process with other hash seeds, settings and clock makes the same page."""
    bundle = tmp_path / "bundle"
    (bundle / "receipts").mkdir(parents=True)
    for name in evidence.opened.path.parent.rglob("*"):
        if name.is_file():
            target = bundle / name.relative_to(evidence.opened.path.parent)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(name.read_bytes())
    from reproducer.ledger import Ledger

    for receipt in evidence.receipts:
        Ledger(bundle / "receipts").add(receipt)
    settings = tmp_path / "matplotlibrc"
    settings.write_text("font.size: 31\nsvg.hashsalt: other\naxes.facecolor: red\ngrid.linestyle: --\n")
    program = (
        "import sys; from pathlib import Path; from reproducer.documents.opened import open_lock\n"
        "from reproducer.documents.verdict import Verdict; from reproducer.ledger import Ledger\n"
        "from reproducer.report.html import page; from reproducer.report.subject import Subject\n"
        "from reproducer.verify.receipts import verify_receipts\n"
        "folder = Path(sys.argv[1]); opened = open_lock(folder / 'penny.lock.toml')\n"
        "receipts = Ledger(folder / 'receipts').receipts(); checks = verify_receipts(opened, receipts)\n"
        "sys.stdout.write(page(Subject(opened.lock, receipts, Verdict(checks=checks), key_id='ab' * 32)))\n"
    )
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "7",
        "MATPLOTLIBRC": str(settings),
        "TZ": "Asia/Tokyo",
        "MPLBACKEND": "pdf",
    }
    ran = subprocess.run(
        [sys.executable, "-c", program, str(bundle)], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout == page(subject(evidence, evidence.receipts[::-1]))
    assert not ran.stderr


def test_every_figure_has_words_and_a_table(evidence: Evidence) -> None:
    """Title and description for who does not see it, once for each width, and the numbers in a table behind it."""
    text = page(subject(evidence))
    figures = re.findall(r"<figure>.*?</figure>\s*(<details>|<div)", text, re.DOTALL)
    drawings = re.findall(r'<svg class="(?:wide|narrow)"[^>]*aria-labelledby="(\S+) (\S+)"><title id="(\S+)">', text)
    ids = re.findall(r' id="([^"]+)"', text)

    assert len(figures) == 2
    assert len(drawings) == 2 * len(figures)
    assert all(title == named for title, _, named in drawings)
    assert len(ids) == len(set(ids))


def test_page_without_drawings_keeps_its_words(evidence: Evidence) -> None:
    """Only the shapes go; titles, tables and checks stay."""
    text = page(subject(evidence))
    words = without_drawings(text)
    assert "<path" in text
    assert "<path" not in words
    assert words.count("<title id=") == text.count("<title id=")
    assert words.count("<td") == text.count("<td")


def test_nothing_measured(evidence: Evidence) -> None:
    """Of nothing there is a page that says so."""
    verdict = Verdict(checks=())
    text = page(Subject(evidence.opened.lock, (), verdict))
    assert "unknown</strong>" in text
    assert "<p>Nothing.</p>" in text
    assert json.dumps("<figure>")[1:-1] not in text


def contrast(first: str, second: str) -> float:
    """The contrast of two colours as WCAG 2 has it."""

    def light(colour: str) -> float:
        digits = colour.lstrip("#")
        digits = "".join(each * 2 for each in digits) if len(digits) == 3 else digits
        parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(first), light(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast(evidence: Evidence) -> None:
    """Every colour of text reaches 4.5 to 1 on every ground, in light, in dark and on paper."""
    text = page(subject(evidence))
    schemes = [dict(re.findall(r"--(\w+):(#\w+)", block)) for block in re.findall(r":root{([^}]*)}", text)]
    assert len(schemes) == 3
    for scheme in schemes:
        for name in ("ink", "muted", "first", "second", "third", "fourth", "good", "bad", "doubt"):
            for ground in ("paper", "raised"):
                assert contrast(scheme[name], scheme[ground]) >= 4.5, (name, ground)
