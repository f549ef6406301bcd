"""The certified path: a generator that asks for columns, and what it finds.

For each lambda of the grid, the largest first:

    solve on the working set  ->  settle every other feature  ->  the working set grows, or certify

A feature is settled by the cheapest proof there is: a bound from its last product (`_core.Ledger`),
a discard by the rule, or its product. The gap is that of a dual point for which every feature is
settled, so it holds for the whole problem, whatever the solver did.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from . import _core, inputs
from .certify import DualPoint, settled_point
from .columns import ColumnSource, Floats, Ints, Matrix
from .driver import Ask, Correlate, Run, Take, drive
from .problem import Problem, entry_levels, norm, slack_error
from .result import Step, SVMPath
from .screening import Region, dome, paper, sphere
from .solve import WorkingSet

Rule = Literal["safe", "gap", "paper", "none"]
_SLACK = 0.01  # of tol: how far a constraint outside the working set may be violated
_SHIFTED = 4.0  # rounding of the working set's products and slacks, in units of the source's
_AT_ONCE = 100  # columns that may join the working set together, or as many as are active
_KKT = 1e-10  # to which the conditions shall hold on the working set


class ConvergenceWarning(UserWarning):
    """A lambda was left with a gap above the tolerance; `SVMPath.status` says which."""


class Settings(NamedTuple):
    tol: float = 1e-6
    screening: Rule = "safe"
    max_active: int | None = None
    max_iter: int = 10_000


@dataclass
class Path:
    """One path over the columns of a problem; `steps` grows as it runs."""

    problem: Problem
    lams: Floats
    settings: Settings
    read_before: int = 0  # entries of the source
    steps: list[Step] = field(default_factory=list)
    ended: str = "interrupted"

    def __post_init__(self) -> None:
        problem, stats = self.problem, self.problem.stats
        self.working = WorkingSet(problem)
        self.penalised = np.flatnonzero((problem.v > 0) & np.isfinite(problem.v))
        self.ledger = _core.Ledger(
            problem.m,
            stats.gamma,
            stats.norm1,
            stats.norm2,
            problem.v,
            problem.s,
            e_m=problem.error * norm(problem.e),
            e_gamma=problem.error,
        )
        start = self.ledger.add_vector(problem.s, problem.error * norm(problem.s))
        self.ledger.record(self.penalised, problem.m[self.penalised], start)

    def run(self) -> Run:
        """Solve at one lambda after the other."""
        for k, lam in enumerate(self.lams):
            start = time.perf_counter()
            step = yield from self._solve_at(k, float(lam))
            self.steps.append(step._replace(seconds=time.perf_counter() - start))
            most = self.settings.max_active
            if most is not None and len(step.support) >= most:
                self.ended = "max_active"
                return
        self.ended = "finished"

    def _solve_at(self, k: int, lam: float) -> Generator[Ask, Any, Step]:
        """Solve on the working set and let it grow until every other feature is settled."""
        steps = 0
        while True:
            steps += self.working.solve(lam, _KKT, self.settings.max_iter - steps).steps
            point, vector = self._point()
            left, n_bounds, n_discards = self._pending(k, lam, point)
            zeta = np.empty(0)
            if len(left):
                zeta = self.problem.centred((yield Correlate(vector, left)), vector, left)
                number = self.ledger.add_vector(point.p, self.problem.error * point.beta_norm)
                self.ledger.record(left, zeta, number)
            violating = self._violating(lam, point, left, zeta)
            point = self._joined(point, left, zeta)
            if n_discards == 0:  # feasible for every feature, so that the point serves elsewhere
                self._look_ahead(k, lam, point, left, zeta)
            if len(violating) == 0 or steps >= self.settings.max_iter:
                break
            self.ledger.forget(violating)
            self.working.add((yield Take(violating)), violating)
        return self._step(lam, point, n_bounds, n_discards, steps)

    def _point(self) -> tuple[DualPoint, Floats]:
        """The dual point of the working set's solution, and the vector for further products."""
        problem, columns = self.problem, self.working.columns
        coef, b = self.working.coefficients()
        w = np.zeros(len(problem.v))
        w[columns] = coef
        xi = self.working.slacks()
        vector = problem.product_vector(problem.e * problem.y * xi)
        zeta = problem.centred(self.working.products(vector), vector, columns)
        e_xi = _SHIFTED * slack_error(problem, w, b)
        return settled_point(problem, w, b, xi, e_xi, zeta, columns, _SHIFTED), vector

    def _pending(self, k: int, lam: float, point: DualPoint) -> tuple[Ints, int, int]:
        """The features without a proof at grid point k, and how many have which."""
        if self.settings.screening == "none":
            return np.setdiff1d(self.penalised, self.working.columns), 0, 0
        tau = point.tau(lam)
        return self.ledger.pending(k, point.p, tau, tau * point.e_p)

    def _violating(self, lam: float, point: DualPoint, columns: Ints, zeta: Floats) -> Ints:
        """The columns that violate their constraint, in order; of very many only the worst.

        Errors of the products play no part: in the working set a column would have them as well.
        """
        level = np.abs(zeta) / (lam * self.problem.v[columns])
        wrong = np.flatnonzero(~(level <= 1.0 + _SLACK * self.settings.tol))
        most = max(_AT_ONCE, int(np.count_nonzero(point.w)))
        if len(wrong) > most:
            wrong = np.sort(wrong[np.argpartition(-level[wrong], most)[:most]])
        return columns[wrong]

    def _joined(self, point: DualPoint, columns: Ints, zeta: Floats) -> DualPoint:
        """The point with the products of further columns; its scale fits these as well."""
        scale, _ = _core.feasible_scale(
            self.problem.features(zeta, columns),
            self.problem.v[columns],
            e_zeta=self.problem.error * point.beta_norm,
            e_gamma=self.problem.error,
            off=point.off,
        )
        return replace(point, scale=min(point.scale, scale))

    def _look_ahead(
        self, k: int, lam: float, point: DualPoint, columns: Ints, zeta: Floats
    ) -> None:
        """Discard what the rule can of the columns with a new product, at lam and further on."""
        first, regions = self._regions(k, lam, point)
        if len(columns) == 0 or len(regions) == 0:
            return
        last = np.empty(len(columns), dtype=np.int64)
        features, v = self.problem.features(zeta, columns), self.problem.v[columns]
        _core.last_discard(np.array(regions, dtype=np.float64), features, None, v, last)
        good = last >= 0
        self.ledger.discard(columns[good], first + last[good])

    def _regions(self, k: int, lam: float, point: DualPoint) -> tuple[int, list[Region]]:
        """The regions of the rule, and the grid point of the first; the point is fixed for all."""
        tau, ahead = point.tau(lam), self.lams[k:].tolist()
        if self.settings.screening == "safe":
            return k, [dome(point, x, tau) for x in ahead]
        if self.settings.screening == "gap":
            return k, [sphere(point, x, tau) for x in ahead]
        if self.settings.screening == "paper":  # inflated for one lambda: not linear in 1/lam
            gap = point.certificate(lam).gap
            return k + 1, [paper(point, x, lam, gap) for x in ahead[1:2]]
        return k, []

    def _passes(self) -> float:
        source = self.problem.source
        return (source.entries_read - self.read_before) / max(source.entries(), 1)

    def _step(
        self, lam: float, point: DualPoint, n_bounds: int, n_discards: int, steps: int
    ) -> Step:
        certificate = replace(
            point.certificate(lam),
            n_products=len(self.problem.v) - n_bounds - n_discards,
            n_bounds=n_bounds,
            n_discards=n_discards,
        )
        converged = certificate.relative_gap <= self.settings.tol
        support = np.flatnonzero(point.w)
        return Step(
            lam,
            support,
            point.w[support],
            point.b,
            certificate,
            steps,
            self._passes(),
            0.0,
            "converged" if converged else "max_iter",
        )


