"""Metadata filters: typed equality, operators, hostile keys and values, on messages and threads alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from threadkeep import (
    Capability,
    InvalidArgumentError,
    InvalidFilterError,
    NewMessage,
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
from ..databases import Database
from .base import AdapterSuite
from .samples import HOSTILE, NUMBERS, add, at, filled_thread, ids

__all__ = ["TestFilterChecks", "TestFilterEquality", "TestFilterOperators", "TestFilterQueries"]

ABSENT = object()
MIXED: tuple[Any, ...] = (
    ABSENT, None, False, True, 0, 1, 1.5, -1, "", "0", "1", "1.0", "true", "null", "None",
    [], [1], [None], {}, {"x": 1},
)  # fmt: skip
"""One value of every kind that some database confuses with another."""


async def values_stored(store: Store, values: tuple[Any, ...], key: str = "k") -> None:
    """One message and one thread for each value, named by its index, without the key for ABSENT."""
    await store.create_thread("user-1", thread_id="t")
    rows: list[dict[str, Any]] = [{} if value is ABSENT else {key: value} for value in values]
    await store.save_messages(
        [NewMessage("t", "user", 0, id=f"{i}", metadata=row) for i, row in enumerate(rows)]
    )
    for index, row in enumerate(rows):
        await store.create_thread("user-2", thread_id=f"{index}", metadata=row, created_at=at(index))


async def matching(store: Store, where: Mapping[str, Any]) -> set[int]:
    """The indexes of the values that a filter finds: the same among messages and threads."""
    messages = await store.list_messages("t", where=where, per_page=None, with_total=True)
    threads = await store.list_threads(resource_id="user-2", where=where, per_page=None, with_total=True)
    found = {int(name) for name in ids(messages)}
    assert found == {int(name) for name in ids(threads)}
    assert messages.total == threads.total == len(found)
    return found


def number(value: Any) -> Fraction | None:
    """The exact value of a number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return Fraction(value)


