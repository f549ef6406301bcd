"""Look for a wrong decision: the safety audit of the screening rules.

Usage::

    make audit
    .venv/bin/python tools/audit.py [--decisions N] [--seed S] [--minutes M] [--only NAME ...]

A decision is one discarded (feature, lambda). It is wrong if a reference, solved without screening
to a relative gap of 1e-12, has w_j != 0 with |f_j'(y alpha)| >= lam v_j (1 - 1e-9), or if the
problem on the survivors alone, solved likewise, has a higher optimum than both gaps allow. The gaps
are those of `judge.py`, in extended precision; a lambda whose reference it cannot bring to 1e-12 is
left out and counted.

Audited are all safe rules on generated problems with every generalisation (`audit_problems.py`) and
on the real data sets in the folder named by SIEVESVM_DATA, if there are any (to read them all takes
scikit-learn, h5py and bed-reader):

    path         what a path has discarded at each lambda, at tolerances from 1e-3 to 1e-10
    screen       `screen` from approximate solutions: iterates of paths and of coordinate descent,
                 perturbed optima, w = 0; for their own lambda and for others
    dynamic      once more with a point that was checked over the survivors only
    look-ahead   `look_ahead` from the same points, along the grid
    exact        the paper's K with the exact theta1

Hard decisions are those with |f_j'(y theta)| >= 0.99 v_j at the optimum. What the decisions rest on
is checked beside them: the bounds of the rules and the gaps of the models by the references, the
features that a path settles by a bound or has certified by full products, the slacks of a path.

It ends after N decisions, N/200 of them hard, and one round of all kinds of problems. The exit code
is 1 if anything is wrong, or if that was not reached after M minutes. `--only gauss:3` repeats one
problem (with the same seed).
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import audit_problems
from audit_judge import EPS, LONG, Judge, Reference
from audit_problems import Floats, Instance, Rng
from sievesvm import ConvergenceWarning, duality_gap, screening, svm_path
from sievesvm.certify import DualPoint, dual_point
from sievesvm.columns import CollinearError, Ints
from sievesvm.driver import Ask, drive
from sievesvm.path import Path, Settings
from sievesvm.problem import Problem, largest_level
from sievesvm.result import Step

Mask = npt.NDArray[np.bool_]
RULES: tuple[screening.Rule, ...] = ("safe", "gap", "paper")
TOLERANCES = 10.0 ** -np.arange(3.0, 11.0)
RATIOS = (0.9999, 0.999, 0.99, 0.95, 0.9, 0.8, 0.5)
BANDS = (0.99, 0.999, 0.9999)  # decisions are counted from each on; the first is what hard means
REFERENCE_GAP = 1e-12
AT_LIMIT = 1.0 - 1e-9  # in units of lam v_j: the constraint of an active feature
HARD_SHARE = 200  # one decision in that many has to be hard
SMALL = 40  # columns: of problems up to that size the survivors of every screen are solved
SAMPLE = 0.01  # of larger ones: of that share
SHOWN = 20  # errors that are printed


# --- a problem and the truth about it -------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A problem, a grid, and the reference at each of its lambdas."""

    instance: Instance
    rng: Rng
    problem: Problem
    judge: Judge
    lams: Floats
    references: list[Reference]
    without: dict[tuple[int, bytes], Reference] = field(default_factory=dict)  # by lambda and kept

    @classmethod
    def of(cls, instance: Instance, seed: int) -> Case | None:
        """None where the library refuses the problem."""
        rng = np.random.default_rng([seed, zlib.crc32(instance.name.encode()), 1])
        X, y, options = instance.X, instance.y, instance.options
        try:
            problem = Problem.of(X, y, **options)
        except CollinearError:
            return None
        judge = Judge(X, y, **options)
        judge.adopt(problem.v)
        top = largest_level(problem)
        lams = _grid(rng, top if top > 0 else float(np.max(judge.norm, initial=1e-3)), len(y))
        path = _solved(X, y, lams, options)
        references = [
            judge.reference(lam, path.coefs[:, [k]].toarray().ravel(), path.intercepts[k])
            for k, lam in enumerate(lams)
        ]
        return cls(instance, rng, problem, judge, lams, references)

    @property
    def trivial(self) -> bool:
        """Whether 0 is all that is feasible in the dual, so that nothing can enter."""
        return not self.problem.s.any()

    @cached_property
    def known(self) -> list[int]:
        """The grid points whose reference is as good as it has to be."""
        return [k for k, each in enumerate(self.references) if each.relative_gap <= REFERENCE_GAP]

    @cached_property
    def active(self) -> list[Mask]:
        """At each lambda, what must not be discarded."""
        return [
            (self.problem.v == 0) | (each.w != 0) & self.judge.penalised & (each.level >= AT_LIMIT)
            for each in self.references
        ]

    @cached_property
    def bands(self) -> list[npt.NDArray[np.int64]]:
        return [np.digitize(each.level.astype(float), BANDS) for each in self.references]


