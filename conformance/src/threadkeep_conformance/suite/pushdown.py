"""The pushdown audit: what is declared native is seen from outside the adapter, at two sizes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from threadkeep import (
    Actor,
    Capability,
    NewMemory,
    NewMessage,
    Pushdown,
    Store,
    Support,
    Thread,
    exists,
    gte,
    missing,
    not_equal,
    one_of,
)
from threadkeep.filters import Where
from threadkeep.models import Order

from ..audit import LARGE, SMALL, Growth, Unobserved, measured
from ..cases import case
from ..databases import Database
from .base import AdapterSuite
from .samples import at, ids

__all__ = ["TestPushdown"]

_MATCHES = 20  # of the rare value, at either size
_SIZES = (("small", SMALL), ("large", LARGE))
_THREADS = (("small", SMALL // 5), ("large", LARGE // 5))
_NATIVE = Support.NATIVE


class Audited(AdapterSuite):
    """Cases that count what crosses the driver."""

    async def growth(
        self, database: Database, store: Store, call: Callable[[str], Awaitable[object]]
    ) -> Growth:
        """What a call costs for ``small`` and for ``large``."""
        costs = [await measured(database, store, lambda name=name: call(name)) for name, _ in _SIZES]
        return Growth(*costs)

    def unproven(self, store: Store) -> None:
        """End a case because nothing shows what crosses the driver: what is declared native is not proven."""
        declared = store.capabilities.pushdown
        if _NATIVE in (declared.filter, declared.order, declared.limit):
            self._node.user_properties.append(("threadkeep_outcome", "unproven"))
            pytest.skip("metadata_pushdown is declared native, but the adapter has no probe to prove it by")


class TestPushdown(Audited):
    """Filter, order and limit in the database, where they are declared native."""

    async def _proves(
        self,
        database: Database,
        call: Callable[[Store, str], Awaitable[object]],
        *parts: Support,
        work: bool = True,
        fill: Callable[[Store], Awaitable[None]] | None = None,
    ) -> None:
        """Prove parts of a declaration by a call on small and large data, if all of them are native."""
        store = await database.open()
        if any(part != _NATIVE for part in parts):
            return
        await (fill or _fill_messages)(store)
        try:
            growth = await self.growth(database, store, lambda name: call(store, name))
        except Unobserved:
            self.unproven(store)
            return
        assert growth.large.returned == growth.small.returned > 0, "the audit's queries find something"
        growth.rows_are_flat()
        if work:
            growth.work_is_flat()

    async def _declared(self, database: Database) -> Pushdown:
        return (await database.capabilities()).pushdown

    @case("pushdown.filter", "5.5.pushdown", "5.4.first", "6.spec")
    async def test_a_rare_value_is_found_by_the_database(self, database: Database) -> None:
        """Twenty matches in a thread or a resource cost the same among 300 and 3,000 messages."""
        declared = await self._declared(database)
        for scope in ("threads", "resource_id"):

            def rare(store: Store, name: str, scope: str = scope) -> Awaitable[object]:
                query: dict[str, Any] = {scope: name}
                return store.list_messages(**query, where={"rare": True}, per_page=_MATCHES)

            await self._proves(database, rare, declared.filter)

    @case("pushdown.order_and_limit", "5.5.pushdown", "6.spec")
    async def test_a_page_of_many_matches_is_cut_by_the_database(self, database: Database) -> None:
        """A page of ten out of many matches, either way, fetches ten and sorts nothing."""
        declared = await self._declared(database)
        orders: tuple[Order, Order] = ("asc", "desc")
        for order in orders:

            def page(store: Store, name: str, order: Order = order) -> Awaitable[object]:
                return store.list_messages(name, where={"half": True}, order=order, per_page=10)

            await self._proves(database, page, declared.filter, declared.order, declared.limit)

    @case("pushdown.unfiltered_page", "5.5.pushdown", "3.last")
    async def test_a_page_without_filter_is_cut_by_the_database(self, database: Database) -> None:
        """The last ten messages, with the thread's total, cost the same in a thread ten times as long."""
        declared = await self._declared(database)

        def page(store: Store, name: str) -> Awaitable[object]:
            return store.list_messages(name, order="desc", per_page=10, with_total=True)

        await self._proves(database, page, declared.order, declared.limit)

    @case("pushdown.several_threads", "5.5.pushdown", "5.2.scope")
    async def test_several_threads_are_merged_not_sorted(self, database: Database) -> None:
        """A page of two threads fetches about a page of each, and does not sort them whole."""
        declared = await self._declared(database)

        def page(store: Store, name: str) -> Awaitable[object]:
            return store.list_messages([name, f"{name}-2"], where={"half": True}, per_page=10)

        parts = (declared.filter, declared.order, declared.limit)
        await self._proves(database, page, *parts, fill=_fill_pairs)

    @case("pushdown.deep_page", "5.5.pushdown", "5.1.walk")
    async def test_a_page_far_down_costs_what_the_first_costs(self, database: Database) -> None:
        """With a cursor, a page near the end of a thread costs what it costs near the beginning."""
        declared = await self._declared(database)
        cursors: dict[str, str | None] = {}

        async def fill(store: Store) -> None:
            await _fill_messages(store)
            for name, pages in (("small", 1), ("large", LARGE // 10 - 2)):
                cursors[name] = None
                for _ in range(pages):
                    page = await store.list_messages(
                        "large", where={"all": 1}, per_page=10, cursor=cursors[name]
                    )
                    cursors[name] = page.next_cursor

        def deep(store: Store, name: str) -> Awaitable[object]:
            return store.list_messages("large", where={"all": 1}, per_page=10, cursor=cursors[name])

        await self._proves(database, deep, declared.filter, declared.order, declared.limit, fill=fill)

    @case(
        "pushdown.operators",
        "5.5.pushdown",
        "5.4.ranges",
        "5.4.one_of",
        requires=frozenset({Capability.FILTER_OPERATORS}),
    )
    async def test_conditions_are_evaluated_by_the_database(self, database: Database) -> None:
        """Ranges, one_of, exists, missing, not_equal and several keys fetch no more than their page."""
        capabilities = await database.capabilities()
        declared = capabilities.pushdown
        await (await database.open()).list_messages("t", where={"n": gte(5)})  # refused where it is absent
        parts = (declared.filter, declared.order, declared.limit, capabilities[Capability.FILTER_OPERATORS])
        conditions: tuple[tuple[Where, bool], ...] = (
            ({"third": one_of(0, 1)}, True),  # O(values x page)
            ({"n": gte(5)}, False),  # O(matches)
            ({"rare": exists()}, False),
            ({"rare": missing()}, False),
            ({"third": not_equal(1)}, False),
            ({"half": True, "third": 1}, False),
        )
        for where, work in conditions:

            def page(store: Store, name: str, where: Where | None = where) -> Awaitable[object]:
                return store.list_messages(name, where=where, per_page=10)

            await self._proves(database, page, *parts, work=work)

    @case("pushdown.threads", "5.5.pushdown", "5.4.first", "3.list_threads")
    async def test_threads_are_found_by_the_database(self, database: Database) -> None:
        """A page of a resource's threads, filtered or not, costs the same among 60 and 600 of them."""
        declared = await self._declared(database)
        filters: tuple[Where | None, ...] = (None, {"half": True}, {"rare": True})
        for where in filters:

            def page(store: Store, name: str, where: Where | None = where) -> Awaitable[object]:
                return store.list_threads(resource_id=name, where=where, per_page=10)

            parts = (declared.filter, declared.order, declared.limit)
            await self._proves(database, page, *parts, fill=_fill_threads)

    @case("pushdown.threads_by_change", "5.5.pushdown", "3.list_threads")
    async def test_threads_by_change_are_found_by_the_database(self, database: Database) -> None:
        """The ten threads changed last fetch ten rows among 60 and 600; unfiltered they sort nothing."""
        declared = await self._declared(database)
        parts = (declared.filter, declared.order, declared.limit)
        filters: tuple[Where | None, ...] = (None, {"half": True})
        for where in filters:  # filtered, the cost is O(matching threads)

            def page(store: Store, name: str, where: Where | None = where) -> Awaitable[object]:
                return store.list_threads(resource_id=name, where=where, order_by="updated_at", per_page=10)

            await self._proves(database, page, *parts, fill=_fill_threads, work=where is None)

    @case("pushdown.text_search", "5.5.pushdown", "8.substring")
    async def test_a_substring_is_found_by_the_database(self, database: Database) -> None:
        """With native text_search, recall fetches what it returns, however many memories an actor has."""
        capabilities = await database.capabilities()

        async def fill(store: Store) -> None:
            for name, count in _SIZES:
                facts = [
                    f"fact {n} {'rare' if n % (count // _MATCHES) == 0 else 'usual'}" for n in range(count)
                ]
                await store.add_memories(Actor("user", name), [NewMemory(fact) for fact in facts])

        def recall(store: Store, name: str) -> Awaitable[object]:
            return store.recall_memories(Actor("user", name), "RARE", limit=_MATCHES)

        await self._proves(database, recall, capabilities[Capability.TEXT_SEARCH], fill=fill, work=False)

    @case("pushdown.explained", "5.5.explain", "3.explain", requires=frozenset({Capability.EXPLAIN}))
    async def test_an_explanation_agrees_with_the_declaration(self, store: Store) -> None:
        """What explain says of a query is what is declared, and the rows it examined do not grow either."""
        await _fill_messages(store)
        declared = store.capabilities.pushdown
        examined: list[int] = []
        for name, _ in _SIZES:
            found = await store.explain_messages(name, where={"rare": True}, per_page=10)
            assert (found.filter, found.order, found.limit) == (
                declared.filter,
                declared.order,
                declared.limit,
            )
            assert found.plan, "an explanation without a plan"
            examined += [] if found.rows_examined is None else [found.rows_examined]
        if declared.overall == _NATIVE and examined:
            assert examined[1] <= 2 * examined[0] + 10

    @case("pushdown.same_answers", "5.4.first", "5.1.total")
    async def test_the_audited_queries_have_the_right_answers(self, store: Store) -> None:
        """What the audit asks for is found, in order, with its total, in threads of both sizes."""
        await _fill_messages(store)
        for name, count in _SIZES:
            step = count // _MATCHES
            page = await store.list_messages(
                name, where={"rare": True}, per_page=7, order="desc", with_total=True
            )
            assert ids(page) == [f"{name}-{count - step - step * index}" for index in range(7)]
            assert page.total == _MATCHES


async def _fill_messages(store: Store) -> None:
    """A thread of each size, whose owner has its name; nothing, where that is done."""
    for name, count in _SIZES:
        await _fill_thread(store, name, name, count)


async def _fill_pairs(store: Store) -> None:
    """Two threads of each size and owner."""
    for name, count in _SIZES:
        await _fill_thread(store, name, name, count)
        await _fill_thread(store, name, f"{name}-2", count)


async def _fill_thread(store: Store, owner: str, thread: str, count: int) -> None:
    if (await store.ensure_thread(owner, thread_id=thread)).message_count == 0:
        await store.save_messages([_message(thread, index, count) for index in range(count)])


def _message(thread: str, index: int, count: int) -> NewMessage:
    metadata: dict[str, Any] = {"n": index, "half": index % 2 == 0, "third": index % 3, "all": 1}
    if index % (count // _MATCHES) == 0:
        metadata["rare"] = True
    return NewMessage(
        thread,
        "user",
        {"text": f"message {index}"},
        id=f"{thread}-{index}",
        metadata=metadata,
        created_at=at(index),
    )


async def _fill_threads(store: Store) -> None:
    for name, count in _THREADS:
        if (await store.list_threads(resource_id=name, per_page=1)).items:
            continue
        for index in range(count):
            metadata: dict[str, Any] = {"half": index % 2 == 0, "rare": index % (count // 10) == 0}
            moment = at(index)
            await store.save_thread(
                Thread(
                    id=f"{name}-{index}",
                    resource_id=name,
                    metadata=metadata,
                    created_at=moment,
                    updated_at=moment,
                )
            )
