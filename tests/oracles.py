r"""Slow, obvious reference answers for the whole test-suite.

Nothing here knows the library or the paper's formulas.  There is the optimum of the problem

    min_{w,b}  1/2 sum_i c_i xi_i^2 + lam sum_j v_j |w_j|,   xi_i = max(0, 1 - y_i (x_i'w + b)),

the maximum of a linear function over a ball cut by half-spaces and hyperplanes, the point of a
polyhedron nearest to a given one, and random data.  Both optima come from the conic solver
Clarabel, the nearest point from an active-set method.  The data are brought to unit scale first and
the answer is checked before it is handed out, so that a failed solve is an error and never a wrong
number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import clarabel
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import nnls

Vector = NDArray[np.float64]
ACCEPTED = (
    clarabel.SolverStatus.Solved,
    clarabel.SolverStatus.AlmostSolved,
    # short of the tolerance asked for, which is near round-off; every caller checks its answer
    clarabel.SolverStatus.InsufficientProgress,
    clarabel.SolverStatus.NumericalError,
)


def conic(P, q, A, b, cones) -> tuple[Vector, Vector]:
    """Minimise 1/2 x'Px + q'x with Ax + s = b, s in the product of `cones`: x and the dual z."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    P, A = sparse.csc_matrix(P), sparse.csc_matrix(A)
    answer = clarabel.DefaultSolver(P, np.asarray(q), A, np.asarray(b), cones, settings).solve()
    assert answer.status in ACCEPTED, f"Clarabel stopped with {answer.status}"
    return np.array(answer.x), np.array(answer.z)


# --- the problem -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Solution:
    """Optimum at `lam`; `alpha = c*xi` and `theta = alpha/lam`; `gap` bounds primal - optimum."""

    lam: float
    w: Vector
    b: float
    xi: Vector
    alpha: Vector
    theta: Vector
    primal: float
    gap: float


def slacks(X, y, w, b) -> Vector:
    """xi_i = max(0, 1 - y_i (x_i'w + b))."""
    return np.maximum(0.0, 1.0 - y * (X @ w + b))


def primal_value(X, y, lam, w, b, *, c=None, v=None) -> float:
    """1/2 sum c_i xi_i^2 + lam sum v_j |w_j|; a column with v_j = inf must have w_j = 0."""
    c, v = _defaults(X, c, v)
    penalty = np.where(w != 0.0, v, 0.0) @ np.abs(w)
    return float(0.5 * c @ slacks(X, y, w, b) ** 2 + lam * penalty)


def dual_value(alpha, *, c=None) -> float:
    """1'alpha - 1/2 sum alpha_i^2 / c_i."""
    alpha = np.asarray(alpha, float)
    return float(alpha.sum() - 0.5 * np.sum(alpha**2 / (1.0 if c is None else c)))


def exact_intercept(X, y, w, *, c=None) -> float:
    """A minimiser of sum c_i xi_i^2 over b: the root of sum_i c_i y_i xi_i, by bisection.

    The sum decreases in b and changes sign at one of its kinks t_i = y_i - x_i'w or between two
    neighbouring ones, where it is linear.
    """
    c, _ = _defaults(X, c, None)
    t = y - X @ w
    kinks = np.sort(t)

    def total(b: float) -> float:
        return float(np.sum(c * y * np.maximum(0.0, y * (t - b))))

    if total(kinks[0]) <= 0.0:
        return float(kinks[0])
    if total(kinks[-1]) >= 0.0:
        return float(kinks[-1])
    low, high = 0, len(kinks) - 1  # total(low) > 0 > total(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if total(kinks[middle]) > 0.0 else (low, middle)
    inside = y * (t - 0.5 * (kinks[low] + kinks[high])) > 0.0
    return float(c[inside] @ t[inside] / c[inside].sum())


