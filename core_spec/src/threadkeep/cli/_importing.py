"""Writing a file's entries into a store: batch by batch, each refused as a whole or kept as a whole."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ..errors import AlreadyExistsError, LimitExceededError, NotFoundError, OwnershipError, ThreadkeepError
from ..errors import ConflictError, InvalidArgumentError
from ..models import ArchiveMemory, Message, NewMessage, Resource, Thread
from ..registry import open_store
from ..store import Store
from .formats import BadInputError, Entry

__all__ = ["Counts", "import_entries"]

_BATCH = 1000
_BATCH_BYTES = 8 * 1024 * 1024
_REFUSALS = (InvalidArgumentError, NotFoundError, OwnershipError, AlreadyExistsError, ConflictError)
_decode_thread = msgspec.json.Decoder(Thread).decode

Counts = Counter[str]
"""How many were written of each kind."""


async def import_entries(store: Store, entries: Iterable[Entry]) -> Counts:
    """Write everything; what is there already is replaced, so that an interrupted import is simply run again.

    Saving messages touches their threads. So that these end up as the file has them, each is saved once more at the
    end; until then they wait in a temporary file, since a file may have any number of them.

    Raises:
        BadInputError: An entry breaks a rule. Nothing of its batch was written, nor anything after it.
        ThreadkeepError: An entry does not go with what is stored; its place is in a note. The same holds.
    """
    counts: Counts = Counter()
    with tempfile.TemporaryFile() as spool:
        for batch in _batches(entries):
            threads = await _write(store, batch)
            spool.writelines(msgspec.json.encode(thread) + b"\n" for thread in threads)
            counts.update(_kind(entry.record) for entry in batch)
        if counts["message"] and counts["thread"]:
            spool.seek(0)
            for line in spool:
                await store.save_thread(_decode_thread(line))
    return counts


def _kind(record: object) -> str:
    if isinstance(record, Thread):
        return "thread"
    if isinstance(record, Resource):
        return "resource"
    return "memory" if isinstance(record, ArchiveMemory) else "message"


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """At most 1,000 entries and about 8 MiB at a time."""
    batch, size = list[Entry](), 0
    for entry in entries:
        if batch and (len(batch) == _BATCH or size + entry.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.size
    if batch:
        yield batch


async def _write(store: Store, batch: list[Entry]) -> list[Thread]:
    """Write a batch, and return its threads as they were saved."""
    messages = [entry.record for entry in batch if isinstance(entry.record, (Message, NewMessage))]
    if len(messages) == len(batch):
        # One call, which takes all or none by itself: only when it does not, see which one it was.
        try:
            await _save_messages(store, messages)
        except _REFUSALS:
            await _rehearse(store, batch)
            raise
        return []
    threads = await _rehearse(store, batch)
    for entry in batch:
        if isinstance(entry.record, Resource):
            await store.save_resource(entry.record)
    memories = {entry.record.id: entry.record for entry in batch if isinstance(entry.record, ArchiveMemory)}
    await store.save_memories(memories.values())
    for thread in threads:
        await store.save_thread(thread)
    await _save_messages(store, messages)
    return threads


async def _save_messages(store: Store, messages: Sequence[Message | NewMessage]) -> None:
    try:
        await store.save_messages(messages)
    except LimitExceededError:
        if len(messages) == 1:
            raise
        half = len(messages) // 2
        await _save_messages(store, messages[:half])
        await _save_messages(store, messages[half:])


async def _rehearse(store: Store, batch: list[Entry]) -> list[Thread]:
    """Do to a copy of what is stored what is going to be done to the store: any refusal comes before any write.

    Returns:
        The batch's threads as they are to be saved.
    """
    async with open_store("memory:") as stage:
        await _set_stage(store, stage, batch)
        threads: list[Thread] = []
        for entry in batch:
            try:
                saved = await _rehearse_entry(stage, entry)
            except InvalidArgumentError as exc:
                raise BadInputError(entry.place, _reason(exc)) from exc
            except ThreadkeepError as exc:
                exc.add_note(entry.place)
                raise
            if isinstance(saved, Thread):
                threads.append(saved)
    return threads


async def _set_stage(store: Store, stage: Store, batch: list[Entry]) -> None:
    """Copy what the batch is about: its threads, and those of its messages that exist, with their threads."""
    ids = [str(e.record.id) for e in batch if isinstance(e.record, (Message, NewMessage)) and _is_id(e.record.id)]
    stored = await store.get_messages(ids)
    wanted = [e.record.id if isinstance(e.record, Thread) else e.record.thread_id for e in batch if not isinstance(e.record, (Resource, ArchiveMemory))]
    for name in dict.fromkeys([*wanted, *[message.thread_id for message in stored]]):
        thread = await store.get_thread(name) if _is_id(name) else None
        if thread is not None:
            await stage.save_thread(thread)
    await stage.save_messages(stored)


def _is_id(value: Any) -> bool:
    """Whether it may be looked up; what may not, is refused by name when it is its turn."""
    return isinstance(value, str) and 0 < len(value) <= 255 and value.isprintable()  # noqa: PLR2004


async def _rehearse_entry(stage: Store, entry: Entry) -> Any:
    record = entry.record
    if isinstance(record, Thread):
        if entry.is_partial:
            record = _onto(await stage.get_thread(record.id), record)
        await stage.save_thread(record)
        return record
    if isinstance(record, Resource):
        return await stage.save_resource(record)
    if isinstance(record, ArchiveMemory):
        return await stage.save_memories([record])
    return await stage.save_messages([record])


def _onto(stored: Thread | None, given: Thread) -> Thread:
    """A thread whose file does not say everything about it: what is stored besides, stays."""
    if stored is None:
        return given
    return replace(
        given,
        title=given.title or stored.title,
        metadata={**stored.metadata, **given.metadata},
        working_memory=stored.working_memory,
        created_at=min(stored.created_at, given.created_at),
        updated_at=max(stored.updated_at, given.updated_at),
    )


def _reason(error: InvalidArgumentError) -> str:
    """The error without the position in a list of one that the file knows nothing of."""
    return str(error).replace("messages[0].", "").replace("memories[0].", "")
