"""What several commands share: option types, shared options, and running against a store."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, TypeVar, cast

import click

from ..filters import Operation, exists, gt, gte, lt, lte, missing, not_equal
from ..models import Actor, ActorType, Include, TimeRange
from ..store import Store

__all__ = [
    "ACTOR",
    "INCLUDE",
    "PER_PAGE",
    "SINCE",
    "UNTIL",
    "WHERE",
    "json_option",
    "run",
    "time_range",
    "url_argument",
    "where_of",
]

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])

_CONDITION = re.compile(r"(?P<key>[^=<>!?]+)(?:(?P<sign>>=|<=|!=|=|>|<)(?P<value>.*)|(?P<mark>!?\?))", re.DOTALL)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SIGNS: dict[str, Callable[[Any], Operation]] = {">=": gte, "<=": lte, "!=": not_equal, ">": gt, "<": lt}


def run(url: str, action: Callable[[Store], Awaitable[Result]], *, migrate: bool) -> Result:
    """Open the store, do something with it, close it.

    Args:
        url: The database.
        action: What to do.
        migrate: Whether the schema may be created or brought up to date: for commands that write. One that only
            reads leaves a database as it is, and makes none of a misspelt file name.
    """
    from ..registry import open_store

    async def opened() -> Result:
        async with open_store(url, migrate=migrate) as store:
            return await action(store)

    return asyncio.run(opened())


url_argument = click.argument("url")


def json_option(command: Command) -> Command:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(command)


class _Where(click.ParamType):
    name = "condition"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        found = _CONDITION.fullmatch(value)
        if found is None:
            self.fail(f"{value!r} is not KEY=VALUE, KEY!=VALUE, KEY>5, KEY>=5, KEY<5, KEY<=5, KEY? or KEY!?", param, ctx)
        if found["mark"]:
            return found["key"], exists() if found["mark"] == "?" else missing()
        operand = _scalar(found["value"])
        return found["key"], operand if found["sign"] == "=" else _SIGNS[found["sign"]](operand)


def _scalar(text: str) -> Any:
    """A JSON scalar where the text is exactly one, else the text."""

    def refuse(_: str) -> NoReturn:
        raise ValueError

    try:
        value = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, (dict, list)) or text != text.strip() else value


def where_of(given: tuple[tuple[str, Any], ...]) -> dict[str, Any] | None:
    """The ``--where`` options as a filter; all must hold, several of one key too."""
    by_key: dict[str, tuple[Any, ...]] = {}
    for key, condition in given:
        by_key[key] = (*by_key.get(key, ()), condition)
    return by_key or None


class _Moment(click.ParamType):
    """An ISO date or time; without an offset it is UTC. A bare date is a whole day: its last moment, as an end."""

    name = "time"

    def __init__(self, *, end: bool) -> None:
        self._end = end

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            found = datetime.fromisoformat(value)
            if found.tzinfo is None:
                found = found.replace(tzinfo=UTC)
            if self._end and _DAY.fullmatch(value):
                found += timedelta(days=1) - timedelta(microseconds=1)
            return found.astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not an ISO date or time such as 2025-05-31 or 2025-05-31T14:30:00Z", param, ctx)


def time_range(since: datetime | None, until: datetime | None) -> TimeRange | None:
    """``--since`` and ``--until``; both moments belong to it."""
    return None if since is None and until is None else TimeRange(since, until)


class _Include(click.ParamType):
    """``ID:before:after``; an id may hold colons, so it is read from the right."""

    name = "window"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Include:
        identifier, *counts = value.rsplit(":", 2)
        if len(counts) != 2 or not all(count.isascii() and count.isdigit() for count in counts):  # noqa: PLR2004
            self.fail(f"{value!r} is not ID:before:after; ID:0:0 is the message alone", param, ctx)
        return Include(identifier, before=int(counts[0]), after=int(counts[1]))


class _PerPage(click.ParamType):
    name = "number|all"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value == "all" or isinstance(value, int):
            return value
        if not (value.isascii() and value.isdigit()):
            self.fail(f"{value!r} is neither a number from 0 nor 'all'", param, ctx)
        return int(value)


class _Actor(click.ParamType):
    name = "actor"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Actor:
        kind, colon, identifier = value.partition(":")
        if kind not in ("user", "end_user", "shared") or (kind == "shared") == bool(colon):
            self.fail(f"{value!r} is not user:ID, end_user:ID or shared", param, ctx)
        return Actor(cast(ActorType, kind), identifier if colon else None)


WHERE, INCLUDE, PER_PAGE, ACTOR = _Where(), _Include(), _PerPage(), _Actor()
SINCE, UNTIL = _Moment(end=False), _Moment(end=True)
