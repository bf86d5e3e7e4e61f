"""`penny report FOLDER --site DIR`: a page over a folder of bundles."""

from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.cli.evidence import EVIDENCE
from reproducer.cli.front import Front, finish

if TYPE_CHECKING:
    from rich.console import RenderableType

    from reproducer.documents.site import Site


def make_site(front: Front, folder: Path | None, target: Path, keys: tuple[Path, ...]) -> None:
    """Verify every bundle of a folder, write the site, and leave with what verification found of all of them."""
    from reproducer.site.reading import read_site, signers_of
    from reproducer.site.writing import refuse_place, write_site

    source = EVIDENCE if folder is None else folder
    refuse_place(target, source)
    site, outcome = read_site(source, signers_of(keys), reporter=front.reporter, beside=target)
    places = tuple(source / place for run in site.runs for place in run.places)
    refuse_place(target, source, places)
    page, data = write_site(site, target, reporter=front.reporter)
    counts = {word: sum(run.verdict == word for run in site.runs) for word in ("passed", "failed", "unknown")}
    result = {
        "written": {"html": str(page), "json": str(data)},
        "runs": len(site.runs),
        "verdicts": counts,
        "locks": [each.digest for each in site.locks],
        "left_out": len(site.left_out),
        "exit_code": outcome.exit_code,
    }
    front.emit(result, _shown(site, page))
    finish(outcome)


def _shown(site: "Site", page: Path) -> "RenderableType":
    from rich.text import Text

    signs = {"passed": ("✓", "green"), "failed": ("✗", "red"), "unknown": ("?", "yellow")}
    lines = Text(overflow="fold")
    for number, run in enumerate(site.runs, start=1):
        sign, style = signs[run.verdict]
        place = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in run.places[0])
        lines.append(f"{sign} {run.verdict}", style=style).append(f"  {number}  {place}\n")
    return lines.append(str(page))
