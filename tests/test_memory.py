"""Memory of a pass and of a path: 64 bytes per column and 16 vectors of rows beside the input.

A path holds the columns that may be active as well, with their Gram matrix and its factor.

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

INPUTS = """
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
"""

A_PASS = """
c, v = np.linspace(0.5, 1, n), np.linspace(-1, 1, n)
as_columns(X[:50, :50]).stats(c[:50], V=v[:50])  # loads what is loaded on first use

open("/proc/self/clear_refs", "w").write("5")
before = resident("VmRSS")
source = as_columns(X, threads=2)
stats = source.stats(c, V=v)
del stats
source.correlate(v)
print(size, resident("VmHWM") - before, 0)
"""

A_PATH = """
from sievesvm.driver import drive
from sievesvm import svm_path
from sievesvm.path import Path, Settings
from sievesvm.problem import Problem, largest_level

rng = np.random.default_rng(1)
values = X.T if kind == "dense" else X.data.reshape(m, -1)
together = max(1, 10**6 // values.shape[1])
for first in range(0, m, together):  # every column its own values
    part = values[first : first + together]
    part *= rng.choice([-1, 1, 0.5, 0.3], part.shape).astype(dtype)
y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
svm_path(rng.standard_normal((50, 50)), y[:50], lams=5)  # loads what is loaded on first use

open("/proc/self/clear_refs", "w").write("5")
before = resident("VmRSS")
problem = Problem.of(X, y)
top = largest_level(problem)
path = Path(problem, np.geomspace(top, 0.8 * top, 10), Settings())
drive(problem.source, [path.run()])
growth = resident("VmHWM") - before
assert [step.status for step in path.steps] == ["converged"] * 10
assert len(path.steps[-1].support) > 0
print(size, growth, path.working.bytes())
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
@pytest.mark.parametrize("work", [A_PASS, A_PATH], ids=["a pass", "a path"])
def test_beside_the_input_there_are_64_bytes_per_column_and_16_vectors(work, shape, dtype):
    kind, n, each = SHAPES[shape]
    itemsize = int(dtype[1])
    bytes_per_column = n * itemsize if kind == "dense" else each * (itemsize + 4)
    m = -(-INPUT // bytes_per_column)
    command = [sys.executable, "-c", INPUTS + work, kind, n, m, dtype, *([each] if each else [])]
    run = subprocess.run([str(a) for a in command], capture_output=True, text=True, check=True)
    size, growth, working = map(int, run.stdout.split())
    assert size >= INPUT
    growth -= working
    assert growth <= 64 * m + 16 * 8 * n + SLACK, f"{(growth - 128 * n) / m:.1f} bytes per column"