class Found(NamedTuple):
    """What a rule has discarded at grid point k, and its bounds if there are any."""

    source: str
    rule: str
    k: int
    discarded: Mask
    bounds: Floats | None = None
    how: str = ""


def _grid(rng: Rng, top: float, n: int) -> Floats:
    """Lambdas from the largest down, in clusters with ratios from 0.9999 to 0.5."""
    end = rng.choice([0.2, 0.03, 0.03, 0.001 if n <= 100 else 0.1])
    starts = np.append(1.0, np.exp(rng.uniform(np.log(end), 0.0, 6)))
    steps = np.cumprod(np.column_stack([np.ones(7), rng.choice(RATIOS, (7, 3))]), axis=1)
    lams = np.unique(top * starts[:, None] * steps)[::-1]
    return lams[lams > 0.3 * end * top]


def _solved(X: Any, y: Floats, lams: Floats, options: dict[str, Any]) -> Any:
    """The path without screening, as well as float64 allows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return svm_path(X, y, lams=lams, tol=REFERENCE_GAP, screening="none", **options)


# --- where decisions come from --------------------------------------------------------------------


class Proved(NamedTuple):
    """Features that a path takes to satisfy their constraint, for all theta near tau p."""

    by: str
    k: int
    point: DualPoint
    tau: float
    near: float
    features: Mask


class Watched(Path):
    """A path that notes what it takes as proved."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.proved: list[Proved] = []
        self.discarded: list[Mask] = []

    def _settle(
        self, k: int, lam: float, point: DualPoint, vector: Floats, grows: bool
    ) -> Generator[Ask, Any, tuple[DualPoint, Ints, int]]:
        mask, tau = self._outside(), point.tau(lam)
        settling, answer = super()._settle(k, lam, point, vector, grows), None
        while True:
            try:
                ask = settling.send(answer)
            except StopIteration as end:
                found: tuple[DualPoint, Ints, int] = end.value
                break
            mask[ask.columns] = False
            answer = yield ask
        if self.ledger.left == 0:
            mask &= self._undecided(k)
            self.proved.append(Proved("settled by a bound", k, point, tau, tau * point.e_p, mask))
        return found

    def _step(self, k: int, lam: float, point: DualPoint, n_products: int, n_iter: int) -> Step:
        mask, tau = np.zeros(len(self.problem.v), dtype=bool), point.tau(lam)
        mask[self.ledger.discarded(k)] = True
        self.discarded.append(mask)
        others = self._undecided(k)
        self.proved.append(Proved("certified", k, point, tau, tau * point.off, others))
        return super()._step(k, lam, point, n_products, n_iter)

    def _outside(self) -> Mask:
        """The penalised features that are not in the working set."""
        mask = (self.problem.v > 0) & np.isfinite(self.problem.v)
        mask[self.working.columns] = False
        return mask

    def _undecided(self, k: int) -> Mask:
        """The penalised features that no discard takes care of, at least."""
        mask = (self.problem.v > 0) & np.isfinite(self.problem.v)
        if self.ledger.reach < len(self.lams):
            mask[self.ledger.discarded(k)] = False
        return mask


