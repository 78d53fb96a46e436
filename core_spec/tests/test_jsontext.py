"""JSON goes in and comes out exactly; what cannot is refused by path; merges are RFC 7396."""

from __future__ import annotations

import enum
import json
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep import CorruptDataError, InvalidArgumentError
from threadkeep.jsontext import (
    METADATA_BYTES,
    WORKING_MEMORY_BYTES,
    check_document,
    decode,
    encode_content,
    encode_document,
    encode_metadata,
    kind,
    merge_patch,
    merge_working_memory,
    object_or_none,
)

any_text = st.text(st.one_of(st.characters(), st.sampled_from("\0\ud800\udbff\udc00\udfff"))).map(
    lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)  # NUL and lone surrogates too; a pair of them is one character
plain_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
floats = st.floats(allow_nan=False, allow_infinity=False)
content_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.integers(-(10**60), 10**60), floats, any_text),
    lambda below: st.one_of(st.lists(below), st.dictionaries(any_text, below)),
    max_leaves=20,
)
strict_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), floats, plain_text),
    lambda below: st.one_of(st.lists(below), st.dictionaries(plain_text, below)),
    max_leaves=20,
)
objects = st.dictionaries(plain_text, strict_values)


def exact_type(value: object) -> object:
    return type(value)


def same(one: Any, other: Any) -> bool:
    """Equal in value and kind all through: 1 is not 1.0 and not True, -0.0 is not 0.0, keys are in order."""
    exact = exact_type(one)
    if exact is not exact_type(other):
        return False
    if exact is dict:
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if exact is list:
        return len(one) == len(other) and all(map(same, one, other))
    return one == other and (exact is not float or math.copysign(1, one) == math.copysign(1, other))


def nested(levels: int, value: Any = 1) -> Any:
    for _ in range(levels):
        value = [value]
    return value


# --- round trips ------------------------------------------------------------------------------------


@given(content_values)
def test_any_content_comes_back_exactly(value: Any) -> None:
    text, copy = encode_content(value)

    assert same(copy, value)
    assert same(decode(text, "content"), value)
    assert same(json.loads(text), value)


@given(content_values)
def test_the_text_of_content_is_storable_anywhere(value: Any) -> None:
    text, _ = encode_content(value)

    assert "\0" not in text
    text.encode()


@given(objects)
def test_any_metadata_comes_back_exactly(value: Any) -> None:
    text, copy = encode_metadata(value)

    assert same(copy, value)
    assert same(decode(text, "metadata"), value)
    assert same(encode_document(value, "patch"), value)


@pytest.mark.parametrize(
    "value", [-0.0, 1e16, 5e-324, 1.7976931348623157e308, 0.1, 2.0, 123456789012345680.0], ids=repr
)
def test_floats_stay_floats(value: float) -> None:
    assert same(encode_content({"a": [value]})[1], {"a": [value]})
    assert same(encode_metadata({"a": value})[1], {"a": value})


@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", "\0", "\ude00\ud83d", {"\ud800": "\0"}], ids=ascii)
def test_surrogates_and_nul_survive_in_content(value: Any) -> None:
    text, copy = encode_content(value)

    assert copy == value
    assert decode(text, "content") == value


def test_a_surrogate_pair_is_the_character_it_stands_for() -> None:
    assert encode_content("\ud83d\ude00")[1] == "\U0001f600"
    with pytest.raises(InvalidArgumentError, match="without duplicate keys"):
        encode_content({"\ud83d\ude00": 1, "\U0001f600": 2})


def test_a_big_integer_survives_in_content() -> None:
    assert encode_content(10**4000)[1] == 10**4000


def test_the_copies_share_nothing_with_the_original() -> None:
    value: dict[str, Any] = {"a": {"b": [1]}}
    copies = [encode_content(value)[1], encode_metadata(value)[1], encode_document(value, "patch")]

    value["a"]["b"].append(2)

    assert all(copy == {"a": {"b": [1]}} for copy in copies)


def test_subclasses_of_plain_types_come_out_plain() -> None:
    class Text(str):
        __slots__ = ()

    class Colour(enum.StrEnum):
        RED = "red"

    class Level(enum.IntEnum):
        HIGH = 3

    class Weight(float):
        pass

    given = OrderedDict({Text("k"): Text("v"), "colour": Colour.RED, "level": Level.HIGH, "w": Weight(1.5)})
    plain = {"k": "v", "colour": "red", "level": 3, "w": 1.5}

    assert same(encode_content(given)[1], plain)
    assert same(encode_metadata(given)[1], plain)
    assert same(encode_document(given, "patch"), plain)


# --- what is refused --------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = 1


class Hostile:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


