"""What users hand in beside the matrix, checked: labels, weights, factors, coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .columns import Floats

_LARGEST_WEIGHT = 1e150  # and its inverse the smallest, but for 0

PenaltyFactor = npt.ArrayLike | Mapping[Any, float] | None


def labels(y: npt.ArrayLike, n: int) -> tuple[Floats, npt.NDArray[Any]]:
    """Return -1 or +1 for each row, and the classes these stand for in sorted order.

    A single class is +1, unless it is a number that is not positive (or False).
    """
    if np.ma.isMaskedArray(y) and np.ma.is_masked(y):
        raise ValueError("y is a masked array with masked labels: leave out those rows.")
    try:
        values = np.asarray(y)
    except ValueError:
        raise ValueError("y must be a vector of labels, but its parts differ in length.") from None
    if values.ndim != 1:
        raise ValueError(
            f"y has shape {values.shape}, but one label per row is needed: a vector of length {n}."
        )
    _check_length("y", "label", len(values), n)
    _check_labels_present(values)
    try:
        classes = np.unique(values)
    except TypeError:
        raise ValueError("y mixes labels of different types, which cannot be compared.") from None
    if len(classes) > 2:
        shown = ", ".join(repr(c) for c in classes[:3].tolist())
        raise ValueError(
            f"y has {len(classes)} different labels ({shown}, ...), but a linear SVM separates "
            "two classes. Choose two, or one against the rest: y == label."
        )
    if len(classes) == 2:
        return np.where(values == classes[1], 1.0, -1.0), classes
    number = values.dtype.kind in "biuf"
    sign = -1.0 if number and len(classes) == 1 and not classes[0] > 0 else 1.0
    return np.full(n, sign), classes


def _check_labels_present(values: npt.NDArray[Any]) -> None:
    if values.dtype.kind == "f":
        bad = ~np.isfinite(values)
    elif values.dtype.kind == "M":
        bad = np.isnat(values)
    elif values.dtype.kind in "OT":
        bad = np.array([_is_missing(value) for value in values], dtype=bool)
    else:
        return
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"y has no valid label in row {row} (it is {values[row]!r}). Leave out rows without "
            "a label, or give them sample_weight 0 and any label."
        )


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # a missing value that compares to neither true nor false
        return True


def row_weights(weights: npt.ArrayLike | None, n: int) -> Floats | None:
    """Return the weights of the rows; None stands for ones."""
    if weights is None:
        return None
    c = _numbers(weights, "sample_weight").copy()
    if c.ndim == 0:
        c = np.full(n, float(c))
    _check_vector("sample_weight", "weight", c, n)
    _check_each(c, np.isfinite(c), "sample_weight", "row", "is not finite")
    _check_each(c, c >= 0, "sample_weight", "row", "is negative")
    usable = (c == 0) | ((c >= 1.0 / _LARGEST_WEIGHT) & (c <= _LARGEST_WEIGHT))
    _check_each(c, usable, "sample_weight", "row", "is too small or too large to be squared")
    return c


def column_labels(X: Any) -> list[Any] | None:
    """Return the labels a data frame gives its columns, of whatever type; None without them."""
    columns = getattr(X, "columns", None)
    return None if columns is None else list(columns)


def factors(given: PenaltyFactor, m: int, labels: list[Any] | None) -> Floats:
    """Return the penalty factor of every column.

    `given` is an array, or a mapping from column labels (or column numbers, where X has none) to
    factors; a series with the labels of X as its index is such a mapping.
    """
    if given is None:
        return np.broadcast_to(1.0, m)
    given = _as_mapping(given, labels)
    if isinstance(given, Mapping):
        v = np.ones(m)
        positions = _positions(given, m, labels)
        v[positions] = _numbers(list(given.values()), "penalty_factor")
    else:
        v = _numbers(given, "penalty_factor").copy()
        _check_vector("penalty_factor", "factor", v, m)
    _check_each(v, ~np.isnan(v), "penalty_factor", "feature", "is not a number")
    _check_each(v, v >= 0, "penalty_factor", "feature", "is negative")
    return v


def _as_mapping(given: Any, labels: list[Any] | None) -> Any:
    """Return a series with names for its index as a mapping, where X has names; others as is."""
    index = getattr(given, "index", None)
    if labels is None or index is None or callable(index):
        return given
    named = all(isinstance(label, str) for label in index)
    return dict(zip(index, given, strict=True)) if named else given


def _positions(keys: Iterable[Any], m: int, labels: list[Any] | None) -> list[int]:
    """Where the keys of a mapping are: labels first, then numbers unless labels are numbers."""
    named = labels is not None and labels != list(range(m))
    place = {label: j for j, label in enumerate(labels)} if named and labels else {}
    numbers_count = not named or all(isinstance(label, str) for label in place)
    found = []
    for key in keys:
        is_number = isinstance(key, (int, np.integer)) and not isinstance(key, bool)
        if key in place and not isinstance(key, bool):
            if labels is not None and len(place) < m and labels.count(key) > 1:
                raise ValueError(f"penalty_factor names {key!r}, but X has several such columns.")
            found.append(place[key])
        elif is_number and numbers_count and 0 <= key < m:
            found.append(int(key))
        elif named:
            raise ValueError(f"penalty_factor names {key!r}, which is not a column of X.")
        else:
            raise ValueError(
                f"penalty_factor has the key {key!r}, but the columns of X have no names: use "
                f"column numbers in 0..{m - 1}."
            )
    return found


def coefficients(w: Any, m: int) -> Floats:
    """Return w as a dense vector of length m; a sparse column is accepted."""
    dense = w.toarray().ravel() if sp.issparse(w) else _numbers(w, "w")
    dense = dense.ravel() if dense.ndim == 2 and 1 in dense.shape else dense
    _check_vector("w", "coefficient", dense, m)
    _check_each(dense, np.isfinite(dense), "w", "feature", "is not finite")
    return np.ascontiguousarray(dense, dtype=np.float64)


def row_vector(values: npt.ArrayLike, name: str, n: int) -> Floats:
    """Return one finite number per row."""
    vector = _numbers(values, name)
    _check_vector(name, "number", vector, n)
    _check_each(vector, np.isfinite(vector), name, "row", "is not finite")
    return vector


def positive_lam(lam: Any, name: str = "lam") -> float:
    value = number(lam, name)
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a positive number, but it is {lam!r}.")
    return value


def finite(value: Any, name: str) -> float:
    checked = number(value, name)
    if not np.isfinite(checked):
        raise ValueError(f"{name} must be a finite number, but it is {value!r}.")
    return checked


def number(value: Any, name: str) -> float:
    if isinstance(value, (str, bytes)) or np.ndim(value) != 0:
        raise ValueError(f"{name} must be a number, but it is {value!r}.")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number, but it is {value!r}.") from None


def check_flags(**flags: Any) -> None:
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False, but it is {value!r}.")


def _numbers(values: npt.ArrayLike, name: str) -> Floats:
    if np.ma.isMaskedArray(values) and np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array with masked values: fill them in first.")
    try:
        if np.iscomplexobj(values):
            raise TypeError
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} holds a value that is not a number.") from None


def _check_length(name: str, each: str, found: int, wanted: int) -> None:
    if found != wanted:
        raise ValueError(f"{name} has {found} {each}s, but X needs {wanted}.")


def _check_vector(name: str, each: str, values: Floats, wanted: int) -> None:
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}, but a vector is needed.")
    _check_length(name, each, len(values), wanted)


def _check_each(
    values: Floats, good: npt.NDArray[np.bool_], name: str, place: str, fault: str
) -> None:
    if not good.all():
        at = int(np.argmin(good))
        raise ValueError(f"{name} {fault} at {place} {at}: it is {values[at]}.")
