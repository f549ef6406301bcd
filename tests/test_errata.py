"""Every number of docs/errata.md, recomputed.

The document's Python blocks are run as one session, and the numbers in the text around a block
must be those that tests/paper.py and the conic solver find for the same data, in the same order.
"""

from __future__ import annotations

import doctest
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oracles
import paper

DOCUMENT = Path(__file__).parents[1] / "docs" / "errata.md"
BLOCK = re.compile(r"```pycon\n(.*?)```", re.DOTALL)
FENCED = re.compile(r"```.*?```", re.DOTALL)


@cache
def sections() -> dict[str, str]:
    """The text under each heading."""
    parts = re.split(r"^##+ (.+)$", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def run(title: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run the blocks of a section after `names`; the names they leave behind."""
    blocks = BLOCK.findall(sections()[title])
    assert blocks, f"no example under {title}"
    runner, report = doctest.DocTestRunner(), []
    for block in blocks:
        test = doctest.DocTestParser().get_doctest(block, names, title, str(DOCUMENT), 0)
        runner.run(test, out=report.append, clear_globs=False)
        names = test.globs
    assert runner.failures == 0, "".join(report)
    return names


@cache
def data() -> dict[str, Any]:
    return run("The data of the examples", {})


def geometry(name: str, lam2: float | None = None) -> paper.Geometry:
    _, y, lam1, given, theta1, _ = data()[name]
    return paper.geometry(theta1, lam1, lam2 or given, y)


def column(name: str, j: int) -> np.ndarray:
    X, y, *_ = data()[name]
    return y * X[:, j]


def maximum(f: np.ndarray, g: paper.Geometry) -> float:
    """Maximum of f'theta over K, by the conic solver."""
    cuts = [] if g.no_cut else [(g.a, g.a @ g.theta1)]
    return oracles.maximise(f, g.c, paper.norm(g.b), cuts, [g.y])[0]


def check(number: int, *expected: float) -> None:
    """The blocks run, and the numbers of the text (all but single digits) are `expected`."""
    title = f"Erratum {number}"
    run(title, data())
    text = re.sub(r"(Theorem|Corollary) [\d.]+", "", FENCED.sub("", sections()[title]))
    claimed = [float(token) for token in re.findall(r"-?\d+\.\d+|\d{2,}", text)]
    assert claimed == [round(float(value), 4) for value in expected]


def test_every_erratum_has_a_row_and_its_link_a_target():
    table = re.findall(r"^\| \[(\d+)\]\(#(.+?)\) \|", DOCUMENT.read_text(encoding="utf-8"), re.M)
    assert [int(number) for number, _ in table] == list(range(1, 17))
    assert {anchor for _, anchor in table} <= {t.lower().replace(" ", "-") for t in sections()}


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_the_solutions_of_the_data_sets(name):
    X, y, *rest = data()[name]
    for lam, theta in zip(rest[:2], rest[2:], strict=True):
        assert theta == pytest.approx(oracles.solve(X, y, lam).theta, abs=1e-9)


def test_erratum_1():
    f, g = column("A", 1), geometry("A")
    arguments = g.theta1, g.lam1, g.lam2, g.y
    printed = [paper.printed_neg_min(h, *arguments, mended=[2]) for h in (f, -f)]
    check(1, *printed, maximum(-f, g))
    assert max(printed) < 1.0
    assert oracles.solve(data()["A"][0], g.y, g.lam2).w[1] != 0.0


def test_erratum_2():
    *_, theta1, theta2 = data()["B"]
    printed = paper.printed_geometry(*geometry("B")[:4]).a @ (theta2 - theta1)
    f, g = column("C", 0) / 2, geometry("C")
    mirrored = oracles.maximise(f, g.c, paper.norm(g.b), [(-g.a, -g.a @ g.theta1)], [g.y])[0]
    check(2, printed, g.theta1[0], 1 / g.lam2, maximum(f, g), mirrored)
    assert printed > 0.0


def test_erratum_3():
    f, g = column("B", 1), geometry("B")
    assert paper.case(f, g) == "alpha=0"
    check(3, g.a @ (g.b + paper.alpha_zero(f, g).r))


def test_erratum_4():
    radii = {}
    for name in "BC":
        g = geometry(name)
        times = paper.smallest_t(g), paper.printed_t(paper.printed_geometry(*g[:4]))
        radii[name] = [*times, *(paper.ball(t, g)[1] for t in times)]
    mended, printed, least, larger = radii["B"]
    check(4, mended, printed, larger, least, radii["C"][3])


def test_erratum_5():
    f, g = column("B", 1), geometry("B")
    least, rho = paper.alpha_zero(f, g), paper.printed_rho_alpha_zero(f, g)
    check(5, g.y @ (g.c - (f + rho * g.y) / least.beta))
    assert maximum(-f, g) == pytest.approx(least.neg_min, abs=1e-7)


def test_erratum_6():
    f, g = -column("B", 1), geometry("B")
    least, rho = paper.both_positive(f, g), paper.printed_rho_both_positive(f, g)
    check(6, rho, least.rho, g.y @ (least.centre - paper.P(g.a, f + rho * g.y) / least.beta))
    assert paper.case(f, g) == "both>0"
    assert maximum(-f, g) == pytest.approx(least.neg_min, abs=1e-7)


def test_erratum_7():
    f, g = -column("B", 1), geometry("B")
    least = paper.both_positive(f, g)
    check(7, paper.printed_beta_both_positive(f, least.rho, g), least.beta)


def test_erratum_8():
    f, steps = -column("B", 0), (1.25, 0.625, 0.3125)
    printed = [paper.printed_corollary_beta_zero(h, geometry("B")) for h in (-f, f)]
    check(8, *printed, *(maximum(-f, geometry("B", lam2)) for lam2 in steps), *steps)


def test_erratum_9():
    f, g = -column("B", 1), geometry("B")
    rho = paper.both_positive(f, g).rho
    length = paper.norm(paper.P(g.a, f + rho * g.y))
    check(9, length, paper.norm(paper.P(g.a, f) + rho * g.y - (g.a @ g.y) * g.a))


def test_erratum_13():
    check(13)
    assert geometry("C").b @ geometry("C").y == 0.0


def test_erratum_14():
    X, y, *_ = data()["C"]
    top, lam2 = paper.lambda_max(X, y), data()["C"][3]
    g = paper.geometry(paper.theta_at_lambda_max(X, y), top, lam2, y)
    check(14, top, lam2, oracles.solve(X, y, lam2).w[0], maximum(y * X[:, 0], g))
    assert len(paper.printed_screen(X, y, top, g.theta1, lam2)) == 0
    assert list(paper.screen(X, y, top, g.theta1, lam2)) == [0]


def test_erratum_15():
    entry, y = 49, data()["C"][1]
    theta = oracles.solve(entry * data()["C"][0], y, 1.0).theta
    check(15, entry, *np.round(1 / theta, 6))
    assert maximum(column("C", 0), geometry("C")) == pytest.approx(1.0, abs=1e-9)


def test_erratum_16():
    X, y, lam1, lam2, theta1, _ = data()["C"]
    f, exact = column("C", 0), oracles.solve(X, y, lam1)
    off, near = np.array([0.6]), np.array([0.501])
    theta, close = (paper.theta_from_primal(X, y, lam1, w, 0.0) for w in (off, near))
    bounds = [paper.upper_bounds(X, y, lam1, t, lam2)[0] for t in (theta, close, theta1)]
    primal = oracles.primal_value(X, y, lam1, off, 0.0)
    numbers = lam1, exact.w[0], off[0], primal, exact.primal, theta[0], theta1[0]
    check(16, *numbers, bounds[0], near[0], bounds[1], f @ (theta / (f @ theta)))
    assert len(paper.screen(X, y, lam1, theta, lam2)) == 0


def test_the_dome_holds_for_any_pair_and_any_feasible_point():
    """The theorem: both inequalities at the exact theta2, from points that solve nothing."""
    rng = np.random.default_rng(40)
    for _ in range(60):
        p = oracles.random_problem(rng, 10, 8)
        n, m = p.X.shape
        lam2 = p.lam_max * rng.uniform(0.1, 0.9)
        theta2, one = oracles.solve(p.X, p.y, lam2).theta, np.ones(n)
        rows = np.vstack([-np.eye(n), p.fhat.T, -p.fhat.T])
        limits = np.append(np.zeros(n), np.ones(2 * m))
        feasible = oracles.nearest(rng.uniform(0, 2 / lam2, n), rows, limits, [p.y])
        d, rounding = theta2 - feasible, 1e-9 * n / lam2**2
        assert d @ d <= (one / lam2 - feasible) @ d + rounding
        w, b = rng.standard_normal(m) * 10.0 ** rng.uniform(-3, 0), rng.standard_normal()
        xi = oracles.slacks(p.X, p.y, w, b)
        size = np.abs(w).sum()
        assert (one - xi) @ theta2 <= size + 1e-9 * (size + paper.norm(xi) * paper.norm(theta2))


def test_the_dome_is_K_at_an_exact_solution():
    """The proposition: tau = 1/lam1, kappa = 0, and h is a multiple of P_y(1/lam1 - theta1)."""
    rng = np.random.default_rng(41)
    for fraction in (1.0, 0.8, 0.5, 0.2) * 10:
        p = oracles.random_problem(rng, 10, 8)
        s = oracles.solve(p.X, p.y, fraction * p.lam_max)
        products = np.abs(p.fhat.T @ s.xi)
        assert 1.0 / products.max() == pytest.approx(1.0 / s.lam, rel=1e-9)
        assert s.xi.sum() >= s.xi @ s.xi * (1 - 1e-9)
        kappa = np.abs(s.w).sum() - (1.0 - s.xi) @ s.theta
        assert kappa == pytest.approx(0.0, abs=1e-9 * len(s.xi) / s.lam)
        h, normal = paper.P(p.y, 1.0 - s.xi), paper.P(p.y, 1.0 / s.lam - s.theta)
        assert h == pytest.approx(s.lam * normal, abs=1e-12)


def test_the_figures(tmp_path):
    """Drawn from solutions and balls that the oracle and the paper's formulas confirm."""
    pytest.importorskip("matplotlib").use("Agg")
    script = DOCUMENT.parents[1] / "examples" / "paper_figures.py"
    drawn = runpy.run_path(str(script))
    for name in ("lam1", "lam2"):
        point = drawn["ones"] / drawn[name]
        theta = oracles.nearest(point, drawn["normals"], drawn["limits"])
        assert drawn["solution"](drawn[name]) == pytest.approx(theta, abs=1e-12)
    g = paper.geometry(drawn["theta1"], drawn["lam1"], drawn["lam2"], drawn["y"])
    assert drawn["smallest_t"] == pytest.approx(paper.smallest_t(g))
    assert drawn["ball"](drawn["smallest_t"])[1] == pytest.approx(paper.small_ball(g)[1])
    assert g.a @ (drawn["theta2"] - g.theta1) < 0.0
    for name in ("k_region", "balls"):
        drawn[name]().savefig(tmp_path / f"{name}.png")
        assert (DOCUMENT.parent / "figures" / f"{name}.png").exists()
