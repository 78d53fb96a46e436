"""The schema: numbered, recorded, refused where it must be, and read as it was written by older code."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import threadkeep
from threadkeep import (
    Actor,
    ArchiveMemory,
    Include,
    Message,
    Resource,
    SchemaVersionError,
    StorageError,
    Store,
    Thread,
    gte,
)
from threadkeep.tokens import TOKEN_VERSION
from threadkeep_libsql import _schema

from .positions import assert_consistent

FIXTURES = Path(__file__).parent / "fixtures"

START = datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)

THREADS = [
    Thread(
        id=f"thread-{n}",
        resource_id=f"user-{n % 2}",
        title=title,
        metadata={"rank": n, "open": n > 1, "clone": {"of": [None]}} if n else {},
        working_memory=None if n else "# Notes\n",
        message_count=20 if n < 2 else 0,
        created_at=START + timedelta(days=n),
        updated_at=START + timedelta(days=n + 30),
    )
    for n, title in enumerate(["", "Größe \N{GRINNING FACE}", "日本語"])
]

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2**53 + 1,
    0.5,
    -0.0,
    1e16,
    "",
    "é",
    "x" * 100,
    [1],
    {"a": None},
]

MESSAGES = [
    Message(
        id=f"{thread.id}/{n}",
        thread_id=thread.id,
        resource_id=thread.resource_id,
        role=("user", "assistant")[n % 2],
        type="text",
        content={"parts": [{"type": "text", "text": f"message {n} \0 \N{FAMILY}"}], "size": 10**30},
        metadata={"value": VALUES[n % len(VALUES)], "n": n},
        created_at=START + timedelta(seconds=n // 2),
        seq=1_000_000 + n,
    )
    for thread in THREADS[:2]
    for n in range(20)
]

RESOURCES = [
    Resource(
        id="user-0",
        working_memory='{"home": {"city": "Bern"}}',
        metadata={"plan": "free"},
        revision=7,
        created_at=START,
        updated_at=START + timedelta(hours=1),
    )
]

MEMORIES = [
    ArchiveMemory(
        id=2**53 - 1 - n,
        content=f"Fact {n}: Straße",
        pinned=n == 1,
        actor_type=kind,
        actor_id=None if kind == "shared" else "ada",
        created_at=START + timedelta(minutes=n),
    )
    for n, kind in enumerate(("user", "end_user", "shared"))
]


async def keep_samples(url: str) -> None:
    """Write the samples. ``fixtures/schema_0001.db`` was made by this, with the code of that schema."""
    async with threadkeep.open(url) as store:
        for thread in THREADS:
            await store.save_thread(thread)
        await store.save_messages(MESSAGES)
        for thread in THREADS:
            await store.save_thread(thread)
        for resource in RESOURCES:
            await store.save_resource(resource)
        await store.save_memories(MEMORIES)


async def assert_samples(store: Store) -> None:
    """Read all of them back, in several ways."""
    assert (await store.list_threads(order="asc")).items == THREADS
    for owner in ("user-0", "user-1"):
        kept = [message for message in MESSAGES if message.resource_id == owner]
        assert (await store.list_messages(resource_id=owner)).items == kept
    for value in (True, 2**53 + 1, 1e16, "é", "x" * 100):
        kept = [message for message in MESSAGES[:20] if repr(message.metadata["value"]) == repr(value)]
        assert (await store.list_messages("thread-0", where={"value": value})).items == kept
    page = await store.list_messages(
        "thread-1", where={"n": gte(17)}, include=[Include("thread-1/3", before=1)]
    )
    assert [message.id for message in page.items] == [f"thread-1/{n}" for n in (2, 3, 17, 18, 19)]
    assert (await store.list_threads(where={"open": True})).items == THREADS[2:]
    assert (await store.list_resources()).items == RESOURCES
    assert (await store.list_memories()).items == MEMORIES[::-1]
    assert await store.recall_memories(Actor("user", "ada"), "STRASSE") == [MEMORIES[2], MEMORIES[0]]


def url_of(path: Path) -> str:
    return f"libsql://{path}"


def everything_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rows(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(statement).fetchall()


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


def add_a_migration(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Go on as the next release, with one migration more."""
    number = _schema.SCHEMA_VERSION + 1
    known = {**_schema.migrations(), number: script}
    monkeypatch.setattr(_schema, "SCHEMA_VERSION", number)
    monkeypatch.setattr(_schema, "migrations", lambda: known)


