"""LangGraph's stores: items in namespaces, one for a thread's messages and one for a user's threads."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any, ClassVar

from langgraph.store.base import PutOp
from worker import Contestant


class _Stores(Contestant):
    notes: ClassVar[dict[str, str]] = {
        "last_20": "ordered by the second of the last change alone: the rows' times were set apart by hand",
        "append_100": "checked by number only: what is put in one second has no order",
    }
    store: Any

    async def load(self) -> None:
        """Put the messages and the threads, then set their times apart."""
        self.put = 0
        puts = [
            PutOp(("messages", self.data["thread"]), message["id"], _value(message))
            for message in self.data["messages"]
        ]
        puts += [
            PutOp(
                ("threads", self.data["lister"]),
                thread["id"],
                {"text": thread["title"], **thread["metadata"]},
            )
            for thread in self.data["threads"]
        ]
        for first in range(0, len(puts), 100):
            await self.store.abatch(puts[first : first + 100])
        records = [*self.data["messages"], *self.data["threads"]]
        await self.set_times([(record["created_at"], record["id"]) for record in records])

    async def set_times(self, times: list[tuple[str, str]]) -> None:
        """Set when items were changed, past the store."""
        raise NotImplementedError

    async def append_1(self, number: int) -> Any:
        """Put an item under a key of its own."""
        self.put += 1
        await self.store.aput(("messages", self.appended), f"new-{self.put}", _value(self.new(number)))

    async def append_100(self, _: int) -> Any:
        """Put a hundred."""
        self.put += 100
        await self.store.abatch(
            [
                PutOp(("messages", self.appended), f"new-{self.put - rank}", _value(message))
                for rank, message in enumerate(self.data["new"])
            ]
        )

    async def last_20(self, _: int) -> Any:
        """Those changed last."""
        return await self.store.asearch(("messages", self.data["thread"]), limit=20)

    async def page_by_offset(self, _: int) -> Any:
        """A page in the middle, counted from the newest: there is no other order."""
        offset = len(self.data["messages"]) - 20 * (self.data["page"] + 1)
        return await self.store.asearch(("messages", self.data["thread"]), limit=20, offset=offset)

    async def filtered_page(self, number: int) -> Any:
        """Those changed last that match."""
        return await self.store.asearch(
            ("messages", self.data["thread"]), filter=self.wanted(number), limit=10
        )

    async def list_threads(self, _: int) -> Any:
        """Those changed last."""
        return await self.store.asearch(("threads", self.data["lister"]), limit=20)

    async def list_threads_filtered(self, _: int) -> Any:
        """Those changed last that match."""
        return await self.store.asearch(
            ("threads", self.data["lister"]), filter=self.data["thread_filter"], limit=20
        )

    async def left_behind(self, operation: str, number: int, answer: Any) -> list[Any]:
        """What was appended is counted, since it has no order."""
        if operation.startswith("append"):
            found = await self.store.asearch(("messages", self.appended), limit=self.put + 1)
            return [len(found) - self.put]
        return await super().left_behind(operation, number, answer)

    def rows(self, answer: Any) -> list[Any]:
        """As everybody gives them."""
        return [
            [item.key, item.value["text"], {k: v for k, v in item.value.items() if k not in ("text", "role")}]
            for item in answer
        ]


class SQLite(_Stores):
    """``AsyncSqliteStore`` on aiosqlite."""

    packages = ("langgraph-checkpoint-sqlite", "aiosqlite")

    async def open(self) -> dict[str, str]:
        """Open and set up the store."""
        from langgraph.store.sqlite.aio import AsyncSqliteStore

        self.stack = AsyncExitStack()
        self.store = await self.stack.enter_async_context(AsyncSqliteStore.from_conn_string(self.url))
        await self.store.setup()
        return {"journal_mode": "WAL, set beforehand", "synchronous": "FULL, the driver's default"}

    async def set_times(self, times: list[tuple[str, str]]) -> None:
        """With the store's connection."""
        await self.store.conn.executemany("UPDATE store SET updated_at = ? WHERE key = ?", times)

    async def close(self) -> None:
        """Close the store."""
        await self.stack.aclose()


class Postgres(_Stores):
    """``AsyncPostgresStore`` on a pool of psycopg."""

    packages = ("langgraph-checkpoint-postgres", "psycopg")

    async def open(self) -> dict[str, str]:
        """Open and set up the store."""
        from langgraph.store.postgres.aio import AsyncPostgresStore

        self.stack = AsyncExitStack()
        store = AsyncPostgresStore.from_conn_string(self.url, pool_config={"min_size": 1, "max_size": 10})
        self.store = await self.stack.enter_async_context(store)
        await self.store.setup()
        return {"pool": "1 to 10", "synchronous_commit": "on"}

    async def set_times(self, times: list[tuple[str, str]]) -> None:
        """With a connection of its own."""
        import psycopg

        async with await psycopg.AsyncConnection.connect(self.url) as db:
            cursor = db.cursor()
            await cursor.executemany("UPDATE store SET updated_at = %s WHERE key = %s", times)

    async def close(self) -> None:
        """Close the store."""
        await self.stack.aclose()


def _value(message: dict[str, Any]) -> dict[str, Any]:
    return {"text": message["text"], "role": message["role"], **message["metadata"]}
