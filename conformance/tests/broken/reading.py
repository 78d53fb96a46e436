"""Adapters that find the wrong things: filters, orders, pages, totals and windows."""

# They are made of the reference adapter's parts:
# pyright: reportPrivateUsage=false

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from msgspec.structs import replace

from threadkeep import Include
from threadkeep.filters import Condition, Operator
from threadkeep.records import MessageRecord, Position, ThreadRecord
from threadkeep.reference import ReferenceAdapter, _holds, _within
from threadkeep.requests import Bounds, MessageQuery, MessageSlice, ThreadQuery, ThreadSlice


class Reading(ReferenceAdapter):
    """Lists messages in steps, of which a fault replaces one. As it is, it has no fault."""

    def holds(self, condition: Condition, metadata: dict[str, Any]) -> bool:
        return _holds(condition, metadata)

    def matching(self, rows: list[MessageRecord], where: tuple[Condition, ...]) -> list[MessageRecord]:
        return [row for row in rows if all(self.holds(one, json.loads(row.metadata)) for one in where)]

    def ordered(self, rows: list[MessageRecord], *, descending: bool) -> list[MessageRecord]:
        return sorted(rows, key=lambda row: row.position, reverse=descending)

    def bounded(self, row: MessageRecord, bounds: Bounds) -> bool:
        return _within(row.position, bounds)

    def page(self, rows: list[MessageRecord], query: MessageQuery) -> list[MessageRecord]:
        return rows[query.offset :] if query.limit is None else rows[query.offset :][: query.limit]

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        everything = replace(query, where=(), bounds=query.dates, offset=0, limit=None, count=False)
        found = await super().list_messages(everything)
        rows = self.matching(found.messages, query.where)
        total = len(rows) if query.count else None
        rows = [
            row for row in self.ordered(rows, descending=query.descending) if self.bounded(row, query.bounds)
        ]
        return MessageSlice(self.page(rows, query), total, found.windows)


class Comparing(Reading):
    """Compares values for equality its own way."""

    def same(self, stored: Any, value: Any) -> bool:
        raise NotImplementedError

    def holds(self, condition: Condition, metadata: dict[str, Any]) -> bool:
        if condition.operator is not Operator.EQUAL or condition.key not in metadata:
            return super().holds(condition, metadata)
        return self.same(metadata[condition.key], condition.values[0])

    def truly(self, stored: Any, value: Any) -> bool:
        return super().holds(Condition("key", Operator.EQUAL, (value,)), {"key": stored})


# --- filters ---


class TrueIsOne(Comparing):
    """As Python does."""

    def same(self, stored: Any, value: Any) -> bool:
        return stored == value and not isinstance(stored, (list, dict))


class TextIsNumber(Comparing):
    """As a column with numeric affinity does."""

    def same(self, stored: Any, value: Any) -> bool:
        return self.truly(stored, value) or (isinstance(stored, str) and stored == str(value))


class IntIsNoFloat(Comparing):
    """As a comparison of encoded JSON does."""

    def same(self, stored: Any, value: Any) -> bool:
        return json.dumps(stored) == json.dumps(value)


class NumbersAreFloats(Comparing):
    """As JavaScript and double columns do."""

    def same(self, stored: Any, value: Any) -> bool:
        if type(stored) is int and type(value) is int:
            return float(stored) == float(value)
        return self.truly(stored, value)


class ListMatchesElement(Comparing):
    """As a document database does."""

    def same(self, stored: Any, value: Any) -> bool:
        return value in stored if isinstance(stored, list) else self.truly(stored, value)


class FoldsCase(Comparing):
    """As a case-insensitive collation does."""

    def same(self, stored: Any, value: Any) -> bool:
        if isinstance(stored, str) and isinstance(value, str):
            return stored.casefold() == value.casefold()
        return self.truly(stored, value)


class ComparesBeginnings(Comparing):
    """As an index of cut values does, unless the whole is looked at too."""

    def same(self, stored: Any, value: Any) -> bool:
        if isinstance(stored, str) and isinstance(value, str):
            return stored[:64] == value[:64]
        return self.truly(stored, value)


class NullMatchesMissing(Reading):
    def holds(self, condition: Condition, metadata: dict[str, Any]) -> bool:
        return super().holds(condition, {condition.key: None, **metadata})


class LooksInside(Reading):
    """Takes the keys of nested objects for keys."""

    def holds(self, condition: Condition, metadata: dict[str, Any]) -> bool:
        inner = [cast("dict[str, Any]", value) for value in metadata.values() if isinstance(value, dict)]
        return any(super(LooksInside, self).holds(condition, one) for one in (metadata, *inner))


class MissingIsNotEqual(Reading):
    def holds(self, condition: Condition, metadata: dict[str, Any]) -> bool:
        absent = condition.operator is Operator.NOT_EQUAL and condition.key not in metadata
        return absent or super().holds(condition, metadata)


