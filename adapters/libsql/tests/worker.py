"""A program that waits for a word on its standard input and then works on a store: one of several at once."""

from __future__ import annotations

import asyncio
import os
import sys
import warnings

import threadkeep
from threadkeep import NewMessage, Store, WrongLoopError

MERGES, BATCHES, BATCH = 5, 25, 8


def say(word: str) -> None:
    """Write a line."""
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


async def open_new(store: Store, name: str) -> None:
    """Use a file that everybody has just opened, and that was not there before."""
    await store.ensure_thread("ada", thread_id="shared", metadata={"a": 1})
    await store.save_messages([NewMessage("shared", "user", name, metadata={"a": 1, "b": name})])


async def merge(store: Store, name: str) -> None:
    """Six tasks merge keys of their own into the working memory of one resource."""

    async def writer(task: int) -> None:
        for n in range(MERGES):
            await store.merge_working_memory("ada", {"writers": {f"{name}.{task}": {str(n): True}}})

    await asyncio.gather(*[writer(task) for task in range(6)])


async def save(store: Store, name: str) -> None:
    """Save batches to a thread that the others save to."""
    for number in range(BATCHES):
        await store.save_messages(
            [NewMessage("shared", "user", n, metadata={"batch": f"{name}.{number}"}) for n in range(BATCH)]
        )


def fork(url: str) -> None:
    """Fork a child that cannot use the store and ends as every program does; go on using it."""
    store = threadkeep.sync.open(url)
    store.ensure_thread("ada", thread_id="shared")
    with warnings.catch_warnings():
        # Since 3.12, forking beside other threads warns; that it happens all the same is why this is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            store.get_thread("shared")
        except WrongLoopError:
            sys.exit(7)
        sys.exit(1)
    _, status = os.waitpid(child, 0)
    store.save_messages([NewMessage("shared", "user", os.waitstatus_to_exitcode(status))])
    store.close()


async def work_together(work: str, url: str, name: str) -> None:
    """Do one of the first three."""
    async with threadkeep.open(url) as store:
        await {"open_new": open_new, "merge": merge, "save": save}[work](store, name)


def main(work: str, url: str, name: str) -> None:
    """Do one of the above when told to."""
    say("ready")
    sys.stdin.readline()
    if work == "fork":
        fork(url)
    else:
        asyncio.run(work_together(work, url, name))
    say("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
