"""Every error threadkeep raises, split by what the caller does next.

Driver errors stay in ``__cause__``. Every error pickles: its constructor's positional parameters are its
``args``. No message contains credentials.
"""

from __future__ import annotations

from typing import Literal

__all__ = [
    "AlreadyExistsError",
    "ConflictError",
    "CorruptDataError",
    "InvalidArgumentError",
    "InvalidCursorError",
    "InvalidFilterError",
    "LimitExceededError",
    "MissingDriverError",
    "NotFoundError",
    "OwnershipError",
    "PartialWriteError",
    "PluginError",
    "SchemaVersionError",
    "StorageError",
    "StoreClosedError",
    "ThreadkeepError",
    "UnavailableError",
    "UnknownSchemeError",
    "UnsupportedCapabilityError",
    "WrongLoopError",
]


class ThreadkeepError(Exception):
    """The root of every error threadkeep raises on purpose."""


# --- fix the call ---------------------------------------------------------------------------------


class InvalidArgumentError(ThreadkeepError, ValueError):
    """An argument breaks a rule of the contract. Nothing was written.

    Args:
        argument: The argument's name, with a path inside it where there is one (``metadata.price``).
        rule: What it must be, as the end of "must be ...".
        given: The kind of value that was given (``float nan``, ``str of 300 characters``).
    """

    def __init__(self, argument: str, rule: str, given: str) -> None:
        super().__init__(argument, rule, given)
        self.argument, self.rule, self.given = argument, rule, given

    def __str__(self) -> str:
        return f"{self.argument} must be {self.rule}; given: {self.given}"


class InvalidFilterError(InvalidArgumentError):
    """A metadata filter has an illegal key, value or operator."""


class InvalidCursorError(InvalidArgumentError):
    """A cursor is damaged, belongs to another query, or came together with ``page``."""


# --- the thing named is not there, or is not yours ------------------------------------------------


class NotFoundError(ThreadkeepError, LookupError):
    """What was named does not exist. Nothing was written.

    Args:
        kind: ``thread``, ``message``, ``resource``, ``memory`` or ``adapter``.
        identifier: Its id.
    """

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(kind, identifier)
        self.kind, self.identifier = kind, identifier

    def __str__(self) -> str:
        return f"{self.kind} {self.identifier!r} does not exist"


class UnknownSchemeError(NotFoundError):
    """No installed plugin answers to this URL scheme.

    Args:
        scheme: The URL's scheme.
        installed: The schemes that installed adapters answer to.
        install: A command that installs an adapter for it, or an empty string where none is known.
        broken: What is wrong with plugins that might have answered, each named.
    """

    def __init__(
        self, scheme: str, installed: tuple[str, ...], install: str = "", broken: tuple[str, ...] = ()
    ) -> None:
        super().__init__("adapter", scheme)
        self.args = (scheme, installed, install, broken)
        self.scheme, self.installed, self.install, self.broken = scheme, installed, install, broken

    def __str__(self) -> str:
        names = ", ".join(self.installed) or "none"
        hint = f"; install it with: {self.install}" if self.install else ""
        broken = "".join(f"; {reason}" for reason in self.broken)
        return f"no adapter for the URL scheme {self.scheme!r}; installed: {names}{hint}{broken}"


class OwnershipError(ThreadkeepError):
    """It exists, but belongs to another resource. Nothing was written.

    Args:
        kind: ``thread`` or ``message``.
        identifier: Its id. The owner's id is not told.
    """

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(kind, identifier)
        self.kind, self.identifier = kind, identifier

    def __str__(self) -> str:
        return f"{self.kind} {self.identifier!r} belongs to another resource"


class AlreadyExistsError(ThreadkeepError):
    """The id is taken. Nothing was written.

    Args:
        kind: ``thread`` or ``memory``.
        identifier: The id.
    """

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(kind, identifier)
        self.kind, self.identifier = kind, identifier

    def __str__(self) -> str:
        return f"{self.kind} {self.identifier!r} already exists"


class UnsupportedCapabilityError(ThreadkeepError, NotImplementedError):
    """This backend does not do that; choose another backend or another option. Nothing was sent.

    Args:
        capability: The capability's name.
        adapter: The adapter's name.
        operation: What was asked for.
    """

    def __init__(self, capability: str, adapter: str, operation: str) -> None:
        super().__init__(capability, adapter, operation)
        self.capability, self.adapter, self.operation = capability, adapter, operation

    def __str__(self) -> str:
        lack = f"the capability {self.capability!r}, which {self.adapter} does not have here"
        return f"{self.operation} needs {lack}"