NOT_JSON: dict[str, Any] = {
    "nan": math.nan,
    "infinity": math.inf,
    "tuple": (1,),
    "set": {1},
    "bytes": b"x",
    "object": object(),
    "enum": Colour.RED,
    "equal to everything": Hostile(),
    "integer key": {1: "a"},
    "None key": {None: 1},
    "bytes key": {b"k": 1},
    "complex": 1j,
    "cycle": cycle(),
    "100,000 levels": nested(100_000),
}


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON)
@pytest.mark.parametrize("levels", [0, 1], ids=["inside", "deeper"])
@pytest.mark.parametrize("encode", [encode_content, encode_metadata, encode_document])
def test_what_is_not_json_is_refused(
    encode: Callable[[object, str], Any], levels: int, value: object
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        encode({"a": nested(levels, value)}, "given")

    assert caught.value.argument.startswith("given")


def test_an_integer_too_long_to_write_is_refused() -> None:
    with pytest.raises(InvalidArgumentError):
        encode_content(10**5000)


STRICTER: dict[str, Any] = {
    "above int64": {"a": 2**63},
    "below int64": {"a": -(2**63) - 1},
    "deep integer": {"a": {"b": [2**64]}},
    "NUL": {"a": "x\0"},
    "deep NUL": {"a": ["x\0"]},
    "surrogate": {"a": "\ud800"},
    "NUL in a key": {"\0": 1},
    "surrogate in a key": {"a": {"\udc00": 1}},
}


@pytest.mark.parametrize("value", STRICTER.values(), ids=STRICTER)
@pytest.mark.parametrize("encode", [encode_metadata, encode_document])
def test_metadata_refuses_what_only_content_may_hold(encode: Callable[..., Any], value: Any) -> None:
    encode_content(value)

    with pytest.raises(InvalidArgumentError):
        encode(value, "metadata")


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "{}", b"{}", [("a", 1)], object()], ids=kind)
@pytest.mark.parametrize("encode", [encode_metadata, encode_document])
def test_metadata_is_a_dict(encode: Callable[..., Any], value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="must be a dict"):
        encode(value, "metadata")


def test_content_may_have_256_levels_and_no_more() -> None:
    assert encode_content(nested(256))[1] == nested(256)
    with pytest.raises(InvalidArgumentError, match="256 levels"):
        encode_content(nested(257))


@pytest.mark.parametrize("beside", ["[" * 300, "\ud800"], ids=["brackets in a string", "a surrogate"])
def test_depth_is_counted_right_on_every_path(beside: str) -> None:
    assert encode_content([nested(255), beside])[1] == [nested(255), beside]
    with pytest.raises(InvalidArgumentError, match="256 levels"):
        encode_content([nested(256), beside])


def test_a_wide_content_is_not_a_deep_one() -> None:
    value = [{"a": [i]} for i in range(1000)]

    assert encode_content(value)[1] == value


def test_metadata_may_have_64_levels_and_no_more() -> None:
    assert encode_metadata({"a": nested(63)})[1] == {"a": nested(63)}
    with pytest.raises(InvalidArgumentError, match="64 levels"):
        encode_metadata({"a": nested(64)})


def test_metadata_may_have_64_kib_of_utf8_and_no_more() -> None:
    full = "é" * ((METADATA_BYTES - len('{"a":""}')) // 2)

    assert encode_metadata({"a": full})[1] == {"a": full}
    with pytest.raises(InvalidArgumentError, match="65536 bytes"):
        encode_metadata({"a": full + "é"})


def test_the_error_names_the_path_and_the_kind() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        encode_metadata({"a": [1, {"b c": math.nan}]})

    assert str(caught.value) == "metadata.a[1]['b c'] must be a finite number; given: float nan"


def test_the_error_stays_short_and_printable_whatever_the_keys() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        encode_content({"x" * 10_000: {"\ud800": [[[[object()]]]] * 2}})

    assert len(str(caught.value)) < 400
    str(caught.value).encode()


def test_kind_shows_numbers_but_no_text() -> None:
    shown = [kind(value) for value in (None, True, 7, 1.5, math.nan, "secret", b"secret", 2**200, ["secret"])]

    assert shown == [
        "None",
        "bool True",
        "int 7",
        "float 1.5",
        "float nan",
        "str of 6 characters",
        "bytes",
        "int of 201 bits",
        "list",
    ]


# --- decoding ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["", "{", "nul", "NaN", "[Infinity]", '"\x01"', "1 2", "\ud800", "[" * 100_000],
    ids=lambda t: ascii(t[:9]),
)
def test_stored_text_that_is_not_json_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptDataError, match="content of message 'm'"):
        decode(text, "content of message 'm'")


@pytest.mark.parametrize("value", [None, 5, b"\xff"], ids=repr)
def test_a_stored_value_that_is_not_text_is_corrupt(value: Any) -> None:
    with pytest.raises(CorruptDataError):
        decode(value, "content")


