r"""The paper, theorem by theorem, against a conic solver.

Every theorem, proposition and corollary is a test that carries its number and the paper's label.
LaTeX numbers them with one counter per section; all of them stand in section 6.

    6.1  Proposition  prop:vi          variational inequality
    6.2  Theorem      th:small-ball    the smallest of the balls B_t
    6.3  Theorem      th:ball-same     the discs P_t coincide
    6.4  Theorem      th:ball-contain  the sets Q_t are nested
    6.5  Theorem      th:b0            case beta = 0
    6.6  Corollary    cor:b0           its -min theta'f
    6.7  Theorem      (eq. a0min)      case beta > 0, alpha = 0
    6.8  Corollary    (eq. a0min_all)  its -min theta'f
    6.9  Theorem      (eq. an0min)     case beta > 0, alpha > 0
    6.10 Corollary    (eq. an0min_all) its -min theta'f

Sections 2 to 5 state their results in running text; their tests carry the section.  The formulas
are those of tests/paper.py, mended as docs/errata.md says.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import oracles
import paper
from oracles import Problem, Solution

N_PROBLEMS = 240


@cache
def problem(seed: int) -> Problem:
    """Half of them with balanced classes, a quarter with degenerate columns, a fifth off centre."""
    rng = np.random.default_rng([20, seed])
    n, m = 2 * int(rng.integers(2, 8)), int(rng.integers(1, 10))
    return oracles.random_problem(
        rng,
        n,
        m,
        balanced=seed % 2 == 0,
        degenerate=seed % 4 == 1 and m >= 5,
        offset=20.0 if seed % 5 == 2 else 0.0,
    )


@cache
def solved(seed: int, fraction: float) -> Solution:
    p = problem(seed)
    return oracles.solve(p.X, p.y, fraction * p.lam_max)


@cache
def pair(seed: int) -> tuple[Problem, Solution, Solution, paper.Geometry]:
    """Optima at lam1 > lam2 and the geometry between them; every sixth lam1 is lambda_max."""
    rng = np.random.default_rng([21, seed])
    first = 1.0 if seed % 6 == 0 else float(rng.choice([0.9, 0.7, 0.4, 0.15]))
    one = solved(seed, first)
    two = solved(seed, first * float(rng.choice([0.97, 0.85, 0.5])))
    p = problem(seed)
    return p, one, two, paper.geometry(one.theta, one.lam, two.lam, p.y)


def correlated_pair(seed: int) -> tuple[Problem, Solution, Solution, paper.Geometry]:
    """Correlated columns and a long step, on which features leave the model and rows come back.

    Where the features of theta1 all stay and no row with theta1_i = 0 comes back, theta2 lies on
    the hyperplane (theta1 - 1/lam1)'(theta2 - theta1) = 0, as for nearly every `pair`.
    """
    rng = np.random.default_rng([28, seed])
    n, m = 12, 20
    y = rng.permutation(np.repeat([1.0, -1.0], n // 2))
    X = rng.standard_normal((n, m)) @ rng.standard_normal((m, m))
    X += y[:, None] * rng.standard_normal(m)
    p = Problem(X, y, np.ones(n), np.ones(m), paper.lambda_max(X, y))
    one, two = (oracles.solve(X, y, fraction * p.lam_max) for fraction in (0.4, 0.04))
    return p, one, two, paper.geometry(one.theta, one.lam, two.lam, y)


def cut_pairs(seeds: range):
    """Pairs whose half-space cuts (it does not at lambda_max, nor where K is theta1 alone)."""
    chosen = [pair(seed) for seed in seeds]
    kept = [(p, one, two, g) for p, one, two, g in chosen if not g.no_cut]
    kept = [(p, one, two, g) for p, one, two, g in kept if disc_radius(g) > 1e-6 * paper.norm(g.b)]
    assert len(kept) >= 0.6 * len(chosen)
    return kept


def disc_radius(g: paper.Geometry) -> float:
    """Radius of the disc in which sphere, hyperplane and {y'theta = 0} meet."""
    return g.step / 2 * paper.norm(paper.PP(g.a, g.y, g.one))


def signed_columns(p: Problem) -> list[np.ndarray]:
    columns = [f for f in p.fhat.T if paper.norm(f) > 0.0]
    return columns + [-f for f in columns]


def maximum_over_Q(f, g: paper.Geometry, t: float) -> tuple[float, np.ndarray]:
    """Maximum of f'theta over Q_t with y'theta = 0, and where it is attained."""
    centre, radius = paper.ball(t, g)
    cuts = [] if g.no_cut else [(g.a, g.a @ g.theta1)]
    return oracles.maximise(f, centre, radius, cuts, [g.y])


def maximum_over_K(f, g: paper.Geometry) -> float:
    """Maximum of f'theta over K = Q_0 with y'theta = 0."""
    return maximum_over_Q(f, g, 0.0)[0]


def scale_on_K(f, g: paper.Geometry) -> float:
    """The size of the terms in f'theta on K, to which errors are compared."""
    return paper.norm(f) * (paper.norm(g.theta1) + paper.norm(g.b)) + 1e-300


def project_on_F(p: Problem, point) -> np.ndarray:
    """The point of F nearest to `point`: the dual problem, solved without the primal."""
    n, m = p.X.shape
    rows = np.vstack([-np.eye(n), p.fhat.T, -p.fhat.T])
    return oracles.nearest(point, rows, np.append(np.zeros(n), np.ones(2 * m)), [p.y])


# --- sections 2 and 3: the dual and the primal-dual map -------------------------------------------


def test_section_2_strong_duality():
    for seed in range(120):
        p, one, two, _ = pair(seed)
        for s in (one, two):
            scale = 0.5 * len(p.y)
            assert s.alpha.min() >= 0.0
            assert abs(p.y @ s.alpha) <= 1e-9 * scale
            assert np.max(np.abs(p.fhat.T @ s.alpha)) <= s.lam * (1 + 1e-7)
            assert oracles.dual_value(s.alpha) == pytest.approx(s.primal, abs=1e-8 * scale)
            # the dual is the distance to 1: D(alpha) = n/2 - |alpha - 1|^2/2
            distance = 0.5 * np.sum((s.alpha - 1.0) ** 2)
            assert oracles.dual_value(s.alpha) == pytest.approx(scale - distance, abs=1e-9 * scale)


def test_section_2_weak_duality():
    rng = np.random.default_rng(22)
    for seed in range(60):
        p, one, _, _ = pair(seed)
        w = one.w + rng.standard_normal(p.X.shape[1]) * rng.choice([0.0, 1e-3, 1.0])
        primal = oracles.primal_value(p.X, p.y, one.lam, w, rng.standard_normal())
        feasible = one.lam * project_on_F(p, rng.uniform(0, 2 / one.lam, len(p.y)))
        assert oracles.dual_value(feasible) <= primal + 1e-7 * len(p.y)


def test_section_2_lagrangian_minima():
    """With |fhat'alpha| <= lam inf L(w) = 0; inf L(xi) = -alpha^2/2; at a solution L = P = D."""
    for seed in range(60):
        p, one, _, _ = pair(seed)
        xi, w, b, alpha = 1.0 - p.y * (p.X @ one.w + one.b), one.w, one.b, one.alpha
        L_w = one.lam * np.abs(w).sum() - alpha @ (p.y * (p.X @ w))
        L_xi = 0.5 * one.xi**2 - alpha * one.xi
        L_b = -np.sum(alpha * p.y * b)
        assert L_w == pytest.approx(0.0, abs=1e-7 * len(p.y))
        assert np.allclose(L_xi, -0.5 * alpha**2, atol=1e-12)
        assert L_b == pytest.approx(0.0, abs=1e-7 * len(p.y) * max(1.0, abs(b)))
        total = L_w + L_xi.sum() + L_b + alpha.sum()
        assert total == pytest.approx(one.primal, abs=1e-7 * len(p.y))
        assert np.allclose(one.xi, np.maximum(0.0, xi), atol=1e-12)


def test_section_3_primal_to_dual():
    """eq:primal-dual-relation and eq:is_active01: from (w, b) to theta, the projection of 1/lam."""
    for seed in range(100):
        p, one, _, _ = pair(seed)
        theta = paper.theta_from_primal(p.X, p.y, one.lam, one.w, one.b)
        nearest = project_on_F(p, np.full(len(p.y), 1.0 / one.lam))
        assert theta == pytest.approx(nearest, abs=1e-9 / one.lam)
        z = p.fhat.T @ theta
        nonzero = np.abs(one.w) * p.X.std(axis=0) > 1e-7
        assert np.allclose(z[nonzero], np.sign(one.w[nonzero]), atol=1e-6)
        assert np.all(np.abs(z) <= 1.0 + 1e-7)


def test_section_3_dual_to_primal():
    """From theta alone: features with |fhat'theta| = 1 and rows with theta > 0 determine (w, b)."""
    for seed in range(100):
        p, one, _, _ = pair(seed)
        theta = one.theta
        support = theta > 1e-9 / one.lam
        active = np.flatnonzero(np.abs(p.fhat.T @ theta) >= 1.0 - 1e-7)
        A = np.column_stack([p.X[:, active], np.ones(len(p.y))])
        x = np.linalg.lstsq(A[support], (p.y * (1 - one.lam * theta))[support], rcond=1e-10)[0]
        assert np.allclose(1 - p.y * (A @ x), one.lam * theta, atol=1e-6) or not support.all()
        # w need not be unique; by complementary slackness its image and |w|_1 = (1-alpha)'theta are
        margins = (p.y * (A @ x))[support]
        assert np.allclose(margins, 1 - one.xi[support], atol=1e-6)
        size = (1 - one.alpha) @ theta
        assert size == pytest.approx(np.abs(one.w).sum(), abs=1e-6 * (1 + len(p.y) / one.lam))


# --- sections 4 and 5: lambda_max and the first feature -------------------------------------------


def test_section_4_lambda_max():
    for seed in range(100):
        p = problem(seed)
        top = paper.lambda_max(p.X, p.y)
        assert top == pytest.approx(p.lam_max, rel=1e-9)
        for above in (1.0, 1.3):
            s = oracles.solve(p.X, p.y, above * top)
            assert np.max(np.abs(s.w) * p.X.std(axis=0)) <= 1e-7
            assert s.b == pytest.approx(np.mean(p.y), abs=1e-7)
        below = oracles.solve(p.X, p.y, 0.999 * top)
        assert np.max(np.abs(below.w) * p.X.std(axis=0)) > 1e-5


def test_section_4_theta_at_lambda_max():
    for seed in range(100):
        p = problem(seed)
        theta = paper.theta_at_lambda_max(p.X, p.y)
        nearest = project_on_F(p, np.full(len(p.y), 1.0 / p.lam_max))
        assert theta == pytest.approx(nearest, abs=1e-9 / p.lam_max)
        assert np.max(np.abs(p.fhat.T @ theta)) == pytest.approx(1.0, abs=1e-9)


def test_section_5_first_feature():
    """Just below lambda_max the active features are among those of largest |m_j|, ties included."""
    ties = 0
    for seed in range(150):
        p = problem(seed)
        m = paper.m_vector(p.X, p.y)
        first = np.abs(m) >= p.lam_max * (1 - 1e-9)
        second = np.max(np.abs(m[~first]), initial=0.0) / p.lam_max
        s = oracles.solve(p.X, p.y, p.lam_max * (1 - min(1e-3, 1e-2 * (1 - second))))
        active = np.abs(s.w) * p.X.std(axis=0) > 1e-9
        assert active.any()
        assert not np.any(active & ~first), (seed, second)
        assert np.all(s.w[active] * m[active] > 0.0)
        ties += first.sum() > 1
    assert ties >= 3


# --- section 6.1: the set K -----------------------------------------------------------------------


def test_proposition_6_1_variational_inequality():
    """prop:vi, eq:iv-l: (theta1 - 1/lam)'theta is least over F at theta1 (a linear program)."""
    for seed in range(150):
        p, one, _, _ = pair(seed)
        slope = one.theta - 1.0 / one.lam
        rows = np.vstack([p.fhat.T, -p.fhat.T])
        answer = linprog(slope, rows, np.ones(len(rows)), p.y[None, :], [0.0], method="highs")
        assert answer.status == 0
        # theta1 lies in F, so it attains the least value; |theta1|^2 is at most n/lam^2
        assert answer.fun == pytest.approx(slope @ one.theta, abs=1e-10 * len(p.y) / one.lam**2)


def test_equations_iv_line_and_iv_ball():
    """theta2 lies in the half-space (eq:iv-line), in the ball (eq:iv-ball), in K (eq:K)."""
    strictly_inside = 0
    for p, one, two, g in [*map(pair, range(N_PROBLEMS)), *map(correlated_pair, range(80))]:
        d = two.theta - one.theta
        length = np.sqrt(len(p.y)) / two.lam
        assert (one.theta - 1 / one.lam) @ d >= -1e-9 * length**2
        assert (two.theta - 1 / two.lam) @ d <= 1e-9 * length**2
        r = two.theta - g.c
        assert r @ r <= g.b @ g.b + 1e-9 * length**2
        assert g.a @ (g.b + r) <= 1e-9 * length
        assert abs((g.c + r) @ p.y) <= 1e-9 * length
        strictly_inside += g.a @ d < -1e-4 * paper.norm(g.b)
    assert strictly_inside >= 20, "too few pairs tell the half-space from its mirror image"


def test_equation_ball_is_the_combined_inequality():
    """B_t = {(theta-1/lam2)'(theta-theta1) - t (theta1-1/lam1)'(theta-theta1) <= 0}."""
    rng = np.random.default_rng(23)
    for seed in range(150):
        _, one, two, g = pair(seed)
        for t in (0.0, 0.7, 1.0, 4.0):
            centre, radius = paper.ball(t, g)
            theta = centre + 1.5 * radius * rng.standard_normal(len(g.y)) / np.sqrt(len(g.y))
            d = theta - one.theta
            combined = (theta - 1 / two.lam) @ d - t * (one.theta - 1 / one.lam) @ d
            distance = np.sum((theta - centre) ** 2) - radius**2
            assert combined == pytest.approx(distance, abs=1e-9 * (radius**2 + len(g.y)))


def test_theorem_6_2_smallest_ball():
    """th:small-ball: the t, the centre c_hat, the radius l; no other t gives a smaller ball."""
    for _, one, _, g in cut_pairs(range(N_PROBLEMS)):
        t = paper.smallest_t(g)
        centre, radius = paper.ball(t, g)
        c_hat, least = paper.small_ball(g)
        assert t >= 1.0 - 1e-12
        assert radius == pytest.approx(least, rel=1e-9)
        assert np.allclose(centre, c_hat, atol=1e-9 * (paper.norm(one.theta) + radius) * t)
        for other in np.concatenate([np.linspace(0.0, 3.0 * t, 60), [0.999 * t, 1.001 * t]]):
            assert paper.ball(other, g)[1] >= least * (1 - 1e-12)
        assert paper.ball(0.99 * t, g)[1] > least
        assert paper.ball(1.01 * t, g)[1] > least


def test_theorem_6_3_equal_discs():
    """th:ball-same: on the hyperplane, a point is in B_t for one t iff it is for every t."""
    rng = np.random.default_rng(24)
    inside = total = 0
    for _, one, _, g in cut_pairs(range(N_PROBLEMS)):
        c_hat, least = paper.small_ball(g)
        direction = paper.P(g.a, rng.standard_normal(len(g.y)))
        theta = c_hat + rng.uniform(0, 2) * least * direction / paper.norm(direction)
        assert abs(g.a @ (theta - one.theta)) <= 1e-9 * (1 + paper.norm(theta))
        excess = []
        for t in (0.0, 0.5, paper.smallest_t(g), 7.0):
            centre, radius = paper.ball(t, g)
            excess.append(np.sum((theta - centre) ** 2) - radius**2)
        assert np.ptp(excess) <= 1e-9 * (radius**2 + np.sum(centre**2))
        inside, total = inside + (excess[0] < 0), total + 1
    assert 0.2 * total < inside < 0.8 * total


def test_theorem_6_4_nested_sets():
    """th:ball-contain: Q_s is inside Q_t for s <= t: its extreme points, and every maximum."""
    rng = np.random.default_rng(25)
    strict = 0
    for *_, g in cut_pairs(range(0, N_PROBLEMS, 2)):
        times = sorted([0.0, *rng.uniform(0, 3, 2), paper.smallest_t(g)])
        f = rng.standard_normal(len(g.y))
        maxima = [maximum_over_Q(f, g, t) for t in times]
        scale = scale_on_K(f, g)
        for (smaller, extreme), (larger, _), t in zip(maxima, maxima[1:], times[1:], strict=False):
            assert smaller <= larger + 1e-7 * scale
            centre, radius = paper.ball(t, g)
            assert paper.norm(extreme - centre) <= radius * (1 + 1e-9)
        strict += maxima[0][0] < maxima[-1][0] - 1e-4 * scale
    assert strict >= 20


# --- sections 6.2 to 6.6: the three cases ---------------------------------------------------------


def check_kkt(fhat, g: paper.Geometry, least: paper.Minimum) -> None:
    """eq:kkt-fist to eq:kkt-last for K, with r and alpha measured from the centre c of B_0."""
    alpha = paper.alpha_on_K(least, g)
    r = least.centre + least.r - g.c
    size, force = paper.norm(g.b), paper.norm(fhat) + abs(least.beta) * paper.norm(g.b)
    length = size + paper.norm(g.theta1)
    assert alpha >= -1e-8 * force  # dual feasibility
    assert least.beta >= 0.0
    assert r @ r <= size**2 + 1e-8 * length**2  # primal feasibility
    assert g.a @ (g.b + r) <= 1e-8 * length
    assert abs((g.c + r) @ g.y) <= 1e-8 * length * np.sqrt(len(g.y))
    assert abs(alpha * (g.a @ (g.b + r))) <= 1e-8 * force * length  # complementary slackness
    assert abs(least.beta * (r @ r - size**2)) <= 1e-8 * force * length
    gradient = fhat + alpha * g.a + least.beta * r + least.rho * g.y  # stationarity
    assert paper.norm(gradient) <= 1e-8 * force
    # the value: at the minimiser, by its formula, and by the conic solver
    scale = scale_on_K(fhat, g)
    assert fhat @ least.r == pytest.approx(least.least, abs=1e-8 * scale)
    assert -fhat @ (least.centre + least.r) == pytest.approx(least.neg_min, abs=1e-8 * scale)
    assert maximum_over_K(-fhat, g) == pytest.approx(least.neg_min, abs=1e-7 * scale)


def instances(name: str, seeds: range) -> list[tuple[np.ndarray, paper.Geometry]]:
    """Every signed column of the problems that falls into the case `name`."""
    found = []
    for p, _, _, g in cut_pairs(seeds):
        found += [(f, g) for f in signed_columns(p) if paper.case(f, g) == name]
    return found


def collinear_instances() -> list[tuple[np.ndarray, paper.Geometry]]:
    """Columns fhat = -k a + rho y, for which the cosine is -1."""
    rng = np.random.default_rng(26)
    chosen = cut_pairs(range(N_PROBLEMS))
    return [(g.y * rng.normal() - g.a * rng.uniform(0.1, 9), g) for *_, g in chosen]


def test_section_6_3_beta_zero_needs_a_vanishing_gradient():
    """With beta = 0 and fhat + alpha a + rho y not 0, the Lagrangian has no lower bound."""
    rng = np.random.default_rng(27)
    for p, _, _, g in cut_pairs(range(40)):
        for f in signed_columns(p)[:2]:
            gradient = f + rng.uniform() * g.a + rng.normal() * g.y
            values = [gradient @ (-t * gradient) for t in (1.0, 1e3, 1e6)]
            assert values[2] < values[1] < values[0] < 0.0


def test_theorem_6_5_beta_zero():
    """th:b0: multipliers, and a minimum attained by every point of K on the hyperplane."""
    natural = instances("beta=0", range(N_PROBLEMS))
    assert len(natural) >= 20
    for f, g in natural + collinear_instances():
        assert paper.case(f, g) == "beta=0"
        least = paper.beta_zero(f, g)
        assert least.alpha > 0.0
        assert least.beta == 0.0
        check_kkt(f, g, least)
        c_hat, _ = paper.small_ball(g)  # another minimiser: the centre of the disc in y'theta = 0
        centre = c_hat - (c_hat @ g.y) / (paper.P(g.a, g.y) @ g.y) * paper.P(g.a, g.y)
        assert -f @ centre == pytest.approx(least.neg_min, abs=1e-8 * scale_on_K(f, g))


def test_corollary_6_6_beta_zero():
    """cor:b0: -min theta'f = |P_y f|/|P_y a| a'theta1 where the cosine is -1, not where it is +1.

    At +1 it is |P_y f|/|P_y a| times the maximum of -a'theta over K: larger or smaller.
    """
    too_large = too_small = 0
    for f, g in collinear_instances():
        expected = paper.norm(paper.P(g.y, f)) / paper.norm(paper.P(g.y, g.a)) * (g.a @ g.theta1)
        assert paper.beta_zero(f, g).neg_min == pytest.approx(expected)
        assert maximum_over_K(-f, g) == pytest.approx(expected, abs=1e-7 * scale_on_K(f, g))
        opposite, scale = maximum_over_K(f, g), scale_on_K(f, g)
        assert paper.neg_min(-f, g.theta1, g.lam1, g.lam2, g.y) == pytest.approx(
            opposite, abs=1e-7 * scale
        )
        too_large += opposite < expected - 1e-3 * scale
        too_small += opposite > expected + 1e-3 * scale
    assert too_large >= 20
    assert too_small >= 5


def test_theorem_6_7_alpha_zero():
    found = instances("alpha=0", range(N_PROBLEMS))
    assert len(found) >= 100
    for f, g in found:
        least = paper.alpha_zero(f, g)
        assert least.alpha == 0.0
        assert least.beta > 0.0
        check_kkt(f, g, least)


def test_theorem_6_7_at_lambda_max():
    """There the half-space does not cut, and the formulas of the case alpha = 0 hold throughout."""
    checked = 0
    for seed in range(0, N_PROBLEMS, 6):
        p, _, _, g = pair(seed)
        assert g.no_cut
        for f in signed_columns(p):
            if paper.case(f, g) == "void":
                continue
            least = paper.alpha_zero(f, g)
            r, scale = least.r, scale_on_K(f, g)
            assert paper.norm(f + least.beta * r + least.rho * g.y) <= 1e-9 * paper.norm(f) * 10
            assert r @ r == pytest.approx(g.b @ g.b, rel=1e-9)
            assert abs((g.c + r) @ g.y) <= 1e-8 * len(g.y) * paper.norm(g.c)
            assert f @ r == pytest.approx(least.least, abs=1e-8 * scale)
            assert maximum_over_K(-f, g) == pytest.approx(least.neg_min, abs=1e-7 * scale)
            checked += 1
    assert checked >= 100


def test_corollary_6_8_alpha_zero():
    """-min theta'f = |P_y b||P_y f| - P_y b'P_y f - f'theta1, given the printed condition."""
    for f, g in instances("alpha=0", range(0, N_PROBLEMS, 2)):
        Pb, Pf = paper.P(g.y, g.b), paper.P(g.y, f)
        assert paper.P(g.y, g.a) @ (Pb / paper.norm(Pb) - Pf / paper.norm(Pf)) <= 0.0
        expected = paper.norm(Pb) * paper.norm(Pf) - Pb @ Pf - f @ g.theta1
        assert maximum_over_K(-f, g) == pytest.approx(expected, abs=1e-7 * scale_on_K(f, g))


def test_theorem_6_9_both_positive():
    """The alpha of the equation a'r = 0 in the smallest ball; K's own is positive as well."""
    found = instances("both>0", range(N_PROBLEMS))
    assert len(found) >= 200
    for f, g in found:
        least = paper.both_positive(f, g)
        _, radius = paper.small_ball(g)
        length = paper.norm(g.theta1) + paper.norm(g.b)
        assert abs(g.a @ least.r) <= 1e-8 * length
        assert paper.norm(least.r) == pytest.approx(radius, abs=1e-7 * length)
        gradient = f + least.alpha * g.a + least.beta * least.r + least.rho * g.y
        assert paper.norm(gradient) <= 1e-8 * (paper.norm(f) + least.beta * length)
        assert least.beta > 0.0
        assert least.beta == pytest.approx(  # the other form of beta
            paper.norm(paper.P(g.a, f) + least.rho * paper.P(g.a, g.y)) / radius, rel=1e-5
        )
        check_kkt(f, g, least)


def test_corollary_6_10_both_positive():
    for f, g in instances("both>0", range(0, N_PROBLEMS, 2)):
        PPf, PP1 = paper.PP(g.a, g.y, f), paper.PP(g.a, g.y, g.one)
        bracket = paper.norm(PPf) * paper.norm(PP1) - PP1 @ PPf
        expected = g.step / 2 * bracket - f @ g.theta1
        scale = scale_on_K(f, g)
        assert paper.both_positive(f, g).neg_min == pytest.approx(expected, abs=1e-12 * scale)
        assert maximum_over_K(-f, g) == pytest.approx(expected, abs=1e-7 * scale)


# --- section 6.7: Algorithm 1 ---------------------------------------------------------------------


def test_algorithm_1_bounds_are_the_maxima_over_K():
    count = {"void": 0, "beta=0": 0, "alpha=0": 0, "both>0": 0}
    for seed in range(N_PROBLEMS):
        p, one, two, g = pair(seed)
        for f in signed_columns(p):
            count[paper.case(f, g)] += 1
            value = paper.neg_min(f, one.theta, one.lam, two.lam, p.y)
            assert value == pytest.approx(maximum_over_K(-f, g), abs=1e-7 * scale_on_K(f, g))
    assert min(count.values()) >= 20, count


def test_algorithm_1_never_discards_an_active_feature():
    """Corrected, over the whole collection; and it must discard something to be worth a test."""
    active_features = discarded = 0
    for seed in range(N_PROBLEMS):
        p, one, two, _ = pair(seed)
        bounds = paper.upper_bounds(p.X, p.y, one.lam, one.theta, two.lam)
        assert np.all(bounds >= np.abs(p.fhat.T @ two.theta) - 1e-7)
        kept = paper.screen(p.X, p.y, one.lam, one.theta, two.lam, margin=1e-7)
        active = np.flatnonzero(np.abs(two.w) * p.X.std(axis=0) > 1e-7)
        assert set(active) <= set(kept), seed
        active_features += len(active)
        discarded += p.X.shape[1] - len(kept)
    assert active_features >= 300
    assert discarded >= 200


@st.composite
def geometries(draw) -> tuple[np.ndarray, paper.Geometry]:
    """Any theta1 >= 0 with y'theta1 = 0, optimal for no data in particular, and any column."""
    number = st.integers(-6, 6)
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=3, max_size=7)))
    y[0], y[1] = 1.0, -1.0
    theta1 = np.array([draw(st.integers(0, 6)) for _ in y], dtype=float)
    theta1[y > 0] *= theta1[y < 0].sum()
    theta1[y < 0] *= theta1[y > 0].sum() / max(1.0, theta1[y < 0].sum())
    theta1 /= max(1.0, theta1.max())
    lam1 = draw(st.sampled_from([0.5, 1.0, 2.0]))
    lam2 = lam1 * draw(st.sampled_from([0.3, 0.75, 0.98]))
    fhat = np.array([float(draw(number)) for _ in y])
    return fhat, paper.geometry(theta1, lam1, lam2, y)


@given(geometries())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_algorithm_1_on_any_geometry(drawn):
    """neg_min is the maximum over K for every ball and half-space through theta1.

    Small integers make the degenerate positions common: collinear, tangent, constant, zero.
    """
    fhat, g = drawn
    value = paper.neg_min(fhat, g.theta1, g.lam1, g.lam2, g.y)
    assert value == pytest.approx(maximum_over_K(-fhat, g), abs=2e-7 * scale_on_K(fhat, g))
