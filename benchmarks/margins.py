"""What the margins against rounding cost: features discarded with them and without.

Usage::

    make margins
    SIEVESVM_DATA=FOLDER make margins     (adds some of the real sets in FOLDER)

Each row screens with the dome at a fraction of the lambda lam1 that w belongs to, w being near the
optimum to the given relative gap, once as the library does and once with every error set to zero.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

import datasets
from sievesvm.certify import DualPoint, dual_point
from sievesvm.example import load_example
from sievesvm.problem import Problem, largest_level
from sievesvm.screening import apply_rule

RATIOS = (0.99, 0.95, 0.8)
REAL = ("colon", "leukemia", "gravier_breast", "madelon", "dorothea", "sms_spam_counts", "pcmac")
STEPS = 3000


def near_optimum(problem: Problem, lam: float, gap: float) -> DualPoint:
    """Coordinate descent on the features that violate most, until the relative gap is small.

    Slow and simple; b stays exact, so that every step minimises the profile over b from above:
    the curvature of a column of length gamma off the intercept is at most gamma^2.
    """
    w = np.zeros(len(problem.v))
    point = dual_point(problem, w)
    rate = 1.0
    for _ in range(STEPS):
        if point.certificate(lam).relative_gap <= gap:
            break
        size = np.where(problem.stats.gamma > 0, problem.stats.gamma, np.inf)
        active = np.flatnonzero((np.abs(point.zeta) > 0.98 * lam * problem.v) | (w != 0))
        trial = w.copy()
        moved = w[active] * size[active] + rate * point.zeta[active] / size[active]
        threshold = rate * lam * problem.v[active] / size[active]
        trial[active] = np.sign(moved) * np.maximum(np.abs(moved) - threshold, 0) / size[active]
        ahead = dual_point(problem, trial)
        if ahead.certificate(lam).primal < point.certificate(lam).primal:
            w, point, rate = trial, ahead, rate * 1.3
        else:
            rate /= 2
    return point


def data_sets() -> Iterator[tuple[str, object, np.ndarray]]:
    rng = np.random.default_rng(80)
    example = load_example()
    yield "liver plasma (embedded)", example.X, example.y
    y = np.where(rng.random(100) < 0.4, 1.0, -1.0)
    X = rng.standard_normal((100, 5000)) + 0.5 * np.outer(y, rng.random(5000) < 0.01)
    yield "gauss 100 x 5000", X, y
    for ratio in (1e2, 1e4, 1e6):
        yield f"gauss, |mean|/sd {ratio:.0e}", X + ratio, y
    yield "gauss, float32, mean 100", (X + 100).astype(np.float32), y
    y = np.where(rng.random(2000) < 0.5, 1.0, -1.0)
    text = sp.random_array((2000, 20000), density=0.005, rng=rng, format="csc")
    yield "sparse 2000 x 20000", sp.csc_array(text.multiply(1 + 0.3 * y[:, None])), y
    for name in sorted(set(REAL) & set(datasets.names())):
        yield datasets.load(name)


def discarded(point: DualPoint, lam: float) -> float:
    m = len(point.zeta)
    return 100 * (m - len(apply_rule(point, lam, "safe").kept)) / m


def main() -> None:
    print("discarded by the dome, %: with the margins / without, at lam/lam1 =")
    head = "".join(f"{ratio:>19.2f}" for ratio in RATIOS)
    print(f"{'data':26} {'lam1':>5} {'gap':>8}{head}")
    for name, X, y in data_sets():
        problem = Problem.of(X, y)
        top = largest_level(problem)
        for fraction, gap in ((1.0, 0.0), (0.5, 1e-3), (0.5, 1e-6)):
            lam1 = fraction * top
            point = dual_point(problem) if gap == 0 else near_optimum(problem, lam1, gap)
            bare = point.without_margins()
            pairs = [[discarded(p, ratio * lam1) for p in (point, bare)] for ratio in RATIOS]
            cells = "".join(f"   {a:7.3f}/{b:7.3f} " for a, b in pairs)
            reached = point.certificate(lam1).relative_gap
            print(f"{name:26} {fraction:5.2f} {reached:8.0e}{cells}", flush=True)


if __name__ == "__main__":
    main()
