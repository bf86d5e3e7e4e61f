"""The store: files by digest and built folders by key, under the user's cache folder."""

from reproducer.store.content import Store, default_root
from reproducer.store.entries import Entry
from reproducer.store.exclusive import exclusive

__all__ = ["Entry", "Store", "default_root", "exclusive"]
