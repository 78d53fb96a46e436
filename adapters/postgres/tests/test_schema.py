"""Migrations, the choice of indexed keys, and what a database may lack."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest
from psycopg import AsyncConnection

import threadkeep
from threadkeep import Actor, InvalidArgumentError, NewMessage, SchemaVersionError, Store, exists, gte
from threadkeep_postgres._schema import migrations
from threadkeep_postgres._settings import Settings
from threadkeep_postgres.probe import Probe

pytestmark = pytest.mark.asyncio


async def run(url: str, text: str) -> list[tuple[Any, ...]]:
    settings = Settings.parse(url)
    async with await AsyncConnection.connect(settings.conninfo, autocommit=True) as db:
        found = await db.execute(text.replace("{s}", f'"{settings.schema}"').encode())
        return await found.fetchall() if found.description else []


async def fill(store: Store) -> None:
    await store.create_thread("user-1", thread_id="t", metadata={"a": 1, "b": 2})
    await store.save_messages(
        [NewMessage("t", "user", n, id=f"m{n}", metadata={"a": n % 2, "b": n}) for n in range(6)]
    )


async def found_by(store: Store, where: dict[str, Any]) -> list[str]:
    page = await store.list_messages("t", where=where, with_total=True)
    assert page.total == len(page.items)
    return [message.id for message in page.items]


async def test_migrations_are_numbered_without_gaps() -> None:
    assert list(migrations()) == list(range(1, len(migrations()) + 1))


async def test_a_migration_is_recorded_once(url: str) -> None:
    for _ in range(2):
        async with threadkeep.open(url) as store:
            await store.migrate()

    assert [row[0] for row in await run(url, "SELECT version FROM {s}.migration")] == list(migrations())


async def test_an_empty_database_is_refused_without_migrating(url: str) -> None:
    with pytest.raises(SchemaVersionError) as refused:
        await threadkeep.open(url, migrate=False)

    assert refused.value.found == 0


async def test_a_schema_made_by_its_owner_is_used(url: str) -> None:
    await run(url, "CREATE SCHEMA {s}")

    async with threadkeep.open(url) as store:
        assert (await store.create_thread("user-1")).resource_id == "user-1"


@pytest.mark.parametrize("choice", ["none", "a", "b,other"])
async def test_filters_are_right_whatever_is_indexed(url: str, choice: str) -> None:
    async with threadkeep.open(f"{url}&metadata_index={choice}") as store:
        await fill(store)

        assert await found_by(store, {"a": 1}) == ["m1", "m3", "m5"]
        assert await found_by(store, {"b": gte(3)}) == ["m3", "m4", "m5"]
        assert await found_by(store, {"a": 0, "b": 4}) == ["m4"]
        assert await found_by(store, {"c": exists()}) == []
        assert [thread.id for thread in (await store.list_threads(where={"a": 1, "b": 2})).items] == ["t"]
        rows = await run(url, "SELECT count(*) FROM {s}.position")
        assert rows == [({"none": 0, "a": 6, "b,other": 6}[choice],)]


async def test_a_new_choice_of_keys_is_seen_by_stores_that_are_open(url: str) -> None:
    async with threadkeep.open(url) as store:
        await fill(store)
        for choice, entries in (("b", 6), ("none", 0), ("a", 6), ("all", 12)):
            async with threadkeep.open(f"{url}&metadata_index={choice}") as other:
                for each in (store, other):
                    assert await found_by(each, {"a": 1}) == ["m1", "m3", "m5"]
                    assert await found_by(each, {"b": 2}) == ["m2"]
                    assert [thread.id for thread in (await each.list_threads(where={"b": 2})).items] == ["t"]
            assert await run(url, "SELECT count(*) FROM {s}.position") == [(entries,)]


async def test_a_choice_made_while_messages_are_saved_misses_none(url: str) -> None:
    async with threadkeep.open(url) as store:
        await store.create_thread("user-1", thread_id="t")

        async def save() -> None:
            for number in range(30):
                await store.save_messages([NewMessage("t", "user", number, metadata={"a": 1, "b": 1})])

        async def choose() -> None:
            for choice in ("none", "a", "all", "b", "all"):
                await (await threadkeep.open(f"{url}&metadata_index={choice}")).close()

        await asyncio.gather(save(), save(), choose())

        assert await run(url, "SELECT count(*) FROM {s}.position") == [(120,)]
        assert (await store.list_messages("t", where={"a": 1}, with_total=True)).total == 60


async def test_another_choice_is_refused_without_migrating(url: str) -> None:
    async with threadkeep.open(url):
        pass

    with pytest.raises(InvalidArgumentError):
        await threadkeep.open(f"{url}&metadata_index=a", migrate=False)
    await (await threadkeep.open(f"{url}&metadata_index=all", migrate=False)).close()


async def test_recall_is_right_without_the_trigram_index(url: str) -> None:
    async with threadkeep.open(url) as store:
        await run(url, "DROP INDEX {s}.memory_folded")
        await store.add_memories(Actor("user", "a"), ["100% \\ of_it", "100 of it", "STRASSE"])

        for q, found in (("%", 1), ("_", 1), ("\\", 1), ("stra\u00dfe", 1), ("of", 2), ("", 3)):
            assert len(await store.recall_memories(Actor("user", "a"), q)) == found
        await store.migrate()
        assert await run(url, "SELECT to_regclass('{s}.memory_folded') IS NOT NULL") == [(True,)]
        assert len(await store.recall_memories(Actor("user", "a"), "of_it")) == 1


async def test_relaxed_durability_is_a_setting_of_the_session(url: str) -> None:
    async with threadkeep.open(f"{url}&durability=relaxed") as store:
        await fill(store)

    async with await AsyncConnection.connect(Settings.parse(f"{url}&durability=relaxed").conninfo) as db:
        assert await (await db.execute("SHOW synchronous_commit")).fetchone() == ("off",)


async def test_two_schemas_of_one_database_share_nothing(url: str, threadkeep_url: str) -> None:
    other = Probe().fresh_url(threadkeep_url, "other" + (Settings.parse(url).schema or ""))
    try:
        async with threadkeep.open(url) as one, threadkeep.open(other) as two:
            await one.create_thread("user-1", thread_id="t")

            assert await two.get_thread("t") is None
    finally:
        await Probe().discard(other)


async def test_a_hostile_session_changes_nothing(url: str) -> None:
    settings = (
        "TimeZone=Asia/Kolkata",
        "DateStyle=SQL,DMY",
        "IntervalStyle=iso_8601",
        "bytea_output=escape",
        "default_transaction_isolation=serializable",
        "standard_conforming_strings=off",
        "backslash_quote=on",
        "search_path=nowhere",
        "extra_float_digits=-15",
        "plan_cache_mode=force_custom_plan",
        "enable_indexscan=off",
    )
    options = quote(" ".join(f"-c {setting}" for setting in settings))
    async with threadkeep.open(f"{url}&options={options}") as hostile, threadkeep.open(url) as store:
        await fill(hostile)
        await hostile.merge_working_memory("user-1", {"n": 1e16, "z": -0.0})
        copy = await hostile.clone_thread("t", return_messages=True)

        assert await hostile.get_resource("user-1") == await store.get_resource("user-1")
        for thread_id in ("t", copy.thread.id):
            for where in (None, {"a": 1}, {"b": gte(3)}):
                mine = await hostile.list_messages(thread_id, where=where, with_total=True)
                assert mine == await store.list_messages(thread_id, where=where, with_total=True)
