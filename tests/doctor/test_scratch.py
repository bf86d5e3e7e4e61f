"""The probe's private folder in somebody else's folder."""

import threading
from pathlib import Path

from reproducer.doctor.scratch import scratch, sweep


def test_sweeping_meanwhile_neither_refuses_nor_takes_a_new_folder(tmp_path: Path) -> None:
    """While others sweep without pause, each run gets its folder, and keeps it as long as it is used."""
    ended = threading.Event()

    def sweeping() -> None:
        while not ended.is_set():
            sweep(tmp_path)

    sweepers = [threading.Thread(target=sweeping) for _ in range(3)]
    for sweeper in sweepers:
        sweeper.start()
    try:
        for turn in range(300):
            with scratch(tmp_path) as held:
                (held.folder / "file").write_text(str(turn))
                assert (held.folder / "file").read_text() == str(turn)
    finally:
        ended.set()
        for sweeper in sweepers:
            sweeper.join()
    assert list(tmp_path.iterdir()) == []
