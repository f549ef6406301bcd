"""What the scripts on the real sets share: options, the sets asked for, the clock, and tables."""

from __future__ import annotations

import argparse
import csv
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import datasets
from datasets import DataSet

Row = Mapping[str, Any]
T = TypeVar("T")

RESULTS = Path(__file__).parent / "results"


def parser(doc: str, sets: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Options of every script; `sets` are those it takes where none are named."""
    options = argparse.ArgumentParser(description=doc.splitlines()[0])
    options.add_argument(
        "--sets", nargs="+", metavar="NAME", default=sets, help="which data sets (default: all)"
    )
    options.add_argument("--results", type=Path, default=RESULTS, help="folder for the tables")
    options.add_argument("--lams", type=int, default=100, help="points of the grid")
    options.add_argument("--eps", type=float, default=1e-2, help="its end, in units of lambda_max")
    options.add_argument("--tol", type=float, default=1e-6, help="tolerance of the certificates")
    return options


def chosen(options: argparse.Namespace) -> Iterator[DataSet]:
    """The sets asked for, each loaded when its turn comes; without any, one sentence says why."""
    there = datasets.names()
    if not there:
        sys.exit(
            "Set SIEVESVM_DATA to the folder with the data sets "
            "(benchmarks/README.md says which files are known)."
        )
    for name in options.sets or there:
        if name not in there:
            sys.exit(f"SIEVESVM_DATA has no data set {name!r}; it has {', '.join(there)}.")
    yield from map(datasets.load, options.sets or there)


def timed(task: Callable[[], T]) -> tuple[T, float]:
    start = perf_counter()
    result = task()
    return result, perf_counter() - start


def sizes(data: DataSet) -> dict[str, Any]:
    """The first cells of a row."""
    n, m = data.X.shape
    return {"set": data.name, "n": n, "m": m, "stored values": data.values}


# ---- tables -------------------------------------------------------------------------------------


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """One line for each row, numbers in full."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_page(path: Path, title: str, *parts: str) -> None:
    """A page of Markdown that says on what it was measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join([f"# {title}", *parts, f"*{circumstances()}*"]) + "\n")


def table(rows: Sequence[Row]) -> str:
    """Rows with the same keys as a table of Markdown; numbers to the right."""
    keys = list(rows[0])
    right = ["---:" if isinstance(rows[0][key], int | float) else "---" for key in keys]
    lines = [keys, right, *([shown(row[key]) for key in keys] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def shown(value: Any) -> str:
    """Integers with separators, other numbers to three digits."""
    if isinstance(value, bool) or value is None:
        return {None: "", True: "yes", False: "no"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def say(row: Row) -> None:
    """One line of progress."""
    print("  ".join(f"{key} {shown(value)}" for key, value in row.items()), flush=True)


def report(failures: Sequence[str]) -> int:
    """Print what failed; the exit code."""
    for failure in failures:
        print(f"FAILED: {failure}")
    return int(bool(failures))


def circumstances() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("sievesvm", "numpy", "scipy"))
    return (
        f"{date.today()}; {processor()}, {os.cpu_count()} threads; "
        f"Python {platform.python_version()}, {packages}."
    )


def processor() -> str:
    try:
        found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()
