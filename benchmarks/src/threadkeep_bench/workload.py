"""Seeded, realistic messages whose filters match a known share, made one at a time: memory stays constant.

A message has five to eight metadata keys of every scalar type. A key with one of N values takes them by a
permutation of the message's number, so that each value has exactly its share of every N messages in a row:

============  =======  ========================================
key           type     share of all messages that a value has
============  =======  ========================================
``ticket``    int      0.01 %
``customer``  str      0.1 %
``score``     float    1 %
``priority``  int      10 %
``escalated`` bool     50 %
``language``  str      17 % (two thirds of the messages have it)
``archived``  null     25 %
``tags``      list     not filterable (a tenth has it)
============  =======  ========================================
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from threadkeep import Message

__all__ = ["SHARES", "START", "messages", "metadata", "value_of"]

START = datetime(2024, 1, 1, tzinfo=UTC)
"""When the first message was written; each next is 7 seconds later, every tenth at the time of the last."""

SHARES = {"ticket": 0.0001, "customer": 0.001, "score": 0.01, "priority": 0.1, "escalated": 0.5}
"""The share of all messages that one value of a key matches."""

_SEED = 20240101
_GAP = timedelta(seconds=7)
_PRIME = 7919  # coprime with the numbers of values, so multiplying by it permutes them
_LANGUAGES = ("en", "de", "ja", "pt-BR")
_WORDS = (
    "the invoice order was not shipped yet please check again thanks account login reset password why does",
    "it fail since yesterday customer wants refund for two items delivery address changed to Zürich",
    "können Sie das prüfen bitte 請求書 が 届きません ありがとう não consigo entrar 👍 🙏 timeout works now",
)


def value_of(key: str, number: int) -> str | int | float | bool:
    """The value of a key in message *number*; a filter for it matches ``SHARES[key]`` of all messages.

    A ticket belongs to one customer; apart from that the keys are independent of each other.
    """
    if key == "ticket":
        return 100_000 + number * _PRIME % 10_000
    if key == "customer":
        return f"customer-{number * _PRIME % 1_000:04d}"
    if key == "score":
        return (number * 7 + number // 1_000) % 100 / 100
    if key == "priority":
        return (number * 3 + number // 1_000) % 10
    return (number + number // 10_000) % 2 == 0


def metadata(number: int) -> dict[str, Any]:
    """The metadata of message *number*."""
    found: dict[str, Any] = {key: value_of(key, number) for key in SHARES}
    if number % 3:
        found["language"] = _LANGUAGES[number // 3 % 4]
    if number % 4 == 0:
        found["archived"] = None
    if number % 10 == 0:
        found["tags"] = ["import", "v2"]
    return found


def _sentences(rng: random.Random) -> list[str]:
    """Texts to compose bodies of; building every word anew would cost more than storing it."""
    words = " ".join(_WORDS).split()
    return [" ".join(rng.choices(words, k=rng.randint(4, 14))) for _ in range(512)]


def messages(thread_id: str, resource_id: str, count: int, *, first: int = 0) -> Iterator[Message]:
    """The messages *first* to *first + count* of a thread, their number as ``seq``; the same on every call.

    Bodies have 1 to 5 sentences, one in fifty 40 (about 2,000 characters): 250 characters on average.
    """
    rng = random.Random(f"{_SEED} {thread_id} {first}")
    sentences = _sentences(rng)
    for number in range(first, first + count):
        length = 40 if number % 50 == 49 else rng.randint(1, 5)
        text = ". ".join(rng.choices(sentences, k=length))
        moment = START + (number - (number % 10 == 9)) * _GAP
        yield Message(
            id=_uuid7(moment, rng),
            thread_id=thread_id,
            resource_id=resource_id,
            role=("user", "assistant")[number % 2],
            content={"parts": [{"type": "text", "text": text}]},
            metadata=metadata(number),
            created_at=moment,
            seq=number,
        )


def _uuid7(moment: datetime, rng: random.Random) -> str:
    """A UUIDv7 whose random part is seeded."""
    at = int(moment.timestamp() * 1000)
    bits = f"{rng.getrandbits(74):019x}"
    return f"{at >> 16:08x}-{at & 0xFFFF:04x}-7{bits[:3]}-8{bits[3:6]}-{bits[6:18]}"
