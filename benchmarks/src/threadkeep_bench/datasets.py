"""Public conversations as a threadkeep export: ``python -m threadkeep_bench.datasets locomo FILE [-o OUT]``.

LoCoMo becomes: sample = resource, session = thread ``conv-26/session_1``, turn = message ``conv-26/D1:1``,
role ``user`` for ``speaker_a`` and ``assistant`` for ``speaker_b``, one second a turn from the session's time
(taken as UTC), ``seq`` counting through the file from 1. A thread's and a resource's ``updated_at`` is its
last message's time.

- A message's content is ``{"parts": [...]}``: a part ``{"type": "text", "text": ...}`` and, for a shared
  picture, a part ``{"type": "image"}`` with what is known of ``caption``, ``urls`` and ``query`` (the words
  it was found by).
- Its metadata is ``speaker``, ``dia_id``, ``session`` (int) and ``has_image`` (bool).
- The questions of the data set are read only to report evidence that names no turn.

What is missing or odd in the file never stops the conversion; each kind is counted and named on stderr:

- A session with a date but without turns gives no thread. Turns without a readable date follow the session
  before by a second, or start at 1970.
- A turn that is no object is left out; one without text keeps an empty text.
- A turn without ``dia_id`` is named by its place, and a second one of the same id gets ``#2`` behind it.
- A speaker that is neither of the two has the role ``unknown``.
- A picture of which only a caption is known has no ``urls``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from threadkeep.cli.formats import line_of
from threadkeep.models import Message, Resource, Thread

__all__ = ["Gaps", "locomo", "main"]

_SESSION = re.compile(r"session_(\d+)(_date_time)?")
_SECOND = timedelta(seconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMES_SHOWN = 20
_ROLES = (("speaker_a", "user"), ("speaker_b", "assistant"))

Record = Resource | Thread | Message


class Gaps:
    """What was missing or odd, by kind, in the order it was met."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}

    def add(self, kind: str, name: str) -> None:
        """Note one."""
        self.found.setdefault(kind, []).append(name)

    def report(self) -> list[str]:
        """One line a kind: how many, and which (the first 20)."""
        lines: list[str] = []
        for kind, names in self.found.items():
            shown = ", ".join(names[:_NAMES_SHOWN])
            more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
            lines.append(f"{len(names)} {kind}: {shown}{more}")
        return lines


def locomo(samples: list[Any], gaps: Gaps) -> Iterator[Record]:
    """Convert LoCoMo's samples, each resource before its threads and each thread before its messages.

    Args:
        samples: The decoded file: a list of ``{"sample_id", "conversation", "qa"}``.
        gaps: Filled with what was missing or odd, complete once the iterator is exhausted.
    """
    seq = 0
    for number, sample in enumerate(samples, 1):
        fields = cast("dict[str, Any]", sample) if isinstance(sample, dict) else {}
        if not isinstance(fields.get("conversation"), dict):
            gaps.add("samples without a conversation, left out", f"sample {number}")
            continue
        for record in _Sample(fields, number, gaps).records():
            if isinstance(record, Message):
                seq += 1
                record = msgspec.structs.replace(record, seq=seq)  # noqa: PLW2901  (numbered as it passes)
            yield record


