"""The threads behind a connection."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator

import pytest

from threadkeep.errors import UnavailableError
from threadkeep_libsql._workers import Workers


def _thread(_: object) -> int:
    return threading.get_ident()


@pytest.fixture
def workers() -> Generator[Workers]:
    found = Workers(4, "test-worker")
    yield found
    found.stop()


@pytest.mark.asyncio
async def test_calls_one_after_the_other_stay_on_one_thread(workers: Workers) -> None:
    used = {await workers.run(_thread) for _ in range(200)}

    assert len(used) == 1


@pytest.mark.asyncio
async def test_calls_at_once_use_all_threads_and_no_more(workers: Workers) -> None:
    meeting = threading.Barrier(4, timeout=30)

    def meet(_: object) -> int:
        meeting.wait()
        return threading.get_ident()

    used = await asyncio.gather(*[workers.run(meet) for _ in range(40)])

    assert len(set(used)) == 4


@pytest.mark.asyncio
async def test_after_calls_at_once_the_thread_freed_last_is_used_again(workers: Workers) -> None:
    meeting = threading.Barrier(4, timeout=30)
    await asyncio.gather(*[workers.run(lambda _: meeting.wait()) for _ in range(4)])

    used = {await workers.run(_thread) for _ in range(50)}

    assert len(used) == 1


@pytest.mark.asyncio
async def test_a_call_cancelled_before_its_turn_is_never_made() -> None:
    workers = Workers(1, "test-worker")
    going, made = threading.Event(), list[str]()
    first = asyncio.ensure_future(workers.run(lambda _: going.wait(30)))
    second = asyncio.ensure_future(workers.run(lambda _: made.append("second")))
    third = asyncio.ensure_future(workers.run(lambda _: made.append("third")))
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
    calls = [asyncio.ensure_future(workers.run(lambda _: going.wait(30)))]
    calls += [asyncio.ensure_future(workers.run(lambda _, n=n: made.append(n) is None)) for n in range(5)]
    await asyncio.sleep(0)

    going.set()
    await asyncio.to_thread(workers.stop)
    await asyncio.gather(*calls)

    assert made == list(range(5))


@pytest.mark.asyncio
async def test_what_a_call_raises_reaches_its_caller_and_the_thread_lives_on(workers: Workers) -> None:
    def fail(_: object) -> None:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        await workers.run(fail)

    assert await workers.run(lambda _: 1) == 1


@pytest.mark.asyncio
async def test_a_call_is_told_when_nobody_waits_for_it_any_more(workers: Workers) -> None:
    begun, told = threading.Event(), list[bool]()
    go_on = threading.Event()

    def ask(is_abandoned: Callable[[], bool]) -> None:
        told.append(is_abandoned())
        begun.set()
        go_on.wait(30)
        told.append(is_abandoned())

    call = asyncio.ensure_future(workers.run(ask))
    await asyncio.to_thread(begun.wait, 30)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    go_on.set()
    await asyncio.to_thread(workers.stop)

    assert told == [False, True]


@pytest.mark.asyncio
async def test_a_call_after_the_end_is_refused_at_once() -> None:
    workers = Workers(1, "test-worker")
    await workers.run(_thread)
    workers.stop()

    with pytest.raises(RuntimeError, match="stopped"):
        await workers.run(_thread)


@pytest.mark.asyncio
async def test_where_the_system_gives_no_second_thread_the_first_does_the_work(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await workers.run(_thread)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    used = await asyncio.gather(*[workers.run(_thread) for _ in range(10)])

    assert set(used) == {first}


@pytest.mark.asyncio
async def test_where_the_system_gives_no_thread_the_call_is_refused_and_never_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers, made = Workers(1, "test-worker"), list[int]()

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(UnavailableError, match="new thread"):
            await workers.run(lambda _: made.append(1))
    await workers.run(lambda _: made.append(2))
    workers.stop()

    assert made == [2]
