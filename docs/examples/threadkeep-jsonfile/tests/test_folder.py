"""What the kit cannot know: what a batch over several files leaves behind when it stops midway."""

import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import threadkeep
from threadkeep import MessageUpdate, NewMessage, PartialWriteError
from threadkeep_jsonfile.folder import Folder


@contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """Let no file grow beyond a size, in bytes: writing more is an OSError, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.asyncio
async def test_a_batch_that_stops_midway_says_what_was_written_and_can_be_repeated(tmp_path: Path) -> None:
    async with threadkeep.open(f"jsonfile:{tmp_path}") as store:
        for name in ("a", "b"):
            await store.create_thread("user-1", thread_id=name)
        batch = [
            NewMessage("a", "user", "short", id="m1"),
            NewMessage("b", "user", "long" * 100_000, id="m2"),
        ]
        with files_of_at_most(100_000), pytest.raises(PartialWriteError) as stopped:
            await store.save_messages(batch)
        assert stopped.value.written == ("m1",)
        assert [message.id for message in await store.get_messages(["m1", "m2"])] == ["m1"]

        await store.save_messages(batch)
        assert [message.id for message in await store.get_messages(["m1", "m2"])] == ["m1", "m2"]


@pytest.mark.asyncio
async def test_a_move_that_stops_midway_loses_nothing_and_repeating_it_completes_it(tmp_path: Path) -> None:
    async with threadkeep.open(f"jsonfile:{tmp_path}") as store:
        for name in ("a", "b"):
            await store.create_thread("user-1", thread_id=name)
        await store.save_messages([NewMessage("a", "user", "text", id="m1")])
        before = Folder(tmp_path).thread("a")
        assert before is not None
        await store.update_messages([MessageUpdate("m1", thread_id="b")])
        Folder(tmp_path).put_thread(before.thread, before.messages)  # as it was before the second file

        await store.update_messages([MessageUpdate("m1", thread_id="b")])

        for name, count in (("a", 0), ("b", 1)):
            thread = await store.get_thread(name)
            assert thread is not None
            assert thread.message_count == len((await store.list_messages(name)).items) == count
