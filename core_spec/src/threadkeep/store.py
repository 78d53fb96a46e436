"""The store: what applications hold. It checks every argument, then asks its adapter."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from .operations.archive import ArchiveOperations
from .operations.messages import MessageOperations
from .operations.resources import ResourceOperations
from .operations.threads import ThreadOperations

__all__ = ["Store"]


class Store(ThreadOperations, MessageOperations, ResourceOperations, ArchiveOperations):
    """Threads, messages, resources and archive memories on one database.

    Made by :func:`threadkeep.open`. Any number of tasks may use it at once, on the event loop it was opened
    on; used from another loop or in a forked child it raises ``WrongLoopError``, after :meth:`close`
    ``StoreClosedError``. Every call may raise ``UnavailableError`` (its ``outcome`` says whether a write may
    have happened) and every read ``CorruptDataError``.
    """

    async def __aenter__(self) -> Self:
        """The store itself."""
        self._open_adapter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the store."""
        await self.close()

    async def migrate(self) -> None:
        """Bring the database's schema up to date; safe when many processes do it at once.

        Raises:
            SchemaVersionError: The schema is newer than this code. Nothing was changed.
        """
        await self._open_adapter().migrate()

    async def close(self) -> None:
        """Let running calls finish, release everything; later ones raise ``StoreClosedError``. Idempotent."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._open_adapter().close())
        if not self._closing.done():
            self._check_here()
            # A cancelled close must not leave connections behind: it is finished in any case.
            await asyncio.shield(self._closing)
