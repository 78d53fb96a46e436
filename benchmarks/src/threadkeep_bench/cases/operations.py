"""Every operation of a store next to hand-written code on the same database; the data is :mod:`.scene`'s."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from threadkeep import Clone, Include, Message, NewMessage, Page
from threadkeep.tokens import token

from ..databases import opened
from ..machine import spin_case
from ..progress import Steps
from ..result import Target, floor_limit
from ..rounds import Case, Measured, measure
from . import importing
from .scene import CALLS, FAR, FLOOR, OWN, PAGE, Own, Scene, case_name, stored_count

__all__ = ["run"]

_WRITERS = (1, 8, 32)
_CURSOR_TIMES = 1.2


# --- reads ----------------------------------------------------------------------------------------


def _reads(scene: Scene) -> Iterator[Case]:
    """Whoever takes part must return the same rows."""
    store, long, resource = scene.store, scene.long, scene.resource
    yield scene.case(
        "last_20",
        lambda _: store.list_messages(long, order="desc", per_page=PAGE),
        lambda floor, _: floor.newest(long, PAGE),
    )
    for page in (0, FAR):
        yield scene.case(
            f"page_{page}_by_offset",
            lambda _, page=page: store.list_messages(long, page=page, per_page=PAGE),
            lambda floor, _, page=page: floor.page(long, page * PAGE, PAGE),
        )
    for page, (cursor, place) in ((1, scene.near), (FAR, scene.far)):
        yield scene.case(
            f"page_{page}_by_cursor",
            lambda _, cursor=cursor: store.list_messages(long, per_page=PAGE, cursor=cursor),
            lambda floor, _, place=place: floor.after(long, place, PAGE),
        )
    wanted = scene.ids[::5]
    include = [Include(message, before=2, after=2) for message in wanted]
    yield scene.case(
        f"windows_of_{len(wanted)}",
        lambda _: store.list_messages(long, include=include, per_page=0),
        lambda floor, _: floor.windows(wanted, 2, 2),
    )
    yield scene.case(
        "list_threads",
        lambda _: store.list_threads(resource_id=resource, per_page=PAGE),
        lambda floor, _: floor.threads(resource, PAGE),
    )
    wanted_priority = token("priority", 3)
    yield scene.case(
        "list_threads_filtered",
        lambda _: store.list_threads(resource_id=resource, where={"priority": 3}, per_page=PAGE),
        lambda floor, _: floor.threads(resource, PAGE, wanted_priority),
    )
    yield scene.case(
        "recall_memories",
        lambda _: store.recall_memories(scene.actor, "ZÜRICH"),
        lambda floor, _: floor.recall(("user", resource), "zürich", 10),
    )


async def _check_agreement(case: Case) -> None:
    """A floor that finds other rows than the store is none."""
    calls = cast("dict[str, Own]", case.contestants)
    found = {name: _ids(await call(0)) for name, call in calls.items()}
    if not found[OWN] or any(ids != found[OWN] for ids in found.values()):
        raise RuntimeError(f"{case.name}: the contestants do not return the same rows")


def _ids(answer: Any) -> list[object]:
    rows = cast("list[Any]", cast("Page[Any]", answer).items if isinstance(answer, Page) else answer)
    return [row["id"] if isinstance(row, dict) else row.id for row in rows]


# --- writes ---------------------------------------------------------------------------------------


def _writes(scene: Scene) -> Iterator[Case]:
    store, resource, new = scene.store, scene.resource, scene.new
    rows = [_row(message) for message in new]
    yield scene.case(
        "append_1",
        lambda number: store.save_messages([_copy(new[number % 100])]),
        lambda floor, number: floor.append(rows[number % 100]),
        block=CALLS,
    )
    yield scene.case(
        "append_100",
        lambda _: store.save_messages([_copy(message) for message in new]),
        lambda floor, _: floor.append_many(rows),
        block=CALLS,
    )
    for writers in _WRITERS:
        calls = max(2, CALLS // writers)
        yield scene.case(
            f"merge_by_{writers}",
            lambda number, writers=writers: _merged(store.merge_working_memory, resource, writers, number),
            lambda floor, number, writers=writers: _merged(floor.merge, resource, writers, number),
            calls=calls,
            block=calls,
        )


def _copy(message: Message) -> NewMessage:
    return NewMessage(message.thread_id, message.role, message.content, metadata=message.metadata)


def _row(message: Message) -> dict[str, Any]:
    fields = ("thread_id", "resource_id", "role", "type", "content", "metadata")
    return {name: getattr(message, name) for name in fields}


async def _merged(
    merge: Callable[[str, dict[str, Any]], Awaitable[object]], resource: str, writers: int, number: int
) -> object:
    """All writers at once, each with a key of its own: how long until the last is done."""
    patches = [{"writers": {f"{writers}/{writer}": number}} for writer in range(writers)]
    return await asyncio.gather(*[merge(resource, patch) for patch in patches])


def _clone(scene: Scene) -> Case:
    def copy(who: str, number: int) -> str:
        return f"{scene.resource}-copy-{who}-{number}"

    async def undo(who: str, number: int) -> None:
        await scene.store.delete_thread(copy(who, number))

    return scene.case(
        f"clone_{scene.bulk}",
        lambda number: scene.store.clone_thread(scene.source, thread_id=copy(OWN, number)),
        lambda floor, number: floor.clone(scene.source, copy(FLOOR, number)),
        calls=1,
        undo=undo,
    )


async def _check_clone(scene: Scene, case: Case) -> None:
    """Both must have copied everything, in order."""
    for who, call in cast("dict[str, Own]", case.contestants).items():
        answer = await call(0)
        ids = answer.id_map if isinstance(answer, Clone) else cast("dict[str, str]", answer)
        copied = f"{scene.resource}-copy-{who}-0"
        newest = await scene.store.list_messages(copied, order="desc", per_page=PAGE, with_total=True)
        source = await scene.store.list_messages(scene.source, order="desc", per_page=PAGE)
        same = [message.id for message in newest.items] == [ids[message.id] for message in source.items]
        await scene.store.delete_thread(copied)
        if not same or not newest.total == len(ids) == scene.bulk:
            raise RuntimeError(f"{case.name}: {who} did not copy everything")


async def _check_writes(scene: Scene, rounds: int) -> None:
    """Nothing may have been lost: every appended message is counted, every writer's last value is there."""
    contestants = 1 if scene.floor is None else 2
    thread = await scene.store.get_thread(scene.appended)
    expected = (rounds + 1) * CALLS * 101 * contestants
    document = await scene.store.get_resource(scene.resource)
    found: dict[str, int] = json.loads((document and document.working_memory) or "{}").get("writers", {})
    lost = [
        f"{writers}/{writer}"
        for writers in _WRITERS
        for writer in range(writers)
        if found.get(f"{writers}/{writer}") != (rounds + 1) * max(2, CALLS // writers) - 1
    ]
    if thread is None or thread.message_count != expected or lost:
        count = thread and thread.message_count
        raise RuntimeError(f"{scene.database.name}: {count} of {expected} appended, lost merges: {lost}")


# --- the whole ------------------------------------------------------------------------------------


def run(
    wanted: Sequence[str], count: int, bulk: int, *, rounds: int, heavy_rounds: int, run_id: str
) -> tuple[list[Measured], list[Target]]:
    """Measure.

    Args:
        wanted: URLs, or names of backends.
        count: Messages of the long thread; more than 10,020, so that it has a page 500.
        bulk: Messages to clone, and to import.
        rounds: Of the operations that take milliseconds.
        heavy_rounds: Of cloning and importing.
        run_id: Unique.

    Returns:
        The cases, and the figures that have a limit.
    """
    with asyncio.Runner() as runner, Steps() as steps, tempfile.TemporaryDirectory() as folder:
        context = opened(wanted, run_id)
        databases = runner.run(context.__aenter__())
        try:
            scenes = [Scene(database, count, bulk) for database in databases]
            cases = _measured(scenes, runner, steps, Path(folder), rounds=rounds, heavy_rounds=heavy_rounds)
            for scene in scenes:
                runner.run(scene.clear())
        finally:
            runner.run(context.__aexit__(None, None, None))
    return cases, list(_targets(cases))


def _measured(
    scenes: list[Scene],
    runner: asyncio.Runner,
    steps: Steps,
    folder: Path,
    *,
    rounds: int,
    heavy_rounds: int,
) -> list[Measured]:
    light: list[Case] = []
    heavy: list[Case] = []
    with steps.step("store", stored_count(scenes)) as advance:
        for scene in scenes:
            runner.run(scene.fill(advance))
    for scene in scenes:
        reads = list(_reads(scene))
        for case in reads:
            runner.run(_check_agreement(case))
        light += [*_writes(scene), *reads]
        clone = _clone(scene)
        runner.run(_check_clone(scene, clone))
        heavy.append(clone)
        if importing.is_possible(scene.database):
            heavy.append(runner.run(importing.case(scene.database, folder, scene.bulk)))
    with steps.step("operations", rounds + 1) as advance:
        measured = measure([*light, spin_case()], runner, rounds=rounds, advance=lambda: advance(1))
    for scene in scenes:
        runner.run(_check_writes(scene, rounds))
    with steps.step("clone and import", heavy_rounds + 1) as advance:
        slow = measure(heavy, runner, rounds=heavy_rounds, advance=lambda: advance(1))
    return [*measured[:-1], *map(_with_rate, slow), measured[-1]]


def _with_rate(case: Measured) -> Measured:
    """With the messages a second of whoever took part."""
    bulk = int(case.labels["messages"])
    counts = {f"{who} messages_per_s": bulk * 1e6 / own.p50_us for who, own in case.figures.items()}
    return msgspec.structs.replace(case, counts=counts)


def _targets(cases: Sequence[Measured]) -> Iterator[Target]:
    by_name = {case.name: case for case in cases}
    for case in cases:
        backend = str(case.labels.get("backend", ""))
        if OWN not in case.ratios:
            continue
        ratio = case.ratios[OWN].median
        if case.labels["operation"] == importing.OPERATION:
            name = f"{case.name} rate of the floor's"
            yield Target(name=name, value=100 / ratio, unit="%", limit=60, bound="at least")
        else:
            limit = floor_limit(backend)
            yield Target(
                name=f"{case.name} to the floor", value=ratio, unit="x", limit=limit, bound="at most"
            )
        if case.labels["operation"] == f"page_{FAR}_by_cursor":
            near = by_name[case_name("page_0_by_offset", backend)].figures[OWN].p50_us
            value = case.figures[OWN].p50_us / near
            name = f"{case.name} to page 0"
            yield Target(name=name, value=value, unit="x", limit=_CURSOR_TIMES, bound="at most")
