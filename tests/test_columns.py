"""In-memory matrices of all sorts: what is used in place, what is converted, what is refused."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from interrupts import check_interrupt, needs_speed, processor_time
from sievesvm.columns import (
    DenseColumns,
    NotFiniteError,
    SparseColumns,
    as_columns,
    basis,
    feature_names,
)

NUMBERS = ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "i8", "?"]


def some_matrix(dtype: str = "f8", n: int = 30, m: int = 8) -> np.ndarray:
    X = np.random.default_rng(0).integers(0, 5, (n, m))
    return X.astype(dtype)


def as_dense(source: DenseColumns | SparseColumns) -> np.ndarray:
    return source.correlate(np.eye(source.shape[0])).T


def check(X: object, expected: np.ndarray) -> DenseColumns | SparseColumns:
    """X is read as the expected matrix, and neither changed nor shared for writing."""
    source = as_columns(X)
    assert np.array_equal(as_dense(source), np.asarray(expected, dtype=float))
    return source


@pytest.fixture
def copied(caplog: pytest.LogCaptureFixture) -> Callable[[], list[int]]:
    """The numbers of bytes that were said to be copied."""
    caplog.set_level(logging.DEBUG, logger="sievesvm")

    def numbers() -> list[int]:
        found = [re.match(r"copied (\d+) bytes \(.+\)", r.getMessage()) for r in caplog.records]
        return [int(match[1]) for match in found if match]

    return numbers


# ---- in place -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_matrix_in_column_order_is_used_in_place(dtype, copied):
    X = np.asfortranarray(some_matrix(dtype))
    source = check(X, X)
    assert np.shares_memory(source.X, X)
    assert source.dtype == X.dtype
    assert copied() == []


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("form", [sp.csc_array, sp.csc_matrix])
def test_a_csc_matrix_is_used_in_place(dtype, index, form, copied):
    X = form(some_matrix(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    source = check(X, X.toarray())
    assert source.X is X
    assert source.dtype == X.dtype
    assert copied() == []


def test_a_read_only_memory_map_is_used_in_place(tmp_path, copied):
    X = some_matrix("f4")
    np.save(tmp_path / "X.npy", np.asfortranarray(X))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    source = check(mapped, X)
    assert np.shares_memory(source.X, mapped)
    assert not source.X.flags.writeable
    source.stats()
    assert copied() == []


def test_the_memory_mapped_parts_of_a_csc_matrix_are_used_in_place(tmp_path, copied):
    S = sp.csc_array(some_matrix("f4"))
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(S, name))
        parts.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    source = check(sp.csc_array(tuple(parts), shape=S.shape), S.toarray())
    assert np.shares_memory(source.X.data, parts[0])
    assert np.shares_memory(source.X.indices, parts[1])
    source.stats()
    assert copied() == []


@pytest.mark.parametrize(
    "view",
    [
        lambda X: X[:, ::2],
        lambda X: X[:, ::-1],
        lambda X: X[3:20, 2:5],
        lambda X: X[:, 4:5],
        lambda X: np.broadcast_to(X[:, :1], (30, 6)),
    ],
    ids=["every other column", "reversed", "a part", "one column", "one column repeated"],
)
def test_a_view_whose_columns_are_contiguous_is_used_in_place(view, copied):
    X = np.asfortranarray(some_matrix())
    source = check(view(X), view(X))
    assert np.shares_memory(source.X, X)
    assert np.array_equal(as_dense(source.take([0])), view(X)[:, :1])
    assert copied() == []


def test_a_single_row_is_used_in_place(copied):
    X = some_matrix(n=1)
    assert np.shares_memory(check(X, X).X, X)
    assert copied() == []


def test_a_data_frame_of_one_type_is_used_in_place(copied):
    frame = pd.DataFrame(np.asfortranarray(some_matrix()), columns=list("abcdefgh"))
    source = check(frame, frame.to_numpy())
    assert np.shares_memory(source.X, frame.to_numpy())
    assert copied() == []
    assert feature_names(frame) == list("abcdefgh")


def test_a_source_is_itself():
    source = as_columns(some_matrix())
    assert as_columns(source) is source
    assert feature_names(source) is None


# ---- converted once -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_matrix_in_row_order_is_converted_once_in_its_own_type(dtype, copied):
    X = some_matrix(dtype)
    source = check(X, X)
    assert source.dtype == X.dtype
    assert copied() == [X.nbytes]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix])
def test_a_csr_matrix_is_converted_once_in_its_own_type(dtype, form, copied):
    X = form(some_matrix(dtype))
    source = check(X, X.toarray())
    assert source.dtype == X.dtype
    parts = (source.X.data, source.X.indices, source.X.indptr)
    assert copied() == [sum(part.nbytes for part in parts)]


@pytest.mark.parametrize("form", ["coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "?"])
def test_every_other_sparse_format_is_converted(form, dtype, copied):
    X = sp.csr_array(some_matrix(dtype)).asformat(form)
    source = check(X, X.toarray())
    assert source.dtype == X.dtype
    assert len(copied()) == 1


@pytest.mark.parametrize(
    ("given", "read"), [("f2", "f4"), ("u4", "i8"), (">f8", "f8"), (">f4", "f4"), (">i2", "i2")]
)
def test_a_type_not_read_as_it_is_is_converted_exactly(given, read, copied):
    X = some_matrix(given)
    X[0, 0] = np.finfo(given).max if X.dtype.kind == "f" else np.iinfo(given).max
    for order in "CF":
        assert check(np.array(X, order=order), X).dtype == read
    assert copied() == [X.size * np.dtype(read).itemsize] * 2
    if given != "f2":  # which SciPy itself does not take
        for form in (sp.csc_array, sp.csr_array):
            S = form(X.astype(X.dtype.newbyteorder("=")))
            S.data = S.data.astype(given)
            assert check(S, X).dtype == read


@pytest.mark.parametrize(
    "view",
    [lambda X: X[::2], lambda X: X[::-1], lambda X: X[::-1, ::-1], lambda X: X[5:6].T],
    ids=["every other row", "reversed", "both reversed", "a row stood up"],
)
@pytest.mark.parametrize("order", "CF")
def test_views_of_any_layout_are_read(view, order):
    X = np.array(some_matrix(), order=order)
    check(view(X), view(X))


def test_values_that_are_not_aligned_are_read():
    X = some_matrix(n=6)
    raw = np.zeros(X.nbytes + 1, dtype=np.uint8)
    raw[1:] = np.frombuffer(X.tobytes(order="F"), dtype=np.uint8)
    crooked = raw[1:].view(np.float64).reshape((6, 8), order="F")
    assert not crooked.flags.aligned
    check(crooked, X)


def test_lists_matrices_and_frames_of_several_types_are_read():
    X = some_matrix(n=4, m=3)
    check(X.tolist(), X)
    check(X.view(np.matrix), X)
    check(
        pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]}), [[1, 0.5, 1], [2, 1.5, 0]]
    )
    check(pd.DataFrame({"a": [1, 2]}, dtype="Int64"), [[1], [2]])
    check(np.array([[1, 2.5], [True, np.float32(0.5)]], dtype=object), [[1, 2.5], [1, 0.5]])


def test_a_frame_of_sparse_columns_stays_sparse():
    X = some_matrix()
    source = check(pd.DataFrame(X).astype(pd.SparseDtype(float, 0.0)), X)
    assert isinstance(source, SparseColumns)
    check(pd.DataFrame({"sparse": [1.0, 2.0]}), [[1], [2]])


def test_integers_that_no_float_holds_stand_for_the_nearest_float():
    X = np.asfortranarray(np.array([[2**53 + 1], [-(2**62) - 3]]))
    source = check(X, X.astype(float))
    assert source.take([0]).X.dtype == np.int64
    assert as_columns(sp.csc_array(X)).correlate([1.0, 0.0])[0] == 2.0**53


# ---- sparse entries in any order ----------------------------------------------------------------


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_entries_in_any_order_and_repeated_are_put_in_order_and_added(data):
    n, m = 5, 4
    place = st.tuples(st.integers(0, n - 1), st.integers(0, m - 1))
    places = data.draw(st.lists(place, max_size=30))
    dtype = data.draw(st.sampled_from(["f8", "f4", "i1", "u1", "i8"]))
    values = np.array(data.draw(st.lists(st.integers(0, 127), min_size=30, max_size=30)), dtype)
    rows, cols = (np.array([p[axis] for p in places], dtype=np.int64) for axis in (0, 1))
    values = values[: len(places)]
    expected = np.zeros((n, m))
    np.add.at(expected, (rows, cols), values.astype(float))
    coo = sp.coo_array((values, (rows, cols)), shape=(n, m))
    order = np.argsort(cols, kind="stable")
    indptr = np.searchsorted(cols[order], np.arange(m + 1))
    csc = sp.csc_array((values[order], rows[order], indptr), shape=(n, m))
    order = np.argsort(rows, kind="stable")
    indptr = np.searchsorted(rows[order], np.arange(n + 1))
    csr = sp.csr_array((values[order], cols[order], indptr), shape=(n, m))
    for X in (coo, csc, csr):
        before = [part.tobytes() for part in (X.data, *X.nonzero())]
        source = check(X, expected)
        assert before == [part.tobytes() for part in (X.data, *X.nonzero())]
        assert np.array_equal(source.stats().nonzeros, (expected != 0).sum(axis=0))


def test_the_word_of_the_user_that_entries_are_in_order_is_not_trusted(copied):
    X = sp.csc_array(([1.0, 2.0, 3.0], [2, 0, 1], [0, 2, 3]), shape=(3, 2))
    X.has_sorted_indices = X.has_canonical_format = True
    check(X, [[2, 0], [0, 3], [1, 0]])
    assert len(copied()) == 1
    assert X.indices.tolist() == [2, 0, 1]


def test_repeated_entries_keep_the_type_that_holds_their_sum():
    def repeated(values: list[float], dtype: str) -> SparseColumns:
        X = sp.csc_array((np.array(values, dtype), np.zeros(len(values), int), [0, len(values)]))
        return as_columns(X)

    for values, dtype, kept in (
        ([100, 20], "i1", "i1"),
        ([100, 100], "i1", "i8"),
        ([200, 100], "u1", "i8"),
        ([0.5, 0.25], "f4", "f4"),
        ([1.0, 1e-10], "f4", "f8"),
        ([3e38, 3e38], "f4", "f8"),
        ([1.0, 2.0], "f8", "f8"),
    ):
        source = repeated(values, dtype)
        assert source.dtype == kept
        assert source.correlate([1.0])[0] == np.array(values, dtype).astype(float).sum()
    assert repeated([1, 1], "?").correlate([1.0])[0] == 1


def test_zeros_that_are_stored_are_zeros():
    X = sp.csc_array(([0.0, 5.0, 0.0, 0.0], [0, 1, 0, 2], [0, 2, 4]), shape=(3, 2))
    source = check(X, [[0, 0], [5, 0], [0, 0]])
    assert source.entries() == 4
    stats = source.stats()
    assert stats.nonzeros.tolist() == [1, 0]
    assert stats.gamma[1] == 0


@pytest.mark.parametrize("form", [sp.csc_array, sp.csr_array])
@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("indices", [0, 1, 7]),
        ("indices", [0, -1, 1]),
        ("indices", [0, 1, 2**31 - 1]),
        ("indptr", [1, 2, 3, 3]),
        ("indptr", [0, 3, 1, 3]),
        ("indptr", [0, 1, 2, 9]),
        ("indptr", [0, 1, 3]),
        ("indptr", [0, -1, 2, 3]),
        ("indices", [0, 1]),
        ("data", [1.0]),
    ],
)
def test_a_damaged_sparse_matrix_is_refused(form, part, values):
    X = form(np.eye(3))
    setattr(X, part, np.array(values, dtype=getattr(X, part).dtype))
    with pytest.raises(ValueError, match="X is damaged"):
        as_columns(X)


def test_a_damaged_list_of_entries_is_refused():
    X = sp.coo_array(np.eye(3))
    X.row[1] = 5
    with pytest.raises(ValueError, match="exceeds matrix dimension"):
        as_columns(X)


# ---- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "text"),
    [
        (np.ones(3), "1 dimensions.*reshape"),
        (np.ones((2, 2, 2)), "3 dimensions"),
        (sp.coo_array(np.ones(3)), "1 dimensions"),
        (5.0, "0 dimensions"),
        (np.ones((2, 2), dtype=complex), "complex"),
        (sp.csc_array(np.ones((2, 2), dtype=complex)), "complex"),
        (np.ones((2, 2), dtype=np.uint64), "type uint64.*astype"),
        (np.ones((2, 2), dtype=np.longdouble), "astype"),
        (np.array([["1", "b"]]), "type <U1"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "type datetime64"),
        (np.array([[1.0, 2.0], [3.0, "pear"]], dtype=object), "'pear' in row 1, column 1"),
        (np.array([[1.0, pd.NA]], dtype=object), "<NA> in row 0, column 1.*missing"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), "'x' in row 0, column 1"),
        (np.ma.masked_equal([[1.0, 2.0]], 2.0), "masked"),
    ],
    ids=range(14),
)
def test_what_is_not_a_matrix_of_real_numbers_is_refused_with_the_reason(X, text):
    with pytest.raises(ValueError, match=text):
        as_columns(X)


@pytest.mark.parametrize(
    "X",
    [np.array([[1.0], [None]], dtype=object), pd.DataFrame({"a": [1, None]}, dtype="Int64")],
    ids=["objects", "frame"],
)
def test_a_missing_value_that_becomes_nan_is_named_like_one(X):
    with pytest.raises(NotFiniteError, match=r"NaN in row 1, column 0\..*imputer"):
        as_columns(X).stats()


# ---- the basis of what is not penalised ---------------------------------------------------------


def test_the_basis_is_orthonormal_and_spans_what_it_should():
    rng = np.random.default_rng(0)
    e = rng.random(50)
    Z = rng.normal(size=(50, 3)) * [1e-160, 1, 1e160] + [0, 1e3, 0]
    Q, kept, condition = basis(e, Z, True)
    assert kept == [0, 1, 2]
    np.testing.assert_allclose(Q.T @ Q, np.eye(4), atol=1e-15)
    F = e[:, None] * Z / abs(Z).max(axis=0)
    np.testing.assert_allclose(Q @ (Q.T @ F), F, atol=1e-14)
    np.testing.assert_allclose(Q[:, 0], e / np.linalg.norm(e), rtol=1e-15)
    assert 1 <= condition < 1e5


def test_columns_that_depend_on_those_before_them_are_left_out():
    z = np.arange(6.0)
    Z = np.column_stack([np.ones(6), z, 0 * z, 3 * z - 2, z**2])
    assert basis(np.ones(6), Z, True).kept == [1, 4]
    assert basis(np.ones(6), Z, False).kept == [0, 1, 4]
    assert basis(np.zeros(6), Z, True).kept == []


def test_the_condition_is_one_without_unpenalised_columns():
    none = np.empty((5, 0))
    assert basis(np.ones(5), none, True).condition == 1
    assert basis(np.ones(5), none, False).condition == 1


@pytest.mark.parametrize("angle", [1.0, 1e-2, 1e-5])
def test_the_span_is_off_by_no_more_than_the_condition_says(angle):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(40, 3))
    Z[:, 2] = Z[:, 0] + Z[:, 1] + angle * Z[:, 2]
    Q, _, condition = basis(np.ones(40), Z, True)
    change = 1e-9
    moved = basis(np.ones(40), Z * (1 + change * rng.choice([-1, 1], size=Z.shape)), True).Q
    turned = np.linalg.norm(moved - Q @ (Q.T @ moved), 2)
    assert turned <= condition * change
    assert condition < 50 / angle


# ---- Ctrl-C -------------------------------------------------------------------------------------


@needs_speed
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("operation", ["correlate", "stats"])
def test_long_work_ends_at_ctrl_c(operation, threads):
    rng = np.random.default_rng(3)
    X = rng.integers(-100, 100, (2000, 20_000), dtype=np.int8).T
    V = rng.standard_normal((20_000, 256))
    source = as_columns(X, threads=threads)
    work = {"correlate": lambda: source.correlate(V), "stats": lambda: source.stats(V=V)}
    check_interrupt(work[operation], processor_time(work[operation]))
