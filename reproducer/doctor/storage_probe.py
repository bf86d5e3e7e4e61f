"""The probe in a runtime's own interpreter: writes and reads a folder, plainly and through NIXL's POSIX plugin.

It runs by itself (`python -I -B storage_probe.py PLAN`), imports the standard library and `nixl`, and reports JSON
lines on standard output: `begin` before each step, `result` after it, `end` at last. penny starts it, gives it
one deadline a step, and believes none of it. Nothing here imports penny, and penny does not import this.

No byte is compared with itself: every step takes its pattern from another place of one random pool, files are new, the
target memory is overwritten before a read, and what was written is read once plainly and once by a second agent.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import signal
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BLOCK = 4096
PIECE = 1 << 20
STRIDE = 1 << 20
FILES = 256
THREADS = 4
GUARD = 0x5A
PR_SET_PDEATHSIG = 1
LONGEST = 300


class RefusedError(Exception):
    """The plugin said that it did not do it."""


class WrongError(Exception):
    """Done, says the plugin, and the bytes are not there."""


class Memory:
    """Page-aligned memory with a known address."""

    def __init__(self, size: int) -> None:
        self.map = mmap.mmap(-1, size)
        self._pin = ctypes.c_char.from_buffer(self.map)
        self.address = ctypes.addressof(self._pin)
        self.size = size

    def cover(self, size: int) -> None:
        """Overwrite the beginning, so that nothing read earlier can pass for what is read next."""
        ctypes.memset(self.address, GUARD, min(size, self.size))


class Probe:
    """The folder, the memory and the pattern that all steps share."""

    def __init__(self, folder: str, large: int) -> None:
        self.folder = folder
        self.large = large
        self.target = Memory(large + PIECE)
        self.pool = Memory(large + 96 * STRIDE)
        for offset in range(0, self.pool.size, PIECE):
            self.pool.map[offset : offset + PIECE] = os.urandom(PIECE)
        self.turn = 0
        self.names = 0

    def pattern(self) -> int:
        """Where in the pool this step's pattern begins; another place for every step."""
        self.turn = (self.turn + 1) % 90
        return self.turn * STRIDE

    def create(self, *, direct: bool) -> tuple[str, int]:
        """A new file, open for reading and writing."""
        self.names += 1
        path = f"{self.folder}/file-{self.names}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | (os.O_DIRECT if direct else 0)
        return path, os.open(path, flags, 0o600)

    def opened(self, path: str, *, direct: bool) -> int:
        """The same file for reading, its pages dropped from the cache where the kernel does so."""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        if direct:
            os.close(handle)
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECT)
        return handle

    def matches(self, path: str, size: int, start: int, *, offset: int = 0) -> None:
        """A file must hold this part of the pool from `offset` to its end; raises WrongError."""
        there = Path(path).stat().st_size
        if there != offset + size:
            raise WrongError(f"the file has {there} bytes, {offset + size} were written")
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for done in range(0, size, PIECE):
                length = min(PIECE, size - done)
                if os.pread(handle, length, offset + done) != self.pool.map[start + done : start + done + length]:
                    raise WrongError(
                        f"the file differs from what was written within {length} bytes from {offset + done}"
                    )
        finally:
            os.close(handle)

    def arrived(self, at: int, size: int, start: int) -> None:
        """The target memory must hold this part of the pool; raises WrongError."""
        for done in range(0, size, PIECE):
            length = min(PIECE, size - done)
            if self.target.map[at + done : at + done + length] != self.pool.map[start + done : start + done + length]:
                raise WrongError(f"what was read differs from the file within {length} bytes from {done}")

    def clear(self) -> None:
        """Remove the files of a step."""
        for name in os.listdir(self.folder):  # noqa: PTH208  names only
            Path(self.folder, name).unlink()


