"""Adapters that store the wrong things: batches, upserts, partial updates, merges, clones and deletes."""

from __future__ import annotations

import asyncio
import json
import unicodedata
from typing import Any, cast

from msgspec import UNSET
from msgspec.structs import replace

from threadkeep import DeletedResource
from threadkeep.records import MessageRecord, ResourceRecord, ThreadRecord
from threadkeep.reference import ReferenceAdapter
from threadkeep.requests import (
    ClonedThread,
    CloneThread,
    DeleteMessages,
    SaveMessages,
    TransferThread,
    UpdateMessages,
    UpdateResource,
    UpdateThread,
    WriteThread,
)

# --- threads ---


class EnsureOverwrites(ReferenceAdapter):
    async def write_thread(self, request: WriteThread) -> tuple[ThreadRecord, bool]:
        return await super().write_thread(replace(request, replace=True))


class SaveChangesTheOwner(ReferenceAdapter):
    async def write_thread(self, request: WriteThread) -> tuple[ThreadRecord, bool]:
        if request.replace:
            self._tables.threads.pop(request.thread.id, None)
        return await super().write_thread(request)


class SaveBelievesTheCount(ReferenceAdapter):
    async def write_thread(self, request: WriteThread) -> tuple[ThreadRecord, bool]:
        record, written = await super().write_thread(request)
        if written:
            record = self._tables.threads[record.id] = request.thread
        return record, written


class TitleErasesMetadata(ReferenceAdapter):
    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        if request.title is not UNSET and request.metadata is UNSET:
            request = replace(request, metadata={}, replace_metadata=True)
        return await super().update_thread(request)


class ReplacesMetadata(ReferenceAdapter):
    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        return await super().update_thread(replace(request, replace_metadata=True))


class DropsNulls(ReferenceAdapter):
    """Takes a null in metadata for the wish to delete the key."""

    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        if request.metadata is not UNSET:
            kept = {key: value for key, value in request.metadata.items() if value is not None}
            request = replace(request, metadata=kept)
        return await super().update_thread(request)


class IgnoresIfTitle(ReferenceAdapter):
    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        return await super().update_thread(replace(request, if_title=UNSET))


class GuardBeforeTheWrite(ReferenceAdapter):
    """Reads, and writes later, without looking again."""

    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        changed = request.apply(await self.get_thread(request.id))
        await asyncio.sleep(0)
        self._tables.threads[request.id] = changed
        return changed


class UpdatedAtIsNow(ReferenceAdapter):
    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        changed = replace(await super().update_thread(request), updated_at=request.now)
        self._tables.threads[request.id] = changed
        return changed


class UpdateIgnoresOwner(ReferenceAdapter):
    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        return await super().update_thread(replace(request, resource_id=None))


class DeleteKeepsMessages(ReferenceAdapter):
    async def delete_thread(self, thread_id: str, resource_id: str | None) -> bool:
        messages = dict(self._tables.messages)
        deleted = await super().delete_thread(thread_id, resource_id)
        self._tables.messages.update(messages)
        return deleted


class ClearDeletesTheThread(ReferenceAdapter):
    async def clear_thread(self, thread_id: str, resource_id: str | None, now: int) -> int:
        count = await super().clear_thread(thread_id, resource_id, now)
        await super().delete_thread(thread_id, resource_id)
        return count


class ClearTouchesEmptyThreads(ReferenceAdapter):
    async def clear_thread(self, thread_id: str, resource_id: str | None, now: int) -> int:
        count = await super().clear_thread(thread_id, resource_id, now)
        if thread_id in self._tables.threads:
            self._tables.threads[thread_id] = replace(self._tables.threads[thread_id], updated_at=now)
        return count


class TransferLeavesMessages(ReferenceAdapter):
    async def transfer_thread(self, request: TransferThread) -> ThreadRecord:
        messages = dict(self._tables.messages)
        changed = await super().transfer_thread(request)
        self._tables.messages.update(messages)
        return changed


# --- clones ---


class CloneKeepsIds(ReferenceAdapter):
    async def clone_thread(self, request: CloneThread) -> ClonedThread:
        cloned = await super().clone_thread(request)
        for old, new in cloned.ids:
            self._tables.messages[old] = replace(self._tables.messages.pop(new), id=old)
        return cloned._replace(ids=[(old, old) for old, _ in cloned.ids])


class CloneChanges(ReferenceAdapter):
    """Changes the clone's own record."""

    def changed(self, source: ThreadRecord, clone: ThreadRecord) -> ThreadRecord:
        raise NotImplementedError

    async def clone_thread(self, request: CloneThread) -> ClonedThread:
        cloned = await super().clone_thread(request)
        changed = self.changed(self._tables.threads[request.source_id], cloned.thread)
        self._tables.threads[changed.id] = changed
        return cloned._replace(thread=changed)


class CloneDropsWorkingMemory(CloneChanges):
    def changed(self, source: ThreadRecord, clone: ThreadRecord) -> ThreadRecord:
        return replace(clone, working_memory=None)


