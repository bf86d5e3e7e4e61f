"""`penny cache`: the namespaces on disk."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reproducer.cli.front import (
    DEFAULT_LOCK,
    Front,
    JsonOption,
    KvOption,
    QuietOption,
    StoreOption,
    VerboseOption,
    finish,
    open_store,
)
from reproducer.errors import Outcome, PennyError, UsageError

if TYPE_CHECKING:
    from reproducer.cache.known import Locks
    from reproducer.cache.model import Checked

cache = typer.Typer(
    help="Namespaces on disk: list, seal, verify and collect them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

LocksOption = Annotated[
    list[Path] | None,
    typer.Option("--lock", metavar="PATH", help="A further lock that uses its namespace; may be given again."),
]
NameArgument = Annotated[str | None, typer.Argument(metavar="NAME", help="The namespace.", show_default=False)]


@cache.command("list")
def list_(
    *,
    kv: KvOption = None,
    store: StoreOption = None,
    locks: LocksOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """List every namespace: size, last use, seal, who uses it, and the locks it belongs to."""
    from reproducer.cache.listing import listing
    from reproducer.cache.model import Listing
    from reproducer.cli.show_cache import listing_table

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    place, known = _kv(kv, store), _locks(locks)
    if _empty(kv, place):
        found = Listing(str(place.absolute()), (), ())
    else:
        found = listing(place, known, reporter=front.reporter)
    content = {
        "kv": found.kv,
        "namespaces": [entry.content() for entry in found.entries],
        "others": [vars(each) for each in found.others],
    }
    front.emit(content, listing_table(found))


@cache.command("seal")
def seal(
    name: NameArgument = None,
    *,
    kv: KvOption = None,
    store: StoreOption = None,
    lock: Annotated[Path | None, typer.Option("--lock", help="The lock whose namespace it is.")] = None,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Seal pages too whose bytes are not what an earlier seal says.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write down the digest of every page that is whole; safe beside a running server."""
    from reproducer.cache.folders import open_kv, open_namespace
    from reproducer.cache.sealing import seal as seal_pages
    from reproducer.cache.use import holder
    from reproducer.cli.show_cache import sealed_table

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    if (name is None) == (lock is None):
        raise UsageError("name one namespace", todo="pass its name, or --lock PATH")
    place, chosen = _kv(kv, store), name or _name_of(lock or DEFAULT_LOCK)
    with open_kv(place) as handle, open_namespace(place, handle, chosen) as root:
        running = (user := holder(handle, chosen)) is not None and user.what == "server"
        said = seal_pages(root, running=running, accept_changes=accept_changes, reporter=front.reporter)
    front.emit({"namespaces": [said.content()]}, sealed_table(said))
    finish(Outcome.INPUTS_DRIFTED if said.damaged else Outcome.HOLDS if said.pages else Outcome.NOT_CHECKED)


@cache.command("verify")
def verify(
    name: NameArgument = None,
    *,
    kv: KvOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compare sealed pages with their digests; set damaged ones aside, so that the engine misses them."""
    from reproducer.cache.folders import entries, open_kv, refused
    from reproducer.cli.show_cache import checked_table

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    place = _kv(kv, store)
    checked: list[Checked] = []
    if name is not None or not _empty(kv, place):
        with open_kv(place) as handle:
            names = [name] if name else sorted(each for each in entries(handle) if refused(handle, each) is None)
            checked = [_checked(place, handle, each, front, alone=name is not None) for each in names]
    front.emit({"namespaces": [each.content() for each in checked]}, checked_table(checked))
    outcome = Outcome.HOLDS
    if any(each.damaged for each in checked):
        outcome |= Outcome.INPUTS_DRIFTED
    if not any(each.good or each.damaged for each in checked) or any(each.fault for each in checked):
        outcome |= Outcome.NOT_CHECKED
    finish(outcome)


def _checked(place: Path, handle: int, name: str, front: Front, *, alone: bool) -> "Checked":
    """One namespace; among several, a seal that does not hold does not keep the others from being checked."""
    from reproducer.cache.check import check
    from reproducer.cache.folders import open_namespace
    from reproducer.cache.model import Checked
    from reproducer.cache.use import holder

    try:
        with open_namespace(place, handle, name) as root:
            running = (user := holder(handle, name)) is not None and user.what == "server"
            return check(root, running=running, reporter=front.reporter)
    except PennyError as error:
        if alone:
            raise
        return Checked(name, fault=str(error))


@cache.command("gc")
def gc(
    *,
    kv: KvOption = None,
    store: StoreOption = None,
    locks: LocksOption = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="SIZE", help="What all may take together, such as 500GiB.")
    ] = None,
    budget_each: Annotated[
        str | None, typer.Option("--budget-each", metavar="SIZE", help="What each namespace may take.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without this it is only said.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Remove namespaces that no known lock uses, and the oldest pages of others over a budget."""
    from reproducer.cache.collect import Budget, collect
    from reproducer.cache.model import Collected
    from reproducer.cache.sizes import parse_size
    from reproducer.cli.show_cache import collected_table

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    limits = Budget(
        parse_size(budget) if budget is not None else None, parse_size(budget_each) if budget_each is not None else None
    )
    place, known = _kv(kv, store), _locks(locks)
    if _empty(kv, place):
        done = Collected(str(place.absolute()), apply, (), (), 0, ())
    else:
        done = collect(place, known, limits, apply=apply, reporter=front.reporter)
    content = {
        "kv": done.kv,
        "applied": done.applied,
        "namespaces": [each.content() for each in done.removals],
        "finished": list(done.finished),
        "left": done.left,
        "short": list(done.short),
    }
    front.emit(content, collected_table(done))
    finish(Outcome.NOT_CHECKED if done.short else Outcome.HOLDS)


def _kv(kv: Path | None, store: Path | None) -> Path:
    return kv if kv is not None else open_store(store).root / "kv"


def _empty(kv: Path | None, place: Path) -> bool:
    """Whether nobody has launched from this store yet; a folder that was named must be there."""
    return kv is None and not place.is_symlink() and not place.exists()


def _locks(named: list[Path] | None) -> "Locks":
    """The locks that are named, and the one in this folder if there is one."""
    from reproducer.cache.known import Locks

    here = [DEFAULT_LOCK] if DEFAULT_LOCK.exists() else []
    return Locks([*(named or ()), *here])


def _name_of(lock: Path) -> str:
    from reproducer.documents.opened import open_lock
    from reproducer.identity.namespace import derive

    return derive(open_lock(lock).lock).name
