"""Hand-written code on a backend's driver and schema, one module a backend: what a ratio is taken to.

A floor sends the statements that one would write by hand for one operation, on the driver, tables, indexes
and durability of the adapter, with the same write of ``updated_at``, JSON decoded into dicts, and as many
thread hops. It checks nothing, looks for no existing message, does not tell whether a page is the last, and
translates no error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from threadkeep.urls import StoreUrl

if TYPE_CHECKING:  # a floor's module is imported when it is needed, and may be run as a program
    from .libsql import LibsqlFloor

__all__ = ["Floor", "Place", "Row", "floor_for"]

Place = tuple[int, int, str]
"""A message's ``created_at`` in microseconds, ``seq`` and ``id``."""

Row = dict[str, Any]
"""A record as it is stored, its JSON decoded."""


class Floor(Protocol):
    """What every floor can do. Rows are those that the store would give."""

    async def newest(self, thread_id: str, limit: int, token: str = "") -> list[Row]:
        """The newest messages of a thread, or of those with a token, newest first."""
        ...

    async def after(self, thread_id: str, place: Place, limit: int) -> list[Row]:
        """The messages of a thread that follow a place, oldest first."""
        ...

    async def page(self, thread_id: str, skip: int, limit: int) -> list[Row]:
        """The messages of a thread after so many others, oldest first."""
        ...

    async def windows(self, ids: Sequence[str], before: int, after: int) -> list[Row]:
        """Messages by id with so many neighbours on either side, in the total order, each once."""
        ...

    async def threads(self, resource_id: str, limit: int, token: str = "") -> list[Row]:
        """The newest threads of a resource, or of those with a token, newest first."""
        ...

    async def append(self, message: Mapping[str, Any]) -> Row:
        """Store a new message with ``thread_id, role, type, content, metadata`` at the end of its thread."""
        ...

    async def append_many(self, messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Store new messages at the end of their thread, all or none."""
        ...

    async def merge(self, resource_id: str, patch: Mapping[str, Any]) -> Row:
        """Merge a patch into the working memory of a resource that has one; returns the document."""
        ...

    async def clone(self, source_id: str, copy_id: str) -> dict[str, str]:
        """Copy a thread under a new id; returns the messages' new ids by their old ones."""
        ...

    async def bulk(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """Store many messages that have all of their fields, and return how many."""
        ...

    async def recall(self, actor: tuple[str, str], folded: str, limit: int) -> list[Row]:
        """The newest unpinned memories of an actor and the shared ones that contain a folded text."""
        ...

    async def close(self) -> None:
        """Release everything."""
        ...


class _Hopping:
    """A floor whose methods block, each run on its thread: the hop that an async application cannot avoid."""

    def __init__(self, floor: LibsqlFloor) -> None:
        self._floor = floor

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._floor, name)

        def hopping(*args: object) -> Any:
            return self._floor.hop(method, *args)

        setattr(self, name, hopping)  # found without this detour from now on
        return hopping

    async def close(self) -> None:
        await asyncio.to_thread(self._floor.close)


async def floor_for(adapter: str, url: str) -> Floor | None:
    """The floor on a database that a store has opened; None where there is none for its adapter."""
    if adapter == "libsql":
        from .libsql import LibsqlFloor

        known = frozenset({"durability", "metadata_index", "busy_timeout_s"})
        return cast("Floor", _Hopping(LibsqlFloor(Path(StoreUrl.parse(url, known=known).path))))
    if adapter == "postgres":
        from .postgres import PostgresFloor

        return await PostgresFloor.connect(url)
    return None
