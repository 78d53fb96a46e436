"""Tenancy: what an operation does with another resource's things, for every operation that takes an id."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from threadkeep import Include, MessageUpdate, NewMessage, OwnershipError, Store

from ..cases import case
from .base import AdapterSuite
from .samples import filled_thread, ids, unchanged

__all__ = ["TestTenancy"]

MINE, THEIRS = "user-1", "user-2"


async def two_tenants(store: Store) -> tuple[list[str], list[str]]:
    """A thread of each of two resources, with the ids of its messages."""
    mine = await filled_thread(store, 3)
    theirs = await filled_thread(store, 3, thread_id="thread-2", resource_id=THEIRS)
    return mine, theirs


async def refused(
    store: Store, call: Callable[[], Awaitable[object]], kind: str = "thread", identifier: str = "thread-2"
) -> None:
    """Assert that a call writes nothing and is OwnershipError, which names what is another's."""
    async with unchanged(store):
        with pytest.raises(OwnershipError) as refusal:
            await call()
    assert (refusal.value.kind, refusal.value.identifier) == (kind, identifier)


class TestTenancy(AdapterSuite):
    """The scope ``resource_id``: reads as if absent, writes refused."""

    @case("tenancy.every_operation_takes_it", "5.3.takes")
    async def test_every_operation_that_takes_an_id_takes_the_scope(self, store: Store) -> None:
        """Every operation with a thread or message id has the keyword resource_id, None by default."""
        operations = (
            "get_thread", "update_thread", "delete_thread", "clear_thread", "transfer_thread", "clone_thread",
            "get_source_thread", "list_clones", "get_clone_history", "save_messages", "get_messages",
            "list_messages", "iter_messages", "explain_messages", "update_messages", "delete_messages",
            "list_threads", "iter_threads", "explain_threads",
        )  # fmt: skip
        for name in operations:
            parameter = inspect.signature(getattr(Store, name)).parameters["resource_id"]
            assert (name, parameter.default) == (name, None)
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        del store

    @case("tenancy.get_thread", "5.3.reads")
    async def test_get_thread_of_another_resource_is_none(self, store: Store) -> None:
        """get_thread within a scope sees the scope's own thread only."""
        await two_tenants(store)

        assert (await store.get_thread("thread-1", resource_id=MINE)) is not None
        assert (await store.get_thread("thread-2", resource_id=MINE)) is None
        assert (await store.get_thread("thread-1", resource_id="USER-1")) is None

    @case("tenancy.get_messages", "5.3.reads")
    async def test_get_messages_skips_another_resources(self, store: Store) -> None:
        """get_messages within a scope skips other resources' messages."""
        mine, theirs = await two_tenants(store)

        assert ids(await store.get_messages([*theirs, *mine], resource_id=MINE)) == mine
        assert await store.get_messages(theirs, resource_id=MINE) == []

    @case("tenancy.list_messages", "5.3.reads")
    async def test_list_messages_shows_nothing_of_another_resource(self, store: Store) -> None:
        """Another resource's thread within a scope is empty: items, total, filters, windows."""
        _, theirs = await two_tenants(store)

        page = await store.list_messages(
            "thread-2", resource_id=MINE, with_total=True, include=[Include(theirs[1])]
        )

        assert (page.items, page.total, page.has_more) == ([], 0, False)
        filtered = await store.list_messages(
            "thread-2", resource_id=MINE, where={"even": True}, with_total=True
        )
        assert (filtered.items, filtered.total) == ([], 0)
        assert [m.id async for m in store.iter_messages("thread-2", resource_id=MINE)] == []

    @case("tenancy.save_messages", "5.3.writes")
    async def test_save_messages_to_another_resources_thread_is_refused(self, store: Store) -> None:
        """save_messages within a scope takes a batch for the scope's threads only, all or none."""
        await two_tenants(store)
        batch = [NewMessage("thread-1", "user", 1), NewMessage("thread-2", "user", 2)]

        await refused(store, lambda: store.save_messages(batch, resource_id=MINE))
        assert len(await store.save_messages(batch[:1], resource_id=MINE)) == 1

    @case("tenancy.update_messages", "5.3.writes")
    async def test_update_messages_of_another_resource_is_refused(self, store: Store) -> None:
        """update_messages within a scope changes all or, where one is another's, none."""
        mine, theirs = await two_tenants(store)
        updates = [
            MessageUpdate(mine[0], role="x"),
            MessageUpdate("unknown", role="x"),
            MessageUpdate(theirs[0], role="x"),
        ]

        await refused(store, lambda: store.update_messages(updates, resource_id=MINE), "message", theirs[0])
        assert ids(await store.update_messages(updates[:2], resource_id=MINE)) == [mine[0]]

    @case("tenancy.delete_messages", "5.3.writes")
    async def test_delete_messages_of_another_resource_is_refused(self, store: Store) -> None:
        """delete_messages within a scope deletes all or, where one is another's, none."""
        mine, theirs = await two_tenants(store)
        both = [mine[0], theirs[0]]

        await refused(store, lambda: store.delete_messages(both, resource_id=MINE), "message", theirs[0])
        assert await store.delete_messages([mine[0], "unknown"], resource_id=MINE) == 1

    @case("tenancy.update_thread", "5.3.writes")
    async def test_update_thread_of_another_resource_is_refused(self, store: Store) -> None:
        """update_thread within a scope changes the scope's own threads only; ownership is checked before
        the guard.
        """
        await two_tenants(store)

        await refused(store, lambda: store.update_thread("thread-2", title="x", resource_id=MINE))
        await refused(
            store, lambda: store.update_thread("thread-2", title="x", if_title="other", resource_id=MINE)
        )
        assert (await store.update_thread("thread-1", title="x", resource_id=MINE)).title == "x"

    @case("tenancy.delete_thread", "5.3.writes")
    async def test_delete_thread_of_another_resource_is_refused(self, store: Store) -> None:
        """delete_thread within a scope deletes the scope's own threads only; an absent one is no error."""
        await two_tenants(store)

        await refused(store, lambda: store.delete_thread("thread-2", resource_id=MINE))
        assert await store.delete_thread("unknown", resource_id=MINE) is False
        assert await store.delete_thread("thread-1", resource_id=MINE) is True

    @case("tenancy.clear_thread", "5.3.writes")
    async def test_clear_thread_of_another_resource_is_refused(self, store: Store) -> None:
        """clear_thread within a scope clears the scope's own threads only, also where it is empty."""
        await two_tenants(store)
        await store.create_thread(THEIRS, thread_id="empty")

        await refused(store, lambda: store.clear_thread("thread-2", resource_id=MINE))
        await refused(store, lambda: store.clear_thread("empty", resource_id=MINE), identifier="empty")
        assert await store.clear_thread("thread-1", resource_id=MINE) == 3

    @case("tenancy.transfer_thread", "5.3.writes")
    async def test_transfer_thread_of_another_resource_is_refused(self, store: Store) -> None:
        """transfer_thread within a scope gives away the scope's own threads only, and takes none."""
        await two_tenants(store)

        await refused(store, lambda: store.transfer_thread("thread-2", MINE, resource_id=MINE))
        assert (await store.transfer_thread("thread-1", THEIRS, resource_id=MINE)).resource_id == THEIRS

    @case("tenancy.clone_thread", "5.3.writes", "4.9.errors")
    async def test_clone_thread_of_another_resource_is_refused(self, store: Store) -> None:
        """clone_thread within a scope copies the scope's own threads only."""
        await two_tenants(store)

        await refused(store, lambda: store.clone_thread("thread-2", to_resource_id=MINE, resource_id=MINE))
        assert (await store.clone_thread("thread-1", resource_id=MINE)).thread.resource_id == MINE

    @case("tenancy.clone_helpers", "5.3.reads", "4.9.helpers")
    async def test_clone_helpers_see_the_scope_only(self, store: Store) -> None:
        """Source, clones and history of other resources are as if absent."""
        await two_tenants(store)
        clone = (await store.clone_thread("thread-2", to_resource_id=MINE, thread_id="copy")).thread

        assert await store.get_source_thread(clone.id, resource_id=MINE) is None
        assert ids(await store.get_clone_history(clone.id, resource_id=MINE)) == ["copy"]
        assert ids(await store.list_clones("thread-2", resource_id=MINE)) == ["copy"]
        assert ids(await store.list_clones("thread-2", resource_id=THEIRS)) == []
        assert await store.get_clone_history(clone.id, resource_id=THEIRS) == []

    @case("tenancy.list_threads", "5.3.reads")
    async def test_list_threads_shows_nothing_of_another_resource(self, store: Store) -> None:
        """list_threads and iter_threads within a scope show the scope's threads only, whatever the filter."""
        await two_tenants(store)
        await store.update_thread("thread-2", metadata={"k": 1})

        assert ids(await store.list_threads(resource_id=MINE)) == ["thread-1"]
        assert (await store.list_threads(resource_id=MINE, where={"k": 1}, with_total=True)).total == 0
        assert [t.id async for t in store.iter_threads(resource_id=MINE, where={"k": 1})] == []

    @case("tenancy.ids_compare_exactly", "4.1.compare", "5.3.reads")
    async def test_owners_compare_code_point_by_code_point(self, store: Store) -> None:
        """Owners that differ in case, accents, spaces or normalisation are different owners."""
        owners = (
            "user",
            "USER",
            "user ",
            " user",
            "usér",
            "use\u0301r",
            "us\u00e9r\u200b",
            "%",
            "_ser",
            "u%",
        )
        for index, owner in enumerate(owners):
            await store.create_thread(owner, thread_id=f"t{index}")
            await store.save_messages([NewMessage(f"t{index}", "user", 1, id=f"m{index}")])

        for index, owner in enumerate(owners):
            assert ids(await store.list_threads(resource_id=owner)) == [f"t{index}"]
            assert ids(await store.list_messages(resource_id=owner)) == [f"m{index}"]
            assert ids(
                await store.get_messages([f"m{i}" for i in range(len(owners))], resource_id=owner)
            ) == [f"m{index}"]

    @case("tenancy.operators_are_no_owners", "3.validate", "5.3.takes")
    async def test_an_operator_is_no_owner(self, store: Store) -> None:
        """A dict where a scope or an id belongs is an error in every operation, never an operator."""
        await two_tenants(store)
        injected: Any = {"$ne": ""}
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: store.get_thread("thread-1", resource_id=injected),
            lambda: store.get_thread(injected),
            lambda: store.get_messages([injected]),
            lambda: store.get_messages(["m"], resource_id=injected),
            lambda: store.list_messages("thread-1", resource_id=injected),
            lambda: store.list_threads(resource_id=injected),
            lambda: store.delete_thread(injected),
            lambda: store.delete_thread("thread-1", resource_id=injected),
            lambda: store.clear_thread("thread-1", resource_id=injected),
            lambda: store.delete_messages([injected]),
            lambda: store.delete_messages(["m"], resource_id=injected),
            lambda: store.update_thread("thread-1", title="x", resource_id=injected),
            lambda: store.update_thread("thread-1", title=injected),
            lambda: store.update_thread("thread-1", title="x", if_title=injected),
            lambda: store.transfer_thread("thread-1", injected),
            lambda: store.clone_thread("thread-1", to_resource_id=injected),
            lambda: store.save_messages([NewMessage(injected, "user", 1)]),
            lambda: store.update_messages([MessageUpdate(injected, role="x")]),
            lambda: store.create_thread(injected),
            lambda: store.get_resource(injected),
            lambda: store.delete_resource(injected),
        ]
        async with unchanged(store):
            for call in calls:
                with pytest.raises(ValueError, match="must be"):
                    await call()
