"""The loops of the core against long double, where lanes, chunks and pieces begin and end."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sievesvm import _core
from sievesvm.columns import DenseColumns, InMemoryColumns, SparseColumns

SIZES = [
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    15,
    16,
    17,
    31,
    32,
    33,
    63,
    64,
    65,
    511,
    513,
    2047,
    2048,
    2049,
    4100,
]
DTYPES = ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "i8"]


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request: pytest.FixtureRequest) -> Any:
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(_core.instruction_sets()[-1])


def values(dtype: str, n: int, m: int) -> np.ndarray:
    """Numbers over the whole range of an integer type; no zeros."""
    rng = np.random.default_rng(n)
    if np.dtype(dtype).kind == "f":
        return np.asfortranarray(rng.normal(size=(n, m)).astype(dtype))
    info = np.iinfo(dtype)
    X = rng.integers(info.min, info.max, (n, m), dtype=dtype, endpoint=True)
    X[X == 0] = 1
    if n > 1:
        X[0], X[1] = info.min, info.max
    return np.asfortranarray(X)


def within(computed: np.ndarray, exact: np.ndarray, size: np.ndarray, X: InMemoryColumns) -> bool:
    return bool(np.all(abs(computed - exact) <= X.error_bound.relative(extra=0) * size))


def assert_right(source: InMemoryColumns, X: np.ndarray) -> None:
    """Products and moments, from the values as float64, in long double."""
    n = len(X)
    V = np.random.default_rng(1).normal(size=(n, 15))
    F, W = X.astype(np.float64).astype(np.longdouble), V.astype(np.longdouble)
    assert within(source.correlate(V), F.T @ W, abs(F).T @ abs(W), source)
    stats = source.stats(centre=False)
    assert within(stats.norm1, abs(F).sum(axis=0), abs(F).sum(axis=0), source)
    squares = (F**2).sum(axis=0)
    assert within(stats.norm2**2, squares, 2 * squares, source)
    assert np.array_equal(stats.nonzeros, (X != 0).sum(axis=0))
    w = np.random.default_rng(2).normal(size=X.shape[1])
    scale = abs(F).max(initial=0)
    np.testing.assert_allclose(source.dot(w), X.astype(float) @ w, rtol=0, atol=1e-14 * scale)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dense_columns_of_every_length_and_type(n, dtype, instruction_set):
    X = values(dtype, n, 6)
    assert_right(DenseColumns(X), X)


@pytest.mark.parametrize("index", ["i4", "i8"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sparse_columns_of_every_length_and_type(n, dtype, index, instruction_set):
    X = values(dtype, n, 3)
    X[:, 1][np.random.default_rng(3).random(n) < 0.7] = 0
    S = sp.csc_array(X)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    assert_right(SparseColumns(S), X)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 31, 32, 33, 37, 70])
@pytest.mark.parametrize("r", [1, 2, 3, 7, 8, 12])
def test_dense_blocks_of_every_width(m, r, instruction_set):
    X, V = values("f4", 600, m), np.random.default_rng(0).normal(size=(600, r))
    np.testing.assert_allclose(DenseColumns(X).correlate(V), X.T.astype(float) @ V, atol=1e-11)


@pytest.mark.parametrize("n", SIZES)
def test_the_dot_product_of_two_vectors(n, instruction_set):
    a, b = np.random.default_rng(n).normal(size=(2, n))
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    assert abs(_core.dot(a, b) - exact) <= 1e-13 * abs(a) @ abs(b)


@pytest.mark.parametrize("n", [3, 8, 31, 32, 35, 2048, 2063, 2083, 4100, 100_003])
@pytest.mark.parametrize("layout", ["dense", "csc"])
def test_the_order_of_a_sum_is_the_one_stated(n, layout):
    """Lanes within chunks, a tree over the lanes, the rest, the chunks in order: bits by hand."""
    X, v = values("f8", n, 1), np.random.default_rng(0).normal(size=n)
    sparse, total = layout == "csc", 0.0
    for first in range(0, n, _core.CHUNK):
        piece = slice(first, first + _core.CHUNK)
        total += in_lanes(X[piece, 0], v[piece], plain if sparse else fused, sparse)
    source = SparseColumns(sp.csc_array(X)) if sparse else DenseColumns(X)
    assert source.correlate(v)[0] == total


def in_lanes(x, v, add, sparse: bool) -> float:
    lanes, count = (_core.SPARSE_LANES if sparse else _core.LANES), len(x)
    whole = count if not sparse else count // lanes * lanes if count >= _core.FEW else 0
    sums = [0.0] * lanes
    for i in range(whole):
        sums[i % lanes] = add(float(x[i]), float(v[i]), sums[i % lanes])
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [a + b for a, b in zip(sums[:half], sums[half:], strict=True)]
    for i in range(whole, count):
        sums[0] = add(float(x[i]), float(v[i]), sums[0])
    return sums[0]


def plain(a: float, b: float, c: float) -> float:
    return a * b + c


def fused(a: float, b: float, c: float) -> float:
    """a b + c, rounded once."""
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def test_the_core_refuses_arrays_that_do_not_fit():
    core = DenseColumns(values("f8", 5, 3))._core
    V, out = np.ones((5, 1)), np.empty((3, 1))
    core.correlate(V, None, out, 1)
    for V, columns, out in (
        (np.ones((4, 1)), None, np.empty((3, 1))),
        (np.ones((5, 1)), None, np.empty((2, 1))),
        (np.ones((5, 1)), np.array([3]), np.empty((1, 1))),
        (np.ones((5, 1)), np.array([-1]), np.empty((1, 1))),
        (np.ones((5, 2)), None, np.empty((3, 1))),
    ):
        with pytest.raises(ValueError, match=r"fit the matrix|out of range"):
            core.correlate(V, columns, out, 1)
    with pytest.raises(ValueError, match="contiguous"):
        _core.Columns.dense(np.ones((4, 4)))
    with pytest.raises(ValueError, match="not supported"):
        _core.Columns.dense(np.ones((4, 4), dtype=np.uint64, order="F"))
    with pytest.raises(ValueError, match="instruction set"):
        _core.use_instruction_set("abacus")


@pytest.mark.skipif(
    sys.platform != "linux" or "asan" in os.environ.get("LD_PRELOAD", ""),
    reason="limits the address space, by a size read from /proc",
)
def test_products_go_on_with_the_threads_the_system_grants():
    """With no memory left for the stack of a second thread, the first does all the work."""
    program = (
        "import resource, numpy as np\n"
        "from sievesvm.columns import DenseColumns\n"
        "X = np.ones((2000, 2000), order='F')\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "size = pages * resource.getpagesize() + 2**20\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size, size))\n"
        "assert np.all(DenseColumns(X, threads=4).correlate(np.ones(2000)) == 2000)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
