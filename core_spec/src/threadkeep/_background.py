"""The event loop behind every sync store: one per process, on a daemon thread that starts at first use."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine
from typing import Any, Generic, Protocol, TypeVar

from .errors import WrongLoopError

__all__ = ["Background", "Run", "background"]

Result = TypeVar("Result")

_SIGNALS_S = 0.5


class Run(Protocol):
    """:meth:`Background.run`."""

    def __call__(self, coroutine: Coroutine[Any, Any, Result], /) -> Result:
        """Run a coroutine and wait for it."""
        ...


class Background:
    """An event loop on a thread of its own, which other threads hand coroutines to and wait for.

    It is never stopped: being a daemon, its thread does not keep the interpreter from exiting.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="threadkeep-sync", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop and wait for what it returns or raises.

        An exception in the waiting thread, such as ``KeyboardInterrupt``, cancels it.

        Raises:
            WrongLoopError: Nothing could ever answer: this is a forked child or the loop's own thread, or the
                interpreter is exiting.
        """
        reason = self._hindrance()
        if reason is not None:
            coroutine.close()
            raise WrongLoopError(reason)
        call = _Call(coroutine, self._loop)
        try:
            self._loop.call_soon_threadsafe(call.start)  # an interrupt may come in here already
            return call.wait()
        finally:
            if not call.done:
                self._loop.call_soon_threadsafe(call.cancel)

    def _hindrance(self) -> str | None:
        if os.getpid() != self._pid:
            return "this store was opened before the process forked"
        if threading.current_thread() is self._thread:
            return "the event loop of the sync stores cannot wait for itself"
        if sys.is_finalizing():
            return "the interpreter is exiting"
        return None


class _Call(Generic[Result]):
    """A coroutine on its way through the loop, and what came of it."""

    def __init__(self, coroutine: Coroutine[Any, Any, Result], loop: asyncio.AbstractEventLoop) -> None:
        self.done = False
        self._coroutine, self._loop = coroutine, loop
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._result: Result
        self._running = threading.Lock()
        self._running.acquire()

    def wait(self) -> Result:
        """In the waiting thread: what the coroutine returns or raises."""
        # A signal that comes just before a lock blocks does not wake it, and on Windows none ever does.
        while not self._running.acquire(timeout=_SIGNALS_S):
            pass
        if self._error is None:
            return self._result
        try:
            raise self._error
        finally:
            self._error = None  # its traceback holds this frame

    def start(self) -> None:
        """On the loop, as the next two."""
        self._task = self._loop.create_task(self._settle())

    def cancel(self) -> None:
        """Cancel what the waiting thread no longer waits for."""
        if self._task is None:  # interrupted before it was handed over
            self._coroutine.close()
        else:
            self._loop.call_soon(self._task.cancel)  # after its first step, so that the coroutine sees it

    async def _settle(self) -> None:
        try:
            self._result = await self._coroutine
        except BaseException as exc:  # noqa: BLE001  (whatever it is, it belongs to the waiting thread)
            self._error = exc
        self.done = True
        self._running.release()


_current: Background | None = None
_starting = threading.Lock()


def background() -> Background:
    """The process's background loop, started if it does not run yet."""
    global _current  # noqa: PLW0603  (one per process, made when first needed)
    with _starting:
        if _current is None:
            _current = Background()
        return _current


def _forget() -> None:
    """Let a forked child start its own: the parent's thread is not in it, and its lock may have been held."""
    global _current, _starting
    _current, _starting = None, threading.Lock()


if sys.platform != "win32":  # which has no fork
    os.register_at_fork(after_in_child=_forget)
