"""What racers are told, and how they do it; light, for processes that have to start fast.

A *plan* is what one racer does: tasks that run at once, each a list of calls.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

from threadkeep import Store, ThreadkeepError

__all__ = ["GO", "READY", "Ask", "Failed", "Job", "Outcomes", "Plan", "act", "ask", "flat", "perform", "send"]

READY, GO = "ready", "go"


class Ask(NamedTuple):
    """One call of a store, not made yet."""

    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def ask(method: str, *args: Any, **kwargs: Any) -> Ask:
    """A call to make later, perhaps in another process."""
    return Ask(method, args, kwargs)


class Plan(NamedTuple):
    """What one racer does.

    Attributes:
        tasks: Tasks that run at once, each a list of calls made one after the other.
        opens_at_gate: Whether the store is opened when the gate opens, so that opening is part of the race.
    """

    tasks: Sequence[Sequence[Ask]]
    opens_at_gate: bool = False


class Job(NamedTuple):
    """What a process is told.

    Attributes:
        url: The database.
        plan: What to do there.
        streams: Whether each call is answered as soon as it is done; else all together, by task.
    """

    url: str
    plan: Plan
    streams: bool = False


class Failed(NamedTuple):
    """A process could not do its job."""

    error: Exception


Outcomes = list[list[Any]]
"""What each task's calls returned or raised, in order."""


def flat(found: Sequence[Outcomes]) -> list[Any]:
    """All results and errors of all racers."""
    return [result for outcomes in found for task in outcomes for result in task]


async def act(store: Store, call: Ask) -> Any:
    """Make a call; returns its result, or the error of threadkeep that it raised."""
    try:
        return await getattr(store, call.method)(*call.args, **call.kwargs)
    except ThreadkeepError as error:
        return error


async def perform(store: Store, plan: Plan) -> Outcomes:
    """Run a plan's tasks at once."""

    async def run(calls: Sequence[Ask]) -> list[Any]:
        return [await act(store, call) for call in calls]

    return await asyncio.gather(*[run(calls) for calls in plan.tasks])


def send(pipe: IO[bytes], value: object) -> None:
    """Write a value to a pipe."""
    pickle.dump(value, pipe)
    pipe.flush()