class RangesAsText(Reading):
    """Compares numbers with the text they are written as."""

    def holds(self, condition: Condition, metadata: dict[str, Any]) -> bool:
        if condition.operator is Operator.GTE and condition.key in metadata:
            return str(metadata[condition.key]) >= str(condition.values[0])
        return super().holds(condition, metadata)


class RangesByCollation(Reading):
    """Lower and upper case are neighbours, as in a dictionary."""

    def holds(self, condition: Condition, metadata: dict[str, Any]) -> bool:
        stored = metadata.get(condition.key)
        if (
            condition.operator is Operator.LT
            and isinstance(stored, str)
            and isinstance(condition.values[0], str)
        ):
            return stored.casefold() < condition.values[0].casefold()
        return super().holds(condition, metadata)


class GteIsGt(Reading):
    def holds(self, condition: Condition, metadata: dict[str, Any]) -> bool:
        if condition.operator is Operator.GTE:
            condition = Condition(condition.key, Operator.GT, condition.values)
        return super().holds(condition, metadata)


class ExistsSkipsNull(Reading):
    def holds(self, condition: Condition, metadata: dict[str, Any]) -> bool:
        if condition.operator is Operator.EXISTS:
            return metadata.get(condition.key) is not None
        return super().holds(condition, metadata)


class IgnoresUnknownKeys(Reading):
    """A key without a column or index is no condition."""

    def matching(self, rows: list[MessageRecord], where: tuple[Condition, ...]) -> list[MessageRecord]:
        known = {key for row in rows for key in json.loads(row.metadata)}
        return super().matching(rows, tuple(one for one in where if one.key in known))


class AnyCondition(Reading):
    """Or instead of and."""

    def matching(self, rows: list[MessageRecord], where: tuple[Condition, ...]) -> list[MessageRecord]:
        found = [row for one in where for row in super(AnyCondition, self).matching(rows, (one,))]
        return [row for row in rows if row in found] if where else rows


class FiltersAfterLimit(Reading):
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(replace(query, where=()))
        return found._replace(messages=self.matching(found.messages, query.where))


class FiltersThreadsAfterLimit(ReferenceAdapter):
    async def list_threads(self, query: ThreadQuery) -> ThreadSlice:
        found = await super().list_threads(replace(query, where=()))
        rows = [
            row for row in found.threads if all(_holds(one, json.loads(row.metadata)) for one in query.where)
        ]
        return ThreadSlice(rows, found.total)


# --- order and pages ---


class LosesTies(Reading):
    """Orders by time, and what is equal as it likes."""

    def ordered(self, rows: list[MessageRecord], *, descending: bool) -> list[MessageRecord]:
        return sorted(rows, key=lambda row: (row.created_at, row.id[::-1]), reverse=descending)


class OrdersByArrival(Reading):
    """Orders by seq, whatever the times say."""

    def ordered(self, rows: list[MessageRecord], *, descending: bool) -> list[MessageRecord]:
        return sorted(rows, key=lambda row: row.seq, reverse=descending)


class NewestPageComesOldestFirst(ReferenceAdapter):
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(query)
        return found._replace(messages=sorted(found.messages, key=lambda row: row.position))


class AlwaysOldestFirst(Reading):
    def ordered(self, rows: list[MessageRecord], *, descending: bool) -> list[MessageRecord]:
        return super().ordered(rows, descending=False)


class CursorRepeatsItsRow(Reading):
    """``>=`` where ``>`` belongs."""

    def bounded(self, row: MessageRecord, bounds: Bounds) -> bool:
        return super().bounded(row, bounds) or row.position in (bounds.after, bounds.before)


class CursorSkipsTies(Reading):
    """Goes on after the time of the last row rather than after the row."""

    def bounded(self, row: MessageRecord, bounds: Bounds) -> bool:
        after, before = bounds.after, bounds.before
        return (after is None or not after.id or row.created_at > after.at) and (
            before is None or not before.id or row.created_at < before.at
        )


class OffsetIsOneTooLarge(Reading):
    def page(self, rows: list[MessageRecord], query: MessageQuery) -> list[MessageRecord]:
        offset = query.offset + 1 if query.offset else 0
        return super().page(rows, replace(query, offset=offset))


class LimitIsOneTooSmall(Reading):
    """So that it never seems that there is more."""

    def page(self, rows: list[MessageRecord], query: MessageQuery) -> list[MessageRecord]:
        return super().page(rows, replace(query, limit=query.limit and query.limit - 1))


class LastMomentIsLeftOut(Reading):
    """Takes the end of a range for exclusive."""

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        end = query.dates.before
        if end is None:
            return await super().list_messages(query)
        earlier = replace(query.dates, before=Position(end.at - 1, end.seq, end.id))
        return await super().list_messages(replace(query, dates=earlier, bounds=earlier))


