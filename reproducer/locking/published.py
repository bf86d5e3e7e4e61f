"""What a publisher built from the same source, beside what is built here: told where they differ, never an error."""

from collections.abc import Iterator

from packaging.utils import parse_wheel_filename
from packaging.version import Version

from reproducer.documents.lock import Component
from reproducer.documents.manifest import ComponentRequest


def published_differences(request: ComponentRequest, component: Component) -> Iterator[str]:
    """One sentence for each thing that the wheels of a component are and its publisher's was not."""
    said = request.published
    if said is None or not component.outputs:
        return
    if not component.wheels:
        yield f"{request.name}: no wheel came out to compare with the published one"
        return
    digests = [each.sha256 for each in component.wheels]
    if said.sha256 is not None and said.sha256 not in digests:
        yield f"{request.name}: the published wheel has sha256 {said.sha256}, the one built here {', '.join(digests)}"
    versions = {parse_wheel_filename(each.filename)[1] for each in component.wheels}
    if said.version is not None and Version(said.version) not in versions:
        here = ", ".join(sorted(map(str, versions)))
        yield f"{request.name}: the published wheel is version {said.version}, the one built here {here}"
