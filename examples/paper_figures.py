"""Redraw the two figures of the screening paper from its formulas, with the sign of `a` mended.

    python examples/paper_figures.py [folder]

writes k_region.png (the set K) and balls.png (the balls B_t) to the folder, here by default.

With two rows the dual variable theta lives in the plane.  As in the paper's pictures y'theta = 0 is
left out (a model without intercept), and theta(lam) is the point of the polygon
F = {theta >= 0, |fhat_j'theta| <= 1} nearest to (1/lam, 1/lam).
"""

import sys
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

X = np.array([[0.1, 0.35, 0.5], [-1.0, -0.7, -0.2]])
y = np.array([1.0, -1.0])
lam1, lam2 = 1 / 1.05, 1 / 2.2
ones = np.ones(2)

# F as normals'theta <= limits
normals = np.vstack([(y[:, None] * X).T, -(y[:, None] * X).T, -np.eye(2)])
limits = np.repeat([1.0, 0.0], [6, 2])

SPAN = np.array([0.5, 2.75])
RED, BLUE, GREEN, GREY = "#c0392b", "#1f5fa8", "#2e8b57", "#888888"


def corners() -> np.ndarray:
    """The corners of F in order round their centre."""
    pairs = [list(pair) for pair in combinations(range(len(limits)), 2)]
    regular = [pair for pair in pairs if abs(np.linalg.det(normals[pair])) > 1e-9]
    points = np.array([np.linalg.solve(normals[pair], limits[pair]) for pair in regular])
    points = points[np.all(points @ normals.T <= limits + 1e-9, axis=1)]
    return points[np.argsort(np.arctan2(*(points - points.mean(axis=0)).T))]


def solution(lam: float) -> np.ndarray:
    """theta(lam): of the nearest points on the edges of F, the nearest."""
    point = ones / lam
    start, edge = corners(), np.roll(corners(), -1, axis=0) - corners()
    along = np.sum((point - start) * edge, axis=1) / np.sum(edge**2, axis=1)
    nearest = start + np.clip(along, 0.0, 1.0)[:, None] * edge
    return nearest[np.argmin(np.linalg.norm(nearest - point, axis=1))]


theta1, theta2 = solution(lam1), solution(lam2)
outward = ones / lam1 - theta1
a = outward / np.linalg.norm(outward)
step = 1 / lam2 - 1 / lam1
smallest_t = 1 + step * (a @ ones) / np.linalg.norm(outward)


def ball(t: float) -> tuple[np.ndarray, float]:
    """Centre and radius of B_t."""
    u = ones / lam2 - t * outward
    return (u + theta1) / 2, np.linalg.norm(u - theta1) / 2


def cap(t: float) -> np.ndarray:
    """The outline of Q_t, the part of B_t in the half-space a'(theta - theta1) <= 0."""
    centre, radius = ball(t)
    height = np.clip(a @ (theta1 - centre) / radius, -1.0, 1.0)
    half = np.arccos(height)
    turn = np.arctan2(a[1], a[0]) + np.linspace(half, 2 * np.pi - half, 400)
    return centre + radius * np.column_stack([np.cos(turn), np.sin(turn)])


def line(x: np.ndarray) -> np.ndarray:
    """Height over x of the line a'(theta - theta1) = 0."""
    return theta1[1] - a[0] / a[1] * (x - theta1[0])


def label(axes: Axes, x: float, y: float, text: str, colour: str = "black") -> None:
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.0}
    axes.text(x, y, text, color=colour, fontsize=13, ha="center", va="center", bbox=box)


def mark(axes: Axes, point: np.ndarray, text: str, offset: tuple[float, float]) -> None:
    axes.plot(*point, "o", color="black", markersize=4.5, zorder=5)
    axes.annotate(text, point, offset, textcoords="offset points", fontsize=14, zorder=6)


def canvas() -> tuple[Figure, Axes]:
    """F, the diagonal of all 1/lam, the half-space with its normal a, and the four points."""
    figure, axes = plt.subplots(figsize=(6.8, 6.8), layout="constrained")
    axes.fill(*corners().T, facecolor="#e4e4e4", edgecolor=GREY, linewidth=0.8)
    axes.text(0.6, 0.37, "$F$", color="#555555", fontsize=14)
    axes.axline((0, 0), (1, 1), color=GREY, linewidth=0.8, linestyle=":")
    axes.plot(SPAN, line(SPAN), color=BLUE, linewidth=1.4)
    axes.fill_between(SPAN, line(SPAN), color=BLUE, alpha=0.07, linewidth=0)
    axes.annotate("", theta1 + 0.42 * a, theta1, arrowprops={"arrowstyle": "-|>", "color": BLUE})
    axes.annotate(r"$\mathbf{a}$", theta1 + 0.42 * a, color=BLUE, fontsize=14)
    mark(axes, theta1, r"$\theta_1$", (-22, -12))
    mark(axes, theta2, r"$\theta_2$", (-14, -17))
    mark(axes, ones / lam1, r"$\mathbf{1}/\lambda_1$", (9, -5))
    mark(axes, ones / lam2, r"$\mathbf{1}/\lambda_2$", (9, -5))
    axes.set(xlim=SPAN, ylim=(0.27, 2.52), aspect="equal")
    axes.set(xlabel=r"$\theta$ of the first row", ylabel=r"$\theta$ of the second row")
    return figure, axes


def draw_ball(axes: Axes, t: float, colour: str) -> None:
    """The circle of B_t and its centre, with Q_t shaded."""
    centre, radius = ball(t)
    axes.add_patch(Circle(centre, radius, fill=False, color=colour, linewidth=1.6))
    axes.plot(*centre, "+", color=colour, markersize=11, markeredgewidth=2, zorder=4)
    axes.fill(*cap(t).T, facecolor=colour, alpha=0.28, linewidth=0)


def k_region() -> Figure:
    """The paper's figure BND-1."""
    figure, axes = canvas()
    draw_ball(axes, 0.0, RED)
    ball_law = r"$(\theta-\mathbf{1}/\lambda_2)^\top(\theta-\theta_1)\leq 0$"
    cut_law = r"$(\theta_1-\mathbf{1}/\lambda_1)^\top(\theta-\theta_1)\geq 0$"
    label(axes, 1.62, 1.68, ball_law, RED)
    label(axes, 2.28, 0.63, cut_law, BLUE)
    axes.text(1.72, 0.74, "$K$", fontsize=15)
    return figure


def balls() -> Figure:
    """The paper's figure BND-2."""
    figure, axes = canvas()
    draw_ball(axes, smallest_t, GREEN)
    draw_ball(axes, 0.0, RED)
    far = 2 * ball(smallest_t)[0] - theta1
    axes.plot(*np.column_stack([theta1, far]), color="black", linewidth=2)
    label(axes, 1.62, 2.28, "$B_0$ $(t=0)$", RED)
    label(axes, 1.55, 1.24, f"$B_t$ $(t={smallest_t:.2f})$", GREEN)
    axes.text(1.72, 0.72, "$Q_0$", fontsize=14)
    axes.text(1.55, 0.45, "$Q_t$", fontsize=14)
    return figure


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in {"k_region.png": k_region(), "balls.png": balls()}.items():
        figure.savefig(folder / name, dpi=90, pil_kwargs={"optimize": True})
