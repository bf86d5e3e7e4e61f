"""Fetching: what a lock needs, from the indexes this user has, into the store."""

from reproducer.fetch.indexes import Indexes
from reproducer.fetch.needs import Fetched, fetch
from reproducer.fetch.obtain import Obtained, fetch_artefacts
from reproducer.fetch.pylock import read_pylock, select
from reproducer.fetch.releases import find_release

__all__ = [
    "Fetched",
    "Indexes",
    "Obtained",
    "fetch",
    "fetch_artefacts",
    "find_release",
    "read_pylock",
    "select",
]
