"""From manifest to lock: everything that was loose becomes exact."""

from reproducer.locking.previous import manifest_of
from reproducer.locking.resolve import Locked, lock, write

__all__ = ["Locked", "lock", "manifest_of", "write"]
