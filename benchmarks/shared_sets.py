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
from sievesvm import SVMPath, as_columns, svm_path
from sievesvm.columns import InMemoryColumns

RULES = ("safe", "paper", "gap", "none")
MANY = 5000  # features of a set for which passes are to be few
FEW, MOST = 4, 15  # passes: the median of those sets; above the second a set is named


class Products:
    """Counts the products with columns that a path asks for, also with columns that were kept."""

    def __init__(self, source: InMemoryColumns) -> None:
        self.rounds = self.columns = self.entries = 0
        self.all_entries = source.entries()
        products = source.products

        def counted(vector: Floats, columns: Any) -> Any:
            self.rounds += 1
            self.columns += len(columns)
            self.entries += source.entries(columns)
            return products(vector, columns)

        source.products = counted


class Run(NamedTuple):
    rule: str
    path: SVMPath
    seconds: float
    products: Products
    judged: Judged

    @classmethod
    def of(cls, data: DataSet, rule: str, options: argparse.Namespace) -> Run:
        source = as_columns(data.X)
        products = Products(source)
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
        return cls(rule, path, seconds, products, judged)

    def row(self, data: DataSet, best: Floats) -> Row:
        path, products, judged = self.path, self.products, self.judged
        reported = path.gaps / path.primal
        return {
            **common.sizes(data),
            "rule": self.rule,
            "passes": float(path.passes[-1]),
            "products / X": products.entries / products.all_entries,
            "rounds of products": products.rounds,
            "columns in a round": products.columns / max(products.rounds, 1),
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
    above = [row["set"] for row in safe if row["passes"] > MOST]
    parts.append(f"Sets with more than {MOST} passes: {', '.join(above) or 'none'}.")
    return "\n\n".join(parts)


def write(rows: Sequence[Row], options: argparse.Namespace) -> None:
    common.write_csv(options.results / "shared_sets.csv", rows)
    common.write_page(
        options.results / "shared_sets.md",
        "Every rule on every set",
        f"{options.lams} lambdas down to {options.eps:g} lambda_max, tol = {options.tol:g}. "
        "Discarded, bounded and computed are features per lambda, on average; computed includes "
        "those in the working set. Passes are what is read: statistics, and each column once that "
        "is looked at again, since it is kept. Products / X is the work of all products with "
        "columns outside the working set, kept or not, in units of one product with all of X.",
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
