"""nvcc compiles one kernel for lists of architectures: what is read back, what is reproducible, and R12."""

import ctypes
import shutil
from pathlib import Path

import pytest

from reproducer.build import place
from reproducer.build.architectures import check_asked, of_files, unfit
from reproducer.build.file_levels import compare_file, compare_files
from reproducer.documents.lock import Component
from reproducer.errors import InvalidDocumentError, RebuildError
from tests.build.bench import Bench, names

pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc on this machine")
KERNEL = """\
#include <cuda_runtime.h>
namespace { __device__ int counter; }
static __global__ void hidden(float *x) { x[threadIdx.x] += 1; }
__global__ void scale(float *x, float f) { x[threadIdx.x] *= f; atomicAdd(&counter, 1); }
extern "C" int run(float *x) {
    scale<<<1, 32>>>(x, 2.0f);
    hidden<<<1, 32>>>(x);
    return (int)cudaGetLastError();
}
"""
SAXPY = """\
#include <cuda_runtime.h>
__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __fadd_rn(__fmul_rn(a, x[i]), y[i]);
}
extern "C" int run(int n, float a, const float *x, float *y) {
    float *on_device;
    size_t size = n * sizeof(float);
    if (cudaMalloc(&on_device, 2 * size)) return (int)cudaGetLastError();
    cudaMemcpy(on_device, x, size, cudaMemcpyHostToDevice);
    cudaMemcpy(on_device + n, y, size, cudaMemcpyHostToDevice);
    saxpy<<<(n + 255) / 256, 256>>>(n, a, on_device, on_device + n);
    cudaMemcpy(y, on_device + n, size, cudaMemcpyDeviceToHost);
    cudaFree(on_device);
    return (int)cudaGetLastError();
}
"""
SHARED = ("-shared", "-Xcompiler=-fPIC", "-lineinfo", "-o", "{output}/lib/kernel.so", "{source}/kernel.cu")
LISTS = [("sm_90", "compute_120"), ("sm_90a", "sm_100", "sm_120", "compute_120")]
MAKES = {
    "kernel.cubin": ("-cubin", ("sm_90",)),
    "kernel.fatbin": ("-fatbin", ("sm_90", "sm_120")),
    "kernel.ptx": ("-ptx", ("compute_90",)),
    "kernel.o": ("-c", ("sm_90", "compute_90")),
}


def kernel(bench: Bench, architectures: tuple[str, ...], **said: object) -> Component:
    """The kernel as a component."""
    said = {"arguments": (*SHARED[:-3], "-o", "{output}/kernel.so", SHARED[-1])} | said
    return bench.component("nvcc", {"kernel.cu": KERNEL}, architectures=architectures, **said)


@pytest.mark.parametrize("architectures", LISTS)
def test_architectures_are_read_back(bench: Bench, architectures: tuple[str, ...]) -> None:
    """The list that is read from the library is the one that was asked for, and `nvcc` stands among the tools."""
    built = bench.build(kernel(bench, architectures))
    assert names(built.outputs) == ["kernel.so"]
    assert set(built.outputs[0].architectures or ()) == set(architectures)
    assert built.outputs[0].device_code_sha256 is not None
    assert built.tools["nvcc"].startswith("Cuda compilation tools, release ")
    check_asked(kernel(bench, architectures), of_files(built.outputs))


def test_another_list_than_the_locks_is_caught(bench: Bench) -> None:
    """A library for other architectures than the lock's is told by its lists; the level is `inputs-identical`."""
    first, second = (bench.build(kernel(bench, each), each[0]).outputs for each in LISTS)
    locked = kernel(bench, LISTS[0]).model_copy(update={"outputs": first})
    assert compare_files(locked, first)[0] == "bytes-identical"
    level, outputs = compare_files(locked, second)
    assert level == "inputs-identical"
    said = {(each.where, each.reason): (each.expected, each.got) for each in outputs[0].differences}
    assert said["kernel.so", "device code for other architectures"] == (
        "compute_120, sm_90",
        "compute_120, sm_90a, sm_100, sm_120",
    )
    assert (
        "device code",
        "the outputs hold no device code for sm_90; device code for sm_90a, sm_100, sm_120, which is not asked for",
    ) in said
    with pytest.raises(RebuildError, match=r"holds no device code for sm_90; .*kernel\.so: compute_120, sm_90a"):
        check_asked(locked, of_files(second))
    lying = locked.model_copy(
        update={"outputs": (first[0].model_copy(update={"architectures": ("sm_100",)}),)}
    )  # the bytes are the lock's, and what the lock says of them is not
    assert compare_files(lying, first)[0] == "inputs-identical"


