"""What all operations share: the adapter, the checks before every call, and paging."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from itertools import count
from typing import TypeVar

from .. import arguments as check
from ..adapter import StorageAdapter
from ..capabilities import Capabilities, Capability
from ..cursors import encode_cursor
from ..errors import StorageError, StoreClosedError, UnsupportedCapabilityError, WrongLoopError
from ..filters import Condition, Operator
from ..models import Page
from ..records import MemoryRecord, MessageRecord, ResourceRecord, ThreadRecord

__all__ = ["Operations"]

Row = TypeVar("Row", ThreadRecord, MessageRecord, ResourceRecord, MemoryRecord)
Item = TypeVar("Item")


class Operations:
    """An open adapter, bound to the event loop and the process it was opened in."""

    def __init__(self, adapter: StorageAdapter) -> None:
        self._adapter = adapter
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._closing: asyncio.Future[None] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What this store's backend can do; fixed since it was opened."""
        return self._adapter.capabilities

    def _open_adapter(self) -> StorageAdapter:
        """The adapter, if it may be used here and now."""
        if self._closing is not None:
            raise StoreClosedError
        self._check_here()
        return self._adapter

    def _check_here(self) -> None:
        if os.getpid() != self._pid:
            raise WrongLoopError("this store was opened before the process forked")
        try:
            here = asyncio.get_running_loop()
        except RuntimeError as exc:
            raise WrongLoopError("this store is used without its event loop") from exc
        if here is not self._loop:
            raise WrongLoopError("this store belongs to another event loop")

    def _require(self, capability: Capability, operation: str) -> None:
        if not self.capabilities.has(capability):
            raise UnsupportedCapabilityError(capability.value, self._adapter.name, operation)

    def _require_operators(self, where: tuple[Condition, ...]) -> None:
        for condition in where:
            if condition.operator is not Operator.EQUAL:
                self._require(Capability.FILTER_OPERATORS, f"the filter {condition.operator.value}")


def limit_of(per_page: int | None) -> int | None:
    """How many rows to ask for: one more than a page, so that ``has_more`` is exact without a total."""
    return per_page + 1 if per_page else per_page


def page_of(
    rows: list[Row],
    item: Callable[[Row], Item],
    place: Callable[[Row], tuple[int | str, ...]],
    *,
    page: int,
    per_page: int | None,
    total: int | None,
    query: Callable[[], bytes],
) -> Page[Item]:
    """A page out of the rows that :func:`limit_of` asked for."""
    has_more = per_page is not None and len(rows) > per_page
    if has_more:
        rows = rows[:per_page]
    return Page(
        items=[item(row) for row in rows],
        page=page,
        per_page=per_page,
        has_more=has_more,
        next_cursor=encode_cursor(query(), place(rows[-1])) if has_more else None,
        total=total,
        matched_ids=frozenset([str(row.id) for row in rows]),
    )


async def pages(
    fetch: Callable[[str | None], Awaitable[Page[Item]]], per_page: object
) -> AsyncGenerator[Item, None]:
    """Every item of a query, page after page; *fetch* gets the cursor.

    Raises:
        StorageError: The adapter's pages go in a circle.
    """
    check.integer(per_page, "per_page", least=1, most=check.ROWS_MAX - 1)
    cursor: str | None = None
    kept: str | None = None
    for turn in count(1):
        page = await fetch(cursor)
        for item in page.items:
            yield item
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor == kept:
            raise StorageError("the adapter goes in a circle: a page ends where a page before it did")
        if turn & (turn - 1) == 0:  # a power of two: one cursor kept is enough to notice a circle of any size
            kept = cursor
