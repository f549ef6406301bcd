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

    def zeta(self) -> Floats:
        """g_j'beta of `columns` for the slacks `solve` ended with, without unpenalised columns.

        What `problem.centred` makes of f_j'vector, vector = c y xi, but without a further look at
        the columns. Every sum is in lanes and chunks as the kernels have it, over a column less its
        mean where that is dense: 4 times the error of a product of the source at most.
        """
        found = np.empty(self._ones + len(self.columns))
        self._face.zeta(found)
        zeta = found[self._ones :]
        if self._ones:
            zeta -= (self.problem.stats.mean[self.columns] - self._shifts) * found[0]
        return np.where(self.problem.stats.gamma[self.columns] == 0, 0.0, zeta)

    def bytes(self) -> int:
        """What the columns, their Gram matrix and its factor take."""
        return self._face.bytes()

    def products(self, vector: Floats) -> Floats:
        """f_j'vector for `columns`; 4 times the error of a product of the source at most."""
        found = np.empty(self._ones + len(self.columns))
        self._face.products(vector, found)
        return found[self._ones :] + self._shifts * float(vector.sum())
