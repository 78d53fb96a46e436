"""Tells threadkeep that this backend exists. No logic, no driver."""

from threadkeep import AdapterSpec, Capability, Pushdown, StorageAdapter, Support, hookimpl
from threadkeep.hookspecs import Register


async def connect(url: str, *, migrate: bool) -> StorageAdapter:
    """Open a folder; the caller closes it."""
    from .adapter import JsonFileAdapter

    return await JsonFileAdapter.connect(url, migrate=migrate)


SPEC = AdapterSpec(
    name="jsonfile",
    schemes=("jsonfile",),
    connect=connect,
    contract="1.0",
    support={
        Capability.METADATA_PUSHDOWN: Pushdown(Support.EMULATED, Support.EMULATED, Support.EMULATED),
        Capability.FILTER_OPERATORS: Support.EMULATED,
        Capability.CONDITIONAL_WRITES: Support.NATIVE,
        Capability.ATOMIC_MERGE: Support.NATIVE,
        Capability.TEXT_SEARCH: Support.EMULATED,
        # ATOMIC_BATCH is absent: a batch over two threads is two files. EXPLAIN is absent: there is no plan.
    },
    limits={"reads and writes": "read every file they might concern", "callers": "one at a time"},
    drivers=("fcntl",),  # of Python itself, but not on Windows
    probe="threadkeep_jsonfile.probe:Probe",
)


@hookimpl
def threadkeep_register_adapters(register: Register) -> None:
    """Offer the backend."""
    register(SPEC)
