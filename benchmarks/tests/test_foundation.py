"""``python -m threadkeep_bench.foundation``, on small threads."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from threadkeep_bench.foundation import main
from threadkeep_bench.processes import run_module
from threadkeep_bench.result import read


def test_a_run_measures_all_of_it_and_leaves_no_files(tmp_path: Path) -> None:
    output, folder = tmp_path / "result.json", tmp_path / "databases"
    folder.mkdir()
    arguments = ["--messages", "1k,2k", "--rounds", "3", "--json", str(output), "--dir", str(folder)]

    printed = CliRunner().invoke(main, arguments, catch_exceptions=False)

    result = read(output)
    operations = ("append_one", "last_20", "filtered_page_0.1%", "cursor_page")
    assert printed.exit_code == 0
    assert [case.name for case in result.cases] == [
        *[f"{operation}/{size}" for size in ("1k", "2k") for operation in operations],
        "append_one/metadata_index",
    ]
    assert set(result.cases[0].figures) == {"threadkeep", "sync", "floor", "floor without hop"}
    assert set(result.cases[-1].ratios) == {"all", "some"}
    assert [target.name for target in result.targets] == [
        *[f"{operation}/{size} to the floor" for size in ("1k", "2k") for operation in operations],
        *[f"{operation} growth 1k to 2k" for operation in operations],
        "import of the floor's bulk insert",
        *["import/1k peak", "import/2k peak", "export/2k peak"],
    ]
    costs = [result.figures[f"index/{name} bytes_per_message"] for name in ("none", "some", "all")]
    assert costs == sorted(costs)
    assert all(target.name in printed.stdout for target in result.targets)
    assert list(folder.iterdir()) == []


def test_a_process_that_fails_is_an_error_with_what_it_printed() -> None:
    with pytest.raises(RuntimeError, match="nowhere"):
        run_module("threadkeep", "import", "libsql:unused.db", "nowhere.jsonl")
