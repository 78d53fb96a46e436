"""``threadkeep threads``, ``messages`` and ``explain``: reading, page by page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import click

from ..models import Explanation, Include, Message, Page, Thread
from ..store import Store
from ._command import json_option, run, url_argument
from ._options import condition, page_size, since, time_range, until, where_of, window
from ._output import (
    content_line,
    json_bytes,
    moment,
    print_footer,
    print_json,
    print_page,
    print_table,
    shown,
)

__all__ = ["explain", "messages", "print_explanation", "print_messages", "print_threads", "threads"]

Command = TypeVar("Command", bound=Callable[..., Any])

_MESSAGE_COLUMNS = ("thread", "created", "message", "role", "content", "metadata")


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_resource = click.option("--resource", metavar="ID", help="Only what this resource owns.")
_where = click.option(
    "--where",
    type=condition,
    multiple=True,
    metavar="KEY=VALUE",
    help="A metadata filter; may be repeated, all must hold. VALUE is a JSON scalar if it parses as one, else"
    " a string (so is '\"5\"'). Also KEY!=x, KEY>5, KEY>=5, KEY<5, KEY<=5,"
    " KEY? (exists), KEY!? (missing).",
)
_page = click.option(
    "--page", type=click.IntRange(min=0), default=0, show_default=True, help="Which page, from 0."
)
_cursor = click.option("--cursor", help="Go on where a page ended: its next_cursor, instead of --page.")
_total = click.option("--total", is_flag=True, help="Count the matches too.")
_thread = click.option("--thread", multiple=True, metavar="ID", help="Only this thread; may be repeated.")
_since = click.option("--since", type=since, metavar="TIME", help="Only from this ISO date or time on (UTC).")
_until = click.option(
    "--until", type=until, metavar="TIME", help="Only up to this ISO date or time, itself included."
)
_include = click.option(
    "--include",
    type=window,
    multiple=True,
    metavar="ID:before:after",
    help="Add a message with so many neighbours on either side; may be repeated.",
)
_order_by = click.option("--order-by", type=click.Choice(["created_at", "updated_at"]), default="created_at")


def _order(default: str | None) -> Callable[[Command], Command]:
    return click.option("--order", type=click.Choice(["asc", "desc"]), default=default, show_default=True)


def _per_page(default: str | None) -> Callable[[Command], Command]:
    return click.option("--per-page", type=page_size, default=default, show_default=True, metavar="N|all")


@click.command()
@url_argument
@_options(_resource, _where, _order_by, _order("desc"), _page, _per_page("100"), _cursor, _total, json_option)
def threads(url: str, *, as_json: bool, **given: Any) -> None:
    """List threads, newest first."""
    query = _thread_query(**given)

    async def fetch(store: Store) -> Page[Thread]:
        return await store.list_threads(**query)

    page = run(url, fetch, migrate=False)
    if as_json:
        print_page(page)
    else:
        print_threads(page)


@click.command()
@url_argument
@_options(
    _resource,
    _thread,
    _where,
    _since,
    _until,
    _include,
    _order("asc"),
    _page,
    _per_page("40"),
    _cursor,
    _total,
    json_option,
)
def messages(url: str, *, as_json: bool, **given: Any) -> None:
    """List messages, oldest first. At least one of --thread and --resource is needed."""
    query = _message_query(**given)

    async def fetch(store: Store) -> Page[Message]:
        return await store.list_messages(**query)

    page = run(url, fetch, migrate=False)
    if as_json:
        print_page(page)
    else:
        print_messages(page)


@click.command()
@url_argument
@click.option(
    "--threads", "of_threads", is_flag=True, help="Explain the list of threads instead of messages."
)
@_options(
    _resource,
    _thread,
    _where,
    _since,
    _until,
    _include,
    _order_by,
    _order(None),
    _page,
    _per_page(None),
    _cursor,
    _total,
)
@json_option
def explain(url: str, *, of_threads: bool, as_json: bool, **given: Any) -> None:
    """Show how the database answers `messages` (or `threads`) with the same options.

    What was pushed down to it, the indexes it uses, how many rows it examined, and its own plan.
    """
    given = {name: value for name, value in given.items() if value not in (None, ())}
    if of_threads:
        only = [name for name in ("thread", "since", "until", "include") if name in given]
        if only:
            raise click.UsageError(f"--{only[0]} is for messages, not for --threads.")
        query = _thread_query(**given)
    else:
        if given["order_by"] != "created_at":
            raise click.UsageError("--order-by is for --threads: messages have one order.")
        query = _message_query(**{name: value for name, value in given.items() if name != "order_by"})

    async def fetch(store: Store) -> Explanation:
        return await (store.explain_threads(**query) if of_threads else store.explain_messages(**query))

    explanation = run(url, fetch, migrate=False)
    if as_json:
        print_json(explanation)
    else:
        print_explanation(explanation)


def print_threads(page: Page[Thread]) -> None:
    """A page of threads as a table."""
    columns = ("created", "updated", "resource", "thread", "title", "messages", "metadata")
    print_table(columns, map(_thread_row, page.items))
    print_footer(page)


def print_messages(page: Page[Message]) -> None:
    """A page of messages as a table; neighbours of included ones are dimmed."""
    rows, columns, title = [_message_row(item) for item in page.items], _MESSAGE_COLUMNS, None
    threads = {item.thread_id for item in page.items}
    if len(threads) == 1:  # then the room is better used for what they say
        title, columns, rows = f"thread {threads.pop()}", columns[1:], [row[1:] for row in rows]
    print_table(columns, rows, title=title, dim=[item.id not in page.matched_ids for item in page.items])
    print_footer(page)


def print_explanation(explanation: Explanation) -> None:
    """An explanation as a table, and the database's plan below."""
    rows = [
        ("adapter", explanation.adapter),
        ("filter", explanation.filter or "none given"),
        ("order", explanation.order),
        ("limit", explanation.limit),
        ("indexes", ", ".join(explanation.indexes) or "none"),
        (
            "rows examined",
            "not told by this database"
            if explanation.rows_examined is None
            else f"{explanation.rows_examined:,}",
        ),
    ]
    print_table(("what", "answer"), rows)
    for line in explanation.plan:
        click.echo(f"  {shown(line)}")


