"""The factor follows its matrix through everything that is done to it."""

from __future__ import annotations

import numpy as np
import pytest

from sievesvm import _core


def solution(factor: _core.Factor, b: np.ndarray) -> np.ndarray:
    x = b.copy()
    factor.solve(x)
    return x


def test_it_follows_columns_and_squares():
    """Columns come and go, terms of rank one are added and taken, in any order."""
    rng = np.random.default_rng(100)
    A = rng.standard_normal((90, 40))
    H = A.T @ A
    factor, held, squares, checked = _core.Factor(), [], [], 0
    for _ in range(1500):
        deed = rng.integers(4)
        if deed == 0 and len(held) < 40:
            k = int(rng.choice(np.setdiff1d(np.arange(40), held)))
            assert factor.append(k, np.append(H[held, k], H[k, k]))
            held.append(k)
        elif deed == 1 and held:
            a = int(rng.integers(len(held)))
            factor.remove(a)
            del held[a]
        elif deed == 2:
            x = np.where(rng.random(40) < 0.3, rng.standard_normal(40), 0.0)
            squares.append((x, float(rng.random())))
            H += squares[-1][1] * np.outer(x, x)
            assert factor.add_square(x[held], squares[-1][1])
        elif squares:
            x, c = squares.pop(int(rng.integers(len(squares))))
            H -= c * np.outer(x, x)
            assert factor.add_square(x[held], -c)
        assert len(factor) == len(held)
        b = rng.standard_normal(len(held))
        exact = np.linalg.solve(H[np.ix_(held, held)], b)
        assert solution(factor, b) == pytest.approx(exact, rel=1e-9, abs=1e-12)
        checked += len(held)
    assert checked > 10_000


def test_a_dependent_column_is_refused_and_changes_nothing():
    rng = np.random.default_rng(101)
    A = rng.standard_normal((30, 6))
    A[:, 5] = A[:, :5] @ np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    H = A.T @ A
    factor = _core.Factor()
    for k in range(5):
        assert factor.append(k, H[k, : k + 1])
    assert not factor.append(5, H[5])
    assert len(factor) == 5
    b = rng.standard_normal(5)
    assert solution(factor, b) == pytest.approx(np.linalg.solve(H[:5, :5], b), rel=1e-10)
    factor.remove(0)  # without it the sixth is independent
    assert factor.append(5, np.append(H[5, 1:5], H[5, 5]))
    b = rng.standard_normal(5)
    assert solution(factor, b) == pytest.approx(np.linalg.solve(H[1:, 1:], b), rel=1e-8)


def test_a_square_that_takes_everything_is_said():
    factor = _core.Factor()
    assert factor.append(0, np.array([4.0]))
    assert not factor.add_square(np.array([2.0]), -1.0)


def test_it_is_the_same_for_every_instruction_set():
    rng = np.random.default_rng(102)
    A = rng.standard_normal((60, 37))
    H, x, b = A.T @ A, rng.standard_normal(37), rng.standard_normal(36)
    found = []
    sets = _core.instruction_sets()
    try:
        for name in sets:
            _core.use_instruction_set(name)
            factor = _core.Factor()
            for k in range(37):
                factor.append(k, H[k, : k + 1])
            factor.add_square(x, 0.5)
            factor.remove(11)
            found.append(solution(factor, b))
    finally:
        _core.use_instruction_set(sets[-1])
    for other in found:
        assert np.array_equal(other, found[0])


def test_what_does_not_fit_is_refused():
    factor = _core.Factor()
    factor.append(3, np.array([1.0]))
    with pytest.raises(ValueError, match="one product for every column"):
        factor.append(4, np.array([1.0]))
    with pytest.raises(ValueError, match="one product for every column"):
        factor.append(3, np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="out of range"):
        factor.remove(1)
    with pytest.raises(ValueError, match="one number per column"):
        factor.solve(np.ones(2))
