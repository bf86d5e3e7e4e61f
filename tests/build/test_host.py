"""Host facts: what the system says, without names or addresses."""

import os
import platform
from pathlib import Path

from reproducer.host import filesystem, host_facts, host_platform


def test_facts(tmp_path: Path) -> None:
    """Everything can be read here, and nothing names this machine."""
    facts = host_facts(tmp_path)
    assert facts.platform == host_platform()
    assert facts.cpu_count == os.cpu_count()
    assert facts.memory_bytes > 1 << 28
    assert facts.filesystem != "unknown"
    assert list(facts.cpu_flags) == sorted(facts.cpu_flags)
    assert platform.node() not in {facts.kernel, facts.cpu, facts.filesystem, *facts.cpu_flags}


def test_filesystem_of_what_is_not_there_yet(tmp_path: Path) -> None:
    """A folder that will be made lies where its parent lies."""
    assert filesystem(tmp_path / "a" / "b") == filesystem(tmp_path)
    assert filesystem(Path("/proc")) == "proc"
