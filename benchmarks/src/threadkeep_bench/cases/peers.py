"""The same work by threadkeep and by what a user would pick instead, each in a process of its own.

All have the same messages, of one long thread and with distinct times, and the same threads to list. What a
call returned, or left behind, is compared with what it must be in every round; who returns other rows is not
timed.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import msgspec

from .. import workload
from ..machine import spin_case
from ..places import places
from ..progress import Steps
from ..result import Target
from ..rounds import Case, Measured, Remote, measure
from ..workers import Contestant, Worker

__all__ = ["BASE", "NOT_OFFERED", "OPERATIONS", "Scene", "fault_of", "run"]

BASE = "threadkeep"
OPERATIONS = {
    "append_1": 5,
    "append_100": 1,
    "last_20": 5,
    "page_by_offset": 5,
    "page_by_cursor": 5,
    "filtered_page": 5,
    "windows": 5,
    "list_threads": 5,
    "list_threads_filtered": 5,
    "merge": 5,
    "clone": 1,
}
"""The operations, each with its calls in a round."""

_HEAVY = ("clone",)
NOT_OFFERED = "not offered"
_THREADS = 500
_PAGE = 20
_FILTERED_PAGE = 10
_TWICE = ("filtered_page", "list_threads", "list_threads_filtered")
_WRITES = ("append_1", "append_100")
_APPEND_TIMES = 1.25

Row = list[Any]


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What everybody stores, and is asked for; see ``worker.py``."""

    resource: str
    thread: str
    lister: str
    messages: list[dict[str, Any]]
    threads: list[dict[str, Any]]
    new: list[dict[str, Any]]
    page: int
    filters: list[dict[str, Any]]
    thread_filter: dict[str, Any]
    windows: list[str]

    @classmethod
    def of(cls, count: int) -> Scene:
        """A long thread of *count* messages."""
        messages = [_message(message, number) for number, message in enumerate(_workload(count))]
        page = count // _PAGE // 2
        values = dict.fromkeys(workload.value_of("score", number) for number in range(64))
        return cls(
            resource="reader",
            thread="00000000-0000-4000-8000-000000000001",
            lister="lister",
            messages=messages,
            threads=[_thread(number) for number in range(_THREADS)],
            new=[_message(message, count + n) for n, message in enumerate(_workload(100, first=count))],
            page=page,
            filters=[{"score": value} for value in values],
            thread_filter={"priority": 3},
            windows=[message["id"] for message in messages[page * _PAGE : (page + 1) * _PAGE : 5]],
        )

    def expected(self, operation: str, number: int) -> list[Row]:
        """What a call returns, or leaves behind, in the order that threadkeep gives it."""
        newest = self.messages[::-1]
        match operation:
            case "append_1":
                found = [self.new[number % len(self.new)]]
            case "append_100":
                found = self.new[: -_PAGE - 1 : -1]
            case "last_20" | "clone":
                found = newest[:_PAGE]
            case "page_by_offset" | "page_by_cursor":
                found = self.messages[self.page * _PAGE : (self.page + 1) * _PAGE]
            case "filtered_page":
                wanted = self.filters[number % len(self.filters)]
                found = [m for m in newest if _matches(m, wanted)][:_FILTERED_PAGE]
            case "windows":
                found = self._windows()
            case _:
                wanted = self.thread_filter if operation == "list_threads_filtered" else {}
                found = [thread for thread in self.threads[::-1] if _matches(thread, wanted)][:_PAGE]
        return _rows(found)

    def _windows(self) -> list[dict[str, Any]]:
        middles = [n for n, message in enumerate(self.messages) if message["id"] in self.windows]
        near = sorted({n + step for n in middles for step in range(-2, 3)})
        return [self.messages[n] for n in near]


def _workload(count: int, first: int = 0) -> list[Any]:
    return list(workload.messages("peers", "reader", count, first=first))


def _message(message: Any, number: int) -> dict[str, Any]:
    """A message as JSON; times are distinct, since most peers do not order equal ones."""
    return {
        "id": message.id,
        "role": message.role,
        "text": message.content["parts"][0]["text"],
        "metadata": message.metadata,
        "created_at": (workload.START + number * timedelta(seconds=7)).isoformat(),
    }


def _thread(number: int) -> dict[str, Any]:
    return {
        "id": f"thread-{number:04d}",
        "title": f"Thread {number}",
        "metadata": workload.metadata(number),
        "created_at": (workload.START + number * timedelta(minutes=1)).isoformat(),
    }


def _rows(records: Sequence[dict[str, Any]]) -> list[Row]:
    return [[r["id"], r["title"] if "title" in r else r["text"], r["metadata"]] for r in records]


