"""URLs are read strictly, and nothing secret in one gets into a message."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from threadkeep import InvalidArgumentError
from threadkeep.urls import StoreUrl, redacted, scheme_of

KNOWN = frozenset({"mode", "timeout_s"})


PARTS: list[tuple[str, tuple[str, str, str, dict[str, str]]]] = [
    ("libsql:relative.db", ("libsql", "", "relative.db", {})),
    ("libsql:dir/a.db", ("libsql", "", "dir/a.db", {})),
    ("libsql:///absolute/a.db", ("libsql", "", "/absolute/a.db", {})),
    ("LibSQL:a%20b%23c%3F.db", ("libsql", "", "a b#c?.db", {})),
    ("file:caf%C3%A9.db", ("file", "", "café.db", {})),
    ("chroma+http://host:80/x?mode=a%26b", ("chroma+http", "host:80", "/x", {"mode": "a&b"})),
    ("memory:", ("memory", "", "", {})),
    ("x:p?mode=&timeout_s=1", ("x", "", "p", {"mode": "", "timeout_s": "1"})),
]


@pytest.mark.parametrize(("url", "parts"), PARTS)
def test_a_url_has_a_scheme_an_authority_a_path_and_options(url: str, parts: tuple[Any, ...]) -> None:
    found = StoreUrl.parse(url, known=KNOWN)

    assert (found.scheme, found.authority, found.path, found.options) == parts


BAD_URLS = [
    "",
    "nothing",
    "/path/to.db",
    ":x",
    "a b:x",
    "é:x",
    "x:p#fragment",
    "x:p?unknown=1",
    "x:p?mode=1&mode=2",
    "x:p?mode",
    "x:p?mode=%FF",
    "x:p%00q",
    "x:p%FFq",
    "x:p\0q",
    "x:p\nq",
    "x:p\tq",
    "x:\ud800",
    "x://[::1",
]


@pytest.mark.parametrize("url", BAD_URLS, ids=ascii)
def test_a_bad_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        StoreUrl.parse(url, known=KNOWN)

    assert caught.value.argument == "url"


@pytest.mark.parametrize("url", [None, True, 1, b"libsql:a.db", ["libsql:a.db"], object()])
def test_a_url_is_a_str(url: object) -> None:
    with pytest.raises(InvalidArgumentError):
        scheme_of(url)


@pytest.mark.parametrize(
    "url",
    [
        "x://user:secret@[::1/db",
        "x://user:secret@host/db#secret",
        "x://user:secret@host/db?unknown=secret",
        "x://user:secret@host/db?secret",
        "x://user:secret\u2100@host/db",
        "secret\0",
        "x://user:secret\n@host",
    ],
    ids=range(7),
)
def test_no_message_and_no_cause_quotes_a_secret(url: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        StoreUrl.parse(url, known=KNOWN)

    printed = "".join(traceback.format_exception_only(caught.value))
    assert "secret" not in printed
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://user:secret@host:5432/db?sslkey=secret", "postgresql://host:5432/db"),
        ("postgresql://user:s@ecret@host/db", "postgresql://host/db"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("libsql:me@home.db?key=secret", "libsql:me@home.db"),
        ("libsql:///a/b.db#secret", "libsql:///a/b.db"),
        ("postgresql://user:sec/ret@host/db", "postgresql://..."),
        ("postgresql://user:sec?ret@host/db", "postgresql://..."),
        ("postgresql://user:sec#ret@host/db", "postgresql://..."),
        ("postgresql://host/db?password=sec@ret", "postgresql://..."),
    ],
)
def test_a_url_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert redacted(url) == shown


def test_an_option_of_a_few_words_defaults_to_the_first() -> None:
    assert StoreUrl.parse("x:", known=KNOWN).choice("mode", ("a", "b")) == "a"
    assert StoreUrl.parse("x:?mode=b", known=KNOWN).choice("mode", ("a", "b")) == "b"
    with pytest.raises(InvalidArgumentError, match="url option mode"):
        StoreUrl.parse("x:?mode=c", known=KNOWN).choice("mode", ("a", "b"))


@pytest.mark.parametrize("text", ["", "x", "-1", "61", "nan", "inf", "1e99", "1_0x"])
def test_an_option_that_is_a_number_is_in_its_range(text: str) -> None:
    assert StoreUrl.parse("x:", known=KNOWN).number("timeout_s", 5, least=0, most=60) == 5
    assert StoreUrl.parse("x:?timeout_s=2.5", known=KNOWN).number("timeout_s", 5, least=0, most=60) == 2.5
    with pytest.raises(InvalidArgumentError, match="url option timeout_s"):
        StoreUrl.parse(f"x:?timeout_s={text}", known=KNOWN).number("timeout_s", 5, least=0, most=60)
