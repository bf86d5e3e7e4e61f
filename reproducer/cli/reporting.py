"""`penny report`: evidence as a person reads it, in a terminal or as files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reproducer.cli.evidence import newest, verdict_of
from reproducer.cli.front import (
    DEFAULT_LOCK,
    Front,
    JsonOption,
    LockOption,
    QuietOption,
    StoreOption,
    VerboseOption,
    finish,
    ledger_of,
    open_store,
)
from reproducer.cli.siting import make_site
from reproducer.errors import Outcome, UsageError

if TYPE_CHECKING:
    from reproducer.report.subject import Subject

_STDOUT = Path("-")


def report(
    bundle: Annotated[
        Path | None,
        typer.Argument(
            help="A bundle; default: the receipts in the store. With --site a folder of bundles; default: `evidence`.",
            show_default=False,
        ),
    ] = None,
    *,
    html: Annotated[Path | None, typer.Option("--html", help="One page that loads nothing.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Markdown for a README.")] = None,
    text: Annotated[Path | None, typer.Option("--text", help="A block of plain text for an article.")] = None,
    badge: Annotated[Path | None, typer.Option("--badge", help="A badge with verdict and lock (SVG).")] = None,
    citation: Annotated[Path | None, typer.Option("--citation", help="CITATION.cff with the digests.")] = None,
    bibtex: Annotated[Path | None, typer.Option("--bibtex", help="A BibTeX entry with the digests.")] = None,
    author: Annotated[list[str] | None, typer.Option("--author", help="Whom a citation names; as often.")] = None,
    claim: Annotated[list[Path] | None, typer.Option("--claim", help="A published claim, shown apart.")] = None,
    imported: Annotated[list[Path] | None, typer.Option("--imported", help="An imported result, shown apart.")] = None,
    against: Annotated[Path | None, typer.Option("--against", help="A bundle to compare with; it is side A.")] = None,
    against_key: Annotated[Path | None, typer.Option("--against-key", help="The public key of its signer.")] = None,
    factor: Annotated[
        list[str] | None,
        typer.Option("--factor", metavar="PATH", help="What was meant to differ, as in `penny compare`; as often."),
    ] = None,
    site: Annotated[
        Path | None, typer.Option("--site", metavar="DIR", help="A page over a folder of bundles, and its data.")
    ] = None,
    key: Annotated[
        list[Path] | None,
        typer.Option("--key", help="The signer's public key (PEM); for --site as often as there are signers."),
    ] = None,
    lock_path: LockOption = DEFAULT_LOCK,
    store: StoreOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Show the report, or write it: FILE `-` is stdout, and several files are written at once."""
    from reproducer.documents.toml import write_atomically
    from reproducer.report import badge as badges
    from reproducer.report import citation as citations
    from reproducer.report.html import page
    from reproducer.report.short import article, readme

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    wanted = {
        "html": html,
        "markdown": markdown,
        "text": text,
        "badge": badge,
        "citation": citation,
        "bibtex": bibtex,
    }
    asked = {name: path for name, path in wanted.items() if path is not None}
    if site is not None:
        if asked or against is not None or claim or imported or author or factor or against_key is not None:
            raise UsageError("--site is a form of its own", todo="leave the other forms out")
        make_site(front, bundle, site, tuple(key or ()))
        return
    if len(key or ()) > 1:
        raise UsageError("one bundle has one signer", where="--key", todo="name one key")
    if against is None and (against_key is not None or factor):
        raise UsageError("--factor and --against-key are of a comparison", todo="name a bundle with --against")
    _refuse(asked, bundle, as_json=as_json)
    subject = _subject(
        bundle, next(iter(key or ()), None), lock_path, store, claims=tuple(claim or ()), imported=tuple(imported or ())
    )
    if against is not None:
        subject = _compared(subject, against, against_key, tuple(factor or ()), lock_path if bundle is None else bundle)
    makers = {
        "html": lambda: page(subject),
        "markdown": lambda: readme(subject),
        "text": lambda: article(subject),
        "badge": lambda: badges.badge(subject),
        "citation": lambda: citations.cff(subject, tuple(author or ())),
        "bibtex": lambda: citations.bibtex(subject, tuple(author or ())),
    }
    made = {name: makers[name]() for name in asked}
    for name, path in asked.items():
        if path == _STDOUT:
            front.write(made[name])
        else:
            write_atomically(path, made[name].encode())
    if _STDOUT not in asked.values():
        _emit(front, subject, asked)
    finish(subject.verdict.outcome | _outcome(subject, asked=bool(factor)))


def _outcome(subject: "Subject", *, asked: bool) -> Outcome:
    """What a comparison adds to the exit code: how the other bundle verifies, and a factor that is not alone."""
    found = subject.against
    return Outcome.HOLDS if found is None else found.verdict.outcome | found.comparison.outcome(asked=asked)


