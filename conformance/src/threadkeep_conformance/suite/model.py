"""The model: random calls have the results that the reference adapter's have."""

from __future__ import annotations

import asyncio

import pytest

from ..cases import case
from .base import AdapterSuite

__all__ = ["TestModel"]


class TestModel(AdapterSuite):
    """A state machine of random calls, hostile strings, ties, extreme numbers and a clock that jumps back."""

    @case(
        "model.random_calls",
        "3.validate",
        "4.exact",
        "4.shared",
        "4.5.seq",
        "4.5.total",
        "5.3.writes",
        "5.4.typed",
    )
    async def test_random_calls_have_the_models_results(
        self, threadkeep_url: str, request: pytest.FixtureRequest
    ) -> None:
        """Whatever is called on two stores, results and errors are those of the reference adapter."""
        from ..model import compare  # Hypothesis is slow to import, and its strategies to build

        examples: int | None = request.config.getoption("threadkeep_examples")
        seed: int | None = request.config.getoption("threadkeep_seed")
        await asyncio.to_thread(compare, threadkeep_url, seed=seed or 0, examples=examples)
