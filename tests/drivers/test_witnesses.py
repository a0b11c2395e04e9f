"""Each witness is told by the checks that were written for its fault: the kit has teeth."""

import asyncio
from inspect import isclass

import pytest

from tenure.clock import SystemClock
from tenure.drivers.memory import MemoryDriver
from tenure.testing.conformance import CHECKS, ConformanceFailure, conform
from tests.drivers import witnesses as w

TOLD_BY: dict[type[w.Witness], set[str]] = {
    # holds
    w.TokenIgnored: {"record_with_another_token_changes_nothing"},
    w.SerialIgnored: {
        "record_with_another_serial_changes_nothing",
        "record_with_an_older_hold_of_the_same_token_changes_nothing",
    },
    w.NotFenced: {
        "record_with_an_older_hold_changes_nothing",
        "a_reclaimed_hold_is_fenced_before_and_after_the_next_claim",
    },
    w.ExpiredOutcomeRefused: {"an_outcome_under_an_expired_hold_is_applied"},
    w.RepeatFenced: {"an_outcome_recorded_again_is_repeated"},
    w.RepeatForgottenAtClaim: {
        "a_settled_hold_is_known_until_a_later_one_is_settled",
        "a_settled_hold_is_known_over_a_reclaim",
    },
    w.AnyOutcomeRepeats: {"a_settled_hold_takes_no_other_outcome"},
    w.ProgressNotFenced: {"progress_is_stored_under_the_current_hold_only"},
    w.ClaimInTwoSteps: {
        "several_workers_claiming_at_once_get_each_job_once",
        "several_workers_claiming_one_job_at_once_get_it_once",
    },
    # leases
    w.LeaseIgnored: {"a_lease_that_runs_is_not_reclaimed", "each_lease_has_its_own_length"},
    w.OneLeaseForAll: {"each_lease_has_its_own_length"},
    w.ClaimStealsExpired: {"an_expired_job_is_not_claimed_before_it_was_reclaimed"},
    w.LostHoldRevived: {"a_reclaimed_hold_is_lost_and_not_revived"},
    w.ExpiredHoldNotExtended: {"an_expired_hold_that_nobody_reclaimed_is_extended"},
    w.LeaseNeverShortened: {"an_extension_may_move_the_end_backwards"},
    w.ReclaimKeepsTheSerial: {"a_reclaim_takes_a_serial_of_its_own"},
    w.ReclaimIgnoresOnly: {"a_reclaim_of_only_some_holds_leaves_the_others"},
    w.ReclaimTakesOnlyAtItsWord: {"a_reclaim_of_only_some_holds_leaves_the_others"},
    w.ReclaimGivesTheStartBack: {"a_reclaimed_job_is_pending_with_one_stall_and_its_attempt"},
    w.ReclaimIgnoresItsLimit: {"a_reclaim_ends_at_most_its_limit"},
    w.ReclaimKnowsOneDelay: {"a_reclaimed_job_waits_by_its_row_of_stalls"},
    # order
    w.TiesById: {
        "jobs_of_one_batch_keep_the_order_of_the_batch",
        "jobs_of_equal_due_time_keep_their_arrival",
        "a_released_job_keeps_its_place",
    },
    w.PriorityInverted: {"higher_priority_goes_first", "priority_goes_before_due_time"},
    w.DueTimeIgnored: {"of_equal_priority_the_earlier_due_time_goes_first"},
    w.ScheduledJobsGoLast: {"a_due_scheduled_job_is_not_overtaken_by_a_later_dispatch"},
    w.ReleaseLosesThePlace: {"a_released_job_keeps_its_place"},
    w.QueuesAreCaseless: {"names_of_queues_are_told_apart_exactly"},
    w.DelayIgnored: {
        "a_job_is_claimed_from_its_due_time_on",
        "a_scheduled_job_of_higher_priority_does_not_block_a_due_one",
    },
    # attempts and stalls
    w.AttemptCountedTwice: {"each_start_counts_once"},
    w.ReleaseSpendsTheStart: {"a_released_job_gets_its_start_back"},
    w.SnoozeSpendsTheStart: {"a_snoozed_job_waits_its_delay_and_gets_its_start_back"},
    w.RetryGivesTheStartBack: {
        "each_start_counts_once",
        "a_retried_job_waits_its_delay_and_keeps_its_attempt",
    },
    w.StallsNeverReset: {
        "a_retry_and_a_snooze_end_the_row_of_stalls",
        "an_end_ends_the_row_of_stalls",
    },
    w.ReleaseResetsStalls: {"a_release_keeps_the_row_of_stalls"},
    # repeats
    w.RepeatedEnqueueOverwrites: {
        "a_job_enqueued_again_is_stored_once",
        "a_job_enqueued_again_while_it_runs_or_after_it_ended_stays_as_it_is",
    },
    w.DuplicateTakenForARepeat: {"an_id_with_other_content_is_a_duplicate"},
    w.DigestMadeAnew: {"an_id_is_known_by_the_digest_that_came_with_its_job"},
    w.DuplicateStoresTheRest: {"a_batch_with_a_duplicate_stores_nothing"},
    w.DeleteForgetsTheId: {
        "a_deleted_job_does_not_come_back_within_a_minute",
        "a_purged_job_does_not_come_back_within_a_minute",
        "a_pruned_job_does_not_come_back_right_after",
    },
    w.MoveForgetsTheContent: {"a_moved_job_is_known_by_the_content_of_its_dispatch"},
    w.AgainIgnored: {"a_repeated_claim_returns_the_same_holds"},
    w.AgainClaimsMore: {
        "a_repeated_claim_returns_the_same_holds",
        "a_repeated_claim_takes_only_up_to_its_limits",
    },
    w.AgainGoesQueueByQueue: {"a_repeated_claim_returns_what_it_holds_before_any_new_job"},
    w.RetryIgnoresTheSerial: {"a_repeated_retry_does_not_revive_a_job_that_ended_again"},
    # control
    w.PauseIgnored: {"a_paused_queue_is_not_claimed_until_it_is_resumed"},
    w.WishToCancelDropped: {
        "a_wish_to_cancel_leaves_the_running_attempt",
        "an_extension_tells_of_the_wish_to_cancel_and_holds",
    },
    w.WishToCancelDoesNotStopARetry: {"a_job_asked_to_cancel_is_cancelled_instead_of_retried"},
    w.WishToCancelBeatsACompletion: {"a_completion_or_failure_stands_against_the_wish_to_cancel"},
    w.WishToCancelOutlivesTheEnd: {"a_wish_to_cancel_does_not_outlive_a_retry"},
    w.WishToCancelOutlivesACancel: {
        "a_wish_to_cancel_is_gone_when_the_reclaimed_job_was_cancelled"
    },
    w.RunningJobDeleted: {"delete_answers_by_the_state_of_each_job"},
    w.RetryKeepsTheAttempt: {"a_retried_job_starts_anew_under_a_new_serial"},
    w.EndedJobMoved: {"a_job_that_has_ended_is_changed_by_nothing"},
    w.MoveIgnoresTheSerial: {"a_move_with_an_older_serial_changes_nothing"},
    w.RunningJobsPurged: {"a_purge_deletes_what_matches_and_is_not_processing"},
    w.LiveJobsPruned: {"a_live_job_is_never_pruned"},
    w.FreshEndsPruned: {"what_ended_less_than_a_minute_ago_is_never_pruned"},
    w.OneCountForAllQueues: {"the_newest_completed_jobs_of_each_queue_are_kept"},
    # limits, views, content
    w.QueueLimitIgnored: {"a_claim_takes_at_most_the_limit_of_each_queue"},
    w.BytesIgnored: {"a_claim_stops_before_its_bytes_are_passed"},
    w.NamesIgnored: {"a_claim_with_names_takes_only_those"},
    w.ScheduledCountedAsPending: {"a_job_is_scheduled_until_it_is_due_and_pending_from_then_on"},
    w.ExpiredCountedAsPending: {"a_job_moves_from_count_to_count"},
    w.ListedByCreation: {"a_list_has_the_newest_arrival_first"},
    w.CursorCountsFromTheTop: {"a_walk_meets_each_job_once_while_new_ones_arrive"},
    w.PayloadEncodedAnew: {"a_payload_comes_back_byte_for_byte"},
    w.EmptyResultTakenForNone: {"a_result_comes_back_byte_for_byte"},
    w.ErrorOutlivesACompletion: {"a_completion_stores_its_result_and_clears_the_error"},
    w.ErrorForgottenByARetry: {"a_failure_is_stored_as_the_error"},
    w.ExchangeClaimsFirst: {"an_exchange_records_before_it_claims"},
    w.ExchangeNeedsFreeSlots: {"an_exchange_without_free_slots_records_only"},
    w.PausedQueuesAreDue: {"next_due_passes_over_paused_queues"},
}


