"""The solver: the problem on the columns taken so far, solved exactly along the path."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import _core
from .columns import DenseColumns, Floats, Ints
from .driver import Piece
from .problem import Problem


class Outcome(NamedTuple):
    """Newton steps taken, and whether the optimality conditions hold on the working set."""

    steps: int
    converged: bool


class WorkingSet:
    """The columns that may be active, and the solution on them.

    `_core.Face` does the work; it sees columns less their mean where that is dense anyway, the
    intercept as a column of ones, and unpenalised columns as columns of factor 0.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.columns = np.empty(0, dtype=np.int64)
        self._shifts = np.empty(0)
        self._ones = int(problem.fit_intercept)
        self._face = _core.Face(problem.y, problem.c)
        if problem.fit_intercept:
            self._face.add_ones()
        if len(problem.free):
            block = DenseColumns(problem.Z)
            self.add([Piece(block, np.arange(len(problem.free)))], problem.free)

    def add(self, pieces: list[Piece], columns: Ints) -> None:
        """Append columns, given by their pieces in that order."""
        shifts = np.zeros(len(columns))
        first = 0
        for piece in pieces:
            last = first + len(piece.positions)
            if self.problem.fit_intercept and piece.block.dense:
                shifts[first:last] = self.problem.stats.mean[columns[first:last]]
            self._face.add(
                piece.block._core,
                piece.positions,
                shifts[first:last],
                self.problem.v[columns[first:last]],
            )
            first = last
        self.columns = np.concatenate([self.columns, columns])
        self._shifts = np.concatenate([self._shifts, shifts])

    def solve(self, lam: float, tol: float, max_steps: int) -> Outcome:
        """Minimise over the working set, until the conditions hold to `tol` lam v_j."""
        return Outcome(*self._face.solve(lam, tol, max_steps))

    def coefficients(self) -> tuple[Floats, float]:
        """The coefficients of `columns`, and the intercept in the units of X."""
        found = np.empty(self._ones + len(self.columns))
        self._face.coefficients(found)
        w = found[self._ones :]
        b = float(found[0]) - float(w @ self._shifts) if self._ones else 0.0
        return w, b

    def slacks(self) -> Floats:
        """The slacks; 4 times `slack_error` bounds their rounding (columns less means)."""
        xi = np.empty(len(self.problem.y))
        self._face.slacks(xi)
        return xi

    def products(self, vector: Floats) -> Floats:
        """f_j'vector for `columns`; 4 times the error of a product of the source at most."""
        found = np.empty(self._ones + len(self.columns))
        self._face.products(vector, found)
        return found[self._ones :] + self._shifts * float(vector.sum())
