"""Rows to records and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from threadkeep.records import MemoryRecord, MessageRecord, ResourceRecord, ThreadRecord

from ._driver import Value

__all__ = [
    "json_array",
    "memory",
    "memory_row",
    "message",
    "resource",
    "resource_row",
    "thread",
    "token_object",
]

_encode = msgspec.json.Encoder().encode


def json_array(values: Sequence[str] | Sequence[int]) -> str:
    """A list as one parameter, for ``json_each``."""
    return _encode(values).decode()


def token_object(tokens: Iterable[str]) -> str:
    """Filter tokens as the JSON object that the ``tokens`` columns hold: ``{key: token without "key="}``."""
    pairs = [token.partition("=") for token in tokens]
    return _encode({key: body for key, _, body in pairs}).decode()


def indexed_tokens(tokens: tuple[str, ...], indexed: frozenset[str]) -> tuple[str, ...]:
    """Those of a message's tokens that are in the index."""
    if "*" in indexed:
        return tokens
    return tuple([token for token in tokens if token.partition("=")[0] in indexed])


def message(row: Sequence[Any]) -> MessageRecord:
    """A row of ``columns``, which are the record's fields in their order."""
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
    """A row of ``resource_by_id`` or ``list_resources``."""
    identifier, working_memory, metadata, revision, created_at, updated_at = row
    return ResourceRecord(
        id=identifier,
        working_memory=working_memory,
        metadata=metadata,
        revision=revision,
        created_at=created_at,
        updated_at=updated_at,
    )


def resource_row(record: ResourceRecord) -> tuple[Value, ...]:
    """The parameters of ``put_resource``."""
    return (
        record.id,
        record.working_memory,
        record.metadata,
        record.revision,
        record.created_at,
        record.updated_at,
    )


def memory(row: Sequence[Any]) -> MemoryRecord:
    """A row of ``list_memories`` or ``memory_by_id``."""
    identifier, content, folded, pinned, actor_type, actor_id, created_at = row
    return MemoryRecord(
        id=identifier,
        content=content,
        folded=folded,
        pinned=bool(pinned),
        actor_type=actor_type,
        actor_id=actor_id,
        created_at=created_at,
    )


def memory_row(record: MemoryRecord) -> tuple[Value, ...]:
    """The parameters of ``insert_memory`` and ``replace_memory``."""
    return (
        record.id,
        record.content,
        record.folded,
        int(record.pinned),
        record.actor_type,
        record.actor_id,
        record.created_at,
    )
