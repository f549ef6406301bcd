"""The design matrix as columns, wherever they live.

Algorithms know four things of a matrix: what it is (`shape`, `dtype`, `error_bound`), the
statistics of its columns (`stats`), products with its columns (`correlate`), and some of its
columns themselves (`take`). A new kind of storage is one small subclass of `ColumnSource`; the
contract it has to meet is `tests/test_columns_contract.py`.
"""

from __future__ import annotations

import logging
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

# A column of Z is dropped where less than this part of its length lies off the span of the others.
COLLINEAR = 1e-7

# Value types that the core reads as they are, and exact conversions for those it does not read.
_READ_AS = {np.dtype(t): np.dtype(t) for t in ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "i8")}
_READ_AS |= {np.dtype("f2"): np.dtype("f4"), np.dtype("u4"): np.dtype("i8")}

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
    condition: float  # how much the basis magnifies rounding errors; 1 without Z


@dataclass(frozen=True)
class ColumnStats:
    """What the rules need of each column, for weights c and e = sqrt(c).

    With several weight vectors every array but `nonzeros` has one row for each.

    Attributes
    ----------
    mean : sum_i c_i f_i / sum_i c_i
    norm1, norm2 : 1-norm and 2-norm of e f
    gamma : distance of e f to the span of e (with an intercept) and of e z for z in Z
    nonzeros : number of entries that are not zero
    products : f_j'v for each column v of V; shape (m, r)
    """

    mean: Floats
    norm1: Floats
    norm2: Floats
    gamma: Floats
    nonzeros: Ints
    products: Floats


