"""The contract of a ColumnSource. Every kind of source passes these same tests.

A later kind joins with one line in KINDS: a function from a dense array to the source that
stands for the same matrix.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sievesvm import _core, columns
from sievesvm.columns import ColumnSource, NotFiniteError, as_columns, basis

_files = tempfile.TemporaryDirectory()


def _mapped(array: np.ndarray) -> np.ndarray:
    path = Path(_files.name, f"{len(list(Path(_files.name).iterdir()))}.npy")
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def _mapped_dense(X: np.ndarray) -> ColumnSource:
    return as_columns(_mapped(np.asfortranarray(X)))


def _mapped_csc(X: np.ndarray) -> ColumnSource:
    S = sp.csc_array(X)
    parts = (_mapped(S.data), _mapped(S.indices), _mapped(S.indptr))
    return as_columns(sp.csc_array(parts, shape=X.shape))


def _wide_indices(X: np.ndarray) -> ColumnSource:
    S = sp.csc_array(X)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return as_columns(S)


KINDS: dict[str, Callable[[np.ndarray], ColumnSource]] = {
    "dense": lambda X: as_columns(np.asfortranarray(X)),
    "dense by rows": lambda X: as_columns(np.ascontiguousarray(X)),
    "dense in memory map": _mapped_dense,
    "csc": lambda X: as_columns(sp.csc_array(X)),
    "csc with int64 indices": _wide_indices,
    "csc in memory map": _mapped_csc,
    "csr": lambda X: as_columns(sp.csr_matrix(X)),
}

DTYPES = ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "i8", "?"]

ROUND_OFF = 2.0**-53


@pytest.fixture(params=KINDS, ids=str)
def make(request: pytest.FixtureRequest) -> Callable[[np.ndarray], ColumnSource]:
    return KINDS[request.param]


@pytest.fixture(params=DTYPES)
def dtype(request: pytest.FixtureRequest) -> np.dtype[Any]:
    return np.dtype(request.param)


@pytest.fixture
def threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No product is too small for threads."""
    monkeypatch.setattr(columns, "_SMALL_WORK", 0)


@pytest.fixture
def each_instruction_set() -> Iterator[Iterator[str]]:
    def use() -> Iterator[str]:
        for name in _core.instruction_sets():
            _core.use_instruction_set(name)
            yield name

    yield use()
    _core.use_instruction_set(_core.instruction_sets()[-1])


