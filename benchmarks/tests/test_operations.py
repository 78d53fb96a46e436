"""``threadkeep bench operations``, on small sizes."""

import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from threadkeep_bench.machine import NAME
from threadkeep_bench.plugin import bench
from threadkeep_bench.result import read

_LIGHT = (
    *("append_1", "append_100", "merge_by_1", "merge_by_8", "merge_by_32", "last_20"),
    *("page_0_by_offset", "page_500_by_offset", "page_1_by_cursor", "page_500_by_cursor"),
    *("windows_of_4", "list_threads", "list_threads_filtered", "recall_memories"),
)
_QUICK = (*_LIGHT, "clone_2000", "import_2000")


def test_every_operation_is_measured_next_to_hand_written_code(url: str, tmp_path: Path) -> None:
    arguments = ["operations", url, "--quick", "--out", str(tmp_path / "out")]
    printed = CliRunner().invoke(bench, arguments, catch_exceptions=False)

    result = read(tmp_path / "out/result.json")
    backend = "libsql" if url.startswith("libsql") else "postgres"
    assert printed.exit_code == 0
    assert [case.name for case in result.cases] == [*[f"{name}/{backend}" for name in _QUICK], NAME]
    assert all(set(case.ratios) == {"threadkeep"} for case in result.cases[:-1])
    assert {target.name for target in result.targets} == {
        *[f"{name}/{backend} to the floor" for name in _QUICK[:-1]],
        f"import_2000/{backend} rate of the floor's",
        f"page_500_by_cursor/{backend} to page 0",
    }
    assert result.cases[-2].counts["threadkeep messages_per_s"] > 0


def test_it_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    CliRunner().invoke(bench, ["operations", f"libsql://{tmp_path}/a.db", "--quick"], catch_exceptions=False)

    tables = ("message", "position", "thread", "thread_position", "resource", "memory")
    with sqlite3.connect(tmp_path / "a.db") as database:
        left = [
            database.execute(f"SELECT count(*) FROM threadkeep_{table}").fetchone()[0] for table in tables
        ]
    database.close()
    assert left == [0] * len(tables)


def test_a_backend_without_hand_written_code_is_measured_alone(tmp_path: Path) -> None:
    arguments = ["operations", "memory", "--quick", "--out", str(tmp_path)]
    CliRunner().invoke(bench, arguments, catch_exceptions=False)

    result = read(tmp_path / "result.json")
    assert [case.name for case in result.cases] == [
        *[f"{name}/memory" for name in _LIGHT],
        "clone_2000/memory",
        NAME,
    ]
    assert all(not case.ratios for case in result.cases)


@pytest.mark.parametrize("length", ["10k", "20k,30k"])
def test_a_thread_without_a_page_500_is_refused(length: str) -> None:
    result = CliRunner().invoke(bench, ["operations", "memory", "--messages", length])

    assert result.exit_code == 2
    assert "page 500" in result.stderr


def test_a_word_that_is_no_backend_is_refused() -> None:
    result = CliRunner().invoke(bench, ["operations", "oracle"])

    assert result.exit_code != 0
    assert "oracle" in str(result.exception)
