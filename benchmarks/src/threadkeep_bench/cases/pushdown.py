"""The filtered page three ways on the same data: by the database, by hand, and in Python after reading all.

The page is the newest 20 messages of one thread with one key equal to a value, without a total. A thread of
each size stands among others whose lengths have a long tail, all under one resource, which is deleted at the
end.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from time import perf_counter_ns
from typing import Any

import msgspec

import threadkeep
from threadkeep import Capability, Message, Store
from threadkeep.registry import registry
from threadkeep.tokens import token

from .. import workload
from ..floors import Floor, floor_for
from ..options import in_words
from ..progress import Advance, Steps
from ..rounds import Case, Figures, Measured, figures_of, measure

__all__ = ["Subject", "Target", "case_name", "growth", "run"]

_PAGE = 20
_BATCH = 1000
_VALUES = 64
_SLOW = 200_000
"""From this many messages on, the thread is read into Python once, else three times: it takes seconds."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A database to measure.

    Attributes:
        name: The adapter's name, numbered where several URLs have the same.
        store: The open store.
        floor: Hand-written code on the same database; None where there is none for this adapter.
        resource_id: The owner of all that is stored here for the benchmark.
    """

    name: str
    store: Store
    floor: Floor | None
    resource_id: str


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A thread of a known size.

    Attributes:
        id: The thread.
        count: How many messages it has.
    """

    id: str
    count: int


@asynccontextmanager
async def opened(urls: Sequence[str], run_id: str) -> AsyncGenerator[list[Subject]]:
    """Open the databases; what the benchmark stored in them is deleted at the end."""
    subjects: list[Subject] = []
    try:
        for url in urls:
            adapter = registry().spec_for(url).name
            count = sum(subject.name.partition("#")[0] == adapter for subject in subjects)
            name = f"{adapter}#{count + 1}" if count else adapter
            store = await threadkeep.open(url)
            resource = f"threadkeep-bench-{run_id}"
            subjects.append(
                Subject(name=name, store=store, floor=floor_for(adapter, url), resource_id=resource)
            )
        yield subjects
    finally:
        for subject in subjects:
            if subject.floor is not None:
                subject.floor.close()
            await subject.store.delete_resource(subject.resource_id)
            await subject.store.close()


def long_tail(count: int) -> list[int]:
    """The lengths of the other threads: a quarter of *count* in all, shared as 1, 1/2, 1/3, ... 1/30."""
    scale = count / 4 / sum(1 / rank for rank in range(1, 31))
    return [max(1, round(scale / rank)) for rank in range(1, 31)]


def stored_count(sizes: Sequence[int]) -> int:
    """How many messages :func:`build` stores for these sizes."""
    return sum(sizes) + sum(sum(long_tail(count)) for count in sizes)


async def build(subject: Subject, sizes: Sequence[int], advance: Advance) -> list[Target]:
    """Store a thread of each size, and the others."""
    targets: list[Target] = []
    for count in sizes:
        target = Target(id=f"{subject.resource_id}-{in_words(count)}", count=count)
        targets.append(target)
        for number, length in enumerate([count, *long_tail(count)]):
            thread = f"{target.id}-{number}" if number else target.id
            await subject.store.create_thread(subject.resource_id, thread_id=thread)
            # Ids are seeded by the thread's id, so every run and every thread has its own.
            messages = workload.messages(thread, subject.resource_id, length)
            while batch := list(islice(messages, _BATCH)):
                await subject.store.save_messages(batch)
                advance(len(batch))
    return targets


def case_name(share: float, count: int, subject: str) -> str:
    """The name results are compared by."""
    return f"filtered_page/{share:.2%}/{in_words(count)}/{subject}"


def _case(subject: Subject, target: Target, key: str, calls: int) -> Case:
    share = workload.SHARES[key]
    values = list(dict.fromkeys(workload.value_of(key, number) for number in range(_VALUES)))
    store, floor = subject.store, subject.floor

    async def pushed_down(number: int) -> object:
        where = {key: values[number % len(values)]}
        return await store.list_messages(target.id, where=where, order="desc", per_page=_PAGE)

    contestants: dict[str, Any] = {"pushed down": pushed_down}
    if floor is not None:

        async def by_hand(number: int) -> object:
            wanted = token(key, values[number % len(values)])
            return await floor.hop(floor.newest, target.id, _PAGE, wanted)

        contestants["floor"] = by_hand
    base = "floor" if floor is not None else "pushed down"
    name = case_name(share, target.count, subject.name)
    return Case(name=name, contestants=contestants, calls=calls, base=base)


async def _in_python(store: Store, target: Target) -> dict[str, list[Message]]:
    """Read the whole thread and keep the newest 20 matches for the first value of each key."""
    wanted = {key: workload.value_of(key, 0) for key in workload.SHARES}
    kept: dict[str, list[Message]] = {key: [] for key in wanted}
    async for message in store.iter_messages(target.id, order="desc", per_page=_BATCH):
        for key, value in wanted.items():
            found = message.metadata.get(key)
            if found == value and type(found) is type(value) and len(kept[key]) < _PAGE:
                kept[key].append(message)
    return kept


async def _check(subject: Subject, target: Target, kept: dict[str, list[Message]]) -> None:
    """All ways must find the same messages, or the comparison means nothing."""
    for key, expected in kept.items():
        value = workload.value_of(key, 0)
        page = await subject.store.list_messages(target.id, where={key: value}, order="desc", per_page=_PAGE)
        ids = [message.id for message in expected]
        by_hand = ids
        if subject.floor is not None:
            rows = await subject.floor.hop(subject.floor.newest, target.id, _PAGE, token(key, value))
            by_hand = [row["id"] for row in rows]
        if not [message.id for message in page.items] == ids == by_hand:
            raise RuntimeError(f"{subject.name}: the ways do not find the same messages for {key}")


