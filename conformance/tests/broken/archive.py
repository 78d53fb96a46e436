"""Adapters that mistreat archive memories."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from threadkeep.records import MemoryRecord
from threadkeep.reference import ReferenceAdapter
from threadkeep.requests import MemoryQuery, MemorySlice, SaveMemories


class Recalls(ReferenceAdapter):
    """Searches texts its own way."""

    def has(self, row: MemoryRecord, folded: str) -> bool:
        raise NotImplementedError

    async def list_memories(self, query: MemoryQuery) -> MemorySlice:
        found = await super().list_memories(replace(query, folded="", limit=None))
        rows = [row for row in found.memories if self.has(row, query.folded)]
        return MemorySlice(rows if query.limit is None else rows[: query.limit], found.total)


class PercentIsAWildcard(Recalls):
    """As LIKE does."""

    def has(self, row: MemoryRecord, folded: str) -> bool:
        pattern = ".*".join(re.escape(part) for part in folded.split("%"))
        return re.search(pattern, row.content.casefold()) is not None


class RecallSeesCase(Recalls):
    def has(self, row: MemoryRecord, folded: str) -> bool:
        return folded in row.content


class RecallLowersOnly(Recalls):
    """``lower`` is no ``casefold``."""

    def has(self, row: MemoryRecord, folded: str) -> bool:
        return folded in row.content.lower()


class RecallShowsPinned(ReferenceAdapter):
    async def list_memories(self, query: MemoryQuery) -> MemorySlice:
        return await super().list_memories(replace(query, recall=False))


class RecallLeaksOtherActors(ReferenceAdapter):
    """Looks at the actor's id and not at its type."""

    async def list_memories(self, query: MemoryQuery) -> MemorySlice:
        if query.actors is not None:
            ids = {name for _, name in query.actors}
            actors = {(row.actor_type, row.actor_id) for row in self._tables.memories.values()}
            query = replace(query, actors=tuple(one for one in actors if one[1] in ids))
        return await super().list_memories(query)


class RecallForgetsShared(ReferenceAdapter):
    async def list_memories(self, query: MemoryQuery) -> MemorySlice:
        return await super().list_memories(replace(query, actors=query.actors and query.actors[:1]))


class RecallSearchesThePage(ReferenceAdapter):
    """Takes the newest first and searches among them."""

    async def list_memories(self, query: MemoryQuery) -> MemorySlice:
        found = await super().list_memories(replace(query, folded=""))
        rows = [row for row in found.memories if query.folded in row.content.casefold()]
        return MemorySlice(rows, found.total)


class OldestMemoriesFirst(ReferenceAdapter):
    async def list_memories(self, query: MemoryQuery) -> MemorySlice:
        found = await super().list_memories(query)
        return found._replace(memories=found.memories[::-1])


class AddWritesOverTakenIds(ReferenceAdapter):
    async def save_memories(self, request: SaveMemories) -> None:
        await super().save_memories(replace(request, replace=True))


class DeletesOthersMemories(ReferenceAdapter):
    async def delete_memories(self, actor: tuple[str, str], ids: Sequence[int] | None) -> int:
        for name in ids or ():
            self._tables.memories.pop(name, None)
        return await super().delete_memories(actor, ids)


class PinForgetsTheText(ReferenceAdapter):
    async def pin_memory(self, memory_id: int, *, pinned: bool) -> MemoryRecord | None:
        found = await super().pin_memory(memory_id, pinned=pinned)
        if found is not None:
            found = self._tables.memories[memory_id] = replace(found, content="")
        return found
