"""A database with all that the operations need: threads to read, clone and append to, and the rest."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice

from threadkeep import Actor
from threadkeep.clock import to_us

from .. import workload
from ..databases import Database
from ..floors import Floor, Place
from ..progress import Advance
from ..rounds import Case

__all__ = [
    "CALLS",
    "FAR",
    "FLOOR",
    "OWN",
    "PAGE",
    "Own",
    "Scene",
    "case_name",
    "stored_count",
]

OWN, FLOOR = "threadkeep", "floor"
PAGE = 20
FAR = 500
CALLS = 10

_THREADS = 1_000
_MEMORIES = 2_000
_BATCH = 1_000
_DOCUMENT = {"profile": {"name": "Amira", "home": {"city": "Bern", "zip": "3011"}}, "notes": ["x" * 60] * 25}
"""About 2 kB, of which the writers change their own keys."""

Own = Callable[[int], Awaitable[object]]
ByHand = Callable[[Floor, int], Awaitable[object]]
Undo = Callable[[str, int], Awaitable[object]]


class Scene:
    """Everything is owned by one resource, which is deleted at the end.

    Args:
        database: Where.
        count: Messages of the long thread.
        bulk: Messages of the thread to clone.

    Attributes:
        long: The thread to read.
        source: The thread to clone.
        appended: The thread to append to.
        actor: Whose the memories are.
        new: Messages to append copies of.
        ids: A page of messages in the middle of the long thread.
        near: The end of its first page, as a cursor and as a place.
        far: The end of its page 499.
    """

    def __init__(self, database: Database, count: int, bulk: int) -> None:
        self.database, self.count, self.bulk = database, count, bulk
        self.store, self.floor, self.resource = database.store, database.floor, database.resource_id
        self.long, self.source = f"{self.resource}-long", f"{self.resource}-source"
        self.appended = f"{self.resource}-appended"
        self.actor = Actor("user", self.resource)
        self.new = list(workload.messages(self.appended, self.resource, 100))
        self.ids: list[str] = []
        self.near: tuple[str, Place] = ("", (0, 0, ""))
        self.far = self.near

    async def fill(self, advance: Advance) -> None:
        """Store it all."""
        for thread, count in ((self.long, self.count), (self.source, self.bulk), (self.appended, 0)):
            await self._store_thread(thread, count, advance)
        for number in range(_THREADS):
            await self.store.create_thread(
                self.resource,
                thread_id=f"{self.resource}-{number:04d}",
                title=f"Thread {number}",
                metadata=workload.metadata(number),
            )
            advance(1)
        await self.store.update_resource(self.resource, working_memory=json.dumps(_DOCUMENT))
        for first in range(0, _MEMORIES, _BATCH):
            await self.store.add_memories(self.actor, [_memory(first + number) for number in range(_BATCH)])
            advance(_BATCH)
        self.near, self.far = await self._end_of(0), await self._end_of(FAR - 1)
        middle = await self.store.list_messages(self.long, page=self.count // PAGE // 2, per_page=PAGE)
        self.ids = [message.id for message in middle.items]

    async def _store_thread(self, thread: str, count: int, advance: Advance) -> None:
        await self.store.create_thread(self.resource, thread_id=thread)
        messages = workload.messages(thread, self.resource, count)
        while batch := list(islice(messages, _BATCH)):
            await self.store.save_messages(batch)
            advance(len(batch))

    async def _end_of(self, page: int) -> tuple[str, Place]:
        found = await self.store.list_messages(self.long, page=page, per_page=PAGE)
        last = found.items[-1]
        return found.next_cursor or "", (to_us(last.created_at), last.seq, last.id)

    async def clear(self) -> None:
        """Delete what does not go with the resource."""
        await self.store.delete_memories(self.actor)

    def case(
        self,
        operation: str,
        own: Own,
        by_hand: ByHand,
        *,
        calls: int = CALLS,
        block: int = 1,
        undo: Undo | None = None,
    ) -> Case:
        """A case of one operation, by the store and by hand."""
        contestants = {OWN: _awaiting(own)}
        floor = self.floor
        if floor is not None:
            contestants[FLOOR] = _awaiting(lambda number: by_hand(floor, number))
        messages = self.bulk if undo else self.count
        return Case(
            name=case_name(operation, self.database.name),
            contestants=contestants,
            calls=calls,
            block=block,
            undo=undo,
            labels={"backend": self.database.name, "operation": operation, "messages": messages},
        )


def _awaiting(call: Own) -> Own:
    """A coroutine function, as the rounds know contestants that are to be awaited."""

    async def awaited(number: int) -> object:
        return await call(number)

    return awaited


def case_name(operation: str, database: str) -> str:
    """The name results are compared by."""
    return f"{operation}/{database}"


def stored_count(scenes: Sequence[Scene]) -> int:
    """How many things are stored in all."""
    return sum(scene.count + scene.bulk + _THREADS + _MEMORIES for scene in scenes)


def _memory(number: int) -> str:
    """One in two hundred names a city."""
    return f"Fact {number}: prefers {'Zürich' if number % 200 == 7 else 'short answers'} and pays by invoice"
