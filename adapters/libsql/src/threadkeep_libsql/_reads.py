"""What the reading calls do, on a connection inside one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Protocol, TypeVar

from threadkeep.filters import Condition
from threadkeep.models import Include
from threadkeep.records import MemoryRecord, MessageRecord, ResourceRecord, ThreadRecord
from threadkeep.requests import (
    Bounds,
    MemoryQuery,
    MemorySlice,
    MessageQuery,
    MessageSlice,
    ResourceQuery,
    ResourceSlice,
    ThreadQuery,
    ThreadSlice,
)

from . import _codec, _queries
from ._driver import Value
from ._queries import Lead, Residual, sql

__all__ = [
    "get_messages",
    "get_resource",
    "get_thread",
    "list_memories",
    "list_messages",
    "list_resources",
    "list_threads",
]

Row = tuple[Any, ...]
Found = TypeVar("Found")

_EVERYTHING = -1  # a LIMIT that is none
_ALL_THREADS = 0  # the scope of positions of all threads
_NEWEST = (2**63 - 1, 0)


class Reader(Protocol):
    """What is read from: a connection, or one that writes down its plans."""

    def query(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """All rows of a statement."""
        ...


# --- messages -------------------------------------------------------------------------------------


def get_messages(db: Reader, ids: Sequence[str], resource_id: str | None) -> list[MessageRecord]:
    """Messages by id, in the total order."""
    rows = db.query(sql("messages_by_id"), (_codec.json_array(ids),))
    found = [_codec.message(row[1:]) for row in rows]
    return sorted((row for row in found if resource_id in (None, row.resource_id)), key=lambda row: row.position)


def list_messages(db: Reader, query: MessageQuery) -> MessageSlice:
    """A page, its total and its windows."""
    scopes, counter, owners = _scopes(db, query)
    plan = _plan(db, query.where, scopes, "probe")
    page: list[MessageRecord] = []
    if scopes and query.limit != 0:
        page = _page(db, query, scopes, *plan)
    total = None
    if query.count:
        unfiltered = not query.where and query.dates == Bounds()
        total = counter(db) if unfiltered else _count(db, query, scopes, *plan)
    windows = _windows(db, query.includes, owners) if query.includes else []
    return MessageSlice(page, total, windows)


def _scopes(db: Reader, query: MessageQuery) -> tuple[list[int], Callable[[Reader], int], set[str]]:
    """The scopes to look in, how to count all messages in them, and the owners that windows may belong to."""
    if query.threads is None:
        owner = query.resource_id or ""
        keys = db.query(sql("resource_key"), (owner,))
        if not keys:
            return [], lambda _: 0, {owner}
        key = keys[0][0]
        return [-key], lambda db: db.query(sql("resource_message_count"), (key,))[0][0], {owner}
    rows = db.query(sql("owners"), (_codec.json_array(query.threads),))
    owners = {row[1] for row in rows} if query.resource_id is None else {query.resource_id}
    rows = [row for row in rows if row[1] in owners]
    total = sum(row[3] for row in rows)
    return [row[2] for row in rows], lambda _: total, owners


def _plan(
    db: Reader, where: tuple[Condition, ...], scopes: Sequence[int], probe: str
) -> tuple[Lead, tuple[Condition, ...]]:
    """The leading condition, and those checked on each candidate; of several the one with the fewest entries leads."""
    if not where:
        return Lead(), ()
    # Read with the query, not once: another process may have changed the choice of keys since.
    indexed = frozenset([row[0] for row in db.query(sql("indexed_keys"))])
    candidates = _queries.lead_of(where, indexed)
    if len(candidates) == 1:
        return candidates[0]

    def commonness(candidate: tuple[Lead, tuple[Condition, ...]]) -> int:
        points = candidate[0].points
        return sum(
            db.query(sql(probe), (scope, point, _queries.PROBE_LIMIT))[0][0] for scope in scopes for point in points
        )

    return min(candidates, key=commonness)


def _page(
    db: Reader, query: MessageQuery, scopes: list[int], lead: Lead, rest: tuple[Condition, ...]
) -> list[MessageRecord]:
    residual = _queries.residual_of(rest, "m")
    direction = "DESC" if query.descending else "ASC"
    limit = _EVERYTHING if query.limit is None else query.limit
    if len(scopes) == 1 and len(lead.points) == 1 and not query.offset:
        parameters = (scopes[0], lead.points[0], *_queries.bound_values(query.bounds), *residual.parameters, limit)
        rows = db.query(sql("page", direction=direction, residual=residual.sql), parameters)
        return [_codec.message(row) for row in rows]

    def branch(scope: int, tokens: str, values: tuple[str, ...], limit: int, offset: int) -> list[Row]:
        text = sql("positions", direction=direction, tokens=tokens, residual=residual.sql)
        bounds = _queries.bound_values(query.bounds)
        return db.query(text, (scope, *values, *bounds, *residual.parameters, limit, offset))

    rows = _merged(branch, scopes, lead, query.descending, limit, query.offset)
    return _by_key(db, "messages_by_key", [row[-1] for row in rows], _codec.message)


def _merged(
    branch: Callable[[int, str, tuple[str, ...], int, int], list[Row]],
    scopes: list[int],
    lead: Lead,
    descending: bool,
    limit: int,
    offset: int,
) -> list[Row]:
    """A page of positions out of one limited branch a scope and a token; the rows of branches are disjoint."""
    branches = [(scope, *each) for scope in scopes for each in lead.branches()]
    if len(branches) == 1:
        return branch(*branches[0], limit, offset)
    enough = limit if limit < 0 else limit + offset
    rows = merge(*[branch(*each, enough, 0) for each in branches], reverse=descending)
    return list(islice(rows, offset, None if limit < 0 else offset + limit))


def _by_key(db: Reader, statement: str, keys: list[int], decode: Callable[[Row], Found]) -> list[Found]:
    """Rows by key, in the order of the keys."""
    found = {row[0]: decode(row[1:]) for row in db.query(sql(statement), (_codec.json_array(keys),))} if keys else {}
    return [found[key] for key in keys]


def _count(db: Reader, query: MessageQuery, scopes: list[int], lead: Lead, rest: tuple[Condition, ...]) -> int:
    residual = _queries.residual_of(rest, "m")
    bounds = _queries.bound_values(query.dates)
    return sum(
        db.query(
            sql("count", tokens=tokens, residual=residual.sql), (scope, *values, *bounds, *residual.parameters)
        )[0][0]
        for scope in scopes
        for tokens, values in lead.branches()
    )


def _windows(db: Reader, includes: Iterable[Include], owners: set[str]) -> list[MessageRecord]:
    """The included messages that are in scope, with their neighbours, each once."""
    wanted = _codec.json_array(sorted({include.id for include in includes}))
    targets = {row[0]: row for row in db.query(sql("window_targets"), (wanted,))}
    keys: dict[int, None] = {}
    for include in includes:
        if include.id not in targets:
            continue
        identifier, created_at, seq, key, thread_key, thread_id, owner = targets[include.id]
        if owner not in owners or include.thread_id not in (None, thread_id):
            continue
        place = (thread_key, created_at, seq, identifier)
        keys[key] = None
        for statement, count in (("keys_before", include.before), ("keys_after", include.after)):
            if count:
                keys.update(dict.fromkeys([row[0] for row in db.query(sql(statement), (*place, count))]))
    return _by_key(db, "messages_by_key", list(keys), _codec.message)


# --- threads --------------------------------------------------------------------------------------


def get_thread(db: Reader, thread_id: str) -> ThreadRecord | None:
    """A thread by id."""
    rows = db.query(sql("thread_by_id"), (thread_id,))
    return _codec.thread(rows[0][:-2]) if rows else None


def list_threads(db: Reader, query: ThreadQuery) -> ThreadSlice:
    """A page of threads and its total."""
    key: int | None = None
    if query.resource_id is not None:
        keys = db.query(sql("resource_key"), (query.resource_id,))
        if not keys:
            return ThreadSlice([], 0 if query.count else None)
        key = keys[0][0]
    scope = _ALL_THREADS if key is None else -key
    lead, rest = _plan(db, query.where, [scope], "thread_probe")
    residual = _queries.residual_of(rest, "t")
    if lead == Lead():
        found = _walk(db, query, key, residual)
        total = _walk_count(db, key, residual) if query.count else None
    else:
        found = _matches(db, query, scope, lead, residual)
        total = _match_count(db, scope, lead, residual) if query.count else None
    return ThreadSlice(_by_key(db, "threads_by_key", [row[-1] for row in found], _codec.thread), total)


def _walk(db: Reader, query: ThreadQuery, key: int | None, residual: Residual) -> list[Row]:
    text = sql(
        "thread_walk",
        direction="DESC" if query.descending else "ASC",
        order_by=query.order_by,
        resource=key is not None,
        residual=residual.sql,
    )
    scope = () if key is None else (key,)
    limit = _EVERYTHING if query.limit is None else query.limit
    bounds = _queries.thread_bound_values(query.bounds)
    return db.query(text, (*scope, *bounds, *residual.parameters, limit, query.offset))


def _walk_count(db: Reader, key: int | None, residual: Residual) -> int:
    scope = () if key is None else (key,)
    text = sql("thread_count", resource=key is not None, residual=residual.sql)
    return db.query(text, (*scope, *residual.parameters))[0][0]


def _matches(db: Reader, query: ThreadQuery, scope: int, lead: Lead, residual: Residual) -> list[Row]:
    in_order = query.order_by == "created_at" and not lead.is_range
    limit = _EVERYTHING if query.limit is None else query.limit

    def branch(scope: int, tokens: str, values: tuple[str, ...], limit: int, offset: int) -> list[Row]:
        text = sql(
            "thread_positions" if in_order else "thread_matches",
            direction="DESC" if query.descending else "ASC",
            order_by=query.order_by,
            tokens=tokens,
            residual=residual.sql,
        )
        bounds = _queries.thread_bound_values(query.bounds)
        return db.query(text, (scope, *values, *bounds, *residual.parameters, limit, offset))

    return _merged(branch, [scope], lead, query.descending, limit, query.offset)


def _match_count(db: Reader, scope: int, lead: Lead, residual: Residual) -> int:
    return sum(
        db.query(
            sql("thread_match_count", tokens=tokens, residual=residual.sql), (scope, *values, *residual.parameters)
        )[0][0]
        for tokens, values in lead.branches()
    )


# --- resources and memories -----------------------------------------------------------------------


def get_resource(db: Reader, resource_id: str) -> ResourceRecord | None:
    """A resource's own record."""
    rows = db.query(sql("resource_by_id"), (resource_id,))
    return _codec.resource(rows[0]) if rows else None


