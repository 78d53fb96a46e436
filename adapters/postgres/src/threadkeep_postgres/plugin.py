"""Tells threadkeep that this backend exists. No logic, no driver."""

from threadkeep import AdapterSpec, Capability, Pushdown, StorageAdapter, Support, hookimpl
from threadkeep.hookspecs import Register

__all__ = ["SPEC", "threadkeep_register_adapters"]


async def connect(url: str, *, migrate: bool) -> StorageAdapter:
    """Open a pool of connections; the caller closes it."""
    from .adapter import PostgresAdapter

    return await PostgresAdapter.connect(url, migrate=migrate)


SPEC = AdapterSpec(
    name="postgres",
    schemes=("postgresql", "postgres"),
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
        "value": "200 MiB of content a message",
        "server": "PostgreSQL 14 or later, database encoding UTF8",
    },
    drivers=("psycopg",),
    install="pip install threadkeep-postgres",
    probe="threadkeep_postgres.probe:Probe",
)


@hookimpl
def threadkeep_register_adapters(register: Register) -> None:
    """Offer the PostgreSQL backend."""
    register(SPEC)
