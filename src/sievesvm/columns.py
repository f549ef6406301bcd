"""The design matrix as columns, wherever they live.

Algorithms know four things of a matrix: what it is (`shape`, `dtype`, `error_bound`), the
statistics of its columns (`stats`), products with its columns (`correlate`), and some of its
columns themselves (`take`). A new kind of storage is one small subclass of `ColumnSource`; the
contract it has to meet is `tests/test_columns_contract.py`.
"""

from __future__ import annotations

import logging
import math
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from . import _core

log = logging.getLogger("sievesvm")

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Matrix = Any  # whatever as_columns takes: arrays, sparse matrices, data frames, a ColumnSource

# Less than this part of the length of an unpenalised column off the span of the others is refused.
COLLINEAR = 1e-7

# Value types that the core reads as they are, and exact conversions for those it does not read.
# An int64 beyond 2^53 is read as the nearest float64, and stands for that number everywhere.
_READ_AS = {np.dtype(t): np.dtype(t) for t in ("?", "f8", "f4", "i1", "u1", "i2", "u2", "i4", "i8")}
_READ_AS |= {np.dtype("f2"): np.dtype("f4"), np.dtype("u4"): np.dtype("i8")}

# Types wide enough to add repeated sparse entries in, by kind of number. True + True is True.
_ADDED_IN = {"b": np.dtype("?"), "i": np.dtype("i8"), "u": np.dtype("i8"), "f": np.dtype("f8")}

_SMALL_WORK = 250_000  # multiplications below which a second thread costs more than it brings


class ErrorBound(NamedTuple):
    """How far the sums of a source are from exact: `length` additions of round-off `unit`."""

    unit: float
    length: int

    def relative(self, extra: int = 32) -> float:
        """The factor G with |computed - exact| <= G sum_i |a_i b_i|; `extra` more operations."""
        ku = (self.length + extra) * self.unit
        return ku / (1.0 - ku)


class Basis(NamedTuple):
    """An orthonormal basis of the intercept and the unpenalised columns, weighted by e."""

    Q: Floats  # n x rank, Fortran order
    kept: list[int]  # which columns of Z are in it; the others depend on those before them
    condition: float  # the span may be off by this many round-offs; 1 without Z


@dataclass(frozen=True)
class ColumnStats:
    """What the rules need of each column, for weights c and e = sqrt(c).

    With several weight vectors every array but `nonzeros` and `products` has one row for each.
    Where two of them are equal by definition (gamma and deviation without Z) they are one array.

    Attributes
    ----------
    mean : sum_i c_i f_i / sum_i c_i
    norm1, norm2 : 1-norm and 2-norm of e f
    gamma : distance of e f to the span of e (with an intercept) and of e z for z in Z
    deviation : distance of e f to the span of e alone; without an intercept: norm2
    nonzeros : number of entries that are not zero
    products : f_j'v for each column v of V; shape (m, r)
    """

    mean: Floats
    norm1: Floats
    norm2: Floats
    gamma: Floats
    deviation: Floats
    nonzeros: Ints
    products: Floats

    def of_weighting(self, k: int) -> ColumnStats:
        """Return the statistics under the k-th of several weight vectors."""
        return ColumnStats(
            self.mean[k],
            self.norm1[k],
            self.norm2[k],
            self.gamma[k],
            self.deviation[k],
            self.nonzeros,
            self.products,
        )