# --- fix the installation -------------------------------------------------------------------------


class PluginError(ThreadkeepError):
    """A plugin does not import, or does not keep to the hook specs.

    Args:
        plugin: The plugin's entry-point name.
        reason: What is wrong with it.
    """

    def __init__(self, plugin: str, reason: str) -> None:
        super().__init__(plugin, reason)
        self.plugin, self.reason = plugin, reason

    def __str__(self) -> str:
        return f"plugin {self.plugin!r}: {self.reason}"


class MissingDriverError(ThreadkeepError):
    """The adapter is installed, its database driver is not.

    Args:
        adapter: The adapter's name.
        driver: The module that is missing.
        install: The command that installs it.
    """

    def __init__(self, adapter: str, driver: str, install: str) -> None:
        super().__init__(adapter, driver, install)
        self.adapter, self.driver, self.install = adapter, driver, install

    def __str__(self) -> str:
        hint = f"install it with: {self.install}" if self.install else "install it"
        return f"the {self.adapter} adapter needs the module {self.driver!r}; {hint}"


class SchemaVersionError(ThreadkeepError):
    """The database's schema is not the one this code works with. Nothing was changed.

    Args:
        found: The schema version in the database; 0 is an empty database.
        supported: The schema version this code works with.
        remedy: What to do next.
    """

    def __init__(self, found: int, supported: int, remedy: str) -> None:
        super().__init__(found, supported, remedy)
        self.found, self.supported, self.remedy = found, supported, remedy

    def __str__(self) -> str:
        versions = f"the database has schema version {self.found}, this code works with {self.supported}"
        return f"{versions}: {self.remedy}"


# --- fix the program ------------------------------------------------------------------------------


class StoreClosedError(ThreadkeepError):
    """The store was used after ``close()``."""

    def __init__(self) -> None:
        super().__init__()

    def __str__(self) -> str:
        return "this store is closed; open another"


class WrongLoopError(ThreadkeepError):
    """A store was used where its event loop cannot answer: on another loop, or in a forked child.

    Args:
        reason: Which of these it was.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason}; open a store there"


# --- the database's side --------------------------------------------------------------------------


class StorageError(ThreadkeepError):
    """The database's side of things."""


class ConflictError(StorageError):
    """Lost a race, or a guard did not hold. Nothing was written; re-read and retry.

    Args:
        reason: What was expected and what was found.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LimitExceededError(StorageError):
    """Too large for this backend. Nothing was written.

    Args:
        limit: The limit's name and size.
        given: What was given.
    """

    def __init__(self, limit: str, given: str) -> None:
        super().__init__(limit, given)
        self.limit, self.given = limit, given

    def __str__(self) -> str:
        return f"over the backend's limit of {self.limit}; given: {self.given}"


class PartialWriteError(StorageError):
    """A batch stopped midway on a backend without atomic batches; repeating the call completes it.

    Args:
        reason: Why it stopped.
        written: Ids that were written, in order.
    """

    def __init__(self, reason: str, written: tuple[str, ...]) -> None:
        super().__init__(reason, written)
        self.reason, self.written = reason, written

    def __str__(self) -> str:
        return f"{self.reason}; {len(self.written)} of the batch were written, repeat the call to complete it"


class UnavailableError(StorageError):
    """The database cannot be reached, is busy, full or read-only.

    Args:
        reason: What happened.
        outcome: ``not_applied``: nothing was written. ``unknown``: a write may have happened; saves,
            deletes, merges of absolute values, and creates with explicit ids are safe to repeat.
    """

    def __init__(self, reason: str, outcome: Literal["not_applied", "unknown"] = "not_applied") -> None:
        super().__init__(reason, outcome)
        self.reason = reason
        self.outcome: Literal["not_applied", "unknown"] = outcome

    def __str__(self) -> str:
        return f"{self.reason} (outcome: {self.outcome})"


class CorruptDataError(StorageError):
    """Stored bytes do not decode.

    Args:
        what: Which record and column.
        reason: Why it does not decode.
    """

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what, self.reason = what, reason

    def __str__(self) -> str:
        return f"{self.what} does not decode: {self.reason}"
