"""What `--upgrade` may name: anything else is a slip, and a slip must not look like a lock that was taken anew."""

import difflib
from collections.abc import Iterable

from packaging.utils import canonicalize_name

from reproducer.documents.manifest import Manifest, SdistRequest, WheelMemberRequest, WheelRequest
from reproducer.errors import UsageError
from reproducer.locking.environments import EVERYTHING


def check_names(asked: frozenset[str], manifest: Manifest, packages: Iterable[str]) -> None:
    """Refuse a name that nothing goes by.

    Args:
        asked: the names to take anew.
        manifest: its components, checkpoints and projects may be named.
        packages: the projects of every environment, before and now.

    Raises:
        UsageError: names what is nearest.
    """
    sources = [*(each.source for each in manifest.components), *(each.source for each in manifest.checkpoints)]
    projects = [each.project for each in sources if isinstance(each, SdistRequest | WheelRequest | WheelMemberRequest)]
    named = [*(each.name for each in manifest.components), *(each.name for each in manifest.checkpoints)]
    known = {EVERYTHING, *named, *(str(canonicalize_name(each)) for each in (*projects, *packages))}
    for name in sorted(asked):
        if name in known or str(canonicalize_name(name)) in known:
            continue
        near = difflib.get_close_matches(name, sorted(known), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "name a component, a checkpoint, a package or ALL"
        raise UsageError(f"nothing is named {name!r}", where="--upgrade", todo=hint)
