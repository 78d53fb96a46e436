"""Google ADK: sessions of events in a ``DatabaseSessionService`` on SQLAlchemy."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types
from worker import Contestant

_APP = "bench"


class _Service(Contestant):
    packages = ("google-adk", "sqlalchemy")
    notes: ClassVar[dict[str, str]] = {
        "append_100": "one event at a time: it has no batch",
        "list_threads": "reads all of the user's sessions: it has no pages",
    }

    async def connect(self, url: str) -> None:
        self.service = DatabaseSessionService(db_url=url)

    async def load(self) -> None:
        """Append the events one by one, and make the sessions."""
        service, data = self.service, self.data
        long = await service.create_session(
            app_name=_APP, user_id=data["resource"], session_id=data["thread"]
        )
        for message in data["messages"]:
            moment = datetime.fromisoformat(message["created_at"]).timestamp()
            await service.append_event(long, _event(message, message["id"], moment))
        self.added = await service.create_session(
            app_name=_APP, user_id=data["resource"], session_id=self.appended
        )
        for thread in data["threads"]:
            state = {"title": thread["title"], **thread["metadata"]}
            await service.create_session(
                app_name=_APP, user_id=data["lister"], session_id=thread["id"], state=state
            )

    async def close(self) -> None:
        """Close the engine."""
        await self.service.close()

    async def append_1(self, number: int) -> Any:
        """Append an event."""
        await self.service.append_event(self.added, _event(self.new(number)))

    async def append_100(self, _: int) -> Any:
        """Append a hundred, one after another."""
        for message in self.data["new"]:
            await self.service.append_event(self.added, _event(message))

    async def _newest(self, thread: str) -> Any:
        config = GetSessionConfig(num_recent_events=20)
        return await self.service.get_session(
            app_name=_APP, user_id=self.data["resource"], session_id=thread, config=config
        )

    async def tail(self, thread: str) -> Any:
        """The newest, oldest first."""
        return await self._newest(thread)

    async def last_20(self, _: int) -> Any:
        """The newest, oldest first."""
        return await self._newest(self.data["thread"])

    async def list_threads(self, _: int) -> Any:
        """The newest of all."""
        found = await self.service.list_sessions(app_name=_APP, user_id=self.data["lister"])
        return sorted(found.sessions, key=lambda session: session.last_update_time, reverse=True)[:20]

    def rows(self, answer: Any) -> list[Any]:
        """As everybody gives them."""
        if isinstance(answer, list):
            return [
                [s.id, s.state["title"], {k: v for k, v in s.state.items() if k != "title"}] for s in answer
            ]
        return [[event.id, event.content.parts[0].text, event.custom_metadata] for event in answer.events]


class SQLite(_Service):
    """On aiosqlite."""

    packages = ("google-adk", "sqlalchemy", "aiosqlite")

    async def open(self) -> dict[str, str]:
        """Make the engine."""
        await self.connect(f"sqlite+aiosqlite:///{self.url}")
        return {"journal_mode": "WAL, set beforehand", "synchronous": "FULL, the driver's default"}


class Postgres(_Service):
    """On asyncpg."""

    packages = ("google-adk", "sqlalchemy", "asyncpg")

    async def open(self) -> dict[str, str]:
        """Make the engine."""
        await self.connect(self.url.replace("postgresql://", "postgresql+asyncpg://"))
        return {"pool": "SQLAlchemy's default, pinged before use", "synchronous_commit": "on"}


def _event(message: dict[str, Any], identifier: str | None = None, timestamp: float | None = None) -> Event:
    event = Event(
        author=message["role"],
        content=types.Content(role=message["role"], parts=[types.Part(text=message["text"])]),
        custom_metadata=message["metadata"],
    )
    if identifier is not None and timestamp is not None:
        event.id, event.timestamp = identifier, timestamp
    return event
