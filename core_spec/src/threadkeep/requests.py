"""What a store asks of an adapter: checked, frozen, with every decision that is the same on all backends.

A read request says what to find. A write request also *decides*: an adapter loads, inside its write, what the
write depends on, passes it to the request's ``resolve``, ``apply`` or ``check``, which raise the contract's
errors or say exactly what to store, and stores that. So the rules about owners, guards, merges and limits
exist once, and a backend can neither forget one nor differ in it. An adapter whose database decides the same
natively may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from .clock import MAX_US, from_us
from .errors import ConflictError, NotFoundError, OwnershipError
from .filters import Condition, Operator
from .jsontext import decode, encode_metadata, merge_working_memory
from .models import Include
from .records import MemoryRecord, MessageRecord, Position, ResourceRecord, ThreadRecord
from .tokens import metadata_tokens

__all__ = [
    "Bounds",
    "CloneThread",
    "ClonedThread",
    "DeleteMessages",
    "MemoryQuery",
    "MemorySlice",
    "MessageChange",
    "MessageQuery",
    "MessageSlice",
    "Placement",
    "ResourceQuery",
    "ResourceSlice",
    "SaveMemories",
    "SaveMessages",
    "Span",
    "ThreadQuery",
    "ThreadSlice",
    "TransferThread",
    "UpdateMessages",
    "UpdateResource",
    "UpdateThread",
    "WriteThread",
    "matches_nothing",
    "rising",
]

SEQ_MIN = -(2**63)
_TITLE_LENGTH = 1000


def rising(now: int, updated_at: int) -> int:
    """The ``updated_at`` of a touched record: now, but always later than it was.

    Only the last microsecond of year 9999, which an import may have set, stays as it is.
    """
    return min(max(now, updated_at + 1), MAX_US)


# --- reading --------------------------------------------------------------------------------------


class Bounds(msgspec.Struct, frozen=True):
    """An open interval of the total order; both ends are excluded, None is unbounded.

    An end may be a place where nothing can be: an empty id comes before every id.
    """

    after: Position | None = None
    before: Position | None = None


class Span(msgspec.Struct, frozen=True):
    """A half-open span of microseconds; None is unbounded."""

    start: int | None = None
    end: int | None = None

    def bounds(self) -> Bounds:
        """The same as an interval of the total order."""
        return Bounds(
            None if self.start is None else Position(self.start, SEQ_MIN, ""),
            None if self.end is None else Position(self.end, SEQ_MIN, ""),
        )


class MessageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Find messages.

    Attributes:
        threads: Threads to look in, each once, at most 100; None for all of the resource's. Empty: nothing
            matches.
        resource_id: The owner that every message must have; None for any. One of the two is always given.
        where: Conditions that must all hold.
        dates: The requested dates as an interval; the total counts within it.
        bounds: ``dates`` narrowed by the cursor; the page lies within it.
        descending: The order of the page: newest first.
        limit: At most so many messages; None for all, 0 for none. (The store asks for one more than a page.)
        offset: So many messages are skipped first.
        count: Whether the total is wanted.
        includes: Messages to add with their neighbours, at most 100.
    """

    threads: tuple[str, ...] | None
    resource_id: str | None
    where: tuple[Condition, ...] = ()
    dates: Bounds = Bounds()
    bounds: Bounds = Bounds()
    descending: bool = False
    limit: int | None = None
    offset: int = 0
    count: bool = False
    includes: tuple[Include, ...] = ()


class MessageSlice(NamedTuple):
    """What an adapter found: the page in its order, the total where wanted, and the windows in any order.

    ``windows`` has the included messages and their neighbours; one may repeat, or be in the page too.
    """

    messages: list[MessageRecord]
    total: int | None = None
    windows: list[MessageRecord] = []  # noqa: RUF012  (a NamedTuple's default; never changed)


class ThreadQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Find threads, ordered by a time and then by id.

    Attributes:
        resource_id: The owner; None for any.
        where: Conditions that must all hold.
        order_by: Which time orders them, and is the ``at`` of ``bounds`` (whose ``seq`` is 0).
        descending: Newest first; ids descend as well.
        bounds: The interval the page lies in. The total ignores it.
        limit: At most so many; None for all, 0 for none.
        offset: So many are skipped first.
        count: Whether the total is wanted.
    """

    resource_id: str | None = None
    where: tuple[Condition, ...] = ()
    order_by: Literal["created_at", "updated_at"] = "created_at"
    descending: bool = True
    bounds: Bounds = Bounds()
    limit: int | None = None
    offset: int = 0
    count: bool = False


class ThreadSlice(NamedTuple):
    """Threads in the query's order, and the total where wanted."""

    threads: list[ThreadRecord]
    total: int | None = None


class ResourceQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Find resources, ordered by id.

    Attributes:
        after: Only ids after this one; empty for all.
        limit: At most so many; None for all, 0 for none.
        offset: So many are skipped first.
        count: Whether the total is wanted; it ignores ``after``.
    """

    after: str = ""
    limit: int | None = None
    offset: int = 0
    count: bool = False


class ResourceSlice(NamedTuple):
    """Resources in the order of their ids, and the total where wanted."""

    resources: list[ResourceRecord]
    total: int | None = None


class MemoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Find archive memories, newest first, then by rising id.

    Attributes:
        actors: ``(type, id)`` pairs whose memories are looked in (the id of ``shared`` is empty); None for
            all.
        recall: Leave out pinned ones.
        folded: A literal substring that the folded text must have; empty for any.
        after: Only what follows this ``(created_at, id)`` in the order.
        limit: At most so many; None for all, 0 for none.
        offset: So many are skipped first.
        count: Whether the total is wanted; it ignores ``after``.
    """

    actors: tuple[tuple[str, str], ...] | None = None
    recall: bool = False
    folded: str = ""
    after: tuple[int, int] | None = None
    limit: int | None = None
    offset: int = 0
    count: bool = False


class MemorySlice(NamedTuple):
    """Archive memories in the query's order, and the total where wanted."""

    memories: list[MemoryRecord]
    total: int | None = None


# --- writing threads ------------------------------------------------------------------------------


def _check_owner(kind: str, identifier: str, owner: str, resource_id: str | None) -> None:
    if resource_id is not None and owner != resource_id:
        raise OwnershipError(kind, identifier)


def _merged_metadata(
    stored: str, patch: dict[str, Any] | UnsetType, *, replace_all: bool
) -> tuple[str, dict[str, Any]]:
    """The metadata after a change, as text and decoded."""
    if patch is UNSET:
        return stored, decode(stored, "stored metadata")
    if replace_all:
        return encode_metadata(patch)
    return encode_metadata({**decode(stored, "stored metadata"), **patch})


class WriteThread(msgspec.Struct, frozen=True, kw_only=True):
    """Create a thread, or save it whole.

    Attributes:
        thread: The thread; its ``message_count`` is not meant to be stored.
        replace: False: an existing thread stays as it is. True: it is replaced, but for its messages.
    """

    thread: ThreadRecord
    replace: bool

    def resolve(self, stored: ThreadRecord | None) -> ThreadRecord | None:
        """What to store, or None to store nothing.

        Raises:
            OwnershipError: To be replaced, but another resource's.
        """
        if stored is None:
            return replace(self.thread, message_count=0)
        if not self.replace:
            return None
        _check_owner("thread", stored.id, stored.resource_id, self.thread.resource_id)
        return replace(self.thread, message_count=stored.message_count)


