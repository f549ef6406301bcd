"""The exact minimisers over the intercept and over unpenalised columns, against slow references."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from sievesvm import _core
from sievesvm.intercept import best_intercept, best_unpenalised


def slope(y, u, c, b) -> Fraction:
    """Sum c y xi at b, in exact arithmetic."""
    rows = zip(y, u, c, strict=True)
    exact = [(int(yi), Fraction(float(ui)), Fraction(float(ci))) for yi, ui, ci in rows]
    return sum((ci * yi * max(Fraction(0), 1 - yi * (ui + b)) for yi, ui, ci in exact), Fraction(0))


def exact_root(y, u, c) -> Fraction:
    """The root of the decreasing piecewise linear slope, by bisection over sorted kinks."""
    kinks = sorted({Fraction(int(yi)) - Fraction(float(ui)) for yi, ui in zip(y, u, strict=True)})
    low, high = 0, len(kinks) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slope(y, u, c, kinks[middle]) > 0 else (low, middle)
    a, b = slope(y, u, c, kinks[low]), slope(y, u, c, kinks[high])
    if a == b:
        return kinks[low]
    return kinks[low] + (kinks[high] - kinks[low]) * a / (a - b)


NUMBERS = st.one_of(
    st.integers(-3, 3).map(float), st.floats(-1e3, 1e3), st.sampled_from([1e-9, 1e6, -1e6, 0.5])
)


@st.composite
def rows(draw):
    n = draw(st.integers(2, 12))
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    y[0], y[-1] = 1.0, -1.0
    u = np.array(draw(st.lists(NUMBERS, min_size=n, max_size=n)))
    positive = st.sampled_from([1.0, 1.0, 0.25, 7.0, 1e-6, 1e6])
    c = np.array(draw(st.lists(positive, min_size=n, max_size=n)))
    return y, u, c


@given(rows(), st.sampled_from([0.0, -5.0, 1e4, 1e-12]))
@settings(max_examples=1500, deadline=None, derandomize=True)
def test_intercept_is_the_root_to_rounding(drawn, start):
    """The sign of the slope changes, or it vanishes, within a few units of rounding of b."""
    y, u, c = drawn
    b = best_intercept(y, u, c, start)
    size = max(1.0, abs(b), *np.abs(u))
    step = Fraction(64 * size * 2.0**-53)
    assert slope(y, u, c, Fraction(b) - step) >= 0 >= slope(y, u, c, Fraction(b) + step)


@given(rows())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_intercept_is_the_sorted_root(drawn):
    y, u, c = drawn
    root = exact_root(y, u, c)
    b = best_intercept(y, u, c)
    if slope(y, u, c, root) == 0 and slope(y, u, c, Fraction(b)) == 0 and root != b:
        return  # an interval of minimisers
    size = max(1.0, abs(b), *np.abs(u))
    assert b == pytest.approx(float(root), abs=64 * size * 2.0**-53 * len(y))


def test_the_start_does_not_matter():
    rng = np.random.default_rng(0)
    for n in (2, 10, 1000):
        y, u = np.sign(rng.standard_normal(n)), rng.standard_normal(n) * 3
        y[:2] = 1.0, -1.0
        found = [best_intercept(y, u, None, start) for start in (0.0, 1.0, -1e3, 1e6)]
        assert np.ptp(found) <= 1e-15 * 1e3


def test_weights_are_copies():
    rng = np.random.default_rng(1)
    y, u, k = np.sign(rng.standard_normal(30)), rng.standard_normal(30), rng.integers(0, 4, 30)
    y[:2], k[:2] = (1, -1), 1
    copies = best_intercept(np.repeat(y, k), np.repeat(u, k))
    assert best_intercept(y, u, k.astype(float)) == pytest.approx(copies, abs=1e-14)


def test_separated_classes_leave_an_interval_and_its_middle_is_returned():
    """Scores 5 and -7 with labels 1 and -1: every b in [-4, 6] has no slack."""
    assert best_intercept(np.array([1.0, -1.0]), np.array([5.0, -7.0])) == 1.0


def test_one_class_gives_the_finite_end():
    assert best_intercept(np.ones(3), np.array([0.5, -1.0, 4.0])) == 2.0
    assert best_intercept(-np.ones(3), np.array([0.5, -1.0, 4.0])) == -5.0


def test_no_weight_leaves_the_start():
    assert best_intercept(np.array([1.0, -1.0]), np.zeros(2), np.zeros(2), 0.3) == 0.3


def test_all_scores_equal_gives_the_weighted_mean():
    y, c = np.array([1.0, 1.0, -1.0]), np.array([1.0, 2.0, 5.0])
    assert best_intercept(y, np.full(3, 0.25), c) == pytest.approx(c @ y / c.sum() - 0.25)


def test_ties_at_the_kinks():
    """Kinks in the same place, and the root on one of them."""
    y = np.array([1.0, 1.0, -1.0, -1.0])
    assert best_intercept(y, np.array([0.0, 0.0, 0.0, 0.0])) == 0.0
    assert best_intercept(y, np.array([1.0, 1.0, -1.0, -1.0])) == 0.0
    assert best_intercept(y, np.array([3.0, 0.0, 0.0, -3.0])) == pytest.approx(0.0, abs=1e-15)


def test_a_million_rows_take_a_few_passes():
    """Linear in n: ten times the rows take well below thirty times the time of a sum over them."""
    rng = np.random.default_rng(2)
    n = 1_000_000
    y = np.sign(rng.standard_normal(n))
    u = rng.standard_normal(n)
    b = best_intercept(y, u)
    xi = np.maximum(0, 1 - y * (u + b))
    assert abs(y @ xi) <= 1e-9 * np.sum(xi)
    # from its own answer nothing is left to do
    assert best_intercept(y, u, None, b) == pytest.approx(b, abs=1e-15)


def test_line_search_is_exact_in_any_direction():
    """Min over t of 1/2 sum c max(0, r - t a)^2, a of any sign and size, zeros among them."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        n = int(rng.integers(1, 30))
        r, a = rng.standard_normal(n), rng.standard_normal(n) * rng.choice([0, 1, 1e-3, 1e3], n)
        c = 10.0 ** rng.uniform(-3, 3, n)
        t = _core.minimise_on_line(r, a, c, float(rng.standard_normal()))

        def value(t, r=r, a=a, c=c):
            return 0.5 * c @ np.maximum(0, r - t * a) ** 2

        rounding = 2.0**-100 * (c @ (np.abs(r) + np.abs(t * a)) ** 2)
        for step in (1e-3, 1e-6, 1.0):
            for other in (t - step, t + step):
                assert value(t) <= value(other) * (1 + 1e-13) + rounding


