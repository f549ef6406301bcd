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
from collections.abc import Sequence
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

norm = _core.norm  # ||a||, by sums in the order that `Problem.rounding` speaks of, without overflow

_FLOAT64 = 2.0**-53
_LARGEST = 1e200  # of the length of a column, and its inverse the smallest


class Setup(NamedTuple):
    """What makes a problem of a matrix; as in `lambda_max`."""

    y: npt.ArrayLike
    sample_weight: npt.ArrayLike | None = None
    penalty_factor: inputs.PenaltyFactor = None
    fit_intercept: bool = True
    standardize: bool = False


@dataclass(frozen=True)
class _Draft:
    """A problem as far as it is known before the statistics of its columns."""

    source: ColumnSource
    names: list[str] | None
    y: Floats
    classes: npt.NDArray[Any]
    c: Floats | None
    v: Floats
    e: Floats
    fit_intercept: bool
    standardize: bool
    free: Ints
    Z: Floats
    span: Basis
    s: Floats

    @classmethod
    def of(
        cls,
        source: ColumnSource,
        names: list[str] | None,
        labels: list[Any] | None,
        setup: Setup,
    ) -> Self:
        n, m = source.shape
        fit_intercept, standardize = setup.fit_intercept, setup.standardize
        inputs.check_flags(fit_intercept=fit_intercept, standardize=standardize)
        y, classes = inputs.labels(setup.y, n)
        c = inputs.row_weights(setup.sample_weight, n)
        v = inputs.factors(setup.penalty_factor, m, labels)
        e = np.ones(n) if c is None else np.sqrt(c)

        free = np.flatnonzero(v == 0)
        Z = _dense(source, free)
        if not np.isfinite(Z).all():
            _stats(source, names)  # names the first place
        span = _basis(e, Z, fit_intercept, free, names)
        dependent = np.setdiff1d(free, free[span.kept])
        if len(dependent):
            v[dependent] = np.inf  # in the span of the others already
        free, Z = free[span.kept], np.asfortranarray(Z[:, span.kept])
        s = np.zeros(n)
        if not _separated(y, e, Z, fit_intercept):
            s, _ = off_span(span.Q, e * y)
        return cls(
            source=source,
            names=names,
            y=y,
            classes=classes,
            c=c,
            v=v,
            e=e,
            fit_intercept=bool(fit_intercept),
            standardize=bool(standardize),
            free=free,
            Z=Z,
            span=span,
            s=s,
        )


def _alike(drafts: Sequence[_Draft]) -> list[list[_Draft]]:
    """The drafts in groups whose statistics one pass can make."""
    groups: dict[Any, list[_Draft]] = {}
    for draft in drafts:
        key = (draft.fit_intercept, draft.c is None, tuple(draft.free))
        groups.setdefault(key, []).append(draft)
    return list(groups.values())


def _statistics(source: ColumnSource, drafts: list[_Draft]) -> list[tuple[ColumnStats, Floats]]:
    """For each of the drafts, which are alike: the statistics, and the products m."""
    first = drafts[0]
    V = np.column_stack([draft.e * draft.s for draft in drafts])
    options = {"Z": first.Z, "V": V, "centre": first.fit_intercept}
    if first.c is None:
        stats = _stats(source, first.names, **options)
        each = [stats] * len(drafts)
    else:
        C = np.column_stack([draft.c for draft in drafts if draft.c is not None])
        stats = _stats(source, first.names, C=C, **options)
        each = [stats.of_weighting(k) for k in range(len(drafts))]
    products = [np.ascontiguousarray(stats.products[:, k]) for k in range(len(drafts))]
    return list(zip(each, products, strict=True))


