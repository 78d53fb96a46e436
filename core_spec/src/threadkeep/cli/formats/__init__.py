"""What ``threadkeep import`` reads and ``export`` writes: entries out of bytes, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ._source import BadInputError, Entry, Source
from .chat import read_chat
from .chatgpt import read_chatgpt
from .native import line_of, read_native

__all__ = ["FORMATS", "BadInputError", "Entry", "Source", "entries", "line_of"]

FORMATS = ("auto", "threadkeep", "chat", "chatgpt")
_READERS: dict[str, Callable[[Source, str], Iterator[Entry]]] = {
    "threadkeep": lambda source, _: read_native(source),
    "chat": read_chat,
    "chatgpt": read_chatgpt,
}


def entries(source: Source, format_name: str, owner: str) -> Iterator[Entry]:
    """Everything a file says, in its order.

    Args:
        source: The file.
        format_name: One of ``FORMATS``; ``auto`` looks at the first bytes.
        owner: The resource of conversations that name none.

    Raises:
        BadInputError: A line or conversation cannot be understood, or ``auto`` cannot tell the format.
    """
    name = _detected(source) if format_name == "auto" else format_name
    return iter(()) if name is None else _READERS[name](source, owner)


def _detected(source: Source) -> str | None:
    """The format by its first keys; None for an empty file, which is an empty file of any format."""
    head = source.head().lstrip()
    if not head:
        return None
    keys = source.first_keys()
    if "kind" in keys:
        return "threadkeep"
    if "messages" in keys:
        return "chat"
    if "mapping" in keys or head.replace(b" ", b"")[:2] == b"[]":
        return "chatgpt"
    raise BadInputError("line 1", "no known format: say which with --format threadkeep, chat or chatgpt")
