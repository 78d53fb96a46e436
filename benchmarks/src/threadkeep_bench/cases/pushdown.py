"""The filtered page three ways on the same data: by the database, by hand, and in Python after reading all.

The page is the newest ten messages of one thread with one key equal to a value, without a total: ten, because
so many match at the smallest usual size and share (10,000 messages, 0.1 %), and a page that is not full costs
less. A thread of each size stands among others whose lengths have a long tail, all under one resource, which
is deleted at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from time import perf_counter_ns
from typing import Any, Protocol, runtime_checkable

import msgspec

from threadkeep import Capability, Message, Store
from threadkeep.tokens import token

from .. import workload
from ..databases import Database, opened, probe_of
from ..growth import growth
from ..machine import spin_case
from ..options import in_words
from ..progress import Advance, Steps
from ..result import Target, floor_limit
from ..rounds import Case, Figures, Measured, figures_of, measure

__all__ = ["FLOOR", "PAGE", "PUSHED", "PYTHON", "Subject", "case_name", "long_tail", "run"]

PAGE = 10
PUSHED, FLOOR, PYTHON = "pushed down", "floor", "in Python"

_BATCH = 1000
_VALUES = 64
_SLOW = 200_000
"""From this many messages on, the thread is read into Python once, else three times: it takes seconds."""

_COMPARED_AT = 100_000
_TIMES_FASTER = 20
_GROWTH = 0.1


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A thread of a known size in a database.

    Attributes:
        database: Where.
        thread_id: Which.
        count: How many messages it has.
    """

    database: Database
    thread_id: str
    count: int


class _Observed(Protocol):
    rows: int
    volume: int | None
    work: int | None


@runtime_checkable
class _Spy(Protocol):
    """What a probe may offer; see ``threadkeep_conformance.probe.Spy``."""

    def spy(self, store: Store) -> AbstractContextManager[_Observed]: ...


# --- data -----------------------------------------------------------------------------------------


def long_tail(count: int) -> list[int]:
    """The lengths of the other threads: a quarter of *count* in all, shared as 1, 1/2, 1/3, ... 1/30."""
    scale = count / 4 / sum(1 / rank for rank in range(1, 31))
    return [max(1, round(scale / rank)) for rank in range(1, 31)]


def stored_count(sizes: Sequence[int]) -> int:
    """How many messages :func:`build` stores for these sizes."""
    return sum(sizes) + sum(sum(long_tail(count)) for count in sizes)


async def build(database: Database, sizes: Sequence[int], advance: Advance) -> list[Subject]:
    """Store a thread of each size, and the others."""
    subjects: list[Subject] = []
    store, resource = database.store, database.resource_id
    for count in sizes:
        name = f"{resource}-{in_words(count)}"
        subjects.append(Subject(database=database, thread_id=name, count=count))
        for number, length in enumerate([count, *long_tail(count)]):
            thread = f"{name}-{number}" if number else name
            await store.create_thread(resource, thread_id=thread)
            # Ids are seeded by the thread's id, so every run and every thread has its own.
            messages = workload.messages(thread, resource, length)
            while batch := list(islice(messages, _BATCH)):
                await store.save_messages(batch)
                advance(len(batch))
    return subjects


# --- the three ways -------------------------------------------------------------------------------


def case_name(share: float, count: int, database: str) -> str:
    """The name results are compared by."""
    return f"filtered_page/{share:.2%}/{in_words(count)}/{database}"


def _case(subject: Subject, key: str, calls: int) -> Case:
    share, thread = workload.SHARES[key], subject.thread_id
    values = list(dict.fromkeys(workload.value_of(key, number) for number in range(_VALUES)))
    store, floor = subject.database.store, subject.database.floor

    async def pushed_down(number: int) -> object:
        where = {key: values[number % len(values)]}
        return await store.list_messages(thread, where=where, order="desc", per_page=PAGE)

    contestants: dict[str, Any] = {PUSHED: pushed_down}
    if floor is not None:

        async def by_hand(number: int) -> object:
            return await floor.newest(thread, PAGE, token(key, values[number % len(values)]))

        contestants[FLOOR] = by_hand
    return Case(
        name=case_name(share, subject.count, subject.database.name),
        contestants=contestants,
        calls=calls,
        labels={"backend": subject.database.name, "share": share, "messages": subject.count},
    )


async def _in_python(store: Store, thread_id: str) -> dict[str, list[Message]]:
    """Read the whole thread and keep the newest matches for the first value of each key."""
    wanted = {key: workload.value_of(key, 0) for key in workload.SHARES}
    kept: dict[str, list[Message]] = {key: [] for key in wanted}
    async for message in store.iter_messages(thread_id, order="desc", per_page=_BATCH):
        for key, value in wanted.items():
            found = message.metadata.get(key)
            if found == value and type(found) is type(value) and len(kept[key]) < PAGE:
                kept[key].append(message)
    return kept


async def _check(subject: Subject, kept: dict[str, list[Message]]) -> None:
    """All ways must find the same messages, or the comparison means nothing."""
    store, floor = subject.database.store, subject.database.floor
    for key, expected in kept.items():
        value = workload.value_of(key, 0)
        page = await store.list_messages(subject.thread_id, where={key: value}, order="desc", per_page=PAGE)
        ids = [message.id for message in expected]
        by_hand = ids
        if floor is not None:
            by_hand = [row["id"] for row in await floor.newest(subject.thread_id, PAGE, token(key, value))]
        if not [message.id for message in page.items] == ids == by_hand:
            raise RuntimeError(f"{subject.database.name}: the ways do not find the same messages for {key}")


