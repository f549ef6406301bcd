"""The exact minimiser over what is not penalised: the intercept, or the intercept and columns."""

from __future__ import annotations

import numpy as np

from . import _core
from .columns import Floats

_STEPS = 200  # far more than a Newton method on a piecewise quadratic function takes


def best_intercept(y: Floats, u: Floats, c: Floats | None = None, start: float = 0.0) -> float:
    """Minimise 1/2 sum_i c_i max(0, 1 - y_i (u_i + b))^2 over b, exact to rounding.

    The minimiser is the root of the decreasing piecewise linear function sum_i c_i y_i xi_i(b),
    found by a few O(n) Newton steps from `start` within a bracket; nothing is sorted. Where the
    minimisers form an interval (no row is inside its margin there) its middle is returned, or its
    end if it has one end; where b plays no part (no row has weight), `start`.
    """
    return _core.minimise_on_line(1.0 - y * u, y, c, start)


def best_unpenalised(
    y: Floats, u: Floats, e: Floats, Z: Floats, *, fit_intercept: bool
) -> tuple[float, Floats]:
    """Minimise 1/2 ||e * max(0, 1 - y (u + Z w0 + b))||^2 over (b, w0): exact to rounding.

    The function is piecewise quadratic. A Newton step is a least-squares problem on the rows
    inside the margin; its length is exact. The function falls until it is rounding, and after that
    the gradient until it is.
    """
    means = (e**2 @ Z) / (e @ e) if fit_intercept else np.zeros(Z.shape[1])
    A = np.column_stack([np.ones(len(y)), Z - means]) if fit_intercept else Z
    lengths = np.linalg.norm(e[:, None] * A, axis=0)
    A = A / np.where(lengths > 0, lengths, 1.0)
    B = (e * y)[:, None] * A
    x = np.zeros(B.shape[1])
    gap = e * (1.0 - y * u)
    xi = np.maximum(gap, 0.0)
    for _ in range(_STEPS):
        inside = xi > 0
        step = np.linalg.lstsq(B[inside], xi[inside], rcond=None)[0]
        along = B @ step
        t = _core.minimise_on_line(gap, along, None, 1.0)
        fresh = x + t * step
        trial = np.maximum(e * (1.0 - y * (u + A @ fresh)), 0.0)
        lower = trial @ trial < xi @ xi
        if not (lower or _length(B.T @ trial) < _length(B.T @ xi)):
            break
        x, gap, xi = fresh, gap - t * along, trial
    x = np.where(lengths > 0, x / np.where(lengths > 0, lengths, 1.0), 0.0)
    return (float(x[0] - x[1:] @ means), x[1:]) if fit_intercept else (0.0, x)


def _length(a: Floats) -> float:
    return float(np.linalg.norm(a))
