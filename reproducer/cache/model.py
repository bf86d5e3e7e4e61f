"""What is known of the namespaces below one folder, and what was done to them."""

from dataclasses import dataclass, field
from typing import Any, Literal

LockState = Literal["uses", "gone", "other", "unreadable"]
Fate = Literal["removed", "evicted", "kept"]


@dataclass(frozen=True)
class Usage:
    """What files take.

    Attributes:
        files: how many regular files; a file with two names counts at each.
        size: the sum of their lengths.
        on_disk: the sum of the blocks they occupy.
        strange: entries that are neither regular files nor folders: links, pipes, sockets. Never followed.
    """

    files: int = 0
    size: int = 0
    on_disk: int = 0
    strange: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Both together."""
        return Usage(
            self.files + other.files,
            self.size + other.size,
            self.on_disk + other.on_disk,
            self.strange + other.strange,
        )


@dataclass(frozen=True)
class Holder:
    """A living process that uses a namespace; `pid` is None where the kernel says only that there is one."""

    what: Literal["server", "penny"]
    pid: int | None = None
    url: str | None = None

    def told(self) -> str:
        """In a few words."""
        who = "a server" if self.what == "server" else "another penny"
        return f"in use by {who}" + (f" (pid {self.pid})" if self.pid is not None else "")


@dataclass(frozen=True)
class KnownLock:
    """A lock that was launched in a namespace or was named on the command line, and what it is to the namespace now.

    Attributes:
        state: `uses`: it derives this namespace. `gone`: no file lies there. `other`: it derives another one.
            `unreadable`: something lies there that cannot be read as a lock, so nobody can say that it does not.
    """

    name: str
    path: str
    state: LockState

    @property
    def keeps(self) -> bool:
        """Whether the namespace must stay for its sake."""
        return self.state in ("uses", "unreadable")

    def content(self) -> dict[str, Any]:
        """As plain data."""
        return {"name": self.name, "path": self.path, "state": self.state}


@dataclass(frozen=True)
class Entry:
    """One namespace on disk."""

    name: str
    digest: str
    usage: Usage
    last_use: float
    sealed: int | None
    seal_fault: str
    holder: Holder | None
    locks: tuple[KnownLock, ...]

    @property
    def known(self) -> bool:
        """Whether a known lock uses it, or may."""
        return any(lock.keeps for lock in self.locks)

    def content(self) -> dict[str, Any]:
        """As plain data with stable keys."""
        return {
            "namespace": self.name,
            "digest": self.digest,
            "size": self.usage.size,
            "on_disk": self.usage.on_disk,
            "files": self.usage.files,
            "strange": self.usage.strange,
            "last_use": int(self.last_use),
            "sealed": self.sealed,
            "seal_fault": self.seal_fault or None,
            "in_use": None if self.holder is None else {"by": self.holder.what, "pid": self.holder.pid},
            "locks": [lock.content() for lock in self.locks],
        }


@dataclass(frozen=True)
class Other:
    """Something beside the namespaces that is none; it is told and never touched."""

    name: str
    why: str


@dataclass(frozen=True)
class Listing:
    """Everything below one folder, namespaces that were used last first."""

    kv: str
    entries: tuple[Entry, ...]
    others: tuple[Other, ...]


@dataclass(frozen=True)
class Fault:
    """A sealed page whose bytes are not what was sealed, or a file of the same page that had to go with it."""

    page: str
    expected: str
    got: str

    def content(self) -> dict[str, Any]:
        """As plain data."""
        return {"page": self.page, "expected": self.expected, "got": self.got}


@dataclass
class Sealed:
    """What sealing one namespace came to."""

    namespace: str
    pages: int = 0
    size: int = 0
    added: int = 0
    accepted: int = 0
    changing: int = 0
    missing: int = 0
    damaged: int = 0
    faults: list[Fault] = field(default_factory=list)

    def content(self) -> dict[str, Any]:
        """As plain data."""
        return {**vars(self), "faults": [each.content() for each in self.faults]}


@dataclass
class Checked:
    """What checking one namespace came to; `record` is where set aside pages are listed, all of them.

    Attributes:
        sealed: whether there was a seal; without one nothing could be checked.
        good: pages whose bytes are those that were sealed.
        damaged: pages whose bytes are not; they are set aside.
        beside: files of the same page as a damaged or missing one, set aside with it.
        missing: sealed pages that are not there any more: they are misses.
        changing: sealed pages that were written to while they were read.
        unsealed: files that no seal names, so nobody can say whether they are whole.
        faults: the first of what was set aside.
    """

    namespace: str
    sealed: bool = False
    good: int = 0
    size: int = 0
    damaged: int = 0
    beside: int = 0
    missing: int = 0
    changing: int = 0
    unsealed: int = 0
    fault: str = ""
    record: str = ""
    faults: list[Fault] = field(default_factory=list)

    def content(self) -> dict[str, Any]:
        """As plain data."""
        return {**vars(self), "faults": [each.content() for each in self.faults]}


@dataclass(frozen=True)
class Removal:
    """What collecting did with one namespace, or would do."""

    namespace: str
    fate: Fate
    why: str
    files: int = 0
    on_disk: int = 0

    def content(self) -> dict[str, Any]:
        """As plain data."""
        return vars(self).copy()


@dataclass(frozen=True)
class Collected:
    """All of one collection.

    Attributes:
        applied: whether it was done; otherwise it is what would be.
        left: bytes on disk that stay.
        short: what could not be reached, in clauses: a budget, or a namespace that could not be removed.
    """

    kv: str
    applied: bool
    removals: tuple[Removal, ...]
    finished: tuple[str, ...]
    left: int
    short: tuple[str, ...]
