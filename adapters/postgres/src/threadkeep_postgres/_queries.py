"""Every statement the adapter can send, read from ``sql/queries.sql`` and completed from constants.

What is put into a statement's text is the schema's name, which is a plain identifier, one of the words in
this module or a fragment of that file; keys and values of filters are parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Formatter
from typing import Literal, NamedTuple

from threadkeep.clock import MAX_US
from threadkeep.filters import Condition, Operator
from threadkeep.records import Position
from threadkeep.requests import Bounds

__all__ = [
    "PROBE_LIMIT",
    "Direction",
    "Lead",
    "Queries",
    "Residual",
    "Statement",
    "Value",
    "between",
    "cut",
    "leads_of",
    "load",
    "residual_of",
    "sparsest",
]

Value = str | int | bool | None | Sequence[str] | Sequence[int] | Sequence[str | None]
"""What is bound. Floats never are: numbers are stored inside JSON text, exactly."""

Direction = Literal["ASC", "DESC"]

PROBE_LIMIT = 100
"""How many entries of a token are looked at to choose the leading condition: about 30 us."""

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_FIRST = Position(_INT64_MIN, _INT64_MIN, "")
_LAST = Position(_INT64_MAX, _INT64_MAX, "")


class Statement(NamedTuple):
    """A statement with ``$1`` placeholders, and its parameters."""

    sql: bytes
    parameters: tuple[Value, ...] = ()


class _Compiled(NamedTuple):
    sql: bytes
    names: tuple[str, ...]


def load() -> dict[str, str]:
    """The named statements and fragments of ``sql/queries.sql``, without comments."""
    text = files("threadkeep_postgres").joinpath("sql/queries.sql").read_text("utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return {
        name: re.sub(r"^--.*\n", "", body, flags=re.MULTILINE).strip()
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


_PLACEHOLDER = re.compile(r"(?<!:):([a-z]\w*)")


class Queries:
    """The statements for one schema.

    Args:
        schema: Its name, a plain identifier.

    Attributes:
        schema: The same.
    """

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self._texts = load()
        self._constants = {"schema": f'"{schema}"', "max_us": str(MAX_US)}
        self._compiled: dict[tuple[str, ...], _Compiled] = {}

    def statement(self, name: str, values: Mapping[str, Value] | None = None, /, **parts: str) -> Statement:
        """A statement by name.

        Args:
            name: As in the file.
            values: Its parameters, by name; there may be more.
            parts: What its ``{words}`` stand for: text, or the name of a fragment, by default the word's own.
        """
        key = (name, *parts, *parts.values())  # in whatever order: then it is compiled twice
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = self._compile(name, parts)
        if values is None:
            return Statement(compiled.sql)
        return Statement(compiled.sql, tuple([values[each] for each in compiled.names]))

    def _compile(self, name: str, parts: Mapping[str, str]) -> _Compiled:
        text = self._texts[name]
        while "{" in text:  # a fragment may have words too
            words = {word: self._word(word, parts) for _, word, _, _ in Formatter().parse(text) if word}
            text = text.format(**words)
        names: dict[str, int] = {}

        def number(match: re.Match[str]) -> str:
            return f"${names.setdefault(match[1], len(names) + 1)}"

        return _Compiled(_PLACEHOLDER.sub(number, text).encode(), tuple(names))

    def _word(self, word: str, parts: Mapping[str, str]) -> str:
        found = parts.get(word, self._constants.get(word))
        return self._texts[word] if found is None else self._texts.get(found, found)


# --- filters --------------------------------------------------------------------------------------


class Lead(NamedTuple):
    """The condition that chooses ranges of the position index: points, each in order, or one range of tokens.

    Neither: the query walks its scope in order.
    """

    points: tuple[str, ...] = ()
    low: str = ""
    low_open: bool = False
    high: str = ""
    high_open: bool = False

    @property
    def is_walk(self) -> bool:
        """Whether no index of tokens is used."""
        return not (self.points or self.high)

    def parts(self) -> dict[str, str]:
        """The words for a statement on positions."""
        if len(self.points) == 1:
            return {"points": "", "token": "p.token = :token"}
        if self.points:
            return {"points": "points", "token": "p.token = k.token"}
        low, high = ">" if self.low_open else ">=", "<" if self.high_open else "<="
        return {"points": "", "token": f"p.token {low} :low AND p.token {high} :high"}

    def values(self) -> dict[str, Value]:
        """The parameters for it."""
        if len(self.points) == 1:
            return {"token": self.points[0]}
        return {"tokens": list(self.points), "low": self.low, "high": self.high}


def cut(branches: int) -> dict[str, str]:
    """The words that limit a page: in its only branch, or in each and in what they are merged to."""
    if branches == 1:
        return {"branch_limit": "cut", "merged_limit": ""}
    return {"branch_limit": "cut_branch", "merged_limit": "cut"}


class Residual(NamedTuple):
    """The conditions checked on each candidate, as text to append to a WHERE, and its parameters."""

    sql: str
    values: dict[str, Value]


def leads_of(
    conditions: tuple[Condition, ...], indexed: frozenset[str]
) -> list[tuple[Lead, tuple[Condition, ...]]]:
    """The possible leading conditions, each with what remains to be checked.

    Points before a range before a walk; of several points the caller chooses by how common they are.
    """
    usable = [c for c in conditions if "*" in indexed or c.key in indexed]
    points = [c for c in usable if c.operator in (Operator.EQUAL, Operator.ONE_OF)]
    if points:
        return [(Lead(c.tokens), tuple([other for other in conditions if other is not c])) for c in points]
    ranges = [c for c in usable if c.high]
    if not ranges:
        return [(Lead(), conditions)]
    same = [c for c in ranges if c.key == ranges[0].key]
    low = max(same, key=lambda c: (c.low, c.low_open))
    high = min(same, key=lambda c: (c.high, not c.high_open))
    lead = Lead((), low.low, low.low_open, high.high, high.high_open)
    return [(lead, tuple([c for c in conditions if c not in same]))]


def sparsest(
    candidates: list[tuple[Lead, tuple[Condition, ...]]],
    probes: Sequence[tuple[int, int, int, int]],
    *,
    descending: bool,
) -> tuple[Lead, tuple[Condition, ...]]:
    """The candidate with the fewest entries, or, of those with more than were counted, the widest spread.

    Args:
        candidates: As of :func:`leads_of`.
        probes: For each branch of a candidate that has entries: its number, how many were counted, and
            the time and ``seq`` of the last of them.
        descending: The direction they were counted in.
    """
    sign = -1 if descending else 1

    def rank(number: int) -> tuple[bool, int, tuple[int, int]]:
        own = [probe for probe in probes if probe[0] == number]
        full = [(sign * at, sign * seq) for _, n, at, seq in own if n >= PROBE_LIMIT]
        if not full:
            return (False, sum([probe[1] for probe in own]), (0, 0))
        reach = min(full)  # of several branches the densest one decides
        return (True, 0, (-reach[0], -reach[1]))

    return candidates[min(range(len(candidates)), key=rank)]


def residual_of(conditions: tuple[Condition, ...], table: Literal["m", "t"]) -> Residual:
    """Conditions on the tokens that stand in the row itself, which need no index and are exact as well."""
    text: list[str] = []
    values: dict[str, Value] = {}

    def parameter(value: Value) -> str:
        name = f"r{len(values)}"
        values[name] = value
        return f":{name}"

    def some(low: str, low_open: bool, high: str, high_open: bool) -> str:
        above, below = ">" if low_open else ">=", "<" if high_open else "<="
        return (
            f'EXISTS (SELECT FROM (SELECT unnest({table}.tokens) COLLATE "C" AS token) AS u'
            f" WHERE u.token {above} {parameter(low)} AND u.token {below} {parameter(high)})"
        )

    for condition in conditions:
        anything = (f"{condition.key}=", False, f"{condition.key}>", True)
        match condition.operator:
            case Operator.EQUAL | Operator.ONE_OF:
                text.append(f"AND {table}.tokens && {parameter(list(condition.tokens))}::text[]")
            case Operator.NOT_EQUAL:
                text.append(f"AND NOT {table}.tokens && {parameter(list(condition.tokens))}::text[]")
                text.append(f"AND {some(*anything)}")
            case Operator.EXISTS:
                text.append(f"AND {some(*anything)}")
            case Operator.MISSING:
                text.append(f"AND NOT {some(*anything)}")
            case Operator.GT | Operator.GTE | Operator.LT | Operator.LTE:
                bounds = (condition.low, condition.low_open, condition.high, condition.high_open)
                text.append(f"AND {some(*bounds)}")
    return Residual(" ".join(text), values)


def between(bounds: Bounds) -> dict[str, Value]:
    """The parameters of an interval."""
    after, before = bounds.after or _FIRST, bounds.before or _LAST
    return {
        "after_at": after.at,
        "after_seq": after.seq,
        "after_id": after.id,
        "before_at": before.at,
        "before_seq": before.seq,
        "before_id": before.id,
    }
