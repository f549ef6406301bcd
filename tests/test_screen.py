"""Regions and bounds against a conic solver, and the rules against optima.

The oracle knows nothing of the projected geometry of the library: it maximises |fhat'theta| over
the ball, the half-space and the equalities as they are first written down, with the vector e in
the place of s and with the columns y e f.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracles
import paper
from sievesvm import as_columns, duality_gap, lambda_max, screen
from sievesvm.certify import DualPoint, dual_point
from sievesvm.problem import Problem
from sievesvm.screening import (
    Region,
    dome,
    entering_cut,
    exact_point,
    look_ahead,
    reference,
    reference_bounds,
    region_bounds,
    safe_bounds,
    sphere,
)
from sievesvm.screening import paper as paper_region

EXAMPLES = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@dataclass(frozen=True)
class Instance:
    """Data with every generalisation, and the library's problem made of it."""

    seed: int
    n: int
    m: int
    balanced: bool
    weights: bool
    factors: bool
    degenerate: bool
    intercept: bool
    standardize: bool
    fraction: float  # lam / lambda_max
    noise: float  # of w, relative

    @cached_property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng([40, self.seed])

    @cached_property
    def data(self) -> oracles.Problem:
        return oracles.random_problem(
            np.random.default_rng([41, self.seed]),
            self.n + (self.n % 2 if self.balanced else 0),
            self.m,
            balanced=self.balanced,
            weights=self.weights,
            factors=self.factors,
            degenerate=self.degenerate,
            intercept=self.intercept,
        )

    @cached_property
    def options(self) -> dict:
        return {
            "sample_weight": self.data.c,
            "penalty_factor": self.data.v,
            "fit_intercept": self.intercept,
            "standardize": self.standardize,
        }

    @cached_property
    def problem(self) -> Problem:
        return Problem.of(self.data.X, self.data.y, **self.options)

    @cached_property
    def lam_max(self) -> float:
        return lambda_max(self.data.X, self.data.y, **self.options)

    @cached_property
    def lam(self) -> float:
        return self.fraction * self.lam_max

    def solve(self, lam: float) -> oracles.Solution:
        p = self.data
        return oracles.solve(p.X, p.y, lam, c=p.c, v=self.problem.v, intercept=self.intercept)

    def near(self, lam: float) -> np.ndarray:
        """Coefficients near the optimum at lam, as near as `noise` says."""
        w = self.solve(lam).w
        return w * (1 + self.noise * self.rng.standard_normal(len(w)))

    def point(self, lam: float) -> DualPoint:
        return dual_point(self.problem, self.near(lam))

    # --- the geometry as first written down, in the coordinates y e f ---

    @property
    def e(self) -> np.ndarray:
        return np.sqrt(self.data.c)

    def column(self, j: int) -> np.ndarray:
        return self.e * self.data.fhat[:, j]

    @property
    def equalities(self) -> list[np.ndarray]:
        free = [self.column(j) for j in self.problem.free]
        return free + ([self.e * self.data.y] if self.intercept else [])

    def off_equalities(self, a: np.ndarray) -> np.ndarray:
        if not self.equalities:
            return a
        A = np.column_stack(self.equalities)
        return a - A @ np.linalg.lstsq(A, a, rcond=None)[0]

    def beta(self, point: DualPoint) -> np.ndarray:
        return self.e * point.xi

    def maximum(self, j: int, centre, radius, cuts=()) -> float:
        f = self.column(j)
        sides = (f, -f)
        return max(oracles.maximise(g, centre, radius, cuts, self.equalities)[0] for g in sides)

    def ball(self, theta, lam: float) -> tuple[np.ndarray, float]:
        return (self.e / lam + theta) / 2, float(np.linalg.norm(self.e / lam - theta) / 2)

    def columns(self) -> np.ndarray:
        """Two or three penalised columns."""
        v = self.problem.v
        some = np.flatnonzero((v > 0) & np.isfinite(v))
        return some[:3]


