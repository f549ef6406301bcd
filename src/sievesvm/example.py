"""The small real data set that ships with the package."""

from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Example(NamedTuple):
    """Rows are people, columns are proteins."""

    X: npt.NDArray[np.float32]  # n x m, log2 intensities, columns contiguous
    y: npt.NDArray[np.int64]  # +1: liver disease, -1: none
    names: list[str]  # of the columns
    group: npt.NDArray[np.str_]  # of the rows: healthy, T2D, NAFLD, NAFLD+T2D, cirrhosis


def load_example() -> Example:
    """Plasma proteomes of 48 people, 650 proteins each; the label is liver disease.

    From package `alphastats` 0.7.2 (Mann Labs), Apache License 2.0, copyright 2020 MannLabs.
    Study: Niu et al., Molecular Systems Biology 15(3), e8793 (2019), doi:10.15252/msb.20188793.
    `data/README.md` says what was done to the original; `tools/make_example.py` does it.
    """
    data = files(__package__) / "data" / "liver_plasma.npz"
    with data.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return Example(
            X=arrays["X"],
            y=arrays["y"].astype(np.int64),
            names=arrays["names"].tolist(),
            group=arrays["group"],
        )
