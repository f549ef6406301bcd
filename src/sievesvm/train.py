"""`svm_path` and `svm_paths`: from a matrix and labels to certified models along a grid."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from . import inputs
from .columns import ColumnSource, Floats, Matrix, log
from .driver import drive
from .path import Path, Rule, Settings
from .problem import Problem, Setup, largest_level
from .result import SVMPath

Progress = Callable[[int, int], None]


class ConvergenceWarning(UserWarning):
    """A lambda was left with a gap above the tolerance; `SVMPath.status` says which."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One path to be trained: the arguments of `svm_path`, X apart."""

    y: npt.ArrayLike
    lams: int | npt.ArrayLike = 100
    eps: float = 1e-2
    tol: float = 1e-6
    fit_intercept: bool = True
    sample_weight: npt.ArrayLike | None = None
    penalty_factor: inputs.PenaltyFactor = None
    standardize: bool = False
    screening: Rule = "safe"
    max_active: int | None = None
    max_iter: int = 10_000

    @property
    def setup(self) -> Setup:
        return Setup(
            self.y, self.sample_weight, self.penalty_factor, self.fit_intercept, self.standardize
        )

    @property
    def settings(self) -> Settings:
        if self.screening not in get_args(Rule):
            raise ValueError(
                f"screening must be one of {', '.join(get_args(Rule))}, but it is "
                f"{self.screening!r}."
            )
        tol = inputs.positive_lam(self.tol, "tol")
        return Settings(tol, self.screening, self.max_active, int(self.max_iter))


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
    progress: Progress | None = None,
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
    task = Task(
        y=y,
        lams=lams,
        eps=eps,
        tol=tol,
        fit_intercept=fit_intercept,
        sample_weight=sample_weight,
        penalty_factor=penalty_factor,
        standardize=standardize,
        screening=screening,
        max_active=max_active,
        max_iter=max_iter,
    )
    return _train(X, [task], progress)[0]


def svm_paths(
    X: Matrix, tasks: Sequence[Mapping[str, Any]], *, progress: Progress | None = None
) -> list[SVMPath]:
    """Several paths over the same X in one run, which read it together.

    Each is what `svm_path` gives by itself, bit for bit. Folds of a cross-validation are weights
    of 0 and 1, classes are different y: X is never cut.

    Parameters
    ----------
    X : as in `svm_path`
    tasks : for each path the arguments of `svm_path` by name, y among them
    progress : called with the number of lambdas that are done, and of all

    Returns
    -------
    list of SVMPath
        In the order of the tasks. `passes` counts what was read for all of them until then.
    """
    known = [field.name for field in fields(Task)]
    for number, task in enumerate(tasks):
        for name in task:
            if name not in known:
                raise ValueError(f"tasks[{number}] has {name!r}, but knows {', '.join(known)}.")
        if "y" not in task:
            raise ValueError(f"tasks[{number}] has no y.")
    return _train(X, [Task(**task) for task in tasks], progress)


def _train(X: Matrix, tasks: Sequence[Task], progress: Progress | None) -> list[SVMPath]:
    settings = [task.settings for task in tasks]
    _log_forecast(np.shape(X), len(tasks))
    before = X.entries_read if isinstance(X, ColumnSource) else 0
    problems = Problem.several(X, [task.setup for task in tasks])
    paths = [
        Path(problem, _grid(problem, task.lams, task.eps), setting, before)
        for problem, task, setting in zip(problems, tasks, settings, strict=True)
    ]

    def report() -> None:
        if progress is not None:
            progress(sum(len(path.steps) for path in paths), sum(len(path.lams) for path in paths))

    if paths:
        with suppress(KeyboardInterrupt):  # `ended` says so of the paths that are not done
            drive(paths[0].problem.source, [path.run() for path in paths], report)
    for path in paths:
        _warn_of_gaps(path)
    return [SVMPath.of(path.problem, path.steps, path.ended) for path in paths]


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
    top = largest_level(problem)
    return np.geomspace(top, eps * top, int(count)) if top > 0 else np.empty(0)


def _warn_of_gaps(path: Path) -> None:
    wide = [step for step in path.steps if step.status != "converged"]
    if wide:
        worst = max(wide, key=lambda step: step.certificate.relative_gap)
        stopped = any(step.status == "max_iter" for step in wide)
        advice = "Raise max_iter or tol" if stopped else "It is as small as rounding lets it be"
        warnings.warn(
            f"{len(wide)} of {len(path.steps)} models have a gap above tol = {path.settings.tol:g}"
            f" (the widest: {worst.certificate.relative_gap:.1e} at lambda {worst.lam:g}). "
            f"{advice}; SVMPath.gaps has the gap of every model.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _log_forecast(shape: tuple[int, ...], count: int) -> None:
    if len(shape) == 2:
        n, m = shape
        size = count * (64 * m + 128 * n) / 2**20
        log.info(
            "a path on %d x %d, %d at once: up to %.3g MiB beside the matrix (each 64 bytes a "
            "column and 128 a row), and the columns that may be active",
            n,
            m,
            count,
            size,
        )