async def _python_figures(subject: Subject) -> Figures:
    """Of reading the thread into Python; checks what the other ways find on the way.

    Not in the rounds of the others: they take a thousandth of its time, so that a drift in between changes
    nothing that is said of the comparison.
    """
    taken: list[list[int]] = []
    for number in range(1 if subject.count >= _SLOW else 3):
        start = perf_counter_ns()
        kept = await _in_python(subject.database.store, subject.thread_id)
        taken.append([perf_counter_ns() - start])
        if not number:
            await _check(subject, kept)
    return figures_of(taken)


async def _counts(subject: Subject, key: str) -> dict[str, float]:
    """What one page makes the database and its driver do, by their own account, where they give one."""
    store, found = subject.database.store, dict[str, float]()
    where = {key: workload.value_of(key, 0)}
    if store.capabilities.has(Capability.EXPLAIN):
        explained = await store.explain_messages(subject.thread_id, where=where, order="desc", per_page=PAGE)
        if explained.rows_examined is not None:
            found["rows_examined"] = explained.rows_examined
    probe = probe_of(subject.database.spec)
    if isinstance(probe, _Spy):
        with probe.spy(store) as observed:
            await store.list_messages(subject.thread_id, where=where, order="desc", per_page=PAGE)
        found["rows_transferred"] = observed.rows
        for name, value in (("text_transferred", observed.volume), ("engine_work", observed.work)):
            if value is not None:
                found[name] = value
    found["rows_transferred_in_python"] = subject.count
    return found


# --- the whole ------------------------------------------------------------------------------------


def run(
    wanted: Sequence[str], sizes: Sequence[int], *, rounds: int, calls: int, run_id: str
) -> tuple[list[Measured], dict[str, float], list[Target]]:
    """Measure.

    Returns:
        The cases, growth exponents by name, and the figures that have a limit.
    """
    with asyncio.Runner() as runner:
        context = opened(wanted, run_id)
        databases = runner.run(context.__aenter__())
        try:
            with Steps() as steps:
                cases = _measured(databases, sizes, runner, steps, rounds=rounds, calls=calls)
        finally:
            runner.run(context.__aexit__(None, None, None))
    exponents = dict(_exponents(cases))
    return cases, exponents, [*_targets(cases), *_growth_targets(exponents)]


def _measured(
    databases: list[Database],
    sizes: Sequence[int],
    runner: asyncio.Runner,
    steps: Steps,
    *,
    rounds: int,
    calls: int,
) -> list[Measured]:
    subjects: list[Subject] = []
    for database in databases:
        with steps.step(f"{database.name}: store messages", stored_count(sizes)) as advance:
            subjects += runner.run(build(database, sizes, advance))
    python: list[Figures] = []
    with steps.step("filter in Python", len(subjects)) as advance:
        for subject in subjects:
            python.append(runner.run(_python_figures(subject)))
            advance(1)
    keys = [(subject, key) for subject in subjects for key in workload.SHARES]
    cases = [_case(subject, key, calls) for subject, key in keys]
    with steps.step("filter in the database", rounds + 1) as advance:
        measured = measure([*cases, spin_case()], runner, rounds=rounds, advance=lambda: advance(1))
    whole: list[Measured] = []
    for (subject, key), case in zip(keys, measured, strict=False):
        figures = {**case.figures, PYTHON: python[subjects.index(subject)]}
        counts = runner.run(_counts(subject, key))
        counts["times_faster_than_python"] = figures[PYTHON].p50_us / figures[PUSHED].p50_us
        whole.append(msgspec.structs.replace(case, figures=figures, counts=counts))
    return [*whole, measured[-1]]


def _exponents(cases: Sequence[Measured]) -> Iterator[tuple[str, float]]:
    curves: dict[tuple[str, float], list[tuple[int, Measured]]] = {}
    for case in cases:
        if "share" in case.labels:
            share, count = float(case.labels["share"]), int(case.labels["messages"])
            # A page that is not full costs less for its size, which is no growth of the search.
            if share * count >= PAGE:
                curves.setdefault((str(case.labels["backend"]), share), []).append((count, case))
    for (backend, share), points in curves.items():
        if len(points) > 1:
            for way in points[0][1].figures:
                exponent = growth([(count, case.figures[way].p50_us) for count, case in points])
                yield f"filtered_page/{share:.2%}/{backend}/{way} growth_exponent", exponent


def _targets(cases: Sequence[Measured]) -> Iterator[Target]:
    for case in cases:
        if PUSHED in case.ratios:
            limit = floor_limit(str(case.labels["backend"]))
            ratio = case.ratios[PUSHED].median
            yield Target(
                name=f"{case.name} to the floor", value=ratio, unit="x", limit=limit, bound="at most"
            )
        if (
            case.labels.get("share") == workload.SHARES["customer"]
            and case.labels["messages"] == _COMPARED_AT
        ):
            faster = case.counts["times_faster_than_python"]
            name = f"{case.name} faster than in Python"
            yield Target(name=name, value=faster, unit="x", limit=_TIMES_FASTER, bound="at least")


def _growth_targets(exponents: dict[str, float]) -> Iterator[Target]:
    for name, value in exponents.items():
        if name.endswith(f"{PUSHED} growth_exponent"):
            short = name.removesuffix("_exponent")
            yield Target(name=short, value=value, unit="exponent", limit=_GROWTH, bound="at most")
