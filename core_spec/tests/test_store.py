"""The store checks every argument before its adapter hears of the call, and knows where it may be used."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import math
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import msgspec
import pytest

import threadkeep
from threadkeep import (
    Actor,
    ArchiveMemory,
    Capabilities,
    Capability,
    ConflictError,
    CorruptDataError,
    Include,
    InvalidArgumentError,
    Message,
    MessageUpdate,
    NewMemory,
    NewMessage,
    NotFoundError,
    OwnershipError,
    Resource,
    StorageAdapter,
    StorageError,
    Store,
    StoreClosedError,
    Support,
    Thread,
    TimeRange,
    UnsupportedCapabilityError,
    WrongLoopError,
    gte,
    one_of,
)
from threadkeep.records import MessageRecord
from threadkeep.requests import MessageQuery, MessageSlice

# --- bad arguments ----------------------------------------------------------------------------------


class ReachedError(Exception):
    """The adapter was asked: a value got through the checks."""


async def _reached(*arguments: object, **named: object) -> Any:
    raise ReachedError


EVERYTHING = Capabilities(dict.fromkeys(Capability, Support.NATIVE))


def untouched(capabilities: Capabilities = EVERYTHING, **answers: Any) -> Store:
    """A store whose adapter must not be asked, but for what has an answer here."""
    names = StorageAdapter.__abstractmethods__ | {"explain_messages", "explain_threads"}
    parts = {**dict.fromkeys(names, _reached), "name": "untouched", "capabilities": capabilities}
    parts |= {name: staticmethod(answer) for name, answer in answers.items()}
    return Store(type("Untouched", (StorageAdapter,), parts)())


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


HOSTILE: dict[str, Any] = {
    "None": None,
    "True": True,
    "-1": -1,
    "1.5": 1.5,
    "nan": math.nan,
    "10**5000": 10**5000,
    "2**63": 2**63,
    "bytes": b"x",
    "bytearray": bytearray(b"x"),
    "operator": {"$ne": ""},
    "integer key": {1: 2},
    "object": object(),
    "class": str,
    "empty": "",
    "endless": "x" * 1_100_000,
    "NUL": "a\0b",
    "surrogate": "\ud800",
    "[]": [],
    "[None]": [None],
    "(1,)": (1,),
    "cycle": cycle(),
    "deep": deep(),
    "naive": datetime(2024, 1, 1),  # noqa: DTZ001  (it is the point)
    "before year 1": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    "after year 9999": datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
}
LEGAL: dict[str, set[str]] = {  # which of them a kind of argument takes
    "id": set(),
    "id?": {"None"},
    "ids": {"[]"},
    "ids?": {"None", "[]"},
    "title": {"empty"},
    "title?": {"None", "empty"},
    "object": {"operator"},
    "object?": {"None", "operator"},
    "dict": {"operator", "integer key"},
    "content": {
        "None",
        "True",
        "-1",
        "1.5",
        "2**63",
        "operator",
        "empty",
        "endless",
        "NUL",
        "surrogate",
        "[]",
        "[None]",
    },
    "text?": {"None", "empty"},
    "flag": {"True"},
    "flag?": {"None", "True"},
    "moment": set(),
    "moment?": {"None"},
    "where": {"None"},
    "word": set(),
    "number": set(),
    "number?": {"None"},
    "numbers?": {"None", "[]", "(1,)"},
    "model": set(),
    "model?": {"None"},
    "models": {"[]"},
    "derived": set(HOSTILE),
}

NOW = datetime(2024, 1, 1, tzinfo=UTC)
USER = Actor("user", "u")
THREAD = Thread(id="t", resource_id="r", created_at=NOW, updated_at=NOW)
MESSAGE = Message(id="m", thread_id="t", resource_id="r", role="user", content="hi", created_at=NOW, seq=1)
RESOURCE = Resource(id="r", created_at=NOW, updated_at=NOW)
MEMORY = ArchiveMemory(id=1, content="x", actor_type="user", actor_id="u", created_at=NOW)

PAGING = {"page": "number", "per_page": "number?", "cursor": "id?", "with_total": "flag"}
THREAD_QUERY = {"resource_id": "id?", "where": "where", "order_by": "word", "order": "word"}
MESSAGE_QUERY = {
    "threads": "ids",
    "resource_id": "id?",
    "where": "where",
    "created": "model?",
    "order": "word",
}
NEW_THREAD = {"resource_id": "id", "title": "title", "metadata": "object?", "created_at": "moment?"}
ONE = {"thread_id": "id", "resource_id": "id?"}
TEXT = {"thread_id": "t"}

# For every public method: a call that is right, and the kind of every argument.
METHODS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "create_thread": ({"resource_id": "r"}, {**NEW_THREAD, "thread_id": "id?"}),
    "ensure_thread": ({"resource_id": "r", **TEXT}, {**NEW_THREAD, "thread_id": "id"}),
    "save_thread": ({"thread": THREAD}, {"thread": "model"}),
    "get_thread": (TEXT, ONE),
    "list_threads": ({}, {**THREAD_QUERY, **PAGING}),
    "iter_threads": ({}, {**THREAD_QUERY, "per_page": "number"}),
    "explain_threads": ({}, {**THREAD_QUERY, **PAGING}),
    "update_thread": (
        TEXT,
        {
            **ONE,
            "title": "title",
            "metadata": "object",
            "replace_metadata": "flag",
            "working_memory": "text?",
            "if_title": "title",
        },
    ),
    "delete_thread": (TEXT, ONE),
    "clear_thread": (TEXT, ONE),
    "transfer_thread": ({**TEXT, "to_resource_id": "r"}, {**ONE, "to_resource_id": "id"}),
    "clone_thread": (
        {"source_thread_id": "t"},
        {
            "source_thread_id": "id",
            "thread_id": "id?",
            "to_resource_id": "id?",
            "title": "title?",
            "metadata": "object?",
            "message_limit": "number?",
            "created": "model?",
            "message_ids": "ids?",
            "return_messages": "flag",
            "resource_id": "id?",
        },
    ),
    "get_clone_metadata": ({"thread": THREAD}, {"thread": "model"}),
    "is_clone": ({"thread": THREAD}, {"thread": "model"}),
    "get_source_thread": (TEXT, ONE),
    "list_clones": (TEXT, ONE),
    "get_clone_history": (TEXT, ONE),
    "save_messages": (
        {"messages": [MESSAGE]},
        {"messages": "models", "atomic": "flag?", "resource_id": "id?"},
    ),
    "get_messages": ({"ids": ["m"]}, {"ids": "ids", "resource_id": "id?"}),
    "list_messages": ({"threads": "t"}, {**MESSAGE_QUERY, "include": "models", **PAGING}),
    "iter_messages": ({"threads": "t"}, {**MESSAGE_QUERY, "per_page": "number"}),
    "explain_messages": ({"threads": "t"}, {**MESSAGE_QUERY, "include": "models", **PAGING}),
    "update_messages": ({"updates": [MessageUpdate("m")]}, {"updates": "models", "resource_id": "id?"}),
    "delete_messages": ({"ids": "m"}, {"ids": "ids", "resource_id": "id?"}),
    "get_resource": ({"resource_id": "r"}, {"resource_id": "id"}),
    "list_resources": ({}, PAGING),
    "iter_resources": ({}, {"per_page": "number"}),
    "save_resource": ({"resource": RESOURCE}, {"resource": "model"}),
    "update_resource": (
        {"resource_id": "r"},
        {
            "resource_id": "id",
            "working_memory": "text?",
            "metadata": "object",
            "replace_metadata": "flag",
            "if_revision": "number?",
        },
    ),
    "merge_working_memory": ({"resource_id": "r", "patch": {}}, {"resource_id": "id", "patch": "object"}),
    "delete_resource": ({"resource_id": "r"}, {"resource_id": "id"}),
    "add_memories": ({"actor": USER, "memories": "x"}, {"actor": "model", "memories": "models"}),
    "save_memories": ({"memories": [MEMORY]}, {"memories": "models"}),
    "recall_memories": ({"actor": USER}, {"actor": "model", "q": "text?", "limit": "number"}),
    "list_memories": ({}, {"actor": "model?", **PAGING}),
    "iter_memories": ({}, {"actor": "model?", "per_page": "number"}),
    "pin_memory": ({"memory_id": 1}, {"memory_id": "number", "pinned": "flag"}),
    "delete_memories": ({"actor": USER}, {"actor": "model", "ids": "numbers?"}),
    "migrate": ({}, {}),
    "close": ({}, {}),
}

# For every model that is an argument: how it gets to the store, one that is right, and every field's kind.
FIELDS: dict[str, tuple[Callable[[Store, Any], Any], msgspec.Struct, dict[str, str]]] = {
    "NewMessage": (
        lambda store, item: store.save_messages([item]),
        NewMessage("t", "user", "hi"),
        {
            "thread_id": "id",
            "role": "id",
            "content": "content",
            "id": "id?",
            "resource_id": "id?",
            "type": "id",
            "metadata": "object?",
            "created_at": "moment?",
        },
    ),
    "Message": (
        lambda store, item: store.save_messages([item]),
        MESSAGE,
        {
            "id": "id",
            "thread_id": "id",
            "resource_id": "id?",
            "role": "id",
            "type": "id",
            "content": "content",
            "metadata": "object",
            "created_at": "moment",
            "seq": "number",
        },
    ),
    "MessageUpdate": (
        lambda store, item: store.update_messages([item]),
        MessageUpdate("m"),
        {
            "id": "id",
            "role": "id",
            "type": "id",
            "content": "content",
            "metadata": "object",
            "replace_metadata": "flag",
            "thread_id": "id",
        },
    ),
    "Thread": (
        lambda store, item: store.save_thread(item),
        THREAD,
        {
            "id": "id",
            "resource_id": "id",
            "title": "title",
            "metadata": "object",
            "working_memory": "text?",
            "message_count": "derived",
            "created_at": "moment",
            "updated_at": "moment",
        },
    ),
    "Resource": (
        lambda store, item: store.save_resource(item),
        RESOURCE,
        {
            "id": "id",
            "working_memory": "text?",
            "metadata": "object",
            "revision": "number",
            "created_at": "moment",
            "updated_at": "moment",
        },
    ),
    "NewMemory": (
        lambda store, item: store.add_memories(USER, [item]),
        NewMemory("x"),
        {"content": "id", "id": "number?", "pinned": "flag", "created_at": "moment?"},
    ),
    "ArchiveMemory": (
        lambda store, item: store.save_memories([item]),
        MEMORY,
        {
            "id": "number",
            "content": "id",
            "pinned": "flag",
            "actor_type": "word",
            "actor_id": "id",
            "created_at": "moment",
        },
    ),
    "Actor": (lambda store, item: store.list_memories(item), USER, {"type": "word", "id": "id"}),
    "TimeRange": (
        lambda store, item: store.list_messages("t", created=item),
        TimeRange(),
        {"start": "moment?", "end": "moment?", "start_exclusive": "flag", "end_exclusive": "flag"},
    ),
    "Include": (
        lambda store, item: store.list_messages("t", include=[item]),
        Include("m"),
        {"id": "id", "thread_id": "id?", "before": "number", "after": "number"},
    ),
    "Thread (reading only)": (
        lambda store, item: store.is_clone(item),
        THREAD,
        {"metadata": "dict"},
    ),
}


async def outcome(call: Callable[[], Any]) -> type[Exception] | None:
    """What a call ends in; None where it answers without its adapter."""
    try:
        found = call()
        if inspect.isasyncgen(found):
            await anext(found, None)
        elif inspect.isawaitable(found):
            await found
    except Exception as exc:  # noqa: BLE001  (which one it is is the result)
        return InvalidArgumentError if isinstance(exc, InvalidArgumentError) else type(exc)
    return None


def surprises(found: dict[str, type[Exception] | None], kind: str) -> dict[str, type[Exception] | None]:
    """The values whose outcome is not that of their kind of argument."""
    return {
        name: ended
        for name, ended in found.items()
        if (ended in (ReachedError, None)) != (name in LEGAL[kind])
        or (ended is not InvalidArgumentError and name not in LEGAL[kind])
    }


def test_the_table_has_every_method_and_every_argument() -> None:
    methods = {
        name: sorted(inspect.signature(member).parameters.keys() - {"self"})
        for name, member in inspect.getmembers(Store, inspect.isfunction)
        if not name.startswith("_")
    }

    assert {name: sorted(kinds) for name, (_, kinds) in METHODS.items()} == methods


def test_the_table_has_every_field() -> None:
    for name, (_, model, kinds) in FIELDS.items():
        if "(" not in name:
            assert sorted(kinds) == sorted(field.name for field in msgspec.structs.fields(model)), name


@pytest.mark.asyncio
@pytest.mark.parametrize("method", METHODS)
async def test_the_right_call_is_right(method: str) -> None:
    assert await outcome(lambda: getattr(untouched(), method)(**METHODS[method][0])) in (ReachedError, None)


@pytest.mark.asyncio
@pytest.mark.parametrize(("method", "argument"), [(m, a) for m, (_, kinds) in METHODS.items() for a in kinds])
async def test_no_bad_argument_gets_past_the_store(method: str, argument: str) -> None:
    right, kinds = METHODS[method]
    store = untouched()

    found = {
        name: await outcome(lambda value=value: getattr(store, method)(**{**right, argument: value}))
        for name, value in HOSTILE.items()
    }

    assert surprises(found, kinds[argument]) == {}


@pytest.mark.asyncio
@pytest.mark.parametrize(("model", "field"), [(m, f) for m, (_, _, kinds) in FIELDS.items() for f in kinds])
async def test_no_bad_field_gets_past_the_store(model: str, field: str) -> None:
    pass_on, right, kinds = FIELDS[model]
    store = untouched()

    found = {
        name: await outcome(
            lambda value=value: pass_on(store, msgspec.structs.replace(right, **{field: value}))
        )
        for name, value in HOSTILE.items()
    }

    assert surprises(found, kinds[field]) == {}


@pytest.mark.asyncio
async def test_messages_need_a_thread_or_a_resource() -> None:
    with pytest.raises(InvalidArgumentError, match="threads must be given"):
        await untouched().list_messages()


@pytest.mark.asyncio
async def test_a_cursor_and_a_page_do_not_go_together() -> None:
    async with threadkeep.open("memory:") as store:
        for name in ("a", "b"):
            await store.create_thread("r", thread_id=name)
        cursor = (await store.list_threads(per_page=1)).next_cursor

        with pytest.raises(threadkeep.InvalidCursorError):
            await store.list_threads(per_page=1, cursor=cursor, page=1)
        assert len((await store.list_threads(per_page=1, cursor=cursor, page=0)).items) == 1


@pytest.mark.asyncio
async def test_a_cursor_does_not_go_from_one_kind_of_list_to_another() -> None:
    async with threadkeep.open("memory:") as store:
        for name in ("a", "b"):
            await store.create_thread("r", thread_id=name)
            await store.update_resource(name)
        cursor = (await store.list_resources(per_page=1)).next_cursor

        with pytest.raises(threadkeep.InvalidCursorError):
            await store.list_threads(per_page=1, cursor=cursor)
        with pytest.raises(threadkeep.InvalidCursorError):
            await store.list_memories(per_page=1, cursor=cursor)


@pytest.mark.asyncio
async def test_empty_lists_reach_no_adapter() -> None:
    store = untouched()

    assert await store.get_messages([]) == []
    assert await store.save_messages([]) == []
    assert await store.update_messages([]) == []
    assert await store.delete_messages([]) == 0
    assert await store.add_memories(USER, []) == []
    assert await store.delete_memories(USER, []) == 0
    assert (await store.list_messages([], with_total=True)).total == 0
    assert (await store.list_messages("t", where={"k": one_of()}, with_total=True)).total == 0
    assert (await store.list_threads(where={"k": one_of()}, with_total=True)).total == 0
    assert (await store.list_messages("t", per_page=0, with_total=True)).total is None


# --- one batch --------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_of_two_equal_ids_in_a_batch_the_last_content_is_at_the_first_position() -> None:
    async with threadkeep.open("memory:") as store:
        await store.create_thread("r", thread_id="t")

        saved = await store.save_messages(
            [NewMessage("t", "user", text, id=name) for name, text in ("a1", "b2", "a3")]
        )

        assert [(message.id, message.content) for message in saved] == [("a", "3"), ("b", "2")]
        assert (await store.list_messages("t")).items == saved


@pytest.mark.asyncio
async def test_two_equal_ids_for_two_threads_are_a_conflict() -> None:
    with pytest.raises(ConflictError):
        await untouched().save_messages([NewMessage(thread, "user", "", id="m") for thread in "ab"])


@pytest.mark.asyncio
@pytest.mark.parametrize("owners", ["rx", "xr"])
async def test_two_equal_ids_for_two_owners_are_an_ownership_error_in_either_order(owners: str) -> None:
    with pytest.raises(OwnershipError):
        await untouched().save_messages(
            [NewMessage("t", "user", "", id="m", resource_id=owner) for owner in owners]
        )


@pytest.mark.asyncio
async def test_a_batch_without_times_has_its_first_seq_as_the_time_of_all() -> None:
    async with threadkeep.open("memory:") as store:
        await store.create_thread("r", thread_id="t")

        saved = await store.save_messages([NewMessage("t", "user", str(i)) for i in range(5)])

        assert len({message.created_at for message in saved}) == 1
        assert [message.seq - saved[0].seq for message in saved] == [0, 1, 2, 3, 4]
        assert saved[0].created_at == datetime.fromtimestamp(0, UTC) + timedelta(microseconds=saved[0].seq)


@pytest.mark.asyncio
async def test_a_thread_of_the_last_microsecond_of_year_9999_can_still_be_written_to() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    async with threadkeep.open("memory:") as store:
        await store.save_thread(msgspec.structs.replace(THREAD, updated_at=last))
        await store.save_messages([NewMessage("t", "user", "hi")])
        await store.save_resource(msgspec.structs.replace(RESOURCE, updated_at=last))

        found = await store.get_thread("t")

        assert found is not None
        assert (found.updated_at, found.message_count) == (last, 1)
        assert (await store.update_resource("r", working_memory="x")).updated_at == last


# --- what is stored is not what it should be --------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("damage", [{"content": "{"}, {"metadata": "nope"}, {"created_at": 2**62}], ids=str)
async def test_stored_bytes_that_do_not_decode_are_corrupt_data(damage: dict[str, Any]) -> None:
    record = msgspec.structs.replace(
        MessageRecord(
            id="m",
            thread_id="t",
            resource_id="r",
            role="u",
            type="t",
            content="1",
            metadata="{}",
            created_at=1,
            seq=1,
        ),
        **damage,
    )

    async def list_messages(query: object) -> MessageSlice:
        return MessageSlice([record])

    store = untouched(list_messages=list_messages)
    with pytest.raises(CorruptDataError, match="message 'm'"):
        await store.list_messages("t")


# --- capabilities -----------------------------------------------------------------------------------


UNSUPPORTED: dict[str, Callable[[Store], Awaitable[object]]] = {
    "merge": lambda store: store.merge_working_memory("r", {}),
    "atomic": lambda store: store.save_messages([MESSAGE], atomic=True),
    "filter messages": lambda store: store.list_messages("t", where={"k": gte(1)}),
    "filter threads": lambda store: store.list_threads(where={"k": gte(1)}),
    "explain messages": lambda store: store.explain_messages("t"),
    "explain threads": lambda store: store.explain_threads(),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("call", UNSUPPORTED.values(), ids=UNSUPPORTED)
async def test_what_a_backend_cannot_do_is_refused_before_it_is_asked(
    call: Callable[[Store], Awaitable[object]],
) -> None:
    with pytest.raises(UnsupportedCapabilityError):
        await call(untouched(Capabilities({})))


@pytest.mark.asyncio
async def test_without_operators_equality_still_works() -> None:
    store = untouched(Capabilities({}))

    for call in (store.list_messages("t", where={"k": 1}), store.save_messages([MESSAGE], atomic=False)):
        with pytest.raises(ReachedError):
            await call


# --- clones -----------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_where_a_thread_comes_from_is_read_from_its_metadata() -> None:
    async with threadkeep.open("memory:") as store:
        await store.create_thread("r", thread_id="t", title="Trip")
        (message,) = await store.save_messages([NewMessage("t", "user", "hi")])
        clone = await store.clone_thread("t", metadata={"clone": "mine", "other": 1})

        found = store.get_clone_metadata(clone.thread)

        assert found is not None
        assert (found.source_thread_id, found.last_message_id) == ("t", message.id)
        assert found.cloned_at == clone.thread.created_at
        assert clone.thread.metadata["other"] == 1


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "clone",
    [
        None,
        "t",
        [],
        {},
        {"sourceThreadId": 1, "clonedAt": "2024-01-01T00:00:00Z", "lastMessageId": None},
        {"sourceThreadId": "t", "clonedAt": "yesterday", "lastMessageId": None},
        {"sourceThreadId": "t", "clonedAt": "2024-01-01T00:00:00", "lastMessageId": None},
        {"sourceThreadId": "t", "clonedAt": "0001-01-01T00:00:00+14:00", "lastMessageId": None},
        {"sourceThreadId": "t", "clonedAt": "2024-01-01T00:00:00Z", "lastMessageId": 5},
    ],
    ids=str,
)
async def test_metadata_that_only_looks_like_a_clones_is_the_callers_own(clone: object) -> None:
    thread = msgspec.structs.replace(THREAD, metadata={"clone": clone})

    assert not untouched().is_clone(thread)


# --- where and when a store may be used -------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "method", [name for name in METHODS if name not in ("close", "get_clone_metadata", "is_clone")]
)
async def test_after_close_every_call_says_so(method: str) -> None:
    store = await threadkeep.open("memory:")
    await store.close()
    await store.close()

    assert await outcome(lambda: getattr(store, method)(**METHODS[method][0])) is StoreClosedError


@pytest.mark.asyncio
async def test_a_closed_store_cannot_be_entered() -> None:
    store = await threadkeep.open("memory:")
    async with store:
        pass

    with pytest.raises(StoreClosedError):
        await store.__aenter__()


@pytest.mark.asyncio
async def test_a_cancelled_close_is_finished_all_the_same() -> None:
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def close() -> None:
        begun.set()
        await may_end.wait()
        ended.set()

    store = untouched(close=close)
    closing = asyncio.ensure_future(store.close())
    await begun.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    again = asyncio.ensure_future(store.close())
    may_end.set()

    await again

    assert ended.is_set()


@pytest.mark.parametrize(
    "method", [name for name in METHODS if name not in ("get_clone_metadata", "is_clone")]
)
def test_another_event_loop_is_refused(method: str) -> None:
    async def make() -> Store:
        return await threadkeep.open("memory:")

    store = asyncio.run(make())

    assert asyncio.run(outcome(lambda: getattr(store, method)(**METHODS[method][0]))) is WrongLoopError


def test_a_closed_store_can_be_closed_again_on_another_loop() -> None:
    async def make() -> Store:
        async with threadkeep.open("memory:") as store:
            return store

    asyncio.run(asyncio.run(make()).close())


def test_no_event_loop_at_all_is_refused() -> None:
    async def make() -> Store:
        return await threadkeep.open("memory:")

    call = asyncio.run(make()).get_thread("t")

    with pytest.raises(WrongLoopError):
        call.send(None)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # other tests' threads
@pytest.mark.asyncio
async def test_a_forked_child_is_refused_even_on_what_looks_like_the_same_loop() -> None:
    async with threadkeep.open("memory:") as store:
        await store.create_thread("r", thread_id="t")
        child = os.fork()
        if not child:
            status = 1
            try:
                calls = [store.get_thread("t"), store.close(), store.__aenter__()]
                ends = [await outcome(lambda call=call: call) for call in calls]
                status = 0 if ends == [WrongLoopError] * 3 else 2
            finally:
                os._exit(status)

        _, end = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(end) == 0
        assert await store.get_thread("t") is not None


class Circling:
    """Answers with three pages, again and again, as an adapter may that gets a place in the order wrong."""

    name = "circling"
    capabilities = EVERYTHING

    def __init__(self) -> None:
        self._pages = itertools.cycle("abc")

    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        name = next(self._pages)
        rows = [MessageRecord(name, "t", "r", "user", "text", "1", "{}", created_at=0, seq=0)]
        return MessageSlice(rows * 2)


@pytest.mark.asyncio
async def test_a_walk_in_a_circle_ends_with_an_error() -> None:
    store = Store(cast("StorageAdapter", Circling()))
    found: list[str] = []

    async def walk() -> None:
        async for message in store.iter_messages("t", per_page=1):
            found.append(message.id)  # noqa: PERF401  (a comprehension would lose them)

    with pytest.raises(StorageError, match="circle"):
        await walk()

    assert found[:3] == ["a", "b", "c"]
    assert len(found) <= 10


@pytest.mark.asyncio
async def test_a_missing_thread_is_not_found() -> None:
    async with threadkeep.open("memory:") as store:
        with pytest.raises(NotFoundError):
            await store.save_messages([NewMessage("t", "user", "hi")])