def solve(
    X: ArrayLike,
    y: ArrayLike,
    lam: float,
    *,
    c: ArrayLike | None = None,
    v: ArrayLike | None = None,
    intercept: bool = True,
    rtol: float = 1e-9,
) -> Solution:
    """The optimum, with a duality gap of at most `rtol` times the primal value at w = 0.

    v_j = 0 leaves feature j unpenalised, v_j = inf excludes it.  Without an intercept b = 0.
    """
    X, y = np.asarray(X, float), np.asarray(y, float)
    c, v = _defaults(X, c, v)

    def certified(w, b) -> Solution:
        b = exact_intercept(X, y, w, c=c) if intercept else 0.0
        return _certified(X, y, lam, w, b, c, v, intercept)

    # the gap is quadratic in the error of theta: of two at round-off the polished one is nearer
    rounding = 1e-15 * c.sum()
    best = certified(*_conic(X, y, lam, c, v, intercept))
    for cutoff in (1e-9, 1e-7, 1e-5, 1e-7):
        trial = certified(*_polish(X, y, lam, best.w, best.b, c, v, intercept, cutoff))
        best = min(trial, best, key=lambda solution: max(solution.gap, rounding))
        if best.gap <= 10 * rounding:
            break
    if best.gap > rtol * 0.5 * c.sum():  # where the interior point gives up: duplicate columns
        best = certified(*_from_dual(X, y, lam, c, v, intercept))
    assert best.gap <= rtol * 0.5 * c.sum(), f"gap {best.gap:.1e} at primal {best.primal:.3g}"
    return best


def lambda_max(X, y, *, c=None, v=None, intercept: bool = True) -> float:
    """The smallest lam at which every penalised w_j is 0: max over v_j > 0 of |f_j'(y*alpha)|/v_j.

    `alpha` belongs to the fit of the unpenalised part alone.
    """
    X, y = np.asarray(X, float), np.asarray(y, float)
    c, v = _defaults(X, c, v)
    fit = solve(X, y, 1.0, c=c, v=np.where(v > 0.0, np.inf, v), intercept=intercept)
    penalised = (v > 0.0) & np.isfinite(v)
    if not penalised.any():
        return 0.0
    return float(np.max(np.abs(X[:, penalised].T @ (y * fit.alpha)) / v[penalised]))


def _defaults(X, c, v) -> tuple[Vector, Vector]:
    n, m = np.shape(X)
    c = np.ones(n) if c is None else np.asarray(c, float)
    v = np.ones(m) if v is None else np.asarray(v, float)
    return c, v


def _conic(X, y, lam, c, v, with_intercept: bool) -> tuple[Vector, float]:
    """Clarabel on centred columns of unit deviation: variables (w, b, u, xi), u >= |w|."""
    centre = (c @ X) / c.sum() if with_intercept else np.zeros(X.shape[1])
    Z = X - centre
    scale = np.sqrt((c @ Z**2) / c.sum())
    norms = np.sqrt((c @ X**2) / c.sum())
    used = np.flatnonzero(np.isfinite(v) & (scale > 1e-12 * norms))
    Z, k, n = Z[:, used] / scale[used], len(used), len(y)
    size = np.sqrt(c.mean())
    eye, none = np.eye(k), np.zeros((k, 1))
    A = np.block(
        [
            [-y[:, None] * Z, -y[:, None], np.zeros((n, k)), -np.diag(size / np.sqrt(c))],
            [eye, none, -eye, np.zeros((k, n))],
            [-eye, none, -eye, np.zeros((k, n))],
        ]
    )
    rhs = np.concatenate([-np.ones(n), np.zeros(2 * k)])
    cones = [clarabel.NonnegativeConeT(n + 2 * k)]
    if not with_intercept:
        A = np.vstack([A, np.eye(1, A.shape[1], k)])
        rhs = np.append(rhs, 0.0)
        cones.append(clarabel.ZeroConeT(1))
    # divided by c.mean(), with xi in units of size/sqrt(c), the quadratic part is 1/2 |xi|^2
    P = np.diag(np.append(np.zeros(2 * k + 1), np.ones(n)))
    q = np.concatenate([np.zeros(k + 1), lam * v[used] / (scale[used] * size**2), np.zeros(n)])
    x, _ = conic(P, q, A, rhs, cones)
    w = np.zeros(X.shape[1])
    w[used] = np.where(np.abs(x[:k]) > 1e-7 * (1e-7 + np.abs(x[:k]).max(initial=0.0)), x[:k], 0.0)
    w[used] /= scale[used]
    return w, float(x[k] - centre @ w)


