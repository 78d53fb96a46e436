"""Filter tokens: one text per metadata key, whose code-point order is the order of values.

JSON columns, SQL casts and BSON comparison each break exactness somewhere (``True`` against ``1``,
2**53 + 1, ``1e16``), so equality and ranges are asked of these tokens instead, the same on every backend.

Token = ``key=`` + tag + body. Tags: 0 list or object, 1 null, 2 false, 3 true, 4 number, 5 string.

Number: f is the largest float64 not above the value, ``-0.0`` made ``0.0``. The body is base32hex of f's bits
(big-endian, made sortable: all bits flipped below zero, else the sign bit set) and of the 16-bit difference
between the value and f: 80 bits, 16 characters. An int64 is at most 1,023 above its f, so the pair is exact.

String: up to 64 code points, itself; longer, its first 64 and the unpadded base64url SHA-256 of its UTF-8.
A string longer than 64 always carries the hash, so no two strings share a token.
"""

from __future__ import annotations

import math
import struct
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from string import ascii_letters, digits
from typing import Any

__all__ = ["STRING_PREFIX", "TOKEN_VERSION", "Scalar", "is_filter_key", "metadata_tokens", "token"]

Scalar = str | int | float | bool | None
"""What a filter can compare with."""

TOKEN_VERSION = 1
"""Recorded with every schema; another version means recomputing the tokens from the stored metadata."""

STRING_PREFIX = 64
"""Code points of a string that its token holds as they are."""

_KEY_START = frozenset(ascii_letters + "_")
_KEY_REST = frozenset(ascii_letters + digits + "_")
_RESERVED = frozenset({"__proto__", "prototype", "constructor"})
_KEY_LENGTH = 128

_BASE32HEX = "0123456789ABCDEFGHIJKLMNOPQRSTUV"
_PAIRS = tuple(high + low for high in _BASE32HEX for low in _BASE32HEX)  # 10 bits at a time: 8 look-ups
_FLOAT = struct.Struct(">d")
_BITS = struct.Struct(">Q")
_SIGN = 1 << 63
_ALL = (1 << 64) - 1


@lru_cache(maxsize=4096)
def is_filter_key(key: str) -> bool:
    """Whether a metadata key can be filtered by: ASCII letters, digits and ``_``, not starting with a digit.

    At most 128 characters, and none of ``__proto__``, ``prototype``, ``constructor``.
    """
    return (
        0 < len(key) <= _KEY_LENGTH
        and key[0] in _KEY_START
        and _KEY_REST.issuperset(key)
        and key not in _RESERVED
    )


def token(key: str, value: object) -> str:
    """The token of one metadata value.

    Args:
        key: A legal filter key.
        value: A scalar within the contract's limits (str, int64, finite float, bool, None); any other JSON
            value shares the one token of lists and objects.
    """
    if type(value) is str and len(value) > STRING_PREFIX:
        return f"{key}=5{_long_string(value)}"  # not cached: it may be 64 KiB
    if value is None or isinstance(value, (str, int, float)):
        return _scalar_token(key, value)
    return key + "=0"


def metadata_tokens(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The tokens of a metadata object, one per filterable top-level key, in the object's order."""
    return tuple([token(key, value) for key, value in metadata.items() if is_filter_key(key)])


@lru_cache(maxsize=8192, typed=True)  # metadata values repeat; typed keeps True, 1 and 1.0 apart
def _scalar_token(key: str, value: Scalar) -> str:
    if value is None:
        return key + "=1"
    if isinstance(value, bool):
        return key + ("=3" if value else "=2")
    if isinstance(value, str):
        return f"{key}=5{_long_string(value) if len(value) > STRING_PREFIX else value}"
    return f"{key}=4{_number(value)}"


def _long_string(value: str) -> str:
    digest = urlsafe_b64encode(sha256(value.encode()).digest()).rstrip(b"=").decode()
    return value[:STRING_PREFIX] + digest


def _number(value: float) -> str:
    floor = float(value)
    difference = 0
    if isinstance(value, int):
        if int(floor) > value:
            floor = math.nextafter(floor, -math.inf)
        difference = value - int(floor)
    bits: int = _BITS.unpack(_FLOAT.pack(floor + 0.0))[0]  # -0.0 + 0.0 is 0.0
    sortable = (bits ^ _ALL) if bits & _SIGN else (bits | _SIGN)
    packed = sortable << 16 | difference
    return "".join([_PAIRS[packed >> shift & 1023] for shift in range(70, -1, -10)])
