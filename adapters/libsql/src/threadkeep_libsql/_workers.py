"""Threads that run a connection's calls for an event loop.

``loop.run_in_executor`` does the same in 25 to 30 us more a call, through two futures and a semaphore: a
tenth of reading a page.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from threadkeep.errors import UnavailableError

__all__ = ["Workers"]

Result = TypeVar("Result")

_Call = Callable[[Callable[[], bool]], Result]
"""What is run: it is given a function that tells whether its caller was cancelled."""
_Job = tuple[asyncio.Future[Any], _Call[Any]]


class Workers:
    """A few threads, each started when none of the others is free.

    A call goes to the thread that was freed last: its connection has the pages and statements that the
    caches still hold. Turn by turn, each reader would start with cold ones.

    Args:
        count: How many threads at most.
        name: What the threads are called.
    """

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._lock = threading.Lock()  # over the next four, and never held for long
        self._threads: list[threading.Thread] = []
        self._free: list[SimpleQueue[_Job | None]] = []
        self._waiting: deque[_Job] = deque()
        self._stopping = False

    async def run(self, call: _Call[Result]) -> Result:
        """The result of a call on one of the threads; calls that find none free are made in their order.

        Cancelled before it has begun, the call is never made; later, it is told so and runs to its end there.

        Raises:
            UnavailableError: The system has no thread to give. The call was not and will not be made.
            RuntimeError: The threads were stopped.
        """
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._stopping:
                raise RuntimeError("the threads were stopped")
            if self._free:
                self._free.pop().put((future, call))
            else:
                if len(self._threads) < self._count:
                    self._start()
                self._waiting.append((future, call))
        return await future

    def _start(self) -> None:
        name = f"{self._name}-{len(self._threads)}"
        # A daemon: a store that nobody closed must not keep the interpreter from ending.
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        try:
            thread.start()  # it sees what waits once the lock is free
        except RuntimeError as exc:  # the system has none to give: those that there are will do
            if not self._threads:
                raise UnavailableError(f"no thread can be started: {exc}") from exc
        else:
            self._threads.append(thread)

    def stop(self) -> None:
        """Let the calls that wait be made and the threads end; blocks until they have."""
        with self._lock:
            self._stopping = True
            while self._free:
                self._free.pop().put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        own: SimpleQueue[_Job | None] = SimpleQueue()
        job = self._following(own) or own.get()
        while job is not None:
            future, call = job
            if future.cancelled():
                job = self._following(own) or own.get()
                continue
            result, error = _outcome(call, future.cancelled)
            # Before the answer: a caller who goes on at once finds this thread free, not a colder one.
            following = self._following(own)
            with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits for the answer
                future.get_loop().call_soon_threadsafe(_answer, future, result, error)
            del job, future, call, result, error  # a thread at rest keeps nothing alive
            job = following or own.get()

    def _following(self, own: SimpleQueue[_Job | None]) -> _Job | None:
        """A call that waits; None if the next one, or the end, will come through the thread's own queue."""
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            if self._stopping:
                own.put(None)
            else:
                self._free.append(own)
        return None


def _outcome(call: _Call[object], is_abandoned: Callable[[], bool]) -> tuple[object, BaseException | None]:
    try:
        return call(is_abandoned), None
    except StopIteration as exc:  # which no future takes
        error = RuntimeError("a call ended with StopIteration")
        error.__cause__ = exc
        return None, error
    except BaseException as exc:  # noqa: BLE001  (whatever it is, it belongs to the caller)
        return None, exc


def _answer(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.done():  # cancelled
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
