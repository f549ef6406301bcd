"""Bound plus margin against the same bound in extended precision: never too low.

The reference takes the slacks as they stand in memory and does all else in np.longdouble, by the
formulas of FORMULAS section 2 written out vector by vector; its own error is 2,000 times smaller
than what it judges.  `slack_of_xi` is left at 0 in the reference: it is part of the margin.
"""

from __future__ import annotations

import numpy as np
import pytest

from sievesvm.certify import DualPoint, dual_point
from sievesvm.problem import Problem, largest_level
from sievesvm.screening import dome, region_bounds, sphere

LONG = np.longdouble

pytestmark = pytest.mark.skipif(
    np.finfo(LONG).nmant < 63, reason="np.longdouble is no wider than float64 here"
)

# rows and columns of the blocks: more than a million features in all
SHAPES = [
    (1, 10_000), (2, 100_000), (3, 200_000), (5, 250_000), (10, 250_000), (30, 150_000),
    (100, 60_000), (300, 20_000), (1_000, 4_000), (10_000, 300), (100_000, 30), (1_000_000, 6),
]  # fmt: skip


def block(rng: np.random.Generator, n: int, m: int, dtype: str) -> np.ndarray:
    """Columns with |mean|/sd from 0 to 1e6, some of them constant but for one row or sparse."""
    X = rng.standard_normal((n, m))
    ratio = np.where(rng.random(m) < 0.2, 0.0, 10.0 ** rng.uniform(-1, 6, m))
    X += ratio * rng.choice([-1.0, 1.0], m)
    X[:, rng.random(m) < 0.1] *= rng.random((n, 1)) < 0.2
    X *= 10.0 ** rng.uniform(-2, 2, m)
    return np.asfortranarray(X, dtype=dtype)


def weights(rng: np.random.Generator, n: int, spread: float) -> np.ndarray | None:
    """None, or weights over `spread` orders of magnitude."""
    return 10.0 ** rng.uniform(-spread / 2, spread / 2, n) if spread else None


def coefficients(rng: np.random.Generator, problem: Problem) -> np.ndarray:
    """A few columns, of an effect of about one; the off-centre ones make b large and rounded."""
    m = len(problem.v)
    w = np.zeros(m)
    some = rng.choice(m, min(m, 4), replace=False)
    spread = problem.stats.gamma[some] / np.linalg.norm(problem.e)
    w[some] = np.where(
        spread > 0, 0.3 * rng.standard_normal(len(some)) / np.maximum(spread, 1e-30), 0
    )
    return w


