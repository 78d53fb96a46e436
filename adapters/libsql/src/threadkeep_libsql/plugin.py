"""Tells threadkeep that this backend exists. No logic, no driver."""

from threadkeep import AdapterSpec, Capability, Pushdown, StorageAdapter, Support, hookimpl
from threadkeep.hookspecs import Register

__all__ = ["SPEC", "threadkeep_register_adapters"]


async def connect(url: str, *, migrate: bool) -> StorageAdapter:
    """Open an embedded file; the caller closes it."""
    from .adapter import LibsqlAdapter

    return await LibsqlAdapter.connect(url, migrate=migrate)


SPEC = AdapterSpec(
    name="libsql",
    schemes=("libsql", "sqlite", "file"),
    connect=connect,
    contract="1.0",
    support={
        Capability.METADATA_PUSHDOWN: Pushdown(Support.NATIVE, Support.NATIVE, Support.NATIVE),
        Capability.FILTER_OPERATORS: Support.NATIVE,
        Capability.ATOMIC_BATCH: Support.NATIVE,
        Capability.CONDITIONAL_WRITES: Support.NATIVE,
        Capability.ATOMIC_MERGE: Support.NATIVE,
        Capability.TEXT_SEARCH: Support.NATIVE,
        Capability.EXPLAIN: Support.NATIVE,
    },
    limits={
        "value": "1,000,000,000 bytes",
        "writers": "one at a time, across processes",
        "explain": "no row counts",
    },
    drivers=("sqlite3",),
    install="pip install threadkeep-libsql",
    probe="threadkeep_libsql.probe:Probe",
)


@hookimpl
def threadkeep_register_adapters(register: Register) -> None:
    """Offer the embedded backend."""
    register(SPEC)
