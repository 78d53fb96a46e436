"""Operations on archive memories."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Iterable
from typing import cast

from .. import arguments as check
from ..clock import clock
from ..conversion import memory_of
from ..cursors import decode_cursor, fingerprint
from ..errors import InvalidArgumentError, InvalidCursorError, NotFoundError
from ..jsontext import kind
from ..models import Actor, ArchiveMemory, NewMemory, Page
from ..records import MemoryRecord
from ..requests import MemoryQuery, MemorySlice, SaveMemories
from .base import Operations, limit_of, page_of, pages

__all__ = ["ArchiveOperations"]

_SHARED = ("shared", "")


class ArchiveOperations(Operations):
    """Add, recall, list, pin and delete archive memories."""

    async def add_memories(
        self, actor: Actor, memories: str | Iterable[str | NewMemory]
    ) -> list[ArchiveMemory]:
        """Add archive memories, all or none. Safe to repeat when ids are given: then it says that they exist.

        Args:
            actor: Whose they are.
            memories: One text or many, each a string of 1 to 2,000 characters or a :class:`NewMemory`.
                Without times of their own the last is the newest.

        Returns:
            The stored memories, in the given order.

        Raises:
            AlreadyExistsError: An id is taken. Nothing was written.
            InvalidArgumentError: A memory breaks a rule. Nothing was written.
        """
        owner = check.actor(actor)
        given = [memories] if isinstance(memories, str) else check.items_of(memories, "memories")
        first = clock.take(len(given)) if given else 0
        records = [_new_memory(owner, item, first + i, f"memories[{i}]") for i, item in enumerate(given)]
        return await self._save(records, replace=False)

    async def save_memories(self, memories: Iterable[ArchiveMemory]) -> list[ArchiveMemory]:
        """Store memories exactly as they are; for imports. Safe to repeat.

        One that has the id is replaced, whoever's it was: ids are random, so the same id is the same memory.

        Raises:
            InvalidArgumentError: A memory breaks a rule. Nothing was written.
        """
        given = check.items_of(memories, "memories")
        return await self._save(
            [_stored_memory(item, f"memories[{i}]") for i, item in enumerate(given)], replace=True
        )

    async def recall_memories(
        self, actor: Actor, q: str | None = None, *, limit: int = 10
    ) -> list[ArchiveMemory]:
        """Unpinned memories that the actor can see, newest first, then by id: its own and the shared ones.

        Args:
            actor: Who recalls.
            q: A literal substring, compared without case (both sides folded as ``str.casefold``); None for
                all.
            limit: 1 to 50.

        Raises:
            InvalidArgumentError: An argument breaks a rule.
        """
        owner = check.actor(actor)
        text = "" if q is None else check.text(q, "q", most=check.MEMORY_LENGTH)
        query = MemoryQuery(
            actors=(_pair(owner),) if owner.type == "shared" else (_pair(owner), _SHARED),
            recall=True,
            folded=text.casefold(),
            limit=check.integer(limit, "limit", least=1, most=50),
        )
        return [memory_of(record) for record in (await self._open_adapter().list_memories(query)).memories]

    async def list_memories(
        self,
        actor: Actor | None = None,
        *,
        page: int = 0,
        per_page: int | None = 100,
        cursor: str | None = None,
        with_total: bool = False,
    ) -> Page[ArchiveMemory]:
        """A page of memories, pinned ones too, newest first, then by id.

        Args:
            actor: Whose (not the shared ones besides); None for everybody's.
            page: As for :meth:`list_threads`, and so on.
            per_page: As for :meth:`list_threads`.
            cursor: As for :meth:`list_threads`.
            with_total: As for :meth:`list_threads`.
        """
        actors = None if actor is None else (_pair(check.actor(actor)),)
        number, size = check.paging(page, per_page)
        count = check.flag(with_total, "with_total") and size != 0
        bound = fingerprint("memories", actors)
        after = None if cursor is None else decode_cursor(cursor, bound, (int, int))
        if cursor is not None and number:
            raise InvalidCursorError("cursor", "given without page", "both")
        query = MemoryQuery(
            actors=actors,
            after=None if after is None else (after[0], after[1]),
            limit=limit_of(size),
            offset=number * (size or 0),
            count=count,
        )
        adapter = self._open_adapter()
        found = await adapter.list_memories(query) if size != 0 else MemorySlice([])
        return page_of(
            found.memories,
            memory_of,
            lambda row: (row.created_at, row.id),
            page=number,
            per_page=size,
            total=found.total,
            query=lambda: bound,
        )

    async def iter_memories(
        self, actor: Actor | None = None, *, per_page: int = 200
    ) -> AsyncGenerator[ArchiveMemory, None]:
        """Every memory of an actor, or of everybody, newest first."""
        async for memory in pages(
            lambda cursor: self.list_memories(actor, per_page=per_page, cursor=cursor), per_page
        ):
            yield memory

    async def pin_memory(self, memory_id: int, *, pinned: bool = True) -> ArchiveMemory:
        """Pin a memory, which keeps it out of recall, or unpin it. Safe to repeat.

        Raises:
            NotFoundError: There is no such memory.
        """
        identifier = check.memory_id(memory_id, "memory_id")
        found = await self._open_adapter().pin_memory(identifier, pinned=check.flag(pinned, "pinned"))
        if found is None:
            raise NotFoundError("memory", str(identifier))
        return memory_of(found)

    async def delete_memories(self, actor: Actor, ids: int | Iterable[int] | None = None) -> int:
        """Delete an actor's memories: those of *ids*, or all of them for None. Safe to repeat.

        Ids that are unknown or another actor's are ignored; an empty list deletes none.

        Returns:
            How many there were.
        """
        owner = _pair(check.actor(actor))
        wanted = None if ids is None else check.memory_ids(ids)
        adapter = self._open_adapter()
        return 0 if wanted == [] else await adapter.delete_memories(owner, wanted)

    async def _save(self, records: list[MemoryRecord], *, replace: bool) -> list[ArchiveMemory]:
        adapter = self._open_adapter()
        if len({record.id for record in records}) != len(records):
            raise InvalidArgumentError("memories", "a list whose ids are each given once", "one given twice")
        if records:
            await adapter.save_memories(SaveMemories(memories=tuple(records), replace=replace))
        return [memory_of(record) for record in records]


def _pair(actor: Actor) -> tuple[str, str]:
    return (actor.type, actor.id or "")


def _new_memory(actor: Actor, item: object, now: int, at: str) -> MemoryRecord:
    memory = NewMemory(item) if isinstance(item, str) else item
    if not isinstance(memory, NewMemory):
        raise InvalidArgumentError(at, "a str or a NewMemory", kind(memory))
    given = check.optional_moment(memory.created_at, f"{at}.created_at")
    content = check.memory_text(memory.content, f"{at}.content" if memory is item else at)
    return MemoryRecord(
        id=secrets.randbelow(check.MEMORY_ID_MAX) + 1
        if memory.id is None
        else check.memory_id(memory.id, f"{at}.id"),
        content=content,
        folded=content.casefold(),
        pinned=check.flag(memory.pinned, f"{at}.pinned"),
        actor_type=actor.type,
        actor_id=actor.id or "",
        created_at=now if given is None else given,
    )


def _stored_memory(item: object, at: str) -> MemoryRecord:
    memory = check.instance_of(cast(ArchiveMemory, item), ArchiveMemory, at)
    owner = check.actor(Actor(memory.actor_type, memory.actor_id), f"{at}.actor")
    content = check.memory_text(memory.content, f"{at}.content")
    return MemoryRecord(
        id=check.memory_id(memory.id, f"{at}.id"),
        content=content,
        folded=content.casefold(),
        pinned=check.flag(memory.pinned, f"{at}.pinned"),
        actor_type=owner.type,
        actor_id=owner.id or "",
        created_at=check.moment(memory.created_at, f"{at}.created_at"),
    )
