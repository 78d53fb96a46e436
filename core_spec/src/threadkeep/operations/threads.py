"""Operations on threads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from types import NoneType
from typing import cast

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from .. import arguments as check
from ..capabilities import Capability
from ..clock import clock
from ..conversion import message_of, thread_of
from ..cursors import decode_cursor, fingerprint
from ..errors import AlreadyExistsError, InvalidArgumentError, InvalidCursorError, OwnershipError
from ..filters import Where, conditions, exists
from ..jsontext import encode_metadata, kind
from ..models import (
    Clone,
    CloneMetadata,
    Explanation,
    Metadata,
    Order,
    Page,
    Thread,
    ThreadOrder,
    TimeRange,
    new_id,
)
from ..records import Position, ThreadRecord
from ..requests import (
    Bounds,
    CloneThread,
    ThreadQuery,
    ThreadSlice,
    TransferThread,
    UpdateThread,
    WriteThread,
    matches_nothing,
)
from ..tokens import metadata_tokens
from .base import Operations, limit_of, page_of, pages

__all__ = ["ThreadOperations"]


class ThreadOperations(Operations):
    """Create, read, list, change, delete, transfer and clone threads."""

    async def create_thread(
        self,
        resource_id: str,
        *,
        thread_id: str | None = None,
        title: str = "",
        metadata: Metadata | None = None,
        created_at: datetime | None = None,
    ) -> Thread:
        """Create a thread.

        Args:
            resource_id: Its owner; 1 to 255 characters.
            thread_id: Its id, 1 to 255 characters; a UUIDv7 where omitted. With an id given, the call is safe
                to repeat after an unknown outcome: a second one says that it exists.
            title: Up to 1,000 characters.
            metadata: A JSON object of at most 64 levels and 64 KiB.
            created_at: An aware datetime; omitted, now. It is the thread's ``updated_at`` as well.

        Raises:
            AlreadyExistsError: The id is taken. Nothing was written.
            InvalidArgumentError: An argument breaks a rule. Nothing was written.
        """
        record = _new_thread(resource_id, thread_id, title, metadata, created_at)
        stored, written = await self._open_adapter().write_thread(WriteThread(thread=record, replace=False))
        if not written:
            raise AlreadyExistsError("thread", record.id)
        return thread_of(stored)

    async def ensure_thread(
        self,
        resource_id: str,
        *,
        thread_id: str,
        title: str = "",
        metadata: Metadata | None = None,
        created_at: datetime | None = None,
    ) -> Thread:
        """Create a thread, or return the one that has this id, as one atomic step. Safe to repeat.

        Args:
            resource_id: Its owner.
            thread_id: Its id.
            title: For a new thread; an existing one keeps its own. So with all that follow.
            metadata: See :meth:`create_thread`.
            created_at: See :meth:`create_thread`.

        Raises:
            OwnershipError: It exists under another resource. Nothing was written.
            InvalidArgumentError: An argument breaks a rule. Nothing was written.
        """
        identifier = check.identifier(thread_id, "thread_id")
        record = _new_thread(resource_id, identifier, title, metadata, created_at)
        stored, _ = await self._open_adapter().write_thread(WriteThread(thread=record, replace=False))
        if stored.resource_id != record.resource_id:
            raise OwnershipError("thread", identifier)
        return thread_of(stored)

    async def save_thread(self, thread: Thread) -> Thread:
        """Store a thread exactly as it is, replacing one with its id; for imports. Safe to repeat.

        Times are kept, ``message_count`` is ignored, messages are left alone.

        Raises:
            OwnershipError: It exists under another resource. Nothing was written.
            InvalidArgumentError: A field breaks a rule. Nothing was written.
        """
        thread = check.instance_of(thread, Thread, "thread")
        text, metadata = encode_metadata(thread.metadata, "thread.metadata")
        record = ThreadRecord(
            id=check.identifier(thread.id, "thread.id"),
            resource_id=check.identifier(thread.resource_id, "thread.resource_id"),
            title=check.title(thread.title, "thread.title"),
            metadata=text,
            tokens=metadata_tokens(metadata),
            working_memory=check.document(thread.working_memory, "thread.working_memory"),
            created_at=check.moment(thread.created_at, "thread.created_at"),
            updated_at=check.moment(thread.updated_at, "thread.updated_at"),
        )
        stored, _ = await self._open_adapter().write_thread(WriteThread(thread=record, replace=True))
        return thread_of(stored)

    async def get_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """The thread, or None where there is none (or, with *resource_id*, it is another resource's)."""
        identifier = check.identifier(thread_id, "thread_id")
        scope = check.optional_identifier(resource_id, "resource_id")
        record = await self._open_adapter().get_thread(identifier)
        if record is None or (scope is not None and record.resource_id != scope):
            return None
        return thread_of(record)

    async def list_threads(
        self,
        *,
        resource_id: str | None = None,
        where: Where | None = None,
        order_by: ThreadOrder = "created_at",
        order: Order = "desc",
        page: int = 0,
        per_page: int | None = 100,
        cursor: str | None = None,
        with_total: bool = False,
    ) -> Page[Thread]:
        """A page of threads.

        Args:
            resource_id: Only this resource's; None for all.
            where: A metadata filter.
            order_by: The time they are ordered by, and then by id.
            order: ``desc``: newest first.
            page: From 0.
            per_page: A page's size; None for all, 0 for none.
            cursor: A page's ``next_cursor``, instead of *page*. A thread with an unchanged sort key is
                returned exactly once in a walk, any other at most once for each key it had.
            with_total: Count the matches too.

        Raises:
            InvalidArgumentError: An argument breaks a rule (also ``InvalidFilterError``,
                ``InvalidCursorError``).
            UnsupportedCapabilityError: The filter needs ``filter_operators``.
        """
        number, size = check.paging(page, per_page)
        query = self._thread_query(
            resource_id=resource_id,
            where=where,
            order_by=order_by,
            order=order,
            page=number,
            per_page=size,
            with_total=with_total,
        )
        bound = _thread_fingerprint(query)
        if cursor is not None:
            query = _after_cursor(query, cursor, bound, number)
        adapter = self._open_adapter()
        found = ThreadSlice([], 0 if query.count else None)
        if size != 0 and not matches_nothing(query.where):
            found = await adapter.list_threads(query)
        by_created = query.order_by == "created_at"
        return page_of(
            found.threads,
            thread_of,
            lambda row: (row.created_at if by_created else row.updated_at, row.id),
            page=number,
            per_page=size,
            total=found.total,
            query=lambda: bound,
        )

    async def iter_threads(
        self,
        *,
        resource_id: str | None = None,
        where: Where | None = None,
        order_by: ThreadOrder = "created_at",
        order: Order = "desc",
        per_page: int = 100,
    ) -> AsyncGenerator[Thread, None]:
        """Every matching thread, fetched page by page with cursors; see :meth:`list_threads`."""
        async for thread in pages(
            lambda cursor: self.list_threads(
                resource_id=resource_id,
                where=where,
                order_by=order_by,
                order=order,
                per_page=per_page,
                cursor=cursor,
            ),
            per_page,
        ):
            yield thread

    async def explain_threads(
        self,
        *,
        resource_id: str | None = None,
        where: Where | None = None,
        order_by: ThreadOrder = "created_at",
        order: Order = "desc",
        page: int = 0,
        per_page: int | None = 100,
        cursor: str | None = None,
        with_total: bool = False,
    ) -> Explanation:
        """How the database answers :meth:`list_threads` with the same arguments.

        Raises:
            UnsupportedCapabilityError: The backend cannot explain.
        """
        number, size = check.paging(page, per_page)
        query = self._thread_query(
            resource_id=resource_id,
            where=where,
            order_by=order_by,
            order=order,
            page=number,
            per_page=size,
            with_total=with_total,
        )
        if cursor is not None:
            query = _after_cursor(query, cursor, _thread_fingerprint(query), number)
        adapter = self._open_adapter()
        self._require(Capability.EXPLAIN, "explain_threads")
        return await adapter.explain_threads(query)

    async def update_thread(
        self,
        thread_id: str,
        *,
        title: str | UnsetType = UNSET,
        metadata: Metadata | UnsetType = UNSET,
        replace_metadata: bool = False,
        working_memory: str | UnsetType | None = UNSET,
        if_title: str | UnsetType = UNSET,
        resource_id: str | None = None,
    ) -> Thread:
        """Change some fields of a thread; what is omitted stays. Safe to repeat without concurrent writers.

        Args:
            thread_id: The thread.
            title: The new title.
            metadata: Merged shallowly into the stored metadata; a null is stored as null.
            replace_metadata: Replace the metadata instead.
            working_memory: The new document, up to 1 MiB; None removes it.
            if_title: Write only if this is the stored title.
            resource_id: The owner it must have.

        Raises:
            NotFoundError: There is no such thread. Nothing was written, here and below.
            OwnershipError: Another resource's.
            ConflictError: Its title is not *if_title*.
            InvalidArgumentError: An argument breaks a rule, or the merged metadata a limit.
        """
        request = UpdateThread(
            id=check.identifier(thread_id, "thread_id"),
            resource_id=check.optional_identifier(resource_id, "resource_id"),
            now=clock.take(),
            title=UNSET if title is UNSET else check.title(title),
            metadata=UNSET if metadata is UNSET else encode_metadata(metadata)[1],
            replace_metadata=check.flag(replace_metadata, "replace_metadata"),
            working_memory=UNSET if working_memory is UNSET else check.document(working_memory),
            if_title=UNSET if if_title is UNSET else check.title(if_title, "if_title"),
        )
        return thread_of(await self._open_adapter().update_thread(request))

    async def delete_thread(self, thread_id: str, *, resource_id: str | None = None) -> bool:
        """Delete a thread and its messages. Safe to repeat.

        Returns:
            Whether there was one.

        Raises:
            OwnershipError: Another resource's than *resource_id*. Nothing was deleted.
        """
        identifier = check.identifier(thread_id, "thread_id")
        scope = check.optional_identifier(resource_id, "resource_id")
        return await self._open_adapter().delete_thread(identifier, scope)

    async def clear_thread(self, thread_id: str, *, resource_id: str | None = None) -> int:
        """Delete all messages of a thread, keeping the thread. Safe to repeat.

        Returns:
            How many there were; 0 where there is no such thread.

        Raises:
            OwnershipError: Another resource's than *resource_id*. Nothing was deleted.
        """
        identifier = check.identifier(thread_id, "thread_id")
        scope = check.optional_identifier(resource_id, "resource_id")
        return await self._open_adapter().clear_thread(identifier, scope, clock.take())

    async def transfer_thread(
        self, thread_id: str, to_resource_id: str, *, resource_id: str | None = None
    ) -> Thread:
        """Give a thread and its messages to another resource. Safe to repeat without *resource_id*.

        Raises:
            NotFoundError: There is no such thread. Nothing was written, here and below.
            OwnershipError: Another resource's than *resource_id*.
        """
        request = TransferThread(
            id=check.identifier(thread_id, "thread_id"),
            resource_id=check.optional_identifier(resource_id, "resource_id"),
            to_resource_id=check.identifier(to_resource_id, "to_resource_id"),
            now=clock.take(),
        )
        return thread_of(await self._open_adapter().transfer_thread(request))

    async def clone_thread(
        self,
        source_thread_id: str,
        *,
        thread_id: str | None = None,
        to_resource_id: str | None = None,
        title: str | None = None,
        metadata: Metadata | None = None,
        message_limit: int | None = None,
        created: TimeRange | None = None,
        message_ids: Sequence[str] | None = None,
        return_messages: bool = False,
        resource_id: str | None = None,
    ) -> Clone:
        """Copy a thread inside the database; the copy appears complete.

        Messages get new ids and keep ``created_at`` and their order. The thread's working memory is copied,
        its metadata is not; ``metadata["clone"]`` says where the copy comes from.

        Args:
            source_thread_id: The thread to copy.
            thread_id: The copy's id; a UUIDv7 where omitted.
            to_resource_id: The copy's owner; the source's where omitted.
            title: The copy's title; omitted, ``Clone of`` and the source's.
            metadata: The copy's metadata.
            message_limit: Only the newest so many of the messages that the next two leave.
            created: Only messages created in this range.
            message_ids: Only these messages; an empty list copies none.
            return_messages: Return the new messages too; otherwise their bodies never leave the database.
            resource_id: The owner the source must have.

        Raises:
            NotFoundError: There is no such source. Nothing was written, here and below.
            AlreadyExistsError: *thread_id* is taken.
            OwnershipError: The source is another resource's than *resource_id*.
            InvalidArgumentError: An argument breaks a rule.
        """
        limit = message_limit
        request = CloneThread(
            source_id=check.identifier(source_thread_id, "source_thread_id"),
            resource_id=check.optional_identifier(resource_id, "resource_id"),
            thread_id=new_id() if thread_id is None else check.identifier(thread_id, "thread_id"),
            to_resource_id=check.optional_identifier(to_resource_id, "to_resource_id"),
            title=None if title is None else check.title(title),
            metadata=encode_metadata({} if metadata is None else metadata)[1],
            dates=check.time_range(created).bounds(),
            message_ids=None if message_ids is None else tuple(check.identifiers(message_ids, "message_ids")),
            limit=None
            if limit is None
            else check.integer(limit, "message_limit", least=0, most=check.ROWS_MAX),
            now=clock.take(),
            seq=clock.take(),
            return_messages=check.flag(return_messages, "return_messages"),
        )
        copy = await self._open_adapter().clone_thread(request)
        clock.take(max(len(copy.ids), 1))  # the copies' seq values are used up
        return Clone(
            thread=thread_of(copy.thread),
            id_map=dict(copy.ids),
            messages=None if copy.messages is None else [message_of(message) for message in copy.messages],
        )

    # --- clone helpers ----------------------------------------------------------------------------

    def get_clone_metadata(self, thread: Thread) -> CloneMetadata | None:
        """What a thread's metadata says of its origin, or None if it is no clone. Reads nothing."""
        return _clone_metadata(check.instance_of(thread, Thread, "thread"))

    def is_clone(self, thread: Thread) -> bool:
        """Whether a thread was made by :meth:`clone_thread`. Reads nothing."""
        return self.get_clone_metadata(thread) is not None

    async def get_source_thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """The thread that a clone was copied from; None if it is no clone, or one of the two is not there."""
        thread = await self.get_thread(thread_id, resource_id=resource_id)
        origin = None if thread is None else _clone_metadata(thread)
        return (
            None
            if origin is None
            else await self.get_thread(origin.source_thread_id, resource_id=resource_id)
        )

    async def list_clones(self, thread_id: str, *, resource_id: str | None = None) -> list[Thread]:
        """The threads that were copied from this one, oldest first. Reads every clone in the scope."""
        identifier = check.identifier(thread_id, "thread_id")
        narrow: Where | None = (
            {"clone": exists()} if self.capabilities.has(Capability.FILTER_OPERATORS) else None
        )
        found: list[Thread] = []
        async for thread in self.iter_threads(resource_id=resource_id, where=narrow, order="asc"):
            origin = _clone_metadata(thread)
            if origin is not None and origin.source_thread_id == identifier:
                found.append(thread)
        return found

    async def get_clone_history(self, thread_id: str, *, resource_id: str | None = None) -> list[Thread]:
        """A thread and what it was copied from, the first ancestor first and the thread itself last.

        Stops at an ancestor that is gone (or not in scope) and at a cycle. Empty where there is no such
        thread.
        """
        found: dict[str, Thread] = {}
        thread = await self.get_thread(thread_id, resource_id=resource_id)
        while thread is not None and thread.id not in found:
            found[thread.id] = thread
            origin = _clone_metadata(thread)
            if origin is None:
                break
            thread = await self.get_thread(origin.source_thread_id, resource_id=resource_id)
        return list(reversed(found.values()))

    # --- inside -----------------------------------------------------------------------------------

    def _thread_query(
        self,
        *,
        resource_id: object,
        where: Where | None,
        order_by: object,
        order: object,
        page: int,
        per_page: int | None,
        with_total: object,
    ) -> ThreadQuery:
        checked = conditions(where)
        self._require_operators(checked)
        count = check.flag(with_total, "with_total") and per_page != 0
        by = check.one_of(order_by, "order_by", ("created_at", "updated_at"))
        return ThreadQuery(
            resource_id=check.optional_identifier(resource_id, "resource_id"),
            where=checked,
            order_by="created_at" if by == "created_at" else "updated_at",
            descending=check.one_of(order, "order", ("asc", "desc")) == "desc",
            limit=limit_of(per_page),
            offset=page * (per_page or 0),
            count=count,
        )


def _new_thread(
    resource_id: str,
    thread_id: str | None,
    title: str,
    metadata: Metadata | None,
    created_at: datetime | None,
) -> ThreadRecord:
    owner = check.identifier(resource_id, "resource_id")
    text, whole = encode_metadata({} if metadata is None else metadata)
    given = check.optional_moment(created_at, "created_at")
    at = clock.take() if given is None else given
    return ThreadRecord(
        id=new_id() if thread_id is None else check.identifier(thread_id, "thread_id"),
        resource_id=owner,
        title=check.title(title),
        metadata=text,
        tokens=metadata_tokens(whole),
        created_at=at,
        updated_at=at,
    )


def _thread_fingerprint(query: ThreadQuery) -> bytes:
    where = [(c.key, c.operator, c.values) for c in query.where]
    return fingerprint("threads", query.resource_id, where, query.order_by, query.descending)


def _after_cursor(query: ThreadQuery, cursor: object, bound: bytes, page: int) -> ThreadQuery:
    at, identifier = decode_cursor(cursor, bound, (int, str))
    if page:
        raise InvalidCursorError("cursor", "given without page", "both")
    place = Position(at, 0, identifier)
    bounds = Bounds(None, place) if query.descending else Bounds(place, None)
    return replace(query, bounds=bounds)


def _clone_metadata(thread: Thread) -> CloneMetadata | None:
    metadata = cast("object", thread.metadata)
    if not isinstance(metadata, dict):
        raise InvalidArgumentError("thread.metadata", "a dict (a JSON object)", kind(metadata))
    found = cast("dict[str, object]", metadata).get("clone")
    if not isinstance(found, dict):
        return None
    clone = cast("dict[str, object]", found)
    origin, at, last = (clone.get(key) for key in ("sourceThreadId", "clonedAt", "lastMessageId"))
    if not isinstance(origin, str) or not isinstance(at, str) or not isinstance(last, (str, NoneType)):
        return None  # the caller's own metadata under this name
    try:
        moment = datetime.fromisoformat(at)
        cloned_at = moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
    return cloned_at and CloneMetadata(source_thread_id=origin, cloned_at=cloned_at, last_message_id=last)
