"""Where the facts of the GPUs come from: nvidia-smi, or the driver's library where that is not there or silent."""

from reproducer.gpus.card import Cards
from reproducer.gpus.nvml import from_nvml
from reproducer.gpus.smi import from_smi


def look(*, state: bool = False) -> Cards:
    """Every GPU of this machine: what nvidia-smi says; what NVML says where nvidia-smi is not there or says nothing.

    Args:
        state: what each card does right now as well.
    """
    said = from_smi(state=state)
    if said is not None and said.found:
        return said
    asked = from_nvml()
    if asked is not None and asked.found:
        return asked
    if said is None and asked is None:
        return Cards(fault="there is no nvidia-smi on PATH and no driver's library")
    return said or asked or Cards()
