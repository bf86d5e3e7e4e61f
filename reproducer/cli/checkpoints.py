"""`penny checkpoint sign`, `penny checkpoint verify`; the options by which other commands name a hub and folders."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reproducer.cli.front import (
    DEFAULT_LOCK,
    Front,
    JsonOption,
    LockOption,
    QuietOption,
    StoreOption,
    VerboseOption,
    open_store,
)
from reproducer.errors import DriftError, UsageError

if TYPE_CHECKING:
    from reproducer.documents.lock import Checkpoint
    from reproducer.documents.opened import OpenedLock
    from reproducer.fetch import Fetched

EndpointOption = Annotated[
    str | None,
    typer.Option(
        "--endpoint", metavar="URL", help="The hub, or a mirror of it; default: HF_ENDPOINT or the public one."
    ),
]
FoldersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--checkpoint", metavar="ROLE=DIR", help="Verify this folder instead of downloading; may be given again."
    ),
]
RoleArgument = Annotated[str, typer.Argument(metavar="ROLE", help="The checkpoint's role, such as `target`.")]

checkpoint = typer.Typer(
    help="Model signatures (OpenSSF) of fetched and converted checkpoints.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def use_endpoint(endpoint: str | None) -> None:
    """Let the hub's client, which is not loaded yet, ask this address in this run."""
    if endpoint:
        os.environ["HF_ENDPOINT"] = endpoint


def named_folders(options: list[str] | None) -> dict[str, Path]:
    """The folders of `--checkpoint ROLE=DIR`, by role.

    Raises:
        UsageError: not of that form, or one role twice.
    """
    found: dict[str, Path] = {}
    for option in options or ():
        role, equals, folder = option.partition("=")
        if not (role and equals and folder):
            raise UsageError(f"--checkpoint {option!r} is not of the form ROLE=DIR")
        if role in found:
            raise UsageError(f"--checkpoint names the role {role!r} twice")
        found[role] = Path(folder).expanduser()
    return found


def refuse_adoption(opened: "OpenedLock", python: Path | None, folders: list[str] | None) -> None:
    """Refuse what says where an adopted runtime lies for a lock whose runtime is built.

    `PENNY_PYTHON` is set for all that a person runs, so it says nothing about one lock.

    Raises:
        UsageError: nothing would be made of the option.
    """
    if opened.lock.adopted is not None:
        return
    if python is not None and not from_environment(python):
        raise UsageError(
            "--python is about frozen locks, and the runtime of this one is built",
            where=str(opened.path),
            todo="leave it out; its interpreter is the one that the lock names",
        )
    if folders:
        raise UsageError(
            "--checkpoint is about frozen locks, and penny brings the checkpoints of this one itself",
            where=str(opened.path),
            todo="leave it out; `penny fetch --checkpoint ROLE=DIR` takes files from a folder of yours",
        )


def from_environment(python: Path) -> bool:
    """Whether an interpreter is the one that `PENNY_PYTHON` names."""
    return os.environ.get("PENNY_PYTHON") == str(python)


def fetched_text(fetched: "Fetched") -> str:
    """What `penny fetch` did, in a line for the files and one for each checkpoint of which nobody knows them."""
    from reproducer.cli.terminal import bytes_text

    brought = fetched.checkpoints
    files = len(fetched.artefacts) + brought.files
    lines = [f"{files} files verified, {bytes_text(fetched.downloaded)} new, {fetched.reused} reused"]
    if not brought.files and not brought.unknown:
        lines = [f"{files} files in the store, {bytes_text(fetched.downloaded)} new, {fetched.reused} reused"]
    if fetched.commits.commits:
        lines.append(f"{fetched.commits.commits} commits verified, {fetched.commits.reused} of them reused")
    lines += [f"{name}: digests unknown, the lock pins its revision only; run `penny lock`" for name in brought.unknown]
    return "\n".join(lines)


@checkpoint.command("sign")
def sign(
    role: RoleArgument,
    *,
    key: Annotated[Path, typer.Option("--key", help="EC private key as PEM, without a password.")],
    signature: Annotated[Path, typer.Option("--signature", help="The file to write.")] = Path("model.sig"),
    lock_path: LockOption = DEFAULT_LOCK,
    store: StoreOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Sign a checkpoint: every locked file with its digest, as OpenSSF model signing has it."""
    from reproducer.hub.signing import sign_folder

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    found, folder = _fetched(front, lock_path, store, role)
    sign_folder(folder, signature, key=key)
    result = {"checkpoint": found.name, "signature": str(signature), "files": len(found.listed)}
    front.emit(result, f"{signature} signs {len(found.listed)} files of {found.name}")


@checkpoint.command("verify")
def verify(
    role: RoleArgument,
    *,
    key: Annotated[Path, typer.Option("--key", help="The publisher's EC public key as PEM.")],
    signature: Annotated[
        Path,
        typer.Option("--signature", help="The signature; a plain name that is no file here lies in the checkpoint."),
    ] = Path("model.sig"),
    lock_path: LockOption = DEFAULT_LOCK,
    store: StoreOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Hold a checkpoint against a model signature that its publisher ships."""
    from reproducer.hub.signing import verify_folder

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    found, folder = _fetched(front, lock_path, store, role)
    shipped = any(file.path == str(signature) for file in found.listed)
    place = folder / signature if shipped and not signature.exists() else signature
    verify_folder(folder, place, key=key)
    result = {"checkpoint": found.name, "signature": str(signature), "files": len(found.listed), "holds": True}
    front.emit(result, f"{signature} holds for {found.name}")


def _fetched(front: Front, lock_path: Path, store: Path | None, role: str) -> "tuple[Checkpoint, Path]":
    """The checkpoint of a role and the folder with exactly its files, every one of them hashed just now."""
    from reproducer.documents.opened import open_lock

    opened = open_lock(lock_path)
    found = _of_role(opened, role)
    place = open_store(store)
    if found.made is None:
        from reproducer.hub.presenting import presented

        folder = presented(place, found, reporter=front.reporter)
        adopted = opened.lock.adopted is not None
        todo = "run `penny build`, which looks at what was adopted" if adopted else "run `penny fetch`"
    else:
        from reproducer.build.made import made_checkpoint

        folder = made_checkpoint(place, found, reporter=front.reporter)
        todo = "run `penny build`, which converts it"
    if folder is None:
        lock = "" if lock_path == DEFAULT_LOCK else f" (--lock {lock_path})"
        raise DriftError(f"checkpoint {found.name} is not in the store", where=str(place.root), todo=f"{todo}{lock}")
    return found, folder


def _of_role(opened: "OpenedLock", role: str) -> "Checkpoint":
    roles = {each.role: each for each in opened.lock.checkpoints}
    found = next((each for name, each in roles.items() if name == role), None)
    if found is None:
        raise UsageError(
            f"no checkpoint has the role {role!r}", where=str(opened.path), todo=f"roles: {', '.join(roles)}"
        )
    return found
