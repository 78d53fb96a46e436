"""Times: UTC, microseconds, years 1 to 9999, never naive."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest

from threadkeep import (
    Actor,
    ArchiveMemory,
    InvalidArgumentError,
    Message,
    NewMemory,
    NewMessage,
    Resource,
    Store,
    Thread,
    TimeRange,
)

from ..cases import case
from .base import AdapterSuite
from .samples import NOON, add, ids, unchanged

__all__ = ["TestTimes"]

FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
MOMENTS = (
    FIRST,
    datetime(1, 1, 1, 0, 0, 0, 1, UTC),
    datetime(999, 6, 1, 1, 2, 3, 4, UTC),
    datetime(1582, 10, 10, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2000, 2, 29, 12, 0, 0, 100000, UTC),
    datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
    datetime(2262, 4, 12, 0, 0, 0, 123456, UTC),
    LAST,
)


class EndOfDaylightSaving(tzinfo):
    """One hour that comes twice, as in Europe in October; needs no time-zone data."""

    def utcoffset(self, dt: datetime | None) -> timedelta:
        """Two hours the first time, one hour the second."""
        return timedelta(hours=1 if dt is not None and dt.fold else 2)

    def dst(self, dt: datetime | None) -> timedelta:
        """What daylight saving adds."""
        return self.utcoffset(dt) - timedelta(hours=1)

    def tzname(self, dt: datetime | None) -> str:
        """CEST, then CET."""
        return "CET" if dt is not None and dt.fold else "CEST"


class TestTimes(AdapterSuite):
    """Times of everything that has one."""

    @case("times.round_trip", "4.2.utc", "4.2.years")
    async def test_every_microsecond_of_every_year_comes_back(self, store: Store) -> None:
        """Years 1 to 9999, before and after 1970, with microseconds, of threads, messages, resources and
        memories.
        """
        for index, moment in enumerate(MOMENTS):
            name = f"t{index}"
            await store.save_thread(Thread(id=name, resource_id="r", created_at=moment, updated_at=moment))
            await store.save_messages([NewMessage(name, "user", 0, id=name, created_at=moment)])
            thread = Thread(id=name, resource_id="r", created_at=moment, updated_at=moment)
            await store.save_thread(thread)
            resource = Resource(id=name, created_at=moment, updated_at=moment)
            await store.save_resource(resource)
            memory = ArchiveMemory(
                id=index + 1, content="x", pinned=False, actor_type="shared", actor_id=None, created_at=moment
            )
            await store.save_memories([memory])

            stored = await store.get_thread(name)
            assert stored is not None
            assert (stored.created_at, stored.updated_at) == (moment, moment)
            assert (await store.get_messages([name]))[0].created_at == moment
            assert await store.get_resource(name) == resource
        assert [m.created_at for m in (await store.list_memories()).items] == list(reversed(MOMENTS))
        assert ids(await store.list_messages(resource_id="r")) == [
            f"t{index}" for index in range(len(MOMENTS))
        ]

    @case("times.are_utc", "4.2.utc")
    async def test_times_are_returned_in_utc(self, store: Store) -> None:
        """A time given in any zone comes back as the same moment, in UTC, from every read."""
        zones = [
            timezone(timedelta(hours=5, minutes=30)),
            timezone(timedelta(hours=-11)),
            timezone(timedelta(seconds=1234)),
        ]
        for index, zone in enumerate(zones):
            moment = NOON.astimezone(zone)
            created = await store.create_thread("r", thread_id=f"t{index}", created_at=moment)
            await store.save_messages([NewMessage(f"t{index}", "user", 0, id=f"m{index}", created_at=moment)])
            (memory,) = await store.add_memories(Actor("shared"), [NewMemory("x", created_at=moment)])
            read = await store.get_thread(f"t{index}")
            (message,) = await store.get_messages([f"m{index}"])
            assert read is not None
            for returned in (
                created.created_at,
                read.created_at,
                message.created_at,
                memory.created_at,
                read.updated_at,
            ):
                assert returned.utcoffset() == timedelta(0)
            for returned in (created.created_at, read.created_at, message.created_at, memory.created_at):
                assert returned == NOON

    @case("times.daylight_saving", "4.2.utc", "4.5.total")
    async def test_the_hour_that_comes_twice_is_two_hours(self, store: Store) -> None:
        """Two moments with one wall time at the end of daylight saving stay apart and in order."""
        wall = datetime(2024, 10, 27, 2, 30, tzinfo=EndOfDaylightSaving())
        await store.create_thread("r", thread_id="t")
        await store.save_messages([NewMessage("t", "user", 0, id="second", created_at=wall.replace(fold=1))])
        await store.save_messages([NewMessage("t", "user", 0, id="first", created_at=wall)])

        found = (await store.list_messages("t")).items

        assert ids(found) == ["first", "second"]
        assert found[1].created_at - found[0].created_at == timedelta(hours=1)

    @case("times.naive", "4.2.naive", "3.validate")
    async def test_naive_times_are_refused(self, store: Store) -> None:
        """A naive datetime, a date, a text or a number as a time is an error everywhere; nothing is
        written.
        """
        await store.create_thread("r", thread_id="t")
        wrong: list[Any] = [NOON.replace(tzinfo=None), date(2024, 1, 1), "2024-01-01T00:00:00Z", 0, 1.5, True]
        async with unchanged(store):
            for moment in wrong:
                with pytest.raises(InvalidArgumentError):
                    await store.create_thread("r", created_at=moment)
                with pytest.raises(InvalidArgumentError):
                    await store.ensure_thread("r", thread_id="u", created_at=moment)
                with pytest.raises(InvalidArgumentError):
                    await store.save_messages([NewMessage("t", "user", 0, created_at=moment)])
                with pytest.raises(InvalidArgumentError):
                    await store.add_memories(Actor("shared"), [NewMemory("x", created_at=moment)])
                with pytest.raises(InvalidArgumentError):
                    await store.save_thread(
                        Thread(id="t", resource_id="r", created_at=NOON, updated_at=moment)
                    )
                with pytest.raises(InvalidArgumentError):
                    await store.save_resource(Resource(id="r", created_at=moment, updated_at=NOON))
                with pytest.raises(InvalidArgumentError):
                    await store.save_messages(
                        [
                            Message(
                                id="m",
                                thread_id="t",
                                resource_id="r",
                                role="u",
                                content=0,
                                created_at=moment,
                                seq=1,
                            )
                        ]
                    )

    @case("times.out_of_range", "4.2.years", "3.validate")
    async def test_moments_outside_the_years_in_utc_are_refused(self, store: Store) -> None:
        """Moments that leave the years 1 to 9999 when turned into UTC are errors, never wrapped around."""
        await store.create_thread("r", thread_id="t")
        east, west = timezone(timedelta(hours=1)), timezone(timedelta(hours=-1))
        outside = (FIRST.replace(tzinfo=east), LAST.replace(tzinfo=west))
        async with unchanged(store):
            for moment in outside:
                with pytest.raises(InvalidArgumentError):
                    await store.create_thread("r", created_at=moment)
                with pytest.raises(InvalidArgumentError):
                    await store.save_messages([NewMessage("t", "user", 0, created_at=moment)])
                with pytest.raises(InvalidArgumentError):
                    await store.list_messages("t", created=TimeRange(start=moment))

    @case("times.range_at_the_ends", "5.2.dates", "4.2.years")
    async def test_ranges_reach_the_first_and_the_last_moment(self, store: Store) -> None:
        """A range over all of time, inclusive at both ends, finds the first and the last microsecond."""
        await store.create_thread("r", thread_id="t")
        for name, moment in (("first", FIRST), ("noon", NOON), ("last", LAST)):
            await add(store, "t", name, created_at=moment)

        assert ids(await store.list_messages("t", created=TimeRange(FIRST, LAST))) == [
            "first",
            "noon",
            "last",
        ]
        inner = TimeRange(FIRST, LAST, start_exclusive=True, end_exclusive=True)
        assert ids(await store.list_messages("t", created=inner)) == ["noon"]
        assert ids(await store.list_messages("t", created=TimeRange(start=LAST))) == ["last"]
        assert ids(await store.list_messages("t", created=TimeRange(end=FIRST))) == ["first"]

    @case("times.now", "4.2.omitted", "4.2.utc")
    async def test_what_has_no_time_gets_the_present_one(self, store: Store) -> None:
        """Omitted times lie between the clock before and after the call."""
        before = datetime.now(UTC)
        thread = await store.create_thread("r")
        (message,) = await store.save_messages([NewMessage(thread.id, "user", 0)])
        resource = await store.update_resource("r", metadata={})
        after = datetime.now(UTC) + timedelta(milliseconds=1)

        for moment in (thread.created_at, message.created_at, resource.created_at, resource.updated_at):
            assert before - timedelta(milliseconds=1) <= moment <= after

    @case("times.batch_is_one_time", "4.2.omitted", "4.5.batch")
    async def test_a_batch_without_times_has_one_time(self, store: Store) -> None:
        """All messages of one call get one created_at, the batch's first seq, and keep their order by seq."""
        thread = await store.create_thread("r")

        saved = await store.save_messages([NewMessage(thread.id, "user", index) for index in range(5)])

        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        assert {message.created_at for message in saved} == {epoch + timedelta(microseconds=saved[0].seq)}
        assert [message.seq for message in saved] == sorted({message.seq for message in saved})

    @case("times.concurrent_calls", "4.5.seq", "4.5.touch")
    async def test_concurrent_calls_never_share_a_seq(self, store: Store) -> None:
        """Fifty calls at once get fifty different seq, and the thread's updated_at is the largest time of
        all.
        """
        thread = await store.create_thread("r", thread_id="t")

        saved = await asyncio.gather(*[store.save_messages([NewMessage("t", "user", i)]) for i in range(50)])

        assert len({message.seq for (message,) in saved}) == 50
        after = await store.get_thread(thread.id)
        assert after is not None
        assert after.message_count == 50
        assert after.updated_at > thread.updated_at
