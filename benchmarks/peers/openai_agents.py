"""OpenAI Agents SDK: a session a conversation, of items in the order in which they were added."""

from __future__ import annotations

from typing import Any

from agents.extensions.memory import SQLAlchemySession
from agents.memory import SQLiteSession
from worker import Contestant


class _Sessions(Contestant):
    packages = ("openai-agents",)

    def session(self, name: str) -> Any:
        raise NotImplementedError

    async def load(self) -> None:
        """Add the items; sessions cannot be listed, so there are no other threads."""
        self.long, self.added = self.session(self.data["thread"]), self.session(self.appended)
        messages = [_item(message) for message in self.data["messages"]]
        for first in range(0, len(messages), 500):
            await self.long.add_items(messages[first : first + 500])

    async def append_1(self, number: int) -> Any:
        """Add an item."""
        await self.added.add_items([_item(self.new(number))])

    async def append_100(self, _: int) -> Any:
        """Add a hundred."""
        await self.added.add_items([_item(message) for message in self.data["new"]])

    async def tail(self, thread: str) -> Any:
        """The newest, oldest first."""
        del thread
        return await self.added.get_items(limit=20)

    async def last_20(self, _: int) -> Any:
        """The newest, oldest first."""
        return await self.long.get_items(limit=20)

    def rows(self, answer: Any) -> list[Any]:
        """As everybody gives them."""
        return [[item["id"], item["content"][0]["text"], item["metadata"]] for item in answer]


class SQLite(_Sessions):
    """``SQLiteSession``: the standard library's driver in a thread."""

    async def open(self) -> dict[str, str]:
        """Nothing is shared by the sessions but the file."""
        return {"journal_mode": "WAL, set by the peer", "synchronous": "FULL, the driver's default"}

    def session(self, name: str) -> Any:
        """A session of the file."""
        return SQLiteSession(name, self.url)

    async def close(self) -> None:
        """Close the sessions."""
        self.long.close()
        self.added.close()


class SQLAlchemy(_Sessions):
    """``SQLAlchemySession`` on asyncpg."""

    packages = ("openai-agents", "sqlalchemy", "asyncpg")

    async def open(self) -> dict[str, str]:
        """One engine for all sessions."""
        from sqlalchemy.ext.asyncio import create_async_engine

        self.engine = create_async_engine(self.url.replace("postgresql://", "postgresql+asyncpg://"))
        return {"pool": "SQLAlchemy's default", "synchronous_commit": "on"}

    def session(self, name: str) -> Any:
        """A session of the engine."""
        return SQLAlchemySession(name, engine=self.engine, create_tables=True)

    async def close(self) -> None:
        """Close the engine."""
        await self.engine.dispose()


def _item(message: dict[str, Any]) -> Any:
    return {
        "id": message["id"],
        "role": message["role"],
        "content": [{"type": "input_text", "text": message["text"]}],
        "metadata": message["metadata"],
    }
