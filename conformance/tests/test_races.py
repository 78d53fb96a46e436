import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import threadkeep
from threadkeep import AlreadyExistsError, NewMessage, NotFoundError
from threadkeep.records import ResourceRecord, ThreadRecord
from threadkeep.reference import ReferenceAdapter
from threadkeep.requests import ThreadQuery, ThreadSlice, UpdateResource, UpdateThread
from threadkeep_conformance.plans import Plan, ask, flat
from threadkeep_conformance.races import Racers, race_stores

from .toys import ONE_PROCESS, installed, run_case


@pytest.fixture
def racers() -> Iterator[Racers]:
    started = Racers()
    yield started
    started.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"libsql://{tmp_path.as_posix()}/memory.db"


class ReadsThenWrites(ReferenceAdapter):
    """Loses updates: it reads, lets others run, and writes."""

    async def update_resource(self, request: UpdateResource) -> ResourceRecord:
        changed = request.apply(await self.get_resource(request.id))
        await asyncio.sleep(0)
        return await self.put_resource(changed)

    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        changed = request.apply(await self.get_thread(request.id))
        await asyncio.sleep(0)
        self._tables.threads[request.id] = changed
        return changed


class CountsPages(ReferenceAdapter):
    """Walks by how far it got when the walk began, as an offset would."""

    async def list_threads(self, query: ThreadQuery) -> ThreadSlice:
        found = await super().list_threads(query)
        if query.bounds.after is None and query.bounds.before is None:
            return found
        return ThreadSlice(found.threads[1:], found.total)


@pytest.mark.asyncio
async def test_processes_report_what_each_call_returned_or_raised(racers: Racers, url: str) -> None:
    creates = [Plan([[ask("create_thread", "user-1", thread_id="t"), ask("get_thread", "t")]])] * 3

    found = await racers.race(url, creates)

    made = [task[0] for [task] in found if not isinstance(task[0], AlreadyExistsError)]
    assert len(made) == 1
    assert [task[1] for [task] in found] == made * 3


@pytest.mark.asyncio
async def test_tasks_of_one_process_run_at_once_and_calls_of_one_task_in_order(
    racers: Racers, url: str
) -> None:
    async with threadkeep.open(url) as store:
        await store.create_thread("user-1", thread_id="t")
    saves = [
        [ask("save_messages", [NewMessage("t", "user", n, id=f"{task}-{n}")]) for n in range(5)]
        for task in "ab"
    ]

    [tasks] = await racers.race(url, [Plan(saves)])

    for saved in tasks:
        assert [message.content for [message] in saved] == list(range(5))
        assert [message.seq for [message] in saved] == sorted(message.seq for [message] in saved)


@pytest.mark.asyncio
async def test_what_is_no_error_of_threadkeep_is_raised_here(racers: Racers, url: str) -> None:
    with pytest.raises(AttributeError, match="no_such_method"):
        await racers.race(url, [Plan([[ask("no_such_method")]])])
    assert flat(await racers.race(url, [Plan([[ask("get_thread", "t")]])])) == [None]


@pytest.mark.asyncio
async def test_a_killed_process_has_told_what_it_was_told(racers: Racers, url: str) -> None:
    async with threadkeep.open(url) as store:
        await store.create_thread("user-1", thread_id="t")
        calls = [ask("save_messages", [NewMessage("t", "user", n, id=str(n))]) for n in range(2000)]

        told = await racers.until_killed(url, Plan([calls]), after=10)

        assert 10 <= len(told) < 2000
        stored = {message.id for message in (await store.list_messages("t", per_page=None)).items}
        assert stored >= {message.id for [message] in told}
    assert flat(await racers.race(url, [Plan([[ask("clear_thread", "t")]])])) == [len(stored)]


@pytest.mark.asyncio
async def test_stores_race_in_this_process() -> None:
    async with threadkeep.open("memory:races") as first, threadkeep.open("memory:races") as second:
        found = await race_stores([first, second], [Plan([[ask("update_thread", "t", title="x")]])] * 4)

    assert [type(error) for error in flat(found)] == [NotFoundError] * 4


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "case",
    [
        "concurrency.merge",
        "concurrency.metadata.thread",
        "concurrency.metadata.resource",
        "concurrency.revision",
    ],
)
async def test_a_lost_update_is_noticed(case: str) -> None:
    with installed(ReferenceAdapter, probe=ONE_PROCESS) as url:
        await run_case(case, url)
    with installed(ReadsThenWrites, probe=ONE_PROCESS) as url, pytest.raises(AssertionError):
        await run_case(case, url)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "case", ["concurrency.walk.threads_by_creation", "concurrency.walk.threads_by_change"]
)
async def test_a_walk_that_skips_rows_is_noticed(case: str) -> None:
    with installed(ReferenceAdapter, probe=ONE_PROCESS) as url:
        await run_case(case, url)
    with installed(CountsPages, probe=ONE_PROCESS) as url, pytest.raises(AssertionError, match="left out"):
        await run_case(case, url)


@pytest.mark.asyncio
async def test_what_needs_processes_is_not_offered_in_one() -> None:
    with installed(ReferenceAdapter, probe=ONE_PROCESS) as url:
        assert await run_case("concurrency.open.processes", url) == [("threadkeep_outcome", "not offered")]
