"""The model: random calls on an adapter and on the reference adapter must have the same results, errors too.

A Hypothesis state machine draws the calls (:mod:`threadkeep_conformance.calls`). Each side has two stores on
one database and its own clock, whose time is the same for both and jumps, also back; so both assign the same
times and ``seq``. Message ids that a clone makes differ, and are compared by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from threadkeep import Actor, NewMemory, NewMessage

from .calls import CALLS, Call
from .comparison import CONTINUE, Comparison, Difference, Step, shortened
from .suite.samples import NOON

__all__ = ["EXAMPLES", "compare"]

EXAMPLES = 25
"""How many runs are drawn unless more are asked for."""

_STEPS = 40
_JUMPS_US = (1, 1_000_000, -3_600_000_000)


def compare(template: str, *, seed: int, examples: int | None = None) -> None:
    """Compare an adapter with the reference adapter, on many fresh databases. Blocks; needs no event loop.

    Args:
        template: The URL that databases are made from.
        seed: The same one draws the same calls.
        examples: How many runs; None for few.

    Raises:
        AssertionError: They differ. The message is a program that shows it, as short as could be found.
    """
    with asyncio.Runner() as runner:
        found: list[Difference] = []

        class Machine(_Machine):
            def __init__(self) -> None:
                super().__init__(Comparison(template, runner), found.append)

        limits = settings(
            max_examples=examples or EXAMPLES,
            stateful_step_count=_STEPS,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            phases=(Phase.generate,),  # ``shortened`` knows the calls, and is done in a tenth of the time
            suppress_health_check=list[HealthCheck](HealthCheck),  # pyright: ignore[reportArgumentType]  (its metaclass is not generic)
            verbosity=Verbosity.quiet,  # the error has the program; Hypothesis would only repeat it
            print_blob=False,
        )
        try:
            run_state_machine_as_test(hypothesis.seed(seed)(Machine), settings=limits)
        except (Difference, Flaky):
            if not found:
                raise
        if found:
            raise shortened(template, runner, found[0])


class _Machine(RuleBasedStateMachine):
    """Draws calls and compares what both sides make of them."""

    def __init__(self, run: Comparison, note: Callable[[Difference], None]) -> None:
        super().__init__()
        self._run, self._note = run, note
        self._differs = False
        self._run.__enter__()

    @initialize()
    def begin(self) -> None:
        """Begin with some of everything, so that most calls meet something."""
        metadata = {"a": 1, "kind": "x"}
        self._do(
            Call(0, "create_thread", ("user-1",), {"thread_id": "t1", "title": "title", "metadata": metadata})
        )
        self._do(Call(0, "create_thread", ("user-1",), {"thread_id": "t2"}))
        tied = [
            NewMessage("t1", "user", name, id=name, metadata={"a": 1}, created_at=NOON)
            for name in ("m3", "m2")
        ]
        self._do(
            Call(
                0, "save_messages", ([*tied, NewMessage("t2", "user", "m1", id="m1", metadata={"a": True})],)
            )
        )
        self._do(
            Call(0, "update_resource", ("user-1",), {"working_memory": '{"a": 1}', "metadata": metadata})
        )
        self._do(Call(0, "add_memories", (Actor("user", "user-1"), [NewMemory("likes tea", 1)])))

    @rule(call=CALLS["update_thread"])
    def update_thread(self, call: Call) -> None:
        """Change a thread."""
        self._do(call)

    @rule(call=CALLS["make_threads"])
    def make_threads(self, call: Call) -> None:
        """Create, ensure or save a thread."""
        self._do(call)

    @rule(call=CALLS["change_threads"])
    def change_threads(self, call: Call) -> None:
        """Transfer, clear or delete a thread."""
        self._do(call)

    @rule(call=CALLS["clone"])
    def clone(self, call: Call) -> None:
        """Clone a thread."""
        self._do(call)

    @rule(call=CALLS["read_threads"])
    def read_threads(self, call: Call) -> None:
        """Read threads."""
        self._do(call)

    @rule(call=CALLS["save_messages"])
    def save_messages(self, call: Call) -> None:
        """Save new messages."""
        self._do(call)

    @rule(call=CALLS["save_messages"])
    def save_more_messages(self, call: Call) -> None:
        """The same, so that it comes more often than others."""
        self._do(call)

    @rule(index=st.integers(0, 20), store=st.integers(0, 1))
    def save_stored_message(self, index: int, store: int) -> None:
        """Save a message again that a call has returned."""
        seen = self._run.seen
        if seen:
            self._do(Call(store, "save_messages", ([seen[index % len(seen)]],)))

    @rule(call=CALLS["change_messages"])
    def change_messages(self, call: Call) -> None:
        """Update or delete messages."""
        self._do(call)

    @rule(call=CALLS["read_messages"] | CALLS["list_messages"])
    def read_messages(self, call: Call) -> None:
        """Read messages."""
        self._do(call)

    @rule(call=CALLS["list_messages"])
    def list_messages(self, call: Call) -> None:
        """List messages."""
        self._do(call)

    @rule(store=st.integers(0, 1))
    def next_page(self, store: int) -> None:
        """Go on with the last list that had more, whatever has happened since."""
        walk = self._run.walk
        if walk is not None:
            kwargs = {name: value for name, value in walk.kwargs.items() if name != "page"}
            self._do(Call(store, walk.method, walk.args, {**kwargs, "cursor": CONTINUE}))

    @rule(call=CALLS["resources"])
    def resources(self, call: Call) -> None:
        """Save, change, read or delete resources."""
        self._do(call)

    @rule(call=CALLS["merge"])
    def merge(self, call: Call) -> None:
        """Merge working memory."""
        self._do(call)

    @rule(call=CALLS["memories"])
    def memories(self, call: Call) -> None:
        """Add, save, pin or delete archive memories."""
        self._do(call)

    @rule(call=CALLS["read_memories"])
    def read_memories(self, call: Call) -> None:
        """Recall and list archive memories."""
        self._do(call)

    @rule(jump=st.sampled_from(_JUMPS_US))
    def let_time_pass(self, jump: int) -> None:
        """Set the system's clock forward or back."""
        self._do(jump)

    def teardown(self) -> None:
        """Compare all that is stored, then remove the databases."""
        try:
            if not self._differs:
                self._noting(self._run.finish)
        finally:
            self._run.__exit__(None, None, None)

    def _do(self, step: Step) -> None:
        self._noting(partial(self._run.do, step))

    def _noting(self, compare: Callable[[], None]) -> None:
        try:
            compare()
        except Difference as difference:
            self._differs = True
            self._note(difference)
            raise
