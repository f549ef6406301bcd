r"""Certificates: a feasible dual point from any (w, b), and the duality gap it proves.

Take any w, the exact (b, w0) beside it, and beta = e y xi.  T beta satisfies the equalities up to
rounding, and tau T beta satisfies |g_j'theta| <= v_j for

    tau = min_j v_j / |zeta_j|,   zeta_j = g_j'beta,   one product per feature.

So D(lam tau T beta) <= P* <= P(w, b), and P - D bounds P(w, b) - P*.

Rounding is part of the proof. T beta is not exactly a feasible point, but one lies within `off` of
it (`distance_to_feasible`), tau is taken small enough for that one, and `gap` contains what the
rounding of P and D can amount to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, inputs
from .columns import Basis, CollinearError, Floats, Ints, Matrix, basis
from .problem import (
    Primal,
    Problem,
    Sparse,
    dual_value,
    norm,
    primal_value,
    product_error,
    slack_error,
)

_SPANS = 5  # tries with the span on the rows that are left
_WHOLE = 2.0**20  # sums of some products of smaller whole numbers are exact


@dataclass(frozen=True)
class Certificate:
    """A proof of how far P(w, b) can be from the optimum.

    Attributes
    ----------
    lam : the lambda it holds for
    primal : P(w, b)
    dual : D at the feasible point found
    gap : P(w, b) - P* <= gap, rounding included
    tau : the scale that makes beta feasible: theta = tau beta
    n_features : number of features
    n_products, n_bounds, n_discards : number whose constraint was settled by each kind of proof: a
        product, a bound, a discard. The gap holds if they add up to n_features (`complete`);
        otherwise only for the problem without the features that were not settled.
    """

    lam: float
    primal: float
    dual: float
    gap: float
    tau: float
    n_features: int
    n_products: int
    n_bounds: int = 0
    n_discards: int = 0

    @property
    def complete(self) -> bool:
        """Whether every feature was settled."""
        return self.n_products + self.n_bounds + self.n_discards == self.n_features

    @property
    def relative_gap(self) -> float:
        """The gap in units of P; 0 where P is 0, below which nothing lies."""
        return self.gap / self.primal if self.primal > 0 else 0.0


@dataclass(frozen=True)
class DualPoint:
    """The dual point that (w, b) leads to, with b exact, and what is needed to bound its errors.

    Attributes
    ----------
    w, b : coefficients and intercept, the exact ones of all that is not penalised
    xi, e_xi : slacks, and a bound on |e (xi - exact xi)|
    p : T beta, beta = e y xi
    zeta : g_j'beta for `columns` (None: all columns)
    off : bound on the distance from p to a point with y a >= 0 in the range of T
    scale : the largest tau for which that point, times tau, is feasible for `columns`
    limiting : the column that limits it, -1: none
    """

    problem: Problem
    w: Sparse
    b: float
    xi: Floats
    e_xi: float
    p: Floats
    zeta: Floats
    columns: Ints | None
    off: float
    scale: float
    limiting: int

    @property
    def complete(self) -> bool:
        """Whether every constraint was looked at, so that it may serve at any lambda."""
        return self.columns is None

    @cached_property
    def beta_norm(self) -> float:
        return norm(self.problem.weighed(self.xi))

    @cached_property
    def p_norm(self) -> float:
        return norm(self.p)

    @cached_property
    def s_along(self) -> float:
        """s'p."""
        return _core.dot(self.problem.s, self.p)

    @cached_property
    def omega(self) -> float:
        """At least sum v |w|, whatever the rounding of the sum."""
        terms = len(self.w.support) + 8
        return self.problem.penalty(self.w) * (1.0 + terms * 2.0**-52)

    @cached_property
    def e_p(self) -> float:
        """Bound on the distance from p to the exactly feasible point."""
        return self.off + self.problem.error * self.beta_norm

    @cached_property
    def features(self) -> _core.Features:
        return self.problem.features(self.zeta, self.columns)

    @cached_property
    def limiting_column(self) -> Floats:
        """g_k of the limiting feature, with the sign of its zeta: g_k'theta <= v_k limits tau."""
        problem, k = self.problem, self.limiting
        at = k if self.columns is None else int(np.searchsorted(self.columns, k))
        column = problem.source.take([k]).dot(np.ones(1))
        sign = float(np.copysign(1.0, self.zeta[at]))
        return sign * problem.off_span(problem.weighed(column))

    @cached_property
    def limiting_products(self) -> Floats:
        """Products of `limiting_column` with the columns of the point: one more pass, once."""
        return self.problem.products(self.limiting_column, self.columns)

    def joined(self, columns: Ints, zeta: Floats) -> DualPoint:
        """The same point at a scale that fits the products with further columns as well."""
        scale, _ = _feasible_scale(self.problem, zeta, columns, self.beta_norm, self.off)
        return replace(self, scale=min(self.scale, scale))

    def without_margins(self) -> DualPoint:
        """The point with every error taken to be zero. Not safe: it measures the margins."""
        problem = replace(self.problem)
        problem.__dict__.update(error=0.0, rounding=0.0)
        return replace(self, problem=problem, off=0.0, e_xi=0.0)

    def tau(self, lam: float) -> float:
        """The scale with the largest dual value at lam among the feasible ones."""
        if not self.s_along > 0:
            return 0.0
        along, size = self.s_along / self.p_norm, lam * self.p_norm
        return self.scale if along >= self.scale * size else along / size

    def certificate(
        self, lam: float, primal: Primal | None = None, tau: float | None = None
    ) -> Certificate:
        """The gap at lam between `primal` (default: that of this point) and this dual point.

        `tau` is the best by default; any up to `scale` is feasible.
        """
        primal = primal or primal_value(self.problem, lam, self.w, self.xi, self.e_xi)
        tau = self.tau(lam) if tau is None else tau
        dual = dual_value(self.problem, lam * tau, self.p)
        gap = float(primal.value - dual + primal.error + self._dual_error(lam * tau))
        return Certificate(
            lam, primal.value, dual, max(gap, 0.0), tau, len(self.problem.v), len(self.zeta)
        )

    def _dual_error(self, scale: float) -> float:
        """By how much D(scale p) may exceed D at the feasible point that is near."""
        problem, e_norm, e_a = self.problem, self.problem.e_norm, scale * self.e_p
        size = scale * self.p_norm
        slope = _core.distance(1.0, problem.s, scale, self.p) + problem.error * (e_norm + size)
        return problem.error * size * (e_norm + size) + e_a * (slope + e_a)


