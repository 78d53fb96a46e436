"""The whole contract, on this adapter."""

import pytest

# The kit is made for this: pytest collects the suite's classes.
from threadkeep_conformance.suite import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]


@pytest.fixture
def threadkeep_url() -> str:
    return "libsql:///{tmp}/memory.db"