def svm_path(
    X: Matrix,
    y: npt.ArrayLike,
    *,
    lams: int | npt.ArrayLike = 100,
    eps: float = 1e-2,
    tol: float = 1e-6,
    fit_intercept: bool = True,
    sample_weight: npt.ArrayLike | None = None,
    penalty_factor: inputs.PenaltyFactor = None,
    standardize: bool = False,
    screening: Rule = "safe",
    max_active: int | None = None,
    max_iter: int = 10_000,
    progress: Callable[[int, int], None] | None = None,
) -> SVMPath:
    """Solve along a grid of lambda, with a certificate for every model.

    Parameters
    ----------
    X : array, sparse matrix, data frame or ColumnSource; rows are samples
    y : one label per row, of two classes
    lams : a number of grid points, geometric from lambda_max to eps lambda_max; or the values,
        which are taken in decreasing order
    eps : the end of the grid, in units of lambda_max
    tol : a model is done when its gap is at most tol P
    fit_intercept, sample_weight, penalty_factor, standardize : as in `lambda_max`
    screening : which rule discards features ahead: "safe" (the dome), "gap" (the sphere), "paper"
        (the paper's K, inflated by the gap); "none" computes every product at every lambda
    max_active : stop after the first model with as many features
    max_iter : Newton steps for each lambda
    progress : called with the number of lambdas that are done, and of all

    Returns
    -------
    SVMPath
        Interrupted (Ctrl-C), the path so far, with `ended` = "interrupted".

    Warns
    -----
    ConvergenceWarning
        If a gap is above the tolerance.
    """
    if screening not in get_args(Rule):
        raise ValueError(
            f"screening must be one of {', '.join(get_args(Rule))}, but it is {screening!r}."
        )
    tol = inputs.positive_lam(tol, "tol")
    before = X.entries_read if isinstance(X, ColumnSource) else 0
    problem = Problem.of(
        X,
        y,
        sample_weight=sample_weight,
        penalty_factor=penalty_factor,
        fit_intercept=fit_intercept,
        standardize=standardize,
    )
    grid = _grid(problem, lams, eps)
    path = Path(problem, grid, Settings(tol, screening, max_active, int(max_iter)), before)
    if len(grid) == 0:
        path.ended = "trivial"
        return SVMPath.of(problem, path.steps, path.ended)

    def report() -> None:
        if progress is not None:
            progress(len(path.steps), len(grid))

    try:
        drive(problem.source, [path.run()], report)
    except KeyboardInterrupt:
        path.ended = "interrupted"
    _warn_of_gaps(path)
    return SVMPath.of(problem, path.steps, path.ended)


