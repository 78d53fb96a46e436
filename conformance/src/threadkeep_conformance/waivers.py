"""Waivers: cases an adapter is known to fail, each with a reason and a link. An unexpected pass fails.

In an adapter's own tests they stand in the file that imports the suite::

    THREADKEEP_WAIVERS = [Waiver("messages.filter.bool_is_not_int", "stores bools as ints", "https://.../issues/7")]

For ``--threadkeep-waivers FILE`` the same as TOML, with an array of tables named ``waiver``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

__all__ = ["Waiver", "WaiverError", "read_waivers"]


class WaiverError(ValueError):
    """A waiver is incomplete, or waives nothing."""


@dataclass(frozen=True, slots=True)
class Waiver:
    """One waived case.

    Attributes:
        case: Its id.
        reason: Why it fails, for the report.
        link: Where that is being dealt with: an ``http`` or ``https`` URL.

    Raises:
        WaiverError: A part is missing, or the link is none.
    """

    case: str
    reason: str
    link: str

    def __post_init__(self) -> None:
        parts = cast("tuple[object, ...]", (self.case, self.reason, self.link))  # TOML may give anything
        strings = all(isinstance(part, str) and part.strip() for part in parts)
        if not strings or not self.link.startswith(("https://", "http://")):
            raise WaiverError(f"the waiver of {self.case!r} needs a case, a reason and an http(s) link")


def read_waivers(path: Path) -> list[Waiver]:
    """The waivers of a TOML file.

    Raises:
        WaiverError: It cannot be read, or a waiver is incomplete.
    """
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise WaiverError(f"waivers: {path}: {exc}") from exc
    unknown = set(found) - {"waiver"}
    entries: object = found.get("waiver", [])
    if unknown or not isinstance(entries, list):
        raise WaiverError(f"waivers: {path}: expected only [[waiver]] tables")
    try:
        return [Waiver(**entry) for entry in cast("list[dict[str, str]]", entries)]
    except (TypeError, AttributeError) as exc:
        raise WaiverError(
            f"waivers: {path}: a waiver has case, reason and link, all strings ({exc})"
        ) from exc