@st.composite
def instances(draw, **fixed) -> Instance:
    degenerate = draw(st.booleans())
    chosen = {
        "seed": draw(st.integers(0, 10_000)),
        "n": draw(st.integers(4, 14)),
        "m": draw(st.integers(5, 9) if degenerate else st.integers(2, 9)),
        "balanced": draw(st.booleans()),
        "weights": draw(st.booleans()),
        "factors": draw(st.sampled_from([False, False, True])),
        "degenerate": degenerate,
        "intercept": draw(st.sampled_from([True, True, True, False])),
        "standardize": draw(st.sampled_from([False, False, True])),
        "fraction": draw(st.sampled_from([0.99, 0.9, 0.6, 0.3, 0.1])),
        "noise": draw(st.sampled_from([0.0, 1e-6, 1e-2, 1.0])),
    }
    instance = Instance(**(chosen | fixed))
    # nothing to screen where the unpenalised columns explain every row
    if instance.lam_max < 1e-6 * np.linalg.norm(instance.data.X):
        return draw(st.nothing())
    return instance


COUNT: Counter[str] = Counter()


RegionOf = Callable[[DualPoint], tuple[Region, np.ndarray | None]]


def check(instance: Instance, name: str, point: DualPoint, region_of: RegionOf, ball, cuts) -> None:
    """The bound is the maximum over the region; with its margin it is no less."""
    bare = point.without_margins()
    formula = region_bounds(bare, *region_of(bare))
    bounds = region_bounds(point, *region_of(point))
    for j in instance.columns():
        exact = instance.maximum(j, *ball, cuts)
        scale = np.linalg.norm(instance.column(j)) * (np.linalg.norm(ball[0]) + ball[1])
        assert formula[j] == pytest.approx(exact, abs=1e-7 * scale), (name, j)
        assert bounds[j] >= formula[j], (name, j)
        COUNT[name] += 1


# --- closed forms against the conic solver -------------------------------------------------------


@given(instances())
@EXAMPLES
def test_dome_is_the_maximum_over_ball_and_half_space(instance: Instance):
    point, lam = instance.point(instance.lam), instance.lam
    tau = point.tau(lam) * instance.rng.choice([1.0, 0.7])
    beta = instance.beta(point)
    cut = dome(point, lam, tau).h_norm > 0
    cuts = [(instance.e - beta, point.omega)] if cut else []
    ball = instance.ball(tau * beta, lam)
    check(instance, "dome", point, lambda p: (dome(p, lam, tau), None), ball, cuts)


@given(instances(noise=0.0))
@EXAMPLES
def test_entering_cut_is_the_maximum_over_ball_and_half_space(instance: Instance):
    point, lam = dual_point(instance.problem), instance.lam
    k = point.limiting
    assert k >= 0
    normal = np.copysign(1.0, point.zeta[k]) * instance.column(k)
    cuts = [(normal, instance.problem.v[k])]
    ball = instance.ball(point.tau(lam) * instance.beta(point), lam)

    def region_of(p: DualPoint) -> tuple[Region, np.ndarray]:
        return entering_cut(p, lam), p.limiting_products

    check(instance, "entering", point, region_of, ball, cuts)


@given(st.sampled_from([0.03, 0.3, 1.0]).flatmap(lambda noise: instances(noise=noise)))
@EXAMPLES
def test_sphere_is_the_maximum_over_the_sphere(instance: Instance):
    point, lam = instance.point(instance.lam), instance.lam
    theta = point.tau(lam) * instance.beta(point)
    beta, alpha = instance.beta(point), lam * theta
    primal = 0.5 * beta @ beta + lam * point.omega
    gap = max(0.0, primal - (instance.e @ alpha - 0.5 * alpha @ alpha))
    if gap < 1e-8 * primal:  # a square root of rounding: nothing to compare
        return
    ball = (theta, np.sqrt(2 * gap) / lam)
    check(instance, "sphere", point, lambda p: (sphere(p, lam), None), ball, [])


