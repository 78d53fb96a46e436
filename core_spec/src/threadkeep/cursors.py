"""Opaque, versioned keyset cursors: the place after which a query goes on, bound to that query.

Format: unpadded base64url of a version byte (1), 6 bytes of BLAKE2b over the query's canonical JSON, 4 bytes
    of
BLAKE2b over the place, and the place itself as a JSON array. A cursor is no secret and no permission: scope
and filter are applied again on every call.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import Any

import msgspec

from .errors import InvalidCursorError
from .jsontext import kind

__all__ = ["decode_cursor", "encode_cursor", "fingerprint"]

_VERSION = 1
_QUERY, _CHECK = 6, 4
_LENGTH_MAX = 4096  # an id of 255 characters escapes to 12 bytes each at most
_INT64 = 2**63

_encode = msgspec.json.Encoder().encode
_decode_place = msgspec.json.Decoder(
    list[int | str]
).decode  # made once: making it takes longer than decoding


def fingerprint(*query: object) -> bytes:
    """What a cursor is bound to: scope, filter, dates and order."""
    return blake2b(_encode(query), digest_size=_QUERY).digest()


def encode_cursor(query: bytes, place: tuple[int | str, ...]) -> str:
    """Make a cursor for a query's fingerprint and a place in its order."""
    body = _encode(place)
    check = blake2b(body, digest_size=_CHECK).digest()
    return urlsafe_b64encode(bytes([_VERSION]) + query + check + body).rstrip(b"=").decode()


def decode_cursor(cursor: object, query: bytes, shape: tuple[type, ...]) -> tuple[Any, ...]:
    """Read the place out of a cursor.

    Args:
        cursor: What the caller gave.
        query: The fingerprint of the query it is used with.
        shape: The types of the place's parts.

    Raises:
        InvalidCursorError: It is damaged, or was made by another query.
    """
    if not isinstance(cursor, str):
        raise InvalidCursorError("cursor", "a str that a page returned as next_cursor", kind(cursor))
    damaged = InvalidCursorError("cursor", "exactly what a page returned as next_cursor", kind(cursor))
    if len(cursor) > _LENGTH_MAX or not cursor.isascii():
        raise damaged
    try:
        raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        canonical = urlsafe_b64encode(raw).rstrip(b"=").decode()
        place = _decode_place(raw[1 + _QUERY + _CHECK :])
    except (ValueError, msgspec.MsgspecError) as exc:
        raise damaged from exc
    head, body = raw[: 1 + _QUERY + _CHECK], raw[1 + _QUERY + _CHECK :]
    if (
        canonical != cursor
        or head[0] != _VERSION
        or head[1 + _QUERY :] != blake2b(body, digest_size=_CHECK).digest()
    ):
        raise damaged
    if head[1 : 1 + _QUERY] != query:
        raise InvalidCursorError(
            "cursor", "used with the query that returned it", "a cursor of another query"
        )
    if tuple(map(type, place)) != shape or not all(map(_is_possible, place)):
        raise damaged  # forged: nothing is signed
    return tuple(place)


def _is_possible(part: int | str) -> bool:
    """Whether a part of a place can be handed to a database."""
    return -_INT64 <= part < _INT64 if isinstance(part, int) else "\0" not in part
