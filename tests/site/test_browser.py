"""The site in headless Chromium: quiet, within the screen, useful without its script; filters hide and show."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reproducer.site.page import page
from tests.report.chromium import PROGRAM, Browser, chromium
from tests.site.folders import hostile, made

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium on this machine")
SHOWN = "[...document.querySelectorAll('tr[data-run]')].filter(e => e.getBoundingClientRect().height > 0).length"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for all pages."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page over a folder with everything that a stranger may leave in it."""
    base = tmp_path_factory.mktemp("site")
    target = base / "index.html"
    target.write_text(page(hostile(made(base / "good"), base / "bad").read(), "ab" * 32), encoding="utf-8")
    return target


def choose(browser: Browser, name: str, value: str) -> None:
    """Choose a value in a filter, as a person does."""
    browser.value(
        f"(() => {{ const one = document.forms[0].elements['{name}']; one.value = '{value}';"
        " one.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


@pytest.mark.parametrize("width", [360, 1000])
@pytest.mark.parametrize("dark", [False, True])
def test_quiet_and_within_the_screen(browser: Browser, path: Path, width: int, dark: bool) -> None:  # noqa: FBT001
    """No complaint, no request but the page, no horizontal overflow, one script; nothing from outside ran."""
    browser.open(path, width=width, dark=dark)
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]
    assert browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.value("document.scripts.length") == 1
    assert browser.value("document.images.length") == 0


def test_filters(browser: Browser, path: Path) -> None:
    """Each filter leaves the runs that fit; in figures the others are faint; one button shows all again."""
    browser.open(path)
    every = browser.value(SHOWN)
    failed = browser.value("document.querySelectorAll('tr[data-verdict=failed]').length")
    assert 0 < failed < every
    choose(browser, "verdict", "failed")
    assert browser.value(SHOWN) == failed
    choose(browser, "verdict", "")
    choose(browser, "lock", "L1")
    assert browser.value(SHOWN) == browser.value("document.querySelectorAll('tr[data-lock=L1]').length") == 1
    faint = "[...document.querySelectorAll('svg.wide .off')].map(e => getComputedStyle(e).opacity)"
    assert browser.value(f"[...new Set({faint})].join()") == "0.1"
    assert browser.value("document.querySelectorAll('svg.wide g[id*=\"-run-\"]:not(.off)').length") > 0
    choose(browser, "measure", "m1")
    assert browser.value("[...document.querySelectorAll('[data-figure]')].filter(e => !e.hidden).length") <= 1
    choose(browser, "signer", "K2")
    browser.value("document.getElementById('all').click()")
    assert browser.value(SHOWN) == every
    assert browser.value("document.querySelectorAll('.off').length") == 0


def test_a_filter_is_an_address(browser: Browser, path: Path, tmp_path: Path) -> None:
    """What is chosen stands in the address, and an address chooses; one that names nothing known chooses nothing."""
    browser.open(path)
    choose(browser, "verdict", "passed")
    assert browser.value("location.hash") == "#verdict=passed"
    browser.open(path)
    every = browser.value(SHOWN)
    blank = tmp_path / "blank.html"
    blank.write_text("<title>blank</title>", encoding="utf-8")
    for chosen, shown in (("verdict=passed", 1), ("verdict=<img src=x onerror=alert(1)>&lock=__proto__", every)):
        browser.open(blank)
        browser.call("Page.navigate", url=f"{path.as_uri()}#{chosen}")
        while not browser.value("document.readyState === 'complete' && document.title !== 'blank'"):
            pass
        assert browser.value(SHOWN) == shown
    assert browser.value("document.images.length") == 0


def test_without_its_script(browser: Browser, path: Path) -> None:
    """Everything is shown, and the filters, which would do nothing, are not."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(path)
        assert browser.value(SHOWN) == browser.value("document.querySelectorAll('tr[data-run]').length") > 0
        assert browser.value("document.getElementById('filters').getBoundingClientRect().height") == 0
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_policy_holds(browser: Browser, path: Path, tmp_path: Path) -> None:
    """Another script, a changed one, an image and a handler that somebody adds are refused."""
    added = '<script>window.ran = 1</script><img src="https://example.org/x" onerror="window.ran = 2">'
    changed = tmp_path / "added.html"
    text = path.read_text(encoding="utf-8").replace("<main>", "<main>" + added)
    changed.write_text(text.replace('"use strict";', '"use strict"; window.ran = 3;'), encoding="utf-8")
    browser.open(changed)
    assert browser.value("typeof window.ran") == "undefined"
    assert browser.value("document.getElementById('filters').hidden")
    assert len(browser.complaints()) == 4
    failed = [each["params"] for each in browser.events if each["method"] == "Network.loadingFailed"]
    assert [each.get("blockedReason") for each in failed] == ["csp"]
