"""What a backend can do, declared by its adapter and fixed once a store is open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import cast

import msgspec

from .errors import InvalidArgumentError
from .jsontext import kind

__all__ = ["Capabilities", "Capability", "Pushdown", "Support"]


class Capability(StrEnum):
    """The names of what backends differ in. What the contract requires of all is not listed here."""

    METADATA_PUSHDOWN = "metadata_pushdown"
    FILTER_OPERATORS = "filter_operators"
    ATOMIC_BATCH = "atomic_batch"
    CONDITIONAL_WRITES = "conditional_writes"
    ATOMIC_MERGE = "atomic_merge"
    TEXT_SEARCH = "text_search"
    EXPLAIN = "explain"


_NAMES = frozenset(Capability)


class Support(StrEnum):
    """How a backend offers a capability."""

    NATIVE = "native"
    """The database does it."""
    EMULATED = "emulated"
    """The adapter does it, at a stated cost."""
    ABSENT = "absent"
    """Refused before any I/O."""
    DEPENDS = "depends"
    """On the server; resolved when a store is opened."""


class Pushdown(msgspec.Struct, frozen=True):
    """Who evaluates each part of a filtered query: the database, or the adapter."""

    filter: Support
    order: Support
    limit: Support

    @property
    def overall(self) -> Support:
        """Native only where all three are."""
        parts = (self.filter, self.order, self.limit)
        return next(
            (worst for worst in (Support.ABSENT, Support.DEPENDS, Support.EMULATED) if worst in parts),
            Support.NATIVE,
        )


class Capabilities(Mapping[Capability, Support]):
    """What holds for one adapter or one open store: a read-only mapping that has every capability.

    Args:
        support: Each declared capability; ``metadata_pushdown`` as a :class:`Pushdown`. What is left out
            is absent.
    """

    def __init__(self, support: Mapping[Capability, Support | Pushdown]) -> None:
        self._declared = dict(support)

    def __getitem__(self, capability: Capability) -> Support:
        if capability not in _NAMES:
            raise KeyError(capability)
        declared = self._declared.get(capability, Support.ABSENT)
        return declared.overall if isinstance(declared, Pushdown) else declared

    def __iter__(self) -> Iterator[Capability]:
        return iter(Capability)

    def __len__(self) -> int:
        return len(Capability)

    def __repr__(self) -> str:
        return f"Capabilities({', '.join(f'{name}={support}' for name, support in self.items())})"

    def has(self, capability: Capability) -> bool:
        """Whether the capability is usable: true for native and emulated.

        Raises:
            InvalidArgumentError: There is no such capability.
        """
        if not isinstance(cast("object", capability), str) or capability not in _NAMES:
            raise InvalidArgumentError("capability", "one of " + ", ".join(Capability), kind(capability))
        return self[capability] in (Support.NATIVE, Support.EMULATED)

    @property
    def pushdown(self) -> Pushdown:
        """The parts of ``metadata_pushdown``."""
        declared = self._declared.get(Capability.METADATA_PUSHDOWN, Support.ABSENT)
        return declared if isinstance(declared, Pushdown) else Pushdown(declared, declared, declared)

    def resolved(self, changes: Mapping[Capability, Support | Pushdown]) -> Capabilities:
        """The same with what *depends* replaced by what a server turned out to have."""
        return Capabilities({**self._declared, **changes})
