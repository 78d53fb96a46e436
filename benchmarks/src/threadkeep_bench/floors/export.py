"""Reading the messages of a threadkeep export as one would by hand: decoded, and not checked."""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["messages_of"]


class _Line(msgspec.Struct):
    kind: str
    thread_id: str = ""
    id: str = ""
    role: str = ""
    type: str = ""
    content: Any = None
    metadata: dict[str, Any] = {}
    created_at: datetime | None = None
    seq: int = 0


def messages_of(export: Path) -> Generator[dict[str, Any]]:
    """The messages of a file, one at a time."""
    decode = msgspec.json.Decoder(_Line).decode
    with export.open("rb") as lines:
        for line in lines:
            found = decode(line)
            if found.kind == "message":
                yield msgspec.structs.asdict(found)