# --- beside unpenalised columns ------------------------------------------------------------------


def objective(x, y, u, e, Z, fit_intercept):
    A = np.column_stack([np.ones(len(y)), Z]) if fit_intercept else Z
    xi = e * np.maximum(0, 1 - y * (u + A @ x))
    return 0.5 * xi @ xi, -A.T @ (e * y * xi)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_unpenalised_fit_is_optimal(fit_intercept):
    """The gradient vanishes to rounding, and a general optimiser finds nothing lower."""
    for seed in range(60):
        rng = np.random.default_rng([4, seed])
        n, p = int(rng.integers(6, 80)), int(rng.integers(1, 4))
        y, u = np.sign(rng.standard_normal(n)), 0.5 * rng.standard_normal(n)
        Z = rng.standard_normal((n, p)) + rng.choice([0.0, 100.0])
        e = np.sqrt(10.0 ** rng.uniform(-2, 2, n))
        b, w0 = best_unpenalised(y, u, e, Z, fit_intercept=fit_intercept)
        x = np.append(b, w0) if fit_intercept else w0
        value, gradient = objective(x, y, u, e, Z, fit_intercept)
        sizes = np.abs(Z).max() * e.sum() * e.max() * (1 + np.abs(x).max() * np.abs(Z).max())
        assert np.max(np.abs(gradient)) <= 1e-12 * sizes
        start = np.zeros(len(x))
        other = minimize(objective, start, (y, u, e, Z, fit_intercept), jac=True, method="L-BFGS-B")
        assert value <= other.fun * (1 + 1e-9) + 1e-12


def test_unpenalised_fit_with_dependent_columns_on_the_support():
    """Columns that differ only on rows outside the margin: the Newton matrix is singular."""
    rng = np.random.default_rng(5)
    z = rng.standard_normal(40)
    other = z.copy()
    y = np.sign(z)
    other[np.abs(z) > 1.0] += 5.0
    b, w0 = best_unpenalised(
        y, np.zeros(40), np.ones(40), np.column_stack([z, other]), fit_intercept=True
    )
    _, gradient = objective(
        np.append(b, w0), y, np.zeros(40), np.ones(40), np.column_stack([z, other]), True
    )
    assert np.max(np.abs(gradient)) <= 1e-10


def test_unpenalised_columns_that_separate_leave_no_slack():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    b, w0 = best_unpenalised(
        y, np.zeros(4), np.ones(4), np.array([[2.0], [3], [-2], [-5]]), fit_intercept=True
    )
    assert np.all(y * (np.array([2.0, 3, -2, -5]) * w0 + b) >= 1 - 1e-12)
