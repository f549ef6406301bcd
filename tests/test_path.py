"""The path: optimal at every lambda by an independent solver, certified, the same by every rule."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import oracles
from interrupts import heard, needs_speed
from sievesvm import (
    ColumnSource,
    ConvergenceWarning,
    SVMPath,
    as_columns,
    duality_gap,
    lambda_max,
    svm_path,
    svm_paths,
)
from sievesvm.driver import drive
from sievesvm.path import Path, Settings
from sievesvm.problem import Problem

RULES = ("safe", "gap", "paper", "none")


def generalised(seed: int):
    rng = np.random.default_rng([80, seed])
    intercept = seed % 7 != 3
    p = oracles.random_problem(
        rng,
        2 * int(rng.integers(3, 15)),
        int(rng.integers(5, 12)),
        weights=seed % 2 == 0,
        degenerate=seed % 3 == 0,
        offset=10.0 if seed % 5 == 0 else 0.0,
        factors=seed % 4 == 1,
        intercept=intercept,
    )
    options = {"sample_weight": p.c, "penalty_factor": p.v, "fit_intercept": intercept}
    return p, options, p.lam_max > 1e-7 * np.linalg.norm(p.X)


def coefficients(path: SVMPath, k: int) -> np.ndarray:
    return path.coefs[:, [k]].toarray().ravel()


def data(n: int = 60, m: int = 400, seed: int = 0):
    rng = np.random.default_rng([81, seed])
    X = rng.standard_normal((n, m))
    y = np.where(X[:, :3].sum(axis=1) + rng.standard_normal(n) > 0, 1, -1)
    return X, y


@pytest.mark.parametrize("rule", RULES)
def test_every_model_is_optimal_and_its_certificate_holds(rule):
    """Against the conic solver, with weights, factors, no intercept, degenerate columns."""
    models = 0
    for seed in range(60):
        p, options, of_use = generalised(seed)
        if not of_use:
            continue
        path = svm_path(p.X, p.y, lams=8, tol=1e-8, screening=rule, **options)
        assert set(path.status) == {"converged"}
        for k, lam in enumerate(path.lams):
            best = oracles.solve(p.X, p.y, lam, c=p.c, v=p.v, intercept=options["fit_intercept"])
            w, b = coefficients(path, k), path.intercepts[k]
            primal = oracles.primal_value(p.X, p.y, lam, w, b, c=p.c, v=p.v)
            assert primal <= best.primal + best.gap + 1e-8 * primal
            assert path.primal[k] == pytest.approx(primal, rel=1e-9)
            assert path.gaps[k] >= primal - best.primal - best.gap
            models += 1
    assert models >= 300


def test_the_certificate_agrees_with_one_made_from_nothing():
    X, y = data()
    path = svm_path(X, y, lams=20)
    for k, lam in enumerate(path.lams):
        again = duality_gap(X, y, lam, coefficients(path, k), path.intercepts[k])
        assert again.primal == pytest.approx(path.primal[k], rel=1e-12)
        assert again.gap <= 1e-6 * again.primal
        assert path.certificates[k].complete
        assert path.gaps[k] <= 1e-6 * path.primal[k]


def test_every_rule_gives_the_same_coefficients():
    X, y = data()
    paths = [svm_path(X, y, lams=25, screening=rule) for rule in RULES]
    for path in paths[1:]:
        assert np.array_equal(path.lams, paths[0].lams)
        size = abs(paths[0].coefs).max()
        assert abs(path.coefs - paths[0].coefs).max() <= 1e-9 * size
        assert path.intercepts == pytest.approx(paths[0].intercepts, abs=1e-9)


def test_screening_reads_less():
    X, y = data(m=5000)
    passes = {rule: svm_path(X, y, screening=rule).passes[-1] for rule in RULES}
    assert passes["none"] >= 100
    assert max(passes[rule] for rule in ("safe", "gap", "paper")) <= 0.2 * passes["none"]


@pytest.mark.parametrize("rule", ["safe", "gap", "paper"])
def test_a_cold_start_discards_as_it_goes(rule):
    """At a single lambda, from w = 0: most features are out before anything is trained."""
    X, y = data(n=100, m=5000)
    top = lambda_max(X, y)
    path = svm_path(X, y, lams=[0.9 * top], screening=rule)
    assert path.status == ["converged"]
    assert path.n_discarded[0] > 4500
    assert path.passes[0] < 1.05
    assert svm_path(X, y, lams=[0.1 * top], screening=rule).passes[0] <= 2.0


def test_counts_add_up_to_the_features():
    X, y = data()
    path = svm_path(X, y, lams=20)
    assert np.array_equal(path.n_kept + path.n_bounded + path.n_discarded, np.full(20, 400))
    assert np.all(np.diff(path.passes) >= 0)
    assert np.array_equal(path.n_active, np.diff(path.coefs.indptr))
    assert np.all(path.n_iter >= 1)


# --- many paths side by side ----------------------------------------------------------------------


def same_bits(a: SVMPath, b: SVMPath) -> bool:
    names = ("lams", "intercepts", "primal", "dual", "gaps", "n_iter", "n_active", "n_kept")
    return (
        all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)
        and np.array_equal(a.coefs.data, b.coefs.data)
        and np.array_equal(a.coefs.indices, b.coefs.indices)
        and (a.status, a.ended) == (b.status, b.ended)
    )


@pytest.mark.parametrize("kind", [np.asfortranarray, sp.csc_array])
def test_paths_side_by_side_are_the_paths_alone_bit_for_bit(kind):
    """Different labels, weights, factors, tolerances and rules over one source, in one call."""
    X, y = data(seed=1)
    X = kind(np.where(X > -0.5, X, 0.0))
    rng = np.random.default_rng(82)
    factors = np.ones(400)
    factors[:2] = 0.0, np.inf
    tasks = [
        {"y": y, "lams": 15},
        {"y": -y, "lams": 15, "sample_weight": rng.random(60), "tol": 1e-9},
        {"y": rng.permutation(y), "lams": 12, "penalty_factor": factors, "screening": "gap"},
        {"y": y, "lams": 15, "sample_weight": (rng.random(60) < 0.8).astype(float), "eps": 0.05},
        {"y": y, "lams": 15, "standardize": True, "max_active": 5},
        {"y": np.ones(60)},
        {"y": np.where(y > 0, "a", "b"), "lams": [3.0, 1.0], "fit_intercept": False},
        {"y": y, "lams": 10, "penalty_factor": {3: 0.0}, "sample_weight": rng.random(60)},
        {"y": y, "lams": 10, "screening": "paper", "standardize": True, "fit_intercept": False},
        {"y": y, "lams": 5, "screening": "none"},
    ]
    together = svm_paths(X, tasks)
    alone = [svm_path(X, **task) for task in tasks]
    for a, b in zip(together, alone, strict=True):
        assert same_bits(a, b)


class Elsewhere(ColumnSource):
    """Columns that are read again whenever they are asked for, as from a disk."""

    def __init__(self, X) -> None:
        super().__init__()
        self.inner = as_columns(X)

    shape = property(lambda self: self.inner.shape)
    dtype = property(lambda self: self.inner.dtype)
    error_bound = property(lambda self: self.inner.error_bound)

    def entries(self, columns=None):
        return self.inner.entries(columns)

    def _stats(self, weightings, V):
        return self.inner._stats(weightings, V)

    def _correlate(self, V, columns):
        return self.inner._correlate(V, columns)

    def _take(self, columns):
        return self.inner._take(columns)


@pytest.mark.parametrize("kept", [0, 5_000, 2**26])
def test_columns_from_elsewhere_give_the_same_bits_and_are_read_as_seldom(kept, monkeypatch):
    """With room for all, for some and for none of the columns whose products come again."""
    monkeypatch.setattr("sievesvm.driver._KEPT", kept)
    X, y = data(n=50, m=1000, seed=3)
    tasks = [{"y": y, "lams": 20}, {"y": -y, "lams": 15, "sample_weight": np.arange(50.0)}]
    tasks += [{"y": y, "lams": 4, "screening": "none"}]
    here, there = svm_paths(X, tasks), svm_paths(Elsewhere(X), tasks)
    assert all(same_bits(a, b) for a, b in zip(here, there, strict=True))
    same = svm_path(X, y).passes, svm_path(Elsewhere(X), y).passes
    assert np.array_equal(*same) == (kept == 2**26)
    assert same[1][-1] >= same[0][-1]


def test_folds_side_by_side_read_little_more_than_one():
    X, y = data(n=80, m=5000, seed=2)
    rng = np.random.default_rng(83)
    folds = [{"y": y, "sample_weight": (rng.random(80) < 0.9).astype(float)} for _ in range(10)]
    together = svm_paths(X, folds)
    alone = [svm_path(X, **fold) for fold in folds]
    assert all(same_bits(a, b) for a, b in zip(together, alone, strict=True))
    assert together[-1].passes[-1] <= 1.5 * np.mean([path.passes[-1] for path in alone])


def test_a_task_without_y_or_with_a_wrong_name_is_named():
    X, y = data()
    with pytest.raises(ValueError, match=r"tasks\[1\] has no y"):
        svm_paths(X, [{"y": y}, {"tol": 1e-3}])
    with pytest.raises(ValueError, match=r"tasks\[0\] has 'weights', but knows y, lams"):
        svm_paths(X, [{"y": y, "weights": y}])
    assert svm_paths(X, []) == []


# --- how a path can end ---------------------------------------------------------------------------


def test_interrupted_it_returns_what_is_done():
    X, y = data()

    def stop(done: int, total: int) -> None:
        if done >= 7:
            raise KeyboardInterrupt

    path = svm_path(X, y, progress=stop)
    assert path.ended == "interrupted"
    assert 7 <= len(path.lams) < 100
    whole = svm_path(X, y)
    assert whole.ended == "finished"
    assert np.array_equal(path.intercepts, whole.intercepts[: len(path.lams)])
    assert path.predict(X).shape == (60, len(path.lams))


@needs_speed
def test_ctrl_c_returns_within_a_second_with_what_is_done():
    """A real SIGINT from outside, while hundreds of lambdas are still to come."""
    X, y = data(n=200, m=20_000)
    sent = []

    def send(done: int, total: int) -> None:
        if done >= 3 and not sent:
            sent.append(time.perf_counter())
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()

    with heard():
        path = svm_path(X, y, lams=2_000, screening="none", progress=send)
    assert time.perf_counter() - sent[0] < 1.05
    assert path.ended == "interrupted"
    assert 3 <= len(path.lams) < 2_000
    assert set(path.status) == {"converged"}
    lam, w, b = path.lams[-1], coefficients(path, -1), path.intercepts[-1]
    assert duality_gap(X, y, lam, w, b).relative_gap <= 1e-6


def test_max_active_stops_the_path():
    X, y = data()
    path = svm_path(X, y, max_active=10)
    assert path.ended == "max_active"
    assert path.n_active[-1] >= 10 > path.n_active[-2]


def test_too_few_steps_are_said_with_the_gap():
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="models have a gap above tol"):
        path = svm_path(X, y, lams=10, max_iter=1)
    assert "max_iter" in path.status
    for k, lam in enumerate(path.lams):
        assert (path.gaps[k] > 1e-6 * path.primal[k]) == (path.status[k] == "max_iter")
        exact = duality_gap(X, y, lam, coefficients(path, k), path.intercepts[k])
        assert path.primal[k] == pytest.approx(exact.primal, rel=1e-9)


def test_a_gap_that_rounding_keeps_open_is_said():
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="as small as rounding lets it be"):
        path = svm_path(X, y, lams=5, tol=1e-17)
    assert set(path.status) == {"rounding"}
    assert np.all(path.gaps <= 1e-9 * path.primal)


def test_the_memory_it_will_take_is_logged_before_anything_is_read(caplog):
    X, y = data()
    X[3, 2] = np.nan
    caplog.set_level("INFO", logger="sievesvm")
    with pytest.raises(ValueError, match="NaN"):
        svm_path(X, y)
    assert "a path on 60 x 400, 1 at once: up to 0.0317 MiB beside the matrix" in caplog.text


@pytest.mark.parametrize(
    "y", [np.ones(60), np.zeros(60), np.array(["a"] * 60)], ids=["one", "zero", "text"]
)
def test_one_class_is_trivial(y):
    X, _ = data()
    path = svm_path(X, y)
    assert (path.ended, len(path.lams), path.coefs.shape) == ("trivial", 0, (400, 0))


def test_one_class_with_given_lambdas_is_solved_by_the_intercept():
    X, _ = data()
    path = svm_path(X, np.ones(60), lams=[1.0, 0.1])
    assert path.coefs.nnz == 0
    assert np.all(path.primal == 0)
    assert np.all(path.predict(X) == 1)


# --- edge cases -----------------------------------------------------------------------------------


def test_above_lambda_max_there_is_only_the_intercept():
    X, y = data()
    top = lambda_max(X, y)
    path = svm_path(X, y, lams=[3 * top, top, 0.99 * top])
    assert list(path.n_active[:2]) == [0, 0]
    assert path.n_active[2] >= 1
    assert path.intercepts[:2] == pytest.approx(np.mean(y))


def test_tiny_lambda_on_separable_data():
    X, y = data(n=20, m=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = svm_path(X, y, lams=30, eps=1e-6)
    assert set(path.status) == {"converged"}
    assert path.primal[-1] < 1e-4 * path.primal[0]


def test_a_cold_start_takes_few_columns_more_than_it_needs():
    """Thousands violate at w = 0, a few dozen are active: memory is for the latter."""
    X, y = data(n=50, m=20_000)
    problem = Problem.of(X, y)
    path = Path(problem, 0.05 * np.abs(problem.m).max(keepdims=True), Settings())
    drive(problem.source, [path.run()])
    active = len(path.steps[0].support)
    assert path.steps[0].status == "converged"
    assert active < 60
    assert len(path.working.columns) <= 10 * active


def test_where_no_certificate_can_be_had_the_working_set_stays_small():
    """Covariates that depend on each other but for one row, which is fitted: no feasible point."""
    X, y = data(n=40, m=3000)
    X[:, 2] = 0.3 * X[:, 0]
    X[3, 2] += 1.0
    problem = Problem.of(X, y, penalty_factor={0: 0, 2: 0})
    path = Path(problem, np.abs(problem.m[3:]).max() * np.geomspace(0.9, 0.1, 5), Settings())
    drive(problem.source, [path.run()])
    assert {step.status for step in path.steps} == {"rounding"}
    assert len(path.working.columns) <= 200
    assert len(path.steps[-1].support) <= 40


def test_duplicate_and_opposite_columns():
    """The split among them is not unique; the objective and the decisions are."""
    X, y = data(n=40, m=60)
    plain = svm_path(X, y, lams=20)
    for more in (np.hstack([X, X]), np.hstack([X, -X, X]), np.hstack([X, X + 5.0])):
        path = svm_path(more, y, lams=20)
        assert path.primal == pytest.approx(plain.primal, rel=1e-8)
        assert path.decision_function(more) == pytest.approx(plain.decision_function(X), abs=1e-5)


def test_more_features_than_support_vectors():
    """n = 6, lambda small: as many active features as rows, and the face is rank-deficient."""
    rng = np.random.default_rng(83)
    X = rng.integers(-2, 3, (6, 40)).astype(float)
    y = np.array([1, -1, 1, -1, 1, -1])
    path = svm_path(X, y, lams=40, eps=1e-5)
    assert set(path.status) == {"converged"}
    for k in (10, 39):
        best = oracles.solve(X, y, path.lams[k])
        assert path.primal[k] <= best.primal * (1 + 1e-6) + best.gap


def test_a_column_of_ones_without_intercept_is_a_penalised_one():
    X, y = data(n=30, m=20)
    X = np.column_stack([X, np.ones(30)])
    path = svm_path(X, y, lams=10, fit_intercept=False)
    assert np.all(path.intercepts == 0)
    for k, lam in enumerate(path.lams):
        best = oracles.solve(X, y, lam, intercept=False)
        assert path.primal[k] <= best.primal * (1 + 1e-6) + best.gap


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_the_unit_does_not_matter(scale):
    X, y = data(n=30, m=50)
    plain, scaled = svm_path(X, y, lams=15), svm_path(X * scale, y, lams=15)
    assert scaled.primal == pytest.approx(plain.primal, rel=1e-9)
    assert (scaled.coefs * scale).toarray() == pytest.approx(plain.coefs.toarray(), abs=1e-9)


@pytest.mark.parametrize("kind", [np.asfortranarray, sp.csc_array, sp.csr_matrix, pd.DataFrame])
def test_storage_does_not_matter(kind):
    X, y = data(n=30, m=50)
    X = np.where(X > 0.3, X, 0.0)
    plain, path = svm_path(X, y, lams=15), svm_path(kind(X), y, lams=15)
    assert path.primal == pytest.approx(plain.primal, rel=1e-10)
    assert abs(path.coefs - plain.coefs).max() <= 1e-9


def test_a_matrix_without_columns_has_only_the_intercept():
    path = svm_path(np.empty((4, 0)), [0, 1, 1, 1], lams=[1.0])
    assert path.coefs.shape == (0, 1)
    assert path.intercepts[0] == pytest.approx(0.5)


# --- what it returns ------------------------------------------------------------------------------


def test_names_classes_and_decisions():
    X, y = data(n=40, m=30)
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(30)])
    labels = np.where(y > 0, "sick", "healthy")
    path = svm_path(frame, labels, lams=10, penalty_factor={"gene3": 0})
    assert path.feature_names == list(frame.columns)
    table = path.to_frame()
    assert len(table) == path.coefs.nnz
    assert set(table.loc[table["feature"] == 3, "name"]) == {"gene3"}
    assert (table["feature"] == 3).sum() == 10
    decisions = path.decision_function(frame)
    assert decisions == pytest.approx(X @ path.coefs.toarray() + path.intercepts)
    assert np.array_equal(path.predict(frame), np.where(decisions > 0, "sick", "healthy"))
    assert np.mean(path.predict(frame)[:, -1] == labels) > 0.9


def test_a_missing_value_is_named_as_the_user_knows_it():
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "tp53": [1, 2, np.nan, 4]})
    with pytest.raises(ValueError, match=r"row 2, column 1 \('tp53'\)"):
        svm_path(frame, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lams": 0}, "number of grid points"),
        ({"lams": 2.5}, "number of grid points"),
        ({"lams": [1.0, -1.0]}, "lams must be a positive number"),
        ({"lams": "ten"}, "lams must be a number"),
        ({"eps": 1.0}, "eps must be below 1"),
        ({"eps": 0.0}, "eps must be a positive number"),
        ({"tol": 0.0}, "tol must be a positive number"),
        ({"screening": "strong"}, "screening must be one of safe, gap, paper, none"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    X, y = data(n=20, m=5)
    with pytest.raises(ValueError, match=words):
        svm_path(X, y, **arguments)