def product(a: np.ndarray, X: np.ndarray) -> np.ndarray:
    """a'X in extended precision, a few columns at a time."""
    step = max(1, 2_000_000 // len(a))
    parts = [a @ X[:, j : j + step].astype(LONG) for j in range(0, X.shape[1], step)]
    return np.concatenate(parts)


class Exact:
    """The dome and the sphere of a point and their maxima, in extended precision."""

    def __init__(self, X: np.ndarray, point: DualPoint, lam: float, tau: float) -> None:
        problem = point.problem
        e, y = problem.e.astype(LONG), problem.y.astype(LONG)
        xi = point.xi.astype(LONG)
        x, tau = 1 / LONG(lam), LONG(tau)
        self.span = orthonormal(
            ([e] if problem.fit_intercept else []) + [e * z for z in problem.Z.T.astype(LONG)]
        )
        s, beta = self.off_span(e * y), self.off_span(e * y * xi)
        self.zeta, m = product(e * beta, X), product(e * s, X)
        step = max(1, 2_000_000 // len(y))
        parts = [e[:, None] * X[:, j : j + step] for j in range(0, X.shape[1], step)]
        self.gamma = np.concatenate(
            [np.sqrt(np.sum(self.off_span(part) ** 2, axis=0)) for part in parts]
        )
        q, h = (x * s - tau * beta) / 2, s - beta
        R, H = np.sqrt(q @ q), np.sqrt(h @ h)
        omega = np.abs(point.w.coef).astype(LONG) @ problem.v[point.w.support].astype(LONG)
        c0 = max(LONG(0), omega - tau * (h @ beta)) - h @ q
        gq, gh = (x * m - tau * self.zeta) / 2, m - self.zeta
        above = tau * self.zeta + maximum(gq, gh, self.gamma, R, H, c0)
        below = -tau * self.zeta + maximum(-gq, -gh, self.gamma, R, H, c0)
        self.dome = np.maximum(above, below)
        self.theta_z = np.abs(tau * self.zeta)
        primal, a = (e * xi) @ (e * xi) / 2 + LONG(lam) * omega, LONG(lam) * tau * beta
        gap = primal - (e * y) @ a + a @ a / 2
        self.sphere = self.theta_z + self.gamma * np.sqrt(2 * max(gap, LONG(0))) * x

    def off_span(self, a: np.ndarray) -> np.ndarray:
        for _ in range(2):
            for q in self.span:
                a = a - (np.multiply.outer(q, q @ a) if a.ndim > 1 else q * (q @ a))
        return a


def orthonormal(columns: list[np.ndarray]) -> list[np.ndarray]:
    """Gram and Schmidt, each column twice; columns of zeros are left out."""
    found: list[np.ndarray] = []
    for column in columns:
        if not column.any():
            continue
        rest = column / np.abs(column).max()
        for _ in range(3):
            for q in found:
                rest = rest - (q @ rest) * q
            rest = rest / np.sqrt(rest @ rest)
        found.append(rest)
    return found


def maximum(gq, gh, gamma, R, H, c0):
    """V of FORMULAS section 1."""
    if H == 0:
        return gq + R * gamma
    psi, nu = max(c0 / H, -R), gh / H
    across = np.sqrt(np.maximum(R * R - psi * psi, 0)) * np.sqrt(np.maximum(gamma**2 - nu**2, 0))
    return np.where((psi >= R) | (nu * R <= psi * gamma), gq + R * gamma, gq + psi * nu + across)


def instances():
    for number, (n, m) in enumerate(SHAPES):
        for dtype in ("float64", "float32"):
            rng = np.random.default_rng([50, number, dtype == "float32"])
            # weights belong to a third of the blocks: 12 orders of magnitude, and mild ones
            spread = [0.0, 12.0, 1.0][(number + (dtype == "float32")) % 3]
            X = block(rng, n, m // 2, dtype)
            y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
            y[0] = 1.0
            y[-1] = -1.0
            yield X, y, weights(rng, n, spread), rng


def test_no_bound_is_too_low_over_a_million_features():
    compared = close = 0
    for X, y, c, rng in instances():
        problem = Problem.of(X, y, sample_weight=c)
        w = coefficients(rng, problem)
        point = dual_point(problem, w)
        top = np.max(np.abs(problem.m), initial=0.0)
        lam = (top if top > 0 else 1.0) * 10.0 ** rng.uniform(-2, 0)
        tau = point.tau(lam)
        exact = Exact(X, point, lam, tau)
        bounds = region_bounds(point, dome(point, lam, tau))
        low = np.flatnonzero(~(bounds >= exact.dome))
        assert len(low) == 0, (X.shape, X.dtype, len(low), (exact.dome - bounds)[low[:3]])
        # tau zeta is feasible in exact arithmetic too, and the norms are what they are called
        assert np.all(exact.theta_z <= problem.v)
        error = np.abs(problem.stats.gamma - exact.gamma)
        assert np.all(error <= problem.error * problem.stats.norm2)
        compared += len(bounds)
        close += np.sum(bounds <= exact.dome * (1 + 1e-6) + 1e-6)
    assert compared >= 1_000_000, compared
    assert close >= 0.5 * compared, (close, compared)  # a margin of any size would pass otherwise


def test_no_bound_is_too_low_with_slacks_from_a_rounded_intercept():
    """Off-centre columns make b large; what y'xi then is, times the mean, is centred away."""
    compared = 0
    for seed in range(40):
        rng = np.random.default_rng([51, seed])
        n, m = int(rng.choice([20, 100, 400])), 400
        X = rng.standard_normal((n, m)) + 10.0 ** rng.uniform(4, 6, m) * rng.choice([-1.0, 1.0], m)
        y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
        problem = Problem.of(X, y)
        point = dual_point(problem, coefficients(rng, problem))
        lam = 0.5 * np.max(np.abs(problem.m))
        exact = Exact(X, point, lam, point.tau(lam))
        bounds = region_bounds(point, dome(point, lam))
        assert np.all(bounds >= exact.dome), (seed, np.max(exact.dome - bounds))
        compared += m
    assert compared >= 10_000


def test_no_bound_is_too_low_beside_unpenalised_columns():
    """Also without an intercept and standardised: dome and sphere, every column with its factor."""
    compared = 0
    for seed in range(120):
        rng = np.random.default_rng([53, seed])
        n, m, p = int(rng.choice([12, 60, 300])), 150, int(rng.integers(0, 4))
        X = block(rng, n, m, "float64")
        X[:, :p] = rng.standard_normal((n, p)) + 10.0 ** rng.uniform(0, 5, p)
        y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        v = np.ones(m)
        v[:p] = 0.0
        problem = Problem.of(
            X,
            y,
            penalty_factor=v,
            sample_weight=weights(rng, n, [0.0, 3.0][seed % 2]),
            fit_intercept=seed % 3 != 2,
            standardize=seed % 4 == 3,
        )
        point = dual_point(problem, coefficients(rng, problem) * np.isfinite(problem.v))
        lam = 0.5 * largest_level(problem)
        if lam == 0:
            continue
        exact = Exact(X, point, lam, point.tau(lam))
        rest = (problem.v > 0) & np.isfinite(problem.v)
        for region, bounds in ((dome, exact.dome), (sphere, exact.sphere)):
            found = region_bounds(point, region(point, lam))
            assert np.all((found >= bounds)[rest]), (seed, region.__name__)
        assert np.all((exact.theta_z <= problem.v)[rest])
        compared += 2 * rest.sum()
    assert compared >= 30_000, compared


def test_the_gap_is_no_less_than_in_extended_precision():
    for seed in range(60):
        rng = np.random.default_rng([52, seed])
        n, m = int(rng.choice([5, 50, 500])), 60
        X = block(rng, n, m, "float64")
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        problem = Problem.of(X, y, sample_weight=weights(rng, n, [0.0, 12.0][seed % 2]))
        point = dual_point(problem, coefficients(rng, problem))
        lam = 0.3 * np.max(np.abs(problem.m))
        certificate = point.certificate(lam)
        e = problem.e.astype(LONG)
        w = point.w.coef.astype(LONG)
        u = X[:, point.w.support].astype(LONG) @ w
        xi = np.maximum(0, 1 - problem.y * (u + LONG(point.b)))
        primal = np.sum((e * xi) ** 2) / 2 + LONG(lam) * np.abs(w).sum()
        a = LONG(lam) * LONG(certificate.tau) * (e * problem.y * point.xi)
        a = a - e * (e @ a) / (e @ e)
        dual = (e * problem.y) @ a - a @ a / 2
        assert certificate.gap >= primal - dual
        assert certificate.gap <= (primal - dual) * (1 + 1e-6) + 1e-9 * primal