def list_resources(db: Reader, query: ResourceQuery) -> ResourceSlice:
    """A page of resources and its total."""
    limit = _EVERYTHING if query.limit is None else query.limit
    rows = db.query(sql("list_resources"), (query.after, limit, query.offset))
    total = db.query(sql("count_resources"))[0][0] if query.count else None
    return ResourceSlice([_codec.resource(row) for row in rows], total)


def list_memories(db: Reader, query: MemoryQuery) -> MemorySlice:
    """A page of archive memories and its total: one limited branch an actor, merged."""
    at, after_id = query.after or _NEWEST
    recall = (query.folded,) if query.recall else ()
    limit = _EVERYTHING if query.limit is None else query.limit
    enough = limit if limit < 0 else limit + query.offset
    actors: tuple[tuple[str, ...], ...] = ((),) if query.actors is None else query.actors
    branches: list[list[MemoryRecord]] = []
    total = 0
    for actor in actors:
        text = sql("list_memories", actor=bool(actor), recall=query.recall)
        branches.append(
            [_codec.memory(row) for row in db.query(text, (*actor, at, at, after_id, *recall, enough, 0))]
        )
        if query.count:
            text = sql("count_memories", actor=bool(actor), recall=query.recall)
            total += db.query(text, (*actor, *recall))[0][0]
    merged = merge(*branches, key=lambda row: (-row.created_at, row.id))
    stop = None if limit < 0 else query.offset + limit
    return MemorySlice(list(islice(merged, query.offset, stop)), total if query.count else None)
