"""penny: lock, rebuild, launch, qualify and attest an LLM serving runtime."""

__version__ = "0.1.0"
