"""Every statement the adapter can send, read from ``sql/queries.sql`` and completed from constants.

What is put into a statement's text is always one of the words in this module or a fragment of that file; keys
and values of filters are parameters (a key travels as the JSON path ``$.key``).
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from threadkeep.filters import Condition, Operator
from threadkeep.records import Position
from threadkeep.requests import Bounds

from ._codec import json_array
from ._driver import Value

__all__ = [
    "FIRST",
    "LAST",
    "Lead",
    "Residual",
    "Statement",
    "bound_values",
    "lead_of",
    "load",
    "residual_of",
    "sql",
    "thread_bound_values",
    "token_condition",
]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
FIRST = Position(INT64_MIN, INT64_MIN, "")
LAST = Position(INT64_MAX, INT64_MAX, "")

_VALUES = "SELECT value FROM json_each(?)"

PROBE_LIMIT = 256
"""How far the entries of a token are counted to choose the leading condition: about 20 us."""

Direction = Literal["ASC", "DESC"]


def load() -> dict[str, str]:
    """The named statements of ``sql/queries.sql``, without comments."""
    text = files("threadkeep_libsql").joinpath("sql/queries.sql").read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return {
        name: re.sub(r"^--.*\n", "", body, flags=re.MULTILINE).strip()
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


_STATEMENTS = load()


@cache
def sql(
    name: str,
    *,
    direction: Direction = "ASC",
    order_by: Literal["created_at", "updated_at"] = "created_at",
    tokens: str = "",
    residual: str = "",
    scope: Literal["", "scope_of_thread", "scope_of_resource"] = "",
    indexed: bool = False,
    resource: bool = False,
    chosen: bool = False,
    actor: bool = False,
    recall: bool = False,
) -> str:
    """A statement by name, completed. *tokens* and *residual* come from the functions below."""
    if "{" not in _STATEMENTS[name]:
        return _STATEMENTS[name]
    return _STATEMENTS[name].format(
        columns=_STATEMENTS["columns"],
        thread_columns=_STATEMENTS["thread_columns"],
        message=_STATEMENTS["with_message"] if residual else "",
        thread=_STATEMENTS["with_thread"] if residual or name == "thread_matches" else "",
        scope=_STATEMENTS[scope] if scope else "",
        indexed=_STATEMENTS["is_indexed"] if indexed else "",
        resource=_STATEMENTS["in_resource"] if resource else "",
        chosen=_STATEMENTS["chosen"] if chosen else "",
        actor=_STATEMENTS["of_actor"] if actor else "",
        recall=_STATEMENTS["recalled"] if recall else "",
        direction=direction,
        order_by=order_by,
        tokens=tokens,
        residual=residual,
    )


class Statement(NamedTuple):
    """A statement and its parameters."""

    sql: str
    parameters: tuple[Value, ...]


# --- filters --------------------------------------------------------------------------------------


class Lead(NamedTuple):
    """The condition that chooses the range of the index: points, each a range in order, or a range of tokens.

    The empty token is the point under which everything stands.
    """

    points: tuple[str, ...] = ("",)
    low: str = ""
    low_open: bool = False
    high: str = ""
    high_open: bool = False

    @property
    def is_range(self) -> bool:
        """Whether it is a range of tokens."""
        return bool(self.high)

    def branches(self) -> list[tuple[str, tuple[str, ...]]]:
        """Each condition on the token with its parameters; one that is a range has no order of its own."""
        if self.is_range:
            return [(token_condition(self), (self.low, self.high))]
        return [("token = ?", (point,)) for point in self.points]


class Residual(NamedTuple):
    """The conditions checked on each candidate, as text to append to a WHERE and its parameters."""

    sql: str
    parameters: tuple[str, ...]


def token_condition(lead: Lead) -> str:
    """The text of a leading range."""
    low, high = ">" if lead.low_open else ">=", "<" if lead.high_open else "<="
    return f"token {low} ? AND token {high} ?"


def lead_of(
    conditions: tuple[Condition, ...], indexed: frozenset[str]
) -> list[tuple[Lead, tuple[Condition, ...]]]:
    """The possible leading conditions, each with what remains to be checked.

    Points before a range before everything; of several points the caller chooses by how common they are.
    """
    usable = [c for c in conditions if "*" in indexed or c.key in indexed]
    points = [c for c in usable if c.operator in (Operator.EQUAL, Operator.ONE_OF)]
    if points:
        return [(Lead(c.tokens), tuple(other for other in conditions if other is not c)) for c in points]
    ranges = [c for c in usable if c.high]
    if not ranges:
        return [(Lead(), conditions)]
    key = ranges[0].key
    same = [c for c in ranges if c.key == key]
    low = max(same, key=lambda c: (c.low, c.low_open))
    high = min(same, key=lambda c: (c.high, not c.high_open))
    lead = Lead((), low.low, low.low_open, high.high, high.high_open)
    return [(lead, tuple(c for c in conditions if c not in same))]


def residual_of(conditions: tuple[Condition, ...], table: Literal["m", "t"]) -> Residual:
    """Conditions on the tokens that stand in the row itself, which need no index and are exact as well."""
    text: list[str] = []
    parameters: list[str] = []
    column = f"json_extract({table}.tokens, ?)"
    for condition in conditions:
        path, cut = f"$.{condition.key}", len(condition.key) + 1
        bodies = [token[cut:] for token in condition.tokens]
        match condition.operator:
            case Operator.EQUAL:
                text.append(f"AND {column} = ?")
                parameters += [path, *bodies]
            case Operator.ONE_OF:
                text.append(f"AND {column} IN ({_VALUES})")
                parameters += [path, json_array(bodies)]
            case Operator.NOT_EQUAL:
                text.append(f"AND {column} <> ?")
                parameters += [path, *bodies]
            case Operator.EXISTS:
                text.append(f"AND {column} IS NOT NULL")
                parameters.append(path)
            case Operator.MISSING:
                text.append(f"AND {column} IS NULL")
                parameters.append(path)
            case Operator.GT | Operator.GTE | Operator.LT | Operator.LTE:
                low, high = ">" if condition.low_open else ">=", "<" if condition.high_open else "<="
                text.append(f"AND {column} {low} ? AND {column} {high} ?")
                parameters += [path, condition.low[cut:], path, condition.high[cut:]]
    return Residual(" ".join(text), tuple(parameters))


def bound_values(bounds: Bounds) -> tuple[Value, ...]:
    """The six parameters of an interval of messages."""
    return (*(bounds.after or FIRST), *(bounds.before or LAST))


def thread_bound_values(bounds: Bounds) -> tuple[Value, ...]:
    """The four parameters of an interval of threads."""
    after, before = bounds.after or FIRST, bounds.before or LAST
    return (after.at, after.id, before.at, before.id)
