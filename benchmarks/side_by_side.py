"""Ten paths over one matrix with shared passes: what they read, and whether they stay the same.

    SIEVESVM_DATA=FOLDER make side-by-side
    SIEVESVM_DATA=FOLDER python benchmarks/side_by_side.py [--sets NAME ...]

The ten have weights of 0 on a random tenth of the rows and 1 on the others, and are run twice:
together, by `svm_paths`, and by ten calls of `svm_path`. The exit code is 1 if one coefficient,
intercept or gap differs by a bit, or if the ten together read more than 1.5 times what one does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np

import common
from common import Row
from datasets import DataSet
from sievesvm import SVMPath, svm_path, svm_paths

SETS = ("dorothea", "reuters_r8_earn_tfidf", "news20_multiclass", "prostate", "farm_ads")
PATHS = 10
SHARE = 0.9  # of the rows
MOST = 1.5  # passes of all, in units of the passes of one
EXACT = ("lams", "coefs", "intercepts", "gaps")


def weights(n: int) -> np.ndarray:
    """One row of 0 and 1 for each path, the same at every call."""
    rng = np.random.default_rng(0)
    out = np.ones((PATHS, n))
    for row in out:
        row[rng.choice(n, n - round(SHARE * n), replace=False)] = 0.0
    return out


def differences(a: SVMPath, b: SVMPath) -> list[str]:
    """The attributes in which two paths differ by a bit."""
    return [name for name in EXACT if bits(getattr(a, name)) != bits(getattr(b, name))]


def bits(values: Any) -> tuple[bytes, ...]:
    """The numbers of an array or a CSC matrix as they stand in memory."""
    if isinstance(values, np.ndarray):
        return (values.tobytes(),)
    places = (values.indices.astype(np.int64), values.indptr.astype(np.int64))
    return (values.data.tobytes(), *(place.tobytes() for place in places))


def row_of(data: DataSet, options: argparse.Namespace) -> Row:
    tasks = [
        {"y": data.y, "sample_weight": c}
        | {"lams": options.lams, "eps": options.eps, "tol": options.tol}
        for c in weights(len(data.y))
    ]
    alone, seconds = common.timed(lambda: [svm_path(data.X, **task) for task in tasks])
    shared, seconds_together = common.timed(lambda: svm_paths(data.X, tasks))
    one = [float(path.passes[-1]) for path in alone]
    passes = float(max(path.passes[-1] for path in shared))
    unlike = [differences(a, b) for a, b in zip(shared, alone, strict=True)]
    return {
        **common.sizes(data),
        "passes of one, least": min(one),
        "passes of one": mean(one),
        "passes of one, most": max(one),
        "passes of ten": passes,
        "ratio": passes / mean(one),
        "seconds, ten calls": seconds,
        "seconds, together": seconds_together,
        "paths that differ": sum(bool(names) for names in unlike),
        "in": ", ".join(sorted(set().union(*unlike))),
    }


def failures(row: Row) -> list[str]:
    found = []
    if row["paths that differ"]:
        found.append(
            f"{row['set']}: {row['paths that differ']} of {PATHS} paths differ from those of "
            f"separate calls in {row['in']}."
        )
    if not row["ratio"] <= MOST:
        found.append(f"{row['set']}: {PATHS} paths read {row['ratio']:.2f} times what one reads.")
    return found


def write(rows: Sequence[Row], options: argparse.Namespace) -> None:
    common.write_csv(options.results / "side_by_side.csv", rows)
    common.write_page(
        options.results / "side_by_side.md",
        "Ten paths side by side",
        f"Random weights of 0 and 1 on {SHARE:.0%} of the rows, {options.lams} lambdas down to "
        f"{options.eps:g} lambda_max, tol = {options.tol:g}. Passes count everything that is read, "
        f"the statistics of the columns included. The ratio is to the mean of the {PATHS}; asked: "
        f"at most {MOST:g}, and no path that differs by a bit from that of a call of its own "
        f"({', '.join(EXACT)}).",
        common.table(rows),
    )


def main() -> int:
    options = common.parser(__doc__, SETS).parse_args()
    rows: list[Row] = []
    for data in common.chosen(options):
        rows.append(row_of(data, options))
        common.say(rows[-1])
        write(rows, options)
    return common.report([failure for row in rows for failure in failures(row)])


if __name__ == "__main__":
    sys.exit(main())
