"""Two sides: the same calls on the reference adapter and on another, and the program that repeats them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable
from itertools import islice
from types import SimpleNamespace, TracebackType
from typing import Any, Self, TypeVar
from unittest.mock import patch

import msgspec

import threadkeep.clock
from threadkeep import Clone, ConflictError, Explanation, Message, Page, Store
from threadkeep.clock import Clock, to_us

from .calls import COPY, MESSAGES, OWNERS, START, THREADS, Call, needs, simpler, source
from .databases import Database

__all__ = ["CONTINUE", "Comparison", "Difference", "Step", "shortened"]

CONTINUE = "cursor of the last page"
"""Given as ``cursor``, stands for that of the last page that had one."""

Step = Call | int
"""A call, or microseconds by which the system's clock jumps."""

Value = TypeVar("Value")

_STORES = ("a", "b")
_SIMPLER = 300  # simpler arguments that are tried


class Difference(AssertionError):  # noqa: N818  (a finding, not a failure of the kit)
    """The two sides differ.

    Args:
        program: A program that shows it.
        steps: The steps that led there.
    """

    def __init__(self, program: str, steps: list[Step]) -> None:
        super().__init__(program)
        self.steps = steps


def shortened(template: str, runner: asyncio.Runner, difference: Difference) -> Difference:
    """A difference with fewer steps and simpler arguments; the given one, where it does not come again."""
    shortest = _replay(template, runner, difference.steps) or difference
    shortest = _with_fewer_steps(template, runner, shortest)
    shortest = _with_simpler_steps(template, runner, shortest)
    return _with_fewer_steps(template, runner, shortest)


def _with_fewer_steps(template: str, runner: asyncio.Runner, shortest: Difference) -> Difference:
    index = len(shortest.steps) - 2  # the last one shows the difference
    while index >= 0:
        steps = shortest.steps
        shortest = _replay(template, runner, steps[:index] + steps[index + 1 :]) or shortest
        index = min(index, len(shortest.steps) - 1) - 1
    return shortest


def _with_simpler_steps(template: str, runner: asyncio.Runner, shortest: Difference) -> Difference:
    index, left = 0, _SIMPLER
    while index < len(shortest.steps):
        steps = shortest.steps
        for candidate in islice(simpler(steps[index]), left):
            left -= 1
            found = _replay(template, runner, [*steps[:index], candidate, *steps[index + 1 :]])
            if found is not None:
                shortest = found
                break
        else:
            index += 1
    return shortest


def _replay(template: str, runner: asyncio.Runner, steps: Iterable[Step]) -> Difference | None:
    with Comparison(template, runner) as comparison:
        try:
            for step in steps:
                comparison.do(step)
        except Difference as difference:
            return difference
    return None


