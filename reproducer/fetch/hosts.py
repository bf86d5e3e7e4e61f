"""Which wheels may serve on this host under the lock's Python and platform."""

import platform as host
from functools import lru_cache

from packaging import tags

from reproducer.errors import NotCheckedError


@lru_cache(maxsize=8)
def ranks(python: str, platform: str) -> dict[tags.Tag, int]:
    """Every tag that serves here, best first, with its place in that order.

    Args:
        python: minor version, such as `3.11`.
        platform: of the lock, such as `linux-x86_64`; the host's C library says which manylinux or musllinux tags hold.

    Raises:
        NotCheckedError: this host is of another platform.
    """
    here = f"{host.system().lower()}-{host.machine().lower()}"
    if here != platform:
        raise NotCheckedError(
            f"this host is {here}, the lock is for {platform}", todo="use a lock that was made for this platform"
        )
    version = _version(python)
    name = f"cp{version[0]}{version[1]}"
    places = list(tags.platform_tags())
    ordered = [
        *tags.cpython_tags(version, abis=[name], platforms=places),
        *tags.compatible_tags(version, interpreter=name, platforms=places),
    ]
    return {tag: index for index, tag in reversed(list(enumerate(ordered)))}


def marker_environment(python: str, platform: str) -> dict[str, str]:
    """What environment markers see in the lock's Python; the patch level is the minor version's first."""
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{python}.0",
        "os_name": "posix",
        "platform_machine": platform.partition("-")[2],
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": "linux",
        "extra": "",
    }


def _version(python: str) -> tuple[int, int]:
    major, _, minor = python.partition(".")
    return int(major), int(minor)
