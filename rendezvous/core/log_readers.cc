#include "rendezvous/core/log_readers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/text.h"
#include "rendezvous/core/job/job.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {
namespace {

// A reader may name any job.
std::string Shown(const std::string& run_id) {
  return OneLine(run_id, kMaxNameLength);
}

// The job has ended, and its nodes have left and taken their output with them.
absl::Status OutputIsGone(const JobSnapshot& job) {
  const bool has_file = job.failure && !job.failure->log_path.empty();
  return absl::FailedPreconditionError(
      absl::StrCat("the job ended",
                   job.ended_ago ? absl::StrCat(" ", base::Seconds(*job.ended_ago), " ago") : "",
                   ": ", job.sentence, "; its output was on its nodes, which have left: ",
                   has_file ? absl::StrCat("the log of rank ", job.failure->rank, " is ",
                                           job.failure->log_path, " on host ", job.failure->host)
                            : "where they had a --log-dir, it is there"));
}

}  // namespace

LogReaders::LogReaders(Coordinator& coordinator, const Options& options)
    : coordinator_(coordinator),
      reader_budget_(options.readers, options.all_readers),
      delivery_budget_(options.deliveries, options.all_deliveries),
      next_delivery_(options.first_delivery) {}

void LogReaders::Open(LogReaderId id, LogRequest request, TimePoint now) {
  if (const absl::Status admitted = Admit(request, now); !admitted.ok()) {
    actions_.emplace_back(EndLogReader{id, admitted});
    return;
  }
  const Job& job = *coordinator_.FindJob(request.run_id);
  Reader& reader = readers_.try_emplace(id, std::move(request), &reader_budget_).first->second;
  reader.share.Take(1);
  reader.incarnation = job.incarnation();
  const LogPlacesOfRound* const first = *FirstRound(reader.request, job);
  if (ComesBack(reader.request) && (first == nullptr || first->round != *reader.request.round)) {
    reader.round = *reader.request.round;
    WantAll(reader);
    TellLoss(reader, absl::StrCat("round ", reader.round,
                                  " is no longer known to the rendezvous; what was "
                                  "printed in it and not shown here is missing"));
  }
  if (first != nullptr) {
    if (const absl::Status begun = BeginRound(reader, *first); !begun.ok()) return End(id, begun);
  }
  GoOn(id, now);
}

absl::Status LogReaders::Admit(const LogRequest& request, TimePoint now) {
  const Job* const job = coordinator_.FindJob(request.run_id);
  if (job == nullptr) {
    const std::optional<JobSnapshot> ended = coordinator_.Describe(request.run_id, now);
    if (ended) return OutputIsGone(*ended);
    return absl::NotFoundError(absl::StrCat("no job '", Shown(request.run_id), "' here"));
  }
  if (ComesBack(request) && job->incarnation() != request.incarnation) {
    return absl::NotFoundError(absl::StrCat("the job '", Shown(request.run_id),
                                            "' has ended; this is a new job of the same name"));
  }
  if (request.extent.from.size() > limits::kLogPositions.most) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", limits::kLogPositions.most, " streams are named, the limit"));
  }
  if (request.ranks.size() > limits::kLogRankRanges.most) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", limits::kLogRankRanges.most,
                                                   " ranges of ranks are named, the limit"));
  }
  const auto of_job = std::count_if(readers_.begin(), readers_.end(), [&](const auto& each) {
    return each.second.request.run_id == request.run_id;
  });
  if (static_cast<std::uint64_t>(of_job) >= limits::kLogReadersOfJob.most) {
    return absl::ResourceExhaustedError(absl::StrCat(of_job, " readers of the logs of job '",
                                                     Shown(request.run_id),
                                                     "' are there, which is the limit"));
  }
  const ByteBudget::Share newcomer(&reader_budget_);
  if (const ByteBudget* const full = newcomer.ExceededBy(1); full != nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat(full->most(), " readers of logs are there, which is the limit"));
  }
  const auto round = FirstRound(request, *job);
  if (!round.ok()) return round.status();
  // A reader that comes back may have followed the job into a round without its ranks.
  if (*round != nullptr && ComesBack(request)) return absl::OkStatus();
  if (*round != nullptr) return CheckRanks(request, **round);
  if (request.extent.follow && !job->ended()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "job '", Shown(request.run_id), "' has started no workers: ", job->Describe(now).sentence));
}

