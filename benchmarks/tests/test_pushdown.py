"""``threadkeep bench pushdown``, on small sizes."""

import math
import sqlite3
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from threadkeep_bench.cases import pushdown
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
    ]
    assert all(set(case.figures) == {"pushed down", "floor", "in Python"} for case in result.cases)
    assert all(set(case.ratios) == {"pushed down"} for case in result.cases)
    assert result.figures["filtered_page/10.00%/2k/libsql rows_transferred_pushed_down"] == 21
    assert result.figures["filtered_page/10.00%/2k/libsql rows_transferred_in_python"] == 2000
    assert result.figures["filtered_page/10.00%/2k/libsql times_faster_than_python"] > 1


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
        case.name.rpartition("/")[2]: set(case.figures) for case in read(tmp_path / "out/result.json").cases
    }
    assert names == {
        "libsql": {"pushed down", "floor", "in Python"},
        "libsql#2": {"pushed down", "floor", "in Python"},
        "memory": {"pushed down", "in Python"},
    }
    assert "n/a" in printed.stdout


def test_growth_is_the_exponent_of_a_power_law() -> None:
    assert pushdown.growth([(10, 5.0), (100, 5.0), (1000, 5.0)]) == pytest.approx(0)
    assert pushdown.growth([(10, 3.0), (1000, 300.0)]) == pytest.approx(1)
    assert math.isnan(pushdown.growth([(10, 3.0)]))


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
