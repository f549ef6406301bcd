"""The picture of a path: what it shows, that nothing in it overlaps, and the paths without much."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import pairwise

import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from sievesvm import svm_path
from sievesvm.example import load_example
from sievesvm.plot import EndLabels


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


@cache
def example(**options):
    X, y, names, _ = load_example()
    return svm_path(pd.DataFrame(X, columns=names), y, **options)


def data(n: int = 40, m: int = 30):
    rng = np.random.default_rng(94)
    X = rng.standard_normal((n, m))
    return X, np.where(X[:, :3].sum(axis=1) + rng.standard_normal(n) > 0, 1, -1)


def labelling(ax) -> EndLabels:
    (found,) = [artist for artist in ax.artists if isinstance(artist, EndLabels)]
    return found


def drawn_names(ax) -> dict:
    """The names that are shown, with their boxes in pixels, after drawing."""
    ax.figure.draw_without_rendering()
    placed = labelling(ax)._placed()
    return {text.get_text(): text.get_window_extent() for text, _ in placed}


def leading_lines(ax) -> list:
    return [line for line in ax.lines if len(line.get_xdata()) > 2]


def others(ax) -> int:
    return sum(len(c.get_segments()) for c in ax.collections if isinstance(c, LineCollection))


def remarks(ax) -> str:
    return ax.get_title(loc="left")


# --- what it shows --------------------------------------------------------------------------------


def test_coefficients_of_standardised_features_against_lambda():
    path = example(standardize=True)
    ax = path.plot()
    assert ax.get_xscale() == "log"
    assert ax.get_xlim() == (path.lams[0], path.lams[-1])
    assert "standardised" in ax.get_ylabel()
    scaled = path.coefs.toarray() * path.scale[:, None]
    order = np.argsort(-np.abs(scaled[:, -1]))[:8]
    assert set(drawn_names(ax)) == {path.feature_names[j] for j in order}
    lines = leading_lines(ax)
    assert len(lines) == 8
    assert others(ax) == len(np.unique(path.coefs.indices)) - 8
    for line, j in zip(lines, order[np.argsort(-scaled[order, -1])], strict=True):
        assert np.array_equal(line.get_xdata(), path.lams)
        shown = np.isfinite(line.get_ydata())
        assert np.array_equal(line.get_ydata()[shown], scaled[j, shown])
        assert not scaled[j, ~shown].any()
    low, high = ax.get_ylim()
    assert low < scaled.min() < scaled.max() < high
    assert remarks(ax) == ""


def test_raw_coefficients_where_nothing_was_standardised():
    path = example(lams=20)
    ax = path.plot(labels=3)
    assert "raw" in ax.get_ylabel()
    assert np.nanmax([line.get_ydata() for line in leading_lines(ax)]) <= path.coefs.max()


def test_lines_can_be_told_apart_without_colour():
    ax = example(lams=30).plot(labels=8)
    lines = leading_lines(ax)
    dashes = [line._unscaled_dash_pattern for line in lines]
    assert all(one != other for one, other in pairwise(dashes))
    looks = {(line.get_color(), str(dash)) for line, dash in zip(lines, dashes, strict=True)}
    assert len(looks) == 8


def test_counts_along_the_top():
    path = example(lams=40)
    ax = path.plot()
    (top,) = ax.child_axes
    ax.figure.draw_without_rendering()
    for place, label in zip(top.get_xticks(), top.get_xticklabels(), strict=True):
        assert int(label.get_text()) == path.n_active[list(path.lams).index(place)]
    assert list(top.get_xticks())[:: len(top.get_xticks()) - 1] == [path.lams[0], path.lams[-1]]


def test_names_handed_in_and_numbers_without_names():
    X, y = data()
    path = svm_path(X, y, lams=10)
    assert all(name.startswith("feature ") for name in drawn_names(path.plot()))
    names = [f"${j}_x$ of {'a very long name' * 3}" for j in range(30)]
    shown = drawn_names(path.plot(names=names))
    assert len(shown) == 8
    assert all(len(name) == 24 and name.startswith("$") for name in shown)
    with pytest.raises(ValueError, match="names has 29 names, but the path has 30 features"):
        path.plot(names=names[:-1])


# --- it fits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "layout"),
    [
        ((3.2, 2.4), "constrained"),
        ((7.0, 4.6), "tight"),
        ((12.0, 3.0), None),
        ((5.0, 9.0), "constrained"),
        ((3.2, 2.4), None),
    ],
)
def test_names_neither_overlap_nor_leave_the_figure(size, layout):
    ax = Figure(figsize=size, layout=layout).subplots()
    path = example(standardize=True, lams=50)
    assert path.plot(ax, labels=12) is ax
    boxes = sorted(drawn_names(ax).values(), key=lambda box: box.y0)
    assert len(boxes) == 12 or size[1] < 3.5
    for below, above in pairwise(boxes):
        assert below.y1 <= above.y0 + 2.0
    for box in boxes:
        assert ax.bbox.x1 < box.x0 < box.x1 <= ax.figure.bbox.x1
        assert ax.bbox.y0 - 2 <= box.y0 < box.y1 <= ax.bbox.y1 + 2


def test_names_follow_a_change_of_size():
    ax = example(standardize=True, lams=50).plot()
    for size in ((4.0, 2.5), (10.0, 8.0)):
        ax.figure.set_size_inches(size)
        boxes = sorted(drawn_names(ax).values(), key=lambda box: box.y0)
        assert len(boxes) >= 6
        assert all(box.x1 <= ax.figure.bbox.x1 for box in boxes)
        assert all(a.y1 <= b.y0 + 2 for a, b in pairwise(boxes))


def test_names_stay_out_of_the_next_axes():
    _, (one, other) = pyplot.subplots(1, 2, figsize=(9, 4))
    path = example(lams=20)
    path.plot(one)
    path.plot(other)
    assert max(box.x1 for box in drawn_names(one).values()) < other.bbox.x0


def test_a_picture_too_low_for_any_name_is_drawn():
    ax = Figure(figsize=(3, 0.3)).subplots()
    example(lams=20).plot(ax)
    ax.figure.draw_without_rendering()


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_it_is_written_to_files(tmp_path, suffix):
    ax = example(lams=20).plot()
    for box in (None, "tight"):
        ax.figure.savefig(tmp_path / f"path.{suffix}", bbox_inches=box)
    assert (tmp_path / f"path.{suffix}").stat().st_size > 1000


# --- paths with much or with little ---------------------------------------------------------------


def test_ten_thousand_features():
    path = example(lams=30)
    rng = np.random.default_rng(95)
    grown = rng.standard_normal((10_000, 1)) * np.linspace(0.1, 1, 30)
    many = replace(
        path, coefs=sp.csc_array(grown), n_active=np.full(30, 10_000), feature_names=None
    )
    ax = many.plot()
    assert others(ax) == 9_992
    assert len(drawn_names(ax)) == 8


def test_no_feature_and_one():
    top = example(lams=1).lams[0]
    none = example(lams=(3 * top, 2 * top)).plot()
    assert (drawn_names(none), others(none)) == ({}, 0)
    assert "No feature is in any model." in [text.get_text() for text in none.texts]
    assert len(drawn_names(example(lams=(top, 0.999 * top)).plot())) == 1
    assert drawn_names(example(lams=20).plot(labels=0)) == {}


def test_a_single_lambda():
    path = example(lams=(10.0,))
    ax = path.plot()
    assert len(drawn_names(ax)) == min(8, path.n_active[0])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["10"]


def test_a_path_without_models_says_so():
    X, _ = data()
    ax = svm_path(X, np.ones(40)).plot()
    ax.figure.draw_without_rendering()
    assert [text.get_text() for text in ax.texts] == ["The path is trivial: no models."]


def test_a_path_that_is_not_whole_says_so():
    def stop(done: int, total: int) -> None:
        if done >= 7:
            raise KeyboardInterrupt

    path = example(progress=stop)
    assert remarks(path.plot()) == f"interrupted after {len(path.lams)} models"
    path = example(max_active=10)
    assert remarks(path.plot()) == f"stopped by max_active after {len(path.lams)} models"
    path = replace(example(lams=5), status=["converged"] * 3 + ["max_iter"] * 2)
    assert remarks(path.plot()) == "2 of 5 models have a gap above the tolerance"


@pytest.mark.parametrize("eps", [0.97, 0.5, 1e-2, 1e-4, 1e-7])
def test_ticks_are_few_and_there(eps):
    ax = example(lams=15, eps=eps).plot()
    ax.figure.draw_without_rendering()
    low, high = sorted(ax.get_xlim())
    shown = [tick for tick in ax.get_xticks() if low <= tick <= high]
    assert 2 <= len(shown) <= 9
    assert len({text.get_text() for text in ax.get_xticklabels()}) == len(ax.get_xticklabels())


# --- matplotlib is not needed for anything else ---------------------------------------------------


def test_without_matplotlib_one_sentence_says_what_to_install():
    code = """
import sys
sys.modules["matplotlib"] = None
import sievesvm
path = sievesvm.svm_path([[0.0], [1.0], [2.0]], [0, 1, 1], lams=3)
try:
    path.plot()
except ImportError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "plot needs matplotlib: pip install 'sievesvm[plot]'\n"


def test_import_leaves_matplotlib_and_pandas_alone():
    code = "import sys, sievesvm; print({'matplotlib', 'pandas'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"
