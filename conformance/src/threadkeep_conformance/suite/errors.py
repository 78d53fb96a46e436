"""Errors: the tree, what they carry, and that they are the same on every backend."""

from __future__ import annotations

import pickle
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import threadkeep
from threadkeep import (
    Actor,
    AlreadyExistsError,
    ConflictError,
    CorruptDataError,
    InvalidArgumentError,
    InvalidCursorError,
    InvalidFilterError,
    MessageUpdate,
    NewMemory,
    NewMessage,
    NotFoundError,
    OwnershipError,
    StorageError,
    Store,
    ThreadkeepError,
    TimeRange,
    UnsupportedCapabilityError,
)

from ..cases import case
from ..databases import Database
from ..probe import Raw
from .base import AdapterSuite
from .samples import NOON, add, filled_thread, ids, line_of, raised, unchanged

__all__ = ["TestErrors", "TestRepeats", "TestValidation"]

Call = Callable[[Store], Awaitable[object]]


async def provoked(store: Store) -> list[ThreadkeepError]:
    """One error of every kind that can be provoked without breaking the database."""
    await filled_thread(store, 3)
    await store.create_thread("user-1", thread_id="thread-2")
    await store.add_memories(Actor("shared"), [NewMemory("x", id=1)])
    bad: Any = {"$ne": ""}
    calls: list[tuple[type[ThreadkeepError], Call]] = [
        (InvalidArgumentError, lambda s: s.get_thread("")),
        (InvalidFilterError, lambda s: s.list_threads(where={"k": bad})),
        (InvalidCursorError, lambda s: s.list_threads(cursor="x")),
        (NotFoundError, lambda s: s.update_thread("unknown", title="x")),
        (NotFoundError, lambda s: s.save_messages([NewMessage("unknown", "user", 1)])),
        (NotFoundError, lambda s: s.pin_memory(2)),
        (OwnershipError, lambda s: s.delete_thread("thread-1", resource_id="user-2")),
        (OwnershipError, lambda s: s.delete_messages(["thread-1-m0001"], resource_id="user-2")),
        (AlreadyExistsError, lambda s: s.create_thread("user-1", thread_id="thread-1")),
        (AlreadyExistsError, lambda s: s.add_memories(Actor("shared"), [NewMemory("x", id=1)])),
        (ConflictError, lambda s: s.update_thread("thread-1", title="x", if_title="y")),
        (ConflictError, lambda s: add(s, "thread-2", "thread-1-m0001")),
    ]
    found: list[ThreadkeepError] = []
    for kind, call in calls:
        with pytest.raises(kind) as error:
            await call(store)
        assert type(error.value) is kind
        found.append(error.value)
    return found


