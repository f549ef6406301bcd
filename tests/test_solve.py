"""The working set's solver on its own: exact on every face, also where the face is degenerate."""

from __future__ import annotations

import numpy as np
import pytest

import oracles
from interrupts import check_interrupt, needs_speed, processor_time
from sievesvm import _core
from sievesvm.columns import DenseColumns, SparseColumns, as_columns
from sievesvm.driver import InPlace, Piece
from sievesvm.problem import Problem
from sievesvm.solve import WorkingSet


def working_set(X, y, **options) -> WorkingSet:
    problem = Problem.of(X, y, **options)
    working = WorkingSet(problem)
    columns = np.flatnonzero((problem.v > 0) & np.isfinite(problem.v))
    working.add(InPlace(problem.source).pieces_of(columns), columns)
    return working


def objective(working: WorkingSet, X, y, lam, **options) -> float:
    coef, b = working.coefficients()
    w = np.zeros(X.shape[1])
    w[working.columns] = coef
    return oracles.primal_value(X, y, lam, w, b, **options)


def problem(seed: int, **options) -> oracles.Problem:
    rng = np.random.default_rng([90, seed])
    n, m = 2 * int(rng.integers(3, 15)), int(rng.integers(5, 12))
    return oracles.random_problem(rng, n, m, weights=seed % 2 == 0, **options)


@pytest.mark.parametrize("degenerate", [False, True])
def test_it_is_optimal_up_and_down_the_grid(degenerate):
    """Rows enter and leave the margin in both directions; the Gram matrix follows."""
    worst = 0.0
    for seed in range(80):
        p = problem(seed, degenerate=degenerate, offset=10.0 if seed % 5 == 0 else 0.0)
        working = working_set(p.X, p.y, sample_weight=p.c)
        for fraction in (0.9, 0.2, 0.01, 0.5, 0.05):
            lam = fraction * p.lam_max
            outcome = working.solve(lam, 1e-9, 500)
            assert outcome.converged, (seed, fraction)
            best = oracles.solve(p.X, p.y, lam, c=p.c)
            found = objective(working, p.X, p.y, lam, c=p.c)
            worst = max(worst, (found - best.primal - best.gap) / best.primal)
    assert worst <= 1e-10


def test_coefficients_do_not_depend_on_the_way_there():
    """To 1e-10 where the solution is unique: straight to lambda, or along a path, or back up."""
    for seed in range(30):
        p = problem(seed)
        lam = 0.1 * p.lam_max
        found = []
        for way in ([], [0.9, 0.5, 0.2], [0.01]):
            working = working_set(p.X, p.y, sample_weight=p.c)
            for fraction in way:
                working.solve(fraction * p.lam_max, 1e-10, 500)
            working.solve(lam, 1e-10, 500)
            found.append(np.append(*working.coefficients()))
        best = oracles.solve(p.X, p.y, lam, c=p.c)
        if np.sum(best.xi > 1e-6) <= np.sum(best.w != 0):
            continue  # more coefficients than rows that determine them
        size = np.max(np.abs(found[0]))
        for other in found[1:]:
            assert np.max(np.abs(other - found[0])) <= 1e-10 * size


def test_columns_may_join_at_any_time():
    rng = np.random.default_rng(91)
    X, y = rng.standard_normal((40, 12)), np.sign(rng.standard_normal(40))
    source = as_columns(X)
    made = Problem.of(source, y)
    working, lam = WorkingSet(made), 0.2 * np.max(np.abs(made.m))
    for first in (0, 4, 8):
        columns = np.arange(first, first + 4)
        working.add([Piece(source.take(columns), np.arange(4))], columns)
        working.solve(lam, 1e-10, 100)
        best = oracles.solve(X[:, : first + 4], y, lam)
        assert objective(working, X, y, lam) == pytest.approx(best.primal, rel=1e-10)


def test_a_face_with_more_columns_than_support_vectors():
    """The Gram matrix is singular: coefficients slide along its null space until one is zero."""
    rng = np.random.default_rng(92)
    for _ in range(30):
        X = rng.integers(-2, 3, (6, 25)).astype(float)
        X = np.hstack([X, X[:, :8], -X[:, 4:10]])
        y = np.array([1.0, -1, 1, -1, 1, -1])
        working = working_set(X, y)
        top = np.max(np.abs(working.problem.m))
        for fraction in (0.5, 1e-2, 1e-4):
            outcome = working.solve(fraction * top, 1e-8, 500)
            best = oracles.solve(X, y, fraction * top)
            found = objective(working, X, y, fraction * top)
            assert found <= best.primal * (1 + 1e-9) + best.gap + 1e-13
            assert outcome.steps < 500


