"""What device code runs on which device, and lists of architectures against what was asked for (R12)."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from reproducer.build.architectures import check_asked, of_wheel, runs_on, unfit, unfit_outputs
from reproducer.documents.lock import Component, Lock
from reproducer.documents.sources import LocalSource
from reproducer.errors import InvalidDocumentError, RebuildError, UnsafeInputError
from tests.build.bench import Bench
from tests.identity.factory import whole_data


@pytest.mark.parametrize(
    ("architecture", "capability", "runs"),
    [
        ("sm_90", "9.0", True),
        ("sm_80", "8.6", True),
        ("sm_86", "8.0", False),
        ("sm_80", "9.0", False),
        ("sm_90", "12.0", False),
        ("sm_120", "12.1", True),
        ("sm_90a", "9.0", True),
        ("sm_100a", "10.3", False),
        ("sm_100f", "10.3", True),
        ("sm_103f", "10.0", False),
        ("sm_100f", "12.0", False),
        ("compute_90", "12.0", True),
        ("compute_120", "9.0", False),
        ("compute_90a", "9.0", True),
        ("compute_90a", "10.0", False),
        ("compute_100f", "10.3", True),
        ("compute_100f", "12.0", False),
        ("sm_86", "8.7", False),
        ("sm_87", "8.9", False),
        ("sm_87", "8.7", True),
        ("compute_80", "8.7", True),
    ],
)
def test_runs_on(architecture: str, capability: str, runs: bool) -> None:  # noqa: FBT001  a column of the table
    """Machine code needs its own major version, PTX a later device, and letters bind both."""
    assert runs_on(architecture, capability) is runs


@pytest.mark.parametrize(("architecture", "capability"), [("sm_9", "9.0"), ("sm_90", "9"), ("90", "9.0"), ("", "")])
def test_no_architecture(architecture: str, capability: str) -> None:
    """What is no architecture or capability is said so."""
    with pytest.raises(InvalidDocumentError, match="is no architecture"):
        runs_on(architecture, capability)


def test_libraries_against_a_device() -> None:
    """R12: each library of which nothing runs on the device is named; one without device code never is."""
    libraries = {"a.so": ("sm_90",), "b.so": None, "c.so": ("sm_80", "compute_80"), "d.so": ()}
    assert unfit(libraries, "12.0") == (
        "a.so: built for sm_90, and the device is 12.0",
        "d.so: built for nothing, and the device is 12.0",
    )
    assert unfit({"a.so": ("sm_90",)}, "9.0") == ()


def test_outputs_of_a_lock_against_a_device() -> None:
    """R12: the outputs of a lock are held against the device by what the lock says they are built for."""
    data = whole_data()
    for component in data["components"]:
        for output in component["outputs"]:
            output.pop("architectures", None)
    output = data["components"][0]["outputs"][0]
    output["architectures"] = ["sm_90a"]
    lock = Lock.from_data(data, where="lock")
    assert unfit_outputs(lock, "9.0") == ()
    assert unfit_outputs(lock, "12.0") == (
        f"{lock.components[0].name}/{output['filename']}: built for sm_90a, and the device is 12.0",
    )


def asking(*architectures: str) -> Component:
    """A component that asks for architectures."""
    source = LocalSource(path="x", files=())
    return Component(
        name="k", kind="cmake", source=source, arguments=(), architectures=architectures or None, outputs=()
    )


def test_neither_less_nor_more() -> None:
    """What the outputs hold together is exactly what was asked for; nobody asking is no fault."""
    check_asked(asking("sm_90", "sm_120"), {"a": ("sm_90",), "b": ("sm_120",), "c": None})
    check_asked(asking(), {"a": ("sm_90",)})
    for outputs, told in (
        ({"a": ("sm_90",)}, "no device code for sm_120"),
        ({"a": ("sm_90", "sm_100", "sm_120")}, "device code for sm_100, which is not asked for"),
        ({"a": None}, "no device code for sm_90, sm_120 .none of its outputs has device code"),
    ):
        with pytest.raises(RebuildError, match=told):
            check_asked(asking("sm_90", "sm_120"), outputs)


def test_wheels_without_device_code(wheel: Any, tmp_path: Path) -> None:
    """Libraries in a wheel are read; one without device code has none, and a broken wheel is no wheel."""
    library = Path(sys.executable).resolve().read_bytes()
    assert of_wheel(wheel("k", "1", {"k/lib.so": library, "k/x.py": b""})) is None
    (tmp_path / "x.whl").write_bytes(b"PK")
    with pytest.raises(UnsafeInputError, match="no wheel that can be read"):
        of_wheel(tmp_path / "x.whl")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc on this machine")
def test_wheels_with_device_code(bench: Bench, wheel: Any) -> None:
    """What the libraries in a wheel are built for, together."""
    found = {}
    for architecture in ("sm_90", "compute_120"):
        component = bench.component(
            "nvcc",
            {"k.cu": "__global__ void k(float *x) { *x = 1; }\n"},
            architectures=(architecture,),
            arguments=("-shared", "-Xcompiler=-fPIC", "-o", "{output}/k.so", "{source}/k.cu"),
        )
        built = bench.build(component, architecture)
        found[f"k/{architecture}.so"] = (built.folder / "k.so").read_bytes()
    assert of_wheel(wheel("k", "1", found)) == ("compute_120", "sm_90")
