"""`penny namespace`, `penny launch`, `penny stop`, `penny qualify`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reproducer.cli.checkpoints import from_environment, refuse_adoption
from reproducer.cli.front import (
    DEFAULT_LOCK,
    AdoptedFoldersOption,
    Front,
    JsonOption,
    KvOption,
    LockOption,
    OfflineOption,
    PolicyOption,
    PortOption,
    PythonOption,
    QuietOption,
    StoreOption,
    VerboseOption,
    YesOption,
    finish,
    ledger_of,
    open_store,
    runtime_of,
)
from reproducer.errors import Outcome, RebuildError, UsageError

if TYPE_CHECKING:
    from reproducer.boots import Boots
    from reproducer.documents.opened import OpenedLock
    from reproducer.launch.server import Server
    from reproducer.ledger import Ledger


def namespace(
    *,
    lock_path: LockOption = DEFAULT_LOCK,
    explain: Annotated[bool, typer.Option("--explain", help="Show every factor and what is neutral, and why.")] = False,
    policy: PolicyOption = "commit",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Derive the namespace under which persistent KV bytes of this lock may be reused."""
    from reproducer.documents.opened import open_lock
    from reproducer.identity.policy import Policy, derive_under

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    derived = derive_under(Policy.parse(policy), open_lock(lock_path))
    if explain:
        from reproducer.cli.show_namespace import shown

        front.emit(derived.content(), shown(derived))
    else:
        front.emit(derived.content(), derived.name)