class Agent:
    """One NIXL agent with the POSIX plugin set to one engine."""

    count = 0
    guard = threading.Lock()

    def __init__(self, params: dict[str, str]) -> None:
        nixl = import_module("nixl._api")
        with Agent.guard:
            Agent.count += 1
            name = f"penny-{os.getpid()}-{Agent.count}"
        self.agent = nixl.nixl_agent(name, nixl.nixl_agent_config(backends=[]))
        self.agent.create_backend("POSIX", params)

    def move(self, operation: str, memory: Sequence[tuple[int, int]], files: Sequence[tuple[int, int, int]]) -> float:
        """One transfer of (address, size) from or to (offset, size, descriptor); its seconds. Raises RefusedError."""
        agent = self.agent
        mine = agent.register_memory([(address, size, 0, "") for address, size in memory], "DRAM")
        theirs = agent.register_memory([(*each, "") for each in files], "FILE")
        try:
            handle = agent.initialize_xfer(operation, mine.trim(), theirs.trim(), agent.name)
            try:
                begun = time.monotonic()
                state = agent.transfer(handle)
                while state == "PROC":
                    time.sleep(0)
                    state = agent.check_xfer_state(handle)
                seconds = time.monotonic() - begun
            finally:
                agent.release_xfer_handle(handle)
        except Exception as error:
            raise RefusedError(f"{operation}: {type(error).__name__} {error}") from error
        finally:
            agent.deregister_memory(mine)
            agent.deregister_memory(theirs)
        if state != "DONE":
            raise RefusedError(f"{operation}: ended as {state}")
        return seconds


