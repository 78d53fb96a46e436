"""Operations on messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from .. import arguments as check
from ..capabilities import Capability
from ..clock import clock
from ..conversion import message_of, message_with
from ..cursors import decode_cursor, fingerprint
from ..errors import ConflictError, InvalidArgumentError, InvalidCursorError, OwnershipError
from ..filters import Where, conditions
from ..jsontext import encode_content, encode_metadata
from ..models import (
    Explanation,
    Include,
    Message,
    MessageUpdate,
    Metadata,
    NewMessage,
    Order,
    Page,
    TimeRange,
)
from ..records import MessageRecord, Position
from ..requests import (
    Bounds,
    DeleteMessages,
    MessageChange,
    MessageQuery,
    MessageSlice,
    SaveMessages,
    UpdateMessages,
    matches_nothing,
)
from ..tokens import metadata_tokens
from .base import Operations, limit_of, page_of, pages

__all__ = ["MessageOperations"]


class MessageOperations(Operations):
    """Save, read, list, change and delete messages."""

    async def save_messages(
        self,
        messages: Iterable[NewMessage | Message],
        *,
        atomic: bool | None = None,
        resource_id: str | None = None,
    ) -> list[Message]:
        """Store messages in the given order. Safe to repeat after an unknown outcome.

        Args:
            messages: Any number; none is a no-op. An id that exists is replaced and keeps its ``created_at``
                and ``seq``. Of two equal ids the last content is stored at the first's position. A stored
                :class:`Message` keeps its own ``created_at`` and ``seq``.
            atomic: True: refuse where the backend cannot store a batch all or none. None: its best.
            resource_id: The owner that all their threads must have.

        Returns:
            The stored messages, each once, in the given order.

        Raises:
            InvalidArgumentError: A message breaks a rule. Nothing was written, here and below.
            NotFoundError: A thread does not exist.
            OwnershipError: A thread or an existing message belongs to another resource than it must.
            ConflictError: An existing message is in another thread.
            LimitExceededError: Too large for this backend.
            UnsupportedCapabilityError: *atomic*, and the backend cannot.
            PartialWriteError: Without atomic batches only: some were written; repeat the call.
            UnavailableError: ``outcome`` tells whether the write may have happened.
        """
        given = check.items_of(messages, "messages")
        scope = check.optional_identifier(resource_id, "resource_id")
        needs_atomic = check.optional_flag(atomic, "atomic")
        records, bodies = _new_records(given)
        adapter = self._open_adapter()
        if needs_atomic:
            self._require(Capability.ATOMIC_BATCH, "save_messages(atomic=True)")
        if not records:
            return []
        request = SaveMessages(messages=tuple(records), resource_id=scope, now=clock.take())
        stored = await adapter.save_messages(request)
        return [message_with(record, *bodies[record.id]) for record in stored]

    async def get_messages(
        self, ids: str | Iterable[str], *, resource_id: str | None = None
    ) -> list[Message]:
        """Messages by id, each once, in the total order; unknown ids (and other resources') are skipped."""
        wanted = check.identifiers(ids, "ids")
        scope = check.optional_identifier(resource_id, "resource_id")
        adapter = self._open_adapter()
        found = await adapter.get_messages(wanted, scope) if wanted else []
        return [message_of(record) for record in found]

    async def list_messages(
        self,
        threads: str | Sequence[str] | None = None,
        *,
        resource_id: str | None = None,
        where: Where | None = None,
        created: TimeRange | None = None,
        include: Sequence[Include] = (),
        order: Order = "asc",
        page: int = 0,
        per_page: int | None = 40,
        cursor: str | None = None,
        with_total: bool = False,
    ) -> Page[Message]:
        """A page of messages, with windows around others.

        Args:
            threads: One thread id or up to 100; an empty list selects nothing.
            resource_id: The owner of all that is returned. At least one of the two is needed; with both, both
                hold.
            where: A metadata filter.
            created: A range of ``created_at``.
            include: Messages to add with their neighbours, up to 100, whatever *where* and *created* say.
                They change neither the total nor ``has_more`` nor cursors; ``Page.matched_ids`` tells them
                apart.
            order: ``asc``: oldest first.
            page: From 0.
            per_page: A page's size; None for all, 0 for none (for includes alone).
            cursor: A page's ``next_cursor``, instead of *page*; see :meth:`list_threads`.
            with_total: Count the matches too; of an unfiltered thread that costs nothing.

        Raises:
            InvalidArgumentError: An argument breaks a rule (also ``InvalidFilterError``,
                ``InvalidCursorError``).
            UnsupportedCapabilityError: The filter needs ``filter_operators``.
        """
        number, size = check.paging(page, per_page)
        query = self._message_query(
            threads=threads,
            resource_id=resource_id,
            where=where,
            created=created,
            include=include,
            order=order,
            page=number,
            per_page=size,
            with_total=with_total,
            cursor=cursor,
        )
        adapter = self._open_adapter()
        found = await adapter.list_messages(query) if query.limit != 0 or query.includes else MessageSlice([])
        result = page_of(
            found.messages,
            message_of,
            lambda row: (row.created_at, row.seq, row.id),
            page=number,
            per_page=size,
            total=0 if query.limit == 0 and size != 0 and with_total else found.total,
            query=lambda: _message_fingerprint(query),
        )
        if not found.windows:
            return result
        around = {row.id: row for row in found.windows if row.id not in result.matched_ids}
        items = result.items + [message_of(row) for row in around.values()]
        items.sort(key=lambda item: (item.created_at, item.seq, item.id), reverse=query.descending)
        return replace(result, items=items)

    async def iter_messages(
        self,
        threads: str | Sequence[str] | None = None,
        *,
        resource_id: str | None = None,
        where: Where | None = None,
        created: TimeRange | None = None,
        order: Order = "asc",
        per_page: int = 200,
    ) -> AsyncGenerator[Message, None]:
        """Every matching message, fetched page by page with cursors; see :meth:`list_messages`."""
        async for message in pages(
            lambda cursor: self.list_messages(
                threads,
                resource_id=resource_id,
                where=where,
                created=created,
                order=order,
                per_page=per_page,
                cursor=cursor,
            ),
            per_page,
        ):
            yield message

    async def explain_messages(
        self,
        threads: str | Sequence[str] | None = None,
        *,
        resource_id: str | None = None,
        where: Where | None = None,
        created: TimeRange | None = None,
        include: Sequence[Include] = (),
        order: Order = "asc",
        page: int = 0,
        per_page: int | None = 40,
        cursor: str | None = None,
        with_total: bool = False,
    ) -> Explanation:
        """How the database answers :meth:`list_messages` with the same arguments.

        Raises:
            UnsupportedCapabilityError: The backend cannot explain.
        """
        number, size = check.paging(page, per_page)
        query = self._message_query(
            threads=threads,
            resource_id=resource_id,
            where=where,
            created=created,
            include=include,
            order=order,
            page=number,
            per_page=size,
            with_total=with_total,
            cursor=cursor,
        )
        adapter = self._open_adapter()
        self._require(Capability.EXPLAIN, "explain_messages")
        return await adapter.explain_messages(query)

    async def update_messages(
        self, updates: Iterable[MessageUpdate], *, resource_id: str | None = None
    ) -> list[Message]:
        """Change messages; what an update omits stays. Safe to repeat without concurrent writers.

        Args:
            updates: Any number; unknown ids are ignored. Several for one id follow each other.
            resource_id: The owner all of them must have.

        Returns:
            The changed messages, each once, in the given order, without the unknown ones.

        Raises:
            InvalidArgumentError: An update breaks a rule, or a merged metadata a limit. Nothing was written,
                here and below.
            NotFoundError: The thread to move to does not exist.
            OwnershipError: A message, or the thread to move to, belongs to another resource than it must.
            PartialWriteError: Without atomic batches only: some were written; repeat the call.
        """
        given = check.items_of(updates, "updates")
        scope = check.optional_identifier(resource_id, "resource_id")
        changes = tuple([_change(update, f"updates[{i}]") for i, update in enumerate(given)])
        adapter = self._open_adapter()
        if not changes:
            return []
        request = UpdateMessages(changes=changes, resource_id=scope, now=clock.take())
        return [message_of(record) for record in await adapter.update_messages(request)]

    async def delete_messages(self, ids: str | Iterable[str], *, resource_id: str | None = None) -> int:
        """Delete messages by id; unknown ones are ignored. Safe to repeat.

        Returns:
            How many there were.

        Raises:
            OwnershipError: One belongs to another resource than *resource_id*. Nothing was deleted.
        """
        wanted = check.identifiers(ids, "ids")
        scope = check.optional_identifier(resource_id, "resource_id")
        adapter = self._open_adapter()
        if not wanted:
            return 0
        return await adapter.delete_messages(
            DeleteMessages(ids=tuple(wanted), resource_id=scope, now=clock.take())
        )

    # --- inside -----------------------------------------------------------------------------------

    def _message_query(
        self,
        *,
        threads: object,
        resource_id: object,
        where: Where | None,
        created: object,
        include: object,
        order: object,
        page: int,
        per_page: int | None,
        with_total: object,
        cursor: object,
    ) -> MessageQuery:
        scope = check.threads_scope(threads)
        owner = check.optional_identifier(resource_id, "resource_id")
        if scope is None and owner is None:
            raise InvalidArgumentError("threads", "given, unless resource_id is", "neither")
        checked = conditions(where)
        self._require_operators(checked)
        dates = check.time_range(created).bounds()
        count = check.flag(with_total, "with_total") and per_page != 0
        nothing = scope == () or matches_nothing(checked)
        query = MessageQuery(
            threads=scope,
            resource_id=owner,
            where=checked,
            dates=dates,
            bounds=dates,
            descending=check.one_of(order, "order", ("asc", "desc")) == "desc",
            limit=0 if nothing else limit_of(per_page),
            offset=page * (per_page or 0),
            count=count and not nothing,
            includes=check.includes(include),
        )
        return query if cursor is None else _after_cursor(query, cursor, page)


def _new_records(given: list[object]) -> tuple[list[MessageRecord], dict[str, tuple[Any, Metadata]]]:
    """The records to save, each id once, and the decoded content and metadata of each."""
    first = clock.take(len(given)) if given else 0
    records: dict[str, MessageRecord] = {}
    bodies: dict[str, tuple[Any, Metadata]] = {}
    for index, message in enumerate(given):
        record, body = _new_record(message, f"messages[{index}]", first, first + index)
        before = records.get(record.id)
        records[record.id] = record if before is None else _again(record, before)
        bodies[record.id] = body
    return list(records.values()), bodies


def _new_record(message: object, at: str, now: int, seq: int) -> tuple[MessageRecord, tuple[Any, Metadata]]:
    if isinstance(message, NewMessage):
        given = {} if message.metadata is None else message.metadata
        created_at = (
            now if message.created_at is None else check.moment(message.created_at, at + ".created_at")
        )
    elif isinstance(message, Message):
        given = message.metadata
        created_at = check.moment(message.created_at, at + ".created_at")
        seq = check.integer(message.seq, at + ".seq", least=0, most=2**63 - 1)
    else:
        raise InvalidArgumentError(at, "a NewMessage or a Message", type(message).__name__)
    text, content = encode_content(message.content, at + ".content")
    raw, metadata = encode_metadata(given, at + ".metadata")
    record = MessageRecord(
        id=check.identifier(message.id, at + ".id"),
        thread_id=check.identifier(message.thread_id, at + ".thread_id"),
        resource_id=check.optional_identifier(message.resource_id, at + ".resource_id") or "",
        role=check.identifier(message.role, at + ".role"),
        type=check.identifier(message.type, at + ".type"),
        content=text,
        metadata=raw,
        tokens=metadata_tokens(metadata),
        created_at=created_at,
        seq=seq,
    )
    return record, (content, metadata)


def _again(record: MessageRecord, before: MessageRecord) -> MessageRecord:
    """A message that comes a second time in a batch: the last content, at the place of the first."""
    if before.thread_id != record.thread_id:
        raise ConflictError(f"message {record.id!r} comes twice in the batch, for two threads")
    if record.resource_id and before.resource_id not in ("", record.resource_id):
        raise OwnershipError("thread", record.thread_id)  # the batch names two owners of one thread
    return replace(
        record,
        created_at=before.created_at,
        seq=before.seq,
        resource_id=record.resource_id or before.resource_id,
    )


def _change(update: object, at: str) -> MessageChange:
    update = check.instance_of(update, MessageUpdate, at)
    return MessageChange(
        id=check.identifier(update.id, at + ".id"),
        role=UNSET if update.role is UNSET else check.identifier(update.role, at + ".role"),
        type=UNSET if update.type is UNSET else check.identifier(update.type, at + ".type"),
        content=UNSET if update.content is UNSET else encode_content(update.content, at + ".content")[0],
        metadata=UNSET if update.metadata is UNSET else encode_metadata(update.metadata, at + ".metadata")[1],
        replace_metadata=check.flag(update.replace_metadata, at + ".replace_metadata"),
        thread_id=UNSET
        if update.thread_id is UNSET
        else check.identifier(update.thread_id, at + ".thread_id"),
    )


def _message_fingerprint(query: MessageQuery) -> bytes:
    where = [(c.key, c.operator, c.values) for c in query.where]
    threads = None if query.threads is None else sorted(query.threads)
    return fingerprint("messages", threads, query.resource_id, where, query.dates, query.descending)


def _after_cursor(query: MessageQuery, cursor: object, page: int) -> MessageQuery:
    place = Position(*decode_cursor(cursor, _message_fingerprint(query), (int, int, str)))
    if page:
        raise InvalidCursorError("cursor", "given without page", "both")
    dates = query.dates
    if query.descending:
        bounds = Bounds(dates.after, place if dates.before is None else min(dates.before, place))
    else:
        bounds = Bounds(place if dates.after is None else max(dates.after, place), dates.before)
    return replace(query, bounds=bounds)