def _matches(record: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(record["metadata"].get(key) == value for key, value in wanted.items())


def fault_of(operation: str, rows: list[Any], expected: list[Row]) -> str | None:
    """What is wrong with the rows of a call; None where nothing is.

    Newest first and oldest first are both right. What was appended or copied has ids of its own. A contestant
    that can only count what it appended says how many are too many.
    """
    if rows == [0]:
        return None
    if not all(isinstance(row, list) for row in rows):
        return f"does not have what was written: {rows}"
    first = 1 if operation in ("append_1", "append_100", "clone") else 0  # whether ids count
    found, wanted = ([_text(row[first:]) for row in side] for side in (rows, expected))
    if operation == "append_1":
        return None if wanted[0] in (found[:1] + found[-1:]) else "does not have the new message at its end"
    if wanted in (found, found[::-1]):
        return None
    if sorted(found) == sorted(wanted):
        return "returns the rows in another order"
    missing = len([row for row in wanted if row not in found])
    return f"returns other rows: {len(found)} of which {missing} of {len(wanted)} are missing"


def _text(row: Row) -> str:
    """Equal for equal JSON: 1.0 is 1, which is how JavaScript writes it, and neither is true."""
    return json.dumps([_plain(value) for value in row], sort_keys=True, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in cast("dict[str, Any]", value).items()}
    return value


# --- running --------------------------------------------------------------------------------------


def run(
    backend: str,
    taking_part: Sequence[Contestant],
    folder: Path,
    count: int,
    *,
    url: str | None,
    rounds: int,
    heavy_rounds: int,
) -> tuple[list[Measured], dict[str, str], dict[str, str], list[Target]]:
    """Measure.

    Args:
        backend: ``libsql`` or ``postgres``.
        taking_part: Who.
        folder: Of the peers.
        count: Messages of the long thread.
        url: A server; None starts one.
        rounds: Of most operations.
        heavy_rounds: Of cloning.

    Returns:
        The cases, the versions and the settings of all by name, and the figures that have a limit.
    """
    scene = Scene.of(count)
    with asyncio.Runner() as runner, Steps() as steps, tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary) / "scene.json"
        data.write_bytes(msgspec.json.encode(scene))
        stack = AsyncExitStack()
        try:
            urls = runner.run(stack.enter_async_context(places(backend, taking_part, url)))
            workers: list[Worker] = []
            with steps.step("start and fill", len(taking_part)) as advance:
                for contestant, place in zip(taking_part, urls, strict=True):
                    worker = runner.run(Worker.start(contestant, folder, place, data))
                    stack.push_async_callback(worker.end)
                    runner.run(worker.tell("load"))
                    workers.append(worker)
                    advance(1)
            cases = _measured(
                backend, workers, scene, runner, steps, rounds=rounds, heavy_rounds=heavy_rounds
            )
        finally:
            runner.run(stack.aclose())
    versions = {name: version for worker in workers for name, version in worker.versions.items()}
    settings = {
        f"{worker.contestant.name}: {name}": value
        for worker in workers
        for name, value in [*worker.settings.items(), *worker.notes.items()]
    }
    return cases, versions, settings, list(_targets(cases))


def _measured(
    backend: str,
    workers: Sequence[Worker],
    scene: Scene,
    runner: asyncio.Runner,
    steps: Steps,
    *,
    rounds: int,
    heavy_rounds: int,
) -> list[Measured]:
    faults: dict[tuple[str, str], str] = {}
    cases = {name: _case(backend, name, workers, scene, faults) for name in OPERATIONS}
    light = [case for name, case in cases.items() if name not in _HEAVY]
    with steps.step("operations", rounds + 1) as advance:
        measured = measure([*light, spin_case()], runner, rounds=rounds, advance=lambda: advance(1))
    with steps.step("clone", heavy_rounds + 1) as advance:
        slow = measure(
            [cases[name] for name in _HEAVY], runner, rounds=heavy_rounds, advance=lambda: advance(1)
        )
    return [*[_without_faults(case, faults) for case in (*measured[:-1], *slow)], measured[-1]]


def _case(
    backend: str,
    operation: str,
    workers: Sequence[Worker],
    scene: Scene,
    faults: dict[tuple[str, str], str],
) -> Case:
    calls = OPERATIONS[operation]
    offering = [worker for worker in workers if operation in worker.operations]
    return Case(
        name=f"{operation}/{backend}",
        contestants={
            worker.contestant.name: Remote(_timed(operation, worker, scene, faults)) for worker in offering
        },
        calls=calls,
        block=calls,
        base=BASE,
        labels={"backend": backend, "operation": operation, "messages": len(scene.messages)},
        absent={worker.contestant.name: NOT_OFFERED for worker in workers if worker not in offering},
    )


def _timed(
    operation: str, worker: Worker, scene: Scene, faults: dict[tuple[str, str], str]
) -> Callable[[range], Awaitable[list[int]]]:
    who = (operation, worker.contestant.name)

    async def timed(numbers: range) -> list[int]:
        if who not in faults:
            try:
                answer = await worker.tell("time", operation=operation, numbers=[numbers.start, numbers.stop])
            except RuntimeError as exc:
                faults[who] = f"failed: {exc}"
            else:
                fault = fault_of(operation, answer["rows"], scene.expected(operation, numbers.stop - 1))
                if fault is None:
                    return answer["ns"]
                faults[who] = fault
        return [1] * len(numbers)  # not shown

    return timed


def _without_faults(case: Measured, faults: dict[tuple[str, str], str]) -> Measured:
    """Who returned something else has no figures, and threadkeep's own fault ends the run."""
    operation = str(case.labels["operation"])
    wrong = {name: fault for (what, name), fault in faults.items() if what == operation}
    if BASE in wrong:
        raise RuntimeError(f"{case.name}: {BASE} {wrong[BASE]}")
    return msgspec.structs.replace(
        case,
        figures={name: own for name, own in case.figures.items() if name not in wrong},
        ratios={name: own for name, own in case.ratios.items() if name not in wrong},
        absent={**case.absent, **wrong},
    )


def _targets(cases: Sequence[Measured]) -> list[Target]:
    """How threadkeep compares with the fastest peer of each operation that a peer offers."""
    found: list[Target] = []
    for case in cases:
        others = [ratio.median for name, ratio in case.ratios.items() if not name.startswith(BASE)]
        if not others:
            continue
        operation, fastest = case.labels["operation"], min(others)
        if operation in _WRITES:
            name, value = f"{case.name} to the fastest peer", 1 / fastest
            found.append(Target(name=name, value=value, unit="x", limit=_APPEND_TIMES, bound="at most"))
        else:
            name, limit = f"{case.name} faster than any peer", 2 if operation in _TWICE else 1
            found.append(Target(name=name, value=fastest, unit="x", limit=limit, bound="at least"))
    return found