def _from_dual(X, y, lam, c, v, with_intercept: bool) -> tuple[Vector, float]:
    """(w, b) from the multipliers of the dual, whose optimum is the point of F nearest to e/lam.

    With e = sqrt(c):  e - lam theta = sum_j w_j (e y f_j) + b e y - nu,  nu >= 0 where theta = 0.
    """
    e = np.sqrt(c)
    F = (e * y)[:, None] * X
    free, penalised = np.flatnonzero(v == 0.0), np.flatnonzero((v > 0.0) & np.isfinite(v))
    rows = F[:, penalised].T / v[penalised, None]
    span = [F[:, j] for j in free] + ([e * y] if with_intercept else [])
    basis = _null_space(span, len(y))
    target = e / lam
    theta, multipliers = _nearest(
        target,
        basis @ (basis.T @ target),
        np.linalg.norm(target),
        basis,
        np.vstack([rows, -rows, -np.eye(len(y))]),
        np.concatenate([np.ones(2 * len(penalised)), np.zeros(len(y))]),
    )
    k, w = len(penalised), np.zeros(X.shape[1])
    w[penalised] = lam * (multipliers[:k] - multipliers[k : 2 * k]) / v[penalised]
    rest = e - lam * theta - F @ w + lam * multipliers[2 * k :]
    if not span:
        return w, 0.0
    lengths = np.linalg.norm(span, axis=1)
    x = np.linalg.lstsq(np.column_stack(span) / lengths, rest, rcond=1e-13)[0] / lengths
    w[free] = x[: len(free)]
    return w, (float(x[-1]) if with_intercept else 0.0)


def _polish(X, y, lam, w, b, c, v, with_intercept: bool, cutoff: float) -> tuple[Vector, float]:
    """Solve the optimality conditions exactly on the active set and support at this cutoff.

    On them  sum_i c_i y_i x_ij xi_i = lam v_j sign(w_j)  and  sum_i c_i y_i xi_i = 0  are linear.
    """
    active = np.flatnonzero((np.abs(w) * np.std(X, axis=0) > cutoff) & np.isfinite(v))
    support = slacks(X, y, w, b) > cutoff
    Z = X[np.ix_(support, active)]
    target = lam * v[active] * np.sign(w[active])
    if with_intercept:
        Z, target = np.column_stack([Z, np.ones(len(Z))]), np.append(target, 0.0)
    if Z.size == 0:
        return w, b
    weighted = Z * c[support, None]
    x = np.linalg.lstsq(weighted.T @ Z, weighted.T @ y[support] - target, rcond=1e-13)[0]
    fresh = np.zeros_like(w)
    fresh[active] = x[: len(active)]
    return fresh, (float(x[-1]) if with_intercept else 0.0)


def _certified(X, y, lam, w, b, c, v, with_intercept: bool) -> Solution:
    """The pair with a gap from a dual point made feasible by projection and scaling."""
    xi = slacks(X, y, w, b)
    alpha = c * xi
    primal = primal_value(X, y, lam, w, b, c=c, v=v)
    free = list(X[:, v == 0.0].T)
    if with_intercept:
        free.append(np.ones(len(y)))
    point = _orthogonal(alpha, [y * f for f in free])
    penalised = (v > 0.0) & np.isfinite(v)
    worst = np.max(np.abs(X[:, penalised].T @ (y * point)) / v[penalised], initial=0.0)
    point *= min(1.0, lam / worst) if worst > 0.0 else 1.0
    gap = primal - dual_value(point, c=c) if point.min() >= 0.0 else np.inf
    return Solution(lam, w, b, xi, alpha, alpha / lam, primal, float(gap))


def _orthogonal(alpha: Vector, directions: list[Vector]) -> Vector:
    """`alpha` on its support, made orthogonal to `directions` (a rounding-sized correction)."""
    support = alpha > 0.0
    if not directions or not support.any():
        return alpha.copy()
    Z = np.column_stack(directions)[support]
    point = alpha.copy()
    point[support] -= Z @ np.linalg.lstsq(Z, alpha[support], rcond=1e-12)[0]
    return point


# --- a linear function over a ball, half-spaces and hyperplanes ----------------------------------


