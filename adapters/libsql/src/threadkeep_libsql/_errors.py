"""Driver errors to the contract's: the one boundary."""

from __future__ import annotations

from threadkeep.errors import (
    CorruptDataError,
    LimitExceededError,
    StorageError,
    ThreadkeepError,
    UnavailableError,
)

from . import _driver

__all__ = ["contract_error"]


def contract_error(error: _driver.DriverError, path: str, *, writing: bool) -> ThreadkeepError:  # noqa: PLR0911  (a table)
    """The contract's error for one of the driver's.

    Args:
        error: What the driver raised.
        path: The file, for messages.
        writing: Whether a failure of the disk leaves it open if something was written.
    """
    match error:
        case _driver.Busy():
            return UnavailableError(f"{path} stayed locked by another writer")
        case _driver.Full():
            return UnavailableError(f"the disk of {path} is full")
        case _driver.ReadOnly():
            return UnavailableError(f"{path} cannot be written")
        case _driver.CannotOpen():
            return UnavailableError(f"{path} cannot be opened: {error}")
        case _driver.NotADatabase():
            return CorruptDataError(path, "it is not an SQLite file")
        case _driver.Corrupt():
            return CorruptDataError(path, str(error))
        case _driver.TooBig():
            return LimitExceededError("1,000,000,000 bytes a value", "a larger one")
        case _driver.IoFailed():
            outcome = "unknown" if writing else "not_applied"
            return UnavailableError(f"the disk of {path} failed: {error}", outcome)
        case _:
            return StorageError(f"{path}: {error}")
