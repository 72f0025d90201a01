"""The mistakes that the cluster simulation must find.

Of each: a source of a room, a text that is in it once, and what stands there instead.
"""

# Those for which each run of the tests has time.
DAILY_MISTAKES = {
    "rank_given_twice": ("//rendezvous/core/job:roster.cc",
        "assignment.group_rank = member.group_rank;", "assignment.group_rank = member.group_rank / 2;"),
    "round_reused": ("//rendezvous/core/job:job.cc",
                     "round_.emplace(round_->number() + 1, settings_", "round_.emplace(round_->number(), settings_"),
    "stale_report_accepted": ("//rendezvous/core/job:job.cc",
        "return !verdict_ && runs && roster_.at(agent).has_rank();", "return !verdict_ && (runs || true);"),
    "restart_forgets_who_ran": ("//rendezvous/core/job:job.cc", "started_(record.started),", "started_(false),"),
    "stop_not_waited_for": ("//rendezvous/core/job:round.cc",
        "const bool all_back = anyone_returned_ && outstanding_.empty();", "const bool all_back = anyone_returned_;"),
    "lease_cut_short": ("//rendezvous/core:session_table.cc",
        "agent_session.gone_by = now + agent_session.lease;", "agent_session.gone_by = now + agent_session.lease / 2;"),
    "counts_lease_from_answer": ("//rendezvous/client:agent_session.cc",
        "keeper_.OnHeard(heard->number);", "keeper_.OnWelcome(welcome_.lease, welcome_.durable, now);"),
    "starts_when_its_lease_is_over": ("//rendezvous/client:agent_session.cc",
        "return deadline && now + welcome_.lease / 3 > *deadline;",
        "return deadline && now + welcome_.lease / 3 < TimePoint{};"),
}

