"""Metadata filters: typed equality, hostile keys and values, on messages and threads alike."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from threadkeep import (
    InvalidArgumentError,
    InvalidFilterError,
    Store,
    gte,
)

from ..cases import case
from ..databases import Database
from .base import AdapterSuite
from .filtering import ABSENT, MIXED, matching, values_stored
from .samples import HOSTILE, NUMBERS, add, at, filled_thread, ids

__all__ = ["TestFilterChecks", "TestFilterEquality", "TestFilterQueries"]


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
