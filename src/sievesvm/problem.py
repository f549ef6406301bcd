r"""The problem: primal, dual, the map between them, lambda_max and the first features.

For rows x_i with labels y_i in {-1, +1}, weights c_i >= 0 and penalty factors v_j in [0, inf],

    primal   P(w, b) = 1/2 sum_i c_i xi_i^2 + lam sum_j v_j |w_j|,
             xi_i = max(0, 1 - y_i (x_i'w + b)),                          b is not penalised;
    dual     D(alpha) = sum_i alpha_i - 1/2 sum_i alpha_i^2 / c_i
             over alpha >= 0,  y'alpha = 0,  |f_j'(y alpha)| <= lam v_j.

At the optimum alpha = c xi and P = D, and w_j = 0 wherever |f_j'(y alpha)| < lam v_j.  In the other
direction lam v_j sign(w_j) = f_j'(y alpha) on the active features, and 1 - xi = y (X w + b) on the
rows with alpha > 0, which are linear equations for (w, b).

The library works with one geometry for all of this.  With e = sqrt(c) put

    beta = e y xi = y alpha / e,   theta = beta / lam   (so that e theta is the paper's y theta),
    g_j = T (e f_j),   s = T (e y),   T = projection off the span of e and of e z, z unpenalised,

e being left out of the span where there is no intercept.  Every feasible theta lies in the range
of T, so of a feature only its product g_j'beta ("zeta") changes; fixed are m_j = g_j's,
gamma_j = |g_j| and the norm |e f_j|.  The dual optimum is the projection of s / lam onto
F = {theta in the range of T: y theta >= 0, |g_j'theta| <= v_j}, and F does not depend on lam.

Standardised columns (f_j - mean_j)/d_j are the raw columns with the factors v_j d_j, because an
intercept absorbs the means; d_j is the weighted standard deviation (divisor sum c), or the root
mean square where there is no intercept.  A column with d_j = 0 is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from . import _core, inputs
from .columns import (
    Basis,
    CollinearError,
    ColumnSource,
    ColumnStats,
    ErrorBound,
    Floats,
    Ints,
    Matrix,
    NotFiniteError,
    as_columns,
    basis,
    feature_names,
    off_span,
)
from .intercept import best_intercept, best_unpenalised

_FLOAT64 = 2.0**-53
_LARGEST = 1e200  # of the length of a column, and its inverse the smallest


@dataclass(frozen=True)
class Problem:
    """A data set with its labels, weights and factors, and what does not depend on lam.

    Attributes
    ----------
    source : the columns of X
    y : labels, -1 or +1
    classes : what the labels were: `classes[0]` is -1
    c : weights of the rows; None stands for ones
    v : penalty factor of every column in raw units; 0: unpenalised, inf: left out
    scale : by what `standardize` divides the columns, 0 for columns left out; None without it
    fit_intercept : whether there is b
    free : the columns with factor 0, less those that depend on others; Z holds them (n x p)
    basis : orthonormal basis of the span of e and e Z
    stats : norms and gamma of every column
    s, m : T (e y) and its products with all columns
    """

    source: ColumnSource
    y: Floats
    classes: npt.NDArray[Any]
    c: Floats | None
    v: Floats
    scale: Floats | None
    fit_intercept: bool
    free: Ints
    Z: Floats
    basis: Basis
    stats: ColumnStats
    s: Floats
    m: Floats
    names: list[str] | None

    @classmethod
    def of(
        cls,
        X: Matrix,
        y: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        penalty_factor: inputs.PenaltyFactor = None,
        fit_intercept: bool = True,
        standardize: bool = False,
    ) -> Self:
        """Check the input and read the columns once, for their statistics."""
        source, names = as_columns(X), feature_names(X)
        n, m = source.shape
        if n == 0:
            raise ValueError("X has no rows.")
        inputs.check_flags(fit_intercept=fit_intercept, standardize=standardize)
        sign, classes = inputs.labels(y, n)
        c = inputs.row_weights(sample_weight, n)
        v = inputs.factors(penalty_factor, m, inputs.column_labels(X))
        e = np.ones(n) if c is None else np.sqrt(c)

        free = np.flatnonzero(v == 0)
        Z = _dense(source, free)
        if not np.isfinite(Z).all():
            _stats(source, names)  # names the first place
        span = _basis(e, Z, fit_intercept, free, names)
        v[np.setdiff1d(free, free[span.kept])] = np.inf  # in the span of the others already
        free, Z = free[span.kept], np.asfortranarray(Z[:, span.kept])
        s = np.zeros(n)
        if not _separated(sign, e, Z, fit_intercept):
            s, _ = off_span(span.Q, e * sign)
        stats = _stats(source, names, C=c, Z=Z, V=e * s, centre=fit_intercept)
        _check_scale(stats.norm2, names)

        scale = None
        if standardize:
            scale = stats.deviation / (norm(e) if e.any() else 1.0)
        return cls(
            source=source,
            y=sign,
            classes=classes,
            c=c,
            v=v if scale is None else _standardised_factors(v, scale),
            scale=scale,
            fit_intercept=bool(fit_intercept),
            free=free,
            Z=Z,
            basis=span,
            stats=stats,
            s=s,
            m=np.where(stats.gamma == 0, 0.0, stats.products[:, 0]),
            names=names,
        )

    @cached_property
    def e(self) -> Floats:
        return np.ones(len(self.y)) if self.c is None else np.sqrt(self.c)

    @cached_property
    def rounding(self) -> float:
        """G with |computed - exact| <= G sum |a_i b_i| for the sums of the source and for ours."""
        return _rounding(self.source)

    @cached_property
    def error(self) -> float:
        """Error of a centred product per unit of |e f| and |beta|; also that of T a per |a|."""
        return product_error(self.source, self.basis)

    def off_span(self, a: Floats) -> Floats:
        """T a: the part of a off the span of the intercept and the unpenalised columns."""
        return off_span(self.basis.Q, a)[0]

    def products(self, beta: Floats, columns: Ints | None = None) -> Floats:
        """g_j'beta for the columns asked for (None: all): one product with each."""
        vector = self.product_vector(beta)
        return self.centred(self.source.correlate(vector, columns), vector, columns)

    def product_vector(self, beta: Floats) -> Floats:
        """What the columns are multiplied with for g_j'beta, up to `centred`."""
        return self.e * (self.off_span(beta) if len(self.free) else beta)

    def centred(self, products: Floats, vector: Floats, columns: Ints | None = None) -> Floats:
        """g_j'beta from the products f_j'vector.

        What rounding left of beta in the span would be multiplied by the mean of the column. With
        unpenalised columns the vector was projected; otherwise the mean is taken off here, so that
        rows with beta_i = 0 need not be read.
        """
        chosen = slice(None) if columns is None else columns
        zeta = products
        if self.fit_intercept and not len(self.free):
            zeta = zeta - self.stats.mean[chosen] * vector.sum()
        return np.where(self.stats.gamma[chosen] == 0, 0.0, zeta)

    def features(self, zeta: Floats, columns: Ints | None = None) -> _core.Features:
        """What the bounds need of the columns that zeta belongs to."""
        chosen = slice(None) if columns is None else columns
        stats = self.stats
        return _core.Features(self.m[chosen], zeta, stats.gamma[chosen], stats.norm2[chosen])

    def coefficients(self, w: Any) -> Floats:
        """Coefficients handed in by a user, checked."""
        dense = inputs.coefficients(w, len(self.v))
        wrong = np.flatnonzero((dense != 0) & np.isinf(self.v))
        if len(wrong):
            raise ValueError(
                f"w has a coefficient for feature {wrong[0]}, which is left out of the problem "
                "(penalty factor inf, no spread, or dependent on the unpenalised columns)."
            )
        return dense

    def scores(self, w: Floats) -> Floats:
        """X w, from the columns with w_j != 0."""
        support = np.flatnonzero(w)
        if len(support) == 0:
            return np.zeros(len(self.y))
        return self.source.take(support).dot(w[support])

    def penalty(self, w: Floats) -> float:
        """sum_j v_j |w_j|."""
        support = np.flatnonzero(w)
        return float(self.v[support] @ np.abs(w[support]))

    def exact_intercept(self, u: Floats, start: float = 0.0) -> float:
        """The exact minimiser over b beside the scores u = X w; 0 without an intercept."""
        return best_intercept(self.y, u, self.c, start) if self.fit_intercept else 0.0

    def fit_unpenalised(self, u: Floats, start: float = 0.0) -> tuple[float, Floats]:
        """The exact minimiser over (b, w0) beside the scores u of the penalised columns."""
        if len(self.free):
            return best_unpenalised(self.y, u, self.e, self.Z, fit_intercept=self.fit_intercept)
        return self.exact_intercept(u, start), np.empty(0)

    def slacks(self, u: Floats, b: float) -> Floats:
        """xi = max(0, 1 - y (u + b)) for the scores u = X w."""
        return np.maximum(0.0, 1.0 - self.y * (u + b))