@given(instances(noise=0.0))
@EXAMPLES
def test_paper_K_is_the_maximum_over_K(instance: Instance):
    lam1 = instance.lam
    lam2 = lam1 * instance.rng.choice([0.97, 0.8, 0.5])
    theta1 = instance.solve(lam1).theta
    point = exact_point(instance.problem, lam1, theta1)
    extended = theta1 / instance.e
    h = instance.e / lam1 - extended
    cut = paper_region(point, lam2, lam1).h_norm > 0
    cuts = [(h, h @ extended)] if cut else []
    ball = instance.ball(extended, lam2)
    check(instance, "paper", point, lambda p: (paper_region(p, lam2, lam1), None), ball, cuts)


@given(instances())
@EXAMPLES
def test_inflated_K_is_the_maximum_over_inflated_K(instance: Instance):
    lam1 = instance.lam
    lam2 = lam1 * instance.rng.choice([0.97, 0.8, 0.5])
    point = instance.point(lam1)
    gap1 = point.certificate(lam1).gap
    theta = point.tau(lam1) * instance.beta(point)
    r = np.sqrt(2 * gap1) / lam1
    kappa = r * max(np.linalg.norm(instance.off_equalities(instance.e) / lam2 - theta), r)
    h = instance.e / lam1 - theta
    cut = paper_region(point, lam2, lam1, gap1).h_norm > 0
    cuts = [(h, h @ theta + kappa)] if cut else []
    ball = instance.ball(theta, lam2)
    check(
        instance, "inflated", point, lambda p: (paper_region(p, lam2, lam1, gap1), None), ball, cuts
    )


@given(instances())
@settings(EXAMPLES, max_examples=120)
def test_look_ahead_is_the_interval_of_the_maxima(instance: Instance):
    """Theorem C: up to the last index all maxima are below v_j, and the next one is not."""
    lams = instance.lam * np.geomspace(1.0, 0.05, 9)
    point = instance.point(instance.lam)
    tau, beta = point.tau(lams[0]), instance.beta(point)
    v = instance.problem.v
    last = look_ahead(point, lams)
    cut = dome(point, lams[0], tau).h_norm > 0
    cuts = [(instance.e - beta, point.omega)] if cut else []
    for j in instance.columns():
        maxima, tolerance = [], 0.0
        for lam in lams[: last[j] + 2]:
            centre, radius = instance.ball(tau * beta, lam)
            maxima.append(instance.maximum(j, centre, radius, cuts))
            scale = np.linalg.norm(instance.column(j)) * (np.linalg.norm(centre) + radius)
            tolerance = max(tolerance, 1e-7 * scale)
        assert np.all(np.array(maxima[: last[j] + 1]) < v[j] + tolerance)
        if last[j] + 1 < len(lams):
            assert maxima[last[j] + 1] >= v[j] - tolerance
        COUNT["look-ahead"] += len(maxima)


def test_each_closed_form_was_compared_often_enough():
    """1,000 maxima of every form; run after the tests above."""
    assert len(COUNT) == 6
    assert min(COUNT.values()) >= 1000, COUNT


@given(instances(noise=0.0, balanced=False), st.sampled_from([0.9, 0.5]))
@EXAMPLES
def test_look_ahead_agrees_with_the_closed_form_for_an_exact_pair(instance: Instance, step: float):
    """FORMULAS section 4: per sign, the x at which the maximum over K reaches v_j."""
    lam1 = instance.lam
    solution = instance.solve(lam1)
    if solution.gap > 1e-11 * instance.data.c.sum() or not solution.w.any():
        return
    point = dual_point(instance.problem, solution.w)
    lams = lam1 * step ** np.arange(25)
    last = look_ahead(point, lams)
    for j in instance.columns():
        x = closed_form_reach(instance, point, lam1, j)
        expected = int(np.sum(1 / lams < x)) - 1
        near = np.any(np.abs(x * lams - 1) < 1e-4)
        assert last[j] == expected or near, (j, x * lam1)


