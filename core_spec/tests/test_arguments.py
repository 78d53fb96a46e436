"""Each rule for arguments, at its edges."""

from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from threadkeep import Actor, Include, InvalidArgumentError, TimeRange
from threadkeep import arguments as check
from threadkeep.clock import MAX_US, MIN_US, to_us
from threadkeep.requests import Span


class Text(str):
    __slots__ = ()


class Number(enum.IntEnum):
    THREE = 3


def refused(rule: Callable[..., object], *arguments: object, **named: object) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as caught:
        rule(*arguments, **named)
    return caught.value


# --- strings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["a", " ", "x" * 255, "é" * 255, "\U0001f600" * 255, "$ne", "a\nb", "' OR 1=1 --"]
)
def test_an_identifier_has_1_to_255_characters_of_any_kind(value: str) -> None:
    assert check.identifier(value, "thread_id") == value


@pytest.mark.parametrize(
    "value",
    ["", "x" * 256, "a\0", "\ud800", "é\udfff", None, True, 1, 1.5, b"a", ["a"], {"$ne": ""}],
    ids=ascii,
)
def test_anything_else_is_no_identifier(value: object) -> None:
    error = refused(check.identifier, value, "thread_id")

    assert error.argument == "thread_id"


def test_text_is_not_changed_at_all() -> None:
    for value in ("Å", "A\u030a", "  a  ", "\u00df", "\u200b"):
        assert check.identifier(value, "id") == check.title(value) == value


def test_a_subclass_of_str_comes_out_plain() -> None:
    assert type(check.identifier(Text("a"), "id")) is str
    assert type(check.title(Text("a"))) is str


def test_a_title_has_up_to_1000_characters() -> None:
    assert check.title("") == ""
    assert check.title("é" * 1000) == "é" * 1000
    refused(check.title, "x" * 1001)


def test_an_error_tells_the_length_of_a_text_and_not_the_text() -> None:
    assert refused(check.identifier, "secret" * 50, "id").given == "str of 300 characters"


# --- lists ------------------------------------------------------------------------------------------


def test_one_id_or_any_iterable_of_ids_each_once_in_order() -> None:
    assert check.identifiers("a", "ids") == ["a"]
    assert check.identifiers(["b", "a", "b"], "ids") == ["b", "a"]
    assert check.identifiers((c for c in "ba"), "ids") == ["b", "a"]
    assert check.identifiers({"a": 1}.keys(), "ids") == ["a"]
    assert check.identifiers([], "ids") == []


class NotReally:
    def __iter__(self) -> Any:
        raise TypeError("iteration over a 0-d array")


@pytest.mark.parametrize(
    "value",
    [None, 1, True, 1.5, b"ab", bytearray(b"ab"), memoryview(b"ab"), {"a": 1}, object(), NotReally(), str],
)
def test_what_is_no_list_is_refused(value: object) -> None:
    assert refused(check.items_of, value, "ids").rule == "a list"


def test_a_bad_item_is_named_by_its_place() -> None:
    assert refused(check.identifiers, ["a", ""], "ids").argument == "ids[1]"
    assert refused(check.memory_ids, [1, "2"]).argument == "ids[1]"


def test_up_to_100_threads() -> None:
    assert check.threads_scope(None) is None
    assert check.threads_scope([]) == ()
    assert len(check.threads_scope([str(i) for i in range(100)]) or ()) == 100
    refused(check.threads_scope, [str(i) for i in range(101)])


# --- numbers and flags ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [True, False, 1.0, 1.5, float("nan"), "1", None, b"1", [], 10, -1, 10**5000], ids=range(12)
)
def test_an_integer_is_an_int_in_its_range_and_no_bool(value: object) -> None:
    refused(check.integer, value, "limit", least=0, most=9)


def test_an_integer_of_a_subclass_comes_out_plain() -> None:
    assert type(check.integer(Number.THREE, "limit", least=0, most=9)) is int


@pytest.mark.parametrize("value", [0, 1, "", "yes", None, [], object()])
def test_a_flag_is_true_or_false(value: object) -> None:
    refused(check.flag, value, "pinned")


def test_a_choice_is_one_of_the_words() -> None:
    assert check.one_of(Text("asc"), "order", ("asc", "desc")) == "asc"
    values: list[object] = ["ASC", "", None, True, ["asc"], {}]
    for value in values:
        refused(check.one_of, value, "order", ("asc", "desc"))


@pytest.mark.parametrize(
    ("page", "per_page"),
    [(0, 0), (0, None), (0, 2**63 - 2), (5, 10), (2**63 - 1, 0), (2**62 - 2, 2)],
)
def test_pages_up_to_int64_are_legal(page: int, per_page: int | None) -> None:
    assert check.paging(page, per_page) == (page, per_page)


@pytest.mark.parametrize(
    ("page", "per_page"),
    [
        (-1, 10),
        (0, -1),
        (0, 1.5),
        (0, True),
        (True, 10),
        (1.0, 10),
        ("0", 10),
        (0, "10"),
        (None, 10),
        (1, None),
        (0, 2**63 - 1),
        (2**63, 1),
        (2**62, 2),
        (2**63 - 1, 2**63 - 2),
        (10**5000, 10),
        (0, float("nan")),
    ],
    ids=range(16),
)
def test_other_pages_are_refused(page: object, per_page: object) -> None:
    assert refused(check.paging, page, per_page).argument in ("page", "per_page")


# --- times ------------------------------------------------------------------------------------------


class NoOffset(tzinfo):
    def utcoffset(self, dt: datetime | None) -> None:
        return None


class Broken(tzinfo):
    def utcoffset(self, dt: datetime | None) -> timedelta:
        raise KeyError("no such zone")