# Those that scripts/soak.sh makes as well: they take some ten minutes.
MISTAKES = {
    "restart_counted_twice": ("//rendezvous/core/job:verdicts.cc", "++spent_;", "spent_ += 2;"),
    "budget_ignored": ("//rendezvous/core/job:verdicts.cc",
        "if (spent_ < max_restarts_) return RestartAfter{Delay(now)};", "return RestartAfter{Delay(now)};"),
    "ended_session_resumes": ("//rendezvous/core:session_table.cc", "sessions_.erase(agent_session.session);", ""),
    "silence_borne_for_ever": ("//rendezvous/core:coordinator.cc", "  EndLeases(now);", ""),
    "no_time_after_a_restart": ("//rendezvous/core:coordinator.cc",
                                "now + attendee.lease + options_.restart_grace", "now"),
    "leases_run_while_nobody_can_come": ("//rendezvous/core:coordinator.cc", "  session_table_.BeginToServe(now);", ""),
    "older_connection_heard": ("//rendezvous/core:coordinator.cc",
        "if (resume.connection < agent_session->connection) return Tell(agent, superseded);", ""),
    "last_words_heard": ("//rendezvous/core:session_table.cc",
        "connection < end->second.connection || agent == end->second.agent", "connection < end->second.connection"),
    "ended_session_joins": ("//rendezvous/core:coordinator_join.cc",
                            "if (ended_sessions_.SaidBefore(request.session, agent, request.connection)) return;", ""),
    "lost_node_not_waited_for": ("//rendezvous/core/job:job.cc",
                                 "              gone_by, silence);", "              TimePoint::min(), silence);"),
    "lost_node_not_waited_for_while_it_stops": ("//rendezvous/core/job:job.cc",
        "if (attendee.state == NodeState::kStopping) round_->HoldUntil(gone_by, now);", ""),
    "hold_forgotten": ("//rendezvous/core/job:round.cc", "  earliest_ = earliest;", ""),
    "old_join_heard": ("//rendezvous/core/job:job.cc",
                       "const bool old = after < attendee.ran;", "const bool old = false;"),
    "late_join_not_journaled": ("//rendezvous/core/job:job.cc",
                                "LeaveAnswer{.may_leave = true});\n  Changed();", "LeaveAnswer{.may_leave = true});"),
    "stop_of_an_unheard_round_ignored": ("//launcher/run:agent_core.cc",
                                         "if (known || next_ != Next::kUndecided) return;", "return;"),
    "lease_counted_too_long": ("//rendezvous/client:lease_keeper.cc",
                               "*answered_ + SelfFenceAfter(lease_)", "*answered_ + lease_ / 6 * 9"),
    "record_forgets_restarts": ("//rendezvous/wire:record_wire.cc", "wire.set_restarts(record.restarts);", ""),
    "record_forgets_sessions": ("//rendezvous/wire:record_wire.cc", "wire->set_session(attendee.session);", ""),
    "record_forgets_outstanding_nodes": ("//rendezvous/wire:record_wire.cc",
        "for (const ReturningRecord& node : round.outstanding) {",
        "for (const ReturningRecord& node : std::vector<ReturningRecord>()) {"),
    "agent_starts_what_it_has_run": ("//launcher/run:agent_core.cc",
        "if (state_ != State::kJoining || known) return;", "if (state_ != State::kJoining) return;"),
    "held_call_cancelled_as_if_it_waited": ("//rendezvous/core:daemon_core.cc",
        "if (found == waiting_.end()) return;", "if (found == waiting_.end()) std::abort();"),
    "end_of_a_job_forgotten": ("//rendezvous/core:coordinator_join.cc",
        "return request.ran_in != 0 && jobs_.IsOver(request.run_id, request.ran_in);", "return false;"),
    "stop_not_waited_for_beyond_the_join_timeout": ("//rendezvous/core/job:round.cc",
        "if (state_ != State::kGathering || held_ || !outstanding_.empty()) return;",
        "if (state_ != State::kGathering || held_) return; " +
        "if (now >= gives_up_ && joined_.size() > 0) return Complete(); if (!outstanding_.empty()) return;"),
    "deadline_not_taken_back": ("//rendezvous/client:agent_session.cc", "if (LeaseRuns(now)) Do(Deadline{});", ""),
    "refusal_taken_for_the_daemons_word": ("//rendezvous/client:agent_session.cc",
        "const bool is_dead = options_.trust_refusals && options_.places == 1;", "const bool is_dead = true;"),
    "job_closed_for_a_contested_rank": ("//rendezvous/core:coordinator_join.cc",
        "if (defender.lease == Duration::zero()) return RefuseRank(agent, request, holder, now);",
        "defender.job->Close(request.node.host, now); return RefuseRank(agent, request, holder, now);"),
    "rank_not_kept": ("//rendezvous/core/job:round.cc", "previous == previous_ranks_->end() ? -1", "true ? -1"),
    "round_too_small": ("//rendezvous/core/job:round.cc",
                        "  if (in < settings_.min_nodes) {", "  if (in < settings_.min_nodes - 1) {"),
    "spare_left_out": ("//rendezvous/core/job:round.cc",
                       "while (FreePlaces() > 0 && !spares_.empty()) {", "while (false) {"),
    "early_join_timeout": ("//rendezvous/core/job:round.cc", "!enough && now >= gives_up_", "!enough"),
    "needed_node_may_leave": ("//rendezvous/core/job:job.cc",
                              "if (others >= settings_.min_nodes) return", "if (others + 1 >= settings_.min_nodes) return"),
    "finished_work_undone": ("//rendezvous/core/job:job.cc",
                             "if (AnySucceeded() && !roster_.at(agent).waits()) {", "if (false) {"),
    "verdict_not_due": ("//rendezvous/core/job:job.cc",
        "if (succeeded_.size() == round_->members().size()) {", "if (succeeded_.size() > round_->members().size()) {"),
    "verdict_counts_a_round_more": ("//rendezvous/core/job:job.cc",
        "return {run_id_, rounds_run_, budget_.spent()};", "return {run_id_, rounds_run_ + 1, budget_.spent()};"),
    "another_round_described": ("//rendezvous/core/job:job_news.cc",
                                "snapshot.round = round_->number();", "snapshot.round = round_->number() + 1;"),
    "start_does_not_count": ("//rendezvous/core/job:job.cc", "  attendee.Become(NodeState::kRunning, now);", ""),
    "worker_ranks_overlap": ("//rendezvous/core/job:roster.cc",
                             "assignment.base_rank = next_rank;", "assignment.base_rank = next_rank / 2;"),
    "role_ranks_of_all": ("//rendezvous/core/job:roster.cc",
                          "assignment.role_base_rank = role.next_rank;", "assignment.role_base_rank = next_rank;"),
}

# Those of several daemons that take turns. (That a batch follows the transaction before it is most of a fence, and here
# too much of one to see that the leader's key is missing; //test/rendezvous/etcd:mutants_test sees that.)
STANDBY_MISTAKES = {
    "no_fencing": ("//rendezvous/etcd:leader.cc",
                   "{.conditions = {StillLeads(fence_), std::move(follows)},", "{.conditions = {},"),
    "lead_kept_too_long": ("//rendezvous/etcd:election.cc",
                           "asked + Duration(ttl) / 20 * 19", "asked + Duration(ttl) * 2"),
    "committed_batch_forgotten": ("//rendezvous/etcd:etcd_journal.cc",
                                  "if (staged) return ReadParts(JournalKeys::Under(keys_.Batch()));", ""),
}

# Those in the loops around what is simulated (cluster_main.cc), which take no compilation.
LOOP_MISTAKES = [
    "answers_before_commit",
    "reuses_incarnations",
    "forgets_store",
    "does_not_fence",
    "reports_what_the_guard_killed",
]

STANDBY_LOOP_MISTAKES = ["reads_stale", "grants_short_leases", "speaks_when_it_does_not_lead"]

# One in a hundred and fifty seeds shows it: a place has to be given away, and taken, in the moment in which workers die.
RARE_LOOP_MISTAKES = ["guard_tells_too_early"]
