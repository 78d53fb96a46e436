"""Contestants in processes of their own, each in its own environment, spoken to by lines of JSON.

``benchmarks/peers`` holds them, with the locks of what they need; ``worker.py`` there describes the protocol.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from click import ClickException

__all__ = ["Contestant", "Worker", "contestants", "home", "prepare"]

_STARTS_S = 120
_MASTRA = "Mastra"


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """Who takes part.

    Attributes:
        name: As it is shown.
        backend: On which database.
        code: ``module:class`` in the folder of the peers; ``node`` for the one that is not Python.
        peer: Whether it needs the peers' environment; threadkeep runs in this one.
        options: Added to its URL.
        folder: Where its module is, if not with the others.
    """

    name: str
    backend: str
    code: str
    peer: bool = True
    options: str = ""
    folder: Path | None = None


_OURS = {"threadkeep": "", "threadkeep, no index": "metadata_index=none"}
_PEERS = {
    "libsql": {
        "OpenAI Agents": "openai_agents:SQLite",
        "LangGraph": "langgraph_store:SQLite",
        "Google ADK": "google_adk:SQLite",
        "LangChain": "langchain_history:SQLite",
        _MASTRA: "node",
    },
    "postgres": {
        "OpenAI Agents": "openai_agents:SQLAlchemy",
        "LangGraph": "langgraph_store:Postgres",
        "Google ADK": "google_adk:Postgres",
        "LangChain": "langchain_history:Postgres",
        _MASTRA: "node",
    },
}


def contestants(backend: str) -> list[Contestant]:
    """Those of a backend; threadkeep first. None where its peers are not known."""
    if backend not in _PEERS:
        return []
    ours = [
        Contestant(
            name=name, backend=backend, code="threadkeep_store:Threadkeep", peer=False, options=options
        )
        for name, options in _OURS.items()
    ]
    peers = [Contestant(name=name, backend=backend, code=code) for name, code in _PEERS[backend].items()]
    return [*ours, *peers]


def home() -> Path:
    """The folder of the peers.

    Raises:
        ClickException: This is not a checkout of the repository, which alone has it.
    """
    folder = Path(__file__).parents[2] / "peers"
    if not (folder / "worker.py").exists():
        raise ClickException("peers are measured from a checkout: the package does not hold their locks")
    return folder


def _python(folder: Path) -> Path:
    return folder / ".venv" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _environment() -> dict[str, str]:
    """Without what points uv, npm and Python to the environment of this process."""
    ours = ("UV_PROJECT_ENVIRONMENT", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
    return {name: value for name, value in os.environ.items() if name not in ours}


async def prepare(folder: Path) -> None:
    """Install the peers as their locks say, beside them: 640 MB the first time, a second later on.

    Raises:
        ClickException: uv is not there, or an installation failed.
    """
    uv = shutil.which("uv") or shutil.which("uv", path=str(folder.parents[1] / ".uv" / "bin"))
    if uv is None:
        raise ClickException("the peers' environment needs uv: pip install uv")
    await _installed([uv, "sync", "--project", str(folder), "--frozen", "--quiet"], folder)
    mastra = folder / "mastra"
    if not _is_current(mastra):
        npm = _python(folder).with_name("npm")
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        await _installed([str(npm), "ci", *options], mastra)


def _is_current(mastra: Path) -> bool:
    """Whether what npm installed last is at least as new as the lock."""
    done = mastra / "node_modules" / ".package-lock.json"
    return done.exists() and done.stat().st_mtime >= (mastra / "package-lock.json").stat().st_mtime


async def _installed(command: Sequence[str], folder: Path) -> None:
    environment = _environment()
    environment["PATH"] = os.pathsep.join([str(_python(home()).parent), environment.get("PATH", "")])
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment, stdout=PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    if process.returncode:
        text = output.decode(errors="replace").strip()
        raise ClickException(f"{Path(command[0]).name} could not install the peers: {text}")


class Worker:
    """A contestant's process. Made by :meth:`start`.

    Attributes:
        contestant: Who.
        versions: Of its libraries.
        settings: How it is set.
        operations: What it offers.
        notes: By operation, what is odd about it.
    """

    def __init__(self, contestant: Contestant, process: Process) -> None:
        self.contestant = contestant
        self._process = process
        self.versions: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        self.operations: list[str] = []
        self.notes: dict[str, str] = {}

    @classmethod
    async def start(cls, contestant: Contestant, folder: Path, url: str, data: Path) -> Worker:
        """Start the process and let it open its database.

        Raises:
            RuntimeError: It could not.
        """
        if contestant.code == "node":
            script = folder / "mastra" / "worker.mjs"
            command = [str(_python(folder).with_name("node")), str(script), contestant.backend]
        else:
            python = _python(folder) if contestant.peer else Path(sys.executable)
            command = [str(python), str(folder / "worker.py"), contestant.code]
            command += [str(contestant.folder)] if contestant.folder else []
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, env=_environment(), limit=2**26
        )
        worker = cls(contestant, process)
        try:
            found = await worker.tell("open", url=url, data=str(data))
        except BaseException:
            await worker.end()
            raise
        worker.versions, worker.settings = found["versions"], found["settings"]
        worker.operations, worker.notes = found["operations"], found["notes"]
        return worker

    async def tell(self, what: str, **more: object) -> dict[str, Any]:
        """Send a line, and return its answer.

        Raises:
            RuntimeError: The contestant failed, or its process ended.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError(f"{self.contestant.name}: its process has no pipes")
        stdin.write(msgspec.json.encode({"do": what, **more}) + b"\n")
        await stdin.drain()
        line = await stdout.readline()
        if not line:
            raise RuntimeError(f"{self.contestant.name}: its process ended with {await self._process.wait()}")
        answer = msgspec.json.decode(line, type=dict[str, Any])
        if "error" in answer:
            raise RuntimeError(f"{self.contestant.name}: {answer['error']}")
        return answer

    async def end(self) -> None:
        """Let it close its database, and end the process."""
        if self._process.returncode is None:
            try:
                async with asyncio.timeout(_STARTS_S):
                    await self.tell("close")
            except (RuntimeError, TimeoutError, ConnectionError):
                self._process.kill()
        await self._process.wait()
