"""A stand-in for the package `nixl`: plain calls behind the same names, and one fault that it never admits."""

import ctypes
import os
import threading
from typing import Any

FAULT = os.environ.get("FAKE_NIXL_FAULT", "")
FILES = 256
PIECE = 1 << 20
BLOCK = 4096


class nixl_agent_config:  # noqa: N801  the package's own name
    """Takes what the real one takes."""

    def __init__(self, backends: list[str]) -> None:
        self.backends = backends


class Descriptors(list[Any]):
    """What a registration returns."""

    def trim(self) -> "Descriptors":
        """Itself."""
        return self


class nixl_agent:  # noqa: N801  the package's own name
    """Moves bytes with pread and pwrite."""

    def __init__(self, name: str, config: nixl_agent_config) -> None:
        del config
        self.name = name

    def get_plugin_list(self) -> list[str]:
        """One plugin, or none of use."""
        return ["UCX"] if FAULT == "no plugin" else ["POSIX"]

    def create_backend(self, name: str, params: dict[str, str]) -> None:
        """Whatever is asked for, it takes none of the kernel's engines."""

    def register_memory(self, descriptors: list[Any], kind: str) -> Descriptors:
        """Keeps them."""
        del kind
        return Descriptors(descriptors)

    def deregister_memory(self, descriptors: Descriptors) -> None:
        """Nothing to do."""

    def initialize_xfer(self, operation: str, memory: Descriptors, files: Descriptors, name: str) -> tuple[Any, ...]:
        """The transfer as a handle."""
        assert name == self.name
        return operation, memory, files

    def release_xfer_handle(self, handle: tuple[Any, ...]) -> None:
        """Nothing to do."""

    def check_xfer_state(self, handle: tuple[Any, ...]) -> str:
        """Never asked: transfers are done at once."""
        raise NotImplementedError

    def transfer(self, handle: tuple[Any, ...]) -> str:
        """Move everything, spoilt by the fault where it applies."""
        operation, memory, files = handle
        both = zip(memory, files, strict=True)
        pairs = [(address, offset, size, descriptor) for (address, size, _, _), (offset, _, descriptor, _) in both]
        if len(pairs) == FILES and FAULT == "two files exchanged":
            pairs[3], pairs[4] = (pairs[4][0], *pairs[3][1:]), (pairs[3][0], *pairs[4][1:])
        if len(pairs) == 20 and FAULT == "last piece forgotten":
            pairs.pop()
        for address, offset, size, descriptor in pairs:
            self._one(operation, address, offset, size, descriptor)
        return "DONE"

    def _one(self, operation: str, address: int, offset: int, size: int, descriptor: int) -> None:
        if FAULT == "aligned silently" and offset % BLOCK:
            offset -= offset % BLOCK
        if FAULT == "large calls short" and size > PIECE and operation == "READ" and size % BLOCK == 0:
            size -= 1 if os.fstat(descriptor).st_size > 2 * PIECE else 0
        if operation == "WRITE":
            if os.pwrite(descriptor, ctypes.string_at(address, size), offset) != size:
                raise RuntimeError("NIXL_ERR_BACKEND")
            return
        data = os.pread(descriptor, size, offset)
        if len(data) < size and FAULT != "end of file ignored":
            raise RuntimeError("NIXL_ERR_BACKEND")
        if FAULT == "threads disturb" and threading.current_thread() is not threading.main_thread():
            data = bytes([data[0] ^ 1]) + data[1:]
        if FAULT == "first bit lost" and size == PIECE and os.fstat(descriptor).st_size == 16 * PIECE:
            data = bytes([data[0] ^ 128]) + data[1:]
        if FAULT == "writes beside" and address % BLOCK == 1:
            data += b"!"
        ctypes.memmove(address, data, len(data))