@dataclass(frozen=True)
class Problem:
    """A data set with its labels, weights and factors, and what does not depend on lam.

    Attributes
    ----------
    source : the columns of X
    y : labels, -1 or +1
    classes : what the labels were: `classes[0]` is -1
    c : weights of the rows; None stands for ones
    v : penalty factor of every column in raw units; 0: unpenalised, inf: left out. Where all are 1
        it is one number, seen as an array.
    scale : by what `standardize` divides the columns, 0 for columns left out; None without it
    fit_intercept : whether there is b
    free : the columns with factor 0, less those that depend on others; Z holds them (n x p)
    basis : orthonormal basis of the span of e and e Z
    stats : what does not depend on lam, of every column
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
    stats: Norms
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
        setup = Setup(y, sample_weight, penalty_factor, fit_intercept, standardize)
        return cls.several(X, [setup])[0]

    @classmethod
    def several(cls, X: Matrix, setups: Sequence[Setup]) -> list[Self]:
        """Problems with the same X: their statistics are made in one pass.

        Only different unpenalised columns, an intercept beside none, and weights beside none take
        a pass of their own.
        """
        source, names = as_columns(X), feature_names(X)
        if source.shape[0] == 0:
            raise ValueError("X has no rows.")
        labels = inputs.column_labels(X)
        drafts = [_Draft.of(source, names, labels, setup) for setup in setups]
        found = {}
        for together in _alike(drafts):
            for draft, (stats, m) in zip(together, _statistics(source, together), strict=True):
                found[id(draft)] = cls._of(draft, stats, m)
        return [found[id(draft)] for draft in drafts]

    @classmethod
    def _of(cls, draft: _Draft, stats: ColumnStats, m: Floats) -> Self:
        _check_scale(stats.norm2, draft.names)
        m[stats.gamma == 0] = 0.0
        scale = None
        if draft.standardize:
            scale = stats.deviation / (norm(draft.e) if draft.e.any() else 1.0)
        return cls(
            source=draft.source,
            y=draft.y,
            classes=draft.classes,
            c=draft.c,
            v=draft.v if scale is None else _standardised_factors(draft.v, scale),
            scale=scale,
            fit_intercept=draft.fit_intercept,
            free=draft.free,
            Z=draft.Z,
            basis=draft.span,
            stats=Norms(stats.mean, stats.norm1, stats.norm2, stats.gamma),
            s=draft.s,
            m=m,
            names=draft.names,
        )

    @cached_property
    def e(self) -> Floats:
        return np.broadcast_to(1.0, len(self.y)) if self.c is None else np.sqrt(self.c)

    def weighed(self, a: Floats) -> Floats:
        """e a; without weights a itself."""
        return a if self.c is None else self.e * a

    @cached_property
    def e_norm(self) -> float:
        return norm(self.e)

    @cached_property
    def s_norm(self) -> float:
        return norm(self.s)

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
        return self.weighed(self.off_span(beta) if len(self.free) else beta)

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
        stats = self.stats
        if columns is None:
            return _core.Features(self.m, zeta, stats.gamma, stats.norm2, self.factors)
        v = None if self.factors is None else self.factors[columns]
        return _core.Features(self.m[columns], zeta, stats.gamma[columns], stats.norm2[columns], v)

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

    @property
    def factors(self) -> Floats | None:
        """The penalty factors; None where all are 1."""
        return None if self.v.strides == (0,) else self.v

    def scores(self, w: Sparse) -> Floats:
        """X w, from the columns with w_j != 0."""
        if len(w.support) == 0:
            return np.zeros(len(self.y))
        return self.source.take(w.support).dot(w.coef)

    def penalty(self, w: Sparse) -> float:
        """sum_j v_j |w_j|."""
        return _core.dot(self.v[w.support], np.abs(w.coef))

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


class Norms(NamedTuple):
    """Mean, 1-norm, 2-norm and gamma of every column: fields of `ColumnStats`."""

    mean: Floats
    norm1: Floats
    norm2: Floats
    gamma: Floats


class Sparse(NamedTuple):
    """Coefficients that are not zero, and of which columns, in order."""

    support: Ints
    coef: Floats

    @classmethod
    def of(cls, w: Floats) -> Self:
        support = np.flatnonzero(w)
        return cls(support, w[support])


class Primal(NamedTuple):
    """P(w, b) and how far rounding can have taken it from that."""

    value: float
    error: float


def primal_value(problem: Problem, lam: float, w: Sparse, xi: Floats, e_xi: float) -> Primal:
    """P at coefficients w with slacks xi, which are exact to |e (xi - exact)| <= e_xi."""
    beta = problem.weighed(xi)
    loss, penalty = 0.5 * _core.dot(beta, beta), lam * problem.penalty(w)
    rounding = problem.rounding * loss + (len(w.support) + 8) * 2.0 * _FLOAT64 * penalty
    return Primal(loss + penalty, float(e_xi * (math.sqrt(2.0 * loss) + e_xi) + rounding))


def slack_error(problem: Problem, w: Sparse, b: float) -> float:
    """Bound on |e (xi - exact xi)|: the rounding of 1 - y (X w + b), row by row."""
    terms = _core.dot(problem.stats.norm2[w.support], np.abs(w.coef))
    terms += problem.e_norm * (1.0 + abs(b))
    return float((len(w.support) + 8) * 2.0 * _FLOAT64 * terms)


def dual_value(problem: Problem, scale: float, a: Floats) -> float:
    """D at alpha = e y scale a: scale (e y)'a - 1/2 |scale a|^2."""
    along = _core.dot(problem.weighed(problem.y), a)
    return scale * along - 0.5 * (scale * norm(a)) ** 2


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
    return largest_level(problem)


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


def largest_level(problem: Problem) -> float:
    """lambda_max: the largest |g_j'beta| / v_j at w = 0."""
    _, zeta = _at_zero(problem)
    _, j = _core.feasible_scale(problem.features(zeta))
    return float(abs(zeta[j]) / problem.v[j]) if j >= 0 else 0.0


def entry_levels(problem: Problem) -> tuple[Floats, Floats]:
    """|g_j'beta| / v_j of every penalised column at w = 0, and their errors; 0 for the others."""
    beta, zeta = _at_zero(problem)
    errors = problem.error * problem.stats.norm2 * norm(beta)
    return levels(problem.v, zeta), levels(problem.v, errors)


def _at_zero(problem: Problem) -> tuple[Floats, Floats]:
    """T beta at w = 0, beside the exact fit of what is not penalised, and its products."""
    if not (len(problem.free) and problem.s.any()):
        return problem.s, problem.m
    b, w0 = problem.fit_unpenalised(np.zeros(len(problem.y)))
    beta = problem.weighed(problem.y * problem.slacks(problem.Z @ w0, b))
    return beta, problem.products(beta)


def levels(v: Floats, zeta: Floats) -> Floats:
    """|zeta_j| / v_j; 0 for columns that are unpenalised or left out."""
    return np.divide(np.abs(zeta), v, out=np.zeros(len(v)), where=(v > 0) & np.isfinite(v))


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
