"""What a path hands out: models on and off the grid, decisions, tables; and what it refuses."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import oracles
from sievesvm import SVMPath, as_columns, duality_gap, svm_path


def data(n: int = 40, m: int = 30, seed: int = 0):
    rng = np.random.default_rng([90, seed])
    X = rng.standard_normal((n, m))
    y = np.where(X[:, :3].sum(axis=1) + rng.standard_normal(n) > 0, 1, -1)
    return X, y


def dense(path: SVMPath) -> np.ndarray:
    return path.coefs.toarray()


# --- models off the grid --------------------------------------------------------------------------


def test_on_the_grid_it_is_exactly_that_model():
    X, y = data()
    path = svm_path(X, y, lams=12)
    for k, lam in enumerate(path.lams):
        for near in (lam, lam * (1 + 2e-16), lam * (1 - 2e-16)):
            w, b = path.coef_at(near)
            assert np.array_equal(w, dense(path)[:, k])
            assert b == path.intercepts[k]


@pytest.mark.parametrize("part", [0.01, 0.3, 0.9])
def test_between_two_models_it_lies_on_the_line(part):
    X, y = data()
    path = svm_path(X, y, lams=12)
    W = dense(path)
    for k in range(11):
        w, b = path.coef_at((1 - part) * path.lams[k] + part * path.lams[k + 1])
        assert w == pytest.approx((1 - part) * W[:, k] + part * W[:, k + 1], abs=1e-12)
        wanted = (1 - part) * path.intercepts[k] + part * path.intercepts[k + 1]
        assert b == pytest.approx(wanted, abs=1e-12)


def test_where_no_feature_and_no_slack_comes_or_goes_it_is_optimal():
    """The optimum is piecewise linear in lambda, not in its logarithm."""
    X, y = data(n=30, m=8)
    whole = svm_path(X, y, lams=60, tol=1e-10)
    slack = y[:, None] * whole.decision_function(X) < 1
    signs = np.sign(dense(whole))
    pieces = 0
    for k in range(59):
        if np.array_equal(signs[:, k], signs[:, k + 1]) and np.array_equal(
            slack[:, k], slack[:, k + 1]
        ):
            lam = 0.5 * (whole.lams[k] + whole.lams[k + 1])
            certificate = duality_gap(X, y, lam, *whole.coef_at(lam))
            assert certificate.relative_gap < 1e-9
            pieces += 1
    assert pieces >= 10


@pytest.mark.parametrize("standardize", [False, True])
def test_its_gap_is_small_and_right(standardize):
    X, y = data(n=60, m=200)
    X = X * np.linspace(0.5, 2.0, 200)
    path = svm_path(X, y, standardize=standardize)
    lams = np.sqrt(path.lams[:-1] * path.lams[1:])[::7]
    between = svm_path(X, y, lams=lams, standardize=standardize)
    for lam, best in zip(between.lams, between.dual, strict=True):
        w, b = path.coef_at(lam)
        certificate = duality_gap(X, y, lam, w, b, standardize=standardize)
        v = X.std(axis=0) if standardize else None
        primal = oracles.primal_value(X, y, lam, w, b, v=v)
        assert certificate.primal == pytest.approx(primal, rel=1e-12)
        assert primal - best <= certificate.gap * (1 + 1e-9) + 1e-9
        assert certificate.gap >= certificate.primal - certificate.dual
        assert certificate.relative_gap < 0.01


def test_above_lambda_max_it_is_the_first_model():
    X, y = data()
    path = svm_path(X, y, lams=5)
    assert path.n_active[0] == 0
    for lam in (1.001 * path.lams[0], 1e6 * path.lams[0]):
        w, b = path.coef_at(lam)
        assert not w.any()
        assert b == path.intercepts[0]
        assert duality_gap(X, y, lam, w, b).relative_gap < 1e-9


def test_above_lambda_max_unpenalised_features_stay():
    X, y = data()
    path = svm_path(X, y, lams=5, penalty_factor={3: 0, 4: 0})
    w, b = path.coef_at(10 * path.lams[0])
    assert list(np.flatnonzero(w)) == [3, 4]
    v = np.ones(30)
    v[[3, 4]] = 0
    again = duality_gap(X, y, 10 * path.lams[0], w, b, penalty_factor=v)
    assert again.relative_gap < 1e-6


def test_it_does_not_extrapolate():
    X, y = data()
    path = svm_path(X, y, lams=[5.0, 2.0])
    assert path.n_active[0] > 0
    with pytest.raises(ValueError, match=r"the path begins at 5, with \d+ features in the model"):
        path.coef_at(5.1)
    with pytest.raises(ValueError, match="the path goes down to 2 only"):
        path.coef_at(1.9)
    with pytest.raises(ValueError, match="lam must be a positive number"):
        path.coef_at(np.nan)
    with pytest.raises(ValueError, match="no models"):
        svm_path(X, np.ones(40)).coef_at(1.0)
    with pytest.raises(ValueError, match="goes down to 5 only"):
        svm_path(X, y, lams=[5.0]).coef_at(4.0)


def test_the_dual_variables_are_weighted_slacks():
    X, y = data()
    c = np.random.default_rng(91).uniform(0.0, 2.0, 40)
    c[:5] = 0.0
    for weights in (None, c):
        path = svm_path(X, y, lams=10, sample_weight=weights, tol=1e-10)
        for lam in (path.lams[4], 0.5 * (path.lams[4] + path.lams[5]), 2 * path.lams[0]):
            w, b = path.coef_at(lam)
            xi = np.maximum(0.0, 1.0 - y * (X @ w + b))
            alpha = path.alpha_at(lam)
            assert alpha == pytest.approx(xi if weights is None else c * xi, abs=1e-12)
            assert np.all(alpha >= 0)
        lam = path.lams[4]  # an optimum: balance, and w_j = 0 or |f_j'(y alpha)| = lam
        alpha = path.alpha_at(lam)
        assert y @ alpha == pytest.approx(0, abs=1e-8)
        products = np.abs(X.T @ (y * alpha))
        assert np.all(products <= lam * (1 + 1e-6))
        assert products[path.coef_at(lam)[0] != 0] == pytest.approx(lam, rel=1e-6)
        e = np.ones(40) if weights is None else np.sqrt(np.where(c > 0, c, 1.0))
        dual = alpha.sum() - 0.5 * np.sum((alpha / e) ** 2)
        assert dual == pytest.approx(path.primal[4], rel=1e-6)


def test_pickled_it_leaves_the_data_behind():
    X, y = data(n=40, m=2000)
    path = svm_path(X, y, lams=10, standardize=True)
    stored = pickle.dumps(path)
    assert len(stored) < X.nbytes / 4
    again = pickle.loads(stored)
    lam = 0.4 * path.lams[0]
    for one, other in zip(path.coef_at(lam), again.coef_at(lam), strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(path.predict(X), again.predict(X))
    assert repr(again) == repr(path)
    with pytest.raises(ValueError, match="alpha_at needs the data"):
        again.alpha_at(lam)
    assert len(path.alpha_at(lam)) == 40


# --- decisions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        np.asarray,
        np.asfortranarray,
        pd.DataFrame,
        lambda X: pd.DataFrame(X).astype(pd.SparseDtype("float64", 0.0)),
        lambda X: pd.DataFrame(X).astype("Float64"),
        lambda X: X.tolist(),
        lambda X: X.astype(object),
        sp.csr_array,
        sp.csc_matrix,
        sp.coo_array,
        as_columns,
        lambda X: as_columns(sp.csc_array(X)),
    ],
)
def test_decisions_take_what_the_path_takes(kind):
    X, y = data()
    X = np.where(X > 0.2, X, 0.0)
    path = svm_path(kind(X), y, lams=8)
    wanted = X @ dense(path) + path.intercepts
    assert path.decision_function(kind(X)) == pytest.approx(wanted, abs=1e-12)
    assert np.array_equal(path.predict(kind(X)), np.where(wanted > 0, 1, -1))
    assert path.decision_function(kind(X[:1])) == pytest.approx(wanted[:1], abs=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "uint32"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_decisions_on_other_numbers(kind, dtype):
    X, y = data()
    X = np.abs(np.rint(X)).astype(dtype)
    path = svm_path(kind(X), y, lams=8)
    wanted = X.astype(float) @ dense(path) + path.intercepts
    assert path.decision_function(kind(X)) == pytest.approx(wanted, abs=1e-12)


def test_decisions_of_no_rows_and_of_no_models():
    X, y = data()
    path = svm_path(X, y, lams=8)
    assert path.predict(X[:0]).shape == (0, 8)
    assert path.predict(sp.csr_array(X[:0])).shape == (0, 8)
    assert svm_path(X, np.ones(40)).predict(X).shape == (40, 0)


def test_decisions_need_the_columns_of_the_path():
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(30)])
    path = svm_path(frame, y, lams=8)
    for wrong in (X[:, :-1], sp.csr_array(X[:, :-1]), as_columns(X[:, :-1])):
        with pytest.raises(ValueError, match="X has 29 columns, but the path was trained on 30"):
            path.predict(wrong)
    with pytest.raises(ValueError, match="X has 1 dimensions"):
        path.predict(X[0])
    swapped = frame[["gene1", "gene0", *frame.columns[2:]]]
    with pytest.raises(
        ValueError, match="Column 0 of X is 'gene1', but in training it was 'gene0'"
    ):
        path.decision_function(swapped)


def test_a_missing_value_in_the_model_is_an_error_and_elsewhere_is_not_read():
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(30)])
    path = svm_path(frame, y, lams=8, eps=0.5)
    inside = int(path.coefs.indices[0])
    outside = int(np.setdiff1d(np.arange(30), path.coefs.indices)[0])
    wanted = path.decision_function(frame)
    frame.iloc[4, outside] = np.nan
    assert np.array_equal(path.decision_function(frame), wanted)
    frame.iloc[4, inside] = np.nan
    with pytest.raises(ValueError, match=rf"row 4, column {inside} \('gene{inside}'\)"):
        path.predict(frame)


# --- what it says of itself -----------------------------------------------------------------------


def test_repr_is_one_line_that_says_what_matters():
    X, y = data()
    path = svm_path(X, y, lams=25)
    text = repr(path)
    assert "\n" not in text
    assert len(text) < 200
    for part in (
        "25 models",
        f"to {path.lams[-1]:.3g}",
        f"0 to {path.n_active.max()} of 30 features",
    ):
        assert part in text
    assert f"{max(path.gaps / path.primal):.1e}" in text
    assert f"{path.passes[-1]:.1f} passes" in text
    assert "finished in" in text
    assert "max_active in" in repr(svm_path(X, y, max_active=3))
    assert repr(svm_path(X, np.ones(40))) == "<SVMPath: no models of 30 features, trivial>"
    assert "1 model, lambda 5, " in repr(svm_path(X, y, lams=[5.0]))


def test_the_table_without_pandas_says_what_to_install(monkeypatch):
    X, y = data()
    path = svm_path(X, y, lams=3)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^to_frame needs pandas: pip install pandas$"):
        path.to_frame()


def test_the_table_has_numbers_where_there_are_no_names():
    X, y = data()
    path = svm_path(X, y, lams=6)
    table = path.to_frame()
    assert list(table.columns) == ["lam", "feature", "name", "coef"]
    assert np.array_equal(table["name"], table["feature"])
    for k, lam in enumerate(path.lams):
        rows = table[table["lam"] == lam]
        assert np.array_equal(rows["coef"], dense(path)[rows["feature"], k])
        assert len(rows) == path.n_active[k]


# --- data of every kind ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pair",
    [("healthy", "sick"), (False, True), (0, 1), (1, 2), (-1, 1), (0.0, 0.5), (b"a", b"b")],
    ids=str,
)
def test_any_two_labels(pair):
    X, y = data()
    plain = svm_path(X, y, lams=8)
    labels = np.where(y > 0, pair[1], pair[0])
    for given in (labels, labels.tolist(), pd.Series(labels, index=np.arange(40)[::-1])):
        path = svm_path(X, given, lams=8)
        assert path.classes.tolist() == list(pair)
        assert np.array_equal(dense(path), dense(plain))
        assert np.array_equal(path.predict(X), np.where(plain.predict(X) > 0, pair[1], pair[0]))


def test_more_classes_and_the_wrong_length_are_errors():
    X, y = data()
    with pytest.raises(ValueError, match=r"y has 3 different labels \(0, 1, 2, ...\)"):
        svm_path(X, np.arange(40) % 3)
    with pytest.raises(ValueError, match="y has 39 labels, but X needs 40"):
        svm_path(X, y[:-1])
    with pytest.raises(ValueError, match="sample_weight has 39 weights, but X needs 40"):
        svm_path(X, y, sample_weight=np.ones(39))
    with pytest.raises(ValueError, match="X has no rows"):
        svm_path(X[:0], y[:0])


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("kind", [np.asfortranarray, sp.csc_array])
def test_columns_of_zeros_and_constant_columns_stay_out(kind, standardize):
    X, y = data()
    more = np.column_stack([np.zeros(40), X, np.full(40, 3.7), np.full(40, -1e6)])
    plain = svm_path(X, y, lams=10, standardize=standardize)
    path = svm_path(kind(more), y, lams=10, standardize=standardize)
    assert path.primal == pytest.approx(plain.primal, rel=1e-9)
    assert dense(path)[1:-2] == pytest.approx(dense(plain), abs=1e-8)
    assert not dense(path)[[0, -2, -1]].any()


def test_only_constant_columns_are_trivial():
    path = svm_path(np.full((6, 3), 2.5), [0, 1, 0, 1, 1, 1])
    assert (path.ended, path.coefs.shape) == ("trivial", (3, 0))


def test_one_row():
    path = svm_path([[1.0, 2.0, 3.0]], [1], lams=[1.0, 0.1])
    assert path.coefs.nnz == 0
    assert np.all(path.primal == 0)
    assert svm_path([[1.0, 2.0]], [1]).ended == "trivial"
    alone = svm_path([[1.0, 2.0]], [1], lams=[1.0], fit_intercept=False)
    assert dense(alone).ravel() == pytest.approx([0.0, 0.25])  # least (1 - 2 w)^2 / 2 + w


def test_no_columns():
    assert svm_path(np.empty((4, 0)), [0, 1, 1, 1]).ended == "trivial"
    path = svm_path(np.empty((4, 0)), [0, 1, 1, 1], lams=[1.0])
    assert path.predict(np.empty((2, 0))).tolist() == [[1], [1]]
    assert path.coef_at(9.0)[0].shape == (0,)
    assert path.alpha_at(1.0).shape == (4,)


def test_no_weight_at_all_or_in_one_class():
    X, y = data()
    for weights in (np.zeros(40), (y > 0).astype(float)):
        assert svm_path(X, y, sample_weight=weights).ended == "trivial"
        path = svm_path(X, y, sample_weight=weights, lams=[2.0, 1.0])
        assert path.coefs.nnz == 0
        assert np.all(path.primal == 0)
        assert set(path.status) == {"converged"}
        assert not path.alpha_at(1.5).any()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_weight_is_a_number_of_copies(fit_intercept):
    X, y = data()
    c = np.random.default_rng(92).integers(0, 4, 40)
    lams = np.geomspace(10.0, 1.0, 6)
    copies = svm_path(
        np.repeat(X, c, axis=0), np.repeat(y, c), lams=lams, fit_intercept=fit_intercept
    )
    weighted = svm_path(X, y, sample_weight=c, lams=lams, fit_intercept=fit_intercept)
    assert weighted.primal == pytest.approx(copies.primal, rel=1e-9)
    assert dense(weighted) == pytest.approx(dense(copies), abs=1e-8)
    assert weighted.intercepts == pytest.approx(copies.intercepts, abs=1e-8)
    assert np.repeat(weighted.alpha_at(3.0) / np.maximum(c, 1), c) == pytest.approx(
        copies.alpha_at(3.0), abs=1e-8
    )


@pytest.mark.parametrize("kind", [np.asfortranarray, sp.csc_array])
def test_float32_is_its_float64_copy(kind):
    X, y = data()
    X = np.where(X > 0, X, 0.0).astype(np.float32)
    single, double = svm_path(kind(X), y, lams=12), svm_path(kind(X.astype(np.float64)), y, lams=12)
    for name in ("lams", "intercepts", "primal", "gaps", "n_iter"):
        assert np.array_equal(getattr(single, name), getattr(double, name)), name
    assert np.array_equal(dense(single), dense(double))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [np.asfortranarray, sp.csc_array])
def test_standardised_is_the_path_of_standardised_columns(kind, fit_intercept, weighted):
    X, y = data()
    rng = np.random.default_rng(93)
    X = np.where(rng.random(X.shape) < 0.6, X * np.geomspace(0.1, 10, 30) + 1.0, 0.0)
    c = rng.uniform(0.1, 2.0, 40) if weighted else np.ones(40)
    mean = (c @ X / c.sum()) if fit_intercept else np.zeros(30)
    scale = np.sqrt(c @ (X - mean) ** 2 / c.sum())
    options = {"lams": 10, "fit_intercept": fit_intercept}
    options["sample_weight"] = c if weighted else None
    path = svm_path(kind(X), y, standardize=True, **options)
    explicit = svm_path((X - mean) / scale, y, **options)
    assert path.scale == pytest.approx(scale, rel=1e-12)
    assert path.primal == pytest.approx(explicit.primal, rel=1e-9)
    assert dense(path) * scale[:, None] == pytest.approx(dense(explicit), abs=1e-8)
    shifted = explicit.intercepts - mean / scale @ dense(explicit)
    assert path.intercepts == pytest.approx(shifted, abs=1e-7)


@pytest.mark.parametrize("standardize", [False, True])
def test_factor_inf_is_absence_and_factor_0_is_presence(standardize):
    X, y = data()
    v = np.ones(30)
    v[[0, 7]] = np.inf
    v[[5, 6]] = 0.0
    path = svm_path(X, y, lams=10, penalty_factor=v, standardize=standardize)
    kept = np.isfinite(v)
    absent = svm_path(X[:, kept], y, lams=10, penalty_factor=v[kept], standardize=standardize)
    assert path.lams == pytest.approx(absent.lams, rel=1e-12)
    assert path.primal == pytest.approx(absent.primal, rel=1e-9)
    assert dense(path)[kept] == pytest.approx(dense(absent), abs=1e-8)
    assert not dense(path)[~kept].any()
    assert dense(path)[[5, 6]].all()
    assert list(path.unpenalised) == [5, 6]
