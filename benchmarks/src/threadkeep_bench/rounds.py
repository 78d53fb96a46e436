"""The one way time is taken: rounds of all contestants interleaved, warm-up, medians, and the spread.

In every round each contestant of each case makes a few calls, one at a time and in turns; the order of cases
and that of contestants are shuffled anew. A ratio is taken within a round, where a drift of the machine
touches both sides alike, and the median of the rounds' ratios is reported: never an average over a drift.

pyperf does not fit: it measures one function after another, each in worker processes of its own, so that a
drift of the machine falls on one contestant alone; and it keeps the means of loops, which have no 99th
percentile of calls.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import random
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import cast

import msgspec

__all__ = [
    "Case",
    "Figures",
    "Label",
    "Measured",
    "Operation",
    "Ratio",
    "Remote",
    "figures_of",
    "measure",
    "quantile",
]

Operation = Callable[[int], Awaitable[object]] | Callable[[int], object]
"""One call, given its number so that arguments vary; a coroutine function is awaited on the runner's loop."""

Label = str | int | float


class Remote(msgspec.Struct, frozen=True):
    """A contestant in another process, which takes the time itself.

    Attributes:
        timed: Makes the calls with these numbers, and returns the nanoseconds of each.
    """

    timed: Callable[[range], Awaitable[list[int]]]

    async def __call__(self, number: int) -> None:
        """One call, as any contestant makes it."""
        await self.timed(range(number, number + 1))


_NOISY = 0.15
"""Ratios whose quartiles are further apart than this part of their median are doubtful."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured: the same work by several contestants.

    Attributes:
        name: Unique, such as ``messages.last_20/1m``; results are compared by it.
        contestants: By name.
        calls: How often each is called in a round.
        block: After how many calls the next contestant has its turn; divides *calls*. Writers need many: a
            commit empties the page cache of other connections, which would be most of what is measured.
        base: The contestant that ratios are to; without it there are none.
        labels: What is varied, by name: ``backend``, ``operation``, ``messages``, ``share`` (of 1).
        undo: Called after each call of a contestant with its name and the call's number; not timed.
        absent: Contestants that do not take part, each with the reason.
    """

    name: str
    contestants: Mapping[str, Operation]
    calls: int
    block: int = 1
    base: str = "floor"
    labels: Mapping[str, Label] = {}
    undo: Callable[[str, int], Awaitable[object]] | None = None
    absent: Mapping[str, str] = {}


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One contestant's latencies in microseconds.

    Attributes:
        calls: How many were timed.
        p50_us: Median.
        p95_us: 95 % were faster.
        p99_us: 99 % were faster.
        spread: Between the quartiles of the rounds' medians, as a part of their median.
    """

    calls: int
    p50_us: float
    p95_us: float
    p99_us: float
    spread: float


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """How a contestant compares with the base.

    Attributes:
        median: Of the rounds' ratios of medians.
        low: Their first quartile.
        high: Their third quartile.
    """

    median: float
    low: float
    high: float


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A case's result.

    Attributes:
        name: The case's.
        figures: By contestant.
        ratios: To the base, by every other contestant.
        noisy: Whether a ratio's quartiles are more than 15 % apart: read it with care.
        labels: The case's.
        absent: The case's: who was not timed, and why.
        counts: What else was found out about it, by name, such as ``rows_examined``.
    """

    name: str
    figures: dict[str, Figures]
    ratios: dict[str, Ratio]
    noisy: bool
    labels: dict[str, Label] = {}
    absent: dict[str, str] = {}
    counts: dict[str, float] = {}