class CloneCopiesMetadata(CloneChanges):
    def changed(self, source: ThreadRecord, clone: ThreadRecord) -> ThreadRecord:
        return replace(clone, metadata=json.dumps(json.loads(source.metadata) | json.loads(clone.metadata)))


class CloneKeepsTimes(CloneChanges):
    def changed(self, source: ThreadRecord, clone: ThreadRecord) -> ThreadRecord:
        return replace(clone, created_at=source.created_at)


class CloneCountsNothing(CloneChanges):
    def changed(self, source: ThreadRecord, clone: ThreadRecord) -> ThreadRecord:
        return replace(clone, message_count=0)


class CloneReversesOrder(ReferenceAdapter):
    async def clone_thread(self, request: CloneThread) -> ClonedThread:
        cloned = await super().clone_thread(request)
        rows = [self._tables.messages[new] for _, new in cloned.ids]
        for row, other in zip(rows, reversed(rows), strict=True):
            self._tables.messages[row.id] = replace(row, created_at=other.created_at, seq=other.seq)
        return cloned


class CloneKeepsOldest(ReferenceAdapter):
    async def clone_thread(self, request: CloneThread) -> ClonedThread:
        if request.limit is not None:
            rows = [row for row in self._tables.messages.values() if row.thread_id == request.source_id]
            oldest = sorted(rows, key=lambda row: row.position)[: request.limit]
            request = replace(request, limit=None, message_ids=tuple(row.id for row in oldest))
        return await super().clone_thread(request)


class CloneShowsEarly(ReferenceAdapter):
    """Writes the thread, then its messages."""

    async def clone_thread(self, request: CloneThread) -> ClonedThread:
        cloned = await super().clone_thread(request)
        copies = {new: self._tables.messages.pop(new) for _, new in cloned.ids}
        for _ in range(3):
            await asyncio.sleep(0)
        self._tables.messages.update(copies)
        return cloned


class CloneWritesOverTakenIds(ReferenceAdapter):
    async def clone_thread(self, request: CloneThread) -> ClonedThread:
        if request.thread_id != request.source_id:
            self._tables.threads.pop(request.thread_id, None)
        return await super().clone_thread(request)


# --- messages ---


class SavesOneByOne(ReferenceAdapter):
    """Has written the first ones when it fails at a later one."""

    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        stored: list[MessageRecord] = []
        for message in request.messages:
            stored += await super().save_messages(replace(request, messages=(message,)))
        return stored


class BatchesCanBeSeenGrowing(ReferenceAdapter):
    """Fails before it writes, but lets readers in between."""

    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        stored: list[MessageRecord] = []
        for message in request.messages:
            stored += await super().save_messages(replace(request, messages=(message,)))
            await asyncio.sleep(0)
        return stored


