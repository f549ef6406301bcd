"""The real data sets in the folder named by SIEVESVM_DATA, as (X, y) with labels -1 and +1.

Values are as they lie in the files, in their own number type. A folder may hold only some of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Labels = npt.NDArray[np.float64]


class DataSet(NamedTuple):
    name: str
    X: Any  # Fortran-ordered array, or CSC
    y: Labels

    @property
    def values(self) -> int:
        """Stored values: all of a dense matrix, the nonzeros of a sparse one."""
        return int(self.X.nnz if sp.issparse(self.X) else self.X.size)


def folder() -> Path | None:
    name = os.environ.get("SIEVESVM_DATA")
    return Path(name) if name else None


def names() -> list[str]:
    """The sets that are there, in alphabetical order."""
    where = folder()
    if where is None or not where.is_dir():
        return []
    found = [path.name for path in where.iterdir()]
    known = [name.removesuffix(end) for name in found for end in READERS if name.endswith(end)]
    return sorted(known)


def load(name: str) -> DataSet:
    where = folder()
    if where is None:
        raise ValueError("SIEVESVM_DATA does not name a folder.")
    for end, read in READERS.items():
        path = where / (name + end)
        if path.is_file():
            X, positive = read(path)
            X = sp.csc_array(X) if sp.issparse(X) else np.asfortranarray(X)
            return DataSet(name, X, np.where(positive, 1.0, -1.0))
    raise ValueError(f"{where} has no data set {name!r}.")


def _npz(path: Path) -> tuple[Any, Any]:
    z = np.load(path)
    if "X" in z:
        return z["X"], z["y"] > 0
    matrix = (z["data"], z["indices"], z["indptr"])
    return sp.csc_array(matrix, shape=tuple(z["shape"])), z["y"] > 0


def _svmlight(path: Path) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(path))
    classes = np.unique(y)
    if len(classes) > 2:  # the 20 newsgroups
        return X, y <= 10
    return X, y == (1 if path.name.startswith("mushrooms") else classes[-1])


def _plink(path: Path) -> tuple[Any, Any]:
    from bed_reader import open_bed

    with open_bed(path) as bed:
        return bed.read(dtype="int8"), np.asarray(bed.pheno) == "2"


def _h5ad(path: Path) -> tuple[Any, Any]:
    import h5py

    column, wanted = _OBSERVED[path.name.removesuffix(".h5ad")]
    with h5py.File(path) as file:
        X, obs = file["X"], file["obs"]
        if isinstance(X, h5py.Dataset):
            values = X[:]
        else:
            kind = {"csr_matrix": sp.csr_array, "csc_matrix": sp.csc_array}
            arrays = tuple(X[part][:] for part in ("data", "indices", "indptr"))
            values = kind[X.attrs["encoding-type"]](arrays, shape=tuple(X.attrs["shape"]))
        return values, _is_category(obs, column, wanted)


_OBSERVED = {"pbmc68k_reduced": ("bulk_labels", "Dendritic"), "chung_breast_sc": ("tcr", "yes")}


def _is_category(obs: Any, column: str, wanted: str) -> Any:
    """Where a categorical column of obs, in either of the two layouts, has the wanted value."""
    if column in obs and "codes" in obs[column]:
        categories, codes = obs[column]["categories"][:], obs[column]["codes"][:]
    else:
        categories, codes = obs["__categories"][column][:], obs[column][:]
    return codes == [c.decode() for c in categories].index(wanted)


READERS: dict[str, Callable[[Path], tuple[Any, Any]]] = {
    ".npz": _npz,
    ".svm.bz2": _svmlight,
    ".bed": _plink,
    ".h5ad": _h5ad,
}
