"""The certified path: a generator that asks for columns.

For each lambda of the grid, the largest first:

    solve on the working set  ->  settle every other feature  ->  the working set grows, or certify

A feature is settled by the cheapest proof there is: a bound from its last product, a discard by the
rule (both kept by `_core.Ledger`), or a new product. The gap is that of a dual point for which
every feature is settled, so it holds for the whole problem, whatever the solver did.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from . import _core
from .certify import DualPoint, settled_point
from .columns import Floats, Ints
from .driver import Ask, Correlate, Run, Take
from .problem import Problem, Sparse, slack_error
from .result import Step
from .screening import domes, paper, sphere
from .solve import WorkingSet

Rule = Literal["safe", "gap", "paper", "none"]
_SLACK = 0.01  # of tol: how far a constraint outside the working set may be violated
_SHIFTED = 4.0  # rounding of the working set's products and slacks, in units of the source's
_AT_ONCE = 20  # columns that may join the working set together, or as many as are active
_SEARCHED = 5  # times as many are looked at first
_KKT = 1e-10  # to which the conditions shall hold on the working set
_AHEAD = 32  # grid points for which a rule discards in advance
_VECTORS = 16  # that products were made with, at most, for bounds


class Settings(NamedTuple):
    tol: float = 1e-6
    screening: Rule = "safe"
    max_active: int | None = None
    max_iter: int = 10_000


def ledger_of(problem: Problem, *, most_vectors: int, by_bounds: bool) -> _core.Ledger:
    """The ledger of a problem's features, of which no more is known than their products with s."""
    stats = problem.stats
    return _core.Ledger(
        problem.m,
        stats.gamma,
        stats.norm1,
        stats.norm2,
        problem.factors,
        problem.s,
        e_s=problem.error * problem.e_norm,
        error=problem.error,
        most_vectors=most_vectors,
        by_bounds=by_bounds,
    )


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
        n, m = self.problem.source.shape
        self.entries = max(self.problem.source.entries(), 1)
        self.working = WorkingSet(self.problem)
        self.ledger = ledger_of(
            self.problem,
            most_vectors=min(_VECTORS, 2 + (2**20 + 2 * m) // (8 * n)),
            by_bounds=self.settings.screening != "none",
        )

    def run(self) -> Run:
        """Solve at one lambda after the other."""
        if len(self.lams) == 0:
            self.ended = "trivial"
            return
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
            grows = steps < self.settings.max_iter
            point, violating, n_products = yield from self._settle(k, lam, point, vector, grows)
            if len(violating) == 0:
                break
            del point, vector  # they are of the size of X's rows
            self.ledger.forget(violating)
            self.working.add((yield Take(violating)), violating)
        step = self._step(k, lam, point, n_products, steps)
        self._look_ahead(k, k + 1, lam, point)
        self.ledger.accept(point.tau(lam))
        return step

    def _point(self) -> tuple[DualPoint, Floats]:
        """The dual point of the working set's solution, and the vector for further products."""
        problem, columns = self.problem, self.working.columns
        coef, b = self.working.coefficients()
        active = np.flatnonzero(coef)
        active = active[np.argsort(columns[active])]
        w = Sparse(columns[active], coef[active])
        xi = self.working.slacks()
        beta = problem.weighed(problem.y * xi)
        vector = problem.product_vector(beta)
        if len(problem.free):
            zeta = problem.centred(self.working.products(vector), vector, columns)
        else:
            zeta = self.working.zeta()
        e_xi = _SHIFTED * slack_error(problem, w, b)
        return settled_point(problem, w, b, xi, beta, e_xi, zeta, columns, _SHIFTED), vector

    def _settle(
        self, k: int, lam: float, point: DualPoint, vector: Floats, grows: bool
    ) -> Generator[Ask, Any, tuple[DualPoint, Ints, int]]:
        """Prove every feature outside the working set, the likeliest to violate it first.

        Returns the point, feasible for what was looked at; the first violations found, if the
        working set `grows`; and the number of products.
        """
        problem, tau = self.problem, point.tau(lam)
        e_zeta = problem.error * point.beta_norm
        self.ledger.consider(k, point.p, tau, tau * point.e_p, e_zeta)
        most, n_products = _SEARCHED * max(_AT_ONCE, len(point.w.support)), 0
        again = self.settings.screening != "none"
        while self.ledger.left:
            columns = self.ledger.next(most)
            products = yield Correlate(vector, columns, again)
            zeta = problem.centred(products, vector, columns)
            self.ledger.record(zeta)
            n_products += len(columns)
            violating = self._violating(lam, point, columns, zeta)
            point = point.joined(columns, zeta)
            if grows and len(violating):
                if not self.ledger.left:
                    self._look_ahead(k, k, lam, point)
                return point, violating, n_products
            most = max(most, min(8 * most, len(self.ledger) // 16))
        return point, np.empty(0, dtype=np.int64), n_products

    def _violating(self, lam: float, point: DualPoint, columns: Ints, zeta: Floats) -> Ints:
        """The columns that violate their constraint, in order; of very many only the worst.

        Errors of the products play no part: in the working set a column would have them as well.
        """
        level = np.abs(zeta) / (lam * self.problem.v[columns])
        wrong = np.flatnonzero(~(level <= 1.0 + _SLACK * self.settings.tol))
        most = max(_AT_ONCE, len(point.w.support))
        if len(wrong) > most:
            wrong = np.sort(wrong[np.argpartition(-level[wrong], most)[:most]])
        return columns[wrong]

    def _look_ahead(self, k: int, first: int, lam: float, point: DualPoint) -> None:
        """Discard what the rule can, from grid point `first` on, by a point settled at k."""
        last = min(self.ledger.reach, first + _AHEAD - 1, len(self.lams) - 1)
        tau, ahead = point.tau(lam), self.lams[first : last + 1]
        if len(ahead) == 0 or self.settings.screening == "none":
            return
        if self.settings.screening == "safe":
            regions = domes(point, ahead, tau)
        elif self.settings.screening == "gap":
            regions = np.array([sphere(point, float(x), tau) for x in ahead])
        else:  # inflated for one lambda: not linear in 1/lam
            regions = np.array([paper(point, float(ahead[0]), lam, point.certificate(lam).gap)])
        self.ledger.look_ahead(first, regions)

    def _step(self, k: int, lam: float, point: DualPoint, n_products: int, n_iter: int) -> Step:
        """What is found at one lambda, when every feature is settled."""
        n_discards = self.ledger.count_discarded(k)
        n_bounds = len(self.ledger) - n_discards - n_products
        certificate = replace(
            point.certificate(lam),
            n_products=len(self.problem.v) - n_bounds - n_discards,
            n_bounds=n_bounds,
            n_discards=n_discards,
        )
        status = "max_iter" if n_iter >= self.settings.max_iter else "rounding"
        if certificate.relative_gap <= self.settings.tol:
            status = "converged"
        passes = (self.problem.source.entries_read - self.read_before) / self.entries
        return Step(lam, *point.w, point.b, certificate, n_iter, passes, 0.0, status)
