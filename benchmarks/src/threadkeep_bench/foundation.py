"""The embedded backend next to hand-written code: ``python -m threadkeep_bench.foundation``.

Append one, the last 20, a filtered page at 0.1 % selectivity (10 messages: the smallest thread has no more)
and a page by cursor, in one thread of each size, by the store, the sync store, and the floor with and without
its thread hop, all on the same file, in interleaved rounds. Then what import and export take, and what the
metadata index costs.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import click

import threadkeep
from threadkeep import Message, NewMessage, Page, Store
from threadkeep.tokens import token

from . import workload
from .environment import environment
from .floors.libsql import Place
from .options import counts, in_words
from .processes import run_module
from .progress import Advance, Steps
from .result import Result, Target, write
from .rounds import Case, Measured, Operation, measure
from .subjects import RESOURCE, THREAD, Subject, write_export
from .tables import print_result

__all__ = ["main"]

_PAGE = 20
_FILTERED_PAGE = 10
_CALLS = 20
_BULK = 50_000
_BULK_ROUNDS = 3
_INDEX_MESSAGES = 20_000
_INDEXES = {"all": "all", "some": "customer,priority", "none": "none"}
_MB = 1_000_000

# --- latencies ------------------------------------------------------------------------------------


def _append(subject: Subject) -> Case:
    def message(number: int) -> NewMessage:
        pattern = subject.new[number % len(subject.new)]
        return NewMessage(THREAD, pattern.role, pattern.content, metadata=pattern.metadata)

    def fields(number: int) -> dict[str, object]:
        pattern = subject.new[number % len(subject.new)]
        return {
            "thread_id": THREAD,
            "role": pattern.role,
            "type": "text",
            "content": pattern.content,
            "metadata": pattern.metadata,
        }

    async def store(number: int) -> object:
        return await subject.store.save_messages([message(number)])

    async def floor(number: int) -> object:
        return await subject.floor.hop(subject.floor.append, fields(number))

    return Case(
        name=f"append_one/{in_words(subject.count)}",
        contestants={
            "threadkeep": store,
            "sync": lambda number: subject.sync.save_messages([message(number)]),
            "floor": floor,
            "floor without hop": lambda number: subject.floor.append(fields(number)),
        },
        calls=_CALLS,
        block=_CALLS,
    )


def _last(subject: Subject) -> Case:
    async def store(_: int) -> object:
        return await subject.store.list_messages(THREAD, order="desc", per_page=_PAGE)

    async def floor(_: int) -> object:
        return await subject.floor.hop(subject.floor.newest, THREAD, _PAGE)

    return Case(
        name=f"last_20/{in_words(subject.count)}",
        contestants={
            "threadkeep": store,
            "sync": lambda _: subject.sync.list_messages(THREAD, order="desc", per_page=_PAGE),
            "floor": floor,
            "floor without hop": lambda _: subject.floor.newest(THREAD, _PAGE),
        },
        calls=_CALLS,
    )


def _filtered(subject: Subject) -> Case:
    customers = [workload.value_of("customer", number) for number in range(0, 1000, 7)]

    def customer(number: int) -> str | float:
        return customers[number % len(customers)]

    async def store(number: int) -> object:
        where = {"customer": customer(number)}
        return await subject.store.list_messages(THREAD, where=where, order="desc", per_page=_FILTERED_PAGE)

    def sync(number: int) -> object:
        where = {"customer": customer(number)}
        return subject.sync.list_messages(THREAD, where=where, order="desc", per_page=_FILTERED_PAGE)

    async def floor(number: int) -> object:
        wanted = token("customer", customer(number))
        return await subject.floor.hop(subject.floor.newest, THREAD, _FILTERED_PAGE, wanted)

    def direct(number: int) -> object:
        return subject.floor.newest(THREAD, _FILTERED_PAGE, token("customer", customer(number)))

    return Case(
        name=f"filtered_page_0.1%/{in_words(subject.count)}",
        contestants={"threadkeep": store, "sync": sync, "floor": floor, "floor without hop": direct},
        calls=_CALLS,
    )


def _cursor_page(subject: Subject) -> Case:
    def page(number: int) -> tuple[str, Place]:
        return subject.cursors[number % len(subject.cursors)]

    async def store(number: int) -> object:
        return await subject.store.list_messages(THREAD, per_page=_PAGE, cursor=page(number)[0])

    async def floor(number: int) -> object:
        return await subject.floor.hop(subject.floor.after, THREAD, page(number)[1], _PAGE)

    return Case(
        name=f"cursor_page/{in_words(subject.count)}",
        contestants={
            "threadkeep": store,
            "sync": lambda n: subject.sync.list_messages(THREAD, per_page=_PAGE, cursor=page(n)[0]),
            "floor": floor,
            "floor without hop": lambda n: subject.floor.after(THREAD, page(n)[1], _PAGE),
        },
        calls=_CALLS,
    )


_READS = (_last, _filtered, _cursor_page)


def _check_agreement(case: Case, runner: asyncio.Runner) -> None:
    """A floor that finds other rows than the store is none."""

    async def called(operation: Operation) -> object:
        answer = operation(3)
        return await cast("Awaitable[object]", answer) if isinstance(answer, Awaitable) else answer

    found = {name: _ids(runner.run(called(operation))) for name, operation in case.contestants.items()}
    if any(ids != found["floor"] for ids in found.values()) or not found["floor"]:
        raise RuntimeError(f"{case.name}: the contestants do not return the same rows")


def _ids(answer: Any) -> list[str]:
    if isinstance(answer, Page):
        return [message.id for message in cast("Page[Message]", answer).items]
    return [row["id"] for row in answer]


# --- import, export and the index -----------------------------------------------------------------


def _imported(folder: Path, count: int, steps: Steps) -> tuple[Path, dict[str, float]]:
    """A database of one thread, made by the command line, and what that took."""
    words = in_words(count)
    export, database = folder / f"{words}.jsonl", folder / f"{words}.db"
    with steps.step(f"write {words} messages", count) as advance:
        write_export(export, count, advance)
    with steps.step(f"import {words} messages", 1) as advance:
        finished = run_module("threadkeep", "import", f"libsql://{database}", str(export))
        advance(1)
    export.unlink()
    return database, _process_figures(f"import/{words}", count, finished.seconds, finished.peak_bytes)


def _exported(folder: Path, database: Path, count: int, steps: Steps) -> dict[str, float]:
    words = in_words(count)
    target = folder / "export.jsonl"
    with steps.step(f"export {words} messages", 1) as advance:
        finished = run_module("threadkeep", "export", f"libsql://{database}", str(target))
        advance(1)
    target.unlink()
    return _process_figures(f"export/{words}", count, finished.seconds, finished.peak_bytes)


def _process_figures(name: str, count: int, seconds: float, peak: int | None) -> dict[str, float]:
    figures = {f"{name} messages_per_s": count / seconds}
    if peak is not None:
        figures[f"{name} peak_mb"] = peak / _MB
    return figures


def _import_rates(folder: Path, count: int, runner: asyncio.Runner, steps: Steps) -> dict[str, float]:
    """The command's import next to the floor's bulk insert of the same file, in processes of their own."""
    export = folder / "bulk.jsonl"
    write_export(export, count, lambda _: None)
    seconds: dict[str, list[float]] = {"threadkeep": [], "floor": []}
    with steps.step("import next to the floor", 2 * _BULK_ROUNDS) as advance:
        for round_ in range(_BULK_ROUNDS):
            for name in sorted(seconds, reverse=bool(round_ % 2)):
                database = folder / f"bulk-{name}-{round_}.db"
                if name == "floor":
                    runner.run(runner.run(_with_thread(f"libsql://{database}")).close())
                    finished = run_module("threadkeep_bench.floors.libsql", str(export), str(database))
                else:
                    finished = run_module("threadkeep", "import", f"libsql://{database}", str(export))
                seconds[name].append(finished.seconds)
                database.unlink()
                advance(1)
    export.unlink()
    shares = [floor / own for own, floor in zip(seconds["threadkeep"], seconds["floor"], strict=True)]
    rates = {f"bulk/{name} messages_per_s": count / statistics.median(own) for name, own in seconds.items()}
    return rates | {"bulk/share of the floor %": 100 * statistics.median(shares)}


def _index_costs(
    folder: Path, count: int, runner: asyncio.Runner, rounds: int, steps: Steps
) -> tuple[Measured, dict[str, float]]:
    """What a message costs with all keys indexed, with two, and with none: on disk, in bulk, alone."""
    paths = {name: folder / f"index-{name}.db" for name in _INDEXES}
    stores = {
        name: runner.run(_with_thread(f"libsql://{path}?metadata_index={_INDEXES[name]}"))
        for name, path in paths.items()
    }
    with steps.step("fill with all, some, no keys indexed", count) as advance:
        seconds = _fill(stores, count, runner, advance)
    with steps.step("append with all, some, no keys indexed", rounds + 1) as advance:
        [measured] = measure([_indexed_append(stores)], runner, rounds=rounds, advance=lambda: advance(1))
    for store in stores.values():
        runner.run(store.close())
    stored = count + _CALLS * (rounds + 1)
    return measured, {
        **{f"index/{name} bulk us_per_message": taken * 1e6 / 1000 for name, taken in seconds.items()},
        **{f"index/{name} bytes_per_message": path.stat().st_size / stored for name, path in paths.items()},
    }


async def _with_thread(url: str) -> Store:
    store = await threadkeep.open(url)
    await store.ensure_thread(RESOURCE, thread_id=THREAD)
    return store


def _fill(stores: dict[str, Store], count: int, runner: asyncio.Runner, advance: Advance) -> dict[str, float]:
    """The median seconds of a batch of 1,000, by store; batches in turns."""
    taken: dict[str, list[float]] = {name: [] for name in stores}
    for first in range(0, count, 1000):
        batch = list(workload.messages(THREAD, RESOURCE, 1000, first=first))
        for name, store in stores.items():
            start = perf_counter()
            runner.run(store.save_messages(batch))
            taken[name].append(perf_counter() - start)
        advance(1000)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def _indexed_append(stores: dict[str, Store]) -> Case:
    patterns = list(workload.messages(THREAD, RESOURCE, 100))

    def append(store: Store) -> Callable[[int], object]:
        async def call(number: int) -> object:
            pattern = patterns[number % 100]
            return await store.save_messages(
                [NewMessage(THREAD, pattern.role, pattern.content, metadata=pattern.metadata)]
            )

        return call

    contestants = {name: append(store) for name, store in stores.items()}
    return Case(name="append_one/metadata_index", contestants=contestants, calls=_CALLS, base="none")


# --- the whole ------------------------------------------------------------------------------------


def _run(folder: Path, sizes: list[int], rounds: int, steps: Steps) -> Result:
    found = environment()
    figures: dict[str, float] = {}
    with ExitStack() as opened:
        runner = opened.enter_context(asyncio.Runner())
        figures |= _import_rates(folder, min(_BULK, sizes[-1]), runner, steps)
        databases: dict[int, Path] = {}
        for count in sizes:
            databases[count], taken = _imported(folder, count, steps)
            figures |= taken
        figures |= _exported(folder, databases[sizes[-1]], sizes[-1], steps)
        with ExitStack() as subjects:
            cases: list[Case] = []
            for count, path in databases.items():
                subject = subjects.enter_context(Subject(path, count, runner))
                reads = [case(subject) for case in _READS]
                for case in reads:
                    _check_agreement(case, runner)
                cases += [_append(subject), *reads]
            with steps.step("operations", rounds + 1) as advance:
                measured = measure(cases, runner, rounds=rounds, advance=lambda: advance(1))
        indexed, taken = _index_costs(folder, min(_INDEX_MESSAGES, sizes[-1]), runner, rounds, steps)
        figures |= taken
    return Result(
        benchmark="foundation",
        environment=found,
        settings={"messages": ",".join(map(in_words, sizes)), "rounds": rounds, "calls_per_round": _CALLS},
        cases=[*measured, indexed],
        figures=figures,
        targets=list(_targets(measured, figures, sizes)),
    )


def _targets(measured: list[Measured], figures: dict[str, float], sizes: list[int]) -> Iterator[Target]:
    by_name = {case.name: case for case in measured}
    for case in measured:
        ratio = case.ratios["threadkeep"].median
        yield Target(name=f"{case.name} to the floor", value=ratio, unit="x", limit=1.3, bound="at most")
    small, large = in_words(sizes[0]), in_words(sizes[-1])
    operations = dict.fromkeys(case.name.partition("/")[0] for case in measured) if small != large else ()
    for operation in operations:
        first, last = (by_name[f"{operation}/{size}"].figures["threadkeep"].p50_us for size in (small, large))
        name = f"{operation} growth {small} to {large}"
        yield Target(name=name, value=last / first, unit="x", limit=1.5, bound="at most")
    share = figures["bulk/share of the floor %"]
    yield Target(name="import of the floor's bulk insert", value=share, unit="%", limit=60, bound="at least")
    for name, value in figures.items():
        if name.endswith("peak_mb"):
            yield Target(
                name=f"{name.removesuffix(' peak_mb')} peak",
                value=value,
                unit="MB",
                limit=200,
                bound="at most",
            )


@click.command()
@click.option("--messages", callback=counts, default="10k,1m", show_default=True, help="Sizes of the thread.")
@click.option("--rounds", type=click.IntRange(min=3), default=25, show_default=True)
@click.option(
    "--json", "output", type=click.Path(dir_okay=False, path_type=Path), help="Also write result.json."
)
@click.option(
    "--dir", "parent", type=click.Path(exists=True, file_okay=False), help="Where to put the databases."
)
def main(messages: list[int], rounds: int, output: Path | None, parent: str | None) -> None:
    """Measure the embedded backend next to hand-written code."""
    steps = Steps()
    with tempfile.TemporaryDirectory(prefix="threadkeep-bench-", dir=parent) as folder, steps:
        result = _run(Path(folder), messages, rounds, steps)
    print_result(result)
    if output is not None:
        write(result, output)


if __name__ == "__main__":
    main()
