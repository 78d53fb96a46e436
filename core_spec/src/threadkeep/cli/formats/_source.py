"""Reading bytes: lines, and the elements of an array that is larger than memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, NoReturn, cast

from ...errors import InvalidArgumentError
from ...models import ArchiveMemory, Message, NewMessage, Resource, Thread

__all__ = ["BadInputError", "Entry", "Source", "parsed"]

_HEAD = 64 * 1024
_CHUNK = 1024 * 1024
_KEY = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:')
_NEAR_THE_END = 16  # an escape or a literal that was cut is at most so long
_SPACE = re.compile(r"[ \t\r\n]*")


class BadInputError(InvalidArgumentError):
    """A line of an input file cannot be imported. Nothing of its batch was written.

    Args:
        place: Which one: ``line 12``, ``conversation 3``.
        reason: What is wrong with it.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason, "")
        self.args = (place, reason)
        self.place, self.reason = place, reason

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


class Entry(NamedTuple):
    """One thing to import.

    Attributes:
        place: Where it is: ``line 12``.
        record: The thing.
        size: About how many bytes it took in the file.
        is_partial: A thread of a file that does not say all of it: what a stored thread has besides, stays.
        is_dated: False for such a thread whose file has no times: a stored thread's stay.
    """

    place: str
    record: Thread | Message | NewMessage | Resource | ArchiveMemory
    size: int
    is_partial: bool = False
    is_dated: bool = True


class Source:
    """A file to read once, from its beginning.

    Args:
        stream: Its bytes.
        on_read: Told how many more bytes were read.
    """

    def __init__(self, stream: BinaryIO, on_read: Callable[[int], None] = lambda _: None) -> None:
        self._stream, self._on_read = stream, on_read
        self._head: bytes | None = None

    def head(self) -> bytes:
        """The first 64 KiB, which are read again by what comes next."""
        if self._head is None:
            self._head = self._stream.read(_HEAD).removeprefix(codecs.BOM_UTF8)
        return self._head

    def first_keys(self) -> set[str]:
        """The keys of the first object, also in an array; of a long one, all that look like its keys."""
        text = self.head().decode(errors="replace").lstrip().removeprefix("[").lstrip()
        try:
            found, _ = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            return set(_KEY.findall(text)) if text.startswith("{") else set()
        return set(cast("dict[str, Any]", found)) if isinstance(found, dict) else set()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Every line that is not blank, with its number from 1."""
        for number, line in enumerate(self._all_lines(), 1):
            self._on_read(len(line))
            if line.strip():
                yield number, line

    def _all_lines(self) -> Iterator[bytes]:
        *whole, rest = self.head().split(b"\n")
        for line in whole:
            yield line + b"\n"
        yield rest + self._stream.readline()
        yield from self._stream

    def starts_array(self) -> bool:
        """Whether it is an array."""
        return self.head().lstrip().startswith(b"[")

    def elements(self) -> Iterator[tuple[int, Any, int]]:
        """Every element of an array of objects, with its number from 1 and its size in characters.

        No more is held than one element and what was read with it.

        Raises:
            BadInputError: It is not such an array.
        """
        window = _Window(self._chunks())
        window.expect("[")
        number = 0
        while not window.skip("]"):
            number += 1
            place = f"conversation {number}"
            if number > 1 and not window.skip(","):
                raise BadInputError(place, "a comma is missing before it")
            element, size = window.element(place)
            yield number, element, size
        if not window.at_end():
            raise BadInputError(f"conversation {number}", "the array ends after it, but more follows")

    def _chunks(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")()
        chunk = self.head()
        try:
            while chunk:
                self._on_read(len(chunk))
                yield decoder.decode(chunk)
                chunk = self._stream.read(_CHUNK)
            yield decoder.decode(b"", final=True)
        except UnicodeDecodeError as exc:
            raise BadInputError("the file", f"not UTF-8: {exc.reason}") from exc


class _Window:
    """The part of a JSON text that is in memory."""

    def __init__(self, chunks: Iterator[str]) -> None:
        self._chunks = chunks
        self._text, self._at = "", 0
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)

    def _more(self, least: int = 1) -> bool:
        """Read at least so many characters more, unless it ends before."""
        parts, got = [self._text[self._at :]], 0
        for chunk in self._chunks:
            parts.append(chunk)
            got += len(chunk)
            if got >= least:
                break
        self._text, self._at = "".join(parts), 0
        return got > 0

    def skip(self, sign: str) -> bool:
        """Go past white space and then past *sign*, if it is there."""
        self._skip_space()
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True

    def expect(self, sign: str) -> None:
        if not self.skip(sign):
            raise BadInputError("line 1", f"not a JSON array (no {sign!r})")

    def at_end(self) -> bool:
        self._skip_space()
        return self._at == len(self._text)

    def _skip_space(self) -> None:
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or not self._more():
                return

    def element(self, place: str) -> tuple[dict[str, Any], int]:
        """The object that starts here, and its size in characters."""
        self._skip_space()
        if not self._text.startswith("{", self._at):
            raise BadInputError(place, "not a JSON object")
        while True:
            try:
                found, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as exc:
                cut = exc.msg.startswith("Unterminated") or exc.pos >= len(self._text) - _NEAR_THE_END
                # Doubling what is held keeps the work linear in an element's size.
                if not cut or not self._more(len(self._text) - self._at):
                    raise BadInputError(place, f"not JSON: {exc.msg}") from exc
            except (ValueError, RecursionError) as exc:
                raise BadInputError(place, f"not JSON: {exc}") from exc
            else:
                size, self._at = end - self._at, end
                return found, size


def parsed(line: bytes, place: str) -> Any:
    """A line's JSON; lone surrogates and big integers are fine.

    Raises:
        BadInputError: It is not JSON.
    """
    try:
        return json.loads(line, parse_constant=_refuse_constant)
    except json.JSONDecodeError as exc:
        raise BadInputError(place, f"not JSON: {exc.msg} at column {exc.colno}") from exc
    except (ValueError, RecursionError) as exc:
        raise BadInputError(place, f"not JSON: {exc}") from exc


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
