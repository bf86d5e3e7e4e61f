"""`site.json`: what a folder of bundles holds, each verified when the site was made, `penny-site/1`.

It is a view and no evidence: what it says of a bundle is found again by `penny verify`.
"""

from typing import Literal

from reproducer.documents.base import Document, MeasureId, Part, Sha256, Size, Text
from reproducer.documents.claims import ClaimedQuantity
from reproducer.documents.lock import ParameterName, Scalar
from reproducer.documents.measured import Unit, ValueKind
from reproducer.documents.verdict import Aspect, Status

Word = Literal["passed", "failed", "unknown"]


class SiteValue(Part):
    """One number of one measure of one run.

    Attributes:
        count: of how many values it is the median.
        values: these; none where they are more than 200.
        interval: its 95 % interval; None in receipts that state none.
        bounds: the lock's bounds on it, as text; None where there is none.
        holds: whether all of them hold.
    """

    name: ParameterName
    kind: ValueKind
    unit: Unit
    value: float
    count: Size
    values: tuple[float, ...]
    minimum: float
    maximum: float
    interval: tuple[float, float] | None = None
    bounds: Text | None = None
    holds: bool | None = None


class SiteMeasure(Part):
    """One measure of one run.

    Attributes:
        samples: how many there are, warm-up left out.
        boots: in how many boots of the server they were taken.
    """

    measure: MeasureId
    parameters: dict[ParameterName, Scalar]
    status: Literal["passed", "failed", "skipped"]
    samples: Size
    boots: Size
    values: tuple[SiteValue, ...]


class SiteCheck(Part):
    """A check that did not pass."""

    id: Text
    aspect: Aspect
    status: Status
    reason: Text


class SiteRun(Part):
    """One bundle.

    Attributes:
        places: the folders in which it lies, below the folder of the site.
        bundle_digest: sha256 of its index; None where it cannot be read.
        key_id: the key that its index names.
        signer: what the reader calls that key; None where the reader gave no such key.
        created: when the newest of its receipts was made; None where no receipt is shown.
        counts: how many checks ended how.
        checks: those that did not pass, in the order of the verdict.
        fault: why it could not be verified to its end, or its receipts cannot be shown; None where neither is so.
        measures: None where no number of it is shown: its signature does not hold, or it cannot be read.
    """

    places: tuple[Text, ...]
    bundle_digest: Sha256 | None = None
    lock_digest: Sha256 | None = None
    key_id: Sha256 | None = None
    signer: Text | None = None
    created: Text | None = None
    verdict: Word
    counts: dict[Status, Size]
    checks: tuple[SiteCheck, ...]
    fault: Text | None = None
    machines: tuple[Text, ...] = ()
    boots: Size = 0
    measures: tuple[SiteMeasure, ...] | None = None


class SiteLock(Part):
    """One lock of the runs, by its first run."""

    digest: Sha256
    name: Text
    model: Text
    engine: Text
    namespace: Text | None = None


class SiteChange(Part):
    """One change between two locks; values as JSON, None where the fact is not there."""

    path: Text
    before: Text | None = None
    after: Text | None = None
    consequence: Literal["cache-identity", "build", "behaviour", "performance", "operational", "cosmetic"]
    reason: Text


class SiteDifference(Part):
    """What differs between a lock and the one before it, in the order of their first runs.

    Attributes:
        changes: None where the two could not be compared; `not_compared` says why.
        invalidates: which receipts of the one before are no evidence for this one.
    """

    before: Sha256
    after: Sha256
    same_namespace: bool | None = None
    rebuild: bool | None = None
    invalidates: tuple[Text, ...] = ()
    changes: tuple[SiteChange, ...] | None = None
    not_compared: tuple[Text, ...] = ()


class SiteClaim(Part):
    """A published claim that lies in the folder: stated by its publisher, measured by nobody here."""

    place: Text
    status: Literal["claimed"] = "claimed"
    name: Text
    publisher: Text
    source: Text
    date: Text
    quantities: tuple[ClaimedQuantity, ...]


class SiteImported(Part):
    """A result of another harness that lies in the folder; nothing about it is vouched for."""

    place: Text
    status: Literal["imported"] = "imported"
    harness: Text
    harness_version: Text
    sha256: Sha256
    runs: Size


class LeftOut(Part):
    """What lies in the folder and was not read, and why."""

    place: Text
    why: Text


class Site(Document):
    """`site.json`.

    Attributes:
        runs: in the order of time; those whose time nobody knows last.
        locks: in the order of their first runs.
        differences: of each lock but the first to the one before it.
    """

    format: Literal["penny-site/1"] = "penny-site/1"
    penny_version: Text
    runs: tuple[SiteRun, ...]
    locks: tuple[SiteLock, ...]
    differences: tuple[SiteDifference, ...]
    claims: tuple[SiteClaim, ...] = ()
    imported: tuple[SiteImported, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