def maximise(
    f: ArrayLike,
    ball_centre: ArrayLike,
    ball_radius: float,
    cuts: Sequence[tuple[ArrayLike, float]] = (),
    equalities: Sequence[ArrayLike] = (),
) -> tuple[float, Vector]:
    """Maximum of f'theta over |theta - centre| <= radius, a'theta <= beta, e'theta = 0, and where.

    The equalities are removed by working in an orthonormal basis of their null space; what is left
    is a second-order cone program in u = (theta - centre)/radius.  The value is correct to about
    1e-9 of |f|(|centre| + radius), for sets with an interior and for single points.
    """
    f, centre = np.asarray(f, float), np.asarray(ball_centre, float)
    basis = _null_space([np.asarray(e, float) for e in equalities], len(f))
    start = basis @ (basis.T @ centre)
    squared = ball_radius**2 - np.sum((centre - start) ** 2)
    assert squared >= -1e-12 * (1.0 + ball_radius**2), "the ball misses the subspace"
    radius = np.sqrt(max(0.0, squared))
    rows = [(basis.T @ np.asarray(a, float), float(beta) - np.dot(a, start)) for a, beta in cuts]
    sizes = np.array([np.linalg.norm(a) for a, _ in rows])
    slack = np.array([beta for _, beta in rows])
    reach = np.linalg.norm(centre) + ball_radius
    assert np.all(slack >= -sizes * (radius + 1e-9 * reach) - 1e-12), "a cut misses the ball"
    if radius == 0.0:
        return float(f @ start), start
    real = sizes > 1e-14
    normals = np.array([a for a, _ in rows]).reshape(-1, basis.shape[1])[real] / sizes[real, None]
    u = _unit_ball(basis.T @ f, normals, slack[real] / sizes[real] / radius)
    theta = start + radius * (basis @ u)
    return float(f @ theta), theta


def _null_space(rows: list[Vector], n: int) -> NDArray[np.float64]:
    if not rows:
        return np.eye(n)
    left, size, _ = np.linalg.svd(np.array(rows).T, full_matrices=True)
    return left[:, int(np.sum(size > 1e-12 * size.max())) :]


def _unit_ball(slope: Vector, normals: NDArray[np.float64], limits: Vector) -> Vector:
    """Maximiser of slope'u over |u| <= 1 and normals u <= limits (unit normals)."""
    origin, T, E, ell, unit = _coordinates(normals, limits, len(slope))
    if unit == 0.0:
        return origin
    k = len(slope)
    objective = T.T @ slope / max(np.linalg.norm(T.T @ slope), 1e-300)
    rows, room = normals @ T, limits - normals @ origin
    sizes = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    # |Ex|^2 <= 1 - ell'x  as  |(2Ex, ell'x)| <= 2 - ell'x
    A = np.vstack([ell, -2.0 * E, -ell, rows / sizes[:, None]])
    b = np.concatenate([[2.0], np.zeros(k + 1), room / sizes / unit])
    cones = [clarabel.SecondOrderConeT(k + 2), clarabel.NonnegativeConeT(len(rows))]
    x, z = conic(np.zeros((k, k)), -objective, A, b, cones)
    gap, residual = abs(b @ z - objective @ x), np.linalg.norm(A.T @ z - objective)
    assert gap + residual <= 1e-7, f"a maximum known to {gap + residual:.1e} only"
    return origin + unit * (T @ x)


def _coordinates(normals, limits, k: int):
    """origin, T, E, ell, unit with u = origin + unit T x and |u| <= 1 iff |Ex|^2 <= 1 - ell'x.

    Where a cut a'u <= psi leaves a thin cap (psi < -1/2), x = (s, x') measures its depth in units
    of rho^2 = 1 - psi^2 and its width in units of rho: u = psi a - rho^2 s a + rho W x'.
    """
    if len(limits) == 0 or limits.min() >= -0.5:
        return np.zeros(k), np.eye(k), np.eye(k), np.zeros(k), 1.0
    a, psi = normals[np.argmin(limits)], max(-1.0, float(limits.min()))
    rho = np.sqrt(max(0.0, (1.0 + psi) * (1.0 - psi)))
    T = np.column_stack([-rho * a, _null_space([a], k)])
    E = np.diag(np.append(rho, np.ones(k - 1)))
    return psi * a, T, E, np.append(-2.0 * psi, np.zeros(k - 1)), rho


# --- the nearest point of a polyhedron -----------------------------------------------------------


