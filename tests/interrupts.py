"""Ctrl-C for tests: a real SIGINT in the middle of some work."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

needs_speed = pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""), reason="takes minutes with sanitizers"
)
EARLY, SOON = 0.1, 0.7  # parts of the work: when the signal comes, and by when it is to be over


def processor_time(work: Callable[[], Any]) -> float:
    """Seconds on all processors, which other programs beside do not lengthen."""
    start = time.process_time()
    work()
    return time.process_time() - start


@contextmanager
def heard() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt here, also where the tests were started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def check_interrupt(work: Callable[[], Any], whole: float) -> None:
    """Interrupted early, `work`, which takes `whole` seconds, is over long before its end."""

    def again_and_again() -> None:  # so that the signal comes before it ends, whatever happens
        for _ in range(10):
            work()

    def interrupted() -> None:
        timer = threading.Timer(EARLY * whole, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with heard(), pytest.raises(KeyboardInterrupt):
            again_and_again()
        timer.join()

    assert processor_time(interrupted) < SOON * whole
