"""The command, run in this process on a shared in-memory database, or as a process of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

import threadkeep
from threadkeep.cli import cli

Value = TypeVar("Value")


class Database:
    """An in-memory database that the command can open by its URL, and a store on it for the test."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self.url = f"memory:{uuid4()}"
        self.store = self.do(threadkeep.open(self.url))

    def do(self, action: Awaitable[Value]) -> Value:
        """Await something."""

        async def wait() -> Value:
            return await action

        return self._runner.run(wait())

    def close(self) -> None:
        """Let it go."""
        self.do(self.store.close())

    def save(self, thread: str, *texts: str, resource: str = "r", **metadata: Any) -> None:
        """A thread with messages ``thread/0`` and so on; ``n`` in their metadata counts."""
        self.do(self.store.ensure_thread(resource, thread_id=thread))
        messages = [
            threadkeep.NewMessage(thread, "user", text, id=f"{thread}/{n}", metadata={**metadata, "n": n})
            for n, text in enumerate(texts)
        ]
        self.do(self.store.save_messages(messages))


@pytest.fixture
def database() -> Generator[Database]:
    with asyncio.Runner() as runner:
        database = Database(runner)
        yield database
        database.close()


Invoke = Callable[..., Result]


@pytest.fixture
def invoke() -> Invoke:
    """Run the command in this process; nothing may escape as an exception."""

    def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(cli, arguments, input=stdin, catch_exceptions=False)

    return run


@pytest.fixture
def invoke_json(invoke: Invoke) -> Callable[..., Any]:
    """Run the command with ``--json`` and return what it prints."""

    def run(*arguments: str, stdin: str | bytes | None = None) -> Any:
        result = invoke(*arguments, "--json", stdin=stdin)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run


Process = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Run the command as a process of its own, in the test's folder."""

    def run(*arguments: str, stdin: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "threadkeep", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=tmp_path,
            check=False,
            **options,
        )

    return run