def nearest(
    point: ArrayLike, rows: ArrayLike, limits: ArrayLike, equalities: Sequence[ArrayLike] = ()
) -> Vector:
    """The point of {theta: rows theta <= limits, e'theta = 0} nearest to `point`.

    Non-negative least squares on the constraints (Lawson and Hanson 1974, chapter 23) ends on the
    exact active set: the point is correct to 1e-11 of |point|.  An interior-point method is off by
    1e-5 where the multiplier of an active constraint is 0, as it is at lambda_max.
    """
    point, rows, limits = (np.asarray(x, float) for x in (point, rows, limits))
    basis = _null_space([np.asarray(e, float) for e in equalities], len(point))
    start, unit = basis @ (basis.T @ point), max(np.linalg.norm(point), 1e-300)
    return _nearest(point, start, unit, basis, rows, limits)[0]


def _nearest(point, start, unit, basis, rows, limits) -> tuple[Vector, Vector]:
    """`nearest`, and the multipliers of its inequalities."""
    real = np.linalg.norm(rows, axis=1) > 0.0
    sizes = np.linalg.norm(rows[real], axis=1)
    normals, room = rows[real] / sizes[:, None], (limits - rows @ start)[real] / sizes
    # |v| is least over A v <= r at v = -d/e, for the residual (d, e) of
    # least |(A, r)'x + (0, 1)| over x >= 0
    dual = np.vstack([(normals @ basis).T, room / unit])
    last = np.eye(len(dual))[-1]
    x = nnls(dual, -last)[0]
    residual = dual @ x + last
    theta = start - unit * (basis @ residual[:-1]) / residual[-1]
    excess = np.max(normals @ (theta - start) - room, initial=0.0)
    assert excess <= 1e-11 * unit, f"the nearest point violates a constraint by {excess:.1e}"
    multipliers = np.zeros(len(rows))
    multipliers[real] = unit * x / residual[-1] / sizes
    return theta, multipliers


# --- random data ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Rows, labels, row weights (c), penalty factors (v) and the smallest lam with w = 0."""

    X: Vector
    y: Vector
    c: Vector
    v: Vector
    lam_max: float

    @property
    def fhat(self) -> Vector:
        """The columns y*f_j."""
        return self.y[:, None] * self.X


def random_problem(
    rng: np.random.Generator,
    n: int,
    m: int,
    *,
    balanced: bool = False,
    weights: bool = False,
    factors: bool = False,
    offset: float = 0.0,
    degenerate: bool = False,
    intercept: bool = True,
) -> Problem:
    """Gaussian columns of random scale, of which a few carry the labels; both classes present.

    balanced    as many rows of one class as of the other (n even)
    weights     row weights between 0.2 and 5
    factors     penalty factors in [0.3, 3], about one in eight 0 and one in eight inf
    offset      column means of this many standard deviations, of either sign
    degenerate  replaces columns by a zero, a constant, a duplicate and a negated one (m >= 5)
    """
    y = np.where(rng.random(n) < rng.uniform(0.25, 0.75), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    if balanced:
        assert n % 2 == 0, "balanced classes need an even number of rows"
        y = np.repeat([1.0, -1.0], n // 2)
    rng.shuffle(y)
    X = rng.standard_normal((n, m))
    X[:, : max(1, m // 3)] += 0.7 * y[:, None] * rng.standard_normal(max(1, m // 3))
    X += offset * rng.choice([-1.0, 1.0], m)
    X *= 10.0 ** rng.uniform(-0.5, 0.5, m)
    if degenerate:
        assert m >= 5, "degenerate data need five columns"
        X[:, m - 4] = 0.0
        X[:, m - 3] = rng.standard_normal()
        X[:, m - 2], X[:, m - 1] = X[:, 0], -X[:, 1]
    c = 10.0 ** rng.uniform(-0.7, 0.7, n) if weights else np.ones(n)
    v = np.ones(m)
    if factors:
        v = rng.uniform(0.3, 3.0, m)
        kind = rng.random(m)
        v[kind < 0.125], v[kind > 0.875] = 0.0, np.inf
        v[0] = 1.0
    return Problem(X, y, c, v, lambda_max(X, y, c=c, v=v, intercept=intercept))
