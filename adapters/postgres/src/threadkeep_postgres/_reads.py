"""What the reading calls ask: plans of statements, a list of which is one round trip."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from threadkeep.filters import Condition
from threadkeep.models import Include
from threadkeep.records import MessageRecord, ResourceRecord, ThreadRecord
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
from ._queries import PROBE_LIMIT, Lead, Queries, Statement, Value
from ._session import Row

__all__ = [
    "Filters",
    "Reader",
    "get_messages",
    "get_resource",
    "get_thread",
    "list_memories",
    "list_messages",
    "list_resources",
    "list_threads",
]

_NEWEST = (2**63 - 1, 0)


class Reader(Protocol):
    """What is read from: a session, or one that writes down the plans."""

    async def read_snapshot(self, *statements: Statement) -> list[list[Row]]:
        """The rows of statements that see one state of the database."""
        ...


# --- filters --------------------------------------------------------------------------------------


class _Found(NamedTuple):
    rows: list[Row]
    total: int | None
    windows: Sequence[Row] = ()


class Filters:
    """Which metadata keys are indexed, as far as this store knows, and how to plan a filter with that.

    Another process may change the choice: every statement planned by it names the choice (``as_planned``) and
    finds nothing where the database has another; an answer without rows is therefore checked, and planned
    again.
    """

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.indexed = frozenset("*")

    @property
    def indexed(self) -> frozenset[str]:
        """The keys; ``*`` alone stands for all."""
        return self._indexed

    @indexed.setter
    def indexed(self, keys: frozenset[str]) -> None:
        self._indexed = keys
        self._values: dict[str, Value] = {"indexed": ",".join(sorted(keys))}

    async def read(self, db: Reader) -> frozenset[str]:
        """Read the choice."""
        (rows,) = await db.read_snapshot(self.queries.statement("indexed_keys"))
        return frozenset([row[0] for row in rows])

    async def ask(
        self, db: Reader, where: tuple[Condition, ...], ask: Callable[[], Awaitable[_Found]]
    ) -> _Found:
        """Ask, and ask again where nothing was found because the choice is not the one known."""
        found = await ask()
        while where and not found.rows and not found.total:
            before, self.indexed = self.indexed, await self.read(db)
            if self.indexed == before:
                break
            found = await ask()
        return found

    async def plan(
        self,
        db: Reader,
        where: tuple[Condition, ...],
        probe: Callable[[dict[str, Value]], Statement],
        *,
        descending: bool,
    ) -> tuple[Lead, tuple[Condition, ...]]:
        """The leading condition, the one whose entries are sparsest, and those checked on each candidate."""
        if not where:
            return Lead(), ()
        candidates = _queries.leads_of(where, self.indexed)
        if len(candidates) == 1:
            return candidates[0]
        pairs = [(number, token) for number, (lead, _) in enumerate(candidates) for token in lead.points]
        statement = probe(
            {
                "candidates": [number for number, _ in pairs],
                "tokens": [token for _, token in pairs],
                "enough": PROBE_LIMIT,
            }
        )
        (rows,) = await db.read_snapshot(statement)
        probes = [(candidate, n, at, seq) for candidate, n, at, seq in rows]
        return _queries.sparsest(candidates, probes, descending=descending)

    def values(self) -> dict[str, Value]:
        """The parameter of ``as_planned``."""
        return self._values


# --- messages -------------------------------------------------------------------------------------


class _Scope(NamedTuple):
    """The threads or the resource that a query looks in, as words and parameters of statements.

    One thread whoever's, or one resource, has statements of its own.
    """

    parts: dict[str, str]
    values: dict[str, Value]
    size: int = 1
    is_one: bool = False


def _direction(query: MessageQuery | ThreadQuery) -> _queries.Direction:
    return "DESC" if query.descending else "ASC"


def _message_scope(query: MessageQuery) -> _Scope:
    if query.threads is None:
        parts = {
            "scopes": "in_resource",
            "where": "where_resource",
            "scope": "resource",
            "alias": "r",
            "ids": "r.id AS resource_id",
            "thread": "thread_of_message",
            "thread_id": "t.id",
            "key_of_one": "key_of_resource",
            "columns_of_one": "columns_of_resource",
        }
        return _Scope(parts, {"resource": query.resource_id}, is_one=True)
    parts = {
        "scopes": "in_threads",
        "where": "where_thread",
        "scope": "thread",
        "alias": "t",
        "ids": "t.id AS thread_id, r.id AS resource_id",
        "thread": "",
        "thread_id": "f.thread_id",
        "key_of_one": "key_of_thread",
        "columns_of_one": "columns_of_thread",
    }
    if query.resource_id is None and len(query.threads) == 1:
        return _Scope(parts, {"thread": query.threads[0]}, is_one=True)
    parts |= {"scopes": "in_given_threads", "where": "TRUE" if query.resource_id is None else "where_owned"}
    values: dict[str, Value] = {"threads": list(query.threads), "resource": query.resource_id}
    return _Scope(parts, values, len(query.threads))


async def get_messages(
    queries: Queries, db: Reader, ids: Sequence[str], resource_id: str | None
) -> list[MessageRecord]:
    """Messages by id, in the total order."""
    (rows,) = await db.read_snapshot(queries.statement("messages_by_id", {"ids": list(ids)}))
    found = [_codec.message(row) for row in rows]
    return sorted(
        [row for row in found if resource_id in (None, row.resource_id)], key=lambda row: row.position
    )


async def list_messages(filters: Filters, db: Reader, query: MessageQuery) -> MessageSlice:
    """A page, its total and its windows."""
    queries, scope = filters.queries, _message_scope(query)

    def probe(values: dict[str, Value]) -> Statement:
        within = {**scope.values, **_queries.between(query.bounds), **values}
        return queries.statement("probe", within, **scope.parts, row="p", direction=_direction(query))

    async def ask() -> _Found:
        lead, rest = await filters.plan(db, query.where, probe, descending=query.descending)
        statements: list[Statement] = []
        if query.limit != 0:
            statements.append(_message_page(filters, query, scope, lead, rest))
        if query.count:
            statements.append(_message_count(filters, query, scope, lead, rest))
        if query.includes:
            statements.append(_windows(queries, query, query.includes))
        found = await db.read_snapshot(*statements)
        if query.limit == 0:
            found.insert(0, [])
        return _Found(found[0], found[1][0][0] if query.count else None, found[-1] if query.includes else [])

    found = await filters.ask(db, query.where, ask)
    return MessageSlice(
        [_codec.message(row) for row in found.rows],
        found.total,
        [_codec.message(row) for row in found.windows],
    )


def _message_page(
    filters: Filters, query: MessageQuery, scope: _Scope, lead: Lead, rest: tuple[Condition, ...]
) -> Statement:
    residual = _queries.residual_of(rest, "m")
    values: dict[str, Value] = {
        **scope.values,
        **_queries.between(query.bounds),
        **residual.values,
        **filters.values(),
        **lead.values(),
        "limit": query.limit,
        "skip": query.offset,
        "enough": None if query.limit is None else query.limit + query.offset,
    }
    branches = scope.size * max(len(lead.points), 1)
    of_one = "_of_one" if scope.is_one and branches == 1 else ""
    parts = {
        **scope.parts,
        **_queries.cut(branches),
        "direction": _direction(query),
        "residual": residual.sql,
    }
    if lead.is_walk:
        return filters.queries.statement("page" + of_one, values, **parts, row="m")
    parts |= {**lead.parts(), "row": "p", "candidate": "candidate_message" if rest else ""}
    return filters.queries.statement("matches" + of_one, values, **parts)


def _message_count(
    filters: Filters, query: MessageQuery, scope: _Scope, lead: Lead, rest: tuple[Condition, ...]
) -> Statement:
    if not query.where and query.dates == Bounds():
        name = "count_resource_messages" if query.threads is None else "count_threads_messages"
        return filters.queries.statement(name, scope.values, **scope.parts)
    residual = _queries.residual_of(rest, "m")
    values: dict[str, Value] = {
        **scope.values,
        **_queries.between(query.dates),
        **residual.values,
        **filters.values(),
        **lead.values(),
    }
    parts = {**scope.parts, "residual": residual.sql}
    if lead.is_walk:
        return filters.queries.statement("count_page", values, **parts, row="m")
    parts |= {**lead.parts(), "row": "p", "candidate": "candidate_message" if rest else ""}
    parts["in_order"] = "in_order" if lead.points else ""
    return filters.queries.statement("count_matches", values, **parts)


def _windows(queries: Queries, query: MessageQuery, includes: Sequence[Include]) -> Statement:
    """The included messages that are in scope, with their neighbours."""
    owner = "owner_of_threads" if query.resource_id is None else "owner_given"
    return queries.statement(
        "windows",
        {
            "ids": [include.id for include in includes],
            "within_threads": [include.thread_id for include in includes],
            "befores": [include.before for include in includes],
            "afters": [include.after for include in includes],
            "threads": list(query.threads or ()),
            "resource": query.resource_id,
        },
        window_owner=owner,
    )


# --- threads --------------------------------------------------------------------------------------


async def get_thread(queries: Queries, db: Reader, thread_id: str) -> ThreadRecord | None:
    """A thread by id."""
    (rows,) = await db.read_snapshot(queries.statement("thread_by_id", {"id": thread_id}))
    return _codec.thread(rows[0]) if rows else None


def _thread_scope(query: ThreadQuery) -> _Scope:
    if query.resource_id is None:
        return _Scope({"scopes": "in_all", "where": "TRUE"}, {})
    return _Scope({"scopes": "in_resource", "where": "where_resource"}, {"resource": query.resource_id})


async def list_threads(filters: Filters, db: Reader, query: ThreadQuery) -> ThreadSlice:
    """A page of threads and its total."""
    scope = _thread_scope(query)
    of_scope = "" if query.resource_id is None else "p.resource_key = r.key AND"

    def probe(values: dict[str, Value]) -> Statement:
        parts = {**scope.parts, "of_scope": of_scope, "direction": _direction(query)}
        return filters.queries.statement("thread_probe", {**scope.values, **values}, **parts)

    async def ask() -> _Found:
        lead, rest = await filters.plan(db, query.where, probe, descending=query.descending)
        statements = _thread_statements(filters, query, scope, lead, rest)
        found = await db.read_snapshot(*statements)
        return _Found(found[0], found[1][0][0] if query.count else None)

    found = await filters.ask(db, query.where, ask)
    return ThreadSlice([_codec.thread(row) for row in found.rows], found.total)


def _thread_statements(
    filters: Filters, query: ThreadQuery, scope: _Scope, lead: Lead, rest: tuple[Condition, ...]
) -> list[Statement]:
    residual = _queries.residual_of(rest, "t")
    in_order = query.order_by == "created_at"
    values: dict[str, Value] = {
        **scope.values,
        **_queries.between(query.bounds),
        **residual.values,
        **filters.values(),
        **lead.values(),
        "limit": query.limit,
        "skip": query.offset,
        "enough": None if query.limit is None else query.limit + query.offset,
    }
    table = "t" if lead.is_walk else "p"
    parts = {
        **scope.parts,
        "direction": _direction(query),
        "residual": residual.sql,
        "of_scope": "" if query.resource_id is None else f"{table}.resource_key = r.key AND",
    }
    candidate = {"candidate": "candidate_thread" if rest else ""}
    statements: list[Statement] = []
    if lead.is_walk:
        owner = "owner_of_thread" if query.resource_id is None else ""  # else the scope is the owner
        page = filters.queries.statement("thread_page", values, **parts, order_by=query.order_by, owner=owner)
        statements.append(page)
        if query.count:
            statements.append(filters.queries.statement("count_thread_page", values, **parts))
        return statements
    at = "p.created_at" if in_order else "t.updated_at"
    page = {**candidate} if in_order else {"candidate": "candidate_thread"}
    page.update({"at": at, "owner": "owner_of_thread", **_queries.cut(max(len(lead.points), 1))})
    statements.append(filters.queries.statement("thread_matches", values, **parts, **lead.parts(), **page))
    if query.count:
        statements.append(
            filters.queries.statement("count_thread_matches", values, **parts, **lead.parts(), **candidate)
        )
    return statements


# --- resources and memories -----------------------------------------------------------------------


async def get_resource(queries: Queries, db: Reader, resource_id: str) -> ResourceRecord | None:
    """A resource's own record."""
    (rows,) = await db.read_snapshot(queries.statement("resource_by_id", {"id": resource_id}))
    return _codec.resource(rows[0]) if rows else None


