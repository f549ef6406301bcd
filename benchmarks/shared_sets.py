"""The path on every real set with every rule; each model is judged by code of its own.

    SIEVESVM_DATA=FOLDER make shared-sets
    SIEVESVM_DATA=FOLDER python benchmarks/shared_sets.py [--sets NAME ...] [--rules RULE ...]

The exit code is 1 if a model is not converged, if a judged gap is above tol P, or if the objectives
of two rules differ by more than tol P.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import common
from common import Row
from datasets import DataSet
from judge import Floats, Judged, judge
from sievesvm import as_columns, svm_path
from sievesvm.columns import ColumnSource
from sievesvm.result import SVMPath

RULES = ("safe", "paper", "gap", "none")
MANY = 5000  # features of a set for which passes are to be few
FEW, MOST = 4, 15  # passes: the median of those sets; above the second a set gets a sentence


class Reads:
    """Counts what a source is read for: rounds of products, their columns, and entries."""

    def __init__(self, source: ColumnSource) -> None:
        self.rounds = self.columns = 0
        self.products = self.taken = 0.0  # passes
        correlate, take = source.correlate, source.take

        def counted_correlate(V: Any, columns: Any = None) -> Any:
            before = source.passes
            result = correlate(V, columns)
            self.rounds += 1
            self.columns += len(result)
            self.products += source.passes - before
            return result

        def counted_take(columns: Any) -> Any:
            before = source.passes
            result = take(columns)
            self.taken += source.passes - before
            return result

        source.correlate, source.take = counted_correlate, counted_take


class Run(NamedTuple):
    rule: str
    path: SVMPath
    seconds: float
    reads: Reads
    judged: Judged

    @classmethod
    def of(cls, data: DataSet, rule: str, options: argparse.Namespace) -> Run:
        source = as_columns(data.X)
        reads = Reads(source)
        path, seconds = common.timed(
            lambda: svm_path(
                source,
                data.y,
                lams=options.lams,
                eps=options.eps,
                tol=options.tol,
                screening=rule,
            )
        )
        judged = judge(data.X, data.y, path.lams, path.coefs, path.intercepts)
        return cls(rule, path, seconds, reads, judged)

    def row(self, data: DataSet, best: Floats) -> Row:
        path, reads, judged = self.path, self.reads, self.judged
        reported = path.gaps / path.primal
        return {
            **common.sizes(data),
            "rule": self.rule,
            "passes": float(path.passes[-1]),
            "of products": reads.products,
            "of taken columns": reads.taken,
            "rounds of products": reads.rounds,
            "columns in a round": reads.columns / max(reads.rounds, 1),
            "active at the end": int(path.n_active[-1]),
            "models": len(path.lams),
            "Newton steps": int(path.n_iter.sum()),
            "seconds": self.seconds,
            "not converged": sum(status != "converged" for status in path.status),
            "worst judged gap / P": float(judged.relative_gap.max()),
            "judged gap above reported / P": float(np.max(judged.relative_gap - reported)),
            "P above the best rule's / P": float(np.max((judged.primal - best) / best)),
            "discarded": float(path.n_discarded.mean()),
            "bounded": float(path.n_bounded.mean()),
            "computed": float(path.n_kept.mean()),
        }


def rows_of(data: DataSet, options: argparse.Namespace) -> list[Row]:
    runs = [Run.of(data, rule, options) for rule in options.rules]
    best = np.min([run.judged.primal for run in runs], axis=0)
    return [run.row(data, best) for run in runs]


def failures(row: Row, tol: float) -> list[str]:
    """What is wrong with a row, as sentences; written so that NaN is wrong."""
    where = f"{row['set']} with rule {row['rule']}"
    found = []
    if row["not converged"]:
        found.append(f"{where}: {row['not converged']} models are not converged.")
    for name in ("worst judged gap / P", "P above the best rule's / P"):
        if not row[name] <= tol:
            found.append(f"{where}: {name} is {row[name]:.2e}, above {tol:g}.")
    return found


def summary(rows: Sequence[Row]) -> str:
    """The passes of rule "safe", against what is asked of them."""
    safe = [row for row in rows if row["rule"] == "safe"]
    large = [row["passes"] for row in safe if row["m"] >= MANY]
    parts = []
    if large:
        parts.append(
            f'Passes with "safe" on the sets with m >= {MANY:,} ({len(large)} here): median '
            f"{median(large):.2f} (asked: at most {FEW}), most {max(large):.1f}."
        )
    parts += [why(row) for row in safe if row["passes"] > MOST]
    return "\n\n".join(parts)


def why(row: Row) -> str:
    """How many passes come about."""
    share = row["columns in a round"] / row["m"]
    length = row["of products"] / max(row["rounds of products"] * share, 1e-300)
    return (
        f"{row['set']}: {row['passes']:.1f} passes, {row['of products']:.1f} of them in "
        f"{row['rounds of products']} rounds of products for {row['models']} models; a round has "
        f"{row['columns in a round']:,.0f} of {row['m']:,} columns ({share:.1%}), {length:.1f} "
        f"times as long as an average one. {row['active at the end']:,} features are in the model "
        "at the end."
    )


def write(rows: Sequence[Row], options: argparse.Namespace) -> None:
    common.write_csv(options.results / "shared_sets.csv", rows)
    common.write_page(
        options.results / "shared_sets.md",
        "Every rule on every set",
        f"{options.lams} lambdas down to {options.eps:g} lambda_max, tol = {options.tol:g}. "
        "Discarded, bounded and computed are features per lambda, on average; computed includes "
        "those in the working set, which are not read again. Passes that are neither of products "
        "nor of taken columns are those of the statistics.",
        summary(rows),
        common.table(rows),
    )


def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--rules", nargs="+", choices=RULES, default=RULES)
    options = parser.parse_args()
    rows: list[Row] = []
    wrong: list[str] = []
    for data in common.chosen(options):
        for row in rows_of(data, options):
            common.say(row)
            rows.append(row)
            wrong += failures(row, options.tol)
        write(rows, options)
    print(summary(rows))
    return common.report(wrong)


if __name__ == "__main__":
    sys.exit(main())
