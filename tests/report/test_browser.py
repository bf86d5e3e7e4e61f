"""The page in headless Chromium: nothing is refused, nothing is asked for, nothing sticks out."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reproducer.report.html import page
from tests.report.chromium import PROGRAM, Browser, chromium
from tests.report.test_page import hostile, imported, subject
from tests.verify.factory import Evidence, good_evidence

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium on this machine")
INK = "getComputedStyle(document.body).color"
SHAPE = "getComputedStyle(document.querySelector('figure svg.wide path[stroke^=var], figure svg.wide use')).stroke"


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A lock and the receipts of a good run."""
    return good_evidence(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for all pages."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def plain(evidence: Evidence, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with an imported result beside the receipts."""
    path = tmp_path_factory.mktemp("pages") / "plain.html"
    path.write_text(page(subject(evidence, imported=(imported(),))), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [360, 1000])
@pytest.mark.parametrize("dark", [False, True])
def test_quiet_and_within_the_screen(browser: Browser, plain: Path, width: int, dark: bool) -> None:  # noqa: FBT001
    """No complaint, no request but the page, no horizontal overflow; the drawing for this width is the one shown."""
    browser.open(plain, width=width, dark=dark)
    assert browser.complaints() == []
    assert browser.requests() == [plain.as_uri()]
    assert browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    shown = "narrow" if width == 360 else "wide"
    kinds = "[...document.querySelectorAll('figure svg')].filter(e => e.getBoundingClientRect().width > 0)"
    assert browser.value(f"[...new Set({kinds}.map(e => e.getAttribute('class')))].join()") == shown


def test_dark(browser: Browser, plain: Path) -> None:
    """Text, ground and drawings follow the scheme."""
    found = []
    for dark in (False, True):
        browser.open(plain, dark=dark)
        ground = browser.value("getComputedStyle(document.body).backgroundColor")
        found.append((browser.value(INK), ground, browser.value(SHAPE)))
    assert all(light != dark for light, dark in zip(*found, strict=True))
    assert found[0][1] == "rgb(255, 255, 255)"


def test_hostile_page_is_as_quiet(browser: Browser, evidence: Evidence, tmp_path: Path) -> None:
    """Nothing that receipts hold runs, loads or sticks out of a phone."""
    path = tmp_path / "hostile.html"
    path.write_text(page(hostile(evidence)), encoding="utf-8")
    browser.open(path, width=360)
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]
    assert browser.value("document.scripts.length + document.images.length") == 0
    assert browser.value("document.documentElement.scrollWidth") == 360


def test_policy_holds(browser: Browser, plain: Path, tmp_path: Path) -> None:
    """A script, an image and a style attribute that somebody adds to the page are refused."""
    path = tmp_path / "added.html"
    added = '<script>window.ran = 1</script><img src="https://example.org/x"><p id="s" style="color: red">x</p>'
    path.write_text(plain.read_text(encoding="utf-8").replace("<main>", "<main>" + added), encoding="utf-8")
    browser.open(path)
    assert browser.value("typeof window.ran") == "undefined"
    assert browser.value("getComputedStyle(document.getElementById('s')).color") == browser.value(INK)
    assert len(browser.complaints()) == 3


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext reads what was printed, and is not here")
def test_print(browser: Browser, plain: Path, tmp_path: Path) -> None:
    """On paper everything that is folded on the screen is there."""
    browser.open(plain)
    path = tmp_path / "page.pdf"
    path.write_bytes(browser.printed())
    text = subprocess.run(["pdftotext", "-raw", str(path), "-"], capture_output=True, text=True, check=True).stdout
    assert "threshold.decode.single.decode_rate" in "".join(text.split())
    assert "upperquartile" in "".join(text.split())
