"""What applications hold: threads, messages, resources, archive memories, and pages of them.

All are immutable; the dicts and lists inside are plain and belong to the holder. Times are aware datetimes in
UTC with microseconds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec
import uuid_utils
from msgspec import UNSET, UnsetType

__all__ = [
    "Actor",
    "ActorType",
    "ArchiveMemory",
    "Clone",
    "CloneMetadata",
    "DeletedResource",
    "Explanation",
    "Include",
    "Message",
    "MessageUpdate",
    "Metadata",
    "NewMemory",
    "NewMessage",
    "Order",
    "Page",
    "Resource",
    "Thread",
    "ThreadOrder",
    "TimeRange",
    "new_id",
]

Metadata = dict[str, Any]
"""A JSON object: at most 64 levels, 64 KiB encoded, integers within int64, finite floats."""

ActorType = Literal["user", "end_user", "shared"]
Order = Literal["asc", "desc"]
ThreadOrder = Literal["created_at", "updated_at"]

Item = TypeVar("Item")


def new_id() -> str:
    """A fresh UUIDv7 as text."""
    return str(uuid_utils.uuid7())


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation.

    Attributes:
        id: 1 to 255 characters.
        resource_id: Its owner.
        title: Up to 1,000 characters; may be empty.
        metadata: A JSON object.
        working_memory: The thread's own document, or None.
        message_count: How many messages it has. Derived: ignored when a thread is saved.
        created_at: Never changes.
        updated_at: Rises with every write to the thread or its messages.
    """

    id: str
    resource_id: str
    title: str = ""
    metadata: Metadata = {}
    working_memory: str | None = None
    message_count: int = 0
    created_at: datetime
    updated_at: datetime


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One stored message.

    Attributes:
        id: 1 to 255 characters.
        thread_id: Its thread.
        resource_id: The thread's owner.
        role: 1 to 255 characters, such as ``user`` or ``assistant``.
        type: 1 to 255 characters, such as ``text``.
        content: Any JSON value.
        metadata: A JSON object, which filters apply to.
        created_at: Kept for the message's whole life, as is seq.
        seq: Breaks ties; messages are ordered by ``(created_at, seq, id)``.
    """

    id: str
    thread_id: str
    resource_id: str
    role: str
    type: str = "text"
    content: Any
    metadata: Metadata = {}
    created_at: datetime
    seq: int


class _MessageStart(msgspec.Struct, frozen=True):
    thread_id: str
    role: str
    content: Any


class NewMessage(_MessageStart, frozen=True, kw_only=True):
    """A message to save. Its id is made at construction, so that saving it again is safe.

    Attributes:
        thread_id: The thread it goes to, which must exist.
        role: 1 to 255 characters.
        content: Any JSON value up to 256 levels deep.
        id: 1 to 255 characters; a UUIDv7 where omitted.
        resource_id: The thread's owner; asserted where given.
        type: 1 to 255 characters.
        metadata: A JSON object, or None for an empty one.
        created_at: An aware datetime; omitted, the time of saving.
    """

    id: str | None = None
    resource_id: str | None = None
    type: str = "text"
    metadata: Metadata | None = None
    created_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.id is None:
            msgspec.structs.force_setattr(self, "id", new_id())


class MessageUpdate(msgspec.Struct, frozen=True):
    """A change to one message; what is left out stays as it is.

    Attributes:
        id: The message.
        role: The new role.
        type: The new type.
        content: The new content.
        metadata: Merged shallowly into the stored metadata (a null is stored as null).
        replace_metadata: Replace the metadata instead.
        thread_id: Move the message to this thread of the same resource.
    """

    id: str
    role: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    content: Any = UNSET
    metadata: Metadata | UnsetType = UNSET
    replace_metadata: bool = False
    thread_id: str | UnsetType = UNSET


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A user, organisation or project that owns threads.

    Attributes:
        id: 1 to 255 characters.
        working_memory: The document the agent keeps up to date, or None.
        metadata: A JSON object.
        revision: Rises with every write of the working memory; 0 for a resource that does not exist.
        created_at: When it was first written.
        updated_at: When it was last written.
    """

    id: str
    working_memory: str | None = None
    metadata: Metadata = {}
    revision: int = 0
    created_at: datetime
    updated_at: datetime


