"""A report against another bundle: controlled or directional and why, noise with every difference, in every form."""

import json
import re
import shutil
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from reproducer.attest.bundle import write_bundle
from reproducer.attest.keys import PublicKey, signing_key
from reproducer.cli.app import app
from reproducer.errors import Outcome
from reproducer.verify.bundle import verify_bundle
from reproducer.verify.receipts import verify_receipts
from tests.comparison.arms import Arm
from tests.comparison.test_compare import FACTOR, page_size, two

if TYPE_CHECKING:
    from reproducer.ledger import AnyReceipt

HOLDS = Outcome.HOLDS
FORMS = ("html", "markdown", "text")


def bundled(side: Arm, folder: Path, keys: Path) -> Path:
    """A signed bundle of a side."""
    receipts: tuple[AnyReceipt, ...] = (side.build, *side.launches, *side.measures)
    write_bundle(folder, side.opened, receipts, signing_key(keys), verify_receipts(side.opened, receipts))
    return folder


def report(*words: object) -> tuple[int, str]:
    """Exit code and stdout of `penny report`."""
    ran = CliRunner().invoke(app, ["report", *map(str, words)])
    return ran.exit_code, ran.stdout + ("" if ran.exception is None else str(ran.exception))


@pytest.fixture(scope="module", name="pair")
def _pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Two bundles that were measured in turn, the second half as fast, and the key of both."""
    folder = tmp_path_factory.mktemp("pair")
    first, second = two(folder, slower=2)
    sides = [bundled(each, folder / name, folder / "keys") for each, name in ((first, "one"), (second, "two"))]
    return sides[0], sides[1], folder / "keys" / "penny.pub.pem"


def exit_code(pair: tuple[Path, Path, Path], more: Outcome) -> int:
    """That of `penny verify` over what is reported on (its launches are not quite of its lock), and more."""
    return (verify_bundle(pair[1], PublicKey.from_file(pair[2])).outcome | more).exit_code


def forms(pair: tuple[Path, Path, Path], folder: Path, *more: object) -> tuple[int, dict[str, str]]:
    """Every form of the second against the first."""
    one, two_, key = pair
    files = [word for form in FORMS for word in (f"--{form}", folder / form)]
    code, said = report(two_, "--key", key, "--against", one, "--against-key", key, *more, *files)
    assert all((folder / form).is_file() for form in FORMS), said
    return code, {form: unescape((folder / form).read_text(encoding="utf-8")) for form in FORMS}


def test_controlled(pair: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """With the declared factor alone, every form says controlled, by which factor, and with which noise."""
    code, found = forms(pair, tmp_path, "--factor", FACTOR)
    assert code == exit_code(pair, HOLDS)
    for form, text in found.items():
        plain = " ".join(text.replace("\\", "").replace("`", "").split())
        assert "controlled: only launch.arguments.page-size, launch.effective.page_size differs" in plain, form
        assert "decode_rate, tok/s" in plain, form
        assert "lower: regression" in plain, form
        assert "noise floor" in plain, form
    row = next(line for line in found["markdown"].splitlines() if "`decode_rate, tok/s`" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:5] == ["24.82", "12.41", "-12.41"]
    assert re.fullmatch(r"-[\d.]+ to -[\d.]+", cells[5])
    assert float(cells[6]) > 0


def test_directional(pair: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """What nobody declared is listed with both its values in every form, and nothing is called controlled."""
    code, found = forms(pair, tmp_path)
    assert code == exit_code(pair, HOLDS)
    for form, text in found.items():
        plain = " ".join(text.replace("\\", "").replace("`", "").split())
        assert "directional: 2 conditions differ and 0 are unknown" in plain, form
        assert "controlled:" not in plain, form
        assert "launch.arguments.page-size" in plain, form
        assert re.search(r"16\D{1,40}32", plain[plain.index("launch.arguments.page-size") :]), form


def test_gains_and_regressions_weigh_the_same(pair: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Seen from the other side each regression is a gain: the same rows, in the same order, in the same words."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    _, there = forms(pair, tmp_path / "a")
    _, back = forms((pair[1], pair[0], pair[2]), tmp_path / "b")

    def rows(text: str) -> list[list[str]]:
        lines = [line.strip("|").split("|") for line in text.splitlines() if line.count("|") == 10]
        return [[cell.strip() for cell in line] for line in lines if "`" in line[0]]

    one, two_ = rows(there["markdown"]), rows(back["markdown"])
    assert [row[:2] for row in one] == [row[:2] for row in two_]
    turned = {"lower: regression": "higher: gain", "higher: regression": "lower: gain"}
    assert sum("regression" in row[8] for row in one) > 0
    for before, after in zip(one, two_, strict=True):
        assert turned.get(before[8], before[8]) == after[8]
        assert before[2:4] == after[3:1:-1]
    html = there["html"]
    cells = re.findall(r"<td([^>]*)>(lower[^<]*|higher[^<]*|no difference shown)</td>", html)
    assert {attributes for attributes, _ in cells} == {""}


def test_the_other_is_verified(pair: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Without the key of the other, whose it is stays unknown; that a file of it was changed is said, and fails."""
    one, two_, key = pair
    code, _ = report(two_, "--key", key, "--against", one, "--html", tmp_path / "page.html")
    assert code == exit_code(pair, Outcome.NOT_CHECKED)
    assert "unknown (identity)" in (tmp_path / "page.html").read_text(encoding="utf-8")
    code, said = report(two_, "--key", key, "--against", one, "--json")
    assert json.loads(said.splitlines()[0])["comparison"]["kind"] == "directional"
    broken = shutil.copytree(one, tmp_path / "broken")
    (broken / "report.md").write_text("better", encoding="utf-8")
    code, _ = report(two_, "--key", key, "--against", broken, "--against-key", key, "--html", tmp_path / "page.html")
    assert code == exit_code(pair, Outcome.SIGNATURE_FAILED)
    assert "failed (file.report.md" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_no_place_of_this_machine_is_told(pair: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Where the bundles lie here stands in no form."""
    for form, text in forms(pair, tmp_path)[1].items():
        assert str(pair[0].parent) not in text, form


def test_a_report_alone_has_no_such_section(pair: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Nothing is said of a comparison where none was asked for."""
    report(pair[0], "--html", tmp_path / "page.html")
    assert "with its boundaries" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_refused(pair: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """What is no bundle, a factor without another bundle, and one that does not differ are errors."""
    one, two_, _ = pair
    for words, why in (
        ((two_, "--factor", FACTOR), "name a bundle with --against"),
        ((two_, "--against", tmp_path), "is no bundle"),
        ((two_, "--against", one, "--factor", "launch.nothing"), "launch.nothing"),
    ):
        code, said = report(*words)
        assert code != 0
        assert why in said.replace("Name a", "name a"), said


def test_text_of_the_other_stays_text(tmp_path: Path) -> None:
    """A variable of the other lock with markup in it is shown as exactly that."""
    evil = "<script>alert(1)</script>|`x`"

    def edit(data: dict[str, Any]) -> None:
        page_size(data)
        data["launch"]["environment"]["EVIL"] = evil

    first, second = two(tmp_path / "sides", edit)
    key = tmp_path / "keys"
    sides = [bundled(each, tmp_path / name, key) for each, name in ((first, "one"), (second, "two"))]
    report(sides[0], "--against", sides[1], "--html", tmp_path / "page", "--markdown", tmp_path / "readme")
    assert "<script" not in (tmp_path / "page").read_text(encoding="utf-8")
    row = next(line for line in (tmp_path / "readme").read_text(encoding="utf-8").splitlines() if "EVIL" in line)
    assert row.count("|") == 7
    assert "`<script>alert(1)</script>¦'x'`" in row
