"""Problems for the audit: generated families, and the real data sets where they are.

A problem is named "family:number"; the name and the seed of the audit give the same problem again.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
import datasets

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator

_VALUES = 1_000_000  # of a real data set: stored values, columns and rows that are used at most
_COLUMNS, _ROWS = 60_000, 1_000


@dataclass(frozen=True)
class Instance:
    """A matrix, labels and the options of `svm_path`."""

    name: str
    X: Any
    y: Floats
    options: dict[str, Any]

    @property
    def kinds(self) -> list[str]:
        """How it is stored, and which options it uses."""
        kinds = [str(self.X.dtype), "CSC" if sp.issparse(self.X) else "dense"]
        kinds += [
            key for key in ("sample_weight", "penalty_factor") if self.options[key] is not None
        ]
        kinds += ["no intercept"] * (not self.options["fit_intercept"])
        return kinds + ["standardize"] * self.options["standardize"]

    def __str__(self) -> str:
        shape = f"{self.X.shape[0]} x {self.X.shape[1]}"
        return f"{self.name} ({', '.join([shape, *self.kinds])})"


def names(turn: int) -> list[str]:
    """One round: every generated family four times, and every real data set."""
    generated = [
        f"{kind}:{number}" for number in range(4 * turn, 4 * turn + 4) for kind in FAMILIES
    ]
    return generated + [f"{kind}:{turn}" for kind in datasets.names()]


def make(name: str, seed: int) -> Instance:
    """The problem of that name."""
    kind, _, number = name.partition(":")
    rng = np.random.default_rng([seed, int(number), zlib.crc32(kind.encode())])
    if kind in FAMILIES:
        X = FAMILIES[kind](rng)
        y = _labels(rng, X)
        if kind != "line" and X.shape[1] >= 100 and rng.random() < 0.6:
            X = _with_ties(rng, X, y)
        X = _stored(rng, X)
    else:
        X, y = _some_of(rng, datasets.load(kind))
    return Instance(name, X, y, _options(rng, *X.shape))


# --- matrices -------------------------------------------------------------------------------------


def _gauss(rng: Rng) -> Floats:
    n = int(rng.choice([20, 50, 100, 200]))
    return rng.standard_normal((n, 200_000 // n))


def _blocks(rng: Rng) -> Floats:
    """Correlated columns, in blocks."""
    n, size = int(rng.choice([30, 80, 150])), int(rng.choice([5, 20, 100]))
    common = np.repeat(rng.standard_normal((n, 2000 // size)), size, axis=1)
    share = rng.uniform(0.3, 0.999)
    return np.sqrt(share) * common + np.sqrt(1 - share) * rng.standard_normal(common.shape)


def _heavy(rng: Rng) -> Floats:
    n = int(rng.choice([25, 60, 120]))
    return rng.standard_t(rng.uniform(1.2, 3.0), (n, 3000))


def _genes(rng: Rng) -> Floats:
    """Log-normal levels driven by a few programs, some samples far out."""
    n, m, programs = int(rng.choice([30, 60, 100])), 4000, 8
    logs = rng.standard_normal((n, programs)) @ rng.standard_normal((programs, m)) / 3
    X = np.exp(rng.normal(4, 2, m) + logs + 0.5 * rng.standard_normal((n, m)))
    X[rng.integers(0, n, 3)] *= 10.0 ** rng.uniform(0.5, 2, (3, 1))
    return np.log1p(X) if rng.random() < 0.5 else X


def _snps(rng: Rng) -> Floats:
    """Genotypes 0, 1, 2 of rare and common alleles, neighbours alike; the type is int8."""
    n, m = int(rng.choice([60, 150, 300])), 2500
    allele = 10.0 ** rng.uniform(-2.5, -0.3, m)
    X = rng.binomial(2, allele, (n, m)).astype(np.int8)
    for j in range(1, m):
        if rng.random() < 0.6:
            X[:, j] = np.where(rng.random(n) < 0.9, X[:, j - 1], X[:, j])
    return X


def _text(rng: Rng) -> sp.csc_array:
    """Word counts under a power law: sparse, most words rare."""
    n, m = int(rng.choice([200, 600])), int(rng.choice([3000, 12_000]))
    rate = np.minimum(0.9, 3.0 / np.arange(1, m + 1) ** rng.uniform(0.6, 1.1))
    counts = rng.poisson(rate * 10.0 ** rng.normal(0, 0.3, (n, 1)))
    X = sp.csc_array(counts, dtype=float)
    kind = rng.integers(3)
    if kind == 0:
        X.data[:] = 1.0
    if kind == 1:  # rows of length one
        length = np.sqrt(np.maximum(X.multiply(X).sum(axis=1), 1.0))
        X = sp.csc_array(sp.diags_array(1 / length) @ X)
    return X


def _offset(rng: Rng) -> Floats:
    """Means up to a million times the deviation."""
    n = int(rng.choice([20, 60, 150]))
    mean = 10.0 ** rng.uniform(0, 6, 2000) * rng.choice([-1, 1], 2000)
    return rng.standard_normal((n, 2000)) + mean


def _wide(rng: Rng) -> Floats:
    return rng.standard_normal((int(rng.choice([10, 25])), 20_000))


def _tall(rng: Rng) -> Floats:
    n, m = int(rng.choice([1500, 4000])), int(rng.choice([20, 100]))
    return rng.standard_normal((n, m)) @ (np.eye(m) + 0.1 * rng.standard_normal((m, m)))


def _tiny(rng: Rng) -> Floats:
    """A few small integers: ties, zero and constant columns, columns that depend on each other."""
    n, m = int(rng.integers(2, 10)), int(rng.integers(1, 40))
    return rng.integers(-3, 4, (n, m)).astype(float)


def _degenerate(rng: Rng) -> Floats:
    """Duplicates up to sign, scale and a shift; zero, constant and single-entry columns."""
    n, m = int(rng.choice([8, 20, 50])), 400
    X = rng.standard_normal((n, m))
    twins = rng.integers(0, m, 150), rng.integers(0, m, 150)
    X[:, twins[0]] = X[:, twins[1]] * rng.choice([-1, 1, 2, 0.5], 150)
    X[:, rng.integers(0, m, 40)] += 5.0
    X[:, rng.integers(0, m, 10)] = 0.0
    X[:, rng.integers(0, m, 10)] = rng.standard_normal(10)
    X[:, rng.integers(0, m, 30)] *= rng.random((n, 30)) < 1.5 / n
    return X


def _line(rng: Rng) -> Floats:
    """With an intercept and two rows the dual is a line, and a bound has nothing to spare.

    Half of the columns are the longest one, less a share of it, and shifted. A third row makes it a
    line again where a column has no penalty, and nearly so where it has little weight.
    """
    X = rng.standard_normal((int(rng.choice([2, 2, 3])), 1000))
    first = int(np.argmax(X.std(axis=0)))
    X[:, :500] = np.outer(X[:, first], 1.0 - 10.0 ** rng.uniform(-17, -2, 500))
    return X + 10.0 ** rng.uniform(-3, 6, 1000) * rng.choice([-1, 0, 0, 1], 1000)


def _extreme(rng: Rng) -> Floats:
    """Columns of very different size and mean, a few entries far out."""
    n, m = int(rng.choice([5, 15, 40])), 1500
    X = rng.standard_normal((n, m)) * 10.0 ** rng.uniform(-8, 8, m)
    X += X.std(axis=0) * rng.choice([0, 1], m) * 10.0 ** rng.uniform(0, 9, m)
    far = rng.random((n, m)) < 0.01
    X[far] *= 10.0 ** rng.uniform(0, 6, far.sum())
    return X


FAMILIES: dict[str, Callable[[Rng], Any]] = {
    "gauss": _gauss,
    "blocks": _blocks,
    "heavy": _heavy,
    "genes": _genes,
    "snps": _snps,
    "text": _text,
    "offset": _offset,
    "wide": _wide,
    "tall": _tall,
    "tiny": _tiny,
    "degenerate": _degenerate,
    "line": _line,
    "extreme": _extreme,
}


# --- what is made of them -------------------------------------------------------------------------


def _labels(rng: Rng, X: Any) -> Floats:
    """Labels by a few columns and noise, or by chance; balanced or not, of both classes."""
    n, m = X.shape
    score = rng.standard_normal(n)
    if rng.random() < 0.8:
        chosen = X[:, rng.choice(m, min(m, 5), replace=False)]
        chosen = np.asarray(chosen.toarray() if sp.issparse(chosen) else chosen, dtype=float)
        deviation = chosen.std(axis=0)
        chosen = (chosen - chosen.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        score = rng.uniform(0.1, 1.5) * score + chosen.sum(axis=1)
    positive = max(1, min(n - 1, int(n * rng.choice([0.5, 0.5, 0.3, 0.1, 0.03]))))
    y = np.full(n, -1.0)
    y[np.argsort(score)[n - positive :]] = 1.0
    return y


def _with_ties(rng: Rng, X: Any, y: Floats) -> Any:
    """Columns put in the place of others: nearly those that vary most with y, or a little shorter.

    Where the one is active, the other is just below or just above its constraint.
    """
    n = X.shape[0]
    if X.dtype.kind == "i":  # an exact copy, and copies that differ in one row
        product = np.abs(X.T @ (y - y.mean()))
        ties, of = _places(rng, product)
        X[:, ties] = X[:, of]
        X[rng.integers(0, n, len(ties)), ties] = rng.integers(0, 3, len(ties))
        return X
    columns = X.toarray() if sp.issparse(X) else X
    deviation = columns.std(axis=0)
    product = np.abs(columns.T @ (y - y.mean())) / np.where(deviation > 0, deviation, 1.0)
    ties, of = _places(rng, product)
    shorter = 1.0 - np.where(
        rng.random(len(ties)) < 0.6, 10.0 ** rng.uniform(-9, -1.5, len(ties)), 0
    )
    size = np.where(rng.random(len(ties)) < 0.6, 10.0 ** rng.uniform(-12, -1.5, len(ties)), 0.0)
    noise = rng.standard_normal((n, len(ties))) * (columns[:, of] != 0 if sp.issparse(X) else 1.0)
    sign = rng.choice([-1.0, 1.0], len(ties))
    columns[:, ties] = sign * (columns[:, of] * shorter + size * deviation[of] * noise)
    return sp.csc_array(columns) if sp.issparse(X) else columns


def _places(rng: Rng, product: Floats) -> tuple[Any, Any]:
    """Where copies go, and of which columns: the 40 best, the very best more often."""
    order = np.argsort(-product)
    ties = rng.choice(order[40:], len(order) // 2, replace=False)
    return ties, order[(40 * rng.random(len(ties)) ** 2).astype(int)]


def _stored(rng: Rng, X: Any) -> Any:
    """In one of the number types, at some scale, dense or sparse."""
    if X.dtype.kind != "i":
        X = X * 10.0 ** rng.choice([0, 0, 0, -6, -3, 3, 6])
        X = X.astype(rng.choice([np.float64, np.float32]))
    if sp.issparse(X) or rng.random() < 0.25:
        return sp.csc_array(X)
    return np.asfortranarray(X)


def _some_of(rng: Rng, data: datasets.DataSet) -> tuple[Any, Floats]:
    """Rows and columns by chance, if there are too many; of both classes."""
    X, y = data.X, data.y
    if X.shape[0] > _ROWS:
        rows = np.concatenate([np.flatnonzero(y > 0)[:5], np.flatnonzero(y < 0)[:5]])
        rows = np.union1d(rows, rng.choice(len(y), _ROWS, replace=False))
        X, y = (sp.csr_array(X)[rows] if sp.issparse(X) else X[rows]), y[rows]
    share = _VALUES / (X.nnz if sp.issparse(X) else X.size)
    share = min(share, _COLUMNS / X.shape[1])
    if share < 1:
        columns = np.sort(rng.choice(X.shape[1], int(share * X.shape[1]), replace=False))
        X = X[:, columns]
    return (sp.csc_array(X) if sp.issparse(X) else np.asfortranarray(X)), y


def _options(rng: Rng, n: int, m: int) -> dict[str, Any]:
    return {
        "sample_weight": _weights(rng, n),
        "penalty_factor": _factors(rng, m),
        "fit_intercept": bool(rng.random() < 0.8),
        "standardize": bool(rng.random() < 0.3),
    }


def _weights(rng: Rng, n: int) -> Floats | None:
    kind, c = rng.integers(8), np.ones(n)
    if kind > 3:
        return None
    if kind == 0:
        c = 10.0 ** rng.uniform(-0.5, 0.5, n)
    if kind == 1:
        c = 10.0 ** rng.uniform(-4, 4, n)
    if kind == 2:
        c = (rng.random(n) < 0.8).astype(float)
    if kind == 3:
        c = rng.integers(0, 4, n) * 10.0 ** rng.uniform(-2, 2, n)
    return c if c.any() else None


def _factors(rng: Rng, m: int) -> Floats | None:
    kind = rng.integers(8)
    if kind > 3:
        return None
    v = rng.uniform(0.3, 3.0, m) if kind % 2 else 10.0 ** rng.uniform(-3, 3, m)
    if kind >= 2:
        v[rng.random(m) < 0.1] = np.inf
        v[rng.choice(m, int(rng.integers(0, 1 + min(m // 5, 4))), replace=False)] = 0.0
    return v
