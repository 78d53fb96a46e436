"""The position tables hold exactly what they must, after any operations and any choice of indexed keys."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import threadkeep
from threadkeep import InvalidArgumentError, MessageUpdate, NewMessage, Store

from .positions import assert_consistent

pytestmark = pytest.mark.asyncio

START = datetime(2024, 1, 1, tzinfo=UTC)
VALUES: list[Any] = [None, True, False, 0, 1, 1.5, -(2**63), "", "x", "x" * 200, "é", [1], {"deep": 1}]
THREADS = [f"thread-{n}" for n in range(6)]
RESOURCES = ["ada", "béla", "c"]
IDS = [f"message-{n}" for n in range(150)]


class Walk:
    """Random operations on a store; those that the contract refuses are part of the walk."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self._store = store
        self._rng = rng
        self.refused = 0

    async def step(self) -> None:
        operations: list[Callable[[], Awaitable[object]]] = [
            *[self.save] * 14,
            *[self.update] * 6,
            *[self.ensure] * 3,
            self.move,
            self.delete_messages,
            self.update_thread,
            self.save_thread,
            self.transfer,
            self.clone,
            self.clear,
            self.delete_thread,
            self.delete_resource,
        ]
        try:
            await self._rng.choice(operations)()
        except threadkeep.ThreadkeepError:
            self.refused += 1

    def metadata(self) -> dict[str, Any]:
        keys = self._rng.sample(["a", "b", "c", "not a key", "_d"], self._rng.randrange(5))
        return {key: self._rng.choice(VALUES) for key in keys}

    def thread(self) -> str:
        return self._rng.choice(THREADS)

    async def ensure(self) -> object:
        owner = self._rng.choice(RESOURCES)
        at = START + timedelta(seconds=self._rng.randrange(5))
        return await self._store.ensure_thread(
            owner, thread_id=self.thread(), metadata=self.metadata(), created_at=at
        )

    async def save(self) -> object:
        thread = self.thread()
        found = [
            NewMessage(
                thread,
                "user",
                "x",
                id=self._rng.choice(IDS),
                metadata=self.metadata(),
                created_at=self._rng.choice([None, START, START + timedelta(days=1)]),
            )
            for _ in range(self._rng.randrange(1, 8))
        ]
        return await self._store.save_messages(found)

    async def update(self) -> object:
        changes = [
            MessageUpdate(name, metadata=self.metadata(), replace_metadata=self._rng.random() < 0.5)
            for name in self._rng.choices(IDS, k=3)
        ]
        return await self._store.update_messages(changes)

    async def move(self) -> object:
        changes = [
            MessageUpdate(name, thread_id=self.thread(), metadata=self.metadata())
            for name in self._rng.choices(IDS, k=2)
        ]
        return await self._store.update_messages(changes)

    async def delete_messages(self) -> object:
        return await self._store.delete_messages(self._rng.sample(IDS, 3))

    async def update_thread(self) -> object:
        return await self._store.update_thread(self.thread(), title="t", metadata=self.metadata())

    async def save_thread(self) -> object:
        at = START + timedelta(hours=self._rng.randrange(100))
        thread = threadkeep.Thread(
            id=self.thread(),
            resource_id=self._rng.choice(RESOURCES),
            metadata=self.metadata(),
            created_at=at,
            updated_at=at,
        )
        return await self._store.save_thread(thread)

    async def transfer(self) -> object:
        return await self._store.transfer_thread(self.thread(), self._rng.choice(RESOURCES))

    async def clone(self) -> object:
        limit = self._rng.choice([None, 0, 3])
        copy = await self._store.clone_thread(
            self.thread(),
            to_resource_id=self._rng.choice(RESOURCES),
            message_limit=limit,
            metadata=self.metadata(),
        )
        if self._rng.random() < 0.7:
            await self._store.delete_thread(copy.thread.id)
        return copy

    async def clear(self) -> object:
        return await self._store.clear_thread(self.thread())

    async def delete_thread(self) -> object:
        return await self._store.delete_thread(self.thread())

    async def delete_resource(self) -> object:
        return await self._store.delete_resource(self._rng.choice(RESOURCES))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("choice", ["all", "a,b", "none"])
async def test_positions_and_counters_follow_from_the_rest_after_any_operations(
    tmp_path: Path, choice: str, seed: int
) -> None:
    path = tmp_path / "a.db"
    url = f"libsql://{path}?durability=relaxed&metadata_index={choice}"
    async with threadkeep.open(url) as store:
        walk = Walk(store, random.Random(seed))
        for step in range(300):
            await walk.step()
            if step % 10 == 0:
                assert_consistent(path)
        assert_consistent(path)
        assert walk.refused < 150  # most steps were no refusals


async def test_changing_the_indexed_keys_on_reopening_leaves_what_a_new_file_would_have(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    rng = random.Random(7)
    for choice in ("none", "a,b", "all", "b", "all", "none", "all"):
        async with threadkeep.open(f"libsql://{path}?durability=relaxed&metadata_index={choice}") as store:
            assert_consistent(path)
            walk = Walk(store, rng)
            for _ in range(60):
                await walk.step()
            assert_consistent(path)


async def test_without_the_option_the_choice_made_before_stays(tmp_path: Path) -> None:
    url = f"libsql://{tmp_path}/a.db"
    async with threadkeep.open(f"{url}?metadata_index=a,b"):
        pass
    async with threadkeep.open(url) as store:
        await store.create_thread("ada", metadata={"a": 1, "c": 1})

        indexes = [(await store.explain_threads(where={key: 1})).indexes for key in ("a", "c")]
    assert indexes == [["threadkeep_thread_position"], ["threadkeep_thread_created"]]


async def test_a_store_follows_a_choice_that_another_makes_while_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with threadkeep.open(f"libsql://{path}") as store:
        await store.create_thread("ada", thread_id="thread-1")
        for choice in ("none", "b", "all"):
            async with threadkeep.open(f"libsql://{path}?metadata_index={choice}"):
                pass
            await store.save_messages(
                [NewMessage("thread-1", "user", choice, metadata={"a": choice, "b": 1})]
            )

            assert_consistent(path)
            found = await store.list_messages("thread-1", where={"a": choice})
            assert [item.content for item in found.items] == [choice]


async def test_another_choice_is_refused_without_migrate(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with threadkeep.open(f"libsql://{path}?metadata_index=a,b"):
        pass

    for refused in ("all", "none", "a"):
        with pytest.raises(InvalidArgumentError, match="metadata_index"):
            await threadkeep.open(f"libsql://{path}?metadata_index={refused}", migrate=False)
    async with threadkeep.open(f"libsql://{path}?metadata_index=b,a", migrate=False) as store:
        assert (await store.explain_threads(where={"b": 1})).indexes == ["threadkeep_thread_position"]
