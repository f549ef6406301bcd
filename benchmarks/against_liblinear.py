"""Objectives and times beside LIBLINEAR's, on the real sets.

    SIEVESVM_DATA=FOLDER make liblinear
    SIEVESVM_DATA=FOLDER python benchmarks/against_liblinear.py [--sets NAME ...] [limits of time]

LIBLINEAR minimises |w|_1 + C sum xi^2, which is P / lam for C = 1 / (2 lam), with -s 5; -B 1 gives
it an intercept and -R leaves that unpenalised. It is asked for

- every lambda of our grid at -e 1e-3, one fit after the other: its time, beside that of our path;
- some lambdas at every -e: its objective, with the exact intercept in place of its own, and its gap
  by the judge.

Time is that of its `train` alone, without the conversion of the data. Every fit is a process of its
own, which is ended when its time is up: then the time of LIBLINEAR is more than the figure, and the
ratio of ours to it less. The exit code is 1 if our objective is the larger one by more than tol P,
or if the ratio is above 0.1 on a set with more than 1e5 stored values.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import common
from common import Row
from datasets import DataSet, bench_extra
from judge import Floats, Judged, judge
from sievesvm import svm_path
from sievesvm.result import SVMPath

EPSILONS = (1e-1, 1e-2, 1e-3, 1e-4)
TIMED = 1e-3
LARGE, RATIO = 100_000, 0.1  # stored values above which our part of the time may be at most this
REPEATS = 3  # of our path
WORST = "(ours - its P) / (tol P), worst"


class Fit(NamedTuple):
    """Coefficients of one fit, and the seconds it took."""

    seconds: float
    support: np.ndarray
    coef: Floats
    intercept: float


class Liblinear:
    """LIBLINEAR on a data set, in processes that can be ended (by fork: not on Windows)."""

    def __init__(self, data: DataSet) -> None:
        with bench_extra():
            from liblinear.liblinearutil import problem

        self.problem = problem(data.y, sp.csr_matrix(data.X, dtype=np.float64), 1)
        self.context = multiprocessing.get_context("fork")

    def fit(self, lam: float, epsilon: float, limit: float) -> Fit | None:
        """None if it takes longer than `limit` seconds."""
        ours, theirs = self.context.Pipe(duplex=False)
        options = f"-s 5 -B 1 -R -q -e {epsilon!r} -c {0.5 / float(lam)!r}"
        process = self.context.Process(target=_train, args=(self.problem, options, theirs))
        process.start()
        theirs.close()
        try:
            return ours.recv() if ours.poll(max(limit, 0.0)) else None
        except EOFError:
            raise RuntimeError(f"LIBLINEAR died with {options}.") from None
        finally:
            process.kill()
            process.join()
            ours.close()


def _train(problem: Any, options: str, answer: Connection) -> None:
    from liblinear.liblinearutil import train

    model, seconds = common.timed(lambda: train(problem, options))
    w = np.ctypeslib.as_array(model.w, (model.nr_feature + 1,)) * model.get_labels()[0]
    support = np.flatnonzero(w[:-1])
    answer.send(Fit(seconds, support, w[support], float(w[-1])))


class Fits:
    """The fits of one set: by grid point and -e, None for those that were ended."""

    def __init__(self, data: DataSet, lams: Floats) -> None:
        self.solver, self.lams = Liblinear(data), lams
        self.found: dict[tuple[int, float], Fit | None] = {}

    def add(self, k: int, epsilon: float, limit: float) -> float:
        """Fit at grid point k unless that was done, or took too long at a larger -e; its time."""
        tried = [e for (at, e), fit in self.found.items() if at == k and fit is None]
        if (k, epsilon) in self.found or any(e >= epsilon for e in tried):
            return 0.0
        fit, wall = common.timed(lambda: self.solver.fit(self.lams[k], epsilon, limit))
        self.found[k, epsilon] = fit
        return wall if fit is None else fit.seconds

    def time_grid(self, limit: float) -> tuple[float, int]:
        """The time of the fits at every lambda, the largest first, and how many were finished."""
        spent, k = 0.0, 0
        while k < len(self.lams):
            spent += self.add(k, TIMED, limit - spent)
            if self.found[k, TIMED] is None:
                del self.found[k, TIMED]  # its time was what the others left
                break
            k += 1
        return spent, k

    def compare(self, at: Sequence[int], per_fit: float, per_set: float) -> None:
        """Fit at every -e, the largest first."""
        end = perf_counter() + per_set
        for epsilon in EPSILONS:
            for k in at:
                left = end - perf_counter()
                if left > 0:
                    self.add(k, epsilon, min(per_fit, left))

    def finished(self, at: Sequence[int]) -> list[tuple[int, float, Fit]]:
        return [(k, e, fit) for (k, e), fit in self.found.items() if fit is not None and k in at]


def judged(data: DataSet, lams: Floats, fits: Sequence[Fit]) -> Judged:
    entries = sp.csc_array(
        (
            np.concatenate([fit.coef for fit in fits]),
            np.concatenate([fit.support for fit in fits]),
            np.cumsum([0, *(len(fit.support) for fit in fits)]),
        ),
        shape=(data.X.shape[1], len(fits)),
    )
    return judge(data.X, data.y, lams, entries, [fit.intercept for fit in fits])


def our_path(data: DataSet, options: argparse.Namespace) -> tuple[SVMPath, float]:
    """The path with the defaults, and its median time."""
    runs = [
        common.timed(
            lambda: svm_path(data.X, data.y, lams=options.lams, eps=options.eps, tol=options.tol)
        )
        for _ in range(REPEATS)
    ]
    return runs[0][0], median(seconds for _, seconds in runs)


def row_of(data: DataSet, options: argparse.Namespace) -> Row:
    path, seconds = our_path(data, options)
    fits = Fits(data, path.lams)
    spent, finished = fits.time_grid(options.set_seconds)
    at = np.unique(np.linspace(0, len(path.lams) - 1, options.compared).astype(int)).tolist()
    fits.compare(at, options.fit_seconds, options.compare_seconds)
    return {
        **common.sizes(data),
        "our seconds": seconds,
        "LIBLINEAR's": spent,
        "its fits in time": finished,
        "ratio": seconds / spent,
        **objectives(data, path, fits.finished(at), options.tol),
    }


def objectives(
    data: DataSet, path: SVMPath, found: list[tuple[int, float, Fit]], tol: float
) -> Row:
    """Our objective less LIBLINEAR's in units of tol P, the worst; its worst gaps for each -e."""
    if not found:
        nothing = dict.fromkeys(f"its gap / P at {e:g}" for e in EPSILONS)
        return {"fits compared": 0, WORST: float("nan"), **nothing}
    points = np.array([k for k, _, _ in found])
    epsilons = np.array([epsilon for _, epsilon, _ in found])
    theirs = judged(data, path.lams[points], [fit for _, _, fit in found])
    ours = judge(data.X, data.y, path.lams, path.coefs, path.intercepts).primal[points]
    gaps = {
        f"its gap / P at {e:g}": float(theirs.relative_gap[epsilons == e].max(initial=-np.inf))
        for e in EPSILONS
    }
    return {
        "fits compared": len(found),
        WORST: float(np.max((ours - theirs.refitted) / (tol * ours))),
        **{name: gap if gap > -np.inf else None for name, gap in gaps.items()},
    }