def closed_form_reach(instance: Instance, point: DualPoint, lam1: float, j: int) -> float:
    """The smallest x = 1/lam at which the maximum over K of +-g'theta is v_j."""
    problem = instance.problem
    s, beta, v = problem.s, point.p, problem.v[j]
    p = beta - s  # lam1 (theta1 - s/lam1)
    g = problem.off_span(problem.e * instance.data.X[:, j])
    along = p / np.linalg.norm(p)
    s_perp, g_perp = s - (along @ s) * along, g - (along @ g) * along
    z, found = g @ beta / lam1, []
    if np.linalg.norm(g) <= 1e-9 * np.linalg.norm(problem.e * instance.data.X[:, j]):
        return np.inf
    if abs(z) > v * (1 - 1e-9):
        return 0.0
    for sign in (1.0, -1.0):
        reach = sign * g_perp @ s_perp + np.linalg.norm(g_perp) * np.linalg.norm(s_perp)
        x = 1 / lam1 + 2 * (v - sign * z) / reach if reach > 0 else np.inf
        gamma, theta1 = np.linalg.norm(g), beta / lam1
        q = (s * x - theta1) / 2 if np.isfinite(x) else s
        if np.linalg.norm(q) * sign * (g @ p) >= -(p @ q) * gamma:  # the ball, not the disc
            m, rest = sign * g @ s, 2 * v - sign * z
            a2 = gamma**2 * (s @ s) - m**2
            b2 = gamma**2 * (s @ theta1) - rest * m
            c2 = gamma**2 * (theta1 @ theta1) - rest**2
            root = np.sqrt(max(0.0, b2**2 - a2 * c2))
            x = (b2 + root) / a2 if b2 >= 0 else c2 / (b2 - root)
        found.append(x)
    return min(found)


# --- theorems A and B: which region lies in which -----------------------------------------------


@given(instances())
@EXAMPLES
def test_theorem_B_dome_in_sphere_and_in_inflated_K(instance: Instance):
    lam, point = instance.lam, instance.point(instance.lam)
    lam1 = min(1.0, instance.rng.choice([1.02, 1.3]) * instance.fraction) * instance.lam_max
    gap1 = point.certificate(lam1).gap
    point = point.without_margins()
    bounds = region_bounds(point, dome(point, lam))
    slack = 1e-6 * np.linalg.norm(instance.data.X, axis=0) * np.linalg.norm(instance.e) / lam
    assert np.all(bounds <= region_bounds(point, sphere(point, lam)) + slack)
    inflated = paper_region(point, lam, lam1, gap1)
    same_tau = dome(point, lam, inflated.tau)
    assert np.all(region_bounds(point, same_tau) <= region_bounds(point, inflated) + slack)


@given(instances(noise=0.0))
@EXAMPLES
def test_theorem_A_dome_is_K_for_an_exact_pair(instance: Instance):
    lam1, lam2 = instance.lam, 0.8 * instance.lam
    solution = instance.solve(lam1)
    K = paper_region(exact_point(instance.problem, lam1, solution.theta), lam2, lam1)
    point = dual_point(instance.problem, solution.w)
    ours, theirs = dome(point, lam2, min(point.scale, 1 / lam1)), K
    if ours.h_norm == 0 or solution.gap > 1e-11 * instance.data.c.sum():
        return
    v = np.where(np.isfinite(instance.problem.v), instance.problem.v, 1.0)
    size = np.linalg.norm(instance.data.X, axis=0) * np.linalg.norm(instance.e) / lam2
    a, b = region_bounds(point, ours), region_bounds(point, theirs)
    assert a == pytest.approx(b, abs=1e-4 * np.max(size + v))


# --- bounds from a reference vector --------------------------------------------------------------