class TestFilterEquality(AdapterSuite):
    """Exact, typed equality."""

    @case("messages.filter.bool_is_not_int", "5.4.typed")
    async def test_true_is_not_one(self, store: Store) -> None:
        """True matches True alone, never 1, 1.0 or "true"; False never 0."""
        values: tuple[Any, ...] = (True, 1, 1.0, "true", "True", False, 0, 0.0, -0.0, "", None)
        await values_stored(store, values)

        assert await matching(store, {"k": True}) == {0}
        assert await matching(store, {"k": False}) == {5}
        assert await matching(store, {"k": 1}) == {1, 2}
        assert await matching(store, {"k": 0}) == {6, 7, 8}

    @case("messages.filter.str_is_not_number", "5.4.typed")
    async def test_a_string_is_not_the_number_it_looks_like(self, store: Store) -> None:
        """Numeric-looking strings match themselves alone, whole: no cast, no trimming."""
        values: tuple[Any, ...] = (
            "1",
            1,
            " 1",
            "1 ",
            "1.0",
            "01",
            "1e3",
            1000,
            "1000",
            "2024_123",
            2024,
            "2024123",
        )
        await values_stored(store, values)

        for index, value in enumerate(values):
            assert await matching(store, {"k": value}) == {index}

    @case("messages.filter.one_number", "5.4.typed")
    async def test_one_and_one_point_zero_are_one_number(self, store: Store) -> None:
        """1 and 1.0 match each other, and 0, 0.0 and -0.0 do."""
        await values_stored(store, (1, 1.0, 0, 0.0, -0.0))

        for value in (1, 1.0):
            assert await matching(store, {"k": value}) == {0, 1}
        for value in (0, 0.0, -0.0):
            assert await matching(store, {"k": value}) == {2, 3, 4}

    @case("messages.filter.neighbours_of_2_to_the_53", "5.4.typed")
    async def test_neighbouring_large_integers_differ(self, store: Store) -> None:
        """2**53, 2**53 + 1 and their neighbours up to int64 match themselves alone."""
        values = (
            tuple(2**53 + d for d in range(-2, 4))
            + tuple(2**63 - 1 - d for d in range(4))
            + (-(2**63), 1 - 2**63)
        )
        await values_stored(store, values)

        for index, value in enumerate(values):
            assert await matching(store, {"k": value}) == {index}

    @case("messages.filter.int_against_float", "5.4.typed")
    async def test_an_integer_equals_a_float_only_mathematically(self, store: Store) -> None:
        """Every pair of extreme numbers matches exactly when the two are mathematically equal."""
        await values_stored(store, NUMBERS)

        for value in NUMBERS:
            equal = {i for i, other in enumerate(NUMBERS) if Fraction(other) == Fraction(value)}
            assert await matching(store, {"k": value}) == equal

    @case("messages.filter.mixed_types", "5.4.typed", "5.4.null")
    async def test_values_of_all_types_are_told_apart(self, store: Store) -> None:
        """Among one value of every kind, each scalar finds exactly itself."""
        await values_stored(store, MIXED)

        for index, value in enumerate(MIXED):
            if value is not ABSENT and not isinstance(value, (list, dict)):
                assert await matching(store, {"k": value}) == {index}

    @case("messages.filter.null", "5.4.null")
    async def test_null_is_not_missing(self, store: Store) -> None:
        """None matches an explicit null, never a missing key, an empty string, 0, False or an empty list."""
        await values_stored(store, (None, ABSENT, "", 0, False, [], {}, "null", [None]))

        assert await matching(store, {"k": None}) == {0}

    @case("messages.filter.list_is_no_scalar", "5.4.null")
    async def test_a_list_or_object_matches_no_scalar(self, store: Store) -> None:
        """[1], ["a"] and {"a": 1} match no scalar inside them."""
        await values_stored(store, ([1], ["a"], {"a": 1}, [None], [True], "[1]", 1, "a"))

        assert await matching(store, {"k": 1}) == {6}
        assert await matching(store, {"k": "a"}) == {7}
        assert await matching(store, {"k": "[1]"}) == {5}
        assert await matching(store, {"k": None}) == set()
        assert await matching(store, {"k": True}) == set()

    @case("messages.filter.unknown_key", "5.4.null")
    async def test_an_unknown_key_matches_nothing(self, store: Store) -> None:
        """A key that no row has gives no rows, never all of them."""
        await values_stored(store, (1, "a", None))

        for value in (1, "a", None, True, ""):
            assert await matching(store, {"unknown": value}) == set()
            assert await matching(store, {"K": value}) == set()

    @case("messages.filter.nested_keys", "4.4.nested", "5.4.null")
    async def test_nested_values_are_kept_but_not_found(self, store: Store) -> None:
        """A key inside an object is no top-level key."""
        await values_stored(store, ({"k": 1, "deep": {"deeper": 2}}, 1))

        assert await matching(store, {"deep": 2}) == set()
        assert await matching(store, {"deeper": 2}) == set()
        assert await matching(store, {"k": 1}) == {1}
        assert (await store.get_messages(["0"]))[0].metadata == {"k": {"k": 1, "deep": {"deeper": 2}}}

    @case("messages.filter.strings_by_code_point", "4.1.compare", "5.4.typed")
    async def test_strings_are_equal_only_code_point_by_code_point(self, store: Store) -> None:
        """No case folding, no accents dropped, no normalisation, no trimming, no collation."""
        values = (
            "a",
            "A",
            "á",
            "a\u0301",
            "\u00e1 ",
            "ß",
            "ss",
            "SS",
            "ﬁ",
            "fi",
            "İ",
            "i",
            "I",
            "ı",
            "a ",
            " a",
            "",
            " ",
        )
        await values_stored(store, values)

        for index, value in enumerate(values):
            assert await matching(store, {"k": value}) == {
                i for i, other in enumerate(values) if other == value
            } | {index}

    @case("messages.filter.hostile_values", "5.4.injection", "5.4.typed")
    async def test_hostile_values_match_themselves_alone(self, store: Store) -> None:
        """Quotes, braces, dollars, backslashes, wildcards and SQL are plain text, stored and compared."""
        await values_stored(store, HOSTILE)

        for index, value in enumerate(HOSTILE):
            assert await matching(store, {"k": value}) == {index}
            assert (await store.get_messages([f"{index}"]))[0].metadata == {"k": value}

    @case("messages.filter.long_strings", "5.4.long")
    async def test_long_strings_compare_whole(self, store: Store) -> None:
        """Strings that agree in their first 64 or 1,000 characters and differ later are different."""
        values = (
            "x" * 63,
            "x" * 64,
            "x" * 65,
            "x" * 1000,
            "x" * 1000 + "a",
            "x" * 1000 + "b",
            "\U0001f600" * 64,
            "\U0001f600" * 65,
        )
        await values_stored(store, values)

        for index, value in enumerate(values):
            assert await matching(store, {"k": value}) == {index}

    @case("messages.filter.longest_key", "5.4.keys")
    async def test_keys_of_all_legal_shapes_can_be_filtered_by(self, store: Store) -> None:
        """Keys of 1 and of 128 characters, with underscores and digits, with names that are words of SQL or
        Mongo.
        """
        keys = (
            "k",
            "_",
            "k" * 128,
            "a1_B2",
            "select",
            "id",
            "_id",
            "key",
            "value",
            "rowid",
            "metadata",
            "proto",
        )
        await store.create_thread("user-1", thread_id="t")
        for index, key in enumerate(keys):
            await add(store, "t", f"{index}", metadata={key: index})

        for index, key in enumerate(keys):
            assert ids(await store.list_messages("t", where={key: index})) == [f"{index}"]

    @case("messages.filter.unfilterable_keys_are_kept", "4.4.nested", "5.4.keys")
    async def test_keys_that_cannot_be_filtered_by_are_stored_all_the_same(self, store: Store) -> None:
        """Dots, dollars, quotes, empty and reserved keys come back as they were, on messages and threads."""
        keys = (
            "a.b",
            "$ne",
            "",
            " ",
            "1",
            "é",
            "__proto__",
            "constructor",
            "x') OR '1'='1",
            "k" * 129,
            "#k",
            "a=b",
            "_type",
        )
        metadata = {key: index for index, key in enumerate(keys)}
        await store.create_thread("user-1", thread_id="t", metadata=metadata)
        await add(store, "t", "a", metadata=metadata)

        thread = await store.get_thread("t")
        assert thread is not None
        assert list(thread.metadata.items()) == list(metadata.items())
        assert list((await store.get_messages(["a"]))[0].metadata.items()) == list(metadata.items())
        assert ids(await store.list_messages("t", where={"_type": 12})) == ["a"]


