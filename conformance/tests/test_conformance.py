"""The reference adapter and the embedded backend keep the contract: the suite, once for each."""

import pytest

from threadkeep_conformance.suite import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]  (pytest collects the classes)


@pytest.fixture(params=["memory:", "libsql:///{tmp}/memory.db"], ids=["memory", "libsql"])
def threadkeep_url(request: pytest.FixtureRequest) -> str:
    return request.param
