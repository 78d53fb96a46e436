"""Cursor walks while others insert, backdate, update, move and delete."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from threadkeep import Actor, ArchiveMemory, MessageUpdate, NewMessage, Resource, Store, Thread

from ..cases import case
from ..databases import Database
from ..plans import Ask, Plan, act, ask
from ..races import Racers, is_one_process, race_stores
from .racing import RacingSuite
from .samples import at, pages

__all__ = ["TestWalks"]

_KEPT = 40  # rows that nobody touches
_CHANGING = 20  # rows that are changed all the time, among them
_PER_PAGE = 7
_CHANGES = 120
_ACTOR = Actor("user", "user-1")


class Walk(NamedTuple):
    """What is walked.

    Attributes:
        method: The list's method.
        query: Its arguments, but for page size and cursor.
        place: An item's sort key with its id, rising along the walk.
        kept: The places of the items that must come exactly once, by id.
        change: Draws a change of something else.
    """

    method: str
    query: dict[str, Any]
    place: Callable[[Any], tuple[Any, ...]]
    kept: dict[Any, tuple[Any, ...]]
    change: Callable[[random.Random], Ask]

    def check(self, found: Sequence[Any]) -> None:
        """Assert that what a walk found is what it promises."""
        places = [self.place(item) for item in found]
        again = [place for index, place in enumerate(places) if index and not places[index - 1] < place]
        assert again == [], "a walk went back, or found one row twice with one sort key"
        ours = {item.id: self.place(item) for item in found if item.id in self.kept}
        assert ours == self.kept, "rows that nobody touched were left out, or their sort key changed"


class TestWalks(RacingSuite):
    """A walk finds every untouched row exactly once, and any other at most once for each sort key it had."""

    @case("concurrency.walk.messages", "5.1.walk")
    async def test_a_walk_of_messages(self, database: Database, racers: Racers, rng: random.Random) -> None:
        """A walk of a thread's messages, either way, among messages that come, go and are backdated."""
        for order in ("asc", "desc"):
            query = {"threads": "thread-1", "order": order}
            await self._walk_both(database, racers, rng, await _messages(database, query))

    @case("concurrency.walk.moved_messages", "5.1.walk", "3.update_messages")
    async def test_a_walk_of_moved_messages(
        self, database: Database, racers: Racers, rng: random.Random
    ) -> None:
        """A walk of two threads, or of their owner, finds a message once that is moved between them."""
        for scope in ({"threads": ["thread-1", "thread-2"]}, {"resource_id": "user-1"}):
            await self._walk_both(
                database, racers, rng, await _messages(database, {**scope, "order": "asc"}, move=True)
            )

    @case("concurrency.walk.filtered_messages", "5.1.walk", "5.4.first")
    async def test_a_walk_of_filtered_messages(
        self, database: Database, racers: Racers, rng: random.Random
    ) -> None:
        """A filtered walk of messages, among others that begin and cease to match."""
        query = {"threads": "thread-1", "order": "desc", "where": {"match": True}}
        await self._walk_both(database, racers, rng, await _messages(database, query))

    @case("concurrency.walk.threads_by_creation", "5.1.walk")
    async def test_a_walk_of_threads_by_creation(
        self, database: Database, racers: Racers, rng: random.Random
    ) -> None:
        """A walk of threads by created_at, either way, among threads that come, go and are backdated."""
        for order in ("asc", "desc"):
            query = {"order_by": "created_at", "order": order}
            await self._walk_both(database, racers, rng, await _threads(database, query))

    @case("concurrency.walk.threads_by_change", "5.1.walk", "4.5.touch")
    async def test_a_walk_of_threads_by_change(
        self, database: Database, racers: Racers, rng: random.Random
    ) -> None:
        """A walk of threads by updated_at, either way, among threads that are touched all the time."""
        for order in ("asc", "desc"):
            query = {"resource_id": "user-1", "order_by": "updated_at", "order": order}
            await self._walk_both(database, racers, rng, await _threads(database, query))

    @case("concurrency.walk.filtered_threads", "5.1.walk", "5.4.first")
    async def test_a_walk_of_filtered_threads(
        self, database: Database, racers: Racers, rng: random.Random
    ) -> None:
        """A filtered walk of threads by updated_at, among others that are touched, and cease to match."""
        query = {"where": {"match": True}, "order_by": "updated_at", "order": "desc"}
        await self._walk_both(database, racers, rng, await _threads(database, query))

    @case("concurrency.walk.resources", "5.1.walk")
    async def test_a_walk_of_resources(self, database: Database, racers: Racers, rng: random.Random) -> None:
        """A walk of resources, among resources that come and go."""
        await self._walk_both(database, racers, rng, await _resources(database))

    @case("concurrency.walk.memories", "5.1.walk")
    async def test_a_walk_of_memories(self, database: Database, racers: Racers, rng: random.Random) -> None:
        """A walk of archive memories, among memories that come, go and are backdated."""
        await self._walk_both(database, racers, rng, await _memories(database))

    async def _walk_both(self, database: Database, racers: Racers, rng: random.Random, walk: Walk) -> None:
        """Walk with changes after each page, then beside a process (or a store) that goes on changing."""
        store, other = await database.open(), await database.open()
        for _ in range(3):
            walk.check(await _walked(store, walk, lambda: act(other, walk.change(rng))))
        plan = Plan([[walk.change(rng) for _ in range(_CHANGES)]])
        here = is_one_process(database)
        changing = asyncio.create_task(
            race_stores([other], [plan]) if here else racers.race(database.url, [plan])
        )
        while not changing.done():
            walk.check(await _walked(store, walk, lambda: asyncio.sleep(0)))
        await changing


