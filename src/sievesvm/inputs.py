"""What users hand in beside the matrix, checked: labels, weights, factors, coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .columns import Floats

PenaltyFactor = npt.ArrayLike | Mapping[Any, float] | None


def labels(y: npt.ArrayLike, n: int) -> tuple[Floats, npt.NDArray[Any]]:
    """Return -1 or +1 for each row, and the classes these stand for in sorted order.

    A single class is +1, unless it is a number that is not positive (or False).
    """
    values = np.asarray(y)
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
    elif values.dtype == object:
        bad = np.array([value is None or value != value for value in values], dtype=bool)
    else:
        return
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"y has no valid label in row {row} (it is {values[row]!r}). Leave out rows without "
            "a label, or give them sample_weight 0 and any label."
        )


def row_weights(weights: npt.ArrayLike | None, n: int) -> Floats | None:
    """Return the weights of the rows; None stands for ones."""
    if weights is None:
        return None
    c = _numbers(weights, "sample_weight")
    if c.ndim == 0:
        c = np.full(n, float(c))
    _check_vector("sample_weight", "weight", c, n)
    _check_each(c, np.isfinite(c), "sample_weight", "row", "is not finite")
    _check_each(c, c >= 0, "sample_weight", "row", "is negative")
    return c


def factors(given: PenaltyFactor, m: int, names: list[str] | None) -> Floats:
    """Return the penalty factor of every column, from an array or from a mapping."""
    if given is None:
        return np.ones(m)
    if isinstance(given, Mapping):
        v = np.ones(m)
        for key, value in given.items():
            v[_position(key, m, names)] = value
    else:
        v = _numbers(given, "penalty_factor").copy()
        _check_vector("penalty_factor", "factor", v, m)
    _check_each(v, ~np.isnan(v), "penalty_factor", "feature", "is not a number")
    _check_each(v, v >= 0, "penalty_factor", "feature", "is negative")
    return v


def _position(key: Any, m: int, names: list[str] | None) -> int:
    if isinstance(key, str):
        if names is None:
            raise ValueError(
                f"penalty_factor names the feature {key!r}, but X has no names: hand in a data "
                "frame, or use column numbers."
            )
        if key not in names:
            raise ValueError(f"penalty_factor names {key!r}, which is not a column of X.")
        return names.index(key)
    if not 0 <= key < m:
        raise ValueError(f"penalty_factor has the column number {key}, outside 0..{m - 1}.")
    return int(key)


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


def positive_lam(lam: float, name: str = "lam") -> float:
    if not (np.isfinite(lam) and lam > 0):
        raise ValueError(f"{name} must be a positive number, but it is {lam!r}.")
    return float(lam)


def _numbers(values: npt.ArrayLike, name: str) -> Floats:
    try:
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
