"""One check of a machine: what was expected, what was found, and what to do where the two differ."""

from collections.abc import Iterable
from typing import Literal

from reproducer.documents.base import Part, Text
from reproducer.documents.verdict import Status
from reproducer.errors import Outcome

SOURCE = "source."


class Rates(Part):
    """One sample of both directions in MiB/s, beside what plain calls reached on the same disk in the same run.

    Attributes:
        write_ratio: the plugin's rate over the disk's; None where the disk's own was not measured.
        read_ratio: the same for reading.
    """

    write_mib_s: float
    read_mib_s: float
    disk_write_mib_s: float | None = None
    disk_read_mib_s: float | None = None
    write_ratio: float | None = None
    read_ratio: float | None = None


class Checked(Part):
    """One check of this machine.

    Attributes:
        id: stable name, such as `nixl.io_uring.o_direct.large`.
        needed: whether the lock's launch does not work as meant without it.
        reason: why it failed, was skipped or is unknown.
        todo: what the reader can do about it.
        rates: what was measured on the way.
    """

    id: Text
    status: Status
    needed: bool = False
    expected: Text = ""
    got: Text = ""
    reason: Text = ""
    todo: Text = ""
    rates: Rates | None = None


def outcome(checks: Iterable[Checked], *, about: str = "") -> Outcome:
    """What the exit code says.

    A needed check that failed means that this machine does not give the configuration that the lock asks for, or that a
    source of the lock is gone or another one. One that
    could not be made, without such a failure, means that nobody knows; so does a run that checked nothing.

    Args:
        checks: all checks of a run.
        about: only checks whose ids begin so count as having checked something.
    """
    made = tuple(checks)
    failed = [check for check in made if check.needed and check.status == "failed"]
    if failed:
        here = any(not check.id.startswith(SOURCE) for check in failed)
        lost = any(check.id.startswith(SOURCE) for check in failed)
        return Outcome((here and Outcome.CONFIGURATION_DIFFERS) | (lost and Outcome.INPUTS_DRIFTED))
    if any(check.needed and check.status != "passed" for check in made):
        return Outcome.NOT_CHECKED
    if not any(check.id.startswith(about) and check.status in ("passed", "failed") for check in made):
        return Outcome.NOT_CHECKED
    return Outcome.HOLDS


def word(result: Outcome) -> Literal["passed", "failed", "unknown"]:
    """The outcome in one word, as a verdict says it."""
    if result is Outcome.HOLDS:
        return "passed"
    return "unknown" if result is Outcome.NOT_CHECKED else "failed"
