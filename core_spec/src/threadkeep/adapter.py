"""The contract for backends: what an adapter author writes.

An adapter holds only its database. Its arguments are checked already; it raises nothing but the contract's
errors (:mod:`threadkeep.errors`), with the driver's error as their cause: ``UnavailableError`` for a database
that cannot be reached or written, whose ``outcome`` says whether a write may have happened. All methods are
called from one event loop, any number of them at once, so a driver that blocks belongs on a thread; a
cancelled call leaks nothing and leaves no half write.

Promises that hold for every method:

- What was written by a call that returned is seen by every later call, in any process.
- Where the capability ``atomic_batch`` is declared, a writing call is all or nothing for every reader. Where
  it is absent, a call writes in the given order, each thread's own record after its messages; what stops it
  midway is ``PartialWriteError``, and the same call again completes it.
- Where ``conditional_writes`` is declared, what a write depends on is decided inside it: nobody else writes
  between what a request's ``resolve``, ``apply`` or ``check`` is shown and what is stored.
- ``updated_at`` of a thread that a call touches becomes ``requests.rising(request.now, its value)``, once a
  call.
- A record comes back exactly as it was written, but for ``tokens``, which may be left out, and
  ``message_count``.
- Conditions (:class:`threadkeep.filters.Condition`) and the total order
  (:class:`threadkeep.records.Position`) mean what they say, exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from .capabilities import Capabilities
from .models import DeletedResource, Explanation
from .records import MemoryRecord, MessageRecord, ResourceRecord, ThreadRecord
from .requests import (
    ClonedThread,
    CloneThread,
    DeleteMessages,
    MemoryQuery,
    MemorySlice,
    MessageQuery,
    MessageSlice,
    ResourceQuery,
    ResourceSlice,
    SaveMemories,
    SaveMessages,
    ThreadQuery,
    ThreadSlice,
    TransferThread,
    UpdateMessages,
    UpdateResource,
    UpdateThread,
    WriteThread,
)

__all__ = ["StorageAdapter"]


class StorageAdapter(ABC):
    """One open database.

    Attributes:
        name: The adapter's name, as in its ``AdapterSpec``.
        capabilities: What holds here; fixed once open, with nothing left that *depends*.
    """

    name: str
    capabilities: Capabilities

    @abstractmethod
    async def migrate(self) -> None:
        """Create the schema or bring it up to date; safe when many processes do it at once.

        Raises:
            SchemaVersionError: The schema is newer than this code. Nothing was changed.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let running calls finish, then release everything. Called once."""

    # --- threads ----------------------------------------------------------------------------------

    @abstractmethod
    async def write_thread(self, request: WriteThread) -> tuple[ThreadRecord, bool]:
        """Create or replace a thread, as ``request.resolve`` decides.

        Returns:
            The stored thread (the one that was there, where nothing was written), and whether it was written.
        """

    @abstractmethod
    async def get_thread(self, thread_id: str) -> ThreadRecord | None:
        """The thread, or None."""

    @abstractmethod
    async def list_threads(self, query: ThreadQuery) -> ThreadSlice:
        """The threads that match."""

    @abstractmethod
    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        """Store what ``request.apply`` makes of the thread, and return it."""

    @abstractmethod
    async def delete_thread(self, thread_id: str, resource_id: str | None) -> bool:
        """Delete a thread with its messages; never refused for size.

        Returns:
            Whether there was one.

        Raises:
            OwnershipError: ``resource_id`` is given and not its owner.
        """

    @abstractmethod
    async def clear_thread(self, thread_id: str, resource_id: str | None, now: int) -> int:
        """Delete a thread's messages and touch it, unless it has none.

        Returns:
            How many were deleted; 0 where there is no such thread.

        Raises:
            OwnershipError: ``resource_id`` is given and not its owner.
        """

    @abstractmethod
    async def transfer_thread(self, request: TransferThread) -> ThreadRecord:
        """Store what ``request.apply`` makes of the thread, with its messages, and return it."""

    @abstractmethod
    async def clone_thread(self, request: CloneThread) -> ClonedThread:
        """Copy a thread; bodies stay in the database unless ``return_messages``.

        Check the source (``request.check``), choose the messages, give each a new UUID, keep ``created_at``,
        number ``seq`` from ``request.seq`` in the total order, and store ``request.thread``. The copy is
        invisible until it is complete.

        Raises:
            AlreadyExistsError: The copy's id is taken.
        """

    # --- messages ---------------------------------------------------------------------------------

    @abstractmethod
    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        """Store what ``request.resolve`` returns, touch the threads, and return it."""

    @abstractmethod
    async def get_messages(self, ids: Sequence[str], resource_id: str | None) -> list[MessageRecord]:
        """Those of the messages that exist (and belong to the resource, where given), in the total order."""

    @abstractmethod
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        """The messages that match, their total, and windows.

        Windows ignore ``where`` and dates. A window's messages come from the thread of its target; the target
        must be in the include's thread where given, and belong to ``query.resource_id``, or without one to
        the owner of one of ``query.threads``; else the include is skipped.
        """

    @abstractmethod
    async def update_messages(self, request: UpdateMessages) -> list[MessageRecord]:
        """Store what ``request.resolve`` returns, touch the threads before and after, and return it."""

    @abstractmethod
    async def delete_messages(self, request: DeleteMessages) -> int:
        """Delete the messages after ``request.check``, touch their threads, return how many there were."""

    # --- resources --------------------------------------------------------------------------------

    @abstractmethod
    async def put_resource(self, resource: ResourceRecord) -> ResourceRecord:
        """Store a resource as it is given, replacing what was there."""

    @abstractmethod
    async def get_resource(self, resource_id: str) -> ResourceRecord | None:
        """The resource, or None."""

    @abstractmethod
    async def list_resources(self, query: ResourceQuery) -> ResourceSlice:
        """The resources that have a record of their own."""

    @abstractmethod
    async def update_resource(self, request: UpdateResource) -> ResourceRecord:
        """Store what ``request.apply`` makes of the resource, return it; concurrent writers all succeed."""

    @abstractmethod
    async def delete_resource(self, resource_id: str) -> DeletedResource:
        """Delete a resource's threads with their messages, and its own record last."""

    # --- archive memories -------------------------------------------------------------------------

    @abstractmethod
    async def save_memories(self, request: SaveMemories) -> None:
        """Store archive memories.

        Raises:
            AlreadyExistsError: An id is taken and ``request.replace`` is False.
        """

    @abstractmethod
    async def list_memories(self, query: MemoryQuery) -> MemorySlice:
        """The archive memories that match."""

    @abstractmethod
    async def pin_memory(self, memory_id: int, *, pinned: bool) -> MemoryRecord | None:
        """Set whether a memory is pinned; returns it, or None where there is none."""

    @abstractmethod
    async def delete_memories(self, actor: tuple[str, str], ids: Sequence[int] | None) -> int:
        """Delete an actor's memories, those of *ids* or all, and return how many there were."""

    # --- explain ----------------------------------------------------------------------------------

    async def explain_messages(self, query: MessageQuery) -> Explanation:
        """How the database answers the query. Called only where the capability ``explain`` is declared."""
        raise NotImplementedError

    async def explain_threads(self, query: ThreadQuery) -> Explanation:
        """How the database answers the query. Called only where the capability ``explain`` is declared."""
        raise NotImplementedError
