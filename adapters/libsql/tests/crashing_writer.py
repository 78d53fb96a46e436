"""A program that writes to a file until it is killed, and says what the store has acknowledged.

Every write is followed by a line, flushed at once: what is printed was promised to survive.
"""

from __future__ import annotations

import asyncio
import random
import sys

import threadkeep
from threadkeep import MessageUpdate, NewMessage, Store

BATCH = 40


def acknowledge(what: str, which: object) -> None:
    """Say that a write has returned."""
    sys.stdout.write(f"{what} {which}\n")
    sys.stdout.flush()


async def write(store: Store, first: int) -> None:
    """A batch into one of two threads, an update, a clone, a merge, a deletion; and again."""
    rng = random.Random(first)
    for thread in ("even", "odd"):
        await store.ensure_thread("ada", thread_id=thread)
    number = first
    while True:
        thread = ("even", "odd")[number % 2]
        batch = [
            NewMessage(
                thread,
                "user",
                "x" * rng.randrange(2_000),
                id=f"{number}/{n}",
                metadata={"batch": number, "n": n, "state": "new"},
            )
            for n in range(BATCH)
        ]
        await store.save_messages(batch)
        acknowledge("batch", number)
        await store.update_messages(
            [MessageUpdate(f"{number}/{n}", metadata={"state": "old"}) for n in range(5)]
        )
        acknowledge("update", number)
        copy = await store.clone_thread(thread, message_limit=30)
        acknowledge("clone", copy.thread.id)
        await store.merge_working_memory("ada", {"batches": {str(number): True}})
        acknowledge("merge", number)
        await store.delete_thread(copy.thread.id)
        acknowledge("delete", copy.thread.id)
        number += 1


async def main(url: str, first: int) -> None:
    """Write to the store at *url*, numbering batches from *first*."""
    async with threadkeep.open(url) as store:
        await write(store, first)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