def watched_paths(case: Case) -> Iterator[Watched]:
    """A path by every rule, at some of the tolerances; sometimes stopped far from the optimum."""
    for rule in RULES:
        for tol in case.rng.choice(TOLERANCES, 3, replace=False):
            steps = int(case.rng.choice([10_000, 10_000, 3, 1]))
            path = Watched(case.problem, case.lams, Settings(float(tol), rule, max_iter=steps))
            drive(case.problem.source, [path.run()])
            yield path


def path_decisions(path: Watched) -> Iterator[Found]:
    tol, rule = path.settings.tol, path.settings.screening
    for k, mask in enumerate(path.discarded):
        yield Found(f"path {tol:.0e}", rule, k, mask)


def point_decisions(case: Case, paths: Sequence[Watched]) -> Iterator[Found]:
    """`screen`, `look_ahead` and screens of the survivors, from approximate solutions."""
    for _ in range(16):
        k0 = int(case.rng.integers(len(case.lams)))
        how, w = approximation(case, paths, k0)
        point = dual_point(case.problem, w)
        how = f"from {how} at grid point {k0}"
        for k in _targets(case, k0):
            yield from _screens(case, point, k0, k, how)
            yield from _dynamic(case, w, k, how)
        yield from _ahead(case, point, k0, how)


def approximation(case: Case, paths: Sequence[Watched], k: int) -> tuple[str, Floats]:
    """Coefficients near the optimum at grid point k, more or less."""
    rng, left_out = case.rng, np.isinf(case.problem.v)  # the judge may use unpenalised twins
    best = np.where(left_out, 0.0, case.references[k].w).astype(float)
    kind = rng.integers(8)
    if kind == 0:
        return "w = 0", np.zeros(len(best))
    if kind == 1:
        return "the reference", best
    if kind <= 3:
        path, w = paths[rng.integers(len(paths))], np.zeros(len(best))
        w[path.steps[k].support] = path.steps[k].coef
        return f"a path at tol {path.settings.tol:.0e}", w
    if kind == 4:
        start = best if rng.random() < 0.5 else np.zeros(len(best))
        return "coordinate descent", descended(case, k, start, int(rng.integers(1, 6)))
    noise = 10.0 ** rng.uniform(-12, 0)
    w = best * (1 + noise * rng.standard_normal(len(best)))
    if kind == 7:  # some that are not active, too
        some = case.judge.penalised & (rng.random(len(w)) < 5 / len(w))
        deviation = np.where(case.judge.gamma > 0, case.judge.gamma, 1).astype(float)
        w[some] += noise * np.max(np.abs(w * deviation)) / deviation[some]
    return f"a perturbation of {noise:.0e}", w


def descended(case: Case, k: int, w: Floats, epochs: int) -> Floats:
    """Coordinate descent at grid point k over the 40 features that are nearest to their limit."""
    judge, reference = case.judge, case.references[k]
    order = np.argsort(-reference.level)[:40]
    chosen = order[judge.penalised[order]]
    X = case.instance.X[:, chosen]
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    y, c = judge.y.astype(float), judge.c.astype(float)
    curvature, limit = c @ X**2, float(reference.lam) * judge.v[chosen].astype(float)
    w, b = w.copy(), 0.0
    u = X @ w[chosen]
    for _ in range(epochs):
        if judge.fit_intercept:
            b = case.problem.exact_intercept(u, b)
        for a in np.flatnonzero(curvature > 0):
            gradient = X[:, a] @ (c * y * np.maximum(0.0, 1.0 - y * (u + b)))
            target = w[chosen[a]] + gradient / curvature[a]
            fresh = np.sign(target) * max(abs(target) - limit[a] / curvature[a], 0.0)
            u += X[:, a] * (fresh - w[chosen[a]])
            w[chosen[a]] = fresh
    return w