class Cell:
    """One engine in one mode."""

    def __init__(self, probe: Probe, params: dict[str, str], *, direct: bool) -> None:
        self.probe = probe
        self.params = params
        self.direct = direct
        self.flags = {"direct": direct}

    def open(self) -> dict[str, Any]:
        """An agent is made, moves one block, and the kernel shows which engine it really holds."""
        before = _kernel_marks()
        agent = Agent(self.params)
        after = _kernel_marks()
        holds = [name for name in before if after[name] > before[name]]
        self._round(agent, agent, [(0, BLOCK)])
        wanted = "io_uring" if "use_uring" in self.params else "aio" if "use_aio" in self.params else ""
        if (wanted and holds != [wanted]) or (holds and "use_posix_aio" in self.params):
            raise WrongError(
                f"asked for {', '.join(self.params)}, and the process holds {' and '.join(holds) or 'neither'}"
            )
        return {"got": f"the process holds {' and '.join(holds)}" if holds else "no io_uring and no kernel AIO is held"}

    def round_trip(self) -> dict[str, Any]:
        """16 aligned pieces of one file."""
        return self._file(16 * PIECE, PIECE)

    def many_files(self) -> dict[str, Any]:
        """256 files of 64 KiB in one registration and one transfer."""
        self._many(FILES, 1 << 16, self.probe.pattern(), 0)
        return {"got": f"{FILES} files in one transfer"}

    def threads(self) -> dict[str, Any]:
        """Four threads at once, each with agents and files of its own."""
        faults: list[BaseException] = []
        starts = [self.probe.pattern() for _ in range(THREADS)]

        def work(number: int) -> None:
            try:
                self._many(16, 1 << 16, starts[number], number * PIECE)
            except Exception as error:  # noqa: BLE001  handed to the thread that waits
                faults.append(error)

        crew = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
        for each in crew:
            each.start()
        for each in crew:
            each.join()
        if faults:
            raise faults[0]
        return {"got": f"{THREADS} threads with 16 files each"}

    def large(self) -> dict[str, Any]:
        """Many times the plugin's own buffers, in pieces of 1 MiB."""
        return self._file(self.probe.large, PIECE)

    def one_descriptor(self) -> dict[str, Any]:
        """A quarter of that in a single piece."""
        return self._file(self.probe.large // 4, self.probe.large // 4)

    def unaligned(self) -> dict[str, Any]:
        """Odd offset, size and address one by one; with O_DIRECT the plugin may refuse, and must work on after that."""
        cases = {
            "offset": (7, BLOCK, 0),
            "size": (0, 5000, 0),
            "address": (0, BLOCK, 1),
            "all": (100_003, PIECE + 13, 1),
        }
        worked, refused, broken = [], [], []
        for operation in ("WRITE", "READ"):
            for name, case in cases.items():
                label = f"{operation.lower()} {name}"
                agent = Agent(self.params)
                try:
                    self._odd(agent, operation, *case)
                    worked.append(label)
                except RefusedError:
                    if not self.direct:
                        raise
                    refused.append(label)
                    try:
                        self._round(agent, agent, [(0, PIECE)])
                    except RefusedError:
                        broken.append(label)
                self.probe.clear()
        got = "; ".join(
            f"{word}: {', '.join(these)}" for word, these in (("works", worked), ("refused", refused)) if these
        )
        if broken:
            why = "after a refused transfer every later one of the same agent fails too"
            return {"status": "failed", "got": got, "reason": f"{why} ({', '.join(broken)})"}
        return {"got": got}

    def truncated(self) -> dict[str, Any]:
        """A read beyond the end of a file must not be reported as done."""
        path, handle = self.probe.create(direct=False)
        start = self.probe.pattern()
        os.pwrite(handle, self.probe.pool.map[start : start + PIECE], 0)
        os.close(handle)
        handle = self.probe.opened(path, **self.flags)
        try:
            Agent(self.params).move("READ", [(self.probe.target.address, 2 * PIECE)], [(0, 2 * PIECE, handle)])
        except RefusedError:
            return {"got": "refused"}
        finally:
            os.close(handle)
        raise WrongError("a file with half of the bytes that were asked for was reported as read")

    def _file(self, size: int, piece: int) -> dict[str, Any]:
        pieces = [(offset, min(piece, size - offset)) for offset in range(0, size, piece)]
        write, read = self._round(Agent(self.params), Agent(self.params), pieces)
        return {"bytes": size, "write_s": write, "read_s": read, "got": f"{len(pieces)} x {min(piece, size)} bytes"}

    def _round(self, writer: Agent, reader: Agent, pieces: list[tuple[int, int]]) -> tuple[float, float]:
        """Write a file, compare it, read it with the other agent, compare that; seconds of both transfers."""
        probe, start, size = self.probe, self.probe.pattern(), sum(size for _, size in pieces)
        path, handle = probe.create(**self.flags)
        try:
            source = [(probe.pool.address + start + offset, size) for offset, size in pieces]
            write = writer.move("WRITE", source, [(*piece, handle) for piece in pieces])
        finally:
            os.close(handle)
        handle = probe.opened(path, **self.flags)
        probe.target.cover(size)
        try:
            target = [(probe.target.address + offset, size) for offset, size in pieces]
            read = reader.move("READ", target, [(*piece, handle) for piece in pieces])
        finally:
            os.close(handle)
        probe.arrived(0, size, start)
        probe.matches(path, size, start)
        return write, read

    def _many(self, count: int, size: int, start: int, at: int) -> None:
        """As `_round` for many files at once, with agents of their own; `at` is where in the target memory to read."""
        probe = self.probe
        with Agent.guard:
            made = [probe.create(**self.flags) for _ in range(count)]
        try:
            source = [(probe.pool.address + start + number * size, size) for number in range(count)]
            Agent(self.params).move("WRITE", source, [(0, size, handle) for _, handle in made])
        finally:
            for _, handle in made:
                os.close(handle)
        handles = [probe.opened(path, **self.flags) for path, _ in made]
        ctypes.memset(probe.target.address + at, GUARD, count * size)
        try:
            target = [(probe.target.address + at + number * size, size) for number in range(count)]
            Agent(self.params).move("READ", target, [(0, size, handle) for handle in handles])
        finally:
            for handle in handles:
                os.close(handle)
        for number, (path, _) in enumerate(made):
            probe.arrived(at + number * size, size, start + number * size)
            probe.matches(path, size, start + number * size)

    def _odd(self, agent: Agent, operation: str, offset: int, size: int, shift: int) -> None:
        """One transfer that is not aligned, compared byte for byte, the bytes around its target too."""
        probe, start = self.probe, self.probe.pattern()
        path, handle = probe.create(direct=self.direct and operation == "WRITE")
        if operation == "WRITE":
            try:
                agent.move("WRITE", [(probe.pool.address + start + shift, size)], [(offset, size, handle)])
            finally:
                os.close(handle)
            probe.matches(path, size, start + shift, offset=offset)
            return
        os.pwrite(handle, probe.pool.map[start : start + 2 * PIECE], 0)
        os.close(handle)
        handle = probe.opened(path, **self.flags)
        probe.target.cover(2 * PIECE + BLOCK)
        try:
            agent.move("READ", [(probe.target.address + BLOCK + shift, size)], [(offset, size, handle)])
        finally:
            os.close(handle)
        first = BLOCK + shift
        probe.arrived(first, size, start + offset)
        around = probe.target.map[:first] + probe.target.map[first + size : first + size + BLOCK]
        if around != bytes([GUARD]) * len(around):
            raise WrongError("bytes beside the target were overwritten")


class Disk:
    """The disk itself, one call after the other."""

    def __init__(self, probe: Probe, *, direct: bool) -> None:
        self.probe = probe
        self.direct = direct

    def rate(self) -> dict[str, Any]:
        """The bytes of `large` in pieces of 1 MiB with pwrite and preadv."""
        probe, start, size = self.probe, self.probe.pattern(), self.probe.large
        path, handle = probe.create(direct=self.direct)
        view = memoryview(probe.pool.map)[start : start + size]
        try:
            begun = time.monotonic()
            for offset in range(0, size, PIECE):
                if os.pwrite(handle, view[offset : offset + PIECE], offset) != PIECE:
                    raise WrongError("a write was short")
            write = time.monotonic() - begun
        finally:
            view.release()
            os.close(handle)
        handle = probe.opened(path, direct=self.direct)
        probe.target.cover(size)
        into = memoryview(probe.target.map)
        try:
            begun = time.monotonic()
            for offset in range(0, size, PIECE):
                if os.preadv(handle, [into[offset : offset + PIECE]], offset) != PIECE:
                    raise WrongError("a read was short")
            read = time.monotonic() - begun
        finally:
            into.release()
            os.close(handle)
        probe.arrived(0, size, start)
        return {"bytes": size, "write_s": write, "read_s": read, "got": "one call after the other"}


def load() -> dict[str, Any]:
    """The package and its POSIX plugin."""
    from importlib.metadata import version

    nixl = import_module("nixl._api")
    agent = nixl.nixl_agent(f"penny-{os.getpid()}-load", nixl.nixl_agent_config(backends=[]))
    plugins = agent.get_plugin_list()
    if "POSIX" not in plugins:
        raise RefusedError(f"there is no POSIX plugin; there are {', '.join(map(str, plugins))}")
    return {"got": f"nixl {version('nixl')}"}


def _kernel_marks() -> dict[str, int]:
    """How many io_uring instances and kernel AIO contexts this process holds."""
    rings = 0
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  names only
        try:
            rings += "io_uring" in str(Path(f"/proc/self/fd/{name}").readlink())
        except OSError:
            continue
    with Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as file:
        return {"io_uring": rings, "aio": sum("[aio]" in line for line in file)}


def _disk_says(folder: str) -> str:
    """Why the disk takes nothing more, where it does not: a failure of an engine is then none."""
    path = Path(folder, "room")
    try:
        with path.open("wb") as file:
            file.write(b"\0" * PIECE)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or str(error)
    finally:
        path.unlink(missing_ok=True)
    return ""


def _last_words(since: int) -> str:
    """What the plugin wrote to standard error since then: its last line that tells of an error."""
    try:
        lines = os.pread(2, 1 << 16, since).decode(errors="replace").splitlines()
    except OSError:
        return ""
    told = [line.partition("] ")[2] or line for line in lines if line.startswith("E")]
    return told[0][:LONGEST] if told else ""


def _run(probe: Probe, step: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """One step's result, whatever happens in it."""
    since = os.lseek(2, 0, os.SEEK_END)
    try:
        result = {"status": "passed", **step()}
    except (WrongError, RefusedError) as error:
        result = {"status": "failed", "reason": str(error)}
    except Exception as error:  # noqa: BLE001  whatever the plugin raises is the result
        result = {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    words = _last_words(since)
    full = _disk_says(probe.folder) if result["status"] == "failed" else ""
    probe.clear()
    if full:
        return {"status": "unknown", "reason": f"the disk takes nothing more: {full}"[:LONGEST]}
    if result["status"] == "failed" and words:
        result["reason"] += f"; the plugin says: {words}"
    return {name: value[: 3 * LONGEST] if isinstance(value, str) else value for name, value in result.items()}


def main() -> int:
    """Run the plan."""
    plan = json.loads(sys.argv[1])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != plan["parent"]:
        return 1
    os.umask(0o077)
    out = os.dup(1)
    os.dup2(2, 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else max(soft, 4096), hard))

    def tell(**line: Any) -> None:
        os.write(out, json.dumps(line).encode() + b"\n")

    tell(kind="begin", id="start")
    probe = Probe(plan["folder"], plan["large"])
    for cell in plan["cells"]:
        subject: Any
        if cell["kind"] == "disk":
            subject = Disk(probe, direct=cell["direct"])
        else:
            subject = Cell(probe, cell["params"], direct=cell["direct"])
        for name in cell["steps"]:
            ident = f"{cell['id']}.{name}"
            tell(kind="begin", id=ident)
            result = _run(probe, load if cell["kind"] == "load" else getattr(subject, name))
            tell(kind="result", id=ident, **result)
            if name == cell["steps"][0] and result["status"] != "passed":
                break
        if cell["kind"] == "load" and result["status"] != "passed":
            break
    tell(kind="end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
