"""Things to store: hostile strings, extreme numbers, tied messages; and ways to look at what is stored."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from threadkeep import ArchiveMemory, Message, NewMessage, Page, Resource, Store, Thread

__all__ = [
    "HOSTILE",
    "NOON",
    "NUMBERS",
    "ONE_MICROSECOND",
    "Contents",
    "add",
    "at",
    "changed_at",
    "contents_of",
    "count_of",
    "exactly",
    "filled_thread",
    "ids",
    "line_of",
    "pages",
    "raised",
    "same_json",
    "tied_threads",
    "unchanged",
    "walk_messages",
    "walk_threads",
]

Item = TypeVar("Item")

_PAGES_MAX = 1000  # no case has half as many

NOON = datetime(2024, 2, 29, 12, 0, 0, 123456, UTC)
ONE_MICROSECOND = timedelta(microseconds=1)

HOSTILE = (
    "x') OR '1'='1",
    "'; DROP TABLE threadkeep_message; --",
    '"quoted" \\ back\\\\slash',
    "%",
    "100%_done",
    "${jndi:x}",
    "{}",
    "{{ 7*7 }}",
    "$ne",
    "a.b.c",
    "$where: 1",
    "@x:{*}",
    "]|(*)",
    "--",
    "/* */",
    ":name ?1 %s %(name)s {0}",
    " leading and trailing ",
    "tab\tnewline\nreturn\r\x01\x1f\x7f",
    "null",
    "true",
    "1",
    "1e3",
    "2024_123",
    "\ufeffbyte order mark",
    "z\u0308 \u00e9 e\u0301 \ufb01",
    "\u0130stanbul stra\u00dfe \u03a3\u03c3\u03c2",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f1e8\U0001f1ed",
    "\u202e right to left \u05e9\u05dc\u05d5\u05dd",
    "\uffff\ufffd\U0010ffff",
    "\ue000 private \U000f0000",
)
"""Legal strings that have broken stores: each must come back as it was, and match only itself."""

NUMBERS = (
    0,
    -0.0,
    1,
    -1,
    1.5,
    0.1,
    5e-324,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    1e16,
    -1e16,
    1e22,
    123456789.123456789,
    2**53 - 1,
    2**53,
    2**53 + 1,
    float(2**53),
    -(2**53) - 1,
    2**63 - 1,
    2**63 - 2,
    -(2**63),
    float(-(2**63)),
    9007199254740993,
)
"""Legal numbers of metadata that have been rounded or changed in kind."""


def at(seconds: float) -> datetime:
    """A time so many seconds after noon of a leap day."""
    return NOON + timedelta(seconds=seconds)


def ids(page: Page[Message] | Page[Thread] | Iterable[Message | Thread]) -> list[str]:
    """The ids of a page or a list, in its order."""
    items: Iterable[Message | Thread] = page.items if isinstance(page, Page) else page
    return [item.id for item in items]


async def add(store: Store, thread_id: str, *names: str, **fields: Any) -> list[Message]:
    """Save one message for each name, in one batch; *fields* are those of ``NewMessage``."""
    return await store.save_messages(
        [NewMessage(thread_id, "user", f"text of {n}", id=n, **fields) for n in names]
    )


async def filled_thread(
    store: Store, count: int, *, thread_id: str = "thread-1", resource_id: str = "user-1", tied: bool = False
) -> list[str]:
    """A thread of so many messages, a second apart or all at one time, and their ids in order.

    Names fall while times rise, so an order by id alone is wrong.
    """
    await store.ensure_thread(resource_id, thread_id=thread_id)
    names = [f"{thread_id}-m{count - index:04}" for index in range(count)]
    await store.save_messages(
        [
            NewMessage(
                thread_id,
                "user" if index % 2 == 0 else "assistant",
                {"text": f"message {index}"},
                id=name,
                metadata={"index": index, "even": index % 2 == 0},
                created_at=NOON if tied else at(index),
            )
            for index, name in enumerate(names)
        ]
    )
    return names


async def tied_threads(store: Store, count: int) -> list[str]:
    """So many threads of one resource at one time, and their ids in order."""
    names = [f"t{index:03}" for index in range(count)]
    for name in reversed(names):
        await store.create_thread("user-1", thread_id=name, metadata={"k": 1}, created_at=NOON)
    return names


async def count_of(store: Store, thread_id: str = "t") -> int:
    """The thread's message_count."""
    thread = await store.get_thread(thread_id)
    assert thread is not None
    return thread.message_count


async def changed_at(store: Store, thread_id: str = "t") -> datetime:
    """The thread's updated_at."""
    thread = await store.get_thread(thread_id)
    assert thread is not None
    return thread.updated_at


async def pages(
    method: Callable[..., Awaitable[Page[Item]]], *args: Any, cursor: str | None = None, **query: Any
) -> AsyncGenerator[Page[Item], None]:
    """The pages of a cursor walk, from a cursor on; a walk that does not end fails.

    No time limit would end it: a store in memory never lets the event loop take its turn.
    """
    seen: set[str] = set()
    while True:
        page = await method(*args, cursor=cursor, **query)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
        assert cursor not in seen, "a page ends with the cursor of a page before it: the walk never ends"
        seen.add(cursor)
        assert len(seen) < _PAGES_MAX, f"after {_PAGES_MAX} pages the walk has not ended"


async def walk_messages(store: Store, threads: str | Sequence[str] | None, **query: Any) -> list[str]:
    """The ids of a whole cursor walk, in the order they came."""
    return [name async for page in pages(store.list_messages, threads, **query) for name in ids(page)]


async def walk_threads(store: Store, **query: Any) -> list[str]:
    """The ids of a cursor walk over threads, in the order they came."""
    return [name async for page in pages(store.list_threads, **query) for name in ids(page)]


def same_json(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal in value and kind: 1 is not 1.0 and not True, 0.0 is not -0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same_json(left[key], right[key]) for key in left)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  (JSON)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same_json, left, right))  # pyright: ignore[reportUnknownArgumentType]  (JSON)
    if isinstance(left, float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return bool(left == right)


def exactly(stored: Any, expected: Any) -> None:
    """Assert that a JSON value came back equal in value and kind."""
    assert same_json(stored, expected), f"stored {stored!r}, expected {expected!r}"


class Contents(NamedTuple):
    """All that a store holds."""

    threads: list[Thread]
    messages: list[Message]
    resources: list[Resource]
    memories: list[ArchiveMemory]


async def contents_of(store: Store) -> Contents:
    """All that a store holds, times included, for up to 100 threads."""
    threads = (await store.list_threads(order="asc", per_page=None)).items
    messages = (await store.list_messages([thread.id for thread in threads], per_page=None)).items
    return Contents(
        threads,
        messages,
        (await store.list_resources(per_page=None)).items,
        (await store.list_memories(per_page=None)).items,
    )


@asynccontextmanager
async def unchanged(store: Store) -> AsyncGenerator[None]:
    """Assert that the ``async with`` block leaves everything as it was, times included."""
    before = await contents_of(store)
    yield
    assert await contents_of(store) == before


async def raised(kind: type[Exception], call: Callable[[Store], Awaitable[object]], store: Store) -> bool:
    """Whether a call raises an error of this kind; any other error is raised."""
    try:
        await call(store)
    except kind:
        return True
    return False


def line_of(call: Callable[[Store], Awaitable[object]]) -> int:
    """The line that a lambda stands on, to name it in a failure."""
    return call.__code__.co_firstlineno
