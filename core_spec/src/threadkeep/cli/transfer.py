"""``threadkeep migrate``, ``import`` and ``export``."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from ..models import ArchiveMemory, Message, Resource, Thread
from ..store import Store
from ..urls import redacted
from ._command import json_option, run, url_argument
from ._importing import Counts, import_entries
from ._output import print_json
from ._progress import progress
from .formats import FORMATS, Source, entries, line_of

__all__ = ["export", "import_", "migrate"]

_KINDS = {"thread": "threads", "message": "messages", "resource": "resources", "memory": "memories"}
_PAGE = 1000
_SIDECARS = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a database's file
_EXPORT = b'{"kind":'  # how every line of an export begins
_file = click.argument("file", type=click.Path(path_type=Path, allow_dash=True))


@click.command()
@url_argument
def migrate(url: str) -> None:
    """Create the database's schema or bring it up to date."""

    async def nothing(_: Store) -> None:
        pass

    run(url, nothing, migrate=True)
    click.echo(f"the schema of {redacted(url)} is up to date")


@click.command("import")
@url_argument
@_file
@click.option("--format", "format_name", type=click.Choice(FORMATS), default="auto", show_default=True)
@click.option(
    "--resource",
    metavar="ID",
    default="imported",
    show_default=True,
    help="The owner of conversations that name none (formats chat and chatgpt).",
)
@json_option
def import_(url: str, file: Path, *, format_name: str, resource: str, as_json: bool) -> None:
    """Import FILE (- is standard input); run it again after an interruption.

    Formats: threadkeep, what `export` writes; chat, lines of {"messages": [{"role", "content"}, ...]};
    chatgpt, the conversations.json of a ChatGPT data export. A bad line is named by its number. Nothing of
    its batch is kept (1,000 entries, 5,000 where all are messages); what stands before it is, and where what
    is stored refused it, the next batch of messages may be.
    """
    with _opened(file) as (stream, size), progress("importing", size) as advance:
        found = entries(Source(stream, advance), format_name, resource)

        async def write(store: Store) -> Counts:
            return await import_entries(store, found)

        counts = run(url, write, migrate=True)
    _print_counts("imported", counts, as_json=as_json)


@click.command()
@url_argument
@_file
@json_option
def export(url: str, file: Path, *, as_json: bool) -> None:
    """Export everything to FILE (- is standard output) as JSON lines, which `import` takes.

    A thread is followed by its messages. The file appears when it is complete, in place of an older export if
    it had its name; any other file is left alone. What is written to the
    database meanwhile may or may not be in it.
    """
    with _written(file) as stream:

        async def read(store: Store) -> Counts:
            return await _export(store, stream)

        counts = run(url, read, migrate=False)
    _print_counts("exported", counts, as_json=as_json, err=str(file) == "-")


async def _export(store: Store, stream: BinaryIO) -> Counts:
    counts: Counts = Counter()
    threads = await store.list_threads(per_page=1, with_total=True)
    with progress("exporting", threads.total) as advance:
        async for kind, record in _everything(store, advance):
            stream.write(line_of(record))
            counts[kind] += 1
    return counts


async def _everything(
    store: Store, advance: Callable[[float], None]
) -> AsyncGenerator[tuple[str, Thread | Message | Resource | ArchiveMemory], None]:
    """All there is: no more than a page of each is held. *advance* counts threads, in fractions."""
    async for resource in store.iter_resources():
        yield "resource", resource
    async for memory in store.iter_memories():
        yield "memory", memory
    async for thread in store.iter_threads(order="asc"):
        yield "thread", thread
        done = 0
        async for message in store.iter_messages(thread.id, per_page=_PAGE):
            yield "message", message
            done += 1
            if done % _PAGE == 0 and done < thread.message_count:
                advance(_PAGE / thread.message_count)
        rest = (done - 1) // _PAGE * _PAGE if done else 0
        advance(1 - min(rest / (thread.message_count or 1), 1))


@contextmanager
def _opened(file: Path) -> Generator[tuple[BinaryIO, int | None]]:
    """A file to read, and its size in bytes where it has one."""
    if str(file) == "-":
        yield sys.stdin.buffer, None
        return
    with file.open("rb") as stream:
        yield stream, os.fstat(stream.fileno()).st_size or None


@contextmanager
def _written(file: Path) -> Generator[BinaryIO]:
    """A file that appears, or is replaced, when all is written; a pipe or a device is written directly."""
    if str(file) == "-":
        yield sys.stdout.buffer
        return
    target = file.resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            yield stream
        return
    _refuse_to_replace(file, target)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(target)
    except FileNotFoundError as exc:  # of the folder: name what the user wrote, not the temporary file
        raise FileNotFoundError(exc.errno, exc.strerror, str(file)) from exc
    finally:
        part.unlink(missing_ok=True)


def _refuse_to_replace(file: Path, target: Path) -> None:
    """An older export may be replaced; anything else that has the name, such as the database, may not."""
    for suffix in _SIDECARS:
        if target.name.endswith(suffix) and target.with_name(target.name.removesuffix(suffix)).exists():
            raise click.UsageError(f"{file} is a name that a database keeps for itself; choose another")
    if target.exists() and target.stat().st_size:
        with target.open("rb") as stream:
            if not stream.read(len(_EXPORT)).startswith(_EXPORT):
                raise click.UsageError(
                    f"{file} exists and is no export; choose another name or remove it first"
                )


def _print_counts(verb: str, counts: Counts, *, as_json: bool, err: bool = False) -> None:
    by_kind = {plural: counts[kind] for kind, plural in _KINDS.items()}
    if as_json and not err:
        print_json(by_kind)
        return
    text = ", ".join([f"{count:,} {plural}" for plural, count in by_kind.items()])
    print(f"{verb} {text}", file=sys.stderr if err else sys.stdout)
