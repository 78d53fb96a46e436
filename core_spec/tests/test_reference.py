"""The in-memory adapter's own promises; what all adapters promise is tested by the conformance kit."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import signal
import sys
from typing import Any

import pytest

import threadkeep
from threadkeep import InvalidArgumentError, NewMessage, reference


@pytest.mark.asyncio
async def test_a_store_without_a_name_is_private() -> None:
    async with threadkeep.open("memory:") as one, threadkeep.open("memory:") as other:
        await one.create_thread("r", thread_id="t")

        assert await other.get_thread("t") is None


@pytest.mark.asyncio
async def test_stores_of_one_name_share_what_they_hold() -> None:
    async with (
        threadkeep.open("memory:shared-in-test") as one,
        threadkeep.open("memory:shared-in-test") as other,
    ):
        await one.create_thread("r", thread_id="t")

        assert (await other.list_threads()).items == (await one.list_threads()).items != []


@pytest.mark.asyncio
async def test_a_name_is_forgotten_when_its_last_store_is_closed() -> None:
    async with threadkeep.open("memory:forgotten-in-test") as one:
        async with threadkeep.open("memory:forgotten-in-test") as other:
            await other.create_thread("r", thread_id="t")
        assert await one.get_thread("t") is not None

    async with threadkeep.open("memory:forgotten-in-test") as later:
        assert await later.get_thread("t") is None


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # other tests' threads
def test_a_forked_child_shares_no_name_with_its_parent() -> None:
    name = "memory:forked-in-test"

    with threadkeep.sync.open(name) as here:
        here.create_thread("r", thread_id="parents")
        child = os.fork()
        if not child:
            signal.alarm(20)  # rather than hang
            status = 1
            try:
                with threadkeep.sync.open(name) as there:
                    status = 0 if there.list_threads().items == [] else 2
                    there.create_thread("r", thread_id="childs")
            finally:
                os._exit(status)
        _, end = os.waitpid(child, 0)

        assert os.waitstatus_to_exitcode(end) == 0
        assert [thread.id for thread in here.list_threads().items] == ["parents"]


def test_stores_of_one_name_share_across_event_loops() -> None:
    name = "memory:loops-in-test"

    async def count_there() -> int:
        async with threadkeep.open(name) as store:
            return len((await store.list_threads()).items)

    with threadkeep.sync.open(name) as here:
        here.create_thread("r")
        assert asyncio.run(count_there()) == 1


@pytest.mark.parametrize("url", ["memory://shared", "memory:?mode=x", "memory:#x"])
@pytest.mark.asyncio
async def test_a_url_with_parts_it_does_not_have_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgumentError):
        await threadkeep.open(url)


@pytest.mark.asyncio
async def test_what_is_read_belongs_to_the_reader() -> None:
    async with threadkeep.open("memory:") as store:
        content: dict[str, Any] = {"parts": ["a"]}
        await store.create_thread("r", thread_id="t", metadata={"a": [1]})
        await store.save_messages([NewMessage("t", "user", content, id="m")])

        content["parts"].append("b")
        for _ in range(2):
            (found,) = await store.get_messages("m")
            found.content["parts"].append("c")
            thread = await store.get_thread("t")
            assert thread is not None
            thread.metadata["a"].append(2)

        (found,) = await store.get_messages("m")
        thread = await store.get_thread("t")
        assert found.content == {"parts": ["a"]}
        assert thread is not None
        assert thread.metadata == {"a": [1]}


def test_it_does_not_look_at_tokens() -> None:
    names = {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(reference)))
        if isinstance(node, ast.Attribute)
    }

    assert "position" in names  # the walk sees attributes
    assert not names & {"tokens", "low", "high", "low_open", "high_open"}
