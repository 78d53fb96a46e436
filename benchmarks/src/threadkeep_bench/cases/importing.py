"""The command's import next to the floor's bulk insert of the same file, both from decoded line to commit."""

from __future__ import annotations

import asyncio
from pathlib import Path

from click.testing import CliRunner

from threadkeep.cli import cli
from threadkeep.cli.formats import line_of

from .. import workload
from ..databases import Database
from ..floors import floor_for
from ..floors.export import messages_of
from ..rounds import Case, Operation

__all__ = ["OPERATION", "case", "is_possible"]

OPERATION = "import"


def is_possible(database: Database) -> bool:
    """Whether a second store of this process sees the same database, as the command's would."""
    return database.spec.name != "memory"


async def case(database: Database, folder: Path, count: int) -> Case:
    """Import a thread of *count* messages, which is deleted again after each call."""
    thread = f"{database.resource_id}-import"
    export = folder / f"{database.name}.jsonl"

    async def make_thread() -> None:
        await database.store.ensure_thread(database.resource_id, thread_id=thread)

    async def undo(_: str, __: int) -> None:
        found = await database.store.list_messages(thread, per_page=1, with_total=True)
        if found.total != count:
            raise RuntimeError(f"{database.name}: {found.total} of {count} messages were imported")
        await database.store.delete_thread(thread)
        await make_thread()

    def command(_: int) -> None:
        result = CliRunner().invoke(cli, ["import", database.url, str(export)])
        if result.exit_code:
            raise RuntimeError(f"import failed: {result.output}") from result.exception

    def by_hand(_: int) -> None:
        asyncio.run(_bulk(database, export))

    await make_thread()
    with export.open("wb") as lines:
        for message in workload.messages(thread, database.resource_id, count):
            lines.write(line_of(message))
    contestants: dict[str, Operation] = {"threadkeep": command}
    if database.floor is not None:
        contestants["floor"] = by_hand
    labels = {"backend": database.name, "operation": OPERATION, "messages": count}
    name = f"{OPERATION}_{count}/{database.name}"
    return Case(name=name, contestants=contestants, calls=1, labels=labels, undo=undo)


async def _bulk(database: Database, export: Path) -> None:
    floor = await floor_for(database.spec.name, database.url)
    if floor is None:
        raise RuntimeError("without a floor there is nothing to compare with")
    await floor.bulk(messages_of(export))
    await floor.close()
