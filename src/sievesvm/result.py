"""What a path found: the models along a grid of lambda, each with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from . import inputs
from .certify import Certificate
from .columns import (
    ColumnSource,
    Floats,
    InMemoryColumns,
    Ints,
    Matrix,
    NotFiniteError,
    as_columns,
    as_matrix,
    feature_names,
)
from .problem import Problem, Sparse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SAME = 1e-12  # lambdas nearer than this, relatively, are the same but for rounding


class Step(NamedTuple):
    """What was found at one lambda."""

    lam: float
    support: Ints
    coef: Floats
    intercept: float
    certificate: Certificate
    n_iter: int
    passes: float
    seconds: float
    status: str


@dataclass(frozen=True, eq=False)
class SVMPath:
    """The models along a grid of lambda, each with its certificate.

    Attributes
    ----------
    lams : the lambdas, decreasing
    coefs : coefficients in the units of X, one column for each lambda (m x K, CSC)
    intercepts : intercepts
    primal, dual, gaps : P, D and the proved bound on P - P*, for each lambda
    n_active : number of nonzero coefficients
    n_kept : number of features that were looked at: in the working set, or by their product
    n_discarded, n_bounded : number of features settled by the rule, and by a bound
    n_iter : Newton steps
    passes : entries of X read so far, statistics included, in units of the matrix
    times : seconds
    status : "converged" or, with a gap above the tolerance, "max_iter" (the steps were used up) or
        "rounding" (no number of steps would make it smaller)
    ended : "finished", "max_active", "interrupted" or "trivial" (nothing can enter; no lambdas)
    feature_names : names of the columns, if X has any
    classes : the two labels; positive decisions stand for the second
    certificates : the certificates
    unpenalised : the columns with penalty factor 0 that have coefficients
    scale : by what `standardize` divided the columns; None without it

    The path refers to the data it was made of, for `alpha_at`, and keeps them in memory as long as
    it is there itself. Pickled (or copied) it leaves them behind.
    """

    lams: Floats
    coefs: sp.csc_array
    intercepts: Floats
    primal: Floats
    dual: Floats
    gaps: Floats
    n_active: Ints
    n_kept: Ints
    n_discarded: Ints
    n_bounded: Ints
    n_iter: Ints
    passes: Floats
    times: Floats
    status: list[str]
    ended: str
    feature_names: list[str] | None
    classes: npt.NDArray[Any]
    certificates: list[Certificate]
    unpenalised: Ints
    scale: Floats | None
    _problem: Problem | None = field(default=None, repr=False)

    @classmethod
    def of(cls, problem: Problem, steps: Sequence[Step], ended: str) -> SVMPath:
        rows = [step.support for step in steps]
        coefs = sp.csc_array(
            (
                np.concatenate([np.empty(0), *(step.coef for step in steps)]),
                np.concatenate([np.empty(0, dtype=np.int64), *rows]),
                np.cumsum([0, *(len(support) for support in rows)]),
            ),
            shape=(len(problem.v), len(steps)),
        )
        certificates = [step.certificate for step in steps]

        def each(values: Any, dtype: Any = np.float64) -> Any:
            return np.array(list(values), dtype=dtype)

        return cls(
            lams=each(step.lam for step in steps),
            coefs=coefs,
            intercepts=each(step.intercept for step in steps),
            primal=each(c.primal for c in certificates),
            dual=each(c.dual for c in certificates),
            gaps=each(c.gap for c in certificates),
            n_active=each((len(support) for support in rows), np.int64),
            n_kept=each((c.n_products for c in certificates), np.int64),
            n_discarded=each((c.n_discards for c in certificates), np.int64),
            n_bounded=each((c.n_bounds for c in certificates), np.int64),
            n_iter=each((step.n_iter for step in steps), np.int64),
            passes=each(step.passes for step in steps),
            times=each(step.seconds for step in steps),
            status=[step.status for step in steps],
            ended=ended,
            feature_names=problem.names,
            classes=problem.classes,
            certificates=certificates,
            unpenalised=problem.free,
            scale=problem.scale,
            _problem=problem,
        )

    def __repr__(self) -> str:
        m, count = self.coefs.shape
        if count == 0:
            return f"<SVMPath: no models of {m} features, {self.ended}>"
        wide = count - self.status.count("converged")
        parts = [
            f"{count} models" if count > 1 else "1 model",
            f"lambda {self.lams[0]:.3g}" + (f" to {self.lams[-1]:.3g}" if count > 1 else ""),
            f"{_range(self.n_active)} of {m} features active",
            f"worst relative gap {max(c.relative_gap for c in self.certificates):.1e}",
            *([f"{wide} not converged"] if wide else []),
            f"{self.passes[-1]:.1f} passes",
            f"{self.ended} in {self.times.sum():.2g} s",
        ]
        return f"<SVMPath: {', '.join(parts)}>"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_problem": None}

    def coef_at(self, lam: float) -> tuple[Floats, float]:
        """The coefficients, in the units of X, and the intercept at any lambda of the path's range.

        On the grid they are those of the model there. Between two models they lie on the straight
        line between them: the optimum is piecewise linear in lambda, so this is exact where no
        feature and no support vector comes or goes, and close elsewhere (`duality_gap` says how
        close). Above the grid they are those of the first model if it has no penalised feature,
        since then it is the model of every larger lambda.

        Raises
        ------
        ValueError
            If the path says nothing about lam.
        """
        k, part = self._place(inputs.positive_lam(lam))
        w = self._dense(k)
        if part == 0:
            return w, float(self.intercepts[k])
        w *= 1.0 - part
        w += part * self._dense(k + 1)
        return w, float((1.0 - part) * self.intercepts[k] + part * self.intercepts[k + 1])

    def alpha_at(self, lam: float) -> Floats:
        """The dual variables alpha = c xi of the model of `coef_at`, one for each row.

        They are 0 for rows that are no support vectors. X is read where a coefficient is not 0.
        """
        w, b = self.coef_at(lam)
        if self._problem is None:
            raise ValueError(
                "alpha_at needs the data, which a path leaves behind when it is pickled or copied. "
                "With w, b = path.coef_at(lam) it is sample_weight * max(0, 1 - y (X w + b))."
            )
        xi = self._problem.slacks(self._problem.scores(Sparse.of(w)), b)
        return xi if self._problem.c is None else self._problem.c * xi

    def _place(self, lam: float) -> tuple[int, float]:
        """The model at lam or the next above, and which part of the way to the one below it."""
        if len(self.lams) == 0:
            raise ValueError(f"The path has no models (it ended {self.ended!r}).")
        k = int(np.argmin(np.abs(self.lams - lam)))
        if abs(lam - self.lams[k]) <= _SAME * lam:
            return k, 0.0
        if lam < self.lams[-1]:
            raise ValueError(
                f"lam is {lam:g}, but the path goes down to {self.lams[-1]:g} only; make one that "
                "goes further (lams, eps)."
            )
        if lam > self.lams[0]:
            entered = np.setdiff1d(self.coefs[:, [0]].indices, self.unpenalised)
            if len(entered):
                raise ValueError(
                    f"lam is {lam:g}, but the path begins at {self.lams[0]:g}, with "
                    f"{len(entered)} features in the model; make one that begins higher (lams)."
                )
            return 0, 0.0
        k = int(np.searchsorted(-self.lams, -lam)) - 1
        return k, float((self.lams[k] - lam) / (self.lams[k] - self.lams[k + 1]))

    def _dense(self, k: int) -> Floats:
        return np.asarray(self.coefs[:, [k]].toarray()).ravel()

    def decision_function(self, X: Matrix) -> Floats:
        """X w + b for every lambda: one row for each row of X, one column for each lambda.

        X is whatever `svm_path` takes. Only columns with a coefficient are read.
        """
        indptr, data = self.coefs.indptr, self.coefs.data
        active = np.unique(self.coefs.indices).astype(np.int64)
        positions = np.searchsorted(active, self.coefs.indices)
        block = self._columns(X, active)
        decisions = np.tile(self.intercepts, (block.shape[0], 1))
        for k, (start, stop) in enumerate(pairwise(indptr)):
            if start < stop:
                decisions[:, k] += block.dot(data[start:stop], positions[start:stop])
        if not np.isfinite(decisions).all():
            self._name_missing(block, active)
        return decisions

    def predict(self, X: Matrix) -> npt.NDArray[Any]:
        """The class of every row for every lambda."""
        decisions = self.decision_function(X)
        if len(self.classes) == 1:
            return np.full(decisions.shape, self.classes[0])
        return self.classes[(decisions > 0).astype(np.intp)]

    def _columns(self, X: Matrix, active: Ints) -> InMemoryColumns:
        """Those columns of X, which is checked to be like the X of the path."""
        names, m = feature_names(X), self.coefs.shape[0]
        X = X if isinstance(X, ColumnSource) else as_matrix(X)
        if X.shape[1] != m:
            raise ValueError(f"X has {X.shape[1]} columns, but the path was trained on {m}.")
        for j, (name, known) in enumerate(zip(names or (), self.feature_names or (), strict=False)):
            if name != known:
                raise ValueError(
                    f"Column {j} of X is {name!r}, but in training it was {known!r}. Bring the "
                    "columns into the same order."
                )
        if isinstance(X, np.ndarray):
            return as_columns(X[:, active])  # type: ignore[return-value]
        return as_columns(X).take(active)

    def _name_missing(self, block: InMemoryColumns, active: Ints) -> None:
        try:
            block.stats()
        except NotFiniteError as error:
            j = int(active[error.column])
            name = None if self.feature_names is None else self.feature_names[j]
            raise NotFiniteError(error.row, j, name, error.value) from None

    def to_frame(self) -> Any:
        """A pandas DataFrame of the nonzero coefficients: lambda, feature, name, coefficient."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas") from None

        entries = self.coefs.tocoo()
        names = self.feature_names
        feature = entries.row
        return pd.DataFrame(
            {
                "lam": self.lams[entries.col],
                "feature": feature,
                "name": feature if names is None else [names[j] for j in feature],
                "coef": entries.data,
            }
        )

    def plot(
        self, ax: Axes | None = None, *, labels: int = 8, names: Sequence[str] | None = None
    ) -> Axes:
        """Draw every coefficient against lambda, the largest lambda at the left.

        Parameters
        ----------
        ax : matplotlib axes to draw on; None: those of a new figure
        labels : how many features are named, those with the largest coefficients at the end
        names : names of all features; by default those that X had, or numbers

        Returns
        -------
        matplotlib.axes.Axes
            With the number of features along the top. With `standardize` the coefficients are
            those of the standardised features, w_j times `scale`, and as such comparable.
        """
        try:
            from .plot import plot_path
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("matplotlib"):
                raise
            raise ImportError("plot needs matplotlib: pip install 'sievesvm[plot]'") from None
        names = self.feature_names if names is None else names
        m = self.coefs.shape[0]
        if names is not None and len(names) != m:
            raise ValueError(f"names has {len(names)} names, but the path has {m} features.")
        return plot_path(self, ax, labels, names)


def _range(counts: Ints) -> str:
    low, high = counts.min(), counts.max()
    return f"{low}" if low == high else f"{low} to {high}"
