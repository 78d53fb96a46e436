"""Tokens compare as the values do: exactly, within a type, and apart from every other type."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from threadkeep.tokens import STRING_PREFIX, is_filter_key, metadata_tokens, token

VECTORS = json.loads((Path(__file__).parent / "data" / "token_vectors.json").read_text(encoding="utf-8"))[
    "vectors"
]

INT64 = 2**63
EDGES = [
    *(sign * (2**power + delta) for power in (0, 52, 53, 54, 62) for delta in (-1, 0, 1) for sign in (-1, 1)),
    INT64 - 1,
    INT64 - 2,
    INT64 - 512,
    INT64 - 513,
    -INT64,
    -INT64 + 1,
    float(2**53),
    float(2**63),
    -float(2**63),
    float(2**63 - 1024),
    0.0,
    -0.0,
    sys.float_info.min,
    sys.float_info.max,
    sys.float_info.epsilon,
    5e-324,
    -5e-324,
    1e308,
    -1e308,
    1e16,
    0.1,
]
integers = st.integers(-INT64, INT64 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
numbers = st.one_of(integers, floats, st.sampled_from(EDGES))
near = st.tuples(st.sampled_from(EDGES), st.integers(-3, 3)).map(
    lambda edge: max(-INT64, min(INT64 - 1, int(edge[0]) + edge[1]))
)
strings = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_the_shared_vectors_hold(vector: dict[str, object]) -> None:
    assert token("k", vector["value"]) == vector["token"]


def test_all_sixty_seven_vectors_are_tested() -> None:
    assert len(VECTORS) == 67


@given(one=st.one_of(numbers, near), other=st.one_of(numbers, near))
@example(one=2**53, other=2**53 + 1)
@example(one=2**53 + 1, other=float(2**53))
@example(one=INT64 - 1, other=float(2**63))
@example(one=INT64 - 1, other=float(2**63 - 1024))
@example(one=-INT64, other=-float(2**63))
@example(one=1, other=1.0)
@example(one=0, other=-0.0)
@example(one=5e-324, other=0)
@example(one=1e308, other=INT64 - 1)
def test_numbers_order_as_exact_fractions(one: float, other: float) -> None:
    exact = (Fraction(one) > Fraction(other)) - (Fraction(one) < Fraction(other))
    tokens = token("k", one), token("k", other)

    assert (tokens[0] > tokens[1]) - (tokens[0] < tokens[1]) == exact


@given(numbers)
def test_a_number_takes_sixteen_characters_of_ascii(value: float) -> None:
    text = token("k", value)

    assert text.startswith("k=4")
    assert len(text) == len("k=4") + 16
    assert text.isascii()


@given(
    one=strings.filter(lambda s: len(s) <= STRING_PREFIX),
    other=strings.filter(lambda s: len(s) <= STRING_PREFIX),
)
def test_short_strings_order_by_code_point(one: str, other: str) -> None:
    assert (token("k", one) < token("k", other)) == (one < other)


@given(
    value=st.text("ab\U0001f600", min_size=0, max_size=70),
    bound=st.text("ab\U0001f600", max_size=STRING_PREFIX),
)
def test_a_long_string_orders_right_against_every_bound_a_filter_allows(value: str, bound: str) -> None:
    assert (token("k", value) < token("k", bound)) == (value < bound)


@given(strings, strings)
@example("x" * 64, "x" * 65)
@example("x" * 65, "x" * 66)
@example("é", "e\u0301")
def test_two_strings_share_a_token_only_if_they_are_equal(one: str, other: str) -> None:
    assert (token("k", one) == token("k", other)) == (one == other)


def test_no_string_can_pose_as_a_longer_one() -> None:
    long = "x" * 200

    assert token("k", token("k", long).removeprefix("k=5")) != token("k", long)


@given(st.text("a\U0001f600\ue000z", max_size=5), st.text("a\U0001f600\ue000z", max_size=5))
def test_code_point_order_is_the_order_of_utf8_bytes(one: str, other: str) -> None:
    first, second = token("k", one), token("k", other)

    assert (first < second) == (first.encode() < second.encode())


@pytest.mark.parametrize(
    ("smaller", "greater"),
    [({}, None), (None, False), (False, True), (True, -1e308), (1e308, ""), (INT64 - 1, "0")],
)
def test_types_never_overlap(smaller: object, greater: object) -> None:
    assert token("k", smaller) < token("k", greater)


@pytest.mark.parametrize("value", [[], {}, [1], {"a": 1}, [None], ["k"]])
def test_every_list_and_object_has_the_same_token(value: object) -> None:
    assert token("k", value) == "k=0"


def test_true_is_not_one_even_after_the_other_was_asked_for_first() -> None:
    for value in (1, 1.0, True, 0, 0.0, False):
        token("fresh", value)

    assert token("fresh", True) == "fresh=3"
    assert token("fresh", 1) == token("fresh", 1.0) != token("fresh", True)
    assert token("fresh", False) == "fresh=2"


def test_a_subclass_of_str_has_the_token_of_its_text() -> None:
    class Text(str):
        __slots__ = ()

    assert token("k", Text("a")) == token("k", "a")
    assert token("k", Text("a" * 70)) == token("k", "a" * 70)


@pytest.mark.parametrize("key", ["a", "_", "_1", "A9", "x" * 128])
def test_keys_of_letters_digits_and_underscores_can_be_filtered(key: str) -> None:
    assert is_filter_key(key)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "1a",
        "a-b",
        "a.b",
        "a b",
        "a=b",
        "é",
        "a\n",
        "a\0",
        "$ne",
        "x" * 129,
        "__proto__",
        "prototype",
        "constructor",
    ],
)
def test_other_keys_cannot(key: str) -> None:
    assert not is_filter_key(key)


def test_metadata_has_one_token_per_filterable_top_level_key() -> None:
    metadata = {"b": 1, "not a key": 2, "a": {"deep": 3}, "__proto__": 4, "n": None}

    assert metadata_tokens(metadata) == (token("b", 1), "a=0", "n=1")