class Actor(msgspec.Struct, frozen=True):
    """Whose archive memory it is.

    Attributes:
        type: ``user``, ``end_user`` or ``shared``.
        id: 1 to 255 characters; None exactly for ``shared``.
    """

    type: ActorType
    id: str | None = None


class NewMemory(msgspec.Struct, frozen=True):
    """An archive memory to add.

    Attributes:
        content: 1 to 2,000 characters.
        id: 1 to 2**53 - 1; random where omitted.
        pinned: Pinned memories are not recalled: they are in the prompt already.
        created_at: An aware datetime; omitted, the time of adding.
    """

    content: str
    id: int | None = None
    pinned: bool = False
    created_at: datetime | None = None


class ArchiveMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A short fact kept outside the prompt and recalled on demand.

    Attributes:
        id: 1 to 2**53 - 1.
        content: 1 to 2,000 characters.
        pinned: Whether it is kept out of recall.
        actor_type: ``user``, ``end_user`` or ``shared``.
        actor_id: None exactly for ``shared``.
        created_at: When it was added.
    """

    id: int
    content: str
    pinned: bool = False
    actor_type: ActorType
    actor_id: str | None = None
    created_at: datetime


class TimeRange(msgspec.Struct, frozen=True):
    """A range of ``created_at``; both ends belong to it unless excluded.

    Attributes:
        start: The first moment, or None for no bound.
        end: The last moment, or None for no bound.
        start_exclusive: Leave out ``start`` itself.
        end_exclusive: Leave out ``end`` itself.
    """

    start: datetime | None = None
    end: datetime | None = None
    start_exclusive: bool = False
    end_exclusive: bool = False


class Include(msgspec.Struct, frozen=True):
    """A message to add to a page by id, with its neighbours in its own thread.

    Attributes:
        id: The message; an unknown one is skipped.
        thread_id: The thread it must be in, where given.
        before: How many messages before it, 0 to 1,000.
        after: How many messages after it, 0 to 1,000.
    """

    id: str
    thread_id: str | None = None
    before: int = 0
    after: int = 0


class Page(msgspec.Struct, Generic[Item], frozen=True, kw_only=True):
    """Part of a query's answer.

    Attributes:
        items: In the query's order; for messages, includes and their neighbours are among them.
        page: The page asked for, from 0.
        per_page: Its size; None is all.
        has_more: Whether matches follow. Exact, also without a total.
        next_cursor: Pass it as ``cursor`` for what follows; None exactly when ``has_more`` is False.
        total: How many match in all, where asked for.
        matched_ids: The ids of ``items`` that the query itself selected; the others came by ``include``.
    """

    items: list[Item]
    page: int
    per_page: int | None
    has_more: bool
    next_cursor: str | None
    total: int | None
    matched_ids: frozenset[str]


class Clone(msgspec.Struct, frozen=True, kw_only=True):
    """A cloned thread.

    Attributes:
        thread: The new thread.
        id_map: From each copied message's old id to its new one, in the total order.
        messages: The new messages in the total order, or None unless asked for.
    """

    thread: Thread
    id_map: dict[str, str]
    messages: list[Message] | None


class CloneMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What a cloned thread's metadata says under ``clone``.

    Attributes:
        source_thread_id: The thread it was copied from, which may be gone by now.
        cloned_at: When.
        last_message_id: The newest copied message's id in the source thread; None if none was copied.
    """

    source_thread_id: str
    cloned_at: datetime
    last_message_id: str | None


class DeletedResource(msgspec.Struct, frozen=True, kw_only=True):
    """What went with a resource.

    Attributes:
        threads: How many threads.
        messages: How many messages.
        resources: 1 if the resource had a record of its own, else 0.
    """

    threads: int
    messages: int
    resources: int


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """How a backend answers a query, by its own account.

    Attributes:
        adapter: The adapter's name.
        filter: ``native`` or ``emulated``; None where the query has no filter.
        order: ``native`` or ``emulated``.
        limit: ``native`` or ``emulated``.
        indexes: The indexes the plan uses.
        rows_examined: How many rows or index entries were read; None where the database cannot tell.
        plan: The database's own plan, a line each.
    """

    adapter: str
    filter: str | None
    order: str
    limit: str
    indexes: list[str]
    rows_examined: int | None
    plan: list[str]
