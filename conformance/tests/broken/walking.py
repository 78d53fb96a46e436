"""Adapters whose walks never end."""

from __future__ import annotations

from msgspec.structs import replace

from threadkeep.records import MessageRecord
from threadkeep.reference import ReferenceAdapter
from threadkeep.requests import (
    Bounds,
    MemoryQuery,
    MemorySlice,
    MessageQuery,
    MessageSlice,
    ResourceQuery,
    ResourceSlice,
    SaveMessages,
    ThreadQuery,
    ThreadSlice,
)


class IgnoresCursors(ReferenceAdapter):
    """Every page is the first one, and ends where it does."""

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        return await super().list_messages(replace(query, bounds=query.dates))

    async def list_threads(self, query: ThreadQuery) -> ThreadSlice:
        return await super().list_threads(replace(query, bounds=Bounds()))

    async def list_resources(self, query: ResourceQuery) -> ResourceSlice:
        return await super().list_resources(replace(query, after=""))

    async def list_memories(self, query: MemoryQuery) -> MemorySlice:
        return await super().list_memories(replace(query, after=None))


class UpsertMovesToTheEnd(ReferenceAdapter):
    """What is written while a walk goes on lies ahead of it again, at a new place."""

    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        await super().save_messages(request)
        for row in request.messages:
            there = self._tables.messages[row.id]
            self._tables.messages[row.id] = replace(there, created_at=row.created_at, seq=row.seq)
        return [self._tables.messages[row.id] for row in request.messages]
