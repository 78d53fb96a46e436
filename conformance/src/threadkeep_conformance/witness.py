"""Proof that nothing was sent: what a store asked of its adapter, and that refusals came before it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from threadkeep import Capability, NewMessage, StorageAdapter, Store, UnsupportedCapabilityError

__all__ = ["CallLog", "prove_atomic_batch_refused", "refusing", "store_on"]


class CallLog:
    """Passes everything on to an adapter and notes which methods were called.

    Attributes:
        calls: Their names, in order.
    """

    def __init__(self, adapter: StorageAdapter) -> None:
        self._adapter = adapter
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._adapter, name)
        if not callable(member):
            return member

        def noted(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            return member(*args, **kwargs)

        return noted

    @contextmanager
    def silent(self) -> Generator[None]:
        """Assert that the adapter is not called inside the ``with`` block."""
        before = len(self.calls)
        yield
        assert self.calls[before:] == [], (
            "the adapter was called before the argument or capability was checked"
        )


def store_on(log: CallLog) -> Store:
    """A store on a logged adapter."""
    return Store(cast(StorageAdapter, log))


class _Refusing:
    """A store that asserts, on every ``UnsupportedCapabilityError``, that its adapter was not called."""

    def __init__(self, store: Store, log: CallLog) -> None:
        self._store, self._log = store, log

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._store, name)
        if inspect.isasyncgenfunction(member):
            return self._iterating(member)
        return self._awaiting(member) if inspect.iscoroutinefunction(member) else member

    @contextmanager
    def _checked(self) -> Generator[None]:
        before = len(self._log.calls)
        try:
            yield
        except UnsupportedCapabilityError:
            assert self._log.calls[before:] == [], "refused, but only after the adapter was called"
            raise

    def _awaiting(self, member: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            with self._checked():
                return await member(*args, **kwargs)

        return call

    def _iterating(
        self, member: Callable[..., AsyncGenerator[Any, None]]
    ) -> Callable[..., AsyncGenerator[Any, None]]:
        async def walk(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
            with self._checked():
                async for item in member(*args, **kwargs):
                    yield item

        return walk


def refusing(store: Store, log: CallLog) -> Store:
    """The store, with every refusal checked to come before any call of the adapter."""
    return cast(Store, _Refusing(store, log))


async def prove_atomic_batch_refused(store: Store) -> None:
    """Without atomic batches only the wish for one is refused: other batches are done as well as can be."""
    with pytest.raises(UnsupportedCapabilityError) as refusal:
        await store.save_messages([NewMessage("thread-1", "user", "hello")], atomic=True)
    assert refusal.value.capability == Capability.ATOMIC_BATCH
