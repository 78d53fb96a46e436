"""What a backend stores: every field is text, an integer, a bool or None.

A record is what an adapter gets to write and gives back when read. JSON is text already, checked and encoded
by the store (it never holds NUL or a lone surrogate: JSON escapes them), and times are microseconds since
1970. An adapter returns each field exactly as it was. No record can be part of a cycle, so the
garbage collector is spared from looking at them (``gc=False``).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from .models import ActorType

__all__ = ["MemoryRecord", "MessageRecord", "Position", "ResourceRecord", "ThreadRecord"]


class Position(NamedTuple):
    """A place in the total order. Threads have ``seq`` 0 and their time is the one they are ordered by.

    Tuples compare as the order does: times and ``seq`` as integers, ids code point by code point.
    """

    at: int
    seq: int
    id: str


class ThreadRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored thread.

    Attributes:
        id: Its id.
        resource_id: Its owner.
        title: Its title.
        metadata: A JSON object as text.
        tokens: The metadata's filter tokens. Given to write; an adapter may leave them out of what it
            returns.
        working_memory: A document as text, or None.
        message_count: Kept by the adapter; ignored in what it is given.
        created_at: Microseconds since 1970.
        updated_at: Microseconds since 1970.
    """

    id: str
    resource_id: str
    title: str
    metadata: str
    tokens: tuple[str, ...] = ()
    working_memory: str | None = None
    message_count: int = 0
    created_at: int
    updated_at: int


class MessageRecord(msgspec.Struct, frozen=True, gc=False):
    """A stored message.

    Attributes:
        id: Its id.
        thread_id: Its thread.
        resource_id: The thread's owner; empty in a message to save whose owner the caller did not name.
        role: Its role.
        type: Its type.
        content: Any JSON value as text.
        metadata: A JSON object as text.
        created_at: Microseconds since 1970.
        seq: An int64.
        tokens: The metadata's filter tokens. Given to write; an adapter may leave them out of what it
            returns.
    """

    id: str
    thread_id: str
    resource_id: str
    role: str
    type: str
    content: str
    metadata: str
    created_at: int
    seq: int
    tokens: tuple[str, ...] = ()

    @property
    def position(self) -> Position:
        """Its place in the total order."""
        return Position(self.created_at, self.seq, self.id)


class ResourceRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored resource.

    Attributes:
        id: Its id.
        working_memory: A document as text, or None.
        metadata: A JSON object as text.
        revision: 0 until the first write of the working memory.
        created_at: Microseconds since 1970.
        updated_at: Microseconds since 1970.
    """

    id: str
    working_memory: str | None = None
    metadata: str = "{}"
    revision: int = 0
    created_at: int
    updated_at: int


class MemoryRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored archive memory.

    Attributes:
        id: 1 to 2**53 - 1.
        content: The text.
        folded: The text after ``str.casefold``, which recall searches.
        pinned: Pinned memories are not recalled.
        actor_type: Its actor's type.
        actor_id: Its actor's id; empty for a shared memory.
        created_at: Microseconds since 1970.
    """

    id: int
    content: str
    folded: str = ""
    pinned: bool
    actor_type: ActorType
    actor_id: str
    created_at: int
