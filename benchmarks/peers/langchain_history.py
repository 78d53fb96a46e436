"""LangChain's chat histories: a list of messages that is always read as a whole."""

from __future__ import annotations

from typing import Any, ClassVar

from langchain_core.messages import AIMessage, HumanMessage
from worker import Contestant

_TABLE = "chat_history"


class _Histories(Contestant):
    notes: ClassVar[dict[str, str]] = {"last_20": "reads the whole history: it has nothing else"}

    def history(self, name: str) -> Any:
        raise NotImplementedError

    async def load(self) -> None:
        """Add the messages; histories cannot be listed, so there are no other threads."""
        self.long, self.added = self.history(self.data["thread"]), self.history(self.appended)
        messages = [_message(message) for message in self.data["messages"]]
        for first in range(0, len(messages), 500):
            await self.long.aadd_messages(messages[first : first + 500])

    async def append_1(self, number: int) -> Any:
        """Add a message."""
        await self.added.aadd_messages([_message(self.new(number))])

    async def append_100(self, _: int) -> Any:
        """Add a hundred."""
        await self.added.aadd_messages([_message(message) for message in self.data["new"]])

    async def tail(self, thread: str) -> Any:
        """The end of it all."""
        del thread
        return (await self.added.aget_messages())[-20:]

    async def last_20(self, _: int) -> Any:
        """The end of it all."""
        return (await self.long.aget_messages())[-20:]

    def rows(self, answer: Any) -> list[Any]:
        """As everybody gives them."""
        return [[m.id, m.content, m.additional_kwargs["metadata"]] for m in answer]


class SQLite(_Histories):
    """``SQLChatMessageHistory`` on aiosqlite."""

    packages = ("langchain-community", "sqlalchemy", "aiosqlite")

    async def open(self) -> dict[str, str]:
        """One engine for all histories."""
        from sqlalchemy.ext.asyncio import create_async_engine

        self.engine = create_async_engine(f"sqlite+aiosqlite:///{self.url}")
        return {"journal_mode": "WAL, set beforehand", "synchronous": "FULL, the driver's default"}

    def history(self, name: str) -> Any:
        """A history of the engine."""
        from langchain_community.chat_message_histories import SQLChatMessageHistory

        return SQLChatMessageHistory(name, connection=self.engine, async_mode=True)

    async def close(self) -> None:
        """Close the engine."""
        await self.engine.dispose()


class Postgres(_Histories):
    """``PostgresChatMessageHistory`` on one connection, which is all that it takes."""

    packages = ("langchain-postgres", "psycopg")

    async def open(self) -> dict[str, str]:
        """Connect, and make the table."""
        import psycopg
        from langchain_postgres import PostgresChatMessageHistory

        self.connection = await psycopg.AsyncConnection.connect(self.url)
        await PostgresChatMessageHistory.acreate_tables(self.connection, _TABLE)
        return {"pool": "one connection", "synchronous_commit": "on"}

    def history(self, name: str) -> Any:
        """A history of the connection."""
        from langchain_postgres import PostgresChatMessageHistory

        return PostgresChatMessageHistory(_TABLE, name, async_connection=self.connection)

    async def close(self) -> None:
        """Close the connection."""
        await self.connection.close()


def _message(message: dict[str, Any]) -> Any:
    kind = HumanMessage if message["role"] == "user" else AIMessage
    return kind(
        content=message["text"], id=message["id"], additional_kwargs={"metadata": message["metadata"]}
    )