class Primal(NamedTuple):
    """P(w, b) and how far rounding can have taken it from that."""

    value: float
    error: float


def primal_value(problem: Problem, lam: float, w: Floats, xi: Floats, e_xi: float) -> Primal:
    """P at coefficients w with slacks xi, which are exact to |e (xi - exact)| <= e_xi."""
    beta = problem.e * xi
    loss, penalty = 0.5 * _core.dot(beta, beta), lam * problem.penalty(w)
    rounding = problem.rounding * loss + (np.count_nonzero(w) + 8) * 2.0 * _FLOAT64 * penalty
    return Primal(loss + penalty, float(e_xi * (math.sqrt(2.0 * loss) + e_xi) + rounding))


def slack_error(problem: Problem, w: Floats, b: float) -> float:
    """Bound on |e (xi - exact xi)|: the rounding of 1 - y (X w + b), row by row."""
    support = np.flatnonzero(w)
    terms = problem.stats.norm2[support] @ np.abs(w[support])
    terms += norm(problem.e) * (1.0 + abs(b))
    return float((len(support) + 8) * 2.0 * _FLOAT64 * terms)


def dual_value(problem: Problem, a: Floats) -> float:
    """D at alpha = e y a: (e y)'a - 1/2 |a|^2."""
    return _core.dot(problem.e * problem.y, a) - 0.5 * _core.dot(a, a)