class TestErrors(AdapterSuite):
    """The tree of section 7."""

    @case("errors.tree", "7.tree")
    async def test_errors_are_caught_by_what_the_caller_does_next(self, store: Store) -> None:
        """Every provoked error is a ThreadkeepError, with the built-in class and the branch the contract
        names.
        """
        for error in await provoked(store):
            assert isinstance(error, ThreadkeepError)
            assert isinstance(error, ValueError) is isinstance(error, InvalidArgumentError)
            assert isinstance(error, LookupError) is isinstance(error, NotFoundError)
            assert isinstance(error, StorageError) is isinstance(error, ConflictError)
        assert issubclass(UnsupportedCapabilityError, NotImplementedError)

    @case("errors.pickle", "7.pickle")
    async def test_every_provoked_error_pickles(self, store: Store) -> None:
        """An error that was raised survives pickling with its type, message and attributes."""
        for error in await provoked(store):
            copy = pickle.loads(pickle.dumps(error))  # noqa: S301  (our own bytes)
            assert type(copy) is type(error)
            assert (str(copy), copy.args) == (str(error), error.args)
            public = {name for name in vars(error) if not name.startswith("__")}
            assert {name: getattr(copy, name) for name in public} == {
                name: getattr(error, name) for name in public
            }

    @case("errors.name_the_argument", "7.names")
    async def test_an_argument_error_names_argument_rule_and_value(self, store: Store) -> None:
        """InvalidArgumentError carries argument, rule and what was given, and its message has all three."""
        await store.create_thread("user-1", thread_id="t")
        price: Any = {"price": [1, float("nan")]}
        with pytest.raises(InvalidArgumentError) as deep:
            await store.save_messages(
                [NewMessage("t", "user", 1), NewMessage("t", "user", 1, metadata=price)]
            )
        with pytest.raises(InvalidArgumentError) as flat:
            await store.list_messages("t", per_page=-1)

        assert (flat.value.argument, "-1" in flat.value.given) == ("per_page", True)
        assert deep.value.argument.startswith("messages[1].metadata")
        assert "price" in deep.value.argument
        for error in (flat.value, deep.value):
            assert error.argument in str(error)
            assert error.rule in str(error)
            assert error.given in str(error)

    @case("errors.long_values_are_not_shown", "7.names", "7.secrets")
    async def test_an_error_does_not_repeat_what_was_given(self, store: Store) -> None:
        """A refused text is described, not repeated: messages of errors end up in logs."""
        await store.create_thread("user-1", thread_id="t")
        secret = "correct horse battery staple " * 50
        wrong: list[Call] = [
            lambda s: s.create_thread("user-1", title=secret),
            lambda s: s.get_thread(secret),
            lambda s: s.list_threads(where={secret: 1}),
            lambda s: s.save_messages([NewMessage("t", secret, 1)]),
            lambda s: s.list_threads(cursor=secret),
        ]
        for call in wrong:
            with pytest.raises(InvalidArgumentError) as error:
                await call(store)
            assert len(str(error.value)) < 600

    @case("errors.owner_is_not_told", "7.secrets", "5.3.writes")
    async def test_an_ownership_error_does_not_tell_the_owner(self, store: Store) -> None:
        """OwnershipError names the thing, never whose it is."""
        await filled_thread(store, 1, resource_id="the-real-owner")

        with pytest.raises(OwnershipError) as refused:
            await store.delete_thread("thread-1", resource_id="user-2")

        assert "the-real-owner" not in f"{refused.value} {refused.value.args}"

    @case("errors.no_credentials", "7.secrets", "3.validate")
    async def test_no_message_shows_the_urls_credentials(self, database: Database) -> None:
        """A URL with an unknown option is refused; the message holds neither password nor option values."""
        scheme = database.url.partition(":")[0]
        url = f"{scheme}://someone:s3cr3t-word@127.0.0.1:1/nowhere?threadkeep_nonsense=s3cr3t-word"

        with pytest.raises(InvalidArgumentError) as refused:
            await threadkeep.open(url)

        assert "s3cr3t-word" not in f"{refused.value} {refused.value.args}"

    @case("errors.corrupt_data", "7.corrupt")
    async def test_bytes_that_do_not_decode_are_corrupt_data(self, database: Database) -> None:
        """A stored content that is no JSON is CorruptDataError naming the message; other messages can be
        read.
        """
        raw = self.offered(Raw)
        store = await database.open()
        await store.create_thread("user-1", thread_id="t")
        await add(store, "t", "fine", "broken")

        await raw.corrupt_message(database.url, "broken")

        with pytest.raises(CorruptDataError, match="broken") as corrupt:
            await store.get_messages(["broken"])
        assert isinstance(corrupt.value, StorageError)
        assert ids(await store.get_messages(["fine"])) == ["fine"]


class TestRepeats(AdapterSuite):
    """What is safe to repeat after an unknown outcome."""

    @case("repeat.deletes", "7.repeat", "4.8.absent")
    async def test_deletes_can_be_repeated(self, store: Store) -> None:
        """Every delete, done twice, leaves what it left when done once."""
        await filled_thread(store, 4)
        await filled_thread(store, 2, thread_id="thread-2")
        await store.update_resource("user-2", metadata={})
        await store.add_memories(Actor("shared"), [NewMemory("x", id=1)])
        calls: list[Call] = [
            lambda s: s.delete_messages(["thread-1-m0001"]),
            lambda s: s.clear_thread("thread-1"),
            lambda s: s.delete_thread("thread-1"),
            lambda s: s.delete_memories(Actor("shared"), [1]),
            lambda s: s.delete_resource("user-2"),
        ]
        for call in calls:
            await call(store)
            async with unchanged(store):
                await call(store)

    @case("repeat.creates", "7.repeat")
    async def test_creates_with_explicit_ids_say_that_they_were_done(self, store: Store) -> None:
        """create, clone and add with explicit ids, repeated, are AlreadyExistsError and change nothing."""
        await filled_thread(store, 2)
        calls: list[Call] = [
            lambda s: s.create_thread("user-1", thread_id="new"),
            lambda s: s.clone_thread("thread-1", thread_id="copy"),
            lambda s: s.add_memories(Actor("shared"), [NewMemory("x", id=1)]),
        ]
        for call in calls:
            await call(store)
            async with unchanged(store):
                with pytest.raises(AlreadyExistsError):
                    await call(store)

    @case("repeat.updates", "7.repeat")
    async def test_updates_can_be_repeated(self, store: Store) -> None:
        """Updates of absolute values, done twice, leave the same values, times apart."""
        await filled_thread(store, 2)
        await store.create_thread("user-1", thread_id="thread-2")
        moved = [MessageUpdate("thread-1-m0001", metadata={"a": 1}, content="x", thread_id="thread-2")]

        first = await store.update_messages(moved)
        again = await store.update_messages(moved)
        thread = await store.update_thread("thread-1", title="T", metadata={"a": 1})
        repeated = await store.update_thread("thread-1", title="T", metadata={"a": 1})

        assert first == again
        assert (thread.title, thread.metadata, thread.message_count) == (
            repeated.title,
            repeated.metadata,
            repeated.message_count,
        )


