"""The threads behind a connection."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest

from threadkeep_libsql._workers import Workers


@pytest.fixture
def workers() -> Generator[Workers]:
    found = Workers(4, "test-worker")
    yield found
    found.stop()


@pytest.mark.asyncio
async def test_calls_one_after_the_other_stay_on_one_thread(workers: Workers) -> None:
    used = {await workers.run(threading.get_ident) for _ in range(200)}

    assert len(used) == 1


@pytest.mark.asyncio
async def test_calls_at_once_use_all_threads_and_no_more(workers: Workers) -> None:
    meeting = threading.Barrier(4, timeout=30)

    def meet() -> int:
        meeting.wait()
        return threading.get_ident()

    used = await asyncio.gather(*[workers.run(meet) for _ in range(40)])

    assert len(set(used)) == 4


@pytest.mark.asyncio
async def test_after_calls_at_once_the_thread_freed_last_is_used_again(workers: Workers) -> None:
    meeting = threading.Barrier(4, timeout=30)
    await asyncio.gather(*[workers.run(meeting.wait) for _ in range(4)])

    used = {await workers.run(threading.get_ident) for _ in range(50)}

    assert len(used) == 1


@pytest.mark.asyncio
async def test_a_call_cancelled_before_its_turn_is_never_made() -> None:
    workers = Workers(1, "test-worker")
    going, made = threading.Event(), list[str]()
    first = asyncio.ensure_future(workers.run(lambda: going.wait(30)))
    second = asyncio.ensure_future(workers.run(lambda: made.append("second")))
    third = asyncio.ensure_future(workers.run(lambda: made.append("third")))
    await asyncio.sleep(0)

    second.cancel()
    going.set()
    await asyncio.gather(first, third)
    workers.stop()

    assert made == ["third"]


@pytest.mark.asyncio
async def test_stopping_lets_the_calls_that_wait_be_made_in_their_order() -> None:
    workers = Workers(1, "test-worker")
    going, made = threading.Event(), list[int]()
    calls = [asyncio.ensure_future(workers.run(lambda: going.wait(30)))]
    calls += [asyncio.ensure_future(workers.run(lambda n=n: made.append(n) is None)) for n in range(5)]
    await asyncio.sleep(0)

    going.set()
    await asyncio.to_thread(workers.stop)
    await asyncio.gather(*calls)

    assert made == list(range(5))


@pytest.mark.asyncio
async def test_what_a_call_raises_reaches_its_caller_and_the_thread_lives_on(workers: Workers) -> None:
    def fail() -> None:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        await workers.run(fail)

    assert await workers.run(lambda: 1) == 1
