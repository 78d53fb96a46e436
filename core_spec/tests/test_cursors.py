"""A cursor works with its own query only, and any damage to it is noticed."""

from __future__ import annotations

import string
from base64 import urlsafe_b64encode
from hashlib import blake2b
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep import InvalidCursorError
from threadkeep.cursors import decode_cursor, encode_cursor, fingerprint

QUERY = fingerprint("messages", ["t"], None, [], False)
PLACE = (1_700_000_000_000_000, 1_700_000_000_000_001, "0190a1b2-c3d4")
SHAPE = (int, int, str)
CURSOR = encode_cursor(QUERY, PLACE)
ALPHABET = string.ascii_letters + string.digits + "-_"

int64 = st.integers(-(2**63), 2**63 - 1)
ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=255)


@given(int64, int64, ids)
def test_a_place_comes_back(at: int, seq: int, identifier: str) -> None:
    assert decode_cursor(encode_cursor(QUERY, (at, seq, identifier)), QUERY, SHAPE) == (at, seq, identifier)


@given(ids)
def test_a_cursor_fits_into_a_url_as_it_is(identifier: str) -> None:
    assert set(encode_cursor(QUERY, (1, 2, identifier))) <= set(ALPHABET)


@pytest.mark.parametrize("at", range(len(CURSOR)))
def test_any_other_character_anywhere_is_noticed(at: int) -> None:
    for other in {*ALPHABET, *"=+/ \n\0.é"} - {CURSOR[at]}:
        with pytest.raises(InvalidCursorError):
            decode_cursor(CURSOR[:at] + other + CURSOR[at + 1 :], QUERY, SHAPE)


@pytest.mark.parametrize("at", range(len(CURSOR)))
def test_a_missing_or_an_extra_character_is_noticed(at: int) -> None:
    for damaged in (
        CURSOR[:at],
        CURSOR[at + 1 :],
        CURSOR[:at] + CURSOR[at + 1 :],
        CURSOR[:at] + "A" + CURSOR[at:],
    ):
        with pytest.raises(InvalidCursorError):
            decode_cursor(damaged, QUERY, SHAPE)


@pytest.mark.parametrize("end", ["=", "==", "A", " ", "\n"])
def test_something_at_the_end_is_noticed(end: str) -> None:
    with pytest.raises(InvalidCursorError):
        decode_cursor(CURSOR + end, QUERY, SHAPE)


OTHER_QUERIES: list[tuple[object, ...]] = [
    ("messages", ["t2"], None, [], False),
    ("messages", ["t"], "r", [], False),
    ("messages", ["t"], None, [["k", "equal", [1]]], False),
    ("messages", ["t"], None, [["k", "equal", [True]]], False),
    ("messages", ["t"], None, [["k", "equal", ["1"]]], False),
    ("messages", ["t"], None, [], True),
    ("threads", ["t"], None, [], False),
]


@pytest.mark.parametrize("query", OTHER_QUERIES, ids=range(len(OTHER_QUERIES)))
def test_a_cursor_of_another_query_is_refused(query: tuple[object, ...]) -> None:
    with pytest.raises(InvalidCursorError, match="another query"):
        decode_cursor(CURSOR, fingerprint(*query), SHAPE)


def test_all_queries_have_their_own_fingerprint() -> None:
    assert len({fingerprint(*query) for query in OTHER_QUERIES} | {QUERY}) == len(OTHER_QUERIES) + 1


NO_CURSORS: dict[str, Any] = {
    "None": None,
    "True": True,
    "int": 1,
    "float": 1.5,
    "bytes": CURSOR.encode(),
    "list": [CURSOR],
    "object": object(),
    "empty": "",
    "short": "AQ",
    "long": "A" * 1_000_000,
    "NUL": "\0",
    "surrogate": "\ud800" * 8,
    "not ASCII": "é" * 20,
}


@pytest.mark.parametrize("cursor", NO_CURSORS.values(), ids=NO_CURSORS)
def test_what_is_no_cursor_is_refused(cursor: object) -> None:
    with pytest.raises(InvalidCursorError) as caught:
        decode_cursor(cursor, QUERY, SHAPE)

    assert caught.value.argument == "cursor"


def forged(place: object, *, version: int = 1) -> str:
    body = msgspec.json.encode(place)
    raw = bytes([version]) + QUERY + blake2b(body, digest_size=4).digest() + body
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def test_the_forging_in_these_tests_is_right() -> None:
    assert forged(PLACE) == CURSOR


@pytest.mark.parametrize(
    "place",
    [
        [],
        [1],
        [1, 2],
        [1, 2, 3],
        [1, "2", "x"],
        [1, 2, "x", 4],
        [True, 2, "x"],
        [1.0, 2, "x"],
        [None, 2, "x"],
        [2**63, 2, "x"],
        [1, -(2**63) - 1, "x"],
        [1, 2, "a\0b"],
        [1, 2, {"$ne": ""}],
        {"at": 1},
        "x",
    ],
    ids=str,
)
def test_a_forged_place_of_another_shape_never_reaches_a_database(place: object) -> None:
    with pytest.raises(InvalidCursorError):
        decode_cursor(forged(place), QUERY, SHAPE)


def test_a_later_version_is_refused() -> None:
    with pytest.raises(InvalidCursorError):
        decode_cursor(forged(PLACE, version=2), QUERY, SHAPE)
