"""The backend keeps the contract."""

import pytest

from threadkeep_conformance.suite import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]  (pytest collects the classes)


@pytest.fixture
def threadkeep_url() -> str:
    return "jsonfile:///{tmp}/{namespace}"