async def _walked(store: Store, walk: Walk, between: Callable[[], Any]) -> list[Any]:
    found: list[Any] = []
    async for page in pages(getattr(store, walk.method), **walk.query, per_page=_PER_PAGE):
        found += page.items
        if page.has_more:
            for _ in range(3):
                await between()
    return found


def _signed(moment: datetime, query: dict[str, Any]) -> float:
    """A time that rises along the walk."""
    seconds = (moment - at(0)).total_seconds()
    return -seconds if query["order"] == "desc" else seconds


async def _messages(database: Database, query: dict[str, Any], *, move: bool = False) -> Walk:
    """Messages a second apart; with *move*, kept ones go from thread to thread but not in time."""
    store = await database.open()
    for name in ("thread-1", "thread-2"):
        await store.delete_thread(name)
        await store.create_thread("user-1", thread_id=name)

    def new(name: str, second: float) -> NewMessage:
        metadata = {"match": True}
        return NewMessage("thread-1", "user", "text", id=name, metadata=metadata, created_at=at(second))

    kept = await store.save_messages([new(f"kept-{index}", index // 3) for index in range(_KEPT)])
    await store.save_messages([new(f"changing-{index}", index) for index in range(_CHANGING)])
    sign = -1 if query["order"] == "desc" else 1

    def place(item: Any) -> tuple[Any, ...]:
        return (_signed(item.created_at, query), sign * item.seq, item.id)

    def change(rng: random.Random) -> Ask:
        name = f"changing-{rng.randrange(_CHANGING)}"
        if move and rng.random() < 0.5:
            moved = MessageUpdate(f"kept-{rng.randrange(_KEPT)}", thread_id=f"thread-{rng.choice((1, 2))}")
            return ask("update_messages", [moved])
        updated = MessageUpdate(name, role="tool", metadata={"match": rng.random() < 0.5})
        return rng.choice(
            (
                ask("save_messages", [new(name, rng.uniform(-2, _CHANGING))]),
                ask("save_messages", [new(name, rng.randrange(_CHANGING))]),
                ask("update_messages", [updated]),
                ask("delete_messages", name),
            )
        )

    return Walk("list_messages", query, place, {row.id: place(row) for row in kept}, change)


async def _threads(database: Database, query: dict[str, Any]) -> Walk:
    store = await database.open()

    def thread(name: str, second: float) -> Thread:
        moment, metadata = at(second), {"match": True}
        return Thread(id=name, resource_id="user-1", metadata=metadata, created_at=moment, updated_at=moment)

    kept = [await store.save_thread(thread(f"kept-{index:02}", index // 3)) for index in range(_KEPT)]
    for index in range(_CHANGING):
        await store.save_thread(thread(f"changing-{index:02}", index))

    def place(item: Any) -> tuple[Any, ...]:
        # Ids fall where times do.
        name = tuple(-ord(letter) for letter in item.id) if query["order"] == "desc" else item.id
        return (_signed(getattr(item, query["order_by"]), query), name)

    def change(rng: random.Random) -> Ask:
        name = f"changing-{rng.randrange(_CHANGING):02}"
        return rng.choice(
            (
                ask("save_thread", thread(name, rng.uniform(-2, _CHANGING))),
                ask("save_thread", thread(name, rng.randrange(_CHANGING))),
                ask("update_thread", name, title="changed", metadata={"match": rng.random() < 0.5}),
                ask("save_messages", [NewMessage(name, "user", "text")]),
                ask("clear_thread", name),
                ask("delete_thread", name),
            )
        )

    return Walk("list_threads", query, place, {row.id: place(row) for row in kept}, change)


async def _resources(database: Database) -> Walk:
    store = await database.open()

    def resource(name: str) -> Resource:
        return Resource(id=name, created_at=at(0), updated_at=at(0))

    kept = [await store.save_resource(resource(f"{index:02}-kept")) for index in range(_KEPT)]

    def place(item: Any) -> tuple[Any, ...]:
        return (item.id,)

    def change(rng: random.Random) -> Ask:
        name = f"{rng.randrange(_KEPT):02}-changing"
        return rng.choice(
            (
                ask("save_resource", resource(name)),
                ask("update_resource", name, metadata={"n": rng.randrange(9)}),
                ask("delete_resource", name),
            )
        )

    return Walk("list_resources", {}, place, {row.id: place(row) for row in kept}, change)


async def _memories(database: Database) -> Walk:
    store = await database.open()

    def memory(identifier: int, second: float) -> ArchiveMemory:
        return ArchiveMemory(
            id=identifier, content="fact", actor_type=_ACTOR.type, actor_id=_ACTOR.id, created_at=at(second)
        )

    kept = await store.save_memories([memory(1000 + index, index // 3) for index in range(_KEPT)])

    def place(item: Any) -> tuple[Any, ...]:
        return (_signed(item.created_at, {"order": "desc"}), item.id)

    def change(rng: random.Random) -> Ask:
        identifier = 1 + rng.randrange(_CHANGING)
        return rng.choice(
            (
                ask("save_memories", [memory(identifier, rng.uniform(-2, _CHANGING))]),
                ask("save_memories", [memory(identifier, rng.randrange(_CHANGING))]),
                ask("pin_memory", identifier),
                ask("delete_memories", _ACTOR, [identifier]),
            )
        )

    return Walk("list_memories", {"actor": _ACTOR}, place, {row.id: place(row) for row in kept}, change)
