"""The whole contract, on this adapter."""

import pytest

from threadkeep_conformance.suite import *  # noqa: F403  (pytest collects the suite's classes)


@pytest.fixture
def threadkeep_url() -> str:
    return "libsql:///{tmp}/memory.db"