def launch(
    *,
    lock_path: LockOption = DEFAULT_LOCK,
    store: StoreOption = None,
    kv: KvOption = None,
    port: PortOption = None,
    policy: PolicyOption = "commit",
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Leave the server running and return.")] = False,
    seal: Annotated[bool, typer.Option("--seal", help="Seal the pages when the server has ended.")] = False,
    python: PythonOption = None,
    checkpoint: AdoptedFoldersOption = None,
    offline: OfflineOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Start the server, wait until it is ready, compare its effective values with the lock."""
    from functools import partial

    from reproducer.cache.guard import prepare_namespace, sealed_at_end
    from reproducer.documents.opened import open_lock
    from reproducer.identity.policy import Policy, derive_under
    from reproducer.identity.root import open_root
    from reproducer.launch.server import new_log, running, start_detached

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    if seal and detach:
        raise UsageError("a detached server has no end that penny waits for", todo="run `penny cache seal` after it")
    chosen = Policy.parse(policy)
    opened = open_lock(lock_path)
    refuse_adoption(opened, python, checkpoint)
    opened.check_files()
    place = open_store(store)
    accepted = front.accepted(place, opened, yes=yes)
    runtime = runtime_of(front, opened, place, accepted, offline=offline, python=python, folders=checkpoint)
    if not runtime.receipt.is_the_locks:
        raise RebuildError(
            "the rebuilt runtime is not the one of the lock",
            where=str(lock_path),
            why=f"its level is {runtime.receipt.level}, so its KV pages do not belong into the namespace of the lock",
            todo="`penny build` names what differs",
        )
    derived = derive_under(chosen, opened)
    namespaces = kv or place.root / "kv"
    root = open_root(namespaces, derived)
    prepare = partial(prepare_namespace, namespaces, derived, opened, chosen, reporter=front.reporter)
    ledger = ledger_of(place, opened, policy=chosen)
    log = new_log(place)
    if detach:
        server = start_detached(
            opened,
            runtime,
            root,
            derived,
            store=place,
            port=port,
            log=log,
            reporter=front.reporter,
            accepted=accepted,
            prepare=prepare,
        )
        front.emit(_up(server, ledger), f"{server.url} is up (pid {server.pid}); `penny stop` ends it. Log: {log}")
        return
    with (
        sealed_at_end(namespaces, derived.name, wanted=seal, reporter=front.reporter) as ending,
        running(
            opened,
            runtime,
            root,
            derived,
            port=port,
            log=log,
            reporter=front.reporter,
            accepted=accepted,
            prepare=prepare,
        ) as server,
    ):
        ending.up = True
        front.emit(_up(server, ledger), f"{server.url} is up (pid {server.pid}); Ctrl-C ends it. Log: {log}")
        server.wait()


def _up(server: "Server", ledger: "Ledger") -> dict[str, Any]:
    """What scripts learn of a server that is up."""
    receipt = ledger.add(server.receipt)
    return {
        "url": server.url,
        "receipt": str(receipt),
        "differences": [],
        "log": str(server.log),
        "pid": server.pid,
        "namespace": server.receipt.namespace,
    }


def stop(
    *,
    store: StoreOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Stop every server of this store.")] = False,
    lock_path: LockOption = DEFAULT_LOCK,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Stop what `penny launch --detach` started, and nothing else."""
    from reproducer.documents.opened import open_lock
    from reproducer.launch.server import servers
    from reproducer.launch.server import stop as end

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    place = open_store(store)
    every = records = servers(place)
    if not everything:
        digest = open_lock(lock_path).digest
        records = tuple(record for record in every if record.lock_digest == digest)
    if not every:
        raise UsageError("no detached server is running", where=f"store {place.root}")
    if not records:
        raise UsageError(
            "no detached server of this lock is running",
            where=str(lock_path),
            why=f"of other locks there run {', '.join(sorted({record.lock_name for record in every}))}",
            todo="name the lock of one with --lock, or end all of them with `penny stop --all`",
        )
    for record in records:
        end(record, reporter=front.reporter)
    front.emit(
        {"stopped": [{"url": record.url, "pid": record.pid} for record in records]},
        "\n".join(f"{record.url} (pid {record.pid}) is stopped" for record in records),
    )


def qualify(
    *,
    lock_path: LockOption = DEFAULT_LOCK,
    store: StoreOption = None,
    kv: KvOption = None,
    port: PortOption = None,
    suite: Annotated[
        str | None, typer.Option("--suite", help="The lock's suite, or `tools` or `reasoning` in it.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", help="Another lock: both are measured in turn, and what differs is shown."),
    ] = None,
    record_reference: Annotated[
        Path | None, typer.Option("--record-reference", help="Record what `fidelity` compares with, and stop.")
    ] = None,
    python: PythonOption = None,
    checkpoint: AdoptedFoldersOption = None,
    offline: OfflineOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Run the measures of the lock's suite on a server of its own and write receipts."""
    from functools import partial

    from reproducer.boots import Boots
    from reproducer.cli.interleaving import qualify_against
    from reproducer.cli.show import measure_table
    from reproducer.cli.show_samples import sample_line
    from reproducer.documents.opened import open_lock
    from reproducer.identity.namespace import derive
    from reproducer.launch.turn import end_all
    from reproducer.qualify.selection import selected
    from reproducer.qualify.suite import qualify as measure
    from reproducer.runs import run_folder

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    opened = open_lock(lock_path)
    if against is None:
        refuse_adoption(opened, python, checkpoint)
    opened.check_files()
    only = selected(opened.lock.qualification, suite)
    place = open_store(store)
    if against is not None:
        interpreter = None if python is None or from_environment(python) else python
        _refuse_beside_against(suite=suite, record=record_reference, python=interpreter, folders=checkpoint)
        qualify_against(front, opened, against, place, kv=kv or place.root / "kv", port=port, yes=yes, offline=offline)
        return
    accepted = front.accepted(place, opened, yes=yes)
    runtime = runtime_of(front, opened, place, accepted, offline=offline, python=python, folders=checkpoint)
    ledger = ledger_of(place, opened)
    ledger.add(runtime.receipt)
    runs = place.root / "runs" / opened.digest
    abandon = partial(end_all, reporter=front.reporter)
    with run_folder(runs, kv or place.root / "kv", abandon=abandon) as run:
        boots = Boots(opened, runtime, derive(opened.lock), run, port, front.reporter, accepted, ledger)
        if record_reference is not None:
            _record(front, opened, boots, record_reference)
            return
        front.reporter.finished = lambda finished: front.tell(sample_line(finished))
        receipts = measure(
            opened,
            runtime.receipt,
            boots.boot,
            workspace=run.folder / "samples",
            reporter=front.reporter,
            keep=ledger.keep,
            only=only,
        )
        paths = [ledger.add(receipt) for receipt in receipts]
    passed = all(receipt.status != "failed" for receipt in receipts)
    front.emit({"receipts": [str(path) for path in paths], "passed": passed}, measure_table(receipts))
    if receipts and all(receipt.status == "skipped" for receipt in receipts):
        finish(Outcome.NOT_CHECKED)  # a run that measured nothing does not end well
    finish(Outcome.HOLDS if passed else Outcome.QUALIFICATION_FAILED)


def _refuse_beside_against(**given: object) -> None:
    """Options that are about one runtime alone have no place beside `--against`."""
    for name, value in given.items():
        if value is not None:
            option = {"record": "--record-reference", "folders": "--checkpoint"}.get(name, f"--{name}")
            raise UsageError(f"{option} is about one runtime, --against about two", todo="leave one of them out")


def _record(front: Front, opened: "OpenedLock", boots: "Boots", path: Path) -> None:
    """Write the fidelity reference of a good runtime to where the manifest will name it."""
    from reproducer.documents.toml import write_atomically
    from reproducer.engines import engine_of
    from reproducer.qualify.reference import record_reference
    from reproducer.qualify.speech import SPEECHES

    speech = SPEECHES[engine_of(opened.lock.engine.kind).speech]
    with boots.boot() as server:
        reference = record_reference(server, checkpoint=opened.lock.target.name, speech=speech, reporter=front.reporter)
    write_atomically(path, reference.canonical() + b"\n")
    front.emit(
        {"receipts": [], "passed": True, "reference": str(path), "digest": reference.digest},
        f"Wrote {path}: {len(reference.prompts)} prompts. Name it in the manifest and run `penny lock`.",
    )
