"""What a database would evaluate itself: conditions, intervals, pages and windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from threadkeep import Include
from threadkeep.filters import Condition, Operator
from threadkeep.records import MessageRecord, Position
from threadkeep.requests import Bounds

Row = TypeVar("Row")


def matches(tokens: Sequence[str], where: Iterable[Condition]) -> bool:
    """Whether a record with these filter tokens, one for each metadata key, satisfies all conditions."""
    return all(_holds(condition, tokens) for condition in where)


def _holds(condition: Condition, tokens: Sequence[str]) -> bool:
    found = next((token for token in tokens if token.startswith(f"{condition.key}=")), None)
    if condition.operator is Operator.MISSING or found is None:
        return condition.operator is Operator.MISSING and found is None
    if condition.operator in (Operator.EQUAL, Operator.ONE_OF):
        return found in condition.tokens
    if condition.operator is Operator.NOT_EQUAL:
        return found not in condition.tokens
    above = found > condition.low or (found == condition.low and not condition.low_open)
    below = found < condition.high or (found == condition.high and not condition.high_open)
    return above and below  # a range; exists is the range of all tokens of the key


def within(place: Position, bounds: Bounds) -> bool:
    """Whether a place lies in an interval of the order."""
    above = bounds.after is None or place > bounds.after
    below = bounds.before is None or place < bounds.before
    return above and below


def cut(rows: Sequence[Row], offset: int, limit: int | None) -> list[Row]:
    """A page."""
    return list(rows[offset:] if limit is None else rows[offset : offset + limit])


def window(rows: Iterable[MessageRecord], include: Include) -> list[MessageRecord]:
    """An included message with its neighbours, out of the messages of its thread."""
    ordered = sorted(rows, key=lambda row: row.position)
    index = [row.id for row in ordered].index(include.id)
    return ordered[max(index - include.before, 0) : index + include.after + 1]
