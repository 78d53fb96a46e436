"""The export format: JSON lines of ``{"kind": "thread" | "message" | "resource" | "memory", ...}``.

The rest of a line are the model's fields: the models say what they mean. Times are ISO. A thread's line comes
before its messages' lines; apart from that any order will do.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...models import ArchiveMemory, Message, Resource, Thread
from .._output import json_bytes
from ._source import BadInputError, Entry, Source, parsed

__all__ = ["line_of", "read_native"]


# A line is its model with one more field. What a later version may add is refused here, not lost.
class _ThreadLine(
    Thread, frozen=True, kw_only=True, tag_field="kind", tag="thread", forbid_unknown_fields=True
):
    pass


class _MessageLine(
    Message, frozen=True, kw_only=True, tag_field="kind", tag="message", forbid_unknown_fields=True
):
    pass


class _ResourceLine(
    Resource, frozen=True, kw_only=True, tag_field="kind", tag="resource", forbid_unknown_fields=True
):
    pass


class _MemoryLine(
    ArchiveMemory, frozen=True, kw_only=True, tag_field="kind", tag="memory", forbid_unknown_fields=True
):
    pass


_Line = _ThreadLine | _MessageLine | _ResourceLine | _MemoryLine
_KINDS = {Thread: b"thread", Message: b"message", Resource: b"resource", ArchiveMemory: b"memory"}
_decode = msgspec.json.Decoder(_Line).decode


def line_of(record: Thread | Message | Resource | ArchiveMemory) -> bytes:
    """A record's line, with the line break."""
    return b'{"kind":"%b",%b\n' % (_KINDS[type(record)], json_bytes(record)[1:])


def read_native(source: Source) -> Iterator[Entry]:
    """Everything in a file of this format.

    Raises:
        BadInputError: A line is not as it must be.
    """
    for number, line in source.lines():
        place = f"line {number}"
        try:
            record = _decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            record = _slowly(line, place)
        yield Entry(place, record, len(line))


def _slowly(line: bytes, place: str) -> _Line:
    """The line through the standard library, which takes lone surrogates; or what is wrong with it."""
    found = parsed(line, place)
    try:
        return msgspec.convert(found, _Line)
    except msgspec.MsgspecError as exc:
        raise BadInputError(place, str(exc)) from exc
    except UnicodeEncodeError as exc:  # outside of content, a lone surrogate is no text
        raise BadInputError(place, "a lone surrogate where only text may be") from exc
