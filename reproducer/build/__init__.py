"""Building: from verified inputs to a runtime, and what a build receipt says about it."""

from reproducer.build.runtime import Runtime, build

__all__ = ["Runtime", "build"]