def _grid(problem: Problem, lams: int | npt.ArrayLike, eps: float) -> Floats:
    """The lambdas, decreasing; none where nothing can enter at any of them."""
    if np.ndim(lams) > 0:
        values = sorted({inputs.positive_lam(lam, "lams") for lam in np.asarray(lams)})
        return np.array(values[::-1])
    count = inputs.number(lams, "lams")
    if count != int(count) or count < 1:
        raise ValueError(f"lams must be a number of grid points or the values, not {lams!r}.")
    eps = inputs.positive_lam(eps, "eps")
    if eps >= 1:
        raise ValueError(f"eps must be below 1, but it is {eps!r}.")
    top = float(np.max(entry_levels(problem)[0], initial=0.0))
    return np.geomspace(top, eps * top, int(count)) if top > 0 else np.empty(0)


def _warn_of_gaps(path: Path) -> None:
    wide = [step for step in path.steps if step.status != "converged"]
    if wide:
        worst = max(wide, key=lambda step: step.certificate.relative_gap)
        warnings.warn(
            f"{len(wide)} of {len(path.steps)} models have a gap above tol = {path.settings.tol:g}"
            f" (the widest: {worst.certificate.relative_gap:.1e} at lambda {worst.lam:g}). Raise "
            "max_iter or tol; SVMPath.gaps has the gap of every model.",
            ConvergenceWarning,
            stacklevel=3,
        )
