"""Adapters with one planted fault each, and the case of the kit that catches it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from threadkeep import AdapterSpec, StorageAdapter, ThreadkeepError
from threadkeep_conformance.cases import CASES
from threadkeep_libsql.adapter import LibsqlAdapter
from threadkeep_libsql.plugin import SPEC as LIBSQL

from ..toys import ONE_PROCESS, installed, plugged, run_case
from . import archive, declaring, reading, walking, writing

CAUGHT: dict[type[StorageAdapter], str] = {
    # --- filters ---
    reading.TrueIsOne: "messages.filter.bool_is_not_int",
    reading.TextIsNumber: "messages.filter.str_is_not_number",
    reading.IntIsNoFloat: "messages.filter.one_number",
    reading.NumbersAreFloats: "messages.filter.neighbours_of_2_to_the_53",
    reading.ListMatchesElement: "messages.filter.list_is_no_scalar",
    reading.FoldsCase: "messages.filter.strings_by_code_point",
    reading.ComparesBeginnings: "messages.filter.long_strings",
    reading.NullMatchesMissing: "messages.filter.null",
    reading.LooksInside: "messages.filter.nested_keys",
    reading.MissingIsNotEqual: "messages.filter.not_equal",
    reading.RangesAsText: "messages.filter.numbers_are_no_text",
    reading.RangesByCollation: "messages.filter.ranges_of_strings",
    reading.GteIsGt: "messages.filter.ranges_of_numbers",
    reading.ExistsSkipsNull: "messages.filter.exists_and_missing",
    reading.IgnoresUnknownKeys: "messages.filter.unknown_key",
    reading.AnyCondition: "messages.filter.and",
    reading.FiltersAfterLimit: "messages.filter.before_the_page",
    reading.FiltersThreadsAfterLimit: "threads.filter.before_the_page",
    # --- order and pages ---
    reading.LosesTies: "messages.order.ties_keep_batch_order",
    reading.OrdersByArrival: "messages.order.time_before_seq",
    reading.NewestPageComesOldestFirst: "messages.order.last_ten",
    reading.AlwaysOldestFirst: "messages.order.last_ten",
    reading.CursorRepeatsItsRow: "messages.cursor.walk",
    reading.CursorSkipsTies: "messages.cursor.walk",
    reading.OffsetIsOneTooLarge: "messages.page.counts_from_zero",
    reading.LimitIsOneTooSmall: "messages.page.has_more",
    reading.LastMomentIsLeftOut: "messages.dates.inclusive",
    reading.ThreadsOrResource: "messages.scope.both_hold",
    reading.ThreadTiesAsTheyLie: "threads.list.ties_by_id",
    reading.ThreadsByCreationOnly: "threads.list.by_updated_at",
    reading.ThreadsOldestFirst: "threads.list.newest_first",
    reading.GetsInAskedOrder: "messages.get.unknown_ids",
    reading.GetsOthersMessages: "tenancy.get_messages",
    walking.IgnoresCursors: "messages.cursor.walk",
    walking.UpsertMovesToTheEnd: "messages.cursor.while_updating",
    # --- totals ---
    reading.CountsBeforeFiltering: "messages.page.total_filtered",
    reading.CountsThePage: "messages.page.total_filtered",
    reading.CountsAfterTheCursor: "messages.page.total_with_cursor",
    reading.CountsIncludes: "messages.include.changes_no_page",
    reading.CountsWithoutDates: "messages.page.total_dates",
    reading.CountsEverybodysThreads: "threads.list.by_owner",
    # --- windows ---
    reading.WindowLeaksOtherResources: "messages.include.within_resource",
    reading.WindowCrossesThreads: "messages.include.own_thread",
    reading.WindowIsFiltered: "messages.include.ignores_filters",
    reading.WindowEndsAtItsTarget: "messages.include.neighbours",
    reading.WindowByTimeAlone: "messages.include.ties",
    reading.WindowOfAnyThread: "messages.include.thread_id",
    # --- threads ---
    writing.EnsureOverwrites: "threads.ensure.returns_existing",
    writing.SaveChangesTheOwner: "threads.save.never_changes_owner",
    writing.SaveBelievesTheCount: "threads.save.replaces",
    writing.TitleErasesMetadata: "threads.update.title_only",
    writing.ReplacesMetadata: "threads.update.metadata_is_merged",
    writing.DropsNulls: "threads.update.metadata_is_merged",
    writing.IgnoresIfTitle: "threads.update.if_title_fails",
    writing.GuardBeforeTheWrite: "writes.one_guard_wins",
    writing.UpdatedAtIsNow: "threads.update.from_the_future",
    writing.UpdateIgnoresOwner: "tenancy.update_thread",
    writing.DeleteKeepsMessages: "threads.delete.with_messages",
    writing.ClearDeletesTheThread: "threads.clear.counts",
    writing.ClearTouchesEmptyThreads: "threads.clear.empty",
    writing.TransferLeavesMessages: "threads.transfer.moves_all",
    # --- clones ---
    writing.CloneKeepsIds: "clones.copies_messages",
    writing.CloneDropsWorkingMemory: "clones.thread_record",
    writing.CloneCopiesMetadata: "clones.thread_record",
    writing.CloneKeepsTimes: "clones.thread_record",
    writing.CloneCountsNothing: "clones.thread_record",
    writing.CloneReversesOrder: "clones.copies_messages",
    writing.CloneKeepsOldest: "clones.limit",
    writing.CloneShowsEarly: "batches.readers_see_all_or_nothing",
    writing.CloneWritesOverTakenIds: "clones.taken_id",
    # --- messages ---
    writing.SavesOneByOne: "batches.failing_save_leaves_nothing",
    writing.BatchesCanBeSeenGrowing: "batches.readers_see_all_or_nothing",
    writing.DropsMicroseconds: "messages.order.microseconds",
    writing.UpsertIsDeleteAndInsert: "messages.upsert.keeps_time_and_seq",
    writing.UpsertTakesTheGivenTime: "messages.upsert.stored_time_wins",
    writing.UpsertMovesBetweenThreads: "messages.upsert.other_thread",
    writing.SavesForAnybody: "tenancy.save_messages",
    writing.SaveDoesNotTouch: "messages.save.count_and_touch",
    writing.CountsUpsertsTwice: "messages.save.count_and_touch",
    writing.MoveCountsOneThread: "messages.update.move",
    writing.UpdatesAnybodys: "tenancy.update_messages",
    writing.DeletesAnybodys: "tenancy.delete_messages",
    writing.CountsDeletedMessages: "messages.page.total_after_writes",
    # --- content and strings ---
    writing.IntegersBecomeFloats: "content.big_integers",
    writing.ReplacesSurrogates: "content.surrogates",
    writing.StripsNul: "content.nul",
    writing.SortsKeys: "content.key_order",
    writing.NormalisesIds: "strings.ids_compare_exactly",
    # --- resources ---
    writing.SaveRaisesRevision: "resources.save.keeps_all",
    writing.IgnoresIfRevision: "resources.update.if_revision",
    writing.DeleteResourceLeavesMessages: "resources.delete.everything",
    writing.LosesUpdates: "merge.many_writers",
    writing.MergeKeepsNulls: "merge.null_in_new_branch",
    writing.MergeConcatenatesArrays: "merge.arrays_replace",
    writing.MergeIsShallow: "merge.objects_recurse",
    writing.MergeMakesFloats: "merge.exact_numbers",
    # --- archive memories ---
    archive.PercentIsAWildcard: "memories.recall.wildcards",
    archive.RecallSeesCase: "memories.recall.casefold",
    archive.RecallLowersOnly: "memories.recall.casefold",
    archive.RecallShowsPinned: "memories.pin",
    archive.RecallLeaksOtherActors: "memories.recall.own_and_shared",
    archive.RecallForgetsShared: "memories.recall.own_and_shared",
    archive.RecallSearchesThePage: "memories.recall.query_before_limit",
    archive.OldestMemoriesFirst: "memories.list.newest_first",
    archive.AddWritesOverTakenIds: "memories.add.taken_id",
    archive.DeletesOthersMemories: "memories.delete.some",
    archive.PinForgetsTheText: "memories.pin",
    # --- declarations ---
    declaring.FiltersInPython: "pushdown.filter",
    declaring.CutsInPython: "pushdown.order_and_limit",
    declaring.AsksForEachMessage: "growth.pages",
    declaring.HidesWhatItDeclares: "capabilities.as_declared",
    declaring.LeavesItOpen: "capabilities.resolved",
    declaring.HasAnotherName: "capabilities.adapter_is_a_storage_adapter",
}
"""Each broken adapter, and the case that must fail for it."""

FAILURES = (AssertionError, pytest.fail.Exception, LookupError, ValueError, ThreadkeepError)
"""What a failing case raises: an assertion, a missing error, a wrong value, an unexpected error."""


def libsql_spec(adapter: type[LibsqlAdapter]) -> AdapterSpec:
    """The embedded backend's declaration, for another class."""

    async def connect(url: str, *, migrate: bool) -> StorageAdapter:
        return await adapter.connect(url.replace("toy:", "libsql:", 1), migrate=migrate)

    return AdapterSpec(
        name="toy",
        schemes=("toy",),
        connect=connect,
        contract=LIBSQL.contract,
        support=LIBSQL.support,
        probe=LIBSQL.probe,
    )


