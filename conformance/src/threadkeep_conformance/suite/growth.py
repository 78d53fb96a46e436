"""Growth: what a call sends and fetches does not depend on how long the thread is. Counted, never timed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from threadkeep import Include, MessageUpdate, NewMessage, Store, Support

from ..audit import LARGE, SMALL, Growth, Unobserved, measured
from ..cases import case
from ..databases import Database
from .pushdown import Audited
from .samples import at

__all__ = ["TestGrowth"]

_TEXT = "x" * 400


class TestGrowth(Audited):
    """Calls on a thread of 300 and on one of 3,000 messages."""

    async def _grows_not(self, database: Database, *calls: Callable[[Store, str], Awaitable[object]]) -> None:
        store = await database.open()
        await _fill(store)
        for call in calls:
            try:
                growth = await self.growth(database, store, lambda name, call=call: call(store, name))
            except Unobserved:
                self.unproven(store)
                return
            growth.statements_are_flat()
            if store.capabilities.pushdown.overall == Support.NATIVE:
                growth.rows_are_flat()
                growth.work_is_flat()

    @case("growth.reads", "5.5.statements")
    async def test_reads_by_id_do_not_grow(self, database: Database) -> None:
        """Reading a thread, a resource or messages by id costs the same in a thread ten times as long."""
        await self._grows_not(
            database,
            lambda store, name: store.get_thread(name),
            lambda store, name: store.get_resource(name),
            lambda store, name: store.get_messages([f"{name}-{index}" for index in range(20)]),
        )

    @case("growth.pages", "5.5.statements")
    async def test_pages_do_not_grow(self, database: Database) -> None:
        """A page, either way, with a total or with windows, costs the same in a thread ten times as long."""
        await self._grows_not(
            database,
            lambda store, name: store.list_messages(name, per_page=10),
            lambda store, name: store.list_messages(name, per_page=10, order="desc", with_total=True),
            lambda store, name: store.list_messages(resource_id=name, per_page=10, order="desc"),
            lambda store, name: store.list_messages(
                name, per_page=10, include=[Include(f"{name}-150", before=3, after=3)]
            ),
            lambda store, name: store.list_threads(resource_id=name, with_total=True),
        )

    @case("growth.writes", "5.5.statements")
    async def test_writes_do_not_grow(self, database: Database) -> None:
        """Writing a message, or the thread itself, costs the same in a thread ten times as long."""
        await self._grows_not(
            database,
            lambda store, name: store.save_messages([NewMessage(name, "user", _TEXT, id=f"{name}-new")]),
            lambda store, name: store.save_messages([NewMessage(name, "user", _TEXT) for _ in range(5)]),
            lambda store, name: store.update_messages(
                [MessageUpdate(f"{name}-7", role="tool", metadata={"a": 1})]
            ),
            lambda store, name: store.delete_messages(f"{name}-new"),
            lambda store, name: store.update_thread(name, title="title", metadata={"a": 1}),
            lambda store, name: store.update_resource(name, working_memory="text"),
            lambda store, name: store.ensure_thread(name, thread_id=name),
        )

    @case("growth.clone", "5.5.statements", "4.9.bodies")
    async def test_a_clone_keeps_bodies_in_the_database(self, database: Database) -> None:
        """Cloning sends no more statements for a longer thread, and fetches ids but no bodies."""
        store = await database.open()
        await _fill(store)
        try:
            growth = await self.growth(database, store, lambda name: store.clone_thread(name, title="copy"))
        except Unobserved:
            self.unproven(store)
            return
        if store.capabilities.pushdown.overall != Support.NATIVE:
            return
        growth.statements_are_flat()
        for cost, count in ((growth.small, SMALL), (growth.large, LARGE)):
            assert cost.rows <= 2 * count + 10, "more rows than the id map has"
            if cost.volume is not None:
                assert cost.volume < count * len(_TEXT) / 2, "bodies crossed the driver"

    @case("growth.deletes", "5.5.statements", "4.8.size")
    async def test_deletes_fetch_nothing_of_the_thread(self, database: Database) -> None:
        """Clearing and deleting a thread fetch no rows of its messages, however many there are."""
        store = await database.open()
        if store.capabilities.pushdown.overall != Support.NATIVE:
            return
        await _fill(store)
        for method in (store.clear_thread, store.delete_thread):
            for name in ("small", "large"):
                await store.clone_thread(name, thread_id=f"{name}-{method.__name__}")
            try:
                # The first call, which is not counted, is on a copy.
                costs = [
                    await measured(database, store, _on_both(method, name)) for name in ("small", "large")
                ]
            except Unobserved:
                self.unproven(store)
                return
            Growth(*costs).rows_are_flat()
            await _fill(store)


def _on_both(method: Callable[..., Awaitable[object]], name: str) -> Callable[[], Awaitable[object]]:
    """A call that is made on a thread's copy first, and then on the thread."""
    names = iter((f"{name}-{method.__name__}", name))
    return lambda: method(next(names))


async def _fill(store: Store) -> None:
    """Threads of both sizes, with owners of the same name."""
    for name, count in (("small", SMALL), ("large", LARGE)):
        if (await store.ensure_thread(name, thread_id=name)).message_count == 0:
            await store.save_messages(
                [
                    NewMessage(
                        name, "user", _TEXT, id=f"{name}-{index}", metadata={"n": index}, created_at=at(index)
                    )
                    for index in range(count)
                ]
            )
