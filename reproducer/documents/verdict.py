"""The verdict: what `verify` concludes, check by check."""

from typing import Literal

from reproducer.documents.base import Document, Part, Text
from reproducer.errors import Outcome

Status = Literal["passed", "failed", "skipped", "unknown"]
Aspect = Literal["inputs", "rebuild", "configuration", "qualification", "signature"]

_BITS: dict[str, Outcome] = {
    "inputs": Outcome.INPUTS_DRIFTED,
    "rebuild": Outcome.REBUILD_DIFFERS,
    "configuration": Outcome.CONFIGURATION_DIFFERS,
    "qualification": Outcome.QUALIFICATION_FAILED,
    "signature": Outcome.SIGNATURE_FAILED,
}


class Check(Part):
    """One check; `reason` says why it failed, was skipped or is unknown."""

    id: Text
    aspect: Aspect
    status: Status
    expected: Text = ""
    got: Text = ""
    reason: Text = ""


class Verdict(Document):
    """All checks of one verification."""

    format: Literal["penny-verdict/1"] = "penny-verdict/1"
    checks: tuple[Check, ...]

    @property
    def outcome(self) -> Outcome:
        """The exit-code bits: one per aspect that failed, NOT_CHECKED for unknown ones or if nothing was checked."""
        outcome = Outcome.HOLDS
        for check in self.checks:
            if check.status == "failed":
                outcome |= _BITS[check.aspect]
            elif check.status == "unknown":
                outcome |= Outcome.NOT_CHECKED
        if not any(check.status in ("passed", "failed") for check in self.checks):
            outcome |= Outcome.NOT_CHECKED
        return outcome

    @property
    def word(self) -> Literal["passed", "failed", "unknown"]:
        """The verdict in one word."""
        if any(check.status == "failed" for check in self.checks):
            return "failed"
        return "unknown" if self.outcome else "passed"
