"""A build that failed is evidence too: its receipt says what was built until then, and how it ended.

What leaves a machine must not name it, so the folders of the store and of the user are replaced in the words of the
failure, and words that still name the machine are left out.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from reproducer import __version__
from reproducer.build.environment import installer
from reproducer.documents.built import BuiltOutput, Difference, Isolation
from reproducer.documents.receipts import BuildReceipt
from reproducer.errors import PennyError
from reproducer.host import host_facts

_LONGEST = 8192
UNKNOWN = "unknown"


def failed_build(
    lock_digest: str,
    where: str,
    error: PennyError,
    *,
    outputs: Sequence[BuiltOutput],
    isolation: Isolation,
    store: Path,
    accepted: Literal["asked", "--yes"],
) -> BuildReceipt:
    """The receipt of a build that failed; its level is `none`.

    Args:
        lock_digest: the lock that was to be built.
        where: the component that failed, or `runtime`.
        error: how it failed.
        outputs: what was built until then.
        isolation: how the steps until then were kept apart.
        store: root of the store.
        accepted: how running other people's code was accepted.
    """
    return BuildReceipt(
        lock_digest=lock_digest,
        penny_version=__version__,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        level="none",
        outputs=tuple(outputs),
        packages=(),
        checkpoints={},
        python=UNKNOWN,
        installer=installer()[1],
        isolation=isolation,
        host=host_facts(store),
        accepted=accepted,
        failure=Difference(where=where, reason=said(error, store)),
    )


def said(error: PennyError, store: Path) -> str:
    """What went wrong and why, without what names this machine."""
    from reproducer.sanitize.text import Machine, leaks

    machine = Machine.here()
    for words in (f"{error.what} ({error.why})" if error.why else error.what, error.what):
        text = words.replace(str(store), "{store}")
        if str(Path.home()) != "/":
            text = text.replace(str(Path.home()), "{home}")
        if not leaks(text, where="failure", machine=machine):
            return text.replace("\0", "\ufffd")[:_LONGEST]
    return "it failed; its words name this machine and stay in its log"