def test_duplicates_with_different_factors_leave_the_cheaper_one():
    rng = np.random.default_rng(93)
    x = rng.standard_normal(30)
    y = np.sign(x + rng.standard_normal(30))
    X = np.column_stack([x, x, rng.standard_normal(30)])
    working = working_set(X, y, penalty_factor=[1.0, 0.9, 1.0])
    lam = 0.3 * np.max(np.abs(working.problem.m))
    assert working.solve(lam, 1e-10, 100).converged
    coef, _ = working.coefficients()
    assert coef[0] == 0.0
    assert coef[1] != 0.0


def test_unpenalised_columns_are_in_from_the_start():
    for seed in range(30):
        p = problem(seed, factors=True)
        if p.lam_max < 1e-7 * np.linalg.norm(p.X) or not np.any(p.v == 0):
            continue
        working = working_set(p.X, p.y, sample_weight=p.c, penalty_factor=p.v)
        lam = 0.3 * p.lam_max
        assert working.solve(lam, 1e-9, 500).converged
        best = oracles.solve(p.X, p.y, lam, c=p.c, v=p.v)
        found = objective(working, p.X, p.y, lam, c=p.c, v=p.v)
        assert found <= best.primal * (1 + 1e-10) + best.gap


def test_slacks_and_products_are_those_of_the_coefficients():
    rng = np.random.default_rng(94)
    for kind in (DenseColumns, SparseColumns):
        X = rng.standard_normal((50, 8)) + 100.0
        if kind is SparseColumns:
            X = np.where(X > 100.5, X, 0.0)
        y = np.where(np.arange(50) % 3 == 0, 1.0, -1.0)
        source = as_columns(X) if kind is DenseColumns else as_columns(oracles.sparse.csc_array(X))
        working = working_set(source, y)
        working.solve(0.2 * np.max(np.abs(working.problem.m)), 1e-10, 200)
        coef, b = working.coefficients()
        assert working.slacks() == pytest.approx(np.maximum(0, 1 - y * (X @ coef + b)), abs=1e-10)
        vector = rng.standard_normal(50)
        assert working.products(vector) == pytest.approx(X.T @ vector, rel=1e-11)
        beta = y * working.slacks()
        zeta = working.problem.centred(X.T @ beta, beta)
        assert working.zeta() == pytest.approx(zeta, abs=1e-10 * np.linalg.norm(beta))


# --- fall-backs -----------------------------------------------------------------------------------


def test_copies_of_columns_cost_no_steps():
    """Of a column, its negative and its copy one at most is active, however they are ordered."""
    rng = np.random.default_rng(97)
    X = rng.standard_normal((60, 90))
    y = np.sign(X[:, :4].sum(axis=1) + rng.standard_normal(60))
    order = rng.permutation(270)
    plain, tripled = working_set(X, y), working_set(np.hstack([X, -X, X])[:, order], y)
    top = np.max(np.abs(plain.problem.m))
    for fraction in np.geomspace(0.9, 1e-4, 30):
        alone, copied = (w.solve(fraction * top, 1e-10, 100) for w in (plain, tripled))
        assert alone.converged
        assert copied.converged
        assert copied.steps <= alone.steps + 3
        signed = np.empty(270)
        signed[order] = tripled.coefficients()[0]
        assert np.max(np.count_nonzero(signed.reshape(3, 90), axis=0)) <= 1
        found = signed[:90] - signed[90:180] + signed[180:]
        assert found == pytest.approx(plain.coefficients()[0], abs=1e-9)


def test_where_whole_steps_would_go_round_in_circles():
    """Rows of very different size: the model's minimiser lies beyond rows that it leaves out."""
    for seed in range(2900, 3000):
        rng = np.random.default_rng([96, seed])
        n, m = int(rng.integers(4, 12)), int(rng.integers(1, 6))
        X = rng.integers(-3, 4, (n, m)) * 10.0 ** rng.integers(-1, 2, (n, 1))
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        working = working_set(X, y)
        top = np.max(np.abs(working.problem.m), initial=0.0)
        for fraction in (1e-3, 1e-5):
            working = working_set(X, y)
            outcome = working.solve(fraction * top, 1e-7, 300)
            assert outcome.converged, seed
            assert outcome.steps <= 25, seed


def test_where_the_objective_is_flat_to_rounding():
    """Many rows: P has lost its digits long before the conditions hold to 1e-10."""
    rng = np.random.default_rng([97, 4])
    X = (rng.random((20_000, 60)) < 0.05) * 1.0
    y = np.where(X @ rng.standard_normal(60) + rng.standard_normal(20_000) > 1.8, 1.0, -1.0)
    working = working_set(oracles.sparse.csc_array(X), y)
    top = np.max(np.abs(working.problem.m))
    for fraction in np.geomspace(0.9, 1e-3, 40):
        assert working.solve(fraction * top, 1e-10, 100).converged


