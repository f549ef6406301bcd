"""Certificates: weak duality at any (w, b), the exact gap at an optimum, feasibility."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import oracles
from sievesvm import duality_gap, lambda_max, screen
from sievesvm.certify import distance_to_feasible, dual_point
from sievesvm.problem import Problem


def problems(count: int):
    for seed in range(count):
        rng = np.random.default_rng([70, seed])
        intercept = seed % 5 != 4
        p = oracles.random_problem(
            rng,
            2 * int(rng.integers(3, 12)),
            int(rng.integers(5, 10)),
            weights=seed % 2 == 0,
            factors=seed % 3 == 0,
            offset=30.0 if seed % 4 == 1 else 0.0,
            intercept=intercept,
        )
        if p.lam_max < 1e-7 * np.linalg.norm(p.X):
            continue
        options = {"sample_weight": p.c, "penalty_factor": p.v, "fit_intercept": intercept}
        lam = p.lam_max * rng.choice([0.9, 0.5, 0.1])
        yield p, options, lam, oracles.solve(p.X, p.y, lam, c=p.c, v=p.v, intercept=intercept), rng


def test_the_gap_bounds_the_distance_to_the_optimum_for_any_pair():
    """P(w, b) - P* <= gap, whatever (w, b) is."""
    checked = 0
    for p, options, lam, best, rng in problems(100):
        for noise in (0.0, 1e-8, 1e-3, 1.0):
            w = best.w + noise * rng.standard_normal(len(best.w)) * (np.isfinite(p.v))
            for b in (None, best.b + noise if options["fit_intercept"] else 0.0):
                certificate = duality_gap(p.X, p.y, lam, w, b, **options)
                value = oracles.exact_intercept(p.X, p.y, w, c=p.c) if b is None else b
                value = value if options["fit_intercept"] else 0.0
                primal = oracles.primal_value(p.X, p.y, lam, w, value, c=p.c, v=p.v)
                assert certificate.primal == pytest.approx(primal, rel=1e-10)
                assert certificate.gap >= primal - best.primal - best.gap
                assert certificate.gap >= certificate.primal - certificate.dual
                checked += 1
    assert checked >= 600


def test_the_gap_vanishes_at_the_optimum():
    for p, options, lam, best, _ in problems(100):
        certificate = duality_gap(p.X, p.y, lam, best.w, **options)
        assert certificate.gap <= 1e-8 * 0.5 * p.c.sum() + 10 * best.gap
        assert certificate.dual <= best.primal + 1e-12 * p.c.sum()


def test_the_dual_point_is_feasible():
    """theta >= 0, y'theta = 0, |fhat'theta| <= v, unpenalised columns orthogonal: within e_p."""
    for p, options, _, best, rng in problems(100):
        problem = Problem.of(p.X, p.y, **options)
        point = dual_point(problem, best.w * (1 + 0.1 * rng.standard_normal(len(best.w))))
        theta = point.scale * point.p
        e = problem.e
        tiny = point.scale * (point.off + 1e-12 * np.linalg.norm(point.p))
        assert np.all(p.y * theta >= -tiny)
        if options["fit_intercept"]:
            assert abs(e @ theta) <= tiny * np.linalg.norm(e) + 1e-12 * np.linalg.norm(theta)
        z = (e[:, None] * p.X).T @ theta
        size = np.linalg.norm(e[:, None] * p.X, axis=0)
        assert np.all(np.abs(z) <= np.where(p.v == 0, 0, p.v) + 1e-9 * size * np.linalg.norm(theta))
        assert point.off <= 1e-9 * (1 + point.beta_norm)


def test_off_is_the_distance_to_a_feasible_point():
    """Against a projection: a point that far away satisfies the sign and the equalities."""
    rng = np.random.default_rng(71)
    for seed in range(60):
        n = int(rng.integers(4, 20))
        X, y = rng.standard_normal((n, 4)), np.sign(rng.standard_normal(n))
        y[:2] = 1.0, -1.0
        v = np.ones(4)
        v[0] = seed % 2
        problem = Problem.of(X, y, penalty_factor=v)
        beta = y * np.maximum(0, rng.standard_normal(n) + 0.5)  # far from balanced
        p = problem.off_span(beta)
        off = distance_to_feasible(problem, beta, p)
        Q = problem.basis.Q
        answer = minimize(
            lambda a, p=p: 0.5 * np.sum((a - p) ** 2),
            np.zeros(n),
            jac=lambda a, p=p: a - p,
            bounds=[(0, None) if sign > 0 else (None, 0) for sign in y],
            constraints={"type": "eq", "fun": lambda a, Q=Q: Q.T @ a, "jac": lambda a, Q=Q: Q.T},
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        assert off >= np.linalg.norm(answer.x - p) - 1e-6
        assert off <= np.linalg.norm(p) + 1e-12


def rare_covariates(kind: str) -> np.ndarray:
    """Unpenalised columns of 40 rows whose fit leaves some rows outside the margin."""
    rng = np.random.default_rng(74)
    Z = np.zeros((40, 2))
    if kind == "indicator":  # of one row
        Z[3, 0], Z[:, 1] = 1.0, rng.standard_normal(40)
    elif kind == "jump":  # constant but for one row
        Z[:, 0], Z[3, 0], Z[:, 1] = 0.1, 7.3, rng.standard_normal(40)
    elif kind == "levels":  # of a factor with three, the third in one row only
        level = rng.integers(0, 2, 40)
        Z[:, 0], Z[:, 1] = level == 0, level == 1
        Z[3] = 0.0
    else:  # a multiple of the other but for one row, and not in whole numbers
        Z[:, 0] = rng.standard_normal(40)
        Z[:, 1] = 0.3 * Z[:, 0]
        Z[3, 1] += 1.0
    return Z


def beside_covariates(kind: str, intercept: bool):
    rng = np.random.default_rng(75)
    X = rng.standard_normal((40, 30))
    y = np.where(X[:, 5] + 0.5 * rng.standard_normal(40) > 0, 1.0, -1.0)
    X[:, :2] = rare_covariates(kind)
    v = np.where(np.arange(30) < 2, 0.0, 1.0)
    return X, y, {"penalty_factor": v, "fit_intercept": intercept}


@pytest.mark.parametrize(
    ("kind", "intercept"),
    [("indicator", True), ("indicator", False), ("jump", True), ("levels", True)],
)
def test_covariates_that_few_rows_tell_apart(kind, intercept):
    """Where these rows are fitted, the others need no correction for what they do not see."""
    X, y, options = beside_covariates(kind, intercept)
    lam = 0.5 * lambda_max(X, y, **options)
    best = oracles.solve(X, y, lam, v=options["penalty_factor"], intercept=intercept)
    assert best.xi[3] <= 1e-9
    certificate = duality_gap(X, y, lam, best.w, **options)
    assert best.primal - best.gap <= certificate.primal
    assert certificate.gap <= 1e-6 * certificate.primal
    kept = screen(X, y, 0.95 * lam, w=best.w, **options).kept
    below = oracles.solve(X, y, 0.95 * lam, v=options["penalty_factor"], intercept=intercept)
    assert len(kept) < 30
    assert set(np.flatnonzero(np.abs(below.w) > 1e-9)) <= set(kept)


def test_what_only_seems_to_depend_proves_nothing():
    X, y, options = beside_covariates("multiple", True)
    lam = 0.5 * lambda_max(X, y, **options)
    best = oracles.solve(X, y, lam, v=options["penalty_factor"])
    assert best.xi[3] <= 1e-9
    certificate = duality_gap(X, y, lam, best.w, **options)
    assert certificate.gap >= certificate.primal


def test_an_imbalanced_pair_still_gets_a_certificate():
    """No support in one class: the only feasible point found is 0, and the gap is P."""
    X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 1.0, -1.0])
    certificate = duality_gap(X, y, 0.1, [5.0], 0.0)
    assert certificate.gap >= certificate.primal - 1e-12
    assert certificate.dual == pytest.approx(0.0, abs=1e-12)


def test_at_zero_and_above_lambda_max_the_pair_is_optimal():
    rng = np.random.default_rng(72)
    X, y = rng.standard_normal((30, 6)), np.where(rng.random(30) < 0.3, 1.0, -1.0)
    for times in (1.0, 1.5, 100.0):
        certificate = duality_gap(X, y, times * lambda_max(X, y), np.zeros(6))
        assert certificate.gap <= 1e-12 * certificate.primal
        assert certificate.primal == pytest.approx(0.5 * 30 * (1 - y.mean() ** 2))


def test_what_it_was_computed_over():
    rng = np.random.default_rng(73)
    X, y = rng.standard_normal((20, 6)), np.sign(rng.standard_normal(20))
    certificate = duality_gap(X, y, 1.0, np.zeros(6))
    assert (certificate.n_features, certificate.n_products) == (6, 6)
    assert (certificate.n_bounds, certificate.n_discards) == (0, 0)
    assert certificate.lam == 1.0
    assert certificate.relative_gap == certificate.gap / certificate.primal


def test_a_point_on_some_columns_says_so():
    rng = np.random.default_rng(76)
    problem = Problem.of(rng.standard_normal((20, 6)), np.sign(rng.standard_normal(20)))
    w = np.zeros(6)
    assert dual_point(problem, w).certificate(1.0).complete
    assert not dual_point(problem, w, columns=np.array([1, 3])).certificate(1.0).complete


def test_a_penalty_of_many_terms_is_rounded_within_the_gap():
    """A million coefficients: the sum of the penalty has more rounding than that of the loss."""
    m = 1_000_000
    X = np.asfortranarray(np.repeat([[1.0], [-1.0], [0.5]], m, axis=1))
    w = np.where(np.arange(m) % 2, 0.1, -0.1)
    for a in (1.0, 0.932):
        certificate = duality_gap(X, [1, -1, -1], 1e6, a * w)
        long = np.longdouble(1e6) * np.abs((a * w).astype(np.longdouble)).sum()
        assert certificate.gap >= long - certificate.dual - 1e-3 * (certificate.gap == 0)
        assert certificate.gap >= long + 1.3 - certificate.dual  # the loss of b = -1/3 beside it


def test_w_may_be_sparse_or_a_column():
    rng = np.random.default_rng(74)
    X, y = rng.standard_normal((20, 6)), np.sign(rng.standard_normal(20))
    w = np.array([0, 0.5, 0, 0, -0.1, 0])
    expected = duality_gap(X, y, 1.0, w)
    for given in (w.tolist(), w[:, None], w[None, :], sp.csc_array(w[:, None]), sp.csr_matrix(w)):
        assert duality_gap(X, y, 1.0, given) == expected


def test_one_class_is_solved_by_the_intercept():
    X = np.random.default_rng(75).standard_normal((5, 3))
    certificate = duality_gap(X, np.ones(5), 1.0, np.zeros(3))
    assert (certificate.primal, certificate.relative_gap) == (0.0, 0.0)
    assert certificate.gap <= 1e-25


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lam": -1.0}, "lam must be a positive number"),
        ({"w": np.ones(3)}, "3 coefficients, but X needs 2"),
        ({"w": [np.inf, 0]}, "w is not finite at feature 0"),
        ({"b": np.nan}, "b must be a finite number"),
        ({"b": 1.0, "fit_intercept": False}, "no intercept"),
        ({"penalty_factor": [1, np.inf]}, "feature 1, which is left out"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    X, y = np.arange(8.0).reshape(4, 2) ** 2, [0, 1, 1, 0]
    with pytest.raises(ValueError, match=words):
        duality_gap(X, y, **({"lam": 1.0, "w": [1.0, 1.0]} | arguments))