@pytest.mark.parametrize("witness", TOLD_BY, ids=lambda witness: witness.__name__)
def test_a_witness_fails_the_checks_written_for_its_fault(witness: type[w.Witness]) -> None:
    expected = TOLD_BY[witness]
    checks = [check for check in CHECKS if check.name in expected]
    assert {check.name for check in checks} == expected, "the kit has a check of each name"
    report = asyncio.run(conform(w.opening(lambda: witness(clock=SystemClock())), checks))
    told = {r.check.name for r in report.failed if isinstance(r.error, ConformanceFailure)}
    assert told == expected


@pytest.mark.parametrize("driver", [MemoryDriver, w.Witness, w.Naming])
def test_the_honest_driver_passes_every_check_it_is_asked(driver: type[MemoryDriver]) -> None:
    """So a witness fails for its own fault, not for the places where it steps in."""
    report = asyncio.run(conform(w.opening(lambda: driver(clock=SystemClock()))))
    report.raise_for_failures()
    assert [r for r in report.skipped if r.missing <= driver.capabilities] == []


def test_every_witness_is_listed() -> None:
    defined = {
        value for value in vars(w).values() if isclass(value) and issubclass(value, w.Witness)
    }
    assert defined - {w.Witness, w.Naming} == set(TOLD_BY)
