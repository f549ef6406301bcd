"""lambda_max, the first features and the generalisations, against oracles and against rewriting."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import oracles
from sievesvm import as_columns, duality_gap, first_features, lambda_max, screen
from sievesvm.problem import Problem


def random_options(seed: int):
    rng = np.random.default_rng([60, seed])
    n, m = 2 * int(rng.integers(3, 10)), int(rng.integers(5, 10))
    intercept = seed % 4 != 3
    p = oracles.random_problem(
        rng,
        n,
        m,
        balanced=seed % 2 == 0,
        weights=seed % 3 == 0,
        factors=seed % 5 == 0,
        degenerate=seed % 7 == 0,
        intercept=intercept,
    )
    return p, {"sample_weight": p.c, "penalty_factor": p.v, "fit_intercept": intercept}


# --- lambda_max ----------------------------------------------------------------------------------


def test_lambda_max_is_the_smallest_lambda_without_features():
    for seed in range(120):
        p, options = random_options(seed)
        top = lambda_max(p.X, p.y, **options)
        assert top == pytest.approx(p.lam_max, rel=1e-7, abs=1e-7 * np.linalg.norm(p.X))
        if top < 1e-7 * np.linalg.norm(p.X):
            continue
        keywords = {"c": p.c, "v": p.v, "intercept": options["fit_intercept"]}
        penalised = (p.v > 0) & np.isfinite(p.v)
        size = np.abs(p.X).max(axis=0)
        above = oracles.solve(p.X, p.y, 1.001 * top, **keywords)
        below = oracles.solve(p.X, p.y, 0.99 * top, **keywords)
        assert np.max(np.abs(above.w * size)[penalised]) <= 1e-6
        assert np.max(np.abs(below.w * size)[penalised]) > 1e-6


def test_lambda_max_is_the_closed_form_of_the_paper():
    rng = np.random.default_rng(61)
    X, y = rng.standard_normal((30, 8)), np.where(rng.random(30) < 0.3, 1.0, -1.0)
    n_plus, n_minus = np.sum(y > 0), np.sum(y < 0)
    m = X.T @ (y - (n_plus - n_minus) / 30)
    assert lambda_max(X, y) == pytest.approx(np.max(np.abs(m)), rel=1e-13)
    assert list(first_features(X, y)) == [np.argmax(np.abs(m))]


def test_lambda_max_is_zero_where_nothing_can_enter():
    rng = np.random.default_rng(62)
    X, y = rng.standard_normal((12, 3)), np.sign(rng.standard_normal(12))
    assert lambda_max(X, np.ones(12)) == 0.0  # one class
    assert lambda_max(np.full((12, 3), 1e5), y) == 0.0  # constant columns
    assert lambda_max(np.empty((12, 0)), y) == 0.0
    assert lambda_max(X, y, sample_weight=np.zeros(12)) == 0.0
    assert lambda_max(X, y, sample_weight=(y > 0)) == 0.0  # one class has all the weight
    assert lambda_max(X, y, penalty_factor=np.full(3, np.inf)) == 0.0
    assert lambda_max(X, y, sample_weight=np.zeros(12), standardize=True) == 0.0
    for columns in (np.zeros((12, 3)), np.ones((12, 3)), np.empty((12, 0))):
        for rule in ("safe", "gap", "paper"):
            assert len(screen(columns, y, 1.0, rule=rule).kept) == 0
    separating = np.column_stack([X, y + 0.1 * X[:, 0]])
    factor = [1, 1, 1, 0]
    assert lambda_max(separating, y, penalty_factor=factor) == 0.0
    for options in ({"y": np.ones(12)}, {"y": y, "penalty_factor": np.full(3, np.inf)}):
        assert len(first_features(X, **options)) == 0


# --- first features ------------------------------------------------------------------------------


def test_first_features_are_those_of_the_solution_just_below():
    checked = 0
    for seed in range(80):
        p, options = random_options(seed)
        first = first_features(p.X, p.y, **options)
        if len(first) == 0:
            continue
        top = lambda_max(p.X, p.y, **options)
        if top < 1e-7 * np.linalg.norm(p.X):
            continue  # copies of unpenalised columns: what is left of them is rounding
        keywords = {"c": p.c, "v": p.v, "intercept": options["fit_intercept"]}
        s = oracles.solve(p.X, p.y, top * (1 - 1e-4), **keywords)
        active = (np.abs(s.w) * np.abs(p.X).max(axis=0) > 1e-8) & (p.v > 0)
        levels = np.abs(p.X.T @ (p.y * s.alpha))[active] / p.v[active]
        assert set(np.flatnonzero(active)) <= set(first) or np.min(levels) > top * (1 - 1e-3)
        checked += 1
    assert checked >= 60


def test_ties_are_all_first():
    rng = np.random.default_rng(63)
    x, y = rng.standard_normal(20), np.sign(rng.standard_normal(20))
    weak = 0.01 * rng.standard_normal(20)
    X = np.column_stack([weak, x, -x, x + 1000.0, 2 * x])
    assert list(first_features(X[:, :4], y)) == [1, 2, 3]
    assert list(first_features(X, y)) == [4]
    assert list(first_features(X, y, penalty_factor=[1, 1, 1, 1, 2])) == [1, 2, 3, 4]
    assert list(first_features(X, y, standardize=True))[-4:] == [1, 2, 3, 4]


# --- generalisations, rewritten as plain problems -------------------------------------------------


def kept_and_gap(X, y, lam, w, **options):
    certificate = duality_gap(X, y, lam, w, **options)
    return screen(X, y, lam, w=w, **options).bounds, certificate.primal, certificate.gap


def same(a, b, tolerance=1e-8):
    assert np.minimum(a[0], 1e9) == pytest.approx(np.minimum(b[0], 1e9), rel=tolerance)
    assert a[1] == pytest.approx(b[1], rel=1e-10)
    assert a[2] == pytest.approx(b[2], rel=1e-7, abs=1e-9 * a[1])


@pytest.fixture
def data():
    rng = np.random.default_rng(64)
    X = rng.standard_normal((40, 12)) * 10.0 ** rng.uniform(-1, 1, 12) + 3.0
    y = np.where(X[:, 0] + rng.standard_normal(40) > 3, 1.0, -1.0)
    w = np.zeros(12)
    w[[0, 4]] = 0.1, -0.05
    return X, y, w, 0.4 * lambda_max(X, y)


def test_weight_k_is_k_copies_and_weight_0_is_absence(data):
    X, y, w, lam = data
    k = np.random.default_rng(65).integers(0, 4, 40)
    copies = np.repeat(np.arange(40), k)
    weighted = kept_and_gap(X, y, lam, w, sample_weight=k)
    same(weighted, kept_and_gap(X[copies], y[copies], lam, w))
    broken = X.copy()
    broken[k == 0] = 1e30
    same(weighted, kept_and_gap(broken, y, lam, w, sample_weight=k))


def test_penalty_factor_is_a_scaled_column(data):
    X, y, w, lam = data
    v = np.random.default_rng(66).uniform(0.3, 3, 12)
    same(
        kept_and_gap(X, y, lam, w, penalty_factor=v),
        kept_and_gap(X / v, y, lam, w * v),
    )


def test_factor_inf_is_absence(data):
    X, y, w, lam = data
    v = np.ones(12)
    v[[2, 7]] = np.inf
    rest = np.flatnonzero(np.isfinite(v))
    bounds, *gap = kept_and_gap(X, y, lam, w, penalty_factor=v)
    assert np.all(bounds[[2, 7]] == 0)
    same((bounds[rest], *gap), kept_and_gap(X[:, rest], y, lam, w[rest]))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_standardized_is_divided_by_the_deviation(data, fit_intercept):
    X, y, w, lam = data
    c = np.random.default_rng(67).uniform(0.2, 3, 40)
    centre = c @ X / c.sum() if fit_intercept else 0.0
    d = np.sqrt(c @ (X - centre) ** 2 / c.sum())
    options = {"sample_weight": c, "fit_intercept": fit_intercept}
    lam = 0.5 * lambda_max((X - centre) / d, y, **options)
    assert lambda_max(X, y, standardize=True, **options) == pytest.approx(2 * lam, rel=1e-10)
    same(
        kept_and_gap(X, y, lam, w, standardize=True, **options),
        kept_and_gap((X - centre) / d, y, lam, w * d, **options),
        1e-6,
    )


def test_standardized_and_unpenalised_together(data):
    """The deviation of a column is its own, not what is left of it beside the unpenalised ones."""
    X, y, _, _ = data
    v = np.ones(12)
    v[[1, 3]] = 0.0
    d = X.std(axis=0)
    a = lambda_max(X, y, standardize=True, penalty_factor=v)
    assert a == pytest.approx(lambda_max(X / d, y, penalty_factor=v), rel=1e-9)


def test_columns_without_spread_are_left_out_when_standardized(data):
    X, y, w, lam = data
    X = np.column_stack([X, np.full(40, 7.0), np.zeros(40)])
    problem = Problem.of(X, y, standardize=True)
    assert np.all(np.isinf(problem.v[-2:]))
    assert np.all(screen(X, y, lam, standardize=True).bounds[-2:] == 0)
    with pytest.raises(ValueError, match="feature 13, which is left out"):
        duality_gap(X, y, lam, np.append(w, [0, 1]), standardize=True)


def test_dependent_unpenalised_columns_are_left_out(data):
    X, y, _, lam = data
    X = np.column_stack([X, np.ones(40), X[:, 0] * 2 - 5])
    v = np.ones(14)
    v[[0, 12, 13]] = 0.0
    problem = Problem.of(X, y, penalty_factor=v)
    assert list(problem.free) == [0]
    assert np.isinf(problem.v[[12, 13]]).all()
    alone = np.ones(12)
    alone[0] = 0.0
    expected = lambda_max(X[:, :12], y, penalty_factor=alone)
    assert lambda_max(X, y, penalty_factor=v) == pytest.approx(expected, rel=1e-9)
    assert lam > 0


def test_factors_by_name_and_by_number(data):
    X, y, _, lam = data
    names = [f"gene{j}" for j in range(12)]
    frame = pd.DataFrame(X, columns=names)
    v = np.ones(12)
    v[[3, 5]] = 0.0, 2.0
    expected = screen(X, y, lam, penalty_factor=v).bounds
    for factor in ({"gene3": 0, "gene5": 2}, {3: 0, 5: 2}, v):
        found = screen(frame, y, lam, penalty_factor=factor).bounds
        assert np.array_equal(found, expected)
    assert Problem.of(frame, y).names == names


def test_storage_does_not_matter(data):
    X, y, w, lam = data
    X = np.where(X > 3, X, 0.0)
    expected = screen(X, y, lam, w=w).bounds
    for kind in (np.asfortranarray, sp.csc_array, sp.csr_matrix, pd.DataFrame, as_columns):
        assert screen(kind(X), y, lam, w=w).bounds == pytest.approx(expected, rel=1e-9)


def test_factors_in_a_series_go_by_its_index(data):
    X, y, _, lam = data
    names = [f"gene{j}" for j in range(12)]
    frame = pd.DataFrame(X, columns=names)
    v = np.random.default_rng(68).uniform(0.5, 2, 12)
    shuffled = pd.Series(v, index=names).sample(frac=1, random_state=0)
    found = screen(frame, y, lam, penalty_factor=shuffled).bounds
    assert np.array_equal(found, screen(X, y, lam, penalty_factor=v).bounds)


def test_numbers_that_are_column_labels_are_labels(data):
    X, y, _, lam = data
    frame = pd.DataFrame(X, columns=list(range(11, -1, -1)))
    v = np.ones(12)
    v[8] = 0.0  # the column with label 3
    found = screen(frame, y, lam, penalty_factor={3: 0}).bounds
    assert np.array_equal(found, screen(X, y, lam, penalty_factor=v).bounds)


# --- unpenalised columns far from 0 or nearly dependent: none may be dropped in silence -----------


def test_unpenalised_columns_far_from_zero_are_the_same_as_centred():
    """Years and their powers; seconds since 1970: the same span, the same problem."""
    rng = np.random.default_rng(69)
    year = np.repeat(np.arange(2000.0, 2021), 10)
    s = (year - 2010) / 10
    y = np.where(4 * s**3 - 2 * s + 0.8 * rng.standard_normal(210) > 0, 1.0, -1.0)
    x = rng.standard_normal((210, 4))
    centred = np.column_stack([s, s**2, s**3, x])
    raw = np.column_stack([year, year**2, year**3, x])
    v = np.array([0.0, 0, 0, 1, 1, 1, 1])
    top = lambda_max(centred, y, penalty_factor=v)
    assert lambda_max(raw, y, penalty_factor=v) == pytest.approx(top, rel=1e-6)
    assert len(Problem.of(raw, y, penalty_factor=v).free) == 3
    assert set(screen(raw, y, 0.8 * top, penalty_factor=v).kept) >= {0, 1, 2}
    seconds = np.column_stack([1.7e9 + np.arange(20.0), rng.standard_normal((20, 2))])
    late = np.where(np.arange(20) > 9.5, 1.0, -1.0)
    assert lambda_max(seconds, late, penalty_factor=[0, 1, 1]) == 0.0  # it separates
    late[[3, 15]] *= -1
    found = lambda_max(seconds, late, penalty_factor=[0, 1, 1])
    seconds[:, 0] -= 1.7e9
    assert found == pytest.approx(lambda_max(seconds, late, penalty_factor=[0, 1, 1]), rel=1e-6)


def test_nearly_dependent_unpenalised_columns_are_refused():
    rng = np.random.default_rng(70)
    z, d, x = rng.standard_normal((3, 30))
    y = np.sign(rng.standard_normal(30))
    X = pd.DataFrame({"x": x, "z": z, "z2": z + 1e-9 * d})
    with pytest.raises(ValueError, match=r"column 2 \('z2'\) depends on the others"):
        lambda_max(X, y, penalty_factor=[1, 0, 0])
    far = np.column_stack([x, z, z + 1e-5 * d])  # far enough
    assert lambda_max(far, y, penalty_factor=[1, 0, 0]) == pytest.approx(
        lambda_max(np.column_stack([x, z, d]), y, penalty_factor=[1, 0, 0]), rel=1e-6
    )


def test_a_tiny_class_is_not_one_class():
    """Weights over 28 orders leave little of s, but not nothing: no proof that F = {0}."""
    X, y, c = np.array([[0.0], [1.0]]), [1, -1], [1, 1e-28]
    assert lambda_max(X, y, sample_weight=c) == pytest.approx(2e-28, rel=1e-6)
    assert list(screen(X, y, 1e-29, sample_weight=c).kept) == [0]


@pytest.mark.parametrize("scale", [1e-190, 1e-162, 1e161, 1e190])
def test_no_square_over_or_underflows(scale):
    rng = np.random.default_rng(71)
    X, y = rng.standard_normal((30, 8)), np.sign(rng.standard_normal(30))
    w = np.zeros(8)
    w[0] = 0.05
    top = lambda_max(X, y)
    expected = screen(X, y, 0.5 * top, w=w).bounds
    found = screen(X * scale, y, 0.5 * top * scale, w=w / scale).bounds
    assert found == pytest.approx(expected, rel=1e-9)
    v = np.full(8, scale)
    found = screen(X, y, 0.5 * top / scale, w=w, penalty_factor=v).bounds
    assert found == pytest.approx(expected, rel=1e-9)


# --- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        (0, 1),
        (1, 2),
        (-1, 1),
        (False, True),
        ("no", "yes"),
        (0.5, 7.25),
        (np.int8(3), np.int8(4)),
    ],
)
def test_any_two_labels_in_sorted_order(data, labels):
    X, y, _, lam = data
    named = np.where(y > 0, *reversed(labels))
    for given in (named, pd.Series(named), named.astype(object), list(named)):
        problem = Problem.of(X, given)
        assert np.array_equal(problem.y, y)
        assert list(problem.classes) == sorted(labels)
    assert screen(X, named, lam).kept.tolist() == screen(X, y, lam).kept.tolist()


def test_one_class_is_minus_one_where_it_is_not_positive():
    X = np.ones((3, 1))
    for label, sign in ((1, 1), (-1, -1), (0, -1), (False, -1), (True, 1), ("a", 1), (2.5, 1)):
        assert Problem.of(X, [label] * 3).y[0] == sign


# --- words for wrong input ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": [0, 1, 2, 0]}, "3 different labels .0, 1, 2"),
        ({"y": [0, 1, 1]}, "y has 3 labels, but X needs 4"),
        ({"y": [[0], [1], [1], [0]]}, r"y has shape \(4, 1\)"),
        ({"y": [0, 1, np.nan, 1]}, "no valid label in row 2 .it is"),
        ({"y": [0, 1, np.inf, 1]}, "no valid label in row 2"),
        ({"y": ["a", None, "b", "a"]}, "no valid label in row 1"),
        ({"y": ["a", 1, "b", 2]}, "different types|different labels"),
        ({"X": np.empty((0, 3)), "y": []}, "X has no rows"),
        ({"sample_weight": [1, 2, 3]}, "3 weights, but X needs 4"),
        ({"sample_weight": [1, -2, 3, 4]}, "is negative at row 1"),
        ({"sample_weight": [1, 2, np.nan, 4]}, "is not finite at row 2"),
        ({"sample_weight": [1, 2, 3, np.inf]}, "is not finite at row 3"),
        ({"sample_weight": ["a"] * 4}, "not a number"),
        ({"penalty_factor": [1, 1]}, "2 factors, but X needs 3"),
        ({"penalty_factor": [1, np.nan, 1]}, "is not a number at feature 1"),
        ({"penalty_factor": [1, -1, 1]}, "is negative at feature 1"),
        ({"penalty_factor": {"a": 0}}, "'a', but the columns of X have no names"),
        ({"penalty_factor": {5: 0}}, r"key 5, .* column numbers in 0\.\.2"),
        ({"penalty_factor": {True: 0}}, "key True"),
        ({"penalty_factor": {1.5: 0}}, "key 1.5"),
        ({"penalty_factor": {1: "x"}}, "not a number"),
        ({"penalty_factor": np.array([1j, 1, 1])}, "not a number"),
        ({"X": pd.DataFrame(np.eye(4)[:, :3], columns=[3, 2, 1]), "penalty_factor": {0: 0}},
         "names 0, which is not a column"),
        ({"X": pd.DataFrame(np.eye(4)[:, :3], columns=list("aab")), "penalty_factor": {"a": 0}},
         "several such columns"),
        ({"sample_weight": [1, 2, 1e-200, 4]}, "too small or too large .* row 2"),
        ({"sample_weight": np.ma.masked_array([1.0, 2, 3, 4], [0, 1, 0, 0])}, "masked"),
        ({"y": np.ma.masked_array([0, 1, 1, 0], [0, 1, 0, 0])}, "masked"),
        ({"y": [[0, 1], [1], [1], [0]]}, "differ in length"),
        ({"y": pd.Series(["a", pd.NA, "b", "a"], dtype="string")}, "no valid label in row 1"),
        ({"y": np.array(["2020-01-01", "NaT", "2021-01-01", "2020-01-01"], "M8[D]")}, "row 1"),
        ({"fit_intercept": None}, "fit_intercept must be True or False"),
        ({"standardize": "no"}, "standardize must be True or False"),
        ({"X": np.eye(4)[:, :3] * 1e250}, "Column 0 of X has values of the order of 1e.250"),
        ({"X": pd.DataFrame(np.ones((4, 3)), columns=list("abc")), "penalty_factor": {"z": 0}},
         "'z', which is not a column"),
        ({"X": [[1, 2, 3], [4, np.nan, 6], [7, 8, 9], [1, 0, 1]]}, "row 1, column 1.*imputer"),
        ({"X": pd.DataFrame({"a": [1.0, 2, 3, 4], "tp53": [1, 2, np.nan, 4]})},
         r"row 2, column 1 \('tp53'\)"),
        ({"X": [[1, 2, 3], [4, 5, np.inf], [7, 8, 9], [1, 0, 1]]}, "row 1, column 2"),
    ],
)  # fmt: skip
def test_wrong_input_is_named(change, words):
    given = {"X": np.arange(12.0).reshape(4, 3) ** 2, "y": [0, 1, 1, 0]} | change
    with pytest.raises(ValueError, match=words):
        lambda_max(**given)


def test_unpenalised_column_with_a_missing_value_is_named():
    X = np.arange(12.0).reshape(4, 3)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="row 3, column 2"):
        lambda_max(X, [0, 1, 1, 0], penalty_factor=[1, 1, 0])


def test_nothing_handed_in_is_modified(data):
    X, y, w, lam = data
    c, v = np.ones(40), np.ones(12)
    v[2] = 0.0
    before = [a.copy() for a in (X, y, w, c, v)]
    for array in (X, y, w, c, v):
        array.flags.writeable = False
    screen(X, y, lam, w=w, sample_weight=c, penalty_factor=v)
    duality_gap(X, y, lam, w, sample_weight=c, penalty_factor=v)
    for array, copy in zip((X, y, w, c, v), before, strict=True):
        assert np.array_equal(array, copy)


def test_conversions_are_said(data, caplog):
    X, y, _, _ = data
    with caplog.at_level(logging.DEBUG, logger="sievesvm"):
        lambda_max(np.ascontiguousarray(X), y)
    assert f"{X.nbytes} bytes" in caplog.text