FAR_EAST, FAR_WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=FAR_WEST),
        datetime.max.replace(tzinfo=FAR_EAST),
        datetime(2024, 1, 1, tzinfo=ZoneInfo("Asia/Kolkata")),
    ],
    ids=str,
)
def test_every_moment_of_years_1_to_9999_in_utc_is_legal(moment: datetime) -> None:
    assert MIN_US <= check.moment(moment, "created_at") == to_us(moment) <= MAX_US


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2024, 1, 1),  # noqa: DTZ001  (it is the point)
        datetime.min,  # noqa: DTZ901  (it is the point)
        datetime(1, 1, 1, tzinfo=FAR_EAST),
        datetime.max.replace(tzinfo=FAR_WEST),
        datetime(2024, 1, 1, tzinfo=NoOffset()),
        datetime(2024, 1, 1, tzinfo=Broken()),
        datetime(2024, 1, 1, tzinfo=tzinfo()),
        datetime(2024, 1, 1, tzinfo=UTC).date(),
        1_700_000_000,
        "2024-01-01T00:00:00Z",
        True,
        None,
    ],
    ids=range(12),
)
def test_other_moments_are_refused(moment: object) -> None:
    assert refused(check.moment, moment, "created_at").argument == "created_at"


NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def test_a_range_of_time_has_both_its_ends_unless_they_are_excluded() -> None:
    us = to_us(NOON)

    assert check.time_range(None) == check.time_range(TimeRange()) == Span(None, None)
    assert check.time_range(TimeRange(NOON, NOON)) == Span(us, us + 1)
    assert check.time_range(TimeRange(NOON, NOON, start_exclusive=True, end_exclusive=True)) == Span(
        us + 1, us
    )


@pytest.mark.parametrize(
    "given",
    [
        (NOON, NOON),
        {"start": NOON},
        NOON,
        True,
        TimeRange(start=datetime(2024, 1, 1)),  # noqa: DTZ001  (it is the point)
        TimeRange(end="2024"),  # pyright: ignore[reportArgumentType]  (what a caller may do all the same)
        TimeRange(start_exclusive=1),  # pyright: ignore[reportArgumentType]  (the same)
        TimeRange(end_exclusive=None),  # pyright: ignore[reportArgumentType]  (the same)
        TimeRange(NOON, NOON, end_exclusive="no"),  # pyright: ignore[reportArgumentType]  (the same)
    ],
    ids=range(9),
)
def test_a_bad_range_of_time_is_refused(given: object) -> None:
    assert refused(check.time_range, given).argument.startswith("created")


# --- compound arguments -----------------------------------------------------------------------------


def test_includes_come_out_plain() -> None:
    (found,) = check.includes([Include(Text("m"), thread_id=Text("t"), before=Number.THREE)])

    assert found == Include("m", thread_id="t", before=3)
    assert [type(part) for part in (found.id, found.thread_id, found.before)] == [str, str, int]


BAD_INCLUDES: dict[str, Any] = {
    "None": None,
    "one include": Include("m"),
    "an id": "m",
    "ids": ["m"],
    "None inside": [None],
    "empty id": [Include("")],
    "id of another type": [Include({"$ne": ""})],  # pyright: ignore[reportArgumentType]  (callers may)
    "negative": [Include("m", before=-1)],
    "too wide": [Include("m", after=1001)],
    "bool": [Include("m", after=True)],
    "fraction": [Include("m", before=1.0)],  # pyright: ignore[reportArgumentType]  (callers may)
    "thread": [Include("m", thread_id="")],
    "too many": [Include("m")] * 101,
}


@pytest.mark.parametrize("value", BAD_INCLUDES.values(), ids=BAD_INCLUDES)
def test_bad_includes_are_refused(value: object) -> None:
    assert refused(check.includes, value).argument.startswith("include")


def test_an_actor_comes_out_plain() -> None:
    kind: Any = Text("user")
    found = check.actor(Actor(kind, Text("u")))

    assert found == Actor("user", "u")
    assert [type(found.type), type(found.id)] == [str, str]


BAD_ACTORS: dict[str, Any] = {
    "None": None,
    "a word": "shared",
    "a tuple": ("user", "u"),
    "no id": Actor("user"),
    "empty id": Actor("end_user", ""),
    "shared with an id": Actor("shared", "u"),
    "shared with an empty id": Actor("shared", ""),
    "unknown type": Actor("admin", "u"),  # pyright: ignore[reportArgumentType]  (callers may)
    "no type": Actor(None, "u"),  # pyright: ignore[reportArgumentType]  (callers may)
    "an unhashable type": Actor([], "u"),  # pyright: ignore[reportArgumentType]  (callers may)
}


@pytest.mark.parametrize("value", BAD_ACTORS.values(), ids=BAD_ACTORS)
def test_a_bad_actor_is_refused(value: object) -> None:
    assert refused(check.actor, value).argument.startswith("actor")


def test_memory_ids_are_whole_numbers_that_json_keeps_exact() -> None:
    assert check.memory_ids(2**53 - 1) == [2**53 - 1]
    assert check.memory_ids([3, 1, 3]) == [3, 1]
    for value in (0, -1, 2**53, True, 1.0, "1", None, [0], [True], b"\x01", bytearray(b"\x01")):
        refused(check.memory_ids, value)


def test_a_memory_has_1_to_2000_characters() -> None:
    assert check.memory_text("x" * 2000, "content") == "x" * 2000
    refused(check.memory_text, "", "content")
    refused(check.memory_text, "x" * 2001, "content")


def test_a_working_memory_is_text_or_none() -> None:
    assert check.document(None) is None
    assert check.document("# Notes") == "# Notes"
    values: list[object] = [{}, b"{}", 1, True, "a\0", "\ud800", '{"a": 1, "a": 2}']
    for value in values:
        refused(check.document, value)