def dual_point(
    problem: Problem,
    w: Floats | None = None,
    *,
    columns: Ints | None = None,
    start: float = 0.0,
) -> DualPoint:
    """The dual point of w (None: zero), checked over `columns` (None: all).

    The coefficients of unpenalised columns are found anew, like b; those in w play no part.
    `start` is where the search for b begins.
    """
    w = np.zeros(problem.source.shape[1]) if w is None else w.copy()
    w[problem.free] = 0.0
    u = problem.scores(Sparse.of(w))
    b, w[problem.free] = problem.fit_unpenalised(u, start)
    xi = problem.slacks(u + problem.Z @ w[problem.free], b)
    found = Sparse.of(w)
    beta = problem.weighed(problem.y * xi)
    zeta = _products(problem, found, beta, columns)
    return settled_point(problem, found, b, xi, beta, slack_error(problem, found, b), zeta, columns)


def settled_point(
    problem: Problem,
    w: Sparse,
    b: float,
    xi: Floats,
    beta: Floats,
    e_xi: float,
    zeta: Floats,
    columns: Ints | None,
    rounding: float = 1.0,
) -> DualPoint:
    """The dual point of slacks xi, beta = e y xi, whose products with `columns` are known.

    `rounding` says how much less exact the products are than those of the source.
    """
    p = problem.off_span(beta)
    off = distance_to_feasible(problem, beta, p)
    scale, limiting = _feasible_scale(problem, zeta, columns, rounding * norm(beta), off)
    return DualPoint(problem, w, b, xi, e_xi, p, zeta, columns, off, scale, limiting)


def _feasible_scale(
    problem: Problem, zeta: Floats, columns: Ints | None, size: float, off: float
) -> tuple[float, int]:
    """The largest feasible tau for products with a vector of that size; the column that limits."""
    scale, limiting = _core.feasible_scale(
        problem.features(zeta, columns),
        e_zeta=problem.error * size,
        e_gamma=problem.error,
        off=off,
    )
    return scale, limiting if columns is None or limiting < 0 else int(columns[limiting])


