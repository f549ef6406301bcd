"""What a path found: the models along a grid of lambda, each with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .certify import Certificate
from .columns import Floats, Ints, Matrix
from .problem import Problem


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


@dataclass(frozen=True)
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
    status : "converged" or, with a gap above the tolerance, "max_iter"
    ended : "finished", "max_active", "interrupted" or "trivial" (nothing can enter; no lambdas)
    feature_names : names of the columns, if X has any
    classes : the two labels; positive decisions stand for the second
    certificates : the certificates
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
        )

    def decision_function(self, X: Matrix) -> Floats:
        """X w + b for every lambda: one row for each row of X, one column for each lambda."""
        return np.asarray(_matrix(X) @ self.coefs + self.intercepts)

    def predict(self, X: Matrix) -> npt.NDArray[Any]:
        """The class of every row for every lambda."""
        if len(self.classes) == 1:
            return np.full((_matrix(X).shape[0], len(self.lams)), self.classes[0])
        return self.classes[(self.decision_function(X) > 0).astype(np.intp)]

    def to_frame(self) -> Any:
        """A pandas DataFrame of the nonzero coefficients: lambda, feature, name, coefficient."""
        import pandas as pd

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


def _matrix(X: Matrix) -> Any:
    return X if sp.issparse(X) else np.asarray(X)