const Job* LogReaders::JobOf(const Reader& reader) const {
  const Job* const job = coordinator_.FindJob(reader.request.run_id);
  return job != nullptr && job->incarnation() == reader.incarnation ? job : nullptr;
}

absl::Status LogReaders::BeginRound(Reader& reader, const LogPlacesOfRound& round) {
  reader.round = round.round;
  reader.held.push_back({.part = LogRound{round.round, round.reason, reader.incarnation}});
  for (const LogPlace& place : round.places) {
    if (!WantedOf(place, reader.request.ranks).empty()) reader.to_ask.push_back(place);
  }
  if (!reader.request.extent.follow) return absl::OkStatus();
  if (reader.to_ask.size() <= limits::kLogDeliveriesOfReader.most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the ranks are on ", reader.to_ask.size(), " nodes, of which ",
      limits::kLogDeliveriesOfReader.most, " can be followed at once; name fewer ranks"));
}

void LogReaders::Ready(LogReaderId id, TimePoint now) {
  const auto reader = readers_.find(id);
  if (reader == readers_.end()) return;
  reader->second.ready = true;
  GoOn(id, now);
}

void LogReaders::Close(LogReaderId id) {
  const auto reader = readers_.find(id);
  if (reader == readers_.end()) return;
  const std::set<LogDeliveryId> deliveries = std::move(reader->second.deliveries);
  readers_.erase(reader);
  for (const LogDeliveryId delivery : deliveries) Drop(delivery);
}

void LogReaders::End(LogReaderId id, const absl::Status& status) {
  actions_.emplace_back(EndLogReader{id, status});
  Close(id);
}

void LogReaders::Drop(LogDeliveryId id) {
  const auto delivery = deliveries_.find(id);
  if (delivery == deliveries_.end()) return;
  if (delivery->second.open) actions_.emplace_back(EndLogDelivery{id});
  deliveries_.erase(delivery);
}

void LogReaders::GoOn(LogReaderId id, TimePoint now) {
  Reader& reader = readers_.at(id);
  do {
    GiveHeld(id, reader);
    if (!reader.held.empty()) return;
    AskPlaces(id, reader, now);
    GiveHeld(id, reader);
    // The reader must have taken everything before it is told that this was all.
    const bool is_done =
        reader.ready && reader.held.empty() && reader.to_ask.empty() && reader.deliveries.empty();
    if (!is_done) return;
  } while (EnterNextRound(id, reader));
}

void LogReaders::GiveHeld(LogReaderId id, Reader& reader) {
  if (!reader.ready || reader.held.empty()) return;
  reader.ready = false;
  Held held = std::move(reader.held.front());
  reader.held.pop_front();
  actions_.emplace_back(GiveLogPart{id, std::move(held.part)});
  if (deliveries_.contains(held.from)) actions_.emplace_back(ReadLogDelivery{held.from});
}

void LogReaders::AskPlaces(LogReaderId id, Reader& reader, TimePoint now) {
  const bool all_at_once = reader.request.extent.follow;
  std::deque<LogPlace> later;
  while (!reader.to_ask.empty() && (all_at_once || reader.deliveries.empty())) {
    // Losses are reported one at a time.
    if (!all_at_once && !reader.held.empty()) return;
    LogPlace place = std::move(reader.to_ask.front());
    reader.to_ask.pop_front();
    // After a restart of the daemon, readers may be back before their agents are.
    const bool may_come_back = all_at_once && coordinator_.ConnectionOf(place.attendee) == 0 &&
                               coordinator_.Attends(place.attendee);
    if (may_come_back) {
      later.push_back(std::move(place));
    } else {
      Ask(id, reader, place, now);
    }
  }
  if (all_at_once) reader.to_ask = std::move(later);
}