class DropsMicroseconds(ReferenceAdapter):
    """As a database with milliseconds does."""

    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        cut = [replace(row, created_at=row.created_at // 1000 * 1000) for row in request.messages]
        return await super().save_messages(replace(request, messages=tuple(cut)))


class UpsertIsDeleteAndInsert(ReferenceAdapter):
    """A known message gets a new ``seq`` and time."""

    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        for message in request.messages:
            self._tables.messages.pop(message.id, None)
        return await super().save_messages(request)


class UpsertTakesTheGivenTime(ReferenceAdapter):
    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        given = {row.id: row.created_at for row in request.messages}
        stored = [replace(row, created_at=given[row.id]) for row in await super().save_messages(request)]
        self._tables.messages.update({row.id: row for row in stored})
        return stored


class UpsertMovesBetweenThreads(ReferenceAdapter):
    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        for message in request.messages:
            there = self._tables.messages.get(message.id)
            if there is not None:
                self._tables.messages[message.id] = replace(there, thread_id=message.thread_id)
        return await super().save_messages(request)


class SavesForAnybody(ReferenceAdapter):
    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        return await super().save_messages(replace(request, resource_id=None))


class SaveDoesNotTouch(ReferenceAdapter):
    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        before = {name: self._tables.threads.get(name) for name in request.thread_ids()}
        stored = await super().save_messages(request)
        for name, thread in before.items():
            if thread is not None:
                now = self._tables.threads[name]
                self._tables.threads[name] = replace(now, updated_at=thread.updated_at)
        return stored


class CountsUpsertsTwice(ReferenceAdapter):
    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        known = sum(row.id in self._tables.messages for row in request.messages)
        stored = await super().save_messages(request)
        for name in request.thread_ids():
            thread = self._tables.threads[name]
            self._tables.threads[name] = replace(thread, message_count=thread.message_count + known)
        return stored


class MoveCountsOneThread(ReferenceAdapter):
    """Counts the thread moved to and forgets the one moved from."""

    async def update_messages(self, request: UpdateMessages) -> list[MessageRecord]:
        before = dict(self._tables.threads)
        changed = await super().update_messages(request)
        for name, thread in before.items():
            if name not in request.targets():
                self._tables.threads[name] = thread
        return changed


class UpdatesAnybodys(ReferenceAdapter):
    async def update_messages(self, request: UpdateMessages) -> list[MessageRecord]:
        return await super().update_messages(replace(request, resource_id=None))


class DeletesAnybodys(ReferenceAdapter):
    async def delete_messages(self, request: DeleteMessages) -> int:
        return await super().delete_messages(replace(request, resource_id=None))


class CountsDeletedMessages(ReferenceAdapter):
    """Leaves ``message_count`` as it was."""

    async def delete_messages(self, request: DeleteMessages) -> int:
        before = dict(self._tables.threads)
        deleted = await super().delete_messages(request)
        for name, thread in self._tables.threads.items():
            self._tables.threads[name] = replace(thread, message_count=before[name].message_count)
        return deleted


# --- content and strings ---


class Rewrites(ReferenceAdapter):
    """Does something to content on its way in."""

    def rewritten(self, content: Any) -> Any:
        raise NotImplementedError

    async def save_messages(self, request: SaveMessages) -> list[MessageRecord]:
        rows = [
            replace(row, content=json.dumps(self.rewritten(json.loads(row.content))))
            for row in request.messages
        ]
        return await super().save_messages(replace(request, messages=tuple(rows)))


class IntegersBecomeFloats(Rewrites):
    def rewritten(self, content: Any) -> Any:
        def number(text: str) -> int | float:
            return int(text) if abs(int(text)) < 2**53 else float(text)

        return json.loads(json.dumps(content), parse_int=number)


class ReplacesSurrogates(Rewrites):
    def rewritten(self, content: Any) -> Any:
        text = json.dumps(content, ensure_ascii=False)
        return json.loads(text.encode(errors="replace").decode())


class StripsNul(Rewrites):
    def rewritten(self, content: Any) -> Any:
        return json.loads(json.dumps(content).replace("\\u0000", ""))


class SortsKeys(Rewrites):
    def rewritten(self, content: Any) -> Any:
        return json.loads(json.dumps(content, sort_keys=True))


class NormalisesIds(ReferenceAdapter):
    async def write_thread(self, request: WriteThread) -> tuple[ThreadRecord, bool]:
        name = unicodedata.normalize("NFC", request.thread.id)
        return await super().write_thread(replace(request, thread=replace(request.thread, id=name)))

    async def get_thread(self, thread_id: str) -> ThreadRecord | None:
        return await super().get_thread(unicodedata.normalize("NFC", thread_id))


# --- resources ---


class SaveRaisesRevision(ReferenceAdapter):
    async def put_resource(self, resource: ResourceRecord) -> ResourceRecord:
        return await super().put_resource(replace(resource, revision=resource.revision + 1))


class IgnoresIfRevision(ReferenceAdapter):
    async def update_resource(self, request: UpdateResource) -> ResourceRecord:
        return await super().update_resource(replace(request, if_revision=None))


class DeleteResourceLeavesMessages(ReferenceAdapter):
    async def delete_resource(self, resource_id: str) -> DeletedResource:
        messages = dict(self._tables.messages)
        deleted = await super().delete_resource(resource_id)
        self._tables.messages.update(messages)
        return deleted


class LosesUpdates(ReferenceAdapter):
    """Reads, gives others a turn, and writes what it made of what it had read."""

    async def update_resource(self, request: UpdateResource) -> ResourceRecord:
        stored = await self.get_resource(request.id)
        await asyncio.sleep(0)
        return await self.put_resource(request.apply(stored))


class Merges(ReferenceAdapter):
    """Merges working memory its own way."""

    def merged(self, document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    async def update_resource(self, request: UpdateResource) -> ResourceRecord:
        if request.merge is not UNSET:
            stored = await self.get_resource(request.id)
            text = "{}" if stored is None else stored.working_memory or "{}"
            document = json.dumps(self.merged(json.loads(text), request.merge))
            request = replace(request, merge=UNSET, working_memory=document)
        return await super().update_resource(request)


def _merge(document: dict[str, Any], patch: dict[str, Any], *, arrays: bool = False) -> dict[str, Any]:
    """A deep merge that keeps the nulls of new branches, and may concatenate arrays."""
    result = dict(document)
    for key, value in patch.items():
        there = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(there, dict):
            inner = cast("dict[str, Any]", value)
            result[key] = _merge(cast("dict[str, Any]", there), inner, arrays=arrays)
        elif arrays and isinstance(value, list) and isinstance(there, list):
            result[key] = [*cast("list[Any]", there), *cast("list[Any]", value)]
        else:
            result[key] = value
    return result


class MergeKeepsNulls(Merges):
    def merged(self, document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
        return _merge(document, patch)


class MergeConcatenatesArrays(Merges):
    def merged(self, document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
        return _merge(document, patch, arrays=True)


class MergeIsShallow(Merges):
    def merged(self, document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in {**document, **patch}.items() if value is not None}


class MergeMakesFloats(Merges):
    """As a document model with one kind of number does."""

    def merged(self, document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
        return json.loads(json.dumps(_merge(document, patch)), parse_int=float)