def _emit(front: Front, subject: "Subject", asked: dict[str, Path]) -> None:
    from rich.console import Group
    from rich.text import Text

    from reproducer.cli.show_report import shown_report
    from reproducer.report.markdown import report as whole
    from reproducer.report.sections import content

    written = {name: str(path) for name, path in asked.items()}
    result = {"subject": subject.lock.digest, "verdict": subject.verdict.word, "written": written}
    if front.as_json:
        text = whole(subject.lock, subject.receipts, subject.verdict)
        told = {} if subject.against is None else {"comparison": subject.against.comparison.content()}
        front.emit({**result, **told, "report": text, "bundle_digest": subject.bundle_digest}, "")
    elif written:
        front.emit(result, Group(*(Text(path, overflow="fold") for path in written.values())))
    else:
        front.emit(result, shown_report(content(subject)))


def _refuse(asked: dict[str, Path], bundle: Path | None, *, as_json: bool) -> None:
    """One thing goes to stdout, every file has a place of its own, and nothing is added to signed evidence."""
    written = [path.resolve() for path in asked.values() if path != _STDOUT]
    if len(asked) - len(written) > 1 or (as_json and len(written) < len(asked)):
        raise UsageError("only one result goes to stdout", where="-", todo="name files for the others")
    if len(set(written)) < len(written):
        raise UsageError("two results would be written to one file", todo="name another file")
    root = None if bundle is None else bundle.resolve()
    for path in written:
        if root is not None and path.is_relative_to(root) and (root / "index.json").exists():
            raise UsageError(
                "lies in the bundle, to which nothing is added", where=str(path), todo="name a file outside of it"
            )


def _subject(
    bundle: Path | None,
    key: Path | None,
    lock_path: Path,
    store: Path | None,
    *,
    claims: tuple[Path, ...],
    imported: tuple[Path, ...],
) -> "Subject":
    """What is reported on, verified now."""
    import hashlib

    from reproducer.attest.statements import INDEX
    from reproducer.documents.claims import Claim
    from reproducer.documents.imported import ImportedResult
    from reproducer.documents.opened import open_lock
    from reproducer.documents.receipts import BundleIndex
    from reproducer.documents.toml import read_bytes, read_text
    from reproducer.documents.verdict import Verdict
    from reproducer.ledger import Ledger
    from reproducer.report.subject import Subject
    from reproducer.trace.kept import TRACES, kept_traces
    from reproducer.verify.receipts import verify_receipts

    said = tuple(Claim.from_json(read_text(each, what="claim"), where=str(each)) for each in claims)
    others = tuple(
        ImportedResult.from_json(read_text(each, what="imported result"), where=str(each)) for each in imported
    )
    if bundle is None:
        opened = open_lock(lock_path)
        receipts = newest(opened, store)
        verdict = Verdict(checks=verify_receipts(opened, receipts))
        traces = kept_traces(ledger_of(open_store(store), opened).folder / TRACES, receipts)
        return Subject(opened.lock, receipts, verdict, claims=said, imported=others, traces=traces)
    verdict = verdict_of(bundle, key, lock_path, store)
    opened = open_lock(bundle / DEFAULT_LOCK)
    receipts = Ledger(bundle / "receipts").receipts()
    if not (bundle / INDEX).exists():
        return Subject(opened.lock, receipts, verdict, claims=said, imported=others)
    index = read_bytes(bundle / INDEX, what="index of the bundle")
    return Subject(
        opened.lock,
        receipts,
        verdict,
        key_id=BundleIndex.from_json(index, where=str(bundle / INDEX)).key_id,
        bundle_digest=hashlib.sha256(index).hexdigest(),
        claims=said,
        imported=others,
        traces=kept_traces(bundle / TRACES, receipts),
    )


def _compared(subject: "Subject", other: Path, key: Path | None, factors: tuple[str, ...], where: Path) -> "Subject":
    """The subject set against another bundle, which is verified too.

    Raises:
        UsageError: the other is no bundle, a declared factor does not differ, or no number has a like in the other.
    """
    import hashlib
    from dataclasses import replace

    from reproducer.attest.statements import INDEX
    from reproducer.comparison.comparing import compare_sides
    from reproducer.comparison.measured import receipts_side
    from reproducer.comparison.sides import read_side
    from reproducer.documents.opened import open_lock
    from reproducer.documents.receipts import BundleIndex
    from reproducer.documents.toml import read_bytes
    from reproducer.report.against import Against

    if not (other / INDEX).is_file():
        raise UsageError(
            "is no bundle, and evidence is set against evidence alone",
            where=str(other),
            todo="name a bundle; `penny compare` takes receipts, locks, traces and claims",
        )
    verdict = verdict_of(other, key, DEFAULT_LOCK, None)
    index = read_bytes(other / INDEX, what="index of the bundle")
    before = read_side(other)
    opened = open_lock(where / DEFAULT_LOCK if where.is_dir() else where)
    found = Against(
        name=open_lock(other / DEFAULT_LOCK).lock.name,
        lock_digest=open_lock(other / DEFAULT_LOCK).digest,
        bundle_digest=hashlib.sha256(index).hexdigest(),
        key_id=BundleIndex.from_json(index, where=str(other / INDEX)).key_id,
        verdict=verdict,
        comparison=compare_sides(before, receipts_side(subject.receipts, opened, str(where)), factors=factors),
    )
    return replace(subject, against=found)
