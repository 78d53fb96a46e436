"""Times as integers, and the process-wide sequence that gives messages their order.

Inside threadkeep a time is an ``int``: microseconds since 1970-01-01 UTC. It is exact, every database
sorts it, and a cursor can carry it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

__all__ = ["MAX_US", "MIN_US", "Clock", "clock", "from_us", "to_us"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

MIN_US = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""The first microsecond of year 1."""
MAX_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""The last microsecond of year 9999."""


def to_us(moment: datetime) -> int:
    """Microseconds since the epoch of an aware datetime; it may lie outside ``MIN_US`` to ``MAX_US``.

    Raises:
        TypeError: It is naive.
    """
    return (moment - _EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """The UTC datetime of a count of microseconds within ``MIN_US`` to ``MAX_US``."""
    return _EPOCH + timedelta(0, 0, us)


class Clock:
    """Strictly rising microseconds, whatever the system clock does.

    One per process, shared by all stores, so that two stores never hand out the same ``seq``.
    """

    def __init__(self) -> None:
        self._last = 0
        self.unlock()

    def unlock(self) -> None:
        """Forget a lock that a thread of the parent process may have held when this one was forked."""
        self._lock = threading.Lock()

    def take(self, count: int = 1) -> int:
        """Reserve *count* consecutive values and return the first; never below the system clock."""
        with self._lock:
            first = max(time.time_ns() // 1000, self._last + 1)
            self._last = first + count - 1
            return first


clock = Clock()
"""The process's clock."""

if sys.platform != "win32":  # which has no fork
    os.register_at_fork(after_in_child=clock.unlock)
