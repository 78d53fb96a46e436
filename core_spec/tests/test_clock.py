"""Times are exact microseconds, and the sequence never goes back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep import clock as clock_module
from threadkeep.clock import MAX_US, MIN_US, Clock, from_us, to_us


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_comes_back_to_the_microsecond(moment: datetime) -> None:
    assert from_us(to_us(moment)) == moment


@given(st.integers(MIN_US, MAX_US))
def test_microseconds_come_back(us: int) -> None:
    assert to_us(from_us(us)) == us


def test_the_bounds_are_years_1_and_9999() -> None:
    assert from_us(MIN_US) == datetime(1, 1, 1, tzinfo=UTC)
    assert from_us(MAX_US) == datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


def test_the_zone_of_a_moment_does_not_matter() -> None:
    utc = datetime(2024, 7, 1, 12, tzinfo=UTC)

    assert to_us(utc.astimezone(ZoneInfo("Asia/Kolkata"))) == to_us(utc)
    assert from_us(to_us(utc.astimezone(ZoneInfo("America/New_York")))).tzinfo is UTC


def test_the_repeated_hour_of_a_zone_is_two_moments() -> None:
    first = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Zurich"), fold=0)

    assert to_us(first.replace(fold=1)) - to_us(first) == 3_600_000_000


def test_a_moment_beyond_the_bounds_overflows_nothing() -> None:
    far = timezone(timedelta(hours=14))

    assert to_us(datetime.min.replace(tzinfo=far)) < MIN_US
    assert to_us(datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))) > MAX_US


class SetTime:
    """A system clock that shows what it is told."""

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def time_ns(self) -> int:
        return self.ns


def test_the_sequence_follows_the_system_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = SetTime(5_000_000)
    monkeypatch.setattr(clock_module, "time", shown)
    clock = Clock()

    first = clock.take()
    shown.ns = 9_000_000

    assert (first, clock.take()) == (5000, 9000)


def test_the_sequence_rises_when_the_system_clock_stands_still_or_steps_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = SetTime(5_000_000_000)
    monkeypatch.setattr(clock_module, "time", shown)
    clock = Clock()

    before = [clock.take(), clock.take()]
    shown.ns = 1_000_000_000
    after = [clock.take(), clock.take()]

    assert before + after == [5_000_000, 5_000_001, 5_000_002, 5_000_003]


def test_a_batch_reserves_all_its_values() -> None:
    clock = Clock()

    first = clock.take(1_000_000)

    assert clock.take() >= first + 1_000_000


def test_many_threads_never_get_the_same_value() -> None:
    clock = Clock()

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(lambda: [clock.take(3) for _ in range(500)]) for _ in range(8)]
        runs = [future.result() for future in futures]

    assert all(run == sorted(run) for run in runs)
    taken = sorted(value for run in runs for value in run)
    assert all(later - earlier >= 3 for earlier, later in pairwise(taken))
