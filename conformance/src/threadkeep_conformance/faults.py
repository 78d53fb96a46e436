"""Load on a database that fails meanwhile: what was acknowledged, and which errors came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from types import TracebackType
from typing import NamedTuple, Self

from threadkeep import NewMessage, PartialWriteError, Store, ThreadkeepError, UnavailableError

__all__ = ["BATCH", "THREAD", "Load", "batch", "recovered"]

THREAD = "thread-1"
BATCH = 5
"""How many messages a batch has."""

_RECOVERS_WITHIN_S = 60.0
_PAUSE_S = 0.02


def batch(worker: int, number: int) -> list[NewMessage]:
    """The messages of one batch; their ids tell which."""
    return [NewMessage(THREAD, "user", index, id=f"w{worker}-b{number}-{index}") for index in range(BATCH)]


class Attempt(NamedTuple):
    """A batch that was saved, or was not."""

    worker: int
    number: int
    error: ThreadkeepError | None

    def ids(self) -> list[str]:
        """The ids of the batch."""
        return [message.id or "" for message in batch(self.worker, self.number)]


class Load:
    """Workers that save batches one after the other, inside an ``async with`` block.

    Attributes:
        attempts: What has been tried, in the order in which it ended.
    """

    def __init__(self, store: Store, workers: int = 4) -> None:
        self.attempts: list[Attempt] = []
        self._store = store
        self._stopped = False
        self._changed = asyncio.Condition()
        self._tasks = [asyncio.create_task(self._work(worker, count())) for worker in range(workers)]

    async def _work(self, worker: int, numbers: Iterator[int]) -> None:
        while not self._stopped:
            number, error = next(numbers), None
            try:
                await self._store.save_messages(batch(worker, number))
                await asyncio.sleep(0)  # a store in memory may never wait
            except ThreadkeepError as exc:
                error = exc
                await asyncio.sleep(_PAUSE_S)  # as an application would, before it tries again
            async with self._changed:
                self.attempts.append(Attempt(worker, number, error))
                self._changed.notify_all()

    async def until(self, reached: Callable[[Load], bool]) -> None:
        """Wait until the attempts are as they should be.

        Raises:
            TimeoutError: They never were.
        """
        async with asyncio.timeout(_RECOVERS_WITHIN_S), self._changed:
            await self._changed.wait_for(lambda: reached(self))

    async def __aenter__(self) -> Self:
        """The load itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let the workers end what they are at; after an error cut them off."""
        self._stopped = True
        if error is not None:
            for task in self._tasks:
                task.cancel()
        async with asyncio.timeout(_RECOVERS_WITHIN_S):
            await asyncio.gather(*self._tasks, return_exceptions=error is not None)

    def acknowledged(self) -> list[Attempt]:
        """The batches whose save returned."""
        return [attempt for attempt in self.attempts if attempt.error is None]

    def errors(self) -> list[ThreadkeepError]:
        """The errors of the others."""
        return [attempt.error for attempt in self.attempts if attempt.error is not None]

    async def check(self, store: Store, *, atomic: bool) -> None:
        """Assert that the acknowledged is there, the not applied is not, and errors are the contract's.

        Args:
            store: A store that works.
            atomic: Whether batches are all or nothing there.
        """
        strange = [
            error for error in self.errors() if not isinstance(error, (UnavailableError, PartialWriteError))
        ]
        assert strange == [], f"errors that do not say that the database is away: {strange}"
        stored = {message.id for message in (await store.list_messages(THREAD, per_page=None)).items}
        lost = [attempt for attempt in self.acknowledged() if not stored.issuperset(attempt.ids())]
        assert lost == [], "acknowledged writes are gone"
        for attempt in self.attempts:
            found = len(stored.intersection(attempt.ids()))
            assert not atomic or found in (0, BATCH), "part of a batch is stored"
            if isinstance(attempt.error, UnavailableError) and attempt.error.outcome == "not_applied":
                assert found == 0, "stored, although the error says that it was not applied"


async def recovered(call: Callable[[], Awaitable[object]]) -> None:
    """Repeat a call until the database is back.

    Raises:
        TimeoutError: It never came.
    """
    async with asyncio.timeout(_RECOVERS_WITHIN_S):
        while True:
            try:
                await call()
            except UnavailableError:
                await asyncio.sleep(_PAUSE_S)
            else:
                return
