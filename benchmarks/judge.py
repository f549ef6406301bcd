"""An independent judge of models: objective, exact intercept, dual value and gap.

For labels y_i in {-1, +1} and columns f_j of X

    P(w, b) = 1/2 sum_i xi_i^2 + lam sum_j |w_j|,    xi_i = max(0, 1 - y_i (x_i'w + b)),
    D(a)    = sum_i a_i - 1/2 sum_i a_i^2            over a >= 0, y'a = 0, |f_j'(y a)| <= lam,

and D(a) <= P(w, b) for all (w, b) and a, so that P - D bounds how far P is from the optimum. The
point a is xi beside the exact intercept, with its two classes brought to one sum, times the best
number that keeps every constraint; every column is read for it.

NumPy and SciPy only: nothing here is shared with the solvers that are judged, and nothing is
screened. Sums are in float64, whatever X is stored in; their rounding is not bounded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Floats = npt.NDArray[np.float64]

_AT_ONCE = 25  # models whose products are taken together
_NUMBERS = 2**24  # numbers of a block of columns, and of its products


class Judged(NamedTuple):
    """One number for each model."""

    primal: Floats  # P(w, b)
    refitted: Floats  # P(w, the exact intercept): never above `primal`
    intercept: Floats  # the exact one
    dual: Floats  # D at the feasible point found

    @property
    def relative_gap(self) -> Floats:
        """(P - D) / P; 0 where P is 0, below which nothing lies."""
        gap = self.primal - self.dual
        return np.divide(gap, self.primal, out=np.zeros_like(gap), where=self.primal > 0)


def judge(X: Any, y: Floats, lams: npt.ArrayLike, W: Any, b: npt.ArrayLike) -> Judged:
    """The models (W[:, k], b[k]) at lams[k].

    Parameters
    ----------
    X : array or CSC matrix of any number type
    y : labels, -1 or +1
    lams, b : K numbers each
    W : m x K, sparse or dense
    """
    lams, b, W = np.asarray(lams, float), np.asarray(b, float), sp.csc_array(W)
    parts = []
    for k in range(0, len(lams), _AT_ONCE):
        some = slice(k, k + _AT_ONCE)
        parts.append(_judge(X, y, lams[some], W[:, some], b[some]))
    return Judged(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _judge(X: Any, y: Floats, lams: Floats, W: sp.csc_array, b: Floats) -> Judged:
    scores = _scores(X, W)
    exact = np.array([exact_intercept(y, u) for u in scores.T])
    penalty = lams * abs(W).sum(axis=0)
    xi = _slacks(y, scores + exact)
    return Judged(
        0.5 * np.sum(_slacks(y, scores + b) ** 2, axis=0) + penalty,
        0.5 * np.sum(xi**2, axis=0) + penalty,
        exact,
        _dual_values(X, y, lams, xi),
    )


def exact_intercept(y: Floats, scores: Floats) -> float:
    """A minimiser of sum_i xi_i^2 over b beside the scores X w, by sorting.

    A row of class + has a slack where b < t_i = y_i - x_i'w, one of class - where b > t_i. Half the
    derivative is piecewise linear and does not decrease; it is at most 0 at the first of the t_i.
    """
    order = np.argsort(y - scores)
    t, plus = (y - scores)[order], y[order] > 0
    n_minus, sum_minus = np.cumsum(~plus), np.cumsum(np.where(plus, 0.0, t))
    n_plus = plus.sum() - np.cumsum(plus)
    sum_plus = t[plus].sum() - np.cumsum(np.where(plus, t, 0.0))
    derivative = (t * n_minus - sum_minus) - (sum_plus - t * n_plus)
    k = np.flatnonzero(derivative <= 0)[-1] if (derivative <= 0).any() else 0
    rows = n_minus[k] + n_plus[k]  # those with a slack between t_k and t_{k+1}
    if rows == 0:
        return float(t[k])
    last = t[min(k + 1, len(t) - 1)]
    return float(np.clip((sum_minus[k] + sum_plus[k]) / rows, t[k], last))


def _slacks(y: Floats, decisions: Floats) -> Floats:
    return np.maximum(0.0, 1.0 - y[:, None] * decisions)


def _scores(X: Any, W: sp.csc_array) -> Floats:
    """X W, from the columns that some model uses."""
    used = np.unique(W.indices)
    return np.asarray(X[:, used].astype(np.float64) @ W.tocsr()[used].toarray())


def _dual_values(X: Any, y: Floats, lams: Floats, xi: Floats) -> Floats:
    """D at the best feasible multiple of the slacks, whose classes are first given one sum."""
    a = xi.copy()
    sums = [a[y == label].sum(axis=0) for label in (1.0, -1.0)]
    for label, total in zip((1.0, -1.0), sums, strict=True):
        a[y == label] *= _ratio(np.minimum(*sums), total)
    along, size = a.sum(axis=0), np.sum(a**2, axis=0)
    largest = _largest_products(X, y[:, None] * a)
    scale = np.minimum(_ratio(along, size), _ratio(lams, largest, otherwise=np.inf))
    return scale * along - 0.5 * scale**2 * size


def _largest_products(X: Any, V: Floats) -> Floats:
    """max_j |f_j'v| for every column v of V."""
    m = X.shape[1]
    values = X.nnz if sp.issparse(X) else X.size
    step = max(1, _NUMBERS // (values // m + V.shape[1] + 1))
    largest = np.zeros(V.shape[1])
    for j in range(0, m, step):
        products = X[:, j : j + step].astype(np.float64).T @ V
        largest = np.maximum(largest, abs(products).max(axis=0))
    return largest


def _ratio(a: Floats, b: Floats, otherwise: float = 0.0) -> Floats:
    """a / b, where b is not 0."""
    return np.divide(a, b, out=np.full_like(b, otherwise), where=b > 0)
