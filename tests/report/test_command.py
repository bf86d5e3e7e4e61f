"""`penny report`: one content in a terminal or as files, and never anything in the bundle."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reproducer.attest.keys import signing_key
from reproducer.verify.bundle import verify_bundle
from tests.verify.factory import good_evidence, signed_bundle

FORMS = ("html", "markdown", "text", "badge", "citation", "bibtex")


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A signed bundle and the file of its key."""
    folder = tmp_path_factory.mktemp("command")
    key = signing_key(folder / "keys")
    bundle = signed_bundle(good_evidence(folder / "lock"), folder / "bundle", key)
    return bundle, folder / "keys" / "penny.pub.pem"


def penny(*words: str, columns: str = "120") -> subprocess.CompletedProcess[str]:
    """One run of the command."""
    argv = [sys.executable, "-m", "reproducer", "report", *words]
    environment = {**os.environ, "COLUMNS": columns, "PYTHONPATH": str(Path.cwd())}
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)


def test_all_files_at_once(signed: tuple[Path, Path], tmp_path: Path) -> None:
    """Every form is written where it was asked for, with the digest of the bundle, and the bundle stays as it was."""
    bundle, key = signed
    before = {path: path.read_bytes() for path in bundle.rglob("*") if path.is_file()}
    options = [word for form in FORMS for word in (f"--{form}", str(tmp_path / form))]
    done = penny(str(bundle), "--key", str(key), *options, "--json")
    result = json.loads(done.stdout)

    assert done.returncode == 0, done.stderr
    assert result["written"] == {form: str(tmp_path / form) for form in FORMS}
    assert result["verdict"] == "passed"
    for form in FORMS:
        if form != "badge":
            assert result["bundle_digest"] in (tmp_path / form).read_text(encoding="utf-8"), form
    assert {path: path.read_bytes() for path in bundle.rglob("*") if path.is_file()} == before


def test_terminal(signed: tuple[Path, Path]) -> None:
    """Without a file it is read here: headings, tables and no Markdown."""
    bundle, key = signed
    done = penny(str(bundle), "--key", str(key))
    assert done.returncode == 0
    assert done.stdout.startswith("small  ✓ passed\n")
    assert "● Receipt: measured here" in done.stdout
    assert "24.82 tok/s" in done.stdout
    assert "|---" not in done.stdout
    assert "**" not in done.stdout


def test_without_the_key_nobody_is_vouched_for(signed: tuple[Path, Path]) -> None:
    """Whose key it is stays unknown, on the page, the badge and in the exit code."""
    page = penny(str(signed[0]), "--html", "-")
    assert page.returncode == 64 + 32
    assert "whose key that is: unknown" in page.stdout
    assert "? unknown</strong>" in page.stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--html", "-", "--text", "-"), "only one result goes to stdout"),
        (("--html", "-", "--json"), "only one result goes to stdout"),
        (("--html", "x", "--text", "./x"), "two results would be written to one file"),
        (("--html", "{bundle}/new.html"), "lies in the bundle"),
        (("--html", "{bundle}/receipts/../report.html"), "lies in the bundle"),
        (("--claim", "{bundle}/index.json"), "is the index of a bundle"),
    ],
)
def test_refused(signed: tuple[Path, Path], words: tuple[str, ...], why: str) -> None:
    """What cannot be meant is an error, and nothing is written."""
    bundle, _ = signed
    done = penny(str(bundle), *(word.format(bundle=bundle) for word in words))
    assert done.returncode == 2
    assert why in done.stderr + done.stdout
    assert not (bundle / "new.html").exists()


def test_page_of_the_bundle_is_made_again(signed: tuple[Path, Path], tmp_path: Path) -> None:
    """`verify` checks the page; the bundle of a penny that wrote none is asked for none."""
    verdict = verify_bundle(signed[0], None)
    assert [each.status for each in verdict.checks if each.id == "page"] == ["passed"]
    old = Path("tests/data/bundles/penny-bundle-1/bundle")
    shutil.copytree(old, tmp_path / "old")
    assert not [each for each in verify_bundle(tmp_path / "old", None).checks if each.id == "page"]
