"""The persistent stores of a launch lie in the namespace, or there is no launch.

An engine that keeps pages elsewhere would find those of other locks there. Which variable or argument names the folder
is the adapter's knowledge; that it must be the namespace is said here, once.
"""

import secrets
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from reproducer.documents.base import FileReference, shown
from reproducer.documents.lock import ArgumentValue, Launch
from reproducer.engines.interface import StoreFolder
from reproducer.errors import InvalidDocumentError

NAMESPACE = "{namespace}"
Stores = Callable[[Launch], tuple[StoreFolder, ...]]
Read = Callable[[FileReference], bytes]


class Placed(NamedTuple):
    """A launch whose persistent stores all lie in the namespace.

    Attributes:
        launch: the launch, with the variables added that it left to the engine's default.
        below: for every store, where below the namespace it lies; empty for the namespace itself.
        breaks: characters that the path of the namespace must not hold, for the engine would read them as something
            else than a part of it.
    """

    launch: Launch
    below: tuple[str, ...]
    breaks: str


def placed(launch: Launch, stores: Stores, *, read: Read | None = None) -> Placed:
    """A launch with its persistent stores in the namespace; a folder that the launch does not name is filled in.

    Args:
        launch: as the lock has it, placeholders not filled.
        stores: what the adapter says about the stores of a launch.
        read: the verified bytes of a file that the launch names; None reads none, and then a store whose
            configuration lies in one is refused.

    Raises:
        InvalidDocumentError: a store lies elsewhere, or penny cannot say where it lies.
        DriftError, UnsafeInputError: a file of the launch is not what the lock says.
    """
    missing = {
        store.variable: NAMESPACE
        for store in stores(with_files(launch, read))
        if store.folder is None and store.variable
    }
    if missing:
        environment = dict(sorted({**launch.environment, **missing}.items()))
        launch = launch.model_copy(update={"environment": environment})
    # What the engine reads comes after the placeholders are filled, so that is what is looked at: a text in JSON may
    # spell the placeholder so that nothing fills it. Nobody can guess the mark.
    mark = f"/{secrets.token_hex(16)}"
    # A file is not filled in, so what it says is put in its place after the mark.
    found = stores(with_files(_marked(launch, mark), read))
    return Placed(
        launch,
        tuple(_below(store, mark) for store in found),
        "".join(sorted({character for store in found for character in store.breaks})),
    )


def with_files(launch: Launch, read: Read | None) -> Launch:
    """A launch in which the text of a file stands where the engine is told to read an argument from it.

    Raises:
        InvalidDocumentError: the file is not UTF-8.
        DriftError, UnsafeInputError: it is not what the lock says.
    """
    told = {f"@{{file.{name}}}": reference for name, reference in (launch.files or {}).items()}
    texts: dict[str, ArgumentValue] = {}
    for flag, value in launch.arguments.items() if read is not None else ():
        reference = told.get(value) if isinstance(value, str) else None
        if reference is not None and read is not None:
            try:
                texts[flag] = read(reference).decode("utf-8")
            except UnicodeDecodeError as error:
                raise InvalidDocumentError("is not UTF-8", where=reference.path) from error
    return launch.model_copy(update={"arguments": {**launch.arguments, **texts}}) if texts else launch


def _below(store: StoreFolder, mark: str) -> str:
    """Where below the namespace a store lies."""
    if store.folder is None:
        raise InvalidDocumentError(
            f"{store.store} keeps pages in the engine's default folder, which every lock shares",
            where=store.where,
            todo=f"add it: {NAMESPACE}{'/NAME' if store.is_file else ''}",
        )
    rest = store.folder.removeprefix(mark)
    parts = rest.split("/")[1:]
    inside = rest != store.folder and rest[:1] in ("", "/") and not {"", ".", ".."} & set(parts)
    if not inside or not rest.isprintable() or mark in rest or (store.is_file and not parts):
        wanted = f"{NAMESPACE}/NAME" if store.is_file else f"{NAMESPACE}, or {NAMESPACE}/NAME for a folder in it"
        raise InvalidDocumentError(
            f"{store.store} would keep pages in {shown(store.folder.replace(mark, NAMESPACE))}",
            where=store.where,
            why="pages that lie outside the namespace are found by other locks too",
            todo=f"write {wanted}",
        )
    return rest[1:]


def _marked(launch: Launch, mark: str) -> Launch:
    """The launch as the engine gets it, with a mark for the path of the namespace."""

    def value(given: ArgumentValue) -> ArgumentValue:
        if isinstance(given, tuple):
            return tuple(text.replace(NAMESPACE, mark) for text in given)
        return given.replace(NAMESPACE, mark) if isinstance(given, str) else given

    arguments = {flag: value(given) for flag, given in launch.arguments.items()}
    environment = {name: text.replace(NAMESPACE, mark) for name, text in launch.environment.items()}
    return launch.model_copy(update={"arguments": arguments, "environment": environment})


def refuse(store: str, where: str, why: str, todo: str = "") -> NoReturn:
    """Refuse a store that no namespace can hold."""
    raise InvalidDocumentError(f"{store} cannot be kept in a namespace", where=where, why=why, todo=todo)


def whole_names(launch: Launch, options: frozenset[str]) -> None:
    """Refuse a flag that the engine's parser would complete to one of some options: it would escape every check here.

    Raises:
        InvalidDocumentError: names the option to write.
    """
    for flag in launch.arguments:
        if flag not in options and (full := sorted(option for option in options if option.startswith(flag))):
            raise InvalidDocumentError(
                f"--{flag} is short for --{' or --'.join(full)}",
                where=f"launch.arguments.{flag}",
                todo="write the whole name",
            )