def _thread_query(
    *,
    where: tuple[tuple[str, Any], ...] = (),
    resource: str | None = None,
    per_page: int | str = 100,
    total: bool = False,
    **others: Any,
) -> Mapping[str, Any]:
    return {
        "resource_id": resource,
        "where": where_of(where),
        "per_page": None if per_page == "all" else per_page,
        "with_total": total,
        **others,
    }


def _message_query(
    *,
    resource: str | None = None,
    thread: tuple[str, ...] = (),
    where: tuple[tuple[str, Any], ...] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    include: tuple[Include, ...] = (),
    per_page: int | str = 40,
    total: bool = False,
    **others: Any,
) -> Mapping[str, Any]:
    if resource is None and not thread:
        raise click.UsageError("Say whose messages: --thread ID or --resource ID (or both).")
    return {
        "threads": thread or None,
        "resource_id": resource,
        "where": where_of(where),
        "created": time_range(since, until),
        "include": include,
        "per_page": None if per_page == "all" else per_page,
        "with_total": total,
        **others,
    }


def _thread_row(thread: Thread) -> tuple[str, ...]:
    return (
        moment(thread.created_at),
        moment(thread.updated_at),
        thread.resource_id,
        thread.id,
        thread.title,
        f"{thread.message_count:,}",
        _metadata(thread.metadata),
    )


def _message_row(message: Message) -> tuple[str, ...]:
    text = content_line(message.content)
    created = moment(message.created_at)
    return message.thread_id, created, message.id, message.role, text, _metadata(message.metadata)


def _metadata(metadata: dict[str, Any]) -> str:
    return ", ".join([f"{key}={content_line(json_bytes(value).decode())}" for key, value in metadata.items()])