def failures(row: Row, lams: int) -> list[str]:
    """What is wrong with a row, as sentences; written so that NaN is wrong."""
    found = []
    if not row["fits compared"]:
        found.append(f"{row['set']}: no fit was finished (raise --fit-seconds).")
    elif not row[WORST] <= 1:
        found.append(f"{row['set']}: LIBLINEAR's objective is better by more than tol P.")
    if row["stored values"] > LARGE and not row["ratio"] <= RATIO:
        if row["its fits in time"] == lams:
            found.append(f"{row['set']}: the ratio of the times is {row['ratio']:.2f}.")
        else:
            found.append(
                f"{row['set']}: the ratio of the times is at most {row['ratio']:.2f}, which "
                "decides nothing (raise --set-seconds)."
            )
    return found


def write(rows: Sequence[Row], options: argparse.Namespace) -> None:
    common.write_csv(options.results / "liblinear.csv", rows)
    common.write_page(
        options.results / "liblinear.md",
        "Beside LIBLINEAR",
        f"Ours: one path of {options.lams} lambdas down to {options.eps:g} lambda_max with a gap "
        f"of at most {options.tol:g} P, the median time of {REPEATS}. LIBLINEAR: `-s 5 -B 1 -R`, "
        f"a fit at each of these lambdas at `-e {TIMED:g}`; where fewer than {options.lams} were "
        f"finished in {options.set_seconds:,.0f} seconds, its time is more than the figure and the "
        f"ratio less. Asked: a ratio of at most {RATIO:g} above {LARGE:,} stored values.",
        f"Objectives at {options.compared} of the lambdas, with `-e` from {EPSILONS[0]:g} to "
        f"{EPSILONS[-1]:g}; `fits compared` are those that were finished, in at most "
        f"{options.fit_seconds:,.0f} seconds each and {options.compare_seconds:,.0f} for a set. "
        "The worst difference must be at most 1; it is negative where LIBLINEAR's objective was "
        "always the larger one. Its gaps are the widest of the lambdas.",
        common.table(rows),
    )


def main() -> int:
    parser = common.parser(__doc__)
    limit = parser.add_argument
    limit("--set-seconds", type=float, default=1800, help="limit for LIBLINEAR's timed fits")
    limit("--fit-seconds", type=float, default=60, help="limit for one fit that is compared")
    limit("--compare-seconds", type=float, default=600, help="limit for all that are compared")
    limit("--compared", type=int, default=10, help="lambdas at which objectives are compared")
    options = parser.parse_args()
    rows, wrong = [], []
    for data in common.chosen(options):
        row = row_of(data, options)
        common.say(row)
        rows.append(row)
        wrong += failures(row, options.lams)
        write(rows, options)
    return common.report(wrong)


if __name__ == "__main__":
    sys.exit(main())
