"""What a filter may say, and which tokens it turns into."""

from __future__ import annotations

import enum
import math
import operator as python_operator
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep import InvalidFilterError, exists, gt, gte, lt, lte, missing, not_equal, one_of
from threadkeep.filters import Condition, Operation, Operator, conditions
from threadkeep.tokens import token


def condition(given: Any) -> Condition:
    (found,) = conditions({"k": given})
    return found


def selects(condition: Condition, value: object) -> bool:
    """Whether a range or ``exists`` has a value, by its token."""
    at = token(condition.key, value)
    above = at > condition.low if condition.low_open else at >= condition.low
    below = at < condition.high if condition.high_open else at <= condition.high
    return above and below


def test_no_filter_and_an_empty_one_have_no_conditions() -> None:
    assert conditions(None) == conditions({}) == ()


def test_plain_values_are_equality_in_the_given_order() -> None:
    found = conditions({"b": 1, "a": "x"})

    assert [(c.key, c.operator, c.values, c.tokens) for c in found] == [
        ("b", Operator.EQUAL, (1,), (token("b", 1),)),
        ("a", Operator.EQUAL, ("x",), (token("a", "x"),)),
    ]


def test_conditions_of_a_tuple_all_hold() -> None:
    assert [c.operator for c in conditions({"k": (gte(5), lt(10)), "x": missing()})] == [
        Operator.GTE,
        Operator.LT,
        Operator.MISSING,
    ]


def test_any_mapping_is_a_filter() -> None:
    assert conditions(MappingProxyType({"k": 1})) == conditions({"k": 1})


def test_equal_tokens_come_once() -> None:
    assert condition(one_of(1, 1.0, True, 1)).tokens == (token("k", 1), token("k", True))


def test_one_of_nothing_is_legal_and_has_no_tokens() -> None:
    assert condition(one_of()).tokens == ()


COMPARE: dict[Callable[[Any], Operation], Callable[[Any, Any], bool]] = {
    gt: python_operator.gt,
    gte: python_operator.ge,
    lt: python_operator.lt,
    lte: python_operator.le,
}
numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False))
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=64)


@given(st.sampled_from(list(COMPARE)), st.one_of(st.tuples(numbers, numbers), st.tuples(texts, texts)))
def test_a_range_selects_what_python_compares_so(operator: Any, pair: tuple[Any, Any]) -> None:
    bound, value = pair

    assert selects(condition(operator(bound)), value) == COMPARE[operator](value, bound)


EMPTY: dict[str, object] = {}


@pytest.mark.parametrize("operator", list(COMPARE))
@pytest.mark.parametrize(
    ("bound", "others"),
    [(5, ["5", "", None, True, False, "N/A", EMPTY]), ("5", [5, -1e308, 1e308, None, True, False, EMPTY])],
)
def test_a_range_selects_no_other_type(operator: Any, bound: Any, others: list[object]) -> None:
    assert not any(selects(condition(operator(bound)), other) for other in others)


@pytest.mark.parametrize("value", [None, False, True, 0, -1e308, 1e308, "", "\U0010ffff", {}, []])
def test_exists_selects_every_type(value: object) -> None:
    assert selects(condition(exists()), value)


def test_exists_does_not_select_a_key_that_starts_alike() -> None:
    found = condition(exists())

    assert not found.low <= token("k2", 1) < found.high
    assert not found.low <= token("k_", 1) < found.high


class Colour(enum.Enum):
    RED = "red"


BAD_VALUES: dict[str, Any] = {
    "operator dict": {"$ne": ""},
    "empty dict": {},
    "empty list": [],
    "list": ["a"],
    "set": {"a"},
    "bytes": b"x",
    "nan": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "2**63": 2**63,
    "below int64": -(2**63) - 1,
    "huge": 10**5000,
    "complex": 1j,
    "object": object(),
    "enum": Colour.RED,
    "NUL": "a\0b",
    "surrogate": "\ud800",
    "tuple in a tuple": ((1,),),
    "range": range(3),
}


@pytest.mark.parametrize("value", [*BAD_VALUES.values(), ()], ids=[*BAD_VALUES, "empty tuple"])
def test_an_illegal_value_is_refused_by_key(value: Any) -> None:
    with pytest.raises(InvalidFilterError) as caught:
        conditions({"k": value})

    assert caught.value.argument == "where.k"


@pytest.mark.parametrize("operator", [gt, gte, lt, lte, one_of, not_equal])
@pytest.mark.parametrize("value", BAD_VALUES.values(), ids=BAD_VALUES)
def test_an_illegal_operand_is_refused(operator: Any, value: Any) -> None:
    with pytest.raises(InvalidFilterError):
        conditions({"k": operator(value)})


@pytest.mark.parametrize("operator", [gt, gte, lt, lte])
@pytest.mark.parametrize("value", [None, True, False, "x" * 65])
def test_a_range_needs_a_number_or_a_short_string(operator: Any, value: Any) -> None:
    with pytest.raises(InvalidFilterError, match="compared with"):
        conditions({"k": operator(value)})


@pytest.mark.parametrize(
    "key",
    [
        "",
        "1a",
        "a.b",
        "x') OR '1'='1",
        "$where",
        "__proto__",
        "x" * 129,
        "é",
        "a\0",
        "\ud800",
        1,
        None,
        True,
        b"k",
        ("k",),
    ],
)
def test_an_illegal_key_is_refused(key: Any) -> None:
    with pytest.raises(InvalidFilterError) as caught:
        conditions({key: 1})

    assert caught.value.argument == "where"
    str(caught.value).encode()  # a lone surrogate in it would break every log


@pytest.mark.parametrize("where", [0, False, "", "k=1", [], [("k", 1)], (), 1.5, b"k", object(), exists()])
def test_what_is_no_mapping_is_refused_even_where_it_is_false(where: Any) -> None:
    with pytest.raises(InvalidFilterError):
        conditions(where)


def test_the_error_does_not_repeat_a_long_key() -> None:
    with pytest.raises(InvalidFilterError) as caught:
        conditions({"-" * 10_000: 1})

    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "forged",
    [
        Operation(Operator.GT, ()),
        Operation(Operator.GT, (1, 2)),
        Operation(Operator.EXISTS, (1,)),
        Operation(Operator.NOT_EQUAL, ()),
        Operation("$where", ("1",)),  # pyright: ignore[reportArgumentType]  (what a caller may do all the same)
        Operation(Operator.ONE_OF, "abc"),  # pyright: ignore[reportArgumentType]  (the same)
        Operation(Operator.ONE_OF, None),  # pyright: ignore[reportArgumentType]  (the same)
    ],
    ids=str,
)
def test_an_operation_made_by_hand_is_checked_too(forged: Operation) -> None:
    with pytest.raises(InvalidFilterError):
        conditions({"k": forged})


def test_too_many_conditions_and_values_are_refused() -> None:
    assert len(conditions({f"k{i}": i for i in range(64)})) == 64
    assert len(condition(one_of(*range(100))).tokens) == 100
    with pytest.raises(InvalidFilterError):
        conditions({f"k{i}": i for i in range(65)})
    with pytest.raises(InvalidFilterError):
        conditions({"k": one_of(*range(101))})


def test_subclasses_of_plain_types_come_out_plain() -> None:
    class Text(str):
        __slots__ = ()

    class Level(enum.IntEnum):
        HIGH = 3

    found = conditions({Text("k"): Text("a"), "level": Level.HIGH})

    assert [type(c.key) for c in found] == [str, str]
    assert [type(c.values[0]) for c in found] == [str, int]
