"""The main job on the embedded example: `python -m sievesvm.demo [picture]`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from .certify import dual_point
from .example import load_example
from .problem import Problem, first_features
from .result import SVMPath
from .screening import apply_rule
from .train import svm_path

_STEPS = (0.99, 0.95, 0.9, 0.8, 0.6)
_ROWS = 10


def main(picture: str | Path = "sievesvm_demo.png") -> None:
    """Screen, train the path, print what came of it, and draw it into a file."""
    X, y, names, _ = load_example()
    n, m = X.shape
    print(f"{m} proteins in the plasma of {n} people, {np.sum(y > 0)} of them with liver disease.")
    (first,) = first_features(X, y, standardize=True)
    path = svm_path(X, y, standardize=True)
    top = path.lams[0]

    print("\nBefore anything is trained: which can be part of a sparse linear SVM at all?")
    print(f"From lambda_max = {top:.3f} on none; {names[first]} enters first, just below.\n")
    point = dual_point(Problem.of(X, y, standardize=True))  # of w = 0, optimal at lambda_max
    print("  lambda   of max   kept   proved to be out")
    for step in _STEPS:
        kept = len(apply_rule(point, step * top, "safe").kept)
        print(f"{step * top:8.3f} {step:8.2f} {kept:6d} {(m - kept) / m:18.1%}")

    print(f"\nThe whole path: {len(path.lams)} models, each with a proof of how good it is.\n")
    print("  lambda   active   kept   relative gap   passes")
    for k in np.linspace(0, len(path.lams) - 1, _ROWS).round().astype(int):
        print(
            f"{path.lams[k]:8.3f} {path.n_active[k]:8d} {path.n_kept[k]:6d} "
            f"{path.certificates[k].relative_gap:14.1e} {path.passes[k]:8.2f}"
        )
    print("\nactive: in the model; kept: looked at, a bound or the rule settled the others;")
    print("relative gap: no model is better by more; passes: how often X had been read.\n")

    worst = max(certificate.relative_gap for certificate in path.certificates)
    print(f"{path.status.count('converged')} of {len(path.lams)} models converged, in ", end="")
    print(f"{path.times.sum():.2f} s; the worst relative gap is {worst:.1e}.")
    _draw(path, names, Path(picture))


def _draw(path: SVMPath, names: list[str], file: Path) -> None:
    """Draw the path into the file, or say why not."""
    try:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.5, 4.8), layout="constrained")
        path.plot(figure.subplots(), names=names)
        figure.savefig(file, dpi=110)
    except ImportError:
        print("To have a picture of it, install matplotlib: pip install 'sievesvm[plot]'")
    except (OSError, ValueError) as error:  # no such folder; no such format
        print(f"The picture of it could not be written: {error}")
    else:
        print(f"The picture of it is in {file.resolve()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m sievesvm.demo", description=__doc__)
    parser.add_argument("picture", nargs="?", default="sievesvm_demo.png", help="file to draw into")
    main(parser.parse_args().picture)
