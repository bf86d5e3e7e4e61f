"""Real compilers: gcc for host code, nvcc for device code, each in a folder of the test's own."""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

KERNEL = """
static __device__ int counter;
__device__ float table[4] = {1, 2, 3, 4};
namespace { __global__ void hidden(int* p) { atomicAdd(&counter, 1); p[threadIdx.x] = counter; } }
__global__ void add(float* a, const float* b, int n) { int i = threadIdx.x; if (i < n) a[i] += b[i] * table[i & 3]; }
void go(float* a, float* b, int* p) { add<<<1, 32>>>(a, b, 32); hidden<<<1, 32>>>(p); }
"""
Compile = Callable[..., Path]


def _run(argv: Sequence[str], folder: Path) -> None:
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def gcc(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles C in a new folder whose name has the length that is asked for."""
    program = shutil.which("gcc")
    if program is None:
        pytest.skip("there is no gcc")

    def compile_c(source: str, *options: str, name: str = "x.so", folder: Path | None = None) -> Path:
        place = folder or tmp_path_factory.mktemp("c")
        (place / "x.c").write_text(source)
        _run([program, "-shared", "-fPIC", *options, "-o", name, str(place / "x.c")], place)
        return place / name

    return compile_c


@pytest.fixture(scope="session")
def nvcc(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles CUDA in a new folder."""
    program = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if program is None:
        pytest.skip("there is no nvcc")

    def compile_cuda(*options: str, name: str, source: str = KERNEL, folder: Path | None = None) -> Path:
        place = folder or tmp_path_factory.mktemp("cuda")
        (place / "k.cu").write_text(source)
        _run([program, *options, "-o", name, str(place / "k.cu")], place)
        return place / name

    return compile_cuda