void LogReaders::Ask(LogReaderId id, Reader& reader, const LogPlace& place, TimePoint now) {
  const AgentId agent = coordinator_.ConnectionOf(place.attendee);
  if (agent == 0) {
    return TellLoss(reader,
                    absl::StrCat(RanksOf(place), " of round ", reader.round, " ran on host ",
                                 place.host, ", which is not in touch with the rendezvous"));
  }
  if (!place.delivers) {
    return TellLoss(reader,
                    absl::StrCat(RanksOf(place), " of round ", reader.round, " ran on host ",
                                 place.host, ", whose Muster is older and cannot send logs"));
  }
  const LogDeliveryId number = next_delivery_++;
  Delivery& delivery = deliveries_.try_emplace(number, id, place, &delivery_budget_).first->second;
  if (const ByteBudget* const full = delivery.share.ExceededBy(1); full != nullptr) {
    deliveries_.erase(number);
    return TellLoss(
        reader, absl::StrCat("host ", place.host, " was not asked for its ranks, as ", full->most(),
                             " deliveries of logs are under way, which is the limit"));
  }
  delivery.share.Take(1);
  delivery.asked_until = now + std::chrono::seconds(limits::kLogAnswerSeconds.most);
  reader.deliveries.insert(number);
  LogWanted wanted{.delivery = number,
                   .round = {reader.incarnation, reader.round},
                   .ranks = WantedOf(place, reader.request.ranks),
                   .extent = reader.request.extent};
  wanted.extent.from = PositionsIn(wanted.ranks, wanted.extent.from);
  actions_.emplace_back(Outgoing{agent, std::move(wanted)});
}

void LogReaders::WantAll(Reader& reader) {
  reader.request.extent.since.reset();
  reader.request.extent.tail.reset();
  reader.request.extent.from.clear();
}

void LogReaders::TellLoss(Reader& reader, std::string sentence) {
  reader.is_incomplete = true;
  reader.held.push_back({.part = LogNotice{.sentence = std::move(sentence), .is_loss = true}});
}

bool LogReaders::EnterNextRound(LogReaderId id, Reader& reader) {
  const Job* const job = JobOf(reader);
  const bool follows = reader.request.extent.follow;
  const LogPlacesOfRound* const next =
      follows && job != nullptr ? job->log_places().FindAfter(reader.round) : nullptr;
  if (next != nullptr) {
    WantAll(reader);
    const absl::Status begun = BeginRound(reader, *next);
    if (!begun.ok()) End(id, begun);
    return begun.ok();
  }
  if (follows && job != nullptr && !job->ended()) return false;
  End(id, reader.is_incomplete ? absl::DataLossError("some output is missing, as noted above")
                               : absl::OkStatus());
  return false;
}

bool LogReaders::OpenDelivery(LogDeliveryId id) {
  const auto found = deliveries_.find(id);
  if (found == deliveries_.end() || std::exchange(found->second.open, true)) return false;
  actions_.emplace_back(ReadLogDelivery{id});
  return true;
}

void LogReaders::Brought(LogDeliveryId id, LogPart part, TimePoint now) {
  const auto found = deliveries_.find(id);
  if (found == deliveries_.end()) return;
  Reader& reader = readers_.at(found->second.reader);
  if (const auto* notice = std::get_if<LogNotice>(&part)) {
    reader.is_incomplete = reader.is_incomplete || notice->is_loss;
  }
  reader.held.push_back({.part = std::move(part), .from = id});
  GoOn(found->second.reader, now);
}

