"""The types of options that several commands share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NoReturn

import click

from ..filters import Operation, exists, gt, gte, lt, lte, missing, not_equal
from ..models import Actor, Include, TimeRange

__all__ = [
    "actor",
    "condition",
    "page_size",
    "since",
    "time_range",
    "until",
    "where_of",
    "window",
]

_CONDITION = re.compile(
    r"(?P<key>[^=<>!?]+)(?:(?P<sign>>=|<=|!=|=|>|<)(?P<value>.*)|(?P<mark>!?\?))", re.DOTALL
)
_DIGITS = 19  # of int64
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SIGNS: dict[str, Callable[[Any], Operation]] = {">=": gte, "<=": lte, "!=": not_equal, ">": gt, "<": lt}


def condition(text: str) -> tuple[str, Any]:
    """``KEY=VALUE`` and its kin: the key and what must hold of it."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        known = "KEY=VALUE, KEY!=VALUE, KEY>5, KEY>=5, KEY<5, KEY<=5, KEY? or KEY!?"
        raise click.BadParameter(f"{text!r} is not {known}")
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


def since(text: str) -> datetime:
    """An ISO date or time; without an offset it is UTC."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        example = "2025-05-31 or 2025-05-31T14:30:00Z"
        raise click.BadParameter(f"{text!r} is not an ISO date or time such as {example}") from exc


def until(text: str) -> datetime:
    """The same; a bare date is its day's last moment."""
    whole_day = timedelta(days=1) - timedelta(microseconds=1)
    return since(text) + (whole_day if _DAY.fullmatch(text) else timedelta(0))


def time_range(start: datetime | None, end: datetime | None) -> TimeRange | None:
    """``--since`` and ``--until``; both moments belong to it."""
    return None if start is None and end is None else TimeRange(start, end)


def window(text: str) -> Include:
    """``ID:before:after``; an id may hold colons, so it is read from the right."""
    identifier, *counts = text.rsplit(":", 2)
    if len(counts) != 2 or not all(map(_is_number, counts)):
        raise click.BadParameter(f"{text!r} is not ID:before:after; ID:0:0 is the message alone")
    return Include(identifier, before=int(counts[0]), after=int(counts[1]))


def page_size(text: str) -> int | Literal["all"]:
    """A number from 0, or ``all``."""
    if text == "all":
        return "all"
    if not _is_number(text):
        raise click.BadParameter(f"{text!r} is neither a number from 0 nor 'all'")
    return int(text)


def actor(text: str) -> Actor:
    """``user:ID``, ``end_user:ID`` or ``shared``."""
    kind, colon, identifier = text.partition(":")
    if kind == "shared" and not colon:
        return Actor("shared")
    if kind not in {"user", "end_user"} or not identifier:
        raise click.BadParameter(f"{text!r} is not user:ID, end_user:ID or shared")
    return Actor("user" if kind == "user" else "end_user", identifier)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < _DIGITS
