"""Reading the URLs that name a database. Credentials stay out of every message."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from .errors import InvalidArgumentError
from .jsontext import has_surrogate, kind

__all__ = ["StoreUrl", "redacted", "scheme_of"]

_CONTROL = frozenset(map(chr, range(32))) | {"\x7f"}  # urlsplit would drop some of them silently
_DELIMITERS = frozenset("/?#")


class StoreUrl(msgspec.Struct, frozen=True):
    """The parts of a URL that an adapter for files needs.

    Attributes:
        scheme: In lower case.
        authority: ``user:password@host:port``, still quoted; usually empty for files.
        path: Unquoted. ``scheme:relative/path`` has a relative one.
        options: The query's parameters, each given once.
    """

    scheme: str
    authority: str
    path: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, url: str, *, known: frozenset[str]) -> StoreUrl:
        """Read a URL.

        Args:
            url: The whole URL.
            known: The parameters the adapter knows.

        Raises:
            InvalidArgumentError: It is no URL, or a parameter is unknown or given twice.
        """
        scheme = scheme_of(url)
        try:
            parts = urlsplit(url)
            path = unquote(parts.path, errors="strict")
            given = parse_qsl(
                parts.query, keep_blank_values=True, strict_parsing=bool(parts.query), errors="strict"
            )
        except ValueError:  # not kept as a cause: it may quote a password
            raise InvalidArgumentError("url", "a URL", f"a {scheme} URL that does not parse") from None
        if "\0" in path:
            raise InvalidArgumentError("url", "without %00", f"a {scheme} URL with it")
        if parts.fragment:
            raise InvalidArgumentError(
                "url", "without a fragment (write # as %23)", f"a {scheme} URL with one"
            )
        options: dict[str, str] = {}
        for name, value in given:
            if name not in known:
                names = ", ".join(sorted(known)) or "none"
                raise InvalidArgumentError("url", f"without unknown parameters (known: {names})", f"{name!r}")
            if name in options:
                raise InvalidArgumentError("url", "given each parameter once", f"{name!r} twice")
            options[name] = value
        return cls(scheme, parts.netloc, path, options)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """An option that is one of a few words; the first is the default.

        Raises:
            InvalidArgumentError: It is another word.
        """
        value = self.options.get(name, choices[0])
        if value not in choices:
            raise InvalidArgumentError(
                f"url option {name}", "one of " + ", ".join(map(repr, choices)), repr(value)
            )
        return value

    def number(self, name: str, default: float, *, least: float, most: float) -> float:
        """An option that is a number in a range.

        Raises:
            InvalidArgumentError: It is not.
        """
        text = self.options.get(name)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise InvalidArgumentError(f"url option {name}", f"a number from {least} to {most}", repr(text))
        return value


def scheme_of(url: object) -> str:
    """The scheme of a URL, in lower case.

    Raises:
        InvalidArgumentError: It has none, or holds characters that no URL may.
    """
    if not isinstance(url, str):
        raise InvalidArgumentError("url", "a str such as 'libsql:memory.db'", kind(url))
    scheme, colon, _ = url.partition(":")
    plain = scheme.replace("+", "").replace("-", "").replace(".", "")
    if not colon or not plain.isascii() or not plain.isalnum():
        raise InvalidArgumentError("url", "a URL with a scheme, such as 'libsql:memory.db'", kind(url))
    if has_surrogate(url) or not _CONTROL.isdisjoint(url):
        rule = "without control characters and lone surrogates"
        raise InvalidArgumentError("url", rule, kind(url))
    return scheme.lower()


def redacted(url: str) -> str:
    """The URL without user, password and parameters, for messages.

    Where an unquoted ``/``, ``?`` or ``#`` before an ``@`` leaves open what is the password, only the scheme.
    """
    scheme, _, rest = url.partition(":")
    if not rest.startswith("//"):
        return f"{scheme}:{rest.partition('?')[0].partition('#')[0]}"
    credentials, _, shown = rest[2:].rpartition("@")
    if not _DELIMITERS.isdisjoint(credentials):
        return f"{scheme}://..."
    return f"{scheme}://{shown.partition('?')[0].partition('#')[0]}"
