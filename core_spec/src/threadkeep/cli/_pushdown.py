"""The tour's comparison: a filter that the database evaluates, and the same filter in Python."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable

from ..models import NewMessage
from ..store import Store

__all__ = ["compare"]

_THREAD, _RESOURCE = "tour-pushdown", "tour-shop"
_MESSAGES, _EVERY = 5000, 500
_ROUNDS = 5


async def compare(store: Store) -> list[tuple[str, str, str]]:
    """Find ten messages among 5,000 both ways, five interleaved rounds each.

    Returns:
        Rows of a table: the way, the median time, the rows that reached the program. The thread is gone.
    """
    await store.ensure_thread(_RESOURCE, thread_id=_THREAD, title="pushdown")
    try:
        for start in range(0, _MESSAGES, 1000):
            await store.save_messages([_message(i) for i in range(start, start + 1000)])
        ways = (("filtered by the database", _in_database), ("filtered in Python", _in_python))
        took_ms: dict[str, list[float]] = {name: [] for name, _ in ways}
        rows: dict[str, int] = {}
        for _ in range(_ROUNDS):
            for name, way in ways:
                took, rows[name] = await _timed(store, way)
                took_ms[name].append(took)
    finally:
        await store.delete_thread(_THREAD)
    return [(name, f"{statistics.median(took_ms[name]):.2f} ms", f"{rows[name]:,}") for name, _ in ways]


def _message(index: int) -> NewMessage:
    metadata = {"found": index % _EVERY == 0, "index": index}
    return NewMessage(_THREAD, "user", f"message {index}", id=f"{_THREAD}/{index}", metadata=metadata)


async def _timed(store: Store, way: Callable[[Store], Awaitable[int]]) -> tuple[float, int]:
    started = time.perf_counter()
    rows = await way(store)
    return (time.perf_counter() - started) * 1000, rows


async def _in_database(store: Store) -> int:
    page = await store.list_messages(_THREAD, where={"found": True}, per_page=20)
    return len(page.items)


async def _in_python(store: Store) -> int:
    page = await store.list_messages(_THREAD, per_page=None)
    found = [message for message in page.items if message.metadata.get("found") is True]
    return len(page.items) if found else 0
