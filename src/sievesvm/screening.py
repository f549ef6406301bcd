r"""Safe screening: regions that hold the dual optimum, and upper bounds over them.

Let theta2 be the dual optimum at lam, x = 1/lam, and theta = tau beta a feasible point.  With the
notation of `problem`, and d = theta2 - theta, every region here is a ball cut by a half-space,

    |d - q| <= R,   h'd <= kappa,

and a feature is discarded where the maximum of |g_j'theta2| over it is below v_j, in O(1) from its
products m_j and zeta_j (`_core/bounds.hpp`).

    dome       q = (x s - theta)/2, R = |q|;  h = s - T beta, kappa = sum v|w| - h'theta.  Any w.
    entering   the same ball; h = e g_k, kappa = v_k - h'theta for one feature k, e = +-1.
    sphere     q = 0, R = sqrt(2 gap)/lam, no cut.
    paper      the dome with theta = theta1 optimal at lam1, where kappa = 0: the paper's K.
    inflated   the ball of the dome; h = s/lam1 - theta, kappa = r max(2R, r) with
               r = sqrt(2 gap1)/lam1, gap1 the gap at lam1: K for a theta1 that is not exact.

The ball is the variational inequality of theta2 at a feasible theta.  The half-space of the dome
is (1 - xi)'theta2 <= sum v|w|, true of everything feasible; docs/errata.md proves both.

Margins.  The regions are made of vectors as they stand in memory, taken as exact, and widened by
what separates these from the exact ones: `Problem.error` times the norms for s and beta, `off` for
feasibility, `e_xi` for the slacks.  With the errors of the products added per feature, the
inequality U_j < v_j proves the feature inactive in exact arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core, inputs
from .certify import DualPoint, distance_to_feasible, dual_point
from .columns import Floats, Ints, Matrix
from .problem import Problem, Sparse, levels, norm

Rule = Literal["safe", "gap", "paper"]
_CHECK = 1e-6  # to which a theta1 handed in must satisfy what can be checked
_ABSURD = (
    1e150  # length of h beyond which the cut of a w far from anything is not worth its squares
)
_VOID = 1e-9  # relative length of h below which it cuts nothing but rounding


class Region(NamedTuple):
    """A ball cut by a half-space, in the coordinates of `_core/bounds.hpp`.

    g'q = q_m m + q_z zeta and g'h = h_m m + h_z zeta + h_x extra. radius, h_norm >= |h| and
    offset >= kappa - h'q are upper bounds; h_norm = 0 means no cut. The e_ are the errors of m,
    zeta, extra and gamma for a column of norm one.
    """

    tau: float
    q_m: float
    q_z: float
    radius: float
    h_m: float = 0.0
    h_z: float = 0.0
    h_x: float = 0.0
    h_norm: float = 0.0
    offset: float = 0.0
    e_m: float = 0.0
    e_zeta: float = 0.0
    e_extra: float = 0.0
    e_gamma: float = 0.0


class Reference(NamedTuple):
    """theta = c0 s + c1 beta_r + rest, |rest| <= e_two, |rest_i| <= e_inf; and a ball around it."""

    c0: float
    c1: float
    e_two: float
    e_inf: float
    ball: float
    e_m: float
    e_zeta: float
    e_gamma: float


@dataclass(frozen=True)
class Screening:
    """What a rule left over.

    Attributes
    ----------
    kept : the features that may be active, in order; all others have w_j = 0 at lam
    bounds : an upper bound of |f_j'(y theta)|/v_j for every feature: below 1 it is discarded.
        inf for unpenalised features, which are always kept; 0 for those that are left out.
    """

    kept: Ints
    bounds: Floats


# --- regions -----------------------------------------------------------------------------------


def _put(regions: Floats, **fields: npt.ArrayLike) -> None:
    """Set fields of the regions, given as rows of numbers."""
    for name, values in fields.items():
        regions[:, Region._fields.index(name)] = values


def _balls(point: DualPoint, lams: Floats, tau: float) -> Floats:
    """The balls of the variational inequality around (x s + theta)/2, and no cut: one row each.

    At the first lambda the radius is that of vectors; further on it follows the difference of x.
    """
    problem, error, x = point.problem, point.problem.error, 1.0 / lams
    s_norm, e_norm = problem.s_norm, problem.e_norm
    unit = float(x[0] * s_norm + tau * point.p_norm) or 1.0  # no shorter than what is squared
    first = _core.distance(float(x[0]) / unit, problem.s, tau / unit, point.p)
    further = (x - x[0]) / unit
    across = float(x[0]) / unit * s_norm**2 - tau / unit * point.s_along
    squares = (first**2 + (further * s_norm) ** 2) * (1.0 + 4.0 * error)
    squares += 2.0 * further * (across + 2.0 * error * s_norm)
    regions = np.zeros((len(x), len(Region._fields)))
    radius = 0.5 * unit * np.sqrt(np.maximum(squares, 0.0)) * (1.0 + error)
    radius += x * error * e_norm + tau * point.e_p
    _put(regions, tau=tau, q_m=0.5 * x, q_z=-0.5 * tau, radius=radius)
    _put(regions, e_m=error * e_norm, e_zeta=error * point.beta_norm, e_gamma=error)
    return regions


def _ball(point: DualPoint, lam: float, tau: float) -> Region:
    return Region(*_balls(point, np.array([lam]), tau)[0].tolist())


def domes(point: DualPoint, lams: Floats, tau: float) -> Floats:
    """The domes of one theta = tau p at several lambdas, one row of `Region` each.

    `tau` must be at most `point.scale`. Safe for the point of any w, exact or not. Where the
    half-space is void, as at lambda_max, these are balls.
    """
    problem, error, x = point.problem, point.problem.error, 1.0 / lams
    regions, s_norm = _balls(point, lams, tau), problem.s_norm
    h = problem.s - point.p
    h_norm = norm(h)
    if h_norm <= _VOID * (s_norm + point.p_norm) or h_norm > _ABSURD:
        return regions
    # theta2 is no longer than x e; the normal h stands for the exact one within these
    e_h = point.e_xi + error * (problem.e_norm + point.beta_norm)
    along = 0.5 * (x * _core.dot(h, problem.s) + tau * _core.dot(h, point.p))
    offset = point.omega * (1.0 + error) - along + x * problem.e_norm * e_h
    offset += error * h_norm * (x * s_norm + tau * point.p_norm)
    _put(regions, h_m=1.0, h_z=-1.0, h_norm=h_norm * (1.0 + error), offset=offset)
    return regions


def dome(point: DualPoint, lam: float, tau: float | None = None) -> Region:
    """The default region at one lambda; `tau` None: the best there."""
    tau = point.tau(lam) if tau is None else tau
    return Region(*domes(point, np.array([lam]), tau)[0].tolist())


def entering_cut(point: DualPoint, lam: float, tau: float | None = None) -> Region:
    """The ball cut by the constraint of the limiting feature k, e g_k'theta2 <= v_k.

    At lambda_max, where the half-space of the dome is void, k is the first feature to enter. The
    bounds need one more product for every column, `point.limiting_products`.
    """
    problem, k, x = point.problem, point.limiting, 1.0 / lam
    region = _ball(point, lam, point.tau(lam) if tau is None else tau)
    g, error, length = point.limiting_column, problem.error, problem.stats.norm2[k]
    centre = 0.5 * (x * problem.s + region.tau * point.p)
    offset = problem.v[k] * (1.0 + error) - _core.dot(g, centre)
    offset += error * length * (x * problem.e_norm + 2.0 * norm(centre))
    return region._replace(
        h_x=1.0, h_norm=norm(g) * (1.0 + error), offset=offset, e_extra=error * length
    )


def sphere(point: DualPoint, lam: float, tau: float | None = None) -> Region:
    """The ball of radius sqrt(2 gap)/lam around the dual point."""
    tau = point.tau(lam) if tau is None else tau
    gap = point.certificate(lam, tau=tau).gap
    radius = math.sqrt(2.0 * gap) / lam * (1.0 + point.problem.error) + tau * point.e_p
    return _ball(point, lam, tau)._replace(q_m=0.0, q_z=0.0, radius=radius)


def paper(point: DualPoint, lam: float, lam1: float, gap1: float | None = None) -> Region:
    """The paper's K for theta1 = point / lam1, exact, or known to the gap `gap1` at lam1.

    Without gap1 theta1 is taken to be the optimum, as the paper does. With a gap the point must be
    feasible, and K is inflated by what the gap allows.
    """
    problem = point.problem
    tau = 1.0 / lam1 if gap1 is None else point.tau(lam1)
    region = _ball(point, lam, tau)
    r = math.sqrt(2.0 * (gap1 or 0.0)) / lam1
    step = lam1 * tau
    h = problem.s - step * point.p
    h_norm, error = norm(h), problem.error
    if h_norm <= _VOID * (problem.s_norm + point.p_norm):
        return region
    e_h = error * problem.e_norm + step * point.e_p
    kappa = lam1 * r * max(2.0 * region.radius, r)
    kappa += 2.0 * e_h * region.radius + (h_norm + e_h) * tau * point.e_p
    q = 0.5 * (problem.s / lam - tau * point.p)
    offset = kappa - _core.dot(h, q) + error * h_norm * norm(q)
    return region._replace(h_m=1.0, h_z=-step, h_norm=h_norm * (1.0 + error), offset=offset)


def reference(point: DualPoint, lam: float, known: DualPoint, ball: float = 0.0) -> Reference:
    """Write the dual point at lam as c0 s + c1 beta_r + rest, beta_r that of the `known` point.

    Then |g_j'theta| is bounded for every feature with a product at the known point, by the shorter
    of Cauchy-Schwarz and Hoelder (`reference_bounds`). `ball` widens it to all points that near.
    """
    problem, tau = point.problem, point.tau(lam)
    basis = np.column_stack([problem.s, known.p])
    c0, c1 = np.linalg.lstsq(basis, tau * point.p, rcond=None)[0]
    rest = tau * point.p - c0 * problem.s - c1 * known.p
    largest = [np.max(np.abs(a), initial=0.0) for a in (problem.s, known.p, point.p, rest)]
    rounding = 2.0**-50 * (abs(c0) * largest[0] + abs(c1) * largest[1] + tau * largest[2])
    error = problem.error
    return Reference(
        c0=float(c0),
        c1=float(c1),
        e_two=norm(rest) * (1.0 + error) + rounding * np.sqrt(len(rest)),
        e_inf=float(largest[3] + rounding),
        ball=ball + tau * point.e_p,
        e_m=error * problem.e_norm,
        e_zeta=error * known.beta_norm,
        e_gamma=error,
    )


# --- bounds ------------------------------------------------------------------------------------


def region_bounds(point: DualPoint, region: Region, extra: Floats | None = None) -> Floats:
    """Upper bounds of |g_j'theta2| for the columns of the point."""
    out = np.empty(len(point.zeta))
    _core.region_bounds(np.array(region), point.features, extra, out)
    return out


