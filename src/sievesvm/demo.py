"""The main job on the embedded example: `python -m sievesvm.demo`."""

from __future__ import annotations

import numpy as np

from .certify import certify, dual_point
from .example import load_example
from .path import svm_path
from .problem import Problem, first_features, largest_level
from .screening import apply_rule

_STEPS = (1.0, 0.99, 0.97, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6)


def main() -> None:
    X, y, names, _ = load_example()
    n, m = X.shape
    print(f"{m} proteins in the plasma of {n} people, {np.sum(y > 0)} of them with liver disease.")
    print("Which can be part of a sparse linear SVM at all, before it is trained?\n")

    problem = Problem.of(X, y, standardize=True)
    point = dual_point(problem)  # of w = 0, optimal at lambda_max
    top = largest_level(problem)
    first = ", ".join(names[j] for j in first_features(X, y, standardize=True))
    print(f"lambda_max  {top:.6g}: above it no protein is in the model")
    print(f"first       {first}: enters just below\n")

    print("  lambda   of max    kept  discarded   relative gap of w = 0")
    for step in _STEPS:
        lam = step * top
        kept = len(apply_rule(point, lam, "safe").kept)
        certificate = certify(problem, lam, np.zeros(m))
        print(
            f"{lam:8.3f} {step:8.2f} {kept:7d} {(m - kept) / m:9.1%} "
            f"{certificate.relative_gap:17.2e}"
        )
    print(
        "\nEvery discarded protein has coefficient 0 in the optimal model at that lambda: proved."
    )

    path = svm_path(X, y, standardize=True)
    print("\nThe whole path: 100 lambdas, every model certified.\n")
    print("  lambda  proteins  looked at   relative gap   times the data was read")
    for k in range(0, len(path.lams), 11):
        print(
            f"{path.lams[k]:8.3f} {path.n_active[k]:9d} {path.n_kept[k]:10d} "
            f"{path.gaps[k] / path.primal[k]:14.1e} {path.passes[k]:14.2f}"
        )
    print(f"\n{sum(status == 'converged' for status in path.status)} of 100 converged.")


if __name__ == "__main__":
    main()
