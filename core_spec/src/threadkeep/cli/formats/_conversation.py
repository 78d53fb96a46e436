"""Conversations of other tools' files: what the formats that are not ours have in common."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from ...models import NewMessage, Thread
from ._source import BadInputError, Entry

__all__ = ["Conversation", "Turn", "derived_id", "instant", "text_field"]

_NAMESPACE: UUID = uuid5(NAMESPACE_URL, "threadkeep:import")
_MILLISECONDS = 1e11  # seconds of the year 5138: what is more is milliseconds


class Turn(NamedTuple):
    """A message as another tool has it.

    Attributes:
        role: Its role.
        content: Its content.
        type: Its type.
        metadata: Its metadata.
        at: Its time, where given.
        id: Its id, where given.
    """

    role: str
    content: Any
    type: str
    metadata: dict[str, Any]
    at: datetime | None
    id: str | None


class Conversation(NamedTuple):
    """A thread as another tool has it; None and empty where it does not say."""

    place: str
    id: str
    owner: str
    title: str
    metadata: dict[str, Any]
    created_at: datetime | None
    updated_at: datetime | None
    turns: list[Turn]

    def entries(self, size: int, now: datetime) -> Iterator[Entry]:
        """The thread, then its messages in the file's order.

        A turn without a time has that of the one before it, and a turn that claims to be earlier too: the
        order of the file is the order of the conversation. Ids are the same at every import.

        Args:
            size: About how many bytes it took in the file.
            now: The time of what has none.
        """
        given = [turn.at for turn in self.turns if turn.at is not None]
        is_dated = bool(given or self.created_at or self.updated_at)
        first = given[0] if given else self.created_at or self.updated_at or now
        created_at = min(self.created_at or first, first)
        at, messages = created_at, list[NewMessage]()
        for position, turn in enumerate(self.turns):
            at = max(at, turn.at or at)
            messages.append(
                NewMessage(
                    self.id,
                    turn.role,
                    turn.content,
                    id=turn.id or derived_id(self.id, position, [turn.role, turn.content]),
                    type=turn.type,
                    metadata=turn.metadata,
                    created_at=at,
                )
            )
        thread = Thread(
            id=self.id,
            resource_id=self.owner,
            title=self.title,
            metadata=self.metadata,
            created_at=created_at,
            updated_at=max(at, self.updated_at or at),
        )
        share = size // (len(messages) + 1)
        yield Entry(self.place, thread, share, is_partial=True, is_dated=is_dated)
        for message in messages:
            yield Entry(self.place, message, share)


def derived_id(*parts: Any) -> str:
    """An id that is the same whenever the parts are."""
    text = json.dumps(parts, sort_keys=True)  # in ASCII, lone surrogates too
    return str(uuid5(_NAMESPACE, hashlib.sha256(text.encode()).hexdigest()))


def instant(value: Any, place: str, field: str) -> datetime | None:
    """A time as other tools write it: ISO text (UTC where it does not say), or (milli)seconds since 1970.

    Raises:
        BadInputError: It is none of these.
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > _MILLISECONDS else value
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except (ValueError, OverflowError) as exc:
        raise BadInputError(place, f"{field} is not a time: {exc}") from exc
    raise BadInputError(place, f"{field} is not a time")


def text_field(value: Any, place: str, field: str) -> str:
    """A field that is text, or a number used as a name; empty where there is none.

    Raises:
        BadInputError: It is something else.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BadInputError(place, f"{field} is not a string")
