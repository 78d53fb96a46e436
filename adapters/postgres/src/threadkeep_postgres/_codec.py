"""Rows to records and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from threadkeep.records import MemoryRecord, MessageRecord, ResourceRecord, ThreadRecord

__all__ = [
    "GivenMessage",
    "given",
    "given_memories",
    "memory",
    "message",
    "resource",
    "resource_values",
    "thread",
]

_encode = msgspec.json.Encoder().encode


class GivenMessage(msgspec.Struct, frozen=True):
    """A message as the statement fragment ``given`` takes it; keys only where it does not know them."""

    id: str
    role: str
    type: str
    content: str
    metadata: str
    tokens: tuple[str, ...]
    created_at: int
    seq: int
    thread_key: int | None = None
    resource_key: int | None = None


def given(messages: Iterable[MessageRecord], keys: dict[str, tuple[int, int]] | None = None) -> str:
    """Messages as one JSON parameter, with keys of threads and resources where given, by thread id."""
    return _encode(
        [
            GivenMessage(
                row.id,
                row.role,
                row.type,
                row.content,
                row.metadata,
                row.tokens,
                row.created_at,
                row.seq,
                *(keys[row.thread_id] if keys is not None else ()),
            )
            for row in messages
        ]
    ).decode()


def given_memories(memories: Sequence[MemoryRecord]) -> str:
    """Archive memories as one JSON parameter."""
    return _encode(memories).decode()


def message(row: Sequence[Any]) -> MessageRecord:
    """A row of ``message_columns``, which are the record's fields in their order."""
    return MessageRecord(*row)


def thread(row: Sequence[Any]) -> ThreadRecord:
    """A row of ``thread_columns``."""
    identifier, resource_id, title, metadata, working_memory, message_count, created_at, updated_at = row
    return ThreadRecord(
        id=identifier,
        resource_id=resource_id,
        title=title,
        metadata=metadata,
        working_memory=working_memory,
        message_count=message_count,
        created_at=created_at,
        updated_at=updated_at,
    )


def resource(row: Sequence[Any]) -> ResourceRecord:
    """A row of ``resource_columns``."""
    identifier, working_memory, metadata, revision, created_at, updated_at = row
    return ResourceRecord(
        id=identifier,
        working_memory=working_memory,
        metadata=metadata,
        revision=revision,
        created_at=created_at,
        updated_at=updated_at,
    )


def resource_values(record: ResourceRecord) -> dict[str, str | int | None]:
    """The parameters of ``put_resource``."""
    return {
        "id": record.id,
        "working_memory": record.working_memory,
        "metadata": record.metadata,
        "revision": record.revision,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


def memory(row: Sequence[Any]) -> MemoryRecord:
    """A row of ``memory_columns``."""
    identifier, content, folded, pinned, actor_type, actor_id, created_at = row
    return MemoryRecord(
        id=identifier,
        content=content,
        folded=folded,
        pinned=pinned,
        actor_type=actor_type,
        actor_id=actor_id,
        created_at=created_at,
    )