def matrix(dtype: Any, n: int = 41, m: int = 12, seed: int = 0) -> np.ndarray:
    """Columns of all sorts: zero, constant, off-centre, dense and sparse."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        X = rng.random((n, m)) < 0.4
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        X = rng.integers(info.min, info.max, (n, m), dtype=dtype, endpoint=True)
    else:
        X = rng.normal(size=(n, m)).astype(dtype)
        X[:, 4] += 1e6
        X[:, 5] *= 1e-3
    X[rng.random((n, m)) < np.linspace(0, 0.9, m)] = 0
    X[:, 1] = 0
    X[:, 2] = 1
    return X


def vectors(n: int, r: int, seed: int = 1) -> np.ndarray:
    return frozen(np.random.default_rng(seed).normal(size=(n, r)))


def frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


class Exact(NamedTuple):
    mean: np.ndarray
    norm1: np.ndarray
    norm2: np.ndarray
    deviation: np.ndarray
    gamma: np.ndarray


def _residual(F: np.ndarray, span: list[np.ndarray]) -> np.ndarray:
    """F less its projection on the span, by Gram-Schmidt in long double, each step done twice."""
    orthonormal: list[np.ndarray] = []
    for vector in span:
        rest = vector / max(np.abs(vector).max(), np.longdouble(1e-4000))
        length = np.sqrt(rest @ rest)
        for q in orthonormal * 2:
            rest = rest - q * (q @ rest)
        if np.sqrt(rest @ rest) > columns.COLLINEAR * length:
            orthonormal.append(rest / np.sqrt(rest @ rest))
    for q in orthonormal * 2:
        F = F - np.outer(q, q @ F)
    return F


def exact_stats(X: np.ndarray, c: np.ndarray, Z: np.ndarray, centre: bool) -> Exact:
    X, c, Z = (a.astype(np.float64).astype(np.longdouble) for a in (X, c, Z))
    e = np.sqrt(c)
    F = e[:, None] * X
    ones = [e] if centre else []

    def length(G: np.ndarray) -> np.ndarray:
        return np.sqrt((G**2).sum(axis=0))

    mean = (c @ X) / c.sum()
    gamma = length(_residual(F, ones + list((e[:, None] * Z).T)))
    return Exact(mean, np.abs(F).sum(axis=0), length(F), length(_residual(F, ones)), gamma)


def assert_stats_are_exact(
    source: ColumnSource, X: np.ndarray, c: np.ndarray | None, Z: np.ndarray | None, centre: bool
) -> None:
    """Every number within the error of the sums it comes from."""
    n = X.shape[0]
    found = source.stats(c, Z, centre=centre)
    c = np.ones(n) if c is None else c
    Z = np.empty((n, 0)) if Z is None else Z
    exact = exact_stats(X, c, Z, centre)
    span = basis(np.sqrt(c), Z, centre)
    G = source.error_bound.relative()
    # gamma^2 is at least a quarter of norm2^2 where it comes from squares, so its error is that of
    # norm2^2 and of the coefficients on the basis, over norm2; and the basis itself is rounded.
    off = (1 + 2 * np.sqrt(span.Q.shape[1])) * G + 16 * span.condition * ROUND_OFF
    assert np.all(abs(found.norm1 - exact.norm1) <= G * exact.norm1)
    assert np.all(abs(found.norm2 - exact.norm2) <= G * exact.norm2)
    assert np.all(abs(found.mean - exact.mean) <= G * (c @ abs(X.astype(float))) / c.sum())
    assert np.all(abs(found.deviation - exact.deviation) <= 3 * G * exact.norm2)
    assert np.all(abs(found.gamma - exact.gamma) <= off * exact.norm2)
    assert np.array_equal(found.nonzeros, (X != 0).sum(axis=0))


def weights(name: str, n: int) -> np.ndarray | None:
    rng = np.random.default_rng(2)
    return {
        "no weights": None,
        "positive weights": frozen(rng.random(n) + 0.1),
        "zero weights": frozen((rng.random(n) < 0.6) * 1.0),
        "weights over twelve orders": frozen(10.0 ** rng.uniform(-6, 6, n)),
    }[name]


# ---- what it is ---------------------------------------------------------------------------------


def test_shape_and_type_are_those_of_the_matrix(make, dtype):
    source = make(matrix(dtype))
    assert source.shape == (41, 12)
    assert source.dtype == dtype


def test_it_stands_for_the_matrix_entry_by_entry(make, dtype):
    X = matrix(dtype)
    assert np.array_equal(make(X).correlate(np.eye(len(X))).T, X.astype(np.float64))


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (0, 0), (1, 4), (4, 1)])
def test_any_number_of_rows_and_columns_will_do(make, shape):
    X = np.ones(shape)
    source = make(X)
    n, m = shape
    assert source.shape == shape
    assert np.array_equal(source.correlate(np.full(n, 2.0)), np.full(m, 2.0 * n))
    stats = source.stats()
    assert np.array_equal(stats.norm1, np.full(m, 1.0 * n))
    assert np.array_equal(stats.gamma, np.zeros(m))
    assert source.take(np.arange(m)).shape == shape


# ---- products -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [7, 41, 2500])
def test_a_product_is_exact_up_to_the_error_bound(make, dtype, n):
    """Entry by entry, so that rows of little weight may hold large values."""
    X, V = matrix(dtype, n), vectors(n, 3)
    V = V * 10.0 ** np.random.default_rng(6).uniform(-9, 9, (n, 1))
    source = make(X)
    F, W = X.astype(np.float64).astype(np.longdouble), V.astype(np.longdouble)
    error = abs(source.correlate(V) - F.T @ W)
    assert np.all(error <= source.error_bound.relative() * (abs(F).T @ abs(W)))


def test_a_vector_gives_a_vector_and_a_table_a_table(make):
    source, V = make(matrix("f8")), vectors(41, 2)
    assert source.correlate(V[:, 0]).shape == (12,)
    assert source.correlate(V[:, :1]).shape == (12, 1)
    assert source.correlate(V).shape == (12, 2)
    assert source.correlate(V[:, :0]).shape == (12, 0)
    assert np.array_equal(source.correlate(V[:, 0]), source.correlate(V)[:, 0])


@pytest.mark.parametrize("wanted", [[], [0], [3, 4, 9], [11], range(12)])
def test_products_with_some_columns_are_those_with_all(make, wanted):
    source, V = make(matrix("f4")), vectors(41, 3)
    wanted = np.asarray(wanted, dtype=np.int64)
    assert np.array_equal(source.correlate(V, frozen(wanted)), source.correlate(V)[wanted])


@pytest.mark.parametrize(
    "wanted", [[-1], [12], [3, 3], [4, 2], [1.0], [[0, 1]], [True, False], ["a"]], ids=str
)
def test_a_list_that_does_not_increase_within_the_matrix_is_refused(make, wanted):
    source = make(matrix("f8"))
    with pytest.raises(ValueError, match="columns must"):
        source.correlate(np.ones(41), wanted)
    with pytest.raises(ValueError, match="columns must"):
        source.take(wanted)


def test_a_vector_of_another_length_is_refused(make):
    with pytest.raises(ValueError, match=r"V has shape.*41 rows"):
        make(matrix("f8")).correlate(np.ones(40))


# ---- the same bits ------------------------------------------------------------------------------


def test_the_bits_do_not_depend_on_the_number_of_vectors(make, dtype):
    X, V = matrix(dtype, 2500), vectors(2500, 20)
    source = make(X)
    one_by_one = np.column_stack([source.correlate(v) for v in V.T])
    for r in range(1, 21):
        assert np.array_equal(source.correlate(V[:, :r]), one_by_one[:, :r])


def test_the_bits_do_not_depend_on_the_threads(make, threaded):
    X, V = matrix("f4", 2500, 300), vectors(2500, 3)
    source = make(X)
    runs = []
    for source.threads in (1, 2, 4):
        runs.append((source.correlate(V), source.stats(V=V)))
    for products, stats in runs[1:]:
        assert np.array_equal(products, runs[0][0])
        for name in vars(stats):
            assert np.array_equal(getattr(stats, name), getattr(runs[0][1], name))


def test_the_bits_do_not_depend_on_the_instruction_set(make, dtype, each_instruction_set):
    X, V = matrix(dtype, 2500, 17), vectors(2500, 15)
    c = 1.0 + V[:, 0] ** 2
    source = make(X)
    runs = [(source.correlate(V), source.stats(c, V=V)) for _ in each_instruction_set]
    for products, stats in runs[1:]:
        assert np.array_equal(products, runs[0][0])
        for name in vars(stats):
            assert np.array_equal(getattr(stats, name), getattr(runs[0][1], name))


@pytest.mark.parametrize("zeros", [0.5, 0.97, 1.0])
@pytest.mark.parametrize("r", [1, 2, 9])
def test_the_bits_do_not_depend_on_leaving_out_rows_where_v_is_zero(make, dtype, zeros, r):
    n = 4613
    rng = np.random.default_rng(3)
    V = vectors(n, r) * (rng.random(n) >= zeros)[:, None]
    V[: n // 3] = 0
    source = make(matrix(dtype, n))
    read_all = np.column_stack([source.correlate(np.column_stack([v, np.ones(n)])) for v in V.T])
    assert np.array_equal(source.correlate(V), read_all[:, ::2])


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_bits_do_not_depend_on_the_block(data):
    kind = data.draw(st.sampled_from(list(KINDS)))
    n, m = data.draw(st.integers(1, 90)), data.draw(st.integers(1, 70))
    X = matrix("f8", n, max(m, 6), seed=data.draw(st.integers(0, 99)))
    source, V = KINDS[kind](X), vectors(n, data.draw(st.integers(1, 11)))
    wanted = sorted(data.draw(st.sets(st.integers(0, X.shape[1] - 1))))
    assert np.array_equal(source.correlate(V, wanted), source.correlate(V)[wanted])


@pytest.mark.parametrize("layout", ["dense", "csc"])
def test_the_bits_are_those_in_memory_when_memory_mapped(layout, dtype):
    X, V = matrix(dtype, 2500), vectors(2500, 5)
    here, mapped = KINDS[layout](X), KINDS[f"{layout} in memory map"](X)
    assert np.array_equal(here.correlate(V), mapped.correlate(V))
    assert np.array_equal(here.stats().gamma, mapped.stats().gamma)


# ---- statistics ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weighting",
    ["no weights", "positive weights", "zero weights", "weights over twelve orders"],
)
@pytest.mark.parametrize("centre", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("p", [0, 2], ids=["no Z", "Z"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "?"])
def test_statistics_are_exact_up_to_rounding(make, dtype, weighting, centre, p):
    X = matrix(dtype)
    Z = vectors(len(X), p, seed=5) if p else None
    assert_stats_are_exact(make(X), X, weights(weighting, len(X)), Z, centre)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-30, 1e30, 1e150, 1e300])
def test_statistics_are_exact_at_any_scale(make, scale):
    X = matrix("f8") * scale
    X[:, 4] = matrix("f8")[:, 5] * scale
    for centre in (True, False):
        assert_stats_are_exact(make(X), X, None, None, centre)


def test_the_smallest_numbers_there_are_have_a_length(make):
    X = np.zeros((5, 2))
    X[0, 0] = X[3, 0] = 5e-324
    X[:3, 1] = 5e-324 * 1000
    stats = make(X).stats()
    assert np.all((stats.gamma > 0) & (stats.gamma <= stats.norm2))
    assert np.all(stats.norm2 <= stats.norm1)


@pytest.mark.parametrize("noise", [1e-2, 1e-5, 1e-8])
def test_gamma_does_not_cancel_next_to_an_unpenalised_column(make, noise):
    rng = np.random.default_rng(7)
    Z = rng.normal(size=(41, 2))
    X = matrix("f8")
    X[:, 3] = Z[:, 0] + noise * rng.normal(size=41)
    X[:, 6] = 1e3 + noise * rng.normal(size=41)
    assert_stats_are_exact(make(X), X, None, Z, centre=True)
    stats = make(X).stats(None, Z)
    assert 0.5 * noise < stats.gamma[3] / np.sqrt(41) < 2 * noise
    assert 0.5 * noise < stats.deviation[6] / np.sqrt(41) < 2 * noise


def test_unpenalised_columns_that_depend_on_others_change_nothing(make):
    X, Z = matrix("f8"), vectors(41, 2)
    more = np.column_stack([Z[:, 0], np.full(41, 3.0), Z[:, 1], Z[:, 0] - 2 * Z[:, 1], 0 * Z[:, 0]])
    np.testing.assert_allclose(
        make(X).stats(Z=more).gamma, make(X).stats(Z=Z).gamma, rtol=1e-11, atol=1e-9
    )


def test_a_constant_column_has_gamma_and_deviation_exactly_zero(make, dtype):
    X = matrix(dtype, 43)
    X[:, 3] = X[:, 0].max()
    c = np.ones(43)
    c[[2, 17]] = 0
    X[2, 2] = X[17, 2] = 0  # constant where it counts
    for Z in (None, vectors(43, 1)):
        stats = make(X).stats(c, Z)
        assert np.array_equal(stats.gamma[1:4], np.zeros(3))
        assert np.array_equal(stats.deviation[1:4], np.zeros(3))
    assert np.all(make(X).stats(c, centre=False).gamma[2:4] > 0)


def test_deviation_is_gamma_without_unpenalised_columns(make):
    stats = make(matrix("f8")).stats()
    assert np.shares_memory(stats.deviation, stats.gamma)


def test_deviation_is_norm2_without_an_intercept(make):
    stats = make(matrix("f8")).stats(Z=vectors(41, 1), centre=False)
    assert np.array_equal(stats.deviation, stats.norm2)


@pytest.mark.parametrize("p", [0, 2], ids=["no Z", "Z"])
def test_several_weightings_in_one_pass_are_the_same_as_one_at_a_time(make, p):
    names = ["positive weights", "zero weights", "weights over twelve orders"]
    C = np.column_stack([weights(name, 41) for name in names])
    source, V, Z = make(matrix("f8")), vectors(41, 2), vectors(41, p)
    together = source.stats(frozen(C), Z, V)
    assert source.passes == 1
    assert together.gamma.shape == (3, 12)
    for k in range(3):
        alone = source.stats(C[:, k], Z, V)
        for name in vars(alone):
            rows = getattr(together, name)
            expected = rows if name in ("nonzeros", "products") else rows[k]
            assert np.array_equal(getattr(alone, name), expected)


def test_products_on_the_way_have_the_bits_of_correlate(make, dtype):
    source, V = make(matrix(dtype, 2500)), vectors(2500, 3)
    Z = vectors(2500, 2, seed=8)
    assert np.array_equal(source.stats(None, Z, V).products, source.correlate(V))
    assert source.stats().products.shape == (12, 0)


def test_without_any_weight_everything_is_zero(make):
    stats = make(matrix("f8")).stats(np.zeros(41), vectors(41, 1))
    for name in ("mean", "norm1", "norm2", "gamma", "deviation"):
        assert np.array_equal(getattr(stats, name), np.zeros(12))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_the_first_nan_by_column_is_named_and_an_imputer_recommended(make, dtype, threaded):
    X = matrix(dtype, 41, 300)
    X[7, 5], X[9, 5], X[0, 200] = np.nan, np.inf, np.inf
    with pytest.raises(NotFiniteError, match=r"NaN in row 7, column 5\..*imputer") as caught:
        make(X).stats()
    assert (caught.value.row, caught.value.column) == (7, 5)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_value_is_named(make, value):
    X = matrix("f8")
    X[40, 11] = value
    for c in (None, np.ones(41), np.eye(41)[0]):
        with pytest.raises(NotFiniteError, match=r"infinite in row 40, column 11\."):
            make(X).stats(c)


def test_finite_values_whose_sum_is_not_are_refused(make):
    X = matrix("f8")
    X[:, 3] = 1e308
    with pytest.raises(NotFiniteError, match=r"column 3 are too large") as caught:
        make(X).stats()
    assert caught.value.row == -1


def test_weights_and_unpenalised_columns_are_checked(make):
    source = make(matrix("f8"))
    bad = np.ones(41)
    for value, text in ((np.nan, "nan"), (np.inf, "inf"), (-1.0, "negative")):
        bad[6] = value
        with pytest.raises(ValueError, match=f"C .*{text}.* in row 6, column 0"):
            source.stats(bad)
    bad[6] = np.nan
    with pytest.raises(ValueError, match="Z is nan in row 6, column 0"):
        source.stats(Z=bad)
    for name in "CZV":
        with pytest.raises(ValueError, match=f"{name} has shape"):
            source.stats(**{name: np.ones(40)})


# ---- taking columns -----------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [[], [5], [0, 1, 7, 11], range(12)])
def test_taken_columns_are_the_same_matrix_bit_for_bit(make, dtype, wanted):
    X, V = matrix(dtype, 2500), vectors(2500, 3)
    source, wanted = make(X), np.asarray(wanted, dtype=np.int64)
    block = source.take(wanted)
    assert block.shape == (2500, len(wanted))
    assert block.dtype == dtype
    assert np.array_equal(block.correlate(V), source.correlate(V, wanted))
    assert np.array_equal(block.correlate(np.eye(2500)[:, :50]).T, X[:50, wanted].astype(float))
    assert np.array_equal(block.take(np.arange(len(wanted))).correlate(V), block.correlate(V))


def test_a_block_multiplies_with_coefficients(make):
    X = matrix("f4")
    block = make(X).take(np.arange(12))
    w = np.random.default_rng(6).normal(size=12)
    np.testing.assert_allclose(block.dot(w), X.astype(float) @ w, rtol=1e-12)
    np.testing.assert_allclose(block.dot(w[:2], np.array([5, 3])), X[:, [5, 3]] @ w[:2], rtol=1e-6)


# ---- what it costs and what it leaves alone -----------------------------------------------------


def test_every_entry_read_is_counted(make):
    X = matrix("f8")
    source = make(X)
    whole = source.entries()
    assert source.passes == 0
    source.correlate(vectors(41, 5))
    source.stats()
    assert source.passes == 2
    wanted = np.array([0, 3, 7])
    part = source.entries(wanted)
    source.take(wanted)
    source.correlate(np.ones(41), wanted)
    assert source.entries_read == 2 * whole + 2 * part
    assert source.entries(np.arange(12)) == whole
    assert 0 < part < whole


def test_nothing_handed_in_is_changed(make, dtype):
    X = matrix(dtype)
    before = X.tobytes()
    source, V, C = make(frozen(X)), vectors(41, 3), frozen(np.ones((41, 2)))
    source.stats(C, V, V)
    source.correlate(V, frozen(np.array([1, 3])))
    block = source.take(frozen(np.array([1, 3])))
    block.stats()
    assert X.tobytes() == before
    assert np.array_equal(source.correlate(np.eye(41)).T, X.astype(float))
