"""The judge of the benchmarks, against the conic solver; and that it shares nothing with anyone."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import judge as module
import oracles
from judge import exact_intercept, judge


def models(seed: int):
    """A random problem, lambdas, and at each the optimum and a model away from it."""
    rng = np.random.default_rng([90, seed])
    p = oracles.random_problem(
        rng,
        int(rng.integers(8, 30)),
        int(rng.integers(5, 12)),
        degenerate=seed % 2 == 0,
        offset=10.0 if seed % 3 == 0 else 0.0,
    )
    lams = p.lam_max * np.array([1.1, 0.5, 0.05])
    best = [oracles.solve(p.X, p.y, lam) for lam in lams]
    W = np.column_stack([s.w for s in best])
    away = W + rng.normal(size=W.shape) * 0.3 * (1e-3 + abs(W).max())
    return p, lams, best, (W, away), rng.normal(size=3)


@pytest.mark.parametrize("seed", range(20))
def test_primal_intercept_and_gap_are_those_of_the_oracle(seed):
    p, lams, best, coefficients, shift = models(seed)
    for W in coefficients:
        b = np.array([oracles.exact_intercept(p.X, p.y, w) for w in W.T])
        found = judge(p.X, p.y, lams, W, b + shift)
        for k, lam in enumerate(lams):
            given = oracles.primal_value(p.X, p.y, lam, W[:, k], b[k] + shift[k])
            refitted = oracles.primal_value(p.X, p.y, lam, W[:, k], b[k])
            assert found.primal[k] == pytest.approx(given, rel=1e-12)
            assert found.refitted[k] == pytest.approx(refitted, rel=1e-12)
            again = oracles.primal_value(p.X, p.y, lam, W[:, k], found.intercept[k])
            assert again == pytest.approx(refitted, rel=1e-12)
            assert found.dual[k] <= best[k].primal * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_gap_of_an_optimum_is_that_of_the_oracle(seed):
    p, lams, best, (W, _), _ = models(seed)
    found = judge(p.X, p.y, lams, W, [s.b for s in best])
    gaps = np.array([s.gap for s in best])
    assert found.primal - found.dual == pytest.approx(gaps, abs=1e-9 * len(p.y))
    assert np.all(found.relative_gap >= -1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_dense_and_sparse_in_every_type_and_one_by_one_are_the_same(dtype, monkeypatch):
    """Blocks of two models and of few columns, so that both loops turn."""
    rng = np.random.default_rng(91)
    X = np.round(rng.normal(size=(40, 25)) * 20).astype(dtype)
    y = np.where(rng.random(40) < 0.4, 1.0, -1.0)
    lams, b = np.array([300.0, 200, 100, 50, 20]), rng.normal(size=5)
    W = 0.1 * rng.normal(size=(25, 5)) * (rng.random((25, 5)) < 0.3)
    whole = judge(X.astype(float), y, lams, W, b)
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    monkeypatch.setattr(module, "_NUMBERS", 200)
    single = [judge(X, y, lams[[k]], W[:, [k]], b[[k]]) for k in range(5)]
    for found in (judge(X, y, lams, W, b), judge(sp.csc_array(X), y, lams, sp.csc_array(W), b)):
        for values, expected in zip(found, whole, strict=True):
            assert values == pytest.approx(expected, rel=1e-12)
    for values, expected in zip(zip(*single, strict=True), whole, strict=True):
        assert np.concatenate(values) == pytest.approx(expected, rel=1e-12)


def test_exact_intercept_where_no_row_has_a_slack_and_with_one_class():
    y = np.array([1.0, 1, -1, -1])
    for scores in (np.array([3.0, 4, -3, -5]), np.array([1.0, 1, -1, -1]), y * 2.5 + 70):
        b = exact_intercept(y, scores)
        assert np.all(y * (scores + b) >= 1)
    scores = np.array([0.3, -2.0, 1.0])
    assert np.all(scores + exact_intercept(np.ones(3), scores) >= 1)
    assert np.all(scores + exact_intercept(-np.ones(3), scores) <= -1)


def test_it_imports_numpy_and_scipy_only():
    tree = ast.parse(Path(module.__file__).read_text())
    found = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [node.names[0].name])
    }
    assert found == {"__future__", "numpy", "scipy", "typing"}
