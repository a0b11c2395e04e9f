"""Each witness is told by the checks that were written for its fault: the kit has teeth."""

import asyncio
from inspect import isclass

import pytest

from tenure.clock import SystemClock
from tenure.drivers.memory import MemoryDriver
from tenure.testing.conformance import CHECKS, ConformanceFailure, conform
from tests.drivers import witnesses as w
from tests.drivers import witnesses_of_keys as k
from tests.drivers import witnesses_of_lifelines as l
from tests.drivers import witnesses_of_limits as n
from tests.drivers import witnesses_of_moves as m
from tests.drivers import witnesses_of_retention as r
from tests.drivers import witnesses_of_time as t
from tests.drivers import witnesses_of_turns as o

_RANDOM = {
    "whatever_happens_to_limited_jobs_each_claim_is_right_and_none_is_forgotten",
    "whatever_happens_to_limited_jobs_next_due_is_never_too_late",
}

TOLD_BY: dict[type[w.Witness], set[str]] = {
    # moves
    m.SerialKeptByAMove: {"a_job_that_was_processing_waits_and_its_worker_is_fenced"},
    m.HalfABatchRestored: {"another_job_under_the_same_id_keeps_the_whole_batch_out"},
    m.RestoredOverWhatIsThere: {"a_job_that_is_restored_again_is_known_and_left_as_it_is"},
    m.HistoryLeftBehind: {"a_history_arrives_and_goes_on"},
    m.KeyNotTaken: {
        "a_restored_job_holds_its_unique_key_until_it_is_done",
        "a_restored_throttle_lasts_whatever_became_of_its_job",
    },
    m.RunningJobsLeftOut: {
        "a_dump_has_each_job_as_it_is_shown_with_its_history_and_content",
        "a_dump_has_each_job_that_stays_once_whatever_comes_and_goes",
    },
    m.DatesOfTheMove: {"retention_counts_from_the_end_that_a_job_had"},
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
    w.ReportsOutlastTheirTime: {"a_worker_that_reports_for_no_time_is_shown_no_more"},
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
    # lifelines
    l.GivenUpIsGone: {"a_worker_that_gave_its_lifeline_up_is_not_taken_for_gone"},
    l.NobodyIsEverGone: {"the_leases_of_a_worker_that_is_gone_run_out_soon"},
    l.OneGoneAllGone: {"a_worker_that_lives_keeps_its_leases"},
    l.StrangersAreGone: {"a_worker_without_a_lifeline_is_never_taken_for_gone"},
    l.ShortenedLater: {"a_lease_never_ends_later_for_having_been_shortened"},
    l.ShortenEndsTheHold: {
        "the_leases_of_a_worker_that_is_gone_run_out_soon",
        "a_shortened_hold_is_current_until_it_is_reclaimed",
    },
    l.ShortenTellsNothing: {"the_leases_of_a_worker_that_is_gone_run_out_soon"},
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
    # bytes of what has ended
    r.RetentionIgnoresBytes: {"the_newest_completed_jobs_are_kept_up_to_their_bytes"},
    r.NewestGoByTheirBytes: {"the_newest_completed_jobs_are_kept_up_to_their_bytes"},
    r.OneSumForAllQueues: {
        "the_bytes_of_each_queue_are_its_completed_jobs_payloads_and_results",
    },
    r.ResultsWeighNothing: {
        "the_bytes_of_each_queue_are_its_completed_jobs_payloads_and_results",
    },
    r.BoundNotReached: {"the_newest_completed_jobs_are_kept_up_to_their_bytes"},
    r.TogetherByTheirIds: {"of_jobs_that_ended_together_the_later_arrival_is_the_newer"},
    r.NewestOfTheDoomedFirst: {"what_goes_by_its_bytes_goes_oldest_first"},
    r.FreshGoByTheirBytes: {"a_job_that_is_more_than_the_bytes_goes_when_it_is_a_minute_old"},
    r.DeletedJobsWeighOn: {"the_bytes_of_deleted_jobs_do_not_count"},
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
    w.ExchangeClaimsFirst: {
        "an_exchange_records_before_it_claims",
        "an_exchange_takes_the_place_that_it_gives_back",
    },
    w.ExchangeNeedsFreeSlots: {"an_exchange_without_free_slots_records_only"},
    w.PausedQueuesAreDue: {"next_due_passes_over_paused_queues"},
    # unique keys: who holds one
    k.KeyIgnored: {
        "a_key_that_is_held_refuses_another_job",
        "a_refused_job_leaves_nothing_behind",
        "a_held_key_lets_the_instant_pass",
    },
    k.KeyOfEachQueue: {"a_key_is_one_for_all_queues_and_names"},
    k.KeysAreCaseless: {"keys_are_told_apart_exactly"},
    k.HeldKeyRefusesTheBatch: {"a_known_id_comes_before_its_key"},
    k.KeysOfABatchUnseen: {
        "of_one_batch_the_first_job_of_a_key_holds_it",
        "a_job_of_the_same_batch_is_replaced",
    },
    k.DispatchInTwoSteps: {"of_several_dispatches_at_once_one_gets_the_key"},
    k.KeyBeforeTheId: {
        "a_known_id_comes_before_its_key",
        "a_deleted_id_is_known_before_its_key",
    },
    k.DuplicateReplacesTheHolder: {"beside_a_duplicate_no_key_is_taken_and_no_holder_changed"},
    k.KeyNotShown: {"a_unique_key_comes_back_as_it_was_given"},
    # unique keys: from when on nobody holds it
    k.KeyFreedAtTheClaim: {
        "a_key_is_free_in_the_moment_in_which_its_job_ends",
        "a_key_stays_with_a_job_that_waits_for_another_attempt",
    },
    k.KeyFreedByAnyOutcome: {
        "a_key_stays_with_a_job_that_waits_for_another_attempt",
        "a_key_stays_with_a_released_job",
    },
    k.KeyFreedByAReclaim: {"a_key_stays_with_a_reclaimed_job"},
    k.KeyOutlivesACancel: {"a_key_is_free_when_its_waiting_job_is_cancelled_or_deleted"},
    k.KeyOutlivesADelete: {
        "a_key_is_free_when_its_waiting_job_is_cancelled_or_deleted",
        "the_removal_of_a_former_holder_leaves_the_key_to_the_present_one",
    },
    k.KeyOutlivesAFailure: {"a_key_is_free_in_the_moment_in_which_its_job_ends"},
    k.KeyOutlivesAWish: {"a_wish_to_cancel_frees_the_key_when_it_is_fulfilled"},
    k.KeyOutlivesItsStart: {
        "a_key_until_the_start_is_free_from_the_first_claim_on",
        "an_exchange_frees_the_keys_of_what_it_ends_and_of_what_it_starts",
    },
    k.KeyTakenAgainByARetry: {
        "a_key_until_the_start_is_free_from_the_first_claim_on",
        "a_key_until_the_start_is_not_taken_again_by_a_job_that_waits_again",
    },
    k.KeyOutlivesItsPeriod: {
        "a_key_is_free_from_the_last_instant_of_its_period_on",
        "a_key_that_is_held_no_more_is_neither_replaced_nor_debounced",
    },
    k.PeriodInclusive: {
        "a_key_is_free_from_the_last_instant_of_its_period_on",
        "a_throttle_refuses_for_its_period_though_its_job_has_ended",
    },
    k.PeriodOutlivesTheJob: {"a_period_holds_no_key_beyond_the_end_of_its_job"},
    k.FormerHolderFreesTheKey: {
        "the_end_of_a_former_holder_leaves_the_key_to_the_present_one",
        "the_removal_of_a_former_holder_leaves_the_key_to_the_present_one",
        "nothing_done_to_an_ended_job_frees_a_key_of_another",
        "a_prune_frees_no_key_of_another",
    },
    k.LateOutcomeFreesTheKey: {
        "a_repeated_outcome_frees_no_key_of_another",
        "a_key_stays_with_a_reclaimed_job",
    },
    k.PruneTakesTheKey: {"a_prune_frees_no_key_of_another"},
    # unique keys: manual retries
    k.RetryIgnoresTheHolder: {"a_retry_whose_key_another_job_holds_changes_nothing"},
    k.RetryWithoutItsKey: {
        "a_retried_job_holds_its_key_anew",
        "a_retried_job_holds_its_key_for_another_period_or_until_another_start",
    },
    k.RetryAsksTheThrottle: {"a_throttle_is_not_asked_by_a_retry"},
    # unique keys: what a refused dispatch does
    k.ThrottleEndsWithTheJob: {
        "a_throttle_refuses_for_its_period_though_its_job_has_ended",
        "a_throttle_refuses_for_its_period_though_its_job_is_gone",
    },
    k.ThrottlePruned: {"a_throttle_outlasts_the_retention_of_its_job"},
    k.ProcessingHolderReplaced: {"a_processing_holder_is_not_replaced"},
    k.HolderOfAnotherNameReplaced: {"a_holder_of_another_name_is_left_as_it_is"},
    k.ReplaceChangesMore: {"a_replacing_dispatch_changes_payload_and_due_time_alone"},
    k.ReplaceKeepsTheDueTime: {"the_last_of_several_replacing_dispatches_counts"},
    k.ReplaceForgetsTheContent: {"a_replaced_job_is_known_by_the_content_of_its_dispatch"},
    k.ModeOfTheHolderCounts: {"the_mode_of_the_refused_dispatch_counts_and_not_that_of_the_holder"},
    k.DebounceMovesEarlier: {"a_debouncing_dispatch_moves_the_due_time_later_only"},
    k.DebounceReplaces: {"a_debouncing_dispatch_moves_the_due_time_later_only"},
    k.LongestWaitIgnored: {"a_holder_is_moved_to_its_dispatch_and_the_longest_wait_at_most"},
    k.LongestWaitCountedFromNow: {"a_holder_is_moved_to_its_dispatch_and_the_longest_wait_at_most"},
    k.RefusedDispatchTouchesTheHolder: {"a_refused_job_leaves_nothing_behind"},
    # histories
    t.CompletionKept: {
        "a_job_without_a_past_has_no_history",
        "an_attempt_that_completed_or_was_given_back_is_not_kept",
    },
    t.SnoozeKept: {"an_attempt_that_completed_or_was_given_back_is_not_kept"},
    t.ReleaseKept: {"a_released_attempt_is_not_kept"},
    t.HistoryNewestFirst: {"the_newest_hundred_attempts_are_kept_oldest_first"},
    t.StallsNotKept: {
        "an_attempt_whose_lease_ran_out_is_kept_as_stalled",
        "stalled_attempts_count_among_the_newest_hundred",
    },
    t.StartedAtTheDispatch: {"a_retried_attempt_is_kept_with_its_claim_and_its_end"},
    t.WorkerForgotten: {
        "a_retried_attempt_is_kept_with_its_claim_and_its_end",
        "a_failed_and_a_cancelled_attempt_are_kept",
    },
    t.BytesOfAMessageCounted: {"a_message_is_cut_to_a_thousand_characters"},
    t.HistoryUnbounded: {"the_newest_hundred_attempts_are_kept_oldest_first"},
    t.OldestAttemptsKept: {"the_newest_hundred_attempts_are_kept_oldest_first"},
    t.HistoryOutlivesTheJob: {
        "a_history_goes_with_its_job",
        "a_history_is_pruned_with_its_job",
        "no_history_is_left_when_all_jobs_were_pruned",
    },
    t.HistoryForgottenByARetry: {"a_history_survives_a_manual_retry"},
    t.AnyOutcomeAdds: {"a_repeated_or_fenced_outcome_adds_nothing_to_the_history"},
    t.FailureUnderAWishNotKept: {
        "an_attempt_that_failed_under_a_wish_to_cancel_is_kept_as_it_ended"
    },
    # schedules
    t.FireWithoutCompare: {
        "an_instant_fires_once",
        "of_several_calls_at_once_one_fires_an_instant",
    },
    t.FireIgnoresTheRevision: {"a_tick_with_another_revision_or_previous_instant_changes_nothing"},
    t.FireIgnoresThePause: {"a_paused_schedule_fires_nothing_and_drops_what_falls_into_the_pause"},
    t.EarlyTickFires: {"a_tick_is_early_until_its_instant"},
    t.TickEarlyAtItsInstant: {"a_tick_is_early_until_its_instant"},
    t.TicksComparedByMilliseconds: {
        "a_tick_with_another_revision_or_previous_instant_changes_nothing"
    },
    t.LastTickShownInSeconds: {"a_schedule_comes_back_as_it_was_stored"},
    t.FireInTwoSteps: {"of_several_calls_at_once_one_fires_an_instant"},
    t.FireComparesOnceForABatch: {"ticks_of_one_batch_are_judged_in_their_order"},
    t.TickWithoutItsJob: {"the_job_of_a_tick_is_enqueued_as_it_was_given"},
    t.KnownIdStopsTheTick: {"a_known_id_lets_the_instant_pass"},
    t.HeldKeyStopsTheTick: {"a_held_key_lets_the_instant_pass"},
    t.ChangedDefinitionKeepsLast: {"a_schedule_with_another_definition_has_the_ticks_after_now"},
    t.ChangedDefinitionResumes: {"a_paused_schedule_stays_paused_with_another_definition"},
    t.PutAgainBeginsAnew: {"a_schedule_put_again_with_its_definition_stays_as_it_is"},
    t.PutAgainTakesTheRevision: {
        "a_schedule_put_again_with_its_definition_stays_as_it_is",
        "schedules_of_one_batch_are_judged_one_by_one",
    },
    t.ResumeFiresWhatFellIntoThePause: {
        "a_paused_schedule_fires_nothing_and_drops_what_falls_into_the_pause"
    },
    t.EveryResumeMovesTheLastTick: {"resuming_a_schedule_that_is_not_paused_changes_nothing"},
    t.DroppedScheduleComesBack: {
        "a_schedule_dropped_and_put_again_is_a_new_one",
        "no_schedule_is_left_when_all_were_dropped",
    },
    t.SchedulesInTheOrderOfArrival: {"schedules_are_sorted_by_id"},
    # limits: how many at once
    n.LimitIgnored: {"a_full_key_lets_no_further_job_be_claimed", *_RANDOM},
    n.LimitOfEachClaim: {"a_full_key_lets_no_further_job_be_claimed"},
    n.LimitOfEachQueue: {
        "a_key_is_counted_over_queues_names_and_workers",
        "a_rate_is_one_for_all_queues_and_workers",
    },
    n.OneClaimTakesMore: {"one_claim_takes_no_more_than_is_left_of_a_key"},
    n.LimitInTwoSteps: {"several_workers_claiming_at_once_keep_to_a_limit"},
    n.OneKeyWithRoomSuffices: {
        "a_job_is_passed_over_while_one_of_its_keys_is_full",
        "many_sets_of_keys_share_the_places_of_one",
    },
    n.OnlyTheFirstKeyCounts: {
        "a_job_is_passed_over_while_one_of_its_keys_is_full",
        "a_job_held_back_by_one_key_leaves_the_places_of_its_others",
    },
    n.FullKeyEndsTheClaim: {
        "jobs_that_name_no_full_key_are_claimed_past_those_that_do",
        "jobs_of_a_rate_and_others_keep_one_order",
    },
    n.PassedOverJobsAreCounted: {"a_job_that_is_passed_over_counts_against_no_bound_of_a_claim"},
    n.AgainCountsTwice: {
        "a_repeated_claim_counts_its_holds_once",
        "a_repeated_claim_counts_once_for_a_rate",
    },
    n.AgainIgnoresTheLimit: {"a_repeated_claim_counts_its_holds_once"},
    # limits: what gives a place back
    n.ReclaimKeepsThePlace: {
        "a_reclaim_gives_the_place_back_once",
        "no_place_of_a_limit_is_left_taken_when_all_jobs_were_pruned",
    },
    n.FailureKeepsThePlace: {"every_outcome_gives_the_place_back_once", *_RANDOM},
    n.PlaceGivenBackTwice: {
        "every_outcome_gives_the_place_back_once",
        "a_reclaim_gives_the_place_back_once",
        "an_exchange_takes_the_place_that_it_gives_back",
    },
    n.WishGivesThePlaceBack: {"a_wish_to_cancel_gives_the_place_back_when_it_is_fulfilled"},
    n.PruneForgetsHolds: {"a_prune_forgets_no_hold"},
    # limits: which governs a key
    n.BeginningSharesOneCount: {
        "a_limit_on_a_beginning_gives_each_key_a_limit_of_its_own",
        *_RANDOM,
    },
    n.BeginningBeforeTheKey: {"the_key_itself_governs_before_the_longest_beginning"},
    n.ShortestBeginningGoverns: {"the_key_itself_governs_before_the_longest_beginning"},
    n.LimitsArePatterns: {"keys_of_limits_are_text_and_no_patterns"},
    n.LimitPutAgainKeepsABound: {"limits_are_sorted_by_key_and_come_back_as_they_were_put"},
    n.LimitsInTheOrderOfArrival: {"limits_are_sorted_by_key_and_come_back_as_they_were_put"},
    n.KeysNotShown: {"the_keys_of_a_job_come_back_as_they_were_given"},
    n.HoldsBeforeTheLimitForgotten: {"a_limit_counts_the_holds_that_were_there_before_it"},
    n.LimitNeverChanges: {
        "a_lowered_limit_lets_holds_go_on",
        "a_raised_or_dropped_limit_acts_from_the_next_claim_on",
    },
    n.DroppedLimitStays: {
        "a_raised_or_dropped_limit_acts_from_the_next_claim_on",
        "a_change_of_which_limit_governs_acts_from_the_next_claim_on",
    },
    # limits: order, and what becomes of those that wait
    o.LimitedJobsGoLast: {
        "jobs_with_and_without_limits_keep_one_order",
        "jobs_of_a_rate_and_others_keep_one_order",
        *_RANDOM,
    },
    o.SetsOfKeysOneByOne: {
        "several_places_freed_at_once_are_taken_in_order",
        "limited_jobs_that_are_due_earlier_go_first",
    },
    o.FreedPlacesIgnorePriority: {"freed_places_go_by_priority_and_then_by_arrival"},
    o.ScheduledJobHoldsBackItsKey: {"a_scheduled_job_of_a_key_holds_back_none_that_is_due"},
    o.FreedPlaceIsOfOneQueue: {
        "a_paused_queue_swallows_no_place",
        "a_queue_that_nobody_serves_swallows_no_place",
    },
    o.CancelledJobForgetsTheRest: {
        "a_cancelled_or_deleted_job_leaves_its_turn_to_the_next",
        "a_job_removed_while_its_key_has_room_leaves_its_turn_to_the_next",
    },
    o.DeletedJobForgetsTheRest: {
        "a_cancelled_or_deleted_job_leaves_its_turn_to_the_next",
        *_RANDOM,
    },
    o.MovedJobForgetsTheRest: {
        "a_moved_job_leaves_its_turn_to_the_next_and_has_one_where_it_went",
        "a_job_moved_out_of_reach_while_its_key_has_room_frees_the_turn",
    },
    # rates
    o.RateWindowInclusive: {
        "a_claim_takes_what_a_rate_allows_in_a_second",
        "a_rate_bounds_claims_and_not_what_runs",
    },
    o.RateOfCalendarSeconds: {"in_any_one_second_there_are_no_more_claims_than_a_rate_allows"},
    o.EndGivesAClaimBack: {
        "a_claim_counts_for_its_second_though_its_hold_has_ended",
        "a_reclaim_gives_no_claim_of_a_rate_back",
    },
    o.FutureClaimsHoldTheRate: {"a_claim_of_the_far_future_holds_no_rate"},
    o.PruneForgetsClaims: {"a_prune_forgets_no_claim_of_the_last_second"},
    o.ChangedRateForgetsClaims: {"a_changed_rate_acts_from_the_next_claim_on"},
    o.NextDueIgnoresRates: {
        "next_due_knows_when_a_rate_lets_a_job_through",
        "next_due_is_the_earlier_of_a_due_time_and_a_rate",
        "whatever_happens_to_limited_jobs_next_due_is_never_too_late",
    },
    o.NextDueAfterTheRate: {"next_due_knows_when_a_rate_lets_a_job_through"},
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
        value
        for module in (w, k, l, t, m, n, o, r)
        for name, value in vars(module).items()
        if isclass(value) and issubclass(value, w.Witness) and not name.startswith("_")
    }
    assert defined - {w.Witness, w.Naming} == set(TOLD_BY)
