"""Folders of bundles, good and hostile."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from reproducer.attest.keys import signing_key
from reproducer.documents.site import Site, SiteRun
from reproducer.progress import Silent
from reproducer.site.reading import read_site, signers_of
from tests.end_to_end.newcomer import ROOT
from tests.verify.factory import good_evidence, signed_bundle

EVIL = "<script>alert(1)</script>"
CLAIM = ROOT / "evidence" / "claims" / "qwen38-27b-dflash2-final.json"


@dataclass(frozen=True)
class Made:
    """A folder of two good bundles of two locks, signed by two keys."""

    folder: Path
    keys: tuple[Path, Path]

    def read(self, *, beside: Path | None = None) -> Site:
        """What a site says of it, with the key of the first alone."""
        return read_site(self.folder, signers_of(self.keys[:1]), reporter=Silent(), beside=beside)[0]

    def copied(self, target: Path) -> "Made":
        """The same somewhere else, for a test that changes it."""
        return Made(shutil.copytree(self.folder, target, symlinks=True), self.keys)

    def copied_apart(self, target: Path) -> "Made":
        """A copy of a folder with pipes and holes in it, which are made again and not read."""
        target.mkdir()
        subprocess.run(["cp", "-a", "--sparse=always", str(self.folder), str(target)], check=True)
        moved = target / self.folder.name
        return Made(moved, self.keys)


def made(base: Path) -> Made:
    """Two good bundles."""
    keys = []
    for number, name in enumerate(("one", "two")):
        key = signing_key(base / f"keys-{name}")
        evidence = good_evidence(base / f"lock-{name}", name=f"small-{name}")
        signed_bundle(evidence, base / "bundles" / f"lock-{name}" / f"run-{number}", key)
        named = base / f"{name}.pem"
        shutil.copy(base / f"keys-{name}" / "penny.pub.pem", named)
        keys.append(named)
    return Made(base / "bundles", (keys[0], keys[1]))


def hostile(made_: Made, target: Path) -> Made:
    """A copy with all that a stranger may leave in it."""
    found = made_.copied(target)
    good = found.folder / "lock-one" / "run-0"
    shutil.copytree(good, found.folder / "again")
    changed = shutil.copytree(good, found.folder / "changed")
    receipt = min((changed / "receipts").glob("measure-*.json"))
    receipt.write_bytes(receipt.read_bytes().replace(b"completed-request rate", b"aggregate makespan rate"))
    (changed / "report.md").write_text("better than it was", encoding="utf-8")
    shutil.copytree(good, found.folder / f"name {EVIL.replace('/', chr(0x2215))}")
    linked = shutil.copytree(good, found.folder / "linked")
    (linked / "report.md").unlink()
    (linked / "report.md").symlink_to(good / "report.md")
    (found.folder / "link").symlink_to(good, target_is_directory=True)
    for name in ("pipe", "huge", "torn", "indexless"):
        (found.folder / name).mkdir()
    os.mkfifo(found.folder / "pipe" / "index.json")
    with (found.folder / "huge" / "index.json").open("wb") as file:
        file.truncate(1 << 40)
    (found.folder / "torn" / "index.json").write_text('{"format": "penny-bundle/1", "key_id": ', encoding="utf-8")
    (found.folder / "indexless" / "statements").mkdir()
    os.mkfifo(found.folder / "pipe.json")
    (found.folder / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    (found.folder / "other.json").write_text('{"format": "penny-verdict/1", "checks": []}', encoding="utf-8")
    (found.folder / ".unfinished").mkdir()
    shutil.copy(CLAIM, found.folder / "claim.json")
    Path(os.fsdecode(os.fsencode(found.folder) + b"/\xff\xfe")).mkdir()
    (Path(os.fsdecode(os.fsencode(found.folder) + b"/\xff\xfe")) / "index.json").write_text("{}", encoding="utf-8")
    return found


def at(site: Site, place: str) -> SiteRun:
    """The run at a place."""
    return next(each for each in site.runs if place in each.places)