def _targets(case: Case, k0: int) -> list[int]:
    """Grid points to screen for: the point's own, those after it, and any."""
    some = case.rng.integers(len(case.lams), size=2)
    wanted = {k0, k0 + 1, k0 + 2, k0 + 4, *some.tolist()}
    return sorted(wanted & set(case.known))


def _screens(case: Case, point: DualPoint, k0: int, k: int, how: str) -> Iterator[Found]:
    for rule in RULES:
        lam1 = float(case.lams[k0]) if rule == "paper" else None
        result = screening.apply_rule(point, float(case.lams[k]), rule, lam1=lam1)
        yield _found("screen", rule, k, result, how)


def _dynamic(case: Case, w: Floats, k: int, how: str) -> Iterator[Found]:
    """A second screen, by a point of the survivors alone: at the same lambda only."""
    problem, lam = case.problem, float(case.lams[k])
    kept = screening.apply_rule(dual_point(problem, w), lam, "safe").kept
    if len(kept) == 0:
        return
    fewer = np.zeros(len(w))
    fewer[kept] = descended(case, k, w, 2)[kept] if len(w) < 5000 else w[kept]
    point = dual_point(problem, fewer, columns=kept)
    sphere = screening.region_bounds(point, screening.sphere(point, lam))
    for rule, bounds in (("safe", screening.safe_bounds(point, lam)), ("gap", sphere)):
        mask = np.zeros(len(w), dtype=bool)
        mask[kept[bounds < problem.v[kept]]] = True
        yield Found("dynamic", rule, k, mask, None, how)


def _ahead(case: Case, point: DualPoint, k0: int, how: str) -> Iterator[Found]:
    last = screening.look_ahead(point, case.lams[k0:])
    for k in range(k0, len(case.lams)):
        yield Found("look-ahead", "safe", k, last >= k - k0, None, how)


def exact_decisions(case: Case, refused: Counter[str]) -> Iterator[Found]:
    """The paper's K, with theta1 of the reference and nothing added for its errors."""
    for k0 in case.known:
        reference = case.references[k0]
        lam1, theta1 = float(reference.lam), reference.theta.astype(float)
        if reference.primal == 0:
            continue
        try:
            point = screening.exact_point(case.problem, lam1, theta1)
        except ValueError:  # no feasible point was found beside some unpenalised columns
            refused["optima that are refused as theta1"] += 1
            continue
        for k in _targets(case, k0):
            lam = float(case.lams[k])
            result = screening.apply_rule(point, lam, "paper", lam1=lam1, exact=True)
            yield _found("exact", "paper", k, result, f"from grid point {k0}")._replace(bounds=None)


def public_decisions(case: Case, paths: Sequence[Watched]) -> Iterator[Found]:
    """`screen` itself, which builds everything anew."""
    k0 = int(case.rng.integers(len(case.lams)))
    how, w = approximation(case, paths, k0)
    for rule in RULES:
        k = int(case.rng.integers(len(case.lams)))
        lam1 = {"lam1": float(case.lams[k0])} if rule == "paper" else {}
        options = case.instance.options | {"rule": rule, "w": w} | lam1
        lam = float(case.lams[k])
        result = screening.screen(case.instance.X, case.instance.y, lam, **options)
        yield _found("screen()", rule, k, result, f"from {how} at grid point {k0}")


def _found(source: str, rule: str, k: int, result: screening.Screening, how: str) -> Found:
    mask = np.ones(len(result.bounds), dtype=bool)
    mask[result.kept] = False
    return Found(source, rule, k, mask, result.bounds, how)


# --- the audit ------------------------------------------------------------------------------------


