r"""Zhao and Liu, "Safe and Efficient Screening For Sparse Support Vector Machine", as it stands.

Every formula is written as the paper writes it, with P_u(v) for the projection of v onto the
complement of u, dense vectors of length n and no thought of speed.  Tests compare the library with
this file; docs/errata.md explains where the paper had to be mended.

The mended formulas come first.  In them a = (1/lam1 - theta1)/|1/lam1 - theta1|, the negative of
the printed a: all later formulas of the paper need it so (erratum 2).  Theorems carry the numbers
LaTeX gives them: one counter for theorems, propositions and corollaries within each section, so
that the screening section has Proposition 6.1, Theorems 6.2-6.5, Corollary 6.6, Theorem 6.7,
Corollary 6.8, Theorem 6.9 and Corollary 6.10.  The printed formulas, wrong ones included, follow at
the end.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def norm(u: Vector) -> float:
    return float(np.linalg.norm(u))


def P(u: Vector, v: Vector) -> Vector:
    """P_u(v) = v - (v'u/|u|^2) u."""
    return v - (v @ u) / (u @ u) * u


def PP(u1: Vector, u2: Vector, v: Vector) -> Vector:
    """P_{P_u1(u2)}(P_u1(v))."""
    return P(P(u1, u2), P(u1, v))


# --- sections 3 to 5: primal and dual, lambda_max, the first feature -----------------------------


def theta_from_primal(X, y, lam, w, b) -> Vector:
    """Equation primal-dual-relation: lam*theta_i = max(0, 1 - y_i (w'x_i + b))."""
    return np.maximum(0.0, 1.0 - y * (X @ w + b)) / lam


def m_vector(X, y) -> Vector:
    """sum_i (y_i - (n+ - n-)/n) x_i, whose largest magnitude is lambda_max."""
    return X.T @ (y - np.mean(y))


def lambda_max(X, y) -> float:
    return float(np.max(np.abs(m_vector(X, y))))


def theta_at_lambda_max(X, y) -> Vector:
    """There w = 0 and b = (n+ - n-)/n."""
    return (1.0 - np.mean(y) * y) / lambda_max(X, y)


# --- section 6.1: the set K ----------------------------------------------------------------------


class Geometry(NamedTuple):
    """theta = c + r lies in K iff |r| <= |b|, a'(b + r) <= 0 and (c + r)'y = 0."""

    theta1: Vector
    lam1: float
    lam2: float
    y: Vector
    a: Vector
    b: Vector
    c: Vector

    @property
    def one(self) -> Vector:
        return np.ones_like(self.y)

    @property
    def step(self) -> float:
        """1/lam2 - 1/lam1."""
        return 1.0 / self.lam2 - 1.0 / self.lam1

    @property
    def no_cut(self) -> bool:
        """P_y(a) = 0, as at lambda_max: the half-space does not cut {theta: y'theta = 0}."""
        one, gap = self.one, 1.0 - self.lam1 * self.theta1
        size = norm(P(self.y, one)) + self.lam1 * norm(self.theta1)
        return norm(P(self.y, gap)) <= 1e-9 * size


def geometry(theta1: Vector, lam1: float, lam2: float, y: Vector) -> Geometry:
    """a, b, c of equation K, with the sign of a mended.

    a = 0 where theta1 = 1/lam1 up to round-off (lambda_max with balanced classes): the difference
    has no direction there, and any unit vector made of it would cut K at random.
    """
    one = np.ones_like(y)
    outward = one / lam1 - theta1
    length = norm(outward)
    a = outward / length if length > 1e-12 * norm(one) / lam1 else np.zeros_like(y)
    return Geometry(theta1, lam1, lam2, y, a, (one / lam2 - theta1) / 2, (one / lam2 + theta1) / 2)


def ball(t: float, g: Geometry) -> tuple[Vector, float]:
    """Centre and radius of B_t (equation ball)."""
    u = t * g.theta1 - t * g.one / g.lam1 + g.one / g.lam2
    return (u + g.theta1) / 2, norm(u - g.theta1) / 2


def smallest_t(g: Geometry) -> float:
    """Theorem 6.2: t = 1 + (1/lam2 - 1/lam1) a'1 / |theta1 - 1/lam1|."""
    return 1.0 + g.step * (g.a @ g.one) / norm(g.theta1 - g.one / g.lam1)


def small_ball(g: Geometry) -> tuple[Vector, float]:
    """Theorem 6.2: centre c_hat and radius l of B_t at the smallest t."""
    tangent = P(g.a, g.one)
    return g.step / 2 * tangent + g.theta1, g.step / 2 * norm(tangent)


# --- section 6.2 to 6.6: the three cases ---------------------------------------------------------


class Minimum(NamedTuple):
    """A minimiser theta = centre + r of theta'fhat, multipliers, min r'fhat, -min theta'fhat."""

    alpha: float
    beta: float
    rho: float
    centre: Vector
    r: Vector
    least: float
    neg_min: float


def is_beta_zero(fhat: Vector, g: Geometry) -> bool:
    """The cosine of P_y(a) and P_y(fhat) is -1.

    Measured by the part of P_y(fhat) across P_y(a): a cosine cannot see angles below 1e-8.
    """
    Pa, Pf = P(g.y, g.a), P(g.y, fhat)
    return bool(Pa @ Pf < 0.0 and norm(P(Pa, Pf)) <= 1e-12 * norm(Pf))


def is_alpha_zero(fhat: Vector, g: Geometry) -> bool:
    """P_y(a)'(P_y(b)/|P_y(b)| - P_y(fhat)/|P_y(fhat)|) <= 0."""
    Pb, Pf = P(g.y, g.b), P(g.y, fhat)
    return bool(P(g.y, g.a) @ (Pb / norm(Pb) - Pf / norm(Pf)) <= 0.0)


def beta_zero(fhat: Vector, g: Geometry) -> Minimum:
    """Theorem 6.5 and Corollary 6.6.  Every point of K on the hyperplane is a minimiser: r = -b."""
    y, a, b, c = g.y, g.a, g.b, g.c
    alpha = norm(P(y, fhat)) / norm(P(y, a))
    rho = -(fhat @ y) / (y @ y) - alpha * (a @ y) / (y @ y)
    value = alpha * (a @ g.theta1)
    return Minimum(alpha, 0.0, rho, c, -b, -value - c @ fhat, value)


def alpha_zero(fhat: Vector, g: Geometry) -> Minimum:
    """Theorem 6.7 and Corollary 6.8, with the sign in rho mended (erratum 5)."""
    y, b = g.y, g.b
    Pb, Pf = P(y, b), P(y, fhat)
    beta = norm(Pf) / norm(Pb)
    rho = -(fhat @ y) / (y @ y) + beta * (b @ y) / (y @ y)
    r = -(fhat + rho * y) / beta
    least = -norm(Pb) * norm(Pf) + Pb @ Pf - fhat @ b
    value = norm(Pb) * norm(Pf) - Pb @ Pf - fhat @ g.theta1
    return Minimum(0.0, beta, rho, g.c, r, least, value)


def both_positive(fhat: Vector, g: Geometry) -> Minimum:
    """Theorem 6.9 and Corollary 6.10, with errata 1, 6 and 7 mended.

    r is measured from the centre c_hat of the smallest ball, and alpha is the multiplier of the
    equation a'r = 0 there, of either sign; `alpha_on_K` gives that of the half-space of K.
    """
    y, a, one = g.y, g.a, g.one
    c_hat, _ = small_ball(g)
    Pf, Py, P1 = P(a, fhat), P(a, y), P(a, one)
    PPf, PP1 = P(Py, Pf), P(Py, P1)
    beta = 2.0 / g.step * norm(PPf) / norm(PP1)
    rho = -(Pf @ Py) / (Py @ Py) + norm(PPf) / norm(PP1) * (P1 @ Py) / (Py @ Py)
    alpha = -a @ (fhat + rho * y)
    r = -(fhat + alpha * a + rho * y) / beta
    least = g.step / 2 * (-norm(PPf) * norm(PP1) + PP1 @ PPf - P1 @ Pf)
    value = g.step / 2 * (norm(PPf) * norm(PP1) - PP1 @ PPf) - fhat @ g.theta1
    return Minimum(alpha, beta, rho, c_hat, r, least, value)


def alpha_on_K(least: Minimum, g: Geometry) -> float:
    """The multiplier of a'(b + r) <= 0 in K, from that of a'r = 0 in the smallest ball.

    The two centres differ by c - c_hat = (t/2)|theta1 - 1/lam1| a; beta and rho are the same.
    """
    return float(least.alpha + least.beta * (g.a @ (g.c - least.centre)))


def case(fhat: Vector, g: Geometry) -> str:
    """Which branch of Algorithm 1 applies: "beta=0", "alpha=0", "both>0", or "void".

    "void" stands for the degenerate data on which the printed quotients are 0/0 and theta'fhat is
    constant on K: P_y(fhat) = 0 (a constant column) or P_y(b) = 0.
    """
    if norm(P(g.y, fhat)) <= 1e-12 * norm(fhat) or norm(P(g.y, g.b)) <= 1e-14 * norm(g.c):
        return "void"
    if g.no_cut:
        return "alpha=0"
    if is_beta_zero(fhat, g):
        return "beta=0"
    return "alpha=0" if is_alpha_zero(fhat, g) else "both>0"


def neg_min(fhat: Vector, theta1: Vector, lam1: float, lam2: float, y: Vector) -> float:
    """Algorithm 1's neg_min, mended: -min of theta'fhat over K."""
    g = geometry(theta1, lam1, lam2, y)
    match case(fhat, g):
        case "void":
            return float(-fhat @ theta1)
        case "beta=0":
            return beta_zero(fhat, g).neg_min
        case "alpha=0":
            Pb, Pf = P(y, g.b), P(y, fhat)
            return float(norm(Pb) * norm(Pf) - Pb @ Pf - fhat @ theta1)
        case _:
            PPf, PP1 = PP(g.a, y, fhat), PP(g.a, y, g.one)
            return float(g.step / 2 * (norm(PPf) * norm(PP1) - PP1 @ PPf) - fhat @ theta1)


def upper_bounds(X, y, lam1, theta1, lam2, rule=neg_min) -> Vector:
    """max(neg_min(fhat_j), neg_min(-fhat_j)) for every column: the maximum of |theta'fhat_j|."""
    columns = (y[:, None] * X).T
    pairs = [(rule(f, theta1, lam1, lam2, y), rule(-f, theta1, lam1, lam2, y)) for f in columns]
    return np.max(np.array(pairs).reshape(-1, 2), axis=1)


def screen(X, y, lam1, theta1, lam2, *, margin: float = 1e-9) -> NDArray[np.intp]:
    """Algorithm 1, mended: the kept features.  A NaN keeps its feature."""
    return np.flatnonzero(~(upper_bounds(X, y, lam1, theta1, lam2) < 1.0 - margin))


# --- the formulas as printed ---------------------------------------------------------------------


def printed_geometry(theta1: Vector, lam1: float, lam2: float, y: Vector) -> Geometry:
    """Equation K with a = (theta1 - 1/lam1)/|theta1 - 1/lam1| (erratum 2); 0/0 gives NaN."""
    g = geometry(theta1, lam1, lam2, y)
    outward = theta1 - g.one / lam1
    with np.errstate(all="ignore"):
        return g._replace(a=outward / norm(outward))


def printed_t(g: Geometry) -> float:
    """Theorem 6.2 as printed: t = 1 - (1/lam2 - 1/lam1) a'1; takes the printed a (erratum 4)."""
    return 1.0 - g.step * (g.a @ g.one)


def printed_rho_alpha_zero(fhat: Vector, g: Geometry) -> float:
    """Equation a0minp: a minus before the second term (erratum 5)."""
    y, b = g.y, g.b
    ratio = norm(P(y, fhat)) / norm(P(y, b))
    return float(-(fhat @ y) / (y @ y) - ratio * (b @ y) / (y @ y))


def printed_rho_both_positive(fhat: Vector, g: Geometry) -> float:
    """Equation an0r1: a minus before the second term (erratum 6)."""
    a, y = g.a, g.y
    Pf, Py, P1 = P(a, fhat), P(a, y), P(a, g.one)
    ratio = norm(P(Py, Pf)) / norm(P(Py, P1))
    return float(-(Pf @ Py) / (Py @ Py) - ratio * (P1 @ Py) / (Py @ Py))


def printed_beta_both_positive(fhat: Vector, rho: float, g: Geometry) -> float:
    """The quotient before equation an0r1, with P_a(c_hat)'P_a(y) below (erratum 7)."""
    a, y = g.a, g.y
    c_hat, _ = small_ball(g)
    return float((P(a, fhat) @ P(a, y) + rho * P(a, y) @ P(a, y)) / (P(a, c_hat) @ P(a, y)))


def printed_corollary_beta_zero(fhat: Vector, g: Geometry) -> float | None:
    """Corollary 6.6 as printed: its value wherever |cosine| = 1 (erratum 8); None elsewhere."""
    Pa, Pf = P(g.y, g.a), P(g.y, fhat)
    if norm(P(Pa, Pf)) > 1e-12 * norm(Pf):
        return None
    return float(norm(Pf) / norm(Pa) * (g.a @ g.theta1))


def printed_neg_min(
    fhat: Vector,
    theta1: Vector,
    lam1: float,
    lam2: float,
    y: Vector,
    *,
    mended: Collection[int] = (),
) -> float:
    """Algorithm 1's neg_min as printed; `mended` may name the errata 1 and 2 to be corrected."""
    build = geometry if 2 in mended else printed_geometry
    g = build(theta1, lam1, lam2, y)
    a, b, one = g.a, g.b, g.one
    with np.errstate(all="ignore"):
        Pa, Pb, Pf = P(y, a), P(y, b), P(y, fhat)
        if Pa @ Pf / (norm(Pa) * norm(Pf)) == -1.0:
            return float(norm(Pf) / norm(Pa) * (a @ theta1))
        if Pa @ (Pb / norm(Pb) - Pf / norm(Pf)) <= 0.0:
            return float(norm(Pb) * norm(Pf) - Pb @ Pf - fhat @ theta1)
        PPf, PP1 = PP(a, y, fhat), PP(a, y, one)
        bracket = norm(PPf) * norm(PP1) - PP1 @ PPf
        if 1 in mended:
            return float(g.step / 2 * bracket - fhat @ theta1)
        return float(g.step / 2 * (bracket - fhat @ theta1))


def printed_screen(X, y, lam1, theta1, lam2, *, mended: Collection[int] = ()) -> NDArray[np.intp]:
    """Algorithm 1 as printed: keeps a feature iff max(m1, m2) >= 1, which is False on NaN."""

    def rule(*arguments) -> float:
        return printed_neg_min(*arguments, mended=mended)

    return np.flatnonzero(upper_bounds(X, y, lam1, theta1, lam2, rule) >= 1.0)
