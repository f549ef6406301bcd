"""Speed of `correlate` against what the machine can read and against SciPy.

    python benchmarks/kernels.py [--check] [--repeat N] [--megabytes N]

Every figure is a median of ratios of two timings taken one after the other, so that whatever else
the machine does slows both. With --check the exit code says whether all requirements are met.
"""

# ruff: noqa: E402  (the number of BLAS threads has to be set before NumPy is imported)
from __future__ import annotations

import argparse
import os

for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"  # the bandwidth is that of one thread

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from statistics import median
from threading import Thread
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sievesvm import _core
from sievesvm.columns import ColumnSource, as_columns

Task = Callable[[], object]


class Result(NamedTuple):
    name: str
    value: float
    relation: str  # ">=" or "<="
    required: float
    note: str = ""
    limit_of_machine: bool = False

    @property
    def verdict(self) -> str:
        more, less = self.value >= self.required, self.value <= self.required
        if more if self.relation == ">=" else less:
            return "met"
        return "machine's limit" if self.limit_of_machine else "MISSED"


def seconds(task: Task) -> float:
    start = perf_counter()
    task()
    return perf_counter() - start


def times(first: Task, second: Task, repeat: int) -> list[tuple[float, float]]:
    """Times of both, in turn, after one run of each that does not count."""
    first()
    second()
    return [(seconds(first), seconds(second)) for _ in range(repeat)]


def product(source: ColumnSource, v: np.ndarray) -> Task:
    return lambda: source.correlate(v)


def scipy_product(X: sp.csc_array, v: np.ndarray) -> Task:
    transposed = X.T
    return lambda: transposed @ v


def ratio(first: Task, second: Task, repeat: int) -> float:
    """Time of the first in units of the second."""
    return median(a / b for a, b in times(first, second, repeat))


