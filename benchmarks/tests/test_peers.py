"""``threadkeep bench peers``, without the peers themselves: they are installed by hand, and are large."""

import copy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from threadkeep_bench.cases import peers
from threadkeep_bench.cases.peers import NOT_OFFERED, OPERATIONS, Scene, fault_of
from threadkeep_bench.machine import NAME
from threadkeep_bench.plugin import bench
from threadkeep_bench.result import read
from threadkeep_bench.rounds import Measured
from threadkeep_bench.workers import Contestant, contestants, home

_OURS = ("threadkeep", "threadkeep, no index")


@pytest.mark.parametrize("backend", ["libsql", "postgres"])
def test_threadkeep_takes_part_by_the_rules_of_all(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    arguments = ["peers", "--backend", backend, "--quick", "--out", str(tmp_path)]
    if backend == "postgres":
        arguments += ["--url", request.getfixturevalue("postgres_server")]
    printed = CliRunner().invoke(bench, [*arguments, "--only", _OURS[1]], catch_exceptions=False)

    result = read(tmp_path / "result.json")
    assert printed.exit_code == 0
    assert {case.name for case in result.cases} == {*(f"{name}/{backend}" for name in OPERATIONS), NAME}
    for case in result.cases[:-1]:
        assert tuple(case.figures) == _OURS
        assert tuple(case.ratios) == _OURS[1:]
    assert result.settings[f"{_OURS[1]}: metadata_index"] == "none"


@pytest.fixture(scope="module")
def with_a_liar() -> dict[str, Measured]:
    """What comes of a contestant that does wrong."""
    liar = Contestant(
        name="liar", backend="libsql", code="toys:Liar", peer=False, folder=Path(__file__).parent
    )
    ours = contestants("libsql")[0]
    cases, *_ = peers.run("libsql", [ours, liar], home(), 1000, url=None, rounds=3, heavy_rounds=3)
    return {case.name.partition("/")[0]: case for case in cases}


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ("page_by_cursor", NOT_OFFERED),
        ("last_20", "returns other rows: 20 of which 20 of 20 are missing"),
        ("list_threads", "returns the rows in another order"),
        ("filtered_page", "failed: liar: LookupError: no such filter"),
    ],
)
def test_who_does_not_do_the_same_work_is_not_timed(
    with_a_liar: dict[str, Measured], operation: str, reason: str
) -> None:
    case = with_a_liar[operation]

    assert case.absent == {"liar": reason}
    assert tuple(case.figures) == ("threadkeep",)
    assert case.ratios == {}


def test_who_does_it_is_timed_all_the_same(with_a_liar: dict[str, Measured]) -> None:
    case = with_a_liar["windows"]

    assert case.absent == {}
    assert set(case.figures) == {"threadkeep", "liar"}


def test_both_orders_are_right_and_ids_of_what_was_written_do_not_count() -> None:
    rows: list[list[Any]] = [["a", "x", {"n": 1.0}], ["b", "y", {}]]

    assert fault_of("last_20", rows[::-1], rows) is None
    assert fault_of("last_20", [["a", "x", {"n": 1}], rows[1]], rows) is None
    assert fault_of("last_20", [["a", "x", {"n": True}], rows[1]], rows) is not None
    assert fault_of("clone", [["1", *rows[0][1:]], ["2", *rows[1][1:]]], rows) is None
    assert fault_of("last_20", [["1", *rows[0][1:]], rows[1]], rows) is not None


def test_what_was_appended_must_be_at_an_end() -> None:
    new: list[list[Any]] = [["?", "new", {}]]
    stored: list[list[Any]] = [["1", "old", {}], ["2", "older", {}]]

    assert fault_of("append_1", [["3", "new", {}], *stored], new) is None
    assert fault_of("append_1", [*stored, ["3", "new", {}]], new) is None
    assert fault_of("append_1", [stored[0], ["3", "new", {}], stored[1]], new) is not None
    assert fault_of("append_1", [], new) is not None


def test_who_can_only_count_says_how_many_are_too_many() -> None:
    assert fault_of("append_100", [0], [["?", "new", {}]]) is None
    assert fault_of("append_100", [1], [["?", "new", {}]]) is not None


def test_a_scene_has_distinct_times_and_answers_to_every_operation() -> None:
    scene = Scene.of(1000)

    times = [message["created_at"] for message in scene.messages]
    assert times == sorted(set(times))
    for operation in OPERATIONS:
        assert scene.expected(operation, 7) == copy.deepcopy(scene.expected(operation, 7)) != []
    assert len(scene.expected("windows", 0)) == 20
    assert len(scene.expected("filtered_page", 0)) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "Redis"], "nobody is called 'Redis'"),
        (["--backend", "mongo"], "not measured on mongo"),
        (["--messages", "1k,2k"], "one length"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(bench, ["peers", *arguments])

    assert result.exit_code != 0
    assert message in result.output