class TestFilterQueries(AdapterSuite):
    """Filters with everything else of a query."""

    @case("messages.filter.and", "5.4.and")
    async def test_all_keys_must_hold(self, store: Store) -> None:
        """Several keys are a conjunction, in whatever order they are written."""
        await store.create_thread("user-1", thread_id="t")
        for index in range(12):
            await add(
                store,
                "t",
                f"{index}",
                metadata={"two": index % 2, "three": index % 3, "name": f"n{index % 4}"},
            )

        assert ids(await store.list_messages("t", where={"two": 0, "three": 0})) == ["0", "6"]
        assert ids(await store.list_messages("t", where={"three": 0, "two": 0})) == ["0", "6"]
        assert ids(await store.list_messages("t", where={"two": 1, "three": 2, "name": "n1"})) == ["5"]
        assert ids(await store.list_messages("t", where={"two": 1, "name": "n2"})) == []

    @case("messages.filter.none_is_no_filter", "3.empty_list")
    async def test_no_filter_and_an_empty_filter_select_all(self, store: Store) -> None:
        """where=None and where={} select everything."""
        await values_stored(store, (1, "a", ABSENT))

        assert await matching(store, {}) == {0, 1, 2}
        assert len((await store.list_messages("t", where=None)).items) == 3

    @case("messages.filter.before_the_page", "5.4.first")
    async def test_the_filter_comes_before_the_page(self, store: Store) -> None:
        """A rare match at the far end is on page 0, in both orders: filters apply before the limit."""
        names = await filled_thread(store, 100)
        for order in ("asc", "desc"):
            for index in (0, 99, 50):
                page = await store.list_messages("thread-1", where={"index": index}, order=order, per_page=1)
                assert (ids(page), page.has_more) == ([names[index]], False)

    @case("threads.filter.before_the_page", "5.4.first")
    async def test_filters_apply_to_threads_alike(self, store: Store) -> None:
        """A rare thread is on page 0 in every order, with and without an owner."""
        for index in range(30):
            await store.create_thread(
                f"user-{index % 2}", thread_id=f"t{index}", metadata={"i": index}, created_at=at(index)
            )

        for by in ("created_at", "updated_at"):
            for order in ("asc", "desc"):
                page = await store.list_threads(where={"i": 28}, order_by=by, order=order, per_page=1)
                assert (ids(page), page.has_more) == (["t28"], False)
                assert ids(await store.list_threads(resource_id="user-1", where={"i": 28}, order_by=by)) == []

    @case("threads.filter.order_by_change", "5.4.first", "4.5.total")
    async def test_filtered_threads_follow_the_order_of_change(self, store: Store) -> None:
        """Filtered by metadata and ordered by updated_at, a touched thread moves to the front."""
        for index in range(6):
            await store.create_thread(
                "user-1", thread_id=f"t{index}", metadata={"odd": index % 2 == 1}, created_at=at(index)
            )
        await add(store, "t1", "m")
        await store.update_thread("t0", title="x")

        assert ids(await store.list_threads(where={"odd": True}, order_by="updated_at")) == ["t1", "t5", "t3"]
        assert ids(await store.list_threads(where={"odd": False}, order_by="updated_at")) == [
            "t0",
            "t4",
            "t2",
        ]

    @case("messages.filter.with_all_scopes", "5.4.first", "5.2.scope")
    async def test_filters_hold_in_every_scope(self, store: Store) -> None:
        """One thread, several threads, a resource, and threads within a resource give the matches within."""
        first = await filled_thread(store, 6)
        second = await filled_thread(store, 6, thread_id="thread-2")
        third = await filled_thread(store, 6, thread_id="thread-3", resource_id="user-2")
        where = {"index": 4, "even": True}

        assert ids(await store.list_messages("thread-2", where=where)) == [second[4]]
        assert ids(await store.list_messages(["thread-1", "thread-3"], where=where)) == [first[4], third[4]]
        assert ids(await store.list_messages(resource_id="user-1", where=where)) == [first[4], second[4]]
        both = await store.list_messages(["thread-1", "thread-3"], resource_id="user-2", where=where)
        assert ids(both) == [third[4]]

    @case("messages.filter.many_keys", "5.4.and")
    async def test_a_message_with_many_keys_is_found_by_each(self, store: Store) -> None:
        """A thousand top-level keys can all be filtered by, and many at once."""
        metadata = {f"key_{index}": index for index in range(1000)}
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "a", metadata=metadata)
        await add(store, "t", "b", metadata={"key_0": 0})

        assert ids(await store.list_messages("t", where={"key_999": 999})) == ["a"]
        assert ids(await store.list_messages("t", where={f"key_{i}": i for i in range(20)})) == ["a"]
        assert (
            ids(await store.list_messages("t", where={**{f"key_{i}": i for i in range(20)}, "key_20": 0}))
            == []
        )


