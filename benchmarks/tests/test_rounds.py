"""Interleaved measuring."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from threadkeep_bench.rounds import Case, Measured, figures_of, measure, quantile


class _Log:
    """Contestants that write down their calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def contestant(self, name: str) -> Callable[[int], Awaitable[None]]:
        async def call(number: int) -> None:
            self.calls.append((name, number))

        return call

    def blocking(self, name: str) -> Callable[[int], None]:
        def call(number: int) -> None:
            self.calls.append((name, number))

        return call


def _measure(*cases: Case, rounds: int = 3) -> list[Measured]:
    with asyncio.Runner() as runner:
        return measure(cases, runner, rounds=rounds)


def test_contestants_take_turns_after_every_block() -> None:
    log = _Log()
    case = Case(
        name="x",
        contestants={"floor": log.contestant("floor"), "own": log.contestant("own")},
        calls=4,
        block=2,
    )

    _measure(case)

    warm_up = [name for name, _ in log.calls[:8]]
    assert warm_up in (["floor", "floor", "own", "own"] * 2, ["own", "own", "floor", "floor"] * 2)


def test_each_contestant_begins_some_rounds() -> None:
    log = _Log()
    contestants = {name: log.contestant(name) for name in ("floor", "own")}

    _measure(Case(name="x", contestants=contestants, calls=1), rounds=20)

    assert {name for name, _ in log.calls[::2]} == {"floor", "own"}


@pytest.mark.parametrize("kind", ["awaited", "blocking"])
def test_what_a_call_did_is_undone_outside_of_its_time(kind: str) -> None:
    clock = 0
    undone: list[tuple[str, int]] = []

    async def undo(name: str, number: int) -> None:
        nonlocal clock
        clock += 1_000_000
        undone.append((name, number))

    def blocking(_: int) -> None:
        nonlocal clock
        clock += 1000

    async def awaited(number: int) -> None:
        blocking(number)

    call = {"awaited": awaited, "blocking": blocking}[kind]
    case = Case(name="x", contestants={"floor": call}, calls=2, undo=undo)
    with asyncio.Runner() as runner:
        [measured] = measure([case], runner, rounds=3, now=lambda: clock)

    assert measured.figures["floor"].p99_us == 1
    assert undone == [("floor", number) for number in range(8)]


def test_coroutine_functions_and_plain_functions_get_the_same_numbers() -> None:
    log = _Log()
    case = Case(
        name="x", contestants={"floor": log.contestant("floor"), "sync": log.blocking("sync")}, calls=3
    )

    _measure(case)

    numbers = {name: [number for called, number in log.calls if called == name] for name in ("floor", "sync")}
    assert numbers["floor"] == numbers["sync"] == list(range(12))  # a warm-up and three rounds


def test_every_case_has_its_calls_in_every_round_and_the_first_round_is_thrown_away() -> None:
    log = _Log()
    cases = [Case(name=name, contestants={"floor": log.contestant(name)}, calls=5) for name in "ab"]

    measured = _measure(*cases, rounds=4)

    assert Counter(name for name, _ in log.calls) == {"a": 25, "b": 25}
    assert [(case.name, case.figures["floor"].calls) for case in measured] == [("a", 20), ("b", 20)]


def test_a_ratio_is_to_the_base_of_the_same_round() -> None:
    clock = 0
    slowness = [1, 1, 3, 1, 9]  # of the machine: a warm-up and four rounds

    def takes(ns: int) -> Callable[[int], None]:
        def call(number: int) -> None:
            nonlocal clock
            clock += ns * slowness[number // 2]

        return call

    case = Case(name="x", contestants={"floor": takes(1000), "own": takes(2000)}, calls=2)
    with asyncio.Runner() as runner:
        [measured] = measure([case], runner, rounds=4, now=lambda: clock)

    ratio = measured.ratios["own"]
    assert (ratio.low, ratio.median, ratio.high) == (2, 2, 2)
    assert not measured.noisy
    assert measured.figures["floor"].spread > 1


def test_a_ratio_that_differs_between_rounds_is_called_noisy() -> None:
    clock = 0

    def own(number: int) -> None:
        nonlocal clock
        clock += 1000 + 200 * number

    def floor(_: int) -> None:
        nonlocal clock
        clock += 1000

    with asyncio.Runner() as runner:
        case = Case(name="x", contestants={"floor": floor, "own": own}, calls=1)
        [measured] = measure([case], runner, rounds=4, now=lambda: clock)

    assert measured.noisy


def test_labels_and_who_is_absent_are_passed_on() -> None:
    case = Case(
        name="x",
        contestants={"floor": lambda _: None},
        calls=1,
        labels={"messages": 10},
        absent={"peer": "n/a"},
    )

    [measured] = _measure(case)

    assert (measured.labels, measured.absent) == ({"messages": 10}, {"peer": "n/a"})


def test_without_its_base_a_case_has_no_ratios() -> None:
    [measured] = _measure(Case(name="x", contestants={"own": _Log().contestant("own")}, calls=1))

    assert (measured.ratios, measured.noisy) == ({}, False)


def test_ratios_may_have_another_base() -> None:
    log = _Log()
    contestants = {"all": log.contestant("all"), "none": log.contestant("none")}

    [measured] = _measure(Case(name="x", contestants=contestants, calls=1, base="none"))

    assert list(measured.ratios) == ["all"]


def test_figures_are_quantiles_of_all_calls_in_microseconds() -> None:
    figures = figures_of([[1000 * n for n in range(1, 101)]] * 3)

    assert (figures.calls, figures.p50_us, figures.p95_us, figures.p99_us) == (300, 51, 96, 100)
    assert figures.spread == 0


@pytest.mark.parametrize(("part", "expected"), [(0.0, 1), (0.5, 3), (0.99, 4), (1.0, 4)])
def test_a_quantile_is_one_of_the_values(part: float, expected: int) -> None:
    assert quantile([1, 2, 3, 4], part) == expected
