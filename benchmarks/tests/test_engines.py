"""What the embedded engine must do; ``python -m threadkeep_bench.engines`` compares it with the other one."""

import subprocess
import sys

from threadkeep_bench.engines import FACTS, answers


def test_sqlite3_answers_every_question_as_an_adapter_needs_it() -> None:
    found = answers("sqlite3")

    bad = [fact.name for fact, answer in zip(FACTS, found, strict=True) if not answer.good]
    assert bad == [
        "the lock of a closed connection with a live cursor is"
    ]  # so the adapter's driver keeps none


_WITHOUT = """
import runpy, sys
sys.modules["libsql"] = None
sys.argv = ["engines"]
runpy.run_module("threadkeep_bench.engines", run_name="__main__")
"""


def test_without_the_other_engine_it_says_how_to_run_it() -> None:
    found = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=False)

    assert found.returncode == 2
    assert "uv run --with libsql" in found.stderr
