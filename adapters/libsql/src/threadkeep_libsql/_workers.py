"""Threads that run a connection's calls for an event loop.

``loop.run_in_executor`` does the same in 25 to 30 us more a call, through two futures and a semaphore: a
tenth of reading a page.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["Workers"]

Result = TypeVar("Result")

_Job = tuple[asyncio.Future[Any], Callable[[], object]]


class Workers:
    """A few threads and one queue, which they serve in its order.

    Args:
        count: How many threads.
        name: What the threads are called.
    """

    def __init__(self, count: int, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        # Daemons: a store that nobody closed must not keep the interpreter from ending.
        self._threads = [
            threading.Thread(target=self._serve, name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, call: Callable[[], Result]) -> Result:
        """The result of a call on one of the threads.

        Cancelled before it has begun, the call is never made; later, it runs to its end there.
        """
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._jobs.put((future, call))
        return await future

    def stop(self) -> None:
        """Let the calls that wait be made and the threads end; blocks until they have."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, call = job
            if future.cancelled():
                continue
            result: object = None
            error: BaseException | None = None
            try:
                result = call()
            except BaseException as exc:  # noqa: BLE001  (whatever it is, it belongs to the caller)
                error = exc
            with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits for the answer
                future.get_loop().call_soon_threadsafe(_answer, future, result, error)
            del job, future, call, result, error  # a thread at rest keeps nothing alive


def _answer(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.done():  # cancelled
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
