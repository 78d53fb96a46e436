"""What the reading calls do, on a connection; those of several statements see one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from heapq import merge
from itertools import islice
from typing import Any, Protocol, TypeVar

from threadkeep.filters import Condition, Operator
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

    def snapshot(self) -> AbstractContextManager[None]:
        """Let all queries inside see one state of the database."""
        ...


# --- messages -------------------------------------------------------------------------------------


def get_messages(db: Reader, ids: Sequence[str], resource_id: str | None) -> list[MessageRecord]:
    """Messages by id, in the total order."""
    rows = db.query(sql("messages_by_id"), (_codec.json_array(ids),))
    found = [_codec.message(row[1:]) for row in rows]
    return sorted(
        (row for row in found if resource_id in (None, row.resource_id)), key=lambda row: row.position
    )


def list_messages(db: Reader, query: MessageQuery) -> MessageSlice:
    """A page, its total and its windows."""
    if _is_plain(query):
        page = _plain_page(db, query)
        if page or not query.where:
            return MessageSlice(page)
    with db.snapshot():
        scopes, counter, owners = _scopes(db, query)
        lead, rest = _plan(db, query.where, scopes, "probe")
        page = _page(db, query, scopes, lead, rest) if scopes and query.limit != 0 else []
        total = None
        if query.count:
            unfiltered = not query.where and query.dates == Bounds()
            total = counter(db) if unfiltered else _count(db, query, scopes, lead, rest)
        windows = _windows(db, query.includes, owners) if query.includes else []
    return MessageSlice(page, total, windows)


def _is_plain(query: MessageQuery) -> bool:
    """Whether one statement may answer: one scope, no more than one equality, only a page."""
    one_scope = query.threads is None or (len(query.threads) == 1 and query.resource_id is None)
    equality = not query.where or (len(query.where) == 1 and query.where[0].operator is Operator.EQUAL)
    return one_scope and equality and not (query.count or query.offset or query.includes or query.limit == 0)


def _plain_page(db: Reader, query: MessageQuery) -> list[MessageRecord]:
    scope = query.resource_id if query.threads is None else query.threads[0]
    condition = query.where[0] if query.where else None
    text = sql(
        "page",
        direction="DESC" if query.descending else "ASC",
        scope="scope_of_resource" if query.threads is None else "scope_of_thread",
        indexed=condition is not None,
    )
    token, key = ("", ()) if condition is None else (condition.tokens[0], (condition.key,))
    limit = _EVERYTHING if query.limit is None else query.limit
    rows = db.query(text, (scope, token, *_queries.bound_values(query.bounds), *key, limit))
    return [_codec.message(row) for row in rows]


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
    """The leading condition, the one with the fewest entries, and those checked on each candidate."""
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
            db.query(sql(probe), (scope, point, _queries.PROBE_LIMIT))[0][0]
            for scope in scopes
            for point in points
        )

    return min(candidates, key=commonness)


def _page(
    db: Reader, query: MessageQuery, scopes: list[int], lead: Lead, rest: tuple[Condition, ...]
) -> list[MessageRecord]:
    residual = _queries.residual_of(rest, "m")
    direction = "DESC" if query.descending else "ASC"

    def branch(scope: int, tokens: str, values: tuple[str, ...], limit: int, offset: int) -> list[Row]:
        text = sql("positions", direction=direction, tokens=tokens, residual=residual.sql)
        bounds = _queries.bound_values(query.bounds)
        return db.query(text, (scope, *values, *bounds, *residual.parameters, limit, offset))

    rows = _merged(branch, scopes, lead, query)
    return _by_key(db, "messages_by_key", [row[-1] for row in rows], _codec.message)


def _merged(
    branch: Callable[[int, str, tuple[str, ...], int, int], list[Row]],
    scopes: list[int],
    lead: Lead,
    query: MessageQuery | ThreadQuery,
) -> list[Row]:
    """A page of positions out of one limited branch a scope and a token; no row is in two branches."""
    limit, offset = _EVERYTHING if query.limit is None else query.limit, query.offset
    branches = [(scope, *each) for scope in scopes for each in lead.branches()]
    if len(branches) == 1:
        return branch(*branches[0], limit, offset)
    enough = limit if limit < 0 else limit + offset
    rows = merge(*[branch(*each, enough, 0) for each in branches], reverse=query.descending)
    return list(islice(rows, offset, None if limit < 0 else offset + limit))


def _by_key(db: Reader, statement: str, keys: list[int], decode: Callable[[Row], Found]) -> list[Found]:
    """Rows by key, in the order of the keys."""
    rows = db.query(sql(statement), (_codec.json_array(keys),)) if keys else []
    found = {row[0]: decode(row[1:]) for row in rows}
    return [found[key] for key in keys]


def _count(
    db: Reader, query: MessageQuery, scopes: list[int], lead: Lead, rest: tuple[Condition, ...]
) -> int:
    residual = _queries.residual_of(rest, "m")
    bounds = _queries.bound_values(query.dates)
    return sum(
        db.query(
            sql("count", tokens=tokens, residual=residual.sql),
            (scope, *values, *bounds, *residual.parameters),
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
    with db.snapshot():
        scope = _thread_scope(db, query.resource_id)
        if scope is None:
            return ThreadSlice([], 0 if query.count else None)
        lead, rest = _plan(db, query.where, [scope], "thread_probe")
        residual = _queries.residual_of(rest, "t")
        if lead == Lead():
            found = _walk(db, query, scope, residual)
            total = _walk_count(db, scope, residual) if query.count else None
        else:
            found = _matches(db, query, scope, lead, residual)
            total = _match_count(db, scope, lead, residual) if query.count else None
        return ThreadSlice(_by_key(db, "threads_by_key", [row[-1] for row in found], _codec.thread), total)


def _thread_scope(db: Reader, resource_id: str | None) -> int | None:
    """The scope of a resource's threads or of all; None for a resource that owns nothing."""
    if resource_id is None:
        return _ALL_THREADS
    keys = db.query(sql("resource_key"), (resource_id,))
    return -keys[0][0] if keys else None