@given(instances(), st.sampled_from([1.0, 0.95, 0.6]))
@EXAMPLES
def test_reference_bounds_hold(instance: Instance, step: float):
    """Cauchy-Schwarz and Hoelder from other products bound |g_j'theta|, and it is close nearby."""
    known = instance.point(instance.lam)
    lam = step * instance.lam
    point = instance.point(lam)
    bounds = reference_bounds(known, reference(point, lam, known))
    exact = np.abs(point.tau(lam) * point.zeta)
    assert np.all(bounds >= exact)
    rest = reference(point, lam, known).e_two
    assert np.all(bounds <= exact + 2 * instance.problem.stats.gamma * rest + 1e-9 * (1 + exact))


def test_reference_at_the_point_itself_is_exact():
    instance = Instance(7, 12, 6, False, True, False, False, True, False, 0.4, 0.0)
    point = instance.point(instance.lam)
    bounds = reference_bounds(point, reference(point, instance.lam, point))
    assert bounds == pytest.approx(np.abs(point.tau(instance.lam) * point.zeta), rel=1e-9)


def test_hoelder_is_the_shorter_one_for_sparse_columns():
    """A column with one entry is bounded by the largest entry of the rest, not by its length."""
    rng = np.random.default_rng(0)
    X = np.vstack([np.eye(40), -np.eye(40)])[:, :5] + 0.0
    X[:, 1:] += rng.standard_normal((80, 4)) * 0.1
    problem = Problem.of(X, np.repeat([1.0, -1.0], 40))
    known = dual_point(problem)
    point = dual_point(problem, np.array([0.3, 0.2, 0, 0, 0]))
    ref = reference(point, 1.0, known)
    widened = ref._replace(e_two=1e9)
    bound = reference_bounds(known, widened)[0]
    assert bound < 1e3
    assert bound >= abs(point.tau(1.0) * point.zeta[0])


@given(instances())
@EXAMPLES
def test_reference_with_a_ball_covers_the_ball(instance: Instance):
    known, point = instance.point(instance.lam), instance.point(0.9 * instance.lam)
    lam, radius = 0.9 * instance.lam, 0.3 / instance.lam
    bounds = reference_bounds(known, reference(point, lam, known, ball=radius))
    d = instance.problem.off_span(instance.rng.standard_normal(len(instance.e)))
    d *= radius / max(np.linalg.norm(d), 1e-300)
    G = np.stack([instance.problem.off_span(instance.e * f) for f in instance.data.X.T])
    scale = np.linalg.norm(instance.data.X) * np.linalg.norm(instance.e) / instance.lam
    assert np.all(bounds >= np.abs(G @ (point.tau(lam) * point.p + d)) - 1e-12 * scale)


# --- the rules are safe, and of use --------------------------------------------------------------


DECISIONS: Counter[str] = Counter()


@given(instances())
@settings(EXAMPLES, max_examples=250)
def test_no_rule_discards_an_active_feature(instance: Instance):
    data, lam = instance.data, instance.lam
    solution = instance.solve(lam)
    lam1 = min(lam * instance.rng.choice([1.001, 1.1, 1.6]), instance.lam_max)
    before = instance.solve(lam1)
    w = before.w * (1 + instance.noise * instance.rng.standard_normal(len(before.w)))
    v = instance.problem.v
    penalised = (v > 0) & np.isfinite(v)
    z = np.abs(data.fhat.T @ solution.theta)
    for rule, arguments in (
        ("safe", {}),
        ("safe", {"w": w}),
        ("safe", {"w": solution.w}),
        ("gap", {"w": w}),
        ("paper", {}),
        ("paper", {"w": w, "lam1": lam1}),
        ("paper", {"theta1": before.theta, "lam1": lam1}),
    ):
        result = screen(data.X, data.y, lam, rule=rule, **arguments, **instance.options)
        active = np.abs(solution.w) * data.X.std(axis=0) > 1e-7
        assert set(np.flatnonzero(active)) <= set(result.kept), rule
        assert set(np.flatnonzero(v == 0)) <= set(result.kept)
        below = z[penalised] / v[penalised] - result.bounds[penalised]
        assert np.all(below <= 1e-6), rule
        DECISIONS[rule] += data.X.shape[1] - len(result.kept)