async def list_resources(queries: Queries, db: Reader, query: ResourceQuery) -> ResourceSlice:
    """A page of resources and its total."""
    values: dict[str, Value] = {"after": query.after, "limit": query.limit, "skip": query.offset}
    statements = [queries.statement("list_resources", values)]
    if query.count:
        statements.append(queries.statement("count_resources"))
    found = await db.read_snapshot(*statements)
    total = found[1][0][0] if query.count else None
    return ResourceSlice([_codec.resource(row) for row in found[0]], total)


async def list_memories(queries: Queries, db: Reader, query: MemoryQuery) -> MemorySlice:
    """A page of archive memories and its total."""
    at, after_id = query.after or _NEWEST
    actors = query.actors or ()
    values: dict[str, Value] = {
        "types": [actor[0] for actor in actors],
        "ids": [actor[1] for actor in actors],
        "at": at,
        "after_id": after_id,
        "folded": query.folded,
        "pattern": f"%{_escaped(query.folded)}%",
        "limit": query.limit,
        "skip": query.offset,
        "enough": None if query.limit is None else query.limit + query.offset,
    }
    recall = "{unpinned} " * query.recall + "{containing}" * bool(query.folded)
    suffix = "" if query.actors is None else "_of"
    statements = [queries.statement(f"memories{suffix}", values, recall=recall)]
    if query.count:
        statements.append(queries.statement(f"count_memories{suffix}", values, recall=recall))
    if query.folded:
        statements.insert(0, queries.statement("allow_bitmaps"))
    found = (await db.read_snapshot(*statements))[1 if query.folded else 0 :]
    total = found[1][0][0] if query.count else None
    return MemorySlice([_codec.memory(row) for row in found[0]], total)


def _escaped(text: str) -> str:
    """A text as a pattern of LIKE that matches only itself."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
