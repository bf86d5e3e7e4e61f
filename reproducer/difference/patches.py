"""Changes of a component's patches, told by file and not by place: one patch more does not rename all that follow."""

from collections.abc import Iterator
from typing import Any

from reproducer.documents.lock import Lock
from reproducer.identity.factors import Path
from reproducer.identity.meaning import Meaning

Told = tuple[Path, tuple[Any, Any, Meaning]]

_CONTENT = Meaning("cache-identity", "a patch changes code that computes, keeps or copies KV pages")
_ORDER = Meaning("cache-identity", "patches are applied in their order")
_PLACE = Meaning("cosmetic", "the same patch under another name")
_SIZE = Meaning("cosmetic", "the digest beside it fixes the size")


def patch_changes(one: Lock, two: Lock) -> Iterator[Told]:
    """Every change of patches between two locks."""
    before = {component.name: component.patches for component in one.components}
    after = {component.name: component.patches for component in two.components}
    for name in {**before, **after}:
        if before.get(name, ()) != after.get(name, ()):
            yield from _component(("components", name, "patches"), before.get(name, ()), after.get(name, ()))


def _component(place: Path, before: tuple[Any, ...], after: tuple[Any, ...]) -> Iterator[Told]:
    old, new = {each.path: each for each in before}, {each.path: each for each in after}
    gone = [path for path in old if path not in new]
    come = [path for path in new if path not in old]
    moved = _moved({path: old[path].sha256 for path in gone}, {path: new[path].sha256 for path in come})
    content = False
    for path in gone:
        if path not in moved:
            content = True
            yield (*place, path, "sha256"), (old[path].sha256, None, _CONTENT)
    for path in come:
        if path not in moved.values():
            content = True
            yield (*place, path, "sha256"), (None, new[path].sha256, _CONTENT)
    for path, target in moved.items():
        yield (*place, path, "path"), (path, target, _PLACE)
    for path in old.keys() & new.keys():
        if old[path].sha256 != new[path].sha256:
            content = True
            yield (*place, path, "sha256"), (old[path].sha256, new[path].sha256, _CONTENT)
        elif old[path].size != new[path].size:
            yield (*place, path, "size"), (old[path].size, new[path].size, _SIZE)
    if not content and [each.sha256 for each in before] != [each.sha256 for each in after]:
        yield place, ([each.path for each in before], [each.path for each in after], _ORDER)


def _moved(gone: dict[str, str], come: dict[str, str]) -> dict[str, str]:
    """Old path to new path of the patches that only have another name; each is used once."""
    found: dict[str, str] = {}
    for path, sha256 in gone.items():
        target = next((new for new, got in come.items() if got == sha256 and new not in found.values()), None)
        if target is not None:
            found[path] = target
    return found