def test_the_rules_discarded_something():
    assert min(DECISIONS[rule] for rule in ("safe", "gap", "paper")) >= 200, DECISIONS


def test_paper_rule_is_algorithm_1():
    """The library's K and the paper's three cases give the same bounds, degenerate columns too."""
    compared = 0
    for seed in range(120):
        rng = np.random.default_rng([42, seed])
        p = oracles.random_problem(
            rng, 2 * int(rng.integers(3, 8)), 7, balanced=seed % 2 == 0, degenerate=seed % 3 == 0
        )
        lam1 = p.lam_max * rng.choice([1.0, 0.8, 0.3])
        one = oracles.solve(p.X, p.y, lam1)
        lam2 = lam1 * rng.choice([0.95, 0.6])
        used = np.flatnonzero(np.linalg.norm(p.X, axis=0) > 0)
        expected = paper.upper_bounds(p.X[:, used], p.y, lam1, one.theta, lam2)
        result = screen(p.X, p.y, lam2, rule="paper", lam1=lam1, theta1=one.theta)
        scale = np.linalg.norm(p.X) * np.sqrt(len(p.y)) / lam2
        assert result.bounds[used] == pytest.approx(expected, abs=1e-6 * scale)
        compared += len(used)
    assert compared >= 700


def test_dome_at_lambda_max_uses_the_first_feature():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((60, 400)), np.sign(rng.standard_normal(60))
    lam = 0.9 * lambda_max(X, y)
    point = dual_point(Problem.of(X, y))
    with_cut = safe_bounds(point, lam)
    ball_only = region_bounds(point, dome(point, lam))
    assert np.all(with_cut <= ball_only * (1 + 1e-12))
    assert np.sum(with_cut < 1) > np.sum(ball_only < 1)


def test_the_dome_discards_more_than_the_ball_and_the_sphere():
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((40, 300)), np.sign(rng.standard_normal(40))
    top = lambda_max(X, y)
    w = oracles.solve(X, y, 0.5 * top).w
    kept = {r: len(screen(X, y, 0.45 * top, rule=r, w=w).kept) for r in ("safe", "gap")}
    assert kept["safe"] < kept["gap"] < 300


# --- degenerate input -----------------------------------------------------------------------------


def test_constant_and_zero_columns_are_discarded():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((30, 6))
    X[:, 1], X[:, 4] = 0.0, 1e6
    y = np.where(X[:, 0] > 0, 1, -1)
    result = screen(X, y, 0.99 * lambda_max(X, y))
    assert not {1, 4} & set(result.kept)
    assert np.all(result.bounds[[1, 4]] < 1e-6)


def test_one_class_discards_everything():
    X = np.random.default_rng(9).standard_normal((10, 4))
    for rule in ("safe", "gap", "paper"):
        assert len(screen(X, np.ones(10), 0.1, rule=rule).kept) == 0


def test_a_column_parallel_to_the_cut():
    """With g || h the disc term vanishes, and the bound is still the maximum."""
    instance = Instance(3, 10, 4, False, False, False, False, True, False, 0.4, 0.0)
    point = instance.point(instance.lam)
    h = instance.problem.s - point.p
    X = np.column_stack([instance.data.X, h, -3 * h])
    problem = Problem.of(X, instance.data.y)
    point = dual_point(problem, np.append(instance.near(instance.lam), [0, 0]))
    wider = Instance(3, 10, 4, False, False, False, False, True, False, 0.4, 0.0)
    region = dome(point, instance.lam)
    bounds = region_bounds(point, region)
    theta = point.tau(instance.lam) * wider.beta(point)
    centre, radius = wider.ball(theta, instance.lam)
    for j in (4, 5):
        f = instance.data.y * X[:, j]
        cuts = [(1 - point.xi, point.omega)]
        signed = [oracles.maximise(s * f, centre, radius, cuts, [wider.data.y]) for s in (1, -1)]
        exact = max(value for value, _ in signed)
        assert bounds[j] == pytest.approx(exact, rel=1e-6)


