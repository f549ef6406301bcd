"""The picture of a path: every coefficient against lambda. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import (
    FixedLocator,
    LogFormatterMathtext,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)
from matplotlib.transforms import Bbox
from scipy.optimize import isotonic_regression

from .columns import Floats, Ints

if TYPE_CHECKING:
    from .result import SVMPath

# Okabe and Ito's colours for every kind of sight, less the yellow, which is not seen in print; None
# is the colour of text. With the dashes beside them they repeat after 28 lines.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", None, "#e69f00", "#56b4e9")
_DASHES = ("-", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1.2)))
_GREY = "#8c8c8c"
_SIZE = (7.0, 4.6)  # inches
_COUNTS = 7  # numbers of features along the top
_LEADER, _GAP = 14.0, 3.0  # points from the axes to a name
_LINE = 1.25  # height of a name in units of its font
_LONGEST = 24  # characters of a name
_MANY = 500  # lines beyond which they are drawn as pixels in a vector format too


def plot_path(path: SVMPath, ax: Axes | None, labels: int, names: Sequence[str] | None) -> Axes:
    """Draw the path; see `SVMPath.plot`."""
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=_SIZE, layout="constrained")[1]
    ax.set_xlabel(r"$\lambda$ (log scale)")
    ax.set_ylabel("coefficient (raw)" if path.scale is None else "coefficient (standardised)")
    ax.set_title(_remarks(path), loc="left", fontsize="medium")
    if len(path.lams) == 0:
        ax.set(xticks=[], yticks=[])
        _note(ax, "The path is trivial: no models." if path.ended == "trivial" else "No models.")
        return ax
    ax.set_xscale("log")
    ax.axhline(0.0, color=_GREY, linewidth=0.8, zorder=1)
    active, values = _coefficients(path)
    leading = np.argsort(-np.abs(values[:, -1]), kind="stable")[: max(0, labels)]
    leading = leading[values[leading, -1] != 0]
    _draw_others(ax, path.lams, np.delete(values, leading, axis=0))
    called = [_name(names, int(active[row])) for row in leading]
    ends = _draw_leading(ax, path.lams, values[leading], called)
    if len(active) == 0:
        _note(ax, "No feature is in any model.")
    _set_view(ax, path.lams, values)
    _count_features(ax, path)
    labelling = EndLabels(ax, float(path.lams[-1]), ends)
    ax.add_artist(labelling)
    ax.set_axes_locator(labelling)
    return ax


def _remarks(path: SVMPath) -> str:
    """What a reader must know of a path that is not whole."""
    remarks = []
    if path.ended == "max_active":
        remarks.append(f"stopped by max_active after {len(path.lams)} models")
    elif path.ended == "interrupted":
        remarks.append(f"interrupted after {len(path.lams)} models")
    wide = sum(status != "converged" for status in path.status)
    if wide:
        remarks.append(f"{wide} of {len(path.lams)} models have a gap above the tolerance")
    return "; ".join(remarks)


def _note(ax: Axes, text: str) -> None:
    ax.text(0.5, 0.6, text, transform=ax.transAxes, ha="center")


def _coefficients(path: SVMPath) -> tuple[Ints, Floats]:
    """The features that are in some model, and their coefficients, one row for each."""
    active = np.unique(path.coefs.indices)
    values = sp.csr_array(path.coefs)[active].toarray()
    return active, values if path.scale is None else values * path.scale[active, None]


def _visible(values: Floats) -> Floats:
    """The coefficients with NaN where a line would run along zero."""
    shown = values != 0
    near = shown.copy()
    near[:, 1:] |= shown[:, :-1]
    near[:, :-1] |= shown[:, 1:]
    return np.where(near, values, np.nan)


def _draw_others(ax: Axes, lams: Floats, values: Floats) -> None:
    """Thin and grey, the fainter the more there are."""
    faint = max(0.25, min(1.0, 5.0 / np.sqrt(max(len(values), 1))))
    if len(lams) == 1:
        ax.plot(np.repeat(lams, len(values)), values[:, 0], ".", color=_GREY, alpha=faint)
        return
    lines = _visible(values)
    segments = np.stack([np.broadcast_to(lams, lines.shape), lines], axis=2)
    collection = LineCollection(
        list(segments),
        colors=_GREY,
        linewidths=0.6,
        alpha=faint,
        zorder=1.5,
        rasterized=len(values) > _MANY,
    )
    ax.add_collection(collection, autolim=False)


class End(NamedTuple):
    """Where a line ends, and what is written there."""

    name: str
    value: float
    colour: str


def _draw_leading(ax: Axes, lams: Floats, values: Floats, names: list[str]) -> list[End]:
    """Draw the lines, those that end side by side unlike each other; return their ends."""
    ends: dict[int, End] = {}
    for place, row in enumerate(np.argsort(-values[:, -1], kind="stable").tolist()):
        colour = _COLOURS[place % len(_COLOURS)] or rcParams["text.color"]
        ax.plot(
            lams,
            _visible(values[[row]])[0],
            color=colour,
            linestyle=_DASHES[place % len(_DASHES)],
            linewidth=1.6,
            marker="o" if len(lams) == 1 else "",
            zorder=2.5,
        )
        ends[row] = End(names[row], float(values[row, -1]), colour)
    return [ends[row] for row in range(len(names))]


def _name(names: Sequence[str] | None, j: int) -> str:
    name = f"feature {j}" if names is None else str(names[j])
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _set_view(ax: Axes, lams: Floats, values: Floats) -> None:
    """Limits and ticks: the largest lambda at the left."""
    ends = (lams[0], lams[-1]) if len(lams) > 1 else (1.5 * lams[0], lams[0] / 1.5)
    heights = (np.min(values, initial=0.0), np.max(values, initial=0.0))
    ax.set_xlim(*ends)
    ax.update_datalim(np.column_stack([ends, heights]))
    ax.autoscale_view(scalex=False)
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter("{x:.4g}")
    decades = np.log10(ends[0] / ends[1])
    if decades < 0.8:
        few = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
        ax.xaxis.set_major_locator(few if len(lams) > 1 else FixedLocator(lams.tolist()))
        ax.xaxis.set_minor_locator(NullLocator())
    elif decades < 4:
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2.6 else (1,)))
    else:
        ax.xaxis.set_major_formatter(LogFormatterMathtext())


def _count_features(ax: Axes, path: SVMPath) -> None:
    """The number of features along the top, at some of the models, evenly spaced."""
    logs = np.log(path.lams)
    wanted = np.linspace(logs[0], logs[-1], min(_COUNTS, len(logs)))
    at = np.unique(np.abs(logs[:, None] - wanted).argmin(axis=0))
    top = ax.secondary_xaxis("top")
    top.set_xticks(path.lams[at], labels=[str(count) for count in path.n_active[at]])
    top.xaxis.set_minor_locator(NullLocator())
    top.set_xlabel("features in the model")


class EndLabels(Artist):
    """Names to the right of the axes, each as near to the end of its line as the others allow.

    They are laid out when they are drawn, so that they fit whatever the size of the figure has
    become. As the locator of the axes it makes them give up the room that the names need.
    """

    def __init__(self, ax: Axes, lam: float, ends: list[End]) -> None:
        super().__init__()
        self.set_clip_on(False)
        self.ax, self.outer = ax, ax.get_axes_locator()
        self.lam, self.ends = lam, ends
        self.texts = [
            Text(0, 0, end.name, fontsize="small", va="center_baseline", parse_math=False)
            for end in ends
        ]
        for text in self.texts:
            text.set_figure(ax.figure)

    def __call__(self, ax: Any, renderer: Any) -> Bbox:
        """Return the place of the axes: what they were given, less the room for the names."""
        given = self.outer is None
        box = ax.get_position(original=True) if given else self.outer(ax, renderer)
        room = min(self._room(renderer) / ax.figure.bbox.width, 0.6 * box.width)
        return Bbox.from_extents(box.x0, box.y0, box.x1 - room, box.y1)

    def get_subplotspec(self) -> Any:
        """Return the place in the grid, which tight_layout asks the locator for."""
        return self.ax.get_subplotspec()

    def _room(self, renderer: Any) -> float:
        widths = [text.get_window_extent(renderer).width for text in self.texts]
        return max(widths) + (_LEADER + _GAP) * self._point() if widths else 0.0

    def _point(self) -> float:
        """A point in pixels."""
        return self.ax.figure.dpi / 72.0

    def _placed(self) -> Iterator[tuple[Text, Line2D]]:
        """The names at their places, with the lines that lead there; only as many as have room."""
        box, point = self.ax.bbox, self._point()
        height = _LINE * point * float(self.texts[0].get_fontsize()) if self.texts else np.inf
        fitting = range(min(len(self.ends), int(box.height // height)))
        rows = sorted(fitting, key=lambda k: self.ends[k].value)
        if not rows:
            return
        points = self.ax.transData.transform([(self.lam, self.ends[k].value) for k in rows])
        starts, x = np.clip(points[:, 1], box.y0, box.y1), min(points[0, 0], box.x1)
        places = _apart(starts, height, box.y0, box.y1)
        for k, start, place in zip(rows, starts, places, strict=True):
            end = box.x1 + _LEADER * point
            self.texts[k].set_position((end + _GAP * point, place))
            across = [x, box.x1 + 2 * point, end]
            line = Line2D(across, [start, start, place], color=self.ends[k].colour, linewidth=0.8)
            line.set_figure(self.figure)
            yield self.texts[k], line

    def draw(self, renderer: Any) -> None:
        for text, line in self._placed():
            line.draw(renderer)
            text.draw(renderer)
        self.stale = False

    def get_window_extent(self, renderer: Any = None) -> Bbox:
        boxes = [text.get_window_extent(renderer) for text, _ in self._placed()]
        return Bbox.union(boxes) if boxes else Bbox.null()


def _apart(places: Floats, distance: float, low: float, high: float) -> Floats:
    """The nearest places (least squares) in the same order, at least `distance` apart."""
    steps = distance * np.arange(len(places))
    moved: Floats = isotonic_regression(places - steps).x
    return np.clip(moved, low + 0.5 * distance, high - 0.5 * distance - steps[-1]) + steps
