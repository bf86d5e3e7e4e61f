"""The page over a folder: what it says, that nothing from outside steers it, and how it is written."""

import hashlib
import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reproducer.cli.app import app
from reproducer.documents.site import Site
from reproducer.report.text import number
from reproducer.site.page import Naming, page
from reproducer.site.timeline import Panel, Point, timeline
from tests.report.test_page import ALLOWED, Tags
from tests.site.folders import EVIL, Made, hostile, made

MORE = {"sup", "script", "form", "label", "select", "option", "button", "output"}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two good bundles."""
    return made(tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def bad(good: Made, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The same among everything that a stranger may leave."""
    return hostile(good, tmp_path_factory.mktemp("bad") / "folder")


@pytest.fixture(scope="module")
def site(bad: Made) -> Site:
    """What a site says of that."""
    return bad.read()


@pytest.fixture(scope="module")
def text(site: Site) -> str:
    """Its page."""
    return page(site, "ab" * 32)


def report(*words: object) -> tuple[int, str]:
    """Exit code and what `penny report` said."""
    ran = CliRunner().invoke(app, ["report", *map(str, words)])
    return ran.exit_code, ran.stdout + ("" if ran.exception is None else str(ran.exception))


def test_every_run_is_on_it(site: Site, text: str) -> None:
    """Passed, failed and unknown runs have a row and a part of their own each, and the reason stands in it."""
    for index, run in enumerate(site.runs, start=1):
        part = text[text.index(f'id="run-{index}"') :]
        part = unescape(
            part[: part.index("</details>\n<details class") if "</details>\n<details class" in part else None]
        )
        assert f'<span class="word {run.verdict}">' in part
        assert f"<dd>{run.fault}</dd>" in part or run.fault is None
        assert (run.bundle_digest or "unknown") in part
    assert len(re.findall(r"<tr data-run=", text)) == len(site.runs)
    for word in ("passed", "failed", "unknown"):
        count = sum(run.verdict == word for run in site.runs)
        assert f"{count}</strong> {word}</span>" in text


def test_text_from_outside_stays_text(text: str) -> None:
    """Markup in the name of a folder is shown; no element, attribute or script comes from outside."""
    tags = Tags(text)
    names = [tag for tag, _ in tags.found]
    assert set(names) <= ALLOWED | MORE
    assert names.count("script") == 1
    assert EVIL.replace("/", chr(0x2215)) in tags.text
    for _, attributes in tags.found:
        assert not {name for name in attributes if name.startswith("on") or name in ("style", "src", "xlink:href")}
        assert (attributes.get("href") or "#").startswith("#")
        for name, value in attributes.items():
            if name.startswith("data-"):
                assert re.fullmatch(r"[A-Za-z0-9 ]*", value or "")
    assert not {each for each in text if not each.isprintable() and each != "\n"}


def test_policy_allows_its_own_alone(text: str) -> None:
    """The policy names the digest of the one style sheet and of the one script."""
    import base64

    for tag in ("style", "script"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in unescape(text)
    assert "default-src 'none'" in unescape(text)


def test_numbers_of_broken_runs_are_not_drawn(site: Site, text: str) -> None:
    """Only runs whose numbers are shown have a mark in a figure, and each of them has one."""
    drawn = {int(each) for each in re.findall(r'<g id="runs-m\d+-w-run-(\d+)-', text)}
    assert drawn == {index for index, run in enumerate(site.runs, start=1) if run.measures is not None}


def test_claims_look_like_claims(site: Site, text: str) -> None:
    """A claim has a section with its word and border; none of its numbers stands in another."""
    sections = re.findall(r"<section([^>]*)>(.*?)</section>", text, re.DOTALL)
    (claim,) = ([body] for attributes, body in sections if 'class="claim"' in attributes)
    assert "○ Claim: stated by its publisher" in claim[0]
    shown = {f">{each.value:g}<" for each in site.claims[0].quantities if each.value is not None and each.value > 5}
    assert shown
    for attributes, body in sections:
        assert ('class="claim"' in attributes) == any(each in body for each in shown), attributes


def test_written_and_again(bad: Made, tmp_path: Path) -> None:
    """Two files; the page names its data by digest; another run writes the same bytes, from another place too."""
    target = tmp_path / "site"
    code, said = report(bad.folder, "--site", target, "--key", bad.keys[0], "--json")
    result = json.loads(said.splitlines()[0])
    assert code == result["exit_code"] != 0
    first = {path.name: path.read_bytes() for path in target.iterdir()}
    assert set(first) == {"index.html", "site.json"}
    assert hashlib.sha256(first["site.json"]).hexdigest() in first["index.html"].decode()
    assert result["runs"] == len(json.loads(first["site.json"])["runs"])
    moved = bad.copied_apart(tmp_path / "elsewhere")
    again, _ = report(moved.folder, "--site", target, "--key", bad.keys[0])
    assert again == code
    assert {path.name: path.read_bytes() for path in target.iterdir()} == first


def test_in_the_folder_itself(good: Made, tmp_path: Path) -> None:
    """A site may lie in the folder that it is about; it is no part of what it says."""
    found = good.copied(tmp_path / "folder")
    for _ in range(2):
        report(found.folder, "--site", found.folder / "site", "--key", found.keys[0])
        data = json.loads((found.folder / "site" / "site.json").read_bytes())
        assert len(data["runs"]) == 2
        assert not data.get("left_out")


def test_exit_code(good: Made, tmp_path: Path) -> None:
    """0 where every bundle passes with the keys that were given; without one, whose key it is was not checked."""
    keys = [word for key in good.keys for word in ("--key", key)]
    assert report(good.folder, "--site", tmp_path / "site", *keys)[0] == 0
    assert report(good.folder, "--site", tmp_path / "site", *keys[:2])[0] == 64 + 32


def test_places_that_are_refused(good: Made, tmp_path: Path) -> None:
    """Nothing is written into a bundle, over a page that is not penny's, over a file, or through a link."""
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "index.html").write_text("mine", encoding="utf-8")
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to(foreign, target_is_directory=True)
    bundle = good.folder / "lock-one" / "run-0"
    before = sorted(path.name for path in bundle.iterdir())
    for target, why in (
        (foreign, "penny did not write"),
        (tmp_path / "file", "is no folder"),
        (tmp_path / "link", "is a link"),
        (bundle / "site", "nothing is added"),
        (good.folder, "nothing is added"),
    ):
        code, said = report(good.folder, "--site", target)
        assert code not in (0, 96), said
        assert why in said
    assert (foreign / "index.html").read_text(encoding="utf-8") == "mine"
    assert sorted(path.name for path in bundle.iterdir()) == before
    code, said = report(good.folder, "--site", tmp_path / "site", "--html", "-")
    assert "--site is a form of its own" in said
    assert not (tmp_path / "site").exists()


