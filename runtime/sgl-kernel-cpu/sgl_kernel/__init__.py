"""The part of sgl_kernel that SGLang needs on a CPU; see `sgl_kernel.kvcacheio`."""

__version__ = "0.1.0"