class TestValidation(AdapterSuite):
    """Arguments are checked once, before any I/O."""

    @case("validation.before_any_io", "3.validate")
    async def test_bad_arguments_reach_no_adapter(self, database: Database) -> None:
        """For every operation, an argument that breaks a rule is refused without one call of the adapter."""
        store, log = await database.open_logged()
        bad: Any = {"$ne": ""}
        upper: Any = "ASC"
        naive: Any = NOON.replace(tzinfo=None)
        calls: list[Call] = [
            lambda s: s.create_thread(bad),
            lambda s: s.create_thread("r", metadata=bad["$ne"]),
            lambda s: s.create_thread("r", created_at=naive),
            lambda s: s.ensure_thread("r", thread_id=bad),
            lambda s: s.save_thread(bad),
            lambda s: s.get_thread(bad),
            lambda s: s.list_threads(resource_id=bad),
            lambda s: s.list_threads(order=bad),
            lambda s: s.list_threads(order_by=bad),
            lambda s: s.list_threads(with_total=bad),
            lambda s: s.update_thread("t", title=bad),
            lambda s: s.update_thread("t", metadata=bad["$ne"]),
            lambda s: s.update_thread("t", replace_metadata=bad),
            lambda s: s.update_thread("t", working_memory=bad),
            lambda s: s.update_thread("t", if_title=bad),
            lambda s: s.delete_thread(bad),
            lambda s: s.clear_thread(bad),
            lambda s: s.transfer_thread("t", bad),
            lambda s: s.clone_thread(bad),
            lambda s: s.save_messages([NewMessage("t", "user", float("nan"))]),
            lambda s: s.save_messages([NewMessage("t", "user", 1, created_at=naive)]),
            lambda s: s.save_messages([bad]),
            lambda s: s.save_messages([NewMessage("t", "user", 1)], atomic=bad),
            lambda s: s.get_messages(bad),
            lambda s: s.list_messages(bad),
            lambda s: s.list_messages("t", order=bad),
            lambda s: s.list_messages("t", order=upper),
            lambda s: s.list_messages("t", created=bad),
            lambda s: s.list_messages("t", created=TimeRange(start_exclusive=bad, start=NOON)),
            lambda s: s.list_messages("t", with_total=bad),
            lambda s: s.list_messages("t", cursor=bad),
            lambda s: s.update_messages([bad]),
            lambda s: s.update_messages([MessageUpdate("m", replace_metadata=bad)]),
            lambda s: s.delete_messages(bad),
            lambda s: s.get_resource(bad),
            lambda s: s.save_resource(bad),
            lambda s: s.update_resource(bad),
            lambda s: s.update_resource("r", if_revision=bad),
            lambda s: s.update_resource("r", if_revision=True),
            lambda s: s.update_resource("r", if_revision=-1),
            lambda s: s.delete_resource(bad),
            lambda s: s.add_memories(bad, ["x"]),
            lambda s: s.add_memories(Actor("shared"), bad),
            lambda s: s.save_memories([bad]),
            lambda s: s.recall_memories(Actor("shared"), bad),
            lambda s: s.list_memories(bad),
            lambda s: s.pin_memory(bad),
            lambda s: s.pin_memory(1, pinned=bad),
            lambda s: s.delete_memories(Actor("shared"), bad),
        ]
        with log.silent():
            accepted = [line_of(c) for c in calls if not await raised(InvalidArgumentError, c, store)]
        assert accepted == [], "the calls on these lines were not refused"

    @case("validation.merge_before_any_io", "3.validate", "4.10.limits")
    async def test_a_bad_patch_reaches_no_adapter(self, database: Database) -> None:
        """merge_working_memory checks its patch before the capability and before any I/O."""
        store, log = await database.open_logged()
        bad: Any = ["x"]
        with log.silent():
            for patch in (bad, {"a": float("nan")}, {"a": 2**63}):
                with pytest.raises(InvalidArgumentError):
                    await store.merge_working_memory("r", patch)

    @case("validation.iterators", "3.iter", "3.validate")
    async def test_iterating_checks_its_arguments(self, store: Store) -> None:
        """iter_threads and iter_messages refuse a bad page size, None and 0 included, and a bad filter."""
        sizes: list[Any] = [0, -1, None, True, 1.5]
        for size in sizes:
            with pytest.raises(InvalidArgumentError):
                _ = [thread async for thread in store.iter_threads(per_page=size)]
            with pytest.raises(InvalidArgumentError):
                _ = [message async for message in store.iter_messages("t", per_page=size)]
        bad: Any = {"$ne": ""}
        with pytest.raises(InvalidFilterError):
            _ = [thread async for thread in store.iter_threads(where={"k": bad})]
        with pytest.raises(InvalidArgumentError):
            _ = [message async for message in store.iter_messages()]
