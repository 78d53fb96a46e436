import asyncio
import inspect
import re
import runpy
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

import threadkeep
import threadkeep.clock
from threadkeep import Actor, AlreadyExistsError, Include, NewMessage, Store, Thread, TimeRange, gte, one_of
from threadkeep.records import MessageRecord, ThreadRecord
from threadkeep.reference import ReferenceAdapter
from threadkeep.requests import (
    ClonedThread,
    CloneThread,
    MessageQuery,
    MessageSlice,
    SaveMemories,
    UpdateThread,
)
from threadkeep_conformance import calls
from threadkeep_conformance.calls import source
from threadkeep_conformance.comparison import Difference
from threadkeep_conformance.model import compare
from threadkeep_conformance.suite.samples import HOSTILE, NOON, NUMBERS, same_json

from .toys import installed


class TiesLost(ReferenceAdapter):
    async def list_messages(self, query: MessageQuery) -> MessageSlice:
        found = await super().list_messages(query)
        by_time = sorted(found.messages, key=lambda row: (row.created_at, row.id), reverse=query.descending)
        return MessageSlice(by_time, found.total, found.windows)


class ErasesMetadata(ReferenceAdapter):
    async def update_thread(self, request: UpdateThread) -> ThreadRecord:
        if request.title is not UNSET and request.metadata is UNSET:
            request = replace(request, metadata={}, replace_metadata=True)
        return await super().update_thread(request)


class OtherError(ReferenceAdapter):
    async def save_memories(self, request: SaveMemories) -> None:
        try:
            await super().save_memories(request)
        except AlreadyExistsError as exc:
            raise AlreadyExistsError("memory", "?") from exc


class Crashes(ReferenceAdapter):
    async def get_messages(self, ids: Any, resource_id: str | None) -> list[MessageRecord]:
        found = await super().get_messages(ids, resource_id)
        if any(row.role == "assistant" for row in found):
            raise ZeroDivisionError("a driver's error")
        return found


class ClonesForeign(ReferenceAdapter):
    async def clone_thread(self, request: CloneThread) -> ClonedThread:
        copy = await super().clone_thread(request)
        for new in copy.ids:
            row = self._tables.messages[new[1]]
            self._tables.messages[new[1]] = replace(row, role="copied")
        return copy


@pytest.fixture
def clock_of_the_process() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("threadkeep.clock.time", time)
        patch.setattr(threadkeep.clock.clock, "_last", 0)
        yield


def test_an_adapter_that_does_the_same_passes() -> None:
    compare("memory:", seed=11, examples=4)


@pytest.mark.parametrize("adapter", [TiesLost, ErasesMetadata, OtherError, Crashes, ClonesForeign])
def test_a_difference_is_found_and_its_program_repeats_it(
    adapter: type[ReferenceAdapter],
    capsys: pytest.CaptureFixture[str],
    clock_of_the_process: None,
    tmp_path: Path,
) -> None:
    with installed(adapter) as url:
        with pytest.raises(Difference) as found:
            compare(url, seed=1, examples=60)
        text, _, program = str(found.value).partition("\nimport asyncio")
        with pytest.MonkeyPatch.context() as patch:
            written = tmp_path / "reproducer.py"
            written.write_text("import asyncio" + program, "utf-8")
            patch.setattr(sys, "argv", ["reproducer.py", "toy:program"])
            try:
                runpy.run_path(str(written), run_name="__main__")
            except (AlreadyExistsError, ZeroDivisionError) as exc:
                printed = f"{type(exc).__name__}"
            else:
                printed = capsys.readouterr().out

    assert len(found.value.steps) <= 7, "not shortened"
    assert printed, "the program shows nothing"
    assert printed.split("(")[0].strip("[") in text.split("found:")[1]


def test_the_same_seed_draws_the_same_calls() -> None:
    def drawn() -> list[str]:
        noted: list[str] = []

        class Noting(ReferenceAdapter):
            def __getattribute__(self, name: str) -> Any:
                if not name.startswith("_"):
                    noted.append(name)
                return super().__getattribute__(name)

        with installed(Noting) as url:
            compare(url, seed=5, examples=3)
        return noted

    assert drawn() == drawn()


def test_every_operation_of_a_store_is_drawn() -> None:
    operations = {
        name for name, member in inspect.getmembers(Store) if not name.startswith("_") and callable(member)
    }
    drawn = set(re.findall(r'_call\(\s*"(\w+)"', inspect.getsource(calls)))

    assert operations - drawn == {"close", "get_clone_metadata", "is_clone"}
    assert drawn <= operations


@pytest.mark.parametrize(
    "value",
    [
        [*HOSTILE, "a\0b", "\ud800"],
        list(NUMBERS),
        {"a": None, "b": [True, {"c": 2**80}]},
        NOON,
        datetime.max.replace(tzinfo=NOON.tzinfo),
        NewMessage("t", "user", {"x": 1}, id="m", created_at=NOON),
        Thread(id="t", resource_id="r", created_at=NOON, updated_at=NOON),
        [Include("m", before=1), TimeRange(NOON, None, True), Actor("shared")],
        (gte(5), one_of("a", None)),
        (),
    ],
)
def test_a_value_is_written_as_python_that_makes_it_again(value: Any) -> None:
    names = {"datetime": datetime, "UTC": UTC, **vars(threadkeep)}

    again = eval(source(value), names)  # noqa: S307  (what source wrote just now)

    assert same_json(again, value)


def test_a_string_can_be_written_as_an_expression() -> None:
    assert source(["copy 1", "m1"], {"copy 1": "clone_1.id_map['m1']"}) == "[clone_1.id_map['m1'], 'm1']"


def test_nothing_is_left_of_the_clock() -> None:
    before = vars(threadkeep.clock)["time"], threadkeep.clock.clock.take

    compare("memory:", seed=0, examples=2)

    assert (vars(threadkeep.clock)["time"], threadkeep.clock.clock.take) == before
    assert asyncio.run(_made()) > NOON


async def _made() -> datetime:
    async with threadkeep.open("memory:") as store:
        return (await store.create_thread("user-1")).created_at