def reference_bounds(known: DualPoint, reference: Reference) -> Floats:
    """Upper bounds of |g_j'theta| from the products at the known point alone."""
    norm1 = known.problem.stats.norm1
    norm1 = norm1 if known.columns is None else norm1[known.columns]
    out = np.empty(len(known.zeta))
    _core.reference_bounds(np.array(reference), known.features, norm1, out)
    return out


def look_ahead(point: DualPoint, lams: npt.ArrayLike) -> Ints:
    """Per feature, the last k such that it is inactive at lams[0], ..., lams[k]; -1: none.

    The lams decrease. One feasible theta = tau beta gives a dome at each of them, and where two of
    these discard a feature those between do. It needs a point checked over every feature: the
    constraints at lams further down are those of all.
    """
    if not point.complete:
        raise ValueError(
            "A point that was checked over some features only proves nothing at other lambdas: "
            "look_ahead needs the products of all."
        )
    grid = np.array([inputs.positive_lam(lam) for lam in np.asarray(lams)])
    if np.any(np.diff(grid) >= 0):
        raise ValueError("lams must decrease.")
    if len(grid) == 0:
        return np.full(len(point.zeta), -1)
    regions = domes(point, grid, point.tau(grid[0]))
    last = np.empty(len(point.zeta), dtype=np.int64)
    _core.last_discard(regions, point.features, None, last)
    return last