class _Side:
    """One of the two that are compared: stores on one database, a clock, and names for ids that it made.

    Attributes:
        made: The ids of copied messages by name.
        named: Their names by id.
        cursor: The cursor of the last page that had one.
    """

    def __init__(self, template: str, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._clock = Clock()
        self._database = Database(template)
        self._stores: list[Store] = []
        self.made: dict[str, str] = {}
        self.named: dict[str, str] = {}
        self.cursor: str | None = None

    def open(self) -> None:
        """Open the stores."""
        for _ in _STORES:
            self._stores.append(self._runner.run(self._database.open()))

    def close(self) -> None:
        """Close the stores and remove the database."""
        self._runner.run(self._database.__aexit__())

    def supports(self, call: Call) -> bool:
        """Whether no capability is missing for a call."""
        return all(self._stores[0].capabilities.has(capability) for capability in needs(call))

    def call(self, call: Call) -> object:
        """What a call returns, or the error it raises."""
        method = getattr(self._stores[call.store], call.method)
        args, kwargs = _renamed(call.args, self.made), _renamed(call.kwargs, self.made)
        if kwargs.get("cursor") == CONTINUE:
            kwargs["cursor"] = self.cursor
        with patch.object(threadkeep.clock.clock, "take", self._clock.take):
            try:
                return self._runner.run(_awaited(method, args, kwargs))
            except Exception as exc:  # noqa: BLE001  (an error is a result; an unexpected one is a difference)
                return exc

    def name_copies(self, copy: Clone, first: int) -> None:
        """Name the messages of a copy, from a number on, in their order."""
        for number, identifier in enumerate(copy.id_map.values(), first):
            self.made[f"{COPY}{number}"] = identifier
            self.named[identifier] = f"{COPY}{number}"


async def _awaited(method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    if inspect.isasyncgenfunction(method):
        return [item async for item in method(*args, **kwargs)]
    return await method(*args, **kwargs)


class Comparison:
    """A run: calls on both sides, compared one by one. A context manager, which removes the databases.

    Attributes:
        seen: The messages that calls have returned, the latest first.
        walk: The last list that had more.
    """

    def __init__(self, template: str, runner: asyncio.Runner) -> None:
        self.seen: list[Message] = []
        self.walk: Call | None = None
        self._steps: list[Step] = []
        self._lines: list[str] = []
        self._copies: dict[str, str] = {}  # how the program names the messages of clones
        self._clones = 0
        self._now_us = to_us(START)
        self._time = patch.object(
            threadkeep.clock, "time", SimpleNamespace(time_ns=lambda: self._now_us * 1000)
        )
        self._model, self._actual = _Side("memory:", runner), _Side(template, runner)

    def __enter__(self) -> Self:
        """Open both sides."""
        self._time.start()
        self._model.open()
        self._actual.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close both and remove their databases."""
        self._time.stop()
        self._model.close()
        self._actual.close()

    def do(self, step: Step) -> None:
        """Take a step on both sides; a call that needs a capability the adapter has not is left out.

        Raises:
            Difference: They make different things of it.
        """
        if isinstance(step, int):
            self._now_us += step
            self._steps.append(step)
            self._lines.append(f"_now.us = {self._now_us}")
        elif self._actual.supports(step):
            self._steps.append(step)
            self._compare(step)

    def finish(self) -> None:
        """Compare all that is stored.

        Raises:
            Difference: It is not the same.
        """
        everything = {"per_page": None, "with_total": True}
        for query in (everything, {**everything, "order_by": "updated_at", "order": "asc"}):
            self.do(Call(1, "list_threads", (), query))
        for method in ("list_resources", "list_memories"):
            self.do(Call(1, method, (), everything))
        for owner in OWNERS:
            self.do(Call(1, "list_messages", (), {"resource_id": owner, **everything}))
        for thread in THREADS:
            self.do(Call(0, "get_thread", (thread,)))
            self.do(Call(0, "list_messages", (thread,), {"order": "desc", "with_total": True}))
        self.do(Call(0, "get_messages", ([*MESSAGES, *self._copies],)))

    def _compare(self, call: Call) -> None:
        expected, found = self._model.call(call), self._actual.call(call)
        written = _written(call, self._copies)
        line = f"result = {written}"
        if isinstance(expected, Exception):
            line = f"with suppress(ThreadkeepError):\n    {line}"
        if isinstance(expected, Clone) and isinstance(found, Clone):
            line += f"\n{self._note_copies(expected, found)} = result"
        expectation, finding = _shown(expected, self._model.named), _shown(found, self._actual.named)
        if expectation != finding:
            program = _program([*self._lines, f"print(repr({written}))"], expectation, finding)
            raise Difference(program, self._steps) from (found if isinstance(found, Exception) else None)
        self._lines.append(line)
        self._remember(call, expected, found)

    def _note_copies(self, expected: Clone, found: Clone) -> str:
        """Name the copied messages; returns the variable that the program keeps the clone in."""
        first = len(self._model.made)
        self._clones += 1
        variable = f"clone_{self._clones}"
        for number, original in enumerate(expected.id_map, first):
            written = source(self._model.named.get(original, original), self._copies)
            self._copies[f"{COPY}{number}"] = f"{variable}.id_map[{written}]"
        self._model.name_copies(expected, first)
        self._actual.name_copies(found, first)
        return variable

    def _remember(self, call: Call, expected: object, found: object) -> None:
        if isinstance(expected, Page) and isinstance(found, Page) and expected.next_cursor:
            self.walk, self._lines[-1] = call, f"{self._lines[-1]}\ncursor = result.next_cursor"
            self._model.cursor, self._actual.cursor = expected.next_cursor, found.next_cursor
        items: Any = expected.items if isinstance(expected, Page) else expected  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  (any result)
        if isinstance(items, list):
            seen = [item for item in items if isinstance(item, Message)]  # pyright: ignore[reportUnknownVariableType]  (any result)
            self.seen = [*_renamed(seen, self._model.named), *self.seen][:20]


def _program(lines: list[str], expected: str, found: str) -> str:
    body = "\n".join(lines).replace("\n", "\n        ")
    return f"""the adapter and the reference adapter differ

expected: {expected}
found:    {found}

To repeat it, give this program the URL of an empty database:

import asyncio
import sys
from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace

import threadkeep.clock
from threadkeep import *
from threadkeep import open as open_store

_now = SimpleNamespace(us={to_us(START)})
threadkeep.clock.time = SimpleNamespace(time_ns=lambda: _now.us * 1000)


async def main(url):
    async with open_store(url) as a, open_store(url) as b:
        {body}


asyncio.run(main(sys.argv[1]))
"""


def _written(call: Call, copies: dict[str, str]) -> str:
    arguments = [source(value, copies) for value in call.args]
    for name, value in call.kwargs.items():
        arguments.append(f"{name}={'cursor' if value == CONTINUE else source(value, copies)}")
    written = f"{_STORES[call.store]}.{call.method}({', '.join(arguments)})"
    return f"[item async for item in {written}]" if call.method.startswith("iter_") else f"await {written}"


def _renamed(value: Value, names: dict[str, str]) -> Value:
    """The same with some strings replaced, wherever they are."""
    if not names:
        return value
    return _replaced(value, names)


def _replaced(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, msgspec.Struct):
        fields = {name: _replaced(getattr(value, name), names) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    if isinstance(value, dict):
        pairs: Any = value.items()  # pyright: ignore[reportUnknownVariableType]  (JSON)
        return {_replaced(key, names): _replaced(item, names) for key, item in pairs}
    if isinstance(value, (list, tuple)):
        items: Any = value  # pyright: ignore[reportUnknownVariableType]  (JSON)
        replaced = [_replaced(item, names) for item in items]
        return replaced if isinstance(value, list) else tuple(replaced)
    return value


def _shown(result: object, names: dict[str, str]) -> str:
    """A result as text that two sides must have in common: exact in kind, value and order."""
    if isinstance(result, Exception):
        # A conflict's reason is prose, which adapters may word as they like.
        given = () if isinstance(result, ConflictError) else result.args
        return f"{type(result).__name__}{source(_renamed(given, names)) if given else '()'}"
    if isinstance(result, Explanation):
        return "an Explanation"
    if isinstance(result, Page):
        fields: dict[str, Any] = {name: getattr(result, name) for name in Page.__struct_fields__}  # pyright: ignore[reportUnknownArgumentType]  (of whatever)
        fields["next_cursor"] = result.next_cursor is not None
        fields["matched_ids"] = sorted(_renamed(list(result.matched_ids), names))
        return (
            f"Page({', '.join(f'{name}={source(_renamed(value, names))}' for name, value in fields.items())})"
        )
    return source(_renamed(result, names))
