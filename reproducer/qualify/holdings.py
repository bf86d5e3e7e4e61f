"""What the server's processes hold while they serve: memory, open files, memory of GPUs."""

from reproducer.documents.measured import Reading
from reproducer.gpus.nvml import from_nvml


def reading(pid: int | None, at_ns: int) -> Reading:
    """What is held now by a process and all below it; what cannot be read is None.

    Args:
        pid: the server's first process; None where nobody may look at it.
        at_ns: when, relative to the sample's origin.
    """
    resident, files = _processes(pid) if pid is not None else (None, None)
    return Reading(at_ns=at_ns, resident_bytes=resident, open_files=files, gpu_bytes=_gpus())


def _processes(pid: int) -> tuple[int | None, int | None]:
    """Resident bytes and open files of a process and its descendants; one that ends meanwhile holds nothing."""
    import psutil

    try:
        first = psutil.Process(pid)
        family = [first, *first.children(recursive=True)]
    except (psutil.Error, OSError):
        return None, None
    resident = files = 0
    for each in family:
        try:
            resident += each.memory_info().rss
            files += each.num_fds()
        except psutil.NoSuchProcess:
            continue
        except (psutil.Error, OSError):
            return None, None
    return resident, files


def _gpus() -> int | None:
    """Memory in use on all GPUs, as the driver's library says; None where it is not there or does not say."""
    cards = from_nvml()
    if cards is None or not cards.found:
        return None
    used = [card.memory_used_bytes for card in cards.found]
    known = [each for each in used if each is not None]
    return sum(known) if len(known) == len(used) else None
