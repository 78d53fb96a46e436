"""``report.html``: what was measured, as plots that are read at a glance; one file that needs no network."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["MISSING", "is_available"]

MISSING = "report.html needs matplotlib: pip install 'threadkeep-bench[report]'"


def is_available() -> bool:
    """Whether what draws the plots is installed."""
    return find_spec("matplotlib") is not None
