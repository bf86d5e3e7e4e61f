"""Runs one command apart from the host; `isolation.py` starts it as a program of its own, penny never imports it.

Three processes: this one watches, `init` is the first process of the new namespaces, and the command runs below it.
When penny dies, however it dies, the kernel signals the watcher; the watcher kills `init`, and with `init` the
kernel kills everything in its process namespace. Where the kernel allows no namespaces the same tree is kept
together as far as an ordinary process can: children that lose their parent come to the watcher, which kills them
too.

Input on stdin: JSON with `argv`, `cwd`, `writable`, `mounted`, `network`, `host`, `parent`, `report` (a descriptor for
one line of JSON).
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
SYS_MOUNT_SETATTR = 442
AT_FDCWD = -100
AT_RECURSIVE = 0x8000
MOUNT_ATTR_RDONLY = 1
CANNOT_START = 127

libc = ctypes.CDLL(None, use_errno=True)


class MountAttributes(ctypes.Structure):
    """`struct mount_attr` of mount_setattr(2)."""

    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def check(result: int, what: str) -> None:
    """Raise OSError where a C call failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def enter_namespaces(*, network: bool) -> None:
    """New user and process namespaces, and a network namespace without an interface unless `network`."""
    user, group = os.geteuid(), os.getegid()
    flags = CLONE_NEWUSER | CLONE_NEWPID | (0 if network else CLONE_NEWNET)
    check(libc.unshare(ctypes.c_int(flags)), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123  pathlib is slow to import
            file.write(text)


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Attach a file system or, with MS_BIND, a folder to a folder."""
    arguments = [each.encode() for each in (source, target, kind)]
    check(libc.mount(*arguments, ctypes.c_ulong(flags), data.encode() or None), f"mount {target}")


def set_read_only(path: str, *, on: bool) -> None:
    """Make a mount and all below it read-only, or writable again."""
    attributes = MountAttributes(MOUNT_ATTR_RDONLY if on else 0, 0 if on else MOUNT_ATTR_RDONLY, 0, 0)
    result = libc.syscall(
        ctypes.c_long(SYS_MOUNT_SETATTR),
        ctypes.c_int(AT_FDCWD),
        path.encode(),
        ctypes.c_uint(AT_RECURSIVE),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    check(result, f"mount_setattr {path}")


def arrange_files(writable: list[str], mounted: str | None) -> None:
    """Own `/proc` and `/dev/shm`, everything read-only but the given folders; OSError where the kernel cannot.

    The first of the folders is also seen under the path `mounted`; what else lies in its parent is not.
    """
    # Not in the watcher: it must keep the /proc in which its own children have the numbers it knows.
    check(libc.unshare(ctypes.c_int(CLONE_NEWNS)), "unshare")
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    with contextlib.suppress(OSError):
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    with contextlib.suppress(OSError):
        mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=1g")  # noqa: S108  a private mount
        writable = [*writable, "/dev/shm"]  # noqa: S108  the same
    for folder in writable:
        mount(folder, folder, "none", MS_BIND | MS_REC)
    if mounted is not None:
        mount("tmpfs", os.path.dirname(mounted), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64k")  # noqa: PTH120
        os.mkdir(mounted)  # noqa: PTH102  pathlib is slow to import
        mount(writable[0], mounted, "none", MS_BIND | MS_REC)
        writable = [*writable, mounted]
    set_read_only("/", on=True)
    try:
        for folder in writable:
            set_read_only(folder, on=False)
    except OSError:
        set_read_only("/", on=False)
        raise


def name_host(name: str) -> None:
    """Another host name for this process and all below it."""
    check(libc.unshare(ctypes.c_int(CLONE_NEWUTS)), "unshare")
    check(libc.sethostname(name.encode(), ctypes.c_size_t(len(name))), "sethostname")


def kill_descendants() -> None:
    """Kill every descendant, those included whose parents are gone, until none is left."""
    while True:
        own = os.getpid()
        for name in os.listdir("/proc"):  # noqa: PTH208  pathlib is slow to import
            if not name.isdigit():
                continue
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123  the same
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                if parent == own:
                    os.kill(int(name), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def wait_for(pid: int) -> int:
    """Reap children until this one ends; its exit status, 128 + signal where a signal ended it."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def run_command(plan: dict[str, Any]) -> NoReturn:
    """Become the command."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(plan["cwd"])
        os.execve(plan["argv"][0], plan["argv"], os.environ)  # noqa: S606  an argument list is the point
    except OSError as error:
        sys.stderr.write(f"{plan['argv'][0]}: {error.strerror}\n")
        sys.stderr.flush()
    os._exit(CANNOT_START)


def run_init(plan: dict[str, Any], report: int, refused: str) -> NoReturn:
    """The first process of the namespaces: arrange them, say so, run the command; what is left ends with it."""
    code = CANNOT_START
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if not refused:
            # Some kernels allow the other namespaces and no mounts; the network is what a build must not have.
            with contextlib.suppress(OSError):
                arrange_files(plan["writable"], plan["mounted"])
            if plan["host"] is not None:
                with contextlib.suppress(OSError):
                    name_host(plan["host"])
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        facts = {"namespaces": not refused, "refused": refused}
        os.write(report, json.dumps(facts).encode() + b"\n")
        os.close(report)
        pid = os.fork()
        if pid == 0:
            run_command(plan)
        code = wait_for(pid)
    except BaseException as error:  # noqa: BLE001  whatever it is, this process ends here
        sys.stderr.write(f"the isolation failed: {error}\n")
        sys.stderr.flush()
    os._exit(code)


def main() -> int:
    """Read the plan, enter the namespaces if the kernel allows, watch."""
    plan = json.load(sys.stdin)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    report = plan["report"]
    os.set_inheritable(report, False)  # noqa: FBT003  positional-only

    def end(number: int, _frame: object) -> NoReturn:
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        kill_descendants()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != plan["parent"]:
        return 128 + signal.SIGTERM
    refused = ""
    try:
        if plan["namespaces"]:
            enter_namespaces(network=plan["network"])
        else:
            refused = "not asked for"
    except OSError as error:
        refused = str(error)
    pid = os.fork()
    if pid == 0:
        run_init(plan, report, refused)
    os.close(report)
    code = wait_for(pid)
    kill_descendants()
    return code


if __name__ == "__main__":
    sys.exit(main())
