"""A quick version of the audit; and that the audit notices what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import audit
import audit_problems
import oracles
import sievesvm.path
from audit import Audit, Case, Found
from audit_judge import Judge
from sievesvm import screening, svm_path
from sievesvm.certify import DualPoint
from sievesvm.screening import Region, dome, domes, paper, sphere

LEDGER = sievesvm.path._core.Ledger


def examined(*names: str, seed: int = 0) -> Audit:
    found = Audit(seed)
    for name in names:
        found.examine(audit_problems.make(name, seed))
    return found


def test_no_decision_is_wrong():
    found = examined("degenerate:0", "offset:0", "tiny:0", "blocks:0")
    assert found.clean, "\n".join(found.errors)
    assert found.decisions >= 500_000
    assert found.hard >= 5_000
    assert found.left_out <= 0.1 * found.lambdas
    assert {rule for _, rule in found.counts} == {"safe", "gap", "paper"}
    sources = {source.split()[0] for source, _ in found.counts}
    assert sources == {"path", "screen", "screen()", "dynamic", "look-ahead", "exact"}


def test_it_prints_both_counts_and_says_whether_all_is_well(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["audit.py", "--only", "tiny:0", "tiny:1"])
    assert audit.main() == 0
    said = re.search(
        r"([\d,]+) decisions, ([\d,]+) of them hard.* 0 wrong", capsys.readouterr().out
    )
    assert said
    decisions, hard = (int(count.replace(",", "")) for count in said.groups())
    assert decisions > hard > 0
    monkeypatch.setattr(screening, "dome", shrunk(dome, 0.9))
    assert audit.main() == 1
    assert "--seed 0 --only tiny:0" in capsys.readouterr().out


# --- the judge ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_the_judge_agrees_with_the_conic_solver(seed):
    """Optimum, dual optimum and levels, with all generalisations, dense and sparse."""
    rng = np.random.default_rng([90, seed])
    intercept = seed % 5 != 4
    p = oracles.random_problem(
        rng,
        2 * int(rng.integers(3, 12)),
        int(rng.integers(5, 10)),
        weights=seed % 2 == 0,
        factors=seed % 3 == 0,
        degenerate=seed % 4 == 1,
        intercept=intercept,
    )
    if p.lam_max < 1e-6 * np.linalg.norm(p.X):
        return
    lam = 0.4 * p.lam_max
    options = {"sample_weight": p.c, "penalty_factor": p.v, "fit_intercept": intercept}
    path = svm_path(p.X, p.y, lams=[lam], **options)
    w = path.coefs.toarray().ravel()
    best = oracles.solve(p.X, p.y, lam, c=p.c, v=p.v, intercept=intercept)
    for X in (p.X, sp.csc_array(p.X)):
        judge = Judge(X, p.y, **options)
        found = judge.reference(lam, w, path.intercepts[0])
        assert found.relative_gap <= audit.REFERENCE_GAP
        assert abs(float(found.primal) - best.primal) <= abs(best.gap) + 1e-13 * best.primal
        distance = np.linalg.norm((found.theta - best.theta) / np.sqrt(p.c))
        assert distance <= found.radius + np.sqrt(2 * abs(best.gap)) / lam + 1e-9
        level = np.abs(p.fhat.T @ best.theta)[judge.penalised] / p.v[judge.penalised]
        assert level == pytest.approx(found.level[judge.penalised].astype(float), abs=1e-6)
        primal = oracles.primal_value(p.X, p.y, lam, w, path.intercepts[0], c=p.c, v=p.v)
        assert float(judge.primal(lam, w, path.intercepts[0])) == pytest.approx(primal, rel=1e-12)


def test_the_judge_standardises_as_the_columns_are():
    rng = np.random.default_rng(91)
    X, y = (
        rng.standard_normal((30, 8)) * 10.0 ** np.arange(8) + 100,
        np.sign(rng.standard_normal(30)),
    )
    X[:, 3] = 0.1  # no spread
    c = rng.integers(0, 3, 30).astype(float)
    judge = Judge(X, y, sample_weight=c, standardize=True)
    deviation = np.sqrt(np.average((X - np.average(X, axis=0, weights=c)) ** 2, axis=0, weights=c))
    assert np.flatnonzero(~judge.penalised).tolist() == [3]
    usable = judge.penalised
    assert judge.v[usable].astype(float) == pytest.approx(deviation[usable], rel=1e-9)


# --- the audit notices ----------------------------------------------------------------------------


def bracket(point: DualPoint, lam: float, lam1: float, gap1: float | None = None) -> Region:
    """Erratum 1: the product with theta1 inside the factor (1/lam2 - 1/lam1)/2."""
    region = paper(point, lam, lam1, gap1)
    return region._replace(tau=region.tau * 0.5 * (1.0 / lam - 1.0 / lam1))


def shrunk(region_of: Callable[..., Region], factor: float) -> Callable[..., Region]:
    """The region with a radius that is too short."""

    def smaller(*arguments: Any) -> Region:
        region = region_of(*arguments)
        return region._replace(radius=factor * region.radius)

    return smaller


def shrunk_domes(factor: float) -> Callable[..., Any]:
    """The same for domes, which are made together."""

    def smaller(*arguments: Any) -> Any:
        regions = domes(*arguments)
        regions[:, Region._fields.index("radius")] *= factor
        return regions

    return smaller


def wrong(found: Audit) -> set[tuple[str, str]]:
    """The sources and rules with wrong decisions."""
    return {(source.split()[0], by) for (source, by), row in found.counts.items() if row[-1]}


@pytest.mark.parametrize(
    ("module", "name", "broken", "rule", "sources"),
    [
        (screening, "paper", bracket, "paper", {"screen", "exact"}),
        (screening, "domes", shrunk_domes(0.9), "safe", {"screen", "look-ahead", "dynamic"}),
        (screening, "sphere", shrunk(sphere, 0.2), "gap", {"screen"}),
        (sievesvm.path, "domes", shrunk_domes(0.9), "safe", {"path"}),
        (sievesvm.path, "sphere", shrunk(sphere, 0.2), "gap", {"path"}),
        (sievesvm.path, "paper", bracket, "paper", {"path"}),
    ],
)
def test_a_broken_region_is_noticed(monkeypatch, module, name, broken, rule, sources):
    monkeypatch.setattr(module, name, broken)
    found = examined("degenerate:4", "degenerate:9")
    assert {(source, rule) for source in sources} <= wrong(found)
    assert {by for _, by in wrong(found)} == {rule}
    assert not found.clean
    assert "--seed 0 --only " in found.errors[0]


def test_rules_without_margins_are_noticed(monkeypatch):
    def bare(rule: Callable[..., Any]) -> Callable[..., Any]:
        return lambda point, *rest, **more: rule(point.without_margins(), *rest, **more)

    monkeypatch.setattr(screening, "apply_rule", bare(screening.apply_rule))
    monkeypatch.setattr(screening, "look_ahead", bare(screening.look_ahead))
    found = examined("line:4", "line:10")
    assert {("screen", "safe"), ("look-ahead", "safe"), ("exact", "paper")} <= wrong(found)


def test_a_bound_for_another_point_is_noticed(monkeypatch):
    monkeypatch.setattr(sievesvm.path._core, "Ledger", Misled)
    assert examined("degenerate:9").false["features settled by a bound"] > 0


class Misled:
    """A ledger that is shown a point nearer to 0."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.ledger = LEDGER(*arguments, **options)

    def consider(self, k: int, p: Any, tau: float, ball: float, e_zeta: float) -> None:
        self.ledger.consider(k, p, 0.9 * tau, 0.0, e_zeta)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ledger, name)

    def __len__(self) -> int:
        return len(self.ledger)


def test_a_gap_of_an_infeasible_point_is_noticed(monkeypatch):
    monkeypatch.setattr(DualPoint, "joined", lambda self, columns, zeta: self)
    assert examined("degenerate:9").false["gaps of the models"] > 0


def test_a_screen_that_leaves_too_little_is_noticed():
    found, instance = Audit(), audit_problems.make("tiny:0", 0)
    case = Case.of(instance, 0)
    k = case.known[-1]
    active = case.references[k].w != 0
    for discarded, worse in ((~active, 0), (active, 1)):
        found.check_survivors(case, Found("screen", "safe", k, discarded))
        assert found.wrong == worse
