"""What applications hold: made once, never changed."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from threadkeep import (
    Actor,
    ArchiveMemory,
    Clone,
    CloneMetadata,
    DeletedResource,
    Explanation,
    Include,
    Message,
    MessageUpdate,
    NewMemory,
    NewMessage,
    Page,
    Resource,
    Thread,
    TimeRange,
)

NOW = datetime(2024, 1, 1, tzinfo=UTC)
THREAD = Thread(id="t", resource_id="r", created_at=NOW, updated_at=NOW)
EXAMPLES: list[msgspec.Struct] = [
    THREAD,
    Message(id="m", thread_id="t", resource_id="r", role="user", content="hi", created_at=NOW, seq=1),
    NewMessage("t", "user", "hi"),
    MessageUpdate("m"),
    Resource(id="r", created_at=NOW, updated_at=NOW),
    Actor("shared"),
    NewMemory("likes tea"),
    ArchiveMemory(id=1, content="likes tea", actor_type="shared", created_at=NOW),
    TimeRange(),
    Include("m"),
    Page[Thread](
        items=[], page=0, per_page=1, has_more=False, next_cursor=None, total=None, matched_ids=frozenset()
    ),
    Clone(thread=THREAD, id_map={}, messages=None),
    CloneMetadata(source_thread_id="t", cloned_at=NOW, last_message_id=None),
    DeletedResource(threads=1, messages=1, resources=1),
    Explanation(
        adapter="memory", filter=None, order="native", limit="native", indexes=[], rows_examined=1, plan=[]
    ),
]


@pytest.mark.parametrize("model", EXAMPLES, ids=lambda model: type(model).__name__)
def test_no_field_of_a_model_can_be_set(model: msgspec.Struct) -> None:
    for field in msgspec.structs.fields(model):
        with pytest.raises(AttributeError):
            setattr(model, field.name, getattr(model, field.name))


def test_a_new_message_has_its_id_from_the_start_and_keeps_it() -> None:
    message = NewMessage("t", "user", "hi")

    assert UUID(message.id).version == 7
    assert msgspec.structs.replace(message, content="ho").id == message.id


def test_ids_of_new_messages_are_all_different() -> None:
    assert len({NewMessage("t", "user", "hi").id for _ in range(1000)}) == 1000


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # other tests' threads
def test_forked_children_make_different_ids() -> None:
    NewMessage("t", "user", "hi")  # what makes them random is set up by now
    reading, writing = os.pipe()
    children: list[int] = []
    for _ in range(4):
        child = os.fork()
        if not child:
            try:
                made = [str(NewMessage("t", "user", "hi").id).rpartition("-")[2] for _ in range(10)]
                os.write(writing, "".join(f"{text}\n" for text in made).encode())
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        made = lines.read().split()

    assert len(set(made)) == len(made) == 40  # in their random last part, whatever the time was


def test_a_given_id_is_kept() -> None:
    assert NewMessage("t", "user", "hi", id="mine").id == "mine"


def test_the_three_parts_of_a_message_come_first_and_the_rest_by_name() -> None:
    rejected: Any = ("t", "user", "hi", "id")

    with pytest.raises(TypeError):
        NewMessage(*rejected)


def test_models_share_no_default_metadata() -> None:
    other = Thread(id="u", resource_id="r", created_at=NOW, updated_at=NOW)

    assert THREAD.metadata == other.metadata == {}
    assert THREAD.metadata is not other.metadata