class ThreadsOrResource(ReferenceAdapter):
    """Forgets the resource where threads are named."""

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        if query.threads is not None:
            query = replace(query, resource_id=None)
        return await super().list_messages(query)


class ThreadTiesAsTheyLie(ReferenceAdapter):
    async def list_threads(self, query: ThreadQuery) -> ThreadSlice:
        found = await super().list_threads(query)

        def key(row: ThreadRecord) -> tuple[int, str]:
            return row.created_at, row.id[::-1]

        return found._replace(threads=sorted(found.threads, key=key, reverse=query.descending))


class ThreadsByCreationOnly(ReferenceAdapter):
    async def list_threads(self, query: ThreadQuery) -> ThreadSlice:
        return await super().list_threads(replace(query, order_by="created_at"))


class ThreadsOldestFirst(ReferenceAdapter):
    async def list_threads(self, query: ThreadQuery) -> ThreadSlice:
        return await super().list_threads(replace(query, descending=False))


class GetsInAskedOrder(ReferenceAdapter):
    async def get_messages(self, ids: Sequence[str], resource_id: str | None) -> list[MessageRecord]:
        found = {row.id: row for row in await super().get_messages(ids, resource_id)}
        return [found[name] for name in ids if name in found]


class GetsOthersMessages(ReferenceAdapter):
    async def get_messages(self, ids: Sequence[str], resource_id: str | None) -> list[MessageRecord]:
        return await super().get_messages(ids, None)


# --- totals ---


class CountsBeforeFiltering(Reading):
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        counted = await super().list_messages(replace(query, where=()))
        return (await super().list_messages(query))._replace(total=counted.total)


class CountsThePage(Reading):
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(query)
        return found._replace(total=len(found.messages) if query.count else None)


class CountsAfterTheCursor(Reading):
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        counted = await super().list_messages(replace(query, limit=None, offset=0))
        total = len(counted.messages) if query.count else None
        return (await super().list_messages(query))._replace(total=total)


class CountsIncludes(Reading):
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(query)
        return found._replace(total=None if found.total is None else found.total + len(found.windows))


class CountsWithoutDates(Reading):
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        counted = await super().list_messages(replace(query, dates=Bounds(), bounds=Bounds()))
        return (await super().list_messages(query))._replace(total=counted.total)


class CountsEverybodysThreads(ReferenceAdapter):
    async def list_threads(self, query: ThreadQuery) -> ThreadSlice:
        counted = await super().list_threads(replace(query, resource_id=None))
        return (await super().list_threads(query))._replace(total=counted.total)


# --- windows ---


class Windows(ReferenceAdapter):
    """Makes windows its own way."""

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(query)
        windows = [row for one in query.includes for row in await self.window(one, query)]
        return found._replace(windows=windows)

    async def window(self, include: Include, query: MessageQuery) -> list[MessageRecord]:
        return (await super().list_messages(replace(query, limit=0, includes=(include,)))).windows


class WindowLeaksOtherResources(Windows):
    async def window(self, include: Include, query: MessageQuery) -> list[MessageRecord]:
        target = self._tables.messages.get(include.id)
        owner = None if target is None else target.resource_id
        return await super().window(include, replace(query, resource_id=owner or query.resource_id))


class WindowCrossesThreads(Windows):
    """Takes all messages of the resource for neighbours."""

    async def window(self, include: Include, query: MessageQuery) -> list[MessageRecord]:
        if not await super().window(include, query):
            return []
        target = self._tables.messages[include.id]
        rows = [row for row in self._tables.messages.values() if row.resource_id == target.resource_id]
        rows.sort(key=lambda row: row.position)
        index = rows.index(target)
        return rows[max(index - include.before, 0) : index + include.after + 1]


class WindowIsFiltered(Windows):
    async def window(self, include: Include, query: MessageQuery) -> list[MessageRecord]:
        rows = await super().window(include, query)
        return [row for row in rows if all(_holds(one, json.loads(row.metadata)) for one in query.where)]


class WindowEndsAtItsTarget(Windows):
    async def window(self, include: Include, query: MessageQuery) -> list[MessageRecord]:
        return await super().window(replace(include, after=max(include.after - 1, 0)), query)


class WindowByTimeAlone(Windows):
    """Looks for neighbours with earlier and later times, so that ties are neither."""

    async def window(self, include: Include, query: MessageQuery) -> list[MessageRecord]:
        rows = await super().window(include, query)
        at = self._tables.messages[include.id].created_at if rows else None
        return [row for row in rows if row.id == include.id or row.created_at != at]


class WindowOfAnyThread(Windows):
    """Ignores the thread that the include names."""

    async def window(self, include: Include, query: MessageQuery) -> list[MessageRecord]:
        return await super().window(replace(include, thread_id=None), query)