@dataclass
class Audit:
    """Checks what is found, and counts."""

    seed: int = 0
    # by source and rule: screens, decisions by band, wrong
    counts: dict[tuple[str, str], npt.NDArray[np.int64]] = field(
        default_factory=lambda: defaultdict(lambda: np.zeros(len(BANDS) + 3, dtype=np.int64))
    )
    checked: Counter[str] = field(default_factory=Counter)  # by what else is claimed
    false: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    nearest: float = 0.0  # the largest |f_j'(y theta)| / v_j that was discarded
    lambdas: int = 0
    left_out: int = 0
    problems: int = 0
    trivial: int = 0
    refused: int = 0
    kinds: Counter[str] = field(default_factory=Counter)  # problems by storage and options
    unread: Counter[str] = field(default_factory=Counter)  # data sets, by what package is missing

    @property
    def decisions(self) -> int:
        return int(sum(row[1:-1].sum() for row in self.counts.values()))

    @property
    def hard(self) -> int:
        return int(sum(row[2:-1].sum() for row in self.counts.values()))

    @property
    def wrong(self) -> int:
        return int(sum(row[-1] for row in self.counts.values()))

    @property
    def clean(self) -> bool:
        return self.wrong == 0 and sum(self.false.values()) == 0

    def examine(self, instance: Instance) -> None:
        """Everything that is said about one problem."""
        case = Case.of(instance, self.seed)
        if case is None:
            self.refused += 1
            return
        self.problems += 1
        self.trivial += case.trivial
        self.kinds.update(instance.kinds)
        self.lambdas += len(case.lams)
        self.left_out += len(case.lams) - len(case.known)
        paths = list(watched_paths(case))
        for path in paths:
            self.check_proved(case, path)
            self.check_gaps(case, path)
            self.check_certificates(case, path)
        found = itertools.chain(*map(path_decisions, paths), public_decisions(case, paths))
        if not case.trivial:
            points, exact = point_decisions(case, paths), exact_decisions(case, self.checked)
            found = itertools.chain(found, points, exact)
        known = set(case.known)
        for each in found:
            if each.k in known:
                self.check(case, each)

    def check(self, case: Case, found: Found) -> None:
        """Count the decisions, look for the active among them, sometimes solve without them."""
        k, mask = found.k, found.discarded & (case.judge.penalised | (case.problem.v == 0))
        row = self.counts[found.source, found.rule]
        row[0] += 1
        row[1:-1] += np.bincount(case.bands[k][mask], minlength=len(BANDS) + 1)
        reference = case.references[k]
        self.nearest = max(self.nearest, float(np.max(reference.level[mask], initial=0.0)))
        wrong = np.flatnonzero(mask & case.active[k])
        row[-1] += len(wrong)
        for j in wrong:
            bound = "" if found.bounds is None else f", bound {found.bounds[j]:.9g}"
            words = f"feature {j} is active: w = {float(reference.w[j]):.3g}{bound}"
            self._report(case, found, words)
        if found.bounds is not None:
            self.check_bounds(case, found, found.bounds)
        if len(mask) <= SMALL or case.rng.random() < SAMPLE:
            self.check_survivors(case, found)

    def check_bounds(self, case: Case, found: Found, bounds: Floats) -> None:
        """No bound is below what the dual optimum is known to have."""
        reference, judge = case.references[found.k], case.judge
        slack = reference.radius * judge.in_factors(judge.gamma)
        slack += judge.rounding(np.linalg.norm(reference.theta / np.sqrt(_positive(judge.c))))
        low = judge.penalised & ~(bounds >= reference.level - slack)
        self._claim("bounds of the rules", int(judge.penalised.sum()), int(low.sum()))
        for j in np.flatnonzero(low)[:3]:
            words = f"bound {bounds[j]:.17g} of feature {j}, which has"
            self._report(case, found, f"{words} {reference.level[j]:.17g} -+ {slack[j]:.0e}")

    def check_survivors(self, case: Case, found: Found) -> None:
        """Without the discarded columns the optimum is the same."""
        kept = np.flatnonzero(~found.discarded)
        key = (found.k, kept.tobytes())
        if key not in case.without:
            case.without[key] = survivors(case, found.k, kept)
        fewer, reference = case.without[key], case.references[found.k]
        if fewer.relative_gap > REFERENCE_GAP:
            self.checked["survivors not solved to 1e-12"] += 1
            return
        worse = float(fewer.primal - reference.primal)
        wrong = worse > fewer.gap + reference.gap
        self._claim("screens whose survivors were solved", 1, int(wrong))
        if wrong:
            self.counts[found.source, found.rule][-1] += 1
            words = f"the survivors end {worse / float(reference.primal):.1e} P above the reference"
            self._report(case, found, words)

    def check_proved(self, case: Case, path: Watched) -> None:
        """What a path has proved of its dual points is so, by full products; and of its slacks."""
        judge = case.judge
        for by, k, point, tau, near, mask in path.proved:
            level = judge.in_factors(np.abs(judge.correlations(tau * point.p.astype(LONG))))
            if not len(case.problem.free):  # then gamma is the distance to the span
                level += near * judge.in_factors(judge.gamma)
            slack = judge.rounding(tau * np.linalg.norm(point.p)) + EPS
            high = mask & ~(level <= 1.0 + slack)
            self._claim(f"features {by}", int(mask.sum()), int(high.sum()))
            w = np.zeros(len(case.problem.v))
            w[point.w.support] = point.w.coef
            off = np.sqrt(judge.c) * (point.xi - judge.slacks(w, point.b))
            error = float(np.linalg.norm(off))
            self._claim("slacks of a path", 1, int(not error <= point.e_xi))
            found = Found(f"path {path.settings.tol:.0e}", path.settings.screening, k, mask)
            for j in np.flatnonzero(high)[:3]:
                self._report(case, found, f"feature {j} was {by}, and has 1 + {level[j] - 1:.1e}")
            if not error <= point.e_xi:
                words = f"the slacks are off by {error:.1e}, not by {point.e_xi:.1e} at most"
                self._report(case, found, words)

    def check_gaps(self, case: Case, path: Watched) -> None:
        """No model of a path is farther from the optimum than its gap says."""
        for k in case.known:
            step, reference = path.steps[k], case.references[k]
            w = np.zeros(len(case.problem.v))
            w[step.support] = step.coef
            above = float(case.judge.primal(step.lam, w, step.intercept) - reference.primal)
            self._claim("gaps of the models", 1, int(not above <= step.certificate.gap))
            if not above <= step.certificate.gap:
                found = Found(f"path {path.settings.tol:.0e}", path.settings.screening, k, w != 0)
                words = f"P is {above:.3e} above the optimum, the gap {step.certificate.gap:.3e}"
                self._report(case, found, words)

    def check_certificates(self, case: Case, path: Watched) -> None:
        """Nor are coefficients that were changed, by what `duality_gap` says of them."""
        k = int(case.rng.choice(case.known)) if case.known else -1
        if k < 0 or not case.instance.X.shape[1]:
            return
        how, w = approximation(case, [path], k)
        b = path.steps[k].intercept
        X, y, lam = case.instance.X, case.instance.y, float(case.lams[k])
        certificate = duality_gap(X, y, lam, w, b, **case.instance.options)
        above = float(case.judge.primal(lam, w, b) - case.references[k].primal)
        self._claim("gaps of other coefficients", 1, int(not above <= certificate.gap))
        if not above <= certificate.gap:
            found = Found("duality_gap", "", k, w != 0, None, f"from {how}")
            words = f"P is {above:.3e} above the optimum, the gap {certificate.gap:.3e}"
            self._report(case, found, words)

    def _claim(self, what: str, count: int, false: int) -> None:
        self.checked[what] += count
        self.false[what] += false

    def _report(self, case: Case, found: Found, words: str) -> None:
        where = f"grid point {found.k}, lambda {case.lams[found.k]:.17g}"
        self.errors.append(
            f"--seed {self.seed} --only {case.instance}\n    {found.source}, rule {found.rule}, "
            f"{where} {found.how}: {words}"
        )

    def table(self) -> str:
        head = ["screens", "decisions", *(f">={band}" for band in BANDS), "wrong"]
        lines = [f"{'source':12} {'rule':6}" + "".join(f"{title:>15}" for title in head)]
        total = np.zeros(len(head), dtype=np.int64)
        for (source, rule), row in sorted(self.counts.items()):
            numbers = np.concatenate([row[:1], np.cumsum(row[-2:0:-1])[::-1], row[-1:]])
            lines.append(f"{source:12} {rule:6}" + "".join(f"{number:15,}" for number in numbers))
            total += numbers
        lines.append(f"{'all':12} {'':6}" + "".join(f"{number:15,}" for number in total))
        lines.append("")
        lines += [
            f"{self.checked[key]:13,} {key}, {self.false[key]:,} false" for key in self.checked
        ]
        lines.append(
            f"{self.problems:13,} problems, {self.trivial} of them with nothing to enter; "
            f"{self.refused} more refused for collinear columns without a penalty"
        )
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common())
        lines.append(f"{'':13} of which are: {kinds}")
        lines.append(
            f"{self.lambdas:13,} lambdas, {self.left_out:,} left out: no reference to 1e-12"
        )
        lines += [
            f"{count:13,} times a data set was left out for want of {package}"
            for package, count in self.unread.items()
        ]
        return "\n".join(lines)