def test_compiled_for_another_device(bench: Bench) -> None:
    """R12: a library for one architecture is held against the device before anything is launched."""
    built = bench.build(kernel(bench, ("sm_90",)))
    libraries = {each.filename: each.architectures for each in built.outputs}
    assert unfit(libraries, "9.0") == ()
    assert unfit(libraries, "12.0") == ("kernel.so: built for sm_90, and the device is 12.0",)


@pytest.mark.parametrize("name", MAKES)
def test_two_folders_give_the_same_bytes(bench: Bench, name: str) -> None:
    """Cubin, fatbin, PTX and object, with an anonymous namespace in them: byte-identical from two folders."""
    option, architectures = MAKES[name]
    arguments = (option, "-lineinfo", "-o", f"{{output}}/{name}", "{source}/kernel.cu")
    first, second = bench.twice(kernel(bench, architectures, arguments=arguments))
    assert names(first) == [name]
    assert set(first[0].architectures or ()) == set(architectures)
    assert compare_file(first[0], second[0]) == ("bytes-identical", ())


def test_jobs_change_nothing(bench: Bench) -> None:
    """Compiled for two architectures at once or one after the other: the same bytes."""
    one, two = (bench.build(kernel(bench, LISTS[1], jobs=jobs), str(jobs)).outputs for jobs in (1, 2))
    assert one == two


def test_two_folders_without_mounts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be mounted, nvcc writes names that it made from the folder; the device code is the same."""
    monkeypatch.setattr(place, "_POINTS", ())
    first, second = bench.twice(kernel(bench, LISTS[0]))
    level, differences = compare_file(first[0], second[0])
    assert level in ("device-code-identical", "content-identical")
    assert [each.where for each in differences] == ["kernel.so"]


@pytest.mark.parametrize("option", ["-arch=sm_90", "-gencode=arch=compute_90,code=sm_90", "-t", "--keep", "-ccbin"])
def test_what_follows_from_other_keys(bench: Bench, option: str) -> None:
    """An option that another key of the component decides is refused."""
    with pytest.raises(InvalidDocumentError, match=f"arguments name {option.partition('=')[0]}"):
        bench.build(kernel(bench, ("sm_90",), arguments=(option, *SHARED)))


def test_no_such_architecture(bench: Bench) -> None:
    """What nvcc cannot compile for fails with its own words."""
    with pytest.raises(RebuildError, match=r"compiling, failed.*compute_20"):
        bench.build(kernel(bench, ("sm_20",)))


@pytest.mark.skipif(not Path("/dev/nvidia0").exists(), reason="needs a GPU of NVIDIA's")
def test_the_kernel_computes_what_a_processor_does(bench: Bench) -> None:
    """A library that penny built twice, the same bytes both times, gives on the GPU what IEEE 754 gives without one."""
    arguments = ("-shared", "-Xcompiler=-fPIC", "-o", "{output}/saxpy.so", "{source}/saxpy.cu")
    component = bench.component("nvcc", {"saxpy.cu": SAXPY}, architectures=("sm_90",), arguments=arguments)
    first, second = bench.twice(component)
    assert compare_file(first[0], second[0]) == ("bytes-identical", ())
    assert first[0].architectures == ("sm_90",)
    n, a = 100_003, 1.1
    one = ctypes.c_float(a).value
    x, y = ((ctypes.c_float * n)(*(start + index / 7 for index in range(n))) for start in (0, -5000))
    expected = [
        ctypes.c_float(ctypes.c_float(one * left).value + right).value for left, right in zip(x, y, strict=True)
    ]
    library = next((bench.folder / "a").rglob("saxpy.so"))
    assert ctypes.CDLL(str(library)).run(n, ctypes.c_float(a), x, y) == 0
    assert list(y) == expected