def fastest_reads(x: np.ndarray) -> tuple[Task, Task]:
    """The quickest ways found to read every byte of a float64 vector once: one thread, and two."""
    v = np.ones(8192)
    ways: list[Callable[[np.ndarray], object]] = [
        lambda x: x @ x,
        lambda x: x[: len(x) // 8192 * 8192].reshape(-1, 8192) @ v,
        np.sum,
        np.max,
        lambda x: x.view(np.int64).sum(),
        lambda x: np.bitwise_or.reduce(x.view(np.uint8)),
    ]
    alone = [partial(way, x) for way in ways]
    halves = np.split(x[: len(x) // 2 * 2], 2)
    paired = [
        partial(side_by_side, partial(way, halves[0]), partial(way, halves[1])) for way in ways
    ]
    return quickest(alone), quickest(paired)


def side_by_side(first: Task, second: Task) -> None:
    helper = Thread(target=second)
    helper.start()
    first()
    helper.join()


def quickest(tasks: Sequence[Task]) -> Task:
    return min(tasks, key=lambda task: min(seconds(task) for _ in range(5)))


# ---- matrices -----------------------------------------------------------------------------------


def dense(n: int, dtype: str, megabytes: int) -> np.ndarray:
    m = megabytes * 10**6 // (n * np.dtype(dtype).itemsize)
    X = np.empty((m, n), dtype)
    X[:] = np.random.default_rng(0).normal(size=n)
    return X.T


def csc(n: int, counts: np.ndarray) -> sp.csc_array:
    """Columns with the given numbers of entries, at random rows."""
    rng = np.random.default_rng(0)
    rows = [np.sort(rng.choice(n, count, replace=False)) for count in counts]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.concatenate(rows).astype(np.int32)
    return sp.csc_array(
        (rng.random(len(indices)), indices, indptr.astype(np.int32)), (n, len(counts))
    )


def text(n: int = 20_000, m: int = 200_000) -> sp.csc_array:
    """Word counts by Zipf's law, about 250 different words in a document, each in 3 documents."""
    counts = np.clip(25 * n / np.arange(1, m + 1), 3, n).astype(int)
    return csc(n, np.random.default_rng(1).permutation(counts))


def uniform(n: int = 20_000, m: int = 20_000) -> sp.csc_array:
    return csc(n, np.full(m, n // 50))


# ---- measurements -------------------------------------------------------------------------------


def against_bandwidth(repeat: int, megabytes: int) -> Iterator[Result]:
    x = np.ones(megabytes * 10**6 // 8)
    read, both = fastest_reads(x)
    one, two = zip(*times(read, both, repeat), strict=True)
    speeds = [x.nbytes / min(seconds) / 1e9 for seconds in (one, two)]
    print("fastest read: {:.1f} GB/s with one thread, {:.1f} GB/s with two".format(*speeds))
    for dtype in ("float64", "float32"):
        for n in (200, 10_000, 200_000):
            X = dense(n, dtype, megabytes)
            source, v = as_columns(X, threads=1), np.random.default_rng(2).normal(size=n)
            pairs = times(read, product(source, v), repeat)
            value = median(a / b for a, b in pairs) * X.nbytes / x.nbytes
            speed = X.nbytes / min(b for _, b in pairs) / 1e9
            yield Result(
                f"{dtype}, n={n}: part of read bandwidth", value, ">=", 0.8, f"{speed:.1f} GB/s"
            )
            yield of_second_thread(f"{dtype}, n={n}", X, repeat, both, x.nbytes)
            yield of_eight_vectors(f"{dtype}, n={n}", X, repeat)


def against_scipy(repeat: int) -> Iterator[Result]:
    for name, X in (("text", text()), ("uniform", uniform())):
        v = np.random.default_rng(2).normal(size=X.shape[0])
        value = ratio(product(as_columns(X, threads=1), v), scipy_product(X, v), repeat)
        yield Result(f"CSC {name}: time / SciPy's", value, "<=", 1.0, f"{X.nnz} entries")
        yield of_second_thread(f"CSC {name}", X, repeat)
        yield of_eight_vectors(f"CSC {name}", X, repeat)


def of_second_thread(
    name: str, X: Any, repeat: int, both: Task | None = None, nbytes: int = 0
) -> Result:
    """Beside `both`, two readers of `nbytes`: no more can be had than 0.8 of what they read."""
    v = np.random.default_rng(3).normal(size=X.shape[0])
    one, two = (product(as_columns(X, threads=k), v) for k in (1, 2))
    gain = ratio(one, two, repeat)
    if both is None:
        return Result(f"{name}: gain of a second thread", gain, ">=", 1.6)
    part = ratio(both, two, repeat) * X.nbytes / nbytes
    note = f"{part:.2f} of what two threads can read"
    return Result(f"{name}: gain of a second thread", gain, ">=", 1.6, note, part >= 0.8)


def of_eight_vectors(name: str, X: Any, repeat: int) -> Result:
    source = as_columns(X, threads=1)
    V = np.random.default_rng(3).normal(size=(source.shape[0], 8))
    v = np.ascontiguousarray(V[:, 0])
    value = ratio(product(source, V), product(source, v), repeat)
    return Result(f"{name}: time of 8 vectors / of one", value, "<=", 2.5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if a requirement is not met")
    parser.add_argument("--repeat", type=int, default=15, help="timings for each figure")
    parser.add_argument("--megabytes", type=int, default=800, help="size of the dense matrices")
    options = parser.parse_args()
    print(f"instruction set: {_core.instruction_sets()[-1]}, processors: {os.cpu_count()}")
    results = []
    for result in chain(
        against_bandwidth(options.repeat, options.megabytes), against_scipy(options.repeat)
    ):
        results.append(result)
        required = f"{result.relation} {result.required}"
        print(
            f"{result.name:45} {result.value:5.2f}  {required:7} {result.verdict:15} {result.note}",
            flush=True,
        )
    return int(options.check and any(result.verdict == "MISSED" for result in results))


if __name__ == "__main__":
    sys.exit(main())
