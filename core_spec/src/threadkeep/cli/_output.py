"""Printing: JSON for programs, tables for people. A terminal never obeys what a message holds."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import click
import msgspec

if TYPE_CHECKING:
    from rich.console import Console

    from ..models import Page

__all__ = [
    "console",
    "content_line",
    "json_bytes",
    "moment",
    "print_footer",
    "print_json",
    "print_page",
    "print_table",
    "shown",
]

_PIPE_WIDTH = 160
_PREVIEW = 300


def json_bytes(value: Any) -> bytes:
    """A model, or anything made of models, as one line of JSON with their field names and ISO times."""
    try:
        return msgspec.json.encode(value)
    except ValueError:  # a lone surrogate, which content may hold
        return json.dumps(msgspec.to_builtins(value), allow_nan=False, separators=(",", ":")).encode()


def print_json(value: Any) -> None:
    """Print a value as JSON, in UTF-8 whatever the terminal's encoding."""
    builtins = msgspec.to_builtins(value)
    try:
        text = json.dumps(builtins, ensure_ascii=False, allow_nan=False, indent=2).encode()
    except UnicodeEncodeError:
        text = json.dumps(builtins, allow_nan=False, indent=2).encode()
    click.echo(text)


def print_page(page: Page[Any]) -> None:
    """Print a page as JSON; ``matched_ids`` in the order of its items, so that equal pages print equally."""
    found = msgspec.structs.asdict(page)
    ids = [str(item.id) for item in page.items]
    print_json({**found, "matched_ids": [name for name in ids if name in page.matched_ids]})


def console(*, err: bool = False) -> Console:
    """A console for people: as wide as the terminal, wide in a pipe, and without colour there."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704  (called while it is handled; the root command ends quietly)

    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return _Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    dim: Sequence[bool] = (),
) -> None:
    """Print rows of text that nothing is cut from; those that *dim* marks are less bright."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )
    for name in columns:
        table.add_column(name, overflow="fold")
    for index, row in enumerate(rows):
        is_dim = index < len(dim) and dim[index]
        table.add_row(*[Text(shown(cell)) for cell in row], style="dim" if is_dim else None)
    console().print(table)


def shown(text: str) -> str:
    """Text on one line, with everything that a terminal would act upon escaped."""
    if text.isprintable():
        return text
    return "".join([char if char.isprintable() or char in _JOINERS else _escaped(char) for char in text])


_JOINERS = "\u200c\u200d\ufe0f"  # in emoji and in several scripts, they belong to the letters


def _escaped(char: str) -> str:
    return " " if char.isspace() else char.encode("unicode_escape").decode()


def content_line(content: Any) -> str:
    """The beginning of a message's content: its text where it has one, else its JSON."""
    text = _text_of(content)
    if text is None:
        text = json.dumps(content, ensure_ascii=False)
    return text if len(text) <= _PREVIEW else text[: _PREVIEW - 1] + "…"


def _text_of(content: Any) -> str | None:
    """The text of a content of the common shapes: a string, a list of parts, or an object that has one."""
    if isinstance(content, str):
        return content
    parts: Any = cast("dict[str, Any]", content).get("parts") if isinstance(content, dict) else content
    if not isinstance(parts, list) or not parts:
        return None
    texts = [_part_text(part) for part in cast("list[Any]", parts)]
    return None if None in texts else "\n".join(filter(None, texts))


def _part_text(part: Any) -> str | None:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else None
    text, kind = (cast("dict[str, Any]", part).get(field) for field in ("text", "type"))
    if isinstance(text, str):
        return text
    return f"[{kind}]" if isinstance(kind, str) else None


def moment(value: datetime) -> str:
    """A time for people: UTC to the second."""
    return f"{value:%Y-%m-%d %H:%M:%S}" if value.year > 999 else value.isoformat(" ", "seconds")[:19]


def print_footer(page: Page[Any]) -> None:
    """How much of what there is a page shows, and how to go on."""
    matched = len(page.matched_ids)
    parts = [f"{matched:,} of {page.total:,}" if page.total is not None else f"{matched:,} matched"]
    if len(page.items) > matched:
        parts.append(f"{len(page.items) - matched:,} neighbours, dimmed")
    if page.next_cursor is not None:
        parts.append(f"more with --cursor {page.next_cursor}")
    elif page.has_more:
        parts.append("there is more")
    click.echo("; ".join(parts))
