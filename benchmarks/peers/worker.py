"""One contestant in a process of its own, told what to do: ``python worker.py MODULE:CLASS [FOLDER]``.

It measures itself; the process that started it only says whose turn it is, so that all contestants take
turns. Nothing but the standard library is imported here: the contestants are modules beside this file, each
for its own environment. The protocol, a line each way at a time:

- ``{"do": "open", "url": ..., "data": FILE}`` answers ``{"versions", "settings", "operations", "notes"}``
- ``{"do": "load"}`` stores the data of the file, and answers ``{}``
- ``{"do": "time", "operation": ..., "numbers": [FIRST, END]}`` answers ``{"ns": [...], "rows": [...]}``, the
  rows being what the last of the calls found, or what it left behind
- ``{"do": "close"}`` answers ``{}`` and ends

What goes wrong is answered as ``{"error": ...}``.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from time import perf_counter_ns
from typing import Any, ClassVar

OPERATIONS = (
    *("append_1", "append_100", "last_20", "page_by_offset", "page_by_cursor", "filtered_page"),
    *("windows", "list_threads", "list_threads_filtered", "clone", "merge"),
)


class Contestant:
    """What a contestant does: a coroutine method for each operation that it offers, given a call's number.

    Attributes:
        packages: Distributions whose versions are worth knowing.
        notes: By operation, what is odd about how it is done.
        data: The scene: ``resource, thread, messages, lister, threads, new, page, filters, windows``.
    """

    packages: tuple[str, ...] = ()
    notes: ClassVar[dict[str, str]] = {}

    def __init__(self, url: str, data: dict[str, Any]) -> None:
        self.url, self.data = url, data
        self.appended = "00000000-0000-4000-8000-000000000002"

    async def open(self) -> dict[str, str]:
        """Connect and make the tables; returns settings worth knowing."""
        raise NotImplementedError

    async def load(self) -> None:
        """Store the messages and the threads."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of the database."""

    def new(self, number: int) -> dict[str, Any]:
        """The message to append in a call."""
        messages = self.data["new"]
        return messages[number % len(messages)]

    def wanted(self, number: int) -> dict[str, Any]:
        """The filter of a call: one key with a value."""
        filters = self.data["filters"]
        return filters[number % len(filters)]

    def rows(self, answer: Any) -> list[Any]:
        """Messages as ``[id, text, metadata]``, threads as ``[id, title, metadata]``."""
        raise NotImplementedError

    async def tail(self, thread: str) -> list[Any]:
        """The newest 20 messages of a thread, to see what a write left behind."""
        raise NotImplementedError

    async def left_behind(self, operation: str, number: int, answer: Any) -> list[Any]:  # noqa: ARG002  (some need it)
        """What to check after a call; not timed."""
        if operation.startswith("append"):
            return self.rows(await self.tail(self.appended))
        return self.rows(answer)


async def answered(contestant: Contestant, told: dict[str, Any]) -> dict[str, Any]:
    """Do what one line says."""
    if told["do"] == "load":
        await contestant.load()
        return {}
    if told["do"] == "close":
        await contestant.close()
        return {}
    operation = told["operation"]
    call = getattr(contestant, operation)
    taken: list[int] = []
    answer: Any = None
    gc.collect()
    for number in range(*told["numbers"]):
        start = perf_counter_ns()
        answer = await call(number)
        taken.append(perf_counter_ns() - start)
    last = told["numbers"][1] - 1
    return {"ns": taken, "rows": await contestant.left_behind(operation, last, answer)}


async def opened(kind: type[Contestant], told: dict[str, Any]) -> tuple[Contestant, dict[str, Any]]:
    """Make the contestant, and say who it is."""
    data = json.loads(Path(told["data"]).read_text("utf-8"))  # noqa: ASYNC240  (nothing else runs yet)
    contestant = kind(told["url"], data)
    settings = await contestant.open()
    return contestant, {
        "versions": {name: version(name) for name in contestant.packages},
        "settings": settings,
        "operations": [name for name in OPERATIONS if hasattr(contestant, name)],
        "notes": contestant.notes,
    }


async def serve(kind: type[Contestant]) -> None:
    """Answer line after line until told to close; a library that prints must not disturb the answers."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    contestant: Contestant | None = None
    for line in sys.stdin:  # nothing else may run in between, so it may as well block
        told = json.loads(line)
        try:
            if contestant is None:
                contestant, answer = await opened(kind, told)
            else:
                answer = await answered(contestant, told)
        except Exception as exc:  # noqa: BLE001  (whatever a peer raises is its result)
            answer = {"error": f"{type(exc).__name__}: {exc}"[:500]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        if told["do"] == "close":
            return


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the peers' deprecations are not ours to see
    sys.path.extend(sys.argv[2:])
    sys.modules["worker"] = sys.modules["__main__"]
    module, _, choice = sys.argv[1].partition(":")
    asyncio.run(serve(getattr(importlib.import_module(module), choice)))
