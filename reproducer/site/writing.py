"""A site as two files in a folder, each written whole: the page last, and it names the data by digest."""

import hashlib
import json
from pathlib import Path

from reproducer.documents.site import Site
from reproducer.documents.toml import write_atomically
from reproducer.errors import PennyError, UnsafeInputError, UsageError
from reproducer.progress import Reporter
from reproducer.site.page import page
from reproducer.store.exclusive import exclusive
from reproducer.verify.folder import read_plain

PAGE = "index.html"
DATA = "site.json"


def refuse_place(target: Path, folder: Path, bundles: tuple[Path, ...] = ()) -> None:
    """Refuse a folder in which a site has no place.

    Raises:
        UsageError: it is a file, it lies in a bundle, or it holds a page that is no site of penny's.
        UnsafeInputError: it is a link.
    """
    if target.is_symlink():
        raise UnsafeInputError("is a link, and a site is written into a folder", where=str(target))
    if target.exists() and not target.is_dir():
        raise UsageError("is no folder", where=str(target), todo="name a folder for the site")
    own = target.resolve()
    for each in (folder, *bundles):
        if own == each.resolve() or (each != folder and own.is_relative_to(each.resolve())):
            raise UsageError(
                "is what the site is about, to which nothing is added", where=str(target), todo="name another folder"
            )
    if any((target / name).exists() or (target / name).is_symlink() for name in (PAGE, DATA)) and not _is_site(target):
        raise UsageError(
            f"holds {PAGE} or {DATA} that penny did not write", where=str(target), todo="name another folder"
        )


def write_site(site: Site, target: Path, *, reporter: Reporter) -> tuple[Path, Path]:
    """Write data and page; a reader sees the old file or the new one, and the page says which data it is of.

    Raises:
        NotCheckedError: they cannot be written.
        InvalidDocumentError: numbers of it fit on no axis.
    """
    data = json.dumps(json.loads(site.canonical()), indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"
    text = page(site, hashlib.sha256(data).hexdigest()).encode()
    with exclusive(target / ".site.lock", reporter=reporter, what="the site"):
        write_atomically(target / DATA, data)
        write_atomically(target / PAGE, text)
    return target / PAGE, target / DATA


def _is_site(target: Path) -> bool:
    """Whether the data in a folder says of itself that it is that of a site."""
    try:
        data = json.loads(read_plain(target / DATA))
    except (PennyError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and str(data.get("format", "")).startswith("penny-site/")
