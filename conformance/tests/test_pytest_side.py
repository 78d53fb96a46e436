"""The suite as pytest runs it: from the command line, and inside an adapter's own tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
INSTALLED = ("--pyargs", "threadkeep_conformance")
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "-q")

OWN_TESTS = """
import pytest
from threadkeep_conformance.suite import *
from threadkeep_conformance.waivers import Waiver

@pytest.fixture
def threadkeep_url():
    return "memory:"
"""

BROKEN = (
    OWN_TESTS.replace("memory:", "toy:{namespace}")
    + """
from toys import installed
from threadkeep.reference import ReferenceAdapter

class Forgetful(ReferenceAdapter):
    async def get_thread(self, thread_id):
        return None

shown = installed(Forgetful)
shown.__enter__()
"""
)


def run_pytest(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit code and output of pytest, run in a folder."""
    dropped = {"PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    run = subprocess.run(
        [*PYTEST, *arguments],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return run.returncode, run.stdout + run.stderr


def counted(output: str, outcome: str) -> int:
    """How many of an outcome pytest's summary counts."""
    found = re.findall(rf"(\d+) {outcome}\b", output)
    return int(found[-1]) if found else 0


def test_the_installed_suite_runs_for_every_url_without_a_file(tmp_path: Path) -> None:
    urls = ("--threadkeep-url=memory:", "--threadkeep-url=memory:again-{namespace}")
    code, output = run_pytest(tmp_path, *urls, "--threadkeep-area=times", *INSTALLED, "-vv")

    assert code == 0, output
    assert output.count("test_naive_times_are_refused[memory]") == 1
    assert output.count("test_naive_times_are_refused[memory-2]") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_a_url_the_suite_asks_for_one(tmp_path: Path) -> None:
    code, output = run_pytest(tmp_path, *INSTALLED)

    assert code != 0
    assert "give --threadkeep-url=URL" in output


def test_an_adapters_own_tests_run_with_their_fixture_or_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(OWN_TESTS)
    code, output = run_pytest(tmp_path, "--threadkeep-area=times", "test_mine.py")
    assert code == 0, output
    assert counted(output, "passed") == 9

    code, output = run_pytest(
        tmp_path, "--threadkeep-area=times", "--threadkeep-url=memory:", "-vv", "test_mine.py"
    )
    assert code == 0, output
    assert "test_naive_times_are_refused[memory]" in output


def test_a_removed_or_overridden_case_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_removed.py").write_text(OWN_TESTS + "\ndel TestTimes\n")
    (tmp_path / "test_overridden.py").write_text(
        OWN_TESTS
        + "\nclass TestTimes(TestTimes):\n    async def test_naive_times_are_refused(self): pass\n"
        + "\nclass TestMine(TestRecall):\n    extra = 1\n"
    )
    code, output = run_pytest(tmp_path, "--threadkeep-area=archive")

    assert code == 1
    assert "the class TestTimes was removed" in output
    assert "TestTimes.test_naive_times_are_refused was overridden" in output
    assert counted(output, "failed") == 2, output


def test_a_waiver_turns_a_failure_into_waived_and_a_pass_into_a_failure(tmp_path: Path) -> None:
    waivers = """
THREADKEEP_WAIVERS = [
    Waiver("threads.get.absent", "is fine in truth", "https://example.org/1"),
    Waiver("threads.create.round_trip", "loses threads", "https://example.org/2"),
]
"""
    (tmp_path / "test_mine.py").write_text(BROKEN + waivers)
    code, output = run_pytest(
        tmp_path, "--threadkeep-area=threads.get.absent", "--threadkeep-area=threads.create.round_trip"
    )

    assert code == 1
    assert (counted(output, "waived"), counted(output, "failed")) == (1, 1)
    assert "XPASS(strict)" in output


def test_a_waiver_of_no_case_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "waivers.toml").write_text(
        '[[waiver]]\ncase = "no.such_case"\nreason = "r"\nlink = "https://x"\n'
    )
    code, output = run_pytest(
        tmp_path, "--threadkeep-url=memory:", "--threadkeep-waivers=waivers.toml", *INSTALLED
    )

    assert code == 4
    assert "there is no case 'no.such_case' to waive" in output


def test_nothing_of_the_kit_shows_where_it_is_only_installed(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n"
        "def test_the_kit_is_not_even_imported():\n"
        "    found = {name for name in sys.modules if name.startswith('threadkeep')}\n"
        "    assert found == {'threadkeep_conformance', 'threadkeep_conformance.pytest_plugin'}\n"
    )
    code, output = run_pytest(tmp_path, "test_other.py")
    assert code == 0, output

    _, output = run_pytest(tmp_path, "--fixtures", "test_other.py")
    assert "threadkeep" not in output
