"""The real data sets in the folder named by SIEVESVM_DATA, as (X, y) with labels -1 and +1.

Values are as they lie in the files, in their own number type. A folder may hold only some of them.
Run as a script (`make check-data`), compares what is loaded with the table in the folder's README.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """n, m, values that are not 0, rows of the positive class."""
        nonzeros = np.count_nonzero(self.X.data if sp.issparse(self.X) else self.X)
        return (*self.X.shape, int(nonzeros), int(np.sum(self.y > 0)))


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
            with bench_extra():
                X, positive = read(path)
            X = sp.csc_array(X) if sp.issparse(X) else np.asfortranarray(X)
            return DataSet(name, X, np.where(positive, 1.0, -1.0))
    raise ValueError(f"{where} has no data set {name!r}.")


@contextmanager
def bench_extra() -> Iterator[None]:
    """Says what to install where a package of the extra `bench` is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}: pip install 'sievesvm[bench]'.") from None


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
        return _filled(bed.read(dtype="int8")), np.asarray(bed.pheno) == "2"


def _filled(genotypes: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Counts of 0, 1, 2, a missing one (below 0) by the most frequent of its column."""
    columns = np.flatnonzero((genotypes < 0).any(axis=0))
    for j in columns:
        missing = genotypes[:, j] < 0
        counts = np.bincount(genotypes[~missing, j], minlength=1)
        genotypes[missing, j] = np.argmax(counts)
    return genotypes


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


# ---- against the README of the folder -----------------------------------------------------------


def published() -> dict[str, tuple[int, ...]]:
    """`counts` of every set by the table in README.md of the folder."""
    where = folder()
    if where is None or not (where / "README.md").is_file():
        sys.exit("Set SIEVESVM_DATA to the folder with the data sets and their README.md.")
    found = {}
    for line in (where / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = re.match(r"(\w+)\.(npz|svm\.bz2|bed|h5ad)", cells[0])
        numbers = [cell.replace(",", "") for cell in cells[1:5]]
        if name and all(number.isdigit() for number in numbers):
            found[name[1]] = tuple(map(int, numbers))
    return found


def main() -> int:
    expected, there = published(), names()
    wrong = [name for name in there if load(name).counts != expected.get(name)]
    for name in wrong:
        print(f"{name}: loaded {load(name).counts}, but README.md says {expected.get(name)}.")
    for name in sorted(expected.keys() - set(there)):
        print(f"{name}: in README.md, but not in the folder.")
    print(f"{len(there) - len(wrong)} of {len(there)} sets agree with README.md.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
