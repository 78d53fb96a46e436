"""A process that races: ``python -m threadkeep_conformance.racer``, started and told what to do by ``races``.

It reads one pickled job after another from its standard input, and writes pickled answers to its standard
output.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Sequence
from typing import IO

import threadkeep
from threadkeep import Store

from .plans import GO, READY, Ask, Failed, Job, act, perform, send

__all__: list[str] = []


def main() -> None:
    """Do jobs until there are no more."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a driver prints must not get among the answers
    while True:
        try:
            job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301  (from the process that started this one)
        except EOFError:
            return
        try:
            asyncio.run(_do(job, answers))
        except Exception as error:  # noqa: BLE001  (it is raised by who gave the job)
            send(answers, Failed(error))


async def _do(job: Job, answers: IO[bytes]) -> None:
    if job.plan.opens_at_gate:
        _wait_at_gate(answers)
        async with threadkeep.open(job.url) as store:
            send(answers, await perform(store, job.plan))
        return
    async with threadkeep.open(job.url) as store:
        _wait_at_gate(answers)
        if job.streams:
            await _stream(store, job, answers)
        else:
            send(answers, await perform(store, job.plan))


def _wait_at_gate(answers: IO[bytes]) -> None:
    send(answers, READY)
    opened = pickle.load(sys.stdin.buffer)  # noqa: S301  (from the process that started this one)
    assert opened == GO, f"the gate opens with {GO!r}, not {opened!r}"


async def _stream(store: Store, job: Job, answers: IO[bytes]) -> None:
    """Answer each call as soon as it is done."""

    async def run(calls: Sequence[Ask]) -> None:
        for call in calls:
            send(answers, await act(store, call))

    await asyncio.gather(*[run(calls) for calls in job.plan.tasks])


if __name__ == "__main__":
    main()
