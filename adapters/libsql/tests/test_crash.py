"""A writer killed in the middle of its work: what it acknowledged is there, and nothing is there in part."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import threadkeep

from .crashing_writer import BATCH
from .positions import assert_consistent

PROGRAM = Path(__file__).with_name("crashing_writer.py")

Acknowledged = dict[str, list[str]]


def run_until_killed(url: str, first: int, lines: int, delay_s: float) -> Acknowledged:
    """Let the writer acknowledge some writes, kill it in the next, and return what it promised."""
    with subprocess.Popen(
        [sys.executable, PROGRAM, url, str(first)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(lines)]
        time.sleep(delay_s)
        writer.kill()
        said += writer.stdout.readlines()
    found: Acknowledged = {}
    for line in said:
        if line.endswith("\n"):
            kind, _, name = line.strip().partition(" ")
            found.setdefault(kind, []).append(name)
    return found


@pytest.mark.asyncio
@pytest.mark.parametrize(("durability", "times"), [("full", 20), ("relaxed", 5)])
async def test_a_killed_writer_loses_nothing_acknowledged_and_leaves_nothing_half_done(
    tmp_path: Path, durability: str, times: int
) -> None:
    path = tmp_path / "a.db"
    url = f"libsql://{path}?durability={durability}"
    rng = random.Random(durability)
    promised: Acknowledged = {"batch": [], "update": [], "merge": [], "clone": [], "delete": []}
    first = 0
    for _ in range(times):
        delay_s = rng.uniform(0, 0.006)  # so that the end falls anywhere in a write of some milliseconds
        for kind, names in run_until_killed(url, first, rng.randrange(1, 12), delay_s).items():
            promised[kind] += names
        first = max([first, *[int(name) for name in promised["batch"]]]) + 2

        await check(url, promised)
        assert_consistent(path)

    assert len(promised["batch"]) >= times


async def check(url: str, promised: Acknowledged) -> None:
    async with threadkeep.open(url) as store:
        messages = [
            message
            for thread in ("even", "odd")
            for message in (await store.list_messages(thread, per_page=None)).items
        ]
        sizes = Counter(message.metadata["batch"] for message in messages)
        assert set(sizes.values()) <= {BATCH}
        assert {int(name) for name in promised["batch"]} <= set(sizes)

        old = Counter(message.metadata["batch"] for message in messages if message.metadata["state"] == "old")
        assert set(old.values()) <= {5}
        assert {int(name) for name in promised["update"]} <= set(old)

        resource = await store.get_resource("ada")
        merged = json.loads((resource and resource.working_memory) or '{"batches": {}}')["batches"]
        assert set(promised["merge"]) <= set(merged)

        left = {thread.id for thread in (await store.list_threads(per_page=None)).items}
        assert left.isdisjoint(promised["delete"])
        for copy in left - {"even", "odd"}:
            assert len((await store.list_messages(copy, per_page=None)).items) == 30