void LogReaders::Ended(LogDeliveryId id, const absl::Status& status, TimePoint now) {
  const auto found = deliveries_.find(id);
  if (found == deliveries_.end()) return;
  const LogReaderId of = found->second.reader;
  Reader& reader = readers_.at(of);
  if (!status.ok()) {
    TellLoss(reader, absl::StrCat("host ", found->second.host, ": ", status.message()));
  }
  reader.deliveries.erase(id);
  deliveries_.erase(found);
  GoOn(of, now);
}

void LogReaders::Follow(const std::string& run_id, TimePoint now) {
  std::vector<LogReaderId> concerned;
  for (auto& [id, reader] : readers_) {
    if (reader.request.run_id != run_id) continue;
    concerned.push_back(id);
    if (JobOf(reader) == nullptr && !reader.until) {
      reader.until = now + std::chrono::seconds(limits::kLogAfterJobSeconds.most);
    }
  }
  for (const LogReaderId id : concerned) GoOn(id, now);
}

void LogReaders::FollowAgents(TimePoint now) {
  for (auto& [id, delivery] : deliveries_) {
    if (delivery.until || coordinator_.Attends(delivery.attendee)) continue;
    delivery.until = now + std::chrono::seconds(limits::kLogAfterJobSeconds.most);
  }
  std::vector<LogReaderId> waiting;
  for (const auto& [id, reader] : readers_) {
    if (AwaitsAgents(reader)) waiting.push_back(id);
  }
  for (const LogReaderId id : waiting) GoOn(id, now);
}

bool LogReaders::AnyAwaitsAgents() const {
  return std::any_of(readers_.begin(), readers_.end(),
                     [](const auto& each) { return AwaitsAgents(each.second); });
}

void LogReaders::Tick(TimePoint now) {
  std::vector<LogReaderId> late;
  for (const auto& [id, reader] : readers_) {
    if (reader.until && *reader.until <= now) late.push_back(id);
  }
  for (const LogReaderId id : late) {
    End(id, absl::DeadlineExceededError(
                absl::StrCat("the job is gone, and what was not read within ",
                             limits::kLogAfterJobSeconds.most, " s of that is lost")));
  }
  std::vector<LogDeliveryId> silent;
  std::vector<LogDeliveryId> left_over;
  for (const auto& [id, delivery] : deliveries_) {
    if (delivery.until && *delivery.until <= now) {
      left_over.push_back(id);
    } else if (!delivery.open && delivery.asked_until <= now) {
      silent.push_back(id);
    }
  }
  for (const LogDeliveryId id : left_over) {
    const auto found = deliveries_.find(id);
    // The steps before may have ended its reader, and with it this delivery.
    if (found == deliveries_.end()) continue;
    if (found->second.open) actions_.emplace_back(EndLogDelivery{id});
    Ended(id,
          absl::DeadlineExceededError(
              absl::StrCat("its agent no longer takes part in the job, and what it did not bring "
                           "within ",
                           limits::kLogAfterJobSeconds.most, " s of that is missing")),
          now);
  }
  for (const LogDeliveryId id : silent) {
    Ended(id,
          absl::DeadlineExceededError(absl::StrCat("its agent has not answered within ",
                                                   limits::kLogAnswerSeconds.most, " s")),
          now);
  }
}

std::optional<TimePoint> LogReaders::NextDeadline() const {
  std::optional<TimePoint> due;
  for (const auto& [id, delivery] : deliveries_) {
    if (!delivery.open) due = base::Earliest(due, std::optional(delivery.asked_until));
    due = base::Earliest(due, delivery.until);
  }
  for (const auto& [id, reader] : readers_) due = base::Earliest(due, reader.until);
  return due;
}

bool LogReaders::AnyEnds() const {
  return std::any_of(readers_.begin(), readers_.end(),
                     [](const auto& each) { return each.second.until.has_value(); });
}

std::optional<LogAction> LogReaders::NextAction() {
  if (actions_.empty()) return std::nullopt;
  LogAction action = std::move(actions_.front());
  actions_.pop_front();
  return action;
}

}  // namespace muster::rendezvous
