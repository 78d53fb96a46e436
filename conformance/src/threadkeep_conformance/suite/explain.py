"""explain: the database's own account, for the arguments of the lists."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from threadkeep import Capability, Explanation, Include, InvalidArgumentError, Store, Support, TimeRange

from ..cases import case
from ..databases import Database
from .base import AdapterSuite
from .samples import at, filled_thread, unchanged

__all__ = ["TestExplain"]


class TestExplain(AdapterSuite):
    """explain_messages and explain_threads."""

    requires = frozenset({Capability.EXPLAIN})

    @case("explain.same_arguments", "3.explain")
    async def test_explain_takes_the_arguments_of_the_lists(self, store: Store) -> None:
        """The signatures are those of list_messages and list_threads, and every query that can be listed is
        explained.
        """
        for ours, theirs in (("explain_messages", "list_messages"), ("explain_threads", "list_threads")):
            mine = inspect.signature(getattr(Store, ours)).parameters
            assert list(mine) == list(inspect.signature(getattr(Store, theirs)).parameters)
        await filled_thread(store, 5)
        cursor = (await store.list_messages("thread-1", per_page=1)).next_cursor
        messages: list[dict[str, Any]] = [
            {"threads": "thread-1"},
            {"threads": ["thread-1", "unknown"], "with_total": True},
            {"resource_id": "user-1", "where": {"even": True, "index": 2}, "order": "desc"},
            {"threads": "thread-1", "created": TimeRange(at(0), at(2)), "page": 1, "per_page": 2},
            {"threads": "thread-1", "include": [Include("thread-1-m0001", before=1)], "per_page": 0},
            {"threads": "thread-1", "cursor": cursor, "per_page": 1},
            {"threads": [], "per_page": None},
        ]
        for query in messages:
            assert isinstance(await store.explain_messages(**query), Explanation)
        threads: list[dict[str, Any]] = [
            {},
            {
                "resource_id": "user-1",
                "where": {"a": 1},
                "order_by": "updated_at",
                "order": "asc",
                "with_total": True,
            },
            {"per_page": None},
            {"per_page": 0},
        ]
        for query in threads:
            assert isinstance(await store.explain_threads(**query), Explanation)

    @case("explain.says_who_does_what", "5.5.explain", "6.spec")
    async def test_the_parts_are_those_declared(self, database: Database) -> None:
        """filter, order and limit are native or emulated, as metadata_pushdown declares; filter is None
        without one.
        """
        store = await database.open()
        await filled_thread(store, 30)
        pushdown = store.capabilities.pushdown
        for filtered in (
            await store.explain_messages("thread-1", where={"even": True}, per_page=3),
            await store.explain_threads(resource_id="user-1", where={"k": 1}, per_page=3),
        ):
            assert filtered.adapter == database.spec.name
            assert (filtered.filter, filtered.order, filtered.limit) == (
                pushdown.filter,
                pushdown.order,
                pushdown.limit,
            )
            assert all(isinstance(line, str) for line in (*filtered.plan, *filtered.indexes))
            assert filtered.plan
        for plain in (await store.explain_messages("thread-1"), await store.explain_threads()):
            assert plain.filter is None
            assert plain.rows_examined is None or plain.rows_examined >= 0

    @case("explain.names_an_index", "5.5.explain")
    async def test_a_native_filter_uses_an_index(self, database: Database) -> None:
        """Where the filter is native, one equality within a thread or a resource uses an index, for any
        key.
        """
        store = await database.open()
        await filled_thread(store, 200)
        await store.explain_messages("thread-1", where={"index": 7})
        if store.capabilities.pushdown.filter is not Support.NATIVE:
            return  # nothing is claimed; the pushdown cases look at what is transferred
        for query in ({"threads": "thread-1"}, {"resource_id": "user-1"}):
            for key in ("index", "even", "unknown"):
                explanation = await store.explain_messages(**query, where={key: 7}, per_page=5)  # pyright: ignore[reportArgumentType]  (each is legal)
                assert explanation.indexes, f"no index for {query} and {key}: {explanation.plan}"

    @case("explain.changes_nothing", "5.5.explain")
    async def test_explaining_changes_nothing(self, store: Store) -> None:
        """explain reads; it writes nothing and returns no rows."""
        await filled_thread(store, 5)

        async with unchanged(store):
            await store.explain_messages("thread-1", where={"even": True})
            await store.explain_threads(where={"k": 1})

    @case("explain.checks", "3.validate", "3.explain")
    async def test_explain_checks_its_arguments_as_the_lists_do(self, store: Store) -> None:
        """What the lists refuse, explain refuses."""
        await store.explain_messages("thread-1")
        wrong: list[dict[str, Any]] = [
            {},
            {"threads": "t", "per_page": -1},
            {"threads": "t", "where": {"k": {"$ne": ""}}},
            {"threads": "t", "cursor": "x"},
            {"threads": "t", "order": "up"},
        ]
        for query in wrong:
            with pytest.raises(InvalidArgumentError):
                await store.explain_messages(**query)
        with pytest.raises(InvalidArgumentError):
            await store.explain_threads(order_by="title")  # pyright: ignore[reportArgumentType]  (on purpose)