def test_many_values_are_their_ends(good: Made) -> None:
    """A number of many values is kept and drawn from its least to its most: no site grows with the samples of a run."""
    from reproducer.site.runs import MOST_VALUES, _measure
    from tests.verify.factory import good_evidence

    receipt = good_evidence(good.folder.parent / "more").measure("decode.single")
    derived = receipt.derived[0]

    def of(count: int) -> tuple[int, str]:
        values = tuple(float(each) for each in range(1, count + 1))
        more = derived.model_copy(update={"values": values, "minimum": 1.0, "maximum": float(count)})
        (found, *_) = _measure(receipt.model_copy(update={"derived": (more,)})).values
        assert (found.count, found.maximum) == (count, count)
        point = Point(1, 9, found.value, found.values, (found.minimum, found.maximum), None, failed=True)
        return len(found.values), timeline(f"t{count}", 1, (Panel("t", (point,)),))[0].markup

    few, many = of(MOST_VALUES), of(5000)
    assert (few[0], many[0]) == (MOST_VALUES, 0)
    assert len(many[1]) < len(few[1])
    assert "other locks" in many[1]
    assert ">failed<" in many[1]


@pytest.mark.parametrize("odd", [1.7e308, -1.7e308, 5e-324, 1e15, 9.9e14, 1.1e-15])
def test_odd_numbers_break_no_site(good: Made, odd: float) -> None:
    """What no axis holds stands in the table of its run; every other number is drawn as before."""
    data = good.read().content()
    (measure,) = (each for each in data["runs"][0]["measures"] if each["measure"] == "decode.single/1")
    one = measure["values"][0]
    assert one["unit"] == "tok/s"
    one.update(value=odd, values=[odd, odd], minimum=min(odd, 0.0), maximum=max(odd, 0.0))
    site = Site.from_data(data, where="site")
    text = page(site, "0" * 64)
    tag = next(tag for tag, name in Naming(site).measures.values() if name == "decode.single")
    assert f'<td class="n">{number(odd)} tok/s</td>' in text
    drawn = set(re.findall(rf'id="runs-{tag}-w-run-(\d)-\d-m"', text))
    assert drawn == {"1", "2"}  # their other numbers
    rows = text[text.index("decode.single: values by run") :]
    assert (f'<td class="n">{number(odd)} tok/s</td>' in rows[: rows.index("</table>")]) == (1e-15 < abs(odd) < 1e15)


def test_one_bundle_of_nothing(good: Made, tmp_path: Path) -> None:
    """Where no number of any run is shown, the page says so and has no figure."""
    folder = tmp_path / "folder"
    shutil.copytree(good.folder / "lock-one", folder)
    (folder / "run-0" / "report.md").write_text("x", encoding="utf-8")
    text = page(Made(folder, good.keys).read(), "0" * 64)
    assert "<figure>" not in text
    assert "1 run of 0 locks" in text
    assert "no number of it is shown" in text