class ColumnSource(ABC):
    """An n x m matrix that can be read by columns.

    Guarantees every subclass gives:

    - `stats`, `correlate` and `take` stand for one and the same real matrix, bit for bit.
    - f_j'v is a sum in an order fixed by the column: the same bits whatever the other columns
      asked for, the number of vectors, the threads and where the data lie.
    - |computed f_j'v - exact| <= error_bound.relative() * ||f_j|| ||v||.
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
    def _stats(self, weightings: list[_Weighting], V: Floats) -> list[ColumnStats]: ...

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
        ValueError
            If an entry is NaN or infinite; the first, by column, is named.
        """
        n = self.shape[0]
        several = C is not None and np.ndim(C) == 2
        weights: list[Floats | None] = [None]
        if C is not None:
            weights = list(_vectors(C, n, "C").T)
        Z = np.empty((n, 0)) if Z is None else _vectors(Z, n, "Z")
        V = np.empty((n, 0)) if V is None else _vectors(V, n, "V")
        found = self._stats([_Weighting.of(n, c, Z, centre) for c in weights], V)
        self.entries_read += self.entries()
        if not several:
            return found[0]
        mean, norm1, norm2, gamma = (
            np.stack([getattr(s, name) for s in found])
            for name in ("mean", "norm1", "norm2", "gamma")
        )
        return ColumnStats(mean, norm1, norm2, gamma, found[0].nonzeros, found[0].products)

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

    A column of Z that depends on those before it, to `COLLINEAR`, is left out.
    """
    columns = [e] if centre else []
    columns += list((e[:, None] * Z).T)
    Q = np.empty((len(e), len(columns)), order="F")
    rank, kept, condition = 0, [], 1.0
    for k, column in enumerate(columns):
        length = np.linalg.norm(column)
        if not length > 0:
            continue
        rest = column / length
        for _ in range(2):  # once more removes what the first time left
            rest = rest - Q[:, :rank] @ (Q[:, :rank].T @ rest)
        off = float(np.linalg.norm(rest))
        if not off > COLLINEAR:
            continue
        Q[:, rank] = rest / off
        rank += 1
        if centre and k == 0:
            continue
        kept.append(k - centre)
        condition = max(condition, (rank + 1) / off)
    return Basis(np.asfortranarray(Q[:, :rank]), kept, condition)


def _vectors(V: npt.ArrayLike, n: int, name: str) -> Floats:
    array = np.asarray(V, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] != n:
        raise ValueError(f"{name} has shape {np.shape(V)}, but the matrix has {n} rows.")
    return array


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
        # A term passes through its product, the additions in its lane, the tree over the lanes
        # and the additions of chunks.
        n = self.shape[0]
        in_lane = -(-min(n, _core.CHUNK) // self._lanes)
        return ErrorBound(2.0**-53, 1 + in_lane + self._lanes // 4 + -(-n // _core.CHUNK))

    def entries(self, columns: Ints | None = None) -> int:
        return self._core.entries(columns)

    def dot(self, w: Floats, columns: Ints | None = None) -> Floats:
        """Return sum_k w_k f_columns[k] (None: all columns); w has one entry per column named."""
        out = np.zeros(self.shape[0])
        if columns is None:
            columns = np.arange(self.shape[1], dtype=np.int64)
        self._core.combine(np.ascontiguousarray(w, dtype=np.float64), columns, out)
        return out

    def _stats(self, weightings: list[_Weighting], V: Floats) -> list[ColumnStats]:
        m, r = self.shape[1], V.shape[1]
        found, tasks = [], []
        for weighting in weightings:
            products = weighting.products(V)
            stats = ColumnStats(
                *(np.empty(m) for _ in range(4)),  # type: ignore[arg-type]
                nonzeros=np.empty(m, dtype=np.int64),
                products=np.empty((m, r)),
            )
            task = _core.StatsTask(
                weighting.e,
                weighting.basis.Q.T,
                self._lay_out(products),
                centred=weighting.centred,
                n_products=products.shape[1],
                mean=stats.mean,
                norm1=stats.norm1,
                norm2=stats.norm2,
                gamma=stats.gamma,
                nonzeros=stats.nonzeros,
                extra=stats.products,
            )
            found.append(stats)
            tasks.append(task)
        row, column = self._core.stats(tasks, self._threads_for(len(tasks) * (2 + r)))
        if column >= 0:
            raise NotFiniteError(row, column)
        return found

    def _correlate(self, V: Floats, columns: Ints | None) -> Floats:
        count = self.shape[1] if columns is None else len(columns)
        out = np.empty((count, V.shape[1]))
        threads = self._threads_for(V.shape[1], columns)
        self._core.correlate(self._lay_out(V), columns, out, threads)
        return out

    def _threads_for(self, vectors: int, columns: Ints | None = None) -> int:
        return self.threads if self.entries(columns) * vectors > _SMALL_WORK else 1

    # Additions that go on side by side within a chunk, and how the core wants its vectors.
    _lanes: int

    @staticmethod
    @abstractmethod
    def _lay_out(V: Floats) -> Floats: ...


class DenseColumns(InMemoryColumns):
    """A dense array whose columns are contiguous (Fortran order), used in place."""

    _lanes = _core.LANES

    def __init__(self, X: npt.NDArray[Any], threads: int | None = None) -> None:
        readable = X.view(np.uint8) if X.dtype == bool else X
        super().__init__(_core.Columns.dense(readable), X.shape, X.dtype, threads)
        self.X = X

    def _take(self, columns: Ints) -> DenseColumns:
        return DenseColumns(self.X.T[columns].T, self.threads)

    @staticmethod
    def _lay_out(V: Floats) -> Floats:
        return np.ascontiguousarray(V.T)


class SparseColumns(InMemoryColumns):
    """A CSC matrix with sorted row numbers, used in place."""

    _lanes = _core.SPARSE_LANES

    def __init__(self, X: sp.csc_array | sp.csc_matrix, threads: int | None = None) -> None:
        data = X.data.view(np.uint8) if X.data.dtype == bool else X.data
        indptr = np.ascontiguousarray(X.indptr, dtype=np.int64)
        core = _core.Columns.csc(data, X.indices, indptr, X.shape[0])
        super().__init__(core, X.shape, X.dtype, threads)
        self.X = X

    def _take(self, columns: Ints) -> SparseColumns:
        return SparseColumns(self.X[:, columns], self.threads)

    @staticmethod
    def _lay_out(V: Floats) -> Floats:
        return np.ascontiguousarray(V)


class NotFiniteError(ValueError):
    """An entry of the matrix is NaN or infinite; `row` is -1 where only their sum overflows."""

    def __init__(self, row: int, column: int, name: str | None = None) -> None:
        self.row, self.column = row, column
        where = f"column {column}" + ("" if name is None else f" ({name!r})")
        if row < 0:
            text = f"The values of X in {where} are too large: their sum is not finite. Rescale it."
        else:
            text = (
                f"X has a value that is NaN or infinite in row {row}, {where}. Every value must "
                "be finite: fill in missing values first, for example with "
                "sklearn.impute.SimpleImputer."
            )
        super().__init__(text)


def as_columns(X: Matrix, threads: int | None = None) -> ColumnSource:
    """Return X as a ColumnSource, without a copy where its columns are already contiguous.

    Fortran-ordered arrays (read-only memory maps as well) and CSC matrices are used in place, in
    their own number type. C-ordered arrays and other sparse formats are converted to columns
    once, in their own type; a message at level DEBUG of the logger "sievesvm" says how many bytes
    that takes. Sparse entries out of order, or given more than once (they are added), are put in
    order in a copy.
    """
    if isinstance(X, ColumnSource):
        return X
    if sp.issparse(X):
        return _from_sparse(X, threads)
    return _from_dense(X, threads)


def _from_dense(X: Matrix, threads: int | None) -> DenseColumns:
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"X has {array.ndim} dimensions, but a matrix of rows (samples) and columns (features) "
            "is needed. Reshape a single feature with X.reshape(-1, 1)."
        )
    array = _readable(array)
    itemsize = array.dtype.itemsize
    in_place = array.flags.aligned and (
        array.size == 0
        or (array.shape[0] == 1 or array.strides[0] == itemsize)
        and array.strides[1] % itemsize == 0
    )
    if not in_place or array.size == 0:
        array = _noted(np.array(array, order="F"), "rows to columns")
    return DenseColumns(array, threads)


def _from_sparse(X: Any, threads: int | None) -> SparseColumns:
    data = _readable(X.data) if X.format in ("csc", "csr") else None
    if X.format != "csc":
        X = X.tocsc()
        _noted(X.data, f"sparse columns, {X.indices.nbytes} bytes of row numbers beside")
        data = _readable(X.data)
    if data is not X.data or X.indices.dtype.kind != "i":
        X = sp.csc_array((data, X.indices, X.indptr), shape=X.shape)
    source = SparseColumns(X, threads)
    fault = source._core.order_fault()
    if fault == 2:
        raise ValueError(f"X has a row number outside 0..{X.shape[0] - 1}: the matrix is damaged.")
    if fault == 1:
        X = X.copy()
        X.has_canonical_format = False
        X.sum_duplicates()
        _noted(X.data, "sparse entries put in order")
        source = SparseColumns(X, threads)
    return source


def _readable(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values in a type the core reads: as they are, or in a copy that is as exact."""
    dtype = values.dtype.newbyteorder("=")
    if dtype == object:
        try:
            return _noted(values.astype(np.float64), "objects to float64")
        except (TypeError, ValueError) as error:
            raise ValueError(f"X holds a value that is not a number: {error}.") from None
    target = np.dtype(bool) if dtype == bool else _READ_AS.get(dtype)
    if target is None:
        raise ValueError(
            f"X holds values of type {values.dtype}, which is not read here. Convert it first, "
            "for example with X.astype(np.float64)."
        )
    if target == values.dtype:
        return values
    return _noted(values.astype(target), f"{values.dtype} to {target}")


def _noted(copy: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
    log.debug("copied %d bytes (%s)", copy.nbytes, what)
    return copy


def feature_names(X: Matrix) -> list[str] | None:
    """Return the column names of a data frame; None for anything else."""
    columns = getattr(X, "columns", None)
    if columns is None or isinstance(X, ColumnSource):
        return None
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None
