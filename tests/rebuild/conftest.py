"""The compilers of the tests of binaries."""

from tests.binaries.conftest import gcc, nvcc

__all__ = ["gcc", "nvcc"]
