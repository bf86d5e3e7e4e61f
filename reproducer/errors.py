"""Every error penny raises on purpose, and the exit code each one means.

An error is one sentence in four parts: what went wrong, where (file, key, line), why, and what to do about it.
"""

from enum import IntFlag


class Outcome(IntFlag):
    """Bits of exit codes 64 to 127; a run that holds in every respect exits 0."""

    HOLDS = 0
    INPUTS_DRIFTED = 1
    REBUILD_DIFFERS = 2
    CONFIGURATION_DIFFERS = 4
    QUALIFICATION_FAILED = 8
    SIGNATURE_FAILED = 16
    NOT_CHECKED = 32

    @property
    def exit_code(self) -> int:
        """The process exit code: 0, or 64 plus the sum of the bits."""
        return 64 + int(self) if self else 0


class PennyError(Exception):
    """A fault with a clear cause.

    Attributes:
        what: what went wrong, one clause.
        where: file, key, line, URL or process; empty when there is no place.
        why: the cause, one clause; empty when `what` says it.
        todo: what the reader can do about it; empty when nothing can be done.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", why: str = "", todo: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.todo = todo

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.why:
            text += f" ({self.why})"
        if self.todo:
            text += f". {self.todo[0].upper()}{self.todo[1:]}"
        return text


class UsageError(PennyError):
    """The command line asks for something that makes no sense."""

    exit_code = 2


class InvalidDocumentError(PennyError):
    """A manifest, lock, receipt or bundle index is malformed."""

    exit_code = 2


class UnsafeInputError(PennyError):
    """An archive, path or patch tries to leave its folder or do what data must not do."""

    exit_code = 2


class DriftError(PennyError):
    """An input is not what the lock says: wrong digest, missing file, patch that does not apply."""

    exit_code = Outcome.INPUTS_DRIFTED.exit_code


class RebuildError(PennyError):
    """A build failed, or its outputs are below the level that was asked for."""

    exit_code = Outcome.REBUILD_DIFFERS.exit_code


class ConfigurationError(PennyError):
    """The running server's effective values are not those of the lock."""

    exit_code = Outcome.CONFIGURATION_DIFFERS.exit_code


class QualificationError(PennyError):
    """A measure failed its threshold or could not produce a valid sample."""

    exit_code = Outcome.QUALIFICATION_FAILED.exit_code


class SignatureError(PennyError):
    """A signature, key, identity or signed digest does not hold."""

    exit_code = Outcome.SIGNATURE_FAILED.exit_code


class NotCheckedError(PennyError):
    """The machine got in the way: index unreachable, disk full, port taken, server died before it was ready."""

    exit_code = Outcome.NOT_CHECKED.exit_code