class ColumnSource(ABC):
    """An n x m matrix that can be read by columns.

    Guarantees every subclass gives:

    - `stats`, `correlate` and `take` stand for one and the same real matrix, bit for bit.
    - f_j'v is a sum in an order fixed by the column: the same bits whatever the other columns
      asked for, the number of vectors, the threads and where the data lie.
    - |computed f_j'v - exact| <= error_bound.relative() * sum_i |f_ij v_i|, row by row: a large
      value in a row of little weight must not count.
    - Nothing handed in is ever modified.

    `entries_read` counts the stored entries read so far; `passes` is that in units of the matrix.
    """

    def __init__(self) -> None:
        self.entries_read = 0

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]: ...

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]: ...

    @property
    @abstractmethod
    def error_bound(self) -> ErrorBound: ...

    @abstractmethod
    def entries(self, columns: Ints | None = None) -> int:
        """Number of stored entries in the columns (None: in all)."""

    @abstractmethod
    def _stats(self, weightings: list[_Weighting], V: Floats) -> ColumnStats:
        """Statistics, with one row per weighting."""

    @abstractmethod
    def _correlate(self, V: Floats, columns: Ints | None) -> Floats: ...

    @abstractmethod
    def _take(self, columns: Ints) -> InMemoryColumns: ...

    @property
    def passes(self) -> float:
        """Entries read by `stats`, `correlate` and `take`, divided by the entries there are."""
        return self.entries_read / max(self.entries(), 1)

    def stats(
        self,
        C: npt.ArrayLike | None = None,
        Z: npt.ArrayLike | None = None,
        V: npt.ArrayLike | None = None,
        *,
        centre: bool = True,
    ) -> ColumnStats:
        """Statistics of every column in one pass over the matrix.

        Parameters
        ----------
        C : weights >= 0 of the rows, (n,) or (n, k) for k weightings at once; None: ones
        Z : unpenalised columns, (n, p)
        V : vectors to multiply with on the way, (n, r)
        centre : whether there is an intercept, so that the span contains the ones

        Raises
        ------
        NotFiniteError
            If an entry of the matrix is NaN or infinite; the first, by column, is named.
        ValueError
            If a weight is negative, or a weight or an entry of Z not finite.
        """
        n = self.shape[0]
        several = C is not None and np.ndim(C) == 2
        weights: list[Floats | None] = [None] if C is None else list(_weights(C, n).T)
        Z = np.empty((n, 0)) if Z is None else _finite(_vectors(Z, n, "Z"), "Z")
        V = np.empty((n, 0)) if V is None else _vectors(V, n, "V")
        found = self._stats([_Weighting.of(n, c, Z, centre) for c in weights], V)
        self.entries_read += self.entries()
        return found if several else found.of_weighting(0)

    def correlate(self, V: npt.ArrayLike, columns: npt.ArrayLike | None = None) -> Floats:
        """Return f_j'v for the columns asked for (sorted; None: all), for one or several vectors.

        Rows on which every vector is zero are not read where leaving them out is cheaper.
        """
        n = self.shape[0]
        one = np.ndim(V) == 1
        matrix = _vectors(V, n, "V")
        wanted = None if columns is None else _column_list(columns, self.shape[1])
        out = self._correlate(matrix, wanted)
        self.entries_read += self.entries(wanted)
        return out[:, 0] if one else out

    def take(self, columns: npt.ArrayLike) -> InMemoryColumns:
        """Return the columns asked for (sorted) as a block in memory."""
        wanted = _column_list(columns, self.shape[1])
        self.entries_read += self.entries(wanted)
        return self._take(wanted)


class _Weighting(NamedTuple):
    """Row weights, ready for the core: e = sqrt(c) and the basis of what is not penalised."""

    e: Floats | None
    basis: Basis
    mean: Floats  # c / sum c
    centred: bool

    @classmethod
    def of(cls, n: int, c: Floats | None, Z: Floats, centre: bool) -> _Weighting:
        if c is None:
            return cls(None, basis(np.ones(n), Z, centre), np.full(n, 1.0 / max(n, 1)), centre)
        total = float(c.sum())
        e = np.sqrt(c)
        return cls(e, basis(e, Z, centre), c / total if total > 0 else c, centre)

    def products(self, V: Floats) -> Floats:
        e = 1.0 if self.e is None else self.e[:, None]
        return np.column_stack([self.mean, e * self.basis.Q, V])


