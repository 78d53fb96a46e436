"""Metadata filters beyond equality."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from threadkeep import (
    Capability,
    InvalidFilterError,
    Store,
    exists,
    gt,
    gte,
    lt,
    lte,
    missing,
    not_equal,
    one_of,
)

from ..cases import case
from .base import AdapterSuite
from .filtering import ABSENT, MIXED, matching, number, values_stored
from .samples import NUMBERS, add, at, filled_thread, ids

__all__ = ["TestFilterOperators"]

MIXED_INDEX = {value: index for index, value in enumerate(MIXED) if isinstance(value, str)}
MIXED_TRUE = next(index for index, value in enumerate(MIXED) if value is True)
MIXED_NULL = next(index for index, value in enumerate(MIXED) if value is None)
MIXED_ONE = next(index for index, value in enumerate(MIXED) if type(value) is int and value == 1)


class TestFilterOperators(AdapterSuite):
    """Conditions beyond equality."""

    requires = frozenset({Capability.FILTER_OPERATORS})

    @case("messages.filter.ranges_of_numbers", "5.4.ranges")
    async def test_ranges_compare_numbers_exactly(self, store: Store) -> None:
        """gt, gte, lt and lte agree with exact arithmetic for every pair of extreme numbers."""
        await values_stored(store, NUMBERS)

        for bound in NUMBERS:
            exact = [Fraction(value) for value in NUMBERS]
            edge = Fraction(bound)
            assert await matching(store, {"k": gt(bound)}) == {i for i, v in enumerate(exact) if v > edge}
            assert await matching(store, {"k": gte(bound)}) == {i for i, v in enumerate(exact) if v >= edge}
            assert await matching(store, {"k": lt(bound)}) == {i for i, v in enumerate(exact) if v < edge}
            assert await matching(store, {"k": lte(bound)}) == {i for i, v in enumerate(exact) if v <= edge}

    @case("messages.filter.numbers_are_no_text", "5.4.ranges")
    async def test_nine_is_less_than_ten(self, store: Store) -> None:
        """Numbers are never compared as text: 9 is not gte(10), -2 is less than -1."""
        await values_stored(store, (9, 10, 100, -1, -2, 0.5))

        assert await matching(store, {"k": gte(10)}) == {1, 2}
        assert await matching(store, {"k": lt(0)}) == {3, 4}
        assert await matching(store, {"k": lt(-1)}) == {4}

    @case("messages.filter.ranges_skip_other_types", "5.4.ranges")
    async def test_another_type_does_not_match_and_does_not_fail(self, store: Store) -> None:
        """Among values of every kind a range over numbers finds numbers, one over strings strings, and no
        query fails.
        """
        await values_stored(store, (*MIXED, "N/A"))
        numbers = {i for i, v in enumerate(MIXED) if number(v) is not None}
        texts = {i for i, v in enumerate((*MIXED, "N/A")) if isinstance(v, str)}

        assert await matching(store, {"k": gte(-(10**18))}) == numbers
        assert await matching(store, {"k": lte(10**18)}) == numbers
        assert await matching(store, {"k": gte("")}) == texts
        assert await matching(store, {"k": lt("\U0010ffff")}) == texts

    @case("messages.filter.ranges_of_strings", "5.4.ranges", "4.1.compare")
    async def test_strings_are_compared_by_code_point(self, store: Store) -> None:
        """Ranges over strings follow code points, also beyond the Basic Multilingual Plane, never a
        collation.
        """
        values = (
            "",
            " ",
            "10",
            "9",
            "A",
            "B",
            "a",
            "aa",
            "b",
            "é",
            "z",
            "\uffff",
            "\U00010000",
            "\U0010ffff",
            "a\x01",
            "a ",
        )
        await values_stored(store, values)

        for bound in values:
            assert await matching(store, {"k": gt(bound)}) == {i for i, v in enumerate(values) if v > bound}
            assert await matching(store, {"k": gte(bound)}) == {i for i, v in enumerate(values) if v >= bound}
            assert await matching(store, {"k": lt(bound)}) == {i for i, v in enumerate(values) if v < bound}
            assert await matching(store, {"k": lte(bound)}) == {i for i, v in enumerate(values) if v <= bound}

    @case("messages.filter.ranges_over_long_strings", "5.4.ranges", "5.4.long")
    async def test_long_stored_strings_compare_with_short_bounds(self, store: Store) -> None:
        """Stored strings of more than 64 characters stand on the right side of every bound of up to 64."""
        values = ("x" * 64, "x" * 65, "x" * 64 + "a" * 900, "x" * 63 + "y", "x" * 63, "w" * 200)
        await values_stored(store, values)

        for bound in ("x" * 64, "x" * 63, "x", "y", "w" * 64):
            assert await matching(store, {"k": gt(bound)}) == {i for i, v in enumerate(values) if v > bound}
            assert await matching(store, {"k": gte(bound)}) == {i for i, v in enumerate(values) if v >= bound}
            assert await matching(store, {"k": lt(bound)}) == {i for i, v in enumerate(values) if v < bound}
            assert await matching(store, {"k": lte(bound)}) == {i for i, v in enumerate(values) if v <= bound}

    @case("messages.filter.long_bound", "5.4.long")
    async def test_a_bound_of_more_than_64_characters_is_refused(self, store: Store) -> None:
        """A string bound over 64 code points is InvalidFilterError; 64 are fine, also of four bytes each."""
        await values_stored(store, ("a",))

        assert await matching(store, {"k": lt("\U0001f600" * 64)}) == {0}
        for operator in (gt, gte, lt, lte):
            with pytest.raises(InvalidFilterError):
                await store.list_messages("t", where={"k": operator("x" * 65)})

    @case("messages.filter.bounds_are_numbers_or_strings", "5.4.values")
    async def test_only_numbers_and_strings_have_an_order(self, store: Store) -> None:
        """Ranges with bools, None, lists, dicts, NaN and integers beyond int64 are InvalidFilterError."""
        await values_stored(store, (1,))
        assert await matching(store, {"k": gte(1)}) == {0}
        wrong: list[Any] = [True, None, [], {}, math.nan, math.inf, 2**63, b"x"]
        for bound in wrong:
            for operator in (gt, gte, lt, lte):
                with pytest.raises(InvalidFilterError):
                    await store.list_messages("t", where={"k": operator(bound)})

    @case("messages.filter.one_of", "5.4.one_of")
    async def test_one_of_is_equality_with_any(self, store: Store) -> None:
        """one_of finds each value with the rules of equality, each row once; unknown values add nothing."""
        await values_stored(store, MIXED)

        assert await matching(store, {"k": one_of(True, None, "1")}) == {
            MIXED_INDEX["1"],
            MIXED_TRUE,
            MIXED_NULL,
        }
        assert await matching(store, {"k": one_of(1, 1.0, 1)}) == {MIXED_ONE}
        assert await matching(store, {"k": one_of("unknown", 99)}) == set()

    @case("messages.filter.one_of_none", "5.4.one_of", "3.empty_list")
    async def test_one_of_nothing_matches_nothing(self, store: Store) -> None:
        """one_of() without values selects nothing, alone or with other keys."""
        await values_stored(store, MIXED)

        assert await matching(store, {"k": one_of()}) == set()
        page = await store.list_messages("t", where={"k": one_of()}, with_total=True)
        assert (page.items, page.total, page.has_more) == ([], 0, False)

    @case("messages.filter.one_of_in_order", "5.4.one_of", "4.5.total")
    async def test_one_of_keeps_the_order_over_pages(self, store: Store) -> None:
        """Matches of different values come in one total order, through pages and cursors."""
        await store.create_thread("user-1", thread_id="t")
        for index in range(12):
            await add(store, "t", f"m{index:02}", metadata={"k": index % 4})

        where = {"k": one_of(3, 1)}
        expected = [f"m{index:02}" for index in range(12) if index % 4 in (1, 3)]
        assert ids(await store.list_messages("t", where=where)) == expected
        assert [
            m.id async for m in store.iter_messages("t", where=where, per_page=2, order="desc")
        ] == expected[::-1]
        assert ids(await store.list_messages("t", where=where, page=1, per_page=4)) == expected[4:]

    @case("messages.filter.one_of_many", "5.4.one_of")
    async def test_one_of_takes_a_hundred_values(self, store: Store) -> None:
        """A hundred values are fine."""
        await values_stored(store, tuple(range(120)))

        assert await matching(store, {"k": one_of(*range(10, 110))}) == set(range(10, 110))

    @case("messages.filter.not_equal", "5.4.not_equal")
    async def test_not_equal_needs_the_key(self, store: Store) -> None:
        """not_equal finds every row that has the key with another value: null, lists and objects, no
        missing key.
        """
        await values_stored(store, MIXED)
        everything = {index for index, value in enumerate(MIXED) if value is not ABSENT}

        for index, value in enumerate(MIXED):
            if value is not ABSENT and not isinstance(value, (list, dict)):
                assert await matching(store, {"k": not_equal(value)}) == everything - {index}
        assert await matching(store, {"k": not_equal("elsewhere")}) == everything

    @case("messages.filter.not_equal_numbers", "5.4.not_equal", "5.4.typed")
    async def test_not_equal_compares_as_equality_does(self, store: Store) -> None:
        """1.0 is not different from 1, True is, and 2**53 + 1 is from 2**53."""
        await values_stored(store, (1, 1.0, True, 2**53, 2**53 + 1, float(2**53)))

        assert await matching(store, {"k": not_equal(1)}) == {2, 3, 4, 5}
        assert await matching(store, {"k": not_equal(2**53)}) == {0, 1, 2, 4}

    @case("messages.filter.exists_and_missing", "5.4.exists")
    async def test_exists_and_missing_look_at_the_key_alone(self, store: Store) -> None:
        """exists finds every row with the key, null and empty values too; missing all others."""
        await values_stored(store, MIXED)
        absent = {index for index, value in enumerate(MIXED) if value is ABSENT}

        assert await matching(store, {"k": exists()}) == set(range(len(MIXED))) - absent
        assert await matching(store, {"k": missing()}) == absent
        assert await matching(store, {"unknown": missing()}) == set(range(len(MIXED)))
        assert await matching(store, {"unknown": exists()}) == set()

    @case("messages.filter.prefix_keys", "5.4.exists", "5.4.keys")
    async def test_keys_that_begin_alike_are_kept_apart(self, store: Store) -> None:
        """k, k_, k1, kk and K are different keys for every operator."""
        await store.create_thread("user-1", thread_id="t")
        keys = ("k", "k_", "k1", "kk", "K")
        for key in keys:
            await add(store, "t", key, metadata={key: 5})

        for key in keys:
            for condition in (exists(), gte(5), lte(5), one_of(5), not_equal(6)):
                assert ids(await store.list_messages("t", where={key: condition})) == [key]
            assert ids(await store.list_messages("t", where={key: missing()})) == [
                name for name in keys if name != key
            ]

    @case("messages.filter.tuple", "5.4.and")
    async def test_a_tuple_of_conditions_must_hold_together(self, store: Store) -> None:
        """Several conditions on one key and on several keys are one conjunction."""
        await store.create_thread("user-1", thread_id="t")
        for index in range(12):
            await add(store, "t", f"{index}", metadata={"p": index, **({"x": 1} if index % 2 else {})})

        assert ids(await store.list_messages("t", where={"p": (gte(5), lt(10)), "x": missing()})) == [
            "6",
            "8",
        ]
        assert ids(await store.list_messages("t", where={"p": (gte(5), lt(10), not_equal(7)), "x": 1})) == [
            "5",
            "9",
        ]
        assert ids(await store.list_messages("t", where={"p": (gte(5), lt(5))})) == []
        assert ids(await store.list_messages("t", where={"p": (3, gt(2))})) == ["3"]
        assert ids(await store.list_messages("t", where={"p": (3, 4)})) == []

    @case("messages.filter.operators_are_no_dicts", "5.4.values")
    async def test_an_empty_tuple_is_no_condition(self, store: Store) -> None:
        """An empty tuple, more than 100 values and more than 64 conditions are InvalidFilterError."""
        await values_stored(store, (1,))
        assert await matching(store, {"k": one_of(1)}) == {0}
        wrong: list[Any] = [
            {"k": ()},
            {"k": one_of(*range(101))},
            {"k": (gte(1),) * 65},
            {f"k{i}": 1 for i in range(65)},
        ]
        for where in wrong:
            with pytest.raises(InvalidFilterError):
                await store.list_messages("t", where=where)

    @case("messages.filter.operators_with_pages", "5.4.first", "5.1.total")
    async def test_every_operator_pages_exactly(self, store: Store) -> None:
        """With every operator, pages, totals, has_more and walks agree with the whole answer, in both
        orders.
        """
        names = await filled_thread(store, 30)
        conditions: dict[Any, list[int]] = {
            gte(20): list(range(20, 30)),
            lt(7): list(range(7)),
            one_of(3, 29, 14): [3, 14, 29],
            not_equal(5): [i for i in range(30) if i != 5],
            exists(): list(range(30)),
        }
        for condition, matches in conditions.items():
            where = {"index": condition}
            expected = [names[i] for i in matches]
            page = await store.list_messages("thread-1", where=where, page=1, per_page=4, with_total=True)
            assert (ids(page), page.total) == (expected[4:8], len(expected))
            assert page.has_more is (len(expected) > 8)
            walked = [
                m.id async for m in store.iter_messages("thread-1", where=where, order="desc", per_page=4)
            ]
            assert walked == expected[::-1]

    @case("threads.filter.operators", "5.4.first", "5.4.ranges")
    async def test_operators_apply_to_threads_in_both_orders(self, store: Store) -> None:
        """Ranges over threads page and walk in the order of creation and of change."""
        for index in range(12):
            await store.create_thread(
                "user-1", thread_id=f"t{index:02}", metadata={"i": index}, created_at=at(index)
            )
        await store.update_thread("t06", title="x")

        created = [t.id async for t in store.iter_threads(where={"i": gte(5)}, per_page=2)]
        changed = [
            t.id async for t in store.iter_threads(where={"i": gte(5)}, order_by="updated_at", per_page=2)
        ]

        expected = [f"t{index:02}" for index in range(11, 4, -1)]
        assert created == expected
        assert changed == ["t06", *[name for name in expected if name != "t06"]]
        assert (await store.list_threads(where={"i": (gte(5), lt(9))}, with_total=True)).total == 4