def test_a_bound_that_is_not_a_number_keeps_its_feature():
    rng = np.random.default_rng(10)
    X, y = rng.standard_normal((20, 5)), np.sign(rng.standard_normal(20))
    point = dual_point(Problem.of(X, y))
    region = dome(point, 0.5 * lambda_max(X, y))._replace(radius=np.nan)
    assert np.all(np.isnan(region_bounds(point, region)))
    for field in Region._fields:
        broken = region._replace(**({"radius": 1.0, "h_norm": 1.0} | {field: np.nan}))
        assert not np.any(region_bounds(point, broken) < 1e300), field
    lams = [1e-310, 1e-320]  # 1/lam overflows: inf - inf
    with np.errstate(all="ignore"):
        assert np.all(look_ahead(point, lams) == -1)
        assert len(screen(X, y, 1e-320).kept) == 5


def test_tiny_lambda_and_large_lambda():
    rng = np.random.default_rng(11)
    X, y = rng.standard_normal((20, 5)), np.sign(rng.standard_normal(20))
    assert len(screen(X, y, 1e-9).kept) == 5
    assert len(screen(X, y, 1e9).kept) == 0


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_bounds_do_not_depend_on_the_unit(scale):
    rng = np.random.default_rng(12)
    X, y = rng.standard_normal((30, 8)), np.sign(rng.standard_normal(30))
    top = lambda_max(X, y)
    w = oracles.solve(X, y, 0.5 * top).w
    plain = screen(X, y, 0.45 * top, w=w)
    scaled = screen(X * scale, y, 0.45 * top * scale, w=w / scale)
    assert scaled.bounds == pytest.approx(plain.bounds, rel=1e-9)


# --- what it costs --------------------------------------------------------------------------------


def test_one_product_per_feature_serves_both_signs():
    """Algorithm 1 costs O(mn): one pass for the statistics, one for the products.

    At w = 0 the products are those of the statistics, and the cut takes those of the first feature.
    """
    rng = np.random.default_rng(13)
    X, y = np.asfortranarray(rng.standard_normal((50, 200))), np.sign(rng.standard_normal(50))
    w = np.zeros(200)
    w[3] = 0.1
    for arguments, passes in (
        ({"w": w}, 2 + 1 / 200),  # and the column of w itself
        ({}, 2 + 1 / 200),  # and the first feature
        ({"rule": "gap"}, 1),  # at w = 0 the products are those of the statistics
        ({"rule": "paper"}, 1),
        ({"rule": "paper", "w": w, "lam1": 20.0}, 2 + 1 / 200),
    ):
        source = as_columns(X)
        screen(source, y, 10.0, **arguments)
        assert source.passes == pytest.approx(passes)


def test_statistics_are_computed_once():
    """A second lambda and a second region cost no entry of the matrix."""
    rng = np.random.default_rng(14)
    source = as_columns(np.asfortranarray(rng.standard_normal((50, 200))))
    problem = Problem.of(source, np.sign(rng.standard_normal(50)))
    point = dual_point(problem, np.eye(200)[0])
    read = source.entries_read
    for lam in (10.0, 5.0, 1.0):
        region_bounds(point, dome(point, lam))
        region_bounds(point, sphere(point, lam))
        look_ahead(point, [lam, lam / 2])
    assert source.entries_read == read


