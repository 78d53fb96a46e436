"""threadkeep itself, by the same rules as the others."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from worker import Contestant

import threadkeep
from threadkeep import Clone, Include, Message, NewMessage, Page, Store, Thread


class Threadkeep(Contestant):
    """A store on the URL."""

    packages = ("threadkeep", "msgspec")
    store: Store

    async def open(self) -> dict[str, str]:
        """Open the store, which makes its tables."""
        self.store = await threadkeep.open(self.url)
        self.cursor: str | None = None
        return {"metadata_index": self.url.partition("metadata_index=")[2] or "all", "durability": "full"}

    async def load(self) -> None:
        """Store everything with its times."""
        data, store = self.data, self.store
        await store.create_thread(data["resource"], thread_id=data["thread"])
        await store.create_thread(data["resource"], thread_id=self.appended)
        messages = [self._message(message, seq) for seq, message in enumerate(data["messages"])]
        for first in range(0, len(messages), 1000):
            await store.save_messages(messages[first : first + 1000])
        for thread in data["threads"]:
            await store.create_thread(
                data["lister"],
                thread_id=thread["id"],
                title=thread["title"],
                metadata=thread["metadata"],
                created_at=datetime.fromisoformat(thread["created_at"]),
            )
        before = await store.list_messages(data["thread"], page=data["page"] - 1, per_page=20)
        self.cursor = before.next_cursor

    def _message(self, message: dict[str, Any], seq: int) -> Message:
        return Message(
            id=message["id"],
            thread_id=self.data["thread"],
            resource_id=self.data["resource"],
            role=message["role"],
            content=_content(message),
            metadata=message["metadata"],
            created_at=datetime.fromisoformat(message["created_at"]),
            seq=seq,
        )

    async def close(self) -> None:
        """Close the store."""
        await self.store.close()

    def _new(self, message: dict[str, Any]) -> NewMessage:
        return NewMessage(self.appended, message["role"], _content(message), metadata=message["metadata"])

    async def append_1(self, number: int) -> Any:
        """Save a message."""
        return await self.store.save_messages([self._new(self.new(number))])

    async def append_100(self, _: int) -> Any:
        """Save a hundred."""
        return await self.store.save_messages([self._new(message) for message in self.data["new"]])

    async def tail(self, thread: str) -> Any:
        """The newest."""
        return await self.store.list_messages(thread, order="desc", per_page=20)

    async def last_20(self, _: int) -> Any:
        """The newest."""
        return await self.store.list_messages(self.data["thread"], order="desc", per_page=20)

    async def page_by_offset(self, _: int) -> Any:
        """A page in the middle."""
        return await self.store.list_messages(self.data["thread"], page=self.data["page"], per_page=20)

    async def page_by_cursor(self, _: int) -> Any:
        """The same page, by what the one before it said."""
        return await self.store.list_messages(self.data["thread"], cursor=self.cursor, per_page=20)

    async def filtered_page(self, number: int) -> Any:
        """The newest that match."""
        where = self.wanted(number)
        return await self.store.list_messages(self.data["thread"], where=where, order="desc", per_page=10)

    async def windows(self, _: int) -> Any:
        """Messages with their neighbours."""
        include = [Include(wanted, before=2, after=2) for wanted in self.data["windows"]]
        return await self.store.list_messages(self.data["thread"], include=include, per_page=0)

    async def list_threads(self, _: int) -> Any:
        """The newest."""
        return await self.store.list_threads(resource_id=self.data["lister"], per_page=20)

    async def list_threads_filtered(self, _: int) -> Any:
        """The newest that match."""
        where = self.data["thread_filter"]
        return await self.store.list_threads(resource_id=self.data["lister"], where=where, per_page=20)

    async def clone(self, number: int) -> Any:
        """Copy the long thread."""
        return await self.store.clone_thread(self.data["thread"], thread_id=f"copy-{number}")

    async def merge(self, number: int) -> Any:
        """Change one key of a document."""
        return await self.store.merge_working_memory("document", {"call": {"number": number}})

    async def left_behind(self, operation: str, number: int, answer: Any) -> list[Any]:
        """A copy is removed again."""
        if operation == "merge":
            return [json.loads(answer.working_memory)["call"]["number"] - number]
        if isinstance(answer, Clone):
            newest = self.rows(await self.tail(answer.thread.id))
            await self.store.delete_thread(answer.thread.id)
            return newest
        return await super().left_behind(operation, number, answer)

    def rows(self, answer: Any) -> list[Any]:
        """As everybody gives them."""
        found: Page[Message] | Page[Thread] = answer
        return [
            [item.id, item.title, item.metadata]
            if isinstance(item, Thread)
            else [item.id, item.content["parts"][0]["text"], item.metadata]
            for item in found.items
        ]


def _content(message: dict[str, Any]) -> Any:
    return {"parts": [{"type": "text", "text": message["text"]}]}
