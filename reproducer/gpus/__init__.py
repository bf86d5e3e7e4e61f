"""The NVIDIA GPUs of this machine as their driver shows them: through nvidia-smi, or NVML where that is not there."""

from reproducer.gpus.card import Card, Cards
from reproducer.gpus.looking import look

__all__ = ["Card", "Cards", "look"]
