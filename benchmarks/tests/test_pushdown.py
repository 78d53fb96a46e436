"""``threadkeep bench pushdown``, on small sizes."""

import asyncio
import math
import sqlite3
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from threadkeep_bench.cases import pushdown
from threadkeep_bench.growth import growth
from threadkeep_bench.machine import NAME
from threadkeep_bench.options import counts, in_words
from threadkeep_bench.plugin import bench
from threadkeep_bench.result import read


def _run(folder: Path, *urls: str, sizes: str = "1k,2k") -> Result:
    arguments = ["pushdown", *urls, "--messages", sizes, "--rounds", "3", "--out", str(folder / "out")]
    return CliRunner().invoke(bench, arguments, catch_exceptions=False)


def test_it_measures_every_size_and_share_three_ways_and_writes_the_result(tmp_path: Path) -> None:
    printed = _run(tmp_path, f"libsql://{tmp_path}/a.db")

    result = read(tmp_path / "out/result.json")
    assert printed.exit_code == 0
    assert [case.name for case in result.cases] == [
        f"filtered_page/{share}/{size}/libsql"
        for size in ("1k", "2k")
        for share in ("0.01%", "0.10%", "1.00%", "10.00%", "50.00%")
    ] + [NAME]
    cases = {case.name: case for case in result.cases[:-1]}
    assert all(set(case.figures) == {"pushed down", "floor", "in Python"} for case in cases.values())
    assert all(set(case.ratios) == {"pushed down"} for case in cases.values())
    case = cases["filtered_page/10.00%/2k/libsql"]
    assert case.labels == {"backend": "libsql", "share": 0.1, "messages": 2000}
    assert case.counts["rows_transferred"] == 11  # one more tells whether there is another page
    assert case.counts["rows_transferred_in_python"] == 2000
    assert case.counts["text_transferred"] > 0
    assert case.counts["engine_work"] > 0
    assert case.counts["times_faster_than_python"] > 1


@pytest.mark.asyncio
async def test_a_server_tells_how_many_rows_it_examined(postgres_url: str, tmp_path: Path) -> None:
    await asyncio.to_thread(_run, tmp_path, postgres_url, sizes="1k")

    cases = read(tmp_path / "out/result.json").cases
    case = next(case for case in cases if case.name == "filtered_page/10.00%/1k/postgres")
    assert 10 <= case.counts["rows_examined"] <= 100
    assert set(case.figures) == {"pushed down", "floor", "in Python"}


def test_the_short_form_prints_a_small_table_and_nothing_else(tmp_path: Path) -> None:
    printed = CliRunner().invoke(
        bench, ["pushdown", f"libsql://{tmp_path}/a.db", "--brief"], catch_exceptions=False
    )

    lines = [line.split() for line in printed.stdout.splitlines() if line.strip()]
    assert " ".join(lines[0]) == "messages that match in the database by hand in Python times faster"
    assert [line[0] for line in lines[2:]] == ["0.01%", "0.10%", "1.00%", "10.00%", "50.00%"]
    assert max(map(len, printed.stdout.splitlines())) <= 80


def test_without_a_database_a_temporary_file_is_measured(tmp_path: Path) -> None:
    _run(tmp_path, sizes="1k")

    assert read(tmp_path / "out/result.json").cases[0].labels["backend"] == "libsql"


def test_it_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    _run(tmp_path, f"libsql://{tmp_path}/a.db")

    tables = ("message", "position", "thread", "resource")
    with sqlite3.connect(tmp_path / "a.db") as database:
        left = [
            database.execute(f"SELECT count(*) FROM threadkeep_{table}").fetchone()[0] for table in tables
        ]
    database.close()
    assert left == [0, 0, 0, 0]


def test_several_databases_are_measured_side_by_side_and_one_may_have_no_floor(tmp_path: Path) -> None:
    urls = [f"libsql://{tmp_path}/a.db", f"libsql://{tmp_path}/b.db", "memory:"]
    printed = _run(tmp_path, *urls, sizes="1k")

    names = {
        case.labels["backend"]: set(case.figures) for case in read(tmp_path / "out/result.json").cases[:-1]
    }
    assert names == {
        "libsql": {"pushed down", "floor", "in Python"},
        "libsql#2": {"pushed down", "floor", "in Python"},
        "memory": {"pushed down", "in Python"},
    }
    assert "n/a" in printed.stdout


def test_growth_is_the_exponent_of_a_power_law() -> None:
    assert growth([(10, 5.0), (100, 5.0), (1000, 5.0)]) == pytest.approx(0)
    assert growth([(10, 3.0), (1000, 300.0)]) == pytest.approx(1)
    assert math.isnan(growth([(10, 3.0)]))


def test_the_other_threads_hold_a_quarter_with_a_long_tail() -> None:
    lengths = pushdown.long_tail(100_000)

    assert sum(lengths) == pytest.approx(25_000, rel=0.01)
    assert lengths[0] == 2 * lengths[1] == pytest.approx(30 * lengths[-1], rel=0.01)


@pytest.mark.parametrize(
    ("text", "found"), [("1m,10k", [10_000, 1_000_000]), ("2K, 2000,1500", [1_500, 2_000])]
)
def test_sizes_are_read_smallest_first_and_each_once(text: str, found: list[int]) -> None:
    context = click.Context(bench)

    assert counts(context, click.Option(["--messages"]), text) == found


@pytest.mark.parametrize("text", ["", "ten", "999", "1g", "-5k", "10k,,1m"])
def test_sizes_that_are_none_are_refused(text: str) -> None:
    result = CliRunner().invoke(bench, ["pushdown", "memory:", "--messages", text])

    assert result.exit_code == 2
    assert "at least 1,000" in result.stderr


def test_sizes_are_written_as_they_are_read() -> None:
    assert [in_words(count) for count in (1_500, 10_000, 1_000_000)] == ["1500", "10k", "1m"]
