"""Driver errors to the contract's: the one boundary."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from threadkeep.errors import CorruptDataError, LimitExceededError, StorageError, UnavailableError

from . import _driver

__all__ = ["translated"]


@contextmanager
def translated(path: str, *, writing: bool) -> Generator[None]:
    """Raise the contract's errors for the driver's.

    Args:
        path: The file, for messages.
        writing: Whether a failure of the disk leaves it open if something was written.
    """
    try:
        yield
    except _driver.Busy as exc:
        raise UnavailableError(f"{path} stayed locked by another writer") from exc
    except _driver.Full as exc:
        raise UnavailableError(f"the disk of {path} is full") from exc
    except _driver.ReadOnly as exc:
        raise UnavailableError(f"{path} cannot be written") from exc
    except _driver.CannotOpen as exc:
        raise UnavailableError(f"{path} cannot be opened: {exc}") from exc
    except _driver.NotADatabase as exc:
        raise CorruptDataError(path, "it is not an SQLite file") from exc
    except _driver.Corrupt as exc:
        raise CorruptDataError(path, str(exc)) from exc
    except _driver.TooBig as exc:
        raise LimitExceededError("1,000,000,000 bytes a value", "a larger one") from exc
    except _driver.IoFailed as exc:
        outcome = "unknown" if writing else "not_applied"
        raise UnavailableError(f"the disk of {path} failed: {exc}", outcome) from exc
    except _driver.DriverError as exc:
        raise StorageError(f"{path}: {exc}") from exc
