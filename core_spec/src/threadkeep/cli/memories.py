"""``threadkeep memories``: archive memories."""

from __future__ import annotations

from collections.abc import Iterable

import click

from ..models import Actor, ArchiveMemory, NewMemory, Page
from ..store import Store
from ._command import json_option, run, url_argument
from ._options import actor as actor_type
from ._options import page_size
from ._output import moment, print_footer, print_json, print_page, print_table

__all__ = ["memories"]

_actor = click.option(
    "--actor", type=actor_type, required=True, metavar="user:ID|end_user:ID|shared", help="Whose memories."
)


@click.group()
@url_argument
def memories(url: str) -> None:
    """Add, recall, list, pin and delete archive memories: short facts kept outside the prompt."""


@memories.command()
@click.argument("text", nargs=-1, required=True)
@_actor
@click.option("--pinned", is_flag=True, help="Keep it out of recall: it is in the prompt already.")
@json_option
@click.pass_context
def add(ctx: click.Context, text: tuple[str, ...], *, actor: Actor, pinned: bool, as_json: bool) -> None:
    """Add each TEXT as a memory of up to 2,000 characters."""
    new = [NewMemory(content, pinned=pinned) for content in text]

    async def write(store: Store) -> list[ArchiveMemory]:
        return await store.add_memories(actor, new)

    _print(run(_url(ctx), write, migrate=True), as_json=as_json)


@memories.command()
@click.argument("q", required=False)
@_actor
@click.option("--limit", type=click.IntRange(1, 50), default=10, show_default=True)
@json_option
@click.pass_context
def recall(ctx: click.Context, q: str | None, *, actor: Actor, limit: int, as_json: bool) -> None:
    """Show the actor's and the shared memories that contain Q, whatever its case, newest first."""

    async def read(store: Store) -> list[ArchiveMemory]:
        return await store.recall_memories(actor, q, limit=limit)

    _print(run(_url(ctx), read, migrate=False), as_json=as_json)


@memories.command("list")
@click.option("--actor", type=actor_type, metavar="user:ID|end_user:ID|shared", help="Only this actor's own.")
@click.option("--page", type=click.IntRange(min=0), default=0, show_default=True, help="Which page, from 0.")
@click.option("--per-page", type=page_size, default="100", show_default=True, metavar="N|all")
@click.option("--cursor", help="Go on where a page ended: its next_cursor, instead of --page.")
@click.option("--total", is_flag=True, help="Count them too.")
@json_option
@click.pass_context
def list_(
    ctx: click.Context,
    *,
    actor: Actor | None,
    page: int,
    per_page: int | str,
    cursor: str | None,
    total: bool,
    as_json: bool,
) -> None:
    """List memories, pinned ones too, newest first."""
    size = per_page if isinstance(per_page, int) else None

    async def read(store: Store) -> Page[ArchiveMemory]:
        return await store.list_memories(actor, page=page, per_page=size, cursor=cursor, with_total=total)

    found = run(_url(ctx), read, migrate=False)
    if as_json:
        print_page(found)
        return
    _print(found.items, as_json=False)
    print_footer(found)


@memories.command()
@click.argument("memory_id", metavar="ID", type=int)
@click.option("--unpin", is_flag=True, help="Let it be recalled again.")
@json_option
@click.pass_context
def pin(ctx: click.Context, memory_id: int, *, unpin: bool, as_json: bool) -> None:
    """Pin a memory, which keeps it out of recall, or unpin it."""

    async def write(store: Store) -> ArchiveMemory:
        return await store.pin_memory(memory_id, pinned=not unpin)

    found = run(_url(ctx), write, migrate=True)
    if as_json:
        print_json(found)
    else:
        _print([found], as_json=False)


@memories.command()
@click.argument("memory_ids", metavar="[ID]...", nargs=-1, type=int)
@_actor
@click.option("--all", "everything", is_flag=True, help="Delete all of the actor's memories.")
@json_option
@click.pass_context
def delete(
    ctx: click.Context, memory_ids: tuple[int, ...], *, actor: Actor, everything: bool, as_json: bool
) -> None:
    """Delete memories of the actor: those with the given IDs, or --all."""
    if everything == bool(memory_ids):
        raise click.UsageError("Give the IDs to delete, or --all.")

    async def write(store: Store) -> int:
        return await store.delete_memories(actor, None if everything else memory_ids)

    deleted = run(_url(ctx), write, migrate=True)
    if as_json:
        print_json({"deleted": deleted})
    else:
        click.echo(f"deleted {deleted:,}")


def _url(ctx: click.Context) -> str:
    return ctx.parent.params["url"] if ctx.parent else ""


def _print(found: Iterable[ArchiveMemory], *, as_json: bool) -> None:
    if as_json:
        print_json(list(found))
        return
    rows = [
        (
            moment(m.created_at),
            str(m.id),
            f"{m.actor_type}:{m.actor_id}" if m.actor_id else m.actor_type,
            "pinned" if m.pinned else "",
            m.content,
        )
        for m in found
    ]
    print_table(("created", "id", "actor", "", "content"), rows)