def _products(problem: Problem, w: Sparse, beta: Floats, columns: Ints | None) -> Floats:
    """zeta; at w = 0 without unpenalised columns T beta is s, whose products are known."""
    if not len(w.support) and not len(problem.free):
        return problem.m if columns is None else problem.m[columns]
    return problem.products(beta, columns)


def distance_to_feasible(problem: Problem, beta: Floats, p: Floats) -> float:
    """Bound on the distance from p = T beta to a point a in the range of T with y a >= 0.

    a = beta less its part in the span, restricted to the rows with beta_i != 0. Where these do not
    determine the correction, the span may have fewer dimensions on them; else a = 0 serves.
    """
    if problem.basis.Q.shape[1] == 0:
        return 0.0
    inside, span, error = beta != 0, problem.basis, problem.error
    for _ in range(_SPANS):
        off = _core.distance_to_feasible(beta, p, problem.y, span.Q.T, error, inside)
        if np.isfinite(off):
            return off
        smaller = _span_on(problem, inside) if inside.any() else None
        if smaller is None:
            break
        span, error = smaller, product_error(problem.source, smaller)
    return norm(p)


def _span_on(problem: Problem, inside: npt.NDArray[np.bool_]) -> Basis | None:
    """A basis of the span on some rows only, where it may have fewer dimensions.

    An indicator of rows that are all outside the margin is 0 inside it: the rows left then satisfy
    its equality as they are. That holds for columns that depend on others exactly, and no proof can
    do with less: constant ones, and those that are sums of others in whole numbers. None if some
    other column seems to depend on the others.
    """
    Z, centre = problem.Z[inside], problem.fit_intercept
    varying = np.flatnonzero(np.any(Z[:1] * centre != Z, axis=0))
    try:
        span = basis(problem.e * inside, np.asfortranarray(problem.Z[:, varying]), centre)
    except CollinearError:
        return None
    kept = varying[span.kept]
    others = np.column_stack([np.ones((len(Z), int(centre))), Z[:, kept]])
    whole = bool(np.all(np.rint(Z) == Z)) and np.max(np.abs(Z), initial=0.0) < _WHOLE
    for k in np.setdiff1d(varying, kept):
        factors = np.rint(np.linalg.lstsq(others, Z[:, k], rcond=None)[0])
        whole = whole and bool(np.max(np.abs(factors)) < _WHOLE)
        if not (whole and np.array_equal(others @ factors, Z[:, k])):
            return None
    return span


def duality_gap(
    X: Matrix,
    y: npt.ArrayLike,
    lam: float,
    w: Any,
    b: float | None = None,
    *,
    sample_weight: npt.ArrayLike | None = None,
    penalty_factor: inputs.PenaltyFactor = None,
    fit_intercept: bool = True,
    standardize: bool = False,
) -> Certificate:
    """Certify (w, b) at lam from scratch: one pass for the statistics, one for the products.

    Parameters
    ----------
    X, y : the data
    lam : the lambda of the problem
    w : coefficients in the units of X, one per column (those of unpenalised columns as well)
    b : intercept; None: the exact one beside w
    sample_weight, penalty_factor, fit_intercept, standardize : as in `lambda_max`

    Returns
    -------
    Certificate
        with P(w, b) - P* <= gap, whoever computed (w, b) and however.
    """
    problem = Problem.of(
        X,
        y,
        sample_weight=sample_weight,
        penalty_factor=penalty_factor,
        fit_intercept=fit_intercept,
        standardize=standardize,
    )
    return certify(problem, inputs.positive_lam(lam), problem.coefficients(w), b)


def certify(problem: Problem, lam: float, w: Floats, b: float | None = None) -> Certificate:
    """`duality_gap` for a problem whose statistics are known."""
    b = None if b is None else inputs.finite(b, "b")
    if b and not problem.fit_intercept:
        raise ValueError(f"b is {b!r}, but the problem has no intercept.")
    point = dual_point(problem, w, start=b or 0.0)
    given = Sparse.of(w)
    u = problem.scores(given)
    if b is None:
        b = problem.exact_intercept(u, point.b)
    xi, e_xi = problem.slacks(u, b), slack_error(problem, given, b)
    return point.certificate(lam, primal_value(problem, lam, given, xi, e_xi))
