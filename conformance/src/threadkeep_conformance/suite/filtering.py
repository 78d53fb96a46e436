"""What the cases about filters have in common: values to store, and what a filter finds of them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from threadkeep import (
    NewMessage,
    Store,
)

from .samples import at, ids

__all__ = ["ABSENT", "MIXED", "matching", "number", "values_stored"]

ABSENT = object()
MIXED: tuple[Any, ...] = (
    ABSENT, None, False, True, 0, 1, 1.5, -1, "", "0", "1", "1.0", "true", "null", "None",
    [], [1], [None], {}, {"x": 1},
)  # fmt: skip
"""One value of every kind that some database confuses with another."""


async def values_stored(store: Store, values: tuple[Any, ...], key: str = "k") -> None:
    """One message and one thread for each value, named by its index, without the key for ABSENT."""
    await store.create_thread("user-1", thread_id="t")
    rows: list[dict[str, Any]] = [{} if value is ABSENT else {key: value} for value in values]
    await store.save_messages(
        [NewMessage("t", "user", 0, id=f"{i}", metadata=row) for i, row in enumerate(rows)]
    )
    for index, row in enumerate(rows):
        await store.create_thread("user-2", thread_id=f"{index}", metadata=row, created_at=at(index))


async def matching(store: Store, where: Mapping[str, Any]) -> set[int]:
    """The indexes of the values that a filter finds: the same among messages and threads."""
    messages = await store.list_messages("t", where=where, per_page=None, with_total=True)
    threads = await store.list_threads(resource_id="user-2", where=where, per_page=None, with_total=True)
    found = {int(name) for name in ids(messages)}
    assert found == {int(name) for name in ids(threads)}
    assert messages.total == threads.total == len(found)
    return found


def number(value: Any) -> Fraction | None:
    """The exact value of a number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return Fraction(value)