def measure(
    cases: Sequence[Case],
    runner: asyncio.Runner,
    *,
    rounds: int,
    advance: Callable[[], object] = lambda: None,
    now: Callable[[], int] = perf_counter_ns,
) -> list[Measured]:
    """Measure all cases, interleaved, after one round that is thrown away.

    Args:
        cases: In the order of the result.
        runner: Whose loop the coroutine functions run on.
        rounds: At least 3.
        advance: Called ``rounds + 1`` times, after each round.
        now: A clock in nanoseconds.
    """
    samples: dict[tuple[str, str], list[list[int]]] = {}
    turns = list(cases)
    rng = random.Random(0)
    for round_ in range(rounds + 1):
        rng.shuffle(turns)
        gc.collect()
        for case in turns:
            order = rng.sample(list(case.contestants), len(case.contestants))
            for name, taken in _round(case, order, round_, runner, now).items():
                if round_:
                    samples.setdefault((case.name, name), []).append(taken)
        advance()
    return [_measured(case, {name: samples[case.name, name] for name in case.contestants}) for case in cases]


def _round(
    case: Case, order: Sequence[str], round_: int, runner: asyncio.Runner, now: Callable[[], int]
) -> dict[str, list[int]]:
    """The nanoseconds of each contestant's calls: those of coroutine functions in turns, then the others."""
    taken: dict[str, list[int]] = {name: [] for name in order}
    is_async = {name: _is_async(case.contestants[name]) for name in order}
    first = round_ * case.calls
    blocks = [range(start, start + case.block) for start in range(first, first + case.calls, case.block)]

    async def awaited() -> None:
        for block in blocks:
            for name in order:
                if is_async[name]:
                    taken[name] += await _awaited(case, name, block, now)

    runner.run(awaited())
    for block in blocks:
        for name in order:
            if not is_async[name]:
                taken[name] += _called(case, name, block, runner, now)
    return taken


def _is_async(contestant: Operation) -> bool:
    return isinstance(contestant, Remote) or inspect.iscoroutinefunction(contestant)


async def _awaited(case: Case, name: str, numbers: range, now: Callable[[], int]) -> list[int]:
    contestant = case.contestants[name]
    if isinstance(contestant, Remote):
        return await contestant.timed(numbers)
    call = cast("Callable[[int], Awaitable[object]]", contestant)
    taken: list[int] = []
    for number in numbers:
        start = now()
        await call(number)
        taken.append(now() - start)
        if case.undo is not None:
            await case.undo(name, number)
    return taken


def _called(
    case: Case, name: str, numbers: range, runner: asyncio.Runner, now: Callable[[], int]
) -> list[int]:
    call = cast("Callable[[int], object]", case.contestants[name])
    taken: list[int] = []
    for number in numbers:
        start = now()
        call(number)
        taken.append(now() - start)
        if case.undo is not None:
            runner.run(_undone(case.undo, name, number))
    return taken


async def _undone(undo: Callable[[str, int], Awaitable[object]], name: str, number: int) -> None:
    await undo(name, number)


def _measured(case: Case, samples: dict[str, list[list[int]]]) -> Measured:
    medians = {name: [statistics.median(taken) for taken in rounds] for name, rounds in samples.items()}
    ratios: dict[str, Ratio] = {}
    for name, own in medians.items():
        if case.base in medians and name != case.base:
            parts = [a / b for a, b in zip(own, medians[case.base], strict=True)]
            low, median, high = statistics.quantiles(parts, n=4)
            ratios[name] = Ratio(median=median, low=low, high=high)
    return Measured(
        name=case.name,
        figures={name: figures_of(rounds) for name, rounds in samples.items()},
        ratios=ratios,
        noisy=any(ratio.high - ratio.low > _NOISY * ratio.median for ratio in ratios.values()),
        labels=dict(case.labels),
        absent=dict(case.absent),
    )


def figures_of(rounds: Sequence[Sequence[int]]) -> Figures:
    """The figures of calls' nanoseconds, by round."""
    all_us = sorted(ns / 1000 for taken in rounds for ns in taken)
    medians = [statistics.median(taken) for taken in rounds]
    low, median, high = statistics.quantiles(medians, n=4) if len(medians) > 1 else medians * 3
    return Figures(
        calls=len(all_us),
        p50_us=quantile(all_us, 0.5),
        p95_us=quantile(all_us, 0.95),
        p99_us=quantile(all_us, 0.99),
        spread=(high - low) / median,
    )


def quantile(ordered: Sequence[float], part: float) -> float:
    """The value that *part* of the ordered values do not exceed."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