def _screening(problem: Problem, bounds: Floats) -> Screening:
    """A bound that is not a number keeps its feature."""
    v = problem.v
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(v == 0, np.inf, np.where(np.isinf(v), 0.0, bounds / v))
    return Screening(np.flatnonzero(~(relative < 1.0)), relative)


# --- the rules ---------------------------------------------------------------------------------


def screen(
    X: Matrix,
    y: npt.ArrayLike,
    lam: float,
    *,
    rule: Rule = "safe",
    w: Any = None,
    b: float | None = None,
    lam1: float | None = None,
    theta1: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    penalty_factor: inputs.PenaltyFactor = None,
    fit_intercept: bool = True,
    standardize: bool = False,
) -> Screening:
    """Find the features that cannot be active at lam.

    Parameters
    ----------
    X, y : the data
    lam : the lambda to screen for
    rule : "safe" (the dome) and "gap" (the sphere) take any w, the better the closer to the optimum
        at lam; None: w = 0. "paper" is Algorithm 1 of Zhao and Liu, corrected, and takes lam1 with
        theta1, or lam1 with any w (then K is inflated by the gap of w at lam1), or neither
        (lambda_max).
    w, b : coefficients in the units of X; b is only where the search for the exact one starts
    lam1, theta1 : the optimal alpha / lam1, exact by your word, one number per row
    sample_weight, penalty_factor, fit_intercept, standardize : as in `lambda_max`

    Returns
    -------
    Screening
        the kept features, and an upper bound for each.
    """
    if rule not in ("safe", "gap", "paper"):
        raise ValueError(f"rule must be 'safe', 'gap' or 'paper', but it is {rule!r}.")
    if rule != "paper" and (lam1 is not None or theta1 is not None):
        raise ValueError(f"lam1 and theta1 belong to rule 'paper', not to {rule!r}: hand in w.")
    if theta1 is not None and (lam1 is None or w is not None):
        raise ValueError("theta1 comes with its lam1, and without w.")
    problem = Problem.of(
        X,
        y,
        sample_weight=sample_weight,
        penalty_factor=penalty_factor,
        fit_intercept=fit_intercept,
        standardize=standardize,
    )
    lam = inputs.positive_lam(lam)
    lam1 = None if lam1 is None else inputs.positive_lam(lam1, "lam1")
    if not problem.s.any():  # F = {0}: one class, say; no feature enters at any lambda
        return _screening(problem, np.zeros(len(problem.v)))
    start = None if w is None else problem.coefficients(w)
    if theta1 is not None:
        assert lam1 is not None
        point = exact_point(problem, lam1, theta1)
    else:
        point = dual_point(problem, start, start=0.0 if b is None else inputs.finite(b, "b"))
    if rule == "paper" and lam1 is None and start is not None and np.any(start[problem.v > 0]):
        raise ValueError("rule 'paper' needs the lam1 that w belongs to.")
    return apply_rule(point, lam, rule, lam1=lam1, exact=theta1 is not None)


