"""The common chat format: lines of ``{"messages": [{"role": ..., "content": ...}, ...]}``.

Optional beside ``messages``: ``id`` (or ``thread_id``, ``conversation_id``), ``title``, ``user`` (or
``user_id``, ``resource_id``), ``created_at`` and ``updated_at`` (or ``create_time``, ``timestamp``,
``update_time``), ``metadata``; in a message: ``id`` (stored after the conversation's: ``c1/7``),
``created_at``, ``type``, ``metadata``. Any other field goes into the metadata, but for a message's tool
calls, which are content.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from ...arguments import ID_LENGTH
from ._conversation import Conversation, Turn, derived_id, instant, text_field
from ._source import BadInputError, Entry, Source, parsed

__all__ = ["read_chat"]

_IDS = ("id", "thread_id", "conversation_id")
_OWNERS = ("user", "user_id", "resource_id")
_CREATED = ("created_at", "create_time", "timestamp", "created")
_UPDATED = ("updated_at", "update_time")
_CALLS = ("tool_calls", "function_call")


def read_chat(source: Source, owner: str) -> Iterator[Entry]:
    """Every conversation of a file, a line (or an array's element) each.

    Raises:
        BadInputError: A line is not a conversation.
    """
    start = datetime.now(UTC)
    for number, found, size in source.elements() if source.starts_array() else _objects(source):
        place = f"{'conversation' if source.starts_array() else 'line'} {number}"
        conversation = _conversation(found, place, number, owner)
        # Without times of their own, conversations are listed in the order of the file.
        yield from conversation.entries(size, start + timedelta(microseconds=number))


def _objects(source: Source) -> Iterator[tuple[int, Any, int]]:
    for number, line in source.lines():
        yield number, parsed(line, f"line {number}"), len(line)


def _conversation(found: Any, place: str, number: int, owner: str) -> Conversation:
    if not isinstance(found, dict):
        raise BadInputError(place, 'not an object with "messages"')
    fields = dict(cast("dict[str, Any]", found))
    messages = fields.pop("messages", None)
    if not isinstance(messages, list):
        raise BadInputError(place, '"messages" is not a list')
    identifier = text_field(_first(fields, _IDS), place, "id") or derived_id(number, found)
    turns = [
        _turn(turn, identifier, place, f"messages[{i}]") for i, turn in enumerate(cast("list[Any]", messages))
    ]
    given = [turn.id for turn in turns if turn.id is not None]
    if len(set(given)) < len(given):
        raise BadInputError(place, "two of its messages have one id")
    return Conversation(
        place=place,
        id=identifier,
        owner=text_field(_first(fields, _OWNERS), place, "user") or owner,
        title=text_field(fields.pop("title", None), place, "title"),
        created_at=instant(_first(fields, _CREATED), place, "created_at"),
        updated_at=instant(_first(fields, _UPDATED), place, "updated_at"),
        turns=turns,
        metadata=_metadata(fields, place, "metadata"),
    )


def _turn(found: Any, conversation: str, place: str, at: str) -> Turn:
    if not isinstance(found, dict):
        raise BadInputError(place, f"{at} is not an object")
    fields = dict(cast("dict[str, Any]", found))
    role = text_field(fields.pop("role", None), place, f"{at}.role")
    if not role:
        raise BadInputError(place, f'{at} has no "role"')
    calls = {name: fields.pop(name) for name in _CALLS if fields.get(name)}
    if "content" not in fields and not calls:
        raise BadInputError(place, f'{at} has no "content"')
    content: Any = fields.pop("content", None)
    if not (content is None or isinstance(content, (str, list, dict))):
        raise BadInputError(place, f"{at}.content is neither a string nor a list of parts")
    kind = "tool_calls" if calls else "text" if isinstance(content, str) else "parts"
    return Turn(
        role=role,
        content={"content": content, **calls} if calls else content,
        type=text_field(fields.pop("type", None), place, f"{at}.type") or kind,
        at=instant(_first(fields, _CREATED), place, f"{at}.created_at"),
        id=_message_id(conversation, text_field(fields.pop("id", None), place, f"{at}.id")),
        metadata=_metadata(fields, place, f"{at}.metadata"),
    )


def _message_id(conversation: str, given: str) -> str | None:
    """Many files number the messages of each conversation anew, while here each id is unique."""
    if not given:
        return None
    whole = f"{conversation}/{given}"
    return whole if len(whole) <= ID_LENGTH else derived_id(conversation, given)


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The first of these fields that has a value; all of them are taken out."""
    values = [fields.pop(name, None) for name in names]
    return next((value for value in values if value is not None), None)


def _metadata(fields: dict[str, Any], place: str, at: str) -> dict[str, Any]:
    """The ``metadata`` field, and what nothing else took."""
    given = fields.pop("metadata", None)
    if not (given is None or isinstance(given, dict)):
        raise BadInputError(place, f"{at} is not an object")
    return {**fields, **cast("dict[str, Any]", given or {})}