def survivors(case: Case, k: int, kept: npt.NDArray[np.int64]) -> Reference:
    """The optimum at grid point k with the columns that were kept."""
    X, y, lam = case.instance.X[:, kept], case.instance.y, float(case.lams[k])
    v = case.instance.options["penalty_factor"]
    options = case.instance.options | {"penalty_factor": None if v is None else v[kept]}
    path, judge = _solved(X, y, np.array([lam]), options), Judge(X, y, **options)
    judge.adopt(case.problem.v[kept])
    return judge.reference(lam, path.coefs[:, [0]].toarray().ravel(), path.intercepts[0])


def _positive(c: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.where(c > 0, c, 1)


def run(
    audit: Audit, names: Iterator[str], decisions: int, minutes: float, verbose: bool = False
) -> bool:
    """Examine problems until there are enough decisions; whether that was reached in time."""
    start, first_round = time.perf_counter(), set(audit_problems.names(0))
    for name in names:
        first_round.discard(name)
        before = time.perf_counter()
        try:
            instance = audit_problems.make(name, audit.seed)
        except ModuleNotFoundError as error:
            audit.unread[str(error.name)] += 1
            continue
        audit.examine(instance)
        now = time.perf_counter()
        if verbose:
            print(f"{now - start:7.1f} s {now - before:6.1f} s {audit.decisions:13,}  {instance}")
            sys.stdout.flush()
        enough = audit.decisions >= decisions and audit.hard >= decisions // HARD_SHARE
        if enough and not first_round:
            return True
        if now - start > 60 * minutes:
            return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="Look for a wrong decision of the rules.")
    parser.add_argument("--decisions", type=int, default=20_000_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--minutes", type=float, default=30.0, metavar="M")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these problems, and no other")
    parser.add_argument("--verbose", action="store_true", help="print every problem with its time")
    asked = parser.parse_args()
    start, audit = time.perf_counter(), Audit(asked.seed)
    rounds = itertools.chain.from_iterable(map(audit_problems.names, itertools.count()))
    names = iter(asked.only) if asked.only else rounds
    reached = run(audit, names, asked.decisions, asked.minutes, asked.verbose)
    print(audit.table())
    for error in audit.errors[:SHOWN]:
        print(f"WRONG {error}")
    print(
        f"{audit.decisions:,} decisions, {audit.hard:,} of them hard (>= {BANDS[0]}; the nearest "
        f"1 - {1 - audit.nearest:.0e}), {audit.wrong:,} wrong; {sum(audit.false.values()):,} other "
        f"claims false; {time.perf_counter() - start:.0f} s"
    )
    if not reached:
        print(f"Stopped after {asked.minutes:g} minutes, before there were enough.")
    return 0 if reached and audit.clean else 1


if __name__ == "__main__":
    sys.exit(main())
