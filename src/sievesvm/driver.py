"""Runs one path, or many side by side, against one source of columns.

A path is a generator that yields what it wants of the columns (`Correlate`, `Take`) and is sent the
answer. The driver gathers what all running paths want next and reads the columns once for all of
them: the union of the columns asked for, with the vectors of all side by side. Columns that were
taken, or that a path will ask for again, are kept, so that they are not read twice. No path sees
another, so each gets what it would get alone, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .columns import ColumnSource, Floats, InMemoryColumns, Ints

_MEMORY = 2**28  # bytes of vectors and products of one shared pass
_KEPT = 2**26  # entries of columns that are kept for further products


class Correlate(NamedTuple):
    """Ask for f_j'vector of the columns; answered by one number for each.

    `again` says that products with these columns will be asked for again.
    """

    vector: Floats
    columns: Ints
    again: bool = False


class Take(NamedTuple):
    """Ask for the columns themselves; answered by pieces in the order of the columns."""

    columns: Ints


class Piece(NamedTuple):
    """Some columns of a block in memory: `block[positions]`."""

    block: InMemoryColumns
    positions: Ints


Ask = Correlate | Take
Run = Generator[Ask, Any, None]


class InPlace:
    """The columns of a matrix in memory, used where they are; those kept count as read once."""

    def __init__(self, source: InMemoryColumns) -> None:
        self.source = source
        self.kept = np.zeros(source.shape[1], dtype=bool)

    def keep(self, columns: Ints) -> None:
        fresh = columns[~self.kept[columns]]
        self.source.entries_read += self.source.entries(fresh)
        self.kept[fresh] = True

    def pieces_of(self, columns: Ints) -> list[Piece]:
        return [Piece(self.source, columns)]

    def products(self, asks: Sequence[Correlate]) -> list[Floats]:
        wanted = _union([ask.columns for ask in asks])
        if any(ask.again for ask in asks):
            self.keep(wanted)
        else:
            self.source.entries_read += self.source.entries(wanted[~self.kept[wanted]])
        return [self.source.products(ask.vector, ask.columns) for ask in asks]


class Cache:
    """Columns from elsewhere that were read and are kept in memory."""

    def __init__(self, source: ColumnSource) -> None:
        self.source = source
        self.blocks: list[InMemoryColumns] = []
        self.columns = np.empty(0, dtype=np.int64)  # those kept, in order
        self.block_of = np.empty(0, dtype=np.int64)
        self.position_of = np.empty(0, dtype=np.int64)
        self.room = _KEPT

    def keep(self, columns: Ints) -> None:
        """Read those of the columns that are not here yet."""
        missing = columns[~self._here(columns)]
        if len(missing) == 0:
            return
        at = np.searchsorted(self.columns, missing)
        self.columns = np.insert(self.columns, at, missing)
        self.block_of = np.insert(self.block_of, at, len(self.blocks))
        self.position_of = np.insert(self.position_of, at, np.arange(len(missing)))
        self.blocks.append(self.source.take(missing))

    def pieces_of(self, columns: Ints) -> list[Piece]:
        """The columns, cut where neighbours lie in different blocks."""
        at = np.searchsorted(self.columns, columns)
        blocks, positions = self.block_of[at], self.position_of[at]
        cuts = np.flatnonzero(np.diff(blocks)) + 1
        parts = np.split(np.arange(len(columns)), cuts) if len(columns) else []
        return [Piece(self.blocks[blocks[part[0]]], positions[part]) for part in parts]

    def products(self, asks: Sequence[Correlate]) -> list[Floats]:
        """The answers; of columns that are not kept, what is read is read for all at once."""
        wanted = _union([ask.columns for ask in asks])
        if any(ask.again for ask in asks) and self._affords(wanted):
            self.keep(wanted)
        read = wanted[~self._here(wanted)]
        fresh = np.empty((0, len(asks)))
        if len(read):
            fresh = self.source.correlate(np.column_stack([ask.vector for ask in asks]), read)
        answers = []
        for place, ask in enumerate(asks):
            here = self._here(ask.columns)
            answer = np.empty(len(ask.columns))
            answer[~here] = fresh[np.searchsorted(read, ask.columns[~here]), place]
            answer[here] = self._products_here(ask.vector, ask.columns[here])
            answers.append(answer)
        return answers

    def _products_here(self, vector: Floats, columns: Ints) -> Floats:
        """The products with columns that are kept, block by block."""
        at = np.searchsorted(self.columns, columns)
        answer = np.empty(len(columns))
        for number in np.unique(self.block_of[at]):
            there = self.block_of[at] == number
            answer[there] = self.blocks[number].products(vector, self.position_of[at[there]])
        return answer

    def _affords(self, columns: Ints) -> bool:
        """Whether there is room for those of the columns that are not here yet."""
        size = self.source.entries(columns[~self._here(columns)])
        if size > self.room:
            return False
        self.room -= size
        return True

    def _here(self, columns: Ints) -> npt.NDArray[np.bool_]:
        if len(self.columns) == 0:
            return np.zeros(len(columns), dtype=bool)
        at = np.minimum(np.searchsorted(self.columns, columns), len(self.columns) - 1)
        return np.asarray(self.columns[at] == columns)


def drive(
    source: ColumnSource, runs: Sequence[Run], progress: Callable[[], None] | None = None
) -> None:
    """Run all to their end. Interrupted, it stops where it is; what the runs recorded stays."""
    cache = InPlace(source) if isinstance(source, InMemoryColumns) else Cache(source)
    asks: dict[int, Ask] = {}
    for number, run in enumerate(runs):
        _advance(asks, number, run, None)
    while asks:
        answers = _answer(cache, asks)
        for number, answer in answers.items():
            _advance(asks, number, runs[number], answer)
        if progress is not None:
            progress()


def _advance(asks: dict[int, Ask], number: int, run: Run, answer: Any) -> None:
    try:
        asks[number] = run.send(answer)
    except StopIteration:
        asks.pop(number, None)


def _answer(cache: InPlace | Cache, asks: dict[int, Ask]) -> dict[int, Any]:
    takes = {number: ask for number, ask in asks.items() if isinstance(ask, Take)}
    if takes:  # those who wait for a product go on waiting, so that passes stay shared
        cache.keep(_union([ask.columns for ask in takes.values()]))
        return {number: cache.pieces_of(ask.columns) for number, ask in takes.items()}
    answers: dict[int, Any] = {}
    waiting = {number: ask for number, ask in asks.items() if isinstance(ask, Correlate)}
    n, m = cache.source.shape
    together = max(1, _MEMORY // (8 * (n + m)))
    numbers = list(waiting)
    for first in range(0, len(numbers), together):
        group = numbers[first : first + together]
        answers |= zip(group, cache.products([waiting[k] for k in group]), strict=True)
    return answers


def _union(lists: Sequence[Ints]) -> Ints:
    return lists[0] if len(lists) == 1 else np.unique(np.concatenate(lists))
