"""The database: a folder of JSON files, and a lock that makes every call one step.

``threads/`` and ``resources/`` have a file for each, named by the hash of its id; ``memories.json`` has all
archive memories, ``version.json`` the layout's version.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from threadkeep import CorruptDataError, SchemaVersionError
from threadkeep.records import MemoryRecord, MessageRecord, ResourceRecord, ThreadRecord

VERSION = 1

Value = TypeVar("Value")


class Conversation(msgspec.Struct, frozen=True):
    """What a thread's file has: the thread, and its messages by id."""

    thread: ThreadRecord
    messages: dict[str, MessageRecord]


class Folder:
    """The files.

    Attributes:
        path: The folder.
        changed: Whether something was written since the lock was taken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.changed = False

    @contextmanager
    def locked(self) -> Generator[None]:
        """Be the only one who reads or writes, in any process."""
        with (self.path / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed, or the process is gone
            self.changed = False
            yield

    # --- the layout ---

    def version(self) -> int:
        """The layout's version; 0 where there is none yet."""
        return self._read(self.path / "version.json", int) or 0

    def put_version(self, version: int) -> None:
        """Record the layout's version."""
        self._write(self.path / "version.json", version)

    def require_current(self) -> None:
        """Refuse a layout of another version."""
        found = self.version()
        if found != VERSION:
            remedy = "upgrade threadkeep-jsonfile" if found > VERSION else "open it with migrate=True"
            raise SchemaVersionError(found, VERSION, remedy)

    def migrate(self) -> None:
        """Make the layout, or refuse a newer one."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self.locked():
            if self.version() == 0:
                for name in ("threads", "resources"):
                    (self.path / name).mkdir(exist_ok=True)
                self.put_version(VERSION)
            self.require_current()

    # --- threads, each with its messages ---

    def thread(self, thread_id: str) -> Conversation | None:
        """One thread."""
        return self._read(self._file("threads", thread_id), Conversation)

    def threads(self) -> Iterator[Conversation]:
        """Every thread."""
        return self._all("threads", Conversation)

    def put_thread(self, thread: ThreadRecord, messages: dict[str, MessageRecord]) -> ThreadRecord:
        """Write a thread's file; returns the thread with its messages counted."""
        counted = replace(thread, message_count=len(messages))
        self._write(self._file("threads", counted.id), Conversation(counted, messages))
        return counted

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread's file."""
        self._remove(self._file("threads", thread_id))

    # --- resources and archive memories ---

    def resource(self, resource_id: str) -> ResourceRecord | None:
        """One resource."""
        return self._read(self._file("resources", resource_id), ResourceRecord)

    def resources(self) -> Iterator[ResourceRecord]:
        """Every resource."""
        return self._all("resources", ResourceRecord)

    def put_resource(self, resource: ResourceRecord) -> None:
        """Write a resource's file."""
        self._write(self._file("resources", resource.id), resource)

    def delete_resource(self, resource_id: str) -> None:
        """Remove a resource's file."""
        self._remove(self._file("resources", resource_id))

    def memories(self) -> dict[int, MemoryRecord]:
        """All archive memories, by id."""
        return self._read(self.path / "memories.json", dict[int, MemoryRecord]) or {}

    def put_memories(self, memories: dict[int, MemoryRecord]) -> None:
        """Write all archive memories."""
        self._write(self.path / "memories.json", memories)

    # --- files ---

    def _file(self, kind: str, name: str) -> Path:
        return self.path / kind / f"{sha256(name.encode()).hexdigest()}.json"  # an id may be no file name

    def _all(self, kind: str, of: type[Value]) -> Iterator[Value]:
        for path in sorted((self.path / kind).iterdir()):
            found = self._read(path, of)
            if found is not None:
                yield found

    def _read(self, path: Path, of: type[Value]) -> Value | None:
        try:
            return msgspec.json.decode(path.read_bytes(), type=of)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
            raise CorruptDataError(path.name, str(exc)) from exc

    def _write(self, path: Path, value: object) -> None:
        """Replace a file: after a crash it is the old one or the new one, whole, and on disk."""
        part = self.path / "part"  # one is enough: only who has the lock writes
        with part.open("wb") as file:
            file.write(msgspec.json.encode(value))
            file.flush()
            os.fsync(file.fileno())
        self.changed = True
        part.replace(path)
        self._sync(path.parent)

    def _remove(self, path: Path) -> None:
        self.changed = True
        path.unlink()
        self._sync(path.parent)

    def _sync(self, folder: Path) -> None:
        """Put a change of names on disk, too."""
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
