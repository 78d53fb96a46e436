"""The model: random calls have the results that the reference adapter's have."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from threadkeep import Actor, AlreadyExistsError, MessageUpdate, NewMemory, Store, Thread

from ..cases import case
from .base import AdapterSuite
from .samples import NOON, add

__all__ = ["TestFoundByModel", "TestModel"]


class TestModel(AdapterSuite):
    """A state machine of random calls, hostile strings, ties, extreme numbers and a clock that jumps back."""

    @case(
        "model.random_calls",
        "3.validate",
        "4.exact",
        "4.shared",
        "4.5.seq",
        "4.5.total",
        "5.3.writes",
        "5.4.typed",
    )
    async def test_random_calls_have_the_models_results(
        self, threadkeep_url: str, request: pytest.FixtureRequest
    ) -> None:
        """Whatever is called on two stores, results and errors are those of the reference adapter."""
        from ..model import compare  # Hypothesis is slow to import, and its strategies to build

        examples: int | None = request.config.getoption("threadkeep_examples")
        seed: int | None = request.config.getoption("threadkeep_seed")
        await asyncio.to_thread(compare, threadkeep_url, seed=seed or 0, examples=examples)


class TestFoundByModel(AdapterSuite):
    """Differences that random calls have found once, as cases that always look for them."""

    @case("model.last_microsecond", "4.5.touch", "4.2.years")
    async def test_a_touch_stays_within_year_9999(self, store: Store) -> None:
        """A thread whose updated_at is the last microsecond of year 9999 can be written to, and keeps it."""
        last = datetime.max.replace(tzinfo=UTC)
        imported = Thread(id="thread-1", resource_id="user-1", created_at=NOON, updated_at=last)
        await store.save_thread(imported)

        await add(store, "thread-1", "m1")
        await store.update_messages([MessageUpdate("m1", role="tool")])
        await store.update_thread("thread-1", title="title")

        assert (await store.list_threads()).items == [replace(imported, title="title", message_count=1)]

    @case("model.first_taken_memory", "3.memories", "7.tree")
    async def test_the_first_taken_id_is_named(self, store: Store) -> None:
        """Of several taken memory ids AlreadyExistsError names the first in the given order."""
        actor = Actor("user", "user-1")
        await store.add_memories(actor, [NewMemory("a", 1), NewMemory("b", 2)])

        with pytest.raises(AlreadyExistsError) as taken:
            await store.add_memories(actor, [NewMemory("c", 3), NewMemory("b", 2), NewMemory("a", 1)])

        assert taken.value.identifier == "2"
        assert len((await store.list_memories()).items) == 2
