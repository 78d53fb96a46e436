"""Metadata filters: what a caller writes, and the checked conditions an adapter gets.

A filter is a dict of top-level keys, all of which must hold: a plain value is exact, typed equality; the
functions below build the other conditions; a tuple of conditions on one key must hold together::

    where = {"category": "billing", "priority": (gte(5), lt(10)), "archived_at": missing()}

A dict or list is never a condition, so no value from outside can act as an operator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import cast

import msgspec

from .errors import InvalidFilterError
from .jsontext import has_surrogate, kind
from .tokens import STRING_PREFIX, Scalar, is_filter_key, token

__all__ = [
    "Condition",
    "Operation",
    "Operator",
    "Where",
    "conditions",
    "exists",
    "gt",
    "gte",
    "lt",
    "lte",
    "missing",
    "not_equal",
    "one_of",
]

_CONDITIONS_MAX = 64
_VALUES_MAX = 100
_KEY_SHOWN = 100
_INT64 = 2**63


class Operator(StrEnum):
    """How a stored value is compared."""

    EQUAL = "equal"
    ONE_OF = "one_of"
    NOT_EQUAL = "not_equal"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    EXISTS = "exists"
    MISSING = "missing"


class Operation(msgspec.Struct, frozen=True):
    """A condition other than plain equality; made by the functions of this module.

    Attributes:
        operator: How to compare.
        values: With what: none for ``exists`` and ``missing``, any number for ``one_of``, else one.
    """

    operator: Operator
    values: tuple[Scalar, ...] = ()


Where = Mapping[str, Scalar | Operation | tuple[Scalar | Operation, ...]]
"""A filter as a caller writes it."""


def gt(value: str | float) -> Operation:
    """Greater than: numbers with numbers, strings with strings by code point; another type does not match."""
    return Operation(Operator.GT, (value,))


def gte(value: str | float) -> Operation:
    """Greater than or equal to; types as for :func:`gt`."""
    return Operation(Operator.GTE, (value,))


def lt(value: str | float) -> Operation:
    """Less than; types as for :func:`gt`."""
    return Operation(Operator.LT, (value,))


def lte(value: str | float) -> Operation:
    """Less than or equal to; types as for :func:`gt`."""
    return Operation(Operator.LTE, (value,))


def one_of(*values: Scalar) -> Operation:
    """Equal to one of up to 100 values; of none, nothing matches."""
    return Operation(Operator.ONE_OF, values)


def not_equal(value: Scalar) -> Operation:
    """The key exists and is not equal to the value; null, lists and objects satisfy it."""
    return Operation(Operator.NOT_EQUAL, (value,))


def exists() -> Operation:
    """The key exists, with whatever value."""
    return Operation(Operator.EXISTS)


def missing() -> Operation:
    """The key does not exist; null exists."""
    return Operation(Operator.MISSING)


class Condition(msgspec.Struct, frozen=True):
    """One checked condition, as values and as tokens; an adapter uses whichever it stores.

    Attributes:
        key: A legal filter key: safe inside a JSON path, though never inside a query's text.
        operator: How to compare.
        values: The plain operands.
        tokens: For ``equal``, ``one_of`` and ``not_equal``: the operands' tokens, each once.
        low: For ``exists`` and ranges: the least token that matches ...
        low_open: ... itself excluded.
        high: The greatest token that matches ...
        high_open: ... itself excluded.
    """

    key: str
    operator: Operator
    values: tuple[Scalar, ...]
    tokens: tuple[str, ...] = ()
    low: str = ""
    low_open: bool = False
    high: str = ""
    high_open: bool = False


_POINTS = frozenset({Operator.EQUAL, Operator.ONE_OF, Operator.NOT_EQUAL})
_BELOW = frozenset({Operator.LT, Operator.LTE})
_ALONE = frozenset({Operator.EXISTS, Operator.MISSING})


def conditions(where: Where | None, argument: str = "where") -> tuple[Condition, ...]:
    """Check a filter.

    Returns:
        Its conditions, in the given order; none for None and for an empty filter.

    Raises:
        InvalidFilterError: An illegal key, value or operator, or more than 64 conditions.
    """
    if where is None:
        return ()
    if type(cast(object, where)) is not dict and not isinstance(cast(object, where), Mapping):
        raise InvalidFilterError(argument, "a dict of metadata keys", kind(where))
    found: list[Condition] = []
    for name, given in where.items():
        key = _key(name, argument)
        at = f"{argument}.{key}"
        if not isinstance(given, tuple):
            found.append(_condition(key, given, at))
        elif given:
            found.extend([_condition(key, item, at) for item in given])
        else:
            raise InvalidFilterError(at, "a value, a condition or a tuple of some", "an empty tuple")
    if len(found) > _CONDITIONS_MAX:
        raise InvalidFilterError(
            argument, f"at most {_CONDITIONS_MAX} conditions", f"{len(found)} conditions"
        )
    return tuple(found)


def _key(name: object, argument: str) -> str:
    if isinstance(name, str) and is_filter_key(name):
        return name if type(name) is str else str.__str__(name)
    rule = "a key of ASCII letters, digits and _, at most 128, the first no digit, and not reserved"
    shown = ascii(name[:_KEY_SHOWN]) if isinstance(name, str) else kind(name)
    raise InvalidFilterError(argument, rule, f"the key {shown}")


def _condition(key: str, given: object, at: str) -> Condition:
    if not isinstance(given, Operation):
        plain = _scalar(given, at)
        return Condition(key, Operator.EQUAL, (plain,), (token(key, plain),))
    operator, values = given.operator, given.values
    _check_operation(operator, values, at)
    if operator is Operator.EXISTS:
        return Condition(key, operator, (), low=f"{key}=", high=f"{key}>", high_open=True)
    if operator is Operator.MISSING:
        return Condition(key, operator, ())
    if operator not in _POINTS:
        return _range(key, operator, _bound(values[0], at))
    points = tuple([_scalar(value, at) for value in values])
    return Condition(key, operator, points, tuple(dict.fromkeys([token(key, value) for value in points])))


def _check_operation(operator: object, values: object, at: str) -> None:
    """Refuse what only somebody who makes an :class:`Operation` by hand can give, and too many values."""
    if not isinstance(operator, Operator) or not isinstance(values, tuple):
        raise InvalidFilterError(at, "a condition made by a function such as gte", "another Operation")
    count = len(cast("tuple[object, ...]", values))
    if operator is Operator.ONE_OF:
        if count > _VALUES_MAX:
            raise InvalidFilterError(at, f"one of at most {_VALUES_MAX} values", f"{count} values")
    elif count != (0 if operator in _ALONE else 1):
        raise InvalidFilterError(at, "a condition made by a function such as gte", f"{count} values")


def _range(key: str, operator: Operator, bound: str | float) -> Condition:
    tag = "5" if isinstance(bound, str) else "4"
    edge = token(key, bound)
    is_open = operator in (Operator.GT, Operator.LT)
    if operator in _BELOW:
        return Condition(key, operator, (bound,), low=f"{key}={tag}", high=edge, high_open=is_open)
    end = f"{key}={chr(ord(tag) + 1)}"
    return Condition(key, operator, (bound,), low=edge, low_open=is_open, high=end, high_open=True)


def _bound(value: object, at: str) -> str | float:
    bound = _scalar(value, at)
    if bound is None or isinstance(bound, bool):
        raise InvalidFilterError(at, "compared with a number or a str", kind(bound))
    if isinstance(bound, str) and len(bound) > STRING_PREFIX:
        raise InvalidFilterError(
            at, f"compared with a str of at most {STRING_PREFIX} characters", kind(bound)
        )
    return bound


def _scalar(value: object, at: str) -> Scalar:
    if isinstance(value, str):
        if "\0" in value or has_surrogate(value):
            raise InvalidFilterError(at, "a str without NUL and lone surrogates", kind(value))
        return value if type(value) is str else str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -_INT64 <= value < _INT64:
            raise InvalidFilterError(at, "an integer within int64", kind(value))
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidFilterError(at, "a finite number", kind(value))
        return float(value)
    raise InvalidFilterError(at, "a str, int, float, bool, None or a condition such as gte(5)", kind(value))