@pytest.mark.parametrize("weight", [1e8, 1e17])
def test_rows_of_great_weight_leave_nothing_behind(weight):
    """In the Gram matrix their rounding outweighs all others when they leave: it is made anew."""
    rng = np.random.default_rng(95)
    X = rng.standard_normal((40, 6))
    y = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    X[:, 0] += y
    X[:4] = 0.0
    X[:4, 0] = 100 * y[:4]  # met with room to spare as soon as the first coefficient grows
    working = working_set(X, y, sample_weight=np.where(np.arange(40) < 4, weight, 1.0))
    for lam in (8.0, 4.0, 1.0, 0.1):
        assert working.solve(lam, 1e-10, 100).converged
        best = oracles.solve(X[4:], y[4:], lam)
        assert objective(working, X[4:], y[4:], lam) <= best.primal * (1 + 1e-10) + best.gap
    assert np.all(working.slacks()[:4] == 0)


def test_an_impossible_tolerance_ends_by_itself():
    """Rounding is met before the tolerance: it says so instead of going on."""
    p = problem(1)
    working = working_set(p.X, p.y)
    outcome = working.solve(0.1 * p.lam_max, 1e-30, 100_000)
    assert not outcome.converged
    assert outcome.steps < 100


# --- memory and Ctrl-C ----------------------------------------------------------------------------


@pytest.mark.parametrize("density", [0.01, 0.1, 1.0])
def test_the_block_holds_the_columns_less_than_three_times(density):
    """Beside the Gram matrix and its factor, in units of 12 bytes for a stored value."""
    rng = np.random.default_rng(98)
    n, m = 3000, 80
    X = rng.standard_normal((n, m)) * (rng.random((n, m)) < density)
    X = X if density == 1.0 else oracles.sparse.csc_array(X)
    working = WorkingSet(Problem.of(X, np.where(np.arange(n) % 2 == 0, 1.0, -1.0)))
    source, worst = working.problem.source, 0.0
    for first in range(0, m, 5):
        columns = np.arange(first, first + 5)
        working.add([Piece(source.take(columns), np.arange(5))], columns)
        gram = 8 * (1.5 * (first + 6) + 24) ** 2
        worst = max(worst, (working.bytes() - gram) / (12 * source.entries(np.arange(first + 5))))
    assert 0.5 < worst < 3.0


@needs_speed
def test_an_interrupted_solve_can_be_taken_up_again():
    """w and the slacks of the last whole step belong together, and so does what comes after."""
    rng = np.random.default_rng(99)
    X = oracles.sparse.random_array((3000, 1500), density=0.03, rng=rng, format="csc")
    y = np.where(rng.random(3000) < 0.5, 1.0, -1.0)
    alone, working = working_set(X, y), working_set(X, y)
    lam = 1e-3 * np.max(np.abs(working.problem.m))
    whole = processor_time(lambda: alone.solve(lam, 1e-10, 1000))
    check_interrupt(lambda: working.solve(lam, 1e-10, 1000), whole)
    coef, b = working.coefficients()
    assert working.slacks() == pytest.approx(np.maximum(0, 1 - y * (X @ coef + b)), abs=1e-10)
    assert working.solve(lam, 1e-10, 1000).converged
    assert working.coefficients()[0] == pytest.approx(alone.coefficients()[0], abs=1e-8)


def test_the_core_refuses_what_does_not_fit():
    face = _core.Face(np.ones(4), None)
    block = DenseColumns(np.ones((3, 1), order="F"))._core
    with pytest.raises(ValueError, match="does not fit"):
        face.add(block, np.array([0]), np.zeros(1), np.ones(1))
    with pytest.raises(ValueError, match="out of range"):
        face.add(DenseColumns(np.ones((4, 1)))._core, np.array([1]), np.zeros(1), np.ones(1))
    with pytest.raises(ValueError, match="differ in length"):
        _core.Face(np.ones(4), np.ones(3))


def test_covariates_that_depend_on_each_other_inside_the_margin_stay_where_they_are():
    """Rounding puts a little of every column into the dependence: nothing must slide along that."""
    for seed in range(20):
        rng = np.random.default_rng([95, seed])
        X = rng.standard_normal((40, 60))
        y = np.where(X[:, 5] + 0.5 * rng.standard_normal(40) > 0, 1.0, -1.0)
        X[:, 2] = 0.3 * X[:, 0]
        X[3, 2] += 1.0  # tells the two apart in one row, which is fitted
        v = np.ones(60)
        v[[0, 2]] = 0.0
        working = working_set(X, y, penalty_factor=v)
        top = np.max(np.abs(working.problem.m))
        for fraction in (0.5, 0.2, 0.05):
            assert working.solve(fraction * top, 1e-9, 500).converged, (seed, fraction)
            coef, _ = working.coefficients()
            assert np.max(np.abs(coef)) < 1e3
            best = oracles.solve(X, y, fraction * top, v=v)
            found = objective(working, X, y, fraction * top, v=v)
            assert found <= best.primal * (1 + 1e-9) + best.gap
