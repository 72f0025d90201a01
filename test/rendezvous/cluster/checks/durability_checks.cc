#include "test/rendezvous/cluster/checks/durability_checks.h"

#include <algorithm>
#include <tuple>
#include <variant>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

bool NotNewer(const RoundId& a, const RoundId& b) {
  return std::tie(a.incarnation, a.number) <= std::tie(b.incarnation, b.number);
}

// The journal keeps milliseconds.
JobRecord InMilliseconds(JobRecord record) {
  const auto cut = [](Duration& time) { time = std::chrono::duration_cast<milliseconds>(time); };
  // A part of the lease that the job asked for, where that was made longer.
  cut(record.settings.keep_alive);
  cut(record.round.gives_up_in);
  if (record.round.last_call_in) cut(*record.round.last_call_in);
  if (record.round.held_for) cut(*record.round.held_for);
  for (Duration& age : record.restart_ages) cut(age);
  cut(record.workers_gone_in);
  cut(record.history.age);
  cut(record.history.productive);
  if (record.history.ended_ago) cut(*record.history.ended_ago);
  for (RoundSnapshot& round : record.history.rounds) {
    cut(round.opened_ago);
    if (round.gathered) cut(*round.gathered);
    // How long the current one has run is a difference of moments that were cut each by itself.
    if (round.end) {
      cut(round.ran);
    } else {
      round.ran = {};
    }
  }
  for (AttendeeRecord& attendee : record.attendees) {
    cut(attendee.lease);
    cut(attendee.keep_alive);
  }
  return record;
}

}  // namespace

// It is on the disk, or its life is over and a later one is there: one write may cover the end of
// the one and the beginning of the other.
bool DurabilityChecks::JobHistory::MayTell(const Verdict& verdict) const {
  const auto is_it = [&verdict](const auto& end) { return end.second == verdict; };
  return std::any_of(ended.begin(), ended.end(), is_it) ||
         std::any_of(decided.begin(), decided.lower_bound(newest.incarnation), is_it);
}

void DurabilityChecks::OnDecided(const JobRecord& record) {
  if (record.verdict) history_[record.run_id].decided[record.incarnation] = *record.verdict;
}

void DurabilityChecks::OnDurable(const std::string& run_id, const JobRecord* record) {
  if (record == nullptr) return;
  JobHistory& history = history_[run_id];
  if (record->verdict) history.ended.emplace(record->incarnation, *record->verdict);
  const bool forgotten = record->verdict && record->attendees.empty();
  if (forgotten && record->incarnation == history.newest.incarnation) return;
  const RoundId now{record->incarnation, record->round.number};
  if (!NotNewer(history.newest, now)) {
    violations_.Add(Check::kRoundOrder,
                    absl::StrCat("job ", run_id, ": incarnation ", now.incarnation, ", round ",
                                 now.number, " is written after incarnation ",
                                 history.newest.incarnation, ", round ", history.newest.number));
  }
  history.newest = now;
}