class UpdateThread(msgspec.Struct, frozen=True, kw_only=True):
    """Change some of a thread's fields.

    Attributes:
        id: The thread.
        resource_id: Its expected owner; None for any.
        now: Microseconds since 1970.
        title: The new title.
        metadata: Merged shallowly, or the whole of it with ``replace_metadata``.
        replace_metadata: See ``metadata``.
        working_memory: The new document.
        if_title: The title it must have.
    """

    id: str
    resource_id: str | None
    now: int
    title: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    replace_metadata: bool = False
    working_memory: str | UnsetType | None = UNSET
    if_title: str | UnsetType = UNSET

    def apply(self, stored: ThreadRecord | None) -> ThreadRecord:
        """The thread as it must be stored, given how it is.

        Raises:
            NotFoundError: There is none.
            OwnershipError: Another resource's.
            ConflictError: It has another title than ``if_title``.
            InvalidArgumentError: The merged metadata breaks a limit.
        """
        if stored is None:
            raise NotFoundError("thread", self.id)
        _check_owner("thread", self.id, stored.resource_id, self.resource_id)
        if self.if_title is not UNSET and stored.title != self.if_title:
            raise ConflictError(f"thread {self.id!r} has another title than if_title")
        changed = replace(stored, updated_at=rising(self.now, stored.updated_at))
        if self.title is not UNSET:
            changed = replace(changed, title=self.title)
        if self.working_memory is not UNSET:
            changed = replace(changed, working_memory=self.working_memory)
        text, whole = _merged_metadata(stored.metadata, self.metadata, replace_all=self.replace_metadata)
        return replace(changed, metadata=text, tokens=metadata_tokens(whole))


class TransferThread(msgspec.Struct, frozen=True, kw_only=True):
    """Give a thread and its messages to another resource.

    Attributes:
        id: The thread.
        resource_id: Its expected owner; None for any.
        to_resource_id: The new owner.
        now: Microseconds since 1970.
    """

    id: str
    resource_id: str | None
    to_resource_id: str
    now: int

    def apply(self, stored: ThreadRecord | None) -> ThreadRecord:
        """The thread as it must be stored; its messages get the same ``resource_id``.

        Raises:
            NotFoundError: There is none.
            OwnershipError: Another resource's.
        """
        if stored is None:
            raise NotFoundError("thread", self.id)
        _check_owner("thread", self.id, stored.resource_id, self.resource_id)
        return replace(
            stored,
            resource_id=self.to_resource_id,
            tokens=metadata_tokens(decode(stored.metadata, "stored metadata")),
            updated_at=rising(self.now, stored.updated_at),
        )


class CloneThread(msgspec.Struct, frozen=True, kw_only=True):
    """Copy a thread inside the database.

    Attributes:
        source_id: The thread to copy.
        resource_id: Its expected owner; None for any.
        thread_id: The copy's id.
        to_resource_id: The copy's owner; None for the source's.
        title: The copy's title; None for ``Clone of`` the source's.
        metadata: The copy's metadata, without ``clone``.
        dates: Only messages within this interval.
        message_ids: Only these messages; None for all.
        limit: Only the newest so many of what the others leave; None for all.
        now: Microseconds since 1970; the copy's times.
        seq: The ``seq`` of the first copied message; each next has one more. The order stays.
        return_messages: Whether the copied messages are wanted back.
    """

    source_id: str
    resource_id: str | None
    thread_id: str
    to_resource_id: str | None
    title: str | None
    metadata: dict[str, Any]
    dates: Bounds
    message_ids: tuple[str, ...] | None
    limit: int | None
    now: int
    seq: int
    return_messages: bool

    def check(self, source: ThreadRecord | None) -> ThreadRecord:
        """The source, if it may be copied.

        Raises:
            NotFoundError: There is none.
            OwnershipError: Another resource's.
        """
        if source is None:
            raise NotFoundError("thread", self.source_id)
        _check_owner("thread", self.source_id, source.resource_id, self.resource_id)
        return source

    def thread(
        self, source: ThreadRecord, *, last_message_id: str | None, message_count: int
    ) -> ThreadRecord:
        """The copy's own record, once it is known which messages go with it.

        Raises:
            InvalidArgumentError: The metadata with ``clone`` breaks a limit.
        """
        clone = {
            "sourceThreadId": self.source_id,
            "clonedAt": from_us(self.now).isoformat().replace("+00:00", "Z"),
            "lastMessageId": last_message_id,
        }
        text, whole = encode_metadata({**self.metadata, "clone": clone})
        title = self.title
        if title is None:
            title = f"Clone of {source.title}"[:_TITLE_LENGTH] if source.title else ""
        return ThreadRecord(
            id=self.thread_id,
            resource_id=source.resource_id if self.to_resource_id is None else self.to_resource_id,
            title=title,
            metadata=text,
            tokens=metadata_tokens(whole),
            working_memory=source.working_memory,
            message_count=message_count,
            created_at=self.now,
            updated_at=self.now,
        )