def lambda_max(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    penalty_factor: inputs.PenaltyFactor = None,
    fit_intercept: bool = True,
    standardize: bool = False,
) -> float:
    """The smallest lam at which every penalised coefficient is 0.

    Closed form: max_j |m_j| / v_j, m_j = sum_i c_i (y_i - ybar) x_ij with the weighted mean ybar.
    With unpenalised columns their exact fit takes the place of the mean.

    Parameters
    ----------
    X : array, sparse matrix, data frame or ColumnSource; rows are samples
    y : one label per row, of two classes
    sample_weight : weights >= 0 of the rows
    penalty_factor : a factor for every column, or a mapping from column names or numbers to
        factors: 0 leaves a column unpenalised, inf leaves it out
    fit_intercept : whether there is an intercept
    standardize : whether the penalty applies to columns divided by their standard deviation

    Returns
    -------
    float
        0 where no feature can ever enter: one class, constant columns, or classes that the
        unpenalised columns separate.
    """
    problem = Problem.of(
        X,
        y,
        sample_weight=sample_weight,
        penalty_factor=penalty_factor,
        fit_intercept=fit_intercept,
        standardize=standardize,
    )
    return float(np.max(entry_levels(problem)[0], initial=0.0))


def first_features(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    penalty_factor: inputs.PenaltyFactor = None,
    fit_intercept: bool = True,
    standardize: bool = False,
) -> Ints:
    """The feature(s) that enter the model first, just below lambda_max; ties within rounding.

    Parameters as in `lambda_max`. Empty where no feature can enter.
    """
    problem = Problem.of(
        X,
        y,
        sample_weight=sample_weight,
        penalty_factor=penalty_factor,
        fit_intercept=fit_intercept,
        standardize=standardize,
    )
    entry, errors = entry_levels(problem)
    if not np.any(entry > 0):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero((entry > 0) & (entry + errors >= np.max(entry - errors)))


