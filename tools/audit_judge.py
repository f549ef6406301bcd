"""An independent judge of solutions, in extended precision. It shares no code with the library.

It takes the problem as the user states it,

    min 1/2 sum_i c_i xi_i^2 + lam sum_j v_j |w_j|,   xi_i = max(0, 1 - y_i (x_i'w + b)),

and coefficients from anywhere, improves these by Newton steps on their own support, makes a
feasible point of the dual and says by its gap how well the optimum is known. Everything is in
np.longdouble, but for the small systems of the Newton steps, which are solved in float64 and
refined. Where np.longdouble is float64 the judge is only as exact as that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

LONG = np.longdouble
EPS = float(np.finfo(LONG).eps)
Longs = npt.NDArray[np.longdouble]
Floats = npt.NDArray[np.float64]
Solve = Callable[[Floats, Floats], Floats]

_REFINED = 4  # how often a projection is repeated
_ROUNDS = 8  # Newton steps, and rounds of leaving rows out
_SWAPS = 20
_DEVIATION = 64 * 2.0**-53
_NOTHING = 1e-12  # of P at w = 0: a primal value that is as good as 0
_BALANCED = 1e6 * EPS  # what an equality may be off by, in units of its largest term
_TIGHT = 1e3 * EPS  # a relative gap that is not worth another attempt


@dataclass(frozen=True)
class Reference:
    """The optimum at lam, as well as the judge knows it.

    primal - optimum <= gap, and the dual optimum lies within `radius` of the point that has
    |f_j'(y theta)| = level_j v_j. `theta` is this point as alpha / lam. relative_gap is in units of
    `primal`, or of a 1e-12th of P(0, 0) where that is more. b belongs to the columns of the judge.
    """

    lam: float
    w: Longs
    b: LONG
    primal: LONG
    gap: float
    relative_gap: float
    radius: float
    level: Longs
    theta: Longs


class Judge:
    """A problem in extended precision.

    v holds the penalty factors in the units of X, inf for columns that are left out; gamma, norm
    and `stored` the lengths of the columns e f_j: less their mean (if there is an intercept), as
    they are, and as they are multiplied here.
    """

    def __init__(
        self,
        X: Any,
        y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        penalty_factor: npt.ArrayLike | None = None,
        fit_intercept: bool = True,
        standardize: bool = False,
    ) -> None:
        n, m = X.shape
        self.y = np.asarray(y, dtype=LONG)
        self.c = np.ones(n, LONG) if sample_weight is None else np.array(sample_weight, LONG)
        self.v = np.ones(m, LONG) if penalty_factor is None else np.array(penalty_factor, LONG)
        self.fit_intercept = fit_intercept
        total = self.c.sum()
        if sp.issparse(X) and X.nnz > 0.3 * n * m:  # dense columns can be centred
            X = X.toarray()
        self.X: Any = sp.csc_array(X, dtype=LONG) if sp.issparse(X) else np.asarray(X, dtype=LONG)
        self.norm = np.sqrt(self._squares())
        self.mean = self.X.T @ self.c / total if fit_intercept else np.zeros(m, LONG)
        self.gamma = np.sqrt(self._squares_about(self.mean))
        if fit_intercept and not sp.issparse(X):  # then y'alpha = 0 need not carry the mean
            self.X = self.X - self.mean
            self.shift = self.mean
        else:
            self.shift = np.zeros(m, LONG)
        if standardize:
            usable = np.isfinite(self.v) & (self.gamma > 64 * EPS * self.norm)
            scale = self.gamma / np.sqrt(total)
            self.v = np.where(usable, np.where(usable, self.v, 1) * scale, np.inf)
        self.penalised = (self.v > 0) & np.isfinite(self.v)
        self.stored = np.sqrt(self._squares())

    def adopt(self, v: Floats) -> None:
        """Take the factors of standardised columns as they were rounded elsewhere.

        A deviation in float64 is off by the rounding of the column, not of what is left of it.
        """
        theirs = np.where(self.penalised & np.isfinite(v), v, 0)
        ours = np.where(theirs > 0, self.v, 0)
        known = np.abs(theirs - ours) * self.gamma <= _DEVIATION * self.norm * ours
        self.v = np.where(known & (theirs > 0), theirs, self.v)

    def primal(self, lam: float, w: npt.NDArray[Any], b: float) -> LONG:
        """P(w, b) for an intercept in the units of X."""
        return self._primal(lam, w.astype(LONG), self._slacks(w, b + self.shift @ w))

    def slacks(self, w: npt.NDArray[Any], b: float) -> Longs:
        """xi for an intercept in the units of X."""
        return self._slacks(w.astype(LONG), b + self.shift @ w)

    def products(self, a: npt.NDArray[Any]) -> Longs:
        """f_j'a for every column; exact for the centred columns too if a sums to 0."""
        return np.asarray(np.dot(self.X.T, a) if isinstance(self.X, np.ndarray) else self.X.T @ a)

    def in_factors(self, values: npt.NDArray[Any]) -> Longs:
        """In units of v_j; 0 for columns without a penalty, or left out."""
        return np.divide(values, self.v, out=np.zeros_like(self.v), where=self.penalised)

    def rounding(self, size: LONG) -> Longs:
        """Error, in units of v_j, of the product of e f_j with a vector of that length."""
        return self.in_factors((len(self.y) + 8) * EPS * size * self.stored)

    def correlations(self, p: npt.NDArray[Any]) -> Longs:
        """The products of the columns e f_j with the part of p off the span of what is free."""
        e, p = np.sqrt(self.c), p.astype(LONG)
        N = e[:, None] * self._free()
        for _ in range(_REFINED):
            p = p - N @ _scaled(_least_squares, N.astype(float), N.T @ p)
        return self.products(e * p)

    def reference(self, lam: float, w: npt.NDArray[Any], b: float) -> Reference:
        """The optimum near (w, b), improved by Newton steps and by exchanging like columns."""
        w = w.astype(LONG)
        found = self._improved(self._judged(lam, w, b + self.shift @ w))
        for _ in range(_SWAPS):
            if found.relative_gap <= _TIGHT:
                break
            trial = self._improved(self._judged(lam, *self._swapped(found)))
            if not trial.gap < found.gap:
                break
            found = trial
        return found

    def _improved(self, found: Reference) -> Reference:
        start = found
        for solve in (_solve, _least_squares):
            if found.relative_gap > _TIGHT:
                with np.errstate(all="ignore"):  # steps on a singular system may go anywhere
                    trial = self._judged(found.lam, *self._polished(start, solve))
                found = trial if trial.gap < found.gap else found  # false where it is no number
        return found

    def _swapped(self, found: Reference) -> tuple[Longs, LONG]:
        """The column nearest above its limit takes the place of the active one most like it."""
        j, w = int(np.argmax(found.level)), found.w.copy()
        support = np.flatnonzero((w != 0) & self.penalised)
        support = support[(support != j) & (self.gamma[support] > 0)]
        if len(support) == 0 or not found.level[j] > 0:
            return w, found.b
        columns = self._columns(np.append(support, j))
        columns = np.sqrt(self.c)[:, None] * (columns - (self.mean - self.shift)[[*support, j]])
        along = columns[:, :-1].T @ columns[:, -1]
        most = int(np.argmax(np.abs(along) / self.gamma[support]))
        a = int(support[most])
        w[j] += w[a] * along[most] / self.gamma[j] ** 2
        w[a] = 0
        return w, found.b + (self.mean - self.shift) @ (found.w - w)

    # --- the primal side ---

    def _slacks(self, w: npt.NDArray[Any], b: LONG) -> Longs:
        support = np.flatnonzero(w)
        return np.maximum(0, 1 - self.y * (self._columns(support) @ w[support] + b))

    def _primal(self, lam: float, w: Longs, xi: Longs) -> LONG:
        support = np.flatnonzero(w)
        return self.c @ xi**2 / 2 + LONG(lam) * (self.v[support] @ np.abs(w[support]))

    def _polished(self, start: Reference, solve: Solve) -> tuple[Longs, LONG]:
        """Newton steps on the support of w with its signs, by residuals in extended precision."""
        lam, w, b = start.lam, start.w, start.b
        chosen = np.flatnonzero((w != 0) | (self.v == 0))
        B = self._columns(chosen)
        x, penalty = w[chosen], LONG(lam) * self.v[chosen] * np.sign(w[chosen])
        if self.fit_intercept:
            B = np.column_stack([B, np.ones(len(self.y), LONG)])
            x, penalty = np.append(x, b), np.append(penalty, LONG(0))
        for _ in range(_ROUNDS if len(x) else 0):
            slack = 1 - self.y * (B @ x)
            inside = slack > 0
            part, weights = B[inside], self.c[inside]
            gradient = part.T @ (weights * self.y[inside] * slack[inside]) - penalty
            root = (np.sqrt(weights)[:, None] * part).astype(float)
            step = _scaled(solve, root, gradient)
            if not np.isfinite(step).all():
                break
            x = x + step
        polished = np.zeros_like(w)
        kept = (np.sign(x[: len(chosen)]) == np.sign(w[chosen])) | (self.v[chosen] == 0)
        polished[chosen] = np.where(kept, x[: len(chosen)], 0)
        return polished, x[-1] if self.fit_intercept else LONG(0)

    # --- the dual side ---

    def _judged(self, lam: float, w: Longs, b: LONG) -> Reference:
        xi = self._slacks(w, b)
        alpha = self._balanced(self.c * xi)
        level = self.in_factors(np.abs(self.products(self.y * alpha))) / LONG(lam)
        size = np.sum(alpha[alpha > 0] ** 2 / self.c[alpha > 0])
        most = np.max(level + self.rounding(np.sqrt(size) / LONG(lam)), initial=0)
        tau = min(LONG(1) / most if most > 0 else LONG(1), alpha.sum() / size if size > 0 else 1)
        primal = self._primal(lam, w, xi)
        gap = float(primal - tau * alpha.sum() + tau**2 * size / 2)
        gap = max(gap, 0.0) + (8 + np.sqrt(len(xi))) * EPS * float(primal)  # of the sums
        unpenalised = np.append(w[self.v == 0], b if self.fit_intercept else [])
        gap += 2 * float(np.abs(tau * (self._free().T @ (self.y * alpha))) @ np.abs(unpenalised))
        relative = gap / max(float(primal), _NOTHING * float(self.c.sum()) / 2)
        radius = float(np.sqrt(2 * gap)) / lam
        level, theta = tau * level, tau * alpha / LONG(lam)
        return Reference(lam, w, b, primal, gap, relative, radius, level, theta)

    def _balanced(self, alpha: Longs) -> Longs:
        """alpha on its support, less what keeps it from the equalities; 0 where that fails."""
        N = self.y[:, None] * self._free()
        inside = alpha > 0
        for _ in range(_ROUNDS):
            alpha = np.where(inside, alpha, 0)
            for _ in range(_REFINED):
                off = N[inside].T @ alpha[inside]
                by = _scaled(_least_squares, N[inside].astype(float), off)
                alpha[inside] -= N[inside] @ by
            if np.all(alpha >= 0):
                most = np.max(np.abs(N), axis=0, initial=0) * np.max(alpha, initial=0)
                off = np.abs(N.T @ alpha) > _BALANCED * most
                return np.zeros_like(alpha) if off.any() else alpha
            inside = alpha > 0
        return np.zeros_like(alpha)

    # --- columns ---

    def _free(self) -> Longs:
        """The columns without a penalty, that of the intercept among them."""
        free = self._columns(np.flatnonzero(self.v == 0))
        return np.column_stack([free, np.ones(len(self.y), LONG)]) if self.fit_intercept else free

    def _columns(self, chosen: npt.NDArray[np.int64]) -> Longs:
        part = self.X[:, chosen]
        return part.toarray() if sp.issparse(part) else part

    def _squares(self) -> Longs:
        squared = self.X.multiply(self.X) if sp.issparse(self.X) else self.X * self.X
        return np.asarray(squared.T @ self.c)

    def _squares_about(self, mean: Longs) -> Longs:
        """sum_i c_i (x_ij - mean_j)^2, of which the entries that are not stored are known."""
        if not sp.issparse(self.X):
            return np.asarray(((self.X - mean) ** 2).T @ self.c)
        X, weighted = self.X.copy(), self.c > 0
        X.data = np.ones_like(X.data)
        rest = np.where(X.T @ weighted < weighted.sum(), self.c.sum() - X.T @ self.c, 0)
        X.data = (self.X.data - np.repeat(mean, np.diff(X.indptr))) ** 2
        return np.asarray(X.T @ self.c + rest * mean**2)


def _scaled(solve: Solve, root: Floats, target: Longs) -> Longs:
    """A solution of root'root x = target, the columns of root brought to length one."""
    lengths = np.linalg.norm(root, axis=0)
    lengths[lengths == 0] = 1.0
    root = root / lengths
    with np.errstate(all="ignore"):
        return solve(root.T @ root, (target / lengths).astype(float)).astype(LONG) / lengths


def _solve(H: Floats, target: Floats) -> Floats:
    try:
        return np.linalg.solve(H, target)
    except np.linalg.LinAlgError:
        return np.full(len(target), np.nan)


def _least_squares(H: Floats, target: Floats) -> Floats:
    return np.linalg.lstsq(H, target, rcond=1e-14)[0]
