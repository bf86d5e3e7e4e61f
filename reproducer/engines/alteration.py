"""A lock whose launch differs from it in one effective value, as a measure of its suite declares.

What else follows from that value follows by the engine's own rules; what does not stays as the lock says, so the server
is refused where it resolves anything else to another value.
"""

from collections.abc import Mapping

from reproducer.documents.base import shown
from reproducer.documents.lock import Lock, Scalar
from reproducer.engines import engine_of
from reproducer.engines.interface import same
from reproducer.errors import InvalidDocumentError


def altered(lock: Lock, values: Mapping[str, Scalar]) -> Lock:
    """The lock with other effective values, and the arguments that ask for them.

    Raises:
        InvalidDocumentError: no argument of the engine is known to ask for one.
    """
    engine, launch = engine_of(lock.engine.kind), lock.launch
    arguments = dict(launch.arguments)
    for name, value in values.items():
        flag = engine.alterable.get(name)
        if flag is None:
            raise InvalidDocumentError(f"no argument of {engine.kind} is known to alter {shown(name)}")
        arguments[flag] = value
    before = engine.expected_effective(launch.arguments, {}, launch.environment)
    after = engine.expected_effective(arguments, {}, launch.environment)
    effective = {name: value for name, value in launch.effective.items() if name in after or name not in before}
    effective |= {name: value for name, value in after.items() if name not in before or not same(before[name], value)}
    changed = launch.model_copy(
        update={"arguments": dict(sorted(arguments.items())), "effective": dict(sorted(effective.items()))}
    )
    return lock.model_copy(update={"launch": changed})


def unaltered(lock: Lock, values: Mapping[str, Scalar]) -> str:
    """Why a launch with these values would not differ from the lock's; empty where it does or nothing is altered."""
    for name, value in values.items():
        if same(value, lock.launch.effective.get(name)):
            return f"{name} {value} is the lock's own"
    return ""
