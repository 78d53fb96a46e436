"""The ``conversations.json`` of a ChatGPT data export.

Each conversation is a tree of nodes, since an answer can be made again and a question edited; the branch that
ends at ``current_node`` becomes the thread. Hidden and empty messages are left out. A message's own id goes
into its metadata as ``message_id``: copies of a conversation share such ids, while here each id is unique.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from ._conversation import Conversation, Turn, derived_id, instant, text_field
from ._source import BadInputError, Entry, Source

__all__ = ["read_chatgpt"]

_THREAD_FIELDS = ("default_model_slug", "is_archived", "is_starred", "gizmo_id")


def read_chatgpt(source: Source, owner: str) -> Iterator[Entry]:
    """Every conversation of an export, which says of no conversation whose it is.

    Raises:
        BadInputError: It is not such an export.
    """
    start = datetime.now(UTC)
    for number, found, size in source.elements():
        conversation = _conversation(found, f"conversation {number}", number, owner)
        yield from conversation.entries(size, start + timedelta(microseconds=number))


def _conversation(found: dict[str, Any], place: str, number: int, owner: str) -> Conversation:
    mapping = found.get("mapping")
    if not isinstance(mapping, dict):
        raise BadInputError(place, 'it has no "mapping"')
    given = text_field(found.get("conversation_id") or found.get("id"), place, "id")
    identifier = given or derived_id(number, found)
    branch = _branch(cast("dict[str, Any]", mapping), found.get("current_node"), place)
    turns = [_turn(node, identifier, place) for node in branch]
    return Conversation(
        place=place,
        id=identifier,
        owner=owner,
        title=text_field(found.get("title"), place, "title"),
        metadata={name: found[name] for name in _THREAD_FIELDS if found.get(name) is not None},
        created_at=instant(found.get("create_time"), place, "create_time"),
        updated_at=instant(found.get("update_time"), place, "update_time"),
        turns=[turn for turn in turns if turn is not None],
    )


def _branch(mapping: dict[str, Any], current: Any, place: str) -> list[tuple[str, dict[str, Any]]]:
    """The nodes from the root to the current one, or to the newest leaf where none is named."""
    if not (current is None or isinstance(current, str)):
        raise BadInputError(place, "its current_node is no name")
    name = current if current in mapping else _newest_leaf(mapping, place)
    found: dict[str, dict[str, Any]] = {}
    while name is not None:
        node = mapping.get(name)
        if not isinstance(node, dict):
            raise BadInputError(place, f"node {name!r} is missing or not an object")
        if name in found:
            raise BadInputError(place, f"node {name!r} is its own ancestor")
        found[name] = cast("dict[str, Any]", node)
        name = found[name].get("parent")
        if not (name is None or isinstance(name, str)):
            raise BadInputError(place, f"the parent of node {next(reversed(found))!r} is no name")
    return list(reversed(found.items()))


def _newest_leaf(mapping: dict[str, Any], place: str) -> str | None:
    leaf = None
    for name, node in mapping.items():
        if not isinstance(node, dict):
            raise BadInputError(place, f"node {name!r} is not an object")
        children = cast("dict[str, Any]", node).get("children")
        if not (children is None or isinstance(children, list)):
            raise BadInputError(place, f"the children of node {name!r} are not a list")
        if not children:
            leaf = name
    if mapping and leaf is None:
        raise BadInputError(place, "every node has children: none ends the conversation")
    return leaf


def _turn(node: tuple[str, dict[str, Any]], conversation: str, place: str) -> Turn | None:
    """A node's message, or None where it has none to show."""
    name, fields = node
    at = f"node {name!r}"
    message = _object(fields, "message", place, at)
    author, content, extra = (
        _object(message, field, place, at) for field in ("author", "content", "metadata")
    )
    if not message or extra.get("is_visually_hidden_from_conversation") or not _says_something(content):
        return None
    kind = text_field(content.get("content_type"), place, f"{at}.content_type") or "text"
    parts = content.get("parts")
    is_text = (
        kind == "text"
        and isinstance(parts, list)
        and all(isinstance(part, str) for part in cast("list[Any]", parts))
    )
    kept = {"message_id": message.get("id"), "model": extra.get("model_slug"), "name": author.get("name")}
    if message.get("recipient") not in (None, "all"):
        kept["recipient"] = message["recipient"]
    return Turn(
        role=text_field(author.get("role"), place, f"{at}.role") or "unknown",
        content="\n".join(cast("list[str]", parts)) if is_text else content,
        type=kind,
        metadata={field: value for field, value in kept.items() if value is not None},
        at=instant(message.get("create_time"), place, f"{at}.create_time"),
        id=derived_id(conversation, name),
    )


def _says_something(content: dict[str, Any]) -> bool:
    """Whether anything but the content's kind is there and not empty."""
    return any(
        any(cast("list[Any]", value)) if isinstance(value, list) else value not in (None, "")
        for field, value in content.items()
        if field not in ("content_type", "language", "response_format_name")
    )


def _object(fields: dict[str, Any], name: str, place: str, at: str) -> dict[str, Any]:
    """A field that is an object; empty where there is none."""
    value = fields.get(name)
    if not (value is None or isinstance(value, dict)):
        raise BadInputError(place, f"the {name} of {at} is not an object")
    return cast("dict[str, Any]", value or {})
