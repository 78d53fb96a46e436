"""``threadkeep working-memory``: the document an agent keeps up to date, of a resource or of a thread."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..errors import NotFoundError
from ..jsontext import check_document
from ..models import Resource, Thread
from ..store import Store
from ._command import json_option, run, url_argument
from ._output import print_json

__all__ = ["working_memory"]

Command = TypeVar("Command", bound=Callable[..., Any])


def _target(command: Command) -> Command:
    thread = click.option("--thread", metavar="ID", help="Of this thread.")
    resource = click.option("--resource", metavar="ID", help="Of this resource; with --thread: its owner.")
    return resource(thread(command))


@click.group()
@url_argument
def working_memory(url: str) -> None:
    """Read and write the working memory of a resource or of a thread."""


@working_memory.command()
@_target
@json_option
@click.pass_context
def get(ctx: click.Context, *, resource: str | None, thread: str | None, as_json: bool) -> None:
    """Print the working memory as it is; nothing where there is none."""
    _need_target(resource, thread)

    async def read(store: Store) -> Resource | Thread | None:
        if thread is not None:
            return await store.get_thread(thread, resource_id=resource)
        return await store.get_resource(resource or "")

    found = run(_url(ctx), read, migrate=False)
    if found is None:
        raise NotFoundError(*(("resource", resource or "") if thread is None else ("thread", thread)))
    if as_json:
        print_json(found)
    elif found.working_memory is not None:
        click.echo(found.working_memory)


@working_memory.command("set")
@click.argument("text", required=False)
@_target
@click.option("--clear", is_flag=True, help="Remove the working memory.")
@click.option("--if-revision", type=click.IntRange(min=0), help="Only if the resource has this revision.")
@json_option
@click.pass_context
def set_(
    ctx: click.Context,
    text: str | None,
    *,
    resource: str | None,
    thread: str | None,
    clear: bool,
    if_revision: int | None,
    as_json: bool,
) -> None:
    """Replace the working memory by TEXT (- is standard input)."""
    _need_target(resource, thread)
    if clear == (text is not None):
        raise click.UsageError("Give the new TEXT, or --clear.")
    if thread is not None and if_revision is not None:
        raise click.UsageError("--if-revision is for resources: a thread has no revision.")
    document = _input(text) if text is not None else None

    async def write(store: Store) -> Resource | Thread:
        if thread is not None:
            return await store.update_thread(thread, working_memory=document, resource_id=resource)
        return await store.update_resource(resource or "", working_memory=document, if_revision=if_revision)

    _print(run(_url(ctx), write, migrate=True), as_json=as_json)


@working_memory.command()
@click.argument("patch")
@click.option("--resource", metavar="ID", required=True, help="The resource.")
@json_option
@click.pass_context
def merge(ctx: click.Context, patch: str, *, resource: str, as_json: bool) -> None:
    """Deep-merge PATCH, a JSON object (- is standard input), in one atomic step; null deletes a key."""
    text = _input(patch)
    check_document(text, "PATCH")  # a repeated key would silently lose all but its last value
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise click.UsageError(f"PATCH is not JSON: {exc}.") from exc

    async def write(store: Store) -> Resource:
        return await store.merge_working_memory(resource, found)

    _print(run(_url(ctx), write, migrate=True), as_json=as_json)


def _url(ctx: click.Context) -> str:
    return ctx.parent.params["url"] if ctx.parent else ""


def _need_target(resource: str | None, thread: str | None) -> None:
    if resource is None and thread is None:
        raise click.UsageError("Say whose working memory: --resource ID or --thread ID.")


def _input(text: str) -> str:
    if text != "-":
        return text
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as exc:
        raise click.UsageError(f"Standard input is not UTF-8: {exc.reason}.") from exc


def _print(found: Resource | Thread, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    elif isinstance(found, Resource):
        click.echo(f"revision {found.revision}")
    else:
        click.echo("saved")