def entry_levels(problem: Problem) -> tuple[Floats, Floats]:
    """|g_j'beta| / v_j of every penalised column at w = 0, and their errors; 0 for the others."""
    beta, zeta = problem.s, problem.m
    if len(problem.free) and beta.any():
        b, w0 = problem.fit_unpenalised(np.zeros(len(problem.y)))
        beta = problem.e * problem.y * problem.slacks(problem.Z @ w0, b)
        zeta = problem.products(beta)
    errors = problem.error * problem.stats.norm2 * norm(beta)
    return levels(problem.v, zeta), levels(problem.v, errors)


def levels(v: Floats, zeta: Floats) -> Floats:
    """|zeta_j| / v_j; 0 for columns that are unpenalised or left out."""
    return np.divide(np.abs(zeta), v, out=np.zeros(len(v)), where=(v > 0) & np.isfinite(v))


def norm(a: Floats) -> float:
    """||a||, by sums in the order that `Problem.rounding` speaks of, without overflow."""
    size = float(np.max(np.abs(a), initial=0.0))
    if 1e-120 < size < 1e120 or size == 0 or not math.isfinite(size):
        return math.sqrt(_core.dot(a, a))
    unit = math.ldexp(1.0, math.frexp(size)[1])
    return math.sqrt(_core.dot(a / unit, a / unit)) * unit


def _rounding(source: ColumnSource) -> float:
    bound = source.error_bound
    return ErrorBound(max(bound.unit, _FLOAT64), bound.length).relative()


def product_error(source: ColumnSource, span: Basis) -> float:
    """Error of a product with a column off the span, per unit of their lengths."""
    return float(8.0 * _rounding(source) * span.condition * max(1, span.Q.shape[1]))


def _stats(source: ColumnSource, names: list[str] | None, **asked: Any) -> ColumnStats:
    """The statistics; a value that is not finite is named as the user knows it."""
    try:
        return source.stats(**asked)
    except NotFiniteError as error:
        name = None if names is None else names[error.column]
        raise NotFiniteError(error.row, error.column, name, error.value) from None


def _dense(source: ColumnSource, columns: Ints) -> Floats:
    """The columns as an n x p array."""
    Z = np.empty((source.shape[0], len(columns)), order="F")
    if len(columns):
        block = source.take(columns)
        for k in range(len(columns)):
            Z[:, k] = block.dot(np.ones(1), np.array([k]))
    return Z


def _basis(e: Floats, Z: Floats, centre: bool, free: Ints, names: list[str] | None) -> Basis:
    try:
        return basis(e, Z, centre)
    except CollinearError as error:
        column = int(free[error.column])
        name = str(column) if names is None else f"{column} ({names[column]!r})"
        raise CollinearError(column, error.off, name) from None


def _separated(y: Floats, e: Floats, Z: Floats, fit_intercept: bool) -> bool:
    """Whether some b + Z w0 has the sign of y in every row with weight: then F = {0}, proved.

    For theta in F, 0 = (e (b + Z w0))'theta is a sum of terms that are not negative.
    """
    weighted = e > 0
    if fit_intercept and len(np.unique(y[weighted])) <= 1:
        return True
    if Z.shape[1] == 0:
        return not weighted.any()
    b, w0 = best_unpenalised(y, np.zeros(len(y)), e, Z, fit_intercept=fit_intercept)
    rounding = (Z.shape[1] + 4) * 2.0 * _FLOAT64 * (abs(b) + np.abs(Z) @ np.abs(w0))
    return bool(np.all((y * (b + Z @ w0) > rounding)[weighted]))


def _check_scale(norm2: Floats, names: list[str] | None) -> None:
    """Products of numbers far outside are not what the margins are made for."""
    wrong = (norm2 > _LARGEST) | ((norm2 > 0) & (norm2 < 1.0 / _LARGEST))
    if wrong.any():
        j = int(np.argmax(wrong))
        name = "" if names is None else f" ({names[j]!r})"
        raise ValueError(
            f"Column {j}{name} of X has values of the order of {norm2[j]:.0e}; rescale it to lie "
            f"between {1 / _LARGEST:.0e} and {_LARGEST:.0e}."
        )


def _standardised_factors(v: Floats, scale: Floats) -> Floats:
    """Factors of the raw columns; 0 stays 0 and a column without scale is left out."""
    left_out = np.isinf(v) | (scale == 0)
    return np.where(left_out, np.inf, np.where(left_out, 1.0, v) * scale)
