"""Databases to measure on: one long thread in a file, open for all contestants at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import threadkeep
from threadkeep import Store, Thread
from threadkeep.cli.formats import line_of
from threadkeep.clock import to_us
from threadkeep.sync import SyncStore

from . import workload
from .floors.libsql import LibsqlFloor, Place

__all__ = ["RESOURCE", "THREAD", "Subject", "write_export"]

RESOURCE = "resource-1"
THREAD = "thread-1"
_PLACES = 16


def write_export(path: Path, count: int, advance: Callable[[int], object]) -> None:
    """Write a thread of *count* messages as an export; *advance* is told of every thousand."""
    with path.open("wb") as lines:
        start = workload.START
        lines.write(line_of(Thread(id=THREAD, resource_id=RESOURCE, created_at=start, updated_at=start)))
        for number, message in enumerate(workload.messages(THREAD, RESOURCE, count), 1):
            lines.write(line_of(message))
            if number % 1000 == 0:
                advance(1000)


class Subject:
    """One database with the store, the sync store and the floor open on it.

    Args:
        path: A file that holds the thread.
        count: How many messages it has.
        runner: Whose loop the store belongs to.

    Attributes:
        store: The async store.
        sync: The sync store.
        floor: The hand-written code.
        new: Messages to append copies of.
        cursors: Pages in the middle of the thread, as a cursor for the stores and as a place for the floor.
    """

    store: Store
    sync: SyncStore
    floor: LibsqlFloor

    def __init__(self, path: Path, count: int, runner: asyncio.Runner) -> None:
        self.path, self.count = path, count
        self._runner = runner
        self.new = list(workload.messages(THREAD, RESOURCE, 100, first=count))
        self.cursors: list[tuple[str, Place]] = []

    def __enter__(self) -> Subject:
        url = f"libsql://{self.path}"

        async def opened() -> Store:
            return await threadkeep.open(url)

        self.store = self._runner.run(opened())
        self.sync = threadkeep.sync.open(url)
        self.floor = LibsqlFloor(self.path)
        self._runner.run(self._find_cursors())
        return self

    def __exit__(self, *_: object) -> None:
        self.floor.close()
        self.sync.close()
        self._runner.run(self.store.close())

    async def _find_cursors(self) -> None:
        for part in range(1, _PLACES + 1):
            number = self.count // 20 * part // (_PLACES + 2)
            page = await self.store.list_messages(THREAD, page=number, per_page=20)
            last = page.items[-1]
            self.cursors.append((page.next_cursor or "", (to_us(last.created_at), last.seq, last.id)))