# --- working memory ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Notes",
        "{oops",
        '{"a": NaN}',
        "[1, 1]",
        "null",
        '{"a": 1}',
        ' {"a": {"a": 1}}',
        '"x"',
        '{"a": 1} {',
    ],
)
def test_any_text_and_any_clean_object_is_a_working_memory(text: str) -> None:
    check_document(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '\n\t {"x": {"a": 1, "\\u0061": 2}}',
        '{"a": 9223372036854775808}',
        '{"a": 1e999}',
        '{"a": "\\u0000"}',
        '{"a": "\\ud800"}',
        '{"\\u0000": 1}',
        '{"a":' * 65 + "1" + "}" * 65,
        '{"a":' * 50_000 + "1" + "}" * 50_000,
        '{"a": ' + "9" * 10_000 + "}",
    ],
    ids=lambda text: f"{text[:24]} of {len(text)}",
)
def test_an_object_that_breaks_a_rule_of_metadata_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_document(text)

    assert caught.value.argument.startswith("working_memory")


def test_a_working_memory_may_have_one_mebibyte_and_no_more() -> None:
    check_document("é" * (WORKING_MEMORY_BYTES // 2))
    with pytest.raises(InvalidArgumentError):
        check_document("é" * (WORKING_MEMORY_BYTES // 2) + "x")


@pytest.mark.parametrize(
    "text", [None, "", "# Notes", "[1]", "1", "{", '{"a": NaN}', "[" * 100_000], ids=lambda t: repr(t)[:9]
)
def test_what_is_no_object_is_none(text: str | None) -> None:
    assert object_or_none(text) is None


@pytest.mark.parametrize("text", [None, "", "# Notes", "[1]", "{oops"])
def test_a_merge_replaces_what_is_no_object(text: str | None) -> None:
    assert merge_working_memory(text, {"a": {"b": None, "c": 1}}) == '{"a":{"c":1}}'


def test_a_merge_keeps_numbers_in_value_and_kind() -> None:
    merged = merge_working_memory('{"a": 1.0, "b": -0.0, "c": 9223372036854775807, "d": 1e16}', {"e": 2})

    expected = {"a": 1.0, "b": -0.0, "c": 2**63 - 1, "d": 1e16, "e": 2}
    assert same(json.loads(merged), expected)


def test_a_merge_whose_result_is_over_one_mebibyte_is_refused() -> None:
    half = "x" * (WORKING_MEMORY_BYTES // 2)

    with pytest.raises(InvalidArgumentError, match="patch must be small enough"):
        merge_working_memory(json.dumps({"a": half}), {"b": half})


# --- merge patch ------------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Every object and every other value of a document, by path. An object is marked by ``dict``."""
    if exact_type(value) is not dict:
        return {path: value}
    found: dict[tuple[str, ...], Any] = {path: dict}
    for key, below in value.items():
        found |= leaves(below, (*path, key))
    return found


def oracle(document: Any, patch: Any) -> dict[tuple[str, ...], Any]:
    """RFC 7396 without recursion over both: assign the patch's paths one by one, parents first."""
    result = leaves(document)
    for path, value in leaves(patch).items():
        is_object = value is dict
        if is_object and result.get(path) is dict:
            continue
        for other in [other for other in result if other[: len(path)] == path]:
            del result[other]
        if value is not None:
            result[path] = value
    return result


small = st.recursive(
    st.sampled_from([None, 1, 1.0, "x", True, [], [None], [{"a": None}]]),
    lambda below: st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=12,
)
small_objects = st.dictionaries(st.sampled_from("abc"), small, max_size=3)


@given(small_objects, small_objects)
def test_merge_patch_agrees_with_an_independent_oracle(
    document: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert leaves(merge_patch(document, patch)) == oracle(document, patch)


@given(small_objects, small_objects)
def test_merge_patch_changes_neither_side(document: dict[str, Any], patch: dict[str, Any]) -> None:
    before = json.dumps([document, patch])

    merge_patch(document, patch)

    assert json.dumps([document, patch]) == before


@given(small_objects, small_objects)
def test_merging_twice_is_merging_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch(document, patch)

    assert same(merge_patch(once, patch), once)


RFC_7396: list[
    tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
] = [  # its appendix A, where both sides are objects
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("document", "patch", "merged"), RFC_7396)
def test_the_examples_of_rfc_7396_hold(
    document: dict[str, Any], patch: dict[str, Any], merged: dict[str, Any]
) -> None:
    assert merge_patch(document, patch) == merged


def test_a_changed_key_keeps_its_place_and_new_ones_follow() -> None:
    assert list(merge_patch({"a": 1, "b": 2, "c": 3}, {"d": 4, "b": 5})) == ["a", "b", "c", "d"]
