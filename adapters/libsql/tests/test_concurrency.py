"""Many processes, threads and tasks on one file; cancelling, closing, and an event loop that stays free."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import pytest_asyncio

import threadkeep
from threadkeep import NewMessage, Store, StoreClosedError, not_equal
from threadkeep_libsql._driver import Connection

from .positions import assert_consistent
from .worker import BATCH, BATCHES, MERGES

pytestmark = pytest.mark.asyncio

PROGRAM = Path(__file__).with_name("worker.py")


class Workers:
    """Processes that have everything imported and begin on one word."""

    def __init__(self, stack: ExitStack, work: str, url: str, count: int) -> None:
        self._processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, PROGRAM, work, url, f"worker-{n}"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for n in range(count)
        ]
        stack.callback(self._stop)

    def _stop(self) -> None:
        for process in self._processes:
            process.kill()

    def start(self) -> None:
        """Wait until all are ready, then let them go."""
        for process in self._processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()

    def running(self) -> bool:
        """Whether one is still at work."""
        return any(process.poll() is None for process in self._processes)

    def finish(self) -> None:
        """Assert that all of them succeed."""
        for process in self._processes:
            out, errors = process.communicate()
            assert (out, errors, process.returncode) == ("done\n", "", 0)


def run_together(work: str, url: str, count: int) -> None:
    with ExitStack() as stack:
        workers = Workers(stack, work, url, count)
        workers.start()
        workers.finish()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"libsql://{path}"


@pytest_asyncio.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with threadkeep.open(url) as opened:
        await opened.create_thread("ada", thread_id="shared")
        yield opened


def batch(name: str) -> list[NewMessage]:
    return [NewMessage("shared", "user", n, metadata={"batch": name}) for n in range(BATCH)]


async def sizes(store: Store) -> dict[str, int]:
    """How many messages of each batch are in the shared thread."""
    page = await store.list_messages("shared", per_page=None)
    return dict(Counter(item.metadata["batch"] for item in page.items))


class TestProcesses:
    @pytest.mark.parametrize("options", ["", "?metadata_index=a,b"])
    async def test_eight_that_open_a_new_file_at_once_all_succeed(
        self, url: str, path: Path, options: str
    ) -> None:
        run_together("open_new", url + options, 8)

        async with threadkeep.open(url, migrate=False) as store:
            page = await store.list_messages("shared", where={"a": 1})
            assert {item.content for item in page.items} == {f"worker-{n}" for n in range(8)}
        assert_consistent(path)
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT count(*) FROM threadkeep_migration").fetchone() == (1,)

    async def test_twenty_four_writers_that_merge_into_one_document_lose_nothing(self, url: str) -> None:
        await asyncio.to_thread(run_together, "merge", url, 4)

        async with threadkeep.open(url) as store:
            resource = await store.get_resource("ada")
        assert resource is not None
        assert json.loads(resource.working_memory or "")["writers"] == {
            f"worker-{process}.{task}": {str(n): True for n in range(MERGES)}
            for process in range(4)
            for task in range(6)
        }
        assert resource.revision == 24 * MERGES

    async def test_readers_never_see_half_of_a_batch_that_another_process_saves(
        self, store: Store, url: str, path: Path
    ) -> None:
        with ExitStack() as stack:
            workers = Workers(stack, "save", url, 4)
            workers.start()
            reads = 0
            while workers.running() or not reads:
                page = await store.list_messages("shared", per_page=None, with_total=True)
                assert page.total == len(page.items)
                found = Counter(item.metadata["batch"] for item in page.items)
                assert set(found.values()) <= {BATCH}
                reads += 1
            workers.finish()

        thread = await store.get_thread("shared")
        assert thread is not None
        assert thread.message_count == 4 * BATCHES * BATCH
        assert await sizes(store) == {f"worker-{n}.{b}": BATCH for n in range(4) for b in range(BATCHES)}
        assert_consistent(path)

    async def test_a_backup_made_while_others_write_is_whole(
        self, store: Store, url: str, path: Path
    ) -> None:
        await store.save_messages(batch("before"))
        copies = [path.with_name("vacuumed.db"), path.with_name("backed up.db")]
        with ExitStack() as stack:
            workers = Workers(stack, "save", url, 2)
            workers.start()
            with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copies[1])) as target:
                source.execute("VACUUM INTO ?", (str(copies[0]),))
                source.backup(target)
            workers.finish()

        for copy in copies:
            assert_consistent(copy)
            async with threadkeep.open(f"libsql://{copy}", migrate=False) as copied:
                found = await sizes(copied)
            assert found["before"] == BATCH
            assert set(found.values()) == {BATCH}

    async def test_reads_are_answered_while_another_process_holds_the_write_lock(
        self, store: Store, path: Path
    ) -> None:
        await store.save_messages(batch("one"))
        other = Connection(str(path), durability="full", busy_timeout_s=0)
        with other.transaction():
            other.run("DELETE FROM threadkeep_message")

            assert await sizes(store) == {"one": BATCH}
        other.close()

    async def test_a_forked_child_that_ends_leaves_the_store_of_its_parent_working(
        self, url: str, path: Path
    ) -> None:
        with ExitStack() as stack:
            workers = Workers(stack, "fork", url, 1)
            workers.start()
            workers.finish()

        async with threadkeep.open(url) as store:
            assert [item.content for item in (await store.list_messages("shared")).items] == [7]
        assert_consistent(path)


class TestCancelling:
    async def test_a_write_cancelled_before_it_began_is_not_applied_and_one_that_began_is_whole(
        self, store: Store, path: Path
    ) -> None:
        other = Connection(str(path), durability="full", busy_timeout_s=0)
        with other.transaction():  # so that the first write waits, and the second behind it
            began = asyncio.create_task(store.save_messages(batch("began")))
            waiting = asyncio.create_task(store.save_messages(batch("waiting")))
            await asyncio.sleep(0)
            began.cancel()
            waiting.cancel()
            for task in (began, waiting):
                with pytest.raises(asyncio.CancelledError):
                    await task
        other.close()

        await store.save_messages(batch("after"))
        found = await sizes(store)
        assert found.pop("after") == BATCH
        assert found in ({}, {"began": BATCH})
        assert_consistent(path)

    async def test_cancelling_any_of_many_calls_leaves_only_whole_batches(
        self, store: Store, path: Path
    ) -> None:
        tasks = [asyncio.create_task(store.save_messages(batch(str(n)))) for n in range(40)]
        reads = [asyncio.create_task(sizes(store)) for _ in range(40)]
        await tasks[3]
        for task in [*tasks[4::2], *reads[::2]]:
            task.cancel()
        await asyncio.gather(*tasks, *reads, return_exceptions=True)

        found = await sizes(store)
        assert set(found.values()) == {BATCH}
        assert {str(n) for n, task in enumerate(tasks) if not task.cancelled()} <= set(found)
        assert_consistent(path)

    async def test_a_cancelled_open_leaves_nothing_open(self, url: str, path: Path) -> None:
        async def open_one() -> None:
            await threadkeep.open(url)

        opening = asyncio.create_task(open_one())
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

        async with threadkeep.open(url) as store:
            assert (await store.list_threads()).items == []
        assert [file.name for file in path.parent.iterdir()] == ["a.db"]  # no log: the last one closed


class TestClosing:
    async def test_calls_that_run_while_the_store_is_closed_are_finished(self, url: str, path: Path) -> None:
        store = await threadkeep.open(url)
        await store.create_thread("ada", thread_id="shared")
        writes = [asyncio.create_task(store.save_messages(batch(str(n)))) for n in range(20)]
        reads = [asyncio.create_task(sizes(store)) for _ in range(20)]
        await writes[0]
        await store.close()

        for task in [*writes, *reads]:
            await task
        with pytest.raises(StoreClosedError):
            await store.get_thread("shared")
        async with threadkeep.open(url) as again:
            assert await sizes(again) == {str(n): BATCH for n in range(20)}
        assert_consistent(path)

    async def test_a_closed_store_leaves_one_file_and_no_threads(self, url: str, path: Path) -> None:
        before = set(threading.enumerate())
        async with threadkeep.open(url) as store:
            await store.create_thread("ada", thread_id="shared")
            await asyncio.gather(*[store.get_thread("shared") for _ in range(20)])

        assert [file.name for file in path.parent.iterdir()] == ["a.db"]
        more = set(threading.enumerate()) - before
        assert [thread.name for thread in more if thread.name.startswith("threadkeep-libsql")] == []


class TestEventLoop:
    async def test_it_goes_on_while_a_long_read_runs(self, store: Store) -> None:
        for _ in range(10):
            await store.save_messages(
                [NewMessage("shared", "user", None, metadata={"a": n}) for n in range(1_000)]
            )
        slow = {"a": tuple(not_equal(f"no {n}") for n in range(60)), "nothing": not_equal("matches this")}
        reading = asyncio.create_task(store.list_messages("shared", where=slow))
        turns = 0
        while not reading.done():
            await asyncio.sleep(0)
            turns += 1

        assert (await reading).items == []
        assert turns >= 100  # a loop that stands still for the read makes two

    async def test_it_goes_on_while_a_write_waits_for_another_process(self, store: Store, path: Path) -> None:
        other = Connection(str(path), durability="full", busy_timeout_s=0)
        with other.transaction():
            write = asyncio.create_task(store.save_messages(batch("one")))
            for _ in range(50):
                assert await store.get_thread("shared") is not None
            assert not write.done()
        other.close()

        await write
        assert await sizes(store) == {"one": BATCH}


async def test_a_cancelled_call_stops_waiting_for_the_lock_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with threadkeep.open(f"libsql://{path}?busy_timeout_s=600") as store:
        await store.create_thread("user-1", thread_id="t")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        call = asyncio.ensure_future(store.create_thread("user-1", thread_id="late"))
        await asyncio.wait({call}, timeout=0.2)

        call.cancel()
        # Closing waits for the writer's thread: the call would hold it for ten minutes.
    other.execute("COMMIT")
    other.close()

    async with threadkeep.open(f"libsql://{path}") as store:
        assert await store.get_thread("late") is None
