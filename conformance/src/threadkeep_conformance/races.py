"""Races: calls from several tasks, in several stores of this process or in several processes, let go at once.

Racers open their store, wait at one gate, run their plan, and report what every call returned or raised.
"""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from threadkeep import Store

from .databases import Database
from .plans import GO, Failed, Job, Outcomes, Plan, perform, send
from .probe import OneProcess

__all__ = ["Racers", "is_one_process", "race_stores", "shared_racers"]

Answer = TypeVar("Answer")

_ANSWER_WITHIN_S = 120.0  # a hung racer fails the case instead of hanging the run


def is_one_process(database: Database) -> bool:
    """Whether other processes cannot open the database, so that processes cannot race there."""
    probe = database.probe
    return database.spec.name == "memory" or (isinstance(probe, OneProcess) and probe.one_process)


async def race_stores(stores: Sequence[Store], plans: Sequence[Plan]) -> list[Outcomes]:
    """Let stores of this process race, each with a plan; they take turns where there are more plans."""
    return await asyncio.gather(
        *[perform(stores[index % len(stores)], plan) for index, plan in enumerate(plans)]
    )


class Racers:
    """Processes that race, started at their first use."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def close(self) -> None:
        """End the processes."""
        self._end()
        for process in self._processes:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    async def race(self, url: str, plans: Sequence[Plan]) -> list[Outcomes]:
        """Let processes race, one for each plan, each with its own store.

        Raises:
            Exception: What a racer raised that is none of threadkeep's errors.
        """
        return await self._within_time(lambda: self._race(url, plans))

    async def until_killed(self, url: str, plan: Plan, *, after: int) -> list[Any]:
        """Let one process work, and kill it as a power cut would once so many calls were answered.

        Returns:
            What its calls returned before it died; there may be more than *after*.
        """
        return await self._within_time(lambda: self._until_killed(url, plan, after))

    async def _within_time(self, wait: Callable[[], Answer]) -> Answer:
        try:
            async with asyncio.timeout(_ANSWER_WITHIN_S):
                return await asyncio.to_thread(wait)
        except TimeoutError:
            self._end()  # which ends the waiting thread too
            raise

    def _end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def _race(self, url: str, plans: Sequence[Plan]) -> list[Outcomes]:
        racing = self._started(len(plans))
        for process, plan in zip(racing, plans, strict=True):
            _tell(process, Job(url, plan))
        for process in racing:
            _answer_of(process)
        for process in racing:
            _tell(process, GO)
        return [_answer_of(process) for process in racing]

    def _until_killed(self, url: str, plan: Plan, after: int) -> list[Any]:
        process = self._started(1)[0]
        _tell(process, Job(url, plan, streams=True))
        _answer_of(process)
        _tell(process, GO)
        found = [_answer_of(process) for _ in range(after)]
        process.kill()
        while True:
            try:
                found.append(_answer_of(process))
            except (EOFError, pickle.UnpicklingError):  # the last may be cut off
                process.wait()
                return found

    def _started(self, count: int) -> list[subprocess.Popen[bytes]]:
        alive = [process for process in self._processes if process.poll() is None]
        while len(alive) < count:
            process = subprocess.Popen(
                [sys.executable, "-m", "threadkeep_conformance.racer"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            alive.append(process)
            self._processes.append(process)
        return alive[:count]


_SHARED = pytest.StashKey[Racers]()


def shared_racers(config: pytest.Config) -> Racers:
    """The racers of a whole run, ended with it."""
    if _SHARED not in config.stash:
        config.stash[_SHARED] = Racers()
        config.add_cleanup(config.stash[_SHARED].close)
    return config.stash[_SHARED]


def _tell(process: subprocess.Popen[bytes], value: object) -> None:
    assert process.stdin is not None, "racers are started with pipes"
    send(process.stdin, value)


def _answer_of(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None, "racers are started with pipes"
    answer = pickle.load(process.stdout)  # noqa: S301  (from a process that this module started)
    if isinstance(answer, Failed):
        raise answer.error
    return answer
