"""The embedded data set is there, whole, and ready for use."""

import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from sievesvm.columns import DenseColumns, as_columns
from sievesvm.example import load_example


def test_shapes_and_types():
    X, y, names, group = load_example()
    assert X.shape == (48, 650)
    assert X.dtype == np.float32
    assert X.flags.f_contiguous
    assert np.isfinite(X).all()
    assert y.shape == group.shape == (48,)
    assert len(set(names)) == 650
    assert all(type(name) is str and name for name in names)


def test_labels_follow_the_groups():
    _, y, _, group = load_example()
    ill = np.isin(group, ["NAFLD", "NAFLD+T2D", "cirrhosis"])
    assert np.array_equal(y, np.where(ill, 1, -1))
    assert set(group[~ill]) == {"healthy", "T2D"}


def test_values_stand_under_the_right_names_and_labels():
    """PIGR, the main finding of the study, is higher with liver disease; values are in 1/1024."""
    X, y, names, _ = load_example()
    assert np.array_equal(X * 1024, np.rint(X * 1024))
    pigr = X[:, names.index("PIGR")]
    assert pigr[y > 0].mean() > pigr[y < 0].mean() + 1.0


def test_used_in_place():
    X = load_example().X
    source = as_columns(X)
    assert isinstance(source, DenseColumns)
    assert source.X is X


def test_every_call_gives_its_own_arrays():
    one, two = load_example(), load_example()
    one.X[:] = 0
    assert two.X.any()


def test_licence_ships_with_the_data():
    text = (files("sievesvm") / "data" / "LICENSE-liver_plasma.txt").read_text()
    assert "Apache License" in text
    assert "Version 2.0" in text
    assert "MannLabs" in text


def test_readme_says_what_happens(capsys, monkeypatch, tmp_path):
    """Its examples run one after the other, and print what stands below them."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[1] / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    assert examples
    names = {}
    for code, shown in examples:
        exec(code, names)
        assert capsys.readouterr().out == shown
    assert (tmp_path / "path.png").exists()
    pyplot.close("all")
