"""Driver errors to the contract's: the one boundary."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

import psycopg

from threadkeep.errors import (
    CorruptDataError,
    LimitExceededError,
    StorageError,
    UnavailableError,
)

__all__ = ["connecting", "is_lost", "is_race", "translate", "translated"]

_RACES = frozenset({"40001", "40P01", "23505", "23503"})
"""Serialization failure, deadlock, and the keys that stand for a lost race. Nothing was written."""

_POOLER = "behind a pooler in transaction mode add pgbouncer=true to the URL"
_REASONS = {
    "25006": "the server takes no writes: it is a replica, or default_transaction_read_only is on",
    "53100": "the server's disk is full",
    "53200": "the server is out of memory",
    "53300": "the server has no free connection",
    "55P03": "a lock was not free within the server's lock_timeout",
    "57014": "the server cancelled the statement, probably by its statement_timeout",
    "42501": "the role lacks a privilege that the adapter needs",
    "26000": f"a prepared statement is gone; {_POOLER}",
    "42P05": f"a prepared statement is there already; {_POOLER}",
    "42P01": "a table is missing; run 'threadkeep migrate URL'",
    "3F000": "the schema is missing; run 'threadkeep migrate URL'",
    "3D000": "there is no such database",
    "28P01": "the server refused the password",
    "28000": "the server refused the role",
    "08P01": f"the server refused the connection's parameters; {_POOLER}",
}


def is_race(error: psycopg.Error) -> bool:
    """Whether another transaction got in between, so that trying again may succeed."""
    return error.sqlstate in _RACES


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone: the driver says so, or the server with its last word."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError)
    return state.startswith("08") or state in {"57P01", "57P02", "57P03", "57P05", "25P03"}


def translate(error: psycopg.Error, *, writing: bool) -> StorageError:
    """The contract's error for the driver's.

    Args:
        error: What the driver raised.
        writing: Whether a write, or its commit, had been sent: then a lost connection leaves its fate open.
    """
    state = error.sqlstate or ""
    outcome: Literal["not_applied", "unknown"] = "unknown" if writing else "not_applied"
    if state in _REASONS:
        return UnavailableError(_REASONS[state])
    if is_lost(error):
        return UnavailableError("the connection to the server was lost", outcome)
    if state.startswith("54"):
        return LimitExceededError("what the server takes in one statement", "more")
    if state in {"XX001", "XX002"}:
        return CorruptDataError("a table or an index", "the server found it damaged")
    if state.startswith(("53", "57", "58")):
        return UnavailableError(f"the server failed with SQLSTATE {state}", outcome)
    return StorageError(f"the server refused a statement: {error}")


_REFUSALS = (  # of a connection there is no SQLSTATE; what libpq says may hold parameters: it is not shown
    ("password authentication failed", _REASONS["28P01"]),
    ("no password supplied", "the server wants a password"),
    ("unsupported startup parameter", _REASONS["08P01"]),
    ("too many clients", _REASONS["53300"]),
    ("remaining connection slots", _REASONS["53300"]),
    ("certificate", "the server's certificate, or ours, was refused"),
    ("is starting up", "the server is starting"),
    ("is shutting down", "the server is shutting down"),
    ("database", _REASONS["3D000"]),
    ("role", _REASONS["28000"]),
)


def _refusal(error: psycopg.Error) -> str:
    text = str(error)
    fatal = text.partition("FATAL:")[2]
    for words, reason in _REFUSALS:
        if words in (fatal or text.partition("failed:")[2]):
            return reason
    return "the server refuses the connection" if fatal else "the server cannot be reached"


@contextmanager
def connecting() -> Generator[None]:
    """Raise the contract's errors for those of opening a connection."""
    try:
        yield
    except psycopg.Error as exc:
        raise UnavailableError(_REASONS.get(exc.sqlstate or "") or _refusal(exc)) from exc


@contextmanager
def translated() -> Generator[None]:
    """Raise the contract's errors for the driver's where nothing can have been written."""
    try:
        yield
    except psycopg.Error as exc:
        raise translate(exc, writing=False) from exc