async def run_on(adapter: type[Any], case: str) -> list[tuple[str, object]]:
    """Run one case on an adapter that is installed for as long."""
    if issubclass(adapter, LibsqlAdapter):
        with plugged(libsql_spec(adapter)):
            return await run_case(case, "toy:///{tmp}/memory.db")
    with installed(adapter) as url:
        return await run_case(case, url)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("adapter", "case"), [pytest.param(*pair, id=pair[0].__name__) for pair in CAUGHT.items()]
)
async def test_the_fault_is_caught(adapter: type[StorageAdapter], case: str) -> None:
    with pytest.raises(FAILURES):
        await run_on(adapter, case)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "case", sorted(one.id for one in CASES.values() if "5.1.walk" in one.rules and one.area != "pushdown")
)
async def test_a_walk_that_never_ends_fails(case: str) -> None:
    with installed(walking.IgnoresCursors, probe=ONE_PROCESS) as url, pytest.raises(FAILURES):
        await run_case(case, url)


@pytest.mark.asyncio
@pytest.mark.parametrize("case", sorted(set(CAUGHT.values())))
async def test_without_a_fault_the_case_passes(case: str) -> None:
    faulty = [adapter for adapter, caught_by in CAUGHT.items() if caught_by == case]
    embedded = issubclass(faulty[0], LibsqlAdapter)
    url = "libsql:///{tmp}/memory.db" if embedded else "memory:"

    assert await run_case(case, url) == []


@pytest.mark.asyncio
async def test_the_steps_that_faults_replace_have_none_themselves() -> None:
    for base in (reading.Reading, reading.Windows):
        for case in {caught for adapter, caught in CAUGHT.items() if issubclass(adapter, base)}:
            assert await run_on(base, case) == []


def test_every_broken_adapter_is_in_the_table() -> None:
    bases = {base for adapter in CAUGHT for base in adapter.__mro__[1:]}
    found = {
        member
        for module in (reading, writing, archive, declaring, walking)
        for member in vars(module).values()
        if inspect.isclass(member)
        and issubclass(member, StorageAdapter)
        and member.__module__ == module.__name__
    }
    assert found - bases == set(CAUGHT)
    assert len(CAUGHT) >= 30