async def python_reads(subject: Subject, target: Target, advance: Advance) -> list[int]:
    """The nanoseconds of reading the thread into Python; checks what the other ways find on the way."""
    taken: list[int] = []
    for number in range(1 if target.count >= _SLOW else 3):
        start = perf_counter_ns()
        kept = await _in_python(subject.store, target)
        taken.append(perf_counter_ns() - start)
        if not number:
            await _check(subject, target, kept)
        advance(1)
    return taken


async def rows_examined(subject: Subject, target: Target, key: str) -> int | None:
    """By the database's own account; None where it cannot tell."""
    if not subject.store.capabilities.has(Capability.EXPLAIN):
        return None
    where = {key: workload.value_of(key, 0)}
    explained = await subject.store.explain_messages(target.id, where=where, order="desc", per_page=_PAGE)
    return explained.rows_examined


def growth(points: Sequence[tuple[int, float]]) -> float:
    """The exponent b of time = a * size**b through the points: 0 is flat, 1 linear. NaN for one point."""
    logs = [(math.log(size), math.log(value)) for size, value in points]
    x, y = (sum(column) / len(logs) for column in zip(*logs, strict=True))
    spread = sum((a - x) ** 2 for a, _ in logs)
    return sum((a - x) * (b - y) for a, b in logs) / spread if spread else math.nan


def run(
    urls: Sequence[str], sizes: Sequence[int], *, rounds: int, calls: int, run_id: str
) -> tuple[list[Measured], dict[str, float]]:
    """Measure.

    Returns:
        The cases, and the other figures by name.
    """
    with asyncio.Runner() as runner:
        context = opened(urls, run_id)
        subjects = runner.run(context.__aenter__())
        try:
            with Steps() as steps:
                targets = _build(subjects, sizes, runner, steps)
                return _measured(subjects, targets, runner, steps, rounds=rounds, calls=calls)
        finally:
            runner.run(context.__aexit__(None, None, None))


def _build(
    subjects: list[Subject], sizes: Sequence[int], runner: asyncio.Runner, steps: Steps
) -> list[Target]:
    targets: list[Target] = []
    for subject in subjects:
        with steps.step(f"{subject.name}: store messages", stored_count(sizes)) as advance:
            targets = runner.run(build(subject, sizes, advance))  # equal in each database
    return targets


def _measured(
    subjects: list[Subject],
    targets: list[Target],
    runner: asyncio.Runner,
    steps: Steps,
    *,
    rounds: int,
    calls: int,
) -> tuple[list[Measured], dict[str, float]]:
    pairs = [(subject, target) for subject in subjects for target in targets]
    python: dict[tuple[str, int], Figures] = {}
    with steps.step("filter in Python", len(pairs)) as advance:
        for subject, target in pairs:
            taken = runner.run(python_reads(subject, target, lambda _: None))
            python[subject.name, target.count] = figures_of([[ns] for ns in taken])
            advance(1)
    cases = [_case(subject, target, key, calls) for subject, target in pairs for key in workload.SHARES]
    with steps.step("filter in the database", rounds + 1) as advance:
        measured = measure(cases, runner, rounds=rounds, advance=lambda: advance(1))
    figures: dict[str, float] = {}
    for subject, target in pairs:
        for key in workload.SHARES:
            examined = runner.run(rows_examined(subject, target, key))
            if examined is not None:
                name = case_name(workload.SHARES[key], target.count, subject.name)
                figures[f"{name} rows_examined"] = examined
    whole = list(_with_python(measured, python, subjects, targets))
    return whole, figures | dict(_comparisons(whole, subjects, targets))


def _with_python(
    measured: list[Measured],
    python: dict[tuple[str, int], Figures],
    subjects: list[Subject],
    targets: list[Target],
) -> Iterator[Measured]:
    by_name = {case.name: case for case in measured}
    for subject in subjects:
        for target in targets:
            for share in workload.SHARES.values():
                case = by_name[case_name(share, target.count, subject.name)]
                figures = {**case.figures, "in Python": python[subject.name, target.count]}
                yield msgspec.structs.replace(case, figures=figures)


def _comparisons(
    measured: list[Measured], subjects: list[Subject], targets: list[Target]
) -> Iterator[tuple[str, float]]:
    by_name = {case.name: case for case in measured}
    for subject in subjects:
        for share in workload.SHARES.values():
            cases = [(t.count, by_name[case_name(share, t.count, subject.name)]) for t in targets]
            for count, case in cases:
                faster = case.figures["in Python"].p50_us / case.figures["pushed down"].p50_us
                yield f"{case.name} times_faster_than_python", faster
                yield f"{case.name} rows_transferred_pushed_down", min(_PAGE + 1, round(share * count))
                yield f"{case.name} rows_transferred_in_python", count
            # A page that is not full costs less for its size, which is no growth of the search.
            full = [(count, case) for count, case in cases if share * count >= _PAGE]
            if len(full) > 1:
                for way in full[0][1].figures:
                    exponent = growth([(count, case.figures[way].p50_us) for count, case in full])
                    yield f"filtered_page/{share:.2%}/{subject.name}/{way} growth_exponent", exponent
