"""``threadkeep tour``: the main job in one command, on a temporary file unless a URL is given."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import click

from ..capabilities import Capability
from ..errors import StorageError
from ..store import Store
from ..urls import redacted, scheme_of
from ._command import run
from ._group import cli
from ._importing import import_entries
from ._output import console, print_table
from .formats import Source, entries
from .queries import print_explanation, print_messages, print_threads

__all__ = ["STEPS", "Step", "Visit", "tour"]

_THREAD, _RESOURCE = "tour-travel-1", "tour-shop"
_SELF = (sys.executable, "-m", "threadkeep")
_WRITERS = 6
_USAGE = 2  # the exit code of a call that cannot be answered
_BILLING = {"category": "billing", "priority": 5}


class Visit(NamedTuple):
    """What a step works with.

    Attributes:
        url: The database, as it was given.
        store: Open on it for the whole tour.
        kit_url: Where the conformance kit makes its own fresh databases.
    """

    url: str
    store: Store
    kit_url: str

    def command(self, name: str, *arguments: str) -> str:
        """A command to repeat something by hand."""
        return shlex.join(["threadkeep", name, redacted(self.url), *arguments])


class Step(NamedTuple):
    """One stop.

    Attributes:
        title: What there is to see.
        show: Does it and shows it; returns how to repeat it by hand, a line each.
    """

    title: str
    show: Callable[[Visit], Awaitable[Iterable[str]]]


@click.command()
@click.argument("url", required=False)
def tour(url: str | None) -> None:
    """See threadkeep work: store, page, filter, merge, clone and compare, on a temporary file or on URL.

    It writes three resources whose ids start with "tour-", and leaves them there for you to look at.
    """
    file, kit_url = None, url or "libsql:///{tmp}/tour.db"
    if url is None:
        file = Path(tempfile.mkdtemp(prefix="threadkeep-tour-")) / "tour.db"
        url = f"libsql://{quote(file.as_posix())}"
    started, where = time.perf_counter(), url
    lasts = scheme_of(url) != "memory"  # another process has another memory

    async def visit(store: Store) -> None:
        for number, step in enumerate(STEPS, 1):
            console().rule(f"{number}. {step.title}", align="left")
            by_hand = await step.show(Visit(where, store, kit_url))
            for line in by_hand if lasts else ():
                click.secho(f"  by hand: {line}", fg="cyan")
            click.echo()

    click.echo(
        f"This tour stores conversations on {redacted(url)} and looks at them in {len(STEPS)} steps.\n"
        + (f"The commands to repeat a step by hand are those of {_script()}.\n" if lasts else "")
    )
    run(url, visit, migrate=True)
    console().rule(f"done in {time.perf_counter() - started:.1f} s", align="left")
    if file is not None:
        click.echo(f"The file is {file}; remove it with: {shlex.join(['rm', '-r', str(file.parent)])}")
    elif lasts:
        click.echo(
            'To remove it, in Python: delete_resource() "tour-shop", "tour-amira" and "tour-jonas", '
            "and delete_memories() of the ids that `threadkeep memories URL list` shows."
        )


def _script() -> str:
    """Where the command is, which may be in no folder of PATH."""
    script = Path(sys.executable).with_name("threadkeep")
    return str(script) if script.exists() else shlex.join(_SELF)


async def _backends(_: Visit) -> list[str]:
    from .backends import print_backends

    print_backends()
    return ["threadkeep backends --json"]


async def _import(visit: Visit) -> list[str]:
    bundled = files(__package__ or "").joinpath("conversations.jsonl")
    started = time.perf_counter()
    counts = await import_entries(visit.store, entries(Source(BytesIO(bundled.read_bytes())), "auto", ""))
    took_ms = (time.perf_counter() - started) * 1000
    print_table(("written", "count"), [(kind, f"{count:,}") for kind, count in sorted(counts.items())])
    click.echo(f"in {took_ms:.0f} ms; again would change nothing: ids, order and times come from the file")
    return [visit.command("import", str(bundled)), visit.command("export", "everything.jsonl")]


async def _threads(visit: Visit) -> list[str]:
    print_threads(await visit.store.list_threads(resource_id=_RESOURCE, per_page=5, with_total=True))
    return [visit.command("threads", "--resource", _RESOURCE, "--per-page", "5", "--total")]


async def _page(visit: Visit) -> list[str]:
    print_messages(await visit.store.list_messages(_THREAD, order="desc", per_page=4, with_total=True))
    return [visit.command("messages", "--thread", _THREAD, "--order", "desc", "--per-page", "4", "--total")]


async def _filter(visit: Visit) -> list[str]:
    store = visit.store
    click.echo(f"all messages of {_RESOURCE}, in any of its threads, where {json.dumps(_BILLING)}:")
    print_messages(
        await store.list_messages(resource_id=_RESOURCE, where=_BILLING, per_page=4, with_total=True)
    )
    options = [
        "--resource",
        _RESOURCE,
        "--where",
        "category=billing",
        "--where",
        "priority=5",
        "--per-page",
        "4",
    ]
    commands = [visit.command("messages", *options, "--total")]
    if store.capabilities.has(Capability.EXPLAIN):
        print_explanation(await store.explain_messages(resource_id=_RESOURCE, where=_BILLING, per_page=4))
        commands.append(visit.command("explain", *options))
    return commands


async def _window(visit: Visit) -> list[str]:
    from ..models import Include

    target = f"{_THREAD}/13"
    click.echo(f"message {target} and two neighbours on either side:")
    include = [Include(target, before=2, after=2)]
    print_messages(await visit.store.list_messages(_THREAD, include=include, per_page=0))
    return [visit.command("messages", "--thread", _THREAD, "--per-page", "0", "--include", f"{target}:2:2")]


async def _merge(visit: Visit) -> list[str]:
    """Every process is a command of its own: it starts, opens the database and merges as any program."""
    if scheme_of(visit.url) == "memory" or not visit.store.capabilities.has(Capability.ATOMIC_MERGE):
        click.echo("left out: this database cannot be merged into by several processes")
        return []
    patches = [json.dumps({"writers": {f"process {i}": i}}) for i in range(1, _WRITERS + 1)]
    await asyncio.gather(
        *[_threadkeep("working-memory", visit.url, "merge", "--resource", "tour-jonas", p) for p in patches]
    )
    merged = await visit.store.get_resource("tour-jonas")
    document = json.loads((merged and merged.working_memory) or "{}")
    rows = [(key, json.dumps(value, ensure_ascii=False)) for key, value in document.items()]
    print_table(("key", "after the merges"), rows, title=f"{_WRITERS} processes at once; none was lost")
    commands = [visit.command("working-memory", "merge", "--resource", "tour-jonas", patches[0])]
    return [*commands, visit.command("working-memory", "get", "--resource", "tour-jonas")]


async def _threadkeep(*arguments: str) -> None:
    """Run a command of ours in a process of its own, its output kept to itself.

    Raises:
        StorageError: It failed.
    """
    process = await asyncio.create_subprocess_exec(
        *_SELF, *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    if process.returncode:
        raise StorageError(errors.decode(errors="replace").strip())


async def _clone(visit: Visit) -> list[str]:
    clone = await visit.store.clone_thread(_THREAD, message_limit=5)
    page = await visit.store.list_messages(clone.thread.id, per_page=None)
    click.echo("the newest five messages, copied inside the database: new ids, same times and order;")
    click.echo("it is removed again")
    print_messages(page)
    await visit.store.delete_thread(clone.thread.id)
    return [f'python: clone = await store.clone_thread("{_THREAD}", message_limit=5)']


async def _conformance(visit: Visit) -> list[str]:
    """The kit is another package's command: found if it is installed, and run in a process of its own."""
    ctx = click.Context(cli)
    command = cli.get_command(ctx, "conformance")
    if command is None:
        click.echo("left out: the conformance kit is not installed (pip install threadkeep-conformance)")
        return []
    quick = [option for param in command.params for option in param.opts if option == "--quick"]
    sys.stdout.flush()
    process = await asyncio.create_subprocess_exec(
        *_SELF, "conformance", visit.kit_url, *quick, stderr=asyncio.subprocess.PIPE
    )
    errors = (await process.communicate())[1].decode(errors="replace").strip()
    if process.returncode == _USAGE:  # the kit cannot make fresh databases beside this one
        click.echo(f"left out: {errors}")
    elif process.returncode:
        raise StorageError(f"the conformance run failed, see above {errors}")
    return [shlex.join(["threadkeep", "conformance", redacted(visit.kit_url)])]


async def _pushdown(visit: Visit) -> list[str]:
    """A short form of the benchmark, which is another package's command, in a process of its own."""
    if cli.get_command(click.Context(cli), "bench") is None:
        click.echo("left out: the benchmarks are not installed (pip install threadkeep-bench)")
        return []
    sys.stdout.flush()
    process = await asyncio.create_subprocess_exec(
        *_SELF, "bench", "pushdown", visit.url, "--brief", stderr=asyncio.subprocess.PIPE
    )
    errors = (await process.communicate())[1].decode(errors="replace").strip()
    if process.returncode:
        raise StorageError(f"the benchmark failed: {errors}")
    return [shlex.join(["threadkeep", "bench", "pushdown", redacted(visit.url), "--quick"])]


STEPS = [
    Step("The installed backends", _backends),
    Step("Import the bundled conversations", _import),
    Step("A page of threads, newest first", _threads),
    Step("The last messages of a thread", _page),
    Step("A filtered page and its plan", _filter),
    Step("A context window around one message", _window),
    Step("A merge by several processes", _merge),
    Step("A clone", _clone),
    Step("A short conformance run", _conformance),
    Step("Pushdown: filter in the database, or in Python?", _pushdown),
]
