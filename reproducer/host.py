"""What the machine is, read from the system itself, without names or addresses."""

import os
import platform
import re
from functools import cache
from pathlib import Path

from reproducer.documents.built import HostFacts

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}


def host_platform() -> str:
    """The platform as locks name it, such as `linux-x86_64`."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}-{_ARCHITECTURES.get(machine, machine)}"


def host_facts(folder: Path) -> HostFacts:
    """The facts of this machine.

    Args:
        folder: a place whose filesystem is stated, such as the store or the namespace's root.
    """
    model, flags = _processor()
    return HostFacts(
        platform=host_platform(),
        kernel=_kernel_version(os.uname().release),
        cpu=model,
        cpu_count=os.cpu_count() or 0,
        cpu_flags=flags,
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        filesystem=filesystem(folder),
    )


@cache
def _processor() -> tuple[str, tuple[str, ...]]:
    """Model name and sorted feature flags of the first processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown", ()
    facts: dict[str, str] = {}
    for line in text.split("\n\n", 1)[0].splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    model = facts.get("model name") or facts.get("CPU part") or "unknown"
    return model, tuple(sorted((facts.get("flags") or facts.get("Features") or "").split()))


def filesystem(folder: Path) -> str:
    """The type of the filesystem a folder lies on, such as `ext4`; `unknown` where it cannot be read."""
    try:
        path = folder
        while not path.exists() and path != path.parent:
            path = path.parent
        device = path.stat().st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "unknown"
    for line in lines:
        front, _, back = line.partition(" - ")
        if front.split()[2:3] == [wanted] and back:
            return back.split()[0]
    return "unknown"


def _kernel_version(release: str) -> str:
    """The numbers of a kernel release; what a distributor or an owner appends may name the place it runs in."""
    match = re.match(r"\d+(\.\d+)*", release)
    return match.group() if match else "unknown"