class ClonedThread(NamedTuple):
    """A copy: its thread, each ``(old id, new id)`` in the total order, and the messages where wanted."""

    thread: ThreadRecord
    ids: list[tuple[str, str]]
    messages: list[MessageRecord] | None


# --- writing messages -----------------------------------------------------------------------------


class Placement(NamedTuple):
    """Where a stored message is: what a write needs to know of it, without its body."""

    thread_id: str
    resource_id: str
    created_at: int
    seq: int


class SaveMessages(msgspec.Struct, frozen=True, kw_only=True):
    """Save messages in their order.

    Attributes:
        messages: At least one, each id once. ``resource_id`` is empty where the caller did not name the
            owner.
        resource_id: The owner all of them must have; None for any.
        now: Microseconds since 1970.
    """

    messages: tuple[MessageRecord, ...]
    resource_id: str | None
    now: int

    def thread_ids(self) -> list[str]:
        """The threads written to, in the order of their ids, which is the order to lock them in."""
        return sorted({message.thread_id for message in self.messages})

    def resolve(self, owners: Mapping[str, str], stored: Mapping[str, Placement]) -> list[MessageRecord]:
        """What to store, complete, in the given order.

        Args:
            owners: The owner of each of ``thread_ids`` that exists.
            stored: Those of the messages that exist already.

        Raises:
            NotFoundError: A thread does not exist.
            OwnershipError: A thread or a stored message has another owner than it must.
            ConflictError: A stored message is in another thread.
        """
        return [self._resolve(message, owners, stored.get(message.id)) for message in self.messages]

    def _resolve(
        self, message: MessageRecord, owners: Mapping[str, str], there: Placement | None
    ) -> MessageRecord:
        owner = owners.get(message.thread_id)
        if owner is None:
            raise NotFoundError("thread", message.thread_id)
        _check_owner("thread", message.thread_id, owner, message.resource_id or None)
        _check_owner("thread", message.thread_id, owner, self.resource_id)
        created_at, seq = message.created_at, message.seq
        if there is not None:
            _check_owner("message", message.id, there.resource_id, owner)
            if there.thread_id != message.thread_id:
                raise ConflictError(
                    f"message {message.id!r} is in another thread; move it with update_messages"
                )
            created_at, seq = there.created_at, there.seq
        return MessageRecord(
            id=message.id,
            thread_id=message.thread_id,
            resource_id=owner,
            role=message.role,
            type=message.type,
            content=message.content,
            metadata=message.metadata,
            tokens=message.tokens,
            created_at=created_at,
            seq=seq,
        )


class MessageChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change to one message; fields as in ``MessageUpdate``, content as text."""

    id: str
    role: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    replace_metadata: bool = False
    thread_id: str | UnsetType = UNSET

    def apply(self, stored: MessageRecord) -> MessageRecord:
        """The message as it must be stored, given how it is."""
        text, whole = _merged_metadata(stored.metadata, self.metadata, replace_all=self.replace_metadata)
        return replace(
            stored,
            role=stored.role if self.role is UNSET else self.role,
            type=stored.type if self.type is UNSET else self.type,
            content=stored.content if self.content is UNSET else self.content,
            thread_id=stored.thread_id if self.thread_id is UNSET else self.thread_id,
            metadata=text,
            tokens=metadata_tokens(whole),
        )


class UpdateMessages(msgspec.Struct, frozen=True, kw_only=True):
    """Change messages; an id may come more than once, its changes then follow each other.

    Attributes:
        changes: At least one.
        resource_id: The owner all of them must have; None for any.
        now: Microseconds since 1970.
    """

    changes: tuple[MessageChange, ...]
    resource_id: str | None
    now: int

    def ids(self) -> list[str]:
        """The messages, each once."""
        return list(dict.fromkeys([change.id for change in self.changes]))

    def targets(self) -> list[str]:
        """The threads that messages are moved to, in the order of their ids."""
        return sorted({change.thread_id for change in self.changes if change.thread_id is not UNSET})

    def resolve(self, stored: Mapping[str, MessageRecord], owners: Mapping[str, str]) -> list[MessageRecord]:
        """The changed messages as they must be stored, each once, in the given order; unknown ones left out.

        The threads touched are those of the messages before and after.

        Args:
            stored: Those of ``ids`` that exist.
            owners: The owner of each of ``targets`` that exists.

        Raises:
            OwnershipError: A message, or the thread it would move to, has another owner than it must.
            NotFoundError: The thread it would move to does not exist.
            InvalidArgumentError: The merged metadata breaks a limit.
        """
        changed: dict[str, MessageRecord] = {}
        for change in self.changes:
            message = changed.get(change.id) or stored.get(change.id)
            if message is None:
                continue
            _check_owner("message", change.id, message.resource_id, self.resource_id)
            if change.thread_id is not UNSET:
                owner = owners.get(change.thread_id)
                if owner is None:
                    raise NotFoundError("thread", change.thread_id)
                _check_owner("thread", change.thread_id, owner, message.resource_id)
            changed[change.id] = change.apply(message)
        return list(changed.values())


class DeleteMessages(msgspec.Struct, frozen=True, kw_only=True):
    """Delete messages; unknown ids are ignored.

    Attributes:
        ids: At least one, each once.
        resource_id: The owner all of them must have; None for any.
        now: Microseconds since 1970.
    """

    ids: tuple[str, ...]
    resource_id: str | None
    now: int

    def check(self, stored: Mapping[str, Placement]) -> None:
        """Refuse the whole call if one of the stored messages has another owner.

        Raises:
            OwnershipError: One has.
        """
        for identifier in self.ids:
            if identifier in stored:
                _check_owner("message", identifier, stored[identifier].resource_id, self.resource_id)


# --- writing resources and archive memories -------------------------------------------------------


class UpdateResource(msgspec.Struct, frozen=True, kw_only=True):
    """Change a resource, creating it where it does not exist.

    Attributes:
        id: The resource.
        now: Microseconds since 1970.
        working_memory: The new document.
        merge: A patch for the document instead; see ``jsontext.merge_working_memory``.
        metadata: Merged shallowly, or the whole of it with ``replace_metadata``.
        replace_metadata: See ``metadata``.
        if_revision: The revision it must have; 0 if it must not exist.
    """

    id: str
    now: int
    working_memory: str | UnsetType | None = UNSET
    merge: dict[str, Any] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    replace_metadata: bool = False
    if_revision: int | None = None

    def apply(self, stored: ResourceRecord | None) -> ResourceRecord:
        """The resource as it must be stored, given how it is.

        Raises:
            ConflictError: It has another revision than ``if_revision``.
            InvalidArgumentError: The merged metadata or working memory breaks a limit.
        """
        before = stored or ResourceRecord(id=self.id, created_at=self.now, updated_at=self.now - 1)
        if self.if_revision is not None and before.revision != self.if_revision:
            raise ConflictError(
                f"resource {self.id!r} has revision {before.revision}, not {self.if_revision}"
            )
        document, revision = before.working_memory, before.revision
        if self.merge is not UNSET:
            document, revision = merge_working_memory(document, self.merge), revision + 1
        elif self.working_memory is not UNSET:
            document, revision = self.working_memory, revision + 1
        metadata, _ = _merged_metadata(before.metadata, self.metadata, replace_all=self.replace_metadata)
        return replace(
            before,
            working_memory=document,
            metadata=metadata,
            revision=revision,
            updated_at=rising(self.now, before.updated_at),
        )


class SaveMemories(msgspec.Struct, frozen=True, kw_only=True):
    """Add archive memories, all or none.

    Attributes:
        memories: At least one, each id once.
        replace: False: a taken id is an error. True: it is replaced.
    """

    memories: tuple[MemoryRecord, ...]
    replace: bool


def matches_nothing(where: tuple[Condition, ...]) -> bool:
    """Whether a filter cannot match: it has a ``one_of`` without values."""
    return any(condition.operator is Operator.ONE_OF and not condition.values for condition in where)
