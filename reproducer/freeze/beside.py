"""Names of the files beside a frozen lock: by their content, so that two locks in one folder never share a name."""

import hashlib


def path_of(folder: str, name: str, ending: str, data: bytes) -> str:
    """The path of a file, relative to the lock's folder."""
    return f"{folder}/{name}-{hashlib.sha256(data).hexdigest()[:12]}{ending}"
