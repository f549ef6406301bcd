"""The ledger: whatever it takes for proved is true, along any way of points."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sievesvm import _core, path
from sievesvm.certify import dual_point
from sievesvm.problem import Problem
from sievesvm.screening import domes

KINDS = ("dense", "sparse", "duplicates", "offset", "factors")


def problem(kind: str, rng: np.random.Generator, n: int = 40, m: int = 400) -> Problem:
    X = rng.standard_normal((n, m))
    v = None
    if kind == "sparse":
        X = np.where(rng.random((n, m)) < 0.1, X, 0.0)
    if kind == "duplicates":
        X[:, m // 2 :] = X[:, : m // 2] * (1 + 1e-9 * rng.standard_normal(m // 2))
    if kind == "offset":
        X += 10.0 ** rng.uniform(-2, 5, m)
    if kind == "factors":
        v = 10.0 ** rng.uniform(-1, 1, m)
        v[::7] = np.inf
    y = np.where(X[:, :3].sum(axis=1) - X[:, :3].sum(axis=1).mean() > 0, 1, -1)
    return Problem.of(sp.csc_array(X) if kind == "sparse" else X, y, penalty_factor=v)


def ledger_of(problem: Problem, most_vectors: int = 4, *, by_bounds: bool = True) -> _core.Ledger:
    return path.ledger_of(problem, most_vectors=most_vectors, by_bounds=by_bounds)


def way(problem: Problem, rng: np.random.Generator, steps: int):
    """Vectors p that move a little or a lot, back and forth, in the range of T."""
    p = problem.s.copy()
    for _ in range(steps):
        size = 10.0 ** rng.uniform(-4, -0.5)
        p = problem.off_span(p + size * np.linalg.norm(p) / len(p) ** 0.5 * rng.standard_normal(40))
        yield p


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_left_is_true(kind):
    """At every point, accepted or not: the products of all features are made, and compared."""
    proved = skipped = 0
    for seed in range(12):
        rng = np.random.default_rng([85, KINDS.index(kind), seed])
        made = problem(kind, rng)
        ledger = ledger_of(made, most_vectors=2 + seed % 4)
        for k, p in enumerate(way(made, rng, 40)):
            zeta = made.products(p)
            levels = np.abs(zeta) / np.where(made.v > 0, made.v, 1.0)
            tau = rng.choice([0.5, 0.9, 0.999, 1.0]) / levels.max()
            ledger.consider(k, p, tau, 0.0, made.error * np.linalg.norm(p))
            left = []
            while ledger.left:
                block = ledger.next(int(rng.integers(1, 60)))
                assert np.all(np.diff(block) > 0)
                left.append(block)
                ledger.record(zeta[block])
            left = np.concatenate([np.empty(0, dtype=np.int64), *left])
            assert len(np.unique(left)) == len(left)
            others = np.setdiff1d(np.arange(len(levels)), left)
            assert np.all(tau * levels[others] <= 1.0 + 1e-12)
            proved += len(others)
            skipped += len(others) - np.count_nonzero(np.isinf(made.v[others]))
            if rng.random() < 0.7:
                ledger.accept(tau * rng.choice([1.0, 0.999, 0.9]))
    assert skipped > 0.3 * 12 * 40 * len(made.v)


def test_a_proof_is_not_looked_for_twice_while_the_point_stands_still():
    rng = np.random.default_rng(86)
    made = problem("dense", rng)
    ledger = ledger_of(made)
    tau = 0.9 / np.abs(made.m).max()
    for k in range(3):
        ledger.consider(k, made.s, tau, 0.0, 0.0)
        assert ledger.left == 0
        ledger.accept(tau)


def test_what_holds_at_zero_is_no_proof_elsewhere():
    """A path may begin at theta = 0, where everything is proved, and go on from there."""
    rng = np.random.default_rng(91)
    made = problem("dense", rng)
    ledger = ledger_of(made)
    for k, p in enumerate((np.zeros(40), 0.0 * made.s)):
        ledger.consider(k, p, 0.0, 0.0, 0.0)
        assert ledger.left == 0
        ledger.accept(0.0)
    tau = 2.0 / np.abs(made.m).max()
    ledger.consider(2, made.s, tau, 0.0, 0.0)
    left = set(ledger.next(400))
    assert left
    assert left == set(np.flatnonzero(tau * np.abs(made.m) > 1.0))


def test_without_bounds_every_feature_is_left_every_time():
    rng = np.random.default_rng(87)
    made = problem("factors", rng)
    ledger = ledger_of(made, by_bounds=False)
    for k in range(3):
        ledger.consider(k, made.s, 1e-9, 0.0, 0.0)
        assert ledger.left == np.isfinite(made.v).sum() == len(ledger)
        ledger.record(made.m[ledger.next(1000)])
        assert ledger.left == 0
        ledger.accept(1e-9)


def test_discards_hold_up_to_their_grid_point_and_limit_the_reach():
    """A point that violates what is discarded may serve as far as the discards go, no further."""
    rng = np.random.default_rng(88)
    made = problem("dense", rng)
    ledger = ledger_of(made)
    top = np.abs(made.m).max()
    lams = top * np.array([1.0, 0.95, 0.7, 0.4])
    point = dual_point(made)
    ledger.consider(0, point.p, point.tau(top), point.tau(top) * point.e_p, 0.0)
    assert ledger.reach > len(lams)
    while ledger.left:
        ledger.record(made.m[ledger.next(1000)])
    ledger.look_ahead(1, domes(point, lams[1:], point.tau(top)))
    ledger.accept(point.tau(top))
    counts = [ledger.count_discarded(k) for k in range(5)]
    assert counts[0] == counts[1] > counts[2] > 0
    assert counts[4] == 0
    for k in range(4):
        found = ledger.discarded(k)
        assert len(found) == counts[k]
        if k:
            bounds = np.empty(len(made.m))
            _core.region_bounds(
                domes(point, lams[k : k + 1], point.tau(top))[0], point.features, None, bounds
            )
            assert np.all(bounds[found] < 1.0)

    no_further = np.setdiff1d(ledger.discarded(2), ledger.discarded(3))
    tau = 1.01 / np.abs(made.m[no_further]).max()  # which violates one of these, at 2
    ledger.consider(2, point.p, tau, 0.0, 0.0)
    assert ledger.reach == 2
    ledger.forget(ledger.discarded(2))
    assert ledger.count_discarded(2) == 0


def test_the_worst_come_first_and_forgotten_features_never_again():
    rng = np.random.default_rng(89)
    made = problem("dense", rng)
    ledger = ledger_of(made)
    tau = 2.0 / np.abs(made.m).max()  # infeasible, as while a working set grows
    ledger.consider(0, made.s, tau, 0.0, 0.0)
    first = ledger.next(5)
    assert set(first) == set(np.argsort(-np.abs(made.m))[:5])
    ledger.record(made.m[first])
    ledger.forget(first)
    assert len(ledger) == len(made.m) - 5
    ledger.consider(0, made.s, tau, 0.0, 0.0)
    seen = []
    while ledger.left:
        seen.append(ledger.next(50))
        ledger.record(made.m[seen[-1]])
    assert not set(first) & set(np.concatenate(seen))


def test_what_does_not_fit_is_refused():
    rng = np.random.default_rng(90)
    made = problem("dense", rng)
    ledger = ledger_of(made)
    with pytest.raises(ValueError, match="one number per row"):
        ledger.consider(0, np.ones(3), 1.0, 0.0, 0.0)
    ledger.consider(0, made.s, 1.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="without a proof"):
        ledger.accept(1.0)
    ledger.next(7)
    with pytest.raises(ValueError, match="one product per column"):
        ledger.record(np.ones(6))
    with pytest.raises(ValueError, match="out of range"):
        ledger.forget(np.array([400]))
    with pytest.raises(ValueError, match="no regions"):
        ledger.look_ahead(0, np.ones((2, 5)))