# --- words for wrong input ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rule": "edpp"}, "must be 'safe', 'gap' or 'paper'"),
        ({"lam1": 2.0}, "belong to rule 'paper'"),
        ({"rule": "paper", "theta1": np.zeros(6)}, "comes with its lam1"),
        ({"rule": "paper", "w": np.ones(2)}, "needs the lam1"),
        ({"rule": "paper", "lam1": 1.0, "theta1": np.ones(5)}, "5 numbers, but X needs 6"),
        ({"rule": "paper", "lam1": 1.0, "theta1": np.arange(6.0)}, "y'theta1 is not 0"),
        ({"rule": "paper", "lam1": 1.0, "theta1": np.zeros(6)}, "must be 1, but it is 0"),
        ({"rule": "paper", "lam1": 1.0, "theta1": -np.ones(6)}, "negative in row 0"),
        ({"rule": "paper", "lam1": -1.0}, "lam1 must be a positive number"),
        ({"rule": "paper", "lam1": "a"}, "lam1 must be a number"),
        ({"lam": None}, "lam must be a number"),
        ({"lam": np.ones(2)}, "lam must be a number"),
        ({"b": np.nan}, "b must be a finite number"),
        ({"b": "a"}, "b must be a number"),
        ({"w": np.ones(3)}, "3 coefficients, but X needs 2"),
        ({"w": [1.0, np.nan]}, "w is not finite at feature 1"),
        ({"lam": 0.0}, "lam must be a positive number"),
        ({"lam": np.nan}, "lam must be a positive number"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    X, y = np.arange(12.0).reshape(6, 2) ** 2, [0, 1, 0, 1, 1, 0]
    with pytest.raises(ValueError, match=words):
        screen(X, y, **({"lam": 1.0} | arguments))


def test_theta1_must_be_theta_not_alpha():
    """alpha = lam1 theta1 is the likely slip; so is the point of another lambda."""
    rng = np.random.default_rng(17)
    X, y = rng.standard_normal((30, 12)), np.sign(rng.standard_normal(30))
    top = lambda_max(X, y)
    for fraction in (0.05, 0.4, 1.0, 1.5):
        lam1 = fraction * top
        one = oracles.solve(X, y, lam1)
        screen(X, y, 0.9 * lam1, rule="paper", lam1=lam1, theta1=one.theta)
        tiny = np.where(one.theta > 0, one.theta, -1e-18)
        screen(X, y, 0.9 * lam1, rule="paper", lam1=lam1, theta1=tiny)
        for wrong in (one.alpha, one.theta / 2, 0.99 * one.theta):
            with pytest.raises(ValueError, match="must be 1, but it is"):
                screen(X, y, 0.9 * lam1, rule="paper", lam1=lam1, theta1=wrong)


def test_look_ahead_needs_every_feature():
    rng = np.random.default_rng(15)
    problem = Problem.of(rng.standard_normal((10, 4)), np.sign(rng.standard_normal(10)))
    point = dual_point(problem, np.eye(4)[1], columns=np.array([0, 2]))
    assert not point.complete
    with pytest.raises(ValueError, match="some features only"):
        look_ahead(point, [1.0, 0.5])
    with pytest.raises(ValueError, match="must decrease"):
        look_ahead(dual_point(problem), [1.0, 1.0])


def test_a_point_on_some_columns_gives_their_bounds():
    """Only `columns` are checked and bounded; the region holds where the others are inactive."""
    rng = np.random.default_rng(16)
    X, y = rng.standard_normal((30, 12)), np.sign(rng.standard_normal(30))
    lam = 0.6 * lambda_max(X, y)
    solution = oracles.solve(X, y, lam)
    some = np.union1d(np.flatnonzero(solution.w), [1, 5])
    point = dual_point(Problem.of(X, y), solution.w, columns=some)
    bounds = region_bounds(point, dome(point, lam))
    assert len(bounds) == len(some)
    z = np.abs((y[:, None] * X).T @ solution.theta)[some]
    assert np.all(bounds >= z - 1e-9)
    assert point.certificate(lam).gap <= 1e-6 * solution.primal
    assert duality_gap(X, y, lam, solution.w).gap <= 1e-6 * solution.primal