void DurabilityChecks::OnTold(const std::string& run_id, const SessionToken& session,
                              const std::optional<JobRecord>& now, const Directive& directive) {
  const auto found = history_.find(run_id);
  const JobHistory known = found == history_.end() ? JobHistory{} : found->second;
  const auto on_disk = disk_.jobs().find(run_id);
  const JobRecord* const record = on_disk == disk_.jobs().end() ? nullptr : &on_disk->second.record;
  const auto is_it = [&](const AttendeeRecord& attendee) { return attendee.session == session; };
  const auto has_it = [&](const JobRecord& job) {
    return std::any_of(job.attendees.begin(), job.attendees.end(), is_it);
  };
  std::string what;
  if (const auto* assignment = std::get_if<Assignment>(&directive)) {
    // Of a job that is forgotten by now, that is what had to be written.
    const bool lives = now && now->incarnation == assignment->incarnation;
    if (lives && !NotNewer(assignment->id(), known.newest)) {
      what = "a round starts that is not on the disk";
    }
    if (record != nullptr && !record->attendees.empty() &&
        record->round.number == assignment->round &&
        record->incarnation == assignment->incarnation &&
        (!record->round.complete || record->restarts != assignment->restart_count ||
         record->round.members.at(assignment->group_rank).group_rank != assignment->group_rank)) {
      what = "a round starts that is another on the disk";
    }
  } else if (const auto* stop = std::get_if<Stop>(&directive)) {
    const bool lives = now && now->incarnation == stop->incarnation;
    if (lives && !NotNewer({stop->incarnation, stop->round + 1}, known.newest)) {
      what = absl::StrCat("round ", stop->round, " is stopped that goes on on the disk");
    }
  } else if (const auto* verdict = std::get_if<Verdict>(&directive)) {
    const bool any = now || !known.ended.empty();
    if (any && !known.MayTell(*verdict)) what = "a verdict is told that is not on the disk";
  } else if (std::holds_alternative<Evicted>(directive)) {
    // It may have rejoined over another connection.
    if (record != nullptr && has_it(*record) && !(now && has_it(*now))) {
      what = "a node is told that it has lost its place, and has it on the disk";
    }
  }
  if (!what.empty()) violations_.Add(Check::kDurable, absl::StrCat("job ", run_id, ": ", what));
}

void DurabilityChecks::OnAcknowledged(const std::string& run_id, Incarnation incarnation,
                                      const std::optional<JobRecord>& now, const std::string& key,
                                      const std::string& value) {
  if (!now || now->incarnation != incarnation) return;  // it is forgotten meanwhile
  if (key[0] == 'b') return;                            // set by anybody to anything
  const auto job = disk_.jobs().find(run_id);
  const std::string name = absl::StrCat("job ", run_id, ", key ", key, ": ");
  if (job == disk_.jobs().end()) {
    return violations_.Add(Check::kDurable, absl::StrCat(name, "of a job that is not on the disk"));
  }
  if (job->second.record.incarnation != incarnation) return;
  // Numbers and logs only grow: what is there is this value or a later one.
  const auto entries = disk_.entries().find(run_id);
  const bool is_there = entries != disk_.entries().end() && entries->second.contains(key);
  const std::string there = is_there ? entries->second.at(key) : "";
  const bool later = key[0] == 'a' ? there.size() >= value.size()
                                   : std::strtoll(there.c_str(), nullptr, 10) >=
                                         std::strtoll(value.c_str(), nullptr, 10);
  if (later) return;
  violations_.Add(Check::kDurable, absl::StrCat(name, "'", value, "' is acknowledged, and '", there,
                                                "' is on the disk"));
}

void DurabilityChecks::OnRestored(const JobRecord& written,
                                  const std::optional<JobRecord>& restored) {
  if (written.attendees.empty()) return;
  if (!restored) {
    return violations_.Add(Check::kRestored, absl::StrCat("job ", written.run_id, " is forgotten"));
  }
  const JobRecord want = InMilliseconds(written);
  JobRecord have = InMilliseconds(*restored);
  // A round that is held for a lost node is held longer.
  if (want.round.held_for && have.round.held_for >= want.round.held_for &&
      have.round.gives_up_in >= want.round.gives_up_in) {
    have.round.held_for = want.round.held_for;
    have.round.gives_up_in = want.round.gives_up_in;
  }
  // Those that were lost count their lease anew, as the others do.
  if (have.workers_gone_in >= want.workers_gone_in) have.workers_gone_in = want.workers_gone_in;
  if (want == have) return;
  std::string what = "the job";
  if (!(want.round == have.round)) what = "its round";
  if (want.attendees != have.attendees) what = "its nodes";
  if (want.restarts != have.restarts) what = "its restarts";
  if (want.restart_ages != have.restart_ages) what = "when its restarts were";
  if (want.succeeded != have.succeeded) what = "who has succeeded";
  if (want.verdict != have.verdict) what = "its verdict";
  if (want.started != have.started) what = "whether it has started";
  violations_.Add(Check::kRestored,
                  absl::StrCat("job ", written.run_id, ": ", what, " is not what was written"));
}

}  // namespace muster::rendezvous