class TestMigrations:
    def test_they_are_numbered_from_1_without_a_gap(self) -> None:
        assert list(_schema.migrations()) == list(range(1, _schema.SCHEMA_VERSION + 1))

    @pytest.mark.asyncio
    async def test_each_is_recorded_with_the_token_version_and_its_time(self, tmp_path: Path) -> None:
        before = datetime.now(UTC)
        await keep_samples(url_of(tmp_path / "a.db"))

        found = rows(tmp_path / "a.db", "SELECT * FROM threadkeep_migration")
        assert [row[:2] for row in found] == [
            (n, TOKEN_VERSION) for n in range(1, _schema.SCHEMA_VERSION + 1)
        ]
        assert before.timestamp() <= found[0][2] / 1e6 <= datetime.now(UTC).timestamp()

    @pytest.mark.asyncio
    async def test_opening_again_migrates_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        await keep_samples(url_of(path))
        before = rows(path, "SELECT * FROM threadkeep_migration")

        async with threadkeep.open(url_of(path)) as store:
            await store.migrate()
            await assert_samples(store)

        assert rows(path, "SELECT * FROM threadkeep_migration") == before

    @pytest.mark.asyncio
    async def test_the_next_one_is_applied_to_an_existing_file_and_keeps_what_is_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "a.db"
        await keep_samples(url_of(path))
        add_a_migration(
            monkeypatch, "CREATE TABLE threadkeep_new (a); INSERT INTO threadkeep_new VALUES (1);"
        )

        async with threadkeep.open(url_of(path)) as store:
            await assert_samples(store)

        assert rows(path, "SELECT a FROM threadkeep_new") == [(1,)]
        assert rows(path, "SELECT max(version) FROM threadkeep_migration") == [(_schema.SCHEMA_VERSION,)]

    @pytest.mark.asyncio
    async def test_one_that_fails_leaves_the_schema_as_it_was(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "a.db"
        await keep_samples(url_of(path))
        with monkeypatch.context() as patched:
            add_a_migration(patched, "CREATE TABLE threadkeep_new (a); SELECT nonsense;")
            with pytest.raises(StorageError, match="nonsense"):
                await threadkeep.open(url_of(path))

        assert rows(path, "SELECT name FROM sqlite_master WHERE name = 'threadkeep_new'") == []
        async with threadkeep.open(url_of(path), migrate=False) as store:
            await assert_samples(store)


@pytest.mark.asyncio
class TestRefusals:
    @pytest.mark.parametrize("migrate", [True, False])
    @pytest.mark.parametrize("journal", ["WAL", "DELETE"])
    async def test_a_newer_schema_is_never_touched(self, tmp_path: Path, migrate: bool, journal: str) -> None:
        path = tmp_path / "a.db"
        await keep_samples(url_of(path))
        change(path, "INSERT INTO threadkeep_migration VALUES (9999, 1, 1)")
        rows(path, f"PRAGMA journal_mode = {journal}")
        before = everything_in(tmp_path)

        with pytest.raises(SchemaVersionError, match="upgrade threadkeep-libsql") as caught:
            await threadkeep.open(url_of(path) + "?metadata_index=none", migrate=migrate)

        assert (caught.value.found, caught.value.supported) == (9999, _schema.SCHEMA_VERSION)
        assert everything_in(tmp_path) == before

    async def test_an_outdated_schema_is_left_alone_without_migrate(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "a.db"
        await keep_samples(url_of(path))
        current = _schema.SCHEMA_VERSION
        before = everything_in(tmp_path)
        add_a_migration(monkeypatch, "CREATE TABLE threadkeep_new (a);")

        with pytest.raises(SchemaVersionError, match="threadkeep migrate") as caught:
            await threadkeep.open(url_of(path), migrate=False)

        assert (caught.value.found, caught.value.supported) == (current, current + 1)
        assert everything_in(tmp_path) == before

    async def test_an_absent_file_is_not_made_without_migrate(self, tmp_path: Path) -> None:
        with pytest.raises(SchemaVersionError, match="migrate=True") as caught:
            await threadkeep.open(url_of(tmp_path / "a.db"), migrate=False)

        assert caught.value.found == 0
        assert everything_in(tmp_path) == {}

    async def test_an_empty_file_stays_empty_without_migrate(self, tmp_path: Path) -> None:
        (tmp_path / "a.db").touch()

        with pytest.raises(SchemaVersionError):
            await threadkeep.open(url_of(tmp_path / "a.db"), migrate=False)

        assert everything_in(tmp_path) == {"a.db": b""}

    async def test_another_programs_file_is_left_alone_without_migrate(self, tmp_path: Path) -> None:
        change(tmp_path / "a.db", "CREATE TABLE theirs (a)")
        before = everything_in(tmp_path)

        with pytest.raises(SchemaVersionError):
            await threadkeep.open(url_of(tmp_path / "a.db"), migrate=False)

        assert everything_in(tmp_path) == before


@pytest.mark.asyncio
async def test_other_tables_in_the_file_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    change(
        path,
        "CREATE TABLE message (key INTEGER PRIMARY KEY, content TEXT)",
        "CREATE INDEX threadkeeper ON message (content)",
        "INSERT INTO message VALUES (1, 'theirs')",
    )
    theirs = (
        "SELECT sql FROM sqlite_master WHERE name NOT LIKE '%threadkeep\\_%' ESCAPE '\\' AND sql IS NOT NULL"
    )
    before = rows(path, theirs)

    await keep_samples(url_of(path))
    async with threadkeep.open(url_of(path) + "?metadata_index=none") as store:
        await assert_samples(store)
        for owner in ("user-0", "user-1"):
            await store.delete_resource(owner)

    assert rows(path, theirs) == before
    assert rows(path, "SELECT * FROM message") == [(1, "theirs")]
    assert rows(path, "SELECT count(*) FROM threadkeep_message") == [(0,)]


@pytest.mark.asyncio
async def test_statistics_are_forgotten_for_these_tables_and_kept_for_others(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await keep_samples(url_of(path))
    change(path, "CREATE TABLE theirs (a)", "INSERT INTO theirs VALUES (1)", "ANALYZE")

    async with threadkeep.open(url_of(path)) as store:
        await assert_samples(store)

    assert rows(path, "SELECT tbl FROM sqlite_stat1") == [("theirs",)]


@pytest.mark.asyncio
@pytest.mark.parametrize("number", range(1, _schema.SCHEMA_VERSION + 1))
async def test_a_file_of_every_schema_there_was_opens_and_reads_right(number: int, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    shutil.copyfile(FIXTURES / f"schema_{number:04}.db", path)

    async with threadkeep.open(url_of(path)) as store:
        await assert_samples(store)
    assert_consistent(path)


@pytest.mark.asyncio
async def test_the_samples_read_right_from_a_new_file(tmp_path: Path) -> None:
    await keep_samples(url_of(tmp_path / "a.db"))

    async with threadkeep.open(url_of(tmp_path / "a.db"), migrate=False) as store:
        await assert_samples(store)
    assert_consistent(tmp_path / "a.db")
