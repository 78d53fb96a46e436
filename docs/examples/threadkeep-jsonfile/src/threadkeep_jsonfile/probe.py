"""What the conformance kit may do to the folder behind the adapter's back."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from threadkeep import Store
from threadkeep.urls import StoreUrl

from .folder import Folder


class Probe:
    """Damage, another version, and a disk that takes no writes."""

    async def corrupt_message(self, url: str, message_id: str) -> None:
        """Overwrite the content of a message with what is no JSON."""
        folder = _folder(url)
        for one in list(folder.threads()):
            if message_id in one.messages:
                one.messages[message_id] = replace(one.messages[message_id], content="{")
                folder.put_thread(one.thread, one.messages)

    async def set_schema_version(self, url: str, version: int) -> int:
        """Overwrite the version of the layout; returns what it was."""
        folder = _folder(url)
        before = folder.version()
        folder.put_version(version)
        return before

    @asynccontextmanager
    async def full_disk(self, url: str, store: Store) -> AsyncGenerator[None]:
        """Make every write fail: each begins with a new file of this name."""
        del store
        part = _folder(url).path / "part"
        part.unlink(missing_ok=True)
        part.mkdir()
        try:
            yield
        finally:
            part.rmdir()

    read_only = full_disk


def _folder(url: str) -> Folder:
    return Folder(Path(StoreUrl.parse(url, known=frozenset()).path))
