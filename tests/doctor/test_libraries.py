"""Device code of libraries against GPUs: what was built for other GPUs is named (R12)."""

from pathlib import Path

import pytest

from reproducer.doctor.libraries import compared, runs_on
from reproducer.errors import UnsafeInputError


@pytest.mark.parametrize(
    ("architecture", "capability", "runs"),
    [
        ("sm_90", "9.0", True),
        ("sm_90", "12.0", False),
        ("sm_120", "9.0", False),
        ("sm_80", "8.6", True),
        ("sm_86", "8.0", False),
        ("sm_89", "9.0", False),
        ("compute_80", "9.0", True),
        ("compute_90", "8.9", False),
        ("sm_90a", "9.0", True),
        ("compute_90a", "10.0", False),
        ("sm_100f", "10.3", True),
        ("compute_100f", "12.0", False),
        ("sm_103a", "10.0", False),
        ("sm_120", "unknown", False),
        ("gfx942", "9.4", False),
    ],
)
def test_which_code_runs_where(architecture: str, capability: str, *, runs: bool) -> None:
    """Machine code stays within its major version, intermediate code is compiled for newer GPUs, `a` fits one only."""
    assert runs_on(architecture, capability) is runs


def test_libraries_that_do_not_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each library without code for a GPU that is here is named with what it has; those without device code are not."""
    held = {
        "good.so": ("sm_120",),
        "jit.so": ("compute_90",),
        "other.so": ("sm_80", "sm_90a"),
        "plain.so": None,
    }
    monkeypatch.setattr("reproducer.binaries.fatbin.architectures_of", lambda path: held[path.name])
    made = list(compared([(name, Path(name)) for name in held], ["12.0"]))
    assert [(check.id, check.status, check.needed) for check in made] == [
        ("runtime.libraries", "failed", True),
        ("runtime.library.other.so", "failed", True),
    ]
    assert made[0].got == "2 of 3 libraries with device code run here"
    assert made[1].got == "sm_80, sm_90a"
    assert made[1].todo
    both = list(compared([("good.so", Path("good.so"))], ["12.0", "9.0"]))
    assert [check.status for check in both] == ["failed", "failed"]
    assert both[1].expected.endswith("9.0")
    fine = list(compared([("good.so", Path("good.so")), ("plain.so", Path("plain.so"))], ["12.0"]))
    assert [(check.id, check.status) for check in fine] == [("runtime.libraries", "passed")]


def test_library_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library whose headers lie is neither passed nor failed."""

    def lying(path: Path) -> None:
        raise UnsafeInputError("its headers lie", where=str(path))

    monkeypatch.setattr("reproducer.binaries.fatbin.architectures_of", lying)
    (made,) = compared([("bad.so", Path("bad.so"))], ["12.0"])
    assert made.status == "unknown"
    assert "bad.so cannot be read (its headers lie)" in made.reason
