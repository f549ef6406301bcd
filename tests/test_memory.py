"""Memory of `stats` and `correlate`: 64 bytes per column and 16 vectors of rows beside the input.

Each case runs in a process of its own, where the high-water mark of the resident memory is set
back once the input is there. SLACK is for what does not grow with the matrix: stacks and heaps
of the threads, and code that is loaded on first use.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SLACK = 6 * 2**20
INPUT = 500 * 10**6

MEASURE = """
import sys
import numpy as np
import scipy.sparse as sp
from sievesvm.columns import as_columns

def resident(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return 1024 * int(line.split()[1])

def dense(n, m, dtype):
    columns = np.empty((m, n), dtype)
    columns[:] = np.linspace(-1, 2, n, dtype=dtype)
    return columns.T, columns.nbytes

def csc(n, m, dtype, each):
    data, indices = np.empty((m, each), dtype), np.empty((m, each), np.int32)
    data[:] = np.linspace(-1, 2, each, dtype=dtype)
    indices[:] = np.linspace(0, n - 1, each).astype(np.int32)
    indptr = np.arange(0, m * each + 1, each, dtype=np.int32)
    X = sp.csc_array((data.ravel(), indices.ravel(), indptr), shape=(n, m))
    return X, data.nbytes + indices.nbytes

kind, n, m, dtype, *each = sys.argv[1:]
n, m = int(n), int(m)
X, size = dense(n, m, dtype) if kind == "dense" else csc(n, m, dtype, int(each[0]))
c, v = np.linspace(0.5, 1, n), np.linspace(-1, 1, n)
as_columns(X[:50, :50]).stats(c[:50], V=v[:50])  # loads what is loaded on first use

open("/proc/self/clear_refs", "w").write("5")
before = resident("VmRSS")
source = as_columns(X, threads=2)
stats = source.stats(c, V=v)
del stats
source.correlate(v)
print(size, resident("VmHWM") - before)
"""

SHAPES = {  # rows, columns, entries per column
    "dense many columns": ("dense", 50, None),
    "dense many rows": ("dense", 1_000_000, None),
    "csc many columns": ("csc", 10_000, 40),
    "csc many rows": ("csc", 1_000_000, 800_000),
}


def may_reset_the_high_water_mark() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


@pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", "") or not may_reset_the_high_water_mark(),
    reason="needs Linux's /proc/self/clear_refs, and memory that no sanitizer holds back",
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_beside_the_input_there_are_64_bytes_per_column_and_16_vectors(shape, dtype):
    kind, n, each = SHAPES[shape]
    itemsize = int(dtype[1])
    bytes_per_column = n * itemsize if kind == "dense" else each * (itemsize + 4)
    m = -(-INPUT // bytes_per_column)
    command = [sys.executable, "-c", MEASURE, kind, n, m, dtype, *([each] if each else [])]
    run = subprocess.run([str(a) for a in command], capture_output=True, text=True, check=True)
    size, growth = map(int, run.stdout.split())
    assert size >= INPUT
    assert growth <= 64 * m + 16 * 8 * n + SLACK, f"{(growth - 128 * n) / m:.1f} bytes per column"
