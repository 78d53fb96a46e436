"""URLs: the file they name, the options they take, and what is refused before a file is made."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest

import threadkeep
from threadkeep import InvalidArgumentError, UnavailableError
from threadkeep_libsql._driver import Connection
from threadkeep_libsql.adapter import LibsqlAdapter

pytestmark = pytest.mark.asyncio


async def keep_a_thread(url: str) -> None:
    async with threadkeep.open(url) as store:
        await store.ensure_thread("user-1", thread_id="thread-1")


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("scheme", ["libsql", "sqlite", "file", "LibSQL"])
async def test_every_scheme_names_the_same_file_in_both_forms(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await keep_a_thread(f"{scheme}:///{str(tmp_path / 'memory.db').removeprefix('/')}")

    for url in (f"{scheme}:memory.db", f"{scheme}:./memory.db", f"{scheme}:{tmp_path}/memory.db"):
        async with threadkeep.open(url) as store:
            assert await store.get_thread("thread-1") is not None
    assert files(tmp_path) == ["memory.db"]


@pytest.mark.parametrize(
    "name", ["with space.db", "Größe.db", "記憶.db", "a#b?c%20d&e=f.db", "plus+.db", "no suffix"]
)
async def test_quoted_names_are_exact(name: str, tmp_path: Path) -> None:
    await keep_a_thread("libsql://" + quote(str(tmp_path / name)))

    assert files(tmp_path) == [name]


@pytest.mark.parametrize("name", ["with space.db", "Größe.db", "記憶.db"])
async def test_spaces_and_letters_of_any_script_need_no_quoting(name: str, tmp_path: Path) -> None:
    await keep_a_thread(f"libsql://{tmp_path}/{name}")

    assert files(tmp_path) == [name]


async def test_a_relative_file_stays_the_same_when_the_process_changes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    async with threadkeep.open("libsql:memory.db") as store:
        os.chdir("elsewhere")
        await store.create_thread("user-1", thread_id="thread-1")
        assert await store.get_thread("thread-1") is not None  # by a connection that is opened only now

    assert files(tmp_path) == ["memory.db"]


@pytest.mark.parametrize(
    "url",
    [
        "libsql:",
        "libsql:///",
        "libsql:folder/",
        "libsql://localhost/memory.db",
        "libsql://user:secret@host/memory.db",
        "libsql:memory.db#part",
        "libsql:memory%00.db",
        "libsql::memory:",
        "libsql:memory.db?nope=1",
        "libsql:memory.db?mode=ro",
        "libsql:memory.db?durability",
        "libsql:memory.db?durability=fast",
        "libsql:memory.db?durability=full&durability=full",
        "libsql:memory.db?busy_timeout_s=-1",
        "libsql:memory.db?busy_timeout_s=nan",
        "libsql:memory.db?busy_timeout_s=soon",
        "libsql:memory.db?metadata_index=",
        "libsql:memory.db?metadata_index=a,,b",
        "libsql:memory.db?metadata_index=not-a-key",
        "libsql:memory.db?metadata_index=__proto__",
    ],
)
async def test_a_wrong_url_is_refused_before_there_is_a_file(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InvalidArgumentError) as caught:
        await threadkeep.open(url)

    assert "url" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert files(tmp_path) == []


@pytest.mark.parametrize("path", ["no/such/folder.db", "taken", "x" * 300])
async def test_a_file_that_cannot_be_made_is_unavailable(path: str, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()

    with pytest.raises(UnavailableError) as caught:
        await threadkeep.open(f"libsql://{tmp_path}/{path}")

    assert caught.value.outcome == "not_applied"


@pytest.mark.parametrize("path", ["taken", "x" * 300])
async def test_a_file_that_cannot_be_looked_at_is_unavailable(path: str, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()

    with pytest.raises(UnavailableError) as caught:
        await threadkeep.open(f"libsql://{tmp_path}/{path}", migrate=False)

    assert caught.value.outcome == "not_applied"


@pytest.mark.parametrize(
    ("options", "synchronous"),
    [("", 2), ("?durability=full", 2), ("?durability=relaxed", 1)],
    ids=["default", "full", "relaxed"],
)
async def test_durability_is_what_the_connections_themselves_report(
    options: str, synchronous: int, tmp_path: Path
) -> None:
    adapter = await LibsqlAdapter.connect(f"libsql://{tmp_path}/memory.db{options}", migrate=True)
    for ask in (adapter._read, adapter._write):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (only a connection knows)
        assert await ask(lambda db: db.query("PRAGMA synchronous")) == [(synchronous,)]
        assert await ask(lambda db: db.query("PRAGMA journal_mode")) == [("wal",)]
    await adapter.close()


async def test_the_busy_timeout_is_how_long_a_write_waits(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with threadkeep.open(f"libsql://{path}?busy_timeout_s=0.1") as store:
        other = Connection(str(path), durability="full", busy_timeout_s=0)
        with other.transaction(), pytest.raises(UnavailableError, match="locked") as caught:
            await store.create_thread("user-1")
        other.close()

        assert caught.value.outcome == "not_applied"
        assert (await store.list_threads()).items == []