def basis(e: Floats, Z: Floats, centre: bool) -> Basis:
    """Orthonormal basis of the span of e (if `centre`) and of the columns of e Z.

    With an intercept the columns are centred first, which leaves the span as it is and keeps the
    digits of columns far from 0. One that depends on those before it to rounding is left out.

    Raises
    ------
    CollinearError
        If a column depends on the others so nearly, but not to rounding, that float64 cannot tell
        its part of the span from noise.
    """
    n, p = Z.shape
    Q = np.empty((n, p + centre), order="F")
    R = np.zeros((p + centre, p + centre))  # Q R = the columns in the basis, scaled to length 1
    kept: list[int] = []
    rank = 0
    if centre and e.any():
        Q[:, 0], R[0, 0], rank = _unit(e), 1.0, 1
    for k in range(p):
        column = _centred(e, Z[:, k]) if centre else Z[:, k]
        loss = _digits_lost(e, Z[:, k], column)
        rest, coefficients = off_span(Q[:, :rank], _unit(e * column))
        off = math.sqrt(_core.dot(rest, rest))
        if off <= 64 * 2.0**-53 * (rank + 1) * loss:
            continue
        if off <= COLLINEAR:
            raise CollinearError(k, off)
        Q[:, rank] = rest / off
        R[:rank, rank] = coefficients
        R[rank, rank] = off
        rank += 1
        kept.append(k)
    return Basis(np.asfortranarray(Q[:, :rank]), kept, _condition(R[:rank, :rank]))


def off_span(Q: Floats, a: Floats) -> tuple[Floats, Floats]:
    """The part of a off the span of the orthonormal Q, and the coefficients of the part in it."""
    rest, coefficients = a.copy(), np.zeros(Q.shape[1])
    for _ in range(2):  # once more removes what the first time left
        for k, q in enumerate(Q.T):  # which BLAS would do with threads that spin
            along = _core.dot(q, rest)
            rest -= along * q
            coefficients[k] += along
    return rest, coefficients


def _centred(e: Floats, z: Floats) -> Floats:
    """Return z less its weighted mean; exactly 0 where z is constant on the rows of weight."""
    weighted = z[e > 0]
    if weighted.size == 0 or np.all(weighted == weighted[0]):
        return np.zeros_like(z)
    c = (e / e.max()) ** 2
    for _ in range(2):
        z = z - (c @ z) / c.sum()
    return z


def _digits_lost(e: Floats, z: Floats, centred: Floats) -> float:
    """How much of the rounding of z, per unit of it, is rounding of z less its mean."""
    spread = np.max(np.abs(centred[e > 0]), initial=0.0)
    return float(np.max(np.abs(z[e > 0]), initial=0.0) / spread) if spread > 0 else 1.0


def _unit(vector: Floats) -> Floats:
    """Return the vector scaled to length 1; zero stays zero."""
    largest = np.max(np.abs(vector), initial=0.0)
    if not largest > 0:
        return np.zeros_like(vector)
    vector = vector / largest
    return vector / math.sqrt(_core.dot(vector, vector))


def _condition(R: Floats) -> float:
    """Bound on the error of the span per round-off in each column of Q R (columns of length 1).

    Perturbing every column by u turns the span by at most u sqrt(rank) / (smallest singular value).
    """
    rank = len(R)
    return math.sqrt(rank) / float(np.linalg.svd(R, compute_uv=False)[-1]) if rank > 1 else 1.0


def _empty_stats(weightings: list[_Weighting], m: int, r: int) -> ColumnStats:
    """Arrays to write the statistics to; what is equal by definition is one array."""
    rows = (len(weightings), m)
    norm2, gamma = np.empty(rows), np.empty(rows)
    if not any(w.basis.kept for w in weightings):
        deviation = gamma
    elif weightings[0].centred:
        deviation = np.empty(rows)
    else:
        deviation = norm2
    return ColumnStats(
        mean=np.empty(rows),
        norm1=np.empty(rows),
        norm2=norm2,
        gamma=gamma,
        deviation=deviation,
        nonzeros=np.empty(m, dtype=np.int64),
        products=np.empty((m, r)),
    )


def _vectors(V: npt.ArrayLike, n: int, name: str) -> Floats:
    array = np.asarray(V, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] != n:
        raise ValueError(f"{name} has shape {np.shape(V)}, but the matrix has {n} rows.")
    return array


def _finite(array: Floats, name: str) -> Floats:
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"{name} is {array[row, column]} in row {row}, column {column}.")
    return array


def _weights(C: npt.ArrayLike, n: int) -> Floats:
    weights = _finite(_vectors(C, n, "C"), "C")
    if np.any(weights < 0):
        row, column = np.argwhere(weights < 0)[0]
        raise ValueError(f"C has a negative weight in row {row}, column {column}.")
    return weights