def _walk(db: Reader, query: ThreadQuery, scope: int, residual: Residual) -> list[Row]:
    text = sql(
        "thread_walk",
        direction="DESC" if query.descending else "ASC",
        order_by=query.order_by,
        resource=scope != _ALL_THREADS,
        residual=residual.sql,
    )
    resource = () if scope == _ALL_THREADS else (-scope,)
    limit = _EVERYTHING if query.limit is None else query.limit
    bounds = _queries.thread_bound_values(query.bounds)
    return db.query(text, (*resource, *bounds, *residual.parameters, limit, query.offset))


def _walk_count(db: Reader, scope: int, residual: Residual) -> int:
    resource = () if scope == _ALL_THREADS else (-scope,)
    text = sql("thread_count", resource=scope != _ALL_THREADS, residual=residual.sql)
    return db.query(text, (*resource, *residual.parameters))[0][0]


def _matches(db: Reader, query: ThreadQuery, scope: int, lead: Lead, residual: Residual) -> list[Row]:
    in_order = query.order_by == "created_at" and not lead.is_range

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

    return _merged(branch, [scope], lead, query)


def _match_count(db: Reader, scope: int, lead: Lead, residual: Residual) -> int:
    return sum(
        db.query(
            sql("thread_match_count", tokens=tokens, residual=residual.sql),
            (scope, *values, *residual.parameters),
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
    with db.snapshot():
        rows = db.query(sql("list_resources"), (query.after, limit, query.offset))
        total = db.query(sql("count_resources"))[0][0] if query.count else None
    return ResourceSlice([_codec.resource(row) for row in rows], total)


def list_memories(db: Reader, query: MemoryQuery) -> MemorySlice:
    """A page of archive memories and its total: one limited branch an actor, merged."""
    limit = _EVERYTHING if query.limit is None else query.limit
    enough = limit if limit < 0 else limit + query.offset
    actors: tuple[tuple[str, ...], ...] = ((),) if query.actors is None else query.actors
    with db.snapshot():
        branches = [_memories_of(db, query, actor, enough) for actor in actors]
        total = sum(_memory_count(db, query, actor) for actor in actors) if query.count else None
    merged = merge(*branches, key=lambda row: (-row.created_at, row.id))
    return MemorySlice(list(islice(merged, query.offset, None if limit < 0 else query.offset + limit)), total)


def _memories_of(db: Reader, query: MemoryQuery, actor: tuple[str, ...], limit: int) -> list[MemoryRecord]:
    recall = (query.folded,) if query.recall else ()
    at, after_id = query.after or _NEWEST
    text = sql("list_memories", actor=bool(actor), recall=query.recall)
    return [_codec.memory(row) for row in db.query(text, (*actor, at, at, after_id, *recall, limit))]


def _memory_count(db: Reader, query: MemoryQuery, actor: tuple[str, ...]) -> int:
    recall = (query.folded,) if query.recall else ()
    return db.query(sql("count_memories", actor=bool(actor), recall=query.recall), (*actor, *recall))[0][0]