class _Sample:
    """One sample on its way."""

    def __init__(self, sample: dict[str, Any], number: int, gaps: Gaps) -> None:
        self._id = str(sample.get("sample_id") or f"sample-{number}")
        self._conversation: dict[str, Any] = sample["conversation"]
        self._questions = _items(sample.get("qa"))
        self._gaps = gaps
        self._ids: set[str] = set()
        speakers = [(self._conversation.get(key), role) for key, role in _ROLES]
        self._roles = {name: role for name, role in speakers if isinstance(name, str)}

    def records(self) -> Iterator[Record]:
        sessions = list(self._sessions())
        self._check_evidence()
        if not sessions:
            self._gaps.add("samples without a single turn, left out", self._id)
            return
        yield Resource(
            id=self._id,
            metadata={key: self._conversation.get(key) for key in ("speaker_a", "speaker_b")},
            created_at=min(thread.created_at for thread, _ in sessions),
            updated_at=max(thread.updated_at for thread, _ in sessions),
        )
        for thread, messages in sessions:
            yield thread
            yield from messages

    def _sessions(self) -> Iterator[tuple[Thread, list[Message]]]:
        keys = [match for match in map(_SESSION.fullmatch, self._conversation) if match]
        after = _EPOCH
        for number in sorted({int(match[1]) for match in keys}):
            name = f"session_{number}"
            turns = self._conversation.get(name)
            if not isinstance(turns, list) or not turns:
                self._gaps.add("sessions with a date but without turns, left out", f"{self._id}/{name}")
                continue
            start = self._start(name, after)
            messages = list(self._messages(cast("list[Any]", turns), number, start))
            if not messages:
                continue
            after = messages[-1].created_at + _SECOND
            yield self._thread(number, start, messages), messages

    def _start(self, name: str, after: datetime) -> datetime:
        given = self._conversation.get(f"{name}_date_time")
        try:
            return datetime.strptime(f"{given} +0000", "%I:%M %p on %d %B, %Y %z").astimezone(UTC)
        except ValueError:
            self._gaps.add("sessions without a readable date, put after the one before", f"{self._id}/{name}")
            return after

    def _thread(self, number: int, start: datetime, messages: list[Message]) -> Thread:
        speakers = " and ".join(name for name in self._roles if name)
        return Thread(
            id=f"{self._id}/session_{number}",
            resource_id=self._id,
            title=f"{speakers}, session {number}",
            metadata={"session": number},
            message_count=len(messages),
            created_at=start,
            updated_at=messages[-1].created_at,
        )

    def _messages(self, turns: list[Any], session: int, start: datetime) -> Iterator[Message]:
        for place, turn in enumerate(turns, 1):
            where = f"{self._id}/D{session}:{place}"
            if not isinstance(turn, dict):
                self._gaps.add("turns that are no objects, left out", where)
                continue
            moment = start + (place - 1) * _SECOND
            yield self._message(cast("dict[str, Any]", turn), session, place, moment)

    def _message(self, turn: dict[str, Any], session: int, place: int, moment: datetime) -> Message:
        dia_id = self._dia_id(turn, f"D{session}:{place}")
        name = f"{self._id}/{dia_id}"
        return Message(
            id=name,
            thread_id=f"{self._id}/session_{session}",
            resource_id=self._id,
            role=self._role(turn, name),
            content={"parts": list(self._parts(turn, name))},
            metadata={
                "speaker": turn.get("speaker"),
                "dia_id": dia_id,
                "session": session,
                "has_image": _has_image(turn),
            },
            created_at=moment,
            seq=0,
        )

    def _dia_id(self, turn: dict[str, Any], place: str) -> str:
        given = turn.get("dia_id")
        if not isinstance(given, str) or not given:
            self._gaps.add("turns without dia_id, named by their place", f"{self._id}/{place}")
            given = place
        found, copies = given, 1
        while found in self._ids:
            copies += 1
            found = f"{given}#{copies}"
        if found != given:
            self._gaps.add("turns whose dia_id repeats, numbered", f"{self._id}/{found}")
        self._ids.add(found)
        return found

    def _role(self, turn: dict[str, Any], name: str) -> str:
        speaker = turn.get("speaker")
        role = self._roles.get(speaker) if isinstance(speaker, str) else None
        if role is None:
            self._gaps.add("turns by neither speaker, given the role unknown", name)
        return role or "unknown"

    def _parts(self, turn: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
        text = turn.get("text")
        if not isinstance(text, str) or not text:
            self._gaps.add("turns without text", name)
            text = ""
        yield {"type": "text", "text": text}
        if _has_image(turn):
            urls = turn.get("img_url")
            if not urls:
                self._gaps.add("pictures without an address, caption kept", name)
            known = {"caption": turn.get("blip_caption"), "urls": urls, "query": turn.get("query")}
            yield {"type": "image"} | {key: value for key, value in known.items() if value}

    def _check_evidence(self) -> None:
        for question in self._questions:
            fields = cast("dict[str, Any]", question) if isinstance(question, dict) else {}
            for evidence in _items(fields.get("evidence")):
                if not isinstance(evidence, str) or evidence not in self._ids:
                    self._gaps.add("pieces of evidence that name no turn", f"{self._id} {evidence!r}")


def _items(value: object) -> list[Any]:
    """A list of the file; empty where it is none."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def _has_image(turn: dict[str, Any]) -> bool:
    return bool(turn.get("img_url") or turn.get("blip_caption"))


@click.group()
def main() -> None:
    """Turn public conversations into a threadkeep export."""


@main.command("locomo")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to; else stdout."
)
def locomo_command(file: Path, output: Path | None) -> None:
    """Convert FILE, LoCoMo's JSON, to JSON lines; what was missing or odd goes to stderr."""
    gaps = Gaps()
    counts: dict[str, int] = {}
    try:
        samples = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as exc:
        raise click.BadParameter(f"is not JSON: {exc}", param_hint="FILE") from exc
    if not isinstance(samples, list):
        raise click.BadParameter("is not a list of samples", param_hint="FILE")
    with output.open("wb") if output else nullcontext(sys.stdout.buffer) as out:
        for record in locomo(cast("list[Any]", samples), gaps):
            out.write(line_of(record))
            kind = type(record).__name__.lower()
            counts[kind] = counts.get(kind, 0) + 1
    written = ", ".join(f"{count} {kind}s" for kind, count in counts.items()) or "nothing"
    click.echo(f"written: {written}", err=True)
    for line in gaps.report():
        click.echo(f"gap: {line}", err=True)


if __name__ == "__main__":
    main()