def _column_list(columns: npt.ArrayLike, m: int) -> Ints:
    wanted = np.asarray(columns)
    if wanted.size == 0:
        return np.empty(0, dtype=np.int64)
    if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
        raise ValueError("columns must be a vector of column numbers.")
    wanted = np.ascontiguousarray(wanted, dtype=np.int64)
    if np.any(np.diff(wanted) <= 0) or wanted[0] < 0 or wanted[-1] >= m:
        raise ValueError(f"columns must increase strictly and lie in 0..{m - 1}.")
    return wanted


def available_threads() -> int:
    """Processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


class InMemoryColumns(ColumnSource):
    """Columns in memory, used where they lie; dense or sparse is the core's business alone."""

    def __init__(
        self, core: _core.Columns, shape: tuple[int, int], dtype: np.dtype[Any], threads: int | None
    ) -> None:
        super().__init__()
        self._core = core
        self._shape = shape
        self._dtype = dtype
        self.threads = available_threads() if threads is None else threads

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def error_bound(self) -> ErrorBound:
        # A term passes through its product, the additions in its lane, the tree over the lanes,
        # those outside the lanes and those of chunks.
        n = self.shape[0]
        in_lane = -(-min(n, _core.CHUNK) // self._lanes)
        tree = self._lanes.bit_length() - 1
        chunks = -(-n // _core.CHUNK)
        return ErrorBound(2.0**-53, 1 + in_lane + tree + self._outside_lanes + chunks)

    def entries(self, columns: Ints | None = None) -> int:
        return self._core.entries(columns)

    def products(self, vector: Floats, columns: Ints) -> Floats:
        """f_j'vector for columns in order; unlike `correlate` it checks and counts nothing."""
        return self._correlate(vector[:, None], columns)[:, 0]

    def dot(self, w: Floats, columns: Ints | None = None) -> Floats:
        """Return sum_k w_k f_columns[k] (None: all columns); w has one entry per column named."""
        out = np.zeros(self.shape[0])
        if columns is None:
            columns = np.arange(self.shape[1], dtype=np.int64)
        self._core.combine(np.ascontiguousarray(w, dtype=np.float64), columns, out)
        return out

    def _stats(self, weightings: list[_Weighting], V: Floats) -> ColumnStats:
        stats = _empty_stats(weightings, self.shape[1], V.shape[1])
        tasks = []
        for k, weighting in enumerate(weightings):
            extra = V if k == 0 else V[:, :0]
            products = weighting.products(extra)
            own = stats.of_weighting(k)
            tasks.append(
                _core.StatsTask(
                    weighting.e,
                    weighting.basis.Q.T,
                    products,
                    centred=weighting.centred,
                    n_products=products.shape[1],
                    mean=own.mean,
                    norm1=own.norm1,
                    norm2=own.norm2,
                    gamma=own.gamma,
                    deviation=own.deviation,
                    nonzeros=own.nonzeros,
                    extra=own.products if k == 0 else own.products[:, :0],
                )
            )
        row, column, value = self._core.stats(tasks, self._threads_for(2 * len(tasks) + V.shape[1]))
        if column >= 0:
            raise NotFiniteError(row, column, value=value)
        return stats

    def _correlate(self, V: Floats, columns: Ints | None) -> Floats:
        count = self.shape[1] if columns is None else len(columns)
        out = np.empty((count, V.shape[1]))
        threads = self._threads_for(V.shape[1], columns)
        self._core.correlate(np.ascontiguousarray(V), columns, out, threads)
        return out

    def _threads_for(self, vectors: int, columns: Ints | None = None) -> int:
        return self.threads if self.entries(columns) * vectors > _SMALL_WORK else 1

    dense: bool  # whether every entry is stored, zeros as well
    _lanes: int  # additions that go on side by side within a chunk
    _outside_lanes: int  # additions at most that do not


class DenseColumns(InMemoryColumns):
    """A dense array whose columns are contiguous (Fortran order), used in place."""

    dense = True
    _lanes, _outside_lanes = _core.LANES, 0

    def __init__(self, X: npt.NDArray[Any], threads: int | None = None) -> None:
        readable = X.view(np.uint8) if X.dtype == bool else X
        super().__init__(_core.Columns.dense(readable), X.shape, X.dtype, threads)
        self.X = X

    def _take(self, columns: Ints) -> DenseColumns:
        return DenseColumns(np.asfortranarray(self.X[:, columns]), self.threads)


class SparseColumns(InMemoryColumns):
    """A CSC matrix whose row numbers increase strictly in every column, used in place."""

    dense = False
    _lanes, _outside_lanes = _core.SPARSE_LANES, _core.FEW

    def __init__(self, X: sp.csc_array | sp.csc_matrix, threads: int | None = None) -> None:
        super().__init__(_compressed(X), X.shape, X.dtype, threads)
        self.X = X

    def _take(self, columns: Ints) -> SparseColumns:
        return SparseColumns(self.X[:, columns], self.threads)


class CollinearError(ValueError):
    """An unpenalised column that all but depends on the others: `off` of its length is its own."""

    def __init__(self, column: int, off: float, name: str | None = None) -> None:
        self.column, self.off = column, off
        super().__init__(
            f"The unpenalised column {column if name is None else name} depends on the others (and "
            f"the intercept) to {off:.0e} of its length: its effect cannot be told from rounding. "
            "Leave it out, or replace it by its difference from the others."
        )


class NotFiniteError(ValueError):
    """An entry of the matrix is NaN or infinite; `row` is -1 where only their sum overflows."""

    def __init__(
        self, row: int, column: int, name: str | None = None, value: float = math.nan
    ) -> None:
        self.row, self.column, self.value = row, column, value
        where = f"column {column}" + ("" if name is None else f" ({name!r})")
        if row < 0:
            text = f"The values of X in {where} are too large: their sum is not finite. Rescale it."
        elif math.isnan(value):
            text = (
                f"X is NaN in row {row}, {where}. Missing values need an imputer first, for "
                "example sklearn.impute.SimpleImputer."
            )
        else:
            text = f"X is infinite in row {row}, {where}. Every value must be finite."
        super().__init__(text)


def as_columns(X: Matrix, threads: int | None = None) -> ColumnSource:
    """Return X as a ColumnSource, without a copy where its columns are already contiguous.

    Fortran-ordered arrays (read-only memory maps as well) and CSC matrices are used in place, in
    their own number type. C-ordered arrays and other sparse formats are converted to columns
    once, in their own type; a message at level DEBUG of the logger "sievesvm" says how many bytes
    that takes. Sparse entries out of order are put in order, in a copy, and those given more than
    once are added, in a wider number type where the sum needs it. An int64 beyond 2^53 stands for
    the nearest float64. X itself is never changed.
    """
    if isinstance(X, ColumnSource):
        return X
    X = as_matrix(X)
    return _from_sparse(X, threads) if sp.issparse(X) else _from_dense(X, threads)


def as_matrix(X: Matrix) -> Any:
    """Return X as an array or a sparse matrix, of whatever order and number type."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError("X has masked entries. Fill them in first, for example by an imputer.")
    to_coo = getattr(getattr(X, "sparse", None), "to_coo", None)  # a data frame of sparse columns
    if to_coo is not None:
        X = to_coo()
    if not sp.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimensions, but a matrix of rows (samples) and columns (features) "
            "is needed. Reshape a single feature with X.reshape(-1, 1)."
        )
    return X


def _from_dense(X: npt.NDArray[Any], threads: int | None) -> DenseColumns:
    if X.dtype == object:
        X = _numbers(X)
    dtype = _readable(X.dtype)
    if dtype != X.dtype or not _by_columns(X):
        X = np.array(X, dtype=dtype, order="F")
        _note_copy("dense, to columns", X)
    return DenseColumns(X, threads)


def _by_columns(X: npt.NDArray[Any]) -> bool:
    """Whether the core can read the columns of X where they lie."""
    n, m = X.shape
    along, across = X.strides
    fits = (n == 1 or along == X.itemsize) and (m == 1 or across % X.itemsize == 0)
    return X.size > 0 and X.flags.aligned and fits


def _from_sparse(X: Any, threads: int | None) -> SparseColumns:
    X = _plain(X) if X.format in ("csc", "csr") else _joined(X.tocoo(copy=False))
    fault = _compressed(X).order_fault()
    if fault == "outside":
        raise ValueError("X is damaged: an entry has a row or column number outside its shape.")
    if X.format == "csr":
        X = X.tocsc()
        _note_copy("sparse rows to columns", X.data, X.indices, X.indptr)
        fault = _compressed(X).order_fault()
    return SparseColumns(X if fault == "none" else _in_order(X), threads)


def _compressed(X: Any) -> _core.Columns:
    """Return the core's view of a CSC matrix, or of the transpose of a CSR matrix."""
    n, m = X.shape if X.format == "csc" else X.shape[::-1]
    data = X.data.view(np.uint8) if X.data.dtype == bool else X.data
    return _core.Columns.csc(data, X.indices, X.indptr, n, m)


def _plain(X: Any) -> Any:
    """Return the CSC or CSR matrix in arrays that the core reads: as it is, or in exact copies."""
    data, indices, indptr = _read_as(_readable(X.data.dtype), X.data), X.indices, X.indptr
    as_they_are = (np.dtype(np.int32), np.dtype(np.int64))
    index = indices.dtype if indices.dtype in as_they_are else np.dtype(np.int64)
    if indptr.dtype != index:
        index = np.dtype(np.int64)
    indices, indptr = _read_as(index, indices), _read_as(index, indptr)
    if data is X.data and indices is X.indices and indptr is X.indptr:
        return X
    plain = type(X)(X.shape, dtype=data.dtype)
    plain.data, plain.indices, plain.indptr = data, indices, indptr
    return plain


def _joined(X: Any) -> Any:
    """Return the COO matrix as CSC, each entry as it is, in order or not, repeated or not."""
    data = _read_as(_readable(X.data.dtype), X.data)
    as_it_is = sp.coo_array((data, (X.row, X.col)), shape=X.shape)
    as_it_is.has_canonical_format = True  # else tocsc adds repeated entries, in their own type
    columns = as_it_is.tocsc()
    _note_copy("sparse entries to columns", columns.data, columns.indices, columns.indptr)
    return columns


def _in_order(X: Any) -> Any:
    """Return a copy with the entries of each column in order and repeated ones added."""
    X = X.copy()  # which forgets what its maker said of the order
    X.sort_indices()
    if _compressed(X).order_fault() != "none":
        X = _repeated_added(X)
    _note_copy("sparse entries put in order", X.data, X.indices, X.indptr)
    return X


def _repeated_added(X: Any) -> Any:
    """Return X with repeated entries added, in its own type where that holds every sum exactly."""
    wide = X.astype(_ADDED_IN[X.dtype.kind])
    wide.sum_duplicates()
    with np.errstate(over="ignore"):
        narrow = wide.astype(X.dtype)
    return narrow if np.array_equal(narrow.data, wide.data) else wide


def _numbers(X: npt.NDArray[Any]) -> Floats:
    """Return the array of objects as numbers."""
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError):
        (row, column), value = next(at for at in np.ndenumerate(X) if not _is_number(at[1]))
        raise ValueError(
            f"X holds {value!r} in row {row}, column {column}, which is not a number. Code "
            "categories as numbers and fill in missing values first."
        ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _readable(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type the core reads such values in: their own, or another that is as exact."""
    if dtype.kind == "c":
        raise ValueError("X holds complex numbers. Choose real features, for example X.real.")
    target = _READ_AS.get(dtype.newbyteorder("="))
    if target is None:
        raise ValueError(
            f"X holds values of type {dtype}, which is not read here. Convert it first, for "
            "example with X.astype(np.float64)."
        )
    return target


def _read_as(dtype: np.dtype[Any], values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the vector in that type, contiguous: itself where it already is."""
    if values.dtype == dtype and values.flags.c_contiguous and values.flags.aligned:
        return values
    copy = np.array(values, dtype=dtype)
    _note_copy(f"{values.dtype} to {dtype}", copy)
    return copy


def _note_copy(what: str, *arrays: npt.NDArray[Any]) -> None:
    log.debug("copied %d bytes (%s)", sum(array.nbytes for array in arrays), what)


def feature_names(X: Matrix) -> list[str] | None:
    """Return the column names of a data frame; None for anything else."""
    columns = getattr(X, "columns", None)
    if columns is None or isinstance(X, ColumnSource):
        return None
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None
