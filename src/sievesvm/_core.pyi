from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CHUNK: int
LANES: int
SPARSE_LANES: int
FEW: int

class StatsTask:
    def __init__(
        self,
        e: Floats | None,
        Q: Floats,
        products: Floats,
        *,
        centred: bool,
        n_products: int,
        mean: Floats,
        norm1: Floats,
        norm2: Floats,
        gamma: Floats,
        deviation: Floats,
        nonzeros: Ints,
        extra: Floats,
    ) -> None: ...

class Columns:
    @staticmethod
    def dense(X: npt.NDArray[Any]) -> Columns: ...
    @staticmethod
    def csc(
        data: npt.NDArray[Any],
        indices: npt.NDArray[Any],
        indptr: npt.NDArray[Any],
        n: int,
        m: int,
    ) -> Columns: ...
    def order_fault(self) -> Literal["none", "unsorted", "outside"]: ...
    def correlate(self, V: Floats, columns: Ints | None, out: Floats, threads: int) -> None: ...
    def combine(self, w: Floats, columns: Ints, out: Floats) -> None: ...
    def stats(self, tasks: list[StatsTask], threads: int) -> tuple[int, int, float]: ...
    def entries(self, columns: Ints | None) -> int: ...

class Features:
    def __init__(self, m: Floats, zeta: Floats, gamma: Floats, norm2: Floats) -> None: ...

def region_bounds(
    region: Floats, features: Features, extra: Floats | None, out: Floats
) -> None: ...
def last_discard(
    regions: Floats, features: Features, extra: Floats | None, v: Floats, out: Ints
) -> None: ...
def reference_bounds(reference: Floats, features: Features, norm1: Floats, out: Floats) -> None: ...
def feasible_scale(
    features: Features, v: Floats, *, e_zeta: float, e_gamma: float, off: float
) -> tuple[float, int]: ...
def minimise_on_line(r: Floats, a: Floats, c: Floats | None, start: float) -> float: ...
def dot(a: Floats, b: Floats) -> float: ...
def instruction_sets() -> list[str]: ...
def use_instruction_set(name: str) -> None: ...
