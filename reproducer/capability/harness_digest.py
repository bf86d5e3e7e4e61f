"""What the harness is: inspect_ai and the client it asks with, by the digests that their wheels list, and plug-ins."""

from importlib import metadata

from reproducer.canonical import content_digest

PACKAGES = ("inspect_ai", "openai")


def harness_name() -> str:
    """Name and version of the harness."""
    return f"inspect_ai {metadata.version('inspect_ai')}"


def harness_digest() -> str:
    """Digest over the code of the harness as installed, and over what plugs itself into it.

    Files of the packages' own folders count, with the digests that their wheels state; what an installer writes beside
    them (scripts with the path of an interpreter) does not.
    """
    plugins = sorted({f"{each.name}={each.value}" for each in metadata.entry_points(group="inspect_ai")})
    return content_digest({"packages": {name: _files(name) for name in PACKAGES}, "plugins": plugins})


def _files(package: str) -> dict[str, str]:
    found = metadata.files(package) or ()
    return {path.as_posix(): path.hash.value for path in found if path.hash is not None and path.parts[0] == package}