def apply_rule(
    point: DualPoint, lam: float, rule: Rule, *, lam1: float | None = None, exact: bool = False
) -> Screening:
    """`screen` from a dual point; `exact` says that it is the optimum at lam1."""
    if rule == "paper":
        return _screening(point.problem, _paper_bounds(point, lam, lam1, exact=exact))
    if rule == "gap":
        return _screening(point.problem, region_bounds(point, sphere(point, lam)))
    return _screening(point.problem, safe_bounds(point, lam))


def safe_bounds(point: DualPoint, lam: float) -> Floats:
    """Bounds over the dome, or where its half-space is void over the ball with the entering cut."""
    region = dome(point, lam)
    if region.h_norm > 0 or point.limiting < 0:
        return region_bounds(point, region)
    return region_bounds(point, entering_cut(point, lam), point.limiting_products)


def _paper_bounds(point: DualPoint, lam: float, lam1: float | None, *, exact: bool) -> Floats:
    if lam1 is None:
        lam1 = float(np.max(levels(point.problem.v, point.zeta), initial=0.0))
        if lam1 == 0:  # no column varies with y
            return safe_bounds(point, lam)
    gap1 = None if exact else point.certificate(lam1).gap
    return region_bounds(point, paper(point, lam, lam1, gap1))


def exact_point(problem: Problem, lam1: float, theta1: npt.ArrayLike) -> DualPoint:
    """The dual point of a theta1 that is said to be optimal at lam1; what can be checked is.

    An optimum is feasible, and it cannot be scaled up: a constraint is tight, or it is s/lam1.
    """
    theta = inputs.row_vector(theta1, "theta1", len(problem.y))
    largest = np.max(np.abs(theta), initial=0.0)
    if theta.min(initial=0.0) < -1e-9 * largest:
        raise ValueError(f"theta1 is no dual optimum: it is negative in row {np.argmin(theta)}.")
    alpha = lam1 * np.maximum(theta, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        xi = np.where(problem.e > 0, alpha / problem.e**2, 0.0)
    beta = problem.weighed(problem.y * xi)
    p, zeta = problem.off_span(beta), problem.products(beta)
    off = distance_to_feasible(problem, beta, p)
    if off > _CHECK * norm(beta):
        raise ValueError(
            "theta1 is no dual optimum: y'theta1 is not 0, or its product with an unpenalised "
            f"column is not (off by {off / norm(beta):.1e} of its length)."
        )
    worst = float(np.max(levels(problem.v, zeta), initial=0.0)) / lam1
    along, size = _core.dot(problem.s, p), _core.dot(p, p)
    at_top = abs(along - size) <= _CHECK * size
    if worst > 1.0 + _CHECK or not (worst >= 1.0 - _CHECK or (at_top and size > 0)):
        raise ValueError(
            "theta1 is no dual optimum at lam1: the largest |f_j'(y theta1)|, in units of the "
            f"penalty factor, must be 1, but it is {worst:.9g}. Note that theta1 = alpha / lam1. "
            "Hand in w instead: it need not be exact."
        )
    none = Sparse(np.empty(0, dtype=np.int64), np.empty(0))
    return DualPoint(problem, none, 0.0, xi, 0.0, p, zeta, None, off, 1.0 / lam1, -1)
