"""The demo prints its tables and draws the path, or says why it did not."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from sievesvm import svm_path
from sievesvm.demo import main
from sievesvm.example import load_example


def table(text: str, heading: str) -> list[list[str]]:
    """The cells below the line that begins with the heading, up to the next empty line."""
    below = text[text.index(heading) :].split("\n\n")[0].splitlines()[1:]
    return [line.split() for line in below]


def test_the_tables_are_those_of_the_path(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main()
    said = capsys.readouterr().out
    assert said.isascii()
    assert max(map(len, said.splitlines()[:-1])) <= 90
    X, y, *_ = load_example()
    path = svm_path(X, y, standardize=True)
    rows = table(said, "  lambda   active")
    assert len(rows) == 10
    for row, k in zip(rows, np.linspace(0, 99, 10).round().astype(int), strict=True):
        assert row[0] == f"{path.lams[k]:.3f}"
        assert [int(cell) for cell in row[1:3]] == [path.n_active[k], path.n_kept[k]]
        assert float(row[3]) <= 1e-6
    for row in table(said, "  lambda   of max"):
        assert 0 < int(row[2]) < 650
    assert "100 of 100 models converged" in said
    assert said.splitlines()[-1] == f"The picture of it is in {tmp_path / 'sievesvm_demo.png'}"
    assert (tmp_path / "sievesvm_demo.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_is_said(capsys, tmp_path):
    for name in ("no/such/folder.png", "no.suchformat"):
        main(tmp_path / name)
        assert "The picture of it could not be written: " in capsys.readouterr().out


def test_without_matplotlib_it_says_what_to_install(tmp_path):
    code = (
        "import runpy, sys; sys.modules['matplotlib'] = None;"
        "sys.argv[1:] = []; runpy.run_module('sievesvm.demo', run_name='__main__')"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] == (
        "To have a picture of it, install matplotlib: pip install 'sievesvm[plot]'"
    )
    assert ran.stderr == ""
    assert list(tmp_path.iterdir()) == []
