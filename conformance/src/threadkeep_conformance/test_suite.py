"""The whole suite, for ``pytest --threadkeep-url=URL --pyargs threadkeep_conformance``."""

import pytest

from .suite import *  # noqa: F403  (pytest collects the suite's classes)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Say what is missing, once, rather than that every case lacks a fixture."""
    if not metafunc.config.getoption("threadkeep_url"):
        raise pytest.UsageError("which database? give --threadkeep-url=URL")
