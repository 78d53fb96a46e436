"""Capabilities: declared, fixed, true; and what the absent ones do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

import threadkeep
from threadkeep import (
    Capability,
    NewMessage,
    Pushdown,
    StorageAdapter,
    Store,
    Support,
    UnsupportedCapabilityError,
    gte,
)
from threadkeep.hookspecs import CONTRACT

from ..cases import case
from ..databases import Database
from ..probe import load_probe
from .base import AdapterSuite
from .samples import filled_thread

__all__ = ["TestCapabilities"]


class TestCapabilities(AdapterSuite):
    """What a spec says and what a store has."""

    @case("capabilities.resolved", "6.fixed")
    async def test_nothing_depends_once_a_store_is_open(self, database: Database) -> None:
        """An open store has every capability as native, emulated or absent, and has() says which can be
        used.
        """
        store = await database.open()

        capabilities = store.capabilities
        assert set(capabilities) == set(Capability)
        for capability, support in capabilities.items():
            assert support in (Support.NATIVE, Support.EMULATED, Support.ABSENT)
            assert capabilities.has(capability) is (support is not Support.ABSENT)
        pushdown = capabilities.pushdown
        assert Support.DEPENDS not in (pushdown.filter, pushdown.order, pushdown.limit)

    @case("capabilities.fixed", "6.fixed")
    async def test_capabilities_do_not_change(self, database: Database) -> None:
        """What a store can do is the same after work, in a second store, and after close; it cannot be
        assigned.
        """
        store = await database.open()
        before = dict(store.capabilities)
        await filled_thread(store, 3)
        second = await database.open()
        await store.close()

        assert dict(store.capabilities) == dict(second.capabilities) == before
        with pytest.raises((AttributeError, TypeError)):
            store.capabilities[Capability.EXPLAIN] = Support.ABSENT  # pyright: ignore[reportIndexIssue]  (on purpose)

    @case("capabilities.as_declared", "6.spec", "2.spec")
    async def test_a_store_has_what_its_spec_declares(self, database: Database) -> None:
        """Every capability is as the spec declares it, except where the spec says that it depends on the
        server.
        """
        store = await database.open()
        declared = threadkeep.Capabilities(database.spec.support)

        for capability, support in declared.items():
            if support is not Support.DEPENDS:
                assert (capability, store.capabilities[capability]) == (capability, support)
        assert set(database.spec.support) <= set(Capability)
        for support in database.spec.support.values():
            assert isinstance(support, (Support, Pushdown))

    @case("capabilities.spec", "2.spec")
    async def test_the_spec_is_complete(self, database: Database) -> None:
        """Name, schemes and contract version are given; the major version is the core's; a named probe
        exists.
        """
        spec = database.spec

        assert spec.name
        assert database.url.partition(":")[0] in spec.schemes
        assert spec.contract.partition(".")[0] == CONTRACT.partition(".")[0]
        assert all(isinstance(name, str) and isinstance(text, str) for name, text in spec.limits.items())
        load_probe(spec)

    @case("capabilities.no_driver_at_discovery", "2.lazy")
    async def test_registering_imports_no_driver(self, database: Database) -> None:
        """Discovering all adapters imports none of the modules that this one names as its drivers."""
        drivers = [name for name in database.spec.drivers if name not in sys.stdlib_module_names]
        code = (
            "import sys; from threadkeep.registry import registry; registry();"
            f"sys.exit(', '.join(sorted(set({drivers!r}) & set(sys.modules))) or 0)"
        )

        run = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

        assert (run.returncode, run.stderr) == (0, "")

    @case("capabilities.adapter_is_a_storage_adapter", "2.spec")
    async def test_the_adapter_implements_the_abc(self, database: Database) -> None:
        """The connect function gives a StorageAdapter with the spec's name."""
        adapter = await database.spec.connect(database.url, migrate=True)
        try:
            assert isinstance(adapter, StorageAdapter)
            assert adapter.name == database.spec.name
        finally:
            await adapter.close()

    @case("capabilities.refused_by_name", "6.refused")
    async def test_what_is_absent_is_refused_by_name(self, database: Database) -> None:
        """Each absent capability that the contract refuses is refused before any I/O, naming capability and
        adapter.
        """
        store, log = await database.open_logged()
        attempts: dict[Capability, Callable[[], Awaitable[object]]] = {
            Capability.FILTER_OPERATORS: lambda: store.list_threads(where={"k": gte(1)}),
            Capability.ATOMIC_BATCH: lambda: store.save_messages([NewMessage("t", "user", 1)], atomic=True),
            Capability.ATOMIC_MERGE: lambda: store.merge_working_memory("r", {"a": 1}),
            Capability.EXPLAIN: store.explain_threads,
        }
        with log.silent():
            for capability, attempt in attempts.items():
                if not store.capabilities.has(capability):
                    with pytest.raises(UnsupportedCapabilityError) as refused:
                        await attempt()
                    assert (refused.value.capability, refused.value.adapter) == (
                        capability,
                        database.spec.name,
                    )

    @case("capabilities.required_is_never_absent", "6.refused")
    async def test_what_is_required_is_never_refused(self, store: Store) -> None:
        """Equality filters, batches, clones, guards, recall and paging work whatever is declared."""
        names = await filled_thread(store, 4)

        assert len((await store.list_messages("thread-1", where={"even": True})).items) == 2
        assert len((await store.clone_thread("thread-1")).id_map) == 4
        assert await store.delete_messages(names[:2]) == 2
        assert (await store.update_thread("thread-1", title="x", if_title="")).title == "x"
        assert (await store.update_resource("user-1", working_memory="x", if_revision=0)).revision == 1
        assert await store.recall_memories(threadkeep.Actor("shared"), "x") == []
