"""Runs one path, or many side by side, against one source of columns.

A path is a generator that yields what it wants of the columns (`Correlate`, `Take`) and is sent the
answer. The driver gathers what all running paths want next and reads the columns once for all of
them: the union of the columns asked for, with the vectors of all side by side. No path sees
another, so each gets what it would get alone, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .columns import ColumnSource, Floats, InMemoryColumns, Ints

_MEMORY = 2**28  # bytes of vectors and products of one shared pass


class Correlate(NamedTuple):
    """Ask for f_j'vector of the columns (None: all); answered by one number for each."""

    vector: Floats
    columns: Ints | None


class Take(NamedTuple):
    """Ask for the columns themselves; answered by pieces in the order of the columns."""

    columns: Ints


class Piece(NamedTuple):
    """Some columns of a block in memory: `block[positions]`."""

    block: InMemoryColumns
    positions: Ints


Ask = Correlate | Take
Run = Generator[Ask, Any, None]


class Cache:
    """Columns that were taken, so that none is read twice."""

    def __init__(self, source: ColumnSource) -> None:
        self.source = source
        self.blocks: list[InMemoryColumns] = []
        self.block_of = np.full(source.shape[1], -1, dtype=np.int32)
        self.position_of = np.zeros(source.shape[1], dtype=np.int32)

    def fetch(self, columns: Ints) -> None:
        missing = columns[self.block_of[columns] < 0]
        if len(missing):
            self.block_of[missing] = len(self.blocks)
            self.position_of[missing] = np.arange(len(missing))
            self.blocks.append(self.source.take(missing))

    def pieces_of(self, columns: Ints) -> list[Piece]:
        """The columns, read if need be, cut where neighbours lie in different blocks."""
        self.fetch(columns)
        blocks = self.block_of[columns]
        cuts = np.flatnonzero(np.diff(blocks)) + 1
        parts = np.split(np.arange(len(columns)), cuts) if len(columns) else []
        return [
            Piece(self.blocks[blocks[part[0]]], self.position_of[columns[part]].astype(np.int64))
            for part in parts
        ]


def drive(
    source: ColumnSource, runs: Sequence[Run], progress: Callable[[], None] | None = None
) -> None:
    """Run all to their end. Interrupted, it stops where it is; what the runs recorded stays."""
    cache = Cache(source)
    asks: dict[int, Ask] = {}
    for number, run in enumerate(runs):
        _advance(asks, number, run, None)
    while asks:
        answers = _answer(source, cache, asks)
        for number, answer in answers.items():
            _advance(asks, number, runs[number], answer)
        if progress is not None:
            progress()


def _advance(asks: dict[int, Ask], number: int, run: Run, answer: Any) -> None:
    try:
        asks[number] = run.send(answer)
    except StopIteration:
        asks.pop(number, None)


def _answer(source: ColumnSource, cache: Cache, asks: dict[int, Ask]) -> dict[int, Any]:
    takes = {number: ask for number, ask in asks.items() if isinstance(ask, Take)}
    if takes:  # those who wait for a product go on waiting, so that passes stay shared
        cache.fetch(_union([ask.columns for ask in takes.values()]))
        return {number: cache.pieces_of(ask.columns) for number, ask in takes.items()}
    answers: dict[int, Any] = {}
    waiting = {number: ask for number, ask in asks.items() if isinstance(ask, Correlate)}
    m = source.shape[1]
    together = max(1, _MEMORY // (8 * (source.shape[0] + m)))
    numbers = list(waiting)
    for first in range(0, len(numbers), together):
        group = numbers[first : first + together]
        everything = any(waiting[k].columns is None for k in group)
        columns = None if everything else _union([waiting[k].columns for k in group])
        products = source.correlate(np.column_stack([waiting[k].vector for k in group]), columns)
        for place, k in enumerate(group):
            wanted = waiting[k].columns
            rows = wanted if columns is None or wanted is None else np.searchsorted(columns, wanted)
            column = products[:, place]
            answers[k] = column if rows is None else column[rows]
    return answers


def _union(lists: Sequence[Ints | None]) -> Ints:
    asked = [columns for columns in lists if columns is not None]
    return asked[0] if len(asked) == 1 else np.unique(np.concatenate(asked))