class TestFilterChecks(AdapterSuite):
    """What is no filter."""

    @case("messages.filter.hostile_keys", "5.4.keys", "5.4.injection")
    async def test_illegal_keys_are_refused(self, store: Store) -> None:
        """Keys that are no ASCII identifiers of at most 128 characters, and reserved ones, are
        InvalidFilterError.
        """
        await values_stored(store, (1,))
        wrong: list[Any] = [
            "x') OR '1'='1", "", " k", "k ", "1k", "a.b", "a-b", "$ne", "a b", "é", "k\0", "k\n", "k" * 129,
            '"', "k=", "__proto__", "prototype", "constructor", "\ud800", 1, None, True, ("k",),
        ]  # fmt: skip
        for key in wrong:
            for listing in (store.list_messages, store.list_threads):
                with pytest.raises(InvalidFilterError):
                    await listing(resource_id="user-1", where={key: 1})

    @case("messages.filter.illegal_values", "5.4.values")
    async def test_illegal_values_are_refused(self, store: Store) -> None:
        """A dict, a list, other objects, NaN, infinities, integers beyond int64, NUL and surrogates are
        InvalidFilterError.
        """
        await values_stored(store, (1,))
        wrong: list[Any] = [
            {"$ne": ""}, {}, {"gte": 5}, [], [1], (), {1}, b"x", object(), at(0), math.nan, math.inf,
            -math.inf, 2**63, -(2**63) - 1, 10**400, "a\0b", "\ud800", 1j, Fraction(1, 2), (1, {"$ne": ""}),
        ]  # fmt: skip
        for value in wrong:
            for listing in (store.list_messages, store.list_threads):
                with pytest.raises(InvalidFilterError):
                    await listing(resource_id="user-1", where={"k": value})

    @case("messages.filter.no_mapping", "5.4.values")
    async def test_what_is_no_dict_is_no_filter(self, store: Store) -> None:
        """Lists, strings, numbers and False are refused as filters, never ignored."""
        await values_stored(store, (1,))
        wrong: list[Any] = ["k", [("k", 1)], [], "", 0, 7, False, (), gte(5)]
        for where in wrong:
            for listing in (store.list_messages, store.list_threads):
                with pytest.raises(InvalidFilterError):
                    await listing(resource_id="user-1", where=where)

    @case("messages.filter.before_any_io", "5.4.values", "3.validate")
    async def test_an_illegal_filter_reaches_no_adapter(self, database: Database) -> None:
        """InvalidFilterError is raised before the adapter is asked anything."""
        store, log = await database.open_logged()
        bad: Any = {"$ne": ""}
        with log.silent():
            for where in ({"k": bad}, {"x') OR '1'='1": 1}, {"k": math.nan}):
                with pytest.raises(InvalidFilterError):
                    await store.list_messages("t", where=where)
                with pytest.raises(InvalidFilterError):
                    await store.list_threads(where=where)

    @case("messages.filter.is_an_argument_error", "7.tree", "7.names")
    async def test_a_filter_error_names_key_and_rule(self, store: Store) -> None:
        """InvalidFilterError is an InvalidArgumentError and names the key."""
        bad: Any = {"$ne": ""}
        with pytest.raises(InvalidArgumentError, match="priority") as refused:
            await store.list_threads(where={"priority": bad})
        assert isinstance(refused.value, InvalidFilterError)
        assert "dict" in refused.value.given


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


MIXED_INDEX = {value: index for index, value in enumerate(MIXED) if isinstance(value, str)}
MIXED_TRUE = next(index for index, value in enumerate(MIXED) if value is True)
MIXED_NULL = next(index for index, value in enumerate(MIXED) if value is None)
MIXED_ONE = next(index for index, value in enumerate(MIXED) if type(value) is int and value == 1)
