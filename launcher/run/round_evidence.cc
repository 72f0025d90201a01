#include "launcher/run/round_evidence.h"

#include <algorithm>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "base/redact.h"
#include "launcher/machine/environment.h"
#include "launcher/run/agent.h"
#include "launcher/run/hang_monitor.h"
#include "worker/flight_log.h"

namespace muster::launcher {

void RoundEvidence::Begin(int first_rank, AttemptLogs& logs) {
  const int nproc = parts_.config.nproc_per_node;
  began_ = std::chrono::steady_clock::now();
  first_rank_ = first_rank;
  told_operations_at_ = 0;
  other_failures_.clear();
  if (parts_.has_gpus) kernel_log_.emplace(KernelLog::From::kNow);
  // New for each round, as no rank is any more where those before were.
  auto flights = worker::FlightFile::Create(nproc);
  flights_.reset();
  if (!flights.ok()) {
    spdlog::info("failures are reported without the workers' operations: {}",
                 std::string(flights.status().message()));
    return;
  }
  flights_.emplace(*std::move(flights));
  logs.flight_log = flights_->path();
  for (int local_rank = 0; local_rank < nproc; ++local_rank) {
    logs.flight_offsets.push_back(flights_->OffsetOf(local_rank));
  }
}

std::vector<worker::RankFlight> RoundEvidence::Operations() const {
  if (!flights_.has_value()) return {};
  return flights_->Read(first_rank_);
}

bool RoundEvidence::has_stalled() const {
  return has_moved() && worker::LongestStay(Operations(), worker::FlightNow()) >= worker::kLongStay;
}

std::string RoundEvidence::TakeOperations() {
  std::string sentence = worker::ExplainFlights(Operations(), worker::FlightNow());
  if (!sentence.empty()) told_operations_at_ = worker::FlightNow();
  return sentence;
}

bool RoundEvidence::KnowsBadStarts() const {
  return parts_.config.max_restarts > 0 && !parts_.config.retry_usage_errors;
}

StartFacts RoundEvidence::StartOfRound(bool alike) const {
  StartFacts facts{
      .no_beat = true, .elapsed = std::chrono::steady_clock::now() - began_, .alike = alike};
  for (int i = 0; parts_.hang != nullptr && i < parts_.config.nproc_per_node; ++i) {
    facts.no_beat = facts.no_beat && !parts_.hang->had_beat(first_rank_ + i);
  }
  return facts;
}

bool RoundEvidence::MayBeEndOfAll(const worker::ExitStatus& status) const {
  return KnowsBadStarts() && MayBeUsageError(status, StartOfRound(/*alike=*/false));
}

rendezvous::WorkerFailure RoundEvidence::FirstFailure(const worker::FailureRecord& record) {
  rendezvous::WorkerFailure failure = ToReport(record);
  failed_at_ = record.failed_at;
  if (parts_.hang != nullptr) {
    // It had stopped to work before it was killed for that.
    failed_at_ = parts_.hang->silent_since(record.rank).value_or(record.failed_at);
  }
  if (KnowsBadStarts()) {
    const std::string why = WhyEachStartFails(failure, StartOfRound(record.alike));
    if (!why.empty()) {
      failure.final = true;
      absl::StrAppend(&failure.what, ", as ", why, " (--retry-usage-errors restarts even so)");
    }
  }
  if (kernel_log_) failure.what += XidsBefore(kernel_log_->ReadNew(), record.pid);
  failure.operations = worker::ExplainFlights(Operations(), worker::FlightNow());
  return failure;
}

void RoundEvidence::AddOthers(const std::vector<worker::FailureRecord>& records) {
  for (const worker::FailureRecord& record : records) other_failures_.push_back(ToReport(record));
}

rendezvous::WorkerFailure RoundEvidence::ToReport(const worker::FailureRecord& record) const {
  const HangMonitor* const hang = parts_.hang;
  ProgressFacts progress;
  if (hang != nullptr && parts_.config.needs_beats()) {
    progress = {.no_beat_yet = !hang->had_beat(record.rank),
                .ends_job = hang->ends_job(record.rank)};
  }
  rendezvous::WorkerFailure failure =
      ReportOf(record, parts_.node, progress, parts_.config.final_exit_codes);
  // Other nodes and the rendezvous are told what it has said last.
  const base::Redactor redact(ToBlock(parts_.base.environment), parts_.config.program.argv);
  for (std::string* const text : {&failure.what, &failure.stderr_tail}) *text = redact(*text);
  // Read here, where the file is: every node shows it.
  if (const auto error = ReadErrorFile(record.error_file, redact)) {
    failure.error_message = error->message;
    failure.error_traceback = error->traceback;
    failure.error_time = error->timestamp.value_or(0);
  }
  return failure;
}

namespace {

// The rendezvous shows no more of a node (rendezvous/core/values/limits.h).
constexpr int kMostRanks = 256;

template <typename Value>
void Append(Value value, std::size_t most, std::deque<Value>& values) {
  values.push_back(std::move(value));
  if (values.size() > most) values.pop_front();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void ProgressBook::Begin(rendezvous::RoundId round, int first_rank, int nproc) {
  round_ = round;
  first_rank_ = first_rank;
  Clear();
  ranks_.assign(static_cast<std::size_t>(std::min(nproc, kMostRanks)), {});
}

void ProgressBook::Clear() {
  ranks_.clear();
  alerts_.clear();
  had_alerts_ = alerts_are_news_ = false;
}

bool ProgressBook::SetRankAlert(int rank, rendezvous::RankAlertKind kind, const std::string& what,
                                rendezvous::TimePoint now) {
  const std::int64_t at = std::int64_t{rank} - first_rank_;
  if (at < 0 || at >= static_cast<std::int64_t>(ranks_.size())) return false;
  if (!alerts_.try_emplace({static_cast<int>(at), kind}, Alert{what, now}).second) return false;
  had_alerts_ = alerts_are_news_ = true;
  return true;
}

bool ProgressBook::EndRankAlert(int rank, rendezvous::RankAlertKind kind) {
  if (alerts_.erase({rank - first_rank_, kind}) == 0) return false;
  alerts_are_news_ = true;
  return true;
}

bool ProgressBook::OnBeat(const worker::Beat& beat, rendezvous::TimePoint now) {
  const std::int64_t at = std::int64_t{beat.rank} - first_rank_;
  if (at < 0 || at >= static_cast<std::int64_t>(ranks_.size())) return false;
  Rank& rank = ranks_[static_cast<std::size_t>(at)];
  if (beat.step && rank.step && *beat.step > *rank.step) {
    const std::chrono::duration<double> since_then = now - *rank.last_beat;
    Append(since_then.count() / static_cast<double>(*beat.step - *rank.step), kSteps,
           rank.intervals);
  }
  rank.is_news = true;
  rank.last_beat = now;
  if (beat.step) rank.step = beat.step;
  if (beat.loss) rank.loss = beat.loss;
  if (beat.samples_per_second) rank.samples_per_second = beat.samples_per_second;
  if (!beat.phases.empty()) {
    Append(beat.phases, kSteps, rank.phases);
    ++rank.timed_steps;
  }
  return true;
}

rendezvous::Progress ProgressBook::Take(bool all, rendezvous::TimePoint now) {
  rendezvous::Progress progress{.round = round_};
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    const bool is_news = std::exchange(rank.is_news, false);
    if (is_news || (all && rank.last_beat)) {
      progress.ranks.push_back(Tell(rank, static_cast<int>(i), now));
    }
  }
  const bool are_news = std::exchange(alerts_are_news_, false);
  if (!are_news && !(all && had_alerts_)) return progress;
  progress.alerts.emplace();
  for (const auto& [of, alert] : alerts_) {
    progress.alerts->push_back(
        {.local_rank = of.first, .kind = of.second, .what = alert.what, .ago = now - alert.since});
  }
  return progress;
}

rendezvous::RankProgress ProgressBook::Tell(const Rank& rank, int local_rank,
                                            rendezvous::TimePoint now) {
  rendezvous::RankProgress told{.local_rank = local_rank,
                                .step = rank.step,
                                .ago = now - *rank.last_beat,
                                .loss = rank.loss,
                                .samples_per_second = rank.samples_per_second,
                                .timed_steps = rank.timed_steps};
  if (!rank.intervals.empty()) {
    told.step_seconds = Median({rank.intervals.begin(), rank.intervals.end()});
  }
  if (rank.phases.empty()) return told;
  for (const worker::BeatPhase& phase : rank.phases.back()) {
    std::vector<double> times;
    for (const std::vector<worker::BeatPhase>& step : rank.phases) {
      for (const worker::BeatPhase& one : step) {
        if (one.name == phase.name) times.push_back(one.seconds);
      }
    }
    told.phases.push_back({phase.name, Median(std::move(times)), worker::IsWaitPhase(phase.name)});
  }
  return told;
}

}  // namespace muster::launcher
